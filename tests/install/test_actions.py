"""Install, upgrade and uninstall, both ways in, with the real launcher in real processes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import hypatia_mem
from hypatia_mem import install as installer
from hypatia_mem.errors import InstallError
from hypatia_mem.install import bundle, record, skilldir
from hypatia_mem.install.plan import Plan
from tests.install.installed import EVENTS, SETTINGS, WAYS, fire, hooks_of, ours, snapshot


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_install_captures_and_uninstall_leaves_the_folder_as_it_was(person, memory, settings, way):
    """The whole life: nothing, installed and capturing, nothing again."""
    before = snapshot(person)
    report = installer.install(memory, settings=settings)
    assert way == report.way
    installer.self_test(report.target)
    done = fire(
        ours(person, way), memory, hook_event_name="UserPromptSubmit", prompt="a planted prompt"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"a planted prompt" in b"".join(
        p.read_bytes() for p in (memory / "spool").glob("*"[:1] + ".jsonl")
    )
    installer.uninstall(memory)
    assert before == snapshot(person)
    assert (memory / "spool").is_dir(), "the memory is kept"
    assert not (memory / "installs.json").exists()


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_installing_twice_changes_nothing(person, memory, settings, way):
    installer.install(memory, settings=settings)
    before, record_before = snapshot(person), (memory / "installs.json").read_bytes()
    again = installer.install(memory, settings=settings)
    assert again.done == ()
    assert before == snapshot(person)
    assert record_before == (memory / "installs.json").read_bytes()


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_dry_run_says_everything_and_writes_nothing(person, memory, settings, way):
    before = snapshot(person)
    report = installer.install(memory, settings=settings, dry_run=True)
    assert any("hypatia-memory" in line for line in report.done)
    assert before == snapshot(person)
    assert not memory.exists()
    installer.install(memory, settings=settings)
    installed = snapshot(person)
    assert installer.uninstall(memory, dry_run=True).done
    assert installed == snapshot(person)


def test_the_default_way_touches_no_settings_file(person, memory):
    installer.install(memory)
    assert (person / ".claude/settings.json").read_bytes() == SETTINGS
    assert {".hypatia-mem.json", "SKILL.md", "hooks", ".claude-plugin"} <= {
        path.name for path in (person / ".claude/skills/hypatia-memory").iterdir()
    }


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_only_known_events_with_a_real_interpreter_are_hooked(person, memory, settings, way):
    """One event name the oldest client does not know would make it drop all hooks."""
    installer.install(memory, settings=settings)
    assert set(hooks_of(person, way)) == EVENTS
    for event in EVENTS:
        handler = ours(person, way, event)
        assert 0 < handler["timeout"] <= 10
    python = record.load(memory).installs[0]["interpreter"]
    assert Path(python).is_absolute()
    assert Path(python).resolve() == Path(python)
    assert Path(python).read_bytes()[:2] != b"#!"
    assert python in json.dumps(ours(person, way))


@pytest.mark.parametrize("first", [False, True])
def test_one_way_replaces_the_other(person, memory, first):
    """Both at once would tell the agent everything twice."""
    before = snapshot(person)
    installer.install(memory, settings=first)
    installer.install(memory, settings=not first)
    in_settings = "hypatia-memory" in (person / ".claude/settings.json").read_text()
    in_directory = (person / ".claude/skills/hypatia-memory/hooks/hooks.json").exists()
    assert (in_settings, in_directory) == (not first, first)
    assert not (in_directory ^ (person / ".claude/skills/hypatia-memory/.claude-plugin").exists())
    installer.uninstall(memory)
    assert before == snapshot(person)


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_a_running_sessions_hook_is_silent_once_we_are_gone(person, memory, settings, way):
    """A session that was open goes on with the command it loaded; code 2 would block its prompt."""
    installer.install(memory, settings=settings)
    handler = ours(person, way)
    installer.uninstall(memory, purge=True)
    done = fire(handler, memory, hook_event_name="UserPromptSubmit", prompt="hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not memory.exists(), "a leftover hook brings nothing back"


@pytest.mark.parametrize(("settings", "way"), WAYS)
def test_the_hook_is_silent_when_the_package_is_gone(person, memory, tmp_path, settings, way):
    """pip uninstall without hypatia-mem uninstall."""
    site = tmp_path / "site with ' and é"
    shutil.copytree(Path(hypatia_mem.__file__).parent, site / "hypatia_mem")
    target = bundle.Target(way, tmp_path / "skills/hypatia-memory", sys.executable, str(site))
    plan = Plan()
    skilldir.plan_write(plan, target)
    plan.apply()
    handler = bundle.hooks_block(target)["UserPromptSubmit"][0]["hooks"][0]
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "first"}
    assert fire(handler, memory, **event).returncode == 0
    assert len(list((memory / "spool").glob("*.jsonl"))) == 1
    shutil.rmtree(site)
    done = fire(handler, memory, **event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(list((memory / "spool").glob("*.jsonl"))) == 1


def test_project_level_writes_into_that_project_alone(person, memory, tmp_path):
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    before = snapshot(project)
    installer.install(memory, project=project / "sub")
    assert (project / ".claude/skills/hypatia-memory/hooks/hooks.json").exists()
    assert not (person / ".claude/skills").exists()
    installer.install(memory, project=project, settings=True)
    assert not (project / ".claude/settings.json").exists(), "that one is shared with others"
    assert "hypatia-memory" in (project / ".claude/settings.local.json").read_text()
    installer.uninstall(memory)
    assert before == snapshot(project)


def test_hooks_for_every_session_replace_those_of_a_project(person, memory, tmp_path):
    project = tmp_path / "app"
    project.mkdir()
    installer.install(memory, project=project)
    installer.install(memory)
    assert not (project / ".claude").exists()
    with pytest.raises(InstallError, match="every project already"):
        installer.install(memory, project=project)
    assert not (project / ".claude").exists()


def test_a_marketplace_plugin_is_not_doubled(person, memory):
    """Its hooks run already; only the worker is set up, and a second way in is refused."""
    enabled = {"enabledPlugins": {"hypatia-memory@hypatia-mem": True}}
    (person / ".claude/settings.json").write_text(json.dumps(enabled))
    before = snapshot(person)
    report = installer.install(memory)
    assert report.way == "plugin"
    assert before == snapshot(person)
    assert "python=" in (memory / "hook.conf").read_text()
    with pytest.raises(InstallError, match="plugin"):
        installer.install(memory, settings=True)


def test_the_self_test_fails_when_nothing_is_captured(person, memory):
    """An installer that reports success over a dead hook is worse than one that fails."""
    report = installer.install(memory)
    (person / ".claude/skills/hypatia-memory/hooks/hook.py").write_text("PACKAGE = ''\n")
    with pytest.raises(InstallError, match="not captured"):
        installer.self_test(report.target)


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        pytest.param("package", "package", id="package-gone"),
        pytest.param("interpreter", "interpreter", id="interpreter-gone"),
        pytest.param("launcher", "files", id="launcher-changed"),
        pytest.param("events", "events", id="event-missing"),
        pytest.param("twice", "hooks", id="installed-twice"),
        pytest.param("gone", "hooks", id="not-installed"),
    ],
)
def test_what_is_wrong_is_found_and_named(person, memory, tmp_path, monkeypatch, harm, check):
    """Capture that broke in silence is what a memory must not have."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    installer.install(memory)
    assert [found for found in installer.installed_state() if not found.ok] == []
    directory = person / ".claude/skills/hypatia-memory"
    marker = json.loads((directory / bundle.MARKER).read_text())
    if harm in ("package", "interpreter"):
        marker["site" if harm == "package" else "interpreter"] = str(tmp_path / "gone")
        (directory / bundle.MARKER).write_text(json.dumps(marker))
    elif harm == "launcher":
        (directory / "hooks/hook.py").write_text("")
    elif harm == "events":
        hooks = json.loads((directory / "hooks/hooks.json").read_text())
        del hooks["hooks"]["Stop"]
        (directory / "hooks/hooks.json").write_text(json.dumps(hooks))
    elif harm == "twice":
        shutil.copytree(directory, tmp_path / "work/.claude/skills/hypatia-memory")
    else:
        shutil.rmtree(directory)
    wrong = [found for found in installer.installed_state() if not found.ok]
    assert check in {found.check for found in wrong}
    assert all(found.remedy for found in wrong)

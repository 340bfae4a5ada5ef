"""Install, upgrade and uninstall, both ways in, with the real launcher in real processes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import hypatia_mem
from hypatia_mem import install as installer
from hypatia_mem.errors import InstallError
from hypatia_mem.install import bundle, client, record, skilldir
from hypatia_mem.install.actions import installed_target
from hypatia_mem.install.plan import Plan

EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
SETTINGS = b"""{
  "model": "opus",
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
}
"""


@pytest.fixture
def person(fenced: Path) -> Path:
    """Return the home of a person who has used the client before."""
    (fenced / ".claude").mkdir()
    (fenced / ".claude" / "settings.json").write_bytes(SETTINGS)
    return fenced


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory-home"


def snapshot(folder: Path) -> dict[str, object]:
    """Return every path below the folder with its bytes, or the link's target."""
    seen: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            seen[name] = ("link", os.readlink(path))
        else:
            seen[name] = path.read_bytes() if path.is_file() else "folder"
    return seen


def hooks_of(person: Path, way: str) -> dict:
    config = person / ".claude"
    if way == "settings":
        return json.loads((config / "settings.json").read_text())["hooks"]
    return json.loads((config / "skills/hypatia-memory/hooks/hooks.json").read_text())["hooks"]


def fire(handler: dict, memory: Path, **fields: str) -> subprocess.CompletedProcess:
    """Start a handler as the client does."""
    argv = [handler["command"], *handler["args"]] if "args" in handler else None
    payload = {"session_id": str(uuid.uuid4()), "cwd": "/", **fields}
    return subprocess.run(
        argv or ["/bin/sh", "-c", handler["command"]],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HYPATIA_MEM_HOME": str(memory)},
        check=False,
    )


def spooled(memory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (memory / "spool").glob("*.jsonl"))


def ours(person: Path, way: str, event: str = "UserPromptSubmit") -> dict:
    handlers = [h for g in hooks_of(person, way)[event] for h in g["hooks"]]
    return next(h for h in handlers if "hypatia-memory" in json.dumps(h))


WAYS = [
    pytest.param(False, "directory", id="directory"),
    pytest.param(True, "settings", id="settings"),
]


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


def test_a_foreign_directory_is_moved_out_of_skills_and_comes_back(person, memory):
    """It is somebody's own skill of that name; inside skills its copy would go on loading."""
    own = person / ".claude/skills/hypatia-memory"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine")
    before = snapshot(person)
    report = installer.install(memory)
    assert any("not ours" in line for line in report.done)
    assert [path.name for path in (person / ".claude/skills").iterdir()] == ["hypatia-memory"]
    assert len(list((person / ".claude").glob("hypatia-memory.bak-*"))) == 1
    installer.uninstall(memory)
    assert before == snapshot(person)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_our_place_is_moved_as_a_link(person, memory, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("mine")
    (person / ".claude/skills").mkdir()
    (person / ".claude/skills/hypatia-memory").symlink_to(elsewhere)
    before = snapshot(person)
    installer.install(memory)
    assert (elsewhere / "SKILL.md").read_text() == "mine"
    installer.uninstall(memory)
    assert before == snapshot(person)


def test_edited_and_added_files_are_kept_aside_and_said(person, memory):
    installer.install(memory)
    directory = person / ".claude/skills/hypatia-memory"
    (directory / "SKILL.md").write_text("edited")
    report = installer.install(memory)
    assert any("SKILL.md" in line and "copy" in line for line in report.done)
    kept = next((person / ".claude").glob("hypatia-memory.bak-*"))
    assert (kept / "SKILL.md").read_text() == "edited"
    assert "hypatia-mem" in (directory / "SKILL.md").read_text()
    (directory / "notes.md").write_text("added")
    installer.uninstall(memory)
    assert not directory.exists()
    copies = [p.read_text() for p in (person / ".claude").glob("hypatia-memory.bak-*/notes.md")]
    assert copies == ["added"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_linked_configuration_folder_is_followed(fenced, memory, tmp_path):
    dotfiles = tmp_path / "dot files é"
    dotfiles.mkdir()
    (fenced / ".claude").symlink_to(dotfiles)
    installer.self_test(installer.install(memory).target)
    assert (dotfiles / "skills/hypatia-memory/SKILL.md").exists()
    installer.uninstall(memory)
    assert (fenced / ".claude").is_symlink()
    assert snapshot(dotfiles) == {}


def test_the_configuration_folder_of_the_environment_is_used(fenced, memory, tmp_path, monkeypatch):
    config = tmp_path / 'it\'s & "mine" $HOME'
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    for settings in (False, True):
        installer.self_test(installer.install(memory, settings=settings).target)
    installer.uninstall(memory)
    assert not config.exists()
    assert not (fenced / ".claude").exists()


def test_a_relative_configuration_folder_is_refused(fenced, memory, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "claude")
    with pytest.raises(InstallError, match="relative"):
        installer.install(memory)


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


VERSIONS = [
    pytest.param("2.1.156", "settings", id="old"),
    pytest.param("2.1.157", "directory", id="new"),
    pytest.param("hm", "directory", id="mute"),
]


@pytest.mark.skipif(os.name == "nt", reason="a script stands for the client")
@pytest.mark.parametrize(("version", "way"), VERSIONS)
def test_an_old_client_gets_its_settings_file(person, memory, tmp_path, monkeypatch, version, way):
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    report = installer.install(memory)
    assert way == report.way
    assert ("settings are used" in " ".join(report.remarks)) == (way == "settings")


def test_upgrade_renews_what_an_older_version_wrote(person, memory, monkeypatch):
    """Version, launcher and pages become this version's; a page that is no more is gone."""
    monkeypatch.setattr(hypatia_mem, "__version__", "0.0.9")
    installer.install(memory)
    directory = person / ".claude/skills/hypatia-memory"
    marker = json.loads((directory / bundle.MARKER).read_text())
    old_launcher = b"PACKAGE = 'old'\n"
    old_page = b"old page"
    (directory / "hooks/hook.py").write_bytes(old_launcher)
    (directory / "reference").mkdir(exist_ok=True)
    (directory / "reference/old.md").write_bytes(old_page)
    marker["files"]["hooks/hook.py"] = skilldir.digest(old_launcher)
    marker["files"]["reference/old.md"] = skilldir.digest(old_page)
    (directory / bundle.MARKER).write_text(json.dumps(marker))
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert {f.check for f in installer.installed_state() if not f.ok} >= {"version"}
    report = installer.upgrade(memory)
    assert any("0.0.9" in line for line in report.done)
    assert not (directory / "reference/old.md").exists()
    assert not list((person / ".claude").glob("hypatia-memory.bak-*"))
    installer.self_test(report.target)
    assert [f for f in installer.installed_state() if not f.ok] == []
    assert installer.upgrade(memory).done == ()


def test_the_launcher_is_there_at_every_instant_of_a_renewal(person, memory):
    """A session that fires its hooks while we renew never misses the script."""
    installer.install(memory)
    directory = person / ".claude/skills/hypatia-memory"
    script = directory / "hooks/hook.py"
    stop = threading.Event()
    missing: list[str] = []

    def watch() -> None:
        while not stop.is_set():
            try:
                if b"PACKAGE" not in script.read_bytes():
                    missing.append("torn")
            except OSError as error:
                missing.append(str(error))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for turn in range(20):
            target = installed_target(memory)
            other = bundle.Target(target.way, target.directory, target.interpreter, f"/site{turn}")
            plan = Plan()
            skilldir.plan_write(plan, other)
            assert plan.acts
            plan.apply()
    finally:
        stop.set()
        watcher.join()
    assert missing == []


def test_installations_at_the_same_time_agree(person, memory):
    """Two terminals, or a script run twice: one complete directory, nobody fails."""
    code = "import sys; from pathlib import Path; from hypatia_mem import install as i; "
    code += "i.install(Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(memory)]
    environment = {**os.environ, "PYTHONPATH": str(Path(hypatia_mem.__file__).parents[1])}
    running = [subprocess.Popen(command, env=environment, cwd="/") for _ in range(4)]
    assert [one.wait(timeout=60) for one in running] == [0, 0, 0, 0]
    assert [found for found in installer.installed_state() if not found.ok] == []
    assert [path.name for path in (person / ".claude/skills").iterdir()] == ["hypatia-memory"]
    assert sorted(path.name for path in (person / ".claude").iterdir()) == [
        "settings.json",
        "skills",
    ]


def test_what_a_killed_installation_left_is_swept(person, memory):
    for name, age in (("new-1", 7200), ("old-2", 7200), ("new-3", 1)):
        left = person / f".claude/.hypatia-memory.{name}"
        left.mkdir()
        os.utime(left, (time.time() - age,) * 2)
    installer.install(memory)
    hidden = [path.name for path in (person / ".claude").glob(".hypatia*")]
    assert hidden == [".hypatia-memory.new-3"], "one that may be at work is left alone"


def test_uninstall_finds_what_the_record_does_not_know(person, memory):
    """The home was removed by hand; the hooks are still ours to remove."""
    before = snapshot(person)
    installer.install(memory)
    shutil.rmtree(memory)
    installer.uninstall(memory)
    left = snapshot(person)
    left.pop(".claude/skills", None)  # whether the folder was ours is not known any more
    assert before == left


def test_purge_removes_the_memory_and_nothing_else(person, memory):
    installer.install(memory)
    (memory / "memory.duckdb").write_bytes(b"x")
    (memory / "mine.txt").write_text("not theirs")
    kept = installer.uninstall(memory)
    assert (memory / "memory.duckdb").exists()
    assert any("Kept" in line for line in kept.remarks)
    report = installer.uninstall(memory, purge=True)
    assert [path.name for path in memory.iterdir()] == ["mine.txt"]
    assert any("mine.txt" in line for line in report.remarks)


def test_a_home_in_which_nothing_was_kept_goes_too(person, memory):
    installer.install(memory)
    installer.uninstall(memory)
    assert not memory.exists()


@pytest.mark.skipif(os.name == "nt", reason="modes are another thing there")
def test_the_home_and_the_record_are_closed_to_others(person, memory):
    installer.install(memory, settings=True)
    assert stat.S_IMODE(memory.stat().st_mode) == 0o700
    for name in ("installs.json", "hook.conf"):
        assert stat.S_IMODE((memory / name).stat().st_mode) == 0o600
    assert b"opus" not in (memory / "installs.json").read_bytes(), "never the settings' content"


def test_comments_refuse_the_settings_way_before_anything_is_written(person, memory):
    settings = person / ".claude/settings.json"
    settings.write_text('{\n  // mine\n  "model": "opus"\n}')
    before = snapshot(person)
    with pytest.raises(InstallError, match="comments") as caught:
        installer.install(memory, settings=True)
    assert "SessionStart" in caught.value.hint
    assert before == snapshot(person)
    assert not memory.exists()


def test_comments_added_later_do_not_stop_the_removal(person, memory):
    installer.install(memory, settings=True)
    settings = person / ".claude/settings.json"
    settings.write_text("// mine\n" + settings.read_text())
    handler = json.loads(settings.read_text().split("\n", 1)[1])["hooks"]["Stop"][-1]["hooks"][0]
    commented = settings.read_text()
    report = installer.uninstall(memory)
    assert any("by hand" in line for line in report.remarks)
    assert commented == settings.read_text()
    assert not (person / ".claude/skills").exists()
    assert fire(handler, memory, hook_event_name="Stop").returncode == 0


def test_broken_settings_do_not_stop_the_default_way(person, memory):
    (person / ".claude/settings.json").write_bytes(b"{broken")
    installer.self_test(installer.install(memory).target)
    assert (person / ".claude/settings.json").read_bytes() == b"{broken"


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


def test_the_second_name_is_added_and_removed(person, memory, tmp_path, monkeypatch):
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "hypatia-mem").write_text("#!/bin/sh\necho it is us\n")
    (commands / "hypatia-mem").chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")  # not where the tests' own one lies
    installer.install(memory, commands=commands)
    assert subprocess.run(["hypatia"], capture_output=True, check=True).stdout == b"it is us\n"
    assert installer.install(memory, commands=commands).done == ()
    installer.uninstall(memory)
    assert [path.name for path in commands.iterdir()] == ["hypatia-mem"]


def programs(**folders):
    """Make programs in folders: ``programs(**{"bin": ["hypatia"]})``."""
    for folder, names in folders.items():
        Path(folder).mkdir(parents=True)
        for name in names:
            path = Path(folder, name)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)


def test_another_program_of_that_name_is_left_alone(person, memory, tmp_path, monkeypatch):
    commands, others = tmp_path / "commands", tmp_path / "others"
    programs(**{str(commands): ["hypatia-mem"], str(others): ["hypatia"]})
    monkeypatch.setenv("PATH", str(others), prepend=os.pathsep)
    report = installer.install(memory, commands=commands)
    assert any(f"{others}/hypatia is another program" in line for line in report.remarks)
    installer.uninstall(memory)
    assert [path.name for path in commands.iterdir()] == ["hypatia-mem"]
    assert [path.name for path in others.iterdir()] == ["hypatia"]


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_it_is_said_which_of_two_programs_is_started(person, memory, tmp_path, monkeypatch, first):
    """The package brings its own `hypatia`: neither hides the other in silence, nor is removed."""
    commands, others = tmp_path / "commands", tmp_path / "others"
    programs(**{str(commands): ["hypatia-mem", "hypatia"], str(others): ["hypatia"]})
    order = [commands, others] if first == "ours" else [others, commands]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, order)), prepend=os.pathsep)
    report = installer.install(memory, commands=commands)
    said = "hides" if first == "ours" else "is another program and the one that `hypatia` starts"
    assert [line for line in report.remarks if "`hypatia`" in line and said in line]
    assert installer.install(memory, commands=commands).done == ()
    installer.uninstall(memory)
    assert sorted(path.name for path in commands.iterdir()) == ["hypatia", "hypatia-mem"]
    assert [path.name for path in others.iterdir()] == ["hypatia"]


def test_the_packages_own_second_name_needs_no_link(person, memory, tmp_path, monkeypatch):
    """The twin: alone on the PATH, reached through a link as install.sh makes it, nothing is said."""
    venv, commands = tmp_path / "venv", tmp_path / "commands"
    programs(**{str(venv): ["hypatia-mem", "hypatia"]})
    commands.mkdir()
    (commands / "hypatia-mem").symlink_to(venv / "hypatia-mem")
    monkeypatch.setenv("PATH", f"{commands}:{venv}:/usr/bin:/bin")
    report = installer.install(memory, commands=venv)
    assert not [line for line in (*report.done, *report.remarks) if "`hypatia`" in line]
    linked = installer.install(memory, commands=commands)
    assert linked.done == (f"Added the name `hypatia` ({commands}/hypatia).",)
    installer.uninstall(memory)
    assert [path.name for path in commands.iterdir()] == ["hypatia-mem"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such layout there")
def test_homebrews_stable_path_is_preferred(tmp_path):
    from hypatia_mem.install import interpreter

    real = tmp_path / "Cellar/python@3.12/3.12.4/bin/python3.12"
    real.parent.mkdir(parents=True)
    real.write_bytes(b"x")
    assert interpreter._stable(str(real)) == str(real)
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/python@3.12").symlink_to(tmp_path / "Cellar/python@3.12/3.12.4")
    assert interpreter._stable(str(real)) == str(tmp_path / "opt/python@3.12/bin/python3.12")


def test_the_client_is_not_asked_when_there_is_none(person, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert client.client_version() is None

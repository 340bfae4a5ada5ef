"""Installing over an older version, several at a time, and taking all of it away again."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import hypatia_mem
from hypatia_mem import install as installer
from hypatia_mem.capture import spool
from hypatia_mem.install import bundle, skilldir
from hypatia_mem.install.actions import installed_target
from hypatia_mem.install.plan import Plan
from tests.install.installed import snapshot

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


def test_the_memory_knows_when_nothing_was_installed(person, memory):
    """What was said while it was away is nobody's to fetch; a renewal is no absence."""
    away = memory / "turns" / ".away"
    assert spool.session_name(away.name) == "", "no session's counter is kept in it"
    assert spool.session_name("away") == "away"
    installer.install(memory)
    (memory / "memory.duckdb").write_bytes(b"x")
    installer.install(memory)
    assert not away.exists()
    installer.uninstall(memory)
    installer.uninstall(memory)
    [line] = away.read_text().splitlines()
    assert " " not in line, "it is away still"
    installer.install(memory)
    installer.install(memory, settings=True)
    [line] = away.read_text().splitlines()
    first, last = map(float, line.split())
    assert first < last

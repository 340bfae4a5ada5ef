"""The program's second name, other programs of that name, and where Python and client are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem import install as installer
from hypatia_mem.install import client


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

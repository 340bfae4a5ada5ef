"""Whose rule is told where: every kind of folder, through the real hook and the real worker.

Each must-not has its must: a rule is absent from the neighbour's brief, and present in its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.machine import Machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GIT = (
    "git",
    *("-c", "user.name=dev", "-c", "user.email=dev@example.invalid"),
    *("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"),
)


def git(cwd: Path, *arguments: str) -> None:
    """Run git as somebody."""
    subprocess.run([*GIT, *arguments], cwd=cwd, check=True, capture_output=True)


def repository(path: Path) -> Path:
    """Make a repository with one commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q")
    (path / "file").write_text(str(path))
    git(path, "add", "-A")
    git(path, "commit", "-qm", f"first of {path}")
    return path


class Land:
    """Folders of every kind, one rule in each project."""

    def __init__(self, machine: Machine, ground: Path) -> None:
        self.machine = machine
        self.one = repository(ground / "a" / "app")
        self.other = repository(ground / "b" / "app")
        self.mine = repository(ground / "a" / "my-app")
        self.plain = ground / "plain"
        self.plain.mkdir()
        self.library = repository(ground / "lib")
        git(self.one, "submodule", "add", "-q", str(self.library), "vendored")
        git(self.one, "commit", "-qm", "submodule")
        self.submodule = self.one / "vendored"
        self.sub = self.one / "src" / "deep"
        self.sub.mkdir(parents=True)
        self.worktree = ground / "elsewhere"
        git(self.one, "worktree", "add", "-q", str(self.worktree), "-b", "side")
        self.link = ground / "link"
        self.link.symlink_to(self.one)
        self.rules = {
            "one": (self.one, "never paint the red fence"),
            "other": (self.other, "never paint the blue gate"),
            "mine": (self.mine, "never paint the green door"),
            "plain": (self.plain, "never paint the white wall"),
            "submodule": (self.submodule, "never paint the black roof"),
        }
        for number, (name, (folder, rule)) in enumerate(self.rules.items()):
            machine.prompt(f"teach-{name}", number + 1, f"remember: {rule}", folder)
        machine.settle()
        for folder in (self.sub, self.worktree, self.link, *[f for f, _ in self.rules.values()]):
            machine.begin(f"visit-{folder.name}-{abs(hash(folder))}", folder)
        machine.settle()

    def told(self, folder: Path) -> set[str]:
        """Return the names of the rules that a session in ``folder`` is told."""
        brief = self.machine.begin(f"look-{abs(hash(folder))}", folder)
        return {name for name, (_, rule) in self.rules.items() if rule in brief}


@pytest.fixture
def land(machine: Machine, tmp_path: Path) -> Land:
    """Return the land, everything stored."""
    return Land(machine, tmp_path / "ground")


def test_each_folder_is_told_its_projects_rule_and_no_other(land: Land) -> None:
    """Same basename, similar name, no git, submodule, subfolder, worktree, symbolic link."""
    expected = {
        land.one: {"one"},
        land.other: {"other"},
        land.mine: {"mine"},
        land.plain: {"plain"},
        land.submodule: {"submodule"},
        land.sub: {"one"},
        land.worktree: {"one"},
        land.link: {"one"},
    }
    assert {folder: land.told(folder) for folder in expected} == expected


def test_a_moved_folder_keeps_its_memory_and_a_stranger_in_its_place_has_none(
    land: Land, tmp_path: Path
) -> None:
    """The repository is known by itself, not by where it lies."""
    moved = tmp_path / "ground" / "moved" / "renamed"
    moved.parent.mkdir()
    land.mine.rename(moved)
    assert land.told(moved) == {"mine"}
    repository(land.mine)
    assert land.told(land.mine) == set()
    land.machine.settle()
    assert land.told(moved) == {"mine"}
    assert land.told(land.mine) == set()


def test_what_is_meant_for_everywhere_is_told_everywhere(land: Land, tmp_path: Path) -> None:
    """The twin of the isolation: a global rule reaches each project, and a new folder too."""
    rule = "always greet the gardener"
    land.machine.prompt("everywhere", 1, f"remember globally: {rule}", land.plain)
    land.machine.settle()
    new = tmp_path / "ground" / "new"
    new.mkdir()
    for folder in (land.one, land.other, land.mine, land.plain, new):
        assert rule in land.machine.begin(f"global-{abs(hash(folder))}", folder)


def test_two_people_know_nothing_of_each_other(
    land: Land, make_machine: Callable[..., Machine]
) -> None:
    """Another person in the same folder is told nothing, and sees no session."""
    neighbour = make_machine("neighbour")
    assert land.rules["one"][1] not in neighbour.begin("n", land.one)
    neighbour.settle()
    assert neighbour.cli("rules") == []
    assert land.told(land.one) == {"one"}

"""Whose it is that is drained, and what is not to be kept at all."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem.capture import hook
from hypatia_mem.config import Settings
from hypatia_mem.install import record
from hypatia_mem.memory import projects
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.store.connection import open_store
from tests.memory.drain_kit import NOW, PERSON, World, world

__all__ = ["world"]


def test_excluded_project_keeps_nothing_more(world: World, tmp_path: Path) -> None:
    """``project exclude`` stops the keeping of one project and of no other."""
    world.turn("kept", "yes", written=True)
    world.settle()
    projects.set_excluded(world.home, "app", True, author=PERSON, now=NOW)
    world.session = "s-2"
    world.turn("private", "no", written=True)
    world.settle()
    assert world.texts("s-2") == []
    assert "excluded=" + str(world.folder) in (world.home / "hook.conf").read_text("utf-8")
    other = World(world.home, tmp_path / "other")
    other.folder.mkdir()
    other.now, other.session = world.now, "s-3"
    other.turn("public", "yes", written=True)
    other.settle()
    assert [text for _, _, text in other.texts("s-3")] == ["public", "yes"]


def test_two_projects_of_one_name_never_share_a_rule(world: World, tmp_path: Path) -> None:
    """Two folders called ``app``: each is told its own rule and not the other's."""
    world.turn("remember: never mock the database", "ok", written=True)
    world.settle()
    twin = World(world.home, tmp_path / "clients" / "app")
    twin.folder.mkdir(parents=True)
    twin.now, twin.session = world.now, "s-2"
    twin.turn("remember: always use tabs", "ok", written=True)
    twin.settle()
    assert world.rules("app") == ["never mock the database"]
    assert twin.rules("app@clients") == ["always use tabs"]


def test_worktree_and_subfolder_are_the_main_repository(world: World, tmp_path: Path) -> None:
    """The right scope each time, by real git."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "init", "-q", str(world.folder)], check=True)
    subprocess.run(
        [*git, "-C", str(world.folder), "commit", "-q", "--allow-empty", "-m", "i"], check=True
    )
    tree = tmp_path / "elsewhere" / "wt"
    subprocess.run([*git, "-C", str(world.folder), "worktree", "add", "-q", str(tree)], check=True)
    sub = world.folder / "src" / "deep"
    sub.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(world.folder)
    for number, folder in enumerate((world.folder, tree, sub, link)):
        world.session = f"s-{number}"
        world.hook("UserPromptSubmit", dir=str(folder), prompt=f"p{number}", prompt_id=str(number))
    world.settle()
    with open_store(world.home, write=False) as store:
        assert {session.project for session, _ in store.sessions()} == {"app"}


@pytest.mark.deep
def test_moved_repository_keeps_its_memory(world: World, tmp_path: Path) -> None:
    """A renamed folder is the same project; a new repository at the old path is not."""
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    world.turn("remember: never mock the database", "ok")
    world.settle()
    moved = tmp_path / "renamed"
    world.folder.rename(moved)
    with open_store(world.home, write=False) as store:
        assert projects.resolve(store, str(moved)).scope == "app"
    world.session = "s-2"
    world.hook("UserPromptSubmit", dir=str(moved), prompt="here", prompt_id="p")
    world.settle()
    with open_store(world.home, write=False) as store:
        assert store.session("s-2").project == "app"
    world.folder.mkdir()
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    (world.folder / ".git" / "config").write_text('[remote "origin"]\n\turl = http://x/other\n')
    world.session = "s-3"
    world.hook("UserPromptSubmit", dir=str(world.folder), prompt="new", prompt_id="q")
    world.settle()
    with open_store(world.home, write=False) as store:
        assert store.session("s-3").project != "app"


def test_session_resumed_in_another_project_speaks_for_that_one(
    world: World, tmp_path: Path
) -> None:
    """What is to be remembered holds where the client runs, as its confirmation says."""
    other = tmp_path / "other"
    other.mkdir()
    world.turn("hello", "yes", written=True)
    world.settle()
    world.hook("SessionStart", dir=str(other), source="resume")
    world.hook("UserPromptSubmit", dir=str(other), prompt="remember: use tabs", prompt_id="q")
    world.line("user", "remember: use tabs", promptId="q", promptSource="typed")
    world.line("assistant", "ok")
    world.hook("Stop", dir=str(other), last_assistant_message="ok", prompt_id="q")
    world.settle()
    assert world.rules("other") == ["use tabs"]
    assert world.rules("app") == []
    world.turn("remember: use spaces", "ok", written=True)
    world.settle()
    assert world.rules("app") == ["use spaces"]


@pytest.mark.deep
@pytest.mark.parametrize("way", ["setting", "project", "shell"])
def test_what_was_said_off_the_record_stays_off(world: World, way: str) -> None:
    """Capturing that is on again does not fetch from the transcript what was said meanwhile.

    The turns before and after are kept; a fork that repeats the lines brings nothing either.
    """
    environ = {"HYPATIA_MEM_HOME": str(world.home), "CLAUDE_PROJECT_DIR": str(world.folder)}
    off = {"setting": "capture=off", "project": f"excluded={world.folder}", "shell": ""}[way]

    def say(words: str, *, kept: bool) -> None:
        world.now += 5_000_000_000
        (world.home / "hook.conf").write_text("" if kept else off + "\n")
        shell = {"HYPATIA_MEM_CAPTURE": "off"} if way == "shell" and not kept else {}
        body = {
            "session_id": world.session,
            "transcript_path": str(world.transcript),
            "cwd": str(world.folder),
            "prompt_id": words,
        }
        prompt = {**body, "hook_event_name": "UserPromptSubmit", "prompt": words}
        stop = {**body, "hook_event_name": "Stop", "last_assistant_message": f"re {words}"}
        hook.handle(json.dumps(prompt).encode(), {**environ, **shell}, 1)
        world.line("user", words, promptId=words, promptSource="typed")
        world.line("assistant", f"re {words}")
        hook.handle(json.dumps(stop).encode(), {**environ, **shell}, 1)

    world.now = int(datetime.now().timestamp() * 1e9)
    say("open-1", kept=True)
    say("private", kept=False)
    if way != "shell":  # there the session stays off the record
        say("open-2", kept=True)
    fork = world.transcript.read_text("utf-8")
    world.session = "s-2"
    say("whole-session", kept=False)
    world.session = "s-fork"
    world.transcript.write_text(fork)
    say("open-3", kept=True)
    world.now += 60_000_000_000
    world.settle(final=True)
    said = {text for name in ("s-1", "s-2", "s-fork") for _, _, text in world.texts(name)}
    kept = ["open-1", "open-3"] + ["open-2"] * (way != "shell")
    assert said == {*kept, *(f"re {words}" for words in kept)}


def test_what_was_said_while_nothing_was_installed_is_not_fetched(world: World) -> None:
    """Whoever uninstalls and comes back later did not ask for what was said in between."""

    def say(words: str, *, session: str = "s-1") -> None:
        world.session = session
        world.now = time.time_ns()
        world.line("user", words, promptId=words, promptSource="typed")
        world.line("assistant", f"re {words}")

    world.turn("hello", "yes", written=True)
    say("before")
    world.settle(final=True)
    for number in range(2):
        time.sleep(0.02)  # what was said and when it was noted are not of one instant
        record.note_away(world.home, away=True)
        say("private", session=f"s-away-{number}")
        say("resumed in private")
        time.sleep(0.02)
        record.note_away(world.home, away=False)
        record.note_away(world.home, away=False)
        time.sleep(0.02)
    say("after")
    say("found", session="s-lost")
    world.drain = Drain(world.home, Settings(), clock_ns=time.time_ns)
    world.drain.step(final=True)
    said = {text for name in ("s-1", "s-lost") for _, _, text in world.texts(name)}
    assert said == {"hello", "yes", "before", "re before", "after", "re after", "found", "re found"}
    assert world.texts("s-away-0") == world.texts("s-away-1") == []

"""What a client forks by itself is a branch like any other: ``--fork-session``, ``/branch``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem.config import Settings
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.store import branches, hidden
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.lookup import Filters
from hypatia_mem.store.search import SearchIndex
from tests.memory import drain_kit
from tests.memory.drain_kit import World

HOOK = Path(__file__).parents[2] / "hooks" / "hook.py"
world = drain_kit.world


def lines_of(world, session):
    path = world.transcript.with_name(f"{session}.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def branch(world, session, lines, *, named=""):
    """Let the client begin a session whose transcript repeats lines of another one."""
    world.session = session
    world.transcript.parent.mkdir(exist_ok=True)
    with world.transcript.open("w", encoding="utf-8") as out:
        for line in lines:
            more = {"sessionId": named, "messageUuid": line["uuid"]}
            made = {**line, "sessionId": session, **({"forkedFrom": more} if named else {})}
            out.write(json.dumps(made) + "\n")
    world.hook("SessionStart", source="fork")


def said(world, session):
    with open_store(world.home, write=False) as store:
        return [(place, one.text) for place, one in branches.reading(store, session)]


def row(world, session):
    with open_store(world.home, write=False) as store:
        return store.session(session)


def finds(world, asker):
    hits = SearchIndex(world.home).search(
        "word", filters=Filters(hidden=hidden.told(world.home, asker)), limit=50
    )
    return {hit.snippet_text.removeprefix("word ") for hit in hits if hit.kind == "message"}


@pytest.mark.deep
@pytest.mark.parametrize("named", ["", "s-1"], ids=["fork-session", "branch"])
def test_a_fork_of_the_client_reads_what_it_repeats(world: World, named):
    world.turn("word one", "word two", written=True)
    world.turn("word three", "word four", written=True)
    world.settle()
    branch(world, "s-2", lines_of(world, "s-1"), named=named)
    world.settle()
    assert (row(world, "s-2").forked_from, row(world, "s-2").forked_at) == ("s-1", 4)
    assert len(said(world, "s-2")) == 4  # before anybody has said a word there
    world.turn("word five", "word six", written=True)
    world.session = "s-1"
    world.turn("word seven", "word eight", written=True)
    world.settle()
    shared = [(1, "word one"), (2, "word two"), (3, "word three"), (4, "word four")]
    assert said(world, "s-2") == [*shared, (5, "word five"), (6, "word six")]
    assert said(world, "s-1") == [*shared, (5, "word seven"), (6, "word eight")]
    four = {"one", "two", "three", "four"}
    assert finds(world, "s-2") == four | {"five", "six"}
    assert finds(world, "s-1") == four | {"seven", "eight"}
    assert finds(world, "s-9") == four | {"five", "six", "seven", "eight"}


def test_what_was_wound_back_before_is_not_the_branchs(world: World):
    """The client repeats only what it still shows: measured on ``/branch`` after ``/rewind``."""
    for words in ("one two", "three four", "five six"):
        prompt, answer = words.split()
        world.turn(f"word {prompt}", f"word {answer}", written=True)
    world.settle()
    lines = lines_of(world, "s-1")
    branch(world, "s-2", [*lines[:2], *lines[4:]], named="s-1")
    world.turn("word seven", "word eight", written=True)
    world.settle()
    assert (row(world, "s-2").forked_at, row(world, "s-2").fork_gaps) == (6, "3-4")
    assert [text for _, text in said(world, "s-2")] == [
        "word one", "word two", "word five", "word six", "word seven", "word eight",
    ]  # fmt: skip
    assert finds(world, "s-2") == {"one", "two", "five", "six", "seven", "eight"}
    assert finds(world, "s-1") == {"one", "two", "three", "four", "five", "six"}


@pytest.mark.deep
def test_a_fork_of_a_fork_of_the_client(world: World):
    world.turn("word one", "word two", written=True)
    world.settle()
    branch(world, "s-2", lines_of(world, "s-1"))
    world.turn("word three", "word four", written=True)
    world.settle()
    branch(world, "s-3", lines_of(world, "s-2"))
    world.turn("word five", "word six", written=True)
    world.settle()
    assert (row(world, "s-3").forked_from, row(world, "s-3").forked_at) == ("s-2", 4)
    assert [text for _, text in said(world, "s-3")] == [
        f"word {word}" for word in ("one", "two", "three", "four", "five", "six")
    ]
    assert finds(world, "s-1") == {"one", "two"}
    assert finds(world, "s-2") == {"one", "two", "three", "four"}


@pytest.mark.deep
def test_a_long_fork_that_is_read_in_pieces_is_one_branch(world: World, monkeypatch):
    from hypatia_mem.memory.intake import drain

    for number in range(6):
        world.turn(f"word p{number}", f"word a{number}", written=True)
    world.settle()
    monkeypatch.setattr(drain, "TRANSCRIPT_BYTES", 900)
    branch(world, "s-2", lines_of(world, "s-1"))
    world.turn("word seven", "word eight", written=True)
    for _ in range(4):
        world.settle()
    assert (row(world, "s-2").forked_at, row(world, "s-2").fork_gaps) == (12, "")
    assert [place for place, _ in said(world, "s-2")] == list(range(1, 15))


@pytest.mark.deep
def test_an_origin_that_comes_later_than_its_fork_is_what_branched_off(world: World):
    """Installed between the two: the fork was read first, and holds the words."""
    world.turn("word one", "word two", written=True)
    lines = lines_of(world, "s-1")
    world.drain = Drain(world.home, Settings(), clock_ns=lambda: world.now)
    for path in (world.home / "spool").glob("*.jsonl"):
        path.unlink()
    branch(world, "s-2", lines, named="s-1")
    world.turn("word three", "word four", written=True)
    world.settle()
    assert [text for _, text in said(world, "s-2")][:2] == ["word one", "word two"]
    world.session = "s-1"
    world.turn("word five", "word six", written=True)
    world.settle()
    assert [text for _, text in said(world, "s-1")] == [
        f"word {word}" for word in ("one", "two", "five", "six")
    ]
    assert finds(world, "s-1") == {"one", "two", "five", "six"}
    assert finds(world, "s-2") == {"one", "two", "three", "four"}


@pytest.mark.deep
def test_resuming_is_no_branch(world: World):
    world.turn("word one", "word two", written=True)
    world.settle()
    world.hook("SessionStart", source="resume")
    world.turn("word three", "word four", written=True)
    world.settle()
    assert row(world, "s-1").forked_from == ""
    assert not (world.home / "index" / hidden.FILE).exists()


# --- through the hook itself ----------------------------------------------------------------------


def hook(world, event, session, **more):
    """Run the real hook as the client does; return what it printed."""
    body = {
        "session_id": session,
        "transcript_path": str(world.transcript.with_name(f"{session}.jsonl")),
        "cwd": str(world.folder),
        "hook_event_name": event,
        **more,
    }
    environ = {
        **os.environ,
        "HYPATIA_MEM_HOME": str(world.home),
        "CLAUDE_PROJECT_DIR": str(world.folder),
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(HOOK)],
        input=json.dumps(body).encode() + b"\n",
        capture_output=True,
        env=environ,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    world.now = max(world.now, time.time_ns())
    return done.stdout.decode()


def ask(world, prompt, answer):
    """Let a person ask and the client answer, with its hooks and its transcript."""
    said = {"prompt_id": f"p-{prompt}"}
    hook(world, "UserPromptSubmit", world.session, prompt=prompt, **said)
    world.line("user", prompt, promptId=said["prompt_id"], promptSource="typed")
    world.line("assistant", answer)
    hook(world, "Stop", world.session, last_assistant_message=answer, **said)


def test_a_fork_through_the_hooks_own_process(world: World):
    """Captured, stored and told: each branch its own end, and nothing of it in another project."""
    world.now = time.time_ns()
    ask(world, "word one", "word two")
    world.settle()
    branch(world, "s-2", lines_of(world, "s-1"))
    assert "word two" in hook(world, "SessionStart", "s-2", source="fork")
    ask(world, "word three", "word four")
    world.session = "s-1"
    ask(world, "word five", "word six")
    world.settle()
    assert [text for _, text in said(world, "s-2")] == [
        "word one", "word two", "word three", "word four",
    ]  # fmt: skip
    told = {one: hook(world, "SessionStart", one, source="resume") for one in ("s-1", "s-2", "s-9")}
    assert "word six" in told["s-1"]
    assert "word four" not in told["s-1"]
    assert "word four" in told["s-2"]
    assert "word six" not in told["s-2"]
    assert "word six" in told["s-9"]  # no branch: the latest of all
    world.folder = world.folder.with_name("web")
    world.folder.mkdir()
    assert "word" not in hook(world, "SessionStart", "s-2", source="resume")

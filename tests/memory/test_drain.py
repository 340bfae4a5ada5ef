"""From spool and transcripts to the store: each turn once, whatever dies on the way."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from hypatia_mem.config import Settings
from hypatia_mem.errors import StoreError
from hypatia_mem.memory import curate
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.memory.intake.house import keep_house
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import gateway, snapshot
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.memory.drain_kit import NOW, World, world

__all__ = ["world"]


EXPECTED = [(1, "user", "first"), (2, "assistant", "one"), (3, "user", "second")]


def test_hooks_alone_are_enough(world: World) -> None:
    """No transcript at all: every turn is there once, in order, after the grace."""
    world.turn("first", "one")
    world.hook("UserPromptSubmit", prompt="second", prompt_id="p2")
    world.settle()
    assert world.texts() == EXPECTED


def test_transcript_alone_is_enough(world: World) -> None:
    """Hooks that could not write lose nothing: the next word of any hook brings the transcript."""
    world.line("user", "first", promptId="p1", promptSource="typed")
    world.line("assistant", "one")
    world.line("user", "second", promptId="p2", promptSource="typed")
    world.hook("SessionEnd", reason="other")
    world.settle(final=True)
    assert world.texts() == EXPECTED


def test_both_together_are_each_turn_once(world: World) -> None:
    """The usual case: hook and transcript tell of the same turns."""
    world.turn("first", "one", written=True)
    world.drain.step()
    world.turn("second", "two", written=True)
    world.settle()
    assert [text for _, _, text in world.texts()] == ["first", "one", "second", "two"]


def test_late_transcript_binds_instead_of_adding(world: World) -> None:
    """A line that turns up after its turn was stored from the hook adds no second message."""
    world.turn("first", "one", written=True)
    late = world.transcript.rename(world.folder / "not-yet")
    world.settle()
    assert [text for _, _, text in world.texts()] == ["first", "one"]
    late.rename(world.transcript)
    world.hook("SessionEnd", reason="other")
    world.settle(final=True)
    assert [text for _, _, text in world.texts()] == ["first", "one"]
    with open_store(world.home, write=False) as store:
        assert not any(m.uuid.startswith("hook:") for m in store.messages("s-1"))


@pytest.mark.deep
@pytest.mark.parametrize("cut", range(1, 9))
def test_a_failed_commit_loses_and_doubles_nothing(
    world: World, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction dies at its n-th write; the next step stores everything, once."""
    for number in range(3):
        world.turn(f"prompt {number}", f"answer {number}", written=number % 2 == 0)
    world.now += 5_000_000_000
    calls = {"left": cut}
    real = gateway.Transaction._bulk

    def failing(self, table, values):
        calls["left"] -= 1
        if calls["left"] == 0:
            raise StoreError("the disk is full")
        real(self, table, values)

    monkeypatch.setattr(gateway.Transaction, "_bulk", failing)
    try:
        world.drain.step()
    except StoreError:
        assert world.texts() == []
    world.settle()
    expected = [f"{kind} {n}" for n in range(3) for kind in ("prompt", "answer")]
    assert [text for _, _, text in world.texts()] == expected


@pytest.mark.deep
def test_a_new_worker_reads_nothing_twice(world: World) -> None:
    """Restarts at any time, with no state but the store's, add nothing (I2)."""
    for number in range(4):
        world.turn(f"prompt {number}", f"answer {number}", written=True)
        world.drain = Drain(world.home, Settings(), clock_ns=lambda: world.now)
        world.settle()
    assert [turn for turn, _, _ in world.texts()] == list(range(1, 9))


def test_same_words_twice_are_two_turns(world: World) -> None:
    """People type "ok" all day."""
    world.turn("ok", "done", written=True)
    world.turn("ok", "done", written=True)
    world.settle()
    assert [text for _, _, text in world.texts()] == ["ok", "done", "ok", "done"]


def test_fork_adds_only_what_is_new(world: World) -> None:
    """A forked session repeats the lines it came from; they stay where they were."""
    world.turn("first", "one", written=True)
    world.settle()
    old = world.transcript.read_text("utf-8").replace('"s-1"', '"s-2"')
    world.session = "s-2"
    world.transcript.write_text(old, "utf-8")
    world.turn("second", "two", written=True)
    world.settle()
    assert [text for _, _, text in world.texts("s-1")] == ["first", "one"]
    assert world.texts("s-2") == [(1, "user", "second"), (2, "assistant", "two")]
    with open_store(world.home, write=False) as store:
        session = store.session("s-2")
    assert session is not None
    assert session.forked_from == "s-1"


def test_phantom_session_end_makes_no_session(world: World) -> None:
    """Plugin commands of the client end sessions that never began."""
    world.hook("SessionEnd", reason="other")
    world.settle(final=True)
    with open_store(world.home, write=False) as store:
        assert store.session("s-1") is None


def test_title_and_compaction_make_the_session_entry(world: World) -> None:
    """``session-<ID>`` comes from a real summary only, and links every message once."""
    world.turn("first", "one", written=True)
    world.settle()
    with open_store(world.home, write=False) as store:
        assert store.entry("session-s-1") is None
    world.line("ai-title", "", aiTitle="Fix the build")
    world.turn("second", "two", written=True)
    world.settle()
    with open_store(world.home, write=False) as store:
        entry = store.entry("session-s-1")
        links = [s for s in store.statements_of("session-s-1") if s.predicate == "belongTo"]
    assert entry is not None
    assert entry.content == "Fix the build"
    assert entry.tags == ("session",)
    assert sorted(link.subject for link in links) == [f"msg-s-1-{n}" for n in range(1, 5)]


def test_remember_from_a_prompt_is_in_the_brief(world: World) -> None:
    """Stored at once without a model, and told to the next session."""
    world.turn("remember: never mock the database", "Understood.", written=True)
    world.settle()
    with open_store(world.home, write=False) as store:
        entry = store.entry("rule:never-mock-the-database")
        links = {(s.predicate, s.object) for s in store.statements_of(entry.name)}
    assert entry.kind == "taboo"
    assert entry.tags == ("memory", "taboo")
    assert entry.scopes == ("app",)
    assert links == {("is_a", "taboo"), ("derivedFrom", "msg-s-1-1")}
    brief = next((world.home / "briefs").glob("p-*.json")).read_text("utf-8")
    assert "never mock the database" in brief
    assert "[RESUMED_SESSION]" in brief


@pytest.mark.deep
def test_forget_from_a_prompt_holds(world: World) -> None:
    """Forgotten stays forgotten: not in rules, index or brief, and a retelling is refused."""
    world.turn("remember that the staging URL is http://stage.test:81", "ok", written=True)
    world.turn("remember: always run make lint", "ok", written=True)
    world.settle()
    assert len(world.rules()) == 2
    world.turn("forget the staging URL", "ok", written=True)
    world.settle()
    assert world.rules() == ["always run make lint"], "the twin stays"
    hits = SearchIndex(world.home).search("staging", scopes=["app", ""], kinds=["memory"])
    assert hits == []
    brief = next((world.home / "briefs").glob("p-*.json")).read_text("utf-8")
    assert "stage.test" not in brief
    assert "make lint" in brief
    outcome = curate.remember(
        world.home,
        "the  staging URL is http://stage.test:81.",
        kind="memory",
        scope="app",
        author=Author(Channel.CLI_AGENT),
        now=NOW,
    )
    assert outcome.verb == "refused"
    world.turn("remember that the staging URL is http://stage.test:81", "ok", written=True)
    world.settle()
    assert len(world.rules()) == 2, "a person may change their mind"


def test_broad_forget_removes_nothing_by_itself(world: World) -> None:
    """Two rules match: the choice is the person's."""
    world.turn("remember: never mock the database", "ok", written=True)
    world.turn("remember: never mock the clock", "ok", written=True)
    world.turn("forget mock", "which one?", written=True)
    world.settle()
    assert len(world.rules()) == 2


def test_secrets_of_the_transcript_do_not_reach_the_store(world: World) -> None:
    """The transcript is not redacted; what is stored of it is, parts included."""
    secret = "sk-ant-" + "api03-" + "Ab1" * 20
    world.line("user", f"use {secret} please", promptId="p", promptSource="typed")
    reply = {
        "id": "msg_1",
        "role": "assistant",
        "content": [
            {"type": "text", "text": f"I used {secret}"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"K={secret}"}},
        ],
    }
    world.line("assistant", "", message=reply)
    world.line("user", "thanks, really", promptId="p2", promptSource="typed")
    world.hook("SessionEnd", reason="other")
    world.settle(final=True)
    assert len(world.texts()) == 3
    for path in world.home.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_damaged_record_costs_itself_only(world: World) -> None:
    """A torn line is set aside; what stands before and behind it is stored."""
    world.turn("first", "one")
    path = world.home / "spool" / "s-1.jsonl"
    path.write_bytes(path.read_bytes() + b'{"v":1,"crc":"00000000","at":1,"torn')
    world.turn("second", "two")
    world.settle()
    assert [text for _, _, text in world.texts()] == ["first", "one", "second", "two"]
    assert len(list((world.home / "spool" / "quarantine").iterdir())) == 1


@pytest.mark.deep
def test_corrupt_store_comes_back_from_snapshot_and_spool(world: World) -> None:
    """The damaged file is kept as evidence, nothing acknowledged is lost (I2)."""
    world.turn("first", "one")
    world.settle()
    keep_house(world.home, Settings(), now=NOW, beat=lambda: None)
    world.turn("second", "two")
    world.settle()
    (world.home / "memory.duckdb").write_bytes(b"\0" * 50_000)
    kept = snapshot.restore(world.home)
    world.drain = Drain(world.home, Settings(), clock_ns=lambda: world.now)
    world.settle()
    assert [text for _, _, text in world.texts()] == ["first", "one", "second", "two"]
    assert (kept / "memory.duckdb").exists()


@pytest.mark.deep
def test_spool_is_kept_until_a_verified_snapshot_holds_it(world: World) -> None:
    """Retention never removes the only second copy of a turn."""
    settings = Settings(spool_keep_days=0, snapshot_every_hours=24)
    world.turn("first", "one")
    world.settle()
    later = datetime(2099, 1, 1)
    assert list((world.home / "spool").glob("*.jsonl"))
    keep_house(world.home, settings, now=later, beat=lambda: None)
    assert not list((world.home / "spool").glob("*.jsonl")), "a snapshot holds it now"
    world.turn("second", "two")
    keep_house(world.home, settings, now=datetime(2027, 1, 1), beat=lambda: None)
    assert list((world.home / "spool").glob("*.jsonl")), "not drained, so no snapshot holds it"
    world.settle()
    assert [text for _, _, text in world.texts()] == ["first", "one", "second", "two"]


def test_session_without_hooks_is_found_beside_a_known_one(world: World) -> None:
    """Hooks that never ran for a session lose nothing; one off the record stays off."""
    world.now = int(datetime.now().timestamp() * 1e9)
    world.turn("known", "yes", written=True)
    world.settle()
    world.now += 60_000_000_000
    for name in ("s-lost", "s-private"):
        world.session = name
        world.line("user", f"words of {name}", promptId=name, promptSource="typed")
        world.line("assistant", "yes")
        world.line("user", "next", promptId=name + "2", promptSource="typed")
    (world.home / "turns" / "s-private.internal").touch()
    world.drain = Drain(world.home, Settings(), clock_ns=lambda: world.now)
    world.settle()
    assert [text for _, _, text in world.texts("s-lost")] == ["words of s-lost", "yes", "next"]
    assert world.texts("s-private") == []


@pytest.mark.parametrize("hooks", ["right", "wrong"])
def test_a_clock_gone_wrong_does_not_hold_the_brief(world: World, hooks: str) -> None:
    """A session stamped years ahead is not where we left off until those years are over."""
    right = time.time_ns() - 3_600_000_000_000
    world.now = right + 5 * 365 * 86_400_000_000_000
    world.session = "s-ahead"
    world.line("user", "from the future", promptId="p", promptSource="typed")
    world.line("assistant", "re future")
    world.now = world.now if hooks == "wrong" else right
    world.hook("UserPromptSubmit", prompt="from the future", prompt_id="p")
    world.hook("Stop", last_assistant_message="re future", prompt_id="p")
    world.settle(final=True)
    world.now, world.session = right + 600_000_000_000, "s-now"
    world.turn("here and now", "re now", written=True)
    world.settle(final=True)
    brief = next((world.home / "briefs").glob("p-*.json")).read_text("utf-8")
    assert "here and now" in brief
    assert "from the future" not in brief


def test_line_written_twice_is_said_once(world: World) -> None:
    """The client may append a line again after a compaction: its words are not doubled."""
    world.line("user", "first", promptId="p", promptSource="typed")
    world.line("assistant", "one")
    lines = world.transcript.read_text("utf-8").splitlines(keepends=True)
    world.hook("UserPromptSubmit", prompt="first", prompt_id="p")
    world.drain.step()
    with world.transcript.open("a", encoding="utf-8") as out:
        out.write(lines[1])
    world.hook("Stop", last_assistant_message="one", prompt_id="p")
    world.settle()
    with world.transcript.open("a", encoding="utf-8") as out:
        out.writelines(lines)
    world.hook("SessionEnd", reason="other")
    world.settle(final=True)
    assert world.texts() == [(1, "user", "first"), (2, "assistant", "one")]


@pytest.mark.parametrize("path", ["/x/a\0b.jsonl", "/x/\ud800.jsonl", "/x/" + "a" * 9_000])
def test_a_path_that_names_no_file_keeps_nobody_from_being_stored(world, path):
    """One event that says nonsense would hold up every session, for good."""
    world.hook("UserPromptSubmit", prompt="before it", prompt_id="p-1", transcript_path=path)
    world.hook("Stop", last_assistant_message="fine", prompt_id="p-1", transcript_path=path)
    world.session = "s-2"
    world.turn("after it", "fine too")
    world.settle(final=True)
    assert [text for _, _, text in world.texts("s-1")] == ["before it", "fine"]
    assert [text for _, _, text in world.texts("s-2")] == ["after it", "fine too"]

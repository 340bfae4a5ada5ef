"""A message that a person deleted does not come back, however its source is read again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.config import Settings
from hypatia_mem.memory import curate, history, propagation
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.memory.sharing import exporting, importing
from hypatia_mem.model import Author, Channel
from hypatia_mem.store.connection import open_store
from tests.memory.drain_kit import NOW, PERSON, World, world

__all__ = ["world"]

LATER = NOW + timedelta(hours=5)  # no session runs any more
SECRET = "the staging host is zebra-seven"


def _read_again(world: World, how: str) -> None:
    """Let everything be read as if nothing had been: the store has lost its cursors."""
    with (
        open_store(world.home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=LATER) as txn,
    ):
        txn.delete_cursors(list(store.cursors()))
    if how == "spool alone":
        world.transcript.unlink()
    world.now += 3_600_000_000_000
    world.drain = Drain(world.home, Settings(), clock_ns=lambda: world.now)
    world.settle(final=True)


def _said(world: World) -> list[str]:
    return [text for _, _, text in world.texts() if text]


def _ledger(world: World) -> int:
    with open_store(world.home, write=False) as store:
        return store.ledger_seq()


@pytest.mark.deep
@pytest.mark.parametrize("how", ["transcript and spool", "spool alone"])
@pytest.mark.parametrize("shown", [True, False], ids=["shown by the transcript", "hooks only"])
@pytest.mark.parametrize("forget", [False, True], ids=["delete", "forget"])
def test_a_deleted_message_does_not_come_back(world, how, shown, forget):
    """Neither the prompt nor its answer; what was said beside them is there as before."""
    world.turn("first", "one", written=True)
    world.turn(SECRET, f"noted: {SECRET}", written=shown)
    world.turn("third", "three", written=True)
    world.settle(final=True)
    before = _said(world)
    assert len(before) == 6
    for name in ("msg-s-1-3", "msg-s-1-4"):
        if forget:
            curate.forget(world.home, "", scope="app", ids=[name], author=PERSON, now=LATER)
        else:
            curate.delete_entry(world.home, name, author=PERSON, now=LATER)
    left = [text for text in before if SECRET not in text]
    assert _said(world) == left
    seq = _ledger(world)
    _read_again(world, how)
    assert _said(world) == left
    assert _ledger(world) == seq, "reading again what is known changes nothing"
    world.turn("fourth", "four", written=how != "spool alone")
    world.settle(final=True)
    assert _said(world) == [*left, "fourth", "four"]


@pytest.mark.deep
def test_what_is_brought_back_is_a_message_again(world):
    """The twin: an undone deletion leaves a message that its line and its hook still find."""
    world.turn(SECRET, "noted", written=True)
    world.settle(final=True)
    before = world.texts()
    curate.delete_entry(world.home, "msg-s-1-1", author=PERSON, now=LATER)
    history.undo(world.home, None, author=PERSON, now=LATER)
    assert world.texts() == before
    _read_again(world, "spool alone")
    assert world.texts() == before


def test_the_same_words_said_once_more_are_new(world):
    """What is kept away is that message, not its words."""
    world.turn("ok", "done", written=True)
    world.settle(final=True)
    curate.delete_entry(world.home, "msg-s-1-1", author=PERSON, now=LATER)
    world.now += 3_600_000_000_000
    world.turn("ok", "again", written=True)
    world.settle(final=True)
    assert _said(world) == ["done", "ok", "again"]


def test_nothing_is_kept_by_which_the_words_could_be_tried_out(world):
    """A plain digest of a short text is as good as the text."""
    from hypatia_mem.memory.intake.reconcile import digest

    world.turn("ok", "done", written=True)
    world.settle(final=True)
    curate.delete_entry(world.home, "msg-s-1-1", author=PERSON, now=LATER)
    with open_store(world.home, write=False) as store:
        kept = [one.text_digest for one in store.known_messages("s-1")]
    assert kept[0]
    assert digest("ok")[:12] not in kept[0]
    assert kept[1] == digest("done")


@pytest.mark.deep
def test_a_session_summary_goes_with_a_message_and_does_not_come_back(world):
    """What the client condensed holds the words too; a title it made up may."""
    world.turn("first", "one", written=True)
    world.turn(SECRET, "noted", written=True)
    world.line("user", f"Summary: {SECRET}", isCompactSummary=True)
    world.line("ai-title", "", aiTitle="Staging host")
    world.settle(final=True)

    def told() -> tuple[object, str]:
        with open_store(world.home, write=False) as store:
            return store.entry("session-s-1"), store.session("s-1").title

    entry, title = told()
    assert entry is not None
    assert title == "Staging host"
    curate.delete_entry(world.home, "msg-s-1-3", author=PERSON, now=LATER)
    assert told()[0] is None
    _read_again(world, "transcript and spool")
    assert told()[0] is None


@pytest.mark.deep
def test_a_title_the_client_made_goes_and_one_a_person_gave_stays(world):
    for session, line in (
        ("s-1", {"aiTitle": "Staging host"}),
        ("s-2", {"customTitle": "My afternoon"}),
    ):
        world.session = session
        world.turn(SECRET, "noted", written=True)
        kind = "ai-title" if "aiTitle" in line else "custom-title"
        world.line(kind, "", **line)
    world.settle(final=True)
    for session in ("s-1", "s-2"):
        curate.delete_entry(world.home, f"msg-{session}-1", author=PERSON, now=LATER)
    _read_again(world, "transcript and spool")
    with open_store(world.home, write=False) as store:
        assert [store.session(one).title for one in ("s-1", "s-2")] == ["", "My afternoon"]
        assert store.entry("session-s-1") is None
        assert store.entry("session-s-2").content == "My afternoon"


@pytest.mark.deep
@pytest.mark.parametrize("how", ["transcript and spool", "spool alone"])
def test_a_deleted_session_does_not_come_back_and_what_is_said_in_it_later_is_new(world, how):
    """Its turns, its title, its summary: nothing of it; and the next turn is its next turn."""
    world.turn("first", "one", written=True)
    world.turn(SECRET, "noted", written=True)
    world.line("ai-title", "", aiTitle="Staging host")
    world.settle(final=True)
    done = propagation.delete(world.home, ["s-1"], scopes=("app",), author=PERSON, now=LATER)
    assert done.sessions == ("s-1",)

    def there() -> tuple[object, list[str]]:
        with open_store(world.home, write=False) as store:
            names = [str(row["name"]) for row in store.run("SELECT name FROM entry")]
            return store.session("s-1"), names

    assert there() == (None, [])
    _read_again(world, how)
    assert there() == (None, [])
    world.turn("third", "three", written=how != "spool alone")
    world.settle(final=True)
    session, names = there()
    assert session is not None
    assert session.title == ""
    assert sorted(names) == ["msg-s-1-5", "msg-s-1-6"]
    assert _said(world) == ["third", "three"]


@pytest.mark.deep
def test_an_export_made_after_it_brings_nothing_with_it(world, tmp_path):
    world.turn(SECRET, "noted", written=True)
    world.turn("second", "two", written=True)
    world.settle(final=True)
    propagation.delete(world.home, ["s-1:1-2"], scopes=("app",), author=PERSON, now=LATER)
    exporting.export_shelf(world.home, tmp_path / "out")
    other = tmp_path / "other"
    importing.import_shelf(other, tmp_path / "out", author=PERSON, now=LATER)
    with open_store(other, write=False) as store:
        assert [one.text for one in store.messages("s-1") if one.text] == ["second", "two"]
        assert "zebra" not in str(
            [store.run(f"SELECT * FROM {table}") for table in ("entry", "message", "version")]
        )

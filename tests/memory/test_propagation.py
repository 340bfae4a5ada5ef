"""Deleting: what goes with a thing, what stays, what comes of the rest, and going back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError
from hypatia_mem.memory import curate, history, propagation, queued
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store import sources
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.memory.cascade_kit import (
    NOW,
    PERSON,
    WORKER,
    assert_whole,
    counts,
    fill,
    links,
    run,
    settings,
    summaries,
    talk,
)

AGENT = Author(Channel.CLI_AGENT)
CONFIG = settings(cascade_batch=2, cascade_max_tokens=200)
LONG_AGO = NOW - timedelta(days=2)
TRIPLE = "fact,is_about,queue"
SAID = "rule:always-say-why"


@pytest.fixture
def tree(home):
    """Eight messages under four, two and one summaries, and things that stand on them."""
    fill(home, talk(8))
    run(home, CONFIG)
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_summary("s-1", "It was about queues.", "compaction", "app")
        txn.put_entry(Entry("wu-queue", "the lesson", scopes=("app",)))
        txn.put_statement(Statement("wu-queue", "derivedFrom", "msg-s-1-3", scopes=("app",)))
        txn.put_entry(Entry("fact", "queues are long", scopes=("app",)))
        txn.put_statement(Statement("fact", "is_about", "queue", scopes=("app",)))
    said = Author(Channel.HOOK_PROMPT, session_id="s-1", turn=3)
    curate.remember(home, "always say why", kind="rule", scope="app", author=said, now=NOW)
    curate.refresh(home)
    return home


def _dump(home):
    """Return all that a store says, without what only tells of its past."""
    tables = {
        "entry": "name, content, tags, scopes, kind, trust, suppressed, pinned, created_at",
        "statement": "triple, content, scopes, trust",
        "message": "session_id, turn, uuid, parent_uuid, parts, text_digest",
        "session": 'id, project, title, "turns"',
        "tombstone": "digest, scope",
    }
    with open_store(home, write=False) as store:
        return {
            name: sorted(
                json.dumps(row, default=str) for row in store.run(f"SELECT {what} FROM {name}")
            )
            for name, what in tables.items()
        }


def _names(home):
    with open_store(home, write=False) as store:
        return {str(row["name"]) for row in store.run("SELECT name FROM live_entry")}


def _delete(home, *names, dry_run=False, author=PERSON, scopes=("app", ""), **how):
    return propagation.delete(
        home, names, scopes=scopes, dry_run=dry_run, author=author, now=NOW, **how
    )


def _sources_are_live(home):
    """The rule that always holds: a live derived thing stands on live things alone."""
    with open_store(home, write=False) as store:
        live = {str(row["name"]) for row in store.run("SELECT name FROM live_entry")}
        for name in live - {SAID}:  # a person's own words stand on the person
            missing = set(sources.sources(store, name)) - live
            assert not missing, f"{name} stands on {missing}"
        assert sources.orphans(store) == []


# --- every kind by one verb -----------------------------------------------------------------------

KINDS = {
    "entry": ("fact",),
    "rule": ("rule:always-say-why",),
    "statement": (TRIPLE,),
    "message": ("msg-s-1-3",),
    "turns": ("s-1:3-4,8",),
    "session": ("s-1",),
    "session summary": ("session-s-1",),
    "work unit": ("wu-queue",),
    "several": ("fact", "msg-s-1-1", TRIPLE),
}


@pytest.mark.deep
@pytest.mark.parametrize("names", KINDS.values(), ids=KINDS)
def test_one_verb_deletes_every_kind_and_undo_brings_all_of_it_back(tree, names):
    """A dry run says what happens and does nothing; what is said is what happens."""
    before = _dump(tree)
    told = _delete(tree, *names, dry_run=True)
    assert _dump(tree) == before
    done = _delete(tree, *names)
    assert done.op_id
    for field in ("targets", "derived", "kept", "statements", "owed", "sessions"):
        assert getattr(told, field) == getattr(done, field)
    gone = {one.name for one in (*done.targets, *done.derived)}
    now = _names(tree)
    assert not gone & now
    assert {one.name for one in done.kept} <= now
    assert {hit.name for hit in SearchIndex(tree).search("queue", scopes=None)}.isdisjoint(gone)
    _sources_are_live(tree)
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert _dump(tree) == before
    history.redo(tree, done.op_id, author=PERSON, now=NOW)
    assert not gone & _names(tree)


@pytest.mark.deep
@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_summary_is_deleted_by_the_same_verb(tree, level):
    name = summaries(tree, level)[0].name
    done = _delete(tree, name)
    assert name not in _names(tree)
    assert len(done.derived) == 3 - level
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]


@pytest.mark.deep
def test_what_stands_on_a_message_goes_with_it_and_nothing_else(tree):
    """Up the whole tree; the sibling stays, and so does what a person asked to be remembered."""
    over = {one for one, item in links(tree) if item == "msg-s-1-3"}
    (sibling,) = {one for one, item in links(tree) if item == "msg-s-1-5"}
    before = _names(tree)
    done = _delete(tree, "msg-s-1-3")
    gone = before - _names(tree)
    assert over <= gone
    assert {one.name for one in done.derived} == gone - {"msg-s-1-3"}
    assert {"wu-queue", "session-s-1"} < gone
    assert len(gone) == 1 + 3 + 2  # the message, a summary a level, the work unit, the session's
    assert sibling in _names(tree)
    assert [(one.name, one.kind) for one in done.kept] == [("rule:always-say-why", "rule")]
    _sources_are_live(tree)


@pytest.mark.deep
def test_a_rule_that_an_agent_derived_goes_and_one_that_a_person_said_stays(tree):
    with open_store(tree, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_entry(Entry("rule:inferred", "say it short", kind="rule", scopes=("app",)))
        txn.put_statement(Statement("rule:inferred", "derivedFrom", "msg-s-1-3", scopes=("app",)))
    done = _delete(tree, "msg-s-1-3")
    assert "rule:inferred" in {one.name for one in done.derived}
    assert "rule:always-say-why" in _names(tree)


# --- what comes of the rest -----------------------------------------------------------------------


@pytest.mark.deep
def test_what_is_left_is_condensed_anew_at_every_level(tree):
    """Not only dropped: the survivors get summaries of their own, and nothing else is made."""
    fill(tree, talk(2), session="s-2")  # due, but nobody owes it
    _delete(tree, "msg-s-1-3")
    assert counts(tree, 3) == [3, 1, 0]
    made = propagation.rederive(tree, CONFIG, now=NOW)
    assert len(made) == 3
    assert counts(tree, 3) == [4, 2, 1]
    assert {item for _, item in links(tree) if item.startswith("msg-")} == {
        f"msg-s-1-{n}" for n in (1, 2, 4, 5, 6, 7, 8)
    }
    assert not any("Report 2:" in one.content for one in summaries(tree))
    assert_whole(tree)
    assert propagation.rederive(tree, CONFIG, now=NOW) == ()


@pytest.mark.deep
def test_a_level_is_made_anew_although_it_is_not_full(home):
    """All messages of one summary go: the level above has one fewer, and is there all the same."""
    config = settings(cascade_batch=4, cascade_max_tokens=100)
    fill(home, talk(4))
    run(home, config)
    assert counts(home, 2) == [4, 1]
    _delete(home, "msg-s-1-2")
    assert counts(home, 2) == [3, 0]
    propagation.rederive(home, config, now=NOW)
    assert counts(home, 2) == [3, 1]
    assert "Report 1:" not in summaries(home, 2)[0].content
    assert_whole(home)


@pytest.mark.deep
@pytest.mark.parametrize("level", [1, 2])
def test_a_summary_that_a_person_deleted_is_not_made_again(tree, level):
    """Who deletes a summary does not want it; undoing brings it back, and only that."""
    name = summaries(tree, level)[0].name
    before = counts(tree, level)[level - 1]
    done = _delete(tree, name)
    run(tree, CONFIG)
    assert counts(tree, level)[level - 1] == before - 1
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert counts(tree, level)[level - 1] == before


@pytest.mark.deep
def test_an_edit_of_a_source_reaches_all_that_stands_on_it(tree):
    """In the same transaction: summaries go and are owed from the new words, a lesson is stale."""
    with open_store(tree, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        text = store.entry("msg-s-1-3").content.replace("Report 2:", "Corrected 2:")
        txn.update_entry("msg-s-1-3", content=text)
        assert not any("Report 2:" in one.content for one in store.live_entries(_all(store)))
    assert counts(tree, 3) == [3, 1, 0]
    with open_store(tree, write=False) as store:
        assert store.entry("wu-queue").trust == Trust.STALE
        assert store.entry("session-s-1") is None
    propagation.rederive(tree, CONFIG, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]
    assert any("Corrected 2" in one.content for one in summaries(tree, 1))
    _sources_are_live(tree)


@pytest.mark.deep
def test_what_stands_on_a_suppressed_source_is_withheld_too(tree):
    with open_store(tree, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry("msg-s-1-3", suppressed=True)
    assert counts(tree, 3) == [3, 1, 0]
    assert "wu-queue" not in _names(tree)
    with open_store(tree, write=False) as store:
        assert store.entry("wu-queue").trust == Trust.CANDIDATE, "it waits for a review"
        assert store.entry("rule:always-say-why").trust == Trust.ASSERTED
    _sources_are_live(tree)


def _all(store):
    return [row["name"] for row in store.run("SELECT name FROM entry")]


# --- delete from here ---------------------------------------------------------


@pytest.mark.deep
def test_delete_from_here_takes_the_rest_of_that_session_only(tree):
    fill(tree, talk(3), session="s-2")
    before = _dump(tree)
    told = propagation.delete_onward(
        tree, "msg-s-1-6", scopes=("app",), dry_run=True, author=PERSON, now=NOW
    )
    assert _dump(tree) == before
    done = propagation.delete_onward(tree, "msg-s-1-6", scopes=("app",), author=PERSON, now=NOW)
    gone = [f"msg-s-1-{n}" for n in (6, 7, 8)]
    assert [one.name for one in done.targets] == [one.name for one in told.targets] == gone
    left = {name for name in _names(tree) if name.startswith("msg-")}
    assert left == {f"msg-s-1-{n}" for n in range(1, 6)} | {f"msg-s-2-{n}" for n in (1, 2, 3)}
    _sources_are_live(tree)
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert _dump(tree) == before


@pytest.mark.deep
def test_delete_from_here_of_a_summary_takes_the_later_ones_of_its_level(tree):
    """And what stands on them; earlier ones of the level stay, and messages do."""
    level_1 = [one.name for one in summaries(tree, 1)]
    done = propagation.delete_onward(tree, level_1[2], scopes=("app",), author=PERSON, now=NOW)
    assert [one.name for one in done.targets] == level_1[2:]
    assert [one.name for one in summaries(tree, 1)] == level_1[:2]
    assert counts(tree, 3) == [2, 1, 0]
    assert len([name for name in _names(tree) if name.startswith("msg-")]) == 8


@pytest.mark.deep
@pytest.mark.parametrize("wrong", ["s-1", TRIPLE], ids=["session", "statement"])
def test_nothing_comes_after_a_session_or_a_statement(tree, wrong):
    with pytest.raises(UsageError, match="nothing comes after"):
        propagation.delete_onward(tree, wrong, scopes=("app",), author=PERSON, now=NOW)


# --- who may, and what is not there -----------------------------------------------------------------


@pytest.mark.deep
def test_another_projects_things_are_not_deleted_unless_it_is_named(tree):
    with pytest.raises(Refused, match="belongs to app"):
        _delete(tree, "fact", scopes=("web", ""))
    assert "fact" in _names(tree)
    with pytest.raises(Refused, match="only a person"):
        _delete(tree, "fact", scopes=None, author=AGENT)
    _delete(tree, "fact", scopes=("app",))
    assert "fact" not in _names(tree)


@pytest.mark.deep
def test_nothing_is_deleted_when_one_of_the_names_is_wrong(tree):
    before = _dump(tree)
    for names in (("fact", "nope"), ("fact", "s-1:9-12"), ("fact", "s-1:5-3"), ("",)):
        with pytest.raises((NotFound, UsageError)):
            _delete(tree, *names)
    assert _dump(tree) == before


@pytest.mark.deep
def test_the_ledger_says_why_and_no_words(tree):
    _delete(tree, "fact", reason="wrong")
    with open_store(tree, write=False) as store:
        row = next(row for row in store.ledger() if row["verb"] == "delete knowledge")
        assert row["reason"] == "wrong"
        assert store.verify_ledger() is None
        assert "queues are long" not in json.dumps(store.ledger(limit=500), default=str)
    with pytest.raises(UsageError, match="--because is wrong, outdated"):
        _delete(tree, "wu-queue", reason="it says my password is hunter2")


# --- behind the store's back ------------------------------------------------------------------------


@pytest.mark.deep
def test_a_pass_takes_out_what_lost_a_source_behind_the_stores_back(tree):
    """A row removed by hand: the next pass takes out all that stands on it, and says so."""
    with open_store(tree, write=True) as store:
        store.execute("DELETE FROM entry WHERE name = 'msg-s-1-3'")
    gone = propagation.sweep(tree, now=NOW)
    assert {"wu-queue", "session-s-1"} < set(gone)
    assert len(gone) == 5
    assert counts(tree, 3) == [3, 1, 0]
    assert "rule:always-say-why" in _names(tree)
    with open_store(tree, write=False) as store:
        assert any(row["reason"] == "source withdrawn" for row in store.ledger())
    assert propagation.sweep(tree, now=NOW) == ()
    propagation.rederive(tree, CONFIG, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]


def test_what_an_agent_derives_from_a_turn_that_is_not_stored_yet_stays(home):
    """It writes its lesson while the turn runs: the turn is drained later."""
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_entry(Entry("wu-early", "a lesson", scopes=("app",)))
        txn.put_statement(Statement("wu-early", "derivedFrom", "msg-s-1-1", scopes=("app",)))
    assert propagation.sweep(home, now=NOW) == ()
    assert "wu-early" in _names(home)


# --- provenance -------------------------------------------------------------------------------------


def test_provenance_names_the_sources_and_what_is_missing(tree):
    top = summaries(tree, 3)[0].name
    found = propagation.provenance(tree, top, scopes=("app",), author=PERSON)
    assert set(found.leaves) == {f"msg-s-1-{n}" for n in range(1, 9)}
    assert set(found.direct) == {one.name for one in summaries(tree, 2)}
    assert found.missing == ()
    lesson = propagation.provenance(tree, "wu-queue", scopes=("app",), author=PERSON)
    assert lesson.direct == lesson.leaves == ("msg-s-1-3",)
    with open_store(tree, write=True) as store:
        store.execute("DELETE FROM entry WHERE name = 'msg-s-1-3'")
    lesson = propagation.provenance(tree, "wu-queue", scopes=("app",), author=PERSON)
    assert lesson.missing == ("msg-s-1-3",)


def test_every_derived_thing_has_live_sources(tree):
    """Walked over the whole store; the control: there are some of each sort."""
    _sources_are_live(tree)
    with open_store(tree, write=False) as store:
        with_sources = {name for name in _all(store) if sources.sources(store, name)}
    made = {one.name for one in summaries(tree)}
    assert made | {"wu-queue", "rule:always-say-why", "session-s-1"} == with_sources


# --- moving -----------------------------------------------------------------------------------------


def _move(home, *names, scope="web", scopes=("app", ""), dry_run=False, author=PERSON):
    return propagation.move(
        home, names, scope, scopes=scopes, dry_run=dry_run, author=author, now=NOW
    )


def _scopes(home, name):
    with open_store(home, write=False) as store:
        entry = store.entry(name)
        return None if entry is None else entry.scopes


@pytest.mark.deep
def test_a_session_moves_with_all_that_stands_on_it_alone(tree):
    before = _dump(tree)
    told = _move(tree, "s-1", dry_run=True)
    assert _dump(tree) == before
    done = _move(tree, "s-1")
    assert (told.targets, told.along, told.derived) == (done.targets, done.along, done.derived)
    assert done.derived == ()
    for one in (*done.targets, *done.along):
        assert _scopes(tree, one.name) == ("web",)
    assert {one.name for one in summaries(tree)} | {"wu-queue"} == {one.name for one in done.along}
    assert _scopes(tree, "fact") == ("app",)
    with open_store(tree, write=False) as store:
        assert store.session("s-1").project == "web"
    assert {hit.name for hit in SearchIndex(tree).search("queue", scopes=["app"])} <= {
        "fact", TRIPLE,
    }  # fmt: skip
    _sources_are_live(tree)
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert _dump(tree) == before


@pytest.mark.deep
def test_a_message_that_moves_alone_leaves_no_summary_behind_that_tells_of_it(tree):
    done = _move(tree, "msg-s-1-3")
    assert _scopes(tree, "msg-s-1-3") == ("web",)
    assert [one.name for one in done.along] == ["wu-queue"]
    assert "session-s-1" in {one.name for one in done.derived}
    assert counts(tree, 3) == [3, 1, 0]
    propagation.rederive(tree, CONFIG, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]
    assert not any("Report 2:" in one.content for one in summaries(tree) if "app" in one.scopes)
    _sources_are_live(tree)


@pytest.mark.deep
def test_only_a_person_moves_things_and_an_attempt_is_noted(tree):
    with pytest.raises(Refused, match="only a person"):
        _move(tree, "fact", author=AGENT)
    assert _scopes(tree, "fact") == ("app",)
    with open_store(tree, write=False) as store:
        (row,) = store.ledger(limit=1)
    assert (row["verb"], row["channel"]) == ("refuse entry", "cli-agent")


@pytest.mark.deep
def test_a_person_who_moves_what_was_forgotten_there_takes_it_in_again_and_can_go_back(tree):
    """As with saying it again; the ledger tells, and undoing keeps it away as before."""
    curate.remember(tree, "always say why", kind="rule", scope="web", author=PERSON, now=NOW)
    curate.forget(tree, "always say why", scope="web", author=PERSON, now=NOW)
    before = _dump(tree)
    done = _move(tree, SAID)
    assert _scopes(tree, SAID) == ("web",)
    with open_store(tree, write=False) as store:
        assert any(row["verb"] == "lift rule" for row in store.ledger())
    history.undo(tree, done.op_id, author=PERSON, now=NOW)
    assert _dump(tree) == before


# --- a running session ------------------------------------------------------------------------------


@pytest.mark.deep
def test_what_a_running_session_stands_on_is_not_deleted_under_it(tree):
    """Refused with both names, or done when it has ended; a session that ended holds nothing."""
    said = Message("s-7", "w1", "user", "running words", NOW - timedelta(minutes=1))
    with open_store(tree, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s-7", project="app"))
        txn.put_messages("s-7", [said], "app")
    for names in (("msg-s-7-1",), ("s-7",), ("s-7:1",), ("fact", "msg-s-7-1")):
        with pytest.raises(Conflict, match="part of session s-7, which is running"):
            _delete(tree, *names)
    with pytest.raises(Conflict, match="s-7"):
        _move(tree, "s-7")
    assert {"msg-s-7-1", "fact"} <= _names(tree)
    asked = propagation.queue_deletion(
        tree, ["msg-s-7-1", "fact"], scopes=("app",), author=PERSON, now=NOW
    )
    assert [one["session"] for one in asked] == ["s-7", ""]
    assert queued.run(tree, NOW) == 1
    assert "msg-s-7-1" in _names(tree)
    assert "fact" not in _names(tree)
    later = NOW + timedelta(hours=1)
    assert queued.run(tree, later) == 1
    assert "msg-s-7-1" not in _names(tree)


def test_a_running_session_is_deleted_when_it_has_ended_with_all_that_was_said_until_then(tree):
    """Also for the agent that works in it: later is later. Undo takes it off the queue."""

    def said(turn: int) -> Message:
        at = NOW - timedelta(minutes=9 - turn)
        return Message("s-7", f"w{turn}", "user", f"running words {turn}", at)

    with open_store(tree, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s-7", project="app"))
        txn.put_messages("s-7", [said(1)], "app")
    own = Author(Channel.CLI_AGENT, "agent", session_id="s-7")
    [asked] = propagation.queue_deletion(tree, ["s-7"], scopes=("app",), author=own, now=NOW)
    assert (asked["name"], asked["session"]) == ("s-7", "s-7")
    assert queued.run(tree, NOW) == 0
    with open_store(tree, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_messages("s-7", [said(1), said(2)], "app")
    later = NOW + timedelta(hours=1)
    assert queued.run(tree, later) == 1
    assert not {"msg-s-7-1", "msg-s-7-2"} & _names(tree)
    assert "fact" in _names(tree)

    with pytest.raises(UsageError, match="cannot be deleted later"):
        propagation.queue_deletion(
            tree, ["fact,is_about,queue"], scopes=("app",), author=PERSON, now=NOW
        )


# --- orphans that are kept --------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("how", ["deleted", "behind the store's back"])
def test_orphans_are_kept_apart_when_a_person_wants_that_and_go_when_not_any_more(tree, how):
    """On: marked, and in no default read. Off again: the next pass takes them out."""
    before = {one.name for one in summaries(tree)}
    (tree / "config.toml").write_text("preserve_orphans = true\n")
    if how == "deleted":
        done = _delete(tree, "msg-s-1-3")
        assert done.derived == ()
    else:
        with open_store(tree, write=True) as store:
            store.execute("DELETE FROM entry WHERE name = 'msg-s-1-3'")
        propagation.sweep(tree, now=NOW)
    with open_store(tree, write=False) as store:
        kept = {one.name: one for one in store.entries(_all(store)) if "orphaned" in one.tags}
        assert len(kept) == 5
        assert {one.trust for one in kept.values()} == {Trust.CANDIDATE}
        assert kept.keys() < before | {"wu-queue", "session-s-1"}
        assert store.live_entries(kept) == []
    assert propagation.sweep(tree, now=NOW) == ()
    assert {hit.name for hit in SearchIndex(tree).search("queue", scopes=None)}.isdisjoint(kept)
    (tree / "config.toml").write_text("preserve_orphans = false\n")
    assert set(propagation.sweep(tree, now=NOW)) == kept.keys()
    _sources_are_live(tree)
    propagation.rederive(tree, CONFIG, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]

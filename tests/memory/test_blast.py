"""What a change reaches is said by name before it is done, and it is what then happens."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.memory import bulk, curate, history, propagation, review, trust
from hypatia_mem.memory.graph import dismissing
from hypatia_mem.memory.graph import merge as merging
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, fill, run, settings, summaries, talk

AGENT = Author(Channel.CLI_AGENT)
CONFIG = settings(cascade_batch=2, cascade_max_tokens=200)
HERE = ("app", "")


@pytest.fixture
def tree(home, once):
    """Eight messages under four, two and one summaries; a lesson of one, a lesson of that."""
    once(lambda: grow(home))
    return home


def grow(home):
    fill(home, talk(8))
    run(home, CONFIG)
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_summary("s-1", "It was about queues.", "compaction", "app")
        txn.put_entry(Entry("wu-queue", "the lesson", scopes=("app",)))
        txn.put_statement(Statement("wu-queue", "derivedFrom", "msg-s-1-3", scopes=("app",)))
        txn.put_entry(Entry("wu-on-top", "what follows from it", scopes=("app",)))
        txn.put_statement(Statement("wu-on-top", "derivedFrom", "wu-queue", scopes=("app",)))
        for name in ("queue", "line"):
            txn.put_entry(Entry(name, f"a {name}", tags=("ops",), scopes=("app",)))
        txn.put_statement(Statement("line", "is_in", "the hall", scopes=("app",)))
        txn.put_statement(Statement("line", "is_in", "hall", scopes=("app",)))
        txn.put_entry(Entry("learned", "of the line", scopes=("app",)))
        txn.put_statement(Statement("learned", "derivedFrom", "line", scopes=("app",)))
    later = NOW + timedelta(minutes=1)
    trust.edit(home, "wu-queue", "a better lesson", scopes=HERE, author=PERSON, now=later)


def edit(name):
    def do(home, **how):
        return trust.edit(home, name, "other words", scopes=HERE, **how).blast

    return do


def mark(name, verb):
    def do(home, **how):
        return trust.mark(home, [name], verb, scopes=HERE, **how).blast

    return do


def believe(name, state):
    def do(home, **how):
        return trust.set_trust(home, [name], state, reason="so", scopes=HERE, **how).blast

    return do


def update(name, **fields):
    def do(home, **how):
        return curate.update_entry(home, name, fields, **how).blast

    return do


def many(verb, value="", **chosen):
    def do(home, **how):
        wanted = bulk.Filter(HERE, **chosen)
        return bulk.change(home, verb, value, "all", wanted, **how).blast

    return do


VERBS = {
    "delete a message": lambda home, **how: propagation.delete(
        home, ["msg-s-1-3"], scopes=HERE, **how
    ),
    "delete onward": lambda home, **how: propagation.delete_onward(
        home, "msg-s-1-6", scopes=HERE, **how
    ),
    "knowledge-delete": lambda home, **how: curate.delete_entry(home, "line", **how).blast,
    "move": lambda home, **how: propagation.move(home, ["line"], "web", scopes=HERE, **how),
    "move a message": lambda home, **how: propagation.move(
        home, ["msg-s-1-3"], "web", scopes=HERE, **how
    ),
    "suppress a message": mark("msg-s-1-3", "suppress"),
    "suppress a lesson": mark("wu-queue", "suppress"),
    "pin": mark("wu-queue", "pin"),
    "reject": believe("line", Trust.REJECTED),
    "dispute": believe("wu-queue", Trust.DISPUTED),
    "edit a message": edit("msg-s-1-3"),
    "edit an entry": edit("line"),
    "edit a lesson": edit("wu-queue"),
    "retag": update("line", tags=("ops", "yard")),
    "rescope": update("line", scopes=("",)),
    "new words": update("queue", content="a longer queue"),
    "revert": lambda home, **how: history.revert(home, ["wu-queue@1"], **how).blast,
    "merge in the graph": lambda home, **how: (
        merging.merge(home, "queue", "line", scopes=HERE, **how).blast
    ),
    "merge bare names": lambda home, **how: (
        merging.merge(home, "the hall", "hall", scopes=HERE, **how).blast
    ),
    "merge in the review": lambda home, **how: (
        review.merge(home, "line", "queue", scopes=HERE, **how).blast
    ),
    "dismiss": lambda home, **how: dismissing.dismiss(home, ["line"], scopes=HERE, **how).blast,
    "dismiss a bare name": lambda home, **how: (
        dismissing.dismiss(home, ["the hall"], scopes=HERE, **how).blast
    ),
    "remove": lambda home, **how: dismissing.remove(home, ["line"], scopes=HERE, **how),
    "bulk suppress": many("suppress", session_id="s-1"),
    "bulk suppress all": many("suppress", kinds=("summary", "message", "knowledge")),
    "bulk tag": many("tag", "urgent", tags=("ops",)),
    "bulk delete": many("delete", tags=("ops",)),
    "bulk move": many("move", "web", tags=("ops",)),
    "bulk pin": many("pin", kinds=("summary",)),
}


def seen(home):
    """Return what each entry and each statement is, and whether it is shown."""
    with open_store(home, write=False) as store:
        shown = {row["name"] for row in store.run("SELECT name FROM live_entry")}
        told = {row["triple"] for row in store.run("SELECT triple FROM live_statement")}
        entries = store.run(
            "SELECT name, content, tags, scopes, kind, trust, pinned, suppressed, synonyms"
            " FROM entry"
        )
        statements = store.run("SELECT triple, content, scopes, trust FROM statement")
    return (
        {row["name"]: (*map(str, row.values()), row["name"] in shown) for row in entries},
        {row["triple"]: (*map(str, row.values()), row["triple"] in told) for row in statements},
    )


def differing(before, after):
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.deep
@pytest.mark.parametrize("name", VERBS)
def test_what_is_told_before_is_what_happens(tree, name):
    """By name, and nothing beside it: entries that change, go or come, and statements.

    Of two statements that a merge makes one the one that stays is told too, whether or not the
    other has anything to give it.
    """
    verb = VERBS[name]
    how = {"author": PERSON, "now": NOW + timedelta(minutes=2)}
    entries, statements = seen(tree)
    told = verb(tree, dry_run=True, **how)
    assert seen(tree) == (entries, statements)
    assert not told.op_id
    done = verb(tree, dry_run=False, **how)
    assert done.op_id
    sorts = ["targets", "derived", "along", "doubted", "kept", "made", "statements", "owed", "held"]
    assert {one: getattr(told, one) for one in sorts} == {one: getattr(done, one) for one in sorts}
    now_entries, now_statements = seen(tree)
    assert told.names == differing(entries, now_entries)
    changed = differing(statements, now_statements)
    joined = set(told.statements) - changed if "merge" in name else set()
    assert set(told.statements) - joined == changed
    assert joined <= set(now_statements)
    assert told.targets or told.made


def test_an_edit_names_what_is_dropped_what_is_doubted_and_what_is_made_anew(tree):
    """The summaries over a message go and are made again; the lesson of it is called stale."""
    over = {one.name for level in (1, 2, 3) for one in summaries(tree, level)}
    told = VERBS["edit a message"](tree, dry_run=True, author=PERSON, now=NOW)
    gone = {one.name: one.why for one in told.derived}
    assert set(gone) & over
    assert "session-s-1" in gone
    lowest = next(one for one in told.derived if "msg-s-1-3" in one.why and one.kind == "summary")
    assert "made anew from the 2 that stay" in lowest.why
    assert [(one.name, one.why) for one in told.doubted] == [
        ("wu-queue", "called stale; stands on msg-s-1-3")
    ]


def test_a_suppressed_source_has_its_lesson_wait_for_a_person(tree):
    told = VERBS["suppress a message"](tree, dry_run=True, author=PERSON, now=NOW)
    assert [(one.name, one.why) for one in told.doubted] == [
        ("wu-on-top", "withheld until a person has looked at it; stands on wu-queue"),
        ("wu-queue", "withheld until a person has looked at it; stands on msg-s-1-3"),
    ]
    assert "wu-queue,derivedFrom,msg-s-1-3" in told.statements


@pytest.mark.deep
@pytest.mark.parametrize(
    "verb", [one for one in VERBS if "message" in one or one in ("bulk suppress",)]
)
def test_what_a_running_session_holds_is_shown_with_who_holds_it(tree, verb):
    """A plan is no change: it is shown, and says that it would be refused now."""
    alive = Message("s-1", "u-9", "user", "still here", NOW + timedelta(hours=1))
    now = alive.at + timedelta(minutes=1)
    with open_store(tree, write=True) as store, store.transaction(AGENT, now=now) as txn:
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", [alive], "app")
    told = VERBS[verb](tree, dry_run=True, author=PERSON, now=now)
    assert {session for _, session in told.held} == {"s-1"}
    assert told.targets
    before = seen(tree)
    with pytest.raises(Exception, match="part of session s-1, which is running"):
        VERBS[verb](tree, dry_run=False, author=PERSON, now=now)
    assert seen(tree) == before


def test_what_the_worker_only_proposed_of_earlier_words_goes_when_they_are_edited(tree):
    """A candidate that still quotes them must not be taken in; what is not of them stays."""
    worker = Author(Channel.WORKER)
    with curate.changing(tree, worker, NOW) as (_, txn):
        for name, source in (("wu-of-it", "msg-s-1-3"), ("wu-beside", "msg-s-1-8")):
            txn.put_entry(Entry(name, "as it was said", scopes=("app",), trust=Trust.CANDIDATE))
            txn.put_statement(Statement(name, "derivedFrom", source, scopes=("app",)))
        txn.put_statement(Statement("learned", "derivedFrom", "wu-of-it", scopes=("app",)))
    told = VERBS["edit a message"](tree, dry_run=True, author=PERSON, now=NOW)
    assert {"wu-of-it", "learned"} <= {one.name for one in told.derived}
    done = VERBS["edit a message"](tree, dry_run=False, author=PERSON, now=NOW)
    assert told.names == done.names
    with open_store(tree, write=False) as store:
        assert store.entry("wu-of-it") is None
        assert store.entry("wu-beside")


def test_what_a_person_put_otherwise_an_agent_does_not_put_back(home):
    """By saying the old words again; other new words it may say, and a person anything."""

    def say(text, author, minutes):
        now = NOW + timedelta(minutes=minutes)
        how = {"kind": "rule", "scope": "app", "author": author, "now": now}
        return curate.remember(home, text, **how)

    say("use port 4711", AGENT, 0)
    how = {"scopes": HERE, "author": PERSON, "now": NOW + timedelta(minutes=1)}
    trust.edit(home, "rule:use-port-4711", "use port 4712, not the old one", **how)
    again = say("use port 4711", AGENT, 2)
    assert (again.verb, again.reason) == ("refused", "a person has put it otherwise since")
    with open_store(home, write=False) as store:
        assert store.entry("rule:use-port-4711").content == "use port 4712, not the old one"
    curate.update_entry(home, "rule:use-port-4711", {"content": "use 4713"}, author=AGENT, now=NOW)
    assert say("use port 4711", PERSON, 3).verb == "updated"

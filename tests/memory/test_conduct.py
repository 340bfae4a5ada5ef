"""The ten rules of the memory: each is kept by what the program does, and told where it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.config import Settings
from hypatia_mem.memory import conduct, curate
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.compose import brief_json
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store.connection import open_store
from tests.memory import cascade_kit as kit

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON)
WORKER = Author(Channel.WORKER)
CHAIN = "\n".join(
    f"## {title}\nsomething\n"
    for title in (
        "Context", "Initial Attempt", "Why It Was Wrong", "Correct Approach", "Lesson",
    )
)  # fmt: skip


def put(home, *things, author=PERSON):
    with open_store(home, write=True) as store, store.transaction(author, now=NOW) as txn:
        for thing in things:
            if isinstance(thing, Entry):
                txn.put_entry(thing)
            else:
                txn.put_statement(thing)


def raw(home, sql, *params):
    """Do what no command does."""
    with open_store(home, write=True) as store:
        store.execute(sql, list(params))


def said(home, *texts):
    """Store turns of a session as the worker does."""
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s", project="app"))
        messages = [
            Message("s", f"u{n}", "assistant" if n % 2 else "user", text, NOW)
            for n, text in enumerate(texts)
        ]
        txn.put_messages("s", messages, "app")


def entry(name, text="A text of its own.", **more):
    return Entry(name, text, **{"scopes": ("app",), **more})


def unit(name, text="## Lesson\nPools have a size.\n", *, source="msg-s-1", tags=()):
    made = entry(name, text, tags=("memory", "work-unit", *tags))
    link = Statement(name, "derivedFrom", source, scopes=("app",))
    return (made, link) if source else (made,)


def broken(home, number, settings=None, now=NOW):
    """Return what breaks a rule, by name."""
    (found,) = conduct.check(home, settings or Settings(), now=now, rules=[number])
    assert found.rule == number
    assert found.holds == (not found.names)
    assert found.holds or (found.why and found.remedy)
    return set(found.names)


@pytest.fixture
def memory(home):
    """A memory as the program makes it: turns, a work unit, a rule, summaries, statements."""
    said(home, "How do we pool?", "With ten connections.")
    put(home, *unit("wu-2026-05-10-pool"), Statement("pool", "is_a", "thing", scopes=("app",)))
    curate.remember(home, "never mock it", kind="taboo", scope="app", author=PERSON, now=NOW)
    kit.fill(home, kit.talk(6), session="long")
    cascade.run(home, kit.settings(), now=NOW)
    return home


@pytest.mark.deep
def test_what_the_program_makes_keeps_all_ten(memory):
    """The control of every test below: none of them is broken by what is usual."""
    found = conduct.check(memory, Settings(), now=NOW)
    assert [one.rule for one in found] == list(range(1, 11))
    assert [(one.rule, one.names) for one in found if not one.holds] == []
    with open_store(memory, write=False) as store:
        assert any(e.kind == "summary" for e in store.live_entries(_names(store)))


def _names(store):
    return [row["name"] for row in store.run("SELECT name FROM live_entry")]


@pytest.mark.deep
def test_1_nothing_secret_is_stored(memory):
    secret = "ghp_" + "a1B2" * 9
    curate.remember(
        memory, f"the token is {secret}", kind="memory", scope="app", author=PERSON, now=NOW
    )
    assert broken(memory, 1) == set()
    put(memory, entry("leak", f"the token is {secret}"), entry("kept", "no token here"))
    put(memory, Statement("x", "is", "y", content=f"token={secret}", scopes=("app",)))
    assert broken(memory, 1) == {"leak", "x,is,y"}


def test_2_every_message_is_logged(memory):
    raw(memory, "DELETE FROM message WHERE session_id = 's' AND turn = 1")
    assert broken(memory, 2) == {"session-s"}
    raw(memory, "DELETE FROM entry WHERE name = 'msg-s-2'")
    assert broken(memory, 2) == {"session-s", "msg-s-2"}


def test_2_what_a_hook_noted_does_not_lie_about(memory):
    """It may wait a while, for the worker comes after the hook."""
    spool.append(str(memory), "t", b'{"hook_event_name":"Stop","session_id":"t"}', at_ns=_ns(NOW))
    assert broken(memory, 2, now=NOW + timedelta(minutes=30)) == set()
    assert broken(memory, 2, now=NOW + timedelta(hours=2)) == {"t.jsonl"}


def _ns(moment):
    return int((moment - datetime(1970, 1, 1)).total_seconds() * 1e9)


@pytest.mark.deep
def test_2_what_was_forgotten_is_no_gap(memory):
    """Its words are gone on purpose, and its place is kept."""
    curate.forget(memory, "", scope="app", ids=["msg-s-1"], author=PERSON, now=NOW)
    assert broken(memory, 2) == set()


@pytest.mark.deep
def test_3_a_work_unit_says_something_and_where_it_is_from(memory):
    put(memory, *unit("wu-1-loose", source=""), *unit("wu-2-empty", "## Lesson\n\n## Context\n"))
    put(memory, *unit("wu-3-good"))
    assert broken(memory, 3) == {"wu-1-loose", "wu-2-empty"}


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True), ({"extract_every": 1}, True), ({"extract_every": 5}, True),
        ({"extract_every": 6}, False), ({"extract_every": 0}, False), ({"triggers": "off"}, False),
        ({"triggers": "literal"}, True),
    ],
)  # fmt: skip
def test_4_finished_work_is_looked_for_often(home, changes, holds):
    assert (broken(home, 4, replace(Settings(), **changes)) == set()) is holds


@pytest.mark.deep
def test_5_what_is_condensed_does_not_repeat_its_source(memory):
    long = "The pool has ten connections because the server takes no more than that. " * 6
    said(memory, "How do we pool?", "With ten connections.", long)
    copy, link = unit("wu-copy", f"## Lesson\n{long}", source="msg-s-3")
    quoted, other = unit(
        "wu-quote", "## Lesson\nTen, for the server takes no more.", source="msg-s-3"
    )
    put(memory, copy, link, quoted, other)
    assert broken(memory, 5) == {"wu-copy"}


@pytest.mark.deep
def test_6_a_correction_chain_is_kept_whole(memory):
    put(memory, *unit("wu-whole", CHAIN), *unit("wu-other", "## Solution\nJust so.\n"))
    put(memory, *unit("wu-half", CHAIN.replace("## Lesson\nsomething\n", "")))
    put(memory, *unit("wu-hollow", CHAIN.replace("## Lesson\nsomething\n", "## Lesson\n")))
    put(memory, *unit("wu-tagged", "## Lesson\nJust so.\n", tags=("correction-chain",)))
    assert broken(memory, 6) == {"wu-half", "wu-hollow", "wu-tagged"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (entry("a", kind="rule"), entry("a", kind="rule", tags=("memory", "rule"))),
        (entry("a", tags=("summary",)), entry("a", kind="summary", tags=("summary", "summary 1"))),
        (
            entry("a", tags=("summary", "summary 1", "summary 2")),
            entry("a", kind="summary", tags=("summary", "summary 10")),
        ),
        (entry("a", tags=("summary 1",)), entry("a", tags=("summary of 1",))),
        (entry("a", tags=("work-unit",)), entry("a", tags=("work-unit", "memory"))),
        (entry("wu-a", tags=("memory",)), entry("wu-a", tags=("memory", "work-unit"))),
        (entry("a", kind="session"), entry("a", kind="session", tags=("session",))),
        (entry("msg-s-9", kind="message", tags=("x",)), entry("msg-s-9", tags=("message",))),
    ],
    ids=["rule", "no level", "two levels", "level alone", "unit", "unit by name", "session", "message"],
)  # fmt: skip
def test_7_tags_are_structured(home, wrong, right):
    put(home, right)
    assert broken(home, 7) == set()
    raw(home, "DELETE FROM entry")
    put(home, wrong)
    assert broken(home, 7) == {wrong.name}


def test_8_what_a_session_start_prints_is_for_the_model(memory):
    briefs = memory / "briefs"
    (briefs / "good.json").write_bytes(brief_json("what holds here"))
    assert broken(memory, 8) == set()
    (briefs / "loud.json").write_text("plain text for everyone")
    (briefs / "long.json").write_bytes(brief_json("x" * 20_000))
    assert broken(memory, 8) == {"loud.json", "long.json"}


def test_9_what_nobody_said_is_a_candidate(memory):
    """What the program only makes out does not count until a person has looked at it."""
    rule = {"kind": "rule", "tags": ("memory", "rule")}
    put(
        memory,
        entry("guess", **rule),
        entry("doubt", trust=Trust.CANDIDATE, **rule),
        author=WORKER,
    )
    assert broken(memory, 9) == {"guess"}
    assert broken(memory, 9, replace(Settings(), capture=False)) == {"capture", "guess"}


def test_10_everything_has_a_scope(memory):
    raw(memory, "UPDATE entry SET scopes = [] WHERE name = 'wu-2026-05-10-pool'")
    raw(memory, "UPDATE statement SET scopes = [] WHERE triple = 'pool,is_a,thing'")
    assert broken(memory, 10) == {"wu-2026-05-10-pool", "pool,is_a,thing"}
    with open_store(memory, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry("wu-2026-05-10-pool", scopes=("",))
    assert broken(memory, 10) == {"pool,is_a,thing"}


def test_what_is_withheld_is_not_named(home):
    """But for secrets, which are secrets wherever they lie."""
    secret = "ghp_" + "a1B2" * 9
    put(home, entry("wu-x", f"key {secret}", tags=("work-unit",), trust=Trust.REJECTED))
    found = conduct.check(home, Settings(), now=NOW)
    assert [(one.rule, one.names) for one in found if not one.holds] == [(1, ("wu-x",))]
    assert secret not in str(found)


def test_many_are_counted_and_few_are_named(home):
    put(home, *(entry(f"wu-{n:02}", tags=("memory",)) for n in range(20)))
    (found,) = conduct.check(home, Settings(), now=NOW, rules=[7])
    assert (found.count, len(found.names)) == (20, conduct.MOST_NAMES)

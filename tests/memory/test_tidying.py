"""What is new is tied to what was known before: the related, nobody else's, and once."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.memory.extract import tidying
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON)
RULE = "never use print() for progress, use the logger from app.log"
UNIT = (
    "## Context\n- write the loader for orders in src/load_orders.py\n\n## Why It Was Wrong\n"
    "- never use print() for progress, use the logger from app.log instead\n"
)
OTHER = "the staging database lives at db7.example.org, port 5433"


def put(home, name, content, *, scope="app", kind="memory", session="", trust=Trust.ASSERTED):
    tags = ("memory", "work-unit") if name.startswith("wu-") else ("memory", kind)
    entry = Entry(
        name, content, tags=tags, scopes=(scope,), kind="knowledge" if "work-unit" in tags else kind,
        session_id=session, trust=trust,
    )  # fmt: skip
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(entry)


def ties(home, **how):
    return [(one.new, one.old) for one in tidying.tidy(home, now=NOW, **how)]


def links(home):
    with open_store(home, write=False) as store:
        found = store.run(
            "SELECT subject, object FROM statement WHERE predicate = 'relates_to'", []
        )
    return [(row["subject"], row["object"]) for row in found]


def test_a_new_unit_is_tied_to_the_rule_it_is_about_and_to_nothing_else(home):
    put(home, "rule:logger", RULE, kind="rule")
    put(home, "memory:staging", OTHER)
    put(home, "wu-2026-11-30-loader", UNIT, session="s1")

    expected = [("wu-2026-11-30-loader", "rule:logger")]
    assert ties(home, dry_run=True) == expected
    assert links(home) == []
    assert ties(home) == expected
    assert links(home) == expected


def test_a_second_time_adds_nothing_and_what_is_new_then_is_tied(home):
    put(home, "rule:logger", RULE, kind="rule")
    put(home, "wu-1", UNIT, session="s1")
    assert len(ties(home)) == 1
    assert ties(home) == []
    assert ties(home, scopes=["app"]) == []
    put(home, "wu-2", UNIT + "- and close the file", session="s2")
    assert sorted(ties(home)) == [("wu-2", "rule:logger"), ("wu-2", "wu-1")]
    assert len(links(home)) == 3


@pytest.mark.parametrize(
    ("old", "tied"),
    [
        ({}, True),
        ({"scope": ""}, True),
        ({"scope": "other"}, False),
        ({"trust": Trust.CANDIDATE}, False),
    ],
)
def test_what_may_be_tied(home, old, tied):
    """Of this project or of all; never another's, never what is withheld."""
    put(home, "rule:logger", RULE, kind="rule", **old)
    put(home, "wu-1", UNIT, session="s1")
    assert bool(ties(home)) is tied


def test_two_units_of_one_session_and_what_is_tied_already_are_left(home):
    put(home, "wu-1", UNIT, session="s1")
    put(home, "wu-2", UNIT, session="s1")
    put(home, "rule:logger", RULE, kind="rule", session="s0")
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        for unit in ("wu-1", "wu-2"):
            txn.put_statement(Statement("rule:logger", "derivedFrom", unit, scopes=("app",)))
    assert ties(home) == []


def test_it_is_due_every_so_many_hours(home):
    assert tidying.is_due(home, 12, NOW)
    tidying.tidy(home, now=NOW)
    assert not tidying.is_due(home, 12, NOW + timedelta(hours=11))
    assert tidying.is_due(home, 12, NOW + timedelta(hours=12))
    assert not tidying.is_due(home, 0, NOW + timedelta(hours=12))

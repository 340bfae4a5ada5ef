"""How much there is, and about what: of this project and the global scope, the withheld apart."""

from __future__ import annotations

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store.connection import open_store


@pytest.fixture
def given(cli, home):
    """Two projects with a session, rules, a work unit and a summary; some withheld."""
    now = context.now()
    rows = [
        Entry("rule:a", "x", kind="rule", tags=("rule", "postgres"), scopes=("app",)),
        Entry("rule:b", "x", kind="rule", tags=("rule",), scopes=("",)),
        Entry("wu-1", "x", kind="memory", tags=("memory", "work-unit", "bug-fix", "postgres", "pool"),
              scopes=("app",)),
        Entry("elsewhere", "x", tags=("kafka",), scopes=("other",)),
        Entry("maybe", "x", tags=("redis",), scopes=("app",), trust=Trust.CANDIDATE),
        Entry("off", "x", tags=("redis",), scopes=("app",), suppressed=True),
    ]  # fmt: skip
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_PERSON), now=now) as txn:
            for row in rows:
                txn.put_entry(row)
            txn.put_statement(Statement("wu-1", "is_a", "work-unit", scopes=("app",)))
        with store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn:
            for project in ("app", "other"):
                txn.put_session(Session(f"s-{project}", project, started_at=now, updated_at=now))
                said = [Message(f"s-{project}", f"u-{project}", "user", "postgres is slow", now)]
                txn.put_messages(f"s-{project}", said, project)
    return cli


def test_what_is_held_is_counted_by_kind(given):
    found = given("stats", "--json").json
    kinds = {row["kind"]: (row["count"], row["withheld"]) for row in found["kinds"]}
    assert kinds == {"knowledge": (0, 2), "message": (1, 0), "rule": (2, 0), "work-unit": (1, 0)}
    assert (found["sessions"], found["bytes"] > 1000) == (1, True)
    everywhere = given("stats", "--all-projects", "--json").json
    kinds = {row["kind"]: row["count"] for row in everywhere["kinds"]}
    assert (kinds["knowledge"], kinds["message"], everywhere["sessions"]) == (1, 2, 2)
    assert "2 withheld" in given("stats").out


def test_topics_are_what_entries_are_about_the_most_frequent_first(given):
    """Neither what an entry is, nor what is withheld, nor another project's."""
    lines = [line.split()[:2] for line in given("topics").out.splitlines()]
    assert lines == [["postgres", "2"], ["pool", "1"]]
    assert [row["topic"] for row in given("topics", "--all-projects", "--json").json] == [
        "postgres", "kafka", "pool",
    ]  # fmt: skip
    assert given("topics", "--limit", "1", "--offset", "1").out.split()[0] == "pool"


def test_an_empty_memory_has_no_topics(cli, home):
    assert cli("topics").out == "No topics here.\n"
    assert cli("stats", "--json").json["kinds"] == []

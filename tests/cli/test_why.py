"""Why a session is told what it is told, and taking out of it what should not be told."""

from __future__ import annotations

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store


@pytest.fixture
def given(cli, home):
    """A brief with a pinned rule, a taboo of every project, and another project's rule."""
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_PERSON), now=context.now()) as txn:
            for name, kind, scope, pinned in (
                ("rule:tests", "rule", "app", True),
                ("taboo:force", "taboo", "", False),
                ("rule:else", "rule", "other", False),
            ):
                txn.put_entry(
                    Entry(name, f"words of {name}", kind=kind, scopes=(scope,), pinned=pinned)
                )
    return cli


@pytest.fixture
def typed(given, monkeypatch):
    """A terminal at which these lines are typed."""

    def call(*lines):
        words = iter(lines)

        def answer(_question):
            word = next(words, None)
            if word is None:
                raise EOFError
            return word

        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.setattr("hypatia_mem.cli.why._at_terminal", lambda: True)
        return given("why", "--scope", "app")

    return call


def test_each_thing_that_is_told_has_its_reason_and_its_source(given):
    found = {row["name"]: row for row in given("why", "--scope", "app", "--json").json}
    assert set(found) == {"rule:tests", "taboo:force"}
    assert found["rule:tests"]["reason"] == "pinned, a rule of this project"
    assert found["taboo:force"]["reason"] == "a taboo of every project"
    assert all(row["told"] and row["by"].endswith("cli-person") for row in found.values())
    brief = given("brief", "--scope", "app").out
    assert all(f"words of {name}" in brief for name in found)


def test_what_has_no_room_is_said_to_be_left_out(given, home):
    """The brief leaves the same things out."""
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_PERSON), now=context.now()) as txn:
            for number in range(60):
                text = f"number {number} " + "word " * 120
                txn.put_entry(Entry(f"rule:{number}", text, kind="rule", scopes=("app",)))
    rows = given("why", "--scope", "app", "--json").json
    brief = given("brief", "--scope", "app").out
    told = [row for row in rows if row["told"]]
    assert 0 < len(told) < len(rows) == 62
    assert all((f"number {row['name'][5:]} word" in brief) == row["told"]
               for row in rows if row["name"][5:].isdigit())  # fmt: skip
    assert "NOT TOLD: no room" in given("why", "--scope", "app").out


def test_a_key_takes_a_thing_out_of_what_is_told(typed, given):
    done = typed("z", "x 9", "x 1", "x1", "q")
    assert [line.split(" (")[0] for line in done.out.splitlines() if "Out:" in line] == [
        "Out: taboo:force"
    ]
    assert "There is no 9 here." in done.out
    assert "1 is out already." in done.out
    brief = given("brief", "--scope", "app").out
    assert "taboo:force" not in brief
    assert "words of rule:tests" in brief
    given("unsuppress", "taboo:force")
    assert "words of taboo:force" in given("brief", "--scope", "app").out


def test_where_nothing_is_told_it_says_so(cli, home):
    assert cli("why", "--scope", "nowhere").out.startswith("A session here would be told nothing")

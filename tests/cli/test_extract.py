"""``extract``: the skill's lines to the letter, and what an agent is handed and hands in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hypatia_mem.model import Author, Channel, Session
from hypatia_mem.store.connection import open_store
from tests.memory.test_extract import BUG, CHAT, DESIGN, say
from tests.memory.test_extract_model import GOOD, LIE

LONG_AGO = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=2)


@pytest.fixture
def talk(home, cli):
    """Store a session of the project that is over."""

    def store(said, session="s1", scope="app"):
        author = Author(Channel.WORKER)
        with (
            open_store(home, write=True) as opened,
            opened.transaction(author, now=LONG_AGO) as txn,
        ):
            txn.put_session(Session(session, project=scope))
        say(home, said, session=session, scope=scope, at=LONG_AGO)

    return store


def test_the_lines_are_those_of_the_skill(talk, cli):
    assert (
        cli("extract").out == "[hypatia-memory] Work unit still in progress, nothing extracted.\n"
    )
    talk((*CHAT, *BUG, *DESIGN))
    head, first, second = cli("extract").out.splitlines()
    assert head == (
        "[hypatia-memory] Extracted 2 work units (1 bug-fix, 1 design-decision), skipped 1 trivial."
    )
    day = f"{LONG_AGO:%Y-%m-%d}"
    assert first.startswith(f"  wu-{day}-")
    assert "    → memory,work-unit,bug-fix," in first
    assert "    → memory,work-unit,design-decision," in second


def test_one_is_told_in_the_singular(talk, cli):
    talk(BUG)
    assert cli("extract").out.startswith("[hypatia-memory] Extracted 1 work unit (1 bug-fix).\n")


def test_what_is_due_is_listed_shown_and_handed_in(talk, cli):
    talk(BUG)
    cli("extract")
    (listed,) = cli("extract", "due", "--json").json
    name = listed["name"]
    assert (listed["kind"], listed["span"]) == ("bug-fix", "s1:1-3")
    assert name in cli("extract", "due").out

    shown = cli("extract", "due", name).out
    for part in (
        "KIND: one of", "bug-fix: Context, Symptoms, Root Cause, Fix", "Kept so far, as asserted:",
        "msg-s1-2  assistant", f"hypatia-mem extract submit {name} -d -", "find out why",
    ):  # fmt: skip
        assert part in shown
    machine = cli("extract", "due", name, "--json").json
    assert [one["name"] for one in machine["said"]] == ["msg-s1-1", "msg-s1-2", "msg-s1-3"]

    said = cli("extract", "submit", name, "-d", "-", stdin=GOOD.encode())
    assert said.code == 0
    assert said.out.splitlines() == [
        "[hypatia-memory] Extracted 1 work unit (1 bug-fix).",
        f"  {name}    → memory,work-unit,bug-fix,auth,cookie (refined)",
    ]
    assert cli("extract", "due").out == "Nothing waits to be judged.\n"
    assert "- refresh_token() returns None when the cookie has expired" in cli("show", name).out


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all is well", "does not begin with KIND"),
        (GOOD + LIE, "no message says"),
        ("KIND: trivial", "not handed in"),
    ],
)
def test_what_may_not_be_handed_in_is_told_with_what_to_do(talk, cli, text, says):
    talk(BUG)
    cli("extract")
    (listed,) = cli("extract", "due", "--json").json
    before = cli("show", listed["name"]).out
    said = cli("extract", "submit", listed["name"], "-d", text)
    assert said.code in (1, 2)
    assert says in said.err
    assert cli("show", listed["name"]).out == before


@pytest.mark.deep
def test_another_projects_work_is_neither_listed_nor_shown_nor_changed(talk, cli):
    talk(BUG, scope="other")
    assert "1 work unit" in cli("extract", "--all-projects").out
    assert cli("extract", "due", "--json").json == []
    (listed,) = cli("extract", "due", "--all-projects", "--json").json
    for target in (listed["name"], "s1:1-3"):
        assert cli("extract", "due", target).code == 1
        assert cli("extract", "submit", target, "-d", GOOD).code == 1
        assert cli("extract", "due", target, "--scope", "other").code == 0


def test_a_dry_run_says_it_and_keeps_nothing(talk, cli):
    talk(BUG)
    assert "1 work unit" in cli("extract", "--dry-run").out
    assert cli("extract", "due", "--json").json == []
    assert "1 work unit" in cli("extract").out

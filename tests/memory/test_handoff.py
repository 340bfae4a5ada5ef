"""The card of a session: what was wanted, done and left, each line with its turn, within its room."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import NotFound
from hypatia_mem.memory import handoff
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 10)


def call(number, tool, result="", failed=False, **given_):
    """A tool's call with its result, as parts of a message."""
    use = {"type": "tool_use", "name": tool, "input": json.dumps(given_), "id": f"t{number}"}
    told = {
        "type": "tool_result",
        "id": f"t{number}",
        "text": result,
        "length": len(result),
        "is_error": failed,
    }
    return (use, told)


def session(*said):
    """A session's messages from (role, text, calls...)."""
    return [
        Message("s1", f"u{n}", role, text, NOW + timedelta(minutes=n), turn=n,
                parts=tuple(part for one in calls for part in one))
        for n, (role, text, *calls) in enumerate(said, 1)
    ]  # fmt: skip


WORK = session(
    ("user", "the parser drops the last row of data/orders.csv, please fix it"),
    ("assistant", "I look at it.",
     call(1, "Bash", "FAILED tests/test_parser.py::test_last_row - assert 3 == 4\n1 failed", command="pytest -q"),
     call(2, "Edit", "ok", file_path="/w/src/parser.py", old_string="a", new_string="b")),
    ("assistant", "We decided to read with newline='' instead of splitlines().",
     call(3, "Edit", "ok", file_path="/w/src/parser.py", old_string="b", new_string="c"),
     call(4, "Bash", "FAILED tests/test_parser.py::test_quotes - boom\n1 failed", command="pytest -q"),
     call(5, "Bash", "src tests", command="ls"),
     call(6, "Bash", "no such file", failed=True, command="cat missing.txt")),
    ("user", "ok"),
    ("assistant", "The quoting of headers is not yet done. Shall I go on with it?"),
)  # fmt: skip
SESSION = Session("s1", project="app", title="parser", updated_at=NOW)


def texts(lines):
    return [line.text for line in lines]


def test_every_part_says_what_happened_and_where():
    card = handoff.made(SESSION, WORK, len(WORK))

    assert texts(card.goals) == ["the parser drops the last row of data/orders.csv, please fix it"]
    assert texts(card.decided) == ["We decided to read with newline='' instead of splitlines()."]
    assert texts(card.failing) == ["tests/test_parser.py::test_quotes"]
    assert texts(card.files) == ["/w/src/parser.py (2 edits)"]
    assert texts(card.commands) == ["ls"]
    assert texts(card.open) == ["Shall I go on with it?", "The quoting of headers is not yet done."]
    assert [line.turn for line in (*card.goals, *card.decided, *card.failing, *card.files)] == [
        1,
        3,
        3,
        3,
    ]


@pytest.mark.parametrize(
    ("then", "failing"),
    [
        (("pytest -q", "57 passed"), []),
        (("pytest -q tests/test_other.py", "5 passed"), ["tests/test_parser.py::test_quotes"]),
        (("pytest -q tests/test_parser.py", "5 passed"), []),
        (("ls", "57 passed"), ["tests/test_parser.py::test_quotes"]),
    ],
)
def test_a_run_of_tests_clears_what_it_ran(then, failing):
    command, result = then
    more = session(
        *((one.role, one.text) for one in WORK),
        ("assistant", "", call(9, "Bash", result, command=command)),
    )
    again = [
        replace(one, parts=WORK[n].parts) if n < len(WORK) else one for n, one in enumerate(more)
    ]

    assert texts(handoff.made(SESSION, again, 6).failing) == failing


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("FAILED tests/a.py::test_b[x] - boom", "tests/a.py::test_b[x]"),
        ("--- FAIL: TestParse (0.00s)", "TestParse"),
        ("test parser::rows ... FAILED", "parser::rows"),
        ("  ✕ reads the last row (12 ms)", "reads the last row"),
        ("FAIL  src/parser.test.ts", "src/parser.test.ts"),
    ],
)
def test_failing_tests_of_many_runners(output, name):
    said = session(
        ("user", "run them"),
        ("assistant", "", call(1, "Bash", output, failed=True, command="make test")),
    )

    assert texts(handoff.made(SESSION, said, 2).failing) == [name]


def test_a_prompt_without_an_answer_is_open():
    said = session(("user", "now do the quoting of headers in src/parser.py"))

    assert texts(handoff.made(SESSION, said, 1).open) == [
        "not answered: now do the quoting of headers in src/parser.py"
    ]


def test_a_long_command_that_was_cut_is_still_read():
    use = {
        "type": "tool_use",
        "name": "Bash",
        "input": '{"command": "pytest -q && echo \\"do',
        "id": "t1",
    }
    told = {"type": "tool_result", "id": "t1", "text": "ok", "length": 2, "is_error": False}
    said = [replace(WORK[0], parts=(use, told))]

    assert texts(handoff.made(SESSION, said, 1).commands) == ['pytest -q && echo "do']


@given(
    words=st.lists(st.text("abc 漢字😀\n", min_size=1, max_size=300), min_size=1, max_size=40),
    most=st.integers(100, 3000),
)
@settings(max_examples=60, deadline=None)
def test_the_card_keeps_to_its_room(words, most):
    """Whatever was said; and what was left out is counted."""
    lines = tuple(handoff.Line(text, number) for number, text in enumerate(words))
    card = replace(handoff.made(SESSION, [], 0), goals=lines, decided=lines, files=lines)

    text = handoff.render(card, most)

    assert handoff.tokens_of(text) <= most
    told = sum(f"[turn {n}]" in text for n in range(len(words)))
    assert told or "did not fit" in text


def test_of_the_store(home):
    """The project's latest session; withheld and forgotten words are not on the card."""
    for name, when in (("s0", NOW - timedelta(days=1)), ("s1", NOW)):
        with (
            open_store(home, write=True) as store,
            store.transaction(Author(Channel.TRANSCRIPT), now=when) as txn,
        ):
            own = [
                replace(
                    one,
                    session_id=name,
                    uuid=f"{name}{one.uuid}",
                    turn=None,
                    at=one.at - (NOW - when),
                )
                for one in WORK
            ]
            txn.put_session(Session(name, project="app"))
            txn.put_messages(name, own, "app")
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        txn.update_entry("msg-s1-3", suppressed=True)

    card = handoff.card(home, now=NOW, project="app")

    assert card.session_id == "s1"
    assert texts(card.goals) == [WORK[0].text]
    assert card.decided == ()
    assert texts(handoff.card(home, now=NOW, project="app", session_id="s0").decided)
    with pytest.raises(NotFound, match="no session of this project"):
        handoff.card(home, now=NOW, project="other")
    with pytest.raises(NotFound, match="no session zz"):
        handoff.card(home, now=NOW, project="app", session_id="zz")

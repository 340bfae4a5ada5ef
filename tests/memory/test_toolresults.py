"""What tools gave back is told short without losing what matters, and can be read line by line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory import toolresults
from hypatia_mem.memory.toolresults import ToolResult, condense, lines_of
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 10)
PYTEST = """Exit code 1
============================= test session starts ==============================
collected 58 items

tests/test_parser.py ..F.......                                           [ 17%]
=================================== FAILURES ===================================
________________________________ test_last_row _________________________________
src/parser.py:41: in rows
    return line.split(",")
E   AssertionError: assert 3 == 4
=========================== short test summary info ============================
FAILED tests/test_parser.py::test_last_row - AssertionError: assert 3 == 4
FAILED tests/test_parser.py::test_quotes - KeyError: 'name'
========================= 2 failed, 56 passed in 3.20s ========================="""
LISTING = "\n".join(f"-rw-r--r-- 1 dev dev {n} Jan 1 00:00 file{n}.py" for n in range(40))


def result(text, tool="Bash", failed=False, length=None, **given_):
    return ToolResult("t1", tool, 3, json.dumps(given_), text, length or len(text), failed)


def test_a_failed_run_of_tests_keeps_what_matters():
    told = condense(result(PYTEST, failed=True, command="pytest -q"))

    assert told.startswith("Bash `pytest -q` failed with exit code 1.")
    assert "2 failed, 56 passed in 3.20s" in told
    assert "tests/test_parser.py::test_last_row" in told
    assert "tests/test_parser.py::test_quotes" in told
    assert "src/parser.py" in told
    assert len(told) < len(PYTEST) / 2


@pytest.mark.parametrize(
    ("text", "given_", "parts"),
    [
        (LISTING, {"command": "ls -l"}, ["Bash `ls -l` gave 40 lines."]),
        ("\n".join("error[E0308]: mismatched types" if n == 5 else f"line {n}" for n in range(9)) + "\nexit status 101",
         {"command": "cargo build"}, ["cargo build", "exit code 101", "error[E0308]: mismatched types"]),
        (".\n" * 40 + "\nRan 12 tests in 0.004s\n\nOK", {"command": "python -m unittest"}, ["Ran 12 tests in 0.004s"]),
        ("x\n" * 30, {"file_path": "/w/src/a.py"}, ["`/w/src/a.py`", "gave 30 lines"]),
    ],
)  # fmt: skip
def test_other_results(text, given_, parts):
    told = condense(result(text, **given_))

    assert [part for part in parts if part not in told] == []
    assert len(told) < len(text)


def test_a_short_result_is_told_as_it_is():
    assert condense(result("ok")) == "ok"


def test_one_that_would_lose_a_fact_stays_whole():
    """A name too long to be told keeps the whole result."""
    for long in (200, 20):
        names = [f"FAILED tests/{'x' * long}{n}.py::t" for n in range(3)]
        text = "\n".join(["boom", *names, *("a line that says little" for _ in range(40))])
        told = condense(result(text, failed=True, command="make"))
        assert (told == text) is (long == 200)
        assert all(name.removeprefix("FAILED ") in told for name in names)
    told = condense(result("Exit code 2\n" + "y\n" * 20, failed=True, command="make"))
    assert "exit code 2" in told


@given(
    lines=st.lists(
        st.sampled_from(PYTEST.splitlines()) | st.text("ab /.:=é漢\t", max_size=60), max_size=40
    ),
    failed=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_came_back(lines, failed):
    """At most three sentences that hold every fact, or the result as it was."""
    one = result("\n".join(lines), failed=failed, command="run it")

    told = condense(one)

    if told not in (one.text, one.text.strip()):
        assert len(list(toolresults._sentences(one))) <= 3
        assert "\n" not in told
        for name in toolresults.failed_tests(one.text)[:6]:
            assert " ".join(name.split()) in told
        if one.exit_code:
            assert f"exit code {one.exit_code}" in told


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [("2-4", [2, 3, 4]), ("7", [7]), ("-2", [1, 2]), ("39-", [39, 40]), ("38-99", [38, 39, 40])],
)
def test_lines_by_number(asked, numbers):
    found = lines_of(result(LISTING), asked)

    assert [number for number, _ in found] == numbers
    assert found[0][1] == LISTING.splitlines()[numbers[0] - 1]


@pytest.mark.parametrize("asked", ["", "-", "4-2", "0", "a-b", "1,2", "1-2-3"])
def test_lines_that_are_none(asked):
    with pytest.raises(UsageError):
        lines_of(result(LISTING), asked)


def test_a_line_beyond_the_end():
    with pytest.raises(NotFound, match="has 40 lines"):
        lines_of(result(LISTING), "41")
    with pytest.raises(NotFound, match="of its 9000 characters 2 were kept"):
        lines_of(result("ab", length=9000), "2")


def test_of_a_session_the_latest_whole_and_all_others_short(home):
    said = [
        Message("s1", f"u{n}", "assistant", f"run {n}", NOW + timedelta(minutes=n), parts=(
            {"type": "tool_use", "name": "Bash", "input": json.dumps({"command": f"pytest {n}"}), "id": f"toolu_{n:02}"},
            {"type": "tool_result", "id": f"toolu_{n:02}", "text": PYTEST, "length": len(PYTEST), "is_error": True},
        ))
        for n in range(20)
    ]  # fmt: skip
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=NOW) as txn,
    ):
        txn.put_session(Session("s1", project="app"))
        txn.put_messages("s1", said, "app")

    found = toolresults.latest(home, "s1")

    assert len(found) == 20
    assert [text == PYTEST for _, text in found] == [False] * 5 + [True] * 15
    assert "pytest 3" in found[3][1]
    old = toolresults.find(home, "s1", "toolu_03")
    assert lines_of(old, "8")[0][1] == "src/parser.py:41: in rows"
    with pytest.raises(UsageError, match="beginning of 20 calls"):
        toolresults.find(home, "s1", "toolu_")
    with pytest.raises(NotFound, match="no result of a call zz"):
        toolresults.find(home, "s1", "zz")
    with pytest.raises(NotFound, match="no session s2"):
        toolresults.latest(home, "s2")

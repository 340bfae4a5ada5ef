"""Five shapes of a contradiction, five checks: the committed table is what a run gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from hypatia_mem.rubric.contradictions import CHECKS, SHAPES, _qualified, matrix, table

COMMITTED = Path(__file__).with_name("contradictions.md").read_text("utf-8")


def test_the_table_is_whole():
    rows = [line for line in COMMITTED.splitlines() if line.startswith("| ")]
    assert len(rows) == len(SHAPES) + 2 == 7
    assert rows[0] == "| " + " | ".join(["shape", *CHECKS]) + " |"


@pytest.mark.slow
def test_the_table_is_what_a_run_gives(world):
    assert COMMITTED.endswith(table(matrix(world)))


def test_a_check_that_fails_is_seen_in_the_table():
    found = {"partial": {**dict.fromkeys(CHECKS, ""), "reach": "an export states it as current"}}
    assert table(found).splitlines()[-1] == "| partial | holds | holds | holds | holds | - |"


@pytest.mark.parametrize(
    ("row", "qualified"),
    [
        ({"content": "x"}, False),
        ({"valid_to": "2020-01-01T00:00:00"}, True),
        ({"tr_end": "2020-01-01 00:00:00.000000"}, True),
        ({"valid_to": "2999-01-01T00:00:00"}, False),
        ({"content": '{"tr_end": "2020-01-01 00:00:00"}'}, True),
        ({"trust": "rejected"}, True),
        ({"trust": "asserted"}, False),
        ({"valid_to": None, "trust": "verified"}, False),
    ],
)
def test_what_counts_as_said_to_hold_no_more(row, qualified):
    assert _qualified(row) is qualified

"""Which of a list is meant."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import UsageError
from hypatia_mem.memory.selection import chosen


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("1", [1]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("1-5,8,10-", [1, 2, 3, 4, 5, 8, 10, 11, 12]),
        ("-3", [1, 2, 3]),
        ("12-", [12]),
        ("3,1,2", [1, 2, 3]),
        ("2,2,1-3", [1, 2, 3]),
        (" 1 - 2 , 4 ", [1, 2, 4]),
        ("all", list(range(1, 13))),
        ("ALL", list(range(1, 13))),
    ],
)
def test_places_come_in_order_and_each_once(text, places):
    assert chosen(text, 12) == places


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "selects nothing"),
        (",", "selects nothing"),
        ("1,,2", "selects nothing"),
        ("-", "selects nothing"),
        ("a", "selects nothing"),
        ("1 2", "selects nothing"),
        ("1-2-3", "selects nothing"),
        ("1.5", "selects nothing"),
        ("١", "selects nothing"),
        ("5-1", "runs backwards"),
        ("0", "no place 0"),
        ("0-2", "no place 0"),
        ("13", "no place 13"),
        ("10-13", "no place 13"),
        ("13-", "no place 13"),
        ("99999999999999999999", "selects nothing"),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_refused_with_a_sentence(text, said):
    with pytest.raises(UsageError, match=said):
        chosen(text, 12)


def test_of_nothing_nothing_can_be_chosen():
    assert chosen("all", 0) == []
    with pytest.raises(UsageError, match="no place 1"):
        chosen("1", 0)

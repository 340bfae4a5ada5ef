"""Filtering an export without a database."""

from __future__ import annotations

import doctest
import json
import time

import pytest

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse import fields, matcher
from hypatia_mem.jse.matcher import Rows, select
from hypatia_mem.jse.parser import parse, parse_value


def entry(name, data="", **more):
    content = {"format": "markdown", "data": data, "tags": ["t"], "scopes": ["app"], **more}
    return {"name": name, "content": content, "created_at": "2025-01-01 00:00:00.000000"}


@pytest.mark.parametrize("module", [matcher, fields])
def test_the_examples_in_the_docstrings_run(module):
    assert doctest.testmod(module).failed == 0


def test_rows_come_back_as_they_were_given():
    """What else an export writes of a row stays in it."""
    rows = Rows(entries=[entry("a") | {"more": 1}, entry("b")])

    found = select(parse('["$knowledge", ["$eq", "name", "a"]]'), rows)

    assert found == [entry("a") | {"more": 1}]


def test_a_row_may_lack_what_is_null():
    """An export need not write nulls."""
    row = {"name": "a", "content": {"data": "x"}, "created_at": "2025-01-01"}
    rows = Rows(entries=[row])

    for condition in (["$not", ["$contains", "tags", "x"]], ["$ne", "synonyms", "x"]):
        assert select(parse_value(["$knowledge", condition]), rows) == [row]
    assert select(parse_value(["$knowledge", ["$eq", "format", "markdown"]]), rows) == []


def test_messages_of_one_instant_are_in_the_order_of_their_turns():
    """Newest first, as the store has them; the turn is no part of what is published."""
    rows = Rows(entries=[entry("m1") | {"turn": 1}, entry("m2") | {"turn": 2}])

    found = select(parse('["$knowledge"]'), rows)

    assert [row["name"] for row in found] == ["m2", "m1"]
    assert "turn" not in found[0]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ({"$knowledge": [], "as_known_at": "2025-01-01"}, "these rows have none"),
        (["$knowledge", ["$search", "x"]], "$search needs the search index"),
        (["$knowledge", ["$similar", "x"]], "$similar needs vectors"),
    ],
)
def test_what_it_cannot_know_is_said(expression, words):
    """Never an empty answer that looks like one."""
    with pytest.raises(ExpressionError) as caught:
        select(parse_value(expression), Rows(entries=[entry("a")]))

    assert words in str(caught.value)


def test_no_pattern_takes_for_ever():
    """Twenty wildcards over a text that nearly fits."""
    rows = Rows(entries=[entry("a", "a" * 20_000)])
    query = parse(json.dumps(["$knowledge", ["$like", "data", "%a" * 20 + "%b"]]))
    began = time.monotonic()

    assert select(query, rows) == []
    assert time.monotonic() - began < 10

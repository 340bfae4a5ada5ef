"""Which scopes every row of an expression has: what is ranked for it may leave the others out."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.jse.nodes import needed_scopes
from hypatia_mem.jse.parser import parse

APP, LIB = ["$contains", "scopes", "app"], ["$contains", "scopes", "lib"]
SEARCH = ["$search", "needle"]


@pytest.mark.parametrize(
    ("conditions", "scopes"),
    [
        ([SEARCH, APP], ("app",)),
        ([APP, SEARCH, LIB], ("app",)),
        ([["$or", APP, LIB], SEARCH], ("app", "lib")),
        ([["$and", SEARCH, ["$or", APP, APP]]], ("app",)),
        ([APP, ["$or", SEARCH, ["$contains", "tags", "t"]]], ("app",)),
        ([APP, ["$not", SEARCH]], ("app",)),
        ([SEARCH], None),
        ([SEARCH, ["$not", APP]], None),
        ([["$or", APP, SEARCH]], None),
        ([SEARCH, ["$or", APP, ["$contains", "tags", "lib"]]], None),
        ([SEARCH, ["$contains", "tags", "app"]], None),
    ],
)
def test_what_every_row_has(conditions, scopes):
    assert needed_scopes(parse(json.dumps({"$knowledge": conditions})).condition) == scopes

"""A query that can only be about few rows reads no more, and hides what every other hides."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.jse.compiler import compile_query
from hypatia_mem.jse.parser import parse
from hypatia_mem.model import Entry, Statement, Trust

NAME = ["$eq", "name", "a"]
HIDDEN = ["$eq", "name", "hidden"]
FOUND = ["$search", "x"]


@pytest.fixture
def ask(kit):
    """Ask a store of three entries and their statements; ``$search`` finds whatever is named."""
    with kit.change() as txn:
        for name in ("a", "b", "c"):
            txn.put_entry(Entry(name, name, scopes=("app",)))
        txn.put_entry(Entry("hidden", "h", trust=Trust.CANDIDATE, scopes=("app",)))
        for triple in (("a", "is", "b"), ("b", "is", "c"), ("a", "is", "hidden")):
            txn.put_statement(Statement(*triple, scopes=("app",)))

    def rows(query, hits=(), *, narrow, **how):
        found = [(key, float(len(hits) - at)) for at, key in enumerate(hits)]
        compiled = compile_query(parse(json.dumps(query)), lambda text, catalog: found, **how)
        assert ("kept AS" in compiled.sql) is narrow
        with kit.open() as store:
            shaped = [compiled.shape(row) for row in store.run(compiled.sql, list(compiled.params))]
        return [row.get("name") or row.get("triple") or row["count"] for row in shaped]

    return rows


@pytest.mark.deep
@pytest.mark.parametrize(
    ("conditions", "hits", "narrow", "names"),
    [
        ([NAME], (), True, ["a"]),
        ([HIDDEN], (), True, []),
        ([["$eq", "name", "none"]], (), True, []),
        ([["$ne", "name", "a"]], (), False, ["b", "c"]),
        ([["$not", NAME]], (), False, ["b", "c"]),
        ([["$or", NAME, ["$eq", "name", "b"]]], (), False, ["a", "b"]),
        ([["$and", NAME, ["$eq", "name", "b"]]], (), True, []),
        ([FOUND], ("b", "hidden", "gone", "a"), True, ["b", "a"]),
        ([FOUND], (), True, []),
        ([FOUND, NAME], ("b", "a"), True, ["a"]),
        ([["$not", FOUND]], ("b",), False, ["a", "c"]),
        ([["$or", FOUND, ["$eq", "name", "c"]]], ("b",), False, ["b", "c"]),
        ([FOUND], (*(f"n{n}" for n in range(600)), "c"), False, ["c"]),
    ],
)
def test_entries(ask, conditions, hits, narrow, names):
    found = ask(["$knowledge", *conditions], hits, narrow=narrow)
    assert (found if conditions == [FOUND] else sorted(found)) == names
    assert ask({"$knowledge": conditions, "count": True}, hits, narrow=narrow) == [len(names)]
    assert ask(["$knowledge", *conditions], hits, narrow=narrow, scopes=["other"]) == []


def test_statements(ask):
    hits = ("b,is,c", "a,is,hidden", "a,is,b", "gone")
    assert ask(["$statement", FOUND], hits, narrow=True) == ["b,is,c", "a,is,b"]
    assert ask(["$statement", FOUND, ["$triple", "a", "$*", "$*"]], hits, narrow=True) == ["a,is,b"]


def test_the_past_is_read_whole(ask):
    query = {"$knowledge": [NAME], "as_known_at": "2100-01-01"}
    assert ask(query, narrow=False) == ["a"]

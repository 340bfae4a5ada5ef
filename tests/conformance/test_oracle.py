"""The same conditions by SQL and by a naive reading in Python must let the same rows in.

The oracle knows nothing of the compiler: it walks the JSON of an expression over the rows of
``given.json``, with three truth values as the language has them (None: unknown).
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.jse.compiler import compile_query
from hypatia_mem.jse.parser import parse_value
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store

ROWS = [
    row
    for row in json.loads((Path(__file__).parent / "given.json").read_text("utf-8"))["entries"]
    if row.get("trust", "asserted") == "asserted" and not row.get("suppressed")
]
LISTS = ("tags", "scopes", "synonyms", "figures")
TEXTS = ("name", "data", "format")
WORDS = sorted({word for row in ROWS for word in (row["name"], *row["tags"], *row["scopes"], "")})
DAYS = ("2025-01-01", "2025-01-02 10:00:00", "2025-02-03", "2025-04-03T00:00:02", "2026-01-01")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The rows in a store, open for reading."""
    home = tmp_path_factory.mktemp("oracle")
    author = Author(Channel.CLI_PERSON)
    with (
        open_store(home, write=True) as opened,
        opened.transaction(author, now=datetime(2026, 1, 1)) as txn,
    ):
        for row in ROWS:
            txn.put_entry(
                Entry(
                    name=row["name"],
                    content=row["content"],
                    tags=tuple(row["tags"]),
                    scopes=tuple(row["scopes"]),
                    synonyms=tuple(row.get("synonyms", ())),
                    figures=tuple(row.get("figures", ())),
                    format=row.get("format", "markdown"),
                    created_at=datetime.fromisoformat(row["created_at"]),
                )
            )
    with open_store(home, write=False) as opened:
        yield opened


def value_of(row, field):
    if field in LISTS:
        return row.get(field, [])
    if field == "data":
        return row["content"]
    if field == "format":
        return row.get("format", "markdown")
    if field == "size":
        return json.loads(row["content"]).get("size") if row["content"][:1] == "{" else None
    return row[field]


def order(operator, left, right):
    return {
        "$eq": left == right,
        "$ne": left != right,
        "$gt": left > right,
        "$lt": left < right,
        "$gte": left >= right,
        "$lte": left <= right,
    }[operator]


def holds(row, condition):
    """Return whether a condition holds for a row: True, False or None for unknown."""
    operator, *operands = condition
    match operator:
        case "$and":
            found = [holds(row, operand) for operand in operands]
            return False if False in found else None if None in found else True
        case "$or":
            found = [holds(row, operand) for operand in operands]
            return True if True in found or not found else None if None in found else False
        case "$not":
            found = holds(row, operands[0])
            return None if found is None else not found
        case "$content":
            return holds(row, ["$and", *(["$eq", k, v] for k, v in operands[0].items())])
    field, wanted = operands
    here = value_of(row, field)
    if wanted is None or here is None:
        return None
    if operator == "$has":
        found = [holds(row, ["$eq", field, item]) for item in wanted]
        return True if True in found else None if None in found else False
    if operator == "$contains":
        return wanted in here
    if operator == "$like":
        pattern = re.escape(wanted).replace("%", ".*").replace("_", ".")
        items = here if isinstance(here, list) else [here]
        return any(re.fullmatch(pattern, item, re.DOTALL) for item in items)
    if field in LISTS:
        return (wanted in here) == (operator == "$eq")
    if field == "created_at":
        return order(operator, datetime.fromisoformat(here), datetime.fromisoformat(wanted))
    if type(here) is not type(wanted):
        return operator == "$ne"
    if isinstance(here, str):  # DuckDB orders text by its bytes
        return order(operator, here.encode(), wanted.encode())
    return order(operator, here, wanted)


EQUALS = st.sampled_from(["$eq", "$ne"])
ORDERS = st.sampled_from(["$eq", "$ne", "$gt", "$lt", "$gte", "$lte"])
WORD = st.one_of(st.sampled_from([word for word in WORDS if word[:1] != "$"]), st.none())
TEXT = st.sampled_from([word for word in WORDS if word] + ["Al", "e", "%", "a%", "_ust", "%e%"])
LEAVES = st.one_of(
    st.tuples(EQUALS, st.sampled_from(LISTS), WORD),
    st.tuples(ORDERS, st.sampled_from(TEXTS), WORD),
    st.tuples(ORDERS, st.just("created_at"), st.sampled_from(DAYS)),
    st.tuples(ORDERS, st.just("size"), st.sampled_from([9, 18, 2048, "18", 0])),
    st.tuples(st.just("$contains"), st.sampled_from(LISTS + TEXTS), TEXT),
    st.tuples(st.just("$like"), st.sampled_from(("name", "data", "tags", "scopes")), TEXT),
    st.tuples(
        st.just("$has"),
        st.sampled_from(("tags", "scopes", "name")),
        st.lists(WORD, min_size=1, max_size=3),
    ),
    st.tuples(st.just("$content"), st.dictionaries(st.sampled_from(("tags", "format")), WORD)),
).map(list)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: ["$and", *parts]),
        st.lists(inner, max_size=3).map(lambda parts: ["$or", *parts]),
        inner.map(lambda part: ["$not", part]),
    ),
    max_leaves=6,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CONDITIONS)
def test_sql_and_oracle_let_the_same_rows_in(store, condition):
    """Nested however deep: filters do not leak, and unknown stays unknown."""
    compiled = compile_query(parse_value({"$knowledge": [condition], "limit": -1}))

    found = {row["name"] for row in store.run(compiled.sql, list(compiled.params))}

    assert {row["name"] for row in ROWS if holds(row, condition) is True} == found

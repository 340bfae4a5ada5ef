"""The language by example: every case of the JSON files beside this module, run on a real store.

A case is ``{"expression" | "text", "rows" | "error"}``; ``hits`` stands in for the search index,
``scores`` are the ranks expected of the rows. Files: ``operators`` (by operator), ``documented``
(what the published skill and README show; ``upstream`` says how it fails there), ``elements``
(matching by element), ``refused`` (nothing widens).
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.compiler import FIELDS, compile_query
from hypatia_mem.jse.operators import OPERATORS
from hypatia_mem.jse.parser import parse, parse_value
from hypatia_mem.jse.rows import shape_row
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import open_store

HERE = Path(__file__).parent
FILES = ("operators", "documented", "elements", "refused")
GIVEN = json.loads((HERE / "given.json").read_text("utf-8"))


def cases():
    for file in FILES:
        groups = json.loads((HERE / f"{file}.json").read_text("utf-8"))
        for group, rows in groups.items():
            for number, case in enumerate(rows):
                yield pytest.param(case, id=f"{file}-{group}-{number}")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A store with the given entries and statements, open for reading."""
    home = tmp_path_factory.mktemp("graph")
    author = Author(Channel.CLI_PERSON)
    with open_store(home, write=True) as store, store.transaction(author, now=NOW) as txn:
        for row in GIVEN["entries"]:
            txn.put_entry(entry(row))
        for row in GIVEN["statements"]:
            txn.put_statement(statement(row))
    with open_store(home, write=False) as store:
        yield store


NOW = datetime(2026, 1, 1)


def entry(row):
    return Entry(
        name=row["name"],
        content=row["content"],
        tags=tuple(row["tags"]),
        scopes=tuple(row["scopes"]),
        synonyms=tuple(row.get("synonyms", ())),
        figures=tuple(row.get("figures", ())),
        format=row.get("format", "markdown"),
        kind=row.get("kind", "knowledge"),
        trust=Trust(row.get("trust", "asserted")),
        suppressed=row.get("suppressed", False),
        created_at=datetime.fromisoformat(row["created_at"]),
    )


def statement(row):
    return Statement(
        row["subject"],
        row["predicate"],
        row["object"],
        content=row.get("content", ""),
        scopes=tuple(row["scopes"]),
        synonyms=row.get("synonyms"),
        trust=Trust(row.get("trust", "asserted")),
        created_at=datetime.fromisoformat(row["created_at"]),
    )


def rows_of(store, query, hits):
    compiled = compile_query(query, lambda text, _: hits[text])
    found = store.run(compiled.sql, list(compiled.params))
    return [shape_row(compiled.catalog, row) for row in found]


def key(row):
    return row["name"] if "name" in row else row["triple"]


@pytest.mark.parametrize("case", list(cases()))
def test_an_expression_gives_its_rows_or_its_error(graph, case):
    """Exactly these rows in this order, or an error with these words before anything is run."""

    def ask():
        query = parse(case["text"]) if "text" in case else parse_value(case["expression"])
        return rows_of(graph, query, case.get("hits", {}))

    if "error" in case:
        with pytest.raises(ExpressionError) as caught:
            ask()
        assert case["error"] in str(caught.value)
        return
    found = ask()
    assert case["rows"] == [key(row) for row in found]
    if "scores" in case:
        assert case["scores"] == [row["score"] for row in found]


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_every_operator_has_cases(operator):
    """At least three, one of them an error; an operator nobody checked is not offered."""
    found = json.loads((HERE / "operators.json").read_text("utf-8")).get(operator, [])

    assert len(found) >= 3
    assert any("error" in case for case in found)
    assert any(case.get("rows") for case in found)


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_the_example_of_an_operator_runs(graph, operator):
    """The reference prints these; a printed example that fails teaches the wrong thing."""
    query = parse(OPERATORS[operator].example)

    rows = rows_of(graph, query, {"database migration": [("数据库", 1.0)]})

    assert rows or operator in ("$content", "$lte", "$not-summaried")


def test_rows_have_the_published_shape(graph):
    """Consumers of the skill read these keys; absent lists are null."""
    [row] = rows_of(graph, parse('["$knowledge", ["$eq", "name", "Rust"]]'), {})
    [bare] = rows_of(graph, parse('["$knowledge", ["$eq", "name", "greeting"]]'), {})
    [triple] = rows_of(graph, parse('["$statement", ["$triple", "Alice", "knows", "$*"]]'), {})

    assert row == {
        "name": "Rust",
        "content": {
            "format": "markdown",
            "data": "A systems language, 100% safe_code.",
            "tags": ["systems", "language"],
            "synonyms": ["rust-lang"],
            "figures": None,
            "scopes": ["app"],
        },
        "created_at": "2025-01-02 10:00:00.000000",
    }
    assert bare["content"]["scopes"] is None
    assert bare["content"]["tags"] == []
    assert triple == {
        "triple": "Alice,knows,Bob",
        "subject": "Alice",
        "predicate": "knows",
        "object": "Bob",
        "content": {
            "format": "markdown",
            "data": "",
            "tags": [],
            "synonyms": {"subject": ["Al"], "object": ["Robert"]},
            "figures": None,
            "scopes": ["app"],
        },
        "created_at": "2025-01-02 00:00:00.000000",
    }


PAYLOADS = (
    "x' OR '1'='1",
    "name'; DROP TABLE entry; --",
    "name) OR 1=1 --",
    'tags" OR ""="',
    "created_at) UNION SELECT * FROM entry --",
    "tags[0]; --",
    "$.name",
    "data->>'x'",
    "name\n",
)
FIELD_OPERATORS = ("$eq", "$ne", "$gt", "$lt", "$gte", "$lte", "$contains", "$has", "$like")


@pytest.mark.parametrize("top", ["$knowledge", "$statement", "$not-summaried"])
@pytest.mark.parametrize("operator", [*FIELD_OPERATORS, "$content"])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_a_field_name(top, operator, payload):
    """A field name reaches SQL only by a list of constants (I7)."""
    first = [top, "message"] if top == "$not-summaried" else [top]
    operands = [{payload: "x"}] if operator == "$content" else [payload, "x"]

    with pytest.raises(ExpressionError, match="invalid field name"):
        compile_query(parse_value([*first, [operator, *operands]]))


@pytest.mark.parametrize("catalog", ["knowledge", "statement"])
@pytest.mark.parametrize("operator", ["$eq", "$contains", "$has", "$like", "$ne"])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_a_value_like_any_other(graph, catalog, operator, payload):
    """It is in the parameters and never in the SQL; nothing matches it."""
    for field, column in FIELDS[catalog].items():
        if column.kind == "time" and operator not in ("$contains", "$like"):
            continue
        query = parse_value([f"${catalog}", [operator, field, payload]])
        compiled = compile_query(query)

        assert (
            compiled.sql == compile_query(parse_value([f"${catalog}", [operator, field, "x"]])).sql
        )
        assert payload in compiled.params
        if operator != "$ne":
            assert rows_of(graph, query, {}) == []

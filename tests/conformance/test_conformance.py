"""The language by example: the cases of the JSON files beside this module, run twice.

Once by SQL on a real store, once by the matcher on rows in memory: the same rows, in the same
order, in full. A file is ``{"given": rows, "cases": {group: [case]}}``; without a given it is that
of ``given.json``. A case is ``{"expression" | "text", "rows" | "error"}``. ``hits`` and ``near``
stand in for the search index and the vectors, ``scopes`` are those the query may read; ``scores``,
``hops``, ``shown`` (whole rows) are looked at where they are named.

Files: ``operators`` (by operator), ``options``, ``documented`` (what the published skill and README
show; ``upstream`` says how it fails there), ``elements`` (matching by element), ``data`` (JSON in
``data``), ``names`` (aliases and walks), ``predicates`` (their spellings), ``refused`` (nothing widens), ``dropped`` (18 ways to lose
a filter), ``injection`` (what must never be SQL).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.compiler import compile_query
from hypatia_mem.jse.operators import OPERATORS
from hypatia_mem.jse.parser import parse, parse_value
from hypatia_mem.store.connection import open_store
from tests.conformance import worlds

HERE = Path(__file__).parent
FILES = (
    "operators", "options", "documented", "elements", "data", "names", "predicates", "refused",
)  # fmt: skip


def load(name):
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


GIVEN = load("given")
DROPPED = load("dropped")
INJECTION = load("injection")


def cases():
    for file in FILES:
        found = load(file)
        for group, rows in found.get("cases", found).items():
            for number, case in enumerate(rows):
                walks = "$k-hop" in json.dumps(case)
                for by in ("sql", "sql, deep", "matcher") if walks else ("sql", "matcher"):
                    yield pytest.param(file, case, by, id=f"{file}-{group}-{number}-{by}")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return (store open for reading, the same rows in Python) of a file's given."""
    made = {}
    opened = []

    def ask(file):
        given = load(file).get("given", GIVEN)
        name = json.dumps(given)
        if name not in made:
            home = tmp_path_factory.mktemp("world")
            worlds.fill(home, given)
            opened.append(open_store(home, write=False))
            made[name] = (opened[-1].__enter__(), worlds.published(given))
        return made[name]

    yield ask
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture(scope="module")
def graph(world):
    """The store of ``given.json``."""
    return world("operators")[0]


def known(query, rows):
    """Return the Python rows with a history: everything was recorded at once."""
    empty = worlds.Rows()
    return worlds.Rows(
        rows.entries, rows.statements, lambda at: rows if at >= worlds.NOW else empty
    )


@pytest.mark.parametrize(("file", "case", "by"), list(cases()))
def test_an_expression_gives_its_rows_or_its_error(world, file, case, by):
    """Exactly these rows in this order, or an error with these words before anything is run."""
    store, rows = world(file)

    def ask():
        query = parse(case["text"]) if "text" in case else parse_value(case["expression"])
        how = {
            "search": lambda text, _: case["hits"][text],
            "similar": lambda text, _: case["near"][text],
            "scopes": case.get("scopes"),
        }
        if by == "matcher":
            return worlds.by_matcher(known(query, rows), query, **how)
        return worlds.by_sql(store, query, deep=by == "sql, deep", **how)

    if "error" in case:
        with pytest.raises(ExpressionError) as caught:
            ask()
        assert case["error"] in str(caught.value)
        return
    found = ask()
    if "shown" in case:
        assert case["shown"] == found
        return
    assert case["rows"] == [worlds.key(row) for row in found]
    for one, many in (("score", "scores"), ("hop", "hops")):
        if many in case:
            assert case[many] == [row[one] for row in found]


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_every_operator_has_cases(operator):
    """At least three, one of them an error; an operator nobody checked is not offered."""
    found = load("operators").get(operator, [])

    assert len(found) >= 3
    assert any("error" in case for case in found)
    assert any(case.get("rows") for case in found)


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_the_example_of_an_operator_runs(world, operator):
    """The reference prints these; a printed example that fails teaches the wrong thing."""
    store, rows = world("operators")
    query = parse(OPERATORS[operator].example)
    how = {"search": lambda *_: [("数据库", 1.0)], "similar": lambda *_: [("数据库", 1.0)]}

    found = worlds.by_sql(store, query, **how)

    assert found == worlds.by_matcher(rows, query, **how)
    assert found or operator in ("$content", "$lte", "$not-summaried", "$json-contains")


# --- nothing widens -------------------------------------------------------------------------------


def test_there_are_18_kinds_of_dropped_filters():
    """Each kind once, in both forms."""
    assert len(DROPPED) == 18
    assert all({"array", "object", "error"} <= set(kind) for kind in DROPPED.values())


@pytest.mark.parametrize("form", ["array", "object"])
@pytest.mark.parametrize("kind", list(DROPPED))
def test_a_filter_is_never_dropped(kind, form):
    """An error that names the place, before the store, the index or the vectors are touched."""

    def touched(*_):
        raise AssertionError("something was read")

    with pytest.raises(ExpressionError) as caught:
        compile_query(parse_value(DROPPED[kind][form]), touched, touched, read=touched)

    assert DROPPED[kind]["error"] in str(caught.value)
    assert "^" in caught.value.hint


# --- injection ------------------------------------------------------------------------------------


def planted(template, payload):
    """Return a template with the payload wherever it says so."""
    if isinstance(template, str):
        return template.replace("<payload>", payload)
    if isinstance(template, list):
        return [planted(item, payload) for item in template]
    if isinstance(template, dict):
        return {planted(k, payload): planted(v, payload) for k, v in template.items()}
    return template


def test_the_templates_cover_every_operator():
    """Nine payloads, and no operator that takes a field or a value is left out."""
    text = json.dumps([INJECTION["fields"], INJECTION["values"]])

    assert len(INJECTION["payloads"]) == 9
    assert [name for name in OPERATORS if f'"{name}"' not in text] == []


@pytest.mark.parametrize("payload", INJECTION["payloads"])
def test_no_payload_is_a_field_name(payload):
    """A field name reaches SQL only by a list of constants (I7)."""
    for template in INJECTION["fields"]:
        with pytest.raises(ExpressionError, match="invalid field name"):
            compile_query(parse_value(planted(template, payload)))


@pytest.mark.deep
@pytest.mark.parametrize("payload", INJECTION["payloads"])
def test_a_payload_is_a_value_like_any_other(world, payload):
    """It is in the parameters and never in the SQL; both ways of asking agree on what it finds."""
    store, rows = world("operators")
    how = {"search": lambda text, _: [(text, 1.0)], "similar": lambda text, _: [(text, 1.0)]}
    for template in INJECTION["values"]:
        query = parse_value(planted(template, payload))

        compiled = compile_query(query, **how)
        harmless = compile_query(parse_value(planted(template, "x")), **how)

        assert compiled.sql == harmless.sql
        assert compiled.params != harmless.params
        assert worlds.by_sql(store, query, **how) == worlds.by_matcher(rows, query, **how)


# --- rows -----------------------------------------------------------------------------------------


def test_rows_have_the_published_shape(graph):
    """Consumers of the skill read these keys; absent lists are null."""
    [row] = worlds.by_sql(graph, parse('["$knowledge", ["$eq", "name", "Rust"]]'))
    [bare] = worlds.by_sql(graph, parse('["$knowledge", ["$eq", "name", "greeting"]]'))
    [triple] = worlds.by_sql(graph, parse('["$statement", ["$triple", "Alice", "knows", "$*"]]'))

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

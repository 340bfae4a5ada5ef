"""What the parser promises beyond single examples: an answer or its own error, and a caret."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.compiler import FIELDS, compile_query
from hypatia_mem.jse.operators import OPERATORS
from hypatia_mem.jse.parser import parse, parse_value

ODD = ("$*", "$$", "$$x", "$x", "", "limit", "meta.author", "tags[0]", "2025-01-01", "é", "a'b")
WORDS = st.sampled_from(
    (*OPERATORS, *FIELDS["knowledge"], *FIELDS["statement"], *ODD)
)
SCALARS = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text())
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(WORDS, st.text(max_size=5)), inner, max_size=3),
        st.tuples(WORDS, inner, inner).map(list),
    ),
    max_leaves=20,
)


@settings(max_examples=400, deadline=None)
@given(JSON)
def test_any_json_is_a_query_or_an_expression_error(value):
    """Never another exception: agents send what they make up."""
    for candidate in (value, ["$knowledge", value], {"$statement": [value]}):
        with suppress(ExpressionError):
            compiled = compile_query(parse_value(candidate), lambda text, catalog: [])
            assert compiled.sql.count("?") == len(compiled.params)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_is_a_query_or_an_expression_error(text):
    """Text that is no JSON is told so with its place."""
    with suppress(ExpressionError):
        parse(text)


POINTED = [
    pytest.param(["$knowledge", ["$eq", "name", 5]], "$knowledge[0].$eq[1]", "5", id="value"),
    pytest.param(
        ["$knowledge", ["$and", ["$eq", "name", "a"], ["$gt", "tags", "b"]]],
        "$knowledge[0].$and[1].$gt[1]",
        '"b"',
        id="nested",
    ),
    pytest.param({"$knowledge": {"$search": 5}}, "$knowledge[0].$search[0]", "5", id="object"),
    pytest.param(
        {"$knowledge": [{"$content": {"a b": 1}}]}, "$knowledge[0].$content[0]", "1", id="key"
    ),
    pytest.param(
        ["$knowledge", ["$eq", "name", "x" * 300], ["$like", "name", 7]],
        "$knowledge[1].$like[1]",
        "7",
        id="far to the right",
    ),
]


@pytest.mark.parametrize(("expression", "path", "target"), POINTED)
def test_an_error_points_at_the_operand(expression, path, target):
    """The path names it and the carets stand under exactly its text."""
    with pytest.raises(ExpressionError) as caught:
        compile_query(parse_value(expression))

    line, carets = caught.value.hint.splitlines()[:2]
    start, end = carets.index("^"), len(carets)
    assert path == caught.value.path
    assert target == line[start:end]
    assert len(line) <= 110


def test_a_syntax_error_points_at_its_column():
    """The caret stands where the JSON breaks, also far into a long line."""
    text = '["$knowledge", ["$eq", "name", "' + "x" * 200 + '"] oops'

    with pytest.raises(ExpressionError) as caught:
        parse(text)

    line, caret = caught.value.hint.splitlines()[:2]
    assert line[caret.index("^") :].startswith("oops")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"$knowledge": ["$contains", "scopes", "x"]}, id="flattened object form"),
        pytest.param(["$knowledge", "$contains", "scopes", "x"], id="flattened array form"),
        pytest.param(["$knowledge", ["$not", "$eq", "name", "x"]], id="flattened not"),
        pytest.param(["$knowledge", ["$ne", ["$eq", "name", "x"]]], id="ne of a condition"),
        pytest.param(["$eq", "name", "x"], id="no top operator"),
        pytest.param(["$triple", "a", "b", "c"], id="triple on top"),
        pytest.param(["$knowledge", ["$triple", "a", "b", "c"]], id="triple of knowledge"),
        pytest.param(["$knowledge", ["contains", "tags", "x"]], id="no dollar"),
        pytest.param(["knowledge", ["$contains", "tags", "x"]], id="no dollar on top"),
        pytest.param(["$knowledge", ["$contians", "tags", "x"]], id="misspelt operator"),
        pytest.param(["$knowledge", ["$contains", "tag", "x"]], id="misspelt field"),
        pytest.param(["$knowledge", ["$contains", "tags", ["x", "y"]]], id="contains of a list"),
        pytest.param(["$knowledge", ["$eq", "name", 5]], id="number for text"),
        pytest.param(["$knowledge", {"$search": "x", "limit": 5}], id="nested option"),
        pytest.param(
            ["$knowledge", {"$eq": ["name", "a"], "$like": ["data", "b"]}], id="two operators"
        ),
        pytest.param(
            ["$knowledge", ["$knowledge", ["$eq", "name", "a"], ["$eq", "name", "b"]]],
            id="nested with two",
        ),
        pytest.param(["$knowledge", ["$content", {"tags": ["a"]}]], id="list of one in content"),
        pytest.param(["$knowledge", ["$has", "tags", ["$odd", "x"]]], id="a list like a call"),
    ],
)
def test_the_corrected_query_it_prints_is_correct(case):
    """A suggestion that fails too would be worse than none."""
    with pytest.raises(ExpressionError) as caught:
        compile_query(parse_value(case), lambda text, catalog: [])

    [meant] = [
        line.removeprefix("Did you mean: ")
        for line in caught.value.hint.splitlines()
        if line.startswith("Did you mean: ")
    ]
    compile_query(parse_value(json.loads(meant)), lambda text, catalog: [])


@pytest.mark.parametrize(
    ("array", "object_"),
    [
        (["$knowledge"], {"$knowledge": []}),
        (["$knowledge", ["$eq", "name", "a"]], {"$knowledge": {"$eq": ["name", "a"]}}),
        (["$knowledge", ["$search", "a"]], {"$knowledge": {"$search": "a"}}),
        (["$not-summaried", "message"], {"$not-summaried": "message"}),
        (
            ["$statement", ["$triple", "a", "$*", "c"]],
            {"$statement": {"$triple": ["a", "$*", "c"]}},
        ),
    ],
)
def test_both_forms_mean_the_same(array, object_):
    """The object form is the array form with options beside it."""
    assert parse_value(array) == parse_value(object_)


@pytest.mark.parametrize(
    ("one", "other"), [("subject", "head"), ("predicate", "relation"), ("object", "tail")]
)
def test_both_vocabularies_mean_the_same(one, other):
    """Older and newer skills name the parts of a statement differently."""
    queries = [
        compile_query(parse_value(["$statement", ["$eq", name, "x"]])) for name in (one, other)
    ]

    assert queries[0].sql == queries[1].sql
    assert queries[0].params == queries[1].params


def test_search_is_asked_with_the_catalog_of_the_rows():
    """Hits of the other kind could never match and would push the right ones out."""
    asked = []

    def search(text, catalog):
        asked.append((text, catalog))
        return []

    compile_query(parse_value(["$statement", ["$search", "bob"]]), search)

    assert asked == [("bob", "statement")]


@pytest.mark.parametrize(
    ("condition", "monotone"),
    [
        (["$search", "a"], True),
        (["$and", ["$search", "a"], ["$eq", "name", "x"]], True),
        (["$or", ["$search", "a"], ["$eq", "name", "x"]], False),
        (["$not", ["$search", "a"]], False),
        (["$and", ["$search", "a"], ["$search", "b"]], False),
    ],
)
def test_it_is_told_when_few_hits_are_enough(condition, monotone):
    """Only then may a caller begin with the best few instead of all."""
    compiled = compile_query(parse_value(["$knowledge", condition]), lambda text, _: [("x", 1.0)])

    assert compiled.monotone is monotone

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
WORDS = st.sampled_from((*OPERATORS, *FIELDS["knowledge"], *FIELDS["statement"], *ODD))
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


def nothing(text, catalog):
    return []


@pytest.mark.deep
@settings(max_examples=400, deadline=None)
@given(JSON)
def test_any_json_is_a_query_or_an_expression_error(value):
    """Never another exception: agents send what they make up."""
    for candidate in (value, ["$knowledge", value], {"$statement": [value]}):
        with suppress(ExpressionError):
            compiled = compile_query(parse_value(candidate), nothing, nothing)
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
        ["$statement", ["$k-hop", "a", "b", 0]], "$statement[0].$k-hop[2]", "0", id="depth"
    ),
    pytest.param(
        ["$statement", {"$k-hop": ["a", "b", 1], "direction": "up"}],
        "$statement[0]",
        '"up"',
        id="direction",
    ),
    pytest.param(
        ["$knowledge", ["$json-contains", {"tags": ["a", 7]}]],
        "$knowledge[0].$json-contains[0]",
        '["a", 7]',
        id="pattern",
    ),
    pytest.param({"$knowledge": [], "order": ["name", "tags"]}, "", '"tags"', id="order"),
    pytest.param({"$knowledge": [], "fields": ["name", "nam"]}, "", '"nam"', id="fields"),
    pytest.param({"$knowledge": [], "as_of": "soon"}, "", '"soon"', id="time"),
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
        pytest.param(["$k-hop", "a", "b", 2], id="a walk on top"),
        pytest.param(["$knowledge", ["$k-hop", "a", "b", 2]], id="a walk of knowledge"),
        pytest.param(["$statement", ["$k-hop", "a", 3]], id="a walk without a predicate"),
        pytest.param(["$similar", "x"], id="similar on top"),
        pytest.param(["$knowledge", ["$similar", "x"], {"limit": 5}], id="options in the array"),
        pytest.param({"$knowledge": [], "count": True, "limit": 5}, id="count with limit"),
        pytest.param({"$knowledge": [], "fields": "name"}, id="one field"),
        pytest.param(["$knowledge", ["$eq", "content.tags", "x"]], id="path into the row"),
        pytest.param(["$knowledge", ["$json-contians", {"a": 1}]], id="misspelt containment"),
    ],
)
def test_the_corrected_query_it_prints_is_correct(case):
    """A suggestion that fails too would be worse than none."""
    with pytest.raises(ExpressionError) as caught:
        compile_query(parse_value(case), nothing, nothing)

    [meant] = [
        line.removeprefix("Did you mean: ")
        for line in caught.value.hint.splitlines()
        if line.startswith("Did you mean: ")
    ]
    compile_query(parse_value(json.loads(meant)), nothing, nothing)


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
        (
            ["$statement", ["$k-hop", "a", "b", 2, "both"]],
            {"$statement": {"$k-hop": ["a", "b", 2], "direction": "both"}},
        ),
        (
            ["$statement", ["$k-hop", "a", "b", 2]],
            ["$statement", ["$k-hop", "a", "b", 2, "forward"]],
        ),
        (
            ["$knowledge", ["$json-contains", {"tags": ["a"]}]],
            {"$knowledge": {"$json-contains": {"tags": ["a"]}}},
        ),
        (["$knowledge", ["$similar", "a"]], {"$knowledge": {"$similar": "a"}}),
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
        (["$and", ["$search", "a"], ["$similar", "b"]], False),
    ],
)
def test_it_is_told_when_few_hits_are_enough(condition, monotone):
    """Only then may a caller begin with the best few instead of all."""
    hits = {"search": lambda *_: [("x", 1.0)], "similar": lambda *_: [("x", 1.0)]}
    compiled = compile_query(parse_value(["$knowledge", condition]), **hits)

    assert compiled.monotone is monotone


@pytest.mark.parametrize("options", [{"order": "name"}, {"count": True}])
def test_few_hits_are_not_enough_for_another_order_or_a_count(options):
    """A worse hit may be the first by name, and every hit counts."""
    query = parse_value({"$knowledge": [["$search", "a"]], **options})

    assert compile_query(query, nothing).monotone is False


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        (["$contains", "scopes", "a"], True),
        (["$not", ["$or", ["$eq", "name", "x"], ["$has", "$scopes", ["a"]]]], True),
        (["$content", {"scopes": "a"}], True),
        (["$json-contains", {"scopes": ["a"]}], True),
        (["$eq", "scopes[0]", "a"], True),
        (["$eq", "data.scopes", "a"], False),
        (["$eq", "name", "scopes"], False),
        (["$and"], False),
    ],
)
def test_it_is_told_whether_an_expression_names_scopes(condition, named):
    """Then nothing is added to it; a part of the row that is only shown names none."""
    query = parse_value({"$knowledge": [condition], "fields": ["scopes"]})

    assert query.names_scopes is named

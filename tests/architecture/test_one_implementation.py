"""One job, one implementation: who may call what decides, and no function that is there twice.

The registry names, for each job that could be done in two ways, the one function that does it and
everybody who calls it. Whoever needs it elsewhere has to write that down here; whoever writes a
second one is found by its shape or by its name.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "hypatia_mem"
REGISTRY = {
    # what a session is told when it begins, and in which order
    "memory.listed.choose": {"memory.compose.told", "memory.listed.rules_block"},
    "memory.listed.rules_block": {"memory.compose.compose"},
    "memory.compose.compose": {"memory.compose.brief_text"},
    # what a prompt calls up, for the hook and for whoever asks why
    "capture.keyed.judge": {"capture.keyed.called_up"},
    "capture.keyed.called_up": {"capture.keyed.lines_for", "memory.activation.explain"},
    "capture.keyed.chosen": {"capture.keyed.lines_for", "memory.activation.explain"},
    "capture.keyed.table": {"memory.activation._table"},
    # what is found: by words in one index, by nearness among the vectors, as it was known then
    "store.lookup.Looking": {
        "store.search.among",
        "store.search.keys",
        "store.search.ranking",
        "store.search.search",
        "store.search.search_among",
    },
    "cli.searching.find": {"cli.fact.query", "cli.searching.search", "cli.selecting._hits"},
    "store.search.search_among": {"memory.known.corrected", "memory.known.find_known"},
    "memory.known.find_known": {"cli.searching.find_known"},
    "store.vectors.rank": {
        "memory.vectors.embedding.similar",
        "memory.vectors.embedding.similar_hits",
    },
    # which of a list is meant
    "memory.selection.chosen": {"memory.bulk._chosen", "memory.targets._turns"},
    # which part of the graph is meant
    "memory.graph.selecting.select": {"cli.selecting.taken"},
    # who condenses, by which model, under which limits
    "memory.summarise.choosing.choose": {"memory.cascade.running.model"},
    "memory.summarise.choosing.backend_of": {
        "memory.cascade.backfill._tools",
        "memory.cascade.backfill.recall",
        "memory.summarise.choosing.choose",
    },
    "memory.summarise.messages_api.MessagesApi": {
        "memory.summarise.choosing.backend_of",
        "memory.summarise.choosing.planned_window",
    },
    "memory.summarise.claude_cli.ClaudeCli": {
        "memory.summarise.choosing.backend_of",
        "memory.summarise.choosing.planned_window",
    },
    "memory.spend.Meter": {"memory.cascade.backfill._tools", "memory.summarise.choosing.meter_of"},
    # which sentences an extractive summary keeps
    "memory.summarise.extractive.choose": {
        "memory.extract.units._picked",
        "memory.summarise.extractive.summarise",
    },
}
_SECOND = re.compile(r"[a-z]_(v\d+|old|legacy|alt|alternative|bis|experimental)$|[a-z]2$")
LEAST = 40  # nodes; smaller ones are alike by nature


@cache
def modules():
    paths = sorted(PACKAGE.rglob("*.py"))
    names = [".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in paths]
    return [
        (one, ast.parse(path.read_text("utf-8"))) for one, path in zip(names, paths, strict=True)
    ]


def imported(tree):
    """Return what each name of a module stands for, of ours."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hypatia_mem"):
            room = node.module.removeprefix("hypatia_mem").lstrip(".")
            for one in node.names:
                found[one.asname or one.name] = f"{room}.{one.name}".lstrip(".")
    return found


def calls(name, tree):
    """Return (whom, in which function) of every call in a module."""
    known = imported(tree)
    own = {one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}

    def visit(node, inside):
        if isinstance(node, ast.FunctionDef):
            inside = node.name
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                if called.id in known:
                    yield known[called.id], inside
                elif called.id in own:
                    yield f"{name}.{called.id}", inside
            elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                room = known.get(called.value.id)
                yield from [(f"{room}.{called.attr}", inside)] if room else ()
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(tree, "")


def callers():
    found = {wanted: set() for wanted in REGISTRY}
    for name, tree in modules():
        for whom, inside in calls(name, tree):
            if whom in found:
                found[whom].add(f"{name}.{inside}".rstrip("."))
    return found


def shape(function):
    """Return a function without its names, docstring and annotations, and how many nodes it has."""
    own = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
    own |= {
        one.id
        for one in ast.walk(function)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    size = 0

    def told(node):
        nonlocal size
        size += 1
        if isinstance(node, ast.Name):
            return "_" if node.id in own else node.id
        if isinstance(node, ast.arg):
            return "arg"
        fields = []
        for field, value in ast.iter_fields(node):
            if field in ("returns", "annotation", "type_comment", "decorator_list"):
                continue
            if field == "name" and isinstance(node, ast.FunctionDef):
                continue
            values = value if isinstance(value, list) else [value]
            if field == "body" and isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                values = values[1:]
            fields += [told(one) if isinstance(one, ast.AST) else repr(one) for one in values]
        return f"{type(node).__name__}({','.join(fields)})"

    return told(function), size


def alike(sources, least=LEAST):
    """Return the groups of functions that differ in nothing but names."""
    groups = defaultdict(list)
    for name, tree in sources:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                found, size = shape(node)
                if size >= least:
                    groups[found].append(f"{name}.{node.name}")
    return [sorted(group) for group in groups.values() if len(group) > 1]


def test_each_job_is_done_by_one_function_that_these_call():
    assert callers() == REGISTRY


@pytest.mark.deep
def test_no_function_is_there_twice():
    assert alike(modules()) == []


def test_nothing_is_called_a_second_version_of_something():
    found = set()
    for name, tree in modules():
        if _SECOND.search(name.rpartition(".")[2]):
            found.add(name)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and _SECOND.search(node.name):
                found.add(f"{name}.{node.name}")
    assert found == set()


ONE = "def a(x):\n    'Say.'\n    y = [one for one in x if one]\n    return sorted(y) or None\n"
TWO = "def b(p: list) -> list:\n    q = [it for it in p if it]\n    return sorted(q) or None\n"


@pytest.mark.parametrize(
    ("other", "found"),
    [
        pytest.param(TWO, 1, id="names differ"),
        pytest.param(TWO.replace("sorted", "list"), 0, id="it does something else"),
        pytest.param(TWO.replace("None", "[]"), 0, id="it says something else"),
    ],
)
def test_the_search_finds_what_it_should(other, found):
    sources = [("one", ast.parse(ONE)), ("two", ast.parse(other))]
    assert len(alike(sources, least=10)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from hypatia_mem.memory.listed import choose\nchoose(1)", [("memory.listed.choose", "")]),
        (
            "def f():\n    from hypatia_mem.memory import listed\n    listed.choose(1)",
            [("memory.listed.choose", "f")],
        ),
        ("def choose(): ...\ndef f(): choose()", [("here.choose", "f")]),
        ("from random import choose\nchoose(1)", []),
    ],
)
def test_the_calls_are_found_however_they_are_imported(source, found):
    assert list(calls("here", ast.parse(source))) == found

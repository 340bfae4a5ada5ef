"""Options by which a command says what part of the graph it is about, shared by all of ``graph``.

``selecting`` adds them to a command, which gets them as one ``selection``; running the query or the
search that names the part happens here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, get_args

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import MOST, AllProjects, Scopes
from hypatia_mem.cli.output import warn
from hypatia_mem.memory.graph.selecting import MAX_NODES, Selection, Subgraph

__all__ = ["AROUND", "PART", "found_by", "selecting", "taken"]

_SEARCH_HITS = 20

_SHARED: tuple[tuple[str, Any, Any], ...] = (
    (
        "predicate",
        list[str] | None,
        typer.Option("--predicate", help="Only this predicate; may be repeated."),
    ),
    (
        "without",
        list[str] | None,
        typer.Option("--except", help="Without this predicate; may be repeated."),
    ),
    ("messages", bool, typer.Option("--messages", help="With messages and their sessions.")),
    (
        "labels",
        bool,
        typer.Option("--labels", help="With what only says a kind, like: X is_a rule."),
    ),
    (
        "max_nodes",
        int,
        typer.Option("--max-nodes", min=1, max=MOST, help="Refuse a part with more names."),
    ),
    ("scope", *get_args(Scopes)),
    ("all_projects", *get_args(AllProjects)),
)
PART: tuple[tuple[str, Any, Any], ...] = (
    (
        "near",
        list[str] | None,
        typer.Option("--near", help="Only what is near this name; may be repeated."),
    ),
    ("query", str | None, typer.Option("--query", help="Only what is near the rows of this JSE.")),
    ("search", str | None, typer.Option("--search", help="Only what is near the best hits.")),
    (
        "depth",
        int,
        typer.Option("--depth", min=0, max=100, help="How many statements away is near."),
    ),
)
AROUND = tuple(one for one in PART if one[0] in ("search", "depth"))
_DEFAULTS: dict[str, Any] = {"max_nodes": MAX_NODES, "depth": 1, "messages": False, "labels": False}
_DEFAULTS |= {"all_projects": False}


def selecting(
    *extra: tuple[str, Any, Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the shared options, handed to it as one ``selection``."""
    offered = (*extra, *_SHARED)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapper(**given: Any) -> None:  # noqa: ANN401 - whatever the command takes
            mine = {name: given.pop(name, _DEFAULTS.get(name)) for name, _, _ in offered}
            command(selection=_selection(**mine), **given)

        own = [
            parameter
            for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
            if name != "selection"
        ]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULTS.get(name),
                annotation=Annotated[kind, option],
            )
            for name, kind, option in offered
        ]
        own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        wrapper.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
        wrapper.__doc__ = command.__doc__
        wrapper.__name__ = command.__name__
        return wrapper

    return decorate


def _selection(**given: Any) -> Selection:  # noqa: ANN401 - the options by name
    """Return the part meant by the options; runs the query or search that names it."""
    scopes = context.scopes_for(given["scope"], given["all_projects"])
    selection = Selection(
        scopes=None if scopes is None else tuple(scopes),
        near=tuple(values.checked(name, "--near") for name in given.get("near") or ()),
        depth=given.get("depth", 1),
        predicates=tuple(given["predicate"] or ()),
        without=tuple(given["without"] or ()),
        messages=given["messages"],
        labels=given["labels"],
        max_nodes=given["max_nodes"],
    )
    return found_by(selection, given.get("query"), given.get("search"))


def found_by(selection: Selection, query: str | None, search: str | None) -> Selection:
    """Return the selection narrowed to what is near a query's rows and a search's best hits."""
    if query is None and search is None:
        return selection
    names: list[str] = []
    if query is not None:
        for row in _rows(selection, values.read_text(query, "the expression")):
            names += [row["name"]] if "name" in row else [row["subject"], row["object"]]
    if search is not None:
        names += _hits(selection, values.checked(search, "the search text"))
    return replace(selection, named_by=tuple(dict.fromkeys(names)))


def _rows(selection: Selection, expression: str) -> list[dict[str, Any]]:
    """Return a query's rows; one that names scopes may find what is then told to be unseen."""
    from hypatia_mem.cli.querying import run_query
    from hypatia_mem.jse.parser import parse

    if selection.scopes is None or parse(expression).names_scopes:
        return run_query(context.home(), expression, all_projects=True)
    return run_query(context.home(), expression, scope=list(selection.scopes))


def _hits(selection: Selection, text: str) -> list[str]:
    from hypatia_mem.cli.searching import find
    from hypatia_mem.memory.graph.selecting import ends_of
    from hypatia_mem.store.connection import open_store

    kinds = ["knowledge", "rule", "taboo", "memory", "summary", "session", "statement"]
    hits = find(
        context.home(),
        text,
        scopes=selection.scopes,
        kinds=None if selection.messages else kinds,
        limit=_SEARCH_HITS,
    )
    triples = [hit.name for hit in hits if hit.catalog == "statement"]
    with open_store(context.home(), write=False) as store:
        ends = ends_of(store, triples)
    names: list[str] = []
    for hit in hits:
        names += ends.get(hit.name, ()) if hit.catalog == "statement" else (hit.name,)
    return names


def taken(selection: Selection, *, alone: bool = False) -> Subgraph:
    """Return the part of the graph that is meant; says what a query found but these scopes hide."""
    from hypatia_mem.memory.graph import selecting as parts
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        found = parts.select(store, selection, alone=alone)
    if found.unseen:
        warn(
            f"{found.unseen} of the names found cannot be seen from these scopes "
            "(--all-projects looks everywhere)."
        )
    return found

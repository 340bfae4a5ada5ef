"""The part of the graph that a question is about, found without ever loading the whole store.

A selection begins with scopes (the project's and the global one), with names, or with both; it
leaves messages out unless they are asked for, and it refuses to grow past a number of names. What
is done with the part found is in ``walk``, ``rank``, ``check``, ``export``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, Refused
from hypatia_mem.model import normal_predicate
from hypatia_mem.store import edges as reading
from hypatia_mem.store.edges import Direction, Edge, Node, View

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "MAX_NODES",
    "Found",
    "Selection",
    "Subgraph",
    "ends_of",
    "refuse_size",
    "resolve",
    "rings",
    "select",
    "view_of",
]

MAX_NODES = 5_000
# A statement a hop is cheap for a few hops; a long chain is read as a whole, if it is not huge.
_HOPS_BY_SQL = 12
_IN_MEMORY = 20  # times the number of names that may be taken


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of the graph is meant.

    ``scopes`` None means every project. ``near`` are names as a person writes them; without any,
    all of the scopes is meant. ``depth`` is how many statements away from them is still near.
    ``named_by`` are rows of a query: names that may turn out not to be seen from here.
    """

    scopes: tuple[str, ...] | None
    near: tuple[str, ...] = ()
    named_by: tuple[str, ...] | None = None
    depth: int = 1
    direction: Direction = "both"
    predicates: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    messages: bool = False
    labels: bool = False
    max_nodes: int = MAX_NODES


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Names and the statements among them, both in a stable order; ``seeds`` is where it began."""

    nodes: dict[str, Node]
    edges: list[Edge]
    seeds: tuple[str, ...] = ()
    unseen: int = 0  # rows of the query that cannot be seen from these scopes


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: ``name``, and what else it is a synonym of (of which nothing is used)."""

    asked: str
    name: str
    also: tuple[str, ...] = ()


def resolve(store: Store, asked: str, scopes: Sequence[str] | None) -> Found:
    """Return the name that ``asked`` means: itself, or the one thing that has it as a synonym.

    Raises NotFound (with names that look like it), Refused when it is a synonym of several.
    """
    called = [name for name in reading.names_called(store, asked, scopes) if name != asked]
    if reading.named(store, asked, scopes):
        return Found(asked, asked, tuple(called))
    if len(called) == 1:
        return Found(asked, called[0])
    if called:
        raise Refused(
            f"{asked!r} is a synonym of {_listed(called)}",
            hint="Say which of them is meant.",
        )
    near = reading.names_near(store, asked, scopes)
    raise NotFound(
        f"nothing called {asked[:80]!r} is in the graph here"
        + (f"; did you mean {_listed(near, 'or')}?" if near else ""),
        hint="It may belong to another project: --all-projects looks there too.",
    )


def view_of(store: Store, selection: Selection, spared: Iterable[str] = ()) -> View:
    """Return what a selection lets see; NotFound for a predicate that no statement has."""
    known: dict[str, int] = {}
    if selection.predicates or selection.without:
        known = reading.predicates(store, selection.scopes)
    return View(
        scopes=selection.scopes,
        messages=selection.messages,
        labels=selection.labels,
        predicates=_meant(selection.predicates, known, strict=True),
        without=_meant(selection.without, known, strict=False),
        spared=tuple(spared),
    )


def select(store: Store, selection: Selection, *, alone: bool = False) -> Subgraph:
    """Return the part of the graph that is meant; ``alone`` adds entries without statements.

    Raises NotFound, Refused (a synonym of several things, or more names than ``max_nodes``).
    """
    if selection.near or selection.named_by is not None:
        return _around(store, selection)
    view = view_of(store, selection)
    count = reading.count_names(store, view)
    if count > selection.max_nodes:
        raise refuse_size(selection.max_nodes, count)
    found = reading.edges_all(store, view)
    names = _ends(found)
    nodes = reading.nodes_of(store, names, selection.scopes)
    if alone and not selection.predicates:
        for node in reading.entries_of(store, view, selection.max_nodes + 1):
            nodes.setdefault(node.name, node)
        if len(nodes) > selection.max_nodes:
            raise refuse_size(selection.max_nodes, len(nodes))
    return Subgraph(nodes, found)


def rings(
    store: Store, view: View, seeds: Sequence[str], direction: Direction, most: int
) -> Iterator[tuple[list[Edge], list[str]]]:
    """Grow from ``seeds`` a hop at a time: yields (edges touching the last ring, new names).

    Ends after a hop that reached nothing new. Raises Refused at more than ``most`` names.
    """
    seen = set(seeds)
    frontier = list(seeds)
    index: dict[str, list[Edge]] | None = None
    for hop in itertools.count():
        if not frontier:
            return
        if hop == _HOPS_BY_SQL and reading.count_names(store, view) <= _IN_MEMORY * most:
            index = _by_end(reading.edges_all(store, view), direction)
        if index is None:
            touching = reading.edges_touching(store, view, frontier, direction)
        else:
            found = {edge.triple: edge for name in frontier for edge in index.get(name, ())}
            touching = list(found.values())
        frontier = [name for name in _ends(touching) if name not in seen]
        seen.update(frontier)
        if len(seen) > most:
            raise refuse_size(most)
        yield touching, frontier


def ends_of(store: Store, triples: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the two ends of each of these statements that is not withheld, by its key."""
    return {key: (one.subject, one.object) for key, one in store.live_statements(triples)}


def refuse_size(most: int, count: int | None = None) -> Refused:
    """Return the refusal of a part that is too large, with the ways to a smaller one.

    ``count`` is how many names all of it has; None while it grows from some of them.
    """
    number = f"{count:,}" if count is not None else f"more than {most:,}"
    begin = "begin at a name (--near NAME), at a query or a search; " if count is not None else ""
    return Refused(
        f"this part of the graph holds {number} names, and at most {most:,} are taken at once",
        hint=f"Take less of it: {begin}keep to some predicates (--predicate P, --except P), to one "
        "scope (--scope S), to a smaller --depth; or take more with --max-nodes N.",
    )


# ----------------------------------------------------------------------------------------------


def _around(store: Store, selection: Selection) -> Subgraph:
    seeds = [resolve(store, name, selection.scopes).name for name in selection.near]
    unseen = 0
    for name in selection.named_by or ():
        if reading.named(store, name, selection.scopes):
            seeds.append(name)
        else:
            unseen += 1
    seeds = list(dict.fromkeys(seeds))
    view = view_of(store, selection, seeds)
    if len(seeds) > selection.max_nodes:
        raise refuse_size(selection.max_nodes, len(seeds))
    seen = dict.fromkeys(seeds)
    growth = rings(store, view, seeds, selection.direction, selection.max_nodes)
    for _, reached in itertools.islice(growth, selection.depth):
        seen |= dict.fromkeys(reached)
    view = replace(view, spared=tuple(seen))
    found = reading.edges_among(store, view, seen) if seen else []
    return Subgraph(
        reading.nodes_of(store, seen, selection.scopes), found, tuple(seeds), unseen=unseen
    )


def _by_end(found: Iterable[Edge], direction: Direction) -> dict[str, list[Edge]]:
    index: dict[str, list[Edge]] = {}
    for edge in found:
        if direction in ("out", "both"):
            index.setdefault(edge.subject, []).append(edge)
        if direction in ("in", "both"):
            index.setdefault(edge.object, []).append(edge)
    return index


def _ends(found: Iterable[Edge]) -> list[str]:
    return list(dict.fromkeys(end for edge in found for end in (edge.subject, edge.object)))


def _meant(asked: Sequence[str], known: dict[str, int], *, strict: bool) -> tuple[str, ...]:
    """Return every stored spelling of the predicates asked for."""
    meant: list[str] = []
    for one in asked:
        normal = normal_predicate(one)
        spellings = [name for name in known if name == one or normal_predicate(name) == normal]
        if strict and not spellings:
            most = sorted(known, key=lambda name: (-known[name], name))[:8]
            raise NotFound(
                f"no statement here has the predicate {one!r}",
                hint=f"There are: {', '.join(most)}." if most else "There are no statements yet.",
            )
        meant += spellings
    return tuple(dict.fromkeys(meant))


def _listed(names: Sequence[str], joiner: str = "and") -> str:
    shown = [repr(name) for name in names[:8]]
    if len(names) > 8:
        shown.append(f"{len(names) - 8} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joiner} {shown[-1]}"

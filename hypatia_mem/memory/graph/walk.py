"""Walking the graph: who stands next to a name, and how two names hang together.

Neighbours and the search for the shortest path read the store a hop at a time, so they answer on a
store of any size; networkx then orders the paths of the part that was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import UsageError
from hypatia_mem.memory.graph.selecting import Found, Selection, resolve, rings, view_of
from hypatia_mem.store import edges as reading
from hypatia_mem.store.edges import Direction, Edge, Node, View

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Path", "Paths", "Reached", "Step", "neighbours", "paths"]

_BACK: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


@dataclass(frozen=True, slots=True)
class Reached:
    """A name, how many statements away it is, and those that lead to it from one hop nearer."""

    node: Node
    hop: int
    via: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """From one name of a path to the next; ``proof`` are the statements that say so."""

    start: str
    end: str
    proof: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A simple path: no name twice."""

    steps: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the path in order."""
        return (self.steps[0].start, *(step.end for step in self.steps))


@dataclass(frozen=True, slots=True)
class Paths:
    """What was found between two names; no path at all is an answer too."""

    start: Found
    end: Found
    paths: tuple[Path, ...]


def neighbours(store: Store, selection: Selection, asked: str) -> tuple[Found, list[Reached]]:
    """Return what stands within ``selection.depth`` statements of a name, nearest first.

    Each name comes once, at its least distance. Raises NotFound, Refused (see ``graph.select``).
    """
    start = resolve(store, asked, selection.scopes)
    view = _view(store, selection, start.name)
    found: list[tuple[str, int, tuple[Edge, ...]]] = []
    growth = rings(store, view, [start.name], selection.direction, selection.max_nodes)
    for hop, (touching, reached) in enumerate(islice(growth, selection.depth), start=1):
        via: dict[str, list[Edge]] = {name: [] for name in reached}
        for edge in touching:
            for _, far in _ways(edge, selection.direction):
                if far in via:
                    via[far].append(edge)
        found += [(name, hop, tuple(via[name])) for name in reached]
    nodes = reading.nodes_of(store, [name for name, _, _ in found], selection.scopes)
    return start, [Reached(nodes[name], hop, edges) for name, hop, edges in found]


def paths(store: Store, selection: Selection, a: str, b: str, *, most: int = 1) -> Paths:
    """Return up to ``most`` simple paths from ``a`` to ``b``, shortest first.

    For one path the graph is searched from both ends; for several all that can be reached from
    ``a`` is taken. Raises NotFound, Refused, and UsageError when both names mean the same thing.
    """
    start = resolve(store, a, selection.scopes)
    end = resolve(store, b, selection.scopes)
    if start.name == end.name:
        raise UsageError(f"{a!r} and {b!r} are the same thing: {start.name!r}")
    view = _view(store, selection, start.name, end.name)
    if most == 1:
        found = _meeting(store, view, selection, start.name, end.name)
    else:
        found = _reachable(store, view, selection, start.name)
    way = selection.direction
    return Paths(start, end, tuple(_simple_paths(found, start.name, end.name, way, most)))


# ----------------------------------------------------------------------------------------------


def _view(store: Store, selection: Selection, *names: str) -> View:
    """Return the view of a question about ``names``; one about a message sees messages."""
    view = view_of(store, selection, names)
    kinds = {node.kind for node in reading.nodes_of(store, names, selection.scopes).values()}
    return replace(view, messages=True) if "message" in kinds else view


def _ways(edge: Edge, direction: Direction) -> Iterator[tuple[str, str]]:
    """Yield (from, to) for each way in which an edge may be walked."""
    if direction in ("out", "both"):
        yield edge.subject, edge.object
    if direction in ("in", "both"):
        yield edge.object, edge.subject


def _meeting(store: Store, view: View, selection: Selection, a: str, b: str) -> list[Edge]:
    """Grow from both ends, the smaller side first, until they meet; the edges seen.

    A hub at one end does not make the search large then. The sides grow by whole rings, so where
    they first meet, a shortest path has been seen.
    """
    sides = [
        rings(store, view, [a], selection.direction, selection.max_nodes),
        rings(store, view, [b], _BACK[selection.direction], selection.max_nodes),
    ]
    seen: list[set[str]] = [{a}, {b}]
    last = [1, 1]
    found: dict[str, Edge] = {}
    side = 1
    while True:
        side = 1 - side if last[0] == last[1] else last.index(min(last))
        step = next(sides[side], None)
        if step is None:
            return []
        touching, reached = step
        found |= {edge.triple: edge for edge in touching}
        last[side] = len(reached)
        seen[side].update(reached)
        if not seen[1 - side].isdisjoint(reached):
            return list(found.values())


def _reachable(store: Store, view: View, selection: Selection, a: str) -> list[Edge]:
    found: dict[str, Edge] = {}
    for touching, _ in rings(store, view, [a], selection.direction, selection.max_nodes):
        found |= {edge.triple: edge for edge in touching}
    return list(found.values())


def _simple_paths(
    found: Iterable[Edge], a: str, b: str, direction: Direction, most: int
) -> Iterator[Path]:
    import networkx as nx

    proofs: dict[tuple[str, str], list[Edge]] = {}
    for edge in sorted(found, key=lambda edge: (edge.created_at, edge.triple)):
        for near, far in _ways(edge, direction):
            if near != far:
                proofs.setdefault((near, far), []).append(edge)
    graph: Any = nx.DiGraph()
    graph.add_edges_from(proofs)
    if a not in graph or b not in graph:
        return
    try:
        ways = nx.shortest_simple_paths(graph, a, b)
        for names in islice(ways, most):
            yield Path(tuple(Step(u, v, tuple(proofs[u, v])) for u, v in pairwise(names)))
    except nx.NetworkXNoPath:
        return

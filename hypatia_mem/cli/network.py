"""``graph``: questions about how things hang together, on a part of the graph, never on all of it.

The part is chosen by options that the commands share (``selecting``).
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hypatia_mem.cli import concepts, context, network_upkeep, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import MOST, AsJson, Limit
from hypatia_mem.cli.output import columns, print_json, say, warn
from hypatia_mem.cli.selecting import AROUND, PART, found_by, selecting, taken
from hypatia_mem.errors import UsageError
from hypatia_mem.memory.graph.selecting import Selection

if TYPE_CHECKING:
    from hypatia_mem.memory.graph.selecting import Found
    from hypatia_mem.memory.graph.walk import Path as Way
    from hypatia_mem.memory.graph.walk import Paths
    from hypatia_mem.store.edges import Direction, Edge, Node

__all__ = ["graph"]

graph = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Ask how things hang together: neighbours, paths, communities, what is central.

    Reads the current project and the global scope. Messages are left out unless --messages asks
    for them, and statements that only say what kind an entry is (X is_a rule) unless --labels.
    A name may be given by any of its synonyms.

    \b
    Example:
      hypatia-mem graph path "retry queue" PostgreSQL
    """,
)

_Name = Annotated[str, typer.Argument(help="A name, or one of its synonyms.", show_default=False)]
_Depth: TypeAlias = Annotated[
    int, typer.Option("--depth", min=1, max=100, help="How many statements away.")
]
_Direction: TypeAlias = Annotated[
    str,
    typer.Option(
        "--direction", help="Follow statements out (from subject to object), in, or both ways."
    ),
]


def _way(direction: str) -> Direction:
    match direction:
        case "out" | "in" | "both":
            return direction
        case _:
            raise UsageError(f"--direction is out, in or both, not {direction[:40]!a}")


# --- neighbours and paths -------------------------------------------------------------------------


@graph.command("neighbors", cls=Leaf)
@selecting()
def neighbors(
    name: _Name,
    depth: _Depth = 1,
    direction: _Direction = "both",
    limit: Limit = 100,
    as_json: AsJson = False,
    *,
    selection: Selection,
) -> None:
    """List what stands within some statements of a name, nearest first.

    \b
    Example:
      hypatia-mem graph neighbors PostgreSQL --depth 2 --direction in --predicate uses
    """
    from dataclasses import replace

    from hypatia_mem.memory.graph.walk import neighbours
    from hypatia_mem.store.connection import open_store

    asked = replace(selection, depth=depth, direction=_way(direction))
    with open_store(context.home(), write=False) as store:
        start, found = neighbours(store, asked, values.checked(name, "the name"))
    _say_meaning(start)
    if as_json:
        print_json(
            {
                "name": start.name,
                "total": len(found),
                "neighbors": [
                    {**_short(one.node), "hop": one.hop, "via": [_edge(edge) for edge in one.via]}
                    for one in found[:limit]
                ],
            }
        )
    elif found:
        rows = [
            (str(one.hop), one.node.name, _kind(one.node), _said(one.via)) for one in found[:limit]
        ]
        say(columns(rows))
        if len(found) > limit:
            say(f"  ({len(found)} in all, the first {limit} shown)")
    else:
        say(f"No statement leads on from {start.name!r} here." + _maybe_messages(selection))


@graph.command("path", cls=Leaf)
@selecting()
def path(
    a: _Name,
    b: _Name,
    all_: Annotated[
        int, typer.Option("--all", min=1, max=1000, help="Up to so many paths, shortest first.")
    ] = 1,
    direction: _Direction = "both",
    as_json: AsJson = False,
    *,
    selection: Selection,
) -> None:
    """Find the shortest path between two names, with the statements that prove each step.

    Exit code 1 when there is none.

    \b
    Example:
      hypatia-mem graph path "retry queue" PostgreSQL --all 3 --except is_a
    """
    from dataclasses import replace

    from hypatia_mem.memory.graph.walk import paths
    from hypatia_mem.store.connection import open_store

    asked = replace(selection, direction=_way(direction))
    with open_store(context.home(), write=False) as store:
        found = paths(
            store, asked, values.checked(a, "the name"), values.checked(b, "the name"), most=all_
        )
    _say_meaning(found.start, found.end)
    if as_json:
        print_json(_paths_row(found))
    elif found.paths:
        say("\n\n".join(_path_text(one) for one in found.paths))
    else:
        say(
            f"No path leads from {found.start.name!r} to {found.end.name!r} here."
            + _maybe_messages(selection)
        )
    if not found.paths:
        raise typer.Exit(1)


def _paths_row(found: Paths) -> dict[str, Any]:
    return {
        "from": found.start.name,
        "to": found.end.name,
        "paths": [
            {
                "length": len(one.steps),
                "names": list(one.names),
                "steps": [
                    {
                        "from": step.start,
                        "to": step.end,
                        "statements": [_edge(edge) for edge in step.proof],
                    }
                    for step in one.steps
                ],
            }
            for one in found.paths
        ],
    }


def _path_text(one: Way) -> str:
    line = one.steps[0].start
    for step in one.steps:
        edge = step.proof[0]
        arrow = f"--{edge.predicate}-->" if edge.subject == step.start else f"<--{edge.predicate}--"
        line += f" {arrow} {step.end}"
    steps = "1 step" if len(one.steps) == 1 else f"{len(one.steps)} steps"
    proof = [f"  {_sentence(edge)}" for step in one.steps for edge in step.proof]
    return "\n".join([f"{steps}: {line}", *proof])


# --- communities, centre, neighbourhood -----------------------------------------------------------


@graph.command("communities", cls=Leaf)
@selecting(*PART)
def communities(
    members: Annotated[
        int, typer.Option("--members", min=1, max=MOST, help="Show so many names of each.")
    ] = 8,
    limit: Limit = 20,
    as_json: AsJson = False,
    *,
    selection: Selection,
) -> None:
    """Find what belongs together: groups of names, each under the terms that tell it apart.

    \b
    Example:
      hypatia-mem graph communities --near PostgreSQL --depth 3
    """
    from hypatia_mem.memory.graph import rank as graph_rank

    found = graph_rank.communities(taken(selection))
    if as_json:
        print_json(
            {
                "total": len(found),
                "communities": [
                    {
                        "title": one.title,
                        "terms": list(one.terms),
                        "size": len(one.members),
                        "statements": one.edges,
                        "members": [_short(node) for node in one.members],
                    }
                    for one in found[:limit]
                ],
            }
        )
        return
    if not found:
        say("There is nothing here that hangs together.")
    for one in found[:limit]:
        names = [node.name for node in one.members[:members]]
        rest = len(one.members) - len(names)
        say(f"{one.title}  ({_count(one.members, 'name')}, {_count(one.edges, 'statement')})")
        say("  " + ", ".join([*names, *([f"{rest} more"] if rest else [])]))
    if len(found) > limit:
        say(f"({len(found)} in all, the {limit} largest shown)")


@graph.command("central", cls=Leaf)
@selecting(*PART)
def central(limit: Limit = 20, as_json: AsJson = False, *, selection: Selection) -> None:
    """Rank names by how much leads to them (PageRank).

    \b
    Example:
      hypatia-mem graph central --limit 10 --except uses
    """
    from hypatia_mem.memory.graph import rank as graph_rank

    found = graph_rank.central(taken(selection))
    if as_json:
        print_json(
            [
                {
                    **_short(one.node),
                    "rank": round(one.rank, 9),
                    "out": one.out_edges,
                    "in": one.in_edges,
                }
                for one in found[:limit]
            ]
        )
    elif found:
        rows = [
            (f"{one.rank:.4f}", one.node.name, _kind(one.node), f"{one.in_edges} in, "
             f"{one.out_edges} out")
            for one in found[:limit]
        ]  # fmt: skip
        say(columns(rows))
    else:
        say("There are no statements here.")


@graph.command("around", cls=Leaf)
@selecting(*AROUND)
def around(
    expression: Annotated[
        str | None,
        typer.Argument(
            help="A JSE expression; - reads it from standard input, @FILE from a file.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    selection: Selection,
) -> None:
    """Show what surrounds the rows of a query, or the best hits of a search.

    \b
    Example:
      hypatia-mem graph around '["$knowledge", ["$contains", "tags", "rule"]]' --depth 2
      hypatia-mem graph around --search "connection pool"
    """
    if (expression is None) == (selection.named_by is None):
        raise UsageError(
            "say what to look around: either an expression or --search TEXT",
            hint="Around a name: hypatia-mem graph neighbors NAME",
        )
    found = taken(found_by(selection, expression, None) if expression is not None else selection)
    if as_json:
        from hypatia_mem.memory.graph.export import as_data

        print_json({**as_data(found), "seeds": list(found.seeds)})
        return
    if not found.seeds:
        say("No results found.")
        return
    size = f"{_count(found.nodes, 'name')}, {_count(found.edges, 'statement')}"
    say(f"{len(found.seeds)} found; with what is around: {size}")
    for edge in found.edges:
        say(f"  {_sentence(edge)}")


graph.command("check", cls=Leaf)(network_upkeep.check)
graph.command("export", cls=Leaf)(network_upkeep.export)
graph.command("merge", cls=Leaf)(network_upkeep.merge)
graph.command("dismiss", cls=Leaf)(concepts.dismiss)
graph.command("restore", cls=Leaf)(concepts.restore)
graph.command("remove", cls=Leaf)(concepts.remove)


# --- texts ----------------------------------------------------------------------------------------


def _say_meaning(*found: Found) -> None:
    for one in found:
        if one.asked != one.name:
            warn(f"{one.asked} is {one.name}.")
        elif one.also:
            warn(
                f"{one.name} is a name of its own, and a synonym of {', '.join(one.also)}: "
                f"to make them one, hypatia-mem graph merge (see its --dry-run)."
            )


def _maybe_messages(selection: Selection) -> str:
    return "" if selection.messages else " (Messages are left out; --messages takes them in.)"


def _count(things: Sized | int, noun: str) -> str:
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _kind(node: Node) -> str:
    return f"({node.kind})"


def _said(edges: Sequence[Edge]) -> str:
    more = f"  (+{len(edges) - 1})" if len(edges) > 1 else ""
    return _triple(edges[0]) + more


def _triple(edge: Edge) -> str:
    return f"({edge.subject}, {edge.predicate}, {edge.object})"


def _sentence(edge: Edge) -> str:
    words = " ".join(edge.content.split())
    words = words if len(words) <= 100 else words[:99] + "…"
    return f"{_triple(edge)}  {words}".rstrip()


def _short(node: Node) -> dict[str, Any]:
    return {"name": node.name, "kind": node.kind, "tags": list(node.tags)}


def _edge(edge: Edge) -> dict[str, Any]:
    from hypatia_mem.memory.graph.export import edge_data

    return edge_data(edge)

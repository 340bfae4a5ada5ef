"""Whether the graph is what its own conventions promise, and what to do where it is not.

The conventions: a message ``belongTo`` its session; a summary leads by ``summary`` to its items,
each a level lower, and in the end to what was said; a work unit is ``derivedFrom`` messages; what
``supersedes`` or ``extends`` something does not come round to itself. Free names at the ends of
other statements are no fault: either end may name something that has no entry.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import normal_predicate
from hypatia_mem.store import edges as reading
from hypatia_mem.store import structure

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Finding", "check"]

_PROGRAM = "hypatia-mem"
_OWN_NAME = re.compile(r"(msg-.+-\d+|session-.+|wu-\d{4}-.+)", re.DOTALL)
_LEVEL = re.compile(r"summary (\d+)")
# Which predicates tell an order, and what is wrong with a circle of them.
_ORDERS = (
    (("summary",), "summarise each other"),
    (("supersedes", "extends"), "supersede or extend each other"),
    (("derivedFrom",), "are derived from each other"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong (``serious``) or that looks odd, in a sentence, with its remedy."""

    kind: str
    sentence: str
    remedy: str
    names: tuple[str, ...] = ()
    serious: bool = True


def check(store: Store, scopes: Sequence[str] | None) -> list[Finding]:
    """Return what is wrong in these scopes (None: everywhere), the serious first."""
    found = [
        *_dangling(store, scopes),
        *_misplaced(store, scopes),
        *_unlinked(store, scopes),
        *_circles(store, scopes),
        *_summaries(store, scopes),
        *_sourceless(store, scopes),
        *_shared(store, scopes),
        *_spellings(store, scopes),
    ]
    return sorted(found, key=lambda one: not one.serious)


# ----------------------------------------------------------------------------------------------


def _dangling(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    for row in structure.dangling(store, scopes):
        missing = row["missing"]
        own = row["predicate"] in ("belongTo", "summary") or any(
            _OWN_NAME.fullmatch(name) for name in missing
        )
        yield Finding(
            "dangling",
            f"{_triple(row)} leads to nothing: there is no entry called "
            f"{' or '.join(repr(name) for name in missing)}.",
            _delete(row["subject"], row["predicate"], row["object"])
            + ("" if own else " (or create the entry, or leave it: a free name is allowed here)"),
            tuple(missing),
            serious=own,
        )


def _misplaced(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    for row in structure.misplaced(store, scopes):
        yield Finding(
            "misplaced",
            f"{_triple(row)}: belongTo leads from a message to its session, here from a "
            f"{row['subject_kind']} to a {row['object_kind']}.",
            _delete(row["subject"], row["predicate"], row["object"]),
            (row["subject"], row["object"]),
        )


def _unlinked(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    for row in structure.unlinked(store, scopes):
        count, session = row["messages"], row["session"]
        messages = "1 message" if count == 1 else f"{count} messages"
        more = "" if count == 1 else f" (the first of {count})"
        yield Finding(
            "unlinked",
            f"{messages} of {session!r} {'is' if count == 1 else 'are'} not linked to it.",
            _create(row["first"], "belongTo", session) + more,
            (session,),
        )


def _sourceless(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    for name in structure.sourceless(store, scopes):
        yield Finding(
            "sourceless",
            f"the work unit {name!r} is derived from nothing: its source is not told, or gone.",
            _create(name, "derivedFrom", "msg-<SESSION_ID>-<TURN>"),
            (name,),
        )


def _circles(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    import networkx as nx

    told = structure.structural_edges(store, scopes)
    for predicates, what in _ORDERS:
        pairs = {(a, b): predicate for a, predicate, b in told if predicate in predicates}
        graph: Any = nx.DiGraph()
        graph.add_edges_from(pairs)
        for group in _circular(graph):
            way = [a for a, _ in nx.find_cycle(graph.subgraph(group))]
            start = way.index(min(way))  # the same circle is told the same way every time
            way = way[start:] + way[:start]
            a, b = way[-1], way[0]
            text = " -> ".join(repr(name) for name in [*way, way[0]][:8])
            yield Finding(
                "circle",
                f"{len(way)} names {what}: {text}."
                if len(way) > 1
                else f"{way[0]!r} leads to itself by {pairs[a, b]!r}.",
                _delete(a, pairs[a, b], b) + " (or another of its statements)"
                if len(way) > 1
                else _delete(a, pairs[a, b], b),
                tuple(way),
            )


def _circular(graph: Any) -> list[list[str]]:  # noqa: ANN401 - networkx has no types
    import networkx as nx

    groups = [
        sorted(group)
        for group in nx.strongly_connected_components(graph)
        if len(group) > 1 or any(graph.has_edge(name, name) for name in group)
    ]
    return sorted(groups)


def _summaries(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    known = {row["name"]: row for row in structure.summaries(store, scopes)}
    items: dict[str, list[str]] = {name: [] for name in known}
    for subject, predicate, object_ in structure.structural_edges(store, scopes):
        if predicate == "summary" and subject in known:
            items[subject].append(object_)
    grounded = _grounded(known, items)
    for name, row in known.items():
        if not row["items"]:
            yield Finding(
                "unreachable",
                f"the summary {name!r} leads to none of the things it summarises.",
                _create(name, "summary", "<ITEM>") + f", or: {_PROGRAM} knowledge-delete "
                f"{shlex.quote(name)}",
                (name,),
            )
        elif name not in grounded:
            yield Finding(
                "unreachable",
                f"from the summary {name!r} no way leads down to anything that was said.",
                f"{_PROGRAM} graph neighbors {shlex.quote(name)} --direction out --depth 9",
                (name,),
            )
        yield from _levels(name, row, items[name], known)


def _grounded(
    known: Mapping[str, Mapping[str, Any]], items: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the summaries from which something is reached that is no summary."""
    above: dict[str, list[str]] = {}
    for name, below in items.items():
        for item in below:
            above.setdefault(item, []).append(name)
    reached = {name for name, row in known.items() if row["ground"]}
    frontier = list(reached)
    while frontier:
        name = frontier.pop()
        for higher in above.get(name, ()):
            if higher not in reached:
                reached.add(higher)
                frontier.append(higher)
    return reached


def _levels(
    name: str,
    row: Mapping[str, Any],
    below: Iterable[str],
    known: Mapping[str, Mapping[str, Any]],
) -> Iterator[Finding]:
    level = _level(row["tags"])
    for item in below:
        other = _level(known[item]["tags"]) if item in known and item != name else None
        if level is not None and other is not None and other >= level:
            yield Finding(
                "level",
                f"the summary {name!r} of level {level} has {item!r} of level {other} below it.",
                _delete(name, "summary", item),
                (name, item),
            )


def _level(tags: Iterable[str]) -> int | None:
    numbers = [int(found[1]) for tag in tags if (found := _LEVEL.fullmatch(tag))]
    return max(numbers, default=None)


def _shared(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    for row in structure.shared_names(store, scopes):
        alias, names = row["alias"], row["names"]
        keep = next((name for name in names if name != alias), names[0])
        other = alias if alias in names else names[1]
        yield Finding(
            "ambiguous",
            f"{alias!r} means {_both(names)}.",
            f"if they are one thing: {_PROGRAM} graph merge {shlex.quote(keep)} "
            f"{shlex.quote(other)} --dry-run",
            tuple(names),
            serious=False,
        )


def _spellings(store: Store, scopes: Sequence[str] | None) -> Iterator[Finding]:
    spelt: dict[str, list[str]] = {}
    counts = reading.predicates(store, scopes)
    for predicate in counts:
        spelt.setdefault(normal_predicate(predicate), []).append(predicate)
    for normal, spellings in sorted(spelt.items()):
        if len(spellings) > 1:
            told = _listed([f"{one} ({counts[one]})" for one in spellings])
            yield Finding(
                "spelling",
                f"one predicate is spelt in {len(spellings)} ways: {told}.",
                f"an early version stored them; {normal} is what is stored now, and asking for one "
                "finds all",
                tuple(spellings),
                serious=False,
            )


def _triple(row: Mapping[str, Any]) -> str:
    return f"({row['subject']}, {row['predicate']}, {row['object']})"


def _delete(*parts: str) -> str:
    return f"{_PROGRAM} statement-delete " + " ".join(shlex.quote(part) for part in parts)


def _create(*parts: str) -> str:
    return f"{_PROGRAM} statement-create " + " ".join(shlex.quote(part) for part in parts)


def _both(names: Sequence[str]) -> str:
    return _listed([repr(name) for name in names])


def _listed(texts: Sequence[str]) -> str:
    shown = list(texts[:6])
    if len(texts) > 6:
        shown.append(f"{len(texts) - 6} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]

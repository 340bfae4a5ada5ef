"""The same answers without a database: a parsed query over rows in memory.

Rows are those that ``query`` prints and an export holds. What the SQL leaves to the store's views
is up to the caller: rows that are withheld are not given. The semantics are those of ``compiler``,
written a second time in Python with three truth values (None: unknown), so that each can be held
against the other.

>>> from hypatia_mem.jse.parser import parse
>>> row = {"name": "Rust", "content": {"data": "", "tags": ["lang"]}, "created_at": "2025-01-01"}
>>> query = parse('["$knowledge", ["$contains", "tags", "lang"]]')
>>> [found["name"] for found in select(query, Rows(entries=[row]))]
['Rust']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.compiler import SearchHits, scaled
from hypatia_mem.jse.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    ContentIs,
    Field,
    Has,
    Json,
    JsonContains,
    KHop,
    Like,
    Not,
    Or,
    Query,
    Search,
    Similar,
    Sort,
    Triple,
)
from hypatia_mem.jse.pointing import fail
from hypatia_mem.jse.records import Record, number, project
from hypatia_mem.jse.truths import Truth, every, holds, opposite, some, value_of
from hypatia_mem.jse.walking import ends, reached
from hypatia_mem.model import normal_predicate

__all__ = ["Rows", "select"]

Test: TypeAlias = Callable[[Record], Truth]
_Key: TypeAlias = Callable[[Record], Any]
_Number: TypeAlias = Callable[[Record], float | None] | None
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as everywhere inside


@dataclass(frozen=True, slots=True)
class Rows:
    """What is to be searched, in the published shape.

    A knowledge row may carry its ``turn``, by which messages of the same instant are ordered.
    ``known_at`` returns the rows as they were known at a time; without it ``as_known_at`` is
    refused.
    """

    entries: Sequence[Mapping[str, Any]] = ()
    statements: Sequence[Mapping[str, Any]] = ()
    known_at: Callable[[datetime], Rows] | None = None


@dataclass(slots=True)
class _World:
    query: Query
    search: SearchHits | None
    similar: SearchHits | None
    entries: list[Record]
    statements: list[Record]
    said: list[Record]  # the statements of every scope
    rankings: list[tuple[str, dict[str, float], bool]] = field(default_factory=list)
    walks: list[dict[str, int]] = field(default_factory=list)
    negated: bool = False


def select(
    query: Query,
    rows: Rows,
    search: SearchHits | None = None,
    similar: SearchHits | None = None,
    *,
    scopes: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows a query selects, as ``query`` prints them.

    ``search`` and ``similar`` answer ``$search`` and ``$similar``; ``scopes``: only rows in one of
    these.

    Raises:
        ExpressionError: the query needs a search or a history that is not there.
    """
    world = _world(query, rows, search, similar, scopes)
    test = _test(query.condition, world)
    records = world.entries if query.catalog == "knowledge" else world.statements
    if query.pending_tag is not None:
        records = _pending(world, query.pending_tag)
    found = [record for record in records if test(record) is True]
    if query.options.count:
        return [{"count": len(found)}]
    score, hop = _scores(world), _hops(world)
    found.sort(key=lambda record: _usual(record, query))
    for key, descending in reversed(_keys(query, score, hop)):
        _sort_by(found, key, descending)
    stop = None if query.options.limit is None else query.options.offset + query.options.limit
    return [_published(query, record, score, hop) for record in found[query.options.offset : stop]]


def _world(
    query: Query,
    rows: Rows,
    search: SearchHits | None,
    similar: SearchHits | None,
    scopes: Sequence[str] | None,
) -> _World:
    known = query.options.as_known_at
    if known is not None:
        if rows.known_at is None:
            raise ExpressionError("as_known_at needs earlier states, and these rows have none")
        rows = rows.known_at(known)

    def valid(catalog: str, given: Iterable[Mapping[str, Any]]) -> list[Record]:
        records = (Record(catalog, row) for row in given)
        return [record for record in records if _valid(record, query.options.as_of)]

    def readable(records: list[Record]) -> list[Record]:
        if scopes is None:
            return records
        return [record for record in records if set(record.items("scopes")) & set(scopes)]

    said = valid("statement", rows.statements)
    entries = readable(valid("knowledge", rows.entries))
    return _World(query, search, similar, entries, readable(said), said)


def _valid(record: Record, at: datetime | None) -> bool:
    if at is None:
        return True
    start, end = record.time("tr_start"), record.time("tr_end")
    return (start is None or start <= at) and (end is None or end > at)


def _pending(world: _World, tag: str) -> list[Record]:
    done = {s.text("object") for s in world.said if s.text("predicate") == "summary"}
    return [
        entry
        for entry in world.entries
        if tag in entry.items("tags") and entry.text("name") not in done
    ]


# --- order and shape ------------------------------------------------------------------------------


def _usual(record: Record, query: Query) -> tuple[Any, ...]:
    """Return the order of rows that nothing else puts in order; it ends with the key."""
    if query.options.order:
        return (record.key,)
    age = _EPOCH - (record.time("created_at") or _EPOCH)
    if query.catalog == "statement":
        return (age, *(record.text(part) for part in ("subject", "predicate", "object")))
    turn = record.row.get("turn")
    if query.pending_tag is not None:
        return (-age, turn is None, turn or 0, record.key)
    return (age, turn is None, -(turn or 0), record.key)


def _keys(query: Query, score: _Number, hop: _Number) -> list[tuple[_Key, bool]]:
    """Return (key, descending) in the order they count; a row without a key comes last."""
    if query.options.order:
        return [key for sort in query.options.order for key in _sort_keys(sort, score, hop)]
    keys: list[tuple[_Key, bool]] = []
    if score is not None:
        keys.append((score, True))
    if hop is not None:
        keys += [(hop, False), (lambda record: record.key, False)]
    return keys


def _sort_keys(sort: Sort, score: _Number, hop: _Number) -> list[tuple[_Key, bool]]:
    target = sort.field
    if target is None:
        special = score if sort.special == "score" else hop
        return [] if special is None else [(special, sort.descending)]
    if target.kind != "json":
        return [(lambda record: value_of(record, target), sort.descending)]
    return [(_json_key(of, target), sort.descending) for of in _JSON_KEYS]


def _json_key(of: Callable[[Json], Any], target: Field) -> _Key:
    return lambda record: of(record.json(target.rest))


def _as_number(value: Json) -> float | None:
    found = number(value)
    return None if found is None else float(found)


_JSON_KEYS: tuple[Callable[[Json], Any], ...] = (
    _as_number,
    lambda value: value if isinstance(value, str) else None,
    lambda value: value if isinstance(value, bool) else None,
)


def _sort_by(found: list[Record], key: _Key, descending: bool) -> None:
    there = [record for record in found if key(record) is not None]
    rest = [record for record in found if key(record) is None]
    found[:] = [*sorted(there, key=key, reverse=descending), *rest]


def _scores(world: _World) -> _Number:
    counted = [(name, hits) for name, hits, counts in world.rankings if counts]
    if not counted:
        return None
    if len({name for name, _ in counted}) > 1:
        counted = [(name, dict(scaled(list(hits.items())))) for name, hits in counted]

    def score(record: Record) -> float | None:
        found = [hits[record.key] for _, hits in counted if record.key in hits]
        return sum(found) if found else None

    return score


def _hops(world: _World) -> _Number:
    if not world.walks:
        return None

    def hop(record: Record) -> int | None:
        return min((hops[record.key] for hops in world.walks if record.key in hops), default=None)

    return hop


def _published(query: Query, record: Record, score: _Number, hop: _Number) -> dict[str, Any]:
    row = {key: value for key, value in record.row.items() if key != "turn"}
    if score is not None:
        found = score(record)
        row["score"] = None if found is None else round(found, 6)
    if hop is not None:
        row["hop"] = hop(record)
    return project(query.catalog, row, query.options.fields)


# --- conditions -----------------------------------------------------------------------------------


def _test(node: Condition, world: _World) -> Test:
    match node:
        case And(operands) | ContentIs(operands):
            return _both([_test(operand, world) for operand in operands])
        case Or(operands):
            return _either([_test(operand, world) for operand in operands])
        case Not(operand):
            before, world.negated = world.negated, True
            inner = _test(operand, world)
            world.negated = before
            return lambda record: opposite(inner(record))
        case Compare() | Contains() | Has() | Like() | JsonContains():
            return lambda record: holds(node, record)
        case Triple():
            return _triple(node, world)
        case KHop():
            return _k_hop(node, world)
        case Search() | Similar():
            return _ranked(node, world)
        case _:
            assert_never(node)


def _both(tests: Sequence[Test]) -> Test:
    return lambda record: every(test(record) for test in tests)


def _either(tests: Sequence[Test]) -> Test:
    if not tests:
        return lambda record: True
    return lambda record: some(test(record) for test in tests)


def _ranked(node: Search | Similar, world: _World) -> Test:
    similar = isinstance(node, Similar)
    answer = world.similar if similar else world.search
    name = "$similar" if similar else "$search"
    if answer is None:
        index = "vectors" if similar else "the search index"
        fail(node.where, f"{name} needs {index}, and there is none here")
    hits: dict[str, float] = {}
    for key, score in answer(node.text, world.query.catalog):
        hits.setdefault(key, float(score))
    world.rankings.append((name, hits, not world.negated))
    return lambda record: record.key in hits


# --- names and walks ------------------------------------------------------------------------------


def _within(conditions: Sequence[Condition], world: _World) -> Test:
    return _both([_test(condition, world) for condition in conditions])


def _named(world: _World, may: Test) -> list[tuple[str, str]]:
    """Return (name, entry) of the entries that have more than one name."""
    return [
        (name, entry.key)
        for entry in world.entries
        if entry.items("synonyms") and may(entry) is True
        for name in (entry.key, *entry.items("synonyms"))
    ]


def _triple(node: Triple, world: _World) -> Test:
    named = _named(world, _within(node.within, world))

    def fits(part: str, wanted: str) -> Test:
        if part == "predicate":
            return lambda r: _says(r, wanted)
        entries = {entry for name, entry in named if name == wanted}
        names = {wanted, *(name for name, entry in named if entry in entries)}
        return lambda r: r.text(part) in names or wanted in r.items("synonyms", part)

    return _both(
        [
            fits(part, wanted)
            for part, wanted in (
                ("subject", node.subject),
                ("predicate", node.predicate),
                ("object", node.object),
            )
            if wanted is not None
        ]
    )


def _k_hop(node: KHop, world: _World) -> Test:
    may = _within(node.within, world)
    named = _named(world, may)
    entries: dict[str, list[str]] = {}
    for name, entry in named:
        entries.setdefault(name, []).append(entry)
    edges: list[tuple[str, str, str, str]] = []
    for said in world.statements:
        if may(said) is not True or not _says(said, node.predicate):
            continue
        for near, far in ends(node.direction):
            here, there = str(said.text(near)), str(said.text(far))
            names = (here, *said.items("synonyms", near))
            edges += [("name", name, there, said.key) for name in names]
            edges += [("entry", entry, there, said.key) for entry in entries.get(here, ())]
    hops = reached(node.start, node.depth, edges, named)
    if not world.negated:
        world.walks.append(hops)
    return lambda record: record.key in hops


def _says(said: Record, predicate: str | None) -> bool:
    if predicate is None:
        return True
    spoken = {str(said.text("predicate")), *said.items("synonyms", "predicate")}
    return not spoken.isdisjoint((predicate, normal_predicate(predicate)))

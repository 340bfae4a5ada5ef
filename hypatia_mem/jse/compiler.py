"""Nodes to one SELECT: ``(sql, params)``, with fields from a list and every value a parameter (I7).

The compiled query reads the views ``live_entry`` and ``live_statement``, in which nothing withheld
is ever found; with ``as_known_at`` their counterparts ``known_entry(t)`` and
``known_statement(t)``. SQL text is put together from constants only; a field name picks one of
them, a path into JSON travels as a parameter like any value.

``$search`` and ``$similar`` are answered first, by callables the caller brings, and enter the query
as lists of parameters (names and scores). Filters therefore apply before ranking and before the
limit. One ranking's scores are those of the callable; where both kinds rank, each is scaled to its
best and the sum counts.

Unknown is unknown: comparing with null, with a missing field or with JSON null is SQL's NULL, so
neither the condition nor its ``$not`` lets the row in. A list is never missing, only empty;
``$triple``, ``$k-hop`` and ``$json-contains`` are never unknown. Every order ends with the key, so
that pages neither repeat nor lose a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from hypatia_mem.jse.clauses import all_of, any_of, clause
from hypatia_mem.jse.fields import FIELDS
from hypatia_mem.jse.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    ContentIs,
    Has,
    JsonContains,
    KHop,
    Like,
    Not,
    Or,
    Query,
    Search,
    Shown,
    Similar,
    Sort,
    Triple,
)
from hypatia_mem.jse.pointing import fail
from hypatia_mem.jse.records import project
from hypatia_mem.jse.rows import shape_row
from hypatia_mem.jse.sql import (
    TRIPLE,
    Fragment,
    column_sql,
    json_order,
    own_synonyms,
    pairs_of,
    pairs_sql,
)
from hypatia_mem.jse.walking import DEEP, edge_sql, reached, walk_sql
from hypatia_mem.model import normal_predicate

__all__ = ["FIELDS", "Compiled", "Read", "SearchHits", "compile_query", "scaled"]

SearchHits: TypeAlias = Callable[[str, str], Sequence[tuple[str, float]]]
"""``search(text, catalog) -> [(name or triple, score)]``: every hit, best first."""

Read: TypeAlias = Callable[[str, Sequence[Any]], Iterable[Sequence[Any]]]
"""Runs one SELECT with parameters on the store and returns its rows."""

_SELECT = {
    "knowledge": (
        "e.name, e.content, e.format, e.tags, e.synonyms, e.figures, e.scopes, e.created_at, "
        "e.valid_from AS tr_start, e.valid_to AS tr_end"
    ),
    "statement": (
        f"{TRIPLE} AS triple, e.subject, e.predicate, e.object, e.content, e.synonyms, e.scopes, "
        "e.created_at, e.valid_from AS tr_start, e.valid_to AS tr_end"
    ),
}
_NAMED = {"knowledge": ("name",), "statement": ("subject", "object")}
_LIVE = {"knowledge": "live_entry", "statement": "live_statement"}
_KNOWN = {"knowledge": "known_entry(?)", "statement": "known_statement(?)"}
_KEY = {"knowledge": "e.name", "statement": TRIPLE}
# A table, its key, and what leaves of it the rows that the live view has.
_STORED = {
    "knowledge": ("entry", "name", "name NOT IN (SELECT name FROM withheld_entry)"),
    "statement": (
        "statement",
        "triple",
        "trust NOT IN ('candidate', 'rejected') AND expired_at IS NULL"
        " AND subject NOT IN (SELECT name FROM withheld_entry)"
        " AND object NOT IN (SELECT name FROM withheld_entry)",
    ),
}
_FEW = 500  # keys; the engine looks up so many one by one sooner than it reads every row
_NEWEST = {
    "knowledge": "e.created_at DESC, e.turn DESC NULLS LAST, e.name",
    "statement": "e.created_at DESC, e.subject, e.predicate, e.object",
}
_OLDEST = "e.created_at, e.turn NULLS LAST, e.name"
_VALID = "(e.valid_from IS NULL OR e.valid_from <= ?) AND (e.valid_to IS NULL OR e.valid_to > ?)"


@dataclass(frozen=True, slots=True)
class Compiled:
    """One SELECT with its parameters.

    ``ranked`` rows carry a ``score``, ``walked`` ones a ``hop``. ``monotone`` is set when the first
    rows stay the first rows however many further hits a ``$search`` has: a caller may then ask the
    index for few at first. ``count``: the only row is ``{"count": n}``.
    """

    catalog: str
    sql: str
    params: tuple[Any, ...]
    ranked: bool
    monotone: bool
    walked: bool = False
    count: bool = False
    fields: tuple[Shown, ...] = ()

    def shape(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the SELECT as it is published, or the parts that were asked for."""
        if self.count:
            return {"count": row["count"]}
        return project(self.catalog, shape_row(self.catalog, row), self.fields)


@dataclass(slots=True)
class _Table:
    """A table in front of the SELECT, with its parameters."""

    sql: str
    params: list[Any]


@dataclass(slots=True)
class _Context:
    query: Query
    search: SearchHits | None
    similar: SearchHits | None
    scopes: Sequence[str] | None
    read: Read | None
    without: Sequence[str] = ()
    tables: list[_Table] = field(default_factory=list)
    rankings: list[tuple[str, list[tuple[str, float]], bool]] = field(default_factory=list)
    walks: list[int] = field(default_factory=list)
    among: list[list[str]] = field(default_factory=list)  # keys that hold every row, each of these
    number: int = 0
    negated: bool = False
    optional: bool = False
    aside: bool = False  # what is compiled is about other rows than those of the answer
    monotone: bool = True

    @property
    def catalog(self) -> str:
        return self.query.catalog

    def next(self) -> int:
        self.number += 1
        return self.number

    def source(self, catalog: str) -> Fragment:
        """Return the table of all rows that may be read, today or as they were known."""
        known = self.query.options.as_known_at
        return (_LIVE[catalog], []) if known is None else (_KNOWN[catalog], [known])

    def narrow(self, keys: Iterable[str]) -> None:
        """Note that only rows of these keys can be in the answer, where that is so."""
        if not (self.negated or self.optional or self.aside):
            self.among.append(list(keys))


def compile_query(
    query: Query,
    search: SearchHits | None = None,
    similar: SearchHits | None = None,
    *,
    scopes: Sequence[str] | None = None,
    read: Read | None = None,
    without: Sequence[str] = (),
) -> Compiled:
    """Compile a parsed query.

    ``search`` and ``similar`` answer ``$search`` and ``$similar``; without them an expression that
    needs them is refused. ``scopes``: only rows in one of these, whatever the expression says;
    None adds nothing. ``read`` runs a SELECT on the store: with it a deep ``$k-hop`` is walked
    before the query instead of in it. ``without`` names entries that whoever asks is not told:
    neither they nor statements about them are rows.

    Raises:
        ExpressionError: a search cannot be answered; nothing has been executed.
    """
    context = _Context(query, search, similar, scopes, read, without)
    where, params = _condition(query.condition, context)
    parts, values = _readable(context)
    if query.pending_tag is not None:
        pending, more = _pending(context, query.pending_tag)
        parts.append(pending)
        values += more
    parts.append(where)
    return _assemble(query, context, " AND ".join(parts), [*values, *params])


def _readable(context: _Context, within: tuple[Condition, ...] = ()) -> tuple[list[str], list[Any]]:
    """Return what every row that is read satisfies: the scopes, the valid time, ``within``."""
    parts: list[str] = []
    params: list[Any] = []
    if context.scopes is not None:
        some = " OR ".join("list_contains(e.scopes, ?)" for _ in context.scopes)
        parts.append(f"({some})" if some else "FALSE")
        params += context.scopes
    for column in _NAMED[context.catalog] if context.without else ():
        parts.append(f"e.{column} NOT IN (SELECT unnest(?::VARCHAR[]))")
        params.append(list(context.without))
    at = context.query.options.as_of
    if at is not None:
        parts.append(_VALID)
        params += [at, at]
    before, context.aside = context.aside, True
    for condition in within:
        sql, more = _condition(condition, context)
        parts.append(sql)
        params += more
    context.aside = before
    return parts, params


def _pending(context: _Context, tag: str) -> Fragment:
    source, at = context.source("statement")
    as_of = context.query.options.as_of
    valid = "" if as_of is None else " AND " + _VALID.replace("e.", "s.")
    sql = (
        "list_contains(e.tags, ?) AND NOT EXISTS (SELECT 1 FROM "  # noqa: S608 - constants only
        f"{source} AS s WHERE s.object = e.name AND s.predicate = 'summary'{valid})"
    )
    return sql, [tag, *at, *([] if as_of is None else [as_of, as_of])]


# --- the whole SELECT -----------------------------------------------------------------------------


def _assemble(query: Query, context: _Context, where: str, params: list[Any]) -> Compiled:
    key = _KEY[query.catalog]
    ranks = _ranking_tables(context)
    source, at = _kept(context) or context.source(query.catalog)
    joins = "".join(
        f"\nLEFT JOIN {name} ON {name}.key = {key}"
        for name in (*(f"hits{n}" for n in ranks), *(f"reached{n}" for n in context.walks))
    )
    options = query.options
    columns = "count(*) AS count" if options.count else _columns(query, ranks, context.walks)
    head = ", ".join(table.sql for table in context.tables)
    sql = f"WITH RECURSIVE {head}\n" if head else ""
    sql += f"SELECT {columns}\nFROM {source} AS e{joins}\nWHERE {where}"
    values = [value for table in context.tables for value in table.params] + [*at, *params]
    if not options.count:
        order, more = _order(query, bool(ranks), bool(context.walks))
        sql += f"\nORDER BY {order}"
        values += more
        if options.limit is not None:
            sql += "\nLIMIT ?"
            values.append(options.limit)
        sql += "\nOFFSET ?"
        values.append(options.offset)
    return Compiled(
        query.catalog,
        sql,
        tuple(values),
        ranked=bool(ranks),
        monotone=context.monotone and not options.order and not options.count,
        walked=bool(context.walks),
        count=options.count,
        fields=options.fields,
    )


def _kept(context: _Context) -> Fragment | None:
    """Put the rows of a few keys in front, if none but those can be in the answer.

    The engine finds rows by their keys when it is asked for nothing else; beside any other
    condition, and in a view, it reads what it notes of every group of rows instead, which of a
    store just opened is a read of the file.
    """
    keys = min(context.among, key=len, default=None)
    if keys is None or len(keys) > _FEW or context.query.options.as_known_at is not None:
        return None
    table, key, live = _STORED[context.catalog]
    marks = ", ".join("?" * len(keys)) or "NULL"
    rows = f"kept AS MATERIALIZED (SELECT * FROM {table} WHERE {key} IN ({marks}))"  # noqa: S608 - constants only
    context.tables.append(_Table(rows, list(keys)))
    return f"(SELECT * FROM kept WHERE {live})", []  # noqa: S608 - constants only


def _columns(query: Query, ranks: list[int], walks: list[int]) -> str:
    columns = _SELECT[query.catalog]
    shown = query.options.fields
    if shown and not any(_reads_data(one) for one in shown):
        columns = columns.replace("e.content", "NULL AS content")  # the bulk of a row
    if ranks:
        columns += f", {_sum([f'hits{n}.score' for n in ranks])} AS score"
    if walks:
        hops = ", ".join(f"reached{n}.hop" for n in walks)
        columns += f", {f'least({hops})' if len(walks) > 1 else hops} AS hop"
    return columns


def _reads_data(shown: Shown) -> bool:
    if shown.field is None:
        return shown.special == "content"
    return shown.field.column == "data"


def _sum(scores: list[str]) -> str:
    if len(scores) == 1:
        return scores[0]
    total = " + ".join(f"coalesce({score}, 0)" for score in scores)
    return f"CASE WHEN coalesce({', '.join(scores)}) IS NOT NULL THEN {total} END"


def _order(query: Query, ranked: bool, walked: bool) -> Fragment:
    params: list[Any] = []
    keys: list[str] = []
    for sort in query.options.order:
        more, values = _sort(sort, query.catalog)
        keys += more
        params += values
    if query.options.order:
        return ", ".join([*keys, _KEY[query.catalog]]), params
    if ranked:
        keys.append("score DESC NULLS LAST")
    if walked:
        keys += ["hop NULLS LAST", TRIPLE]
    usual = _NEWEST[query.catalog] if query.pending_tag is None else _OLDEST
    return ", ".join([*keys, usual]), params


def _sort(sort: Sort, catalog: str) -> tuple[list[str], list[Any]]:
    direction = "DESC" if sort.descending else "ASC"
    if sort.field is None:
        return [f"{sort.special} {direction} NULLS LAST"], []
    if sort.field.kind == "json":
        return json_order(sort.field, direction)
    return [f"{column_sql(sort.field, catalog)} {direction} NULLS LAST"], []


# --- rankings -------------------------------------------------------------------------------------


def _ranked(node: Search | Similar, context: _Context) -> Fragment:
    similar = isinstance(node, Similar)
    answer = context.similar if similar else context.search
    name = "$similar" if similar else "$search"
    if answer is None:
        index = "vectors" if similar else "the search index"
        fail(node.where, f"{name} needs {index}, and there is none here")
    hits: dict[str, float] = {}
    for key, score in answer(node.text, context.catalog):
        hits.setdefault(key, float(score))
    context.narrow(hits)
    number = len(context.rankings)
    context.rankings.append((name, list(hits.items()), not context.negated))
    if context.negated or context.optional or number:
        # A hit left out would change what $not and $or let in, or the sum of two scores.
        context.monotone = False
    return f"({_KEY[context.catalog]} IN (SELECT key FROM hits{number}))", []  # noqa: S608


def _ranking_tables(context: _Context) -> list[int]:
    """Put the tables of hits in front; return the numbers of those whose score counts."""
    kinds = {name for name, _, counts in context.rankings if counts}
    tables = []
    for number, (_, hits, _) in enumerate(context.rankings):
        found = scaled(hits) if len(kinds) > 1 else hits
        sql = f"hits{number} AS (SELECT {pairs_sql('score', 'DOUBLE')})"
        tables.append(_Table(sql, pairs_of(found)))
    context.tables[:0] = tables
    return [number for number, (_, _, counts) in enumerate(context.rankings) if counts]


def scaled(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return hits with scores from 0 to 1: the scores of two kinds of ranking do not compare."""
    best = max((score for _, score in hits), default=0.0)
    return [(key, max(0.0, score) / best if best > 0 else 0.0) for key, score in hits]


# --- conditions -----------------------------------------------------------------------------------


def _condition(node: Condition, context: _Context) -> Fragment:
    match node:
        case And(operands) | ContentIs(operands):
            return all_of([_condition(operand, context) for operand in operands])
        case Or(operands):
            before, context.optional = context.optional, True
            fragment = any_of([_condition(operand, context) for operand in operands])
            context.optional = before
            return fragment
        case Not(operand):
            before, context.negated = context.negated, True
            sql, params = _condition(operand, context)
            context.negated = before
            return f"(NOT {sql})", params
        case Compare() | Contains() | Has() | Like() | JsonContains():
            if isinstance(node, Compare) and (name := _named(node)) is not None:
                context.narrow([name])
            return clause(node, context.catalog)
        case Triple():
            return _triple(node, context)
        case KHop():
            return _k_hop(node, context)
        case Search() | Similar():
            return _ranked(node, context)
        case _:
            assert_never(node)


def _named(node: Compare) -> str | None:
    """Return the name that a comparison asks for, if it is one with a name."""
    named = node.operator == "$eq" and node.field.column == "name" and not node.field.rest
    return node.value if named and isinstance(node.value, str) else None


# --- names and walks ------------------------------------------------------------------------------


def _triple(node: Triple, context: _Context) -> Fragment:
    parts = []
    for part, wanted in (
        ("subject", node.subject),
        ("predicate", node.predicate),
        ("object", node.object),
    ):
        if wanted is None:
            continue
        if part == "predicate":
            parts.append(_predicate(wanted))
        else:  # an equality beside IN would cost more than it could save
            own = f"(e.synonyms IS NOT NULL AND list_contains({own_synonyms(part)}, ?))"
            names = f"(SELECT name FROM {_names(wanted, node.within, context)})"  # noqa: S608
            parts.append((f"(e.{part} IN {names} OR {own})", [wanted]))
    return all_of(parts)


def _predicate(wanted: str) -> Fragment:
    """Return the condition that a statement says this predicate, as it is asked for or stored."""
    own = f"list_has_any({own_synonyms('predicate')}, [?, ?])"
    spelt = [wanted, normal_predicate(wanted)]
    return f"(e.predicate IN (?, ?) OR (e.synonyms IS NOT NULL AND {own}))", [*spelt, *spelt]


def _names(wanted: str, within: tuple[Condition, ...], context: _Context) -> str:
    """Put the table of a name and its other names in front; return what it is called."""
    source, at = context.source("knowledge")
    parts, params = _readable(context, within)
    table = f"names{context.next()}"
    where = " AND ".join(
        ["len(e.synonyms) > 0", "(e.name = ? OR list_contains(e.synonyms, ?))", *parts]
    )
    sql = (
        "SELECT ?::VARCHAR AS name UNION SELECT unnest(list_prepend(e.name, e.synonyms))"  # noqa: S608 - constants only
        f" FROM {source} AS e WHERE {where}"
    )
    values = [wanted, *at, wanted, wanted, *params]
    context.tables.append(_Table(f"{table} AS MATERIALIZED ({sql})", values))
    return table


def _k_hop(node: KHop, context: _Context) -> Fragment:
    number = context.next()
    tables = [*_walked_tables(node, number, context)]
    edges = edge_sql(number, node.direction, {p: own_synonyms(p) for p in ("subject", "object")})
    if context.read is not None and node.depth > DEEP:
        found = reached(
            node.start,
            node.depth,
            _rows(context.read, tables, edges),
            _rows(context.read, tables, f"SELECT name, entry FROM named{number}"),  # noqa: S608
        )
        sql = f"reached{number} AS (SELECT {pairs_sql('hop', 'BIGINT')})"
        tables = [_Table(sql, pairs_of(found.items()))]
    else:
        tables.append(_Table(f"edge{number} AS MATERIALIZED (\n  {edges})", []))
        walk, last = walk_sql(number)
        tables += [_Table(walk, [node.start, node.depth]), _Table(last, [])]
    context.tables += tables
    if not context.negated:
        context.walks.append(number)
    return f"({TRIPLE} IN (SELECT key FROM reached{number}))", []  # noqa: S608 - constants only


def _walked_tables(node: KHop, number: int, context: _Context) -> Iterable[_Table]:
    """Return the statements that may be walked, and the entries whose names count."""
    source, at = context.source("statement")
    parts, params = _readable(context, node.within)
    if node.predicate is not None:
        spoken, more = _predicate(node.predicate)
        parts.append(spoken)
        params += more
    sql = f"SELECT e.triple, e.subject, e.object, e.synonyms FROM {source} AS e{_where(parts)}"  # noqa: S608 - constants only
    yield _Table(f"said{number} AS ({sql})", [*at, *params])
    source, at = context.source("knowledge")
    parts, params = _readable(context, node.within)
    sql = (
        "SELECT unnest(list_prepend(e.name, e.synonyms)) AS name, e.name AS entry"  # noqa: S608 - constants only
        f" FROM {source} AS e{_where(['len(e.synonyms) > 0', *parts])}"
    )
    yield _Table(f"named{number} AS MATERIALIZED ({sql})", [*at, *params])


def _where(parts: list[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _rows(read: Read, tables: Sequence[_Table], select: str) -> Iterable[Sequence[Any]]:
    head = ", ".join(table.sql for table in tables)
    return read(f"WITH {head}\n{select}", [v for table in tables for v in table.params])

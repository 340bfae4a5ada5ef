"""Nodes to one SELECT: ``(sql, params)``, with fields from a list and every value a parameter (I7).

The compiled query reads the views ``live_entry`` and ``live_statement``, in which nothing withheld
is ever found. SQL text is put together from this module's constants only; a field name picks one of
them, a path into JSON travels as a parameter like any value.

``$search`` is answered first, by a callable the caller brings, and enters the query as two lists of
parameters (names and scores). Filters therefore apply before ranking and before the limit.

Unknown is unknown: comparing with null or with a missing field is SQL's NULL, so neither the
condition nor its ``$not`` lets the row in. A list is never missing, only empty.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, assert_never

from hypatia_mem.jse.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    ContentIs,
    Field,
    Has,
    Json,
    Like,
    Not,
    Or,
    Query,
    Scalar,
    Search,
    Triple,
    Where,
)
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = ["FIELDS", "Compiled", "SearchHits", "compile_query"]

SearchHits: TypeAlias = Callable[[str, str], Sequence[tuple[str, float]]]
"""``search(text, catalog) -> [(name or triple, score)]``: every hit, best first."""

_Kind: TypeAlias = Literal["text", "time", "list", "triple", "parts", "none"]


@dataclass(frozen=True, slots=True)
class _Column:
    kind: _Kind
    sql: str


_TRIPLE = "e.triple"
_WORDS = "coalesce(json_extract_string(TRY_CAST(e.synonyms AS JSON), '$.*[*]'), []::VARCHAR[])"
_NO_LIST = "[]::VARCHAR[]"

FIELDS: Mapping[str, Mapping[str, _Column]] = {
    "knowledge": {
        "name": _Column("text", "e.name"),
        "created_at": _Column("time", "e.created_at"),
        "tr_start": _Column("time", "e.valid_from"),
        "tr_end": _Column("time", "e.valid_to"),
        "format": _Column("text", "e.format"),
        "data": _Column("text", "e.content"),
        "tags": _Column("list", "e.tags"),
        "scopes": _Column("list", "e.scopes"),
        "synonyms": _Column("list", "e.synonyms"),
        "figures": _Column("list", "e.figures"),
    },
    "statement": {
        "triple": _Column("triple", _TRIPLE),
        "subject": _Column("text", "e.subject"),
        "predicate": _Column("text", "e.predicate"),
        "object": _Column("text", "e.object"),
        "head": _Column("text", "e.subject"),
        "relation": _Column("text", "e.predicate"),
        "tail": _Column("text", "e.object"),
        "created_at": _Column("time", "e.created_at"),
        "tr_start": _Column("time", "e.valid_from"),
        "tr_end": _Column("time", "e.valid_to"),
        "format": _Column("text", "'markdown'"),
        "data": _Column("text", "e.content"),
        "tags": _Column("list", _NO_LIST),
        "scopes": _Column("list", "e.scopes"),
        "synonyms": _Column("list", _WORDS),
        "figures": _Column("list", _NO_LIST),
    },
}
"""What a field name means, by catalog; any other name is a path into JSON ``data``."""

_SELECT = {
    "knowledge": (
        "e.name, e.content, e.format, e.tags, e.synonyms, e.figures, e.scopes, e.created_at"
    ),
    "statement": (
        f"{_TRIPLE} AS triple, e.subject, e.predicate, e.object, e.content, e.synonyms, e.scopes, "
        "e.created_at, e.valid_from AS tr_start, e.valid_to AS tr_end"
    ),
}
_FROM = {"knowledge": "live_entry AS e", "statement": "live_statement AS e"}
_KEY = {"knowledge": "e.name", "statement": _TRIPLE}
_NEWEST = {
    "knowledge": "e.created_at DESC, e.turn DESC NULLS LAST, e.name",
    "statement": "e.created_at DESC, e.subject, e.predicate, e.object",
}
_OLDEST = "e.created_at, e.turn NULLS LAST, e.name"
_SIGNS = {"$eq": "=", "$ne": "<>", "$gt": ">", "$lt": "<", "$gte": ">=", "$lte": "<="}
_UNKNOWN = "CAST(NULL AS BOOLEAN)"
_TIME_TEXT = "strftime({}, '%Y-%m-%d %H:%M:%S.%f')"


@dataclass(frozen=True, slots=True)
class Compiled:
    """One SELECT with its parameters.

    ``ranked`` rows carry a ``score``. ``monotone`` is set when the first rows stay the first rows
    however many further hits a ``$search`` has: a caller may then ask the index for few at first.
    """

    catalog: str
    sql: str
    params: tuple[Any, ...]
    ranked: bool
    monotone: bool


@dataclass(slots=True)
class _Context:
    catalog: str
    search: SearchHits | None
    hits: list[Sequence[tuple[str, float]]] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    negated: bool = False
    optional: bool = False
    monotone: bool = True


_Fragment: TypeAlias = tuple[str, list[Any]]


def compile_query(query: Query, search: SearchHits | None = None) -> Compiled:
    """Compile a parsed query.

    ``search`` answers ``$search``; without it an expression that searches is refused.

    Raises:
        ExpressionError: a field or value does not fit; nothing has been executed.
    """
    context = _Context(query.catalog, search)
    where, params = _condition(query.condition, context)
    if query.pending_tag is not None:
        where = f"list_contains(e.tags, ?) AND {_NOT_SUMMARISED} AND {where}"
        params = [query.pending_tag, *params]
    return _assemble(query, context, where, params)


_NOT_SUMMARISED = (
    "NOT EXISTS (SELECT 1 FROM live_statement AS s"
    " WHERE s.object = e.name AND s.predicate = 'summary')"
)


def _assemble(query: Query, context: _Context, where: str, params: list[Any]) -> Compiled:
    tables: list[str] = []
    head: list[Any] = []
    for number, hits in enumerate(context.hits):
        tables.append(
            f"hits{number} AS (SELECT unnest(?::VARCHAR[]) AS key, unnest(?::DOUBLE[]) AS score)"
        )
        head += [[name for name, _ in hits], [float(score) for _, score in hits]]
    columns, order = _SELECT[query.catalog], _NEWEST[query.catalog]
    if query.pending_tag is not None:
        order = _OLDEST
    joins = ""
    if context.scored:
        columns += f", {_score(context.scored)} AS score"
        order = f"score DESC NULLS LAST, {order}"
        joins = "".join(
            f"\nLEFT JOIN hits{n} ON hits{n}.key = {_KEY[query.catalog]}" for n in context.scored
        )
    with_ = f"WITH {', '.join(tables)}\n" if tables else ""
    sql = (
        f"{with_}SELECT {columns}\nFROM {_FROM[query.catalog]}{joins}\nWHERE {where}\n"
        f"ORDER BY {order}"
    )
    if query.options.limit is not None:
        sql += "\nLIMIT ?"
        params = [*params, query.options.limit]
    sql += "\nOFFSET ?"
    return Compiled(
        query.catalog,
        sql,
        (*head, *params, query.options.offset),
        ranked=bool(context.scored),
        monotone=context.monotone,
    )


def _score(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"hits{numbers[0]}.score"
    some = ", ".join(f"hits{n}.score" for n in numbers)
    total = " + ".join(f"coalesce(hits{n}.score, 0)" for n in numbers)
    return f"CASE WHEN coalesce({some}) IS NOT NULL THEN {total} END"


# --- conditions -----------------------------------------------------------------------------------


def _condition(node: Condition, context: _Context) -> _Fragment:
    match node:
        case And(operands):
            return _joined(operands, " AND ", context)
        case Or(operands):
            before, context.optional = context.optional, True
            fragment = _joined(operands, " OR ", context)
            context.optional = before
            return fragment
        case Not(operand):
            before, context.negated = context.negated, True
            sql, params = _condition(operand, context)
            context.negated = before
            return f"(NOT {sql})", params
        case ContentIs(pairs):
            return _joined(pairs, " AND ", context)
        case Compare():
            return _compare(node, context)
        case Contains():
            return _contains(node, context)
        case Has():
            return _has(node, context)
        case Like():
            return _like(node, context)
        case Triple():
            return _triple(node)
        case Search():
            return _search(node, context)
        case _:
            assert_never(node)


def _joined(operands: Sequence[Condition], joiner: str, context: _Context) -> _Fragment:
    if not operands:
        return "TRUE", []
    parts: list[str] = []
    params: list[Any] = []
    for operand in operands:
        sql, more = _condition(operand, context)
        parts.append(sql)
        params += more
    return f"({joiner.join(parts)})", params


def _compare(node: Compare, context: _Context) -> _Fragment:
    column = _column(node.field, context)
    if node.value is None:
        return _UNKNOWN, []
    sign = _SIGNS[node.operator]
    if isinstance(column, _Path):
        return _compare_json(column, sign, node.value)
    match column.kind:
        case "time":
            return f"({column.sql} {sign} ?)", [_time(node.field, node.value, node.where)]
        case "list" | "parts":
            if sign not in ("=", "<>"):
                fail(node.where, f"{node.field.name} is a list and has no order: {node.operator}")
            sql = f"list_contains({column.sql}, ?)"
            wanted = [_text(node.field, node.value, node.where)]
            return (sql if sign == "=" else f"(NOT {sql})"), wanted
        case _:
            return f"({column.sql} {sign} ?)", [_text(node.field, node.value, node.where)]


def _contains(node: Contains, context: _Context) -> _Fragment:
    column = _column(node.field, context)
    if node.value is None:
        return _UNKNOWN, []
    if isinstance(column, _Path):
        return _json_contains(column, node.value)
    wanted = _text(node.field, node.value, node.where)
    if column.kind == "list":
        return f"list_contains({column.sql}, ?)", [wanted]
    return f"contains({_as_text(column)}, ?)", [wanted]


def _has(node: Has, context: _Context) -> _Fragment:
    column = _column(node.field, context)
    parts: list[str] = []
    params: list[Any] = []
    for value in node.values:
        sql, more = _has_one(node, column, value)
        parts.append(sql)
        params += more
    return f"({' OR '.join(parts)})", params


def _has_one(node: Has, column: _Column | _Path, value: Scalar) -> _Fragment:
    if value is None:
        return _UNKNOWN, []
    if isinstance(column, _Path):
        return _json_has(column, value)
    if column.kind == "time":
        return f"({column.sql} = ?)", [_time(node.field, value, node.where)]
    wanted = _text(node.field, value, node.where)
    if column.kind == "triple":
        return "(? IN (e.subject, e.predicate, e.object))", [wanted]
    if column.kind == "list":
        return f"list_contains({column.sql}, ?)", [wanted]
    return f"({column.sql} = ?)", [wanted]


def _like(node: Like, context: _Context) -> _Fragment:
    column = _column(node.field, context)
    if isinstance(column, _Path):
        text = f"CASE WHEN json_type({column.sql}) = 'VARCHAR' THEN {column.text} END"
        return f"(({text}) LIKE ?)", [*column.params * 2, node.pattern]
    if column.kind == "list":
        return (
            f"EXISTS (SELECT 1 FROM unnest({column.sql}) AS t(item) WHERE item LIKE ?)",  # noqa: S608 - constants only
            [node.pattern],
        )
    return f"({_as_text(column)} LIKE ?)", [node.pattern]


def _triple(node: Triple) -> _Fragment:
    parts: list[str] = []
    params: list[Any] = []
    for column, wanted in (
        ("e.subject", node.subject),
        ("e.predicate", node.predicate),
        ("e.object", node.object),
    ):
        if wanted is not None:
            parts.append(f"{column} = ?")
            params.append(wanted)
    return f"({' AND '.join(parts)})", params


def _search(node: Search, context: _Context) -> _Fragment:
    if context.search is None:
        fail(node.where, "$search needs the search index, and there is none here")
    number = len(context.hits)
    context.hits.append(context.search(node.text, context.catalog))
    if not context.negated:
        context.scored.append(number)
    if context.negated or context.optional or number:
        # A hit left out would change what $not and $or let in, or the sum of two scores.
        context.monotone = False
    key = _KEY[context.catalog]
    return f"({key} IN (SELECT key FROM hits{number}))", []  # noqa: S608 - constants only


# --- fields ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Path:
    """A path into JSON ``data``; ``sql`` and ``text`` each take ``params``."""

    steps: tuple[str | int, ...]

    @property
    def sql(self) -> str:
        return "json_extract(TRY_CAST(e.content AS JSON), ?)"

    @property
    def text(self) -> str:
        return "json_extract_string(TRY_CAST(e.content AS JSON), ?)"

    @property
    def params(self) -> list[Any]:
        return [_json_path(self.steps)]

    @property
    def item_params(self) -> list[Any]:
        return [_json_path(self.steps) + "[*]"]


def _json_path(steps: tuple[str | int, ...]) -> str:
    # The parser lets only word characters and dashes into a step, so quoting is safe.
    return "$" + "".join(f"[{s}]" if isinstance(s, int) else f'."{s}"' for s in steps)


def _column(asked: Field, context: _Context) -> _Column | _Path:
    columns = FIELDS[context.catalog]
    first, rest = str(asked.steps[0]), asked.steps[1:]
    known = columns.get(first)
    if known is None:
        _check_path(asked, context)
        return _Path(asked.steps)
    if not rest:
        return known
    if first == "data":
        return _Path(rest)
    if first == "synonyms" and context.catalog == "statement":
        return _part_synonyms(asked)
    if known.kind == "list" and len(rest) == 1 and isinstance(rest[0], int):
        return _Column("text", f"list_extract({known.sql}, {rest[0] + 1})")
    fail(asked.where, f"{first} has no parts, so {asked.name!r} names nothing")


_PARTS = {
    "subject": "subject",
    "predicate": "predicate",
    "object": "object",
    "head": "subject",
    "relation": "predicate",
    "tail": "object",
}


def _part_synonyms(asked: Field) -> _Column:
    part = _PARTS.get(str(asked.steps[1]))
    if part is None or len(asked.steps) > 2:
        fail(asked.where, "synonyms of a statement are those of subject, predicate or object")
    sql = f"coalesce(json_extract_string(TRY_CAST(e.synonyms AS JSON), '$.{part}[*]'), {_NO_LIST})"
    return _Column("list", sql)


def _check_path(asked: Field, context: _Context) -> None:
    """Refuse what is a slip rather than a key of JSON data; ``data.x`` always says the key."""
    first = str(asked.steps[0])
    other = "statement" if context.catalog == "knowledge" else "knowledge"
    if first in FIELDS[other]:
        fail(
            asked.where,
            f"{first} is a field of {other} rows, and this reads {context.catalog} rows",
            fix=_other_catalog(asked.where, other),
        )
    if first == "content":
        better = ".".join(["data", *asked.name.split(".")[1:]])
        fail(asked.where, "content is the whole row; its text is data", fix=_as(asked, better))
    near = difflib.get_close_matches(first, FIELDS[context.catalog], 1, 0.8)
    if near:
        better = asked.name.replace(first, near[0], 1)
        note = f'For a key of that name inside JSON data write "data.{asked.name}".'
        fail(asked.where, f"unknown field {asked.name!r}", fix=_as(asked, better), note=note)


def _as(asked: Field, better: str) -> Json:
    if asked.where.steps and isinstance(asked.where.steps[-1], str):
        return None  # a key of a $content object: the note says it
    return replaced(asked.where, better)


def _other_catalog(where: Where, other: str) -> Json:
    root = where.root
    if isinstance(root, list) and root[0] in ("$knowledge", "$statement"):
        return [f"${other}", *root[1:]]
    return None


def _as_text(column: _Column) -> str:
    return _TIME_TEXT.format(column.sql) if column.kind == "time" else column.sql


# --- values ---------------------------------------------------------------------------------------


def _text(asked: Field, value: Scalar, where: Where) -> str:
    if isinstance(value, str):
        return value
    holds = "text elements" if FIELDS["knowledge"].get(asked.name, _ANY).kind == "list" else "text"
    fix = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        fix = replaced(where, str(value))
    fail(where, f"{asked.name} holds {holds}, got {describe(value)}", fix=fix)


_ANY = _Column("none", "")


def _time(asked: Field, value: Scalar, where: Where) -> datetime:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            pass
        else:
            if moment.tzinfo is None:
                return moment
            try:
                return moment.astimezone(UTC).replace(tzinfo=None)
            except OverflowError:
                pass
    fail(
        where,
        f"{asked.name} is a time, got {describe(value)} that is none; "
        'write it as "2025-01-31" or "2025-01-31T09:30:00Z"',
        note='A part of a time is matched by $like, as in ["$like", "created_at", "2025-01-%"].',
    )


def _compare_json(path: _Path, sign: str, value: Scalar) -> _Fragment:
    """Compare what JSON ``data`` holds at a path, by the type of the value asked for."""
    sql, params = _json_equal(path.sql, path.params, sign, value)
    return f"({sql})", params


def _json_equal(item: str, params: list[Any], sign: str, value: Scalar) -> _Fragment:
    other = "TRUE" if sign == "<>" else "FALSE"
    if isinstance(value, bool):
        wanted: Scalar = value
        kinds, cast = "('BOOLEAN')", f"CAST({item} AS BOOLEAN)"
    elif isinstance(value, int | float):
        kinds = "('UBIGINT', 'BIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE')"
        wanted = float(value)
        cast = f"CAST({item} AS DOUBLE)"
    else:
        wanted = value
        kinds, cast = "('VARCHAR')", f"json_extract_string({item}, '$')"
    sql = (
        f"CASE WHEN {item} IS NULL THEN NULL"
        f" WHEN json_type({item}) IN {kinds} THEN {cast} {sign} ?"
        f" ELSE {other} END"
    )
    return sql, [*params * 3, wanted]


def _json_member(path: _Path, value: Scalar) -> _Fragment:
    sql, params = _json_equal("item", [], "=", value)
    return (
        f"EXISTS (SELECT 1 FROM unnest({path.sql}) AS t(item) WHERE {sql})",  # noqa: S608 - constants only
        [*path.item_params, *params],
    )


def _json_contains(path: _Path, value: Scalar) -> _Fragment:
    """Exact membership in a JSON array, a piece of text in a JSON string."""
    member, params = _json_member(path, value)
    if not isinstance(value, str):
        return member, params
    text = f"CASE WHEN json_type({path.sql}) = 'VARCHAR' THEN {path.text} END"
    return f"({member} OR contains({text}, ?))", [*params, *path.params * 2, value]


def _json_has(path: _Path, value: Scalar) -> _Fragment:
    member, params = _json_member(path, value)
    equal, more = _json_equal(path.sql, path.params, "=", value)
    return f"({member} OR {equal})", [*params, *more]

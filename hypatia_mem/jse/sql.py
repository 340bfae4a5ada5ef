"""SQL for fields and for what JSON ``data`` holds. Constants only; values are parameters (I7).

``e`` is the row asked about. A part of JSON is bound once to the variable of a list lambda, so that
the text is parsed once however often the part is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeAlias

from hypatia_mem.jse.nodes import Compare, Field, Json, Scalar, Value

__all__ = [
    "SIGNS",
    "TRIPLE",
    "UNKNOWN",
    "Fragment",
    "as_text",
    "column_sql",
    "json_compare",
    "json_contained",
    "json_contains_text",
    "json_has",
    "json_like",
    "json_order",
    "own_synonyms",
    "pairs_of",
    "pairs_sql",
]

Fragment: TypeAlias = tuple[str, list[Any]]

TRIPLE = "e.triple"
_NO_LIST = "[]::VARCHAR[]"
UNKNOWN = "CAST(NULL AS BOOLEAN)"
SIGNS = {"$eq": "=", "$ne": "<>", "$gt": ">", "$lt": "<", "$gte": ">=", "$lte": "<="}

_DATA = "TRY_CAST(e.content AS JSON)"
_TIME_TEXT = "strftime({}, '%Y-%m-%d %H:%M:%S.%f')"
_COLUMNS = {
    "knowledge": {
        "name": "e.name",
        "format": "e.format",
        "tags": "e.tags",
        "synonyms": "e.synonyms",
        "figures": "e.figures",
    },
    "statement": {
        "triple": TRIPLE,
        "subject": "e.subject",
        "predicate": "e.predicate",
        "object": "e.object",
        "format": "'markdown'",
        "tags": _NO_LIST,
        "synonyms": "",  # by part
        "figures": _NO_LIST,
    },
}
_SHARED = {
    "created_at": "e.created_at",
    "tr_start": "e.valid_from",
    "tr_end": "e.valid_to",
    "data": "e.content",
    "scopes": "e.scopes",
}
_INT128 = 2**127 - 1


def column_sql(field: Field, catalog: str) -> str:
    """Return the SQL of a field that is no path into JSON data."""
    if field.column == "synonyms" and catalog == "statement":
        if not field.rest:
            return f"coalesce(json_extract_string({_SYNONYMS}, '$.*[*]'), {_NO_LIST})"
        return own_synonyms(str(field.rest[0]))
    sql = _SHARED.get(field.column) or _COLUMNS[catalog][field.column]
    return f"list_extract({sql}, {int(field.rest[0]) + 1})" if field.rest else sql


_SYNONYMS = "TRY_CAST(e.synonyms AS JSON)"
_OWN = {
    part: f"coalesce(json_extract_string({_SYNONYMS}, '$.{part}[*]'), {_NO_LIST})"
    for part in ("subject", "predicate", "object")
}


def own_synonyms(part: str) -> str:
    """Return the list of a statement's own synonyms of one part."""
    return _OWN[part]


def as_text(field: Field, sql: str) -> str:
    """Return a column as the text that rows show."""
    return _TIME_TEXT.format(sql) if field.kind == "time" else sql


def pairs_sql(name: str, kind: str) -> str:
    """Return the columns ``key`` and ``name`` of pairs that come as ``pairs_of`` makes them."""
    columns = (("key", "VARCHAR"), (name, kind))
    return ", ".join(f"""unnest(from_json(?, '["{k}"]')) AS {n}""" for n, k in columns)


def pairs_of(pairs: Iterable[tuple[str, float]]) -> list[Any]:
    """Return pairs as two parameters: JSON, for DuckDB 1.5 takes 0.2 ms for each of a list."""
    found = list(pairs)
    return [
        json.dumps([key for key, _ in found], ensure_ascii=False),
        json.dumps([value for _, value in found]),
    ]


# --- JSON data ------------------------------------------------------------------------------------


def _path(steps: tuple[str | int, ...]) -> str:
    # The parser lets only word characters and dashes into a step, so quoting is safe.
    return "$" + "".join(f"[{s}]" if isinstance(s, int) else f'."{s}"' for s in steps)


def _bound(field: Field, body: str, params: list[Any]) -> Fragment:
    """Return ``body``, in which ``x`` is the JSON at the field's path."""
    sql = f"list_transform([json_extract({_DATA}, ?)], lambda x: {body})[1]"
    return sql, [_path(field.rest), *params]


def _known(body: str) -> str:
    return f"CASE WHEN x IS NULL OR json_type(x) = 'NULL' THEN NULL {body} END"


def json_compare(node: Compare) -> Fragment:
    """Compare what JSON data holds at a path, by the type of the value asked for."""
    sign = SIGNS[node.operator]
    body, params = _typed("x", sign, node.value, node.moment)
    other = "TRUE" if sign == "<>" else "FALSE"
    return _bound(node.field, _known(f"{body} ELSE {other}"), params)


def _typed(item: str, sign: str, value: Value, moment: datetime | None = None) -> Fragment:
    """Return the WHEN branches that compare ``item`` with a value of its own type."""
    if isinstance(value, bool):
        return f"WHEN json_type({item}) = 'BOOLEAN' THEN TRY_CAST({item} AS BOOLEAN) {sign} ?", [
            value
        ]
    if isinstance(value, int | float):
        return _numeric(item, sign, value)
    text = f"json_extract_string({item}, '$')"
    if moment is None:
        return f"WHEN json_type({item}) = 'VARCHAR' THEN {text} {sign} ?", [value]
    timed = (
        f"list_transform([{text}], lambda t: CASE WHEN {_IS_MOMENT} AND ({_MOMENT}) IS NOT NULL"
        f" THEN ({_MOMENT}) {sign} ? ELSE {'TRUE' if sign == '<>' else 'FALSE'} END)[1]"
    )
    return f"WHEN json_type({item}) = 'VARCHAR' THEN {timed}", [moment]


def _numeric(item: str, sign: str, value: float) -> Fragment:
    """Compare numbers: two whole ones exactly, else as floating point."""
    whole = isinstance(value, int) and abs(value) <= _INT128
    kind = "HUGEINT" if whole else "DOUBLE"
    sql = (
        f"WHEN json_type({item}) IN ('BIGINT', 'UBIGINT')"
        f" THEN TRY_CAST({item} AS {kind}) {sign} CAST(? AS {kind})"
        f" WHEN json_type({item}) = 'DOUBLE' AND isfinite(TRY_CAST({item} AS DOUBLE))"
        f" THEN TRY_CAST({item} AS DOUBLE) {sign} CAST(? AS DOUBLE)"
    )
    return sql, [value if whole else float(value), float(value)]


_IS_MOMENT = (
    # {0,1} instead of a question mark, which stands for a parameter and nothing else here.
    "regexp_full_match(t, '[12][0-9]{3}-[0-9]{2}-[0-9]{2}([T ]([01][0-9]|2[0-3]):[0-5][0-9]"
    "(:[0-5][0-9]([.][0-9]{1,6}){0,1}){0,1}(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9]){0,1}){0,1}')"
)
# The engine reads no offset in a plain time, so it is taken off by hand.
_MOMENT = (
    "TRY_CAST(substr(t, 1, 10) || ' ' || CASE WHEN len(t) > 10 THEN"
    " regexp_extract(t, '[T ]([0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}){0,1}){0,1})', 1)"
    " ELSE '00:00' END AS TIMESTAMP)"
    " - to_minutes(CASE WHEN regexp_matches(t, '[T ].*[+-][0-9]{2}:[0-9]{2}$')"
    " THEN CAST(t[-6] || '1' AS INTEGER) * (CAST(t[-5:-4] AS INTEGER) * 60"
    " + CAST(t[-2:] AS INTEGER)) ELSE 0 END)"
)


def _member(body: str) -> str:
    """Return whether an element of the JSON array ``x`` fits; ``y`` is the element."""
    return f"len(list_filter(json_extract(x, '$[*]'), lambda y: {body})) > 0"


def _equal(item: str, value: Value) -> Fragment:
    sql, params = _typed(item, "=", value)
    return f"(CASE {sql} ELSE FALSE END)", params


def json_contains_text(field: Field, value: Scalar) -> Fragment:
    """Exact membership in a JSON array, a piece of text in a JSON string."""
    equal, params = _equal("y", value)
    body = f"WHEN json_type(x) = 'ARRAY' THEN {_member(equal)}"
    if isinstance(value, str):
        body += " WHEN json_type(x) = 'VARCHAR' THEN contains(json_extract_string(x, '$'), ?)"
        params = [*params, value]
    return _bound(field, _known(f"{body} ELSE FALSE"), params)


def json_has(field: Field, value: Value) -> Fragment:
    """Exact membership in a JSON array, or equality with what is no array."""
    member, params = _equal("y", value)
    same, more = _equal("x", value)
    body = f"WHEN json_type(x) = 'ARRAY' THEN {_member(member)} ELSE {same}"
    return _bound(field, _known(body), [*params, *more])


def json_like(field: Field, pattern: str) -> Fragment:
    """LIKE on a JSON string, or on any string of a JSON array."""
    one = "(json_type(y) = 'VARCHAR' AND json_extract_string(y, '$') LIKE ?)"
    body = (
        f"WHEN json_type(x) = 'ARRAY' THEN {_member(one)}"
        " WHEN json_type(x) = 'VARCHAR' THEN json_extract_string(x, '$') LIKE ? ELSE FALSE"
    )
    return _bound(field, _known(body), [pattern, pattern])


def json_order(field: Field, direction: str) -> tuple[list[str], list[Any]]:
    """Return the sort keys of a path: numbers, then texts, then truth values, then the rest."""
    found = []
    params: list[Any] = []
    for body in (
        "CASE WHEN json_type(x) IN ('BIGINT', 'UBIGINT', 'DOUBLE')"
        " AND isfinite(TRY_CAST(x AS DOUBLE)) THEN TRY_CAST(x AS DOUBLE) END",
        "CASE WHEN json_type(x) = 'VARCHAR' THEN json_extract_string(x, '$') END",
        "CASE WHEN json_type(x) = 'BOOLEAN' THEN TRY_CAST(x AS BOOLEAN) END",
    ):
        sql, more = _bound(field, body, [])
        found.append(f"{sql} {direction} NULLS LAST")
        params += more
    return found, params


# --- containment ----------------------------------------------------------------------------------


def json_contained(field: Field, pattern: Json) -> Fragment:
    """Recursive containment in what JSON data holds at a path; never unknown."""
    body, params = _holds("x", pattern, 0)
    return _bound(field, f"coalesce({body}, FALSE)", params)


def _holds(item: str, pattern: Json, depth: int, pointer: str = "") -> Fragment:
    """Return whether ``item``, or what it holds at a JSON pointer, holds the pattern.

    Objects lengthen the pointer. Only lists bind a variable: to bind one in another costs the
    engine's planner dearly.
    """
    here, at = _here(item, pointer)
    if isinstance(pattern, dict):
        return _holds_object(item, pattern, depth, pointer)
    if isinstance(pattern, list):
        parts = [f"json_type({here}) = 'ARRAY'"]
        params = list(at)
        inner = f"i{depth}"
        for wanted in pattern:
            sql, more = _holds(inner, wanted, depth + 1)
            parts.append(
                f"len(list_filter(json_extract({here}, '$[*]'),"
                f" lambda {inner}: coalesce({sql}, FALSE))) > 0"
            )
            params += [*at, *more]
        return f"({' AND '.join(parts)})", params
    if pattern is None:
        return f"(json_type({here}) = 'NULL')", at
    sql, params = _equal("v", pattern)
    return f"list_transform([{here}], lambda v: {sql})[1]", [*at, *params]


def _here(item: str, pointer: str) -> Fragment:
    return (f"json_extract({item}, ?)", [pointer]) if pointer else (item, [])


def _holds_object(item: str, pattern: dict[str, Json], depth: int, pointer: str) -> Fragment:
    here, at = _here(item, pointer)
    parts = [f"json_type({here}) = 'OBJECT'"]
    params = list(at)
    for key, wanted in pattern.items():
        step = key.replace("~", "~0").replace("/", "~1")
        sql, more = _holds(item, wanted, depth, f"{pointer}/{step}")
        parts.append(sql)
        params += more
    return f"({' AND '.join(parts)})", params

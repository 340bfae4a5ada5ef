"""What field names mean, and which values fit a field. No SQL here: the matcher reads it too.

A name is a column of the published row, an element or part of one, or else a path into JSON
``data``. What looks like a slip (``tag`` for ``tags``, ``subject`` of a knowledge row) is refused,
because as a path it would quietly match nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from hypatia_mem.jse.nodes import Field, Json, Kind, Scalar, Value, Where
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = [
    "FIELDS",
    "PARTS",
    "Column",
    "fitting",
    "moment_of",
    "read_moment",
    "resolve",
]


@dataclass(frozen=True, slots=True)
class Column:
    """What kind of value a field holds."""

    kind: Kind


_TEXT, _TIME, _LIST = Column("text"), Column("time"), Column("list")
_BOTH = {
    "created_at": _TIME,
    "tr_start": _TIME,
    "tr_end": _TIME,
    "format": _TEXT,
    "data": _TEXT,
    "tags": _LIST,
    "scopes": _LIST,
    "synonyms": _LIST,
    "figures": _LIST,
}

FIELDS: Mapping[str, Mapping[str, Column]] = {
    "knowledge": {"name": _TEXT, **_BOTH},
    "statement": {
        "triple": Column("triple"),
        "subject": _TEXT,
        "predicate": _TEXT,
        "object": _TEXT,
        "head": _TEXT,
        "relation": _TEXT,
        "tail": _TEXT,
        **_BOTH,
    },
}
"""What a field name means, by catalog; any other name is a path into JSON ``data``."""

PARTS = {
    "subject": "subject",
    "predicate": "predicate",
    "object": "object",
    "head": "subject",
    "relation": "predicate",
    "tail": "object",
}
"""Both vocabularies of a statement's parts; the second is the one rows are published in."""

# Years of four digits that begin with 1 or 2: a number such as 9999-01-01 stays a text.
_MOMENT = re.compile(
    r"([12][0-9]{3}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?)"
    r"(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?)?"
)


def resolve(steps: tuple[str | int, ...], catalog: str, where: Where) -> Field:
    """Return the field that a path of steps names. Raises ExpressionError for a slip."""
    first, rest = str(steps[0]), steps[1:]
    known = FIELDS[catalog].get(first)
    asked = Field(steps, "json", "data", steps, where)
    if known is None:
        _check_path(asked, catalog)
        return asked
    column = PARTS.get(first, first) if catalog == "statement" else first
    if not rest:
        return Field(steps, known.kind, column, (), where)
    if first == "data":
        return Field(steps, "json", "data", rest, where)
    if first == "synonyms" and catalog == "statement":
        part = PARTS.get(str(rest[0]))
        if part is None or len(rest) > 1:
            fail(where, "synonyms of a statement are those of subject, predicate or object")
        return Field(steps, "list", "synonyms", (part,), where)
    if known.kind == "list" and len(rest) == 1 and isinstance(rest[0], int):
        return Field(steps, "text", column, rest, where)
    fail(where, f"{first} has no parts, so {asked.name!r} names nothing")


def fitting(field: Field, value: Scalar, where: Where) -> Value:
    """Return the value as the field's type; a type clash is an error. Null stays null."""
    if value is None or field.kind == "json":
        return value
    if field.kind == "time":
        moment = read_moment(value)
        if moment is not None:
            return moment
        fail(
            where,
            f"{field.name} is a time, got {describe(value)} that is none; "
            'write it as "2025-01-31" or "2025-01-31T09:30:00Z"',
            note="A part of a time is matched by $like, as in "
            '["$like", "created_at", "2025-01-%"].',
        )
    if isinstance(value, str):
        return value
    holds = "text elements" if field.kind == "list" else "text"
    fix = None
    if not isinstance(value, bool):
        fix = replaced(where, str(value))
    fail(where, f"{field.name} holds {holds}, got {describe(value)}", fix=fix)


def read_moment(value: Json) -> datetime | None:
    """Return the time a person wrote (any ISO 8601 form, UTC without a zone) as naive UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment


def moment_of(text: str) -> datetime | None:
    """Return the time that a text inside JSON data says, as naive UTC, or None.

    Only whole dates, with or without a time of day, as ISO 8601 writes them: SQL has to read
    the same ones.

    >>> moment_of("2025-01-01T01:00:00+02:00")
    datetime.datetime(2024, 12, 31, 23, 0)
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, clock, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {clock or '00:00'}{zone or ''}")
    except ValueError:  # no such day
        return None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _check_path(asked: Field, catalog: str) -> None:
    """Refuse what is a slip rather than a key of JSON data; ``data.x`` always says the key."""
    first = str(asked.steps[0])
    other = "statement" if catalog == "knowledge" else "knowledge"
    if first in FIELDS[other]:
        fail(
            asked.where,
            f"{first} is a field of {other} rows, and this reads {catalog} rows",
            fix=_other_catalog(asked.where, other),
        )
    if first == "content":
        _, _, inner = asked.name.partition(".")
        known = inner.split(".")[0].split("[")[0] in _BOTH
        better = inner if known else f"data.{inner}" if inner else "data"
        fail(asked.where, "content is the whole row; its text is data", fix=_as(asked, better))
    near = difflib.get_close_matches(first, FIELDS[catalog], 1, 0.8)
    if near:
        better = asked.name.replace(first, near[0], 1)
        note = f'For a key of that name inside JSON data write "data.{asked.name}".'
        fail(asked.where, f"unknown field {asked.name!r}", fix=_as(asked, better), note=note)


def _as(asked: Field, better: str) -> Json:
    if asked.where.steps and isinstance(asked.where.steps[-1], str):
        return None  # a key of an object: the note says it
    return replaced(asked.where, better)


def _other_catalog(where: Where, other: str) -> Json:
    root = where.root
    if isinstance(root, list) and root[0] in ("$knowledge", "$statement"):
        return [f"${other}", *root[1:]]
    return None

"""Whether one row satisfies a condition, in Python: True, False or None for unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from hypatia_mem.jse.fields import moment_of
from hypatia_mem.jse.nodes import (
    Compare,
    Contained,
    Contains,
    Field,
    Has,
    Json,
    JsonContains,
    Like,
    Value,
)
from hypatia_mem.jse.records import ABSENT, Record, number
from hypatia_mem.jse.rows import time_text

__all__ = ["Truth", "every", "holds", "opposite", "some", "value_of"]

Truth: TypeAlias = bool | None


def holds(node: Compare | Contains | Has | Like | JsonContains, record: Record) -> Truth:
    """Return whether a condition on one row alone holds."""
    match node:
        case Compare():
            return _compare(node, record)
        case Contains():
            return _contains(node, record)
        case Has():
            return some(_has(node.field, value, record) for value in node.values)
        case Like():
            return _like(node, record)
        case JsonContains(parts):
            return all(_contained(part, record) for part in parts)


def every(parts: Iterable[Truth]) -> Truth:
    """Join by and: one that does not hold decides, else one that is unknown."""
    found = list(parts)
    return False if False in found else None if None in found else True


def some(parts: Iterable[Truth]) -> Truth:
    """Join by or: one that holds decides, else one that is unknown."""
    found = list(parts)
    return True if True in found else None if None in found else False


def opposite(found: Truth) -> Truth:
    """Return the opposite; that of the unknown is unknown."""
    return None if found is None else not found


_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$lt": operator.lt,
    "$gte": operator.ge,
    "$lte": operator.le,
}


def value_of(record: Record, target: Field) -> Any:  # noqa: ANN401 - text, time or list
    """Return a field that is no path into JSON: text, time or list; None when it is missing."""
    if target.kind == "time":
        return record.time(target.column)
    if target.kind == "list":
        return record.items(target.column, str(target.rest[0]) if target.rest else "")
    if target.rest:
        items, index = record.items(target.column), int(target.rest[0])
        return items[index] if index < len(items) else None
    return record.text(target.column)


def _as_text(record: Record, target: Field) -> str | None:
    found = value_of(record, target)
    return time_text(found) if target.kind == "time" else found


def _compare(node: Compare, record: Record) -> Truth:
    if node.value is None:
        return None
    if node.field.kind == "json":
        return _compare_json(node, record.json(node.field.rest))
    found = value_of(record, node.field)
    if node.field.kind == "list":
        return (node.value in found) == (node.operator == "$eq")
    return None if found is None else _SIGNS[node.operator](found, node.value)


def _missing(found: Json) -> bool:
    return found is ABSENT or found is None


def _compare_json(node: Compare, found: Json) -> Truth:
    if _missing(found):
        return None
    pair = _alike(found, node.value, node.moment)
    return node.operator == "$ne" if pair is None else _SIGNS[node.operator](*pair)


def _alike(found: Json, value: Value, moment: datetime | None = None) -> tuple[Any, Any] | None:
    """Return both as what they can be compared as; None when they are of different types."""
    if isinstance(value, bool):
        return (found, value) if isinstance(found, bool) else None
    if isinstance(value, int | float):
        here = number(found)
        if here is None:
            return None
        whole = isinstance(here, int) and isinstance(value, int) and abs(value) < 2**127
        return (here, value) if whole else (float(here), float(value))
    if not isinstance(found, str):
        return None
    if moment is None:
        return found, value
    there = moment_of(found)
    return None if there is None else (there, moment)


def _same(found: Json, value: Value) -> bool:
    pair = _alike(found, value)
    return pair is not None and pair[0] == pair[1]


def _contains(node: Contains, record: Record) -> Truth:
    if node.value is None:
        return None
    if node.field.kind == "json":
        found = record.json(node.field.rest)
        if _missing(found):
            return None
        if isinstance(found, list):
            return any(_same(item, node.value) for item in found)
        return isinstance(found, str) and isinstance(node.value, str) and node.value in found
    if node.field.kind == "list":
        return node.value in value_of(record, node.field)
    text = _as_text(record, node.field)
    return None if text is None else str(node.value) in text


def _has(target: Field, value: Value, record: Record) -> Truth:
    if value is None:
        return None
    if target.kind == "json":
        found = record.json(target.rest)
        if _missing(found):
            return None
        if isinstance(found, list):
            return any(_same(item, value) for item in found)
        return _same(found, value)
    if target.kind == "triple":
        return value in [record.text(part) for part in ("subject", "predicate", "object")]
    found = value_of(record, target)
    if target.kind == "list":
        return value in found
    return None if found is None else bool(found == value)


def _like(node: Like, record: Record) -> Truth:
    if node.field.kind == "json":
        found = record.json(node.field.rest)
        if _missing(found):
            return None
        items = found if isinstance(found, list) else [found]
        return any(isinstance(item, str) and _fits(node.pattern, item) for item in items)
    if node.field.kind == "list":
        return any(_fits(node.pattern, item) for item in value_of(record, node.field))
    text = _as_text(record, node.field)
    return None if text is None else _fits(node.pattern, text)


def _fits(pattern: str, text: str) -> bool:
    """Return whether a text is LIKE a pattern; linear for each ``%``, so no pattern is a trap."""
    at = place = 0
    star, resume = -1, 0
    while place < len(text):
        if at < len(pattern) and pattern[at] == "%":
            star, resume = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("_", text[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return all(char == "%" for char in pattern[at:])


def _contained(part: Contained, record: Record) -> bool:
    target, pattern = part.field, part.pattern
    if target.kind == "json":
        return _holds(record.json(target.rest), pattern)
    if isinstance(pattern, dict):  # synonyms of a statement
        return all(set(names) <= set(record.items("synonyms", p)) for p, names in pattern.items())
    found = value_of(record, target)
    if target.kind != "list":
        return bool(found == pattern)
    return not found if pattern is None else set(pattern) <= set(found)


def _holds(found: Json, pattern: Json) -> bool:
    if isinstance(pattern, dict):
        return isinstance(found, dict) and all(
            _holds(found.get(key, ABSENT), wanted) for key, wanted in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(found, list) and all(
            any(_holds(item, wanted) for item in found) for wanted in pattern
        )
    return found is None if pattern is None else _same(found, pattern)

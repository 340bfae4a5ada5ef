"""Reading fields from a published row in Python, as the SQL reads them from the store.

JSON ``data`` is read as the engine reads it: of two equal keys the first counts, a trailing comma
and not-a-number are let through, a lone half of a surrogate pair is not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hypatia_mem.jse.fields import read_moment
from hypatia_mem.jse.nodes import Field, Json, Shown

__all__ = ["ABSENT", "Record", "data_json", "number", "project", "synonyms_of"]

ABSENT: Any = object()
"""What stands for a path that leads nowhere, which JSON null is not."""

_LENIENT = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?P<comma>,)(?=\s*[\]}])|(?P<sign>-?)(?P<inf>\binf(?:inity)?\b)|(?P<nan>-?\bnan\b)',
    re.IGNORECASE,
)
_MOST_DIGITS = 400
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1


class Record:
    """A published row; its JSON ``data`` is parsed when it is first asked for."""

    __slots__ = ("_json", "catalog", "row")

    def __init__(self, catalog: str, row: Mapping[str, Any]) -> None:
        """Wrap a row as ``query`` prints it."""
        self.catalog = catalog
        self.row = row
        self._json: Json = None

    @property
    def key(self) -> str:
        """Return the name, or a statement's triple."""
        return str(self.row["name" if self.catalog == "knowledge" else "triple"])

    def text(self, column: str) -> str | None:
        """Return a text column."""
        if column in ("format", "data"):
            found = self.row["content"].get(column)
        else:
            found = self.row[column]
        return None if found is None else str(found)

    def time(self, column: str) -> datetime | None:
        """Return a time column as naive UTC."""
        return read_moment(self.row.get(column))

    def items(self, column: str, part: str = "") -> list[str]:
        """Return a list column, empty when it is absent; ``part``: of a statement's synonyms."""
        found = self.row["content"].get(column)
        if column == "synonyms" and self.catalog == "statement":
            return synonyms_of(found, part)
        return list(found or ())

    def json(self, path: tuple[str | int, ...]) -> Json:
        """Return what JSON ``data`` holds at a path; ABSENT when it leads nowhere."""
        if self._json is None:
            self._json = (data_json(self.row["content"].get("data") or ""),)
        return _walked(self._json[0], path)

    def value(self, field: Field) -> Any:  # noqa: ANN401 - text, time, list or JSON
        """Return a field as a value a person can read: None when it is not there."""
        if field.kind == "json":
            found = self.json(field.rest)
            return None if found is ABSENT else found
        if field.column in self.row or field.kind == "time":
            return self.row.get(field.column)
        if field.rest and isinstance(field.rest[0], int):
            items = self.items(field.column)
            return items[field.rest[0]] if field.rest[0] < len(items) else None
        if field.rest:
            return self.items(field.column, str(field.rest[0])) or None
        return self.row["content"].get(field.column)


def project(catalog: str, row: dict[str, Any], fields: tuple[Shown, ...]) -> dict[str, Any]:
    """Return the asked parts of a published row, each under the name it was asked by.

    Without fields it is the whole row.
    """
    if not fields:
        return row
    record = Record(catalog, row)
    return {
        shown.name: row[shown.special] if shown.field is None else record.value(shown.field)
        for shown in fields
    }


def synonyms_of(synonyms: Mapping[str, Any] | None, part: str = "") -> list[str]:
    """Return a statement's synonyms, of one part or of all three."""
    found: list[str] = []
    for key, names in (synonyms or {}).items():
        if (not part or key == part) and isinstance(names, list):
            found.extend(names)
    return found


def number(value: Json) -> int | float | None:
    """Return a JSON number as the engine compares it; None for all that is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if _LEAST_INT <= value <= _MOST_INT else _float(value)
    return value if math.isfinite(value) else None


def _float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def data_json(text: str) -> Json:
    """Return the JSON that ``data`` holds, ABSENT when it is none."""
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _loads(_LENIENT.sub(_strict, text))
    except (ValueError, RecursionError):
        return ABSENT


def _loads(text: str) -> Json:
    value = json.loads(text, object_pairs_hook=_first_wins, parse_int=_int)
    if "\\u" in text:  # raises for half of a surrogate pair
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _strict(found: re.Match[str]) -> str:
    if found["comma"]:
        return ""
    if found["inf"]:
        return f"{found['sign']}Infinity"
    return "NaN" if found["nan"] else found[0]


def _first_wins(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _walked(value: Json, path: tuple[str | int, ...]) -> Json:
    for step in path:
        fits = (
            isinstance(value, list) and step < len(value)
            if isinstance(step, int)
            else isinstance(value, dict) and step in value
        )
        if not fits:
            return ABSENT
        value = value[step]
    return value

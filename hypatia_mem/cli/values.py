"""What stands on the command line: lists in the published CSV form, text from stdin or a file."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypatia_mem.errors import UsageError

__all__ = [
    "checked",
    "parse_list",
    "parse_scopes",
    "parse_synonyms",
    "parse_tags",
    "parse_time",
    "parse_validity",
    "read_text",
]

_PARTS = {
    "subject": "subject",
    "predicate": "predicate",
    "object": "object",
    "head": "subject",
    "relation": "predicate",
    "tail": "object",
}
_DATE = re.compile(r"\d{4}-?\d\d-?\d\d|\d{4}-?W\d\d-?\d")  # the dates that ISO 8601 knows


def parse_scopes(text: str) -> tuple[str, ...]:
    """Return scopes: items trimmed, blanks dropped; a comma at the very end adds the global scope.

    An empty text is the global scope alone, as the skill documents it.

    >>> [parse_scopes(text) for text in ("p,", ",", "", "p, ", "a,,b")]
    [('p', ''), ('',), ('',), ('p',), ('a', 'b')]
    """
    named = dict.fromkeys(item.strip() for item in checked(text, "--scopes").split(","))
    scopes = [item for item in named if item]
    return (*scopes, "") if text.endswith(",") or not text else tuple(scopes)


def parse_tags(text: str) -> tuple[str, ...]:
    """Return tags: items trimmed, blanks kept, an empty text is none at all.

    >>> parse_tags("a,,b"), parse_tags(""), parse_tags("summary,summary 1")
    (('a', '', 'b'), (), ('summary', 'summary 1'))
    """
    if not text:
        return ()
    return tuple(dict.fromkeys(item.strip() for item in checked(text, "--tags").split(",")))


def parse_list(text: str, option: str) -> tuple[str, ...]:
    """Return a plain list: items trimmed, blanks dropped."""
    return tuple(item for part in checked(text, option).split(",") if (item := part.strip()))


def parse_synonyms(text: str) -> dict[str, Any] | None:
    """Return a statement's synonyms from JSON: ``{"subject": [...], "object": [...]}``.

    ``head``, ``relation`` and ``tail`` are understood and stored under the first names.
    """
    if not text:
        return None
    example = 'Example: --synonyms \'{"subject": ["Al"], "object": ["Robert"]}\''
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--synonyms of a statement is JSON: {error}", hint=example) from None
    if not isinstance(value, dict):
        raise UsageError("--synonyms of a statement is a JSON object", hint=example)
    found: dict[str, Any] = {}
    for key, names in value.items():
        part = _PARTS.get(key)
        fits = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if part is None or not fits:
            raise UsageError(
                f"--synonyms: {key[:40]!a} must be subject, predicate or object and hold a list",
                hint=example,
            )
        found.setdefault(part, []).extend(names)
    return found


def parse_time(text: str, option: str, *, end: bool = False) -> datetime | None:
    """Return a time as the store keeps it, naive UTC; None for an empty text: it is not known.

    A date, or a time of ISO 8601; without a zone it is local time. A date alone is the whole day:
    its first moment, or as an ``end`` the first one after it. Raises UsageError.
    """
    said = checked(text, option).strip()
    if not said:
        return None
    wrong = UsageError(
        f"{option}: {said[:60]!a} is no date and no time",
        hint="Like 2026-03-01, 2026-03-01T14:30 (local time), 2026-03-01T14:30+02:00 or ...Z;"
        ' "" for unknown.',
    )
    try:
        moment = datetime.fromisoformat(said)
        if end and _DATE.fullmatch(said):
            moment += timedelta(days=1)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):  # the last two: outside of what clocks can show
        raise wrong from None


def parse_validity(valid_from: str | None, valid_to: str | None) -> dict[str, Any]:
    """Return the ends that were named, for an entry or a statement; an empty text unknows one."""
    ends: dict[str, Any] = {}
    if valid_from is not None:
        ends["valid_from"] = parse_time(valid_from, "--valid-from")
    if valid_to is not None:
        ends["valid_to"] = parse_time(valid_to, "--valid-to", end=True)
    return ends


def read_text(value: str, what: str) -> str:
    """Return the text a value stands for: ``-`` standard input, ``@file`` a file, ``@@x`` ``@x``.

    One newline at the end of what is read belongs to the shell, not to the text.
    Raises UsageError when it is not UTF-8 or the file cannot be read.
    """
    if value == "-":
        return _decoded(sys.stdin.buffer.read(), f"standard input ({what})")
    if value.startswith("@@"):
        return checked(value[1:], what)
    if not value.startswith("@"):
        return checked(value, what)
    file = Path(value[1:])
    try:
        return _decoded(file.read_bytes(), str(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise UsageError(
            f"{what}: {value!a} means the text of a file, and it cannot be read: {reason}",
            hint=f"For a text that begins with @ write it twice: {f'@{value}'!a}",
        ) from None


def checked(text: str, what: str) -> str:
    """Return the text; refuse bytes that are no UTF-8 (they arrive as lone surrogates) and NUL."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise UsageError(f"{what} is not valid UTF-8")
    if "\0" in text:
        raise UsageError(f"{what} holds a NUL character")
    return text


def _decoded(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not valid UTF-8 at byte {error.start}") from None
    text = text.removesuffix("\n").removesuffix("\r")
    return checked(text, where)

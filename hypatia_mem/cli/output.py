"""Printing: text for people, JSON for programs, one shape for errors.

Nothing printed can crash a terminal that knows fewer characters, and nothing stored can drive it:
control characters are shown, not sent. Nor does it show a secret that has got into the memory past
the hook: whatever is printed, by whichever command, is redacted here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hypatia_mem.memory.redaction import secretless, without_secrets

if TYPE_CHECKING:
    from hypatia_mem.model import Outcome

__all__ = [
    "Json",
    "ago",
    "columns",
    "details",
    "emit",
    "harden_streams",
    "held_back",
    "print_error",
    "print_json",
    "print_line",
    "print_page",
    "print_rows",
    "printable",
    "say",
    "shown",
    "silence_stdout",
    "warn",
    "who",
]

Json: TypeAlias = Any
# Who comes through a door, when no name is known.
_DOORS = {
    "cli-person": "a person",
    "hook-prompt": "a person, by a prompt",
    "hook": "a hook",
    "transcript": "the client's transcript",
    "cli-agent": "an agent",
    "worker": "the worker",
    "import": "an import",
}
# What the program itself goes by: ids of sessions, operations and pages, and where files lie.
_IDS = frozenset(
    {
        "id", "session_id", "op_id", "next", "cursor", "etag", "home", "path", "cwd", "digest",
        "transcript_path", "forked_from", "scope", "scopes",
    }
)  # fmt: skip
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def harden_streams() -> None:
    """Let the standard streams replace what their encoding lacks, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """Give a closed pipe no second chance to complain while the interpreter shuts down."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def emit(value: Json, text: str, as_json: bool) -> None:
    """Print ``value`` as JSON, or ``text`` for people."""
    if as_json:
        print_json(value)
    else:
        say(text)


def print_json(value: Json) -> None:
    """Print indented JSON; escaped to ASCII when the stream is not UTF-8."""
    print(_json(value, indent=2))


def say(text: str) -> None:
    """Print text on standard output."""
    print(shown(text))


def warn(text: str) -> None:
    """Print a remark on standard error."""
    print(shown(text), file=sys.stderr)


def print_error(kind: str, message: str, hint: str, code: int, as_json: bool) -> int:
    """Print ``Error: <kind>: <message>`` and the hint on standard error; returns ``code``."""
    if as_json:
        error = {"kind": kind, "message": message, "hint": hint, "exit_code": code}
        print(json.dumps(secretless({"error": error})), file=sys.stderr)
    else:
        warn(f"Error: {kind}: {message}")
        if hint:
            warn(hint)
    return code


def who(actor: str, channel: str) -> str:
    """Return by whom something was done, as far as it is known.

    >>> who("ada", "cli-person"), who("", "worker"), who("ada", "worker"), who("", "")
    ('ada (cli-person)', 'the worker', 'the worker', 'not known')
    """
    if actor and channel not in ("worker", "transcript"):  # which run in a person's name
        return f"{actor} ({channel})" if channel else actor
    return _DOORS.get(channel, channel) or "not known"


def shown(text: str) -> str:
    """Return text as it may be printed: without secrets, control characters as escapes."""
    return printable(without_secrets(text))


def printable(text: str) -> str:
    """Return text with control characters (but for newline and tab) written as escapes.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in "\n\t" or not _is_control(char) else _escape(char) for char in text
    )


def _json(value: Json, indent: int | None = None) -> str:
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    clean = secretless(value, _IDS)
    return json.dumps(clean, ensure_ascii=encoding != "utf8", indent=indent, default=str)


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as aligned columns, two blanks apart."""
    table = [[cell.replace("\n", " ") for cell in row] for row in rows]
    if not table:
        return ""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def ago(seconds: float) -> str:
    """Return an age in one unit: ``3 s``, ``5 min``, ``2 h``, ``4 d``."""
    whole = max(0, int(seconds))
    for size, name in _UNITS:
        if whole >= size:
            return f"{whole // size} {name}"
    return "0 s"


def details(pairs: Mapping[str, str]) -> str:
    """Return ``name: value`` lines, aligned."""
    width = max(map(len, pairs), default=0) + 1
    return "\n".join(f"  {name + ':':<{width}} {value}" for name, value in pairs.items())


def _is_control(char: str) -> bool:
    # C0, DEL, C1, and the marks that turn the direction of what follows on the screen.
    turning = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return char < " " or "\x7f" <= char <= "\x9f" or char in turning


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def held_back(outcome: Outcome) -> str:
    """Return what to tell of something that was stored, and is shown to nobody yet."""
    return (
        f'[hypatia-memory] Held back: "{outcome.name}", for {outcome.reason}.\n'
        "A person decides about it: hypatia-mem review"
    )


def print_line(value: Json) -> None:
    """Print a value as one line of JSON, at once: a program may read it as it comes."""
    print(_json(value), flush=True)


def print_page(
    rows: list[dict[str, Any]], cursor: str | None, text: str | None, as_json: bool
) -> None:
    """Print a page of rows with the cursor of the next: as one object, or with a line about it.

    ``text`` is what people see instead of the rows, where they have another form.
    """
    if as_json:
        print_json({"rows": rows, "next": cursor})
        return
    if text is None:
        print_rows(rows, as_json)
    elif text:
        say(text)
    if cursor is not None:
        warn(f"There are more: --cursor {cursor}")


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows as JSON; none are a sentence, or an empty list for a machine."""
    if rows or as_json:
        print_json(rows)
    else:
        say("No results found.")

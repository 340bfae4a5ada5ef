"""What was typed at the prompt of ``repl``: a file that a forgetting goes through too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["HISTORY", "forget_lines", "read_lines", "write_lines"]

HISTORY = "repl_history"
_KEPT_LINES = 1000


def read_lines(home: Path) -> list[str]:
    """Return what was typed, oldest first; nothing when there is no such file."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (home / HISTORY).read_text("utf-8").splitlines()[-_KEPT_LINES:]
    return []


def write_lines(home: Path, lines: Iterable[str]) -> None:
    """Keep the last lines (0600); without a home there is nowhere to, and that is no failure."""
    if not home.is_dir():
        return
    temporary = home / f".{HISTORY}.{os.getpid()}"
    text = "".join(f"{line}\n" for line in list(lines)[-_KEPT_LINES:])
    with contextlib.suppress(OSError):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as out:
            out.write(text)
        temporary.replace(home / HISTORY)


def forget_lines(home: Path, texts: Iterable[str], request: str = "") -> int:
    """Drop the lines that hold one of these texts, in whatever spelling; return how many.

    So goes the line that asked for it, by the words of the ``request``.
    """
    from hypatia_mem.store.tombstones import canonical

    lines = read_lines(home)
    if not lines:
        return 0
    values = {value for text in texts if (value := canonical(text))}
    asked = canonical(request)
    kept = [
        line
        for line in lines
        if not any(value in canonical(line) for value in values)
        and not (asked and line.startswith("forget ") and asked in canonical(line))
    ]
    if len(kept) < len(lines):
        write_lines(home, kept)
    return len(lines) - len(kept)

"""Quoting what was recalled: on lines of its own, cut to a size, nothing that drives a terminal.

Sizes are counted in UTF-16 units, as the client counts what a hook hands over.
"""

from __future__ import annotations

import unicodedata

__all__ = ["cut", "quote_block", "quote_line", "units"]

_JOINERS = "\u200c\u200d"  # which whole scripts and emoji need


def units(text: str) -> int:
    """Count UTF-16 code units, the client's measure of a hook's output.

    >>> units("a"), units("\U0001f44d")
    (1, 2)
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def quote_line(text: str, limit: int) -> str:
    """Put a text on one line, cut at ``limit`` units with an ellipsis."""
    return cut(" ".join(tamed(text).split()), limit)


def quote_block(text: str, limit: int) -> str:
    """Quote a text line by line, keeping its beginning and its end when it is too long."""
    clean = tamed(text).strip()
    lines = [f"> {line.rstrip()}" for line in clean.splitlines() if line.strip()]
    whole = "\n".join(lines)
    if units(whole) <= limit:
        return whole
    head = cut(whole, max(20, limit * 2 // 3), mark="")
    end = cut_front(whole, max(0, limit - units(head) - 12))
    return f"{head}\n> [...]\n> {end.lstrip('> ')}" if end else head


def tamed(text: str) -> str:
    """Write what would drive a terminal as an escape: clients show what a hook handed over."""
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if _is_unseen(char) else char for char in text
    )


def _is_unseen(char: str) -> bool:
    unseen = unicodedata.category(char) in ("Cc", "Cf")
    return unseen and not char.isspace() and char not in _JOINERS


def cut(text: str, limit: int, mark: str = "…") -> str:
    """Return the beginning of a text, ``limit`` units of it, with ``mark`` where it is cut."""
    if units(text) <= limit:
        return text
    raw = text.encode("utf-16-le", "surrogatepass")[: max(0, limit - units(mark)) * 2]
    return raw.decode("utf-16-le", "ignore") + mark


def cut_front(text: str, limit: int) -> str:
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw[len(raw) - limit * 2 :].decode("utf-16-le", "ignore") if limit > 0 else ""

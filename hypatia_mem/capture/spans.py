"""Where something stands in a text: what the families of secrets are made of.

Somebody who pastes a log brings a text of megabytes, or a word ten thousand times. So whatever has
many places is first asked at C speed, by a pattern of what must follow (``places``), and what is
looked for is sought once in the whole of a text and never again in its pieces (``View.among``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Family", "Span", "View", "has_digit", "later", "places", "positions", "starts_word"]

Span = tuple[int, int, str]  # start, end, kind
Later = Callable[[], re.Pattern[str]]
_FEW = 48  # so many places are looked at one by one before a pattern is worth compiling
_LARGE = 1 << 14  # characters; in a larger text many literals are sought together
_RARE = 64  # an end of literals is rare when it is no more than every so-manyth character
_ODD = ("\u212a", "\u0130")  # letters that are ASCII in lower case only


def later(source: str, flags: int = 0) -> Later:
    """Return what compiles the expression when it is first asked for: an event needs few."""
    return cache(lambda: re.compile(source, flags))


_DIGIT = later("[0-9]")


def has_digit(text: str) -> bool:
    """Tell whether a digit of any script is in the text."""
    if text.isascii():
        return _DIGIT().search(text) is not None
    return any(c.isdigit() for c in text)


class View:
    """A text as the families read it: as it is, and of the same length in lower case.

    The view of a piece of a text (what stands between two placeholders, one string of an event) is
    made with the view of the whole, so that many pieces are asked for nothing that is in none.
    """

    __slots__ = ("_found", "lowered", "text", "whole")

    def __init__(self, text: str, whole: View | None = None) -> None:
        """Look at a text, or at a piece of what ``whole`` looks at."""
        lowered = text.lower()
        if len(lowered) != len(text):  # only the dotted capital I grows when it is lowered
            lowered = text.replace("\u0130", "I").lower()
        self.text, self.lowered = text, lowered
        self.whole = whole
        self._found: dict[int, tuple[Any, ...]] = {}

    def among(self, rows: tuple[tuple[Any, ...], ...], *, lowered: bool = True) -> tuple[Any, ...]:
        """Return the rows of a table of a module whose first member is in the text, in order.

        ``lowered``: it is sought in the text in lower case.
        """
        found = self._found.get(id(rows))
        if found is None:
            known = rows if self.whole is None else self.whole.among(rows, lowered=lowered)
            there = _present(self.lowered if lowered else self.text, known) if known else ()
            found = tuple(row for row in known if row[0] in there) if there else ()
            self._found[id(rows)] = found
        return found

    def families(self, families: tuple[Family, ...]) -> tuple[Any, ...]:
        """Return what finds those of the families of which the text, or its whole, can hold any."""
        whole = self.whole or self
        found = whole._found.get(id(families))
        if found is None:
            found = tuple(find for find, can_be in families if can_be(whole))
            whole._found[id(families)] = found
        return found

    def is_odd(self) -> bool:
        """Tell whether letters are in the text that are ASCII in lower case alone."""
        return not self.text.isascii() and any(letter in self.text for letter in _ODD)


def _present(text: str, rows: tuple[tuple[Any, ...], ...]) -> set[str]:
    """Return which of the rows' first members are in the text.

    In a large one those that end in the same mark are sought in what stands before that mark,
    each such ending once: of a log that is little.
    """
    if len(text) < _LARGE:
        return {row[0] for row in rows if row[0] in text}
    ends: dict[str, list[str]] = {}
    for literal, *_ in rows:
        ends.setdefault("" if literal[-1:].isalnum() else literal[-1:], []).append(literal)
    there: set[str] = set()
    for end, group in ends.items():
        part = text
        if end and len(group) > 2 and text.count(end) * _RARE <= len(text):
            longest = max(map(len, group)) - 1
            part = "\n".join({text[max(0, at - longest) : at + 1] for at in positions(text, end)})
        there.update(literal for literal in group if literal in part)
    return there


def positions(text: str, needle: str) -> Iterator[int]:
    """Yield every place where ``needle`` begins, overlapping ones too."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def places(text: str, needle: str, gate: Later | None) -> Iterator[int]:
    """Yield the places where ``needle`` begins: after the first few, only where ``gate`` matches.

    The gate begins with the needle and goes on with what must stand there for the place to matter.
    """
    for count, at in enumerate(positions(text, needle)):
        yield at
        if count == _FEW and gate is not None:
            search = gate().search
            while match := search(text, at + 1):
                at = match.start()
                yield at
            return


def starts_word(text: str, at: int) -> bool:
    r"""Tell whether no word runs into position ``at``; an escaped ``\n`` before it is no word."""
    before = text[at - 1 : at] if at else ""
    return not before.isalnum() or (text[max(0, at - 2) : at - 1] == "\\" and before in "nrt")


Find = Callable[[View], Iterator[Span]]
# What finds it, and whether a text can hold any: asked of a whole, once.
Family = tuple[Find, Callable[[View], object]]

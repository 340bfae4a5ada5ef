"""Cutting an item into units that can stand in a summary by themselves, with where they stand.

A unit is a sentence, a line of a list, or a line of code; never longer than ``MAX_CHARS``, so that
no long stretch of a source is ever repeated whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hypatia_mem.memory.summarise import facts, words
from hypatia_mem.memory.summarise.protocol import Item

__all__ = ["ALSO", "INFERRED", "MAX_CHARS", "SESSION", "Unit", "units_of"]

MAX_CHARS = 190
# The form of a stored summary, which is what the level above reads.
INFERRED = " [inferred]"
ALSO = "Also: "
SESSION = "## Session "
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s*|\|\s*)*")
# A sentence ends at its mark and a blank; in CJK at its mark alone.
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”]*")
_BREAK = re.compile(r"[,;:，、；：]\s*|\s")
_SAID = re.compile(r"(user|assistant|[A-Z][\w .'-]{0,30}): ")
_RULER = re.compile(r"[\s\-=_*|:.~`#]*\Z")


@dataclass(frozen=True)
class Unit:
    """A piece of an item: its text on one line, and its place there.

    What it says is found out once, however often it is asked: by who chooses, by who ties a
    sentence to it, and by who counts what was lost.
    """

    item: int
    start: int
    end: int
    text: str
    speaker: str
    session_id: str = ""
    code: bool = False
    inferred: bool = False

    @cached_property
    def terms(self) -> frozenset[str]:
        """Return its telling terms."""
        return frozenset(words.terms(self.text))

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Return its names of things."""
        return frozenset(facts.tokens(self.text))

    @cached_property
    def decides(self) -> bool:
        """Tell whether it says what was decided."""
        return facts.is_decision(self.text)

    @cached_property
    def negates(self) -> bool:
        """Tell whether it says what is not, or must not be."""
        return facts.is_negation(self.text)


def units_of(number: int, item: Item) -> Iterator[Unit]:
    """Yield the units of the item with this number in its batch, in order.

    Of a summary (an item without a speaker) its headings tell the sessions, and its list of names
    is no sentence.
    """
    place = _Place(number, item)
    code = False
    for line in _LINE.finditer(item.text):
        if _FENCE.match(line.group()):
            code = not code
            continue
        start, end = line.span()
        if not item.speaker and place.heading(line.group()):
            continue
        if not code:
            marker = _MARKER.match(item.text, start, end)
            start = marker.end() if marker else start
        if _RULER.match(item.text, start, end):
            continue
        inferred = not item.speaker and item.text.endswith(INFERRED, start, end)
        if inferred:
            end -= len(INFERRED)
        elif not item.speaker and item.text.startswith(ALSO, start):
            continue
        speaker = item.speaker
        if not speaker and (said := _SAID.match(item.text, start, end)):
            speaker, start = said.group(1), said.end()
        pieces = [(start, end)] if code else _sentences(item.text, start, end)
        for left, right in pieces:
            for one, other in _cut(item.text, left, right):
                text = " ".join(item.text[one:other].split())
                yield Unit(number, one, other, text, speaker, place.session_id, code, inferred)


class _Place:
    """Which session the lines of an item belong to, as its headings say."""

    def __init__(self, number: int, item: Item) -> None:
        self.number = number
        self.session_id = item.session_id

    def heading(self, line: str) -> bool:
        if line.startswith(SESSION):
            self.session_id = line.removeprefix(SESSION).partition(",")[0].strip()
        return line.startswith("#")


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a stretch without the blanks around it, in pieces that are not too long."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if end <= start:
            return
        middle = _break(text, start) if end - start > MAX_CHARS else end
        yield start, middle
        start = middle


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for mark in _END.finditer(text, start, end):
        yield start, mark.end()
        start = mark.end()
    if start < end:
        yield start, end


def _break(text: str, start: int) -> int:
    """Return where to cut what is too long: behind its last comma or blank, or anywhere."""
    last = start + MAX_CHARS
    for mark in _BREAK.finditer(text, start + MAX_CHARS // 2, last):
        last = mark.end()
    return last

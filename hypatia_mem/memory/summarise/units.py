"""Cutting an item into units that can stand in a summary by themselves, with where they stand.

A unit is a sentence, a line of a list, or a line of code; never longer than ``MAX_CHARS``, so that
no long stretch of a source is ever repeated whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hypatia_mem.memory.summarise.protocol import Item

__all__ = ["MAX_CHARS", "Unit", "units_of"]

MAX_CHARS = 190
_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s*|\|\s*)*")
# A sentence ends at its mark and a blank; in CJK at its mark alone.
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”]*")
_BREAK = re.compile(r"[,;:，、；：]\s*|\s")
_SAID = re.compile(r"(user|assistant|[A-Z][\w .'-]{0,30}): ")
_RULER = re.compile(r"[\s\-=_*|:.~`#]*\Z")


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of an item: its text on one line, and its place there."""

    item: int
    start: int
    end: int
    text: str
    speaker: str
    code: bool = False


def units_of(number: int, item: Item) -> Iterator[Unit]:
    """Yield the units of the item with this number in its batch, in order."""
    code = False
    for line in _LINE.finditer(item.text):
        if _FENCE.match(line.group()):
            code = not code
            continue
        start, end = line.span()
        if not code:
            marker = _MARKER.match(item.text, start, end)
            start = marker.end() if marker else start
        if _RULER.match(item.text, start, end):
            continue
        pieces = [(start, end)] if code else _sentences(item.text, start, end)
        for left, right in pieces:
            yield from _unit(number, item, left, right, code)


def _unit(number: int, item: Item, start: int, end: int, code: bool) -> Iterator[Unit]:
    text = item.text
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    speaker = item.speaker
    if not speaker and (said := _SAID.match(text, start, end)):
        speaker, start = said.group(1), said.end()
    while end - start > MAX_CHARS:
        middle = _break(text, start)
        yield Unit(number, start, middle, " ".join(text[start:middle].split()), speaker, code)
        start = middle
        while start < end and text[start].isspace():
            start += 1
    if end > start:
        yield Unit(number, start, end, " ".join(text[start:end].split()), speaker, code)


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

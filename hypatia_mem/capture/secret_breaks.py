r"""Secrets that are broken over lines: by a terminal, a mail, a ``\`` or a sum of strings.

A token whose first piece is too short to be known by itself is put together first; what another
family found is followed to the next line when that line holds nothing but more of the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from hypatia_mem.capture import hints
from hypatia_mem.capture.secret_shapes import PREFIXES
from hypatia_mem.capture.spans import (
    Family,
    Later,
    Span,
    View,
    later,
    places,
    starts_word,
)

__all__ = ["BROKEN", "continued"]

_PIECES = 64  # of one secret: more lines than any key has
# A line's end (escaped or not, after a backslash or not), or the end of one string and the
# beginning of the next; the group "sure" says that whoever wrote it meant one value.
_JOINT = later(
    r"""(?P<sure>\\?\\[ \t]{0,2}\r?\n[ \t]{0,24}|\\\\\\n[ \t]{0,24}|\\?(["'`])[ \t]{0,4}[+.&\\]?[ \t]{0,4}"""
    r"""(?:\r?\n|\\r?\\?n)?[ \t]{0,24}[+.&]?[ \t]{0,4}\\?\2)|(?:\r?\n|(?:\\r)?\\n)[ \t>|]{0,24}"""
)
_LINE = later(r"""[A-Za-z0-9+/=_-]{2,}(?=[\s"'`\\,;)\]}]|$)""")
_CAMEL = later("[a-z][A-Z]")
_LEAST = 12  # characters of what is broken over lines: no password is
_NO_JOINT = frozenset(" \t.,;:)]}")  # what stands behind most secrets


def broken_tokens(view: View) -> Iterator[Span]:
    """Tokens that say by their first letters whose they are, broken before they are long enough."""
    text = view.text
    for prefix, kind, alphabet, count in view.among(PREFIXES, lowered=False):
        if not count or kind == "jwt":
            continue
        first_piece = _first(alphabet, count)
        for at in places(text, prefix, _gate(prefix, alphabet, count)):
            start = at + len(prefix)
            if len(prefix) <= 5 and prefix[0] != "." and not starts_word(text, at):
                continue
            first = first_piece().match(text, start)
            if first and len(first[0]) < count:
                end = _joined(text, first.end(), alphabet, count - len(first[0]))
                if end:
                    yield at, end, kind


BROKEN: Family = (broken_tokens, lambda view: view.among(PREFIXES, lowered=False))


@cache
def _first(alphabet: str, count: int) -> Later:
    return later(f"{_letters(alphabet)}{{4,{count}}}")


@cache
def _gate(prefix: str, alphabet: str, count: int) -> Later:
    """Return the pattern of a token's beginning that ends at a line's or a string's end."""
    return later(rf"""{re.escape(prefix)}{_letters(alphabet)}{{4,{count - 1}}}(?=[\\"'`\r\n])""")


@cache
def _letters(alphabet: str) -> str:
    return "[" + "".join(re.escape(chr(byte)) for byte in hints.ALPHABETS[alphabet]) + "]"


def _joined(text: str, end: int, alphabet: str, lacking: int) -> int:
    """Return where the pieces after ``end`` end, or 0 when they do not make up what is lacking."""
    piece = _piece(alphabet)()
    for _ in range(_PIECES):
        joint = _JOINT().match(text, end)
        more = piece.match(text, joint.end()) if joint else None
        if not more or not _is_scrap(more[0]):
            break
        end, lacking = more.end(), lacking - len(more[0])
    return end if lacking <= 0 else 0


@cache
def _piece(alphabet: str) -> Later:
    return later(f"{_letters(alphabet)}{{2,}}")


def continued(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """What goes on behind the spans: lines that hold one random piece and nothing else."""
    lines: dict[int, tuple[int, bool, bool]] = {}  # each is read once, for many spans in a row
    for start, end, kind in spans:
        if kind in ("private", "private-key") or text[end : end + 1] in _NO_JOINT:
            continue
        if end - start < _LEAST:
            continue
        place = end
        for number in range(_PIECES):
            if place not in lines:
                lines[place] = _next_line(text, place)
            line_end, is_first, is_later = lines[place]
            if not (is_later if number else is_first):
                break
            place = line_end
        if place > end:
            yield start, place, kind


def _next_line(text: str, place: int) -> tuple[int, bool, bool]:
    """Return where the next line's piece ends, and whether it goes on as the first, as a later one.

    The more is known, the less is asked.
    """
    joint = _JOINT().match(text, place)
    more = _LINE().match(text, joint.end()) if joint else None
    if not joint or not more:
        return place, False, False
    piece, is_sure = more[0], bool(joint["sure"])
    is_later = _is_scrap(piece) or (is_sure and len(piece) >= 16)
    is_first = is_later if is_sure else len(piece) >= 10 and hints.changes_often(piece)
    return more.end(), is_first, is_later


def _is_scrap(piece: str) -> bool:
    """Tell whether a piece is no word: a digit among letters, or a capital after a small one."""
    letters = any(c.isalpha() for c in piece)
    return letters and (any(c.isdigit() for c in piece) or _CAMEL().search(piece) is not None)

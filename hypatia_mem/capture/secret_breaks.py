r"""Secrets that are broken over lines: by a terminal, a mail, a ``\`` or a sum of strings.

A token whose first piece is too short to be known by itself is put together first; what another
family found is followed to the next line when that line holds nothing but more of the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from hypatia_mem.capture import hints
from hypatia_mem.capture.secret_shapes import TOKENS
from hypatia_mem.capture.spans import Later, Span, View, later, places, starts_word

__all__ = ["broken_tokens", "continued"]

_PIECES = 64  # of one secret: more lines than any key has
# A line's end (escaped or not, after a backslash or not), or the end of one string and the
# beginning of the next; the group "sure" says that whoever wrote it meant one value.
_JOINT = later(
    r"""(?P<sure>\\?\\[ \t]{0,2}\r?\n[ \t]{0,24}|\\\\\\n[ \t]{0,24}|\\?(["'`])[ \t]{0,4}[+.&\\]?[ \t]{0,4}"""
    r"""(?:\r?\n|\\r?\\?n)?[ \t]{0,24}[+.&]?[ \t]{0,4}\\?\2)|(?:\r?\n|(?:\\r)?\\n)[ \t>|]{0,24}"""
)
_LINE = later(r"""[A-Za-z0-9+/=_-]{2,}(?=[\s"'`\\,;)\]}]|$)""")
_CAMEL = later("[a-z][A-Z]")
_NO_JOINT = frozenset(" \t.,;:)]}")  # what stands behind most secrets


def broken_tokens(view: View) -> Iterator[Span]:
    """Tokens that say by their first letters whose they are, broken before they are long enough."""
    text = view.text
    for prefix, kind, alphabet, count in view.among(TOKENS, lowered=False):
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
    for start, end, kind in spans:
        if kind in ("private", "private-key") or text[end : end + 1] in _NO_JOINT:
            continue
        begun, place = text[start:end], end
        for number in range(_PIECES):
            joint = _JOINT().match(text, place)
            if not joint:
                break
            more = _LINE().match(text, joint.end())
            if not more or not _goes_on(begun, more[0], sure=bool(joint["sure"]), later=number > 0):
                break
            place = more.end()
        if place > end:
            yield start, place, kind


def _goes_on(begun: str, piece: str, *, sure: bool, later: bool) -> bool:
    """Tell whether a piece continues what was found; the more is known, the less is asked."""
    if len(begun) < 12:  # a password is not broken over lines
        return False
    if sure or later:
        return _is_scrap(piece) or (sure and len(piece) >= 16)
    return len(piece) >= 10 and hints.changes_often(piece)


def _is_scrap(piece: str) -> bool:
    """Tell whether a piece is no word: a digit among letters, or a capital after a small one."""
    letters = any(c.isalpha() for c in piece)
    return letters and (any(c.isdigit() for c in piece) or _CAMEL().search(piece) is not None)

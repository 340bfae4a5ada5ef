"""The pieces of a text by which its bytes are found again, in whatever a program made of it.

A text is cut at its lines and sentences, and long ones into stretches of 48 characters, so that an
excerpt of it is found too. Files are searched for each piece as plain UTF-8 and as JSON writes it,
with ASCII letters in either case. A piece is lower case and at least 12 characters long, except
that of a text which is shorter as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["MOST", "Pieces", "pieces_of"]

MOST = 400  # pieces that are searched for; of more, this many are taken evenly from all
_LEAST = 12
_LEAST_WHOLE = 4
_STRETCH = 48
_CHUNK = 1 << 22
_BREAK = re.compile(r"[\r\n\t]+|(?<=[.!?;。！？])\s+")


def pieces_of(texts: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """Return the pieces of some texts, in order and without repetition.

    >>> pieces_of(["Never mock the database. It lies.", "ab"])
    ('never mock the database.',)
    """
    found: dict[str, None] = {}
    for text in texts:
        lowered = text.strip().lower()
        if _LEAST_WHOLE <= len(lowered) < _LEAST:
            found.setdefault(lowered)
        for part in _BREAK.split(lowered):
            for piece in _stretches(part.strip()):
                found.setdefault(piece)
    every = list(found)
    if len(every) <= most:
        return tuple(every)
    return tuple(every[place * len(every) // most] for place in range(most))


def _stretches(part: str) -> list[str]:
    if len(part) < _LEAST:
        return []
    if len(part) <= _STRETCH + _LEAST:
        return [part]
    starts = range(0, len(part) - _STRETCH + 1, _STRETCH)
    return [*(part[at : at + _STRETCH] for at in starts), part[-_STRETCH:]]


class Pieces:
    """Pieces as bytes, ready to look for."""

    def __init__(self, pieces: Sequence[str]) -> None:
        """Take the pieces that ``pieces_of`` gave."""
        self.texts = tuple(pieces)
        self._forms = tuple(dict.fromkeys(form for piece in pieces for form in _forms(piece)))
        self._longest = max(map(len, self._forms), default=0)

    def in_bytes(self, data: bytes) -> bool:
        """Tell whether one of them is in some bytes."""
        lowered = data.lower()
        return any(form in lowered for form in self._forms)

    def in_file(self, path: Path) -> bool:
        """Tell whether one of them is in a file; a file that is gone holds none. Raises OSError."""
        if not self._forms:
            return False
        try:
            with path.open("rb") as file:
                before = b""
                while chunk := file.read(_CHUNK):
                    if self.in_bytes(before + chunk):
                        return True
                    before = chunk[-self._longest :]
        except FileNotFoundError:
            return False
        return False

    def in_text(self, text: str) -> bool:
        """Tell whether one of them is in a text."""
        lowered = text.lower()
        return any(piece in lowered for piece in self.texts)


def _forms(piece: str) -> list[bytes]:
    """Return a piece as it may stand in a file: plain, in JSON, and in JSON within JSON."""
    plain = json.dumps(piece, ensure_ascii=False)[1:-1]
    ascii_ = json.dumps(piece)[1:-1]
    nested = (json.dumps(one, ensure_ascii=False)[1:-1] for one in (plain, ascii_))
    return [one.encode("utf-8", "surrogatepass").lower() for one in (piece, plain, ascii_, *nested)]

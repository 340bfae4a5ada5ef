"""What a session is not told: turns of its sibling branches, and what stands on them.

``<home>/index/branches`` holds it for every branch there is, and for whoever is none (``""``), as
the store said it when the index was last written; ``hiding`` writes it just before. So whoever
searches knows it without the store. Where there are no branches there is no such file. What is
derived is in it by its document's id, a keyed digest: it holds no name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FILE", "NOTHING", "Hidden", "Turns", "told", "turns_of"]

FILE = "branches"  # in the index's folder


class Turns(NamedTuple):
    """Turns of a session, both ends included; ``last`` None: all that will ever come, too."""

    session: str
    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a session is not told: messages by their turns, all else by document id."""

    turns: tuple[Turns, ...] = ()
    ids: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.turns or self.ids)


NOTHING = Hidden()


def told(home: Path, session_id: str) -> Hidden:
    """Return what a session is not told; ``""``, or one that is no branch: what nobody else is."""
    found = _read(home)
    one = found.get(session_id) or found.get("")
    if not one:
        return NOTHING
    return Hidden(_turns(one["hidden"]), tuple(one["ids"]))


def turns_of(home: Path, session_id: str) -> tuple[Turns, ...]:
    """Return the turns that a branch reads as its own, its ancestors' first.

    Of a session that is no branch all of its turns.
    """
    one = _read(home).get(session_id)
    return _turns(one["reads"]) if one and session_id else (Turns(session_id, 1, None),)


def _turns(found: Sequence[Sequence[Any]]) -> tuple[Turns, ...]:
    return tuple(Turns(*one) for one in found)


def _read(home: Path) -> dict[str, Any]:
    try:
        found = json.loads((home / "index" / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

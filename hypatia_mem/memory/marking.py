"""What a brief says of how far an entry is believed, and what it tells beside the memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from hypatia_mem.memory import goals
from hypatia_mem.memory.opposites import opposites
from hypatia_mem.memory.trust import words_of
from hypatia_mem.model import Entry, Trust

__all__ = ["marks", "with_goals", "with_pinned"]


def marks(entries: Sequence[Entry], unverified: Collection[str]) -> dict[str, str]:
    """Return by name what stands in front of an entry's words; nothing for what a person said.

    ``unverified`` are the names of what no person said; none of entries of another time, whose
    authors are not asked for. Two that say the opposite are told as such, until both are verified.
    """
    found: dict[str, str] = {}
    for entry in entries:
        if entry.name in unverified:
            found[entry.name] = goals.BY_AGENT if entry.kind == "goal" else "[unverified]"
    for entry in entries:
        if entry.trust in (Trust.DISPUTED, Trust.STALE):
            found[entry.name] = f"[{entry.trust}]"
    for pair in opposites(entries):
        if any(one.trust != Trust.VERIFIED for one in pair):
            for one, other in (pair, pair[::-1]):
                found[one.name] = f"[contradicts {other.name}]"
    return found


def with_pinned(entries: Sequence[Entry], pinned: Iterable[Entry]) -> list[Entry]:
    """Return these entries and what else is pinned."""
    have = {entry.name for entry in entries}
    more = [
        replace(one, content=words_of(one))
        for one in pinned
        if one.name not in have and one.kind not in ("rule", "taboo", "memory")
    ]
    return [*entries, *more]


def with_goals(entries: Sequence[Entry], found: Iterable[Entry]) -> list[Entry]:
    """Return these entries and the goals that were ``found``, each in one line."""
    told = [replace(one, content=goals.goal_of(one).line) for one in found]
    have = {one.name for one in told}
    return [*(one for one in entries if one.name not in have), *told]

"""What a brief says of how far an entry is believed, and what it tells beside the memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.memory import goals
from hypatia_mem.memory.opposites import opposites
from hypatia_mem.memory.trust import words_of
from hypatia_mem.model import Entry, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["marks", "with_goals", "with_pinned"]


def marks(store: Store, entries: Sequence[Entry], *, now: bool = True) -> dict[str, str]:
    """Return by name what stands in front of an entry's words; nothing for what a person said.

    ``now`` False: the entries are of another time, whose authors are not asked for. Two that say
    the opposite are told as such, until both are verified.
    """
    from hypatia_mem.store import reviewing

    found: dict[str, str] = {}
    if now:
        names = [entry.name for entry in entries]
        found = dict.fromkeys(reviewing.unverified(store, names), "[unverified]")
        found |= {
            one.name: goals.BY_AGENT for one in entries if one.kind == "goal" and one.name in found
        }
    for entry in entries:
        if entry.trust in (Trust.DISPUTED, Trust.STALE):
            found[entry.name] = f"[{entry.trust}]"
    for pair in opposites(entries):
        if any(one.trust != Trust.VERIFIED for one in pair):
            for one, other in (pair, pair[::-1]):
                found[one.name] = f"[contradicts {other.name}]"
    return found


def with_pinned(
    store: Store, scopes: Sequence[str], entries: Sequence[Entry], at: datetime | None
) -> list[Entry]:
    """Return these entries and what else is pinned in these scopes and true at that time."""
    from hypatia_mem.store import reviewing

    have = {entry.name for entry in entries}
    more = [
        replace(one, content=words_of(one))
        for one in reviewing.pinned(store, scopes, at=at)
        if one.name not in have and one.kind not in ("rule", "taboo", "memory")
    ]
    return [*entries, *more]


def with_goals(
    store: Store,
    scopes: Sequence[str],
    entries: Sequence[Entry],
    at: datetime,
    *,
    known_at: datetime | None = None,
) -> list[Entry]:
    """Return these entries and the goals that are open then, each in one line."""
    from hypatia_mem.store import episodes

    found = episodes.goals(store, scopes, at=at, known_at=known_at)
    told = [replace(one, content=goals.goal_of(one).line) for one in found]
    have = {one.name for one in told}
    return [*(one for one in entries if one.name not in have), *told]

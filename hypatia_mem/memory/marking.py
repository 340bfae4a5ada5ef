"""What a brief says of how far an entry is believed, and what is pinned beside the memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.memory.opposites import opposites
from hypatia_mem.memory.trust import words_of
from hypatia_mem.model import Entry, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["marks", "with_pinned"]


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

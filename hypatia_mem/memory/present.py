"""What holds at a time, asked for once: what the briefs of all projects are made of.

A change has every project's brief rendered again, and each asks the same things of the store. For
one project's brief they are asked of that project alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.model import Entry
    from hypatia_mem.store.forest import Forest
    from hypatia_mem.store.opened import Store

_MOST_THREADS = 10_000

__all__ = ["Present", "look", "of_scopes"]


@dataclass(frozen=True, slots=True)
class Present:
    """What holds ``at`` a time in the scopes that were asked for.

    ``rules`` are rules, taboos and memories, newest first; ``unverified`` names those of all that
    no person said; ``turns`` are the times to come at which one of them begins or ends, in order,
    each with the scopes of what does; ``spoken`` the projects in which something was said.
    """

    at: datetime
    rules: Sequence[Entry]
    pinned: Sequence[Entry]
    goals: Sequence[Entry]
    threads: Sequence[Entry]
    unverified: frozenset[str]
    forest: Forest
    turns: Sequence[tuple[datetime, Sequence[str]]]
    spoken: frozenset[str]

    def turning_points(self, scopes: Iterable[str], most: int) -> list[datetime]:
        """Return the next times at which something of these scopes begins or ends."""
        wanted = set(scopes)
        found = dict.fromkeys(turn for turn, of in self.turns if wanted.intersection(of))
        return list(found)[:most]


def look(
    store: Store,
    scopes: Sequence[str] | None,
    *,
    now: datetime,
    at: datetime | None = None,
) -> Present:
    """Return what holds in these scopes (None: in all) ``at`` a time, now without one.

    What is pinned is asked for no time when there is none. Times are naive UTC.
    """
    from hypatia_mem.store import bitemporal, branches, episodes, reviewing

    rules = store.rules(scopes, at=at or now)
    pinned = reviewing.pinned(store, scopes, at=at)
    goals = episodes.goals(store, scopes, at=at or now)
    names = {entry.name for entry in (*rules, *pinned, *goals)}
    return Present(
        at or now,
        rules,
        pinned,
        goals,
        episodes.threads(store, scopes, at=at or now, limit=_MOST_THREADS),
        frozenset(reviewing.unverified(store, sorted(names)) if names else ()),
        branches.forest(store),
        bitemporal.turning_points(store, scopes, now),
        store.spoken(),
    )


def of_scopes(entries: Iterable[Entry], scopes: Iterable[str]) -> list[Entry]:
    """Return those of these entries that belong to one of these scopes, in their order."""
    wanted = set(scopes)
    return [entry for entry in entries if wanted.intersection(entry.scopes)]

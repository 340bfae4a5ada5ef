"""What is old: sessions by their last message, and what their messages hold up. Reading only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.store import branches, sources
from hypatia_mem.store.episodes import MADE_ANEW

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["YEARLY", "Aged", "aged", "bearing", "messages_of", "standing_on", "yearly"]

YEARLY = "yearly"  # the tag of the summary that stands for a year's old sessions
_LINKS = ("summary", "belongTo")


@dataclass(frozen=True, slots=True)
class Aged:
    """A session that has messages, and when the last of them was."""

    id: str
    last: datetime
    messages: int
    pinned: bool


def aged(store: Store, scope: str) -> list[Aged]:
    """Return a project's sessions that have messages, the newest first."""
    found = store.execute(
        """
        SELECT entry.session_id, max(entry.created_at) AS last, count(*), any_value(session.pinned)
        FROM live_entry AS entry JOIN session ON session.id = entry.session_id
        WHERE list_contains(entry.tags, 'message') AND entry.scopes = [$1]
        GROUP BY entry.session_id ORDER BY last DESC, entry.session_id
        """,
        [scope],
    ).fetchall()
    aged_ = [Aged(str(id_), last, int(count), bool(pinned)) for id_, last, count, pinned in found]
    return sorted(_with_branches(store, aged_), key=lambda one: one.last, reverse=True)


def _with_branches(store: Store, found: Sequence[Aged]) -> list[Aged]:
    """Return sessions as old as the youngest branch that shares what was said in them."""
    there = branches.forest(store)
    made = {one.id: one for one in found}
    for one in map(there.branch, there):
        for span in there.spans(one.id):
            if span.session in made:
                below = made[span.session]
                last = max(below.last, one.updated_at or below.last)
                pinned = below.pinned or one.pinned
                made[span.session] = replace(below, last=last, pinned=pinned)
    return list(made.values())


def messages_of(store: Store, scope: str, sessions: Sequence[str]) -> list[str]:
    """Return the names of the live messages of sessions that belong to this project alone."""
    found = store.execute(
        """
        SELECT name FROM live_entry
        WHERE list_contains(tags, 'message') AND scopes = [$1]
          AND session_id IN (SELECT unnest($2::VARCHAR[]))
        ORDER BY min(created_at) OVER (PARTITION BY session_id), session_id, turn, name
        """,
        [scope, list(sessions)],
    ).fetchall()
    return [str(name) for (name,) in found]


def standing_on(store: Store, names: Sequence[str]) -> list[str]:
    """Return the summaries that directly condense one of these."""
    found = store.execute(
        """
        SELECT DISTINCT subject FROM statement WHERE predicate = 'summary'
          AND object IN (SELECT unnest(?::VARCHAR[])) ORDER BY subject
        """,
        [list(names)],
    ).fetchall()
    return [str(name) for (name,) in found]


def bearing(store: Store, names: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """Return which of these messages something else needs, each with what it is.

    A lesson, a rule, a goal: whatever a statement ties to a message, or to a summary of it, but for
    what is made anew when a source goes. A pinned summary needs all that it condenses: those are
    the second of what is returned, too.
    """
    above = sources.derived(store, names)
    there = {one.name: one for one in store.entries([one.name for one in above])}
    goes = {
        one.name
        for one in above
        if (one.via in _LINKS or one.kind in MADE_ANEW) and not there[one.name].pinned
    }
    found: dict[str, str] = {}
    settled: set[str] = set()
    for one in above:
        if one.name not in goes:
            below = _below(store, one.name) & set(names)
            found.update(dict.fromkeys(below, one.name))
            settled |= below if one.via == "summary" else set()
    tied = store.execute(
        """
        SELECT subject, object FROM statement
        WHERE NOT list_contains($2, predicate) AND (subject IN (SELECT unnest($1::VARCHAR[]))
          OR object IN (SELECT unnest($1::VARCHAR[])))
        ORDER BY triple
        """,
        [list(names), list(_LINKS)],
    ).fetchall()
    for subject, object_ in tied:
        for name, other in ((subject, object_), (object_, subject)):
            if name in names and other not in names and other not in goes:
                found.setdefault(str(name), str(other))
    return found, settled


def yearly(store: Store, scope: str, year: int) -> tuple[str, str, tuple[str, ...]] | None:
    """Return name, text and sources of the summary that stands for a year, None for none."""
    found = store.execute(
        """
        SELECT name, content FROM live_entry WHERE scopes = [$1] AND list_contains(tags, $2)
          AND list_contains(tags, 'summary') AND year(created_at) = $3
        ORDER BY created_at DESC, name LIMIT 1
        """,
        [scope, YEARLY, year],
    ).fetchone()
    if found is None:
        return None
    return str(found[0]), str(found[1]), tuple(sources.sources(store, str(found[0])))


def _below(store: Store, name: str) -> set[str]:
    """Return everything that a derived thing stands on, however far down."""
    seen: set[str] = set()
    front = [name]
    while front:
        front = [below for one in front for below in sources.sources(store, one)]
        front = [one for one in dict.fromkeys(front) if one not in seen]
        seen.update(front)
    return seen

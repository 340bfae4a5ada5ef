"""What is owed when summaries and episodes go: new ones, of what is left. Kept as notes."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Entry
from hypatia_mem.store import episodes, sources, summaries

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = ["OWED_ABOVE", "owe"]

OWED_ABOVE = "cascade_owed_above"  # as the planner reads it
_NOTES = 100  # of summaries that are owed; those forgotten about are in the pool all the same


def owe(
    txn: EntryWrites, entries: Sequence[Entry], *, without: Collection[str]
) -> tuple[tuple[str, ...], ...]:
    """Note what summaries that go leave behind: it is condensed anew, without what goes.

    And which turns episodes told of that go.
    """
    episodes.owe(txn, entries)
    made = [one for one in entries if "summary" in one.tags]
    if not made:
        return ()
    below = _below(txn.store, [one.name for one in made])
    owed: list[list[str]] = []
    above: list[dict[str, Any]] = []
    for one in made:
        level = sources.level_of(one.tags)
        left = [name for name in below.get(one.name, ()) if name not in without]
        if level == 1 and left:
            owed.append(left)
        elif level > 1:
            first = _began(txn.store, one.name)
            if first is not None and one.created_at is not None:
                above.append(_note_of(level, one, first))
    if owed:
        known = summaries.read_note(txn.store, summaries.OWED, [])
        summaries.note(txn, summaries.OWED, [*known, *owed])
    if above:
        known = summaries.read_note(txn.store, OWED_ABOVE, [])
        summaries.note(txn, OWED_ABOVE, [*known, *above][-_NOTES:])
    return tuple(tuple(names) for names in owed)


def _note_of(level: int, entry: Entry, first: datetime) -> dict[str, Any]:
    assert entry.created_at is not None
    return {
        "level": level,
        "scopes": sorted(entry.scopes),
        "from": first.isoformat(),
        "to": entry.created_at.isoformat(),
    }


def _below(store: Store, names: Sequence[str]) -> dict[str, list[str]]:
    """Return what summaries condense, each in the order in which it was condensed."""
    found = store.run(
        """
        SELECT subject, object, content FROM statement
        WHERE predicate = 'summary' AND subject IN (SELECT unnest(?::VARCHAR[]))
          AND trust NOT IN ('candidate', 'rejected')
        """,
        [list(names)],
    )
    placed: dict[str, list[tuple[int, str]]] = {}
    for row in found:
        placed.setdefault(row["subject"], []).append((_place(row["content"]), row["object"]))
    return {name: [one for _, one in sorted(items)] for name, items in placed.items()}


def _place(data: str) -> int:
    try:
        return int(json.loads(data)["source"])
    except (ValueError, TypeError, KeyError):
        return 1 << 30


def _began(store: Store, name: str) -> datetime | None:
    """Return the time of the first thing that a summary stands on, however far down.

    Walked level by level: DuckDB 1.5 loses rows of a recursive query now and then.
    """
    below: dict[str, None] = {}
    front = [name]
    while front:
        found = store.execute(
            "SELECT DISTINCT object FROM statement"
            " WHERE predicate = 'summary' AND subject IN (SELECT unnest(?::VARCHAR[]))",
            [front],
        ).fetchall()
        front = [str(one) for (one,) in found if str(one) not in below]
        below.update(dict.fromkeys(front))
    first = store.execute(
        "SELECT min(created_at) FROM entry WHERE name IN (SELECT unnest(?::VARCHAR[]))",
        [list(below)],
    ).fetchone()
    return None if first is None else first[0]

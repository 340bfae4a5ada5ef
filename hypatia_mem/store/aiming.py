"""Looking up what a name stands for: entries of a session, what came later. Reading only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry
from hypatia_mem.store import rows

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "entries_of",
    "filtered",
    "last_turn",
    "later",
    "scopes_of_statement",
    "triples",
    "turns_from",
]


def entries_of(store: Store, session_id: str) -> list[str]:
    """Return the names of a session's entries: its messages in order, and its summary."""
    found = store.execute(
        "SELECT name FROM entry WHERE session_id = $1 AND (kind = 'message' OR"
        " (kind = 'session' AND name = 'session-' || $1)) ORDER BY kind, turn",
        [session_id],
    ).fetchall()
    return [str(name) for (name,) in found]


def last_turn(store: Store, session_id: str) -> int:
    """Return the number of a session's last turn, 0 when it has none."""
    found = store.execute(
        "SELECT coalesce(max(turn), 0) FROM message WHERE session_id = ?", [session_id]
    ).fetchone()
    return int(found[0]) if found else 0


def turns_from(store: Store, session_id: str, turn: int) -> list[int]:
    """Return the turns of a session from this one on, in order, deleted ones too."""
    found = store.execute(
        "SELECT turn FROM message WHERE session_id = ? AND turn >= ? ORDER BY turn",
        [session_id, turn],
    ).fetchall()
    return [int(number) for (number,) in found]


def later(store: Store, first: Entry, tag: str) -> list[Entry]:
    """Return an entry and those made after it: of its kind and scopes, and with this tag if any."""
    found = store.execute(
        """
        SELECT name FROM entry
        WHERE kind = $1 AND list_sort(scopes) = list_sort($2::VARCHAR[])
          AND ($3 = '' OR list_contains(tags, $3))
          AND (created_at > $5 OR (created_at = $5 AND name >= $4))
        ORDER BY created_at, name
        """,
        [first.kind, list(first.scopes), tag, first.name, first.created_at],
    ).fetchall()
    names = [str(name) for (name,) in found]
    by_name = {one.name: one for one in store.entries(names)}
    return [by_name[name] for name in names]


def scopes_of_statement(store: Store, triple: str) -> tuple[str, ...] | None:
    """Return the scopes of a statement by its key, None when there is none."""
    found = store.execute("SELECT scopes FROM statement WHERE triple = ?", [triple]).fetchone()
    return None if found is None else tuple(found[0])


def triples(store: Store, keys: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the three parts of statements that are there, by their keys."""
    found = store.execute(
        "SELECT subject, predicate, object FROM statement"
        " WHERE triple IN (SELECT unnest(?::VARCHAR[])) ORDER BY triple",
        [list(keys)],
    ).fetchall()
    return [(str(one), str(two), str(three)) for one, two, three in found]


def filtered(
    store: Store,
    *,
    scopes: Sequence[str] | None,
    kinds: Sequence[str] = (),
    tags: Sequence[str] = (),
    session_id: str = "",
    text: str = "",
    withheld: bool = False,
) -> list[Entry]:
    """Return the entries of these scopes (None: all) that all of this holds for, newest first.

    ``kinds`` is any of these, ``tags`` all of these, ``text`` stands in the name or the content
    whatever its case. ``withheld``: those that default reads leave out, and only those.
    """
    found = store.run(
        f"""
        SELECT * FROM {"withheld_entry" if withheld else "live_entry"}
        WHERE ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
          AND (len($2::VARCHAR[]) = 0 OR list_contains($2::VARCHAR[], kind))
          AND list_has_all(tags, $3::VARCHAR[])
          AND ($4 = '' OR session_id = $4)
          AND ($5 = '' OR contains(lower(content), lower($5)) OR contains(lower(name), lower($5)))
        ORDER BY created_at DESC, name
        """,  # noqa: S608 - two of our own views
        [None if scopes is None else list(scopes), list(kinds), list(tags), session_id, text],
    )
    return [rows.entry_of(row) for row in found]

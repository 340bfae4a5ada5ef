"""What waits for a person's decision, and which sessions things hang on. Reading only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Entry
from hypatia_mem.store import rows

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "Queued",
    "Undecided",
    "last_said",
    "origin",
    "pinned",
    "queued",
    "sessions_under",
    "suppressed",
    "undecided",
    "unverified",
]


@dataclass(frozen=True, slots=True)
class Undecided:
    """An entry or a statement (``kind``) that a person is to look at, and why.

    ``name`` is a statement's key. ``reason`` is that of the last word on it, by ``actor`` through
    ``channel``; of what nobody has spoken about yet, who brought it.
    """

    name: str
    kind: str  # entry | statement
    trust: str
    content: str
    scopes: tuple[str, ...]
    reason: str
    actor: str
    channel: str
    at: datetime
    until: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class Queued:
    """A change that waits for a session to end; ``failure`` says why it could not be made."""

    id: str
    session_id: str
    verb: str
    name: str
    arguments: dict[str, Any]
    actor: str
    channel: str
    at: datetime
    failure: str


def undecided(store: Store, scopes: Sequence[str] | None) -> list[Undecided]:
    """Return what is a candidate, disputed or stale in these scopes (None: all), oldest first."""
    found = store.run(
        """
        WITH open AS (
            SELECT name, 'entry' AS kind, trust, content, scopes, agent AS actor, channel,
                updated_at AS "at", version
            FROM entry WHERE trust IN ('candidate', 'disputed', 'stale') AND NOT suppressed
            UNION ALL
            SELECT triple, 'statement', trust, content, scopes, '', channel, recorded_at, 0
            FROM statement WHERE trust IN ('candidate', 'disputed', 'stale')
        )
        SELECT open.name, open.kind, open.trust, open.content, open.scopes, open.version,
            coalesce(verdict.reason, '') AS reason,
            coalesce(verdict.actor, open.actor) AS actor,
            coalesce(verdict.channel, open.channel) AS channel,
            coalesce(verdict."at", open."at") AS "at", verdict.until
        FROM open LEFT JOIN verdict
            ON verdict.name = open.name AND verdict.kind = open.kind AND verdict.trust = open.trust
        WHERE $1::VARCHAR[] IS NULL OR len(open.scopes) = 0 OR list_has_any(open.scopes, $1)
        ORDER BY coalesce(verdict."at", open."at"), open.name
        """,
        [None if scopes is None else list(scopes)],
    )
    return [Undecided(**{**row, "scopes": tuple(row["scopes"])}) for row in found]


def queued(store: Store, *, failed: bool | None = None) -> list[Queued]:
    """Return the changes that wait, oldest first; ``failed``: only those that did, or did not."""
    found = store.run('SELECT * FROM queued ORDER BY "at", id')
    made = [Queued(**{**row, "arguments": json.loads(row["arguments"])}) for row in found]
    return [one for one in made if failed is None or bool(one.failure) is failed]


def pinned(
    store: Store, scopes: Sequence[str] | None, *, at: datetime | None = None
) -> list[Entry]:
    """Return the pinned entries of these scopes (None: all) that are not withheld, by name.

    ``at``: those that are true at that time; None asks for no time.
    """
    found = store.run(
        """
        SELECT * FROM live_entry
        WHERE pinned = true AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1))
          AND ($2::TIMESTAMP IS NULL OR ((valid_from IS NULL OR valid_from <= $2)
                                         AND (valid_to IS NULL OR valid_to > $2)))
        ORDER BY name
        """,
        [None if scopes is None else list(scopes), at],
    )
    return [rows.entry_of(row) for row in found]


def suppressed(store: Store, scopes: Sequence[str] | None) -> list[Entry]:
    """Return the suppressed entries of these scopes (None: all), by name."""
    found = store.run(
        """
        SELECT * FROM entry
        WHERE suppressed = true AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1))
        ORDER BY name
        """,
        [None if scopes is None else list(scopes)],
    )
    return [rows.entry_of(row) for row in found]


def origin(store: Store, name: str) -> dict[str, Any]:
    """Return where an entry came from: who made it, what it stands on, and its states so far.

    Empty when there is none of this name.
    """
    found = store.run(
        """
        SELECT entry.producer, entry.channel, entry.agent, entry.session_id, entry.turn,
            entry.created_at, entry.updated_at, entry.version,
            wrote.actor AS changed_by, wrote.channel AS changed_through, wrote.op_id AS operation,
            (SELECT list(DISTINCT object ORDER BY object) FROM statement
             WHERE subject = entry.name
               AND predicate IN ('derivedFrom', 'derived_from', 'summary')) AS sources
        FROM entry LEFT JOIN mutation AS wrote ON wrote.seq = entry.seq WHERE entry.name = ?
        """,
        [rows.clean(name)],
    )
    return {**found[0], "sources": found[0]["sources"] or []} if found else {}


def brought_by(store: Store, names: Sequence[str]) -> dict[str, str]:
    """Return by name who brought an entry, and through which door."""
    found = store.execute(
        "SELECT name, concat_ws(', ', nullif(agent, ''), channel) FROM entry"
        " WHERE name IN (SELECT unnest(?::VARCHAR[]))",
        [list(names)],
    ).fetchall()
    return {str(name): str(by) for name, by in found}


def unverified(store: Store, names: Sequence[str]) -> set[str]:
    """Return those of these entries that are asserted, and by no person."""
    found = store.execute(
        """
        SELECT name FROM entry WHERE name IN (SELECT unnest(?::VARCHAR[]))
          AND trust = 'asserted' AND channel NOT IN ('hook-prompt', 'cli-person')
        """,
        [list(names)],
    ).fetchall()
    return {str(name) for (name,) in found}


def sessions_under(store: Store, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (name, session) for each of these names that is part of a session: a turn of it, what
    it is called, or a summary of its turns. What was learned from it stands for itself.
    """
    found = store.execute(
        """
        WITH wanted AS (SELECT unnest($1::VARCHAR[]) AS name)
        SELECT entry.name, entry.session_id FROM entry JOIN wanted USING (name)
        WHERE entry.kind IN ('message', 'session')
        UNION
        SELECT wanted.name, source.session_id FROM wanted
        JOIN statement ON statement.subject = wanted.name AND statement.predicate = 'summary'
        JOIN entry AS source ON source.name = statement.object
        ORDER BY ALL
        """,
        [[rows.clean(name) for name in names]],
    ).fetchall()
    return [(str(name), str(session)) for name, session in found if session]


def last_said(store: Store, session_id: str) -> tuple[datetime | None, datetime | None]:
    """Return when a session's last turn was said, and when it ended, as far as it is known."""
    found = store.execute(
        """
        SELECT (SELECT max("at") FROM message WHERE session_id = $1),
               (SELECT ended_at FROM session WHERE id = $1)
        """,
        [session_id],
    ).fetchone()
    return (found[0], found[1]) if found else (None, None)

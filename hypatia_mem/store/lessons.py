"""What the extraction of work units reads: which sessions have news, and what is kept already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry, Message
from hypatia_mem.store import rows

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "AGAIN",
    "CURSOR",
    "News",
    "knowledge",
    "known_units",
    "last_turn",
    "lessons",
    "looked_at",
    "news",
    "position",
    "said_again",
    "said_since",
    "talking",
    "turns_of",
    "units_in",
    "unjudged",
]

CURSOR = "extract:"  # and the session's id: the last turn that a work unit was sought in
AGAIN = "said_again_in"  # from a unit to a message that says its lesson once more
_UNIT = "work-unit"


@dataclass(frozen=True, slots=True)
class News:
    """A session with turns that were not looked at yet."""

    session_id: str
    scopes: tuple[str, ...]
    after: int
    last_at: datetime
    ended: bool


def news(
    store: Store, scopes: Sequence[str] | None, most: int, *, cursor: str = CURSOR
) -> list[News]:
    """Return up to ``most`` sessions with news, the one that has waited longest first.

    ``cursor`` says whose news. What is withheld is none: nothing is learned from it.
    """
    found = store.run(
        """
        SELECT m.session_id, any_value(m.scopes) AS scopes, coalesce(any_value(c.position), 0) AS after,
               max(m.created_at) AS last_at,
               coalesce(any_value(s.ended_at), TIMESTAMP '1970-01-01') >= max(m.created_at) AS ended
        FROM live_entry AS m
        LEFT JOIN cursor AS c ON c.key = $1 || m.session_id
        LEFT JOIN session AS s ON s.id = m.session_id
        WHERE m.kind = 'message' AND m.turn > coalesce(c.position, 0)
          AND ($2::VARCHAR[] IS NULL OR list_has_any(m.scopes, $2::VARCHAR[]))
        GROUP BY m.session_id ORDER BY last_at, m.session_id LIMIT $3
        """,  # noqa: E501 - a line of the question
        [cursor, None if scopes is None else list(scopes), most],
    )
    return [
        News(row["session_id"], tuple(row["scopes"]), row["after"], row["last_at"], row["ended"])
        for row in found
    ]


def said_since(store: Store, session_id: str, after: int, most: int) -> list[Message]:
    """Return up to ``most`` live messages of a session behind a turn, in order."""
    found = store.run(
        """
        SELECT m.*, e.content FROM message AS m
        JOIN live_entry AS e ON e.name = 'msg-' || m.session_id || '-' || m.turn
        WHERE m.session_id = ? AND m.turn > ? ORDER BY m.turn LIMIT ?
        """,
        [session_id, after, most],
    )
    return [rows.message_of(row) for row in found]


def looked_at(store: Store, session_id: str) -> int:
    """Return the last turn of a session that a work unit was sought in, 0 where none was."""
    return position(store, CURSOR + session_id)


def position(store: Store, cursor: str) -> int:
    """Return where a cursor stands, 0 where it was never set."""
    found = store.execute("SELECT position FROM cursor WHERE key = ?", [cursor]).fetchone()
    return int(found[0]) if found else 0


def knowledge(store: Store, scopes: Sequence[str] | None, most: int) -> list[tuple[Entry, int]]:
    """Return live rules, taboos, memories and work units, each with the row of its last change.

    The newest ``most`` of them; ``scopes`` None means every project.
    """
    found = store.run(
        """
        SELECT l.*, e.seq AS changed FROM live_entry AS l JOIN entry AS e USING (name)
        WHERE (l.kind IN ('rule', 'taboo', 'memory') OR list_contains(l.tags, $1))
          AND ($2::VARCHAR[] IS NULL OR list_has_any(l.scopes, $2::VARCHAR[]))
        ORDER BY e.seq DESC LIMIT $3
        """,
        [_UNIT, None if scopes is None else list(scopes), most],
    )
    return [(rows.entry_of(row), row["changed"]) for row in found]


def last_turn(store: Store, session_id: str, *, until: datetime | None = None) -> int:
    """Return the number of a session's last turn (up to a time, naive UTC), 0 where is none."""
    found = store.execute(
        """
        SELECT coalesce(max(turn), 0) FROM message
        WHERE session_id = $1 AND ($2::TIMESTAMP IS NULL OR "at" <= $2)
        """,
        [session_id, until],
    ).fetchone()
    return int(found[0]) if found else 0


def known_units(store: Store, scopes: Sequence[str]) -> list[Entry]:
    """Return the work units of these scopes, rejected ones left out, newest first.

    Candidates are among them: what waits for a person is not made a second time.
    """
    found = store.run(
        """
        SELECT * FROM entry WHERE list_contains(tags, ?) AND list_has_any(scopes, ?::VARCHAR[])
          AND trust NOT IN ('rejected', 'stale') AND NOT suppressed AND expired_at IS NULL
        ORDER BY created_at DESC, name LIMIT 2000
        """,
        [_UNIT, list(scopes)],
    )
    return [rows.entry_of(row) for row in found]


def lessons(store: Store, scopes: Sequence[str]) -> list[Entry]:
    """Return the work units of these scopes that say what to do next time, oldest first."""
    return [one for one in reversed(known_units(store, scopes)) if "## Lesson\n" in one.content]


def said_again(store: Store, names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return, by work unit, the (message, session) in which its lesson came again, oldest first."""
    found = store.run(
        """
        SELECT s.subject, m.name, m.session_id FROM live_statement AS s
        JOIN live_entry AS m ON m.name = s.object
        WHERE s.predicate = $1 AND s.subject IN (SELECT unnest($2::VARCHAR[]))
        ORDER BY m.created_at, m.name
        """,
        [AGAIN, list(names)],
    )
    again: dict[str, list[tuple[str, str]]] = {}
    for row in found:
        again.setdefault(row["subject"], []).append((row["name"], row["session_id"]))
    return again


def turns_of(store: Store, names: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Return, by work unit, its session and the first and the last turn that it stands on."""
    if not names:
        return {}
    found = store.run(
        """
        WITH link AS (
            SELECT subject, object FROM statement
            WHERE predicate = 'derivedFrom' AND subject IN (SELECT unnest($1::VARCHAR[]))
        )
        SELECT s.subject, m.session_id, min(m.turn) AS first, max(m.turn) AS last
        FROM link AS s JOIN message AS m ON s.object = 'msg-' || m.session_id || '-' || m.turn
        GROUP BY s.subject, m.session_id ORDER BY count(*), m.session_id DESC
        """,
        [list(names)],
    )
    return {row["subject"]: (row["session_id"], row["first"], row["last"]) for row in found}


def units_in(store: Store, session_id: str, first: int, last: int) -> list[Entry]:
    """Return the work units of a session that stand on these turns, newest first."""
    found = store.run(
        """
        SELECT * FROM entry WHERE list_contains(tags, $1) AND session_id = $2
          AND trust <> 'rejected' AND expired_at IS NULL AND name IN (
            SELECT s.subject FROM statement AS s WHERE s.predicate = 'derivedFrom'
              AND s.object IN (SELECT 'msg-' || $2 || '-' || n
                               FROM range($3::BIGINT, $4::BIGINT + 1) AS t(n)))
        ORDER BY created_at DESC, name
        """,
        [_UNIT, session_id, first, last],
    )
    return [rows.entry_of(row) for row in found]


def unjudged(store: Store, scopes: Sequence[str] | None, since: datetime, most: int) -> list[Entry]:
    """Return the work units since a time that nobody but the arithmetic has judged, newest first.

    Withheld ones are among them, but not what a person has taken out of the way.
    """
    found = store.run(
        """
        SELECT * FROM entry WHERE list_contains(tags, $1) AND starts_with(producer, 'extractive')
          AND trust IN ('asserted', 'candidate') AND NOT suppressed AND expired_at IS NULL
          AND created_at >= $2 AND ($3::VARCHAR[] IS NULL OR list_has_any(scopes, $3::VARCHAR[]))
        ORDER BY created_at DESC, name LIMIT $4
        """,
        [_UNIT, since, None if scopes is None else list(scopes), most],
    )
    return [rows.entry_of(row) for row in found]


def talking(store: Store, since: datetime, most: int) -> list[tuple[str, str]]:
    """Return the sessions, with their projects, that were spoken in lately and have not ended."""
    found = store.run(
        """
        SELECT s.id, s.project, max(m."at") AS last_at FROM message AS m
        JOIN session AS s ON s.id = m.session_id
        WHERE m."at" >= $1 GROUP BY s.id, s.project
        HAVING coalesce(any_value(s.ended_at), TIMESTAMP '1970-01-01') < max(m."at")
        ORDER BY last_at DESC, s.id LIMIT $2
        """,
        [since, most],
    )
    return [(row["id"], row["project"]) for row in found]

"""Which scopes, tags and figures are in use, and by what: of what is live, never the withheld."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypatia_mem.store import branches, rows

if TYPE_CHECKING:
    from datetime import datetime

    from hypatia_mem.model import Entry, Session
    from hypatia_mem.store.connection import Store

__all__ = [
    "SessionsOf",
    "entries_tagged",
    "figures_in_use",
    "scope_in_use",
    "scopes_in_use",
    "session_order",
    "sessions_named",
    "tag_in_use",
    "tags_in_use",
]


def scopes_in_use(store: Store, *, limit: int, offset: int = 0) -> list[tuple[str, int, int]]:
    """Return (scope, entries, statements) by scope.

    ``""`` is the global scope; what has no scope at all is in none of them.
    """
    found = store.execute(
        """
        SELECT scope, sum(entries), sum(statements) FROM (
            SELECT unnest(list_distinct(scopes)) AS scope, 1 AS entries, 0 AS statements
            FROM live_entry
            UNION ALL
            SELECT unnest(list_distinct(scopes)), 0, 1 FROM live_statement
        ) GROUP BY scope ORDER BY scope LIMIT ? OFFSET ?
        """,
        [limit, offset],
    ).fetchall()
    return [(str(scope), int(entries), int(statements)) for scope, entries, statements in found]


@dataclass(frozen=True, slots=True)
class SessionsOf:
    """Which sessions are meant: those of a project and of a person; None lets every one pass."""

    project: str | None = None
    user: str | None = None
    include_archived: bool = False


def session_order(store: Store, wanted: SessionsOf, *, limit: int, offset: int = 0) -> list[str]:
    """Return the ids of sessions that have turns, latest first, as ``Store.sessions`` has them."""
    found = store.execute(
        """
        SELECT id FROM session
        WHERE turns + forked_at > 0 AND ($2 OR NOT archived)
          AND ($1::VARCHAR IS NULL OR project = $1)
          AND ($3::VARCHAR IS NULL OR "user" = $3)
        ORDER BY updated_at DESC NULLS LAST, id LIMIT $4 OFFSET $5
        """,
        [wanted.project, wanted.include_archived, wanted.user, limit, offset],
    ).fetchall()
    return [str(row[0]) for row in found]


def sessions_named(
    store: Store, ids: Sequence[str], wanted: SessionsOf
) -> dict[str, tuple[Session, int]]:
    """Return those of these sessions that are still of the project, with their turns, by id."""
    found = store.run(
        """
        SELECT * FROM session
        WHERE id IN (SELECT unnest($1::VARCHAR[])) AND turns + forked_at > 0
          AND ($2::VARCHAR IS NULL OR project = $2)
        """,
        [list(ids), wanted.project],
    )
    return {row["id"]: branches.with_length(row) for row in found}


def tags_in_use(
    store: Store, scopes: Sequence[str] | None, *, limit: int, offset: int = 0
) -> list[tuple[str, int]]:
    """Return (tag, entries) by tag, of the entries in these scopes; None means all."""
    found = store.execute(
        """
        SELECT tag, count(*) FROM (
            SELECT unnest(list_distinct(tags)) AS tag FROM live_entry
            WHERE $1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[])
        ) GROUP BY tag ORDER BY tag LIMIT $2 OFFSET $3
        """,
        [None if scopes is None else list(scopes), limit, offset],
    ).fetchall()
    return [(str(tag), int(entries)) for tag, entries in found]


def scope_in_use(store: Store, scope: str) -> bool:
    """Tell whether anything live is in exactly this scope."""
    found = store.execute(
        """
        SELECT EXISTS (SELECT 1 FROM live_entry WHERE list_contains(scopes, $1))
            OR EXISTS (SELECT 1 FROM live_statement WHERE list_contains(scopes, $1))
        """,
        [scope],
    ).fetchone()
    return bool(found and found[0])


def tag_in_use(store: Store, tag: str, scopes: Sequence[str] | None) -> bool:
    """Tell whether a live entry in these scopes (None: all) carries exactly this tag."""
    found = store.execute(
        """
        SELECT EXISTS (
            SELECT 1 FROM live_entry WHERE list_contains(tags, $1)
              AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        )
        """,
        [tag, None if scopes is None else list(scopes)],
    ).fetchone()
    return bool(found and found[0])


def figures_in_use(
    store: Store, scopes: Sequence[str] | None = None, *, live: bool = True
) -> set[str]:
    """Return the figures that entries name: live ones in these scopes (None: all).

    ``live`` False means every state there is of any entry, withheld and earlier ones too.
    """
    if live:
        sql = """
            SELECT DISTINCT unnest(figures) FROM live_entry
            WHERE len(figures) > 0
              AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        """
        params: list[object] = [None if scopes is None else list(scopes)]
    else:
        sql = """
            SELECT DISTINCT unnest(figures) FROM (
                SELECT figures FROM entry UNION ALL SELECT figures FROM version
            ) WHERE len(figures) > 0
        """
        params = []
    return {str(row[0]) for row in store.execute(sql, params).fetchall()}


def entries_tagged(
    store: Store, tag: str, scopes: Sequence[str] | None, *, at: datetime, limit: int = 100
) -> list[Entry]:
    """Return the live entries of these scopes (None: all) with a tag, true then, by name."""
    found = store.run(
        """
        SELECT * FROM live_entry
        WHERE list_contains(tags, $1) AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2))
          AND (valid_from IS NULL OR valid_from <= $3) AND (valid_to IS NULL OR valid_to > $3)
        ORDER BY name LIMIT $4
        """,
        [tag, None if scopes is None else list(scopes), at, limit],
    )
    return [rows.entry_of(row) for row in found]

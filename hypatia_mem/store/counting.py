"""How much of what a memory holds, and what it is about: for a person who looks at it whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from hypatia_mem.store.connection import Store

__all__ = ["counts", "is_topic", "kinds_in_use", "topics_in_use"]

_LEVEL = "summary [1-9][0-9]*"
_SEEN = "tag NOT IN (SELECT name FROM entry WHERE suppressed)"  # a topic may be dismissed
_HERE = "($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))"


def kinds_in_use(store: Store, scopes: Sequence[str] | None) -> list[tuple[str, int, int]]:
    """Return (kind, live entries, withheld ones) of these scopes (None: all), by kind.

    A summary counts under its level, a work unit as what it is.
    """
    found = store.execute(
        f"""
        SELECT CASE
            WHEN kind = 'summary' THEN coalesce(
                list_filter(tags, lambda tag: regexp_full_match(tag, '{_LEVEL}'))[1], kind)
            WHEN list_contains(tags, 'work-unit') THEN 'work-unit'
            ELSE kind END AS what, sum(live), sum(1 - live)
        FROM (
            SELECT kind, tags, 1 AS live FROM live_entry WHERE {_HERE}
            UNION ALL
            SELECT kind, tags, 0 FROM withheld_entry WHERE {_HERE}
        ) GROUP BY what ORDER BY what
        """,  # noqa: S608 - our own clause
        [None if scopes is None else list(scopes)],
    ).fetchall()
    return [(str(kind), int(live), int(withheld)) for kind, live, withheld in found]


def counts(store: Store, scopes: Sequence[str] | None) -> dict[str, int]:
    """Return how many statements and sessions these scopes hold (None: all)."""
    wanted = None if scopes is None else list(scopes)
    asked = {
        "statements": f"SELECT count(*) AS n FROM live_statement WHERE {_HERE}",  # noqa: S608
        "sessions": """
            SELECT count(*) AS n FROM session
            WHERE turns + forked_at > 0
              AND ($1::VARCHAR[] IS NULL OR list_contains($1::VARCHAR[], project))
        """,
    }
    return {name: int(store.run(sql, [wanted])[0]["n"]) for name, sql in asked.items()}


def is_topic(store: Store, tag: str, scopes: Sequence[str] | None) -> bool:
    """Tell whether a live entry of these scopes (None: all) that is no message has this tag."""
    found = store.execute(
        f"""
        SELECT 1 FROM live_entry
        WHERE kind NOT IN ('message', 'session') AND list_contains(tags, $2) AND {_HERE} LIMIT 1
        """,  # noqa: S608 - our own clause
        [None if scopes is None else list(scopes), tag],
    )
    return found.fetchone() is not None


def topics_in_use(
    store: Store, scopes: Sequence[str] | None, without: Sequence[str], *, limit: int, offset: int
) -> list[tuple[str, int, datetime]]:
    """Return (topic, entries, when last spoken of), what most speak of first.

    A topic is a tag of a live entry that is no message, and none that was dismissed; ``without``
    are the tags that say what an entry is instead of what it is about.
    """
    found = store.execute(
        f"""
        SELECT tag, count(*) AS entries, max(said_at) FROM (
            SELECT unnest(list_distinct(tags)) AS tag, coalesce(updated_at, created_at) AS said_at
            FROM live_entry WHERE kind NOT IN ('message', 'session') AND {_HERE}
        )
        WHERE tag <> '' AND NOT list_contains($2::VARCHAR[], tag) AND {_SEEN}
          AND NOT regexp_full_match(tag, '{_LEVEL}')
        GROUP BY tag ORDER BY entries DESC, tag LIMIT $3 OFFSET $4
        """,  # noqa: S608 - our own clause
        [None if scopes is None else list(scopes), list(without), limit, offset],
    ).fetchall()
    return [(str(tag), int(entries), at) for tag, entries, at in found]

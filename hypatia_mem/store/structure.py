"""Reading what the graph's own structure should be: messages, sessions, summaries, work units.

Each question returns what is wrong, at most so many rows and, where a count matters, all of it
counted. Only live views are read, so nothing withheld is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "STRUCTURAL",
    "dangling",
    "misplaced",
    "shared_names",
    "sourceless",
    "structural_edges",
    "summaries",
    "unlinked",
]

STRUCTURAL = ("belongTo", "derivedFrom", "summary", "supersedes", "extends")


def dangling(store: Store, scopes: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return structural statements with an end that no entry has: ``missing`` names the ends."""
    return store.run(
        """
        WITH told AS (
            SELECT subject, predicate, object,
                subject NOT IN (SELECT name FROM entry) AS no_subject,
                object NOT IN (SELECT name FROM entry) AS no_object
            FROM live_statement
            WHERE predicate IN (SELECT unnest($2::VARCHAR[]))
            AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        )
        SELECT subject, predicate, object, list_filter(
            [CASE WHEN no_subject THEN subject END, CASE WHEN no_object THEN object END],
            lambda name: name IS NOT NULL) AS missing
        FROM told WHERE no_subject OR no_object ORDER BY predicate, subject, object
        """,
        [_list(scopes), list(STRUCTURAL)],
    )


def misplaced(store: Store, scopes: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return ``belongTo`` that does not lead from a message to a session."""
    return store.run(
        """
        SELECT s.subject, s.predicate, s.object, a.kind AS subject_kind, b.kind AS object_kind
        FROM live_statement AS s
        JOIN entry AS a ON a.name = s.subject JOIN entry AS b ON b.name = s.object
        WHERE s.predicate = 'belongTo' AND (a.kind <> 'message' OR b.kind <> 'session')
        AND ($1::VARCHAR[] IS NULL OR list_has_any(s.scopes, $1::VARCHAR[]))
        ORDER BY s.subject, s.object
        """,
        [_list(scopes)],
    )


def unlinked(store: Store, scopes: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return sessions that have messages without ``belongTo``: how many, and the first one."""
    return store.run(
        """
        SELECT 'session-' || e.session_id AS session, count(*) AS messages, min(e.name) AS first
        FROM live_entry AS e
        WHERE e.kind = 'message' AND e.session_id <> ''
        AND ($1::VARCHAR[] IS NULL OR list_has_any(e.scopes, $1::VARCHAR[]))
        AND ('session-' || e.session_id) IN (SELECT name FROM live_entry WHERE kind = 'session')
        AND e.name NOT IN (SELECT subject FROM statement WHERE predicate = 'belongTo')
        GROUP BY e.session_id ORDER BY session
        """,
        [_list(scopes)],
    )


def sourceless(store: Store, scopes: Sequence[str] | None) -> list[str]:
    """Return work units that no ``derivedFrom`` leads from."""
    rows = store.execute(
        """
        SELECT name FROM live_entry WHERE list_contains(tags, 'work-unit')
        AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        AND name NOT IN (SELECT subject FROM statement WHERE predicate = 'derivedFrom')
        ORDER BY name
        """,
        [_list(scopes)],
    ).fetchall()
    return [str(row[0]) for row in rows]


def summaries(store: Store, scopes: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return every summary: its ``name``, its ``tags`` and its items: how many, and how many
    are no summaries themselves (``ground``).
    """  # fmt: skip
    return store.run(
        """
        SELECT e.name, e.tags, count(s.triple) AS items,
            count(s.triple) FILTER (WHERE NOT list_contains(item.tags, 'summary')) AS ground
        FROM live_entry AS e
        LEFT JOIN live_statement AS s ON s.subject = e.name AND s.predicate = 'summary'
        LEFT JOIN live_entry AS item ON item.name = s.object
        WHERE list_contains(e.tags, 'summary')
        AND ($1::VARCHAR[] IS NULL OR list_has_any(e.scopes, $1::VARCHAR[]))
        GROUP BY e.name, e.tags ORDER BY e.name
        """,
        [_list(scopes)],
    )


def structural_edges(store: Store, scopes: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """Return (subject, predicate, object) of what must not run in circles.

    Statements to messages are left out: nothing leads on from a message.
    """
    rows = store.execute(
        """
        SELECT subject, predicate, object FROM live_statement
        WHERE predicate IN ('summary', 'supersedes', 'extends', 'derivedFrom')
        AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        AND object NOT IN (SELECT name FROM entry WHERE kind = 'message')
        ORDER BY created_at, triple
        """,
        [_list(scopes)],
    ).fetchall()
    return [(str(a), str(b), str(c)) for a, b, c in rows]


def shared_names(store: Store, scopes: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return synonyms that mean several things: ``alias`` and the sorted ``names`` it means.

    A name of an entry or of an end of a statement means that very thing.
    """
    return store.run(
        """
        WITH said AS (
            SELECT DISTINCT name, unnest(synonyms) AS alias FROM live_entry
            WHERE len(synonyms) > 0
            AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        ), names AS (
            SELECT name FROM live_entry WHERE name IN (SELECT alias FROM said)
                AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
            UNION SELECT unnest([subject, object]) FROM live_statement
                WHERE (subject IN (SELECT alias FROM said) OR object IN (SELECT alias FROM said))
                AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        ), meant AS (
            SELECT alias, name FROM said WHERE alias <> name
            UNION SELECT alias, alias FROM said WHERE alias IN (SELECT name FROM names)
        )
        SELECT alias, list(DISTINCT name ORDER BY name) AS names FROM meant
        GROUP BY alias HAVING count(DISTINCT name) > 1 ORDER BY alias
        """,
        [_list(scopes)],
    )


def _list(scopes: Sequence[str] | None) -> list[str] | None:
    return None if scopes is None else list(scopes)

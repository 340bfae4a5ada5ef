"""Reading what the ten rules of the memory forbid: each question returns what breaks one.

Only what is live is asked about, and what is named is a name, never a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "derived_texts",
    "guesses",
    "mistagged",
    "sourceless_units",
    "texts",
    "turn_gaps",
    "units",
    "unscoped",
]

BATCH = 500
PAGE = 2_000  # texts of one read
_TEXTS = {
    "entry": """
        SELECT name, concat_ws(chr(10), name, content, array_to_string(tags, chr(10)),
            array_to_string(synonyms, chr(10)), activation)
        FROM entry WHERE name > $1 ORDER BY name LIMIT $2
    """,
    "statement": """
        SELECT triple, concat_ws(chr(10), triple, content, synonyms)
        FROM statement WHERE triple > $1 ORDER BY triple LIMIT $2
    """,
}


def unscoped(store: Store) -> list[str]:
    """Return what is in no scope: the names of entries, and statements by their triples."""
    return _names(
        store,
        """
        SELECT name FROM live_entry WHERE len(scopes) = 0
        UNION ALL SELECT triple FROM live_statement WHERE len(scopes) = 0 ORDER BY 1
        """,
    )


def turn_gaps(store: Store) -> list[str]:
    """Return sessions whose turns are not 1, 2, 3 ..., and messages that lost their entry.

    A message whose words were withdrawn keeps its row and has no entry by intention: its digest
    is empty or sealed.
    """
    return _names(
        store,
        """
        SELECT 'session-' || session_id AS name FROM message GROUP BY session_id
        HAVING min(turn) <> 1 OR max(turn) <> count(*) OR count(DISTINCT turn) <> count(*)
        UNION ALL
        SELECT 'msg-' || session_id || '-' || turn FROM message
        WHERE text_digest <> '' AND text_digest NOT LIKE '~%'
          AND 'msg-' || session_id || '-' || turn NOT IN (SELECT name FROM entry)
        ORDER BY 1
        """,
    )


def mistagged(store: Store) -> list[str]:
    """Return entries whose tags and kind contradict each other, or that lack what their tag needs.

    A message has the tag ``message``; a summary has ``summary`` and one level; a work
    unit is a ``memory`` too; what is a rule or a taboo says so, and what says so is one.
    """
    return _names(
        store,
        """
        SELECT name FROM live_entry WHERE
            (kind = 'message' AND NOT list_contains(tags, 'message'))
            OR (kind = 'session' AND NOT list_contains(tags, 'session'))
            OR (list_contains(tags, 'summary') AND len(list_filter(
                tags, lambda tag: regexp_full_match(tag, 'summary [1-9][0-9]*'))) <> 1)
            OR (NOT list_contains(tags, 'summary') AND len(list_filter(
                tags, lambda tag: regexp_full_match(tag, 'summary [1-9][0-9]*'))) > 0)
            OR (list_contains(tags, 'work-unit') AND NOT list_contains(tags, 'memory'))
            OR (starts_with(name, 'wu-') AND NOT list_contains(tags, 'work-unit'))
            OR (kind IN ('rule', 'taboo') AND NOT list_contains(tags, kind))
            OR (kind NOT IN ('rule', 'taboo', 'message') AND list_has_any(tags, ['rule', 'taboo'])
                AND NOT list_contains(tags, kind))
        ORDER BY name
        """,
    )


def sourceless_units(store: Store) -> list[str]:
    """Return work units that no ``derivedFrom`` ties to what was said."""
    return _names(
        store,
        """
        SELECT name FROM live_entry WHERE list_contains(tags, 'work-unit')
          AND name NOT IN (SELECT subject FROM live_statement WHERE predicate = 'derivedFrom')
        ORDER BY name
        """,
    )


def guesses(store: Store) -> list[str]:
    """Return rules and taboos that the program made out by itself, and that count all the same.

    What nobody has said is a candidate until a person has looked at it.
    """
    return _names(
        store,
        """
        SELECT name FROM live_entry
        WHERE kind IN ('rule', 'taboo') AND channel IN ('worker', 'transcript')
          AND trust <> 'verified'
        ORDER BY name
        """,
    )


def units(store: Store) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return name, text and tags of every work unit."""
    found = store.execute(
        "SELECT name, content, tags FROM live_entry WHERE list_contains(tags, 'work-unit')"
        " ORDER BY name"
    ).fetchall()
    return [(str(name), str(text), tuple(tags)) for name, text, tags in found]


def derived_texts(store: Store) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name and text of what was condensed, with the texts it was condensed from."""
    names = _names(
        store,
        """
        SELECT DISTINCT e.name FROM live_entry AS e JOIN live_statement AS s ON s.subject = e.name
        WHERE s.predicate IN ('summary', 'derivedFrom')
          AND list_has_any(e.tags, ['summary', 'work-unit'])
        ORDER BY e.name
        """,
    )
    for start in range(0, len(names), BATCH):
        found = store.run(
            """
            SELECT e.name, any_value(e.content) AS text, list(source.content) AS sources
            FROM live_entry AS e JOIN live_statement AS s ON s.subject = e.name
                JOIN live_entry AS source ON source.name = s.object
            WHERE s.predicate IN ('summary', 'derivedFrom')
              AND e.name IN (SELECT unnest(?::VARCHAR[]))
            GROUP BY e.name ORDER BY e.name
            """,
            [names[start : start + BATCH]],
        )
        for row in found:
            yield row["name"], row["text"], list(row["sources"])


def texts(store: Store, table: str, after: str, limit: int = PAGE) -> list[tuple[str, str]]:
    """Return (name, text) of the next rows of ``entry`` or ``statement``, by their names.

    All that a person may have typed into a row is in the text, withheld or not. Begin after
    ``""``; an empty list is the end.
    """
    found = store.execute(_TEXTS[table], [after, limit]).fetchall()
    return [(str(name), str(text)) for name, text in found]


# ----------------------------------------------------------------------------------------------


def _names(store: Store, sql: str, params: tuple[Any, ...] = ()) -> list[str]:
    return [str(row[0]) for row in store.execute(sql, list(params)).fetchall()]

"""What was true when, and what was known when: reading by both clocks at once.

Valid time (``valid_from``, ``valid_to``) is a caller's word on when something is true; an end that
is not known does not end it. System time is when the store held it: ``known_entry(t)`` and
``known_statement(t)`` (see ``migrations``), which ledger numbers decide and no clock, so that one
that was set back hides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry, Message, Session, Statement
from hypatia_mem.store import rows

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "KnownState",
    "changed_names",
    "known_aliases",
    "known_since",
    "known_state",
    "last_known_exchange",
    "rules_known",
    "turning_points",
]


@dataclass(frozen=True, slots=True)
class KnownState:
    """Entries and statements (with their keys) as they were known at a time."""

    entries: list[Entry]
    statements: list[tuple[str, Statement]]


def rules_known(
    store: Store, scopes: Sequence[str], *, known_at: datetime, at: datetime
) -> list[Entry]:
    """Return the rules, taboos and memories that were known at ``known_at`` to be true at ``at``.

    Newest first, as ``Store.rules`` has them; what was forgotten since is not among them.
    """
    found = store.run(
        """
        SELECT * FROM known_entry($1)
        WHERE kind IN ('rule', 'taboo', 'memory') AND list_has_any(scopes, $2::VARCHAR[])
          AND (valid_from IS NULL OR valid_from <= $3) AND (valid_to IS NULL OR valid_to > $3)
        ORDER BY created_at DESC, name
        """,
        [known_at, list(scopes), at],
    )
    return [rows.entry_of(row) for row in found]


def turning_points(
    store: Store, scopes: Sequence[str] | None, after: datetime
) -> list[tuple[datetime, list[str]]]:
    """Return when a rule, taboo or memory of these scopes (None: all) begins or ends, in order.

    Each time with the scopes of the one that does.
    """
    found = store.execute(
        """
        WITH mine AS (
            SELECT valid_from, valid_to, scopes FROM live_entry
            WHERE kind IN ('rule', 'taboo', 'memory')
              AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1))
              AND (valid_from > $2 OR valid_to > $2)
        )
        SELECT valid_from AS turn, scopes FROM mine WHERE valid_from > $2
        UNION SELECT valid_to, scopes FROM mine WHERE valid_to > $2
        ORDER BY turn
        """,
        [None if scopes is None else list(scopes), after],
    ).fetchall()
    return [(turn, list(of)) for turn, of in found]


def last_known_exchange(
    store: Store, project: str, known_at: datetime, *, without: Sequence[str] = ()
) -> tuple[Session, int, list[Message]] | None:
    """Return a project's latest session as it was known at a time, as ``Store.last_exchange``.

    None of the sessions ``without``.
    """
    found = store.execute(
        """
        SELECT one.session_id, max(one.turn) FROM known_entry($1) AS one
        WHERE one.kind = 'message' AND list_contains(one.scopes, $2) AND one.turn IS NOT NULL
          AND NOT list_contains($3::VARCHAR[], one.session_id)
        GROUP BY one.session_id ORDER BY max(one.created_at) DESC, one.session_id LIMIT 1
        """,
        [known_at, project, list(without)],
    ).fetchone()
    session = None if found is None else store.session(str(found[0]))
    if found is None or session is None:
        return None
    turns = int(found[1])
    first = max(1, turns - 11)
    said = store.messages(session.id, start=first, limit=turns - first + 1)
    last = max((message.at for message in said), default=None)
    return _as_it_was(session, last), turns, said


def known_state(
    store: Store,
    known_at: datetime,
    *,
    names: Sequence[str],
    triples: Sequence[str],
    scopes: Sequence[str] | None,
) -> KnownState:
    """Return what was known at a time: of these names and triples, and all that changed since.

    What did not change since is in the search index of today, which proposes ``names`` and
    ``triples``; what did is proposed by nobody, so all of it within ``scopes`` is returned.
    """
    mine = "($3::VARCHAR[] IS NULL OR list_has_any(scopes, $3::VARCHAR[]))"
    within = None if scopes is None else list(scopes)
    entries = store.run(
        f"""
        SELECT * FROM known_entry($1) WHERE {mine}
          AND (name IN (SELECT unnest($2::VARCHAR[])) OR name IN (SELECT name FROM version))
        """,  # noqa: S608 - our own clause
        [known_at, list(names), within],
    )
    statements = store.run(
        f"""
        SELECT * FROM known_statement($1) WHERE {mine}
          AND (triple IN (SELECT unnest($2::VARCHAR[]))
               OR triple IN (SELECT triple FROM statement_version)
               OR subject IN (SELECT name FROM version) OR object IN (SELECT name FROM version))
        """,  # noqa: S608 - our own clause
        [known_at, list(triples), within],
    )
    return KnownState(
        [rows.entry_of(row) for row in entries],
        [(row["triple"], rows.statement_of(row)) for row in statements],
    )


def changed_names(store: Store) -> set[str]:
    """Return the names of entries and the triples of statements that ever had another state."""
    found = store.execute(
        "SELECT DISTINCT name FROM version UNION SELECT DISTINCT triple FROM statement_version"
    ).fetchall()
    return {str(row[0]) for row in found}


def known_aliases(
    store: Store, known_at: datetime, names: Sequence[str]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (other names, scopes) of those of these entries that had other names at a time."""
    found = store.run(
        """
        SELECT name, synonyms, scopes FROM known_entry($1)
        WHERE len(synonyms) > 0 AND name IN (SELECT unnest($2::VARCHAR[]))
        """,
        [known_at, list(names)],
    )
    return {row["name"]: (tuple(row["synonyms"]), tuple(row["scopes"])) for row in found}


def known_since(store: Store) -> datetime | None:
    """Return the time of the ledger's first row: before it nothing was known here."""
    found = store.execute('SELECT "at" FROM mutation ORDER BY seq LIMIT 1').fetchone()
    return None if found is None else found[0]


# ----------------------------------------------------------------------------------------------


def _as_it_was(session: Session, last: datetime | None) -> Session:
    """Return a session as far as the last thing that was said in it then."""
    from dataclasses import replace

    if last is None or session.updated_at is None or session.updated_at <= last:
        return session
    return replace(session, updated_at=last, ended_at=None, end_reason="")

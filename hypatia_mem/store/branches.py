"""Branches of sessions: reading one as it is read, and where a client's fork branched off.

A branch is a session's row that shares the turns of another one up to a point (``forked_from``,
``forked_at``, and ``fork_gaps`` for what a client wound back before). Nothing is copied. A client
may name an origin of which nothing is known here: that is no branch. What each reads ``forest``
says, and ``hiding`` what it is not told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hypatia_mem.model import Message, Session
from hypatia_mem.store import aiming, rows
from hypatia_mem.store.forest import FAR, Branch, Forest, gaps_of, gaps_text, runs, shared
from hypatia_mem.store.hidden import Turns

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "Origin",
    "count",
    "forest",
    "heads",
    "latest",
    "length",
    "messages_at",
    "names_at",
    "needed",
    "newest",
    "origin",
    "reading",
    "turns_said",
    "untold",
    "with_length",
]


class Origin(NamedTuple):
    """Where a session branched off: what ``Session`` has fields of the same names for."""

    forked_from: str
    forked_at: int
    fork_gaps: str


def forest(store: Store) -> Forest:
    """Return all branches of a store; without any there is nothing to ask further."""
    found = store.run(
        """
        SELECT id, project, forked_from, forked_at, fork_gaps, fork_reason, headed_at, turns,
               updated_at, pinned
        FROM session
        WHERE (forked_from <> '' AND (forked_at > 0 OR headed_at IS NOT NULL))
           OR id IN (
               SELECT forked_from FROM session
               WHERE forked_from <> '' AND (forked_at > 0 OR headed_at IS NOT NULL)
           )
        ORDER BY id
        """
    )
    branches = [
        Branch(
            row["id"],
            row["project"],
            row["forked_from"] if row["forked_at"] or row["headed_at"] else "",
            row["forked_at"] or 0,
            gaps_of(row["fork_gaps"] or ""),
            row["fork_reason"] or "",
            row["headed_at"],
            row["turns"],
            row["updated_at"],
            row["pinned"],
        )
        for row in found
    ]
    went_on = {}
    if any(one.headed_at is not None for one in branches):
        went_on = {
            str(id_): at
            for id_, at in store.execute(
                'SELECT session_id, max("at") FROM message'
                " WHERE session_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY session_id",
                [[one.id for one in branches]],
            ).fetchall()
        }
    return Forest(branches, went_on)


def latest(store: Store, most: int) -> list[tuple[str, str]]:
    """Return the branches that were last spoken in, and what branches came from: (id, project)."""
    members = list(forest(store))
    found = (
        store.execute(
            """
        SELECT id, project FROM session WHERE id IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY updated_at DESC NULLS LAST, id LIMIT ?
        """,
            [members, most],
        ).fetchall()
        if members
        else []
    )
    return [(str(id_), str(project)) for id_, project in found]


def newest(
    store: Store, project: str | None, asker: str, of: Forest | None = None
) -> Session | None:
    """Return the latest session of a project (None: of any) of which ``asker`` may be told."""
    there = forest(store) if of is None else of
    start = 0
    while found := store.sessions(project, limit=20, offset=start):
        for session, _ in found:
            if there.tells(session.id, asker):
                return session
        start += len(found)
    return None


def untold(store: Store, asker: str) -> list[str]:
    """Return the branches of which a session is not told how they end."""
    there = forest(store)
    return [one for one in there if not there.tells(one, asker)]


def heads(store: Store) -> set[str]:
    """Return the heads of all families that have one."""
    there = forest(store)
    return {head for one in there if (head := there.head(one))}


# --- reading --------------------------------------------------------------------------------------


def reading(
    store: Store,
    session_id: str,
    *,
    start: int = 1,
    limit: int = 1000,
    scopes: Sequence[str] | None = None,
    of: Forest | None = None,
) -> list[tuple[int, Message]]:
    """Return a session as it reads: (place, message) from a place on, its ancestors' turns first.

    One that was deleted or is withheld has neither text nor parts. ``scopes``: what an ancestor
    said in another project is left out.
    """
    spans = (forest(store) if of is None else of).spans(session_id)
    found = store.run(
        """
        WITH span AS (
            SELECT unnest($1::VARCHAR[]) AS id, unnest($2::INTEGER[]) AS base,
                   unnest($3::INTEGER[]) AS last, unnest($4::INTEGER[][]) AS gaps
        )
        SELECT message.* REPLACE (
            CASE WHEN entry.name IS NULL THEN '[]' ELSE message.parts END AS parts
        ), entry.content, message.turn + span.base AS place
        FROM span JOIN message
            ON message.session_id = span.id AND message.turn <= span.last
            AND NOT list_contains(span.gaps, message.turn + span.base)
        LEFT JOIN live_entry AS entry
            ON entry.name = 'msg-' || message.session_id || '-' || message.turn
        WHERE message.turn + span.base >= $5
          AND ($6::VARCHAR[] IS NULL OR entry.name IS NULL
               OR list_has_any(entry.scopes, $6::VARCHAR[]))
        ORDER BY place LIMIT $7
        """,
        [
            [span.session for span in spans],
            [span.base for span in spans],
            [FAR if span.last is None else span.last for span in spans],
            [sorted(span.gaps) for span in spans],
            start,
            None if scopes is None else list(scopes),
            limit,
        ],
    )
    return [(row["place"], rows.message_of(row)) for row in found]


def count(store: Store, session_id: str, of: Forest | None = None) -> int:
    """Return how many messages a session reads."""
    read = [
        Turns(span.session, first, last)
        for span in (forest(store) if of is None else of).spans(session_id)
        for first, last in runs(span)
    ]
    return len(messages_at(store, read))


def length(store: Store, session_id: str, of: Forest | None = None) -> int:
    """Return the place of the last message that a session reads, 0 where it reads none."""
    there = forest(store) if of is None else of
    found = [
        (span.base + min(last, span.last or FAR))
        for span in there.spans(session_id)
        if (last := aiming.last_turn(store, span.session))
    ]
    return max(found, default=0)


def with_length(row: Mapping[str, Any]) -> tuple[Session, int]:
    """Return the session of a row, and how many messages it has with those that it shares."""
    session = rows.session_of(row)
    return session, row["turns"] + shared(session.forked_at, session.fork_gaps)


def names_at(
    store: Store, session_id: str, places: Sequence[int], of: Forest | None = None
) -> list[str]:
    """Return the names of the messages that a session reads at these places, in order."""
    there = forest(store) if of is None else of
    wanted = sorted(places)
    found: list[str] = []
    for span in there.spans(session_id):
        last = FAR if span.last is None else span.last
        found += [
            f"msg-{span.session}-{place - span.base}"
            for place in wanted
            if span.base < place <= span.base + last and place not in span.gaps
        ]
    return found


# --- what a client's fork repeats -----------------------------------------------------------------


def origin(
    store: Store, session_id: str, repeated: Sequence[tuple[str, int]], said: str
) -> Origin | None:
    """Return where a session branched off, from the lines that it repeats of others.

    ``repeated``: (session, turn) of those lines; ``said``: the session that the client names. What
    was known of it before is added to. None where nothing is repeated, or the others themselves
    branched off this one: then it is they that repeat.
    """
    if not repeated:
        return None
    there = forest(store)
    places = {there.base(session) + turn: session for session, turn in repeated}
    last = max(places)
    parent = places[last]
    if said and store.session(said) is not None and parent in _ids(there.chain(said)):
        parent = said  # it shares that message itself, and has said nothing of its own yet
    if session_id in _ids(there.chain(parent)):
        return None
    before = there.branch(session_id)
    until = max(last, before.forked_at)
    gaps = set(before.gaps) | set(range(before.forked_at + 1, until + 1))
    return Origin(parent, until, gaps_text(gaps - set(places)))


def needed(
    store: Store, sessions: Collection[str], without: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return, by message of these sessions, the other branches that read it, none of ``without``.

    A branch is named once for each message of its ancestors that it shares.
    """
    there = forest(store)
    found: dict[str, list[str]] = {}
    for one in there:
        for span in there.spans(one) if one not in without else ():
            if span.session in sessions and span.session != one:
                kept = [Turns(span.session, first, last) for first, last in runs(span)]
                for name in messages_at(store, kept):
                    found.setdefault(name, []).append(one)
    return found


# --------------------------------------------------------------------------------------------------


def messages_at(
    store: Store, turns: Sequence[Turns], said: Mapping[str, Sequence[int]] | None = None
) -> list[str]:
    """Return the names of the messages that have these turns; ``said``: all turns, by session."""
    there = turns_said(store, {one.session for one in turns}) if said is None else said
    found = {
        f"msg-{one.session}-{turn}": None
        for one in turns
        for turn in there.get(one.session, ())
        if one.first <= turn <= (FAR if one.last is None else one.last)
    }
    return list(found)


def turns_said(store: Store, sessions: Collection[str]) -> dict[str, list[int]]:
    """Return the turns of some sessions."""
    found = store.execute(
        """
        SELECT session_id, list(turn ORDER BY turn) FROM message
        WHERE session_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY session_id
        """,
        [sorted(sessions)],
    ).fetchall()
    return {str(session): turns for session, turns in found}


def _ids(some: Iterable[Branch]) -> set[str]:
    return {one.id for one in some}

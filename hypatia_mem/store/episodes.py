"""Episodes, goals and open threads in the store: reading them, and the one write of an episode.

All three are entries of a kind of their own. An *episode* and a *thread* are made by the worker and
stand on the messages that they quote (``derivedFrom``): they go with any of them, and what is left
of an episode is told anew (``OWED``). A *goal* is somebody's own words. A goal or a thread is open
as long as it is true, that is until ``valid_to``; a thread also closes with the message in which it
was done (``closed_by``), and is open again when that message goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry, Message, Outcome, Statement
from hypatia_mem.store import rows, summaries

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = [
    "CLOSED_BY",
    "CURSOR",
    "MADE_ANEW",
    "OWED",
    "THREADS",
    "Range",
    "episodes",
    "free_name",
    "goals",
    "last_told",
    "open_among",
    "owe",
    "owed",
    "put",
    "said_after",
    "set_by_agents",
    "settle",
    "sources_of",
    "threads",
    "threads_said",
    "told_twice",
]

CURSOR = "episode:"  # and the session's id: the last turn that an episode tells of
THREADS = "thread:"  # and the session's id: the last turn that open ends were sought in
OWED = "episodes_owed"
CLOSED_BY = "closed_by"
MADE_ANEW = frozenset({"episode", "thread"})  # taken out when a source changes, not only doubted
_NOTES = 500  # ranges that are owed at most
_NOW = "(valid_from IS NULL OR valid_from <= $2) AND (valid_to IS NULL OR valid_to > $2)"
_UNDONE = "name NOT IN (SELECT subject FROM live_statement WHERE predicate = 'closed_by')"


@dataclass(frozen=True, slots=True)
class Range:
    """Turns of a session, both ends included."""

    session_id: str
    first: int
    last: int


def episodes(
    store: Store,
    scopes: Sequence[str] | None,
    *,
    session_id: str = "",
    without: Sequence[str] = (),
    limit: int = 20,
) -> list[Entry]:
    """Return live episodes of these scopes (None: all), latest first; none of ``without``."""
    found = store.run(
        """
        SELECT * FROM live_entry WHERE kind = 'episode'
          AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1)) AND ($2 = '' OR session_id = $2)
          AND name NOT IN (SELECT unnest($4::VARCHAR[]))
        ORDER BY created_at DESC, turn DESC, name LIMIT $3
        """,
        [None if scopes is None else list(scopes), session_id, limit, list(without)],
    )
    return [rows.entry_of(row) for row in found]


def goals(
    store: Store,
    scopes: Sequence[str] | None,
    *,
    at: datetime,
    known_at: datetime | None = None,
    closed: bool = False,
) -> list[Entry]:
    """Return the live goals of these scopes (None: all) that are open ``at`` a time, newest first.

    ``known_at``: as they were known then. ``closed``: those that are not open, instead.
    """
    source = "live_entry" if known_at is None else "known_entry($3)"
    found = store.run(
        f"""
        SELECT * FROM {source} WHERE kind = 'goal'
          AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1)) AND {"NOT" * closed} ({_NOW})
        ORDER BY created_at DESC, name
        """,  # noqa: S608 - our own clauses
        [None if scopes is None else list(scopes), at, *([] if known_at is None else [known_at])],
    )
    return [rows.entry_of(row) for row in found]


def threads(
    store: Store,
    scopes: Sequence[str] | None,
    *,
    at: datetime,
    session_id: str = "",
    closed: bool = False,
    limit: int = 200,
) -> list[Entry]:
    """Return the live threads of these scopes (None: all) that are open, latest first."""
    found = store.run(
        f"""
        SELECT * FROM live_entry WHERE kind = 'thread'
          AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1)) AND {"NOT" * closed} ({_NOW}
          AND {_UNDONE}) AND ($3 = '' OR session_id = $3)
        ORDER BY created_at DESC, turn DESC, name LIMIT $4
        """,  # noqa: S608 - our own clauses
        [None if scopes is None else list(scopes), at, session_id, limit],
    )
    return [rows.entry_of(row) for row in found]


def threads_said(
    store: Store, session_id: str, scopes: Sequence[str], *, at: datetime
) -> list[str]:
    """Return what open threads of these scopes say, and those of a session in whatever state."""
    found = store.execute(
        "SELECT content FROM entry WHERE kind = 'thread' AND session_id = ?", [session_id]
    ).fetchall()
    return [
        *(str(row[0]) for row in found),
        *(one.content for one in threads(store, scopes, at=at)),
    ]


def open_among(store: Store, names: Sequence[str], *, at: datetime) -> set[str]:
    """Return those of these threads that are open."""
    found = store.execute(
        f"""
        SELECT name FROM live_entry WHERE name IN (SELECT unnest($1::VARCHAR[])) AND {_NOW}
          AND {_UNDONE}
        """,  # noqa: S608 - our own clauses
        [list(names), at],
    ).fetchall()
    return {str(name) for (name,) in found}


def said_after(
    store: Store, scopes: Sequence[str], at: datetime, most: int, *, without: str
) -> list[tuple[str, Message]]:
    """Return (name, message) of up to ``most`` live messages of these scopes, in order.

    Those said after a time, and not in the session ``without``; without their parts.
    """
    found = store.run(
        """
        SELECT m.* REPLACE ('[]' AS parts), e.content, e.name AS entry FROM live_entry AS e
        JOIN message AS m ON m.session_id = e.session_id AND m.turn = e.turn
        WHERE e.kind = 'message' AND e.created_at > $1 AND list_has_any(e.scopes, $2::VARCHAR[])
          AND e.session_id <> $3 AND m.agent_id = ''
        ORDER BY e.created_at, e.name LIMIT $4
        """,
        [at, list(scopes), without, most],
    )
    return [(row["entry"], rows.message_of(row)) for row in found]


def set_by_agents(store: Store, names: Sequence[str]) -> set[str]:
    """Return those of these entries that no person wrote."""
    found = store.execute(
        """
        SELECT name FROM entry WHERE name IN (SELECT unnest(?::VARCHAR[]))
          AND channel NOT IN ('hook-prompt', 'cli-person') AND trust <> 'verified'
        """,
        [list(names)],
    ).fetchall()
    return {str(name) for (name,) in found}


def sources_of(store: Store, names: Sequence[str]) -> dict[str, list[str]]:
    """Return by name what these stand on directly."""
    found = store.execute(
        """
        SELECT subject, object FROM statement
        WHERE predicate = 'derivedFrom' AND subject IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY created_at, object
        """,
        [list(names)],
    ).fetchall()
    made: dict[str, list[str]] = {}
    for subject, source in found:
        made.setdefault(str(subject), []).append(str(source))
    return made


def last_told(store: Store, session_id: str) -> int:
    """Return the last turn that a stored episode of a session tells of, 0 when there is none.

    An imported memory has episodes and no cursors.
    """
    found = store.execute(
        """
        SELECT coalesce(max(turn), 0) FROM entry WHERE kind = 'episode' AND session_id = ?
        """,
        [session_id],
    ).fetchone()
    return int(found[0]) if found else 0


def told_twice(store: Store) -> list[str]:
    """Return episodes that were told anew although the one they stand for is there again.

    An undoing brings it back.
    """
    found = store.execute(
        r"""
        SELECT anew.name FROM entry AS anew JOIN entry AS was
            ON was.name = regexp_replace(anew.name, '-\d+$', '')
        WHERE anew.kind = 'episode' AND was.kind = 'episode' AND anew.session_id = was.session_id
        """
    ).fetchall()
    return [str(row[0]) for row in found]


# --- writing --------------------------------------------------------------------------------------


def put(txn: EntryWrites, entry: Entry, sources: Sequence[str], read_at: int) -> Outcome:
    """Store an episode or a thread and what it stands on, all of it or nothing.

    Refused when a source is gone, withheld, or was changed after ``read_at``, the number of the
    ledger's last row when it was read; and when it says what was forgotten before.
    """
    found = txn.store.execute(
        """
        WITH wanted AS (SELECT unnest($1::VARCHAR[]) AS name)
        SELECT count(*) FROM entry WHERE name IN (FROM wanted) AND seq <= $2
          AND name IN (SELECT name FROM live_entry WHERE name IN (FROM wanted))
        """,
        [list(sources), read_at],
    ).fetchone()
    if not sources or found is None or found[0] != len(set(sources)):
        return Outcome("refused", entry.name, reason="what it tells of has changed meanwhile")
    outcome = txn.put_entry(entry)
    if outcome.verb != "created":
        return outcome
    made = [
        rows.statement_row(
            Statement(outcome.name, "derivedFrom", source, scopes=entry.scopes), txn.author, txn.now
        )
        for source in dict.fromkeys(sources)
    ]
    for row in made:
        row["seq"] = txn._note(
            "create", row["triple"], "statement", after=rows.digest(row["content"])
        )
    txn._bulk("statement", made)
    return outcome


def free_name(txn: EntryWrites, name: str) -> str:
    """Return the name, or it with the first number behind it that no entry ever had.

    What was taken out can be brought back under its name.
    """
    taken = {
        str(row[0])
        for row in txn.store.execute(
            """
            SELECT name FROM entry WHERE starts_with(name, $1)
            UNION SELECT name FROM version WHERE starts_with(name, $1)
            """,
            [name],
        ).fetchall()
    }
    numbers = (number for number in itertools.count(2) if f"{name}-{number}" not in taken)
    return name if name not in taken else f"{name}-{next(numbers)}"


def owed(store: Store) -> list[Range]:
    """Return the turns whose episode lost a source and is to be told anew."""
    return [Range(*one) for one in summaries.read_note(store, OWED, [])]


def owe(txn: EntryWrites, entries: Sequence[Entry]) -> None:
    """Note that what these episodes told of is to be told anew."""
    lost = [found for one in entries if (found := range_of(one)) is not None]
    if lost:
        _note(txn, [*owed(txn.store), *lost])


def settle(txn: EntryWrites, one: Range) -> None:
    """Take a range off what is owed."""
    _note(txn, [other for other in owed(txn.store) if other != one])


def range_of(entry: Entry) -> Range | None:
    """Return the turns that an episode tells of, by its name; None for anything else."""
    if entry.kind != "episode" or entry.turn is None:
        return None
    first = entry.name.removeprefix(f"episode-{entry.session_id}-").partition("-")[0]
    return Range(entry.session_id, int(first), entry.turn) if first.isdecimal() else None


def _note(txn: EntryWrites, ranges: Sequence[Range]) -> None:
    kept = list(dict.fromkeys(ranges))[-_NOTES:]
    summaries.note(txn, OWED, [[one.session_id, one.first, one.last] for one in kept])

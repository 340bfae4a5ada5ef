"""Operations: what was done under one id. Reading only.

An operation is undone by another one, which the ledger ties to it (``undo operation``); redoing is
the undoing of that. So an operation and its undoings make a family with one root, and every change
of a name is a letter: the root's, done (``+1``) or undone (``-1``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.model import PERSON_CHANNELS, Channel

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "Event",
    "Families",
    "Operation",
    "events_of",
    "find",
    "is_condensing",
    "is_persons",
    "operations",
    "scopes_of",
]

SILENT = frozenset({"refuse", "hide", "show"})  # verbs that change no state
_CONDENSED = frozenset({"summary", "episode", "thread"})


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the ledger: ``verb`` and ``kind`` are what it calls ``update rule``."""

    seq: int
    op_id: str
    at: datetime
    verb: str
    kind: str
    target: str
    channel: str
    actor: str


@dataclass(frozen=True, slots=True)
class Operation:
    """What was done under one id. ``verbs`` counts ``create rule`` and the like.

    ``undone`` tells whether it is undone now; ``undoes`` is the operation that this one took back
    or brought back, ``""`` for most.
    """

    op_id: str
    seq: int  # of its first ledger row
    at: datetime
    actor: str
    channel: str
    verbs: Mapping[str, int]
    undone: bool
    undoes: str


class Families:
    """Which operation undid which."""

    def __init__(self, store: Store) -> None:
        """Read the ties from the ledger."""
        found = store.execute(
            "SELECT op_id, verb, target FROM mutation"
            " WHERE verb IN ('undo operation', 'redo operation') ORDER BY seq"
        ).fetchall()
        self._signs = {
            str(op): (str(root), -1 if verb[0] == "u" else 1) for op, verb, root in found
        }
        self._last = {root: (op, sign) for op, (root, sign) in self._signs.items()}

    def letter(self, op_id: str) -> tuple[str, int]:
        """Return an operation's root, and whether it does (1) or undoes (-1) what the root did."""
        return self._signs.get(op_id, (op_id, 1))

    def latest(self, root: str) -> tuple[str, int]:
        """Return the last of a family, and its sign."""
        return self._last.get(root, (root, 1))

    def undone(self) -> list[str]:
        """Return the roots that are undone now, the one undone last first."""
        return [
            root
            for op, (root, sign) in reversed(self._signs.items())
            if sign < 0 and self._last[root][0] == op
        ]


def is_persons(store: Store, op_id: str) -> bool:
    """Tell whether a person did this operation."""
    found = store.execute(
        "SELECT 1 FROM mutation WHERE op_id = $1 AND list_contains($2::VARCHAR[], channel) LIMIT 1",
        [op_id, list(PERSON_CHANNELS)],
    ).fetchone()
    return found is not None


def is_condensing(store: Store, op_id: str) -> bool:
    """Tell whether an operation only made what is condensed from the rest, and is made again.

    So it is with the worker's summaries, episodes and threads, and with what a command condensed
    without a model.
    """
    events = [one for one in events_of(store, "op_id = ?", [op_id]) if one.verb not in SILENT]
    kinds = {one.kind for one in events}
    if not kinds & _CONDENSED or kinds - _CONDENSED - {"statement"}:
        return False
    if all(one.channel == Channel.WORKER for one in events):
        return True
    found = store.execute(
        """
        SELECT producer FROM entry WHERE seq IN (SELECT unnest($1::BIGINT[]))
        UNION SELECT producer FROM version WHERE seq IN (SELECT unnest($1::BIGINT[]))
        """,
        [[one.seq for one in events]],
    ).fetchall()
    made = all(one.verb == "create" for one in events)
    return made and bool(found) and all(str(row[0]).startswith("extractive") for row in found)


def find(store: Store, text: str) -> str:
    """Return the operation that a person names: by its id, the id's beginning, or a ledger row.

    Raises NotFound, Conflict when several ids begin so.
    """
    said = text.strip()
    if said.isdecimal() and len(said) < 12:
        found = store.execute("SELECT op_id FROM mutation WHERE seq = ?", [int(said)]).fetchall()
    else:
        found = store.execute(
            "SELECT DISTINCT op_id FROM mutation WHERE starts_with(op_id, ?) AND ? <> '' LIMIT 2",
            [said, said],
        ).fetchall()
    if not found:
        raise NotFound(f"operation {said[:60]!r}", hint="See them with: hypatia-mem log")
    if len(found) > 1:
        raise Conflict(
            f"several operations begin with {said[:60]!r}",
            hint="Give more of it, or the number of a ledger row: hypatia-mem log",
        )
    return str(found[0][0])


def operations(store: Store, *, limit: int = 20, before: int | None = None) -> list[Operation]:
    """Return operations, latest first; ``before``: only those that began before this ledger row."""
    families = Families(store)
    found = store.run(
        """
        WITH op AS (
            SELECT op_id, min(seq) AS seq FROM mutation
            WHERE $1::BIGINT IS NULL OR seq < $1 GROUP BY op_id ORDER BY seq DESC LIMIT $2
        )
        SELECT op.op_id, op.seq, min("at") AS "at", arg_min(actor, m.seq) AS actor,
            arg_min(channel, m.seq) AS channel, list(verb ORDER BY m.seq) AS verbs
        FROM op JOIN mutation AS m ON m.op_id = op.op_id
        GROUP BY op.op_id, op.seq ORDER BY op.seq DESC
        """,
        [before, limit],
    )
    made: list[Operation] = []
    for row in found:
        verbs: dict[str, int] = {}
        for verb in row["verbs"]:
            verbs[verb] = verbs.get(verb, 0) + 1
        root, _ = families.letter(row["op_id"])
        made.append(
            Operation(
                op_id=row["op_id"],
                seq=row["seq"],
                at=row["at"],
                actor=row["actor"],
                channel=row["channel"],
                verbs=verbs,
                undone=root == row["op_id"] and families.latest(root)[1] < 0,
                undoes="" if root == row["op_id"] else root,
            )
        )
    return made


def scopes_of(store: Store, op_id: str) -> set[str]:
    """Return the scopes of what an operation changed, before and after."""
    found = store.execute(
        """
        WITH row_of AS (SELECT seq FROM mutation WHERE op_id = $1)
        SELECT unnest(scopes) FROM entry WHERE seq IN (FROM row_of)
        UNION SELECT unnest(scopes) FROM statement WHERE seq IN (FROM row_of)
        UNION SELECT unnest(scopes) FROM version WHERE op_id = $1 OR seq IN (FROM row_of)
        UNION SELECT unnest(scopes) FROM statement_version WHERE op_id = $1 OR seq IN (FROM row_of)
        UNION SELECT session.project FROM image JOIN session ON session.id = image.key
            WHERE image.op_id = $1 AND image.kind = 'session'
        UNION SELECT coalesce(became, was)->>'project' FROM image
            WHERE op_id = $1 AND kind = 'session'
        UNION SELECT coalesce(became, was)->>'scope' FROM image
            WHERE op_id = $1 AND kind IN ('project', 'root', 'tombstone')
        UNION SELECT scope FROM tombstone WHERE op_id = $1
        UNION SELECT unnest(entry.scopes) FROM image JOIN entry
            ON entry.name = (coalesce(image.became, image.was)->>'name')
            WHERE image.op_id = $1 AND image.kind IN ('verdict', 'queued')
        UNION SELECT unnest(statement.scopes) FROM image JOIN statement
            ON statement.triple = image.key WHERE image.op_id = $1 AND image.kind = 'verdict'
        """,
        [op_id],
    ).fetchall()
    return {str(scope) for (scope,) in found if scope is not None}


def events_of(store: Store, where: str, params: Sequence[Any]) -> list[Event]:
    """Return the ledger's rows that a condition of this room picks, in order."""
    found = store.execute(
        f'SELECT seq, op_id, "at", verb, target, channel, actor FROM mutation'  # noqa: S608 - ours
        f" WHERE {where} ORDER BY seq",
        params,
    ).fetchall()
    events: list[Event] = []
    for seq, op_id, at, said, target, channel, actor in found:
        verb, _, kind = str(said).partition(" ")
        events.append(
            Event(int(seq), str(op_id), at, verb, kind, str(target), str(channel), str(actor))
        )
    return events

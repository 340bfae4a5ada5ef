"""Operations: what was done under one id, and what it takes to undo it. Reading only.

An operation is undone by another one, which the ledger ties to it (``undo operation``); redoing is
the undoing of that. So an operation and its undoings make a family with one root, and every change
of a name is a letter: the root's, done (``+1``) or undone (``-1``). An operation can be taken back
when all that happened to its names since then cancels out: then the names stand as it left them,
whoever did and undid what in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import ChangedLater, Conflict, NotFound, Refused
from hypatia_mem.model import PERSON_CHANNELS, Channel
from hypatia_mem.store import keys
from hypatia_mem.store.versions import VERSIONS
from hypatia_mem.store.writing import CAPTURE

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "Event",
    "Families",
    "Image",
    "Operation",
    "Plan",
    "Step",
    "find",
    "is_condensing",
    "is_persons",
    "operations",
    "plan",
    "scopes_of",
]

_STATES = frozenset({"create", "update", "delete", "forget", "rescope"})  # an entry's or triple's
_CHANGES = _STATES | {"amend"}
_ROWS = frozenset({"session", "project", "root"})  # kinds that are rows of small tables
_SILENT = frozenset({"refuse", "hide", "show"})
_CONDENSED = frozenset({"summary", "episode", "thread"})
_SHOWN = 3  # so many names are named in a refusal


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


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one entry or statement: the earlier state ``state`` (a rowid), or nothing."""

    table: str
    name: str
    state: int | None
    exists: bool
    made: bool  # what is taken back had created it


@dataclass(frozen=True, slots=True)
class Image:
    """A small table's row before and after; None stands for no row."""

    kind: str
    key: str
    was: str | None
    became: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What taking back ``inverts``, the latest of the family of ``root``, would do."""

    root: str
    inverts: str
    steps: tuple[Step, ...]
    images: tuple[Image, ...]  # in the order in which they were made


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
    events = [one for one in _events(store, "op_id = ?", [op_id]) if one.verb not in _SILENT]
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


def plan(store: Store, op_id: str, *, redo: bool) -> Plan:
    """Say what undoing (or redoing) an operation takes.

    Raises NotFound for an unknown one, Conflict when it is undone already, or something later
    changed what it changed, Refused when it cannot be undone at all.
    """
    families = Families(store)
    root, _ = families.letter(op_id)
    inverts, sign = families.latest(root)
    if (sign < 0) is not redo:
        raise Conflict(
            f"operation {root} is {'not undone' if redo else 'undone already'}",
            hint=f"See: hypatia-mem log, or bring it back: hypatia-mem redo {root}"
            if not redo
            else "See: hypatia-mem log",
        )
    events = _events(store, "op_id = ?", [inverts])
    if not events:
        raise NotFound(f"operation {op_id!r}", hint="See them with: hypatia-mem log")
    _refuse_final(store, events)
    return _Planner(store, families, inverts, events).plan(root)


class _Planner:
    """Finds, for each name that an operation changed, the state to go back to."""

    def __init__(
        self, store: Store, families: Families, op_id: str, events: Sequence[Event]
    ) -> None:
        self.store = store
        self.families = families
        self.op_id = op_id
        self.events = events
        self.seqs = [event.seq for event in events]
        self.images = _images(store, op_id)

    def plan(self, root: str) -> Plan:
        """Return the plan; raises Conflict or Refused."""
        own: dict[tuple[str, str], list[Event]] = {}  # by table and name
        after, before = self._written(), self._replaced()
        imaged = {seq for seq, _ in self.images}
        for event in self.events:
            if event.verb not in _STATES:
                if event.verb in ("lift", "amend") and event.seq not in imaged:
                    raise _lacking(self.op_id)
                continue
            table = "statement" if event.kind == "statement" else "entry"
            name = after.get((table, event.seq)) or before.get((table, event.seq), ("", 0))[0]
            if name:
                own.setdefault((table, name), []).append(event)
            elif event.kind not in _ROWS:
                raise _forgotten(self.op_id)
            elif event.seq not in imaged:
                raise _lacking(self.op_id)
        first = {key: found[0] for key, found in own.items() if not _came_and_went(found)}
        self._refuse_changed(first)
        steps = self._steps(first, before)
        self._refuse_depended_on(first, steps)
        self._refuse_condensed_twice(steps)
        return Plan(root, self.op_id, tuple(steps), tuple(image for _, image in self.images))

    def _written(self) -> dict[tuple[str, int], str]:
        """Return by (table, ledger row) the name of each state that the operation wrote."""
        found: dict[tuple[str, int], str] = {}
        for table, (earlier, key) in VERSIONS.items():
            for where in (table, earlier):
                rows = self.store.execute(
                    f"SELECT seq, {key} FROM {where}"  # noqa: S608 - our own names
                    " WHERE seq IN (SELECT unnest(?::BIGINT[]))",
                    [self.seqs],
                ).fetchall()
                found.update({(table, int(seq)): str(name) for seq, name in rows})
        return found

    def _replaced(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Return by (table, ledger row) the name and rowid of each state that it replaced."""
        found: dict[tuple[str, int], tuple[str, int]] = {}
        for table, (earlier, key) in VERSIONS.items():
            rows = self.store.execute(
                f"SELECT replaced_seq, {key}, rowid FROM {earlier} WHERE op_id = ?",  # noqa: S608
                [self.op_id],
            ).fetchall()
            found.update({(table, int(seq)): (str(name), int(id_)) for seq, name, id_ in rows})
        return found

    def _steps(
        self,
        first: Mapping[tuple[str, str], Event],
        before: Mapping[tuple[str, int], tuple[str, int]],
    ) -> list[Step]:
        there = {table: self._existing(table, first) for table in VERSIONS}
        steps: list[Step] = []
        for (table, name), event in first.items():
            made = event.verb == "create"
            state = before.get((table, event.seq))
            if state is None and not made:
                raise _forgotten(self.op_id)
            id_ = None if state is None else state[1]
            exists = name in there[table]
            if exists or id_ is not None:
                steps.append(Step(table, name, id_, exists, made))
        return steps

    def _existing(self, table: str, names: Iterable[tuple[str, str]]) -> set[str]:
        key = VERSIONS[table][1]
        wanted = [name for where, name in names if where == table]
        found = self.store.execute(
            f"SELECT {key} FROM {table}"  # noqa: S608 - our own names
            f" WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",
            [wanted],
        ).fetchall()
        return {str(name) for (name,) in found}

    def _refuse_changed(self, first: Mapping[tuple[str, str], Event]) -> None:
        """Refuse when what happened to a name since then does not cancel out."""
        if not first:
            return
        ring = keys.keyring(self.store.home)
        forms: dict[str, str] = {}
        for _, name in first:
            forms[name] = name
            forms.update(dict.fromkeys((key.target(name) for key in ring), name))
        since = _events(
            self.store,
            "seq >= ? AND target IN (SELECT unnest(?::VARCHAR[]))",
            [min(event.seq for event in first.values()), list(forms)],
        )
        ours = {name for _, name in first}
        happened: dict[tuple[str, str], list[Event]] = {key: [] for key in first}
        for event in since:
            if event.target in ours and event.kind not in ("message", "session"):
                continue  # a project may be called as an entry is
            table = "statement" if event.kind == "statement" else "entry"
            key = (table, forms[event.target])
            if event.verb in _CHANGES and key in first and event.seq >= first[key].seq:
                happened[key].append(event)
        own = self.families.letter(self.op_id)
        changed = [
            (name, later)
            for (_, name), events in happened.items()
            if (later := self._remains(events, own)) is not None
        ]
        if changed:
            raise _changed_later(changed)

    def _remains(self, events: Sequence[Event], own: tuple[str, int]) -> Event | None:
        """Return what of these events stands in the way of taking back the first of them."""
        word: list[tuple[tuple[str, int], Event]] = []
        for op_id, run in groupby(events, lambda event: event.op_id):
            changes = list(run)  # one operation's changes of one name are one letter
            if _came_and_went(changes):
                continue
            letter, event = self.families.letter(op_id), changes[0]
            if word and word[-1][0] == (letter[0], -letter[1]):
                word.pop()
            else:
                word.append((letter, event))
        if [letter for letter, _ in word] == [own]:
            return None
        others = [event for letter, event in word if letter != own]
        return others[-1] if others else events[-1]

    def _refuse_depended_on(
        self, first: Mapping[tuple[str, str], Event], steps: Sequence[Step]
    ) -> None:
        """Refuse to take an entry away from under statements that others made about it later.

        One that was there when the entry came may stay: so it was then.
        """
        gone = [step.name for step in steps if step.table == "entry" and step.state is None]
        if not gone:
            return
        own = {step.name for step in steps if step.table == "statement"}
        found = self.store.run(
            """
            WITH gone AS (SELECT unnest($1::VARCHAR[]) AS name, unnest($2::BIGINT[]) AS seq)
            SELECT one.triple, one.seq FROM statement AS one
            JOIN gone ON gone.name IN (one.subject, one.object)
            WHERE one.seq > gone.seq AND NOT EXISTS (
                SELECT 1 FROM statement_version AS earlier
                WHERE earlier.triple = one.triple
                  AND earlier.seq < gone.seq AND earlier.replaced_seq > gone.seq
            )
            ORDER BY one.seq DESC
            """,
            [gone, [first["entry", name].seq for name in gone]],
        )
        for row in found:
            if row["triple"] in own:
                continue
            event = _events(self.store, "seq = ?", [row["seq"]])
            raise _changed_later([(row["triple"], event[0])] if event else [])

    def _refuse_condensed_twice(self, steps: Sequence[Step]) -> None:
        """Refuse to bring back a summary of what another summary condenses since."""
        mine = [step for step in steps if step.table == "statement"]
        found = self.store.run(
            """
            SELECT there.subject, entry.seq FROM statement_version AS back
            JOIN statement AS there ON there.object = back.object
                AND there.predicate = 'summary' AND there.subject <> back.subject
            JOIN entry ON entry.name = there.subject
            WHERE back.predicate = 'summary' AND back.rowid IN (SELECT unnest($1::BIGINT[]))
              AND there.triple NOT IN (SELECT unnest($2::VARCHAR[]))
            ORDER BY entry.seq DESC LIMIT 1
            """,
            [
                [step.state for step in mine if step.state is not None and not step.exists],
                [step.name for step in mine if step.state is None],
            ],
        )
        for row in found:
            raise _changed_later(
                [(row["subject"], _events(self.store, "seq = ?", [row["seq"]])[0])]
            )


# ----------------------------------------------------------------------------------------------


def _came_and_went(changes: Sequence[Event]) -> bool:
    """Tell whether an operation made a thing and took it away again: it changed nothing then."""
    return changes[0].verb == "create" and changes[-1].verb == "delete"


def _events(store: Store, where: str, params: Sequence[Any]) -> list[Event]:
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


def _images(store: Store, op_id: str) -> list[tuple[int, Image]]:
    found = store.execute(
        "SELECT seq, kind, key, was, became FROM image WHERE op_id = ? ORDER BY rowid", [op_id]
    ).fetchall()
    return [(int(seq), Image(kind, key, was, became)) for seq, kind, key, was, became in found]


def _refuse_final(store: Store, events: Sequence[Event]) -> None:
    """Refuse what can never be undone: a forgetting, turns as they were said, too old a change."""
    op_id = events[0].op_id
    if any(event.verb == "rotate" for event in events):
        raise Refused(
            f"operation {op_id} began a new key, and what was noted since stands under it",
            hint="The key before is kept: nothing is lost by the new one.",
        )
    if any(event.verb == "forget" for event in events):
        raise Refused(
            f"operation {op_id} forgot something, and forgetting is final: nothing of it is left",
            hint="To have it again, say it again yourself: hypatia-mem remember lifts what"
            " keeps it away.",
        )
    turns = [event for event in events if event.kind == "message" and event.channel in CAPTURE]
    if turns:
        raise Refused(
            f"operation {op_id} stored turns of a session as they were said; that is not undone",
            hint=f"To take one away: hypatia-mem knowledge-delete {turns[-1].target}",
        )
    if all(event.verb in _SILENT for event in events):
        raise Refused(f"operation {op_id} changed nothing, so there is nothing to undo")
    if events[0].seq <= int(store.meta("history_from") or 0):
        raise Refused(
            f"operation {op_id} was done by an earlier version of hypatia-mem, which kept less"
            " than undoing needs",
            hint="Single entries can be put back: hypatia-mem history NAME, hypatia-mem revert",
        )


def _forgotten(op_id: str) -> Refused:
    return Refused(
        f"operation {op_id} cannot be taken back: part of what it changed was forgotten since",
        hint="What is forgotten leaves no earlier versions either.",
    )


def _lacking(op_id: str) -> Refused:
    return Refused(
        f"operation {op_id} cannot be taken back: what a session's hooks and transcript said"
        " is kept as it was said"
    )


def _changed_later(changed: Sequence[tuple[str, Event]]) -> Conflict:
    names = ", ".join(repr(name) for name, _ in changed[:_SHOWN])
    more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    if not changed:
        return Conflict("something later depends on what this operation did")
    later = changed[0][1]
    return ChangedLater(
        f"{names}{more} changed later: {later.verb} {later.kind} at {later.at:%Y-%m-%d %H:%M:%S}"
        f" UTC, operation {later.op_id}",
        hint=f"Undo that first: hypatia-mem undo {later.op_id}",
        operation=later.op_id,
    )

"""What it takes to undo an operation, or to redo it. Reading only.

An operation can be taken back when all that happened to its names since then cancels out: then the
names stand as it left them, whoever did and undid what in between (``operations``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hypatia_mem.errors import ChangedLater, Conflict, NotFound, Refused
from hypatia_mem.store import keys
from hypatia_mem.store.operations import SILENT, Event, Families, events_of
from hypatia_mem.store.versions import VERSIONS
from hypatia_mem.store.writing import CAPTURE

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Image", "Plan", "Step", "plan"]

_STATES = frozenset({"create", "update", "delete", "forget", "rescope"})  # an entry's or triple's
_CHANGES = _STATES | {"amend"}
_ROWS = frozenset({"session", "project", "root"})  # kinds that are rows of small tables
_SHOWN = 3  # so many names are named in a refusal


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
    events = events_of(store, "op_id = ?", [inverts])
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
        since = events_of(
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
            event = events_of(self.store, "seq = ?", [row["seq"]])
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
                [(row["subject"], events_of(self.store, "seq = ?", [row["seq"]])[0])]
            )


def _came_and_went(changes: Sequence[Event]) -> bool:
    """Tell whether an operation made a thing and took it away again: it changed nothing then."""
    return changes[0].verb == "create" and changes[-1].verb == "delete"


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
    if all(event.verb in SILENT for event in events):
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

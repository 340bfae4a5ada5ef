"""Undoing and redoing: an operation's names go back to what they were, as a new operation.

What comes back comes from the versions that the operation left, with one statement a table however
many names there are; nothing of history is taken away, so an undoing can be undone in turn. What
may be done at all, ``planning.plan`` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from hypatia_mem.errors import Conflict, Refused
from hypatia_mem.model import Outcome, Trust
from hypatia_mem.store import authority, branches, history, operations, planning, rows
from hypatia_mem.store.messages import MessageWrites
from hypatia_mem.store.planning import Image, Plan, Step
from hypatia_mem.store.versions import VERSIONS
from hypatia_mem.store.writing import TABLES, plain

__all__ = ["Undoing"]

_LAST = frozenset({"session", "project"})  # they can go when nothing is in them any more
_KEYS = {"session": "id", "project": "scope", "root": "path", "verdict": "name", "queued": "id"}
_NOTES = frozenset({"verdict", "queued"})  # they go with other changes, and have no ledger rows
# What follows from other rows, or only says when: it need not be as it was.
_LOOSE = frozenset({"turns", "updated_at", "seen_at", "created_at"})
# What of a session an image may not have: it is counted, or an older version kept no such column.
_UNSAID = {"turns": 0, "forked_at": 0, "fork_gaps": "", "fork_reason": ""}


@dataclass(frozen=True, slots=True)
class _Move:
    """A step with what is known of the state that goes and of the one that comes."""

    step: Step
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None

    @property
    def verb(self) -> str:
        if self.old is None:
            return "create"
        return "delete" if self.new is None else "update"


class Undoing(MessageWrites):
    """The part of a transaction that takes operations back."""

    def undo(self, op_id: str) -> Outcome:
        """Take an operation back, all of it or nothing.

        ``details`` has the names ``restored``, ``changed`` and ``removed``, and ``others``:
        sessions, projects and folders.

        Raises NotFound, Conflict when it is undone already or something later changed the same,
        Refused when it cannot be undone (a forgetting, turns as they were said).
        """
        return self._take_back(planning.plan(self.store, op_id, redo=False), "undo")

    def redo(self, op_id: str) -> Outcome:
        """Do again what was undone; ``op_id`` is the operation or its undoing. Raises as undo."""
        return self._take_back(planning.plan(self.store, op_id, redo=True), "redo")

    def revert_statement(self, triple: str, state: int) -> Outcome:
        """Put an earlier state of a statement in its place; ``state`` is a row of its history.

        Raises Refused when what it says was forgotten, or an agent would settle what it is.
        """
        found = self.store.execute("SELECT 1 FROM statement WHERE triple = ?", [triple])
        exists = found.fetchone() is not None
        moves = self._moves("statement", [Step("statement", triple, state, exists, made=False)])
        self._refuse_settled(triple, moves[0])
        self._refuse_forgotten(moves)
        self._move("statement", moves)
        return Outcome("updated" if exists else "created", triple)

    def _take_back(self, plan: Plan, verb: str) -> Outcome:
        self._note(verb, plan.root, "operation", index=False)
        moves = [move for table in VERSIONS for move in self._moves(table, plan.steps)]
        self._refuse_decided(moves, plan)
        self._refuse_forgotten(moves, plan.images)
        later = [image for image in plan.images if image.kind in _LAST]
        self._put_images([image for image in plan.images if image.kind not in _LAST])
        for table in VERSIONS:
            self._move(table, [move for move in moves if move.step.table == table])
        if verb == "undo":  # what a redo takes away was deleted, and a deleted line stays known
            self._take_out_messages([move for move in moves if move.step.made and move.new is None])
        self._put_images(later)
        self._count_turns(moves, later)
        names: dict[str, list[str]] = {"restored": [], "changed": [], "removed": []}
        words = {"create": "restored", "update": "changed", "delete": "removed"}
        for move in moves:
            names[words[move.verb]].append(move.step.name)
        rest = [
            f"{image.kind} {image.key}"
            for image in plan.images
            if image.kind in _KEYS and image.kind not in _NOTES
        ]
        names["others"] = list(dict.fromkeys(rest))
        done = "undone" if verb == "undo" else "redone"
        return Outcome(done, plan.root, details={"operation": self.op_id, **names})

    # -- entries and statements

    def _moves(self, table: str, steps: Sequence[Step]) -> list[_Move]:
        """Look up what is there now and what comes, of one table's steps."""
        earlier, key = VERSIONS[table]
        mine = [step for step in steps if step.table == table]
        words = "'statement' AS kind, trust, subject, predicate, object"
        if table == "entry":
            words = (
                "kind, trust, suppressed, pinned, session_id, turn,"
                " coalesce(activation, '') AS activation"
            )
        now = self.store.run(
            f"SELECT {key} AS name, content, scopes, {words} FROM {table}"  # noqa: S608 - our names
            f" WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",
            [[step.name for step in mine if step.exists]],
        )
        then = self.store.run(
            f"SELECT rowid AS id, {key} AS name, content, scopes, {words} FROM {earlier}"  # noqa: S608
            " WHERE rowid IN (SELECT unnest(?::BIGINT[]))",
            [[step.state for step in mine if step.state is not None]],
        )
        old = {row["name"]: row for row in now}
        new = {row["id"]: row for row in then}
        return [
            _Move(step, old.get(step.name), None if step.state is None else new[step.state])
            for step in mine
        ]

    def _refuse_settled(self, triple: str, move: _Move) -> None:
        """Refuse an agent a state of a statement that is believed otherwise than it is or was."""
        was = history.last_trust(self.store, triple) if move.old is None else move.old["trust"]
        if was is None or move.new is None:
            return
        why = authority.denied(self.author.channel, Trust(was), Trust(move.new["trust"]))
        if why:
            raise Refused(
                f"{triple!r} stays as it is: {why}",
                hint="A person can do it by running this command in a terminal.",
            )

    def _refuse_decided(self, moves: Sequence[_Move], plan: Plan) -> None:
        """Refuse to take back for an agent what only a person decides."""
        if authority.is_person(self.author.channel):
            return
        why = ""
        if any(image.kind == "tombstone" and image.became is not None for image in plan.images):
            why = "only a person can lift what keeps a value away"
        by_person = operations.is_persons(self.store, plan.root)
        for move in moves:
            if move.old is not None and move.new is not None:
                was, becomes = (Trust(one["trust"]) for one in (move.old, move.new))
                why = why or authority.denied(self.author.channel, was, becomes)
                why = why or self._person_has(move)
                if by_person:
                    scopes = (move.old["scopes"], move.new["scopes"])
                    why = why or authority.carried(self.author.channel, *scopes)
        if why:
            raise Refused(
                f"this operation cannot be taken back from here: {why}",
                hint="A person can do it by running this command in a terminal.",
            )

    def _person_has(self, move: _Move) -> str:
        old, new = move.old, move.new
        if old is None or new is None or move.step.table != "entry":
            return ""
        for field in ("suppressed", "pinned"):
            gone = old[field] and not new[field]
            if gone and authority.set_by_person(self.store, [move.step.name], field):
                return f"a person has {field} {move.step.name!r}"
        if old["activation"] != new["activation"] and authority.set_by_person(
            self.store, [move.step.name], "activation"
        ):
            return f"a person has settled when {move.step.name!r} is told"
        return ""

    def _refuse_forgotten(self, moves: Sequence[_Move], images: Sequence[Image] = ()) -> None:
        """Refuse to bring back by this door what a tombstone keeps away, whoever asks.

        Only a person takes back a rejection, and with it the tombstones that it set.
        """
        if not self._any_buried():
            return
        going = {image.key for image in images if image.kind == "tombstone" and image.was is None}
        for move in moves:
            if move.new is None or move.new["trust"] == Trust.REJECTED:
                continue  # what is rejected is kept, and kept away
            if self._is_buried(move.step, move.new, going):
                raise Refused(
                    f"{move.step.name!r} would come back, and what it says was forgotten",
                    hint="To have it again, say it again yourself: hypatia-mem remember lifts what"
                    " keeps it away.",
                )

    def _is_buried(self, step: Step, row: Mapping[str, Any], going: AbstractSet[str]) -> bool:
        if step.table == "entry":
            digests = self._entry_digests(step.name, row["content"], row["kind"])
        else:
            said = (row["subject"], row["predicate"], row["object"], row["content"])
            digests = self._statement_digests(*said)
        return self._buried([one for one in digests if one not in going], row["scopes"])

    def _move(self, table: str, moves: Sequence[_Move]) -> None:
        if not moves:
            return
        key = VERSIONS[table][1]
        noted = {move.step.name: self._note_move(move) for move in moves}
        self._retire(table, {m.step.name: noted[m.step.name] for m in moves if m.old is not None})
        gone = [move.step.name for move in moves if move.new is None]
        self._forget_touched(gone)
        self.store.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",  # noqa: S608
            [gone],
        )
        back = [move for move in moves if move.new is not None]
        self._change_back(table, [move for move in back if move.old is not None], noted)
        self._bring_back(table, [move for move in back if move.old is None], noted)
        if table == "entry":
            self._note_sight(moves)

    def _note_move(self, move: _Move) -> int:
        said = [
            ("" if one is None else rows.digest(one["content"])) for one in (move.old, move.new)
        ]
        shown = move.old if move.new is None else move.new
        kind = str(shown["kind"]) if shown is not None else ""
        return self._note(move.verb, move.step.name, kind, before=said[0], after=said[1])

    def _change_back(self, table: str, moves: Sequence[_Move], noted: Mapping[str, int]) -> None:
        """Give rows that are there the values of earlier states."""
        if not moves:
            return
        earlier, key = VERSIONS[table]
        kept = {key, "seq", "version", "updated_at"}
        sets = ", ".join(f'"{name}" = one."{name}"' for name in TABLES[table] if name not in kept)
        more = f", version = {table}.version + 1, updated_at = $3" if table == "entry" else ""
        ids = [move.step.state for move in moves]
        self.store.execute(
            f"""
            UPDATE {table} SET {sets}, seq = one.to_seq{more}
            FROM (
                SELECT v.*, m.seq AS to_seq FROM {earlier} AS v
                JOIN (SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS seq) AS m
                    ON v.rowid = m.id
            ) AS one
            WHERE {table}.{key} = one.{key}
            """,  # noqa: S608 - our own names
            [ids, [noted[move.step.name] for move in moves], *([self.now] if more else [])],
        )

    def _bring_back(self, table: str, moves: Sequence[_Move], noted: Mapping[str, int]) -> None:
        """Insert rows that are not there from earlier states."""
        if not moves:
            return
        earlier = VERSIONS[table][0]
        given = {"seq": "m.seq"}
        if table == "entry":
            given |= {"version": "top.version + 1", "updated_at": "$3"}
        into = ", ".join(f'"{name}"' for name in TABLES[table])
        values = ", ".join(given.get(name, f'v."{name}"') for name in TABLES[table])
        top = (
            "JOIN (SELECT name, max(version) AS version FROM version GROUP BY name) AS top"
            " ON top.name = v.name"
        )
        self.store.execute(
            f"""
            INSERT INTO {table} ({into})
            SELECT {values} FROM {earlier} AS v
            JOIN (SELECT unnest($1::BIGINT[]) AS id, unnest($2::BIGINT[]) AS seq) AS m
                ON v.rowid = m.id
            {top if table == "entry" else ""}
            """,  # noqa: S608 - our own names
            [
                [move.step.state for move in moves],
                [noted[move.step.name] for move in moves],
                *([self.now] if table == "entry" else []),
            ],
        )

    def _note_sight(self, moves: Sequence[_Move]) -> None:
        """Note the statements that are withheld, or seen again, with their entries."""
        for move in moves:
            was, now = (one is not None and _withheld(one) for one in (move.old, move.new))
            if was != now:
                for triple in self.store.triples_of([move.step.name]):
                    self._note("hide" if now else "show", triple, "statement")

    # -- the small tables

    def _take_out_messages(self, moves: Sequence[_Move]) -> None:
        """Remove the rows of messages whose entries are gone as if they had never been."""
        for move in moves:
            if move.old is None or move.old["kind"] != "message":
                continue
            where = [move.old["session_id"], move.old["turn"]]
            for row in self.store.run(
                "DELETE FROM message WHERE session_id = ? AND turn = ? RETURNING *", where
            ):
                self._keep_image(self.seq, "message", move.step.name, row, None)

    def _put_images(self, images: Sequence[Image]) -> None:
        """Put small tables' rows back as they were, the last change first."""
        for image in reversed(images):
            was = None if image.was is None else json.loads(image.was)
            became = None if image.became is None else json.loads(image.became)
            if image.kind == "tombstone":
                self._put_tombstone(image, was, became)
            else:
                self._put_row(image, was, became)
            self._keep_image(self._note_image(image), image.kind, image.key, became, was)

    def _note_image(self, image: Image) -> int:
        if image.kind in _NOTES:
            return self.seq
        verb = "update"
        if image.kind == "tombstone":
            verb = "lift" if image.was is None else "bury"
        elif image.kind == "message":
            verb = "amend"
        elif image.was is None or image.became is None:
            verb = "delete" if image.was is None else "create"
        kind = "entry" if image.kind == "tombstone" else image.kind
        target = "" if image.kind == "root" else image.key  # a path is no word of ours
        return self._note(verb, target, kind, index=image.kind == "message")

    def _put_tombstone(
        self, image: Image, was: Mapping[str, Any] | None, became: Mapping[str, Any] | None
    ) -> None:
        if became is not None:
            names = list(became)
            where = " AND ".join(f'"{name}" = ?' for name in names)
            gone = self.store.run(
                f"DELETE FROM tombstone WHERE {where} RETURNING 1",  # noqa: S608 - our own columns
                [became[name] for name in names],
            )
            if not gone:
                raise _otherwise(image)
        if was is not None:
            self._bulk("tombstone", [{"target": "", "part": "", "sketch": "", **was}])
        self._graves_changed()

    def _put_row(
        self, image: Image, was: Mapping[str, Any] | None, became: Mapping[str, Any] | None
    ) -> None:
        where, params = _where(image)
        found = self.store.run(f"SELECT * FROM {image.kind} WHERE {where}", params)  # noqa: S608
        there = json.loads(json.dumps(found[0], default=plain)) if found else None
        if not _fits(there, became):
            raise _otherwise(image)
        if was is None:
            self._refuse_in_use(image)
            self.store.execute(f"DELETE FROM {image.kind} WHERE {where}", params)  # noqa: S608
        elif became is None:
            self._bulk(image.kind, [{**_UNSAID, **was} if image.kind == "session" else dict(was)])
        elif was:
            sets = ", ".join(f'"{name}" = ?' for name in was)
            self.store.execute(
                f"UPDATE {image.kind} SET {sets} WHERE {where}",  # noqa: S608 - our own columns
                [*was.values(), *params],
            )

    def _refuse_in_use(self, image: Image) -> None:
        """Refuse to take a session or a project away from under what others stored in it."""
        if image.kind == "session" and self._has_messages(image.key):
            raise Conflict(f"session {image.key!r} has turns that other operations stored")
        if image.kind == "session" and (on := branches.forest(self.store).children(image.key)):
            raise Conflict(
                f"session {on[0].id} branched off {image.key!r}, and shares what it reads",
                hint=f"Delete that branch first: hypatia-mem delete {on[0].id}",
            )
        if image.kind == "project":
            found = self.store.execute(
                "SELECT 1 FROM entry WHERE list_contains(scopes, ?) LIMIT 1", [image.key]
            ).fetchone()
            if found:
                raise Conflict(f"project {image.key!r} has entries that other operations stored")

    def _has_messages(self, session_id: str) -> bool:
        found = self.store.execute(
            "SELECT 1 FROM entry WHERE kind = 'message' AND session_id = ? LIMIT 1", [session_id]
        ).fetchone()
        return found is not None

    def _count_turns(self, moves: Sequence[_Move], images: Sequence[Image]) -> None:
        """Let sessions count their messages again."""
        touched = {image.key for image in images} | {
            row["session_id"]
            for move in moves
            for row in (move.old, move.new)
            if row is not None and row["kind"] == "message"
        }
        self.store.execute(
            """
            UPDATE session SET turns =
                (SELECT coalesce(max(turn), 0) FROM message WHERE session_id = session.id)
            WHERE id IN (SELECT unnest(?::VARCHAR[]))
            """,
            [list(touched)],
        )


# ----------------------------------------------------------------------------------------------


def _withheld(row: Mapping[str, Any]) -> bool:
    return bool(row["suppressed"]) or row["trust"] in ("candidate", "rejected")


def _where(image: Image) -> tuple[str, list[Any]]:
    if image.kind != "message":
        return f"{_KEYS[image.kind]} = ?", [image.key]
    session, _, turn = image.key.removeprefix("msg-").rpartition("-")
    return "session_id = ? AND turn = ?", [session, int(turn)]


def _fits(there: Mapping[str, Any] | None, became: Mapping[str, Any] | None) -> bool:
    """Tell whether a row stands as a change left it; None is no row."""
    if there is None or became is None:
        return there is None and became is None
    return all(there[name] == became[name] for name in became if name not in _LOOSE)


def _otherwise(image: Image) -> Conflict:
    name = "what was forgotten" if image.kind == "tombstone" else f"{image.kind} {image.key!r}"
    return Conflict(
        f"{name} changed later, so it cannot be put back as it was",
        hint="See: hypatia-mem log",
    )

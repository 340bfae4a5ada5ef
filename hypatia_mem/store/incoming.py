"""Rows of an export on their way into a store.

Every row goes through the gateway's transaction: the tombstones are asked, here and in the person's
other memories, the ledger and the index note it (I4). The import's author is never a person, so
that nothing forgotten is let in by the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Session, Trust, normal_predicate
from hypatia_mem.store import graves, likeness, quarantine, rows, withdrawing
from hypatia_mem.store.elsewhere import Elsewhere
from hypatia_mem.store.tombstones import REJECTED, canonical, entry_values, statement_values

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction

__all__ = ["UNSCOPED", "Incoming"]

UNSCOPED = "unscoped"  # the scope of what an export holds in no scope
_KEYS = {"entry": "name", "statement": "triple"}


class Incoming:
    """Rows on their way into a store, inside one transaction of the gateway."""

    def __init__(self, txn: Transaction, elsewhere: Elsewhere | None = None) -> None:
        """Learn what is forgotten: only rows whose digests are among these are asked for singly.

        ``elsewhere`` is what other memories of the same person have forgotten.
        """
        self.txn = txn
        self.refused = 0
        self.refused_elsewhere: dict[str, int] = {}  # by the memory in which it was forgotten
        self._elsewhere = elsewhere or Elsewhere({}, {})
        self._rejected: set[str] | None = None  # names of entries
        self._respelt: set[str] = set()  # triples that came with another spelling
        found = txn.store.execute("SELECT DISTINCT digest FROM tombstone").fetchall()
        self._buried = {str(row[0]) for row in found}
        self._known = graves.load(txn.store)

    def put(self, table: str, found: Sequence[dict[str, Any]]) -> int:
        """Store checked rows of a table; return how many came in, ``refused`` counts the others."""
        if table in ("entry", "statement"):
            fresh = [row for row in found if not self._is_refused(table, row)]
            if table == "statement":
                fresh = self._once(fresh)
            doubts = [self._doubt(row) for row in fresh]
            whole = [self._whole(table, row, why) for row, why in zip(fresh, doubts, strict=True)]
            self.txn._bulk(table, whole)
            for row, why in zip(whole, doubts, strict=True):
                if why:
                    quarantine.say_why(self.txn, row[_KEYS[table]], table, why)
            return len(fresh)
        if table == "message":
            self.txn._bulk(table, self._without_forgotten(found))
        elif table == "verdict":
            return self._put_verdicts(found)
        else:
            for row in found:
                self._put_one(table, row)
        return len(found)

    def _without_forgotten(self, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take the words out of messages whose entries were refused, or had gone before."""
        names = [f"msg-{row['session_id']}-{row['turn']}" for row in found]
        there = {one.name for one in self.txn.store.entries(names)}
        return [
            row
            if name in there
            else {**row, "parts": "[]", "text_digest": self.txn.sealed(row["text_digest"])}
            for name, row in zip(names, found, strict=True)
        ]

    def finish(self) -> list[str]:
        """Take out what stands on messages that were refused; return the summaries among it."""
        found = self.txn.store.execute(
            """
            SELECT concat('msg-', session_id, '-', turn) AS name FROM message
            WHERE name NOT IN (SELECT name FROM entry)
            """
        ).fetchall()
        gone = [str(name) for (name,) in found]
        dropped = [
            one for name in gone for one in withdrawing.drop_above(self.txn, name, purge=True)
        ]
        for name in gone:
            for one in self.txn.store.statements_of(name):
                self.txn.delete_statement(one.subject, one.predicate, one.object)
        return dropped

    def _put_one(self, table: str, row: dict[str, Any]) -> None:
        if table == "session":
            names = {one.name for one in fields(Session)} & set(row)
            values = {name: row[name] for name in names if row[name] is not None}
            self.txn.put_session(Session(**{**values, "tags": tuple(row.get("tags") or ())}))
        elif table == "project":
            self.txn.put_project(row["scope"], aliases=row["aliases"], excluded=row["excluded"])
        elif table == "root":
            marks = {name: row[name] for name in ("git_key", "origin_key", "remote")}
            self.txn.put_root(row["path"], scope=row["scope"], **marks)
        else:
            self._put_tombstone(row)

    def _put_verdicts(self, found: Sequence[dict[str, Any]]) -> int:
        """Keep why things are believed as they are, as far as they came in believed so.

        A word on it that was forgotten itself is left out; what was doubted here stays doubted so.
        """
        names = [rows.clean(row["name"]) for row in found]
        trust = {one.name: one.trust for one in self.txn.store.entries(names)}
        trust |= {
            str(row["triple"]): Trust(row["trust"])
            for row in self.txn.store.run(
                "SELECT triple, trust FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))",
                [names],
            )
        }
        there = {
            str(name)
            for (name,) in self.txn.store.execute(
                "SELECT name FROM verdict WHERE name IN (SELECT unnest(?::VARCHAR[]))", [names]
            ).fetchall()
        }
        kept = [
            {**row, "name": name, "reason": self._unforgotten(row),
             "op_id": self.txn.op_id}
            for row, name in zip(found, names, strict=True)
            if trust.get(name) == row["trust"] and name not in there
        ]  # fmt: skip
        self.txn._bulk("verdict", kept)
        for row in kept:
            self.txn._keep_image(self.txn.seq, "verdict", row["name"], None, row)
        return len(kept)

    def _unforgotten(self, row: Mapping[str, Any]) -> str:
        """Return the words of a verdict, none when they were forgotten."""
        values = graves.values_of(row["reason"])
        forgotten = not self._buried.isdisjoint(self.txn._tomb_digests(values))
        there = self._elsewhere.holding(values, (), said_at=row["at"], rejected=False)
        return "" if forgotten or there else str(row["reason"])

    def _put_tombstone(self, row: dict[str, Any]) -> None:
        known = ("digest", "key_id", "scope", "reason", "actor", "target", "part", "sketch")
        values = {name: row[name] or "" for name in known}
        there = self.txn.store.execute(
            "SELECT 1 FROM tombstone WHERE digest = ? AND scope = ?", [row["digest"], row["scope"]]
        ).fetchone()
        if there is None:
            at, op_id = row["at"] or self.txn.now, self.txn.op_id
            self.txn._bulk("tombstone", [{**values, "at": at, "op_id": op_id}])
            self.txn._graves_changed()
            self.txn._note("bury", row["digest"], "entry", reason="import", index=False)

    def _doubt(self, row: dict[str, Any]) -> str:
        """Return what was forgotten here that a row is like.

        What was forgotten there is in the same export, and there they stood side by side.
        """
        seen = row.get("kind") in ("message", "session") or row["trust"] == Trust.REJECTED
        if seen or not (self._known or self._elsewhere.graves):
            return ""
        near = self._known.near([row["content"]], row["scopes"], without=self.txn.op_id)
        if near is not None:
            return near.why
        there = self._elsewhere.near([row["content"]], row["scopes"], said_at=row["created_at"])
        return "" if there is None else f"{there[1].why} in shelf {there[0]!r}"

    def _once(self, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out a statement that is there already in another spelling of its predicate."""
        other = {
            _triple(row) for row in found if normal_predicate(row["predicate"]) != row["predicate"]
        }
        self._respelt |= other
        if not self._respelt:
            return list(found)
        there = {
            str(row[0])
            for row in self.txn.store.execute(
                "SELECT triple FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))",
                [sorted(self._respelt)],
            ).fetchall()
        }
        kept = []
        for row in found:
            triple = _triple(row)
            if triple in self._respelt:
                if triple in there:
                    continue
                there.add(triple)
            kept.append(row)
        return kept

    def _is_refused(self, table: str, row: dict[str, Any]) -> bool:
        """Ask the tombstones as the gateway does for a row of its own, then those elsewhere."""
        values = _values(table, row)
        target = row["name"] if table == "entry" else _triple(row)
        kind = row["kind"] if table == "entry" else "statement"
        rejected = self._is_rejected(table, row)
        digests = self.txn._tomb_digests(values)
        known = not self._buried.isdisjoint(digests)
        if known and rejected:
            known = self._is_forgotten(digests)
        if known and self.txn._refusal(digests, row["scopes"], target, kind) is not None:
            self.refused += 1
            return True
        inside = _said_inside(row) if table == "entry" else set()
        if inside and not self._buried.isdisjoint(self.txn._tomb_digests(inside)):
            entry = rows.entry_of({**row, "version": 1})
            if self.txn._refuse_sentences(entry) is not None:
                self.refused += 1
                return True
        held = self._elsewhere.holding(
            values | inside, row["scopes"], said_at=row["created_at"], rejected=rejected
        )
        if held:
            self._bury_too(row, held, target, kind)
        return bool(held)

    def _is_rejected(self, table: str, row: Mapping[str, Any]) -> bool:
        """Tell whether a row comes in rejected, or stands on what did: no default read returns it.

        What was only rejected is kept as that, with its reason; what was forgotten is not.
        """
        if row["trust"] == Trust.REJECTED:
            return True
        if table == "entry":
            return False
        if self._rejected is None:
            found = self.txn.store.execute("SELECT name FROM entry WHERE trust = 'rejected'")
            self._rejected = {str(name) for (name,) in found.fetchall()}
        return not self._rejected.isdisjoint((row["subject"], row["object"]))

    def _is_forgotten(self, digests: Sequence[str]) -> bool:
        """Tell whether one of these was forgotten and not only rejected."""
        found = self.txn.store.execute(
            "SELECT 1 FROM tombstone WHERE digest IN (SELECT unnest(?::VARCHAR[]))"
            " AND reason <> ? LIMIT 1",
            [list(digests), REJECTED],
        ).fetchone()
        return found is not None

    def _bury_too(
        self,
        row: Mapping[str, Any],
        held: Sequence[tuple[str, str, graves.Grave]],
        target: str,
        kind: str,
    ) -> None:
        """Keep away here, under this memory's own key, what was forgotten elsewhere."""
        said = canonical(rows.clean(row["content"]))
        for _, value, grave in held:
            digests = self.txn._tomb_digests([value])
            sketches = {}
            if value == said and grave.sketch:
                made = likeness.sketch(self.txn._key, rows.clean(row["content"]))
                sketches = dict.fromkeys(digests, made)
            self.txn._bury_digests(
                digests,
                [grave.scope],
                grave.reason,
                target=self.txn._target(target),
                sketches=sketches,
            )
        self.txn._note("bury", target, kind, reason="import", index=False)
        self.txn._note("refuse", target, kind, reason="forgotten before", index=False)
        name = held[0][0]
        self.refused_elsewhere[name] = self.refused_elsewhere.get(name, 0) + 1

    def _whole(self, table: str, row: dict[str, Any], doubt: str = "") -> dict[str, Any]:
        """Return a row with what this store adds to it, noted in the ledger."""
        digest = rows.digest(row["content"])
        if not row["scopes"]:  # an early version let it in, and no project would ever read it
            row = {**row, "scopes": [UNSCOPED]}
        if row["trust"] == Trust.VERIFIED:  # that was another memory's person
            row = {**row, "trust": str(Trust.ASSERTED)}
        if doubt:
            row = {**row, "trust": str(Trust.CANDIDATE)}
        if table == "statement":
            triple = _triple(row)
            seq = self.txn._note("create", triple, "statement", after=digest)
            predicate = normal_predicate(rows.clean(row["predicate"]))
            return {
                **row,
                "triple": triple,
                "predicate": predicate,
                "recorded_at": self.txn.now,
                "seq": seq,
            }
        seq = self.txn._note("create", row["name"], row["kind"], after=digest)
        return {
            **row,
            "content_digest": digest,
            "recorded_at": self.txn.now,
            "updated_at": row["updated_at"] or self.txn.now,
            "version": 1,
            "seq": seq,
        }


# ----------------------------------------------------------------------------------------------


def _triple(row: Mapping[str, Any]) -> str:
    return rows.triple_key(*rows.triple_parts(row["subject"], row["predicate"], row["object"]))


def _values(table: str, row: Mapping[str, Any]) -> set[str]:
    """Return by what a row is known to have been forgotten, in either spelling of a predicate."""
    if table == "entry":
        return entry_values(row["name"], row["content"], row["kind"])
    spellings = dict.fromkeys((row["predicate"], normal_predicate(row["predicate"])))
    return {
        value
        for predicate in spellings
        for value in statement_values(row["subject"], predicate, row["object"], row["content"])
        if value
    }


def _said_inside(row: Mapping[str, Any]) -> set[str]:
    """Return what the sentences of a summary look like, one of which may be forgotten."""
    if row["kind"] not in ("summary", "session") and "summary" not in row["tags"]:
        return set()
    text = rows.clean(row["content"])
    return {
        value
        for start, end in graves.sentences(text)
        for value in graves.values_of(text[start:end])
        if value.startswith("look:")  # a value of a word or two would be in every other text
    }

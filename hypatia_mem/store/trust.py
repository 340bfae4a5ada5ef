"""How far a thing is believed: its transitions, the reasons for them, and who may do them.

A rejection buries the value too, so that it is refused when it comes again under any name. What a
transition was good for, in a person's words, is kept apart from the ledger (``verdict``), because
words can be erased and ledger rows cannot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.model import Entry, Outcome, Statement, Trust
from hypatia_mem.store import authority, rows
from hypatia_mem.store.entries import EntryWrites
from hypatia_mem.store.tombstones import REJECTED, _triple_value
from hypatia_mem.store.writing import new_op_id, plain

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["TrustWrites", "Verdict", "verdicts"]

MAX_REASON = 2_000  # characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last word on a name: what it was taken for, why, by whom; ``until``: put off so long."""

    name: str
    kind: str  # entry | statement
    trust: str
    reason: str
    until: datetime | None
    actor: str
    channel: str
    at: datetime
    op_id: str


def verdicts(store: Store, names: Iterable[str]) -> dict[str, Verdict]:
    """Return the last word on each of these names (a statement's is its key), if there is one."""
    found = store.run(
        "SELECT * FROM verdict WHERE name IN (SELECT unnest(?::VARCHAR[]))",
        [[rows.clean(name) for name in names]],
    )
    return {row["name"]: Verdict(**row) for row in found}


class TrustWrites(EntryWrites):
    """The part of a transaction that changes how far things are believed."""

    def set_trust(self, name: str, trust: Trust, reason: str = "") -> Outcome:
        """Say how far an entry, or a statement by its key, is believed, and why.

        ``rejected`` buries the value and needs a reason. The outcome is ``updated``, ``unchanged``
        or ``refused`` (``reason`` says why): by an agent for what only a person decides, and for
        anybody who would let in again what is kept away. Every refusal is a row of the ledger.
        Raises NotFound, UsageError.
        """
        name, reason = rows.clean(name), rows.clean(reason).strip()
        if len(reason) > MAX_REASON:
            raise UsageError(f"a reason of {len(reason)} characters: {MAX_REASON} are the most")
        if trust == Trust.REJECTED and not reason:
            raise UsageError(
                "a rejection needs a reason", hint='Example: --reason "the port changed in May"'
            )
        entry = self.store.entry(name)
        if entry is not None:
            return self._set_entry(entry, trust, reason)
        found = self.store.run("SELECT * FROM statement WHERE triple = ?", [name])
        if not found:
            raise NotFound(f"neither knowledge nor a statement {name!r}")
        return self._set_statement(name, rows.statement_of(found[0]), trust, reason)

    def put_statement(self, statement: Statement) -> Outcome:
        """Store a triple as ``EntryWrites`` does; one that is there and withheld is another case.

        A person who says it again means it. From anybody else it is refused: it is rejected, or
        waits for a review.
        """
        outcome = super().put_statement(statement)
        there = self.store.statement(statement.subject, statement.predicate, statement.object)
        if outcome.verb != "unchanged" or there is None or there.trust not in authority.HIDDEN:
            return outcome
        if not self._is_person():
            self._note("refuse", outcome.name, "statement", reason="withheld", index=False)
            return Outcome("refused", outcome.name, reason=f"it is withheld: {there.trust}")
        itself = _triple_value(there.subject, there.predicate, there.object)
        refusal = self._refusal(
            self._tomb_digests([itself]), there.scopes, outcome.name, "statement"
        )
        return refusal or self._set_statement(outcome.name, there, statement.trust, "")

    def put_verdict(
        self, name: str, kind: str, trust: Trust, reason: str, until: datetime | None = None
    ) -> None:
        """Keep the last word on a name in place of the one before; an undoing brings that back.

        Part of a change that has its row in the ledger already.
        """
        name = rows.clean(name)
        before = self.store.run("SELECT * FROM verdict WHERE name = ?", [name])
        after: dict[str, Any] = {
            "name": name,
            "kind": kind,
            "trust": str(trust),
            "reason": rows.clean(reason),
            "until": until,
            "actor": self.author.actor,
            "channel": str(self.author.channel),
            "at": self.now,
            "op_id": self.op_id,
        }
        self.store.execute("DELETE FROM verdict WHERE name = ?", [name])
        self._bulk("verdict", [after])
        self._keep_image(self.seq, "verdict", name, before[0] if before else None, after)

    def defer(self, name: str, until: datetime, reason: str = "") -> Outcome:
        """Let the review leave a name alone until then; nothing else changes. Raises NotFound."""
        name = rows.clean(name)
        entry = self.store.entry(name)
        trust = None if entry is None else entry.trust
        if entry is None:
            found = self.store.run("SELECT trust FROM statement WHERE triple = ?", [name])
            trust = Trust(found[0]["trust"]) if found else None
        if trust is None:
            raise NotFound(f"neither knowledge nor a statement {name!r}")
        kind = "statement" if entry is None else "entry"
        self._note("defer", name, kind if entry is None else entry.kind, index=False)
        self.put_verdict(name, kind, trust, reason, until)
        return Outcome("updated", name, details={"until": until})

    def queue_change(
        self, session_id: str, verb: str, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Keep a change for when a session has ended; return its id. ``arguments`` are JSON."""
        row: dict[str, Any] = {
            "id": new_op_id(self.now),
            "session_id": session_id,
            "verb": verb,
            "name": rows.clean(name),
            "arguments": rows.clean(json.dumps(dict(arguments), ensure_ascii=False)),
            "actor": self.author.actor,
            "channel": str(self.author.channel),
            "at": self.now,
            "failure": "",
        }
        self._note("queue", row["name"], "entry", index=False)
        self._bulk("queued", [row])
        self._keep_image(self.seq, "queued", row["id"], None, row)
        return str(row["id"])

    def unqueue(self, id_: str, *, failure: str = "", made: bool = False) -> None:
        """Take a queued change off the queue; with a ``failure`` it stays, as one that failed.

        One that was ``made`` in this transaction is not queued again when that is undone.
        Raises NotFound.
        """
        found = self.store.run("SELECT * FROM queued WHERE id = ?", [id_])
        if not found:
            raise NotFound(f"queued change {id_!r}")
        after = {**found[0], "failure": rows.clean(failure)} if failure else None
        self._note("unqueue", found[0]["name"], "entry", index=False)
        self.store.execute("DELETE FROM queued WHERE id = ?", [id_])
        self._bulk("queued", [after] if after else [])
        if not made:
            self._keep_image(self.seq, "queued", id_, found[0], after)

    def rewrite_entry(self, name: str, words: str, *, forced: bool = False) -> Outcome:
        """Give an entry new words; ``forced`` notes that they went over what had changed meanwhile.

        Raises NotFound, UsageError.
        """
        outcome = self.update_entry(name, content=words)
        if forced and outcome.verb == "updated":
            self._note("force", rows.clean(name), "entry", index=False)
        return outcome

    def is_kept_away(self, entry: Entry, words: str) -> bool:
        """Tell whether an entry with these words would be refused by a tombstone, from anybody."""
        said = self._entry_digests(entry.name, words, entry.kind)
        return self._buried(said, entry.scopes)

    def note_refusal(self, name: str, reason: str = "authority") -> None:
        """Note in the ledger that something was asked for and not done."""
        entry = self.store.entry(rows.clean(name))
        self._note("refuse", name, entry.kind if entry else "statement", reason=reason, index=False)

    # ------------------------------------------------------------------------------------------

    def _set_entry(self, entry: Entry, trust: Trust, reason: str) -> Outcome:
        denied = authority.denied(self.author.channel, entry.trust, trust)
        if denied:
            return self._refuse(entry.name, entry.kind, denied)
        digests = self._value_digests(entry)
        if self._comes_back(entry.trust, trust, digests, entry.scopes):
            return self._kept_away(entry.name, entry.kind)
        if entry.trust == trust:
            return Outcome("unchanged", entry.name)
        if trust == Trust.REJECTED:
            self._note("bury", entry.name, entry.kind, index=False)
            self._bury(entry, REJECTED)
        self._write_again(entry, replace(entry, trust=trust), reason=str(trust))
        self.put_verdict(entry.name, "entry", trust, reason)
        if trust == Trust.REJECTED:
            self._keep_stones()
        return Outcome("updated", entry.name, details={"was": str(entry.trust)})

    def _set_statement(
        self, triple: str, statement: Statement, trust: Trust, reason: str
    ) -> Outcome:
        denied = authority.denied(self.author.channel, statement.trust, trust)
        if denied:
            return self._refuse(triple, "statement", denied)
        itself = _triple_value(statement.subject, statement.predicate, statement.object)
        digests = self._tomb_digests([itself])
        if self._comes_back(statement.trust, trust, digests, statement.scopes):
            return self._kept_away(triple, "statement")
        if statement.trust == trust:
            return Outcome("unchanged", triple)
        if trust == Trust.REJECTED:
            self._note("bury", triple, "statement", index=False)
            self._bury_digests(digests, statement.scopes, REJECTED)
        said = rows.digest(statement.content)
        seq = self._note("update", triple, "statement", before=said, after=said, reason=str(trust))
        self._retire("statement", {triple: seq})
        self.store.execute(
            "UPDATE statement SET trust = ?, seq = ? WHERE triple = ?", [str(trust), seq, triple]
        )
        self.put_verdict(triple, "statement", trust, reason)
        if trust == Trust.REJECTED:
            self._keep_stones()
        return Outcome("updated", triple, details={"was": str(statement.trust)})

    def _comes_back(
        self, was: Trust, becomes: Trust, digests: Sequence[str], scopes: Sequence[str]
    ) -> bool:
        """Tell whether something withheld would be shown again whose value is kept away."""
        shown = was in authority.HIDDEN and becomes not in authority.HIDDEN
        return (shown or was == Trust.REJECTED != becomes) and self._buried(digests, scopes)

    def _kept_away(self, name: str, kind: str) -> Outcome:
        self._note("refuse", name, kind, reason="rejected before", index=False)
        return Outcome(
            "refused", name, reason="what it says was rejected or forgotten, and is kept away"
        )

    def _keep_stones(self) -> None:
        """Keep what undoing a rejection takes: the tombstones that it set."""
        kept = {row["became"] for row in self._images if row["kind"] == "tombstone"}
        for row in self.store.run("SELECT * FROM tombstone WHERE op_id = ?", [self.op_id]):
            if json.dumps(row, default=plain) not in kept:
                self._keep_image(self.seq, "tombstone", row["digest"], None, row)

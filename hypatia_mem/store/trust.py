"""How far a thing is believed: its transitions, the reasons for them, and who may do them.

A rejection buries the value too, so that it is refused when it comes again under any name. What a
transition was good for, in a person's words, is kept apart from the ledger (``verdict``), because
words can be erased and ledger rows cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.model import Entry, Outcome, Statement, Trust
from hypatia_mem.store import authority, rows
from hypatia_mem.store.entries import EntryWrites
from hypatia_mem.store.tombstones import _triple_value

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["TrustWrites", "Verdict", "verdicts"]

MAX_REASON = 2_000  # characters
_REJECTED = "rejected"  # what a tombstone says of why; a person's words are in the verdict


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
        before = self._stones(digests)
        if trust == Trust.REJECTED:
            self._note("bury", entry.name, entry.kind, index=False)
            self._bury(entry, _REJECTED)
        self._write_again(entry, replace(entry, trust=trust), reason=str(trust))
        self.put_verdict(entry.name, "entry", trust, reason)
        self._keep_stones(before, digests)
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
        before = self._stones(digests)
        if trust == Trust.REJECTED:
            self._note("bury", triple, "statement", index=False)
            self._bury_digests(digests, statement.scopes, _REJECTED)
        said = rows.digest(statement.content)
        seq = self._note("update", triple, "statement", before=said, after=said, reason=str(trust))
        self._retire("statement", {triple: seq})
        self.store.execute(
            "UPDATE statement SET trust = ?, seq = ? WHERE triple = ?", [str(trust), seq, triple]
        )
        self.put_verdict(triple, "statement", trust, reason)
        self._keep_stones(before, digests)
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

    def _stones(self, digests: Sequence[str]) -> list[dict[str, Any]]:
        return self.store.run(
            "SELECT * FROM tombstone WHERE digest IN (SELECT unnest(?::VARCHAR[]))", [list(digests)]
        )

    def _keep_stones(self, before: Sequence[dict[str, Any]], digests: Sequence[str]) -> None:
        """Keep what undoing a rejection takes: the tombstones that it set."""
        for row in self._stones(digests):
            if row not in before:
                self._keep_image(self.seq, "tombstone", row["digest"], None, row)

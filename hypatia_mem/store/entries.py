"""Writing entries and statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.model import PERSON_CHANNELS, Entry, Outcome, Statement, Trust
from hypatia_mem.store import authority, history, quarantine, rows, structural, withdrawing
from hypatia_mem.store.tombstones import Tombstones
from hypatia_mem.store.versions import Versions

__all__ = ["MAX_NAME", "EntryWrites", "is_withheld"]

_EDITABLE = frozenset(
    {
        "content", "tags", "scopes", "synonyms", "figures", "format", "kind", "trust", "pinned",
        "suppressed", "valid_from", "valid_to", "priority", "activation",
    }
)  # fmt: skip
_LISTS = frozenset({"tags", "scopes", "synonyms", "figures"})
MAX_NAME = 2_000  # characters; a name is a key of the store and a term of the index


class EntryWrites(Tombstones, Versions):
    """The part of a transaction that changes entries and statements."""

    def entry(self, name: str) -> Entry | None:
        """Return an entry as this transaction sees it."""
        return self.store.entry(name)

    def put_entry(self, entry: Entry, *, replace: bool = False) -> Outcome:
        """Store an entry; ``replace`` makes an existing one of the name a new version.

        Raises UsageError for an empty name, Conflict when the name is taken. A value that was
        forgotten is refused, unless it comes from a person: then its tombstone is lifted. What is
        only like it is stored as a candidate (``quarantine``).
        """
        if not entry.name.strip():
            raise UsageError("an entry needs a name")
        _refuse_long(entry.name)
        _refuse_unscoped(entry.scopes, f"knowledge {entry.name!r}")
        _refuse_backwards(entry.valid_from, entry.valid_to)
        refusal = self._ask_tombstones(entry)
        if refusal is not None:
            return refusal
        existing = self.store.entry(rows.clean(entry.name))
        doubt = quarantine.doubt(self, entry, existing) if existing is None or replace else ""
        if doubt:
            return quarantine.put(self, entry, doubt)
        if existing is not None:
            return self._put_again(existing, entry, replace=replace)
        denied = authority.denied(self.author.channel, None, entry.trust)
        if denied:
            return self._refuse(entry.name, entry.kind, denied)
        given, entry = entry, self._as_left(entry)
        row = rows.entry_row(entry, self.author, self.now)
        row["version"] = self._next_version(row["name"])
        row["seq"] = self._note("create", row["name"], entry.kind, after=row["content_digest"])
        self._bulk("entry", [row])
        if is_withheld(entry):
            self._note_statements(entry)
        return Outcome("created", row["name"], reason="" if given == entry else _why_left(entry))

    def update_entry(self, name: str, **changes: Any) -> Outcome:
        """Change fields of an entry; those not named stay. Raises NotFound, UsageError."""
        unknown = set(changes) - _EDITABLE
        if unknown:
            raise UsageError(f"an entry has no field {min(unknown)!r} that could be changed")
        name = rows.clean(name)
        existing = self.store.entry(name)
        if existing is None:
            raise NotFound(f"knowledge {name!r}")
        wanted: dict[str, Any] = {
            key: tuple(rows.clean(item) for item in value) if key in _LISTS else value
            for key, value in changes.items()
        }
        if "content" in wanted:
            wanted["content"] = rows.clean(wanted["content"])
        changed = structural.itself(existing, replace(existing, **wanted))
        if changed == existing:
            return Outcome("unchanged", name)
        if "scopes" in wanted:
            _refuse_unscoped(changed.scopes, f"knowledge {name!r}")
        _refuse_backwards(changed.valid_from, changed.valid_to)
        denied = self._denied(existing, changed)
        if denied:
            return self._refuse(name, existing.kind, denied)
        refusal = self._ask_tombstones(changed)
        if refusal is not None:
            return refusal
        doubt = quarantine.doubt(self, changed, existing)
        if doubt:
            return quarantine.put(self, changed, doubt)
        self._write_again(existing, self._as_believed(existing, changed))
        return Outcome("updated", name)

    def delete_entry(self, name: str, reason: str = "", *, tombstone: bool = False) -> Outcome:
        """Delete an entry and the statements at whose ends it stands; their last states are kept.

        ``tombstone`` keeps nothing of it but keyed digests of what it says and ever said, so that
        it is not taken in again: no version, nor one of another entry that says the same. So it is
        with what was deleted before and has only its history left, and with what was merged into
        it.
        ``details["statements"]`` counts the statements. Raises NotFound.
        """
        name = rows.clean(name)
        entry = self.store.entry(name)
        if entry is None and tombstone:
            entry = history.last_entry(self.store, name)
        if entry is None:
            raise NotFound(f"knowledge {name!r}")
        if not tombstone:
            withdrawn = withdrawing.withdraw(
                self, [name], reason=reason, unwanted=reason == "delete"
            )
            return Outcome("deleted", name, details={"statements": len(withdrawn.statements)})
        self._forget_merged(entry, reason)
        self._bury(entry, reason)
        self._bury_statements([name], entry.scopes, reason)
        withdrawing.drop_above(self, name, purge=True)
        gone = self.store.triples_of([name])
        self._retire(
            "statement",
            {one: self._note("delete", one, "statement", reason=reason) for one in gone},
        )
        before = rows.digest(entry.content)
        seq = self._note("forget", name, entry.kind, before=before, reason=reason)
        self._retire("entry", {name: seq})
        self._forget_touched([name, *gone])
        if entry.kind == "message":  # its row stays, so that its line is known; not its words
            self._empty_messages({name: seq})
        self.store.execute("DELETE FROM statement WHERE subject = $1 OR object = $1", [name])
        self.store.execute("DELETE FROM entry WHERE name = ?", [name])
        self._forget_states(entry, reason)
        return Outcome("deleted", name, details={"statements": len(gone)})

    def _forget_states(self, entry: Entry, reason: str) -> None:
        """Bury what an entry said before too, where it was seen last, and remove its history."""
        states = {(entry.content, entry.kind): entry}
        for row in self.store.run(
            "SELECT DISTINCT content, kind FROM version WHERE name = ?", [rows.clean(entry.name)]
        ):
            said = replace(entry, content=row["content"], kind=row["kind"])
            if states.setdefault((said.content, said.kind), said) is said:
                self._bury(said, reason)
        for said in states.values():
            self._purge(said)

    def _forget_merged(self, entry: Entry, reason: str) -> None:
        """Forget the names that were merged into this one: they have only their history left."""
        words = [word for word in entry.synonyms if word != entry.name]
        found = self.store.execute(
            """
            SELECT DISTINCT one.name FROM version AS one
            JOIN mutation AS ended ON ended.seq = one.replaced_seq
            WHERE ended.reason = 'merge' AND one.name IN (SELECT unnest(?::VARCHAR[]))
              AND one.name NOT IN (SELECT name FROM entry)
            """,
            [words],
        ).fetchall()
        for (name,) in found:
            self.delete_entry(str(name), reason, tombstone=True)
        self.store.execute(
            """
            DELETE FROM statement_version USING mutation
            WHERE mutation.seq = replaced_seq AND mutation.reason = 'merge'
              AND list_has_any([subject, object], ?::VARCHAR[])
            """,
            [words],
        )

    def put_statement(self, statement: Statement) -> Outcome:
        """Store a triple; one that exists is left as it is. Raises UsageError for an empty part.

        A triple about what was forgotten is refused, as the thing itself would be.
        """
        for part in (statement.subject, statement.predicate, statement.object):
            if not part.strip():
                raise UsageError("each of a statement's three parts needs a text")
            _refuse_long(part)
        _refuse_unscoped(statement.scopes, "a statement")
        _refuse_backwards(statement.valid_from, statement.valid_to)
        row = rows.statement_row(statement, self.author, self.now)
        there = self._stored(statement.subject, statement.predicate, statement.object)
        if there is not None:
            return Outcome("unchanged", there["triple"])
        spellings = dict.fromkeys((row["predicate"], rows.clean(statement.predicate)))
        digests = [
            digest
            for predicate in spellings
            for digest in self._statement_digests(
                row["subject"], predicate, row["object"], row["content"]
            )
        ]
        refusal = self._refusal(digests, row["scopes"], row["triple"], "statement")
        if refusal is not None:
            return refusal
        doubt = quarantine.doubt_statement(self, row)
        row["trust"] = str(self._trust_left(row["triple"], statement.trust))
        if doubt:
            row["trust"] = str(Trust.CANDIDATE)
        row["seq"] = self._note(
            "create",
            row["triple"],
            "statement",
            after=rows.digest(row["content"]),
            reason=quarantine.NOTED if doubt else "",
        )
        self._bulk("statement", [row])
        if doubt:
            quarantine.say_why(self, row["triple"], "statement", doubt)
            details = {"quarantined": True}
            return Outcome("created", row["triple"], reason=doubt, details=details)
        return Outcome("created", row["triple"])

    def set_validity(
        self, subject: str, predicate: str, object_: str, **ends: datetime | None
    ) -> Outcome:
        """Say anew when a statement is true (``valid_from``, ``valid_to``); the earlier is kept.

        An end that is not named stays. Raises NotFound, UsageError.
        """
        row = self._stored(subject, predicate, object_)
        if row is None:
            raise NotFound(f"statement '({subject}, {predicate}, {object_})'")
        key = row["triple"]
        valid_from = ends.get("valid_from", row["valid_from"])
        valid_to = ends.get("valid_to", row["valid_to"])
        if (row["valid_from"], row["valid_to"]) == (valid_from, valid_to):
            return Outcome("unchanged", key)
        _refuse_backwards(valid_from, valid_to)
        said = rows.digest(row["content"])
        seq = self._note("update", key, "statement", before=said, after=said)
        self._retire("statement", {key: seq})
        self.store.execute(
            "UPDATE statement SET valid_from = ?, valid_to = ?, seq = ? WHERE triple = ?",
            [valid_from, valid_to, seq, key],
        )
        return Outcome("updated", key)

    def delete_statement(self, subject: str, predicate: str, object_: str) -> Outcome:
        """Delete a triple. Raises NotFound."""
        row = self._stored(subject, predicate, object_)
        if row is None:
            raise NotFound(f"statement '({subject}, {predicate}, {object_})'")
        key = row["triple"]
        self._retire("statement", {key: self._note("delete", key, "statement")})
        self._forget_touched([key])
        self.store.execute("DELETE FROM statement WHERE triple = ?", [key])
        return Outcome("deleted", key)

    def _stored(self, subject: str, predicate: str, object_: str) -> dict[str, Any] | None:
        """Return the row of a triple, whichever way its predicate is written."""
        keys = rows.triple_keys(subject, predicate, object_)
        found = self.store.run(
            "SELECT * FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))", [keys]
        )
        return min(found, key=lambda row: keys.index(row["triple"]), default=None)

    def _denied(self, before: Entry, after: Entry) -> str:
        """Return why this author may not change an entry so, ``""`` if it may.

        What a person wrote is not overwritten by what runs by itself; what a person suppressed or
        pinned, only a person shows again or lets go.
        """
        channel = self.author.channel
        denied = authority.denied(channel, before.trust, after.trust)
        denied = denied or authority.carried(channel, before.scopes, after.scopes)
        if denied or authority.is_person(channel):
            return denied
        name = before.name
        if before.kind == "message" and before.content != after.content and self._is_agent():
            return authority.EVIDENCE
        if (
            channel in authority.AUTOMATIC
            and before.content != after.content
            and authority.set_by_person(self.store, [name], "words")
        ):
            return "a person wrote it, and nothing that runs by itself writes over that"
        if (before.activation, before.priority) != (after.activation, after.priority) and (
            authority.set_by_person(self.store, [name], "activation")
        ):
            return "a person has settled when it is told"
        for field in ("suppressed", "pinned"):
            if (
                getattr(before, field)
                and not getattr(after, field)
                and authority.set_by_person(self.store, [name], field)
            ):
                return f"a person has {field} it"
        return ""

    def _as_left(self, entry: Entry) -> Entry:
        """Return a new entry as what a person decided of the last one of its name leaves it.

        What runs by itself makes a thing anew from its sources, and may reuse a name.
        """
        name = rows.clean(entry.name)
        last = history.last_entry(self.store, name) if self._is_agent() else None
        if last is None:
            return entry
        hidden = last.suppressed and bool(
            authority.set_by_person(self.store, [last.name], "suppressed")
        )
        trust = authority.left(self.author.channel, last.trust, entry.trust)
        return replace(entry, trust=trust, suppressed=entry.suppressed or hidden)

    def _trust_left(self, triple: str, trust: Trust) -> Trust:
        """Return how far a new statement is believed, as ``_as_left``."""
        last = history.last_trust(self.store, triple) if self._is_agent() else None
        return trust if last is None else authority.left(self.author.channel, last, trust)

    def _as_believed(self, before: Entry, after: Entry) -> Entry:
        """Return an entry as far as it is believed after its words were changed.

        New words are not what a person verified, unless it is a person who changes them.
        """
        verified = before.trust == after.trust == Trust.VERIFIED
        if verified and before.content != after.content and not self._is_person():
            return replace(after, trust=Trust.ASSERTED)
        return after

    def _is_person(self) -> bool:
        return authority.is_person(self.author.channel)

    def _is_agent(self) -> bool:
        return not self._is_person() and self.author.channel not in authority.AUTOMATIC

    def _refuse(self, name: str, kind: str, reason: str) -> Outcome:
        """Note in the ledger that something was asked for by one who may not."""
        self._note("refuse", name, kind, reason="authority", index=False)
        return Outcome("refused", name, reason=reason)

    def _put_again(self, existing: Entry, entry: Entry, *, replace: bool) -> Outcome:
        from dataclasses import replace as with_fields

        start, end = self._validity(existing, entry)
        same = with_fields(
            existing,
            content=rows.clean(entry.content),
            tags=tuple(rows.clean(tag) for tag in entry.tags),
            scopes=tuple(rows.clean(scope) for scope in entry.scopes),
            synonyms=tuple(rows.clean(word) for word in entry.synonyms) or existing.synonyms,
            figures=tuple(rows.clean(figure) for figure in entry.figures) or existing.figures,
            format=entry.format,
            kind=entry.kind,
            valid_from=start,
            valid_to=end,
            priority=entry.priority or existing.priority,
            activation=rows.clean(entry.activation) or existing.activation,
        )
        if existing.trust in authority.HIDDEN and self._is_person():  # who says it, means it
            same = with_fields(same, trust=entry.trust)
        if not replace:
            raise Conflict(
                f"knowledge {existing.name!r} exists already",
                hint="To change it: hypatia-mem knowledge-update",
            )
        if same == existing:
            return Outcome("unchanged", existing.name, reason=_why_withheld(existing))
        if self._said_before(existing.name):
            return Outcome("unchanged", existing.name, reason="it was changed after this was said")
        denied = self._denied(existing, same)
        if not denied and self._is_agent() and self._put_otherwise(existing.name, same.content):
            denied = "a person has put it otherwise since"
        if denied:
            return self._refuse(existing.name, existing.kind, denied)
        self._write_again(existing, self._as_believed(existing, same))
        return Outcome("updated", existing.name, reason=_why_withheld(same))

    def _put_otherwise(self, name: str, words: str) -> bool:
        """Tell whether an entry said these words once, and it was a person who changed them."""
        found = self.store.execute(
            """
            SELECT list_contains($3::VARCHAR[], ended.channel) FROM version
            JOIN mutation AS ended ON ended.seq = version.replaced_seq
            WHERE version.name = $1 AND version.content_digest = $2
            ORDER BY version.replaced_seq DESC LIMIT 1
            """,
            [name, rows.digest(words), [str(one) for one in PERSON_CHANNELS]],
        ).fetchone()
        return found is not None and bool(found[0])

    def _said_before(self, name: str) -> bool:
        """Tell whether what is written now was said before the entry was changed by a command.

        An old talk that is read again is no news: what was said since, on purpose, stands.
        """
        if self.said_at >= self.now:
            return False
        found = self.store.execute(
            """
            SELECT 1 FROM entry JOIN mutation USING (seq)
            WHERE name = ? AND mutation.channel IN ('cli-person', 'cli-agent')
              AND mutation."at" > ?
            """,
            [name, self.said_at],
        ).fetchone()
        return found is not None

    def _validity(self, existing: Entry, entry: Entry) -> tuple[datetime | None, datetime | None]:
        """Return when an entry that is said again is true.

        As it is said now; else as before, unless it was not true now: saying it makes it so.
        """
        start, end = existing.valid_from, existing.valid_to
        if entry.valid_from is not None or entry.valid_to is not None:
            start, end = entry.valid_from, entry.valid_to
        elif (start is not None and start > self.now) or (end is not None and end <= self.now):
            start = end = None
        return start, end

    def _write_again(self, before: Entry, after: Entry, reason: str = "") -> None:
        """Keep the old state as a version and put the new one in its place."""
        seq = self._note(
            "update",
            before.name,
            after.kind,
            before=rows.digest(before.content),
            after=rows.digest(after.content),
            reason=reason,
        )
        self._retire("entry", {before.name: seq})
        self.store.execute(
            """
            UPDATE entry SET content = ?, content_digest = ?, producer = ?, tags = ?,
                scopes = ?, synonyms = ?, figures = ?, format = ?, kind = ?,
                trust = ?, pinned = ?, suppressed = ?, valid_from = ?, valid_to = ?,
                priority = ?, activation = ?,
                version = version + 1, updated_at = ?, seq = ?
            WHERE name = ?
            """,
            [
                after.content, rows.digest(after.content), self.author.producer,
                list(after.tags), list(after.scopes),
                list(after.synonyms), list(after.figures), after.format, after.kind,
                str(after.trust), after.pinned, after.suppressed, after.valid_from,
                after.valid_to, after.priority, after.activation, self.now, seq, before.name,
            ],
        )  # fmt: skip
        if is_withheld(before) != is_withheld(after):
            self._note_statements(after)
        hidden = is_withheld(after) and not is_withheld(before)
        if hidden or (before.content, before.scopes) != (after.content, after.scopes):
            reworded = before.content != after.content
            withdrawing.set_back(self, before.name, hidden=hidden, reworded=reworded)

    def _note_statements(self, entry: Entry) -> None:
        """Note that an entry's statements are withheld, or seen again, with it."""
        verb = "hide" if is_withheld(entry) else "show"
        for triple in self.store.triples_of([rows.clean(entry.name)]):
            self._note(verb, triple, "statement")


# ----------------------------------------------------------------------------------------------


def is_withheld(entry: Entry) -> bool:
    """Tell whether an entry is kept out of default reads."""
    return entry.suppressed or entry.trust in (Trust.CANDIDATE, Trust.REJECTED)


def _why_left(entry: Entry) -> str:
    return _why_withheld(entry) or f"it stays {entry.trust}: only a person settles that"


def _why_withheld(entry: Entry) -> str:
    """Say why an entry is not shown although it is stored, ``""`` when it is shown."""
    if not is_withheld(entry):
        return ""
    return f"it is withheld: {'suppressed' if entry.suppressed else entry.trust}"


def _refuse_long(name: str) -> None:
    if len(name) > MAX_NAME:
        raise UsageError(
            f"a name of {len(name)} characters is too long: {MAX_NAME} is the most",
            hint="Give it a short name and put the text into its content.",
        )


def _refuse_unscoped(scopes: Sequence[str], what: str) -> None:
    """Refuse what belongs nowhere: no project would read it, and nobody could tell whose it is."""
    if not scopes:
        raise UsageError(
            f"{what} has no scope, so no project would ever read it",
            hint='Name one (--scopes app), or make it hold everywhere (--scopes "").',
        )


def _refuse_backwards(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Refuse a time that ends before it begins, or as it begins; either end may be unknown."""
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        raise UsageError(
            f"it would stop being true ({rows.iso(valid_to)}) before it begins"
            f" ({rows.iso(valid_from)})",
            hint='The end must be later than the beginning; "" makes either of them unknown.',
        )

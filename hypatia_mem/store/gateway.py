"""The gateway: every mutation there is (I4).

A ``Transaction`` asks the tombstones first, then changes the state, keeps the earlier content as a
version, notes the name for the search index and writes the ledger row: all in one DuckDB
transaction, so that a kill at any instant leaves all of it or none. Refused writes are ledger rows
too. Messages go in by the thousand with one statement a table: a row at a time costs a hundred
times as much.
"""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.model import (
    GLOBAL_SCOPE,
    PERSON_CHANNELS,
    Author,
    Entry,
    Message,
    Outcome,
    Session,
    Statement,
    Trust,
)
from hypatia_mem.store import ledger, rows

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Transaction", "canonical", "new_op_id"]

_MEMORY_KINDS = frozenset({"rule", "taboo", "memory"})
_OWN_NAMES = frozenset({"message", "session"})  # names that hold no words of a person
_ENTRY_TYPES: dict[str, object] = {
    "name": "VARCHAR", "content": "VARCHAR", "content_digest": "VARCHAR", "tags": ["VARCHAR"],
    "scopes": ["VARCHAR"], "synonyms": ["VARCHAR"], "figures": ["VARCHAR"], "format": "VARCHAR",
    "kind": "VARCHAR", "trust": "VARCHAR", "valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP",
    "recorded_at": "TIMESTAMP", "expired_at": "TIMESTAMP", "pinned": "BOOLEAN",
    "suppressed": "BOOLEAN", "category": "VARCHAR", "priority": "INTEGER", "session_id": "VARCHAR",
    "turn": "INTEGER", "agent": "VARCHAR", "channel": "VARCHAR", "producer": "VARCHAR",
    "version": "INTEGER", "created_at": "TIMESTAMP", "updated_at": "TIMESTAMP", "seq": "BIGINT",
}  # fmt: skip
_STATEMENT_TYPES: dict[str, object] = {
    "triple": "VARCHAR", "subject": "VARCHAR", "predicate": "VARCHAR", "object": "VARCHAR",
    "content": "VARCHAR", "scopes": ["VARCHAR"], "synonyms": "VARCHAR", "trust": "VARCHAR",
    "valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP", "recorded_at": "TIMESTAMP",
    "expired_at": "TIMESTAMP", "session_id": "VARCHAR", "turn": "INTEGER", "channel": "VARCHAR",
    "created_at": "TIMESTAMP", "seq": "BIGINT",
}  # fmt: skip
_MESSAGE_TYPES: dict[str, object] = {
    "session_id": "VARCHAR", "turn": "INTEGER", "uuid": "VARCHAR", "parent_uuid": "VARCHAR",
    "prompt_id": "VARCHAR", "response_id": "VARCHAR", "role": "VARCHAR", "agent_id": "VARCHAR",
    "parts": "VARCHAR", "tokens": "INTEGER", "flags": ["VARCHAR"], "text_digest": "VARCHAR",
    "at": "TIMESTAMP",
}  # fmt: skip
_MUTATION_TYPES: dict[str, object] = {
    "seq": "BIGINT", "at": "TIMESTAMP", "op_id": "VARCHAR", "actor": "VARCHAR",
    "channel": "VARCHAR", "verb": "VARCHAR", "target": "VARCHAR", "before_digest": "VARCHAR",
    "after_digest": "VARCHAR", "reason": "VARCHAR", "prev_hash": "VARCHAR", "hash": "VARCHAR",
}  # fmt: skip
_TOUCHED_TYPES: dict[str, object] = {"seq": "BIGINT", "name": "VARCHAR", "kind": "VARCHAR"}
_TABLES: dict[str, dict[str, object]] = {
    "entry": _ENTRY_TYPES,
    "statement": _STATEMENT_TYPES,
    "message": _MESSAGE_TYPES,
    "mutation": _MUTATION_TYPES,
    "touched": _TOUCHED_TYPES,
}
_VERSIONS = {"entry": ("version", "name"), "statement": ("statement_version", "triple")}
_EDITABLE = frozenset(
    {
        "content", "tags", "scopes", "synonyms", "figures", "format", "kind", "trust", "pinned",
        "suppressed", "valid_from", "valid_to",
    }
)  # fmt: skip
_LISTS = frozenset({"tags", "scopes", "synonyms", "figures"})
_KINDS = frozenset(
    {"knowledge", "message", "session", "rule", "taboo", "memory", "summary", "work-unit"}
)
MAX_NAME = 2_000  # characters; a name is a key of the store and a term of the index
# What no reader sees and what does not break a line: zero width, fillers, variation selectors.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_QUOTES = str.maketrans("‘’‚‛“”„‟‐‑‒–—", "'" * 4 + '"' * 4 + "-" * 5)


def new_op_id(now: datetime) -> str:
    """Return an operation id: sortable by time, unique without any coordination."""
    stamp = int((now - datetime(1970, 1, 1)).total_seconds() * 1000)  # noqa: DTZ001 - naive UTC
    return f"{stamp:012x}{time.perf_counter_ns() & 0xFFFF:04x}{os.urandom(6).hex()}"


def canonical(text: str) -> str:
    """Return what two spellings of the same value have in common.

    NFKC, case folded, white space collapsed, zero-width and control characters and the marks of
    sentence ends dropped.

    >>> canonical("Never  mock\\u200b the DB!")
    'never mock the db'
    """
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    folded = unicodedata.normalize("NFKC", seen.casefold()).translate(_QUOTES)
    kept = "".join(c for c in folded if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(kept.split()).strip(" .!?;:。！？\"'`")


class Transaction:
    """An open change. Made by ``Store.transaction`` only."""

    def __init__(
        self,
        store: Store,
        author: Author,
        now: datetime,
        op_id: str | None,
    ) -> None:
        """Take the ledger's end as the place to go on from."""
        self.store = store
        self.author = author
        self.now = now
        self.op_id = op_id or new_op_id(now)
        self._key = ledger.load_key(store.home)
        last = store.execute("SELECT seq, hash FROM mutation ORDER BY seq DESC LIMIT 1").fetchone()
        self._seq, self._hash = (int(last[0]), str(last[1])) if last else (0, ledger.GENESIS)
        self._mutations: list[dict[str, Any]] = []
        self._touched: list[dict[str, Any]] = []

    @property
    def seq(self) -> int:
        """Return the ledger sequence reached so far."""
        return self._seq

    @contextmanager
    def acting(self, author: Author) -> Iterator[None]:
        """Do the block's writes in another author's name, in the same transaction."""
        before, self.author = self.author, author
        try:
            yield
        finally:
            self.author = before

    def finish(self) -> None:
        """Write what has been collected for the ledger; the store calls this before it commits."""
        self._bulk("mutation", self._mutations)
        self._bulk("touched", self._touched)
        if self._mutations:
            self.set_meta("ledger_seq", str(self._seq))
        self._mutations.clear()
        self._touched.clear()

    # -- entries

    def entry(self, name: str) -> Entry | None:
        """Return an entry as this transaction sees it."""
        return self.store.entry(name)

    def put_entry(self, entry: Entry, *, replace: bool = False) -> Outcome:
        """Store an entry; ``replace`` makes an existing one of the name a new version.

        Raises UsageError for an empty name, Conflict when the name is taken. A value that was
        forgotten is refused, unless it comes from a person: then its tombstone is lifted.
        """
        if not entry.name.strip():
            raise UsageError("an entry needs a name")
        _refuse_long(entry.name)
        refusal = self._ask_tombstones(entry)
        if refusal is not None:
            return refusal
        existing = self.store.entry(rows.clean(entry.name))
        if existing is not None:
            return self._put_again(existing, entry, replace=replace)
        row = rows.entry_row(entry, self.author, self.now)
        row["version"] = self._next_version(row["name"])
        row["seq"] = self._note("create", row["name"], entry.kind, after=row["content_digest"])
        self._bulk("entry", [row])
        if _is_withheld(entry):
            self._note_statements(entry)
        return Outcome("created", row["name"])

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
        changed = replace(existing, **wanted)
        if changed == existing:
            return Outcome("unchanged", name)
        refusal = self._ask_tombstones(changed)
        if refusal is not None:
            return refusal
        self._write_again(existing, changed)
        return Outcome("updated", name)

    def delete_entry(self, name: str, reason: str = "", *, tombstone: bool = False) -> Outcome:
        """Delete an entry and the statements at whose ends it stands; their last states are kept.

        ``tombstone`` keeps nothing of it but a keyed digest of the value, so that it is not taken
        in again: no version, nor one of another entry that says the same.
        ``details["statements"]`` counts the statements. Raises NotFound.
        """
        name = rows.clean(name)
        entry = self.store.entry(name)
        if entry is None:
            raise NotFound(f"knowledge {name!r}")
        if tombstone:
            self._bury(entry, reason)
        gone = self.store.triples_of([name])
        self._retire(
            "statement",
            {one: self._note("delete", one, "statement", reason=reason) for one in gone},
        )
        verb = "forget" if tombstone else "delete"
        before = rows.digest(entry.content)
        seq = self._note(verb, name, entry.kind, before=before, reason=reason)
        self._retire("entry", {name: seq})
        self._forget_touched([name, *gone])
        if entry.kind == "message":  # its row stays, so that its line is known; not its words
            self._empty_message(entry, seq)
        self.store.execute("DELETE FROM statement WHERE subject = $1 OR object = $1", [name])
        self.store.execute("DELETE FROM entry WHERE name = ?", [name])
        if tombstone:
            self._purge(entry)
        return Outcome("deleted", name, details={"statements": len(gone)})

    # -- statements

    def put_statement(self, statement: Statement) -> Outcome:
        """Store a triple; one that exists is left as it is. Raises UsageError for an empty part.

        A triple about what was forgotten is refused, as the thing itself would be.
        """
        for part in (statement.subject, statement.predicate, statement.object):
            if not part.strip():
                raise UsageError("each of a statement's three parts needs a text")
            _refuse_long(part)
        row = rows.statement_row(statement, self.author, self.now)
        found = self.store.execute(
            "SELECT 1 FROM statement WHERE triple = ?", [row["triple"]]
        ).fetchone()
        if found:
            return Outcome("unchanged", row["triple"])
        ends = {"name:" + canonical(row[end]) for end in ("subject", "object")}
        digests = self._tomb_digests({canonical(row["content"]), *ends})
        refusal = self._refusal(digests, row["scopes"], row["triple"], "statement")
        if refusal is not None:
            return refusal
        row["seq"] = self._note(
            "create", row["triple"], "statement", after=rows.digest(row["content"])
        )
        self._bulk("statement", [row])
        return Outcome("created", row["triple"])

    def delete_statement(self, subject: str, predicate: str, object_: str) -> Outcome:
        """Delete a triple. Raises NotFound."""
        subject, predicate, object_ = map(rows.clean, (subject, predicate, object_))
        key = rows.triple_key(subject, predicate, object_)
        found = self.store.execute("SELECT 1 FROM statement WHERE triple = ?", [key]).fetchone()
        if not found:
            raise NotFound(f"statement '({subject}, {predicate}, {object_})'")
        self._retire("statement", {key: self._note("delete", key, "statement")})
        self._forget_touched([key])
        self.store.execute("DELETE FROM statement WHERE triple = ?", [key])
        return Outcome("deleted", key)

    # -- sessions and messages

    def put_messages(self, session_id: str, messages: Sequence[Message], scope: str) -> list[int]:
        """Store messages in this order under dense turn numbers; returns each one's turn.

        A message whose ``uuid`` is stored already, in whatever session, is left out (0): resumed
        and forked sessions repeat lines, and a record may be delivered twice.
        """
        session_id = rows.clean(session_id)
        messages = [_cleaned(message, session_id) for message in messages]
        known = self.store.known_uuids(message.uuid for message in messages)
        turn = self._turns(session_id)
        turns: list[int] = []
        fresh: list[tuple[Message, int]] = []
        seen: set[str] = set(known)
        for message in messages:
            if message.uuid in seen:
                turns.append(0)
                continue
            seen.add(message.uuid)
            turn += 1
            turns.append(turn)
            fresh.append((message, turn))
        if not fresh:
            return turns
        entries = [
            rows.entry_row(rows.message_entry(message, number, scope), self.author, self.now)
            for message, number in fresh
        ]
        for row in entries:
            row["seq"] = self._note("create", row["name"], "message", after=row["content_digest"])
        self._bulk("entry", entries)
        self._bulk("message", [_message_row(message, number) for message, number in fresh])
        self.store.execute(
            "UPDATE session SET turns = ?, updated_at = greatest(updated_at, ?) WHERE id = ?",
            [turn, max(message.at for message, _ in fresh), session_id],
        )
        self._belong(session_id, scope, [number for _, number in fresh])
        return turns

    def amend_message(self, session_id: str, turn: int, **changes: Any) -> Outcome:
        """Do what ``amend_messages`` does, for one. Raises NotFound."""
        return self.amend_messages(session_id, {turn: changes})[0]

    def amend_messages(
        self, session_id: str, amendments: Mapping[int, Mapping[str, Any]]
    ) -> list[Outcome]:
        """Bind messages to their transcript lines or let their texts grow, many at once.

        ``amendments`` holds fields of ``Message`` by turn; a changed text makes a new version of
        its entry; a line that is another message's already is refused. Outcomes come in the order
        of ``amendments``. Raises NotFound for a turn that is not there.
        """
        session_id = rows.clean(session_id)
        have = {one.turn: one for one in self.store.messages_at(session_id, list(amendments))}
        entries = {one.name: one for one in self.store.entries(_names(session_id, have))}
        wanted = [str(change["uuid"]) for change in amendments.values() if "uuid" in change]
        holders = self.store.known_uuids([rows.clean(uuid) for uuid in wanted])
        outcomes: list[Outcome] = []
        lines: list[dict[str, Any]] = []
        texts: list[tuple[Entry, Entry]] = []
        for turn, changes in amendments.items():
            name = f"msg-{session_id}-{turn}"
            before = have.get(turn)
            if before is None:
                raise NotFound(f"message {turn} of session {session_id!r}")
            after = _cleaned(replace(before, **changes), session_id)
            if after == before:
                outcomes.append(Outcome("unchanged", name))
                continue
            if holders.get(after.uuid, (session_id, turn)) != (session_id, turn):
                outcomes.append(Outcome("refused", name, reason="its line is stored"))
                continue
            holders.pop(before.uuid, None)
            holders[after.uuid] = (session_id, turn)
            entry = entries.get(name)
            lines.append(_message_row(after, turn))
            if entry is None:  # its text was deleted: it does not come back by this door
                lines[-1].update(parts="[]", text_digest="")
            if entry is not None and (after.text, after.at) != (before.text, before.at):
                body = rows.message_entry(after, turn, "")
                texts.append((entry, replace(entry, content=body.content)))
            else:
                self._note("amend", name, "message")
            outcomes.append(Outcome("updated", name))
        if lines:
            self.store.execute(
                "DELETE FROM message"
                " WHERE session_id = ? AND turn IN (SELECT unnest(?::INTEGER[]))",
                [session_id, [line["turn"] for line in lines]],
            )
            self._bulk("message", lines)
        self._write_texts(texts)
        return outcomes

    def put_session(self, session: Session) -> Outcome:
        """Store what is known of a session; empty fields leave what was known before.

        The start never moves, the end and the last change never go back.
        """
        session = _cleaned_session(session)
        before = self.store.session(session.id)
        if before is None:
            row = {f.name: getattr(session, f.name) for f in fields(Session)}
            self._insert_session(row)
            self._note("create", session.id, "session", index=False)
            return Outcome("created", session.id)
        merged = _merged(before, session)
        if merged == before:
            return Outcome("unchanged", session.id)
        self._update_session(merged)
        self._note("update", session.id, "session", index=False)
        return Outcome("updated", session.id)

    def edit_session(self, session_id: str, **changes: Any) -> Outcome:
        """Set fields of a session exactly as given. Raises NotFound."""
        before = self.store.session(session_id)
        if before is None:
            raise NotFound(f"session {session_id!r}")
        after = _cleaned_session(replace(before, **changes))
        if after == before:
            return Outcome("unchanged", session_id)
        self._update_session(
            replace(after, updated_at=max(self.now, before.updated_at or self.now))
        )
        self._note("update", session_id, "session", index=False)
        return Outcome("updated", session_id)

    def put_summary(self, session_id: str, text: str, source: str, scope: str) -> Outcome:
        """Store a session's real summary as ``session-<ID>`` and link all its messages to it.

        ``source`` says where it came from (``compaction``, ``title``); nothing is made up here.
        """
        name = f"session-{session_id}"
        entry = Entry(
            name=name,
            content=text,
            tags=("session",),
            scopes=(scope,),
            kind="session",
            session_id=session_id,
        )
        with self.acting(replace(self.author, producer=source)):
            outcome = self.put_entry(entry, replace=True)
        if outcome.verb == "created":
            self._belong(session_id, scope, range(1, self._turns(session_id) + 1))
        return outcome

    # -- projects and upkeep

    def put_project(
        self,
        scope: str,
        *,
        aliases: Sequence[str] | None = None,
        excluded: bool | None = None,
    ) -> Outcome:
        """Store a project; what is None stays as it was."""
        found = self.store.run("SELECT * FROM project WHERE scope = ?", [scope])
        if found:
            row = found[0]
            wanted = {
                "aliases": row["aliases"] if aliases is None else list(aliases),
                "excluded": row["excluded"] if excluded is None else excluded,
            }
            self.store.execute(
                "UPDATE project SET aliases = ?, excluded = ? WHERE scope = ?",
                [wanted["aliases"], wanted["excluded"], scope],
            )
        else:
            self.store.execute(
                "INSERT INTO project VALUES (?, ?, ?, ?)",
                [scope, list(aliases or ()), bool(excluded), self.now],
            )
        self._note("update" if found else "create", scope, "project", index=False)
        return Outcome("updated" if found else "created", scope)

    def put_root(
        self, path: str, *, scope: str, git_key: str = "", origin_key: str = "", remote: str = ""
    ) -> Outcome:
        """Store a folder's marks and the project it belongs to."""
        path = rows.clean(path)
        self.store.execute("DELETE FROM root WHERE path = ?", [path])
        self.store.execute(
            "INSERT INTO root VALUES (?, ?, ?, ?, ?, ?)",
            [path, scope, git_key, origin_key, rows.clean(remote), self.now],
        )
        self._note("update", scope, "root", index=False)
        return Outcome("updated", path)

    def delete_root(self, path: str) -> Outcome:
        """Forget a folder; its project stays."""
        self.store.execute("DELETE FROM root WHERE path = ?", [rows.clean(path)])
        self._note("delete", "", "root", index=False)
        return Outcome("deleted", path)

    def rename_scope(self, old: str, new: str) -> int:
        """Put everything of scope ``old`` under ``new``; returns how many entries changed."""
        names = self._rescope("entry", old, new)
        self._rescope("statement", old, new)
        self.store.execute("UPDATE session SET project = ? WHERE project = ?", [new, old])
        self.store.execute("UPDATE root SET scope = ? WHERE scope = ?", [new, old])
        self.store.execute("UPDATE tombstone SET scope = ? WHERE scope = ?", [new, old])
        found = self.store.run("SELECT * FROM project WHERE scope = ?", [old])
        target = self.store.run("SELECT * FROM project WHERE scope = ?", [new])
        self.store.execute("DELETE FROM project WHERE scope = ?", [old])
        if found and not target:
            self.put_project(new, aliases=found[0]["aliases"], excluded=found[0]["excluded"])
        self._note("rename", new, "project", reason="scope", index=False)
        return names

    def _rescope(self, table: str, old: str, new: str) -> int:
        """Put a table's rows of one scope under another; returns how many there were."""
        key = _VERSIONS[table][1]
        found = self.store.execute(
            f"SELECT {key} FROM {table} WHERE list_contains(scopes, ?)",  # noqa: S608 - our names
            [old],
        ).fetchall()
        noted = {str(name): self._note("rescope", str(name), table) for (name,) in found}
        self._retire(table, noted)
        more = ", version = version + 1, updated_at = $5" if table == "entry" else ""
        swap = "CASE WHEN x = $1 THEN $2 ELSE x END"
        self.store.execute(
            f"""
            UPDATE {table}
            SET scopes = list_distinct(list_transform(scopes, lambda x: {swap})), seq = v.seq{more}
            FROM (SELECT unnest($3::VARCHAR[]) AS key, unnest($4::BIGINT[]) AS seq) AS v
            WHERE {table}.{key} = v.key
            """,  # noqa: S608 - our own names
            [old, new, list(noted), list(noted.values()), *([self.now] if more else [])],
        )
        return len(noted)

    def set_cursor(self, key: str, position: int) -> None:
        """Say how far a spool segment or a transcript has been read."""
        self.store.execute("DELETE FROM cursor WHERE key = ?", [key])
        self.store.execute("INSERT INTO cursor VALUES (?, ?)", [key, position])

    def set_cursors(self, cursors: dict[str, int]) -> None:
        """Say it for many at once."""
        for key, position in cursors.items():
            self.set_cursor(key, position)

    def delete_cursors(self, keys: Iterable[str]) -> None:
        """Drop the cursors of segments that are gone."""
        self.store.execute(
            "DELETE FROM cursor WHERE key IN (SELECT unnest(?::VARCHAR[]))", [list(keys)]
        )

    def set_meta(self, key: str, value: str) -> None:
        """Keep a value among the store's own notes."""
        self.store.execute("DELETE FROM meta WHERE key = ?", [key])
        self.store.execute("INSERT INTO meta VALUES (?, ?)", [key, value])

    # -- inside

    def _put_again(self, existing: Entry, entry: Entry, *, replace: bool) -> Outcome:
        from dataclasses import replace as with_fields

        same = with_fields(
            existing,
            content=rows.clean(entry.content),
            tags=tuple(rows.clean(tag) for tag in entry.tags),
            scopes=tuple(rows.clean(scope) for scope in entry.scopes),
            synonyms=tuple(rows.clean(word) for word in entry.synonyms) or existing.synonyms,
            figures=tuple(rows.clean(figure) for figure in entry.figures) or existing.figures,
            format=entry.format,
            kind=entry.kind,
        )
        if not replace:
            raise Conflict(
                f"knowledge {existing.name!r} exists already",
                hint="To change it: hypatia-mem knowledge-update",
            )
        if same == existing:
            return Outcome("unchanged", existing.name)
        self._write_again(existing, same)
        return Outcome("updated", existing.name)

    def _write_again(self, before: Entry, after: Entry) -> None:
        """Keep the old state as a version and put the new one in its place."""
        seq = self._note(
            "update",
            before.name,
            after.kind,
            before=rows.digest(before.content),
            after=rows.digest(after.content),
        )
        self._retire("entry", {before.name: seq})
        self.store.execute(
            """
            UPDATE entry SET content = ?, content_digest = ?, producer = ?, tags = ?,
                scopes = ?, synonyms = ?, figures = ?, format = ?, kind = ?,
                trust = ?, pinned = ?, suppressed = ?, valid_from = ?, valid_to = ?,
                version = version + 1, updated_at = ?, seq = ?
            WHERE name = ?
            """,
            [
                after.content, rows.digest(after.content), self.author.producer,
                list(after.tags), list(after.scopes),
                list(after.synonyms), list(after.figures), after.format, after.kind,
                str(after.trust), after.pinned, after.suppressed, after.valid_from,
                after.valid_to, self.now, seq, before.name,
            ],
        )  # fmt: skip
        if _is_withheld(before) != _is_withheld(after):
            self._note_statements(after)

    def _note_statements(self, entry: Entry) -> None:
        """Note that an entry's statements are withheld, or seen again, with it."""
        verb = "hide" if _is_withheld(entry) else "show"
        for triple in self.store.triples_of([rows.clean(entry.name)]):
            self._note(verb, triple, "statement")

    def _write_texts(self, pairs: Sequence[tuple[Entry, Entry]]) -> None:
        """Give many entries a new content, with one statement; the old ones become versions."""
        if not pairs:
            return
        types = {
            "name": "VARCHAR", "content": "VARCHAR", "content_digest": "VARCHAR", "seq": "BIGINT",
        }  # fmt: skip
        values = []
        for before, after in pairs:
            old, new = rows.digest(before.content), rows.digest(after.content)
            values.append(
                {
                    "name": before.name,
                    "content": after.content,
                    "content_digest": new,
                    "seq": self._note("update", before.name, before.kind, before=old, after=new),
                }
            )
        self._retire("entry", {str(value["name"]): int(str(value["seq"])) for value in values})
        self.store.execute(
            """
            UPDATE entry SET content = v.content, content_digest = v.content_digest, seq = v.seq,
                producer = $1, version = version + 1, updated_at = $2
            FROM (SELECT unnest(from_json($3::JSON, $4), recursive := true)) AS v
            WHERE entry.name = v.name
            """,  # numbered: which `?` comes first here, DuckDB 1.5 and 2.0 see differently
            [self.author.producer, self.now, json.dumps(values), json.dumps([types])],
        )

    # -- earlier states

    def _retire(self, table: str, replaced: Mapping[str, int]) -> None:
        """Keep rows as they stand as versions; ``replaced``: by which ledger row each is replaced.

        One statement, however many there are.
        """
        if not replaced:
            return
        target, key = _VERSIONS[table]
        columns = ", ".join(f'one."{name}"' for name in _TABLES[table])
        self.store.execute(
            f"""
            INSERT INTO {target}
            SELECT {columns}, v.seq, $1, $2
            FROM {table} AS one
            JOIN (SELECT unnest($3::VARCHAR[]) AS key, unnest($4::BIGINT[]) AS seq) AS v
                ON one.{key} = v.key
            """,  # noqa: S608 - tables and columns are this module's own constants
            [self.now, self.op_id, list(replaced), list(replaced.values())],
        )

    def _next_version(self, name: str) -> int:
        """Return the version number of a new entry: a name that had versions goes on from them."""
        found = self.store.execute(
            "SELECT coalesce(max(version), 0) + 1 FROM version WHERE name = ?", [name]
        ).fetchone()
        return int(found[0]) if found else 1

    def _empty_message(self, entry: Entry, seq: int) -> None:
        """Take the words out of a deleted message's row; an image of them is kept."""
        found = self.store.run(
            "SELECT uuid, parts, text_digest FROM message WHERE session_id = ? AND turn = ?",
            [entry.session_id, entry.turn],
        )
        for row in found:
            uuid = row.pop("uuid")
            self._keep_image(seq, "message", uuid, row, {"parts": "[]", "text_digest": ""})
        self.store.execute(
            "UPDATE message SET parts = '[]', text_digest = '' WHERE session_id = ? AND turn = ?",
            [entry.session_id, entry.turn],
        )

    def _keep_image(
        self,
        seq: int,
        kind: str,
        key: str,
        was: Mapping[str, Any] | None,
        became: Mapping[str, Any] | None,
    ) -> None:
        """Keep what undoing a change of one of the small tables needs; None stands for no row."""
        said = [
            None if one is None else json.dumps(dict(one), default=_plain) for one in (was, became)
        ]
        self.store.execute(
            "INSERT INTO image VALUES (?, ?, ?, ?, ?, ?)", [seq, self.op_id, kind, key, *said]
        )

    def _purge(self, entry: Entry) -> None:
        """Remove what history keeps of a forgotten entry, and of others that said the same.

        Of others every earlier state goes that could not be stored again now.
        """
        name, value = rows.clean(entry.name), canonical(entry.content)
        self.store.execute("DELETE FROM version WHERE name = ?", [name])
        self.store.execute(
            "DELETE FROM statement_version WHERE subject = $1 OR object = $1", [name]
        )
        if entry.kind == "message":
            self.store.execute(
                "DELETE FROM image WHERE kind = 'message' AND key IN"
                " (SELECT uuid FROM message WHERE session_id = ? AND turn = ?)",
                [entry.session_id, entry.turn],
            )
        for table in ("version", "statement_version"):
            same = [
                row["id"]
                for row in self.store.run(
                    f"SELECT rowid AS id, content FROM {table}"  # noqa: S608 - our own names
                    " WHERE content <> '' AND ($1 OR len(scopes) = 0"
                    " OR list_has_any(scopes, $2::VARCHAR[]))",
                    [not entry.scopes or GLOBAL_SCOPE in entry.scopes, [*entry.scopes, ""]],
                )
                if canonical(row["content"]) == value
            ]
            self.store.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT unnest(?::BIGINT[]))",  # noqa: S608
                [same],
            )

    def _ask_tombstones(self, entry: Entry) -> Outcome | None:
        """Refuse a forgotten value; from a person it is taken, and the tombstone lifted.

        What was forgotten everywhere is refused everywhere, and what was forgotten in one project
        is refused there and as something global, for that would be seen there again.
        """
        if entry.kind in _OWN_NAMES:
            return None
        return self._refusal(self._value_digests(entry), entry.scopes, entry.name, entry.kind)

    def _refusal(
        self, digests: Sequence[str], scopes: Sequence[str], target: str, kind: str
    ) -> Outcome | None:
        everywhere = not scopes or GLOBAL_SCOPE in scopes
        params = [list(digests), everywhere, [*scopes, GLOBAL_SCOPE]]
        where = (
            "digest IN (SELECT unnest($1::VARCHAR[]))"
            " AND ($2 OR scope IN (SELECT unnest($3::VARCHAR[])))"
        )
        hit = self.store.execute(
            f"SELECT 1 FROM tombstone WHERE {where}",  # noqa: S608 - our own clause
            params,
        ).fetchone()
        if not hit:
            return None
        if self.author.channel in PERSON_CHANNELS:
            self.store.execute(f"DELETE FROM tombstone WHERE {where}", params)  # noqa: S608 - same
            self._note("lift", target, kind, index=False)
            return None
        self._note("refuse", target, kind, reason="forgotten before", index=False)
        return Outcome("refused", target, reason="this was forgotten before")

    def _bury(self, entry: Entry, reason: str) -> None:
        for scope in entry.scopes or ("",):
            for value in self._value_digests(entry):
                self.store.execute(
                    "INSERT INTO tombstone VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        value,
                        self._key.id,
                        scope,
                        reason,
                        str(self.author.channel),
                        self.now,
                        self.op_id,
                    ],
                )

    def _value_digests(self, entry: Entry) -> list[str]:
        values = {canonical(rows.clean(entry.content))}
        if entry.kind in _MEMORY_KINDS:
            values.add("name:" + canonical(rows.clean(entry.name)))
        return self._tomb_digests(values)

    def _tomb_digests(self, values: Iterable[str]) -> list[str]:
        return [self._key.digest("tombstone", value) for value in values if value]

    def _belong(self, session_id: str, scope: str, turns: Iterable[int]) -> None:
        """Link messages to their session's entry, once it exists."""
        name = f"session-{session_id}"
        if self.store.entry(name) is None:
            return
        made = [
            rows.statement_row(
                Statement(f"msg-{session_id}-{turn}", "belongTo", name, scopes=(scope,)),
                self.author,
                self.now,
            )
            for turn in turns
        ]
        have = {
            str(row[0])
            for row in self.store.execute(
                "SELECT triple FROM statement WHERE predicate = 'belongTo' AND object = ?", [name]
            ).fetchall()
        }
        new = [row for row in made if row["triple"] not in have]
        for row in new:
            row["seq"] = self._note("create", row["triple"], "statement")
        self._bulk("statement", new)

    def _turns(self, session_id: str) -> int:
        found = self.store.execute(
            "SELECT coalesce(max(turn), 0) FROM message WHERE session_id = ?", [session_id]
        ).fetchone()
        return int(found[0]) if found else 0

    def _insert_session(self, row: dict[str, Any]) -> None:
        names = [f.name for f in fields(Session)]
        columns = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join("?" for _ in names)
        values = [list(row[name]) if name == "tags" else row[name] for name in names]
        self.store.execute(
            f"INSERT INTO session ({columns}, turns) VALUES ({marks}, ?)",  # noqa: S608 - our names
            [*values, self._turns(row["id"])],
        )

    def _update_session(self, session: Session) -> None:
        names = [f.name for f in fields(Session) if f.name != "id"]
        sets = ", ".join(f'"{name}" = ?' for name in names)
        values: list[Any] = []
        for name in names:
            value = getattr(session, name)
            values.append(list(value) if name == "tags" else value)
        self.store.execute(
            f"UPDATE session SET {sets} WHERE id = ?",  # noqa: S608 - our own column names
            [*values, session.id],
        )

    def _note(
        self,
        verb: str,
        target: str,
        kind: str,
        *,
        before: str = "",
        after: str = "",
        reason: str = "",
        index: bool = True,
    ) -> int:
        """Add a ledger row, and tell the search index that the name changed.

        Returns the row's sequence number, which the state that it speaks of carries.
        """
        self._seq += 1
        target = rows.clean(target)
        plain = _is_own_name(target, kind)
        known = kind in _KINDS or kind in ("statement", "project", "root")
        row: dict[str, Any] = {
            "seq": self._seq,
            "at": self.now,
            "op_id": self.op_id,
            "actor": self.author.actor,
            "channel": str(self.author.channel),
            "verb": f"{verb} {kind if known else 'entry'}",
            "target": target if plain else "#" + self._key.digest("target", target)[:24],
            "before_digest": before and self._key.digest("content", before)[:32],
            "after_digest": after and self._key.digest("content", after)[:32],
            "reason": reason,
            "prev_hash": self._hash,
        }
        row["hash"] = self._hash = ledger.chain_hash(self._hash, row)
        self._mutations.append(row)
        if index:
            catalog = "statement" if kind == "statement" else "knowledge"
            name = target
            if verb in ("delete", "forget"):  # what is gone leaves no name behind
                catalog, name = "gone", self._key.document_id(catalog, target)
            self._touched.append({"seq": self._seq, "name": name, "kind": catalog})
        return self._seq

    def _forget_touched(self, names: Sequence[str]) -> None:
        """Drop the index's notes of names that go: a name may be words of a person."""
        gone = set(names)
        self._touched = [row for row in self._touched if row["name"] not in gone]
        self.store.execute(
            "DELETE FROM touched WHERE name IN (SELECT unnest(?::VARCHAR[]))", [list(names)]
        )

    def _bulk(self, table: str, values: Sequence[dict[str, Any]]) -> None:
        """Insert rows with one statement: their JSON is one parameter (I7)."""
        if not values:
            return
        types = _TABLES[table]
        values = [{key: rows.storable(value) for key, value in row.items()} for row in values]
        columns = ", ".join(f'v."{name}"' for name in types)
        into = ", ".join(f'"{name}"' for name in types)
        self.store.execute(
            f"""
            INSERT INTO {table} ({into})
            SELECT {columns} FROM (SELECT unnest(from_json(?::JSON, ?)) AS v)
            """,  # noqa: S608 - table and columns are this module's own constants
            [json.dumps(values, default=_plain), json.dumps([types])],
        )


# ----------------------------------------------------------------------------------------------


def _refuse_long(name: str) -> None:
    if len(name) > MAX_NAME:
        raise UsageError(
            f"a name of {len(name)} characters is too long: {MAX_NAME} is the most",
            hint="Give it a short name and put the text into its content.",
        )


def _is_own_name(name: str, kind: str) -> bool:
    """Tell whether a target is a name that the program made, and no words of a person."""
    if kind in ("project", "root"):
        return True
    return (kind == "message" and name.startswith("msg-")) or kind == "session"


def _is_withheld(entry: Entry) -> bool:
    return entry.suppressed or entry.trust in (Trust.CANDIDATE, Trust.REJECTED)


def _names(session_id: str, turns: Iterable[int | None]) -> list[str]:
    return [f"msg-{session_id}-{turn}" for turn in turns]


def _message_row(message: Message, turn: int) -> dict[str, Any]:
    return {
        "session_id": message.session_id,
        "turn": turn,
        "uuid": message.uuid,
        "parent_uuid": message.parent_uuid,
        "prompt_id": message.prompt_id,
        "response_id": message.response_id,
        "role": message.role,
        "agent_id": message.agent_id,
        "parts": rows.clean(json.dumps(list(message.parts), ensure_ascii=False, default=_plain)),
        "tokens": message.tokens,
        "flags": list(message.flags),
        "text_digest": rows.digest(rows.clean(message.text)),
        "at": message.at,
    }


def _cleaned(message: Message, session_id: str) -> Message:
    """Return a message whose texts are storable, as one of ``session_id``."""
    return replace(
        message,
        session_id=session_id,
        uuid=rows.clean(message.uuid),
        text=rows.clean(message.text),
        parent_uuid=rows.clean(message.parent_uuid),
        prompt_id=rows.clean(message.prompt_id),
        response_id=rows.clean(message.response_id),
        agent_id=rows.clean(message.agent_id),
        flags=tuple(rows.clean(flag) for flag in message.flags),
        tokens=min(max(message.tokens, 0), 2**31 - 1),
    )


def _cleaned_session(session: Session) -> Session:
    changes: dict[str, Any] = {
        one.name: rows.clean(value)
        for one in fields(Session)
        if isinstance(value := getattr(session, one.name), str)
    }
    return replace(session, **changes, tags=tuple(rows.clean(tag) for tag in session.tags))


def _merged(before: Session, new: Session) -> Session:
    changes: dict[str, Any] = {}
    for one in fields(Session):
        value = getattr(new, one.name)
        if value in ("", None, (), False) or one.name == "id":
            continue
        changes[one.name] = value
    if before.started_at is not None and new.started_at is not None:
        changes["started_at"] = min(before.started_at, new.started_at)
    for name in ("updated_at", "ended_at"):
        old, now = getattr(before, name), getattr(new, name)
        if old is not None and now is not None:
            changes[name] = max(old, now)
    return replace(before, **changes)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    raise TypeError(f"{type(value).__name__} has no place in a row")

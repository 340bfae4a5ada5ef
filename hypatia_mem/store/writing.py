"""An open change: the base of every write. Its ledger rows, and how rows go in."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import StoreError
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import buried, calling, ledger, rows
from hypatia_mem.store.inserting import insert, upsert, upsert_all

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves

__all__ = ["CAPTURE", "TABLES", "Writing", "new_op_id", "plain"]

CAPTURE = frozenset({Channel.HOOK, Channel.TRANSCRIPT})

_ENTRY_TYPES: dict[str, object] = {
    "name": "VARCHAR", "content": "VARCHAR", "content_digest": "VARCHAR", "tags": ["VARCHAR"],
    "scopes": ["VARCHAR"], "synonyms": ["VARCHAR"], "figures": ["VARCHAR"], "format": "VARCHAR",
    "kind": "VARCHAR", "trust": "VARCHAR", "valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP",
    "recorded_at": "TIMESTAMP", "expired_at": "TIMESTAMP", "pinned": "BOOLEAN",
    "suppressed": "BOOLEAN", "category": "VARCHAR", "priority": "INTEGER", "session_id": "VARCHAR",
    "turn": "INTEGER", "agent": "VARCHAR", "channel": "VARCHAR", "producer": "VARCHAR",
    "version": "INTEGER", "created_at": "TIMESTAMP", "updated_at": "TIMESTAMP", "seq": "BIGINT",
    "activation": "VARCHAR",
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
_TOMBSTONE_TYPES: dict[str, object] = {
    "digest": "VARCHAR", "key_id": "VARCHAR", "scope": "VARCHAR", "reason": "VARCHAR",
    "actor": "VARCHAR", "at": "TIMESTAMP", "op_id": "VARCHAR", "target": "VARCHAR",
    "part": "VARCHAR", "sketch": "VARCHAR",
}  # fmt: skip
_SESSION_TYPES: dict[str, object] = {
    "id": "VARCHAR", "project": "VARCHAR", "title": "VARCHAR", "user": "VARCHAR",
    "agent": "VARCHAR", "client": "VARCHAR", "cwd": "VARCHAR", "git_branch": "VARCHAR",
    "transcript_path": "VARCHAR", "forked_from": "VARCHAR", "forked_at": "INTEGER",
    "fork_gaps": "VARCHAR", "fork_reason": "VARCHAR", "headed_at": "TIMESTAMP",
    "started_at": "TIMESTAMP",
    "updated_at": "TIMESTAMP", "ended_at": "TIMESTAMP", "end_reason": "VARCHAR",
    "pinned": "BOOLEAN", "archived": "BOOLEAN", "tags": ["VARCHAR"], "turns": "INTEGER",
}  # fmt: skip
_PROJECT_TYPES: dict[str, object] = {
    "scope": "VARCHAR", "aliases": ["VARCHAR"], "excluded": "BOOLEAN", "created_at": "TIMESTAMP",
}  # fmt: skip
_ROOT_TYPES: dict[str, object] = {
    "path": "VARCHAR", "scope": "VARCHAR", "git_key": "VARCHAR", "origin_key": "VARCHAR",
    "remote": "VARCHAR", "seen_at": "TIMESTAMP",
}  # fmt: skip
_TOUCHED_TYPES: dict[str, object] = {"seq": "BIGINT", "name": "VARCHAR", "kind": "VARCHAR"}
_IMAGE_TYPES: dict[str, object] = {
    "seq": "BIGINT", "op_id": "VARCHAR", "kind": "VARCHAR", "key": "VARCHAR", "was": "VARCHAR",
    "became": "VARCHAR",
}  # fmt: skip
_VERDICT_TYPES: dict[str, object] = {
    "name": "VARCHAR", "kind": "VARCHAR", "trust": "VARCHAR", "reason": "VARCHAR",
    "until": "TIMESTAMP", "actor": "VARCHAR", "channel": "VARCHAR", "at": "TIMESTAMP",
    "op_id": "VARCHAR",
}  # fmt: skip
_QUEUED_TYPES: dict[str, object] = {
    "id": "VARCHAR", "session_id": "VARCHAR", "verb": "VARCHAR", "name": "VARCHAR",
    "arguments": "VARCHAR", "actor": "VARCHAR", "channel": "VARCHAR", "at": "TIMESTAMP",
    "failure": "VARCHAR",
}  # fmt: skip
TABLES: dict[str, dict[str, object]] = {
    "entry": _ENTRY_TYPES,
    "statement": _STATEMENT_TYPES,
    "message": _MESSAGE_TYPES,
    "mutation": _MUTATION_TYPES,
    "touched": _TOUCHED_TYPES,
    "image": _IMAGE_TYPES,
    "tombstone": _TOMBSTONE_TYPES,
    "session": _SESSION_TYPES,
    "project": _PROJECT_TYPES,
    "root": _ROOT_TYPES,
    "verdict": _VERDICT_TYPES,
    "queued": _QUEUED_TYPES,
}
_BURYING = frozenset({"forget", "bury", "lift", "rename"})  # what changes what is forgotten
_KINDS = frozenset(
    {
        "knowledge", "message", "session", "rule", "taboo", "memory", "summary", "work-unit",
        "episode", "goal", "thread",
    }
)  # fmt: skip


def new_op_id(now: datetime) -> str:
    """Return an operation id: sortable by time, unique without any coordination."""
    stamp = int((now - datetime(1970, 1, 1)).total_seconds() * 1000)  # noqa: DTZ001 - naive UTC
    return f"{stamp:012x}{time.perf_counter_ns() & 0xFFFF:04x}{os.urandom(6).hex()}"


def plain(value: object) -> str:
    """Return a time as JSON holds it; for ``json.dumps(default=...)``."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    raise TypeError(f"{type(value).__name__} has no place in a row")


class Writing:
    """What all parts of a ``Transaction`` share."""

    def __init__(
        self,
        store: Store,
        author: Author,
        now: datetime,
        op_id: str | None,
    ) -> None:
        """Begin with nothing said; where the ledger ends is asked when there is something."""
        self.store = store
        self.author = author
        self.now = now
        self.said_at = now
        self.op_id = op_id or new_op_id(now)
        self._key = ledger.load_key(store.home)
        self._end: tuple[int, str] | None = None  # the ledger's, this change included
        self.withdrawing: set[str] = set()  # whose summaries are being taken out at this moment
        self._graves: Graves | None = None
        self._is_any_buried: bool | None = None  # None: not asked yet
        self._mutations: list[dict[str, Any]] = []
        self._touched: list[dict[str, Any]] = []
        self._images: list[dict[str, Any]] = []
        self._replaced: set[str] = set()  # entries that are not what they were
        self._cursors: dict[str, int] = {}  # to be set with the note of where the ledger ends

    @property
    def seq(self) -> int:
        """Return the ledger sequence reached so far."""
        return self._reached()[0]

    @property
    def end(self) -> tuple[int, str] | None:
        """Return where the ledger ends with this change, None where nobody has asked."""
        return self._end

    def _reached(self) -> tuple[int, str]:
        """Return sequence and hash of the row that the next one follows."""
        if self._end is None:
            self._end = self.store.ledger_end()
        return self._end

    @contextmanager
    def acting(self, author: Author, *, said_at: datetime | None = None) -> Iterator[None]:
        """Do the block's writes in another author's name, in the same transaction.

        What comes through another door, or from a turn, is an operation of its own: what a prompt
        asked for can be undone apart from the turns that were stored with it. ``said_at`` is when
        it was said, if that was before now: it cannot lift what was forgotten after it.
        """
        before, op_id, said = self.author, self.op_id, self.said_at
        self.said_at = said_at or said
        if (author.channel, author.turn) != (before.channel, before.turn):
            self.op_id = new_op_id(self.now)
        self.author = author
        try:
            yield
        finally:
            self.author, self.op_id, self.said_at = before, op_id, said

    def finish(self) -> None:
        """Write what has been collected for the ledger; the store calls this before it commits.

        What was changed or taken out is told to no prompt from here on, before the commit that says
        so; what of it is still to be told comes back when the tables are rendered.
        """
        if self._replaced:
            calling.leave(self.store.home, self._replaced)
            self._replaced.clear()
        self._bulk("mutation", self._mutations)
        self._bulk("touched", self._touched)
        self._bulk("image", self._images)
        if self._mutations:
            self._cursors[ledger.NOTE] = self.seq
        upsert_all(self.store.execute, "cursor", self._cursors)
        if self._mutations:
            verbs = {row["verb"].partition(" ")[0] for row in self._mutations}
            if verbs & _BURYING or not (buried.is_kept(self.store.home) or not self._any_buried()):
                self._keep_buried()
        self._mutations.clear()
        self._touched.clear()
        self._images.clear()
        self._cursors.clear()

    def _graves_changed(self) -> None:
        """Read what is forgotten anew the next time: it was written to."""
        self._graves = None
        self._is_any_buried = None
        self.store.note_added("tombstone")

    def _any_buried(self) -> bool:
        """Tell whether anything is forgotten at all; asked once, until that is written to."""
        if self._is_any_buried is None:
            self._is_any_buried = self.store.may_hold("tombstone") and bool(
                self.store.execute("SELECT 1 FROM tombstone LIMIT 1").fetchone()
            )
        return self._is_any_buried

    def _keep_buried(self) -> None:
        """Write down beside the store what is forgotten, before the commit that says so."""
        try:
            buried.keep(self.store, self._reached()[1])
        except OSError as error:
            raise StoreError(
                f"what was forgotten could not be written to {self.store.home / buried.FILE}"
                f" ({error.strerror}); nothing was changed",
                hint="Free some space or check the folder's permissions, then try again.",
            ) from error
        self.set_meta(buried.NOTE, self._reached()[1])

    def set_meta(self, key: str, value: str) -> None:
        """Keep a value among the store's own notes."""
        upsert(self.store.execute, "meta", key, value)

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

        Of a new message the ledger itself has the name, and tells it (``Store.changed_since``).
        Returns the row's sequence number, which the state that it speaks of carries.
        """
        target = rows.clean(target)
        plain = _is_own_name(target, kind)
        known = kind in _KINDS or kind in ("statement", "project", "root", "operation")
        self._append(
            op_id=self.op_id,
            verb=f"{verb} {kind if known else 'entry'}",
            target=target if plain else "#" + self._key.digest("target", target)[:24],
            before_digest=before and self._key.digest("content", before)[:32],
            after_digest=after and self._key.digest("content", after)[:32],
            reason=reason,
        )
        if index and not (plain and verb == "create" and kind == "message"):
            catalog = "statement" if kind == "statement" else "knowledge"
            name = target
            if verb in ("delete", "forget"):  # what is gone leaves no name behind
                catalog, name = "gone", self._key.document_id(catalog, target)
            self._touched.append({"seq": self.seq, "name": name, "kind": catalog})
        return self.seq

    def _append(self, **said: str) -> None:
        """Add a row to the ledger's chain."""
        seq, previous = self._reached()
        row: dict[str, Any] = {
            "seq": seq + 1,
            "at": self.now,
            "actor": self.author.actor,
            "channel": str(self.author.channel),
            **said,
            "prev_hash": previous,
        }
        row["hash"] = made = ledger.chain_hash(previous, row)
        self._end = seq + 1, made
        self._mutations.append(row)

    def _keep_image(
        self,
        seq: int,
        kind: str,
        key: str,
        was: Mapping[str, Any] | None,
        became: Mapping[str, Any] | None,
    ) -> None:
        """Keep what undoing a change of one of the small tables needs; None stands for no row.

        Nothing is kept of what hooks and transcripts say: that is not undone, it was so.
        """
        if self.author.channel in CAPTURE:
            return
        said = [
            None if one is None else json.dumps(dict(one), default=plain) for one in (was, became)
        ]
        self._images.append(
            {
                "seq": seq,
                "op_id": self.op_id,
                "kind": kind,
                "key": key,
                "was": said[0],
                "became": said[1],
            }
        )

    def _forget_touched(self, names: Sequence[str]) -> None:
        """Drop the index's notes of names that go: a name may be words of a person."""
        gone = set(names)
        self._touched = [row for row in self._touched if row["name"] not in gone]
        self.store.execute(
            "DELETE FROM touched WHERE name IN (SELECT unnest(?::VARCHAR[]))", [list(names)]
        )

    def _bulk(self, table: str, values: Sequence[dict[str, Any]]) -> None:
        """Insert rows with one statement."""
        if not values:
            return
        insert(self.store.execute, table, tuple(TABLES[table]), values)
        self.store.note_added(table)


# ----------------------------------------------------------------------------------------------


def _is_own_name(name: str, kind: str) -> bool:
    """Tell whether a target is a name that the program made, and no words of a person."""
    if kind in ("project", "root", "operation"):
        return True
    return (kind == "message" and name.startswith("msg-")) or kind == "session"

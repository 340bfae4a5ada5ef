"""An open store: what can be read from it, and the door to what changes it.

``connection.open_store`` makes one; nobody else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import (
    CLOCKS_APART,
    Author,
    Channel,
    Entry,
    Message,
    Project,
    Session,
    Statement,
)
from hypatia_mem.store import branches, keys, ledger, rows

if TYPE_CHECKING:
    import duckdb

    from hypatia_mem.store.forest import Forest
    from hypatia_mem.store.gateway import Transaction

__all__ = ["KnownMessage", "KnownRoot", "Store"]


class KnownMessage:
    """What identifies a stored message: enough to match it, without its text."""

    __slots__ = (
        "at", "flags", "parent_uuid", "prompt_id", "response_id", "role", "text_digest", "turn",
        "uuid",
    )  # fmt: skip

    def __init__(self, row: Mapping[str, Any]) -> None:
        """Take over a row of ``message``."""
        self.turn: int = row["turn"]
        self.role: str = row["role"]
        self.uuid: str = row["uuid"]
        self.parent_uuid: str = row["parent_uuid"]
        self.prompt_id: str = row["prompt_id"]
        self.response_id: str = row["response_id"]
        self.text_digest: str = row["text_digest"]
        self.at: datetime = row["at"]
        self.flags: tuple[str, ...] = tuple(row["flags"])


class KnownRoot:
    """A folder the store has seen, with the marks that identify it and its project's scope."""

    __slots__ = ("git_key", "origin_key", "path", "remote", "scope")

    def __init__(self, row: Mapping[str, Any]) -> None:
        """Take over a row of ``root``."""
        self.path: str = row["path"]
        self.scope: str = row["scope"]
        self.git_key: str = row["git_key"]
        self.origin_key: str = row["origin_key"]
        self.remote: str = row["remote"]


class Store:
    """An open store. Valid inside its ``with open_store(...)`` block only."""

    def __init__(
        self,
        home: Path,
        connection: duckdb.DuckDBPyConnection,
        held: ExitStack,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Wrap a connection that ``open_store`` made; ``held`` holds file and lease.

        ``sizes``: how many rows the tables had when it was opened for writing, never too few.
        """
        self.home = home
        self.is_let_go = False
        self._connection = connection
        self._held = held
        self._sizes = dict(sizes or {})
        self._end: tuple[int, str] | None = None  # of the ledger, once it was written to
        self.is_to_seal = False  # when it is closed: no turn that is captured pays for it

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return the engine's connection, for this room; the store is its catalog ``kb``."""
        return self._connection

    def let_go(self) -> None:
        """Detach a store that was only read and give the lease back before the block ends.

        What the reader has copied into the engine's own memory can be read on, at leisure.
        """
        self.is_let_go = True
        self._held.close()

    @contextmanager
    def transaction(
        self, author: Author, *, now: datetime, op_id: str | None = None
    ) -> Iterator[Transaction]:
        """Change the store: all of the block's writes and their ledger rows, or nothing.

        ``now`` is naive UTC. An exception rolls everything back and goes on its way.
        """
        from hypatia_mem.store.gateway import Transaction

        self._connection.execute("BEGIN")
        try:
            txn = Transaction(self, author, now, op_id)
            yield txn
            txn.finish()
            self._connection.execute("COMMIT")
            self._end = txn.end or self._end
            self.is_to_seal |= author.channel not in (Channel.HOOK, Channel.TRANSCRIPT)
        except BaseException:
            self._rollback()
            raise

    # -- entries and statements

    def entry(self, name: str) -> Entry | None:
        """Return an entry by name, whatever its state, or None."""
        found = self.run("SELECT * FROM entry WHERE name = ?", [name])
        return rows.entry_of(found[0]) if found else None

    def entries(self, names: Iterable[str]) -> list[Entry]:
        """Return the entries of these names that exist, in no order."""
        found = self.run(
            "SELECT * FROM entry WHERE name IN (SELECT unnest(?::VARCHAR[]))", [list(names)]
        )
        return [rows.entry_of(row) for row in found]

    def live_entries(self, names: Iterable[str]) -> list[Entry]:
        """Return the entries of these names that are not withheld."""
        found = self.run(
            "SELECT * FROM live_entry WHERE name IN (SELECT unnest(?::VARCHAR[]))", [list(names)]
        )
        return [rows.entry_of(row) for row in found]

    def rules(
        self, scopes: Sequence[str] | None, *, at: datetime | None = None, any_time: bool = False
    ) -> list[Entry]:
        """Return the live rules, taboos and memories of these scopes (None: all), newest first.

        Those that are true at ``at`` (default: now); an end that is not known does not end them.
        ``any_time``: also those that were, or will be.
        """
        found = self.run(
            """
            SELECT * FROM live_entry
            WHERE kind IN ('rule', 'taboo', 'memory')
              AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1))
              AND ($2 OR ((valid_from IS NULL OR valid_from <= $3)
                          AND (valid_to IS NULL OR valid_to > $3)))
            ORDER BY created_at DESC, name
            """,
            [None if scopes is None else list(scopes), any_time, at or _utc_now()],
        )
        return [rows.entry_of(row) for row in found]

    def producer_of(self, name: str) -> str:
        """Return what produced an entry (``title``, ``compaction``, ...), ``""`` if unknown."""
        found = self.run("SELECT producer FROM entry WHERE name = ?", [name])
        return str(found[0]["producer"]) if found else ""

    def statement(self, subject: str, predicate: str, object_: str) -> Statement | None:
        """Return a triple, whichever way its predicate is written, or None."""
        for key in rows.triple_keys(subject, predicate, object_):
            found = self.run("SELECT * FROM statement WHERE triple = ?", [key])
            if found:
                return rows.statement_of(found[0])
        return None

    def statements_of(self, name: str) -> list[Statement]:
        """Return every triple that has ``name`` at either end."""
        found = self.run(
            "SELECT * FROM statement WHERE subject = ? OR object = ? ORDER BY created_at, triple",
            [name, name],
        )
        return [rows.statement_of(row) for row in found]

    def triples_of(self, names: Sequence[str]) -> list[str]:
        """Return the keys of every triple that has one of ``names`` at either end."""
        found = self.execute(
            """
            SELECT triple FROM statement
            WHERE subject IN (SELECT unnest($1::VARCHAR[]))
               OR object IN (SELECT unnest($1::VARCHAR[]))
            ORDER BY triple
            """,
            [list(names)],
        ).fetchall()
        return [str(row[0]) for row in found]

    def live_statements(self, triples: Iterable[str]) -> list[tuple[str, Statement]]:
        """Return (key, triple) of these keys that are not withheld."""
        found = self.run(
            "SELECT * FROM live_statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))",
            [list(triples)],
        )
        return [(row["triple"], rows.statement_of(row)) for row in found]

    # -- sessions and messages

    def session(self, session_id: str) -> Session | None:
        """Return a session by id, or None."""
        found = self.run("SELECT * FROM session WHERE id = ?", [session_id])
        return rows.session_of(found[0]) if found else None

    def sessions(
        self,
        project: str | None = None,
        *,
        limit: int = 50,
        offset: int = 0,
        include_archived: bool = False,
    ) -> list[tuple[Session, int]]:
        """Return sessions that have turns, latest first, each with its number of messages.

        A branch has those that it shares, too.

        Those of a time to come were told by a wrong clock: they stand last, for nobody would see
        the present one before that time.
        """
        soon = datetime.now(UTC).replace(tzinfo=None) + CLOCKS_APART
        found = self.run(
            """
            SELECT * FROM session
            WHERE turns + forked_at > 0
              AND (?::VARCHAR IS NULL OR project = ?) AND (? OR NOT archived)
            ORDER BY updated_at > ?::TIMESTAMP, updated_at DESC NULLS LAST, id LIMIT ? OFFSET ?
            """,
            [project, project, include_archived, soon, limit, offset],
        )
        return [branches.with_length(row) for row in found]

    def spoken(self) -> frozenset[str]:
        """Return the projects that have a session with turns."""
        found = self.run("SELECT DISTINCT project FROM session WHERE turns + forked_at > 0")
        return frozenset(str(row["project"]) for row in found)

    def messages(self, session_id: str, *, start: int = 1, limit: int = 1000) -> list[Message]:
        """Return a session's messages from turn ``start`` on, in order.

        One that was deleted or is withheld has neither text nor parts.
        """
        found = self.run(
            """
            SELECT message.* REPLACE (
                CASE WHEN entry.name IS NULL THEN '[]' ELSE message.parts END AS parts
            ), entry.content FROM message
            LEFT JOIN live_entry AS entry
                ON entry.name = 'msg-' || message.session_id || '-' || message.turn
            WHERE message.session_id = ? AND message.turn >= ? ORDER BY message.turn LIMIT ?
            """,
            [session_id, start, limit],
        )
        return [rows.message_of(row) for row in found]

    def messages_at(self, session_id: str, turns: Sequence[int]) -> list[Message]:
        """Return those of a session's messages that have these turn numbers, in order."""
        found = self.run(
            """
            SELECT message.*, entry.content FROM message
            LEFT JOIN entry ON entry.name = 'msg-' || message.session_id || '-' || message.turn
            WHERE message.session_id = ? AND message.turn IN (SELECT unnest(?::INTEGER[]))
            ORDER BY message.turn
            """,
            [session_id, list(turns)],
        )
        return [rows.message_of(row) for row in found]

    def last_exchange(
        self, project: str, asker: str = "", of: Forest | None = None
    ) -> tuple[Session, int, list[Message]] | None:
        """Return a project's latest session, its number of messages and the last few of them.

        ``asker`` is the session that is told, ``""`` one that is no branch: of its own family it is
        told itself, of others what is not set aside.
        """
        there = branches.forest(self) if of is None else of
        session = branches.newest(self, project, asker, there)
        if session is None:
            return None
        last = branches.length(self, session.id, there)
        said = branches.reading(
            self, session.id, start=max(1, last - 11), scopes=[project], of=there
        )
        turns = branches.count(self, session.id, there)
        return session, turns, [replace(one, turn=place) for place, one in said]

    def known_uuids(self, uuids: Iterable[str]) -> dict[str, tuple[str, int]]:
        """Return (session, turn) of those of these transcript ids that are stored anywhere."""
        found = self.run(
            """
            SELECT uuid, session_id, turn FROM message
            WHERE uuid IN (SELECT unnest(?::VARCHAR[]))
            """,
            [list(uuids)],
        )
        return {row["uuid"]: (row["session_id"], row["turn"]) for row in found}

    def known_messages(self, session_id: str) -> list[KnownMessage]:
        """Return what identifies each stored message of a session, in order."""
        found = self.run("SELECT * FROM message WHERE session_id = ? ORDER BY turn", [session_id])
        return [KnownMessage(row) for row in found]

    def unsealed(self, known: Iterable[KnownMessage], digests: Iterable[str]) -> list[KnownMessage]:
        """Give deleted messages back the digests of their texts, as far as they are among these.

        So what brings the words of a deleted message again is known as that message's.
        """
        messages = list(known)
        lost = [one for one in messages if rows.is_sealed(one.text_digest)]
        if lost:
            ring = keys.keyring(self.home)
            plain = {rows.seal(key, digest): digest for digest in digests for key in ring}
            for one in lost:
                one.text_digest = plain.get(one.text_digest, one.text_digest)
        return messages

    # -- upkeep

    def projects(self) -> list[Project]:
        """Return every project with its folders."""
        roots: dict[str, list[str]] = {}
        for root in self.roots():
            roots.setdefault(root.scope, []).append(root.path)
        return [
            Project(
                scope=row["scope"],
                roots=tuple(roots.get(row["scope"], ())),
                aliases=tuple(row["aliases"]),
                excluded=row["excluded"],
            )
            for row in self.run("SELECT * FROM project ORDER BY scope")
        ]

    def roots(self) -> list[KnownRoot]:
        """Return every folder the store knows."""
        return [KnownRoot(row) for row in self.run("SELECT * FROM root ORDER BY path")]

    def ledger(self, *, limit: int = 100, target: str | None = None) -> list[dict[str, Any]]:
        """Return ledger rows, newest first; ``target`` is a name as a person writes it."""
        targets = None
        if target is not None:
            targets = [target, *(key.target(target) for key in keys.keyring(self.home))]
        return self.run(
            """
            SELECT * FROM mutation WHERE (?::VARCHAR[] IS NULL OR list_contains(?, target))
            ORDER BY seq DESC LIMIT ?
            """,
            [targets, targets, limit],
        )

    def verify_ledger(self) -> int | None:
        """Walk the chain; return the first sequence number that does not fit, None if all do."""
        broken = ledger.verify_rows(self._ledger_rows())
        if broken is None and self.ledger_noted() != self.ledger_seq():
            return self.ledger_seq() + 1  # the end was cut off
        return broken

    def _ledger_rows(self) -> Iterator[dict[str, Any]]:
        cursor = self.execute("SELECT * FROM mutation ORDER BY seq")
        names = [column[0] for column in cursor.description or ()]
        while found := cursor.fetchmany(10_000):
            for row in found:
                yield dict(zip(names, row, strict=True))

    def ledger_seq(self) -> int:
        """Return the ledger's last sequence number, 0 when it is empty."""
        found = self.execute("SELECT coalesce(max(seq), 0) FROM mutation").fetchone()
        return int(found[0]) if found else 0

    def ledger_noted(self) -> int:
        """Return the ledger's last sequence number as the store has noted it elsewhere."""
        found = self.execute("SELECT position FROM cursor WHERE key = ?", [ledger.NOTE]).fetchone()
        return int(found[0]) if found else 0

    def ledger_end(self) -> tuple[int, str]:
        """Return sequence and hash of the ledger's last row, for the one that writes the next.

        Nobody else writes while the lease is held: it is looked up once. Rows are never taken out
        of the ledger, so the last one is known to be not far from how many there are.
        """
        if self._end is not None:
            return self._end
        last: list[tuple[Any, ...]] = []
        size = self._sizes.get("mutation")
        if size is not None:
            last = self.execute("SELECT seq, hash FROM mutation WHERE seq >= ?", [size]).fetchall()
        if not last:
            end = "SELECT seq, hash FROM mutation ORDER BY seq DESC LIMIT 1"
            last = self.execute(end).fetchall()
        return max(((int(seq), str(made)) for seq, made in last), default=(0, ledger.GENESIS))

    def size_of(self, table: str) -> int | None:
        """Return how many rows a table has, or had before some were deleted; None when unknown."""
        return self._sizes.get(table)

    def may_hold(self, table: str) -> bool:
        """Tell whether a table may have rows; False saves asking it."""
        return self._sizes.get(table) != 0

    def note_added(self, table: str) -> None:
        """Say that rows were, or may have been, added to a table."""
        self._sizes.pop(table, None)

    def changed_since(self, seq: int, limit: int = 5000) -> list[tuple[int, str, str]]:
        """Return (sequence, name, kind) of changes after ``seq``, oldest first.

        ``kind`` is ``knowledge``, ``statement``, or ``gone``: then the name is a document's id
        (``ledger.Key.document_id``), for what is deleted leaves no name behind.
        """
        found = self.execute(
            """
            SELECT seq, name, kind FROM touched WHERE seq > $1
            UNION ALL
            SELECT seq, target, 'knowledge' FROM mutation
            WHERE seq > $1 AND verb = 'create message' AND starts_with(target, 'msg-')
            ORDER BY seq LIMIT $2
            """,
            [seq, limit],
        )
        return [(int(row[0]), str(row[1]), str(row[2])) for row in found.fetchall()]

    def counts(self) -> dict[str, int]:
        """Return how many there are of each kind of thing."""
        found = self.execute(
            """
            SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM statement),
                   (SELECT count(*) FROM message),
                   (SELECT count(*) FROM session WHERE turns + forked_at > 0),
                   (SELECT count(*) FROM project), (SELECT count(*) FROM tombstone)
            """
        ).fetchone()
        names = ("entries", "statements", "messages", "sessions", "projects", "tombstones")
        return dict(zip(names, found or (0,) * 6, strict=True))

    def cursors(self) -> dict[str, int]:
        """Return how far each spool segment and transcript has been read."""
        found = self.execute("SELECT key, position FROM cursor WHERE key <> ?", [ledger.NOTE])
        return {str(key): int(position) for key, position in found.fetchall()}

    def meta(self, key: str) -> str:
        """Return a value of the store's own notes, ``""`` when it is not there."""
        found = self.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
        return str(found[0]) if found else ""

    def run(self, sql: str, params: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Run one statement with parameters and return its rows by column name.

        For this room and for compiled expressions; callers never build ``sql`` from text.
        """
        cursor = self.execute(sql, params)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def execute(self, sql: str, params: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        """Run one statement; text in ``params`` is made storable first, as in every row.

        A name that a person asks for is thus looked up as it would have been stored.
        """
        return self._connection.execute(sql, [rows.storable(value) for value in params])

    def _rollback(self) -> None:
        import duckdb

        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error:
            return  # the transaction, or the whole connection, is gone already


def _utc_now() -> datetime:
    from datetime import UTC

    return datetime.now(UTC).replace(tzinfo=None)

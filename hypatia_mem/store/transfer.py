"""Tables in and out for an export: what is written of each row, and how it comes in again.

What only this store can know stays out of an export: ledger numbers, earlier versions, when a row
came in here. Coming in, every row goes through the gateway's transaction: the tombstones are asked,
the ledger and the index note it (I4). The import's author is never a person, so that nothing
forgotten is let in by the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Refused
from hypatia_mem.model import Session, Trust, normal_predicate
from hypatia_mem.store import graves, quarantine, rows, withdrawing
from hypatia_mem.store.entries import MAX_NAME

if TYPE_CHECKING:
    import duckdb

    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "TABLES",
    "UNSCOPED",
    "Column",
    "Incoming",
    "checked_row",
    "columns_of",
    "is_empty",
    "is_new",
    "read_rows",
    "steps_of",
]

UNSCOPED = "unscoped"  # the scope of what an export holds in no scope
# In the order in which they come in: tombstones first, because they win; sessions count messages.
TABLES = ("tombstone", "project", "root", "entry", "statement", "message", "session")
_LEFT_OUT: dict[str, set[str]] = {
    "entry": {"content_digest", "recorded_at", "version", "seq"},
    "statement": {"triple", "recorded_at", "seq"},
    "message": set(),
    "session": {"turns"},
    "tombstone": {"op_id"},
    "project": {"created_at"},
    "root": {"seen_at"},
}
_NEEDED = {
    "entry": {"name", "content", "scopes", "kind", "trust", "created_at"},
    "statement": {"subject", "predicate", "object", "scopes", "trust", "created_at"},
    "message": {"session_id", "turn", "uuid", "role", "at"},
    "session": {"id", "project"},
    "tombstone": {"digest", "key_id", "scope"},
    "project": {"scope"},
    "root": {"path", "scope"},
}
_NAMES = {"entry": ("name",), "statement": ("subject", "predicate", "object")}
_KEYS = {"entry": "name", "statement": "triple"}
_INTEGERS = {"INTEGER": 2**31, "BIGINT": 2**63, "HUGEINT": 2**63}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an exported table; ``type`` is DuckDB's word for what is in it."""

    name: str
    type: str
    nullable: bool


def columns_of(store: Store, table: str) -> list[Column]:
    """Return the columns of a table that are exported, in the table's order."""
    return _columns(store.execute(_COLUMNS, [table]), table)


def read_rows(
    connection: duckdb.DuckDBPyConnection, table: str, *, batch: int = 1000
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as an export writes them; only a batch of them is held at a time.

    ``connection`` is that of a copy (``attached``), so that nobody waits for the store meanwhile.
    """
    columns = _columns(connection.execute(_COLUMNS, [table]), table)
    words = ", ".join(f'"{column.name}"' for column in columns)
    cursor = connection.execute(f"SELECT {words} FROM {table}")  # noqa: S608 - the schema's names
    names = [column.name for column in columns]
    while found := cursor.fetchmany(batch):
        for row in found:
            yield {
                name: value.isoformat() if isinstance(value, datetime) else value
                for name, value in zip(names, row, strict=True)
            }


def steps_of(connection: duckdb.DuckDBPyConnection | Store) -> list[str]:
    """Return the migration steps of a store, in order: what its rows look like."""
    found = connection.execute("SELECT name FROM migration ORDER BY name").fetchall()
    return [str(row[0]) for row in found]


def is_empty(store: Store) -> bool:
    """Tell whether a store holds nothing that an import could collide with."""
    found = store.execute(
        """
        SELECT EXISTS (SELECT 1 FROM entry) OR EXISTS (SELECT 1 FROM statement)
            OR EXISTS (SELECT 1 FROM message) OR EXISTS (SELECT 1 FROM session)
        """
    ).fetchone()
    return not (found and found[0])


def is_new(store: Store) -> bool:
    """Tell whether a store has never been written to, so that nothing hangs on its key."""
    found = store.execute("SELECT count(*) FROM tombstone").fetchone()
    return store.ledger_seq() == 0 and not (found and found[0])


def checked_row(table: str, columns: Sequence[Column], row: object) -> dict[str, Any]:
    """Return a row of an export with its values in their types.

    A column that an older version did not write gets its empty value. Raises Refused for anything
    that the gateway would never have written.
    """
    if not isinstance(row, dict):
        raise Refused("a line is no JSON object")
    known = {column.name for column in columns}
    strange = set(row) - known
    missing = _NEEDED[table] - set(row)
    if strange or missing:
        what = f"holds {min(strange)!a}" if strange else f"lacks {min(missing)!a}"
        raise Refused(f"a row {what[:80]}")
    checked: dict[str, Any] = {}
    for column in columns:
        value = row.get(column.name)
        if value is None:
            checked[column.name] = None if column.nullable else _empty(column)
            if column.name in _NEEDED[table] and not column.nullable:
                raise Refused(f"{column.name} is null in a row")
        else:
            checked[column.name] = _typed(column, value)
    _check_words(table, checked)
    return checked


class Incoming:
    """Rows on their way into a store, inside one transaction of the gateway."""

    def __init__(self, txn: Transaction) -> None:
        """Learn what is forgotten: only rows whose digests are among these are asked for singly."""
        self.txn = txn
        self.refused = 0
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
            values = {name: row[name] for name in names}
            self.txn.put_session(Session(**{**values, "tags": tuple(row.get("tags") or ())}))
        elif table == "project":
            self.txn.put_project(row["scope"], aliases=row["aliases"], excluded=row["excluded"])
        elif table == "root":
            marks = {name: row[name] for name in ("git_key", "origin_key", "remote")}
            self.txn.put_root(row["path"], scope=row["scope"], **marks)
        else:
            self._put_tombstone(row)

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
        if seen or not self._known:
            return ""
        near = self._known.near([row["content"]], row["scopes"], without=self.txn.op_id)
        return "" if near is None else near.why

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
        """Ask the tombstones as the gateway does for a row of its own."""
        if table == "entry":
            entry = rows.entry_of({**row, "version": 1})
            digests = self.txn._value_digests(entry)
            target, kind = row["name"], row["kind"]
        else:
            ends = row["subject"], row["object"]
            spellings = dict.fromkeys((row["predicate"], normal_predicate(row["predicate"])))
            digests = [
                digest
                for predicate in spellings
                for digest in self.txn._statement_digests(
                    ends[0], predicate, ends[1], row["content"]
                )
            ]
            target, kind = _triple(row), "statement"
        if self._buried.isdisjoint(digests):
            return False
        refused = self.txn._refusal(digests, row["scopes"], target, kind) is not None
        self.refused += refused
        return refused

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

_COLUMNS = """
    SELECT column_name, data_type, is_nullable FROM duckdb_columns()
    WHERE table_name = ? AND database_name = current_database() ORDER BY column_index
"""


def _columns(found: duckdb.DuckDBPyConnection, table: str) -> list[Column]:
    return [
        Column(str(name), str(type_), bool(nullable))
        for name, type_, nullable in found.fetchall()
        if name not in _LEFT_OUT[table]
    ]


def _triple(row: Mapping[str, Any]) -> str:
    return rows.triple_key(*rows.triple_parts(row["subject"], row["predicate"], row["object"]))


def _empty(column: Column) -> Any:
    if column.type.endswith("[]"):
        return []
    if column.type == "BOOLEAN":
        return False
    if column.type in _INTEGERS:
        return 0
    return None if column.type == "TIMESTAMP" else ""


def _typed(column: Column, value: object) -> Any:
    """Return a value as its column has it. Raises Refused."""
    if column.type == "VARCHAR" and isinstance(value, str):
        return value
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if column.type == "VARCHAR[]" and texts:
        return value
    if column.type == "BOOLEAN" and isinstance(value, bool):
        return value
    most = _INTEGERS.get(column.type)
    if most and isinstance(value, int) and not isinstance(value, bool) and -most <= value < most:
        return value
    if column.type == "TIMESTAMP" and isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is None:
            return moment
    raise Refused(f"{column.name} has a value of the wrong kind in a row")


def _check_words(table: str, row: dict[str, Any]) -> None:
    """Refuse what no command would have stored, and what could not be read again."""
    for name in _NAMES.get(table, ()):
        if not row[name].strip() or len(row[name]) > MAX_NAME:
            raise Refused(f"{name} is empty or too long in a row")
    if "trust" in row and row["trust"] not in set(Trust):
        raise Refused("trust has an unknown value in a row")
    if table == "statement" and row["synonyms"] is not None:
        _check_json(row["synonyms"], dict, "synonyms")
    if table == "message":
        _check_json(row["parts"] or "[]", list, "parts")


def _check_json(text: str, kind: type, name: str) -> None:
    try:
        fits = isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise Refused(f"{name} is no JSON of the right kind in a row")

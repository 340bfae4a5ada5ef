"""Tables in and out for an export: what is written of each row, and how it comes in again.

What only this store can know stays out of an export: ledger numbers, earlier versions, when a row
came in here. How a row comes in is told in ``incoming``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Refused
from hypatia_mem.model import Trust
from hypatia_mem.store.entries import MAX_NAME

if TYPE_CHECKING:
    import duckdb

    from hypatia_mem.store.connection import Store

__all__ = [
    "TABLES",
    "Column",
    "checked_row",
    "columns_of",
    "is_empty",
    "is_new",
    "names_with",
    "read_rows",
    "steps_of",
]

# In the order in which they come in: tombstones first, because they win; sessions count messages.
TABLES = ("tombstone", "project", "root", "entry", "statement", "verdict", "message", "session")
# What of a table default reads return; no verdict, for it is about what one person made of it.
_SHARED = {
    "project": "project",
    "root": "root",
    "entry": "live_entry",
    "statement": "live_statement",
    "message": """(
        SELECT message.* FROM message JOIN live_entry AS e
            ON e.kind = 'message' AND e.name = concat('msg-', message.session_id, '-', message.turn)
    )""",
    "session": "session",
}
_LEFT_OUT: dict[str, set[str]] = {
    "entry": {"content_digest", "recorded_at", "version", "seq"},
    "statement": {"triple", "recorded_at", "seq"},
    "message": set(),
    "session": {"turns"},
    "verdict": {"op_id"},
    "tombstone": {"op_id"},
    "project": {"created_at"},
    "root": {"seen_at"},
}
_NEEDED = {
    "entry": {"name", "content", "scopes", "kind", "trust", "created_at"},
    "statement": {"subject", "predicate", "object", "scopes", "trust", "created_at"},
    "message": {"session_id", "turn", "uuid", "role", "at"},
    "session": {"id", "project"},
    "verdict": {"name", "kind", "trust", "reason", "at"},
    "tombstone": {"digest", "key_id", "scope"},
    "project": {"scope"},
    "root": {"path", "scope"},
}
_NAMES = {"entry": ("name",), "statement": ("subject", "predicate", "object")}
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


def is_shared(table: str) -> bool:
    """Tell whether an export that is given away holds anything of a table."""
    return table in _SHARED


def read_rows(
    connection: duckdb.DuckDBPyConnection, table: str, *, shared: bool = False, batch: int = 1000
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as an export writes them; only a batch of them is held at a time.

    ``connection`` is that of a copy (``attached``), so that nobody waits for the store meanwhile.
    ``shared``: only those that default reads return.
    """
    columns = _columns(connection.execute(_COLUMNS, [table]), table)
    words = ", ".join(f'"{column.name}"' for column in columns)
    source = _SHARED[table] if shared else table
    cursor = connection.execute(f"SELECT {words} FROM {source}")  # noqa: S608 - the schema's names
    names = [column.name for column in columns]
    while found := cursor.fetchmany(batch):
        for row in found:
            yield {
                name: value.isoformat() if isinstance(value, datetime) else value
                for name, value in zip(names, row, strict=True)
            }


def names_with(connection: duckdb.DuckDBPyConnection, part: str) -> list[str]:
    """Return the names of the entries of a copy in which ``part`` stands."""
    found = connection.execute("SELECT name FROM entry WHERE contains(name, ?)", [part]).fetchall()
    return [str(name) for (name,) in found]


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
    if table == "entry":
        _check_json(row["activation"] or "{}", dict, "activation")


def _check_json(text: str, kind: type, name: str) -> None:
    try:
        fits = isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise Refused(f"{name} is no JSON of the right kind in a row")

"""Where a word still stands in the store: every table, every column, whatever its state.

For whoever has to show that something is gone: no view stands between them and the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "digests",
    "entries_holding",
    "entries_of",
    "ledger_since",
    "tables_holding",
    "triples_holding",
]


def entries_holding(store: Store, word: str) -> list[str]:
    """Return the names of the entries, of whatever kind and state, that hold a word."""
    found = store.execute(
        "SELECT name FROM entry WHERE contains(content, $1) OR contains(name, $1) ORDER BY name",
        [word],
    ).fetchall()
    return [str(name) for (name,) in found]


def tables_holding(store: Store, word: str) -> list[str]:
    """Return the tables that have a row with a word in it, in any column."""
    tables = store.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        " AND regexp_full_match(table_name, '[a-z_0-9]+') ORDER BY 1"
    ).fetchall()
    return [
        str(name)
        for (name,) in tables
        if store.execute(
            f'SELECT 1 FROM "{name}" AS t WHERE contains(CAST(t AS VARCHAR), ?) LIMIT 1',  # noqa: S608
            [word],
        ).fetchone()
    ]


def ledger_since(store: Store, seq: int) -> list[dict[str, Any]]:
    """Return the ledger's rows after ``seq``, oldest first."""
    return store.run("SELECT * FROM mutation WHERE seq > ? ORDER BY seq", [seq])


def entries_of(store: Store, scope: str) -> list[str]:
    """Return the names of all entries of a scope, of whatever kind and state."""
    found = store.execute(
        "SELECT name FROM entry WHERE list_contains(scopes, ?) ORDER BY name", [scope]
    ).fetchall()
    return [str(name) for (name,) in found]


def triples_holding(store: Store, word: str) -> list[str]:
    """Return the keys of the statements, of whatever state, that hold a word in any part."""
    found = store.execute(
        "SELECT triple FROM statement WHERE contains(triple, $1) OR contains(content, $1)"
        " ORDER BY triple",
        [word],
    ).fetchall()
    return [str(triple) for (triple,) in found]


def digests(store: Store) -> list[tuple[str, int, str]]:
    """Return (table, rows, digest over all rows) of every table: the same when nothing changed."""
    tables = store.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        " AND regexp_full_match(table_name, '[a-z_0-9]+') ORDER BY 1"
    ).fetchall()
    found = []
    for (name,) in tables:
        row = store.execute(
            f'SELECT count(*), bit_xor(hash(CAST(t AS VARCHAR))) FROM "{name}" AS t'  # noqa: S608
        ).fetchone()
        found.append((str(name), int(row[0]) if row else 0, str(row[1]) if row else ""))
    return found

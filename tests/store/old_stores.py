"""Stores as earlier versions of the schema left them: the first steps alone, a row in each table."""

from __future__ import annotations

from datetime import datetime

from hypatia_mem.store.connection import FILE, attached
from hypatia_mem.store.migrations import MIGRATIONS

THEN = datetime(2026, 11, 30, 12, 0, 0)
WORDS = "the staging port is 4712"
# What a column says where its type alone would not do; the table's own goes first.
SAID = {
    "statement.content": "",
    "statement.synonyms": None,
    "statement_version.synonyms": None,
    "content": WORDS,
    "name": "a",
    "triple": "a,is,b",
    "subject": "a",
    "predicate": "is",
    "object": "b",
    "scopes": ["app"],
    "scope": "app",
    "format": "markdown",
    "trust": "asserted",
    "entry.kind": "knowledge",
    "version.kind": "knowledge",
    "job.kind": "summary/anthropic",
    "kind": "entry",
    "channel": "cli-person",
    "session_id": "s-1",
    "turn": 1,
    "role": "user",
    "parts": "[]",
    "arguments": "{}",
    "session.id": "s-1",
    "job.state": "dead",
    "spend.state": "done",
    "op_id": "o1",
    "seq": 1,
    "replaced_seq": 1,
    "entry.version": 2,
    "version": 1,
    "meta.key": "ledger_seq",
    "meta.value": "1",
    "verb": "create message",
    "target": "msg-s-1-1",
    "expired_at": None,
    "valid_to": None,
    "suppressed": False,
    "excluded": False,
}
BY_TYPE = {
    "VARCHAR": "", "VARCHAR[]": [], "FLOAT[]": [0.5], "INTEGER": 3, "BIGINT": 1, "BOOLEAN": False,
    "TIMESTAMP": THEN,
}  # fmt: skip


def make_old(home, count):
    """Make a store of the first ``count`` steps; return each table's rows, by column."""
    with attached(home / FILE, write=True) as kb:
        kb.execute('CREATE TABLE migration (name VARCHAR PRIMARY KEY, "at" TIMESTAMP NOT NULL)')
        for name, statements in MIGRATIONS[:count]:
            for one in statements:
                kb.execute(one)
            kb.execute("INSERT INTO migration VALUES (?, ?)", [name, THEN])
        for table in tables(kb):
            _fill(kb, table)
        kb.execute("CHECKPOINT kb")
        return {table: rows(kb, table) for table in tables(kb)}


def tables(kb):
    found = kb.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'kb' ORDER BY 1"
    ).fetchall()
    return [name for (name,) in found if name != "migration"]


def rows(kb, table):
    cursor = kb.execute(f'SELECT * FROM "{table}"')
    names = [one[0] for one in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _fill(kb, table):
    columns = kb.execute(
        "SELECT column_name, data_type FROM duckdb_columns()"
        " WHERE database_name = 'kb' AND table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    values = [SAID.get(f"{table}.{name}", SAID.get(name, BY_TYPE[kind])) for name, kind in columns]
    names = ", ".join(f'"{name}"' for name, _ in columns)
    marks = ", ".join("?" for _ in columns)
    kb.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)

"""The same rows twice: in a real store, and in Python in the shape they are published in.

A given is ``{"entries": [...], "statements": [...]}`` with the fields of the model. The Python rows
are made from it directly, never by way of the store, and leave out what the store withholds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hypatia_mem.jse.compiler import compile_query
from hypatia_mem.jse.matcher import Rows, select
from hypatia_mem.jse.rows import time_text, triple_text
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 1, 1)
PERSON = Author(Channel.CLI_PERSON)
WITHHELD = ("candidate", "rejected")
NOWHERE = "(nowhere)"


def fill(home, given, now=NOW):
    """Write a given into the store of a home.

    A row without a scope is one that an early version of the program let in: the gateway does not.
    """
    with open_store(home, write=True) as store:
        with store.transaction(PERSON, now=now) as txn:
            for row in given["entries"]:
                made = entry(row)
                txn.put_entry(made if made.scopes else replace(made, scopes=(NOWHERE,)))
            for row in given["statements"]:
                said = statement(row)
                txn.put_statement(said if said.scopes else replace(said, scopes=(NOWHERE,)))
        for table in ("entry", "statement"):
            store.execute(f"UPDATE {table} SET scopes = [] WHERE scopes = [?]", [NOWHERE])


def published(given):
    """Return the Python rows of a given."""
    entries = [row for row in given["entries"] if not withheld(row)]
    gone = {row["name"] for row in given["entries"] if withheld(row)}
    said = [
        row
        for row in given["statements"]
        if not withheld(row) and not {row["subject"], row["object"]} & gone
    ]
    return Rows([entry_row(row) for row in entries], [statement_row(row) for row in said])


def withheld(row):
    return row.get("trust") in WITHHELD or row.get("suppressed", False)


def moment(row, key):
    return datetime.fromisoformat(row[key]) if row.get(key) else None


def entry(row):
    return Entry(
        name=row["name"],
        content=row.get("content", ""),
        tags=tuple(row.get("tags", ())),
        scopes=tuple(row.get("scopes", ())),
        synonyms=tuple(row.get("synonyms", ())),
        figures=tuple(row.get("figures", ())),
        format=row.get("format", "markdown"),
        kind=row.get("kind", "knowledge"),
        trust=Trust(row.get("trust", "asserted")),
        suppressed=row.get("suppressed", False),
        turn=row.get("turn"),
        created_at=moment(row, "created_at"),
        valid_from=moment(row, "tr_start"),
        valid_to=moment(row, "tr_end"),
    )


def statement(row):
    return Statement(
        row["subject"],
        row["predicate"],
        row["object"],
        content=row.get("content", ""),
        scopes=tuple(row.get("scopes", ())),
        synonyms=row.get("synonyms"),
        trust=Trust(row.get("trust", "asserted")),
        created_at=moment(row, "created_at"),
        valid_from=moment(row, "tr_start"),
        valid_to=moment(row, "tr_end"),
    )


def entry_row(row):
    content = {
        "format": row.get("format", "markdown"),
        "data": row.get("content", ""),
        "tags": list(row.get("tags", ())),
        "synonyms": list(row.get("synonyms", ())) or None,
        "figures": list(row.get("figures", ())) or None,
        "scopes": list(row.get("scopes", ())) or None,
    }
    shaped = {"name": row["name"], "content": content, "turn": row.get("turn")}
    return shaped | times(row)


def statement_row(row):
    content = {
        "format": "markdown",
        "data": row.get("content", ""),
        "tags": [],
        "synonyms": row.get("synonyms") or None,
        "figures": None,
        "scopes": list(row.get("scopes", ())) or None,
    }
    parts = {part: row[part] for part in ("subject", "predicate", "object")}
    return {"triple": triple_text(list(parts.values())), **parts, "content": content} | times(row)


def times(row):
    keys = ("created_at", "tr_start", "tr_end")
    return {key: time_text(moment(row, key)) for key in keys if row.get(key)}


def by_sql(store, query, *, search=None, similar=None, scopes=None, deep=False):
    """Run a query on the store; ``deep``: with walks done before the query."""

    def read(sql, params):
        return store.execute(sql, params).fetchall()

    compiled = compile_query(query, search, similar, scopes=scopes, read=read if deep else None)
    assert compiled.sql.count("?") == len(compiled.params)
    return [compiled.shape(row) for row in store.run(compiled.sql, list(compiled.params))]


def by_matcher(rows, query, *, search=None, similar=None, scopes=None):
    return select(query, rows, search, similar, scopes=scopes)


def key(row):
    return row.get("name", row.get("triple"))

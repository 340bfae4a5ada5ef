"""What an export has to hold: no table and no column may be left behind unnoticed."""

from __future__ import annotations

from datetime import datetime

from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store import transfer
from hypatia_mem.store.connection import attached, open_store
from hypatia_mem.store.snapshot import copy_store
from hypatia_mem.store.writing import TABLES

# Derived, erasable, or about this store alone: earlier states and the ledger that numbers them.
LEFT_BEHIND = {
    "version", "statement_version", "image", "mutation", "touched", "cursor", "meta", "migration",
    "embedding", "job", "spend", "queued",
}  # fmt: skip
MADE_ANEW = {
    "entry": {"content_digest", "recorded_at", "version", "seq"},
    "statement": {"triple", "recorded_at", "seq"},
    "message": set(),
}


def test_every_table_is_exported_or_left_behind_on_purpose(home):
    """Whoever adds a table decides here."""
    with open_store(home, write=True) as store:
        found = {
            row["table_name"]
            for row in store.run(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
            )
        }

    assert found == set(transfer.TABLES) | LEFT_BEHIND
    assert not set(transfer.TABLES) & LEFT_BEHIND


def test_every_column_comes_in_again(home):
    """What an export holds of a row and what this store adds are together the whole row."""
    with open_store(home, write=True) as store:
        for table, made in MADE_ANEW.items():
            columns = {column.name for column in transfer.columns_of(store, table)}
            assert columns | made == set(TABLES[table]), table
            assert not columns & made


def test_rows_are_read_by_batches_as_the_gateway_wrote_them(home, tmp_path):
    """Each once, in whatever batches; times as text, everything else as JSON has it."""
    at = datetime(2026, 5, 1, 9, 30)
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.HOOK), now=at) as txn:
            txn.put_session(Session("s", project="app", tags=("t",), started_at=at))
            txn.put_messages("s", [Message("s", f"u{n}", "user", "x", at) for n in range(7)], "app")
            txn.put_entry(Entry("e", "日本", tags=("a",), scopes=("",), valid_from=at))
            txn.put_statement(Statement("a", "b", "c", synonyms={"object": ["C"]}, scopes=("",)))
    copy_store(home, tmp_path / "copy.duckdb")
    with attached(tmp_path / "copy.duckdb", write=False) as connection:
        few = list(transfer.read_rows(connection, "entry", batch=2))
        many = list(transfer.read_rows(connection, "entry"))
        [statement] = transfer.read_rows(connection, "statement")
        [session] = transfer.read_rows(connection, "session")

    assert few == many
    assert len(few) == 8
    entry = next(row for row in few if row["name"] == "e")
    assert (entry["content"], entry["scopes"], entry["valid_from"]) == (
        "日本",
        [""],
        "2026-05-01T09:30:00",
    )
    assert statement["synonyms"] == '{"object": ["C"]}'
    assert (session["tags"], "turns" in session) == (["t"], False)

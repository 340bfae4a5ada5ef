"""Every schema that was ever released opens with today's program, and nothing of it is missing."""

from __future__ import annotations

import hashlib

import pytest

from hypatia_mem.errors import NotFound, StoreError, StoreTooNew
from hypatia_mem.store.connection import FILE, attached, open_store
from hypatia_mem.store.history import entry_states
from hypatia_mem.store.migrations import MIGRATIONS
from hypatia_mem.store.schema import look
from tests.store.old_stores import THEN, WORDS, make_old, rows, tables

NAMES = tuple(name for name, _ in MIGRATIONS)
EVERY = range(1, len(MIGRATIONS) + 1)
# A released step is never edited: memories that have run it would differ from those that will.
RELEASED = {
    "m001_create_tables": "530e5a897eff9b8e",
    "m002_keep_whole_versions": "931c57b6b1dec7e1",
    "m003_keep_vectors": "48ef2d9f6fcd9c0b",
    "m004_find_the_withheld": "2eb3a563af6488e8",
    "m005_keep_verdicts": "65ee45e50d121f93",
    "m006_keep_jobs_and_spending": "2c4cba649db873a2",
    "m007_sketch_the_forgotten": "5dd324dbd259c76b",
    "m008_note_new_messages_once": "a0cdc0a71e8743a4",
    "m009_activate_by_words": "d9cc2b638b1fd9e5",
    "m010_share_turns_of_branches": "1ea32e5f930bd343",
    "m011_note_the_end_with_the_cursors": "5bf5f5bbaddd3727",
}


def digest(statements):
    said = "\0".join(" ".join(one.split()) for one in statements)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def test_no_released_step_was_edited():
    assert {name: digest(statements) for name, statements in MIGRATIONS} == RELEASED


def kept(before, after):
    """Tell whether each row of before is there, with every column that it had."""
    return all(any(row.items() <= one.items() for one in after) for row in before)


@pytest.mark.parametrize("count", EVERY, ids=NAMES)
def test_a_store_of_each_schema_opens_with_its_rows(bare_home, count):
    before = make_old(bare_home, count)
    with open_store(bare_home, write=False) as store:
        assert store.entry("a").content == WORDS
        assert store.statement("a", "is", "b").scopes == ("app",)
        assert [one.session_id for one in store.messages("s-1")] == ["s-1"]
        assert store.session("s-1") is not None
        assert store.cursors() == {"": 1}
        earlier, now = entry_states(store, "a")
        assert earlier.value.content == WORDS
        assert earlier.reconstructed == (count == 1)
        assert not now.reconstructed
    with attached(bare_home / FILE, write=False) as kb:
        assert [row["name"] for row in rows(kb, "migration")] == list(NAMES)
        after = {table: rows(kb, table) for table in tables(kb)}
    for table, found in before.items():
        if table == "touched" and count < 8:
            assert after[table] == []  # of a new message the ledger tells
        elif table == "meta" and count < 11:
            # The end of the ledger is noted as a cursor now.
            assert kept([row for row in found if row["key"] != "ledger_seq"], after[table])
            assert "ledger_seq" not in {row["key"] for row in after[table]}
            assert {"key": "ledger", "position": 1} in after["cursor"]
        elif table == "version" and count == 1:
            (one,) = after[table]
            assert (one["name"], one["content"], one["scopes"]) == ("a", WORDS, ["app"])
        elif count == 1 and table in ("entry", "statement"):
            assert kept(found, after[table])
            assert after[table][0]["seq"] == 1  # as its row in the ledger
        else:
            assert kept(found, after[table]), table


@pytest.mark.parametrize("count", EVERY, ids=NAMES)
def test_looking_says_what_waits_and_changes_nothing(bare_home, count):
    make_old(bare_home, count)
    bytes_ = (bare_home / FILE).read_bytes()
    found = look(bare_home)
    assert (found.applied, found.pending) == (NAMES[:count], NAMES[count:])
    assert found.name == NAMES[count - 1]
    assert (bare_home / FILE).read_bytes() == bytes_
    with open_store(bare_home, write=True):
        pass
    again = look(bare_home)
    assert (again.applied, again.pending, again.lost) == (NAMES, (), 0)
    assert again.unplaced == 0
    assert again.reconstructed == (1 if count == 1 else 0)


def test_what_cannot_be_rebuilt_is_counted_before_it_goes(bare_home):
    make_old(bare_home, 1)
    with attached(bare_home / FILE, write=True) as kb:
        kb.execute("INSERT INTO version VALUES ('gone', 1, 'x', [], ['app'], $1, $1, 'o1')", [THEN])
        kb.execute("UPDATE statement SET recorded_at = '2001-01-01'")
    found = look(bare_home)
    assert (found.reconstructed, found.lost, found.unplaced) == (1, 1, 1)
    with open_store(bare_home, write=True):
        pass
    assert look(bare_home).unplaced == 1


def test_what_is_written_today_is_never_called_reconstructed(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule("never mock", "a"))
    with kit.change() as txn:
        txn.update_entry("a", content="never mock the database")
    with kit.open() as store:
        assert [one.reconstructed for one in entry_states(store, "a")] == [False, False]
    found = look(kit.home)
    assert (found.pending, found.reconstructed, found.unplaced) == ((), 0, 0)


def test_without_a_store_there_is_nothing_to_look_at(bare_home):
    with pytest.raises(NotFound, match="no store"):
        look(bare_home)


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("write", [False, True])
def test_tables_without_a_note_of_their_schema_are_left_alone(bare_home, noted, write):
    with attached(bare_home / FILE, write=True) as kb:
        kb.execute("CREATE TABLE entry (mine INTEGER)")
        kb.execute("INSERT INTO entry VALUES (7)")
        if noted:
            kb.execute('CREATE TABLE migration (name VARCHAR PRIMARY KEY, "at" TIMESTAMP)')
    bytes_ = (bare_home / FILE).read_bytes()
    with pytest.raises(StoreError, match="no note of which schema") as refused:
        look(bare_home)
    assert "Nothing was changed" in refused.value.hint
    with pytest.raises(StoreError, match="no note of which"), open_store(bare_home, write=write):
        pass
    assert (bare_home / FILE).read_bytes() == bytes_


def test_a_newer_schema_is_refused(kit):
    with open_store(kit.home, write=True) as store:
        store.run("INSERT INTO migration VALUES ('m999_future', now()::TIMESTAMP)")
    with pytest.raises(StoreTooNew, match="m999_future"):
        look(kit.home)

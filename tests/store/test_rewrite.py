"""Deleted bytes stay in the engine's file until it is written anew; what is read is the same."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import StoreBusy
from hypatia_mem.model import Entry
from hypatia_mem.store import erasing, snapshot
from hypatia_mem.store.connection import FILE, open_store

WORDS = "the quick zanzibarquux jumps over it"


@pytest.fixture
def deleted(kit):
    """A store out of which a sentence was forgotten, and that still has its bytes."""
    with kit.change() as txn:
        txn.put_entry(Entry("gone", WORDS, scopes=("app",)))
        txn.put_entry(Entry("kept", "something else", scopes=("app",)))
    with kit.change() as txn:
        txn.delete_entry("gone", tombstone=True)
    return kit


def _holds(kit) -> bool:
    return WORDS.encode() in (kit.home / FILE).read_bytes()


def test_rewriting_leaves_the_rows_and_no_deleted_byte(deleted):
    assert _holds(deleted), "the engine has dropped it by itself: nothing would be shown here"
    before = (deleted.home / FILE).stat().st_ino
    made = snapshot.rewrite(deleted.home)
    assert not _holds(deleted)
    assert WORDS.encode() not in made.path.read_bytes()
    assert (deleted.home / FILE).stat().st_ino != before
    assert (deleted.home / FILE).stat().st_mode & 0o077 == 0
    with open_store(deleted.home, write=True) as store:
        assert store.entry("kept").content == "something else"
        assert store.verify_ledger() is None
        assert store.ledger_seq() == made.seq
    assert list(deleted.home.glob(f".{FILE}*")) == []


@pytest.mark.deep
def test_a_change_while_it_is_copied_is_not_lost(deleted, monkeypatch):
    """The copy never takes the place of a file that it was not made of."""
    real, changes = snapshot.pack, iter(["first", "second", "third", "fourth"])

    def packed(*arguments, **more):
        done = real(*arguments, **more)
        name = next(changes)
        if name != "third":
            with deleted.change() as txn:
                txn.put_entry(Entry(name, f"came in {name}", scopes=("app",)))
        return done

    monkeypatch.setattr(snapshot, "pack", packed)
    snapshot.rewrite(deleted.home)
    with deleted.open() as store:
        assert {one.name for one in store.entries(["first", "second"])} == {"first", "second"}
    assert not _holds(deleted)


def test_writers_that_never_pause_are_told_of(deleted, monkeypatch):
    real = snapshot.pack
    count = iter(range(100))

    def packed(*arguments, **more):
        done = real(*arguments, **more)
        with deleted.change() as txn:
            txn.put_entry(Entry(f"n-{next(count)}", "again", scopes=("app",)))
        return done

    monkeypatch.setattr(snapshot, "pack", packed)
    with pytest.raises(StoreBusy, match="again and again"):
        snapshot.rewrite(deleted.home)
    with deleted.open() as store:
        assert store.entry("n-2") is not None


def test_a_store_whose_log_cannot_be_read_loses_nothing_that_was_closed(deleted):
    """Newer than any snapshot: what the last clean close left is what is restored."""
    snapshot.make_snapshot(deleted.home)
    with deleted.change() as txn:
        txn.put_entry(Entry("later", "by hand, after the snapshot", scopes=("app",)))
    (deleted.home / f"{FILE}.wal").write_bytes(b"\x07garbage" * 500)
    kept = snapshot.restore(deleted.home)
    assert (kept / f"{FILE}.wal").exists()
    with deleted.open() as store:
        assert store.entry("later").content == "by hand, after the snapshot"


@pytest.mark.parametrize(
    ("piece", "tables"),
    [
        ("zanzibar", {}),
        ("something else", {"entry": 1}),
        ("kept", {"entry": 1, "touched": 1}),
    ],
)
def test_every_table_is_asked(deleted, piece, tables):
    with deleted.open() as store:
        assert erasing.rows_in(store.connection, [piece]) == tables

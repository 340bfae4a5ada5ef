"""Copies that are verified, and the way back from every kind of damage."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hypatia_mem.errors import StoreBusy, StoreCorrupt
from hypatia_mem.model import Entry
from hypatia_mem.store import snapshot
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.lease import lease

REPOSITORY = Path(__file__).parents[2]
WRITE_AND_DIE = """
import os, sys
sys.path.insert(0, sys.argv[2])
from datetime import datetime
from pathlib import Path
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store
home = Path(sys.argv[1])
with open_store(home, write=True) as store:
    with store.transaction(Author(Channel.WORKER), now=datetime(2026, 1, 1)) as txn:
        txn.put_entry(Entry("late", "acknowledged", scopes=("",)))
        txn.set_cursor("spool", 2)
    os._exit(9)
"""


@pytest.fixture
def filled(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(n, "words " * 50) for n in range(1, 300)], "app")
        txn.put_entry(Entry("early", "kept", scopes=("",)))
        txn.set_cursor("spool", 1)
    return kit


def die_after_a_commit(home):
    """Leave a log beside the file, as a killed writer does."""
    command = [sys.executable, "-c", WRITE_AND_DIE, str(home), str(REPOSITORY)]
    assert subprocess.run(command, check=False).returncode == 9
    assert (home / f"{FILE}.wal").stat().st_size > 0


def flip(path, at):
    data = bytearray(path.read_bytes())
    for place in range(at, at + 64):
        data[place] ^= 0xFF
    path.write_bytes(data)


def test_a_snapshot_says_what_the_store_says(filled):
    made = snapshot.make_snapshot(filled.home)
    assert made.counts["message"] == 299
    assert made.cursors == {"spool": 1}
    assert snapshot.newest_verified(filled.home) == made
    assert {path.stat().st_mode & 0o077 for path in (filled.home / "snapshots").iterdir()} == {0}
    left = {path.suffix for path in (filled.home / "snapshots").iterdir()}
    assert left == {".duckdb", ".json"}


@pytest.mark.deep
def test_the_newest_three_are_kept(filled):
    made = [snapshot.make_snapshot(filled.home).path for _ in range(5)]
    assert [one.path for one in snapshot.snapshots(filled.home)] == made[:1:-1]
    assert len(list((filled.home / "snapshots").iterdir())) == 6


def test_half_a_note_is_no_snapshot(filled):
    made = snapshot.make_snapshot(filled.home)
    note = made.path.with_suffix(".json")
    note.write_bytes(note.read_bytes()[:20])
    assert snapshot.newest_verified(filled.home) is None


def header(home):
    flip(home / FILE, 4096 + 8)
    flip(home / FILE, 8192 + 8)


def magic(home):
    flip(home / FILE, 0)


def truncated(home):
    data = (home / FILE).read_bytes()
    (home / FILE).write_bytes(data[: len(data) // 2])


def emptied(home):
    (home / FILE).write_bytes(b"")


def removed(home):
    (home / FILE).unlink()


@pytest.mark.deep
@pytest.mark.parametrize("damage", [header, magic, truncated, emptied, removed])
def test_a_damaged_store_is_told_and_restored(filled, damage):
    snapshot.make_snapshot(filled.home)
    with filled.change() as txn:
        txn.put_entry(Entry("after", "only in the spool now", scopes=("",)))
        txn.set_cursor("spool", 7)
    damage(filled.home)
    for write in (False, True):  # nobody begins anew over it
        with pytest.raises(StoreCorrupt), open_store(filled.home, write=write) as store:
            store.run("SELECT sum(length(content)) FROM entry")
    kept = snapshot.restore(filled.home)
    assert (kept / FILE).exists() is (damage is not removed)
    assert kept.stat().st_mode & 0o077 == 0
    with filled.open() as store:
        assert store.entry("early").content == "kept"
        assert store.entry("after") is None
        assert store.cursors() == {"spool": 1}  # so the spool is read again from there
        assert store.verify_ledger() is None
    assert (filled.home / FILE).stat().st_mode & 0o077 == 0


def test_an_unreadable_snapshot_is_passed_over(filled):
    first = snapshot.make_snapshot(filled.home)
    second = snapshot.make_snapshot(filled.home)
    whole = second.path.read_bytes()
    words = whole.index(b"words words")  # in a block that no count has to read
    flip(second.path, words)
    with snapshot.attached(second.path, write=False) as copy:
        assert copy.execute("SELECT count(*) FROM entry").fetchone() == (300,)
    removed(filled.home)
    snapshot.restore(filled.home)
    with filled.open() as store:
        assert store.ledger_seq() == first.seq
        assert {one.text for one in store.messages("s-1")} == {"words " * 50}
        assert store.counts()["messages"] == 299


@pytest.mark.deep
@pytest.mark.parametrize("had_snapshots", [False, True])
def test_with_nothing_usable_a_new_store_begins(filled, had_snapshots):
    if had_snapshots:
        truncate = snapshot.make_snapshot(filled.home).path
        truncate.write_bytes(truncate.read_bytes()[:9000])
    header(filled.home)
    kept = snapshot.restore(filled.home)
    assert (kept / FILE).exists()
    with open_store(filled.home, write=True) as store:
        assert store.cursors() == {}
        assert store.counts()["messages"] == 0
    assert snapshot.make_snapshot(filled.home).counts["message"] == 0


def test_what_was_acknowledged_before_a_kill_is_there(filled):
    die_after_a_commit(filled.home)
    for write in (False, True):
        with open_store(filled.home, write=write) as store:
            assert store.entry("late").content == "acknowledged"
            assert store.cursors() == {"spool": 2}
            assert store.verify_ledger() is None


def test_a_lost_log_takes_the_cursor_back_with_it(filled):
    die_after_a_commit(filled.home)
    (filled.home / f"{FILE}.wal").unlink()
    with filled.open() as store:
        assert store.entry("late") is None
        assert store.cursors() == {"spool": 1}
        assert store.verify_ledger() is None


def test_a_log_of_garbage_is_told_or_left_out_never_half_read(filled):
    snapshot.make_snapshot(filled.home)
    die_after_a_commit(filled.home)
    (filled.home / f"{FILE}.wal").write_bytes(b"\x07garbage" * 500)
    try:
        with filled.open() as store:
            late = store.entry("late")
    except StoreCorrupt:
        kept = snapshot.restore(filled.home)
        assert (kept / f"{FILE}.wal").exists()
        with filled.open() as store:
            late = store.entry("late")
    with filled.open() as store:
        assert late is None
        assert store.cursors() == {"spool": 1}
        assert store.entry("early").content == "kept"


@pytest.mark.deep
def test_a_log_without_its_store_does_no_harm(filled):
    snapshot.make_snapshot(filled.home)
    die_after_a_commit(filled.home)
    removed(filled.home)
    with pytest.raises(StoreCorrupt), filled.open():
        pass
    snapshot.restore(filled.home)
    with open_store(filled.home, write=True) as store:
        assert store.entry("early").content == "kept"


def test_a_copy_of_the_home_is_a_memory_of_its_own(filled, tmp_path):
    other = tmp_path / "copied"
    shutil.copytree(filled.home, other)
    with open_store(other, write=False) as store:
        assert store.counts()["messages"] == 299


def test_a_reader_at_work_does_not_keep_a_snapshot_waiting(filled):
    with lease(filled.home, write=False):
        with ThreadPoolExecutor() as pool:
            made = pool.submit(snapshot.make_snapshot, filled.home).result(timeout=60)
    assert made.counts["message"] == 299


def test_a_writer_at_work_does(filled):
    with ThreadPoolExecutor() as pool:
        with lease(filled.home, write=True):
            snap = pool.submit(snapshot.make_snapshot, filled.home)
            with pytest.raises(TimeoutError):
                snap.result(timeout=0.5)
            assert list((filled.home / "snapshots").iterdir()) == []
        assert snap.result(timeout=60).counts["message"] == 299


def test_a_foreign_program_that_writes_is_named_and_no_torn_copy_made(filled):
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(filled.home / FILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as foreign:
        foreign.stdout.readline()
        with pytest.raises(StoreBusy, match="other than hypatia-mem"):
            snapshot.make_snapshot(filled.home, deadline=0.2)
        foreign.communicate(b"\n")
    assert snapshot.snapshots(filled.home) == []
    assert snapshot.make_snapshot(filled.home).counts["message"] == 299


def test_what_a_killed_writer_left_in_the_log_is_in_the_snapshot(filled):
    die_after_a_commit(filled.home)
    assert snapshot.make_snapshot(filled.home).cursors == {"spool": 2}

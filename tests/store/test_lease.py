"""The lease and the open: who waits, who is refused, what is on the disk and for whom."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from hypatia_mem.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from hypatia_mem.model import Entry
from hypatia_mem.store import migrations
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.lease import lease

fcntl = pytest.importorskip("fcntl")
REPOSITORY = Path(__file__).parents[2]


@contextmanager
def held_elsewhere(home, mode="EX"):
    code = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600); "
        f"fcntl.flock(f, fcntl.LOCK_{mode}); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home / "store.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.stdin.close()


@pytest.mark.parametrize(
    ("held", "write", "refused"),
    [("EX", True, True), ("EX", False, True), ("SH", True, True), ("SH", False, False)],
)
def test_writers_exclude_everyone_readers_only_writers(home, held, write, refused):
    with held_elsewhere(home, held):
        start = time.monotonic()
        if refused:
            with pytest.raises(StoreBusy), lease(home, write=write, deadline=0.3):
                pass
            assert 0.2 < time.monotonic() - start < 5
        else:
            with lease(home, write=write, deadline=0.3):
                pass


def test_the_lease_is_had_as_soon_as_it_is_free(home):
    got = threading.Event()

    def wait():
        with lease(home, write=True, deadline=10):
            got.set()

    with held_elsewhere(home):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.wait(0.2)
    assert got.wait(5)
    waiting.join()


def test_opening_twice_in_one_thread_is_refused_at_once(kit, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(kit.home)
    with lease(kit.home, write=False):
        with lease(other, write=True):
            pass
        for same in (kit.home, link):
            with pytest.raises(RuntimeError), lease(same, write=False):
                pass
    with lease(kit.home, write=True, deadline=0):
        pass


def test_a_lock_file_taken_away_while_one_waits_is_not_trusted(home):
    states = []

    def wait():
        with lease(home, write=True, deadline=10):
            states.append((home / "store.lock").exists())

    with held_elsewhere(home):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        (home / "store.lock").unlink()
    waiting.join()
    assert states == [True]


def test_a_failure_inside_gives_the_lease_back(kit):
    with pytest.raises(ZeroDivisionError), kit.change():
        1 / 0  # noqa: B018
    with kit.open(deadline=0) as store:
        assert store.counts()["entries"] == 0


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_nobody_else_can_read_what_the_store_writes(kit):
    before = os.umask(0o000)
    try:
        with open_store(kit.home, write=True) as store:
            with store.transaction(kit.person, now=kit.now) as txn:
                txn.put_entry(Entry("a", "b", scopes=("",)))
            during = list(kit.home.glob("*"))
            assert any(path.name.endswith(".wal") for path in during)
            modes = {path.name: path.stat().st_mode & 0o077 for path in during}
        assert os.umask(0o000) == 0o000  # the caller's mask is back
    finally:
        os.umask(before)
    assert set(modes.values()) == {0}
    assert {path.stat().st_mode & 0o077 for path in kit.home.glob("*")} == {0}
    assert kit.home.stat().st_mode & 0o077 == 0


@pytest.mark.deep
def test_large_work_spills_into_the_home_not_into_the_project(kit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store(kit.home, write=True) as store:
        store.run("SET memory_limit = '64MB'")
        text = "md5(i::VARCHAR) || md5((i + 1)::VARCHAR)"
        store.run(f"CREATE TEMP TABLE big AS SELECT {text} AS t FROM range(2000000) r(i)")
        assert (kit.home / ".spill").exists()
    assert not (tmp_path / ".tmp").exists()
    assert not (kit.home / ".spill").exists()


@pytest.mark.parametrize("write", [False, True])
def test_a_store_that_does_not_exist_reads_as_an_empty_one(bare_home, write):
    home = bare_home
    with open_store(home, write=write) as store:
        assert set(store.counts().values()) == {0}
        assert store.sessions() == []
        assert store.rules(["app", ""]) == []
        assert store.verify_ledger() is None
    assert (home / FILE).exists() is write


def test_create_false_says_that_there_is_none(bare_home):
    with (
        pytest.raises(StoreError, match="no store"),
        open_store(bare_home, write=False, create=False),
    ):
        pass


@pytest.mark.parametrize(
    "name",
    ["it's", 'quo"te', "with space", "知识库", "a;DROP TABLE entry;--", "x=1#%41", "ends.duckdb"],
)
def test_a_home_of_any_name_opens(tmp_path, name):
    home = tmp_path / name
    for write in (True, False):
        with open_store(home, write=write) as store:
            assert store.counts()["entries"] == 0
    assert (home / FILE).exists()


def test_a_deep_home_opens(tmp_path):
    home = tmp_path
    while len(str(home)) < 900:
        home = home / ("d" * 100)
    with open_store(home, write=True) as store:
        assert store.counts()["entries"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("name", [b"caf\xe9", b"why?", b"?"])
def test_a_home_that_the_engine_cannot_open_is_refused_in_a_sentence(tmp_path, name):
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    with pytest.raises(StoreError, match=r"UTF-8|question mark"), open_store(home, write=True):
        pass


def test_a_relative_home_opens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store(Path("md:memory"), write=True):
        pass
    assert (tmp_path / "md:memory" / FILE).exists()


def test_a_newer_store_is_refused_and_left_alone(kit):
    with open_store(kit.home, write=True) as store:
        store.run("INSERT INTO migration VALUES ('m999_future', now()::TIMESTAMP)")
    for write in (True, False):
        with pytest.raises(StoreTooNew, match="m999_future"), open_store(kit.home, write=write):
            pass


def test_an_older_store_is_brought_up_and_keeps_its_rows(kit, monkeypatch):
    with kit.change() as txn:
        txn.put_entry(Entry("old", "kept", scopes=("",)))
    step = ("m002_test", ("CREATE TABLE added (a INTEGER)", "INSERT INTO added VALUES (7)"))
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    for _ in range(2):  # applied once
        with open_store(kit.home, write=True) as store:
            assert store.run("SELECT a FROM added") == [{"a": 7}]
            assert store.entry("old").content == "kept"


def test_a_step_that_fails_leaves_nothing(kit, monkeypatch):
    with kit.change() as txn:
        txn.put_entry(Entry("old", "kept", scopes=("",)))
    step = ("m002_test", ("CREATE TABLE added (a INTEGER)", "SELECT error('no')"))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
        with pytest.raises(StoreError), open_store(kit.home, write=True):
            pass
    with kit.open() as store:
        assert store.entry("old").content == "kept"
        assert not store.run("SELECT 1 FROM duckdb_tables() WHERE table_name = 'added'")


def test_the_engines_error_never_quotes_stored_text(kit):
    with pytest.raises(StoreError) as caught, open_store(kit.home, write=True) as store:
        store.run("SELECT ?::INTEGER", ["my secret words"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"not a database" * 400, b"\0" * 20_000])
def test_a_file_that_is_no_store_is_called_damaged(home, data):
    (home / FILE).write_bytes(data)
    with pytest.raises(StoreCorrupt, match="cannot be read"), open_store(home, write=False):
        pass
    assert (home / FILE).read_bytes() == data

"""An error is called damage only when the file is damaged: damage sets the store aside."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hypatia_mem.errors import StoreBusy, StoreCorrupt, StoreError
from hypatia_mem.model import Entry
from hypatia_mem.store import migrations, snapshot
from hypatia_mem.store.connection import FILE, open_store

REPOSITORY = Path(__file__).parents[2]
OUT_OF_ROOM = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from datetime import datetime
from pathlib import Path
from hypatia_mem.errors import StoreError
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import FILE, open_store
home, where = Path(sys.argv[1]), sys.argv[3]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = (home / FILE).stat().st_size
now = datetime(2026, 1, 1)
try:
    with open_store(home, write=True) as store:
        if where == "commit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        with store.transaction(Author(Channel.WORKER), now=now) as txn:
            for number in range(60):
                txn.put_entry(Entry(f"late-{number}", os.urandom(300).hex(), scopes=("",)))
        print("acknowledged", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
except StoreError as error:
    print(type(error).__name__, error)
"""
SHELL = """
import sys, time, duckdb
held = duckdb.connect(sys.argv[1])
print("open", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("where", ["commit", "checkpoint"])
def test_a_full_disk_is_no_damage_and_what_was_acknowledged_stays(kit, where):
    with kit.change() as txn:
        txn.put_entry(Entry("early", "kept", scopes=("",)))
    command = [sys.executable, "-c", OUT_OF_ROOM, str(kit.home), str(REPOSITORY), where]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "StoreError there is no space left" in said
    with open_store(kit.home, write=True) as store:
        assert store.entry("early").content == "kept"
        assert store.counts()["entries"] == (61 if "acknowledged" in said else 1)
        assert store.verify_ledger() is None


def test_a_store_whose_making_is_cut_short_is_not_there(bare_home, monkeypatch):
    """Nobody takes half of one for a damaged one; the next to come makes it."""
    wrong = ("m999_that_fails", ("SELECT error('cut short')",))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, wrong))
        with pytest.raises(StoreError), open_store(bare_home, write=True):
            pass
    assert [path.name for path in bare_home.iterdir() if FILE in path.name] == []
    with open_store(bare_home, write=False) as store:
        assert store.counts()["entries"] == 0
    with open_store(bare_home, write=True) as store:
        assert store.verify_ledger() is None
    assert [path.name for path in bare_home.iterdir() if FILE in path.name] == [FILE]


@pytest.mark.parametrize("word", ["corrupt", "checksum", "disk full", "version number"])
def test_a_persons_words_in_an_error_mean_nothing(kit, word):
    with kit.change() as txn:
        txn.put_entry(Entry("a", word, scopes=("",)))
    with pytest.raises(StoreError) as caught, kit.open() as store:
        store.run("SELECT ?::INTEGER", [word])
    assert type(caught.value) is StoreError
    assert word not in str(caught.value)


@pytest.mark.parametrize("name", ["corrupt", "checksum", "quota"])
def test_a_folders_name_means_nothing(tmp_path, name):
    home = tmp_path / name
    with open_store(home, write=True):
        pass
    (home / FILE).unlink()
    (home / FILE).mkdir()
    with pytest.raises(StoreError) as caught, open_store(home, write=False):
        pass
    assert not isinstance(caught.value, StoreCorrupt)


def test_a_restore_of_a_store_that_reads_whole_loses_nothing(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("early", "kept", scopes=("",)))
    snapshot.make_snapshot(kit.home)
    with kit.change() as txn:
        txn.put_entry(Entry("by hand", "never in a spool", scopes=("",)))
    kept = snapshot.restore(kit.home)
    assert (kept / FILE).exists()
    with open_store(kit.home, write=True) as store:
        assert store.entry("by hand").content == "never in a spool"
        assert store.verify_ledger() is None
    with pytest.raises(StoreError, match="Constraint"), open_store(kit.home, write=True) as store:
        store.execute("INSERT INTO entry SELECT * FROM entry LIMIT 1")  # a key is a key still


def shell(home, seconds):
    command = [sys.executable, "-c", SHELL, str(home / FILE), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    return process


def test_a_shell_that_has_the_store_open_is_waited_for_and_then_named(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("a", "b", scopes=("",)))
    other = shell(kit.home, 60)
    with pytest.raises(StoreBusy, match="other than hypatia-mem"), kit.open(deadline=0.2):
        pass
    threading.Timer(0.3, other.kill).start()
    began = time.monotonic()
    with kit.open(deadline=20) as store:
        assert store.entry("a").content == "b"
    assert time.monotonic() - began >= 0.2
    other.communicate()

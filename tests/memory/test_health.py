"""A memory that was damaged while nobody looked: found, kept as evidence, mended, told of.

What was acknowledged is there afterwards: the turns from the spool, and what was written by hand
after the last snapshot, wherever the damaged file still says it.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import hook, paths, spool
from hypatia_mem.cli import checks
from hypatia_mem.errors import StoreTooNew
from hypatia_mem.memory import curate, health
from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store import snapshot
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.search import SearchIndex

PERSON = Author(Channel.CLI_PERSON, "person")
NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def tell(home: Path, number: int) -> None:
    """Let the real hook keep a prompt and its answer."""
    environ = {"HYPATIA_MEM_HOME": str(home), "HOME": str(home.parent)}
    out = os.open(os.devnull, os.O_WRONLY)
    for event, key in (("UserPromptSubmit", "prompt"), ("Stop", "last_assistant_message")):
        body = {
            "session_id": "s-1",
            "cwd": str(home.parent),
            "hook_event_name": event,
            "prompt_id": f"p-{number}",
            key: f"{key} number {number} is about the pump",
        }
        hook.handle(json.dumps(body, separators=(",", ":")).encode(), environ, out)
    os.close(out)


def by_hand(home: Path, name: str, content: str) -> None:
    with curate.changing(home, PERSON, NOW + timedelta(minutes=1)) as (_, txn):
        txn.put_entry(Entry(name, content, scopes=("app",)), replace=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("health") / "home"
    paths.ensure_home(str(home))
    for number in range(4):
        tell(home, number)
    by_hand(home, "old", "before the snapshot")
    by_hand(home, "kept", "as it was")
    by_hand(home, "gone", "deleted later")
    with curate.changing(home, PERSON, NOW) as (_, txn):  # so that there are many blocks
        for n in range(400):
            txn.put_entry(Entry(f"filler-{n}", os.urandom(400).hex(), scopes=("app",)))
    assert worker.run(home, once=True) == 0
    snapshot.make_snapshot(home)
    tell(home, 4)
    by_hand(home, "kept", "as it was changed")
    by_hand(home, "new", "after the snapshot")
    with curate.changing(home, PERSON, NOW) as (_, txn):
        txn.put_statement(Statement("new", "belongs_to", "old", scopes=("app",)))
        txn.delete_entry("gone")
        txn.update_entry("old", pinned=True)
    assert worker.run(home, once=True) == 0
    for path in (home / "snapshots").iterdir():  # the one from before, not the worker's last
        if path.stem != sorted(p.stem for p in (home / "snapshots").iterdir())[0]:
            path.unlink()
    tell(home, 5)  # not drained yet
    return home


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "own"))


def _zero(path: Path, start: float, end: float) -> None:
    data = bytearray(path.read_bytes())
    first, last = int(len(data) * start), int(len(data) * end)
    data[first:last] = bytes(last - first)
    path.write_bytes(data)


_BLOCK = 16384
_TABLES = ("entry", "statement", "version", "mutation")
_READ = "SELECT bit_xor(hash(t)) FROM {} AS t"
_offset: list[int] = []  # of a block that only whoever reads the vectors meets


def flipped_in_the_middle(home: Path) -> None:
    """Damage a block of the vectors: the graph can be read, all of the file cannot."""
    path = home / FILE
    whole = path.read_bytes()
    tried = _offset or range(_BLOCK, len(whole) - _BLOCK, _BLOCK)
    for at in tried:
        data = bytearray(whole)
        data[at + 12_000 : at + 12_060] = bytes(
            one ^ 0xFF for one in data[at + 12_000 : at + 12_060]
        )
        path.write_bytes(data)
        there = all(_reads(path, _READ.format(table)) for table in _TABLES)
        if there and not _reads(path, _READ.format("embedding")):
            _offset[:] = [at]
            return
    raise AssertionError("no block holds vectors alone")


def _reads(path: Path, sql: str) -> bool:
    try:
        with snapshot.attached(path, write=False) as store:
            store.execute(sql).fetchall()
    except Exception:
        return False
    return True


def header_gone(home: Path) -> None:
    _zero(home / FILE, 0, 0.02)


def cut_short(home: Path) -> None:
    (home / FILE).write_bytes((home / FILE).read_bytes()[:20_000])


def emptied(home: Path) -> None:
    (home / FILE).write_bytes(b"")


def removed(home: Path) -> None:
    (home / FILE).unlink()


def log_of_garbage(home: Path) -> None:
    (home / f"{FILE}.wal").write_bytes(b"\x07garbage" * 500)


DAMAGES = [header_gone, cut_short, emptied, removed, log_of_garbage, flipped_in_the_middle]


def _turns(home: Path) -> list[str]:
    with open_store(home, write=False) as store:
        return [message.text for message in store.messages("s-1")]


def _told(number: int) -> list[str]:
    keys = ("prompt", "last_assistant_message")
    return [f"{key} number {number} is about the pump" for key in keys]


EVERY_TURN = [text for number in range(6) for text in _told(number)]


@pytest.mark.deep
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_mended_and_no_turn_is_lost(own: Path, damage) -> None:
    damage(own)
    broken = (own / FILE).read_bytes() if (own / FILE).exists() else None
    tell(own, 6)  # the session notices nothing
    assert worker.run(own, once=True) == 0
    assert sorted(_turns(own)) == sorted([*EVERY_TURN, *_told(6)])
    with open_store(own, write=False) as store:
        assert store.verify_ledger() is None
        assert store.entry("old").content == "before the snapshot"
    found = [one for one in health.findings(own) if one.what == "store"]
    if damage is not log_of_garbage or found:  # an engine may see for itself that it is no log
        kept = Path(found[0].kept)
        # Damage that only a later step meets is found after the new turn was written.
        late = damage is flipped_in_the_middle and (kept / FILE).stat().st_size > 0
        assert broken is None or late or (kept / FILE).read_bytes() == broken
        told = {check.name: check for check in checks.survey(own)}["mended"]
        assert told.state == "note"
        assert str(kept) in told.says


@pytest.mark.deep
@pytest.mark.parametrize("damage", [flipped_in_the_middle, log_of_garbage])
def test_what_was_written_by_hand_since_the_snapshot_is_saved(own: Path, damage) -> None:
    """Where the file can be read beside the damage; what was deleted since stays deleted."""
    damage(own)
    assert worker.run(own, once=True) == 0
    with open_store(own, write=False) as store:
        assert store.entry("kept").content == "as it was changed"
        assert store.entry("new").content == "after the snapshot"
        assert store.entry("gone") is None
        assert store.entry("old").pinned
        assert store.statement("new", "belongs_to", "old") is not None
        assert store.entry("filler-399") is not None
    assert "new" in {hit.name for hit in SearchIndex(own).search("after the snapshot")}


def test_a_torn_spool_tail_costs_itself_alone(own: Path) -> None:
    [path] = (own / "spool").glob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"v":1,"crc":"00000000","at":1,"torn')
    tell(own, 6)
    assert worker.run(own, once=True) == 0
    assert len(_turns(own)) == len(EVERY_TURN) + 2
    [torn] = (own / "spool" / "quarantine").iterdir()
    assert b"torn" in torn.read_bytes()
    assert {check.name: check.state for check in checks.survey(own)}["damage"] == "note"


@pytest.mark.deep
@pytest.mark.parametrize("what", ["meta", "segments"])
def test_an_unreadable_index_is_set_aside_and_made_again(own: Path, what: str) -> None:
    folder = own / "index"
    if what == "meta":
        (folder / "meta.json").write_bytes(b"{half")
    else:
        for path in folder.iterdir():
            if path.suffix in (".store", ".idx", ".term", ".fast", ".pos"):
                path.write_bytes(b"\x00" * 10)
    assert worker.run(own, once=True) == 0
    assert {hit.name for hit in SearchIndex(own).search("after the snapshot")} >= {"new"}
    [found] = [one for one in health.findings(own) if one.what == "index"]
    assert (Path(found.kept) / "index" / "meta.json").exists()


def test_an_index_that_is_in_order_is_left_alone(own: Path) -> None:
    before = (own / "index" / "meta.json").stat().st_ino
    assert [one for one in health.check(own) if one.what == "index"] == []
    assert (own / "index" / "meta.json").stat().st_ino == before


@pytest.mark.skipif(os.name == "nt", reason="no modes there")
def test_what_others_could_read_is_closed(own: Path) -> None:
    for path in (own, own / FILE, own / "key", own / "spool"):
        path.chmod(path.stat().st_mode | 0o055)
    [found] = health.check(own)
    assert found.what == "permissions"
    assert {path.stat().st_mode & 0o077 for path in (own, own / FILE, own / "spool")} == {0}
    assert health.check(own) == []


def test_a_newer_store_is_left_as_it_is_and_turns_go_on_being_kept(own: Path) -> None:
    with open_store(own, write=True) as store:
        store.execute("INSERT INTO migration VALUES ('m999_tomorrow', now()::TIMESTAMP)")
    before = (own / FILE).read_bytes()
    tell(own, 6)
    assert worker.run(own, once=True) == 1
    assert worker.run(own, once=True) == 1
    assert (own / FILE).read_bytes() == before
    with pytest.raises(StoreTooNew), open_store(own, write=False):
        pass
    assert [one.what for one in health.findings(own)].count("newer") == 1
    assert sum(1 for s in spool.segments(str(own)) for _ in spool.iter_records(s.path)) == 14
    assert {check.name: check.state for check in checks.survey(own)}["store"] == "problem"


@pytest.mark.deep
def test_a_lost_log_is_told_of(own: Path) -> None:
    """The index has seen what the store does not know: turns come again, and somebody says so."""
    older = snapshot.snapshots(own)[0].path
    shutil.copy(older, own / FILE)
    assert worker.run(own, once=True) == 0
    assert sorted(_turns(own)) == sorted(EVERY_TURN)
    assert [one.what for one in health.findings(own)] == ["log"]


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        (f".{FILE}.999999999", True),
        (f"snapshots/.x.duckdb.{2**22 + 5}.raw", True),
        (f"..{FILE}.999999999.999999999", True),  # a copy of what is to be put in the store's place
        (".erasing-999999999", True),
        (".key-999999999", True),
        (f".{FILE}.{os.getpid()}", False),
        ("snapshots/.recent", False),
    ],
    ids=[
        "dead",
        "dead snapshot",
        "copy",
        "order",
        "key",
        "living",
        "recent",
    ],  # a name with a process id is none
)
def test_half_made_files_of_the_dead_go_and_of_the_living_stay(
    own: Path, name: str, goes: bool
) -> None:
    (own / name).write_bytes(b"half")
    health.check(own)
    assert (own / name).exists() is not goes


def test_findings_are_bounded_and_half_a_file_is_none(home: Path) -> None:
    for number in range(60):
        health.note(home, health.Finding(f"2026-01-01T00:00:{number:02}+00:00", "index", "x"))
    found = health.findings(home)
    assert len(found) == 50
    assert found[0].at.endswith("59+00:00")
    assert health.findings(home, seconds=60) == []
    (home / health.FILE).write_text('[{"at"')
    assert health.findings(home) == []


def test_with_nothing_wrong_nothing_is_said(own: Path) -> None:
    assert health.check(own) == []
    assert {check.name: check.state for check in checks.survey(own)}["mended"] == "ok"

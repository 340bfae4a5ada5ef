"""Backups: verified, restorable here and elsewhere, and never a way back for what was forgotten."""

from __future__ import annotations

import errno
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.errors import Conflict, NotFound, Refused, StoreBusy, StoreError, UsageError
from hypatia_mem.memory import backup, curate
from hypatia_mem.memory.sharing import archive
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store import snapshot
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex

PERSON = Author(Channel.CLI_PERSON, "person")
NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)


class World:
    """A memory with three entries, a kept file and a first backup."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = NOW

    def at(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def put(self, name: str, content: str) -> None:
        with curate.changing(self.home, PERSON, self.at()) as (_, txn):
            txn.put_entry(Entry(name, content, scopes=("app",)), replace=True)

    def forget(self, name: str) -> None:
        curate.forget(self.home, "", scope="app", ids=[name], author=PERSON, now=self.at())

    def contents(self, home: Path | None = None) -> dict[str, str]:
        with open_store(home or self.home, write=False) as store:
            found = store.run("SELECT name, content FROM entry WHERE kind = 'knowledge'")
            assert store.verify_ledger() is None
        return {row["name"]: row["content"] for row in found}

    def restore(self, name: str) -> backup.Restored:
        one = backup.find(self.home, name)
        return backup.restore(self.home, one, author=PERSON, now=self.at())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = tmp_path_factory.mktemp("backup") / "home"
    paths.ensure_home(str(home))
    world = World(home)
    world.put("pump", "the red pump starts first")
    world.put("valve", "the blue valve stays shut")
    world.put("motor", "the motor runs hot")
    kept = home.parent / "plan.txt"
    kept.write_text("a plan of the plant")
    archive.store_file(home, kept, scopes=("app",), author=PERSON, now=world.at())
    backup.create(home, now=world.at(), reason="the first")
    return world


@pytest.fixture
def own(made: World, tmp_path: Path) -> World:
    shutil.copytree(made.home, tmp_path / "own")
    world = World(tmp_path / "own")
    world.now = made.now
    return world


def test_a_backup_is_whole_private_and_listed(made: World) -> None:
    [one] = backup.backups(made.home)
    assert one.reason == "the first"
    assert backup.verify(made.home, one) == []
    assert {"memory.duckdb", "key", "archive/plan.txt"} <= set(one.files)
    folder = [one.path, *one.path.rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in folder} == {0}
    assert backup.find(made.home, "latest") == backup.find(made.home, one.id[:10]) == one


@pytest.mark.deep
def test_going_back_keeps_the_present_and_going_forth_again_is_the_original(own: World) -> None:
    own.put("pump", "the green pump starts first")
    own.put("gauge", "the gauge is new")
    present = own.contents()
    done = own.restore("latest")
    assert own.contents()["pump"] == "the red pump starts first"
    assert "gauge" not in own.contents()
    assert [hit.name for hit in SearchIndex(own.home).search("red pump")][:1] == ["pump"]
    assert SearchIndex(own.home).search("gauge") == []
    assert done.saved is not None
    own.restore(done.saved.id)
    assert own.contents() == present
    with open_store(own.home, write=False) as store:
        assert store.ledger(limit=1)[0]["verb"] == "restore operation"


@pytest.mark.deep
def test_what_was_forgotten_since_is_not_brought_back(own: World) -> None:
    """Not a row, not a byte, not by a second restore; its neighbour comes back."""
    own.put("valve", "the blue valve was moved")
    own.forget("pump")
    done = own.restore("latest")
    assert done.forgotten
    assert own.contents()["valve"] == "the blue valve stays shut"
    assert "pump" not in own.contents()
    assert b"red pump starts" not in (own.home / paths.STORE).read_bytes()
    with curate.changing(own.home, Author(Channel.CLI_AGENT), own.at()) as (_, txn):
        again = Entry("other", "the red pump starts first", scopes=("app",))
        assert txn.put_entry(again).verb == "refused"


def test_a_scratch_home_is_a_memory_of_its_own(own: World, tmp_path: Path) -> None:
    own.forget("motor")
    before = own.contents()
    done = backup.restore_into(own.home, backup.find(own.home, "latest"), tmp_path / "scratch")
    assert done.forgotten
    assert set(own.contents(done.home)) == {"pump", "valve", "plan.txt"}
    assert (done.home / "archive" / "plan.txt").read_text() == "a plan of the plant"
    assert own.contents() == before
    with pytest.raises(Conflict, match="not empty"):
        backup.restore_into(own.home, backup.find(own.home, "latest"), tmp_path / "scratch")


def test_a_kept_file_comes_back_with_its_entry(own: World) -> None:
    with curate.changing(own.home, PERSON, own.at()) as (_, txn):
        txn.delete_entry("plan.txt")
    archive.path_of(own.home, "plan.txt").unlink(missing_ok=True)
    own.restore("latest")
    assert archive.path_of(own.home, "plan.txt").read_text() == "a plan of the plant"


def test_a_store_that_cannot_be_read_is_set_aside_not_thrown_away(own: World) -> None:
    damaged = (own.home / paths.STORE).read_bytes()[:9000]
    (own.home / paths.STORE).write_bytes(damaged)
    done = own.restore("latest")
    assert done.saved is None
    assert done.kept is not None
    assert (done.kept / paths.STORE).read_bytes() == damaged
    assert own.contents()["motor"] == "the motor runs hot"


@pytest.mark.deep
def test_a_snapshot_of_the_worker_can_be_gone_back_to(own: World) -> None:
    one = snapshot.make_snapshot(own.home)
    own.put("motor", "the motor runs cold")
    assert [b.automatic for b in backup.backups(own.home, automatic=True)].count(True) == 1
    own.restore(one.path.stem)
    assert own.contents()["motor"] == "the motor runs hot"


@pytest.mark.parametrize("what", ["store", "key", "kept file", "manifest", "missing"])
def test_a_damaged_backup_is_refused_and_nothing_changed(own: World, what: str) -> None:
    [one] = backup.backups(own.home)
    target = {
        "store": one.store,
        "key": one.path / "key",
        "kept file": one.path / "archive" / "plan.txt",
        "manifest": one.path / backup.MANIFEST,
        "missing": one.store,
    }[what]
    if what == "missing":
        target.unlink()
    else:
        data = bytearray(target.read_bytes())
        data[len(data) // 2] ^= 0xFF
        target.write_bytes(data if what != "manifest" else data[: len(data) // 2])
    before = own.contents()
    with pytest.raises((Refused, NotFound)):
        own.restore(one.id)
    assert own.contents() == before


def test_another_memorys_backup_is_refused_here_and_fine_elsewhere(
    own: World, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    paths.ensure_home(str(other))
    World(other).put("pump", "another plant")
    one = backup.find(other, str(backup.backups(own.home)[0].path))
    with pytest.raises(Refused, match="another memory"):
        backup.restore(other, one, author=PERSON, now=own.at())
    assert World(other).contents() == {"pump": "another plant"}
    into = backup.restore_into(other, one, tmp_path / "look")
    assert World(other).contents(into.home)["pump"] == "the red pump starts first"


def test_pruning_keeps_the_newest_whole_one(own: World) -> None:
    ids = [backup.create(own.home, now=own.at()).id for _ in range(3)]
    newest = backup.find(own.home, ids[-1])
    newest.store.write_bytes(b"damaged")
    would = [one.id for one in backup.prune(own.home, keep=1, dry_run=True)]
    gone = [one.id for one in backup.prune(own.home, keep=1)]
    assert gone == would
    assert [one.id for one in backup.backups(own.home)] == [ids[-1], ids[-2]]
    with pytest.raises(UsageError):
        backup.prune(own.home, keep=0)


@pytest.mark.parametrize("name", ["", "19", "nothing", "../.."])
def test_a_backup_that_is_not_there_is_not_found(made: World, name: str) -> None:
    with pytest.raises(NotFound):
        backup.find(made.home, name)


def test_without_room_nothing_is_left_behind(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = backup.backups(own.home)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(OSError, match="No space"):
        backup.create(own.home, now=own.at())
    monkeypatch.undo()
    assert backup.backups(own.home) == before
    assert [path for path in (own.home / backup.FOLDER).iterdir() if path.name[:1] == "."] == []


@pytest.mark.deep
def test_without_room_after_the_exchange_it_says_so_and_where_the_present_is(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.put("late", "said after the backup")

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as small:
        small.setattr(backup, "_settle", full)
        with pytest.raises(StoreError, match=r"in its place.*No space left") as told:
            own.restore("latest")
    assert "late" not in own.contents()
    present = backup.find(own.home, "latest").id
    assert present in told.value.message
    own.restore(present)
    assert "late" in own.contents()


def test_a_revised_backup_is_as_whole_as_before(own: World) -> None:
    [one] = backup.backups(own.home)

    def change(home: Path) -> None:
        with open_store(home, write=True) as store, store.transaction(PERSON, now=own.at()) as txn:
            txn.delete_entry("pump", tombstone=True)

    after = backup.revise(own.home, one, change)
    assert (after.id, after.made_at, after.reason) == (one.id, one.made_at, one.reason)
    assert backup.verify(own.home, after) == []
    assert b"red pump" not in after.store.read_bytes()
    assert not one.store.exists()
    assert (after.path / "archive" / "plan.txt").exists()


@pytest.mark.deep
def test_what_is_stored_while_the_present_is_kept_is_kept_too(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing falls between the backup of the present and the exchange."""
    first = backup.backups(own.home)[-1].id
    real = backup._created
    late = iter(["late", "later"])

    def slowly(home: Path, **options: object) -> object:
        made = real(home, **options)
        for name in late:  # somebody else's write, after the copy and before the exchange
            own.put(name, f"the words of {name}")
            break
        return made

    monkeypatch.setattr(backup, "_created", slowly)
    before = len(backup.backups(own.home))
    done = own.restore(first)
    assert done.saved is not None
    assert "late" not in own.contents()
    monkeypatch.setattr(backup, "_created", real)
    own.restore(done.saved.id)
    assert {"late", "later"} <= set(own.contents())
    assert len(backup.backups(own.home)) == before + 2  # one for each restore, none half way


@pytest.mark.deep
def test_a_restore_gives_up_when_writers_never_pause(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = backup.backups(own.home)[-1].id
    real = backup._created
    count = iter(range(100))

    def never(home: Path, **options: object) -> object:
        made = real(home, **options)
        own.put(f"late-{next(count)}", "words")
        return made

    monkeypatch.setattr(backup, "_created", never)
    before = own.contents()
    with pytest.raises(StoreBusy, match="nothing was changed"):
        own.restore(first)
    after = own.contents()
    assert set(before) < set(after)
    assert len([one for one in backup.backups(own.home) if one.reason]) <= 1

"""Verified copies of the store, and the way back from a damaged one.

Under the lease, and only shared, the file is copied byte for byte; all the rest happens without it.
That copy is copied again with ``COPY FROM DATABASE``, which leaves dead space and deleted bytes
behind, and the second copy is read to its end and compared count by count and by the ledger's end;
only then does it get its name and its note (``.json`` beside it). Spool segments may be removed
once a verified snapshot's cursors have passed them: until then they are the second copy of every
turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hypatia_mem.errors import StoreBusy, StoreCorrupt, StoreError
from hypatia_mem.store import seal
from hypatia_mem.store.connection import FILE, attached, copy_database, open_store, store_error
from hypatia_mem.store.lease import lease

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "Mark",
    "Snapshot",
    "copy_store",
    "make_snapshot",
    "mark_of",
    "newest_verified",
    "pack",
    "remove_older",
    "restore",
    "rewrite",
    "snapshots",
    "sync_folder",
    "verified_counts",
]

KEEP = 3
_TRIES = 3
Mark: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A verified copy: where, when, to which ledger sequence, with how many rows, read how far."""

    path: Path
    made_at: datetime
    seq: int
    counts: dict[str, int]
    cursors: dict[str, int]


def make_snapshot(home: Path, *, deadline: float = 10.0) -> Snapshot:
    """Copy the store, verify the copy, keep the newest three; raises what the store raises.

    ``deadline`` is how many seconds to wait for the lease.

    Raises StoreError when the copy does not say what the store says; it is thrown away then.
    """
    snapshot, _ = _made(home, deadline)
    remove_older(home, KEEP)
    return snapshot


def _made(home: Path, deadline: float) -> tuple[Snapshot, Mark]:
    made = datetime.now(UTC).replace(tzinfo=None)
    final = home / "snapshots" / f"{made:%Y%m%dT%H%M%S%f}.duckdb"
    snapshot, mark = pack(home, final, made, deadline)
    _write_note(snapshot)
    return snapshot, mark


def pack(
    home: Path, final: Path, made: datetime, deadline: float = 10.0, *, as_it_is: bool = False
) -> tuple[Snapshot, Mark]:
    """Put a verified copy of the store at ``final``, without a note; and by what it was a copy of.

    The copy holds no dead space and no deleted bytes. ``as_it_is``: a store of an earlier schema
    is copied in that schema. Raises what ``make_snapshot`` raises.
    """
    folder = final.parent
    temporary = folder / f".{final.name}.{os.getpid()}"
    raw = folder / f"{temporary.name}.raw"
    umask = os.umask(0o077)
    try:
        mark = copy_store(home, raw, deadline, as_it_is=as_it_is)
        snapshot = _packed(home, raw, temporary, final, made)
        _sync(temporary)
        temporary.replace(final)
    finally:
        os.umask(umask)
        for left in folder.glob(f"{temporary.name}*"):
            left.unlink(missing_ok=True)
    return snapshot, mark


def remove_older(home: Path, keep: int) -> int:
    """Remove all but the newest ``keep`` snapshots; return how many went."""
    old = snapshots(home)[keep:]
    for one in old:
        _note(one.path).unlink(missing_ok=True)
        one.path.unlink(missing_ok=True)
    return len(old)


def rewrite(home: Path, *, deadline: float = 10.0) -> Snapshot:
    """Put a copy without a deleted byte in the store's place; return the snapshot that it is of.

    The copy is made without keeping anybody waiting and takes the place only of the very file it
    was made of, under the lease: a change meanwhile means another try. A kill at any instant leaves
    the one file or the other, both whole. Raises StoreBusy when writers never pause, and what
    ``make_snapshot`` raises; the store is as it was then.
    """
    temporary = home / f".{FILE}.{os.getpid()}"
    try:
        for _ in range(_TRIES):
            snapshot, mark = _made(home, deadline)
            _copy(snapshot.path, temporary)
            with lease(home, write=True, deadline=deadline):
                if mark_of(home) == mark:
                    temporary.replace(home / FILE)
                    sync_folder(home)
                    return snapshot
    finally:
        temporary.unlink(missing_ok=True)
    raise StoreBusy(
        "the store was written again and again while it was copied",
        hint="Try again when no session is busy.",
    )


def mark_of(home: Path) -> Mark | None:
    """Return what tells a state of the store's file from every other; None where there is none.

    A log makes it another state.
    """
    try:
        found = (home / FILE).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, len(_logs(home))


def copy_store(home: Path, target: Path, deadline: float = 10.0, *, as_it_is: bool = False) -> Mark:
    """Copy the store's file; readers are not disturbed, a writer waits as long as the copy takes.

    Never called by a process that has the store attached: closing the file would drop its lock.
    ``as_it_is``: of a store that is there, whatever schema it is on. Returns what it was a copy of.
    """
    if not as_it_is:
        # Makes the first one, plays back what a killed writer left, finds a foreign program in it.
        write = not (home / FILE).exists() or bool(_logs(home))
        with open_store(home, write=write, deadline=deadline):
            pass
    with lease(home, write=False, deadline=deadline):
        mark = mark_of(home)
        assert mark is not None
        _copy(home / FILE, target, durable=False)
        for log in _logs(home):  # another writer was killed just now
            _copy(log, target.with_name(target.name + log.name.removeprefix(FILE)), durable=False)
    return mark


def _logs(home: Path) -> list[Path]:
    return [path for path in home.glob(FILE + ".*") if not path.is_dir()]


def _packed(home: Path, raw: Path, target: Path, final: Path, made: datetime) -> Snapshot:
    """Copy row by row from ``raw`` to ``target``, read that to its end, compare the two."""
    import duckdb

    try:
        with attached(raw, write=True) as store:  # for writing: a log beside it is played back
            copy_database(store, target)
            counts, seq, cursors = _counts(store), _end(store), _cursors(store)
            noted = _noted(store)
        raw.unlink()
        with attached(target, write=False) as copy:
            _read_all(copy)
            same = (counts, seq) == (_counts(copy), _end(copy)) and seq == noted
    except duckdb.Error as error:
        said = store_error(error, home)
        if isinstance(said, StoreCorrupt):  # of the copy: whoever opens the store says what that is
            raise StoreError("a copy of the store cannot be read: no snapshot was made") from error
        raise said from error
    if not same:
        raise StoreError("a snapshot did not hold what the store holds; it was thrown away")
    return Snapshot(final, made, seq, counts, cursors)


def snapshots(home: Path) -> list[Snapshot]:
    """Return the verified snapshots, newest first."""
    found: list[Snapshot] = []
    for note in (home / "snapshots").glob("*.json"):
        try:
            said = json.loads(note.read_text("utf-8"))
            path = note.with_suffix(".duckdb")
            if path.exists():
                made = datetime.fromisoformat(said["made_at"])
                found.append(
                    Snapshot(path, made, int(said["seq"]), said["counts"], said["cursors"])
                )
        except (OSError, ValueError, KeyError, TypeError):
            continue  # half a note is no snapshot
    return sorted(found, key=lambda snapshot: snapshot.path.name, reverse=True)


def newest_verified(home: Path) -> Snapshot | None:
    """Return the newest verified snapshot, None when there is none."""
    found = snapshots(home)
    return found[0] if found else None


def restore(home: Path) -> Path:
    """Set a damaged store aside and put the best that can be had in its place.

    That is a copy of the store itself, if every row of it can still be read (a damaged key index
    or a false alarm costs nothing then); else of the store as it was before a log that cannot be
    read (nobody was told that what is in a log alone is kept); else the newest readable snapshot;
    else nothing. Returns
    the folder that keeps the damaged files. A snapshot's cursors are its own, so the next drain
    reads every later turn again from the retained spool. A kill in here leaves a store that is
    damaged still, or missing beside its snapshots: both are restored at the next try.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    kept = home / "quarantine" / stamp
    with lease(home, write=True):
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = home / f".{FILE}.{os.getpid()}"
        try:
            usable = (
                _salvaged(home / FILE, temporary)
                or _salvaged_without_log(home, temporary)
                or any(_copied_whole(snapshot, temporary) for snapshot in snapshots(home))
            )
            for path in [
                *home.glob(FILE + ".*"),
                home / FILE,
            ]:  # logs first: never beside a new file
                with contextlib.suppress(FileNotFoundError):
                    path.replace(kept / path.name)
            seal.drop(home)
            if usable:
                temporary.replace(home / FILE)
            else:  # with them in place the missing store would be taken for one to restore
                for path in (home / "snapshots").iterdir():
                    path.replace(kept / path.name)
        finally:
            for left in home.glob(f"{temporary.name}*"):
                left.unlink(missing_ok=True)
    # The index may know what the restored store does not: it is derived, let it be made again.
    with contextlib.suppress(OSError):
        (home / "index" / "seq").unlink(missing_ok=True)
    return kept


def _salvaged(damaged: Path, target: Path) -> bool:
    """Copy a store row by row, keys made anew; tell whether all of it, to the ledger's end, came.

    Blocks carry checksums, so what can be read is what was written; two rows under one key, as a
    wrong log leaves them, end the copy.
    """
    import duckdb

    if not damaged.exists():
        return False
    try:
        with attached(damaged, write=False) as store:
            copy_database(store, target)
            wanted = _counts(store)
            ends = _end(store), _noted(store)
        with attached(target, write=False) as copy:
            _read_all(copy)
            whole = _counts(copy) == wanted and ends[0] == ends[1]
    except (OSError, duckdb.Error):
        whole = False
    if not whole:
        for left in target.parent.glob(f"{target.name}*"):
            left.unlink(missing_ok=True)
    else:
        _sync(target)
    return whole


def _salvaged_without_log(home: Path, target: Path) -> bool:
    """Copy the store as the last clean close left it; False when there is no log to leave out."""
    if not _logs(home) or not (home / FILE).exists():
        return False
    alone = target.with_name(f"{target.name}.alone")
    with contextlib.suppress(OSError):
        _copy(home / FILE, alone, durable=False)
        return _salvaged(alone, target)
    return False


def verified_counts(file: Path) -> dict[str, int]:
    """Return a copy's rows by table after reading it to its end; raises StoreCorrupt."""
    import duckdb

    try:
        with attached(file, write=False) as copy:
            _read_all(copy)
            return _counts(copy)
    except duckdb.Error as error:
        raise StoreCorrupt(f"the copy cannot be read: {file} ({type(error).__name__})") from error


def _copied_whole(snapshot: Snapshot, target: Path) -> bool:
    """Copy a snapshot; tell whether the copy can be read to its end and says what it should."""
    import duckdb

    try:
        _copy(snapshot.path, target)
        with attached(target, write=False) as copy:
            _read_all(copy)
            return _counts(copy).items() >= snapshot.counts.items()
    except (OSError, duckdb.Error):
        return False


def _read_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Read every block of every table: a count alone leaves most of them untouched."""
    for table in _tables(connection):
        connection.execute(f'SELECT bit_xor(hash(t)) FROM "{table}" AS t').fetchone()  # noqa: S608


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    counts: dict[str, int] = {}
    for table in _tables(connection):
        row = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608
        counts[table] = int(row[0]) if row else 0
    return counts


def _end(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute("SELECT coalesce(max(seq), 0) FROM mutation").fetchone()
    return int(row[0]) if row else 0


def _noted(connection: duckdb.DuckDBPyConnection) -> int:
    row = connection.execute(
        "SELECT max(seq) FROM (SELECT position AS seq FROM cursor WHERE key = 'ledger'"
        " UNION ALL SELECT value::BIGINT FROM meta WHERE key = 'ledger_seq')"  # before m011
    ).fetchone()
    return int(row[0] or 0) if row else 0


def _cursors(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    found = connection.execute("SELECT key, position FROM cursor WHERE key <> 'ledger'").fetchall()
    return {str(key): int(position) for key, position in found}


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        " AND regexp_full_match(table_name, '[a-z_]+') ORDER BY 1"
    ).fetchall()
    return [str(name) for (name,) in found]


def _note(path: Path) -> Path:
    return path.with_suffix(".json")


def _write_note(snapshot: Snapshot) -> None:
    said = {
        "made_at": snapshot.made_at.isoformat(),
        "seq": snapshot.seq,
        "counts": snapshot.counts,
        "cursors": snapshot.cursors,
        "verified": True,
    }
    note = _note(snapshot.path)
    temporary = note.with_suffix(f".{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(said, out)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(note)


def _copy(source: Path, target: Path, *, durable: bool = True) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with source.open("rb") as file, os.fdopen(fd, "wb") as out:
        shutil.copyfileobj(file, out, 1 << 20)
        if durable:
            out.flush()
            os.fsync(out.fileno())


def sync_folder(folder: Path) -> None:
    """Make a renaming in a folder outlast a loss of power, where the system knows how."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""Backups: whole copies of a memory that a person makes, keeps, checks and goes back to.

A backup is a folder below ``backups``: the store packed row by row (no deleted byte is in it), the
kept files, the keys, what was forgotten until then, and ``manifest.json`` with the size and digest
of every file. It appears under its name when it is complete and verified.

Going back first makes a backup of the present, and what was forgotten or erased *after* the backup
was made is forgotten again before anybody reads the restored store, which is then written anew
without those bytes. The spool is not touched: turns captured since are taken in again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import paths
from hypatia_mem.errors import (
    Conflict,
    HypatiaError,
    NotFound,
    Refused,
    StoreBusy,
    StoreCorrupt,
    StoreError,
)

if TYPE_CHECKING:
    from hypatia_mem.model import Author
    from hypatia_mem.store import snapshot

__all__ = [
    "FOLDER",
    "Backup",
    "Restored",
    "backups",
    "create",
    "find",
    "prune",
    "restore",
    "restore_into",
    "revise",
    "verify",
]

FOLDER = "backups"
FORMAT = "hypatia-mem backup"
VERSION = 1
MANIFEST = "manifest.json"
KEEP = 5
_CHUNK = 1 << 20
_TRIES = 5
_SECRETS = ("key", "keys", "forgotten")


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: its folder, when and why it was made, to which ledger row, with how many rows.

    ``automatic`` ones are the worker's snapshots of the store alone; they come and go.
    """

    id: str
    path: Path
    store: Path
    made_at: datetime
    reason: str
    seq: int
    counts: Mapping[str, int]
    files: Mapping[str, tuple[int, str]]  # name -> size in bytes, SHA-256
    key_id: str
    automatic: bool = False

    @property
    def size(self) -> int:
        """Return its size in bytes."""
        return sum(size for size, _ in self.files.values())


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: which backup, where the present was kept, what was forgotten again."""

    backup: Backup
    saved: Backup | None
    kept: Path | None
    forgotten: bool
    home: Path


def create(home: Path, *, now: datetime, reason: str = "", as_it_is: bool = False) -> Backup:
    """Make a verified backup of a home. Raises what the store raises, OSError without room.

    ``as_it_is``: a store of an earlier schema is kept in that schema; else it is brought up first.
    Nothing is left behind when it fails.
    """
    return _created(home, now=now, reason=reason, as_it_is=as_it_is)[0]


def _created(
    home: Path, *, now: datetime, reason: str, as_it_is: bool = False
) -> tuple[Backup, snapshot.Mark]:
    """Make a backup; return by what the state of the store is known that is in it, too."""
    from hypatia_mem.store import snapshot

    _refuse_empty(home)
    base = home / FOLDER
    base.mkdir(mode=0o700, exist_ok=True)
    id_ = _free_id(base, now)
    temporary = base / f".{id_}.{os.getpid()}"
    temporary.mkdir(mode=0o700)
    try:
        packed, mark = snapshot.pack(home, temporary / paths.STORE, now, as_it_is=as_it_is)
        _copy_secrets(home, temporary)
        _copy_tree(home / "archive", temporary / "archive")
        manifest = _manifest(temporary, now, reason, packed.seq, packed.counts, _key_id(home))
        _write(temporary / MANIFEST, json.dumps(manifest, indent=1).encode())
        temporary.rename(base / id_)
        snapshot.sync_folder(base)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _read(base / id_), mark


def backups(home: Path, *, automatic: bool = False) -> list[Backup]:
    """Return the backups of a home, newest first; ``automatic``: the worker's snapshots too."""
    found: list[Backup] = []
    for path in _folders(home / FOLDER):
        with contextlib.suppress(HypatiaError):
            found.append(_read(path))
    if automatic:
        from hypatia_mem.store import snapshot

        found += [_of_snapshot(one) for one in snapshot.snapshots(home)]
    return sorted(found, key=lambda one: (one.made_at, one.id), reverse=True)


def find(home: Path, name: str) -> Backup:
    """Return a backup by its id, the beginning of it, ``latest``, or the path of its folder.

    Raises NotFound, Conflict when several begin so, Refused when its manifest cannot be read.
    """
    known = backups(home, automatic=True)
    own = [one for one in known if not one.automatic]
    if name == "latest" and own:
        return own[0]
    exact = [one for one in known if one.id == name]
    begun = exact or [one for one in known if name and one.id.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise Conflict(
            f"several backups begin with {name!r}: {', '.join(one.id for one in begun[:5])}",
            hint="Name it in full: hypatia-mem backup list",
        )
    folder = Path(name).expanduser()
    if (folder / MANIFEST).is_file():
        return _read(folder.absolute())
    raise NotFound(
        f"there is no backup {name[:120]!r}",
        hint="See what there is with: hypatia-mem backup list --all",
    )


def verify(home: Path, backup: Backup) -> list[str]:
    """Return what is wrong with a backup, nothing when every file and every row can be read."""
    from hypatia_mem.store import snapshot

    wrong: list[str] = []
    for name, (size, digest) in backup.files.items():
        path = backup.path / name
        try:
            if path.stat().st_size != size or (digest and _digest(path) != digest):
                wrong.append(f"{name} was changed after the backup was made")
        except OSError as error:
            wrong.append(f"{name} cannot be read ({error.strerror})")
    if not wrong:
        try:
            counts = snapshot.verified_counts(backup.store)
        except (StoreError, OSError) as error:
            return [f"its store cannot be read ({type(error).__name__})"]
        if dict(counts) != dict(backup.counts):
            wrong.append("its store does not hold what the manifest says")
    return wrong


def prune(home: Path, *, keep: int, dry_run: bool = False) -> list[Backup]:
    """Remove all but the newest ``keep`` backups; return those removed, oldest first.

    The newest one that can be verified stays in any case. Raises UsageError for less than one.
    """
    from hypatia_mem.errors import UsageError

    if keep < 1:
        raise UsageError("at least one backup is kept: --keep 1 or more")
    own = backups(home)
    gone = own[keep:]
    if gone and not any(not verify(home, one) for one in own[:keep]):
        good = next((one for one in gone if not verify(home, one)), None)
        gone = [one for one in gone if one is not good]
    if not dry_run:
        for one in gone:
            shutil.rmtree(one.path)
    return gone[::-1]


def restore(home: Path, backup: Backup, *, author: Author, now: datetime) -> Restored:
    """Put a backup in the place of the present store. Call it with no worker running.

    The present is backed up first, with all that was stored until the exchange; a store that cannot
    be read any more is set aside instead, and nothing of it is thrown away. Raises Refused when the
    backup is damaged or another memory's, StoreBusy when writers never pause, and what the store
    raises; until the new file is in its place nothing has changed.
    """
    from hypatia_mem.store.connection import open_store

    _refuse_damaged(home, backup)
    _refuse_foreign(home, backup)
    saved, kept = _exchange(home, backup, now)
    try:
        _copy_tree(backup.path / "archive", home / "archive", missing_only=True)
        with open_store(home, write=True) as store:
            forgotten = store.ledger_seq() > backup.seq  # what opening it has forgotten again
            with store.transaction(author, now=now) as txn:
                txn.note_operation("restore", backup.id)
        _settle(home)
    except OSError as error:
        raise _half_settled(backup, saved, error) from error
    return Restored(backup, saved, kept, forgotten, home)


def restore_into(home: Path, backup: Backup, folder: Path) -> Restored:
    """Make a memory of its own out of a backup, in a folder that is empty or not there yet.

    What ``home`` has forgotten since is forgotten there too. Raises Conflict, Refused.
    """
    from hypatia_mem.store.connection import open_store

    _refuse_damaged(home, backup)
    target = folder.expanduser().absolute()
    if target.exists() and any(target.iterdir()):
        raise Conflict(f"{target} is not empty", hint="Name a new folder.")
    paths.ensure_home(str(target))
    _copy(backup.store, target / paths.STORE)
    _copy_secrets(backup.path, target)
    if backup.automatic or ((home / "key").exists() and _key_id(home) == backup.key_id):
        _copy_secrets(home, target)  # the later ones: all that was forgotten until now
    _copy_tree(backup.path / "archive", target / "archive")
    with open_store(target, write=True) as store:
        forgotten = store.ledger_seq() > backup.seq
    _settle(target)
    return Restored(backup, None, None, forgotten, target)


def revise(home: Path, backup: Backup, change: Callable[[Path], object]) -> Backup:
    """Let ``change`` work on a home made of a backup, and keep what it leaves as the backup.

    A kill at any instant leaves the backup as it was, or as it is to be. Raises what the store
    raises.
    """
    from hypatia_mem.store import snapshot
    from hypatia_mem.store.connection import open_store

    scratch = home / f".revising-{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        paths.ensure_home(str(scratch))
        _copy(backup.store, scratch / paths.STORE)
        _copy_secrets(home, scratch)
        with open_store(scratch, write=True):  # brings it up to the schema and what was forgotten
            pass
        change(scratch)
        name = f"memory-{os.urandom(4).hex()}.duckdb"
        packed, _ = snapshot.pack(scratch, backup.path / name, backup.made_at)
        _copy_secrets(home, backup.path)
        _drop_unnamed(scratch, backup.path / "archive")
        manifest = _manifest(
            backup.path, backup.made_at, backup.reason, packed.seq, packed.counts, backup.key_id,
            store=name,
        )  # fmt: skip
        _write(backup.path / MANIFEST, json.dumps(manifest, indent=1).encode())
        for old in backup.path.glob("*.duckdb*"):
            if old.name != name:
                old.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return _read(backup.path)


# ----------------------------------------------------------------------------------------------


def _half_settled(backup: Backup, saved: Backup | None, error: OSError) -> StoreError:
    """Return what to say when the backup is in its place, and what follows could not be done."""
    present = f" The present was kept as backup {saved.id}." if saved is not None else ""
    return StoreError(
        f"backup {backup.id} is in its place, but not all was made again after it"
        f" ({error.strerror or type(error).__name__}).{present}",
        hint="When there is room again: hypatia-mem doctor --fix",
    )


def _settle(home: Path) -> None:
    """Write the restored store anew without deleted bytes, and make again what is derived."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import snapshot
    from hypatia_mem.store.search import SearchIndex

    snapshot.rewrite(home)
    SearchIndex(home).clear()
    curate.refresh(home)


def _exchange(home: Path, backup: Backup, now: datetime) -> tuple[Backup | None, Path | None]:
    """Put a backup's store in the place of the present one, which is kept as it was to the last.

    A backup of the present takes no lease for long, so somebody may store something after it. That
    must not be lost between the two: only the very file that was kept is replaced, and another one
    is kept anew. Returns what was kept: a backup, or a folder of what could not be read.
    """
    from hypatia_mem.store import seal, snapshot
    from hypatia_mem.store.lease import lease

    temporary = home / f".{paths.STORE}.{os.getpid()}"
    try:
        _copy(backup.store, temporary)
        for _ in range(_TRIES):
            saved, kept, mark = _save_present(home, backup, now)
            with lease(home, write=True):
                if kept is not None or snapshot.mark_of(home) == mark:
                    for log in home.glob(paths.STORE + ".*"):
                        log.unlink(missing_ok=True)
                    seal.drop(home)  # the backup's ledger ends somewhere else
                    temporary.replace(home / paths.STORE)
                    snapshot.sync_folder(home)
                    return saved, kept
            if saved is not None:  # the next one holds all that is in it
                shutil.rmtree(saved.path)
    finally:
        temporary.unlink(missing_ok=True)
    raise StoreBusy(
        "the store was written again and again while it was backed up; nothing was changed",
        hint="Try again when no session is busy.",
    )


def _save_present(
    home: Path, backup: Backup, now: datetime
) -> tuple[Backup | None, Path | None, snapshot.Mark | None]:
    if not (home / paths.STORE).exists():
        return None, None, None
    try:
        saved, mark = _created(home, now=now, reason=f"before restoring {backup.id}")
        return saved, None, mark
    except StoreCorrupt:
        kept = home / paths.QUARANTINE / f"{now:%Y%m%dT%H%M%S%f}"
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in [*home.glob(paths.STORE + ".*"), home / paths.STORE]:
            _copy(path, kept / path.name)
        return None, kept, None


def _refuse_empty(home: Path) -> None:
    if not (home / paths.STORE).exists():
        raise NotFound(f"there is no store in {home} to back up", hint="Type a prompt first.")


def _refuse_damaged(home: Path, backup: Backup) -> None:
    wrong = verify(home, backup)
    if wrong:
        raise Refused(
            f"backup {backup.id} cannot be used: {wrong[0]}",
            hint="Nothing was changed. Take another one: hypatia-mem backup list --all",
        )


def _refuse_foreign(home: Path, backup: Backup) -> None:
    """Refuse a backup made with a key that this memory does not know."""
    if backup.automatic or not (home / "key").exists() or not (home / paths.STORE).exists():
        if not (home / "key").exists():
            _copy_secrets(backup.path, home)
        return
    if backup.key_id not in _key_ids(home):
        raise Refused(
            f"backup {backup.id} was made of another memory",
            hint="Look at it in a folder of its own: hypatia-mem backup restore ... --into FOLDER",
        )


def _key_id(home: Path) -> str:
    from hypatia_mem.store.ledger import load_key

    return load_key(home).id


def _key_ids(home: Path) -> set[str]:
    from hypatia_mem.store.ledger import key_of

    found = {_key_id(home)}
    for path in (home / "keys").glob("*") if (home / "keys").is_dir() else ():
        found.add(key_of(path.read_bytes()).id)
    return found


def _free_id(base: Path, now: datetime) -> str:
    stem = f"{now:%Y%m%d-%H%M%S}"
    taken = {path.name for path in base.iterdir()}
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def _folders(base: Path) -> list[Path]:
    try:
        return [path for path in base.iterdir() if path.is_dir() and path.name[:1] != "."]
    except OSError:
        return []


def _read(folder: Path) -> Backup:
    try:
        said: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
        if said["format"] != FORMAT or int(said["version"]) > VERSION:
            raise ValueError
        return Backup(
            id=folder.name,
            path=folder,
            store=folder / str(said["store"]),
            made_at=datetime.fromisoformat(said["made_at"]),
            reason=str(said["reason"]),
            seq=int(said["seq"]),
            counts={str(name): int(count) for name, count in said["counts"].items()},
            files={str(n): (int(f["bytes"]), str(f["sha256"])) for n, f in said["files"].items()},
            key_id=str(said["key_id"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{folder / MANIFEST} is not the manifest of a backup") from error


def _of_snapshot(one: Any) -> Backup:  # noqa: ANN401 - the store's Snapshot, lazily imported
    size = one.path.stat().st_size
    return Backup(
        id=one.path.stem,
        path=one.path.parent,
        store=one.path,
        made_at=one.made_at,
        reason="made by the worker",
        seq=one.seq,
        counts=one.counts,
        files={one.path.name: (size, "")},
        key_id="",
        automatic=True,
    )


def _manifest(
    folder: Path,
    made: datetime,
    reason: str,
    seq: int,
    counts: Mapping[str, int],
    key_id: str,
    *,
    store: str = paths.STORE,
) -> dict[str, Any]:
    names = [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    ]
    kept = [name for name in names if not name.endswith(".duckdb") or name == store]
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_at": made.isoformat(),
        "reason": reason,
        "seq": seq,
        "counts": dict(counts),
        "key_id": key_id,
        "store": store,
        "files": {
            name: {"bytes": (folder / name).stat().st_size, "sha256": _digest(folder / name)}
            for name in kept
        },
    }


def _copy_secrets(source: Path, target: Path) -> None:
    """Copy the keys and what was forgotten: without them neither means anything."""
    for name in _SECRETS:
        path = source / name
        if path.is_dir():
            _copy_tree(path, target / name)
        elif path.is_file():
            _copy(path, target / name)


def _copy_tree(source: Path, target: Path, *, missing_only: bool = False) -> None:
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        to = target / path.relative_to(source)
        if path.is_file() and not path.is_symlink() and not (missing_only and to.exists()):
            to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _copy(path, to)


def _drop_unnamed(scratch: Path, folder: Path) -> None:
    """Remove the kept files of a backup that no entry of its store names any more."""
    from hypatia_mem.memory.sharing import archive
    from hypatia_mem.store.connection import open_store

    if not folder.is_dir():
        return
    copied = scratch / archive.FOLDER
    shutil.rmtree(copied, ignore_errors=True)
    _copy_tree(folder, copied)
    with open_store(scratch, write=False) as store:
        archive.sweep(scratch, store)
    for path in list(folder.rglob("*")):
        if path.is_file() and not (copied / path.relative_to(folder)).exists():
            path.unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with source.open("rb") as reader, os.fdopen(fd, "wb") as out:
            shutil.copyfileobj(reader, out, _CHUNK)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)

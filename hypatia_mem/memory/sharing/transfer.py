"""A shelf as a folder of plain files, and the way back: ``export`` and ``import``.

::

    manifest.json        what is here: rows, bytes and SHA-256 of every file
    entry.jsonl ...      a table each, one JSON object a line; times are naive UTC
    key, keys/...        what the digests in tombstone.jsonl were made with
    archive/...          the kept files that entries name

An export holds the present state: earlier versions, the ledger and what is only derived stay
behind, and what was forgotten is in it nowhere but as a keyed digest. It is read from a copy of the
store, so that nobody waits while it is written, and appears under its name when it is complete.

An import goes into an empty shelf. Everything is verified before the first row is stored; then rows
go in by batches, each with its place in the export in one transaction, so that an import that was
cut short goes on where it stopped. Memory is bounded in both directions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hypatia_mem.errors import NotFound, Refused, StoreTooNew, UsageError
from hypatia_mem.memory.sharing import archive

__all__ = [
    "CHUNK",
    "FORMAT",
    "KEY",
    "KEYS",
    "MANIFEST",
    "VERSION",
    "FileNote",
    "Manifest",
    "copy_file",
    "created",
    "opened",
    "read_manifest",
    "write_bytes",
]

FORMAT = "hypatia-mem export"
VERSION = 2  # 2: with the reasons of verdicts
MANIFEST = "manifest.json"
KEY = "key"
KEYS = "keys"
_KEY_NAME = re.compile(f"{KEYS}/[0-9a-f]{{12}}\\Z")
CHUNK = 1 << 20
_MAX_MANIFEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileNote:
    """What the manifest says of a file; ``rows`` is None where it is no table."""

    size: int
    digest: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export says it holds; ``digest`` is that of the manifest itself."""

    folder: Path
    digest: str
    files: Mapping[str, FileNote]
    key_id: str
    tables: tuple[str, ...]

    @property
    def archived(self) -> list[str]:
        """Return the names of the kept files."""
        head = archive.FOLDER + "/"
        return [name[len(head) :] for name in self.files if name.startswith(head)]

    @property
    def earlier_keys(self) -> list[str]:
        """Return the names of the files that hold the keys before the present one, oldest first."""
        return [name for name in self.files if name.startswith(KEYS + "/")]


def read_manifest(source: Path) -> Manifest:
    """Return the manifest of an export. Raises NotFound, Refused, StoreTooNew."""
    folder = Path(os.path.realpath(source.expanduser()))
    path = folder / MANIFEST
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_MANIFEST:
            raise Refused(f"{path} cannot be the manifest of an export")
        data = path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"there is no export in {folder}: {MANIFEST} cannot be read ({error.strerror})",
            hint="An export is the folder that was made with: hypatia-mem export NAME FOLDER",
        ) from None
    try:
        said = json.loads(data)
        if said["format"] != FORMAT:
            raise ValueError
        version, steps = int(said["version"]), [str(step) for step in said["steps"]]
        files = {
            str(name): FileNote(int(one["bytes"]), str(one["sha256"]), one.get("rows"))
            for name, one in said["files"].items()
        }
        key_id = str(said["key_id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(f"{path} is not the manifest of an export") from None
    _check_version(version, steps)
    return Manifest(folder, hashlib.sha256(data).hexdigest(), files, key_id, _tables(files))


def _check_version(version: int, steps: list[str]) -> None:
    from hypatia_mem.store.migrations import MIGRATIONS

    unknown = set(steps) - {name for name, _ in MIGRATIONS}
    if version > VERSION or unknown:
        raise StoreTooNew(
            "the export was written by a newer hypatia-mem",
            hint="Upgrade hypatia-mem, then import it; nothing was changed.",
        )


def _tables(files: Mapping[str, FileNote]) -> tuple[str, ...]:
    """Return the tables of an export in their order; Refused for any file that has no place in it.

    A name that leads out of the folder is such a file.
    """
    from hypatia_mem.store import transfer

    for name, one in files.items():
        inner = name.removeprefix(archive.FOLDER + "/")
        if name in (KEY, *(f"{table}.jsonl" for table in transfer.TABLES)):
            continue
        if _KEY_NAME.match(name) and one.rows is None:
            continue
        try:
            fits = inner != name and archive.checked_name(inner) == inner
        except UsageError:
            fits = False
        if not fits or one.rows is not None:
            raise Refused(f"the export names a file that has no place in it: {name[:120]!a}")
    return tuple(table for table in transfer.TABLES if f"{table}.jsonl" in files)


@contextmanager
def opened(folder: Path, name: str) -> Iterator[BinaryIO]:
    """Open a file of an export; no link is followed, neither the file nor a folder above it."""
    path = folder
    for part in name.split("/"):
        path = path / part
        if path.is_symlink():
            raise Refused(f"{name} is a link, and an export holds none")
    try:
        reader = path.open("rb")
    except OSError as error:
        raise Refused(f"{name} is missing from the export ({error.strerror})") from None
    with reader:
        yield reader


@contextmanager
def created(path: Path) -> Iterator[BinaryIO]:
    """Open a new file for its owner alone, and see it on the disk before it is closed."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(fd, "wb", buffering=CHUNK) as out:
        yield out
        out.flush()
        os.fsync(fd)


def write_bytes(path: Path, data: bytes) -> FileNote:
    """Write a new file and say what the manifest has to say of it."""
    with created(path) as out:
        out.write(data)
    return FileNote(len(data), hashlib.sha256(data).hexdigest(), None)


def copy_file(source: Path, target: Path) -> FileNote:
    """Copy a file and say what the manifest has to say of it."""
    made = hashlib.sha256()
    size = 0
    archive.private_folder(target.parent)
    with source.open("rb") as reader, created(target) as out:
        while chunk := reader.read(CHUNK):
            made.update(chunk)
            size += len(chunk)
            out.write(chunk)
    return FileNote(size, made.hexdigest(), None)

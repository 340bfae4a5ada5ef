"""``export``: the present state of a shelf as a folder of plain files (see ``transfer``)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypatia_mem import __version__
from hypatia_mem.errors import Conflict, UsageError
from hypatia_mem.memory.sharing import archive
from hypatia_mem.memory.sharing.transfer import (
    FORMAT,
    KEY,
    KEYS,
    MANIFEST,
    VERSION,
    FileNote,
    copy_file,
    created,
    write_bytes,
)

__all__ = ["Exported", "export_shelf"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds: rows by table, how many kept files, and those that were not there."""

    folder: Path
    counts: Mapping[str, int]
    files: int
    missing: tuple[str, ...] = ()
    redacted: int = 0  # texts in which a secret was


def export_shelf(
    home: Path, folder: Path, *, shelf: str = "default", shared: bool = False
) -> Exported:
    """Write all of a shelf's present state into a new folder.

    ``shared`` is for an export that is given away: it holds what default reads return and nothing
    else, neither what is withheld nor digests of what was forgotten and their key. Raises Conflict
    when the folder is there and not empty, UsageError for one inside the memory, and what the store
    raises; then no folder is left behind. No secret that the redactor knows goes along.
    """
    target = Path(os.path.realpath(folder.expanduser()))
    _check_target(home, target)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(mode=0o700)
        exported = _write_all(home, partial, target, shelf, shared=shared)
        if target.is_dir():
            target.rmdir()
        partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return exported


def _check_target(home: Path, target: Path) -> None:
    own = Path(os.path.realpath(home))
    if target == own or own in target.parents:
        raise UsageError(
            f"{target} lies inside the memory itself", hint="Choose a folder elsewhere."
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Conflict(
            f"{target} exists already, and an export replaces nothing",
            hint="Name a new folder, or an empty one.",
        )


def _write_all(home: Path, partial: Path, target: Path, shelf: str, *, shared: bool) -> Exported:
    from hypatia_mem.memory.sharing import redacting
    from hypatia_mem.store import keys, snapshot, transfer
    from hypatia_mem.store.connection import attached

    copy = partial / ".copy.duckdb"
    snapshot.copy_store(home, copy)
    files: dict[str, FileNote] = {}
    figures: set[str] = set()
    with attached(copy, write=True) as connection:  # a log beside it is played back
        steps = transfer.steps_of(connection)
        redactor = redacting.Redactor(transfer.names_with(connection, redacting.MARK))
        for table in transfer.TABLES:
            if shared and not transfer.is_shared(table):
                continue
            rows = transfer.read_rows(connection, table, shared=shared)
            noted = _noting_figures(rows, figures) if table == "entry" else rows
            written = (redactor.row(table, row) for row in noted)
            files[f"{table}.jsonl"] = _write_lines(partial / f"{table}.jsonl", written)
    for left in partial.glob(".*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    missing: list[str] = []
    for name in sorted(figures):
        source = _kept_file(home, name)
        if source is None:
            missing.append(redactor.name(name))
        else:
            inner = f"{archive.FOLDER}/{redactor.name(name)}"
            files[inner] = copy_file(source, partial / inner)
    key_id = ""
    if not shared:
        key, *others = keys.keyring(home)
        key_id = key.id
        files[KEY] = write_bytes(partial / KEY, key.secret)
        if others:
            archive.private_folder(partial / KEYS)
        for one in others:
            inner = f"{KEYS}/{one.id}"
            files[inner] = write_bytes(partial / inner, one.secret)
    said = {
        "format": FORMAT,
        "version": VERSION,
        "program": __version__,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "shelf": shelf,
        "steps": steps,
        "key_id": key_id,
        "files": {
            name: {"bytes": one.size, "sha256": one.digest}
            | ({} if one.rows is None else {"rows": one.rows})
            for name, one in sorted(files.items())
        },
    }
    text = json.dumps(said, ensure_ascii=False, indent=1) + "\n"
    write_bytes(partial / MANIFEST, text.encode("utf-8", "surrogatepass"))
    counts = {
        name.removesuffix(".jsonl"): one.rows for name, one in files.items() if one.rows is not None
    }
    archived = sum(name.startswith(archive.FOLDER + "/") for name in files)
    return Exported(target, counts, archived, tuple(missing), redactor.changed)


def _noting_figures(rows: Iterable[dict[str, Any]], figures: set[str]) -> Iterator[dict[str, Any]]:
    for row in rows:
        figures.update(
            figure.removeprefix(archive.SCHEME)
            for figure in row["figures"]
            if figure.startswith(archive.SCHEME)
        )
        yield row


def _kept_file(home: Path, name: str) -> Path | None:
    """Return where a kept file lies; None for a link that leads to no file of the archive."""
    try:
        path = archive.path_of(home, name)
    except UsageError:
        return None
    return path if path.is_file() else None


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> FileNote:
    made = hashlib.sha256()
    size = count = 0
    with created(path) as out:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            made.update(line)
            size += len(line)
            count += 1
            out.write(line)
    return FileNote(size, made.hexdigest(), count)

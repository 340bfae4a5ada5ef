"""``import``: an export into an empty shelf, verified first, by batches, past the tombstones."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hypatia_mem.errors import Conflict, HypatiaError, Refused
from hypatia_mem.memory.sharing import archive
from hypatia_mem.memory.sharing.transfer import (
    CHUNK,
    KEY,
    Manifest,
    copy_file,
    opened,
    read_manifest,
)
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.memory.sharing.redacting import Redactor
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.elsewhere import Elsewhere
    from hypatia_mem.store.transfer import Column

__all__ = ["Imported", "import_shelf"]

_MAX_LINE = 256 * 1024 * 1024
_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_PLACE = "import"  # the store's own note of how far an import has come
_OPERATION = "import_operation"  # and under which id, for one that goes on


@dataclass(frozen=True, slots=True)
class Imported:
    """What came in, by table; ``refused`` rows say what was forgotten before.

    ``elsewhere`` counts by name those that were forgotten in another memory of the person, and
    ``unasked`` says why one of these could not be asked. ``redacted`` texts held a secret.
    """

    counts: Mapping[str, int]
    files: int
    refused: int = 0
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    unasked: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    redacted: int = 0


def import_shelf(
    home: Path,
    source: Path,
    *,
    author: Author,
    now: datetime,
    others: Mapping[str, Path] | None = None,
    dry_run: bool = False,
) -> Imported:
    """Take an export into an empty shelf; ``dry_run`` verifies everything and stores nothing.

    Secrets are redacted before anything else is asked. Tombstones win, the export's, the shelf's
    own and those of ``others``, the homes of the same person's other memories: what they stand for
    is refused. An import that was cut short goes on when the same one is started again. Raises
    NotFound when there is no export, Refused when a file is not what the manifest says, Conflict
    when the shelf is not empty, StoreTooNew.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.store import elsewhere
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.incoming import Incoming
    from hypatia_mem.store.search import SearchIndex

    manifest = read_manifest(source)
    asked = elsewhere.load(others or {})
    with open_store(home, write=not dry_run) as store:
        found = _verify(store, manifest)
        place = _check_shelf(store, manifest)
        if dry_run:
            counts = {
                table: manifest.files[f"{table}.jsonl"].rows or 0 for table in manifest.tables
            }
            return Imported(
                counts,
                len(manifest.archived),
                unasked=asked.unasked,
                dry_run=True,
                redacted=found.changed,
            )
        if _take_keys(store, manifest):
            SearchIndex(home).clear()  # its document ids were made with the key before
        author = replace(author, channel=Channel.IMPORT)
        redactor = found.again()
        counts, refused, there = _take_in(store, manifest, place, asked, author, now, redactor)
        for name in manifest.archived:
            _take_file(home, manifest.folder / archive.FOLDER / name, redactor.name(name))
        op_id = store.meta(_OPERATION) or None
        with store.transaction(author, now=now, op_id=op_id) as txn:
            Incoming(txn).finish()
            txn.set_meta(_PLACE, "")
    curate.refresh(home)
    return Imported(
        counts, len(manifest.archived), refused, there, asked.unasked, redacted=found.changed
    )


def _verify(store: Store, manifest: Manifest) -> Redactor:
    """Hold every file to the manifest, and every row to its table. Raises Refused.

    The redactor that is returned has seen all rows, so that an import that goes on in the middle
    gives the same names as before.
    """
    from hypatia_mem.memory.sharing.redacting import Redactor
    from hypatia_mem.store import transfer

    redactor = Redactor()

    for name, said in manifest.files.items():
        made = hashlib.sha256()
        size = count = 0
        table = name.removesuffix(".jsonl") if said.rows is not None else ""
        columns = transfer.columns_of(store, table) if table else []
        with opened(manifest.folder, name) as reader:
            for chunk in reader if table else _chunks(reader):
                made.update(chunk)
                size += len(chunk)
                if table:
                    count += 1
                    redactor.look(table, count, _parsed(table, columns, chunk, name, count))
        if (size, made.hexdigest()) != (said.size, said.digest) or (table and count != said.rows):
            raise Refused(
                f"{name} was changed after the export was made",
                hint="Nothing was imported. Take another copy of the export.",
            )
    return redactor


def _chunks(reader: BinaryIO) -> Iterator[bytes]:
    while chunk := reader.read(CHUNK):
        yield chunk


def _parsed(
    table: str, columns: Sequence[Column], line: bytes, name: str, number: int
) -> dict[str, Any]:
    from hypatia_mem.store import transfer

    try:
        if len(line) > _MAX_LINE:
            raise ValueError
        return transfer.checked_row(table, columns, json.loads(line))
    except (ValueError, RecursionError):
        raise Refused(f"{name}, line {number}: not JSON") from None
    except HypatiaError as error:
        raise Refused(f"{name}, line {number}: {error.message}") from None


def _check_shelf(store: Store, manifest: Manifest) -> tuple[str, int]:
    """Return the table and line to go on from. Raises Conflict when the shelf is not empty."""
    from hypatia_mem.store import transfer

    begun = store.meta(_PLACE)
    if begun:
        digest, table, line = begun.split(" ")
        if digest == manifest.digest:
            return table, int(line)
        raise Conflict(
            "the import of another export was begun here and is not complete",
            hint="Start that one again, or import this one into a new shelf.",
        )
    if not transfer.is_empty(store):
        raise Conflict(
            "an import goes into an empty shelf, and this one holds entries, sessions or messages",
            hint="Make one: hypatia-mem connect FOLDER -n NAME, then: import SOURCE -s NAME",
        )
    return "", 0


def _take_keys(store: Store, manifest: Manifest) -> bool:
    """Keep the keys that what was forgotten there was noted under; tell whether one is the own now.

    It is in a store that has written nothing yet; else each memory goes on under its own, and asks
    the others' as well.
    """
    from hypatia_mem.store import keys, transfer

    present = _key_of(manifest)
    if not present:
        return False
    new = transfer.is_new(store)
    if new:
        keys.adopt_key(store.home, present)
    earlier = [_secret(manifest, name) for name in manifest.earlier_keys]
    keys.add_keys(store.home, (*earlier, present))
    return new


def _take_in(
    store: Store,
    manifest: Manifest,
    place: tuple[str, int],
    asked: Elsewhere,
    author: Author,
    now: datetime,
    redactor: Redactor,
) -> tuple[dict[str, int], int, dict[str, int]]:
    """Store the rows of all tables from a place on; return how many by table, and refused ones.

    It is one operation, in however many transactions, so that it can be undone as a whole.
    """
    from hypatia_mem.store import transfer
    from hypatia_mem.store.incoming import Incoming

    op_id = store.meta(_OPERATION) if place[0] else None
    counts: dict[str, int] = {}
    refused = 0
    there: Counter[str] = Counter()
    done = manifest.tables.index(place[0]) if place[0] else 0
    for table in manifest.tables[done:]:
        first = place[1] if table == place[0] else 0
        counts[table] = first
        columns = transfer.columns_of(store, table)
        for last, batch in _batches(manifest.folder, table, columns, first, redactor):
            with store.transaction(author, now=now, op_id=op_id) as txn:
                op_id = txn.op_id
                incoming = Incoming(txn, asked)
                counts[table] += incoming.put(table, batch)
                txn.set_meta(_PLACE, f"{manifest.digest} {table} {last}")
                txn.set_meta(_OPERATION, op_id)
            refused += incoming.refused
            there.update(incoming.refused_elsewhere)
    return counts, refused, dict(there)


def _batches(
    folder: Path, table: str, columns: Sequence[Column], first: int, redactor: Redactor
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (number of the last line, rows) of a table after line ``first``, some at a time."""
    name = f"{table}.jsonl"
    batch: list[dict[str, Any]] = []
    size = number = 0
    with opened(folder, name) as reader:
        for number, line in enumerate(reader, start=1):
            if number <= first:
                continue
            row = _parsed(table, columns, line, name, number)
            batch.append(redactor.row(table, row) if (table, number) in redactor.lines else row)
            size += len(line)
            if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield number, batch
                batch, size = [], 0
    if batch:
        yield number, batch


def _take_file(home: Path, source: Path, name: str) -> None:
    """Copy a kept file in; one that is there already (an import goes on) stays."""
    target = archive.path_of(home, name)
    if target.is_file():
        return
    temporary = target.with_name(f".new-{os.getpid()}")
    try:
        copy_file(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _key_of(manifest: Manifest) -> bytes:
    """Return the secret that came with an export, empty when none did. Raises Refused."""
    return _secret(manifest, KEY) if KEY in manifest.files else b""


def _secret(manifest: Manifest, name: str) -> bytes:
    from hypatia_mem.store import keys

    secret = (manifest.folder / name).read_bytes()[: keys.KEY_BYTES + 1]
    said = manifest.key_id if name == KEY else name.rpartition("/")[2]
    if len(secret) != keys.KEY_BYTES or keys.key_of(secret).id != said:
        raise Refused("a key in the export is not the one that its manifest names")
    return secret

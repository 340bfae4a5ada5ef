"""Opening the store, and closing it. No path of the program opens DuckDB any other way.

``open_store`` has an engine running *before* it takes the lease, attaches the file with an explicit
type (see ``lease``), and closes it cleanly, which checkpoints: a pending log would cost its replay
at each open. A reader of a store that does not exist yet sees an empty one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from hypatia_mem.store import buried, migrations, seal
from hypatia_mem.store.engine import Filling, closing, engine, quoted
from hypatia_mem.store.lease import lease
from hypatia_mem.store.opened import KnownMessage, KnownRoot, Store

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "FILE",
    "KnownMessage",
    "KnownRoot",
    "Store",
    "attached",
    "copy_database",
    "open_store",
    "store_error",
]

FILE = "memory.duckdb"
# Small row groups: a close rewrites the last group of every table that changed, however few rows.
_GROUP = 4096
_OPTIONS = f"TYPE duckdb, BLOCK_SIZE 16384, ROW_GROUP_SIZE {_GROUP}, STORAGE_VERSION 'v1.5.0'"
_CORRUPT = (
    "corrupt", "could not read enough bytes", "checksum", "not a valid duckdb database",
    "failure while replaying wal", "wal checkpoint iteration",
    "serialization error", "failed to deserialize", "wal version",
)  # fmt: skip
# What these say is about the file; the messages of all others may quote stored text.
_ABOUT_THE_FILE = frozenset(
    {"Error", "FatalException", "IOException", "InternalException", "SerializationException"}
)
_NO_ROOM = ("no space left", "disk full", "quota", "file too large", "not enough space")


@contextmanager
def open_store(
    home: Path, *, write: bool, deadline: float = 10.0, create: bool = True
) -> Iterator[Store]:
    """Open the store for the block, holding its lease; keep the block short.

    ``deadline`` is how many seconds to wait for the lease. Raises StoreBusy, StoreCorrupt,
    StoreTooNew, or StoreError (no space, no permission, no store and ``create`` False). A reader
    of a store that an earlier version of the program wrote opens it for writing first, once.
    """
    opened = partial(_opened, home, deadline=deadline, create=create)
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(write=write))
        except _Behind:
            with opened(write=True):
                pass
            store = stack.enter_context(opened(write=write))
        yield store


class _Behind(Exception):
    """The store lacks steps of the schema, or forgettings, and a reader cannot add them."""


@contextmanager
def _opened(home: Path, *, write: bool, deadline: float, create: bool) -> Iterator[Store]:
    until = time.monotonic() + deadline
    with ExitStack() as started, ExitStack() as held:
        started.enter_context(_home_made(home))
        started.enter_context(_explained(home))
        connection = started.enter_context(engine(home, again=True))
        held.enter_context(lease(home, write=write, deadline=deadline))
        exists = (home / FILE).exists()
        if not exists:
            _refuse_to_begin_anew(home)
            if not create:
                raise StoreError(f"there is no store in {home}", hint="Type a prompt first.")
        sizes = held.enter_context(
            _connected(connection, home, write=write, exists=exists, until=until)
        )
        store = Store(home, connection, held, sizes)
        if write:
            buried.follow(store)
        elif exists and buried.is_behind(store):
            raise _Behind
        yield store
        if store.is_to_seal:
            seal.keep(store)
        if store.is_let_go:  # the engine holds what was read
            connection.close()


@contextmanager
def _explained(home: Path) -> Iterator[None]:
    """Say what the engine's errors mean."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise store_error(error, home) from error


@contextmanager
def attached(file: Path, *, write: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach any DuckDB file as ``kb``; for snapshots, which nobody else has open."""
    with engine(file.parent) as connection:
        mode = _OPTIONS if write else "TYPE duckdb, READ_ONLY"
        connection.execute(f"ATTACH '{quoted(file)}' AS kb ({mode})")
        connection.execute("USE kb")
        yield connection


def copy_database(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Copy all of ``kb`` into a new file, without dead space and deleted bytes."""
    connection.execute(f"ATTACH '{quoted(file)}' AS copy ({_OPTIONS})")
    try:
        connection.execute("COPY FROM DATABASE kb TO copy")
    finally:
        connection.execute("USE kb")
        connection.execute("DETACH copy")


# ----------------------------------------------------------------------------------------------


@contextmanager
def _home_made(home: Path) -> Iterator[None]:
    from hypatia_mem.capture import paths

    try:
        paths.ensure_home(str(home))
    except OSError as error:
        raise StoreError(
            f"the memory's folder cannot be used: {home} ({error.strerror})",
            hint="Check its permissions, or set HYPATIA_MEM_HOME to another folder.",
        ) from error
    yield


@contextmanager
def _connected(
    connection: duckdb.DuckDBPyConnection, home: Path, *, write: bool, exists: bool, until: float
) -> Iterator[Mapping[str, int]]:
    """Attach the store for the block; give how many rows its tables have if it is for writing."""
    if write and not exists:
        _begin(connection, home / FILE)
    if exists or write:
        _attach(connection, home / FILE, _OPTIONS if write else "TYPE duckdb, READ_ONLY", until)
    else:
        connection.execute("ATTACH ':memory:' AS kb")
    with closing(connection):
        connection.execute("USE kb")
        if write or not exists:
            _make_tables(connection)
        else:
            applied = migrations.check(connection)
            if not applied:
                raise StoreError(
                    "the store has no tables yet", hint="Run: hypatia-mem worker drain"
                )
            if len(applied) < migrations.SCHEMA_VERSION:
                raise _Behind
        filling = Filling(connection, _GROUP) if write else None
        yield {} if filling is None else filling.sizes
        if filling is not None:
            filling.checkpoint()


def _begin(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Make a store beside its place, tables and all, and move it there when it is whole.

    Else one whose making was cut short, by kill -9 or a full disk, would be taken for damaged.
    """
    new = file.with_name(f".{file.name}.{os.getpid()}")
    parts = (new, new.with_name(f"{new.name}.wal"))
    try:
        for part in parts:  # an earlier process may have had the same number
            part.unlink(missing_ok=True)
        connection.execute(f"ATTACH '{quoted(new)}' AS kb ({_OPTIONS})")
        with closing(connection):
            connection.execute("USE kb")
            _make_tables(connection)
            connection.execute("CHECKPOINT kb")
        new.replace(file)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _make_tables(connection: duckdb.DuckDBPyConnection) -> None:
    if migrations.migrate(connection):
        _note_birth(connection)


def _attach(connection: duckdb.DuckDBPyConnection, file: Path, mode: str, until: float) -> None:
    """Attach the store; a shell that has it open takes no lease, so its lock is waited for too."""
    import duckdb

    while True:
        try:
            connection.execute(f"ATTACH '{quoted(file)}' AS kb ({mode})")
            return
        except duckdb.Error as error:
            if not _is_locked(error) or time.monotonic() >= until:
                raise
        time.sleep(0.05)


def _is_locked(error: duckdb.Error) -> bool:
    return type(error).__name__ == "IOException" and "could not set lock" in str(error).lower()


def _refuse_to_begin_anew(home: Path) -> None:
    """Take a file that is gone for a damaged one when there are copies of it."""
    if any((home / "snapshots").glob("*.json")):
        raise StoreCorrupt(
            f"the store is gone: {home / FILE}, though there are snapshots of it",
            hint="The worker restores the newest verified snapshot: hypatia-mem worker drain",
        )


def _note_birth(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep when this store came to be: sessions older than that are nobody's to read unasked."""
    connection.execute(
        "INSERT INTO meta SELECT 'born', ?"
        " WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'born')",
        [str(time.time())],
    )


def store_error(error: duckdb.Error, home: Path) -> StoreError:
    """Return what an error of the engine means to a person, without any stored text."""
    text = str(error).replace(str(home.absolute()), "HOME")  # a folder may be called `corrupt`
    lowered = text.lower()
    about_file = type(error).__name__ in _ABOUT_THE_FILE
    if (about_file or "failed to commit" in lowered) and any(mark in lowered for mark in _NO_ROOM):
        return StoreError(
            f"there is no space left for the store in {home} (disk full, or a quota)",
            hint="Free some space. Nothing is lost: turns stay in the spool until they are stored.",
        )
    if about_file and any(mark in lowered for mark in _CORRUPT):
        return StoreCorrupt(
            f"the store cannot be read: {home / FILE} ({type(error).__name__})",
            hint="The worker sets it aside and restores the newest verified snapshot.",
        )
    if about_file and "version number" in lowered:
        return StoreTooNew(
            "the store was written by a DuckDB that this one cannot read",
            hint="Upgrade the duckdb package that hypatia-mem uses.",
        )
    if _is_locked(error):
        return StoreBusy(
            "a program other than hypatia-mem has the store open",
            hint="Close the DuckDB shell or viewer that has it open, then try again.",
        )
    if "has been invalidated" in lowered:  # its memory, not the file: what was committed is there
        return StoreError(
            f"the engine gave up while it worked on the store in {home} ({type(error).__name__})",
            hint="Try again; if it stays like this: hypatia-mem doctor",
        )
    # Other messages of the engine may quote stored text: only its own I/O errors are passed on.
    more = ": " + text.splitlines()[0][:200] if text.startswith("IO Error") else ""
    return StoreError(f"the store refused the operation ({type(error).__name__}){more}")

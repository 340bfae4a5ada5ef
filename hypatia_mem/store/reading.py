"""SQL of a person's own, read from the documented views and from nothing else.

The engine that runs it is made for one question: an in-memory database holding the views the
question names, with the store attached for reading only. Then the doors are shut: no files, no
network, no extensions, no Python variables, and the settings cannot be changed back. ``sqlcheck``
has decided before whether the statement may run at all.

The lease is held as long as the store is attached, and a question may take longer than the worker
should wait. So it is asked of the store itself for ``HOLD_SECONDS`` at most; one that needs longer
is stopped, the store's file is copied under the lease, and it is asked again of the copy, which
nobody waits for. What is printed comes from a table in the engine's memory, after the lease.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypatia_mem.errors import HypatiaError, StoreError, UsageError
from hypatia_mem.store.connection import FILE, attached, open_store, store_error
from hypatia_mem.store.lease import lease
from hypatia_mem.store.rows import storable
from hypatia_mem.store.sqlcheck import check, understood
from hypatia_mem.store.views import SCOPES_TABLE, VIEWS

if TYPE_CHECKING:
    import duckdb

__all__ = ["HOLD_SECONDS", "Answer", "ask"]

HOLD_SECONDS = 2.0  # of the lease, for one question
_STOP_SECONDS = 10.0  # the engine may take to stop once it was told to
_STALE_SECONDS = 7200.0  # a folder of a reader that was killed
_FOLDER = ".reading-"
_LIMITS = ("memory_limit = '1GB'", "max_temp_directory_size = '4GB'")
_SHUT = (
    "TimeZone = 'UTC'",
    "python_enable_replacements = false",
    "allow_community_extensions = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
_PLAIN = frozenset(
    {
        "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
        "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "VARCHAR", "JSON",
    }
)  # fmt: skip


class _Question(NamedTuple):
    """What to run: a person's ``sql`` (``views`` as ``check`` found them), or ours with ``params``.

    ``scopes`` None reads every project. ``file`` is where the answer may be written as Parquet.
    """

    home: Path
    sql: str
    views: frozenset[str]
    scopes: Sequence[str] | None
    params: Sequence[Any] = ()
    file: Path | None = None


class Answer:
    """The rows that came back, in the engine's own memory. Valid inside its ``with ask(...)``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, question: _Question) -> None:
        """Take over the connection whose table ``result`` holds the rows."""
        self._connection = connection
        self._file = question.file
        self.notes = tuple(_notes(question))
        described = connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'result'"
            " AND database_name = 'memory' ORDER BY column_index"
        ).fetchall()
        self.columns = tuple(str(row[0]) for row in described)
        self.types = tuple(str(row[1]) for row in described)
        counted = connection.execute("SELECT count(*) FROM memory.main.result").fetchone()
        self.count = int(counted[0]) if counted else 0

    def rows(self, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield rows of None, bool, int, float and text; ``nested`` says which texts are JSON.

        Times are ISO 8601 in UTC with ``Z``; everything else that has no plain form is text.
        """
        columns = ", ".join(_as_value(index, one) for index, one in enumerate(self.types, 1))
        cursor = self._connection.execute(
            f"SELECT {columns} FROM memory.main.result LIMIT ?",  # noqa: S608 - places and casts
            [self.count if limit is None else limit],
        )
        while found := cursor.fetchmany(1000):
            yield from found

    @property
    def nested(self) -> tuple[bool, ...]:
        """Tell for each column whether its texts are JSON: lists, structures and JSON itself."""
        return tuple(_is_nested(one) for one in self.types)

    def write_parquet(self) -> Path:
        """Write the rows with their types into the question's file; return where that is."""
        import duckdb

        if self._file is None:
            raise RuntimeError("the question named no file")
        where = str(self._file).replace("'", "''")
        try:
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            self._connection.execute(f"COPY memory.main.result TO '{where}' (FORMAT parquet)")
        except duckdb.Error as error:
            raise StoreError(
                f"Parquet cannot hold these columns ({type(error).__name__})",
                hint="Cast what is unusual: x::VARCHAR",
            ) from error
        return self._file


@contextmanager
def ask(
    home: Path,
    sql: str,
    *,
    scopes: Sequence[str] | None,
    timeout: float = 30.0,
    params: Sequence[Any] = (),
    reads: Iterable[str] | None = None,
    parquet: bool = False,
    give_up: Callable[[], object] = lambda: None,
) -> Iterator[Answer]:
    """Run one SELECT over the views and give the block its answer; the store is free by then.

    ``reads`` marks ``sql`` as ours, which is not checked, and names its views; ``params`` go with
    it. ``timeout`` is in seconds; ``give_up`` is called when the engine does not stop although it
    was told to.

    Raises UsageError (it is no SQL), Refused (it does more than read the views), StoreError (it
    took too long, too much memory or failed on a value), and what opening the store raises.
    """
    views = _views_of(sql) if reads is None else frozenset(reads)
    until = time.monotonic() + timeout
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(home))
        file = folder / "answer.parquet" if parquet else None
        question = _Question(home, sql, views, scopes, tuple(params), file)
        try:
            answer = stack.enter_context(_of_the_store(question, timeout, give_up))
        except _TooLong:
            left = until - time.monotonic()
            if left <= 0:
                raise _too_long(timeout) from None
            copy = _copied(home, folder)
            try:
                answer = stack.enter_context(_of_a_copy(copy, question, left, give_up))
            except _TooLong:
                raise _too_long(timeout) from None
        yield answer


def _views_of(sql: str) -> frozenset[str]:
    import duckdb

    with duckdb.connect(config={"autoload_known_extensions": False}) as parser:
        return check(parser, sql, VIEWS)


@contextmanager
def _of_the_store(
    question: _Question, timeout: float, give_up: Callable[[], object]
) -> Iterator[Answer]:
    there = (question.home / FILE).exists()
    with open_store(question.home, write=False) as store:
        seconds = min(timeout, HOLD_SECONDS) if there else timeout
        _run(store.connection, question, seconds, give_up)
        store.let_go()
        yield Answer(store.connection, question)


@contextmanager
def _of_a_copy(
    copy: Path, question: _Question, seconds: float, give_up: Callable[[], object]
) -> Iterator[Answer]:
    import duckdb

    try:
        with attached(copy, write=False) as connection:
            if os.name != "nt":  # a kill leaves no copy behind
                copy.unlink()
            _run(connection, question, seconds, give_up)
            yield Answer(connection, question)
    except duckdb.Error as error:
        raise store_error(error, question.home) from error


class _TooLong(Exception):
    """The engine was stopped because the time was over."""


def _run(
    connection: duckdb.DuckDBPyConnection,
    question: _Question,
    seconds: float,
    give_up: Callable[[], object],
) -> None:
    """Make the views, shut the doors, and put the answer into the table ``result``."""
    import duckdb

    connection.execute("USE memory")
    connection.execute(f"CREATE TABLE {SCOPES_TABLE} (scopes VARCHAR[])")
    connection.execute(
        f"INSERT INTO {SCOPES_TABLE} VALUES (?)",  # noqa: S608 - our own table
        [storable(list(question.scopes or ()))],
    )
    for name in sorted(question.views):
        connection.execute(VIEWS[name].create(every_scope=question.scopes is None))
    _shut(connection, question.file)
    statement = connection.extract_statements(question.sql)[0]

    def work() -> None:
        relation = (
            connection.sql(question.sql, params=[storable(value) for value in question.params])
            if question.params
            else connection.sql(statement)
        )
        relation.create("result")

    try:
        _watched(work, connection.interrupt, seconds, give_up)
    except duckdb.InterruptException:
        raise _TooLong from None
    except duckdb.Error as error:
        raise _failed(error, question.home) from None


def _shut(connection: duckdb.DuckDBPyConnection, file: Path | None) -> None:
    if file is not None:
        where = str(file).replace("'", "''")
        connection.execute(f"SET allowed_paths = ['{where}']")
    for setting in (*_LIMITS, *_SHUT):
        connection.execute(f"SET {setting}")


def _watched(
    work: Callable[[], None],
    interrupt: Callable[[], None],
    seconds: float,
    give_up: Callable[[], object],
) -> None:
    """Run ``work`` beside this thread, which stays free to stop it: at the end of the time, or
    when a person presses Ctrl-C (the engine itself would not look up before it is done).
    """
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - carried over to the thread that waits
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=run, daemon=True).start()
    try:
        done.wait(seconds)  # not join: interrupted by Ctrl-C, it takes the thread for ended
    finally:
        while not done.is_set():
            interrupt()
            if not done.wait(_STOP_SECONDS):
                give_up()
    if failed:
        raise failed[0]


def _failed(error: duckdb.Error, home: Path) -> HypatiaError:
    """Return the sentence for what stopped a query; never with a value of a row in it."""
    about_sql = understood(error)
    if about_sql is not None:
        return about_sql
    name = type(error).__name__
    if "More than one row returned by a subquery" in str(error):
        return StoreError(
            "a subquery that stands for one value gave more than one row",
            hint="Add LIMIT 1 to it, or use IN or max(...).",
        )
    if "unnamed struct" in str(error):
        return UsageError("a row without names cannot be a column", hint="Name them: {'a': 1}.")
    if name == "OutOfMemoryException":
        return StoreError(
            "the query needs more memory than it may have (1 GB, and 4 GB on disk)",
            hint="Read fewer rows or columns: a WHERE, a LIMIT, no ORDER BY over long texts.",
        )
    if name in ("ConversionException", "OutOfRangeException", "InvalidInputException"):
        return StoreError(
            f"the query failed on a value ({name}); which one is not told, for it may stand in"
            " a row that you do not read",
            hint="Make it lenient: TRY_CAST(x AS INTEGER) instead of x::INTEGER, or TRY(...).",
        )
    return store_error(error, home)


def _too_long(timeout: float) -> StoreError:
    return StoreError(
        f"the query was stopped after {timeout:g} s",
        hint="Read less, or give it longer: --timeout 120",
    )


def _notes(question: _Question) -> Iterator[str]:
    for name in sorted(question.views):
        view = VIEWS[name]
        if view.empty:
            yield view.empty
        if view.note and question.scopes is not None:
            yield view.note


# ---- the copy -----------------------------------------------------------------------------------


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """Give a folder for what this reader may leave on the disk; it is made when it is needed."""
    for left in home.glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    folder = home.absolute() / f"{_FOLDER}{secrets.token_hex(6)}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copied(home: Path, folder: Path) -> Path:
    """Copy the store's file, and its log where it has one, under the lease.

    A log is there only after a kill. Raises StoreError when there is no room for the copy.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    with lease(home, write=False):
        for file in [home / FILE, *home.glob(f"{FILE}.*")]:
            try:
                _copy(file, folder / file.name)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StoreError(
                    f"the query takes long, and there is no room to copy the store for it"
                    f" ({error.strerror})",
                    hint="Free some space, or ask for less.",
                ) from error
    return folder / FILE


def _copy(source: Path, target: Path) -> None:
    """Copy a file's bytes; where the file system can, they are shared and nothing is copied."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with source.open("rb") as reader, open(descriptor, "wb") as writer:  # noqa: PTH123 - a descriptor
        if hasattr(os, "copy_file_range"):
            with contextlib.suppress(OSError):
                while os.copy_file_range(reader.fileno(), writer.fileno(), 1 << 30):
                    pass
                return
            reader.seek(0)
            writer.seek(0)
            writer.truncate()
        shutil.copyfileobj(reader, writer, 1 << 20)


# ---- values -------------------------------------------------------------------------------------


def _is_nested(type_: str) -> bool:
    return type_ == "JSON" or type_.endswith("]") or type_.startswith(("STRUCT", "MAP", "UNION"))


def _as_value(index: int, type_: str) -> str:
    """Return what to select for the column at a place: its value in a form that Python can hold."""
    if type_ in _PLAIN:
        return f"#{index}"
    if _is_nested(type_):
        return f"to_json(#{index})::VARCHAR"
    if type_.startswith("DECIMAL"):
        return f"#{index}::HUGEINT" if type_.endswith(",0)") else f"#{index}::DOUBLE"
    if type_.startswith("TIMESTAMP"):
        return f"strftime(#{index}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ')"
    return f"#{index}::VARCHAR"

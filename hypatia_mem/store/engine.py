"""The engine: DuckDB with nothing attached, started before a lease is taken, and used again.

To start one takes several times as long as to attach a store of any size. So it is started while
nobody waits, and one that comes back as it was is kept for the next time that this process opens a
store.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import StoreError

if TYPE_CHECKING:
    import duckdb

__all__ = ["Filling", "closing", "engine", "quoted"]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": True,
}
# A close writes the last rows of each table anew, as often as there is one. To find out how its
# usual method compresses them best is most of what that costs, so it is left for when they are
# complete. Until then one is used that makes them nearly as small in a sixth of the time.
_QUICK = "SET disabled_compression_methods = 'dict_fsst'; SET zstd_min_string_length = 20"
_THOROUGH = "SET disabled_compression_methods = ''"
_kept: list[duckdb.DuckDBPyConnection] = []


@contextmanager
def engine(folder: Path, *, again: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give an engine with nothing attached for the block.

    ``again`` takes one that is left from before, and leaves it for the next unless the block
    raises or closes it: whoever does more than attach, read, write and detach asks for its own.

    Whatever it makes is the owner's alone: the log beside the file comes at the first commit, so
    the mask holds for the whole block. A large query spills into ``folder``; by itself the engine
    would put the text of messages into ``.tmp`` of whatever project one stands in.
    """
    umask = os.umask(0o077)
    try:
        spill = _path_text(folder / ".spill")
        connection = (_left_over(spill) if again else None) or _started(spill)
        if again:
            connection.execute(_QUICK)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        # One that has spilled keeps its folder, and what is in it, until it is closed.
        if again and not _kept and not Path(spill).exists() and _is_clean(connection):
            _kept.append(connection)
        else:
            connection.close()
    finally:
        os.umask(umask)


@contextmanager
def closing(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Have the file that is attached as ``kb`` closed when the block is left.

    An engine that cannot let go of the file any more is closed with it.
    """
    import duckdb

    try:
        yield
    finally:
        try:
            connection.execute("USE memory")
            connection.execute("DETACH kb")
        except duckdb.Error:
            connection.close()


class Filling:
    """Notices when rows of the attached store are complete, and so worth a thorough compression."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, group: int) -> None:
        """Look at the tables before they are changed; ``group`` is how many rows are one block."""
        self._connection = connection
        self._group = group
        self.sizes = self._rows()

    def checkpoint(self) -> None:
        """Write what has changed into the store's file."""
        before = {table: rows // self._group for table, rows in self.sizes.items()}
        now = self._rows().items()
        if any(rows // self._group > before.get(table, 0) for table, rows in now):
            self._connection.execute(_THOROUGH)
        self._connection.execute("CHECKPOINT kb")

    def _rows(self) -> dict[str, int]:
        """Return how many rows each table has, deleted ones too that are still in the file."""
        found = self._connection.execute(
            "SELECT table_name, estimated_size FROM duckdb_tables() WHERE database_name = 'kb'"
        ).fetchall()
        return {str(name): int(rows) for name, rows in found}


def quoted(path: Path) -> str:
    """Return a path for an SQL literal: ATTACH takes no parameters."""
    return _path_text(path).replace("'", "''")


# ----------------------------------------------------------------------------------------------


def _path_text(path: Path) -> str:
    """Return an absolute path as text. Raises StoreError for one that the engine cannot open."""
    text = str(path.absolute())
    if "?" in text:  # the engine would look for its log at another place
        raise StoreError(
            f"DuckDB cannot open a file in a folder with a question mark in its name: {text}",
            hint="Set HYPATIA_MEM_HOME to another folder.",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StoreError(
            f"DuckDB cannot open a file in a folder whose name is not UTF-8: {text!a}",
            hint="Set HYPATIA_MEM_HOME to another folder.",
        ) from None
    return text


def _started(spill: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    if duckdb.__version__.startswith("1."):
        _spare_looking_for_pandas()
    return duckdb.connect(config={**_CONFIG, "temp_directory": spill})


def _spare_looking_for_pandas() -> None:
    """Let an import of pandas fail at once where it is not installed.

    DuckDB 1.5 tries one for every value of every parameter, and Python looks into each of its
    folders every time: a tenth of a millisecond for each name in a list.
    """
    with suppress(ValueError):  # somebody else has said so already
        if importlib.util.find_spec("pandas") is None:
            sys.modules["pandas"] = None  # type: ignore[assignment]


def _left_over(spill: str) -> duckdb.DuckDBPyConnection | None:
    """Return the engine that was left, told where to spill; None where there is none to use."""
    import duckdb

    with suppress(IndexError):  # another thread may have it by now
        connection = _kept.pop()
        try:
            literal = spill.replace("'", "''")
            connection.execute(f"SET temp_directory = '{literal}'")
            return connection
        except duckdb.Error:
            connection.close()
    return None


def _is_clean(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether an engine is open still and holds nothing of the block that used it."""
    import duckdb

    try:
        found = connection.execute("SELECT count(*) FROM duckdb_databases() WHERE NOT internal")
        return found.fetchall() == [(1,)]
    except duckdb.Error:
        return False


def _close_left_over() -> None:
    while _kept:
        _kept.pop().close()


atexit.register(_close_left_over)
if hasattr(os, "register_at_fork"):  # its threads would not be there in the child
    os.register_at_fork(before=_close_left_over)

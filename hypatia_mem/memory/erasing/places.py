"""Every place below a memory's home where bytes of a text can lie, each by its name.

``survey`` counts, place by place, the files that hold a piece: their bytes as they are on the disk,
and of each copy of the store, whose engine packs texts, every row of every table as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.errors import StoreError
from hypatia_mem.memory.erasing.pieces import Pieces

__all__ = ["JOB", "PLACES", "Held", "files", "place_of", "survey"]

JOB = "erasing"  # the file that an erasing keeps until it is done; it holds the words itself
_STORE = paths.STORE
_OF_FOLDER = {
    paths.SPOOL: "spool",
    paths.INDEX: "search index",
    paths.BRIEFS: "briefs",
    paths.SNAPSHOTS: "snapshots",
    "backups": "backups",
    paths.QUARANTINE: "damaged files kept",
    "archive": "kept files",
    paths.TURNS: "turn counters",
    "erasures": "certificates",
}
PLACES = ("store file", *_OF_FOLDER.values(), "typed lines", "program log", "other files")
_UNREADABLE = -1


class Held:
    """How many files and rows of one place hold a piece; ``unreadable`` could not be looked at."""

    __slots__ = ("files", "paths", "rows", "unreadable")

    def __init__(self) -> None:
        """Begin with none."""
        self.files = 0
        self.rows: dict[str, int] = {}
        self.unreadable = 0
        self.paths: list[str] = []

    @property
    def total(self) -> int:
        """Return how many files, and rows of tables, hold a piece."""
        return self.files + sum(self.rows.values())


def files(home: Path) -> Iterator[Path]:
    """Yield every regular file below a home, in order; links are not followed."""
    folders = [home]
    while folders:
        folder = folders.pop()
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            continue
        for path in inside:
            if path.is_symlink():
                continue
            if path.is_dir():
                folders.append(path)
            elif path.is_file():
                yield path


def place_of(home: Path, path: Path) -> str:
    """Return the place a file of the home belongs to."""
    parts = path.relative_to(home).parts
    if len(parts) > 1:
        return _OF_FOLDER.get(parts[0], "other files")
    name = parts[0]
    if _STORE in name:
        return "store file"
    if name.lstrip(".").startswith("repl_history"):
        return "typed lines"
    return "program log" if name.startswith(paths.LOG) else "other files"


def survey(home: Path, pieces: Sequence[str], *, only: Sequence[str] = PLACES) -> dict[str, Held]:
    """Return what each of these places holds."""
    looked = Pieces(pieces)
    found = {place: Held() for place in only}
    for path in files(home):
        name = path.relative_to(home).as_posix()
        held = found.get(place_of(home, path))
        if name == JOB or held is None:
            continue
        _look(home, path, looked, held)
        if looked.in_text(name):
            held.files += 1
            held.paths.append(name)
    return found


def _look(home: Path, path: Path, pieces: Pieces, held: Held) -> None:
    try:
        if pieces.in_file(path):
            held.files += 1
            held.paths.append(path.relative_to(home).as_posix())
    except OSError:
        held.unreadable += 1
        return
    if path.suffix == ".duckdb" and pieces.texts:
        _look_at_rows(home, path, pieces, held)


def _look_at_rows(home: Path, path: Path, pieces: Pieces, held: Held) -> None:
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store

    try:
        if path == home / _STORE:
            with open_store(home, write=False) as store:
                rows = erasing.rows_in(store.connection, pieces.texts)
        else:
            rows = erasing.rows_in_file(path, pieces.texts, home)
    except StoreError:
        held.unreadable += 1
        return
    for table, count in rows.items():
        held.rows[table] = held.rows.get(table, 0) + count
    if rows:
        held.paths.append(f"{path.relative_to(home).as_posix()} ({', '.join(rows)})")

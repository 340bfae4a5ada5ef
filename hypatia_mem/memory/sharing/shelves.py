"""Shelves: other memories beside this one, each a folder of its own, known here by a name.

A shelf is a memory's home like any other (``memory.duckdb``, index, archive, key); naming it with
``--shelf`` is the same as having ``HYPATIA_MEM_HOME`` point at its folder for one command. The
names stand in the table ``[shelves]`` of this home's ``config.toml``. ``default`` is this home
itself and is never registered. Nothing of a shelf is read before it is named, but for the keyed
digests of what was forgotten there: an import asks them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem import config
from hypatia_mem.capture import paths
from hypatia_mem.errors import ConfigError, HypatiaError, ShelfError

__all__ = [
    "DEFAULT",
    "Shelf",
    "connect",
    "disconnect",
    "others",
    "registered",
    "repository_of",
    "shelf_home",
]

DEFAULT = "default"
_TABLE = "shelves"
_MAX_NAME = 64
_SEE = "See what there is with: hypatia-mem list"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A registered shelf; ``connected`` when its store is there and may be read."""

    name: str
    path: Path
    connected: bool


def registered(home: Path) -> list[Shelf]:
    """Return the shelves registered in ``home``, by name. Raises ShelfError."""
    return [
        Shelf(name, path, os.access(path / paths.STORE, os.R_OK))
        for name, path in sorted(_table(home).items())
    ]


def shelf_home(home: Path, name: str) -> Path:
    """Return the folder of a shelf as seen from ``home``.

    Raises ShelfError when the name is not registered, or its store cannot be reached: a shelf that
    is gone must not look like an empty one.
    """
    if name == DEFAULT:
        return home
    path = _table(home).get(name)
    if path is None:
        raise ShelfError(f"there is no shelf {name[:80]!a}", hint=_SEE)
    if not path.is_dir():
        raise ShelfError(
            f"shelf {name!r} cannot be opened: its folder {path} is not there",
            hint=f"Bring the folder back, or: hypatia-mem disconnect {name}",
        )
    if not os.access(path / paths.STORE, os.R_OK):
        raise ShelfError(
            f"shelf {name!r} cannot be opened: {path / paths.STORE} is missing or not readable",
            hint=f"Check the folder, or: hypatia-mem disconnect {name}",
        )
    return path


def others(home: Path, target: Path) -> dict[str, Path]:
    """Return the homes of the same person's other memories, by name, as seen from ``target``.

    ``home`` itself, what is registered there, and what is registered in ``target``. Raises
    ShelfError when a list of shelves cannot be read.
    """
    found = {DEFAULT: home}
    for base in (home, target):
        for name, path in _table(base).items():
            if not any(_same(path, known) for known in found.values()):
                found[name if name not in found else str(path)] = path
    return {name: path for name, path in found.items() if not _same(path, target)}


def connect(home: Path, folder: Path, name: str = "") -> Shelf:
    """Register a folder as a shelf, making the memory in it where there is none.

    ``name`` defaults to the folder's. The store is opened once, so that a damaged or newer one is
    refused here and not at its first use. Connecting the same folder under its name again changes
    nothing. In a repository it is kept out of commits. Raises ShelfError, and what the store
    raises.
    """
    path = Path(os.path.realpath(folder.expanduser()))
    name = name or path.name
    _check_name(name)
    table = _table(home)
    _check_place(home, path, name, table)
    from hypatia_mem.store.connection import open_store

    try:
        with open_store(path, write=True):
            pass
    except HypatiaError as error:
        error.message = f"shelf {name!r} cannot be opened: {error.message}"
        raise
    if repository_of(path) is not None:
        _keep_out_of_commits(path)
    if table.get(name) != path:
        _write(home, {**table, name: path})
    return Shelf(name, path, connected=True)


def repository_of(path: Path) -> Path | None:
    """Return the git repository in whose tree a folder lies, None for none."""
    root = paths.find_root(str(path))
    return Path(root.path) if root.git_dir else None


def disconnect(home: Path, name: str) -> Path:
    """Take a shelf off the list and return its folder, which stays as it is. Raises ShelfError."""
    table = _table(home)
    if name == DEFAULT:
        raise ShelfError(
            "the shelf 'default' is this memory itself and cannot be disconnected",
            hint="To use another folder for it set HYPATIA_MEM_HOME.",
        )
    if name not in table:
        raise ShelfError(f"there is no shelf {name[:80]!a}", hint=_SEE)
    path = table.pop(name)
    _write(home, table)
    return path


# ----------------------------------------------------------------------------------------------


def _table(home: Path) -> dict[str, Path]:
    try:
        return {
            name: Path(path)
            for name, path in config.read_table(home, _TABLE).items()
            if name != DEFAULT and Path(path).is_absolute()
        }
    except ConfigError as error:
        raise ShelfError(f"the shelves are not known: {error.message}", hint=error.hint) from error


def _write(home: Path, table: dict[str, Path]) -> None:
    try:
        config.write_table(home, _TABLE, {name: str(path) for name, path in table.items()})
    except (ConfigError, UnicodeEncodeError) as error:
        what = error.message if isinstance(error, ConfigError) else "the path is not UTF-8"
        raise ShelfError(f"the shelf cannot be registered: {what}") from error


def _keep_out_of_commits(path: Path) -> None:
    """Let git pass over a shelf: what a memory holds is nobody's to push."""
    ignore = path / ".gitignore"
    if not ignore.exists():
        ignore.touch(mode=0o600)
        ignore.write_text("*\n", "utf-8")


def _check_name(name: str) -> None:
    wrong = (
        not 0 < len(name) <= _MAX_NAME
        or not name.isprintable()
        or name != name.strip()
        or name[0] in "-."
        or "/" in name
        or "\\" in name
    )
    if wrong:
        raise ShelfError(
            f"{name[:80]!a} cannot be the name of a shelf",
            hint=f"Up to {_MAX_NAME} printable characters, no slash, not beginning with - or a dot:"
            " hypatia-mem connect FOLDER -n NAME",
        )
    if name == DEFAULT:
        raise ShelfError(
            "the name 'default' belongs to this memory itself",
            hint="Choose another: hypatia-mem connect FOLDER -n NAME",
        )


def _check_place(home: Path, path: Path, name: str, table: dict[str, Path]) -> None:
    """Refuse a folder that is a shelf already, or that holds what is no memory."""
    own = Path(os.path.realpath(home))
    if _same(path, own):
        raise ShelfError(f"{path} is the shelf 'default' already")
    if own in path.parents:
        raise ShelfError(
            f"{path} lies inside this memory's own folder", hint="Choose a folder elsewhere."
        )
    for other, place in table.items():
        if other != name and _same(path, place):
            raise ShelfError(
                f"{path} is the shelf {other!r} already: a folder has one name",
                hint=f"To rename it: hypatia-mem disconnect {other}, then connect it again.",
            )
        if other == name and not _same(path, place):
            raise ShelfError(
                f"the shelf {name!r} is {place} already",
                hint=f"Choose another name with -n, or first: hypatia-mem disconnect {name}",
            )
    if not path.exists():
        return
    if not path.is_dir():
        raise ShelfError(f"{path} is not a folder")
    ours = (path / paths.STORE).exists() or (path / paths.SPOOL).is_dir()
    if not ours and any(path.iterdir()):
        raise ShelfError(
            f"{path} holds files that are no memory, and a shelf needs a folder of its own",
            hint="Name a new folder, or an empty one; it is made if it is not there.",
        )


def _same(one: Path, two: Path) -> bool:
    try:
        return one.samefile(two)
    except OSError:
        return one == two

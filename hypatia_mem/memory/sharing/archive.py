"""Files kept beside the store, below ``<home>/archive``, each with an entry that describes it.

A file goes by a relative name (``euclid/fig1.png``), which is its path below the archive, its
entry's name and its link ``archive://euclid/fig1.png``. It is a private copy (0600); no link is
ever followed, on the way in or out. A file stays as long as any state of any entry names it, so
that a deletion can be undone; ``forget`` leaves no state, and so it takes the file along.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mimetypes
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError
from hypatia_mem.model import Author, Entry, Statement

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "FOLDER",
    "MAX_BYTES",
    "SCHEME",
    "Archived",
    "checked_name",
    "copy_out",
    "file_names",
    "path_of",
    "private_folder",
    "store_file",
    "sweep",
]

FOLDER = "archive"
SCHEME = "archive://"
MAX_BYTES = 100 * 1024 * 1024
_MAX_NAME = 500
_MAX_LEVELS = 16
_NEW = ".new-"
_STALE_SECONDS = 86_400.0
_CHUNK = 1 << 20
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Archived:
    """What was kept: the entry's name and the link, the kind of file and its size in bytes."""

    name: str
    uri: str
    mime_type: str
    size: int
    digest: str


def store_file(
    home: Path,
    file: Path,
    *,
    name: str = "",
    scopes: tuple[str, ...],
    author: Author,
    now: datetime,
) -> Archived:
    """Copy a file into the archive and describe it by an entry that ``is_a archive``.

    ``name`` is its relative name there, without it the file's own. What the file says is kept as
    it is: no secret is taken out of it. Raises UsageError (no regular file, a link, too large, a
    name that leads out), Conflict (the name is taken), Refused (it was forgotten before).
    """
    from hypatia_mem.capture.redact import redact_text
    from hypatia_mem.memory import curate

    name = redact_text(checked_name(name or file.name))
    _refuse_own(home, file)
    with _copied(home, file) as (temporary, size, digest):
        archived = Archived(name, SCHEME + name, _mime_type(name), size, digest)
        with curate.changing(home, author, now) as (_, txn):
            outcome = txn.put_entry(_entry(archived, scopes))
            if outcome.verb == "refused":
                raise Refused(
                    f"{name!r} was not stored: {outcome.reason or 'it was forgotten before'}",
                    hint="A person can bring it back by running this command in a terminal.",
                )
            txn.put_statement(Statement(name, "is_a", "archive", scopes=scopes))
            _put(temporary, path_of(home, name), digest)  # before the commit: no entry without it
    return archived


def path_of(home: Path, name: str) -> Path:
    """Return where a file of this name lies; it need not exist.

    Raises UsageError for a name that leads out of the archive, or over a link in it.
    """
    path = home / FOLDER
    for part in ("", *checked_name(name).split("/")):
        path = path / part
        if path.is_symlink():
            raise UsageError(
                f"{path} is a link, and the archive follows none",
                hint="Take the link away, or store the file itself: hypatia-mem archive-store",
            )
    return path


def copy_out(home: Path, name: str, output: Path) -> Path:
    """Copy a kept file to ``output`` (into it, where that is a folder); return where it is now.

    Raises NotFound, and Conflict when there is something at that place: nothing is overwritten.
    """
    source = path_of(home, name)
    target = output / source.name if output.is_dir() else output
    try:
        incoming = os.open(source, os.O_RDONLY | _NOFOLLOW | _BINARY)
    except FileNotFoundError:
        raise NotFound(f"archive {name!r}", hint="List them: hypatia-mem archive-list") from None
    with os.fdopen(incoming, "rb") as reader:
        try:
            outgoing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        except FileExistsError:
            raise Conflict(f"{target} exists already", hint="Name another place with -o.") from None
        with os.fdopen(outgoing, "wb") as writer:
            while chunk := reader.read(_CHUNK):
                writer.write(chunk)
    return target


def file_names(home: Path) -> list[str]:
    """Return the names of the files in the archive, sorted; links and foreign things left out."""
    folder = home / FOLDER
    found: list[str] = []
    if folder.is_symlink():
        return found
    for where, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if not Path(where, one).is_symlink()]
        for one in files:
            path = Path(where, one)
            if not one.startswith(".") and not path.is_symlink():
                found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each closed to others."""
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def sweep(home: Path, store: Store) -> list[str]:
    """Remove the files that no state of any entry names any more; return their names.

    The caller holds the store's lease: a file is put in its place under the same lease, in the
    transaction that names it.
    """
    from hypatia_mem.store import listing

    folder = home / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return []
    for left in folder.glob(f"{_NEW}*"):  # of a process that was killed while it copied
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                left.unlink()
    names = file_names(home)
    named = listing.figures_in_use(store, live=False) if names else set()
    gone = [name for name in names if SCHEME + name not in named]
    for name in gone:
        path = folder / name
        path.unlink(missing_ok=True)
        for above in path.parents:
            if above == folder:
                break
            with contextlib.suppress(OSError):
                above.rmdir()
    return gone


def checked_name(name: str) -> str:
    """Return a file's relative name without ``archive://``.

    Raises UsageError for an absolute one, and for one with ``..``, hidden or unprintable parts.
    """
    plain = name.removeprefix(SCHEME)
    parts = plain.split("/")
    fits = (
        len(plain) <= _MAX_NAME
        and len(parts) <= _MAX_LEVELS
        and all(
            part
            and part[0] != "."
            and part.isprintable()
            and "\\" not in part
            and part == part.strip()
            and len(part.encode("utf-8", "replace")) <= 250
            for part in parts
        )
    )
    if not fits:
        raise UsageError(
            f"{name[:120]!a} cannot be the name of a kept file",
            hint="A relative name like euclid/fig1.png: no .. and no part that begins with a dot.",
        )
    return plain


# ----------------------------------------------------------------------------------------------


@contextmanager
def _copied(home: Path, file: Path) -> Iterator[tuple[Path, int, str]]:
    """Copy a file into the archive under a name nobody uses; yield its path, size and digest."""
    from hypatia_mem.capture import paths

    paths.ensure_home(str(home))
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path_of(home, "x")  # the folder itself must be no link
    temporary = folder / f"{_NEW}{os.getpid()}-{os.urandom(4).hex()}"
    with _opened(file) as reader:
        made = hashlib.sha256()
        size = 0
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        try:
            with os.fdopen(fd, "wb") as writer:
                while chunk := reader.read(_CHUNK):
                    size += len(chunk)
                    _refuse_large(file, size)
                    made.update(chunk)
                    writer.write(chunk)
                writer.flush()
                os.fsync(writer.fileno())
            yield temporary, size, made.hexdigest()
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; no link is followed and no pipe is waited for."""
    if file.is_symlink():
        raise UsageError(
            f"{file} is a link", hint=f"Name the file that it leads to: {os.path.realpath(file)}"
        )
    try:
        fd = os.open(file, os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"{file} cannot be read: {reason}") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise UsageError(f"{file} is not a regular file")
    with os.fdopen(fd, "rb") as reader:
        _refuse_large(file, found.st_size)
        yield reader


def _refuse_large(file: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise UsageError(
            f"{file} is larger than {MAX_BYTES // 1024 // 1024} MiB, the most that is kept",
            hint="Keep it where it is, and an entry with its path: hypatia-mem knowledge-create",
        )


def _refuse_own(home: Path, file: Path) -> None:
    """The memory's own files are no content of it: its key, say, must not travel in an export."""
    own = os.path.realpath(home)
    if os.path.realpath(file).startswith(own + os.sep):
        raise UsageError(f"{file} is a file of this memory itself")


def _put(temporary: Path, target: Path, digest: str) -> None:
    """Give the copy its name; a file of that name that an earlier state still needs is kept."""
    private_folder(target.parent)
    try:
        os.link(temporary, target)
    except FileExistsError:
        with target.open("rb") as reader:
            same = hashlib.file_digest(reader, "sha256").hexdigest() == digest
        if not same:
            raise Conflict(
                f"another file called {target.name!r} is still kept, for an entry that was deleted",
                hint="Choose another name with -n.",
            ) from None
    except NotADirectoryError:
        raise Conflict(f"{target.parent} is a kept file and cannot be a folder too") from None
    except OSError:  # a file system without hard links
        temporary.replace(target)


def _entry(archived: Archived, scopes: tuple[str, ...]) -> Entry:
    extension = archived.name.rpartition("/")[2].rpartition(".")
    tags = ["archive", _category(archived.mime_type)]
    if extension[0] and extension[2]:
        tags.append(extension[2].lower())
    content = {
        "filename": archived.name,
        "size_bytes": archived.size,
        "mime_type": archived.mime_type,
        "sha256": archived.digest,
    }
    return Entry(
        name=archived.name,
        content=json.dumps(content, ensure_ascii=False),
        format="json",
        tags=tuple(dict.fromkeys(tags)),
        scopes=scopes,
        figures=(archived.uri,),
    )


def _mime_type(name: str) -> str:
    """Return the type by the name's ending, the same on every machine."""
    return mimetypes.MimeTypes().guess_type(name)[0] or "application/octet-stream"


def _category(mime_type: str) -> str:
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "video", "audio") else "file"

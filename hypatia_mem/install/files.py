"""Small file acts every installer needs: write whole or not at all, digest, stamp."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

from hypatia_mem.errors import InstallError

__all__ = ["digest", "refuse_unwritable", "remove_empty", "stamp", "write_atomic"]


def digest(data: bytes) -> str:
    """Return the SHA-256 of the bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def stamp() -> str:
    """Return the UTC time for a name set aside, to the microsecond so that two never meet."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def write_atomic(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace the file by these bytes in one rename; a reader sees the old file or the new one.

    A symlink is followed: its target is replaced and the link stays. A file with several hard
    links is rewritten in place, since a rename would split it. Without ``mode`` an existing
    file keeps its own and a new one gets what the umask leaves.

    Raises:
        InstallError: the folder or the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.hypatia-mem-{os.getpid()}.tmp")
    try:
        old = target.stat() if target.exists() else None
        if old is not None and old.st_nlink > 1:
            target.write_bytes(data)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        elif old is not None:
            temporary.chmod(stat.S_IMODE(old.st_mode))
            _keep_owner(temporary, old)
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InstallError(
            f"cannot write {target}: {error.strerror or type(error).__name__}.",
            hint="Nothing of the file was changed. Free the disk or fix its permissions, "
            "then run the command again.",
        ) from error


def _keep_owner(path: Path, old: os.stat_result) -> None:
    """Give the new file to the old one's owner, where root installs for a person."""
    chown = getattr(os, "chown", None)
    if chown is not None and (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(OSError):
            chown(path, old.st_uid, old.st_gid)


def refuse_unwritable(path: Path) -> None:
    """Refuse a file somebody made read-only, even where root could write it all the same.

    Raises:
        InstallError: the file is read-only, is no regular file, or its folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists():
        if not target.is_file():
            raise InstallError(f"{target} is not a regular file.", hint="Move it away first.")
        mode = target.stat().st_mode
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise InstallError(
                f"{target} is read-only, so it was left as it is.",
                hint="Make it writable, or install without --settings.",
            )
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        raise InstallError(
            f"the folder {folder} cannot be written, so nothing was changed.",
            hint="Fix its permissions, or set CLAUDE_CONFIG_DIR to the folder your client uses.",
        )


def remove_empty(folder: Path, *, upto: Path) -> None:
    """Remove this folder and its parents below ``upto`` as far as they are empty."""
    while folder != upto and upto in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent

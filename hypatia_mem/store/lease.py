"""The lease: one lock around every open of the store (``store.lock``).

DuckDB lets one process write and then refuses even readers; 2.0.0 and 2.0.1 moreover read the
file's headers before they take its lock, and lose commits when two processes open and close in
overlapping fashion. Our own ``flock``, taken before the open, cures both: exclusive for writing,
shared for reading, polled with a deadline so that nobody waits for ever.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypatia_mem.errors import StoreBusy, StoreError

__all__ = ["lease"]

POLL_SECONDS = 0.02
_held = threading.local()


@contextmanager
def lease(home: Path, *, write: bool, deadline: float = 10.0) -> Iterator[None]:
    """Hold the store's lease for the block; ``deadline`` in seconds.

    Raises StoreBusy when another process keeps it longer, StoreError when the lock file cannot be
    made, RuntimeError when this thread holds it already (it would wait for itself).
    """
    path = home / "store.lock"
    mine: set[tuple[int, int]] = _held.__dict__.setdefault("files", set())
    until = time.monotonic() + deadline
    while True:
        fd = _opened(path)
        try:
            file = _identity(os.fstat(fd))
            if file in mine:
                raise RuntimeError("the store is open already in this thread: pass it on")
            _take(fd, write=write, until=until)
            if not _is_at(path, file):
                continue  # somebody cleared the folder while we waited: that lock locks nobody out
            mine.add(file)
            try:
                yield
            finally:
                mine.discard(file)
            return
        finally:
            os.close(fd)  # drops the lock


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise StoreError(
            f"the lock of the store cannot be opened: {path} ({error.strerror})",
            hint="Check that the memory's folder exists and is yours: hypatia-mem doctor",
        ) from error


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _is_at(path: Path, file: tuple[int, int]) -> bool:
    try:
        return _identity(path.stat()) == file
    except OSError:
        return False


def _take(fd: int, *, write: bool, until: float) -> None:
    while not _try(fd, write=write):
        if time.monotonic() >= until:
            raise StoreBusy(
                f"another process has kept the store longer than expected ({_holder(fd)})",
                hint="Try again; if it stays like this: hypatia-mem doctor",
            )
        time.sleep(POLL_SECONDS)
    if write:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def _try(fd: int, *, write: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: its byte locks know no sharing that we could use
        from hypatia_mem.capture.paths import try_lock

        return try_lock(fd)
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a network folder without locks, say: waiting would not help
        raise StoreError(
            f"the folder of the store cannot be locked ({error.strerror})",
            hint="Keep the memory on a local disk: set HYPATIA_MEM_HOME.",
        ) from error
    return True


def _holder(fd: int) -> str:
    try:
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    except OSError:
        text = ""
    return f"last writer: process {text}" if text.isdigit() else "unknown process"

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
    if getattr(_held, "path", None) == path:
        raise RuntimeError("the store is open already in this thread: pass it on, do not reopen")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise StoreError(
            f"the lock of the store cannot be opened: {path} ({error.strerror})",
            hint="Check that the memory's folder exists and is yours: hypatia-mem doctor",
        ) from error
    try:
        _take(fd, write=write, until=time.monotonic() + deadline, path=path)
        _held.path = path
        try:
            yield
        finally:
            _held.path = None
    finally:
        os.close(fd)  # drops the lock


def _take(fd: int, *, write: bool, until: float, path: Path) -> None:
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
    except OSError:
        return False
    return True


def _holder(fd: int) -> str:
    try:
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    except OSError:
        text = ""
    return f"last writer: process {text}" if text.isdigit() else "unknown process"

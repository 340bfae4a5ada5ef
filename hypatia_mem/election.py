"""Who works: the lock of the one process that does the cold work, and how it changes hands.

- At most one works: it holds ``worker.lock`` for its life; the kernel lets go when it dies.
- A stopped or wedged holder is found by its heartbeat (the lock file's age). The successor first
  wakes it (SIGCONT) and watches the heartbeat by a monotonic clock, so that a wall clock that
  jumped does not get a healthy worker killed; only one that stays still is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.capture import hook, paths
from hypatia_mem.errors import StoreBusy

__all__ = ["Lock", "WorkerState", "alone", "elect", "kick", "state"]

HEARTBEAT_STALE_SECONDS = 60.0
TAKEOVER_GRACE_SECONDS = 10.0  # longer than any step that does not beat


@dataclass(frozen=True, slots=True)
class WorkerState:
    """Whether a worker runs; ``heartbeat_age`` in seconds, None when none has ever run."""

    running: bool
    pid: int | None = None
    heartbeat_age: float | None = None

    @property
    def who(self) -> str:
        """Return in words who holds the lock; a command that wants to be alone keeps its number."""
        return "another command" if self.pid is None else f"process {self.pid}"

    @property
    def stalled(self) -> bool:
        """Tell whether the holder of the lock has shown no sign of life for too long."""
        age = self.heartbeat_age
        return self.running and age is not None and age > HEARTBEAT_STALE_SECONDS


class Lock:
    """``worker.lock``: held while working, its age is the heartbeat."""

    def __init__(self, home: Path) -> None:
        """Name the lock; nothing is opened yet."""
        self.path = home / "worker.lock"
        self._fd: int | None = None

    def acquire(self, *, asked: bool = True) -> bool:
        """Take the lock without waiting; False when another process has it.

        ``asked`` False keeps this process's number out of it: nobody is to ask it to stop.
        """
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if not paths.try_lock(fd):
            os.close(fd)
            return False
        self._fd = fd
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode() if asked else b"", 0)
        self.beat()
        return True

    def beat(self) -> None:
        """Show that the holder is alive."""
        with contextlib.suppress(OSError):
            os.utime(self.path)

    def release(self) -> None:
        """Let go; closing the descriptor drops the lock."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def state(home: Path) -> WorkerState:
    """Look at the lock without disturbing a worker that may be about to take it."""
    path = home / "worker.lock"
    try:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return WorkerState(running=False)
    try:
        free = paths.try_lock(fd)
        text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        age = time.time() - os.fstat(fd).st_mtime
    finally:
        os.close(fd)
    pid = int(text) if text.isdigit() else None
    return WorkerState(running=not free, pid=None if free else pid, heartbeat_age=age)


def kick(home: Path) -> bool:
    """Start a worker if none runs, as the hook does; True when one was started."""
    return hook.start_worker(str(home), dict(os.environ))


@contextmanager
def alone(home: Path, *, deadline: float = 30.0) -> Iterator[Callable[[], None]]:
    """Keep every other worker out for the block; gives what to call now and then as a heartbeat.

    One that runs is asked to finish its batch and go; another command that wants to be alone is
    waited for. Raises StoreBusy after ``deadline`` seconds. Hooks go on spooling meanwhile;
    afterwards a worker is started for that.
    """
    paths.ensure_home(str(home))
    lock = Lock(home)
    until = time.monotonic() + deadline
    asked: set[int] = set()
    while not lock.acquire(asked=False):
        holder = state(home).pid
        if holder is not None and holder not in asked:
            asked.add(holder)
            with contextlib.suppress(OSError):
                os.kill(holder, signal.SIGTERM)
        if time.monotonic() >= until:
            raise _not_alone(holder)
        time.sleep(0.1)
    try:
        yield lock.beat
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            kick(home)


def _not_alone(holder: int | None) -> StoreBusy:
    if holder is None:
        return StoreBusy(
            "another command has this memory to itself and is not done",
            hint="Nothing was changed. Try again when it is.",
        )
    return StoreBusy(
        f"the background worker (process {holder}) does not pause",
        hint="Nothing was changed. Stop it: hypatia-mem worker stop; then try again.",
    )


def elect(lock: Lock, home: Path, *, takeover: bool) -> bool:
    """Take the lock; ``takeover`` takes it from a holder that shows no sign of life."""
    # A hook or `status` that only looks holds the lock for microseconds: it is no worker.
    for _ in range(4):
        if lock.acquire():
            return True
        time.sleep(0.02)
    return takeover and _take_over(lock, home)


def _take_over(lock: Lock, home: Path) -> bool:
    """Wake the holder; kill it only if it shows no sign of life on a monotonic clock."""
    holder = state(home)
    if not holder.running or holder.pid is None or holder.pid == os.getpid():
        return lock.acquire()
    before = _age_mark(lock.path)
    with contextlib.suppress(OSError):
        if hasattr(signal, "SIGCONT"):
            os.kill(holder.pid, signal.SIGCONT)
    deadline = time.monotonic() + TAKEOVER_GRACE_SECONDS
    while time.monotonic() < deadline:
        if lock.acquire():
            return True
        if _age_mark(lock.path) != before:
            return False
        time.sleep(0.1)
    with contextlib.suppress(OSError):
        os.kill(holder.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    for _ in range(50):
        if lock.acquire():
            return True
        time.sleep(0.1)
    return False


def _age_mark(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

"""At most one process asks a model about batches at a time, so that nothing is paid for twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypatia_mem.capture import paths

__all__ = ["BUSY", "LOCK", "only_one"]

LOCK = "model.lock"
BUSY = "another run is asking the model about the same messages already"


@contextmanager
def only_one(home: Path) -> Iterator[bool]:
    """Hold the right to ask for the block; gives False where another process has it.

    It goes with the process, so whoever is killed lets go of it. Raises OSError.
    """
    descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        yield paths.try_lock(descriptor)
    finally:
        os.close(descriptor)

"""A small file system of a test's own, that can be filled up to a number of bytes and emptied again."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """A small file system at a path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.filler = path / "filler"

    def fill(self, leave: int) -> None:
        """Leave about ``leave`` bytes free."""
        self.free()
        found = os.statvfs(self.path)
        with contextlib.suppress(OSError), self.filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - leave))

    def free(self) -> None:
        """Empty it again."""
        self.filler.unlink(missing_ok=True)


@contextlib.contextmanager
def mounted(path: Path, megabytes: int) -> Iterator[Disk]:
    """Mount one there for the block; skips the test where that is not allowed."""
    path.mkdir()
    how = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    if (done := subprocess.run(how, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)

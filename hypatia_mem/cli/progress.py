"""Progress of what takes long: a bar with the time left at a terminal, nothing elsewhere.

Also the mark that what a command starts is our own traffic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["mark_as_own", "progress"]


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Yield what is called when one of ``total`` is done.

    At a terminal, and unless ``quiet``, a bar shows how many are, how long it took and how long it
    will take. It is gone afterwards.
    """
    if quiet or total < 1 or not sys.stdout.isatty():
        yield lambda: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.update(task, advance=1)


@contextmanager
def mark_as_own() -> Iterator[None]:
    """Mark everything that is started meanwhile as our own, so that no hook captures it (I6)."""
    from hypatia_mem.capture.hook import GUARD

    before = os.environ.get(GUARD)
    os.environ[GUARD] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[GUARD]
        else:
            os.environ[GUARD] = before

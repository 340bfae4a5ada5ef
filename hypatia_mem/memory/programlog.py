"""The program's log as the place of every log record: one format, and never the screen.

Without a handler Python prints warnings on standard error, where a command has said the same in
its own words already.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypatia_mem.capture import paths

__all__ = ["keeping"]

_LOG = logging.getLogger("hypatia_mem")


class _Keeper(logging.Handler):
    """Writes records to the log of ``home``; a home that is not there is not made for it."""

    def __init__(self, home: Path | None, component: str) -> None:
        super().__init__()
        self.home = home
        self.component = component

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            home = str(self.home or paths.home())
            if os.path.isdir(home):  # noqa: PTH112 - as everywhere beside the hot path
                paths.log_line(home, record.levelname, self.component, record.getMessage())


@contextmanager
def keeping(
    component: str, home: Path | None = None, *, level: int | None = None
) -> Iterator[None]:
    """Keep what is logged meanwhile in the program's log, as said by ``component``.

    ``home`` None is this memory's at that moment. ``level`` is what is logged from then on, None
    as it was. One that is already going on rests meanwhile, so that nothing is written twice.
    """
    resting = [one for one in _LOG.handlers if isinstance(one, _Keeper)]
    keeper, before = _Keeper(home, component), _LOG.level
    for one in resting:
        _LOG.removeHandler(one)
    _LOG.addHandler(keeper)
    if level is not None:
        _LOG.setLevel(level)
    try:
        yield
    finally:
        _LOG.setLevel(before)
        _LOG.removeHandler(keeper)
        for one in resting:
            _LOG.addHandler(one)

"""What still waits in the spool is meant too when somebody names it: it is stored first.

A turn gets its name when it is stored. So a command that takes names and finds nothing is run once
more after the spool was drained, by the one drain there is, with every other worker kept out. A
command that takes a session away drains what the session still has to say before it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from hypatia_mem.errors import HypatiaError, NotFound, StoreBusy

__all__ = ["AGAIN", "bring", "looked_again"]

# The commands that are run again: they read no input, and one that finds nothing has done nothing.
AGAIN = frozenset(
    {
        "accept", "delete", "delete-from", "dispute", "erase", "forget", "move", "pin",
        "provenance", "reject", "show", "stale", "suppress", "trust", "verify",
    }
)  # fmt: skip
_DEADLINE = 20.0  # seconds for a worker to finish its batch and go
_PATIENCE = 5.0  # seconds for one that runs to store it, before it is asked to go
_POLL = 0.2


def looked_again(error: NotFound) -> bool:
    """Store what waits in the spool; True when there was something, and it is worth a second look.

    Raises NotFound with a hint that says so when it could not be stored.
    """
    waiting = _waiting()
    if not waiting:
        return False
    try:
        _drain()
    except (HypatiaError, OSError) as problem:
        raise NotFound(error.message, hint=f"{_why_not(waiting, problem)} {error.hint}") from None
    return True


def bring(names: Iterable[str] | None = None) -> None:
    """Store what the sessions that are named still have in the spool, so that it goes with them.

    ``names`` are as a person writes them: a session's id, ``SESSION:3-5``, ``msg-SESSION-4``; None
    is every session. Raises StoreBusy when it could not be stored: what came in later would stay.
    """
    wanted = None if names is None else list(names)
    waiting = _waiting(
        lambda session: wanted is None or any(_is_of(name, session) for name in wanted)
    )
    if not waiting:
        return
    try:
        _drain()
    except (HypatiaError, OSError) as problem:
        raise StoreBusy(
            _why_not(waiting, problem), hint="Nothing was changed. Try again in a moment."
        ) from problem


# ----------------------------------------------------------------------------------------------


def _is_of(name: str, session: str) -> bool:
    return name == session or name.startswith((f"{session}:", f"msg-{session}-"))


def _waiting(wanted: Callable[[str], bool] = lambda _session: True) -> int:
    """Return how many records of these sessions are not stored yet."""
    from hypatia_mem.capture import spool
    from hypatia_mem.cli import context
    from hypatia_mem.store.connection import open_store

    home = context.home()
    segments = [one for one in spool.segments(str(home)) if wanted(one.session)]
    if not segments:
        return 0
    with open_store(home, write=False) as store:
        cursors = store.cursors()
    return sum(
        isinstance(record, spool.Record)
        for one in segments
        if cursors.get(one.id, 0) < one.size
        for record in spool.iter_records(one.path, cursors.get(one.id, 0))
    )


def _drain() -> None:
    from hypatia_mem.cli import context
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory.erasing import steps
    from hypatia_mem.worker import alone, state

    home = context.home()
    until = time.monotonic() + _PATIENCE
    while state(home).pid is not None and time.monotonic() < until:
        time.sleep(_POLL)  # it may be waiting for a model, and stores what comes in meanwhile
        if not _waiting():
            return
    with alone(home, deadline=_DEADLINE) as beat:
        steps.drain(home, load_settings(home), beat)


def _why_not(waiting: int, problem: Exception) -> str:
    records = "1 record waits" if waiting == 1 else f"{waiting} records wait"
    said = problem.message if isinstance(problem, HypatiaError) else str(problem)
    return f"{records} in the spool and could not be stored: {said}."

"""What a running session stands on is not changed under it.

A session's turns, and the summaries of them, are held while it runs: a change that somebody else
asks for is refused, and the sentence names both. What was learned from it (a rule that was
remembered in it) is not held. A session runs until it says that it ends; one that has shown no sign
of life for ``HOLD`` is taken for dead, and holds nothing. A change may also be queued: the worker
makes it when the session has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import paths, spool
from hypatia_mem.errors import Conflict, HypatiaError
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["HOLD", "held", "queue_held", "refuse_held", "run_queued"]

HOLD = timedelta(minutes=30)
_SLACK = timedelta(seconds=5)  # the record that ends a session is written a moment after its time
_LOG = logging.getLogger("hypatia_mem")


def held(
    store: Store, names: Sequence[str], *, author: Author, now: datetime
) -> list[tuple[str, str]]:
    """Return (name, session) of those of these names that a running session depends on.

    The session that asks for the change itself holds nothing against it.
    """
    from hypatia_mem.store import reviewing

    alive: dict[str, bool] = {author.session_id: False}
    found: list[tuple[str, str]] = []
    for name, session in reviewing.sessions_under(store, names):
        if session not in alive:
            alive[session] = _runs(store, session, now)
        if alive[session]:
            found.append((name, session))
    return found


def refuse_held(store: Store, names: Sequence[str], *, author: Author, now: datetime) -> None:
    """Raise Conflict when a running session depends on one of these names."""
    for name, session in held(store, names, author=author, now=now):
        raise Conflict(
            f"{name!r} is part of session {session}, which is running",
            hint="Wait until it has ended; edit, reject, suppress and delete do that for you with"
            f" --after. One without a sign of life for {HOLD.seconds // 60} minutes holds nothing.",
        )


def queue_held(
    home: Path,
    verb: str,
    names: Sequence[str],
    arguments: Mapping[str, Any],
    *,
    sessions: Sequence[str] = (),
    author: Author,
    now: datetime,
) -> list[dict[str, str]]:
    """Keep a change of these names, and of these ``sessions``, until what holds them has ended.

    A session holds itself, also against the agent that works in it. Returns ``id``, ``name`` and
    ``session`` of each; what nobody holds any more is made with the next run of the worker. It can
    be undone like any other operation.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        holders = dict(held(store, names, author=author, now=now))
        holders |= {one: one for one in sessions if _runs(store, one, now)}
        return [
            {
                "id": txn.queue_change(holders.get(name, ""), verb, name, arguments),
                "name": name,
                "session": holders.get(name, ""),
            }
            for name in [*names, *sessions]
        ]


def run_queued(home: Path, now: datetime) -> int:
    """Make the queued changes whose sessions have ended; return how many were made.

    One that is refused by now (its words changed meanwhile, its value was forgotten) stays in the
    queue with the sentence that says why, for a person to look at.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.memory import trust as trust_
    from hypatia_mem.store import reviewing
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        waiting = [
            one
            for one in reviewing.queued(store, failed=False)
            if not _runs(store, one.session_id, now)
        ]
    done = 0
    for one in waiting:
        author = Author(Channel(one.channel), one.actor, session_id=one.session_id)
        failure = ""
        try:
            trust_.carry_out(home, one.verb, one.name, one.arguments, author=author, now=now)
        except HypatiaError as error:
            failure = error.message
            _LOG.info("a queued change was not made: %s", type(error).__name__)
        with curate.changing(home, author, now) as (_, txn):
            txn.unqueue(one.id, failure=failure)
        done += not failure
    return done


# ----------------------------------------------------------------------------------------------


def _runs(store: Store, session: str, now: datetime) -> bool:
    from hypatia_mem.store import reviewing

    if not session:
        return False
    said, ended = reviewing.last_said(store, session)
    seen = max((at for at in (said, _spooled(store.home, session)) if at), default=None)
    if seen is None or now - seen > HOLD:
        return False
    return ended is None or ended + _SLACK < seen


def _spooled(home: Path, session: str) -> datetime | None:
    """Return when a hook of this session last wrote something."""
    name = spool.session_name(session)
    try:
        at = (home / paths.SPOOL / f"{name}.jsonl").stat().st_mtime if name else 0.0
    except OSError:
        return None
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None) if at else None

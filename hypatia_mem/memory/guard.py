"""What a running session stands on is not changed under it.

A session's turns, and the summaries of them, are held while it runs: a change that somebody else
asks for is refused, and the sentence names both. What was learned from it (a rule that was
remembered in it) is not held. A session runs until it says that it ends; one that has shown no sign
of life for ``HOLD`` is taken for dead, and holds nothing. A change may also wait for its end
(``queued``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths, spool
from hypatia_mem.errors import SessionRuns
from hypatia_mem.model import Author

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["HOLD", "held", "refuse_held", "runs"]

HOLD = timedelta(minutes=30)
_SLACK = timedelta(seconds=5)  # the record that ends a session is written a moment after its time


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
            alive[session] = runs(store, session, now)
        if alive[session]:
            found.append((name, session))
    return found


def refuse_held(
    store: Store,
    names: Sequence[str],
    *,
    author: Author,
    now: datetime,
    dry_run: bool = False,
    hint: str = "Wait until it has ended, or let --after do that for you.",
) -> list[tuple[str, str]]:
    """Raise SessionRuns when a running session depends on one of these names.

    A ``dry_run`` is told them instead: it shows what would happen, and that it is refused now.
    """
    found = held(store, names, author=author, now=now)
    if found and not dry_run:
        name, session = found[0]
        raise SessionRuns(
            f"{name!r} is part of session {session}, which is running",
            hint=f"{hint} One without a sign of life for {HOLD.seconds // 60} minutes"
            " holds nothing.",
        )
    return found


def runs(store: Store, session: str, now: datetime) -> bool:
    """Tell whether a session runs: it shows signs of life, and has not said that it ends."""
    from hypatia_mem.store import reviewing

    if not session:
        return False
    said, ended = reviewing.last_said(store, session)
    seen = max((at for at in (said, _spooled(store.home, session)) if at), default=None)
    if seen is None or now - seen > HOLD:
        return False
    return ended is None or ended + _SLACK < seen


# ----------------------------------------------------------------------------------------------


def _spooled(home: Path, session: str) -> datetime | None:
    """Return when a hook of this session last wrote something."""
    name = spool.session_name(session)
    try:
        at = (home / paths.SPOOL / f"{name}.jsonl").stat().st_mtime if name else 0.0
    except OSError:
        return None
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None) if at else None

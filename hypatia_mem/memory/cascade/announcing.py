"""Telling a session's agent that a batch is due, where the agent is who condenses.

The hook cannot ask the store, so the line is rendered ahead: ``briefs/<session>.batch`` holds the
batch's ticket and the line. The hook prints it with the next prompt and renames the file to
``.batched``, which says what need not be said again. One session of a project is told of a batch:
the one that spoke last; another only when that is over and nothing was handed in.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.capture.triggers import BATCH, BATCHED
from hypatia_mem.config.file import write_text
from hypatia_mem.memory.cascade.plan import Batch, Planner
from hypatia_mem.model import GLOBAL_SCOPE

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store

__all__ = ["announce", "line_of"]

_LATELY = timedelta(hours=6)  # a session without a word for longer is not under way
_SESSIONS = 20
_KEPT_SECONDS = 30 * 86400.0


def announce(home: Path, settings: Settings, *, now: datetime) -> int:
    """Bring what sessions are told of due batches up to date; return how many will be told.

    Nobody is told anything unless the agent is who condenses. Raises what opening the store raises.
    """
    folder = home / paths.BRIEFS
    wanted = _wanted(home, settings, now) if settings.summary_by == "agent" else {}
    with contextlib.suppress(OSError):  # what is left wrong, the next round mends
        for path in folder.glob(f"*{BATCH}"):
            if path.stem not in wanted:
                path.unlink(missing_ok=True)
        for path in folder.glob(f"*{BATCHED}"):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink(missing_ok=True)
        for session, batch in wanted.items():
            text = f"{batch.ticket}\n{line_of(batch)}\n"
            path = folder / f"{session}{BATCH}"
            if _read(path) != text:
                write_text(path, text)
    return len(wanted)


def line_of(batch: Batch) -> str:
    """Return what the agent is told of a due batch."""
    what = "messages" if batch.level == 1 else f"summaries of level {batch.level - 1}"
    return (
        f"[hypatia-memory] Summary due: {len(batch.items)} {what} ({batch.reason}). "
        "hypatia-mem cascade due, then "
        f"hypatia-mem cascade submit NAME --ticket {batch.ticket} -d -"
    )


def _wanted(home: Path, settings: Settings, now: datetime) -> Mapping[str, Batch]:
    """Return, by session, the batch that it is still to be told of."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        by_project: dict[str, list[str]] = {}
        for session, project in lessons.talking(store, now - _LATELY, _SESSIONS):
            by_project.setdefault(project, []).append(session)
        planner = Planner(store, home, settings, now)
        due = {
            project: found[0]
            for project in by_project
            if (found := planner.due([project, GLOBAL_SCOPE], retry=True))
        }
        whom = {
            project: next(
                (one for one in by_project[project] if "/" not in one and _may(store, one, batch)),
                "",
            )
            for project, batch in due.items()
        }
    return {
        whom[project]: batch
        for project, batch in due.items()
        if whom[project]
        and not any(_was_told(home, session, batch) for session in by_project[project])
    }


def _may(store: Store, session: str, batch: Batch) -> bool:
    """Tell whether a session may read all of a batch: a branch reads nothing of its siblings."""
    from hypatia_mem.store import hiding

    return {item.name for item in batch.items}.isdisjoint(hiding.hidden_names(store, session))


def _was_told(home: Path, session: str, batch: Batch) -> bool:
    text = _read(home / paths.BRIEFS / f"{session}{BATCHED}")
    return text.partition("\n")[0] == batch.ticket


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""

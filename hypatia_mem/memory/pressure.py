"""What is done while a session's context fills up, level by level, once each.

Above ``tools`` the session is told that older tool results need not be fetched again, and they are
listed in short; above ``condense`` all but its last ten messages are condensed; above ``persist``
the rest is, a snapshot is asked for, and the session is told that beginning anew loses nothing. A
level that was reached in one step does what those below it do too, in that order. When the context
was emptied in between (compacted, cleared), it begins from the start.

A client that condenses the session's context by itself has not asked us: once the drain sees that
it did (``compacted``), all that was said till then is condensed here too.

The worker looks after each drain and writes down what is to be done (the cascade does it, see
``cascade.plan``) in one transaction with that it was. What is said is rendered ahead, for the hook
cannot ask the store: ``briefs/<session>.pressure``, printed with the next prompt and removed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.config.file import write_text
from hypatia_mem.memory.cascade.plan import PRESSED
from hypatia_mem.memory.summarise import windows

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.model import Author
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.contexts import Use
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "FULL",
    "KEEP",
    "NOTICE",
    "SHORT",
    "Level",
    "Limits",
    "Pressure",
    "apply",
    "compacted",
    "level_of",
    "limits_of",
    "look",
    "of_session",
]

_LOG = logging.getLogger("hypatia_mem")
NOTICE = ".pressure"
KEEP = 10  # messages that stay as they are at ``condense``
SHORT = 5  # results that are shown whole while a context fills up
FULL = "pressure"  # the note of what was done, by session: [level, turn]
_LATELY = timedelta(hours=6)  # a session without an answer for longer is not under way
_SESSIONS = 20
_NOTICE_SECONDS = 86_400.0


class Level(IntEnum):
    """How full a context is, by what is done about it."""

    NONE = 0
    TOOLS = 1
    CONDENSE = 2
    PERSIST = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The percent of a window above which each level begins; 0 never."""

    tools: int
    condense: int
    persist: int

    def of(self, level: Level) -> int:
        """Return the percent of a level, 0 for none."""
        return (0, self.tools, self.condense, self.persist)[level]


@dataclass(frozen=True, slots=True)
class Pressure:
    """A session that is under way: how full it is, and up to which level something was done."""

    session_id: str
    project: str
    turn: int
    model: str
    tokens: int
    window: int
    level: Level
    limits: Limits
    done: Level

    @property
    def percent(self) -> int:
        """Return the share of the window that is in use, rounded down."""
        return self.tokens * 100 // self.window


# --- pure -----------------------------------------------------------------------------------------


def limits_of(window: int, settings: Settings) -> Limits:
    """Return where the levels begin for a window of so many tokens."""
    if window > settings.pressure_small_window:
        return Limits(
            settings.pressure_tools, settings.pressure_condense, settings.pressure_persist
        )
    condense = settings.pressure_small_condense
    tools = min(settings.pressure_tools, condense or settings.pressure_tools)
    return Limits(tools, condense, settings.pressure_small_persist)


def level_of(tokens: int, window: int, limits: Limits) -> Level:
    """Return the highest level whose share of the window is exceeded, not merely reached.

    >>> level_of(700, 1000, Limits(70, 85, 95)), level_of(951, 1000, Limits(70, 85, 95))
    (<Level.NONE: 0>, <Level.PERSIST: 3>)
    """
    found = Level.NONE
    for level in (Level.TOOLS, Level.CONDENSE, Level.PERSIST):
        percent = limits.of(level)
        if percent and tokens * 100 > percent * window:
            found = level
    return found


# --- looking --------------------------------------------------------------------------------------


def look(home: Path, settings: Settings, *, now: datetime) -> list[Pressure]:
    """Return the sessions that are under way, the fullest first; nothing is changed."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return _look(store, home, settings, now)


def of_session(home: Path, settings: Settings, session_id: str, *, now: datetime) -> Level:
    """Return how full a session's context is; NONE for one that is not under way."""
    found = [one for one in look(home, settings, now=now) if one.session_id == session_id]
    return found[0].level if found else Level.NONE


def _look(store: Store, home: Path, settings: Settings, now: datetime) -> list[Pressure]:
    from hypatia_mem.store import contexts, summaries

    own = windows.own(home)
    notes: dict[str, list[int]] = summaries.read_note(store, FULL, {})
    excluded = {project.scope for project in store.projects() if project.excluded}
    found = [
        _pressure(uses, settings.cascade_max_tokens or windows.window_of(uses[0].model, own),
                  settings, notes.get(session, [0, 0]))
        for session, uses in contexts.lately(store, now - _LATELY).items()
        if uses[0].project not in excluded
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-one.tokens * 1000 // one.window, one.session_id))


def _pressure(
    uses: Sequence[Use], window: int, settings: Settings, note: Sequence[int]
) -> Pressure:
    limits = limits_of(window, settings)
    last = uses[0]
    done, since = Level(note[0]), note[1]
    # Half of the window: what only wavers around a limit is not told again.
    emptied = any(2 * one.tokens < window for one in uses if one.turn > since)
    return Pressure(
        last.session_id, last.project, last.turn, last.model, last.tokens, window,
        level_of(last.tokens, window, limits), limits, Level.NONE if emptied else done,
    )  # fmt: skip


# --- doing ----------------------------------------------------------------------------------------


def apply(home: Path, settings: Settings, *, author: Author, now: datetime) -> list[Pressure]:
    """Do what is due for every session whose context fills up; return those it was done for.

    Nothing is opened for writing where nothing is due. Raises what the store raises.
    """
    from hypatia_mem.store import summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        seen = _look(store, home, settings, now)
        notes: dict[str, list[int]] = summaries.read_note(store, FULL, {})
        last = {one.session_id: _last_turn(store, one.session_id) for one in seen}
    due = [one for one in seen if one.level > one.done]
    over = [one for one in seen if one.done is Level.NONE and one.session_id in notes]
    if not due and not over:
        return []
    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        notes = summaries.read_note(store, FULL, {})
        pressed: dict[str, int] = summaries.read_note(store, PRESSED, {})
        for one in over:
            notes.pop(one.session_id, None)
        for one in due:
            notes.pop(one.session_id, None)
            notes[one.session_id] = [int(one.level), one.turn]
            if one.level >= Level.CONDENSE:
                keep = KEEP if one.level is Level.CONDENSE else 0
                pressed.pop(one.session_id, None)
                pressed[one.session_id] = max(0, last[one.session_id] - keep)
            if one.level is Level.PERSIST:
                txn.set_meta("snapshot_wanted", str(txn.seq + 1))
        summaries.note(txn, FULL, dict(list(notes.items())[-_SESSIONS:]))
        summaries.note(txn, PRESSED, dict(list(pressed.items())[-_SESSIONS:]))
    _tell(home, settings, due, over)
    return due


def compacted(txn: Transaction, session_id: str, at: datetime) -> None:
    """Note that the client has emptied a session's context: what was said till then is condensed.

    In the transaction that stores the session; ``at`` is naive UTC. One of long ago is no hurry:
    nobody works there now. Read again, it changes nothing.
    """
    from hypatia_mem.store import lessons, summaries

    if at < txn.now - _LATELY:
        return
    pressed: dict[str, int] = summaries.read_note(txn.store, PRESSED, {})
    turn = lessons.last_turn(txn.store, session_id, until=at)
    if turn > pressed.get(session_id, 0):
        pressed.pop(session_id, None)
        pressed[session_id] = turn
        summaries.note(txn, PRESSED, dict(list(pressed.items())[-_SESSIONS:]))


def _last_turn(store: Store, session_id: str) -> int:
    from hypatia_mem.store import lessons

    return lessons.last_turn(store, session_id)


def _tell(
    home: Path, settings: Settings, due: Iterable[Pressure], over: Iterable[Pressure]
) -> None:
    """Render what each session is told with its next prompt; a failure is silence."""
    folder = home / paths.BRIEFS
    with contextlib.suppress(OSError):
        for one in over:
            (folder / f"{one.session_id}{NOTICE}").unlink(missing_ok=True)
        for one in due:
            _LOG.info("a context is %d %% full: %s", one.percent, one.level.name.lower())
            if "/" not in one.session_id:
                write_text(folder / f"{one.session_id}{NOTICE}", notice(one, settings) + "\n")
        for path in folder.glob(f"*{NOTICE}"):
            if time.time() - path.stat().st_mtime > _NOTICE_SECONDS:
                path.unlink(missing_ok=True)


def notice(one: Pressure, settings: Settings) -> str:
    """Return the line that a session is told at its level."""
    full = f"[hypatia-memory] Context {one.percent} % full ({one.tokens} of {one.window} tokens). "
    if one.level is Level.CONDENSE:
        return full + _CONDENSING.get(settings.summary_by, _CONDENSED) + _FINISH
    return full + _SAID[one.level]


_SAID = {
    Level.NONE: "",
    Level.TOOLS: "Results of tools need not be fetched again: hypatia-mem tools lists them in "
    "short, hypatia-mem tool ID --lines 40-60 quotes any line.",
    Level.PERSIST: "All that was said is kept: a new session (/clear) or /compact loses nothing. "
    "hypatia-mem handoff prints what the next one needs.",
}
_CONDENSED = f"All but the last {KEEP} messages of this session are being summarised. "
_CONDENSING = {
    "off": "",
    "agent": f"All but its last {KEEP} messages are to be summarised: hypatia-mem cascade due. ",
}
_FINISH = "Finish the step at hand before beginning a large one."

"""The cascade: what is old is condensed, level by level, and nothing is ever replaced.

Level 1 condenses messages, once those that no summary covers fill a share of the model's window;
level N condenses ``cascade_batch`` summaries of level N-1. Always the oldest first, never a part of
a batch, upward until a level has too few. A batch larger than the summariser's window is split into
several summaries of the same level; what is still to do of it is noted in the store.

A pass reads batches, lets go of the store, condenses, and stores each summary with its links in one
transaction that asks again whether everything is as it was read. Killed anywhere, it has stored a
whole summary or nothing, and the next pass goes on from what the store says.

What failed is tried again later and later, or waits for its summariser; see ``failing``. A model
is asked for one batch at a time, and what it answered is stored before it is asked again. What is
due, and when, is said by ``plan``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.memory.cascade import failing, storing
from hypatia_mem.memory.cascade.plan import Batch, Planner
from hypatia_mem.memory.cascade.storing import Done
from hypatia_mem.memory.summarise import choosing, making, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.onlyone import BUSY, only_one
from hypatia_mem.memory.summarise.protocol import (
    FailureKind,
    Request,
    Summariser,
    SummaryFailed,
)
from hypatia_mem.model import Author, Channel, Entry

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves

__all__ = ["Done", "Handed", "Report", "Waiting", "due", "heal", "present_of", "run", "submit"]

_LOG = logging.getLogger("hypatia_mem")
SAMPLE = 1_500  # messages that say how rare a word is
ROUND_BATCHES = 32
ROUND_CHARS = 6_000_000
LEASE_LINKS = 250
STAND_IN = 2  # times the threshold: then the extractive one does what the agent has not done


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did; ``paused`` is why it stopped asking before all was done, and until when."""

    made: tuple[Done, ...] = ()
    failed: tuple[str, ...] = ()
    dropped: int = 0
    paused: str = ""

    @property
    def line(self) -> str:
        """Return the skill's line, ``""`` when nothing was made."""
        if not self.made:
            return ""
        counts: dict[tuple[int, str], int] = {}
        for one in self.made:
            key = (one.level, one.reason)
            counts[key] = counts.get(key, 0) + 1
        told = [f"+{n} summary {level} ({why})" for (level, why), n in sorted(counts.items())]
        return f"Cascade: {', '.join(told)}."


@dataclass(frozen=True, slots=True)
class _Round:
    """What is condensed before the store is opened again."""

    due: Sequence[Batch]
    entries: Mapping[str, Entry]
    sample: Sequence[str]
    stood_in: frozenset[str]  # tickets of what a model has given up on
    graves: Graves  # what is forgotten is not summed up either


@dataclass(frozen=True, slots=True)
class _Result:
    """What became of a batch; ``asked``: by the model in force, not by who stands in."""

    batch: Batch
    outcome: making.Made | SummaryFailed
    producer: str
    asked: bool


@dataclass(frozen=True, slots=True)
class Handed:
    """A due batch as it is handed to an agent."""

    batch: Batch
    request: Request


# --- a pass ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is done while a model is waited for, when the store is let go of.

    ``tick`` is called many times a second; ``stop`` says whether to give up; ``told`` hears of
    every summary that was stored.
    """

    tick: Callable[[], None] = lambda: None
    stop: Callable[[], bool] = lambda: False
    told: Callable[[Done], None] = lambda done: None

    def model(
        self,
        home: Path,
        settings: Settings,
        roots: Sequence[str],
        *,
        clock: Callable[[], datetime],
        author: Author,
    ) -> Summariser:
        """Return who is asked while this goes on; as ``choosing.choose``."""
        return choosing.choose(
            home, settings, roots=roots, tick=self.tick, stop=self.stop, clock=clock, author=author
        )


def run(  # noqa: PLR0913 - what is condensed, by whom, and who is told
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    summariser: Summariser | None = None,
    retry: bool = False,
    beat: Callable[[], None] = lambda: None,
    waiting: Waiting | None = None,
    only_owed: bool = False,
) -> Report:
    """Condense all that is due, level by level, until nothing is; the store is free in between.

    ``scopes`` None means every project. ``retry`` tries again what has failed too. ``only_owed``
    makes nothing but what summaries left behind that lost a source. ``beat`` is called between
    steps. With ``summary_by`` off nothing is made, and with agent only what the
    agent has left undone for too long. Where another process asks a model already, this one leaves
    it to that. Raises what the store raises.
    """
    dropped = heal(home, now=now)
    if settings.summary_by == "off" and summariser is None:
        return Report(dropped=dropped)
    author = author or Author(Channel.WORKER)
    one = _Pass(home, settings, now, author, scopes, summariser, retry, waiting or Waiting())
    one.only_owed = only_owed
    if not one.asks:
        one.go(beat)
    else:
        with only_one(home) as mine:
            if mine:
                one.go(beat)
            else:
                one.paused = BUSY
    return Report(tuple(one.made), tuple(one.failed), dropped, one.paused)


class _Pass:
    """One pass: what is due, who condenses it, what came of it."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        now: datetime,
        author: Author,
        scopes: Sequence[str] | None,
        given: Summariser | None,
        retry: bool,
        waiting: Waiting,
    ) -> None:
        self.home = home
        self.settings = settings
        self.author = author
        self.scopes = scopes
        self.given = given
        self.retry = retry
        self.waiting = waiting
        self.asks = given is None and settings.summary_by in choosing.MODELS
        self.only_owed = False
        self.made: list[Done] = []
        self.failed: list[str] = []
        self.paused = ""
        self._began = (now, time.monotonic())
        self._tried: set[str] = set()
        self._idf: Mapping[str, float] = {}
        self._roots: list[str] = []
        self._model: Summariser | None = None

    @property
    def now(self) -> datetime:
        """Return the time; a pass that waits for a model takes its time."""
        began, mark = self._began
        return began + timedelta(seconds=time.monotonic() - mark)

    def go(self, beat: Callable[[], None]) -> None:
        """Go on until nothing is due, the model is paused, or somebody asks to stop."""
        from hypatia_mem.store.connection import open_store

        with open_store(self.home, write=False) as store:
            pause = failing.pause_of(store, self.settings) if self.asks else None
            if pause is not None and self.now < pause.again and not self.retry:
                self.paused = _paused(pause)
                return
            self._roots = [root.path for root in store.roots()]
            current = self._following(store)
        while current.due and not self.paused and not self.waiting.stop():
            self._idf = self._idf or words.idf_of(current.sample)
            beat()
            ready: list[_Result] = []
            for batch in current.due:
                ready.append(self._condensed(batch, current))
                beat()
                if self.waiting.stop():  # what is made is stored all the same
                    break
            while ready:
                with open_store(self.home, write=True) as store:
                    for result in _of_this_lease(ready):
                        self._store(store, result)
                        beat()
            if not self.paused:
                with open_store(self.home, write=False) as store:
                    current = self._following(store)

    def _following(self, store: Store) -> _Round:
        from hypatia_mem.store import graves

        planner = Planner(store, self.home, self.settings, self.now)
        due = planner.due(
            self.scopes, retry=self.retry, without=self._tried, only_owed=self.only_owed
        )
        due = _of_this_round(due, planner, self.settings, self.given)
        self._tried.update(batch.ticket for batch in due)
        names = [item.name for batch in due for item in batch.items]
        entries = planner.read.contents(store, names) if due else {}
        sample = planner.read.sample(store, SAMPLE) if due and not self._idf else []
        stood_in = frozenset(one.ticket for one in due if self.asks and planner.stands_in(one))
        return _Round(due, entries, sample, stood_in, graves.load(store))

    def _summariser(self, *, stand_in: bool) -> tuple[Summariser, str]:
        """Return who condenses, and how it is recorded; raises SummaryFailed."""
        by = self.settings.summary_by
        one: Summariser
        note = ""
        if self.given is not None:
            one = self.given
        elif self.asks and not stand_in:
            if self._model is None:
                self._model = self.waiting.model(
                    self.home, self.settings, self._roots,
                    clock=lambda: self.now, author=self.author,
                )  # fmt: skip
            one = self._model
        else:
            one = Extractive()
            note = "" if by == "extractive" else f" for {by}"
        return one, f"{one.producer}#{one.digest}{note}"

    def _condensed(self, batch: Batch, current: _Round) -> _Result:
        entries = current.entries
        present = present_of(batch, entries, current.graves)
        request = _request(present, batch, self.settings, self._idf)
        digests = {item.name: item.digest for item in batch.items}
        stand_in = batch.ticket in current.stood_in
        producer = ""
        try:
            one, producer = self._summariser(stand_in=stand_in)
            made = making.make(one, request, digests, self.settings.summary_floor)
        except SummaryFailed as error:
            _LOG.warning("a batch of level %d was not condensed: %s", batch.level, error.message)
            return _Result(batch, error, producer, self.asks and not stand_in)
        return _Result(batch, made, producer, self.asks and not stand_in)

    def _store(self, store: Store, result: _Result) -> None:
        """Store one summary, or note why there is none; nothing when the batch was overtaken."""
        now = self.now
        if isinstance(result.outcome, SummaryFailed):
            self._note_failure(store, result, result.outcome, now)
            return
        author = replace(self.author, producer=result.producer)
        with store.transaction(author, now=now) as txn:
            outcome, done = storing.put(txn, result.batch, result.outcome)
            if outcome.verb == "refused" and "forgotten" in outcome.reason:
                failing.note_refusal(txn, result.batch, self.settings, now, outcome.reason)
                self.failed.append("a summary that was forgotten before is not made again")
            else:
                failing.note_success(txn, result.batch, resumed=result.asked)
        if done is not None:
            self.made.append(done)
            self.waiting.told(done)

    def _note_failure(
        self, store: Store, result: _Result, error: SummaryFailed, now: datetime
    ) -> None:
        self.failed.append(error.message)
        if error.failure is FailureKind.CANCELLED:
            self.paused = error.message
            return
        with store.transaction(self.author, now=now) as txn:
            failing.note_failure(txn, result.batch, error, self.settings, now, pausing=result.asked)
        if result.asked and error.failure.blames_summariser:
            pause = failing.pause_of(store, self.settings)
            self.paused = _paused(pause) if pause else error.message


def present_of(batch: Batch, entries: Mapping[str, Entry], known: Graves) -> list[Entry]:
    """Return the batch's entries, with blanks where they say what is forgotten."""
    found = [entries[item.name] for item in batch.items if item.name in entries]
    if not known:
        return found
    return [replace(one, content=known.blanked(one.content, one.scopes)) for one in found]


def _paused(pause: failing.Pause) -> str:
    hint = f" {pause.hint}" if pause.hint else ""
    return f"{pause.message}; tried again at {pause.again:%Y-%m-%d %H:%M}Z.{hint}"


def _of_this_lease(
    ready: list[_Result],
) -> Iterator[_Result]:
    """Take out of ``ready`` as many as are stored before the store is let go of, at least one."""
    links = 0
    while ready and (not links or links + len(ready[0].batch.items) <= LEASE_LINKS):
        links += len(ready[0].batch.items)
        yield ready.pop(0)


def _of_this_round(
    due: list[Batch], planner: Planner, settings: Settings, summariser: Summariser | None
) -> list[Batch]:
    """Return as many as are condensed before the store is opened again, of one level."""
    if settings.summary_by == "agent" and summariser is None:
        due = [one for one in due if _left_undone(one, planner)][:1]
    if settings.summary_by in choosing.MODELS and summariser is None:
        due = due[:1]
    found: list[Batch] = []
    chars = 0
    for batch in due:
        chars += sum(item.chars for item in batch.items)
        if found and (len(found) >= ROUND_BATCHES or chars > ROUND_CHARS):
            break
        found.append(batch)
    return found


def _left_undone(batch: Batch, planner: Planner) -> bool:
    """Tell whether a batch has waited for the agent until twice as much was there."""
    waiting = planner.read.groups(planner.store, batch.level)
    group = next((one for one in waiting if one.scopes == batch.scopes), None)
    if group is None:
        return False
    if batch.level > 1:
        return bool(group.count >= STAND_IN * planner.settings.cascade_batch)
    return bool(group.chars // 4 >= STAND_IN * planner.limits(batch.scopes).trigger)


def heal(home: Path, *, now: datetime) -> int:
    """Take out what is derived and lacks a source, and all that stands on it; return how many."""
    from hypatia_mem.memory import propagation

    return len(propagation.sweep(home, now=now))


# --- the agent ------------------------------------------------------------------------------------


def due(home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str]) -> Handed | None:
    """Return the next batch that an agent may condense, None when nothing is due."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        found = planner.due(scopes, retry=True)
        return _handed(store, found[0], settings) if found else None


def submit(  # noqa: PLR0913 - what was said, and everything that is recorded of who said it
    home: Path,
    settings: Settings,
    name: str,
    text: str,
    *,
    ticket: str,
    producer: str,
    author: Author,
    now: datetime,
    scopes: Sequence[str],
) -> Done:
    """Store an agent's summary of the batch that ``ticket`` names (``""``: the next one).

    Raises SummaryFailed when it may not be stored, NotFound when nothing is due, Conflict when the
    batch has changed since it was handed out. Nothing is lost then.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = Planner(store, home, settings, now).due(scopes, retry=True)
        if not found:
            raise NotFound(
                "no batch is due", hint="See what awaits a summary: hypatia-mem cascade status"
            )
        batch = _ticketed(found, ticket) if ticket else found[0]
        handed = _handed(store, batch, settings)
    digests = {item.name: item.digest for item in batch.items}
    made = making.submitted(name, text, handed.request, digests, settings.summary_floor)
    with (
        open_store(home, write=True) as store,
        store.transaction(replace(author, producer=producer), now=now) as txn,
    ):
        outcome, done = storing.put(txn, batch, made)
    if done is None:
        raise Conflict(
            f"the summary was not stored: {outcome.reason}",
            hint="Fetch the batch again: hypatia-mem cascade due --json",
        )
    return done


def _ticketed(found: Sequence[Batch], ticket: str) -> Batch:
    """Return the batch of a ticket; more messages may have come in behind it since."""
    for batch in found:
        if batch.ticket == ticket:
            return batch
        level, _, rest = ticket.partition(".")
        count = rest.partition(".")[0]
        if level == str(batch.level) and count.isdigit() and 0 < int(count) < len(batch.items):
            shorter = replace(batch, items=batch.items[: int(count)])
            if shorter.ticket == ticket:
                return shorter
    raise Conflict(
        "this batch has changed since it was handed out, or is condensed already",
        hint="Fetch it again: hypatia-mem cascade due --json",
    )


def _handed(store: Store, batch: Batch, settings: Settings) -> Handed:
    from hypatia_mem.store import graves, summaries

    entries = summaries.contents(store, [item.name for item in batch.items])
    idf = words.idf_of(summaries.sample(store, SAMPLE))
    present = present_of(batch, entries, graves.load(store))
    return Handed(batch, _request(present, batch, settings, idf))


def _request(
    present: Sequence[Entry], batch: Batch, settings: Settings, idf: Mapping[str, float]
) -> Request:
    return making.request_of(
        present, batch.level, settings.summary_words, idf, skip_user=settings.summary_skip_user
    )

"""Who judges finished work: the model that condenses too, where the user has chosen one.

It is asked about one piece at a time, never under the store's lease. Whatever goes wrong, the unit
of sentences chosen by arithmetic stands in, marked as such, and a job remembers to ask again later
and later; a cause that lies with the model pauses it for everything, as it does for summaries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.cascade import failing
from hypatia_mem.memory.extract import judging, rules
from hypatia_mem.memory.extract.kinds import Kind
from hypatia_mem.memory.extract.units import WorkUnit
from hypatia_mem.memory.summarise import choosing
from hypatia_mem.memory.summarise.prompted import Prompted
from hypatia_mem.memory.summarise.protocol import FailureKind, Item, SummaryFailed
from hypatia_mem.store.jobs import Job, JobState

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.running import Waiting
    from hypatia_mem.model import Author
    from hypatia_mem.store.connection import Store

__all__ = ["Judge", "Verdict", "asks_model", "job_kind", "stand_in"]

_LOG = logging.getLogger("hypatia_mem")
ATTEMPTS = 6
_SAID = {
    FailureKind.MALFORMED: "the model's answer is not in the form that was asked for",
    FailureKind.INVENTED: "the messages say hardly anything of the model's answer",
}
_FIRST_SECONDS, _LONGEST_SECONDS = 60.0, 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was judged: the unit (None: nothing worth keeping), by whom, or why not."""

    unit: WorkUnit | None
    producer: str
    failure: SummaryFailed | None = None


def asks_model(settings: Settings) -> bool:
    """Tell whether the worker asks a model about finished work."""
    return settings.extract_by == "summary" and settings.summary_by in choosing.MODELS


def job_kind(settings: Settings) -> str:
    """Return what a job of the model in force is filed under."""
    return f"extract/{settings.summary_by}"


def stand_in(settings: Settings) -> str:
    """Return how a unit is recorded that stands in for the model's."""
    return f"{rules.PRODUCER} for {settings.summary_by}"


class Judge:
    """The model in force. Nothing is asked before the first piece of work."""

    def __init__(
        self, home: Path, settings: Settings, *, now: datetime, waiting: Waiting, author: Author
    ) -> None:
        """Keep what is needed to ask; ``waiting`` says what is done meanwhile, and when to stop."""
        self.home = home
        self.settings = settings
        self.waiting = waiting
        self.author = author
        self.stopped = False
        self._began = (now, time.monotonic())
        self._pause: failing.Pause | None = None
        self._roots: list[str] = []
        self._model: Prompted | None = None
        self._refusal: SummaryFailed | None = None  # why there is no model that could be asked

    @property
    def now(self) -> datetime:
        """Return the time: one who waits for a model takes its time."""
        began, mark = self._began
        return began + timedelta(seconds=time.monotonic() - mark)

    def look(self, store: Store) -> None:
        """Read from the open store whether the model is paused."""
        self._pause = failing.pause_of(store, self.settings)
        self._roots = [root.path for root in store.roots()]

    @property
    def paused(self) -> bool:
        """Tell whether nobody is to be asked now."""
        return self._pause is not None and self.now < self._pause.again

    def judge(
        self,
        items: Sequence[Item],
        kind: Kind,
        found: WorkUnit | None,
        idf: Mapping[str, float],
        day: str,
    ) -> Verdict:
        """Judge a piece of work, of which ``found`` is the unit by arithmetic.

        A model that fails, or is paused, leaves that one. What it calls trivial but is told apart
        plainly is kept, as a candidate.
        """
        if not self.paused and self._model is None and self._refusal is None:
            self._model = self._chosen(self._roots)
        if self.paused or self._model is None:
            failure = _as_failure(self._pause) if self._pause is not None else self._refusal
            return Verdict(found, stand_in(self.settings), failure)
        try:
            unit = self._asked(self._model, items, kind, idf, day)
        except SummaryFailed as error:
            self.stopped = error.failure is FailureKind.CANCELLED
            _LOG.warning("a work unit was not judged by the model: %s", error.message)
            return Verdict(found, stand_in(self.settings), error)
        if unit is None and found is not None and found.sure:
            return Verdict(replace(found, sure=False), stand_in(self.settings))
        return Verdict(unit, f"{self._model.producer}#{judging.DIGEST}")

    def note(self, txn: Any, verdict: Verdict, ticket: str, scopes: Sequence[str]) -> None:  # noqa: ANN401 - a transaction of the store
        """Write down beside a unit what became of asking: a pause, a job to ask again, or neither.

        Only a cause that may lie with the piece itself is counted against it.
        """
        from hypatia_mem.store import jobs

        error = verdict.failure
        if error is None:
            jobs.delete_jobs(txn, [ticket])
            if self._pause is not None:
                failing.resume(txn)
                self._pause = None
            return
        asked = not self.paused
        if asked and error.failure.blames_summariser:
            failing.note_pause(txn, error, self.settings, self.now)
            self._pause = failing.pause_of(txn.store, self.settings)
        before = jobs.jobs(txn.store).get(ticket)
        mine = before is not None and before.kind == job_kind(self.settings)
        attempts = before.attempts if before is not None and mine else 0
        attempts += asked and error.failure.blames_batch
        wait = max(error.retry_after, _FIRST_SECONDS * 4 ** max(0, attempts - 1))
        dead = attempts >= ATTEMPTS
        jobs.put_job(
            txn,
            Job(
                ticket, job_kind(self.settings), 0, tuple(scopes),
                JobState.DEAD if dead else JobState.WAITING, attempts,
                None if dead else self.now + timedelta(seconds=min(wait, _LONGEST_SECONDS)),
                str(error.failure), error.message,
            ),
        )  # fmt: skip

    def _asked(
        self,
        model: Prompted,
        items: Sequence[Item],
        kind: Kind,
        idf: Mapping[str, float],
        day: str,
    ) -> WorkUnit | None:
        reply = model.ask(judging.question(items, kind, model.window))
        if reply.failure is not None:
            raise SummaryFailed(reply.failure, f"the model's answer is none: {reply.failure}")
        try:
            return judging.judged(judging.read(reply.text), items, idf, day)
        except SummaryFailed as error:
            # What is wrong with it is said in its own words, which may be a person's: not in a log.
            raise SummaryFailed(error.failure, _SAID.get(error.failure, error.message)) from None

    def _chosen(self, roots: Sequence[str]) -> Prompted | None:
        try:
            made = self.waiting.model(
                self.home, self.settings, roots, clock=lambda: self.now, author=self.author
            )
        except SummaryFailed as error:
            _LOG.warning("work units are not judged by the model: %s", error.message)
            self._refusal = error
            return None
        return made if isinstance(made, Prompted) else None


def _as_failure(pause: failing.Pause) -> SummaryFailed:
    return SummaryFailed(FailureKind(pause.kind), pause.message, hint=pause.hint)

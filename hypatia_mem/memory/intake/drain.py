"""From spool and transcripts to the store: each turn once, whatever dies on the way.

One ``step`` reads what is new (outside the lease: reading and redacting may take long), then opens
the store once and does everything in one transaction: sessions, messages, what prompts asked to
remember or forget, and the cursors that say how far both sources have been read. Killed before the
commit, nothing has happened; killed after it, nothing is read twice (I2).

A record that waits for its transcript line keeps the spool's cursor in front of it. Reading records
behind it again is harmless: what is known is not stored twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import spool
from hypatia_mem.errors import IndexUnavailable, StoreBusy
from hypatia_mem.memory import deriving
from hypatia_mem.memory.intake import reconcile
from hypatia_mem.memory.intake.batch import (
    BATCH_RECORDS,
    Work,
    digests,
    drop_left_out,
    hold_back,
    is_own,
    left_out,
    path_of,
    redact,
)
from hypatia_mem.memory.intake.lines import read_lines
from hypatia_mem.memory.intake.storing import store_session
from hypatia_mem.memory.intake.survey import cursor_key, size_key, size_of, survey
from hypatia_mem.memory.intake.transcript import fold
from hypatia_mem.memory.intake.turns import Carry
from hypatia_mem.memory.logged import Logged
from hypatia_mem.model import GLOBAL_SCOPE, Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store

__all__ = ["Drain", "Progress"]

BATCH_BYTES = 16 * 1024 * 1024
TRANSCRIPT_BYTES = 8 * 1024 * 1024
DERIVE_SECONDS = 5.0  # how often briefs and index follow while there is more to store

_LOG = logging.getLogger("hypatia_mem")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step did: ``worked`` when anything was stored or read, ``waiting`` when a record is
    held back for its transcript line and the worker should look again soon.
    """

    worked: bool
    waiting: bool
    stored: int = 0


@dataclass(frozen=True, slots=True)
class _Wait:
    """A session that something is held back of: when to look again, or when the file grows."""

    transcript_path: str
    again_at_ns: int
    size: int


@dataclass(slots=True)
class _Tail:
    """How far a transcript has been read in this process."""

    read_to: int
    carry: Carry | None = None


class Drain:
    """The worker's drain. Keeps nothing that a restart could miss."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Bind to a home; nothing is opened yet."""
        self.home = home
        self.settings = settings
        self._clock_ns = clock_ns
        self._cursors: dict[str, int] | None = None
        self._waiting: dict[str, _Wait] = {}
        self._tails: dict[str, _Tail] = {}
        self._sizes: dict[str, int] = {}
        # Whose briefs are no longer true; None stands for all, and for a process that only begins.
        self._stale: set[str] | None = None
        self._behind = False  # the index was not brought to the end
        self._derive_at = 0.0  # by the monotonic clock
        self._failed = False  # index or briefs, the last time
        self._logged: list[Logged] = []  # that nobody has asked for yet

    def has_work(self) -> bool:
        """Tell whether the spool has grown since it was last read; opens no store."""
        return any(
            self._sizes.get(segment.id) != segment.size
            for segment in spool.segments(str(self.home))
        )

    def logged(self) -> list[Logged]:
        """Return what was stored since this was asked last."""
        found, self._logged = self._logged, []
        return found

    def step(self, *, final: bool = False) -> Progress:
        """Read what is new and store it. ``final``: nobody will look again, wait for nothing.

        Raises what the store raises; nothing is lost then, the same is read again.
        """
        try:
            return self._step(final=final)
        except BaseException:
            # What was read was not stored: begin again from the cursors that the store knows.
            self._forget_reading()
            raise

    def _forget_reading(self) -> None:
        self._cursors = None
        self._tails.clear()
        self._sizes.clear()
        self._waiting.clear()

    def _step(self, *, final: bool) -> Progress:
        from hypatia_mem.store.connection import open_store

        grown: list[tuple[str, str]] = []
        if self._cursors is None:
            with open_store(self.home, write=False) as store:
                self._cursors = dict(store.cursors())
                grown = survey(
                    store,
                    self.home,
                    self._cursors,
                    now=self._now(),
                    capture=self.settings.capture,
                )
        due = self._due(final=final)
        batch, ends, more = self._read_spool(due)
        work = self._gather(batch, grown, due, final=final)
        if not work and not ends:
            derived = (
                self._derive() if self._stale is None or self._stale or self._behind else False
            )
            return Progress(worked=derived, waiting=bool(self._waiting))
        with open_store(self.home, write=True) as store:
            stored, touched = self._store(store, work, ends, final=final)
        if self._stale is not None:
            self._stale |= touched
        rest = more or (stored > 0 and self.has_work())
        if not rest or time.monotonic() >= self._derive_at:
            self._derive()
        return Progress(worked=more or stored > 0, waiting=bool(self._waiting), stored=stored)

    # -- reading, outside the lease

    def _due(self, *, final: bool) -> dict[str, str]:
        """Return (session, transcript) of those to look at again now."""
        now = self._clock_ns()
        return {
            session: wait.transcript_path
            for session, wait in self._waiting.items()
            if final or now >= wait.again_at_ns or size_of(wait.transcript_path) != wait.size
        }

    def _read_spool(self, due: Collection[str]) -> tuple[dict[str, Work], dict[str, int], bool]:
        """Return new records by session, how far each segment was read, and whether more is there.

        A segment of a waiting session is read again from its cursor.
        """
        cursors = self._cursors or {}
        batch: dict[str, Work] = {}
        ends: dict[str, int] = {}
        count = 0
        size = 0
        for segment in spool.segments(str(self.home)):
            start = cursors.get(segment.id, 0)
            again = segment.session in due
            if segment.size <= start:
                self._sizes[segment.id] = segment.size  # read by a worker before this one
                continue
            if not again and self._sizes.get(segment.id) == segment.size:
                continue
            if count >= BATCH_RECORDS or size >= BATCH_BYTES:
                return batch, ends, True
            end = start
            for item in spool.iter_records(segment.path, start):
                end = item.end
                if isinstance(item, spool.Damage):
                    spool.quarantine(str(self.home), item)
                    _LOG.warning(
                        "a damaged record of %d bytes was set aside", item.end - item.offset
                    )
                    continue
                one = batch.setdefault(segment.session, Work(segment.session))
                one.records.append(item)
                one.segments[id(item)] = segment.id
                count += 1
                size += item.end - item.offset
                if count >= BATCH_RECORDS or size >= BATCH_BYTES:
                    break
            else:
                self._sizes[segment.id] = segment.size
            ends[segment.id] = end
        return batch, ends, False

    def _gather(
        self,
        batch: dict[str, Work],
        grown: Iterable[tuple[str, str]],
        due: dict[str, str],
        *,
        final: bool,
    ) -> list[Work]:
        """Put together, per session and in order of their first record, all that is new."""
        work = dict(sorted(batch.items(), key=lambda pair: pair[1].records[0].at_ns))
        for one in work.values():
            paths_said = [path for record in one.records if (path := path_of(record))]
            one.transcript_path = paths_said[-1] if paths_said else ""
        for session_id, path in [*grown, *due.items()]:
            one = work.setdefault(session_id, Work(session_id))
            one.transcript_path = one.transcript_path or path
        if not work:
            return []
        left = left_out(self.home)
        for one in work.values():
            self._read_transcript(one, final=final)
            drop_left_out(one, left)
            for record in one.records:
                reconcile.said(record, redact)  # what takes long is remembered: no lease is held
        return [one for one in work.values() if one.records or one.readable]

    def _read_transcript(self, one: Work, *, final: bool) -> None:
        if not one.transcript_path:
            return
        key = cursor_key(one.transcript_path)
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _Tail((self._cursors or {}).get(key, 0))
        try:
            lines = read_lines(one.transcript_path, tail.read_to, TRANSCRIPT_BYTES)
        except OSError:
            return
        one.readable = True
        one.complete = lines.at_end
        folded = fold(
            lines.lines,
            None if lines.restarted else tail.carry,
            end=lines.next_offset,
            redact=redact,
            flush=final and one.complete,
        )
        if is_own(folded.messages):
            one.messages, one.open = (), frozenset()
        else:
            one.messages, one.open = folded.messages, folded.open
            one.titles, one.summaries = folded.titles, folded.summaries
            one.compacted_at = folded.compacted_at
        one.facts, one.checkpoint, one.read_to = folded.facts, folded.checkpoint, lines.next_offset
        tail.read_to, tail.carry = lines.next_offset, folded.carry
        if lines.bad:
            _LOG.info("%d unreadable lines of a transcript were passed over", lines.bad)

    # -- storing, behind the lease

    def _store(
        self, store: Store, work: list[Work], ends: dict[str, int], *, final: bool
    ) -> tuple[int, set[str]]:
        """Store one batch in one transaction; only when it is committed do its cursors hold here.

        Returns how many messages are new and which scopes have changed.
        """
        cursors = dict(ends)
        waiting = {k: v for k, v in self._waiting.items() if k not in {w.session_id for w in work}}
        touched: set[str] = set()
        logged: list[Logged] = []
        with store.transaction(Author(Channel.HOOK), now=self._now()) as txn:
            for one in work:
                plan = self._plan(store, one, final=final)
                if plan.waiting or plan.unfinished:
                    waiting[one.session_id] = _Wait(
                        one.transcript_path,
                        plan.again_at_ns or self._clock_ns(),
                        size_of(one.transcript_path),
                    )
                hold_back(cursors, plan.waiting, one)
                logged.append(store_session(self.home, store, txn, one, plan, touched))
                if one.readable and not plan.unfinished:
                    cursors[cursor_key(one.transcript_path)] = one.checkpoint
                    cursors[size_key(one.transcript_path)] = one.read_to
            known = self._cursors or {}
            txn.set_cursors({key: at for key, at in cursors.items() if known.get(key) != at})
        known.update(cursors)
        self._cursors = known
        self._waiting = waiting
        self._logged += [one for one in logged if one.turns]
        return sum(len(one.turns) for one in logged), touched

    def _plan(self, store: Store, one: Work, *, final: bool) -> reconcile.Plan:
        messages = [replace(message, session_id=one.session_id) for message in one.messages]
        known = store.known_messages(one.session_id)
        return reconcile.plan(
            one.session_id,
            known=store.unsealed(known, digests(messages, one.records)),
            elsewhere=store.known_uuids(message.uuid for message in messages),
            messages=messages,
            growing=one.open,
            records=one.records,
            now_ns=self._clock_ns(),
            final=final,
            complete=one.complete,
            redact=redact,
        )

    def _derive(self) -> bool:
        """Bring index and briefs to what the store says; both can wait, so nothing is raised.

        New turns go first: what is left of a long index is done after them. Tells whether any of
        it was done.
        """
        if time.monotonic() < self._derive_at and self._failed:
            return False
        scopes = self._stale
        if scopes is not None and GLOBAL_SCOPE in scopes:
            scopes = None  # every brief tells what is global
        until = time.monotonic() + DERIVE_SECONDS

        def stop() -> bool:
            return self.has_work() or time.monotonic() > until

        self._derive_at = until
        try:
            whole = deriving.derive(
                self.home, scopes=scopes, limit=self.settings.brief_max_units, stop=stop
            )
        except (IndexUnavailable, StoreBusy, OSError) as error:
            _LOG.info("index or briefs follow later (%s)", type(error).__name__)
            self._failed = True
            return False
        self._stale, self._behind, self._failed = set(), not whole, False
        return True

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock_ns() / 1e9, UTC).replace(tzinfo=None)

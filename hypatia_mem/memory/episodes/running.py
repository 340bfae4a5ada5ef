"""The pass that tells what sessions were about, and what they leave open.

Of each session with news an episode is made every so many exchanges, and of the rest when nothing
was said for a while or the session has ended. A cursor in the store moves past what an episode
tells of in the transaction that stores it, so whatever is killed when, each turn is told of once.
What the last turns of a session that is over leave open become threads, in the same way; a thread
is closed by the message in which it was done.

The store is read, let go of, and only opened for writing when all is made: a model, where one is
chosen, is never waited for under the lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.cascade.running import Waiting
from hypatia_mem.memory.episodes import making, storing
from hypatia_mem.memory.episodes.finding import Line
from hypatia_mem.memory.episodes.reading import MESSAGES, Read, end_of, read_news, read_owed
from hypatia_mem.memory.episodes.storing import Episode
from hypatia_mem.memory.episodes.synopsis import synopsis
from hypatia_mem.memory.episodes.threads import done_by, still_open
from hypatia_mem.memory.extract import rules
from hypatia_mem.memory.extract.topics import Exchange, Said, exchanges_of
from hypatia_mem.memory.summarise import choosing, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import Summariser, SummaryFailed
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves
    from hypatia_mem.store.lessons import News

__all__ = ["Report", "run"]

_LOG = logging.getLogger("hypatia_mem")
SESSIONS = 10  # whose news are read under one lease
PASSES = 20  # times so many sessions before new turns are stored first
OVER_MINUTES = 30  # of silence, and a session is over though nobody said so
LEASE = 3  # episodes that are stored before the store is let go of
THREADS = 8  # that a session leaves open at most: the latest
SAMPLE = 1_500
RECENT = timedelta(hours=24)  # of what is older no model is asked


@dataclass(slots=True)
class Report:
    """What a pass did: the episodes, the threads that were opened, and those that were closed.

    ``more``: there is more to do, after what came in meanwhile.
    """

    episodes: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    more: bool = False

    @property
    def worked(self) -> bool:
        """Tell whether anything was stored."""
        return bool(self.episodes or self.opened or self.closed)

    @property
    def line(self) -> str:
        """Return what was done, in a line."""
        return (
            f"Episodes: {len(self.episodes)} made; open threads: {len(self.opened)} new,"
            f" {len(self.closed)} closed."
        )


def run(  # noqa: PLR0913 - what is told of, and who is asked while it is done
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    only_owed: bool = False,
    beat: Callable[[], None] = lambda: None,
    waiting: Waiting | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Report:
    """Make the episodes and threads that are due in these scopes (None: every project).

    ``only_owed``: only what is told anew because it lost a source; then no model is asked.
    ``beat`` is called between steps, ``stop`` asked whether something else comes first; ``waiting``
    is for the time in which a model is waited for. Raises what the store raises.
    """
    report = Report()
    one = _Pass(home, settings, now, author or Author(Channel.WORKER), waiting or Waiting(), stop)
    one.beat = beat
    one.tell_anew(report)
    if only_owed or settings.episodes_by == "off":
        return report
    for step in (one.episodes, one.threads):
        for _ in range(PASSES):
            if not step(report, scopes):
                break
            if stop():
                report.more = True
                return report
        else:
            report.more = True
    return report


class _Pass:
    """One pass over the news."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        now: datetime,
        author: Author,
        waiting: Waiting,
        stop: Callable[[], bool],
    ) -> None:
        self.home = home
        self.settings = settings
        self.now = now
        self.author = author
        self.waiting = waiting
        self.beat: Callable[[], None] = lambda: None
        self.stop = stop
        self.asks = settings.episodes_by == "summary" and settings.summary_by in choosing.MODELS
        self._seen: dict[str, set[str]] = {}
        self._idf: Mapping[str, float] = {}
        self._model: Summariser | None = None

    def tell_anew(self, report: Report) -> None:
        """Make the episodes that lost a source from what is left of their turns."""
        from hypatia_mem.store import episodes, graves
        from hypatia_mem.store.connection import open_store

        with open_store(self.home, write=False) as store:
            twice = episodes.told_twice(store)
            ranges = episodes.owed(store)
            known = graves.load(store) if ranges else None
            found = [read_owed(store, one, known) for one in ranges]
            self._weigh(store, found)
        if twice:
            with (
                open_store(self.home, write=True) as store,
                store.transaction(self.author, now=self.now) as txn,
            ):
                for name in twice:
                    txn.delete_entry(name, reason="told twice")
        for read in found:
            stretch = exchanges_of(read.said)
            made = [self._made(read, stretch, None)] if stretch else []
            self._store(read, made, report)

    def episodes(self, report: Report, scopes: Sequence[str] | None) -> bool:
        """Tell of the news of a few sessions; False when there are no more."""
        from hypatia_mem.store import episodes

        found = self._news(episodes.CURSOR, scopes)
        for read in found:
            quiet = self._rests(read.news, self.settings.episode_idle_seconds)
            over = self._is_over(read.news)
            more = len(read.messages) >= MESSAGES
            due = making.stretches(read.said, self.settings.episode_turns, quiet=quiet, more=more)
            made: list[Episode] = []
            for stretch in due:
                self.beat()
                if self.stop():
                    break
                if making.has_news(stretch) or over or stretch is not due[-1]:
                    made.append(self._made(read, stretch, self._summariser(stretch)))
            if made or (over and not read.said):
                self._store(read, made, report)
            if more and made:
                self._seen[episodes.CURSOR].discard(read.news.session_id)
        return bool(found)

    def threads(self, report: Report, scopes: Sequence[str] | None) -> bool:
        """Keep what a few sessions that are over leave open; False when there are no more."""
        from hypatia_mem.store import episodes
        from hypatia_mem.store.connection import open_store

        found = self._news(episodes.THREADS, scopes)
        for read in found:
            self.beat()
            left = self._left(read)
            with (
                open_store(self.home, write=True) as store,
                store.transaction(self._as(rules.PRODUCER), now=self.now) as txn,
            ):
                report.opened += storing.open_threads(txn, read, left)
                last = read.messages[-1].turn if read.messages else None
                txn.set_cursor(
                    episodes.THREADS + read.news.session_id,
                    last or end_of(store, read.news.session_id),
                )
        return bool(found)

    def _left(self, read: Read) -> list[Line]:
        """Return what a session leaves open, without what was done in others since."""
        from hypatia_mem.store import episodes
        from hypatia_mem.store.connection import open_store

        left = still_open(read.said)[-THREADS:]
        if not left:
            return []
        with open_store(self.home, write=False) as store:
            found = episodes.said_after(
                store,
                read.news.scopes,
                read.news.last_at,
                MESSAGES,
                without=read.news.session_id,
            )
        later = [Said(name, one.turn or 0, one.role, one.text, one.at) for name, one in found]
        return [line for line in left if done_by(line.text, later, same_session=False) is None]

    # -- reading

    def _news(self, cursor: str, scopes: Sequence[str] | None) -> list[Read]:
        """Return what came in since a cursor, of sessions that this pass has not seen."""
        from hypatia_mem.store import episodes, graves, lessons
        from hypatia_mem.store.connection import open_store

        seen = self._seen.setdefault(cursor, set())
        with open_store(self.home, write=False) as store:
            news = lessons.news(store, scopes, 10_000, cursor=cursor)
            news = [one for one in news if one.session_id not in seen]
            if cursor == episodes.THREADS:
                news = [one for one in news if self._is_over(one)]
            known = graves.load(store) if news else None
            found: list[Read] = []
            for one in news[:SESSIONS]:
                seen.add(one.session_id)
                found.append(self._read(store, cursor, one, known))
            self._weigh(store, found)
        return found

    def _read(self, store: Store, cursor: str, one: News, known: Graves | None) -> Read:
        """Return a session's news: the first of them, but the last for what they leave open."""
        from hypatia_mem.store import episodes

        if cursor == episodes.THREADS:
            first = end_of(store, one.session_id) - MESSAGES
            return read_news(store, replace(one, after=max(one.after, first)), known)
        if not one.after:
            one = replace(one, after=episodes.last_told(store, one.session_id))
        left = episodes.threads(store, one.scopes, at=self.now)
        return replace(read_news(store, one, known), open=left)

    def _weigh(self, store: Store, found: Sequence[Read]) -> None:
        from hypatia_mem.store import summaries

        if found and not self._idf:
            self._idf = words.idf_of(summaries.sample(store, SAMPLE))

    def _is_over(self, news: News) -> bool:
        return self._rests(news, 60 * OVER_MINUTES)

    def _rests(self, news: News, seconds: int) -> bool:
        return news.ended or self.now - news.last_at >= timedelta(seconds=seconds)

    # -- making

    def _made(
        self, read: Read, stretch: Sequence[Exchange], summariser: Summariser | None
    ) -> Episode:
        said, messages = read.of(stretch)
        closes = tuple(storing.closed_in(read, said))
        plain = Episode(said[0].turn, said[-1].turn, said[-1].at, closes=closes)
        if not making.has_news(stretch):
            return plain
        short = synopsis(said, summariser, self._idf)
        producer = f"{Extractive().producer}#{Extractive().digest}"
        if summariser is not None and short.failed is None:
            producer = f"{summariser.producer}#{summariser.digest}"
        elif short.failed is not None:
            producer += f" for {self.settings.summary_by}"
            _LOG.warning("an episode was told without the model: %s", short.failed.message)
            self.asks = self.asks and not short.failed.failure.blames_summariser
        made = making.told(messages, said, short.lines)
        if not made.turns:
            return plain
        session = read.news.session_id
        sources = short.sources | {f"msg-{session}-{turn}" for turn in made.turns}
        return replace(plain, told=made, sources=frozenset(sources), producer=producer)

    def _summariser(self, stretch: Sequence[Exchange]) -> Summariser | None:
        """Return the model that is asked about a stretch; None where none is, or it is paused."""
        from hypatia_mem.memory.cascade import failing
        from hypatia_mem.store.connection import open_store

        if not self.asks or self.now - stretch[-1].all[-1].at > RECENT:
            return None
        if self._model is None:
            with open_store(self.home, write=False) as store:
                pause = failing.pause_of(store, self.settings)
                roots = [root.path for root in store.roots()]
            self.asks = pause is None or self.now >= pause.again
            if not self.asks:
                return None
            try:
                self._model = self.waiting.model(
                    self.home, self.settings, roots, clock=lambda: self.now, author=self.author
                )
            except SummaryFailed as error:
                _LOG.warning("episodes are told without the model: %s", error.message)
                self.asks = False
        return self._model

    # -- storing

    def _store(self, read: Read, made: Sequence[Episode], report: Report) -> None:
        """Store a session's episodes, each with its cursor, in one transaction each."""
        from hypatia_mem.store import episodes
        from hypatia_mem.store.connection import open_store

        key = episodes.CURSOR + read.news.session_id
        for start in range(0, len(made) or 1, LEASE):
            self.beat()
            with open_store(self.home, write=True) as store:
                if not made:
                    with store.transaction(self.author, now=self.now) as txn:
                        if read.owed is not None:
                            episodes.settle(txn, read.owed)
                        else:
                            txn.set_cursor(key, end_of(store, read.news.session_id))
                for one in made[start : start + LEASE]:
                    with store.transaction(self._as(one.producer), now=self.now) as txn:
                        if not storing.put(txn, read, one, report.episodes):
                            return  # it was overtaken: the next pass reads it as it is now
                        if read.owed is not None:
                            episodes.settle(txn, read.owed)
                            continue
                        report.closed += storing.close_threads(txn, one)
                        txn.set_cursor(key, one.last)

    def _as(self, producer: str) -> Author:
        return replace(self.author, producer=producer) if producer else self.author

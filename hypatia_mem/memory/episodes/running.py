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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.episodes import making
from hypatia_mem.memory.episodes.finding import Line, cut
from hypatia_mem.memory.episodes.making import Told
from hypatia_mem.memory.episodes.synopsis import synopsis
from hypatia_mem.memory.episodes.threads import done_by, still_open
from hypatia_mem.memory.extract.topics import Exchange, Said, exchanges_of
from hypatia_mem.memory.summarise import choosing, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import Summariser, SummaryFailed
from hypatia_mem.model import Author, Channel, Entry, Message

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.episodes import Range
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.graves import Graves
    from hypatia_mem.store.lessons import News

__all__ = ["Report", "run"]

_LOG = logging.getLogger("hypatia_mem")
SESSIONS = 10  # whose news are read under one lease
MESSAGES = 2_000  # of a session that are looked at in one pass
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


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a session; ``at`` is the ledger's last row then."""

    news: News
    messages: Sequence[Message]
    said: Sequence[Said]
    at: int
    owed: Range | None = None
    open: Sequence[Entry] = ()  # the project's threads

    def of(self, stretch: Sequence[Exchange]) -> tuple[list[Said], list[Message]]:
        """Return what was said in a stretch, and its messages."""
        said = [one for exchange in stretch for one in exchange.all]
        turns = {one.turn for one in said}
        return said, [one for one in self.messages if one.turn in turns]


@dataclass(frozen=True, slots=True)
class _Episode:
    """An episode to be stored; without ``told`` only the cursor moves.

    ``closes``: threads that were done in it, each with the message in which it was.
    """

    first: int
    last: int
    at: datetime
    told: Told | None = None
    sources: frozenset[str] = frozenset()
    producer: str = ""
    closes: tuple[tuple[Entry, str], ...] = ()


def run(  # noqa: PLR0913 - what is told of, and who is asked while it is done
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    only_owed: bool = False,
    beat: Callable[[], None] = lambda: None,
    tick: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> Report:
    """Make the episodes and threads that are due in these scopes (None: every project).

    ``only_owed``: only what is told anew because it lost a source; then no model is asked.
    ``beat`` is called between steps, ``tick`` while a model is waited for, ``stop`` asked whether
    something else comes first. Raises what the store raises.
    """
    report = Report()
    one = _Pass(home, settings, now, author or Author(Channel.WORKER), tick, stop)
    one.tell_anew(report)
    if only_owed or settings.episodes_by == "off":
        return report
    for step in (one.episodes, one.threads):
        for _ in range(PASSES):
            beat()
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
        tick: Callable[[], None],
        stop: Callable[[], bool],
    ) -> None:
        self.home = home
        self.settings = settings
        self.now = now
        self.author = author
        self.tick = tick
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
            found = [read for one in ranges if (read := _read_owed(store, one, known))]
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
            quiet = read.news.ended or self._silent(read, self.settings.episode_idle_seconds)
            over = read.news.ended or self._silent(read, 60 * OVER_MINUTES)
            more = len(read.messages) >= MESSAGES
            due = making.stretches(read.said, self.settings.episode_turns, quiet=quiet, more=more)
            made: list[_Episode] = []
            for stretch in due:
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
            if not (read.news.ended or self._silent(read, 60 * OVER_MINUTES)):
                continue
            left = self._left(read)
            with (
                open_store(self.home, write=True) as store,
                store.transaction(self._as("extractive"), now=self.now) as txn,
            ):
                report.opened += _open_threads(txn, read, left)
                last = read.messages[-1].turn if read.messages else None
                txn.set_cursor(episodes.THREADS + read.news.session_id, last or _end(store, read))
        return bool(found)

    def _left(self, read: _Read) -> list[Line]:
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

    def _news(self, cursor: str, scopes: Sequence[str] | None) -> list[_Read]:
        """Return what came in since a cursor, of sessions that this pass has not seen."""
        from hypatia_mem.store import episodes, graves, lessons
        from hypatia_mem.store.connection import open_store

        seen = self._seen.setdefault(cursor, set())
        with open_store(self.home, write=False) as store:
            news = lessons.news(store, scopes, 10_000, cursor=cursor)
            news = [one for one in news if one.session_id not in seen][:SESSIONS]
            known = graves.load(store) if news else None
            found: list[_Read] = []
            for one in news:
                seen.add(one.session_id)
                if cursor == episodes.CURSOR and not one.after:
                    one = replace(one, after=episodes.last_told(store, one.session_id))
                read = _read(store, one, known)
                if cursor == episodes.CURSOR:
                    left = episodes.threads(store, one.scopes, at=self.now)
                    read = replace(read, open=left)
                found.append(read)
            self._weigh(store, found)
        return found

    def _weigh(self, store: Store, found: Sequence[_Read]) -> None:
        from hypatia_mem.store import summaries

        if found and not self._idf:
            self._idf = words.idf_of(summaries.sample(store, SAMPLE))

    def _silent(self, read: _Read, seconds: int) -> bool:
        return self.now - read.news.last_at >= timedelta(seconds=seconds)

    # -- making

    def _made(
        self, read: _Read, stretch: Sequence[Exchange], summariser: Summariser | None
    ) -> _Episode:
        said, messages = read.of(stretch)
        closes = tuple(_closed(read, said))
        plain = _Episode(said[0].turn, said[-1].turn, said[-1].at, closes=closes)
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
                self._model = choosing.choose(
                    self.home,
                    self.settings,
                    roots=roots,
                    tick=self.tick,
                    clock=lambda: self.now,
                    author=self.author,
                )
            except SummaryFailed as error:
                _LOG.warning("episodes are told without the model: %s", error.message)
                self.asks = False
        return self._model

    # -- storing

    def _store(self, read: _Read, made: Sequence[_Episode], report: Report) -> None:
        """Store a session's episodes, each with its cursor, in one transaction each."""
        from hypatia_mem.store import episodes
        from hypatia_mem.store.connection import open_store

        key = episodes.CURSOR + read.news.session_id
        for start in range(0, len(made) or 1, LEASE):
            with open_store(self.home, write=True) as store:
                if not made:
                    with store.transaction(self.author, now=self.now) as txn:
                        if read.owed is not None:
                            episodes.settle(txn, read.owed)
                        else:
                            txn.set_cursor(key, _end(store, read))
                for one in made[start : start + LEASE]:
                    with store.transaction(self._as(one.producer), now=self.now) as txn:
                        if not _put(txn, read, one, report):
                            return  # it was overtaken: the next pass reads it as it is now
                        if read.owed is not None:
                            episodes.settle(txn, read.owed)
                            continue
                        report.closed += _close_threads(txn, one)
                        txn.set_cursor(key, one.last)

    def _as(self, producer: str) -> Author:
        return replace(self.author, producer=producer) if producer else self.author


def _read(store: Store, news: News, known: Graves | None) -> _Read:
    from hypatia_mem.store import lessons

    messages = lessons.said_since(store, news.session_id, news.after, MESSAGES)
    return _Read(news, *_parts(messages, news, known), store.ledger_seq())


def _read_owed(store: Store, one: Range, known: Graves | None) -> _Read | None:
    from hypatia_mem.store import lessons
    from hypatia_mem.store.lessons import News

    size = one.last - one.first + 1
    messages = lessons.said_since(store, one.session_id, one.first - 1, size)
    messages = [message for message in messages if (message.turn or 0) <= one.last]
    entry = store.entry(f"msg-{one.session_id}-{messages[0].turn}") if messages else None
    at = messages[-1].at if messages else datetime.min  # noqa: DTZ901 - naive UTC, never compared
    news = News(one.session_id, entry.scopes if entry else (), one.first - 1, at, ended=True)
    return _Read(news, *_parts(messages, news, known), store.ledger_seq(), one)


def _parts(
    messages: Sequence[Message], news: News, known: Graves | None
) -> tuple[list[Message], list[Said]]:
    """Return the messages, and what was said in them, without what says what is forgotten.

    A tool's result has no blanks: a message whose parts hold what is forgotten has none here.
    """

    def clear(text: str) -> str:
        return known.blanked(text, news.scopes) if known else text

    kept: list[Message] = []
    for one in messages:
        if one.agent_id:
            continue
        parts = [
            part
            for part in one.parts
            if not known or all(clear(value) == value for value in part.values() if _is_text(value))
        ]
        kept.append(replace(one, text=clear(one.text), parts=tuple(parts)))
    said = [
        Said(f"msg-{news.session_id}-{one.turn}", one.turn or 0, one.role, one.text, one.at)
        for one in kept
    ]
    return kept, said


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _end(store: Store, read: _Read) -> int:
    from hypatia_mem.store import lessons

    return lessons.last_turn(store, read.news.session_id)


def _put(txn: Transaction, read: _Read, one: _Episode, report: Report) -> bool:
    """Store an episode; False when what it tells of is not as it was read any more."""
    from hypatia_mem.store import episodes

    if one.told is None:
        return True
    session = read.news.session_id
    first, last = one.first, one.last
    if read.owed is not None:
        first, last = read.owed.first, read.owed.last
    entry = Entry(
        name=episodes.free_name(txn, making.name_of(session, first, last)),
        content=making.render(one.told),
        tags=("episode",),
        scopes=read.news.scopes,
        kind="episode",
        session_id=session,
        turn=last,
        created_at=one.at,
    )
    outcome = episodes.put(txn, entry, sorted(one.sources), read.at)
    if outcome.verb == "created":
        report.episodes.append(outcome.name)
        return True
    _LOG.info("an episode was not kept: %s", outcome.reason)
    return "forgotten" in outcome.reason


def _open_threads(txn: Transaction, read: _Read, left: Sequence[Line]) -> list[str]:
    """Store what a session leaves open, each thing once."""
    from hypatia_mem.store import episodes

    session = read.news.session_id
    at = {one.turn: one.at for one in read.said}
    known = set(episodes.threads_said(txn.store, session, read.news.scopes, at=txn.now))
    made: list[str] = []
    for line in left:
        if line.text in known:
            continue
        known.add(line.text)
        entry = Entry(
            name=episodes.free_name(txn, f"thread-{session}-{line.turn}"),
            content=cut(line.text),
            tags=("thread",),
            scopes=read.news.scopes,
            kind="thread",
            session_id=session,
            turn=line.turn,
            created_at=at.get(line.turn),
        )
        outcome = episodes.put(txn, entry, [f"msg-{session}-{line.turn}"], read.at)
        if outcome.verb == "created":
            made.append(outcome.name)
    return made


def _closed(read: _Read, said: Sequence[Said]) -> Iterator[tuple[Entry, str]]:
    """Yield the project's threads that were done in what was said, and the message that tells."""
    for thread in read.open:
        same = thread.session_id == read.news.session_id
        begun = thread.created_at
        later = [
            one
            for one in said
            if (one.turn > (thread.turn or 0) if same else begun is None or one.at > begun)
        ]
        done = done_by(thread.content, later, same_session=same)
        if done is not None:
            yield thread, done.name


def _close_threads(txn: Transaction, one: _Episode) -> list[str]:
    """Close the threads that were done in an episode, as far as they are there and open."""
    from hypatia_mem.model import Statement
    from hypatia_mem.store import episodes

    if not one.closes:
        return []
    there = episodes.open_among(txn.store, [thread.name for thread, _ in one.closes], at=txn.now)
    said = {entry.name for entry in txn.store.live_entries(source for _, source in one.closes)}
    closed: list[str] = []
    for thread, source in one.closes:
        if thread.name not in there or source not in said:
            continue
        outcome = txn.put_statement(
            Statement(thread.name, episodes.CLOSED_BY, source, scopes=thread.scopes)
        )
        if outcome.verb == "created" and thread.name not in closed:
            closed.append(thread.name)
    return closed

"""The pass that looks for finished work in what was said, and keeps its lessons.

Of each session with news the topics that are over are taken: those another topic has followed, and
the last one when the session has ended or nothing was said for half an hour. A cursor in the store
moves past a topic in the transaction that stores its unit, so that a topic is looked at once,
whatever is killed when. What is unsure is stored as a candidate, which waits for a person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.extract import asking, judging, keeping, rules
from hypatia_mem.memory.extract.comparing import Relation
from hypatia_mem.memory.extract.keeping import Kept
from hypatia_mem.memory.extract.kinds import Kind, kind_of
from hypatia_mem.memory.extract.topics import Exchange, Said, exchanges_of, topics
from hypatia_mem.memory.extract.units import WorkUnit, work_unit
from hypatia_mem.memory.summarise import words
from hypatia_mem.model import Author, Channel, Message

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.running import Waiting
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves
    from hypatia_mem.store.lessons import News

__all__ = ["SAMPLE", "Kept", "Report", "run", "said_of", "ticket_of"]

_LOG = logging.getLogger("hypatia_mem")
IDLE_MINUTES = 30
SESSIONS = 20  # whose news are read under one lease
MESSAGES = 2_000  # of a session that are looked at in one pass
SAMPLE = 1_500


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did."""

    kept: tuple[Kept, ...] = ()
    skipped: int = 0  # trivial topics, and those that say nothing particular
    proposed: tuple[str, ...] = ()  # candidate rules
    open: int = 0  # sessions whose last topic goes on

    @property
    def line(self) -> str:
        """Return the skill's line."""
        new = [one for one in self.kept if one.relation != Relation.DUPLICATE]
        if not new:
            return "Work unit still in progress, nothing extracted."
        counts: dict[str, int] = {}
        for one in new:
            counts[one.kind] = counts.get(one.kind, 0) + 1
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        plural = "s" if len(new) > 1 else ""
        skipped = f", skipped {self.skipped} trivial" if self.skipped else ""
        return f"Extracted {len(new)} work unit{plural} ({told}){skipped}."


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic that is over: its messages, its kind, and its unit if it has one."""

    said: tuple[Said, ...]
    kind: Kind
    unit: WorkUnit | None

    @property
    def until(self) -> int:
        """Return the turn up to which it reaches."""
        return self.said[-1].turn


def run(  # noqa: PLR0913 - what is looked at, by whom, and what is done meanwhile
    home: Path,
    *,
    now: datetime,
    settings: Settings | None = None,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    session_id: str = "",
    over: bool = False,
    dry_run: bool = False,
    beat: Callable[[], None] = lambda: None,
    waiting: Waiting | None = None,
) -> Report:
    """Look for finished work in the news of these scopes (None: every project) and keep it.

    With ``settings`` that have chosen a model it is asked about each piece of work, and about those
    that it did not answer before; without them nobody is. ``session_id`` narrows it to one session;
    ``over`` takes its last topic as finished too. ``dry_run`` stores nothing and asks nobody.
    Raises what the store raises.
    """
    one = _Pass(home, now, author, dry_run)
    if settings is not None and not dry_run and asking.asks_model(settings):
        from hypatia_mem.memory.cascade.running import Waiting

        one.judge = asking.Judge(
            home, settings, now=now, waiting=waiting or Waiting(), author=one.author
        )
    one.go(scopes, session_id, over=over, beat=beat)
    if one.judge is not None and not one.stopped:
        one.ask_again(scopes, beat)
    return Report(tuple(one.kept), one.skipped, tuple(one.proposed), one.still)


class _Pass:
    """One pass over the sessions with news."""

    def __init__(self, home: Path, now: datetime, author: Author | None, dry_run: bool) -> None:
        self.home = home
        self.now = now
        self.author = author or Author(Channel.WORKER)
        self.dry_run = dry_run
        self.judge: asking.Judge | None = None
        self.kept: list[Kept] = []
        self.proposed: list[str] = []
        self.skipped = self.still = 0

    @property
    def stopped(self) -> bool:
        """Tell whether somebody has asked to stop."""
        return self.judge is not None and self.judge.stopped

    def go(
        self,
        scopes: Sequence[str] | None,
        session_id: str,
        *,
        over: bool,
        beat: Callable[[], None],
    ) -> None:
        """Look at every session with news once, some of them under each lease."""
        from hypatia_mem.store import graves, lessons, summaries
        from hypatia_mem.store.connection import open_store

        seen: set[str] = set()
        while not self.stopped:
            with open_store(self.home, write=False) as store:
                found = [
                    one
                    for one in lessons.news(store, scopes, 10_000)
                    if one.session_id not in seen and session_id in ("", one.session_id)
                ][:SESSIONS]
                said = {
                    one.session_id: lessons.said_since(store, one.session_id, one.after, MESSAGES)
                    for one in found
                }
                idf = words.idf_of(summaries.sample(store, SAMPLE)) if found else {}
                known = graves.load(store)
                if found and self.judge is not None:
                    self.judge.look(store)
            if not found:
                return
            for one in found:
                seen.add(one.session_id)
                beat()
                told = said_of(said[one.session_id], one.session_id, one.scopes, known)
                done, goes_on = _finished(one, told, self.now, over, idf)
                self.still += goes_on
                self._take(one, done, idf, beat)
                if self.stopped:
                    return

    def _take(
        self,
        news: News,
        done: Sequence[_Topic],
        idf: Mapping[str, float],
        beat: Callable[[], None],
    ) -> None:
        """Keep what is finished: at once, or one by one as it is judged."""
        if self.judge is None:
            parts = [list(done)] if done else []
        else:
            parts = [[topic] for topic in done]
        for part in parts:
            verdict = None
            if self.judge is not None and part[0].kind is not Kind.TRIVIAL:
                verdict = self._judged(part[0], idf)
                if self.judge.stopped:
                    return
                part[0] = replace(part[0], unit=verdict.unit)
            beat()
            if not self._keep(news, part, idf, verdict):
                return
            news = replace(news, after=part[-1].until)
            self.skipped += sum(topic.unit is None for topic in part)

    def _judged(self, topic: _Topic, idf: Mapping[str, float]) -> asking.Verdict:
        assert self.judge is not None
        items = judging.items_of(topic.said)
        day = topic.said[0].at.strftime("%Y-%m-%d")
        return self.judge.judge(items, topic.kind, topic.unit, idf, day)

    def _keep(
        self,
        news: News,
        done: Sequence[_Topic],
        idf: Mapping[str, float],
        verdict: asking.Verdict | None,
    ) -> bool:
        """Store a session's units in one transaction, with the cursor behind them.

        Not what changed while a model was waited for, or was taken by somebody else: then nothing
        is stored and the cursor stays, so that the next pass reads it anew. Tells whether it was.
        """
        from hypatia_mem.store import lessons
        from hypatia_mem.store.connection import open_store

        with open_store(self.home, write=not self.dry_run) as store:
            known = [(one.name, one.content) for one in lessons.known_units(store, news.scopes)]
            if self.dry_run:
                self.kept += [
                    keeping.tried(topic.unit, known, idf)
                    for topic in done
                    if topic.unit is not None
                ]
                return True
            if not _as_read(store, news, done):
                return False
            who = self._who(news.session_id, verdict)
            with store.transaction(who, now=self.judge.now if self.judge else self.now) as txn:
                kept: list[Kept] = []
                for topic in done:
                    if topic.unit is not None:
                        one = keeping.put(txn, news.session_id, news.scopes, topic.unit, known, idf)
                        if one is not None:
                            kept.append(one)
                            known.insert(0, (one.name, topic.unit.content))
                txn.set_cursor(lessons.CURSOR + news.session_id, done[-1].until)
                if self.judge is not None and verdict is not None:
                    self.judge.note(txn, verdict, ticket_of(done[0].said), news.scopes)
                self.proposed += keeping.propose(txn, news.scopes, idf) if kept else []
        self.kept += kept
        return True

    def _who(self, session_id: str, verdict: asking.Verdict | None) -> Author:
        producer = verdict.producer if verdict is not None else rules.PRODUCER
        return replace(self.author, producer=producer, session_id=session_id)

    def ask_again(self, scopes: Sequence[str] | None, beat: Callable[[], None]) -> None:
        """Ask the model again about what it did not answer, and is due to be tried."""
        from hypatia_mem.memory.extract import refining

        assert self.judge is not None
        self.kept += refining.ask_again(self.home, self.judge, scopes, beat)


def ticket_of(said: Sequence[Said]) -> str:
    """Return the name of a piece of work: its session and its turns, ``s-1:3-9``."""
    session, _, _ = said[0].name.removeprefix("msg-").rpartition("-")
    return f"{session}:{said[0].turn}-{said[-1].turn}"


def said_of(
    messages: Sequence[Message], session_id: str, scopes: Sequence[str], known: Graves
) -> list[Said]:
    """Return what was said, with blanks where it says what is forgotten: no lesson keeps that."""
    return [
        Said(
            f"msg-{session_id}-{one.turn}",
            one.turn or 0,
            one.role,
            known.blanked(one.text, scopes) if known else one.text,
            one.at,
        )
        for one in messages
        if not one.agent_id
    ]


def _as_read(store: Store, news: News, done: Sequence[_Topic]) -> bool:
    """Tell whether a session stands as its topics were read from it."""
    from hypatia_mem.store import graves, lessons

    if lessons.looked_at(store, news.session_id) != news.after:
        return False
    until = done[-1].until
    there = lessons.said_since(store, news.session_id, news.after, MESSAGES)
    now = [one for one in there if (one.turn or 0) <= until]
    told = said_of(now, news.session_id, news.scopes, graves.load(store))
    return told == [one for topic in done for one in topic.said]


def _finished(
    news: News, said: Sequence[Said], now: datetime, over: bool, idf: Mapping[str, float]
) -> tuple[list[_Topic], bool]:
    """Return the topics that are over, and whether one goes on."""
    found = topics(exchanges_of(said))
    quiet = now - news.last_at > timedelta(minutes=IDLE_MINUTES)
    goes_on = bool(found) and not (over or news.ended or quiet) and len(said) < MESSAGES
    return [_topic(one, idf) for one in (found[:-1] if goes_on else found)], goes_on


def _topic(exchanges: Sequence[Exchange], idf: Mapping[str, float]) -> _Topic:
    kind = kind_of(exchanges)
    unit = None if kind is Kind.TRIVIAL else work_unit(kind, exchanges, idf)
    return _Topic(tuple(said for one in exchanges for said in one.all), kind, unit)

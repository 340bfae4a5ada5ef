"""The pass that looks for finished work in what was said, and keeps its lessons.

Of each session with news the topics that are over are taken: those another topic has followed, and
the last one when the session has ended or nothing was said for half an hour. A cursor in the store
moves past a topic in the transaction that stores its unit, so that a topic is looked at once,
whatever is killed when. What is unsure is stored as a candidate, which waits for a person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.extract.comparing import Found, Relation, compare, repeated
from hypatia_mem.memory.extract.kinds import Kind, kind_of
from hypatia_mem.memory.extract.topics import Exchange, Said, exchanges_of, topics
from hypatia_mem.memory.extract.units import WorkUnit, work_unit
from hypatia_mem.memory.summarise import naming, words
from hypatia_mem.model import Author, Channel, Entry, Message, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.graves import Graves
    from hypatia_mem.store.lessons import News

__all__ = ["Kept", "Report", "run"]

_LOG = logging.getLogger("hypatia_mem")
IDLE_MINUTES = 30
SESSIONS = 20  # whose news are read under one lease
MESSAGES = 2_000  # of a session that are looked at in one pass
SAMPLE = 1_500


@dataclass(frozen=True, slots=True)
class Kept:
    """A unit of work that was found: its name, kind, what it is to an older one, and its trust.

    ``name`` is that of the older unit when it was a duplicate.
    """

    name: str
    kind: str
    relation: str
    older: str
    trust: str
    tags: tuple[str, ...]


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
    """A topic that is over, its unit if it has one, and the turn up to which it reaches."""

    unit: WorkUnit | None
    until: int


def run(
    home: Path,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    session_id: str = "",
    over: bool = False,
    dry_run: bool = False,
    beat: Callable[[], None] = lambda: None,
) -> Report:
    """Look for finished work in the news of these scopes (None: every project) and keep it.

    ``session_id`` narrows it to one session; ``over`` takes its last topic as finished too.
    ``dry_run`` stores nothing. Raises what the store raises.
    """
    from hypatia_mem.store import graves, lessons, summaries
    from hypatia_mem.store.connection import open_store

    kept: list[Kept] = []
    proposed: list[str] = []
    skipped = still = 0
    seen: set[str] = set()
    while True:
        with open_store(home, write=False) as store:
            found = [
                one for one in lessons.news(store, scopes, 10_000) if one.session_id not in seen
            ]
            found = [one for one in found if session_id in ("", one.session_id)][:SESSIONS]
            said = {
                one.session_id: lessons.said_since(store, one.session_id, one.after, MESSAGES)
                for one in found
            }
            idf = words.idf_of(summaries.sample(store, SAMPLE)) if found else {}
            known = graves.load(store)
        if not found:
            break
        for one in found:
            seen.add(one.session_id)
            beat()
            done, goes_on = _finished(one, _said(said[one.session_id], one, known), now, over, idf)
            still += goes_on
            if not done:
                continue
            made, rules = _keep(home, one, done, idf, now, author, dry_run)
            kept += made
            proposed += rules
            skipped += sum(topic.unit is None for topic in done)
    return Report(tuple(kept), skipped, tuple(proposed), still)


def _said(messages: Sequence[Message], news: News, known: Graves) -> list[Said]:
    """Return what was said, with blanks where it says what is forgotten: no lesson keeps that."""
    return [
        Said(
            f"msg-{news.session_id}-{one.turn}",
            one.turn or 0,
            one.role,
            known.blanked(one.text, news.scopes) if known else one.text,
            one.at,
        )
        for one in messages
        if not one.agent_id
    ]


def _finished(
    news: News, said: Sequence[Said], now: datetime, over: bool, idf: Mapping[str, float]
) -> tuple[list[_Topic], bool]:
    """Return the topics that are over, and whether one goes on."""
    found = topics(exchanges_of(said))
    quiet = now - news.last_at > timedelta(minutes=IDLE_MINUTES)
    goes_on = bool(found) and not (over or news.ended or quiet) and len(said) < MESSAGES
    done = found[:-1] if goes_on else found
    return [_Topic(_unit(one, idf), one[-1].all[-1].turn) for one in done], goes_on


def _unit(topic: Sequence[Exchange], idf: Mapping[str, float]) -> WorkUnit | None:
    kind = kind_of(topic)
    return None if kind is Kind.TRIVIAL else work_unit(kind, topic, idf)


def _keep(
    home: Path,
    news: News,
    done: Sequence[_Topic],
    idf: Mapping[str, float],
    now: datetime,
    author: Author | None,
    dry_run: bool,
) -> tuple[list[Kept], list[str]]:
    """Store a session's units in one transaction, with the cursor behind them."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.connection import open_store

    who = author or Author(Channel.WORKER, producer="extractive", session_id=news.session_id)
    with open_store(home, write=not dry_run) as store:
        known = [(one.name, one.content) for one in lessons.known_units(store, news.scopes)]
        if dry_run:
            return _tried(done, known, idf), []
        with store.transaction(who, now=now) as txn:
            kept: list[Kept] = []
            for topic in done:
                if topic.unit is not None:
                    one = _put(store, txn, news, topic.unit, known, idf)
                    if one is not None:
                        kept.append(one)
                        known.insert(0, (one.name, topic.unit.content))
            txn.set_cursor(lessons.CURSOR + news.session_id, done[-1].until)
            proposed = _propose(store, txn, news, idf) if kept else []
    return kept, proposed


def _tried(
    done: Sequence[_Topic], known: Sequence[tuple[str, str]], idf: Mapping[str, float]
) -> list[Kept]:
    found = []
    for topic in done:
        if topic.unit is not None:
            to = compare(topic.unit.content, known, idf)
            name = f"wu-{topic.unit.day}-{topic.unit.slug}"
            found.append(
                _kept(topic.unit, to.name if _same(to) else name, to, _trust(topic.unit, to))
            )
    return found


def _put(
    store: Store,
    txn: Transaction,
    news: News,
    unit: WorkUnit,
    known: Sequence[tuple[str, str]],
    idf: Mapping[str, float],
) -> Kept | None:
    """Store a unit with its links; None when it was refused."""
    to = compare(unit.content, known, idf)
    if _same(to):
        return _kept(unit, to.name, to, Trust.ASSERTED)
    name = naming.unique(f"wu-{unit.day}-{unit.slug}", lambda one: txn.entry(one) is not None)
    trust = _trust(unit, to)
    entry = Entry(
        name=name,
        content=unit.content,
        tags=tuple(dict.fromkeys(("memory", "work-unit", str(unit.kind), *unit.topics))),
        scopes=news.scopes,
        trust=trust,
        session_id=news.session_id,
    )
    outcome = txn.put_entry(entry)
    if outcome.verb != "created":
        _LOG.info("a work unit was not kept: %s", outcome.reason)
        return None
    stored = txn.entry(name)  # what is like something forgotten was put aside
    trust = stored.trust if stored else trust
    txn.put_statement(Statement(name, "is_a", "work-unit", scopes=news.scopes))
    for source in unit.sources:
        txn.put_statement(Statement(name, "derivedFrom", source, scopes=news.scopes))
    if to.name:
        txn.put_statement(Statement(name, str(to.relation), to.name, scopes=news.scopes))
    if to.relation is Relation.SUPERSEDES and trust is Trust.ASSERTED:
        txn.set_trust(to.name, Trust.STALE, f"superseded by {name}")
    return _kept(unit, name, to, trust)


def _same(to: Found) -> bool:
    return to.relation is Relation.DUPLICATE


def _trust(unit: WorkUnit, to: Found) -> Trust:
    """Unsure means candidate; and so does what contradicts something kept."""
    sure = unit.sure and to.relation is not Relation.CONTRADICTS
    return Trust.ASSERTED if sure else Trust.CANDIDATE


def _kept(unit: WorkUnit, name: str, to: Found, trust: Trust) -> Kept:
    tags = ("memory", "work-unit", str(unit.kind), *unit.topics)
    return Kept(name, str(unit.kind), str(to.relation), to.name, str(trust), tags)


def _propose(store: Store, txn: Transaction, news: News, idf: Mapping[str, float]) -> list[str]:
    """Propose what was said in three sessions or more as a rule, which waits for a person."""
    from hypatia_mem.capture.immediate import Request, entry_name
    from hypatia_mem.store import lessons

    units = [(one.name, one.content, one.session_id) for one in lessons.lessons(store, news.scopes)]
    made: list[str] = []
    for group in repeated(units, idf):
        words_said = group[-1][1]
        name = entry_name(Request("remember", words_said, "rule", False))
        if txn.entry(name) is not None:
            continue
        outcome = txn.put_entry(
            Entry(
                name=name,
                content=words_said,
                tags=("memory", "rule"),
                scopes=news.scopes,
                kind="rule",
                trust=Trust.CANDIDATE,
            )
        )
        if outcome.verb != "created":
            continue
        made.append(name)
        for unit, _ in group:
            txn.put_statement(Statement(name, "derivedFrom", unit, scopes=news.scopes))
    return made

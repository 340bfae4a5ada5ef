"""Putting episodes and threads into the store, each in a transaction that the pass opened."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.memory.episodes import making
from hypatia_mem.memory.episodes.finding import Line, cut
from hypatia_mem.memory.episodes.making import Told
from hypatia_mem.memory.episodes.reading import Read
from hypatia_mem.memory.episodes.threads import done_by
from hypatia_mem.memory.extract.topics import Said
from hypatia_mem.model import Entry

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction

__all__ = ["Episode", "close_threads", "closed_in", "open_threads", "put"]

_LOG = logging.getLogger("hypatia_mem")


@dataclass(frozen=True, slots=True)
class Episode:
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


def put(txn: Transaction, read: Read, one: Episode, made: list[str]) -> bool:
    """Store an episode and add its name to ``made``.

    False when what it tells of is not as it was read any more.
    """
    from hypatia_mem.store import episodes

    if one.told is None:
        return True
    session = read.news.session_id
    first, last = one.first, one.last
    if read.owed is not None:
        first, last = read.owed.first, read.owed.last
    began = min((said.at for said in read.said if first <= said.turn <= last), default=one.at)
    entry = Entry(
        name=episodes.free_name(txn, making.name_of(session, first, last)),
        content=making.render(one.told),
        tags=("episode",),
        scopes=read.news.scopes,
        kind="episode",
        session_id=session,
        turn=last,
        created_at=one.at,
        valid_from=began if began < one.at else None,  # it tells of a time that is over,
        valid_to=one.at,  # whatever holds now
    )
    outcome = episodes.put(txn, entry, sorted(one.sources), read.at)
    if outcome.verb == "created":
        made.append(outcome.name)
        return True
    _LOG.info("an episode was not kept: %s", outcome.reason)
    return "forgotten" in outcome.reason


def open_threads(txn: Transaction, read: Read, left: Sequence[Line]) -> list[str]:
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


def closed_in(read: Read, said: Sequence[Said]) -> Iterator[tuple[Entry, str]]:
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


def close_threads(txn: Transaction, one: Episode) -> list[str]:
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

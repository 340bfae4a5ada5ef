"""The review: what waits for a person's decision, and the decisions.

In the queue are candidates (among them what is like something that was rejected), what is disputed
or stale, pairs of memories that say the opposite, and queued changes that could not be made. An
item leaves it by a decision: taken in, as it is or rewritten; rejected; merged into another; or put
off. Nothing leaves it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Refused, UsageError
from hypatia_mem.memory import curate, guard, queued
from hypatia_mem.memory import trust as trust_
from hypatia_mem.memory.blast import Changed, reached
from hypatia_mem.memory.opposites import opposites
from hypatia_mem.model import PERSON_CHANNELS, Author, Channel, Entry, Outcome, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.opened import Store
    from hypatia_mem.store.reviewing import Queued, Undecided

__all__ = ["Item", "accept", "defer", "drop_queued", "items", "merge", "reject", "retry_queued"]

WHY = ("candidate", "disputed", "stale", "conflict", "queued")  # in the order of the queue


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to decide: ``why`` it is here, and what is known of where it came from.

    ``name`` is an entry's, a statement's key, or a queued change's id. ``other`` is what a
    ``conflict`` is with, or what a ``queued`` change is about. ``etag`` is for editing it.
    """

    name: str
    why: str
    kind: str  # entry | statement | change
    content: str
    scopes: tuple[str, ...]
    reason: str
    actor: str
    channel: str
    at: datetime | None
    until: datetime | None
    other: str = ""
    other_content: str = ""
    etag: str = ""


def items(
    store: Store, scopes: Sequence[str] | None, *, now: datetime, deferred: bool = False
) -> list[Item]:
    """Return what waits in these scopes (None: everywhere), each kind oldest first.

    What was put off is left out until its time, and a queued change until it could not be made,
    unless ``deferred``.
    """
    from hypatia_mem.store import reviewing

    open_ = reviewing.undecided(store, scopes)
    entries = {one.name: one for one in store.entries([one.name for one in open_])}
    found = [_of_trust(one, entries.get(one.name)) for one in open_]
    found += _conflicts(store, scopes)
    found += [
        Item(
            name=one.id,
            why="queued",
            kind="change",
            content=f"{one.verb} {one.name}",
            scopes=(),
            reason=one.failure or f"waits for session {one.session_id} to end",
            actor=one.actor,
            channel=one.channel,
            at=one.at,
            until=None,
            other=one.name,
        )
        for one in reviewing.queued(store, failed=None if deferred else True)
    ]
    waiting = [one for one in found if deferred or one.until is None or one.until <= now]
    return sorted(waiting, key=lambda one: WHY.index(one.why))


def accept(  # noqa: PLR0913 - what is taken in, how, and by whom
    home: Path,
    words: Sequence[str],
    *,
    text: str | None = None,
    trust: Trust = Trust.ASSERTED,
    reason: str = "",
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Take these in, as they are or (``text``, for one of them) rewritten; both texts are kept.

    What a rejection keeps away is refused, rewritten or not. Raises NotFound, UsageError, Refused,
    Conflict when a running session depends on one.
    """
    _only_persons(author, "takes in what is reviewed")
    if text is None:
        return trust_.set_trust(
            home,
            words,
            trust,
            reason=reason,
            scopes=scopes,
            dry_run=dry_run,
            author=author,
            now=now,
        )
    from hypatia_mem.capture.redact import redact_text

    said = redact_text(text)
    if not said.strip():
        raise UsageError("it cannot be taken in without words")
    with _all_or_none(home, words, scopes, author, now, dry_run=dry_run) as opened:
        txn, subjects, since = opened.txn, opened.subjects, opened.txn.seq
        if len(subjects) != 1 or isinstance(subjects[0].value, Statement):
            raise UsageError("one entry at a time is rewritten and taken in")
        _refuse_kept_away(txn, subjects[0].value, said)
        outcomes = [txn.rewrite_entry(subjects[0].name, said)]
        outcomes.append(txn.set_trust(subjects[0].name, trust, reason))
        _raise_refused(outcomes)
        names = [subjects[0].name]
        blast = reached(txn, since, "accept", names, held=opened.held, dry_run=dry_run)
    return Changed([outcomes[0] if outcomes[1].verb == "unchanged" else outcomes[1]], blast)


def reject(
    home: Path,
    words: Sequence[str],
    *,
    reason: str,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Say that these are wrong, and keep their values away; as ``trust.set_trust``."""
    return trust_.set_trust(
        home,
        words,
        Trust.REJECTED,
        reason=reason,
        scopes=scopes,
        dry_run=dry_run,
        author=author,
        now=now,
    )


def merge(
    home: Path,
    word: str,
    into: str,
    *,
    text: str | None = None,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Put what ``word`` says into ``into``, with all its sources, and take ``word`` away.

    ``into`` gets ``text``, or both texts one below the other where neither holds the other. One
    operation: undoing it brings both back. Raises NotFound, UsageError, Refused, Conflict.
    """
    from hypatia_mem.capture.redact import redact_text

    _only_persons(author, "merges what is reviewed")
    with _all_or_none(home, [word, into], scopes, author, now, dry_run=dry_run) as opened:
        store, txn, since = opened.store, opened.txn, opened.txn.seq
        both = [one.value for one in opened.subjects]
        if len(both) != 2 or not all(isinstance(one, Entry) for one in both):
            raise UsageError(
                "two entries are merged; name the one that goes and the one that stays"
            )
        gone, kept = (one for one in both if isinstance(one, Entry))
        said = _united(kept.content, gone.content) if text is None else redact_text(text)
        _refuse_kept_away(txn, gone, said)
        outcome = txn.update_entry(
            kept.name,
            content=said,
            tags=tuple(dict.fromkeys((*kept.tags, *gone.tags))),
            synonyms=tuple(dict.fromkeys((*kept.synonyms, *gone.synonyms, gone.name))),
        )
        _raise_refused([outcome])
        for one in store.statements_of(gone.name):
            if one.subject == gone.name and one.predicate in _SOURCES:
                txn.put_statement(_from(one, kept))
        txn.delete_entry(gone.name, reason="merge")
        names = [kept.name, gone.name]
        blast = reached(txn, since, "merge", names, held=opened.held, dry_run=dry_run)
    return Changed([Outcome("updated", kept.name, details={"merged": gone.name})], blast)


def defer(
    home: Path,
    words: Sequence[str],
    *,
    days: int,
    reason: str = "",
    scopes: Sequence[str] | None,
    author: Author,
    now: datetime,
) -> list[Outcome]:
    """Leave these alone for some days; they stay what they are. Raises NotFound, UsageError."""
    from hypatia_mem.capture.redact import redact_text

    if not 1 <= days <= 3650:
        raise UsageError(f"{days} days: something between 1 and 3650 is meant")
    until = now + timedelta(days=days)
    with _all_or_none(home, words, scopes, author, now, guarded=False) as opened:
        said = redact_text(reason)
        return [opened.txn.defer(one.name, until, said) for one in opened.subjects]


def retry_queued(home: Path, id_: str, *, author: Author, now: datetime) -> Outcome:
    """Make a queued change now that could not be made before. Raises NotFound, and as it does."""
    _only_persons(author, "makes a queued change")
    one = _queued(home, id_)
    own = Author(Channel(one.channel), one.actor, session_id=author.session_id)
    given = {**one.arguments, **({"tag": None} if one.verb == "edit" else {})}
    queued.make(home, replace(one, arguments=given), author=own, now=now)
    return Outcome("deleted", one.name, details={"queued": one.verb})


def drop_queued(home: Path, id_: str, *, author: Author, now: datetime) -> Outcome:
    """Take a queued change off the queue without making it. Raises NotFound.

    Raises Refused when an agent would drop what a person queued.
    """
    one = _queued(home, id_)
    if Channel(one.channel) in PERSON_CHANNELS:
        _only_persons(author, "drops a change that a person queued")
    with curate.changing(home, author, now) as (_, txn):
        txn.unqueue(one.id)
    return Outcome("deleted", one.name, details={"queued": one.verb})


# ----------------------------------------------------------------------------------------------

_SOURCES = frozenset({"derivedFrom", "derived_from", "summary"})


@dataclass(frozen=True, slots=True)
class _Opened:
    store: Store
    txn: Transaction
    subjects: list[trust_.Subject]
    held: Sequence[tuple[str, str]] = ()


@contextmanager
def _all_or_none(
    home: Path,
    words: Sequence[str],
    scopes: Sequence[str] | None,
    author: Author,
    now: datetime,
    *,
    guarded: bool = True,
    dry_run: bool = False,
) -> Iterator[_Opened]:
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        subjects = trust_.resolve(store, words, scopes)
        names = [one.name for one in subjects]
        held: list[tuple[str, str]] = []
        if guarded:
            held = guard.refuse_held(store, names, author=author, now=now, dry_run=dry_run)
            if not dry_run:
                curate.leave_index(home, store, names)
        yield _Opened(store, txn, subjects, held)


def _of_trust(one: Undecided, entry: Entry | None) -> Item:
    return Item(
        name=one.name,
        why=one.trust,
        kind=one.kind,
        content=one.content or one.name,
        scopes=one.scopes,
        reason=one.reason,
        actor=one.actor,
        channel=one.channel,
        at=one.at,
        until=one.until,
        etag=trust_.etag(entry) if entry is not None else "",
    )


def _conflicts(store: Store, scopes: Sequence[str] | None) -> list[Item]:
    """Return the pairs that say the opposite; a pair of which both are verified was looked at."""
    from hypatia_mem.store import trust as verdicts

    found = opposites(_live(store, scopes))
    words = verdicts.verdicts(store, [one.name for pair in found for one in pair])
    made: list[Item] = []
    for one, other in found:
        if one.trust == other.trust == Trust.VERIFIED:
            continue
        said = words.get(one.name)
        made.append(
            Item(
                name=one.name,
                why="conflict",
                kind="entry",
                content=one.content,
                scopes=one.scopes,
                reason=f"it says the opposite of {other.name!r}; if both hold, verify both",
                actor="",
                channel="",
                at=one.created_at,
                until=said.until if said is not None else None,
                other=other.name,
                other_content=other.content,
                etag=trust_.etag(one),
            )
        )
    return made


def _live(store: Store, scopes: Sequence[str] | None) -> list[Entry]:
    if scopes is None:
        scopes = ["", *(project.scope for project in store.projects())]
    return store.rules(scopes)


def _only_persons(author: Author, what: str) -> None:
    if author.channel not in PERSON_CHANNELS:
        raise Refused(
            f"only a person {what}",
            hint="Run this command in a terminal; an agent may list the queue and put items off.",
        )


def _refuse_kept_away(txn: Transaction, entry: Entry, words: str) -> None:
    """Refuse to take in by this door what is kept away: lifting that is a decision of its own."""
    if txn.is_kept_away(entry, words):
        raise Refused(
            "what it would say was rejected or forgotten, and is kept away",
            hint="Lift its tombstone first: hypatia-mem tombstone list",
        )


def _raise_refused(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.verb == "refused":
            raise Refused(f"{outcome.name!r} stays as it is: {outcome.reason}")


def _united(kept: str, gone: str) -> str:
    if gone.strip() in kept:
        return kept
    return gone if kept.strip() in gone else f"{kept.rstrip()}\n\n{gone.lstrip()}"


def _from(one: Statement, kept: Entry) -> Statement:
    return Statement(kept.name, one.predicate, one.object, one.content, kept.scopes)


def _queued(home: Path, id_: str) -> Queued:
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return queued.find(store, id_)

"""Storing work units with all their links, and proposing what came again as a rule."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypatia_mem.memory.extract.comparing import Found, Relation, compare, lesson_of, repeated
from hypatia_mem.memory.extract.units import WorkUnit
from hypatia_mem.memory.summarise import naming
from hypatia_mem.model import Entry, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction

__all__ = ["Kept", "propose", "put", "tags_of", "tried"]

_LOG = logging.getLogger("hypatia_mem")


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


def tried(unit: WorkUnit, known: Sequence[tuple[str, str]], idf: Mapping[str, float]) -> Kept:
    """Return what storing a unit would come to."""
    to = compare(unit.content, known, idf)
    name = to.name if _same(to) else f"wu-{unit.day}-{unit.slug}"
    return _kept(unit, name, to, _trust(unit, to))


def tags_of(unit: WorkUnit) -> tuple[str, ...]:
    """Return the tags of a unit's entry."""
    return tuple(dict.fromkeys(("memory", "work-unit", str(unit.kind), *unit.topics)))


def put(
    txn: Transaction,
    session_id: str,
    scopes: Sequence[str],
    unit: WorkUnit,
    known: Sequence[tuple[str, str]],
    idf: Mapping[str, float],
) -> Kept | None:
    """Store a unit with its links; None when it was refused."""
    scopes = tuple(scopes)
    to = compare(unit.content, known, idf)
    if _same(to):
        _note_again(txn, to.name, scopes, unit)
        return _kept(unit, to.name, to, Trust.ASSERTED)
    name = naming.unique(f"wu-{unit.day}-{unit.slug}", lambda one: txn.entry(one) is not None)
    trust = _trust(unit, to)
    entry = Entry(
        name=name,
        content=unit.content,
        tags=tags_of(unit),
        scopes=scopes,
        trust=trust,
        session_id=session_id,
    )
    outcome = txn.put_entry(entry)
    if outcome.verb != "created":
        _LOG.info("a work unit was not kept: %s", outcome.reason)
        return None
    stored = txn.entry(name)  # what is like something forgotten was put aside
    trust = stored.trust if stored else trust
    txn.put_statement(Statement(name, "is_a", "work-unit", scopes=scopes))
    for source in unit.sources:
        txn.put_statement(Statement(name, "derivedFrom", source, scopes=scopes))
    if to.name:
        txn.put_statement(Statement(name, str(to.relation), to.name, scopes=scopes))
    if to.relation is Relation.SUPERSEDES and trust is Trust.ASSERTED:
        _retire(txn, to.name, name)
    return _kept(unit, name, to, trust)


def _note_again(txn: Transaction, name: str, scopes: Sequence[str], unit: WorkUnit) -> None:
    """Note where a lesson that is kept already came again: it may be on its way to a rule.

    The unit does not come to stand on that message: it goes on without it.
    """
    from hypatia_mem.store import lessons

    lesson = lesson_of(unit.content)
    if not lesson:
        return
    said = [
        source
        for source in unit.sources
        if (entry := txn.entry(source)) and lesson in " ".join(entry.content.split())
    ]
    for source in (said or unit.sources)[:1]:
        txn.put_statement(Statement(name, lessons.AGAIN, source, scopes=tuple(scopes)))


def _retire(txn: Transaction, old: str, new: str) -> None:
    """Call a unit stale that another supersedes, and show it no more; its history stays.

    What a person has verified, pinned or worded goes on being shown: that is theirs to settle.
    """
    from hypatia_mem.store import authority

    entry = txn.entry(old)
    retired = txn.set_trust(old, Trust.STALE, f"superseded by {new}").verb == "updated"
    held = entry is None or entry.pinned or authority.set_by_person(txn.store, [old], "words")
    if retired and not held:
        txn.update_entry(old, suppressed=True)


def _same(to: Found) -> bool:
    return to.relation is Relation.DUPLICATE


def _trust(unit: WorkUnit, to: Found) -> Trust:
    """Unsure means candidate; and so does what contradicts something kept."""
    sure = unit.sure and to.relation is not Relation.CONTRADICTS
    return Trust.ASSERTED if sure else Trust.CANDIDATE


def _kept(unit: WorkUnit, name: str, to: Found, trust: Trust) -> Kept:
    return Kept(name, str(unit.kind), str(to.relation), to.name, str(trust), tags_of(unit))


def propose(txn: Transaction, scopes: Sequence[str], idf: Mapping[str, float]) -> list[str]:
    """Propose what was said in three sessions or more as a rule, which waits for a person."""
    from hypatia_mem.capture.immediate import Request, entry_name
    from hypatia_mem.store import lessons

    found = lessons.lessons(txn.store, scopes)
    again = lessons.said_again(txn.store, [one.name for one in found])
    units: list[tuple[str, str, str]] = []
    for one in found:
        units.append((one.name, one.content, one.session_id))
        units += [(message, one.content, session) for message, session in again.get(one.name, ())]
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
                scopes=tuple(scopes),
                kind="rule",
                trust=Trust.CANDIDATE,
            )
        )
        if outcome.verb != "created":
            continue
        made.append(name)
        for unit, _ in group:
            txn.put_statement(Statement(name, "derivedFrom", unit, scopes=tuple(scopes)))
    return made

"""Tying what was learnt lately to what was known before: ``relates_to``, from the new to the old.

Two entries of a project (or of all) are related when the shorter of them is mostly said by the
other, names of things above all. Nothing is changed but that statements are added, and adding them
again adds nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.summarise import facts, words
from hypatia_mem.model import GLOBAL_SCOPE, Author, Channel, Entry, Statement

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["PREDICATE", "Tie", "is_due", "tidy"]

PREDICATE = "relates_to"
CURSOR, LAST = "tidy:seq", "tidy:at"
_SHARE = 0.5  # of the shorter one's terms, by weight
_LEAST = 3  # terms in common
_EACH = 3  # older entries that one is tied to
_COMMON = 200  # entries that have a word
_SAMPLE = 1_500
_MOST = 5_000  # entries that are looked at


@dataclass(frozen=True, slots=True)
class Tie:
    """A new entry, an older one, and how much of the shorter is said by the other, 0 to 1."""

    new: str
    old: str
    share: float


def tidy(
    home: Path,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    dry_run: bool = False,
) -> list[Tie]:
    """Tie what is new in these scopes (None: every project) to what was there; return the ties.

    New is what was stored or changed since the last time. ``dry_run`` changes nothing. What is
    withheld is tied to nothing. Raises what the store raises.
    """
    from hypatia_mem.store import lessons, summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        seq = store.ledger_seq()
        since = lessons.position(store, CURSOR) if scopes is None else 0
        found = lessons.knowledge(store, scopes, _MOST)
        idf = words.idf_of(summaries.sample(store, _SAMPLE)) if found else {}
    likely = _ties(found, idf, since)  # the store is let go of: this may take a while
    own = {one.name: one.scopes for one, _ in found}
    with open_store(home, write=not dry_run) as store:
        ties = [one for one in likely if _is_missing(store, one)]
        if dry_run:
            return ties
        with store.transaction(author or Author(Channel.WORKER), now=now) as txn:
            for one in ties:
                txn.put_statement(Statement(one.new, PREDICATE, one.old, scopes=own[one.new]))
            if scopes is None:
                txn.set_cursor(CURSOR, seq)
                txn.set_cursor(LAST, int(now.timestamp()))
    return ties


def is_due(home: Path, hours: int, now: datetime) -> bool:
    """Tell whether it is time to tidy; ``hours`` 0 is never."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.connection import open_store

    if hours <= 0:
        return False
    with open_store(home, write=False) as store:
        last = lessons.position(store, LAST)
    return int(now.timestamp()) - last >= hours * 3600


def _is_missing(store: Store, tie: Tie) -> bool:
    """Tell whether both are still shown, and not tied already, by whatever predicate."""
    if len(store.live_entries([tie.new, tie.old])) < 2:
        return False
    ends = ({one.subject, one.object} for one in store.statements_of(tie.new))
    return {tie.new, tie.old} not in ends


def _ties(found: Sequence[tuple[Entry, int]], idf: Mapping[str, float], since: int) -> list[Tie]:
    """Return the ties of what came after ``since``, given entries with their sequence, in order."""
    concepts = {
        one.name: {*words.terms(one.content), *facts.tokens(one.content)} for one, _ in found
    }
    unknown = idf.get("", 1.0)
    weight = {
        name: sum(idf.get(term, unknown) for term in terms) for name, terms in concepts.items()
    }
    having: defaultdict[str, list[Entry]] = defaultdict(list)
    ties: list[Tie] = []
    for one, seq in sorted(found, key=lambda pair: (pair[1], pair[0].name)):
        if seq > since:
            shared: defaultdict[str, set[str]] = defaultdict(set)
            for term in concepts[one.name]:
                for other in having[term]:
                    if _related(one, other):
                        shared[other.name].add(term)
            scored = [
                Tie(one.name, name, round(share, 2))
                for name, terms in shared.items()
                if len(terms) >= _LEAST
                and (share := _share(terms, one.name, name, weight, idf)) >= _SHARE
            ]
            ties += sorted(scored, key=lambda tie: (-tie.share, tie.old))[:_EACH]
        for term in concepts[one.name]:
            if len(having[term]) < _COMMON:  # a word of so many says nothing of any
                having[term].append(one)
    return ties


def _share(
    terms: set[str], new: str, old: str, weight: Mapping[str, float], idf: Mapping[str, float]
) -> float:
    shorter = min(weight[new], weight[old])
    unknown = idf.get("", 1.0)
    return sum(idf.get(term, unknown) for term in terms) / shorter if shorter else 0.0


def _related(new: Entry, old: Entry) -> bool:
    """Tell whether two may be tied: of one project or of all, and not out of one session."""
    near = bool(set(new.scopes) & set(old.scopes)) or GLOBAL_SCOPE in old.scopes
    return near and not (new.session_id and new.session_id == old.session_id)

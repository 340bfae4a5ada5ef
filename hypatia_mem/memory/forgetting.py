"""Forgetting everything that holds some words, of whatever kind, as one operation.

A prompt that says "forget ..." is taken to mean a rule, a taboo or a memory, and nothing else. Who
asks for it by command may mean all that is kept of it, so all of that is found and named before
anything is done: messages, work units, facts, preferences, goals, episodes, open threads,
summaries, entries, statements and the titles of sessions. What is derived from what goes is told
anew from the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory import curate, guard, retelling, typed
from hypatia_mem.model import Author

if TYPE_CHECKING:
    from hypatia_mem.memory.curate import ForgetPlan
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.holding import Holder

__all__ = ["Found", "Held", "find", "find_with", "forget", "lines"]

REASON = "forget"
_SORTS = ("preference", "procedure", "fact")  # of entries, told by a tag
_WHOLE = 240  # characters; of a longer text all words have to stand in two sentences
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that holds the words; ``text`` is a line of it.

    ``kind`` is that of an entry, or ``statement`` (``name`` is its key) or ``title`` (of the
    session ``name``).
    """

    name: str
    kind: str
    scopes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """All that holds the words of ``query``, and which of it a running session keeps (``busy``)."""

    query: str
    things: tuple[Held, ...] = ()
    busy: tuple[tuple[str, str], ...] = ()

    @property
    def kinds(self) -> dict[str, list[Held]]:
        """Return the things by their kind, memories first and what was said last."""
        order = ("taboo", "rule", "memory", *_SORTS, "goal")
        last = ("episode", "thread", "summary", "session", "title", "message")
        sorts: dict[str, list[Held]] = {}
        for one in self.things:
            sorts.setdefault(one.kind, []).append(one)

        def place(kind: str) -> tuple[int, str]:
            if kind in order:
                return order.index(kind), ""
            return (len(order) + 1 + last.index(kind), "") if kind in last else (len(order), kind)

        return dict(sorted(sorts.items(), key=lambda pair: place(pair[0])))


def find(
    store: Store,
    query: str,
    scopes: Sequence[str] | None,
    *,
    without: Collection[str] = (),
    author: Author,
    now: datetime,
) -> Found:
    """Return what holds every telling word of ``query`` in these scopes (None: everywhere).

    Of a long text they have to stand close together. ``without`` are names to leave out, and so are
    the statements at whose ends they stand, which go with them.
    """
    from hypatia_mem.store import holding

    words = curate.telling_words(query)
    if not words:
        return Found(query)
    plain = sorted(words)
    entries = [
        one
        for one in holding.entries(store, plain, scopes)
        if one.name not in without and _says(one.texts, words)
    ]
    going = {*without, *(one.name for one in entries)}
    found = [
        *entries,
        *(
            one
            for one in holding.statements(store, plain, scopes)
            if going.isdisjoint(one.tags) and _says(one.texts, words)
        ),
        *(one for one in holding.titles(store, plain, scopes) if _says(one.texts, words)),
    ]
    busy = guard.held(store, [one.name for one in entries], author=author, now=now)
    kept = {name for name, _ in busy}
    return Found(
        query, tuple(_held(one, words) for one in found if one.name not in kept), tuple(busy)
    )


def find_with(
    store: Store,
    plan: ForgetPlan,
    scopes: Sequence[str] | None,
    *,
    author: Author,
    now: datetime,
) -> Found:
    """Return what ``find`` does, and what a plan for these words found by its whole text."""
    from hypatia_mem.store.holding import Holder

    found = find(store, plan.query, scopes, author=author, now=now)
    there = {one.name for one in found.things}
    words = curate.telling_words(plan.query)
    missed = [
        _held(Holder(one.name, one.kind, tuple(one.scopes), (), (one.content,)), words)
        for one in plan.matches
        if one.complete and one.name not in there
    ]
    return replace(found, things=(*missed, *found.things))


def lines(texts: Iterable[str], query: str) -> list[str]:
    """Return of some texts the stretches in which all telling words of ``query`` stand."""
    words = curate.telling_words(query)
    return [line for text in texts if (line := _line(text, words)) is not None]


def forget(home: Path, found: Found, *, author: Author, now: datetime) -> tuple[int, int]:
    """Forget all of ``found`` in one transaction; return how many things and statements went.

    Nothing of it is left but keyed digests, so it cannot be undone. What has gone meanwhile is
    passed over. Raises Refused for an agent that means a message, and what the store raises.
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import persons, propagation

    by_kind = found.kinds
    said = [one.name for one in by_kind.get("message", ())]
    persons.keep_evidence(home, said, author, now)
    triples = [one.name for one in by_kind.pop("statement", ())]
    sessions = [one.name for one in by_kind.pop("title", ())]
    others = [one.name for kind, some in by_kind.items() if kind != "message" for one in some]
    removed = relationships = 0
    with curate.changing(home, author, now) as (store, txn):
        curate.leave_index(home, store, [*said, *others, *triples])
        txn.set_meta("snapshot_wanted", str(txn.seq + 1))  # one that does not hold it
        texts = [entry.content for entry in store.entries(others)]
        typed.forget_lines(home, [*texts, *others], found.query)
        for session_id in sessions:
            removed += txn.erase_title(session_id, REASON).verb == "updated"
        removed += len(store.entries([*said, *others]))
        for name in [*said, *others]:
            if store.entry(name) is not None:  # what is derived from a message has gone with it
                outcome = txn.delete_entry(name, REASON, tombstone=True)
                relationships += int(outcome.details.get("statements", 0))
        retelling.retell(txn, [*texts, found.query])
        relationships += sum(txn.erase_statement(one, REASON).verb == "deleted" for one in triples)
    propagation.rederive(home, load_settings(home), now=now)
    return removed, relationships


# ----------------------------------------------------------------------------------------------


def _says(texts: Iterable[str], words: set[str]) -> bool:
    return any(_line(text, words) is not None for text in texts)


def _line(text: str, words: set[str]) -> str | None:
    """Return the stretch of a text in which all the words stand, None when there is none."""
    if not words <= curate.telling_words(text):
        return None
    if len(text) <= _WHOLE:
        return text
    from hypatia_mem.store.graves import sentences

    places = sorted(sentences(text, widest=2), key=lambda place: place[1] - place[0])
    parts = (text[start:end] for start, end in places)
    return next((part for part in parts if words <= curate.telling_words(part)), None)


def _held(one: Holder, words: set[str]) -> Held:
    kind = next((sort for sort in _SORTS if sort in one.tags), one.kind)
    stretches = [line for text in one.texts if (line := _line(text, words)) is not None]
    text = " ".join((stretches or one.texts)[0].split())
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return Held(one.name, kind if one.kind != "statement" else "statement", one.scopes, shown)

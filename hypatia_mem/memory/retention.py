"""Letting go of what is old: a year's sessions become one summary and the words that it quotes.

Nothing goes by itself: a person orders it, sees before what would go, and can take it back. The
newest ``retention_sessions`` of a project stay whole, and so does every session younger than
``retention_days``. Of the others the messages go that nothing needs. There stay:

- what the year's summary quotes, so that each of its sentences can still be walked down to words;
- what is pinned, in a pinned session, withheld, or under something pinned;
- what a lesson, a rule, a goal or any other statement is tied to.

Summaries, titles and episodes that stood on what goes, go with it; what they told beside it is
condensed anew. Rules, tombstones and the ledger are not touched, and what went does not come back
when a transcript is read again. Done a second time it changes nothing; with more sessions grown
old, the year's summary is made anew from its quotations and what has come.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, Refused
from hypatia_mem.memory import curate, guard
from hypatia_mem.memory.cascade import storing
from hypatia_mem.memory.cascade.plan import Batch
from hypatia_mem.memory.summarise import grounding, making, naming, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import SummaryFailed
from hypatia_mem.model import PERSON_CHANNELS, Author, Entry

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.aging import Aged
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves

__all__ = ["Let", "Year", "apply"]

_LOG = logging.getLogger("hypatia_mem")
_SAMPLE = 1_500
_SHARE = 0.25  # of the words that have come, beside those the year's summary has already
_REASON = "retention"


@dataclass(frozen=True, slots=True)
class Year:
    """A year's summary: its text, and the messages that stay because it stands on them."""

    year: int
    name: str
    content: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """What is let go of in one project, and what stays of the same sessions.

    ``kept`` tells of each message that stays for another reason than that a year's summary quotes
    it. ``derived`` stood on what goes; ``owed`` counts messages that a new summary is due for.
    ``op_id`` is ``""`` when it was only tried out, or nothing was to be done.
    """

    scope: str
    sessions: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    kept: Mapping[str, str] | None = None
    derived: tuple[str, ...] = ()
    owed: int = 0
    years: tuple[Year, ...] = ()
    op_id: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What goes, and the years' summaries as they were made of what was read."""

    sessions: tuple[str, ...]
    drop: tuple[str, ...]
    kept: Mapping[str, str]
    years: tuple[_Made, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    year: int
    made: making.Made
    digests: Mapping[str, str]  # of the messages that stay, in order


def apply(
    home: Path,
    settings: Settings,
    scope: str,
    *,
    dry_run: bool,
    author: Author,
    now: datetime,
) -> Let:
    """Let go of what is old in a project, as one operation; ``dry_run``: only say what would go.

    Raises Refused where not a person orders it, Conflict when something changed meanwhile or a
    running session depends on it: then nothing has changed.
    """
    if not dry_run and author.channel not in PERSON_CHANNELS:
        raise Refused(
            "only a person may let go of old sessions",
            hint="Run this command in a terminal. To see what would go: retention plan",
        )
    plan = _plan(home, settings, scope, now)
    if not plan.drop:
        return Let(scope, kept={})
    producer = f"{Extractive().producer}#{Extractive().digest}"
    by = replace(author, producer=producer)
    with curate.changing(home, by, now, dry_run=dry_run) as (store, txn):
        from hypatia_mem.store import aging, withdrawing

        later = "Let go of what is old when it has ended."
        guard.refuse_held(store, plan.drop, author=author, now=now, dry_run=dry_run, hint=later)
        stays = [name for one in plan.years for name in one.digests]
        covering = aging.standing_on(store, stays)
        if not dry_run:
            curate.leave_index(home, store, [*plan.drop, *covering])
        gone = withdrawing.withdraw(txn, [*plan.drop, *covering], reason=_REASON)
        years = tuple(_store(store, txn, scope, one) for one in plan.years)
        derived = [one.name for one in gone.derived] + covering
        return Let(
            scope,
            plan.sessions,
            plan.drop,
            plan.kept,
            tuple(dict.fromkeys(derived)),
            len({name for names in gone.owed for name in names} - set(stays)),
            years,
            "" if dry_run else txn.op_id,
        )


# --- what goes ------------------------------------------------------------------------------------


def _plan(home: Path, settings: Settings, scope: str, now: datetime) -> _Plan:
    from hypatia_mem.store import aging, graves, summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        old = _old(aging.aged(store, scope), settings, now)
        names = aging.messages_of(store, scope, [one.id for one in old])
        entries = summaries.contents(store, names)
        needed, settled = aging.bearing(store, set(names))
        kept = {name: f"needed by {by}" for name, by in needed.items()}
        kept |= {name: "pinned" for name, entry in entries.items() if entry.pinned}
        years: dict[int, list[Entry]] = {}
        for name in names:
            if name in settled:
                continue  # a pinned summary tells of it, and stays
            at = entries[name].created_at
            years.setdefault(at.year if at else now.year, []).append(entries[name])
        before = {year: aging.yearly(store, scope, year) for year in years}
        known = graves.load(store)
        idf = words.idf_of(summaries.sample(store, _SAMPLE)) if names else {}
    found = [
        _of_year(year, said, before[year], kept, known, idf, settings, scope)
        for year, said in sorted(years.items())
    ]
    made = tuple(one for one, _ in found if one is not None)
    drop = tuple(name for _, names in found for name in names)
    touched = {entries[name].session_id for name in drop}
    return _Plan(tuple(one.id for one in old if one.id in touched), drop, kept, made)


def _old(sessions: Sequence[Aged], settings: Settings, now: datetime) -> list[Aged]:
    """Return the sessions that are neither among the newest nor young, nor pinned."""
    before = now - timedelta(days=settings.retention_days)
    rest = sessions[settings.retention_sessions :]
    return [one for one in rest if one.last < before and not one.pinned]


def _of_year(
    year: int,
    said: Sequence[Entry],
    before: tuple[str, str, tuple[str, ...]] | None,
    kept: Mapping[str, str],
    known: Graves,
    idf: Mapping[str, float],
    settings: Settings,
    scope: str,
) -> tuple[_Made | None, list[str]]:
    """Return a year's summary, and what goes for it; none where nothing has come to it."""
    told = set(before[2]) if before else set()
    new = [one for one in said if one.name not in told]
    if not new or all(one.name in kept for one in new):
        return None, []
    present = [
        replace(one, content=known.blanked(one.content, one.scopes)) if known else one
        for one in said
    ]
    request = making.request_of(present, 1, settings.summary_words, idf)
    if before is not None:
        more = sum(words.cost(one.content) for one in new) * _SHARE
        most = min(settings.summary_words, int(words.cost(before[1]) + more))
        request = replace(request, max_words=max(request.max_words, most))
    try:
        draft = Extractive().summarise(request)
    except SummaryFailed:  # not a word in any of them
        return None, [one.name for one in said if one.name not in kept]
    from hypatia_mem.store.rows import digest

    quoted = {span.item for one in draft.sentences for span in one.spans}
    stays = [item for item in request.items if item.name in quoted or item.name in kept]
    digests = {one.name: digest(one.content) for one in said}
    made = making.finish(draft.sentences, request, digests, _name_of(year, scope), 0)
    own = {item.name: digests[item.name] for item in stays}
    made = replace(made, data=grounding.link_data(draft.sentences, stays, own))
    return _Made(year, made, own), [one.name for one in said if one.name not in own]


def _name_of(year: int, scope: str) -> str:
    """Return what a year's summary is called; a project that names nothing has only the year.

    >>> _name_of(2025, "my-app"), _name_of(2025, "")
    ('year-2025-my-app', 'year-2025')
    """
    return naming.slug_of(f"year {year} {scope}") or f"year-{year}"


# --- doing it -------------------------------------------------------------------------------------


def _store(store: Store, txn: object, scope: str, one: _Made) -> Year:
    """Store a year's summary; raises Conflict when what it stands on is not as it was read."""
    from hypatia_mem.store import aging, summaries

    items = tuple(summaries.as_items(store, list(one.digests)))
    if {item.name: item.digest for item in items} != dict(one.digests):
        raise Conflict(
            "something changed while the year was condensed; nothing was let go of",
            hint="Try again: hypatia-mem retention plan",
        )
    batch = Batch(1, (scope,), items, _REASON)
    outcome, done = storing.put(txn, batch, one.made, (aging.YEARLY,))
    if done is None:
        raise Conflict(
            f"the summary of {one.year} was not stored: {outcome.reason}",
            hint="Nothing was let go of.",
        )
    return Year(one.year, done.name, one.made.content, tuple(one.digests))

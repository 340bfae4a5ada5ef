"""Making summaries anew on purpose: shown first, stored only when that very text is accepted.

Of one summary: the same sources are condensed again. Of several of one level: one summary takes
their place, and stands on everything that any of them stood on. What is not accepted has touched
nothing. The old text stays readable in the history.

Whoever condenses otherwise does so here: a model, where one is configured, is asked when it is
looked at, under the same limits and with the store let go of. What it wrote is kept (``drafts``),
so that accepting stores that very text and asks nobody. Where it cannot be had, the extractive
summariser stands in and is recorded as that.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError
from hypatia_mem.memory.cascade import drafts, failing
from hypatia_mem.memory.cascade.running import Waiting
from hypatia_mem.memory.cascade.trace import level_of
from hypatia_mem.memory.summarise import choosing, making, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.onlyone import BUSY, only_one
from hypatia_mem.memory.summarise.protocol import (
    Draft,
    FailureKind,
    Request,
    Summariser,
    SummaryFailed,
)
from hypatia_mem.model import Author, Channel, Entry

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.summaries import Pending

__all__ = ["Preview", "accept", "preview"]

_SAMPLE = 1_500  # messages that say how rare a word is


@dataclass(frozen=True, slots=True)
class Preview:
    """What a summary would say; ``ticket`` names exactly this text in place of exactly those.

    ``by`` is who condensed it, as it is recorded; ``failed`` why a model that is configured did
    not, ``""`` where it did or none is.
    """

    name: str
    level: int
    replaced: tuple[Entry, ...]
    sources: tuple[str, ...]
    content: str
    ticket: str
    by: str
    failed: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    """What is condensed, as the store said."""

    replaced: tuple[Entry, ...]
    level: int
    request: Request
    items: tuple[Pending, ...]
    roots: tuple[str, ...]
    pause: failing.Pause | None

    @property
    def digests(self) -> dict[str, str]:
        return {item.name: item.digest for item in self.items}


@dataclass(slots=True)
class _Heard:
    """A summariser whose draft is kept."""

    one: Summariser
    draft: Draft = field(default_factory=lambda: Draft(()))

    @property
    def producer(self) -> str:
        return self.one.producer

    @property
    def digest(self) -> str:
        return self.one.digest

    @property
    def window(self) -> int:
        return self.one.window

    def summarise(self, request: Request) -> Draft:
        self.draft = self.one.summarise(request)
        return self.draft


def preview(
    home: Path,
    names: Sequence[str],
    *,
    most: int,
    scopes: Sequence[str] | None,
    settings: Settings,
    author: Author | None = None,
    now: datetime | None = None,
) -> Preview:
    """Return what would stand in the place of these summaries, in ``most`` words at most.

    A model that is asked is recorded as ``author``'s. Raises NotFound, UsageError when they are
    not summaries of one level in the same scopes.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        read = _read(store, names, most, scopes, settings)
    if settings.summary_by not in choosing.MODELS:
        return _extractive(read, settings)
    try:
        with only_one(home) as mine:
            one = _Heard(_model(home, read, settings, author, now, mine=mine))
            made = making.make(one, read.request, read.digests, settings.summary_floor)
    except SummaryFailed as error:
        return replace(_extractive(read, settings), failed=error.message)
    shown = _shown(read, made, f"{one.producer}#{one.digest}")
    drafts.keep(
        home,
        shown.ticket,
        drafts.Kept(shown.by, one.draft, read.digests, tuple(read.replaced[0].scopes)),
    )
    return shown


def accept(
    home: Path,
    names: Sequence[str],
    ticket: str,
    *,
    most: int,
    scopes: Sequence[str] | None,
    settings: Settings,
    author: Author,
    now: datetime,
) -> Preview:
    """Put the text that ``ticket`` names in the place of these summaries; asks no model.

    What stands on them is taken out and owed anew. Raises what ``preview`` raises, Conflict when
    the text would be another one by now, Refused when it was forgotten.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.store import summaries, withdrawing

    kept = drafts.read(home, ticket)
    by = kept.by if kept is not None else _stand_in(settings)
    with curate.changing(home, replace(author, producer=by), now) as (store, txn):
        read = _read(store, names, most, scopes, settings)
        floor = settings.summary_floor
        made = making.make(kept or Extractive(), read.request, read.digests, floor)
        shown = _shown(read, made, by)
        if shown.ticket != ticket or (kept is not None and dict(kept.digests) != read.digests):
            raise Conflict(
                "this is not what would be made now: a source or the memory has changed since",
                hint=f"Look again: hypatia-mem regenerate {' '.join(names)}",
            )
        first = shown.replaced[0]
        curate.leave_index(home, store, list(names))
        withdrawing.withdraw(txn, list(names), reason="regenerate")
        entry = replace(first, content=made.content, version=1)
        outcome = summaries.put(txn, entry, read.items, made.data, shown.level)
        if outcome.verb != "created":
            raise Refused(
                f"{first.name!r} was not made anew: {outcome.reason}",
                hint="Nothing was changed.",
            )
    drafts.remove(home, ticket)
    return shown


# ----------------------------------------------------------------------------------------------


def _model(
    home: Path,
    read: _Read,
    settings: Settings,
    author: Author | None,
    now: datetime | None,
    *,
    mine: bool,
) -> Summariser:
    """Return the model in force. Raises SummaryFailed when it is not to be asked now."""
    at = now or datetime.now(UTC).replace(tzinfo=None)
    if not mine:
        raise SummaryFailed(FailureKind.RATE, BUSY)
    if read.pause is not None and at < read.pause.again:
        raise SummaryFailed(FailureKind(read.pause.kind), read.pause.message)
    began = time.monotonic()
    return Waiting().model(
        home, settings, read.roots, author=author or Author(Channel.WORKER),
        clock=lambda: at + timedelta(seconds=time.monotonic() - began),
    )  # fmt: skip


def _stand_in(settings: Settings) -> str:
    """Return how the extractive summariser is recorded."""
    note = f" for {settings.summary_by}" if settings.summary_by in choosing.MODELS else ""
    return f"{Extractive().producer}#{Extractive().digest}{note}"


def _extractive(read: _Read, settings: Settings) -> Preview:
    made = making.make(Extractive(), read.request, read.digests, settings.summary_floor)
    return _shown(read, made, _stand_in(settings))


def _shown(read: _Read, made: making.Made, by: str) -> Preview:
    told = [made.content, by, *(f"{one.name}@{one.version}" for one in read.replaced)]
    ticket = hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()[:12]
    sources = tuple(item.name for item in read.request.items)
    return Preview(
        read.replaced[0].name, read.level, read.replaced, sources, made.content, ticket, by
    )


def _read(
    store: Store,
    names: Sequence[str],
    most: int,
    scopes: Sequence[str] | None,
    settings: Settings,
) -> _Read:
    from hypatia_mem.store import graves, summaries

    replaced = _replaced(store, names, scopes)
    level = level_of(replaced[0])
    found = [one for entry in replaced for one in summaries.sources(store, entry.name)]
    entries = {one.name: one.entry for one in found if one.entry is not None}
    ordered = [entry for _, entry in sorted(entries.items(), key=lambda pair: _order(pair[1]))]
    if not ordered:
        raise NotFound(f"{replaced[0].name!r} has no source that can be read")
    known = graves.load(store)
    if known:  # what is forgotten is not summed up either, nor sent to anybody
        ordered = [replace(one, content=known.blanked(one.content, one.scopes)) for one in ordered]
    idf = words.idf_of(summaries.sample(store, _SAMPLE))
    return _Read(
        tuple(replaced),
        level,
        making.request_of(ordered, level, most, idf, skip_user=settings.summary_skip_user),
        tuple(summaries.as_items(store, [one.name for one in ordered])),
        tuple(root.path for root in store.roots()),
        failing.pause_of(store, settings),
    )


def _replaced(store: Store, names: Sequence[str], scopes: Sequence[str] | None) -> list[Entry]:
    there = {one.name: one for one in store.live_entries(names)}
    found: list[Entry] = []
    for name in dict.fromkeys(names):
        entry = there.get(name)
        if entry is None or (scopes is not None and not set(entry.scopes) & set(scopes)):
            raise NotFound(
                f"there is no summary {name!r} here",
                hint="List them: hypatia-mem bulk list --kind summary",
            )
        if not level_of(entry):
            raise UsageError(f"{name!r} is no summary", hint="Read it with: hypatia-mem show NAME")
        found.append(entry)
    if len({(level_of(one), tuple(sorted(one.scopes))) for one in found}) > 1:
        raise UsageError(
            "only summaries of one level in the same scopes become one",
            hint="See their levels with: hypatia-mem bulk list --kind summary --json",
        )
    return found


def _order(entry: Entry) -> tuple[datetime, str, int, str]:
    at = entry.created_at or datetime.min  # noqa: DTZ901 - naive UTC
    return at, entry.session_id, entry.turn or 0, entry.name

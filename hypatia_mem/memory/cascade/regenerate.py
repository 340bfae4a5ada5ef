"""Making summaries anew on purpose: shown first, stored only when that very text is accepted.

Of one summary: the same sources are condensed again. Of several of one level: one summary takes
their place, and stands on everything that any of them stood on. What is not accepted has touched
nothing. The old text stays readable in the history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError
from hypatia_mem.memory.cascade.trace import level_of
from hypatia_mem.memory.summarise import making, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.model import Author, Entry

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.summaries import Pending

__all__ = ["Preview", "accept", "preview"]

_SAMPLE = 1_500  # messages that say how rare a word is


@dataclass(frozen=True, slots=True)
class Preview:
    """What a summary would say; ``ticket`` names exactly this text in place of exactly those."""

    name: str
    level: int
    replaced: tuple[Entry, ...]
    sources: tuple[str, ...]
    content: str
    ticket: str


@dataclass(frozen=True, slots=True)
class _Made:
    preview: Preview
    made: making.Made
    items: tuple[Pending, ...]


def preview(
    home: Path, names: Sequence[str], *, most: int, scopes: Sequence[str] | None
) -> Preview:
    """Return what would stand in the place of these summaries, in ``most`` words at most.

    Raises NotFound, UsageError when they are not summaries of one level in the same scopes.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return _make(store, names, most, scopes).preview


def accept(
    home: Path,
    names: Sequence[str],
    ticket: str,
    *,
    most: int,
    scopes: Sequence[str] | None,
    author: Author,
    now: datetime,
) -> Preview:
    """Put the text that ``ticket`` names in the place of these summaries.

    What stands on them is taken out and owed anew. Raises what ``preview`` raises, Conflict when
    the text would be another one by now, Refused when it was forgotten.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.store import summaries, withdrawing

    producer = f"{Extractive().producer}#{Extractive().digest}"
    with curate.changing(home, replace(author, producer=producer), now) as (store, txn):
        made = _make(store, names, most, scopes)
        if made.preview.ticket != ticket:
            raise Conflict(
                "this is not what would be made now: a source or the memory has changed since",
                hint=f"Look again: hypatia-mem regenerate {' '.join(names)}",
            )
        first = made.preview.replaced[0]
        curate.leave_index(home, store, list(names))
        withdrawing.withdraw(txn, list(names), reason="regenerate")
        entry = replace(first, content=made.made.content, version=1)
        outcome = summaries.put(txn, entry, made.items, made.made.data, made.preview.level)
        if outcome.verb != "created":
            raise Refused(
                f"{first.name!r} was not made anew: {outcome.reason}",
                hint="Nothing was changed.",
            )
        return made.preview


# ----------------------------------------------------------------------------------------------


def _make(store: Store, names: Sequence[str], most: int, scopes: Sequence[str] | None) -> _Made:
    from hypatia_mem.store import summaries

    replaced = _replaced(store, names, scopes)
    level = level_of(replaced[0])
    found = [one for entry in replaced for one in summaries.sources(store, entry.name)]
    entries = {one.name: one.entry for one in found if one.entry is not None}
    ordered = [entry for _, entry in sorted(entries.items(), key=lambda pair: _order(pair[1]))]
    if not ordered:
        raise NotFound(f"{replaced[0].name!r} has no source that can be read")
    request = making.request_of(
        ordered, level, most, words.idf_of(summaries.sample(store, _SAMPLE))
    )
    items = tuple(summaries.as_items(store, [one.name for one in ordered]))
    digests = {item.name: item.digest for item in items}
    made = making.make(Extractive(), request, digests, 0)
    said = "\n".join([made.content, *(f"{one.name}@{one.version}" for one in replaced)])
    ticket = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:12]
    shown = Preview(
        replaced[0].name,
        level,
        tuple(replaced),
        tuple(one.name for one in ordered),
        made.content,
        ticket,
    )
    return _Made(shown, made, items)


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

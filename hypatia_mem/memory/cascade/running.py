"""The cascade: what is old is condensed, level by level, and nothing is ever replaced.

Level 1 condenses messages, once those that no summary covers fill a share of the model's window;
level N condenses ``cascade_batch`` summaries of level N-1. Always the oldest first, never a part of
a batch, upward until a level has too few. A batch larger than the summariser's window is split into
several summaries of the same level; what is still to do of it is noted in the store.

A pass reads batches, lets go of the store, condenses, and stores each summary with its links in one
transaction that asks again whether everything is as it was read. Killed anywhere, it has stored a
whole summary or nothing, and the next pass goes on from what the store says.

What failed is tried again later and later, and given up after a while: its messages just stay.
What is due, and when, is said by ``plan``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.memory.cascade.plan import CONTEXT, FAILED, OWED, Batch, Planner
from hypatia_mem.memory.summarise import making, naming, words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import Request, Summariser, SummaryFailed
from hypatia_mem.model import Author, Channel, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store

__all__ = ["Done", "Handed", "Report", "due", "heal", "run", "submit"]

_LOG = logging.getLogger("hypatia_mem")
SAMPLE = 1_500  # messages that say how rare a word is
ROUND_BATCHES = 32
ROUND_CHARS = 6_000_000
LEASE_LINKS = 600
STAND_IN = 2  # times the threshold: then the extractive one does what the agent has not done


@dataclass(frozen=True, slots=True)
class Done:
    """A summary that was stored."""

    name: str
    level: int
    scopes: tuple[str, ...]
    items: int
    reason: str
    inferred: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did."""

    made: tuple[Done, ...] = ()
    failed: tuple[str, ...] = ()
    dropped: int = 0

    @property
    def line(self) -> str:
        """Return the skill's line, ``""`` when nothing was made."""
        if not self.made:
            return ""
        counts: dict[tuple[int, str], int] = {}
        for one in self.made:
            key = (one.level, one.reason)
            counts[key] = counts.get(key, 0) + 1
        told = [f"+{n} summary {level} ({why})" for (level, why), n in sorted(counts.items())]
        return f"Cascade: {', '.join(told)}."


@dataclass(frozen=True, slots=True)
class _Round:
    """What is condensed before the store is opened again."""

    due: Sequence[Batch]
    entries: Mapping[str, Entry]
    sample: Sequence[str]


@dataclass(frozen=True, slots=True)
class Handed:
    """A due batch as it is handed to an agent."""

    batch: Batch
    request: Request


# --- a pass ---------------------------------------------------------------------------------------


def run(
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    author: Author | None = None,
    scopes: Sequence[str] | None = None,
    summariser: Summariser | None = None,
    retry: bool = False,
    beat: Callable[[], None] = lambda: None,
) -> Report:
    """Condense all that is due, level by level, until nothing is; the store is free in between.

    ``scopes`` None means every project. ``retry`` tries again what has failed too. ``beat`` is
    called between steps. With ``summary_by`` off nothing is made, and with agent only what the
    agent has left undone for too long. Raises what the store raises.
    """
    from hypatia_mem.store.connection import open_store

    if settings.summary_by == "off" and summariser is None:
        return Report()
    author = author or Author(Channel.WORKER)
    dropped = heal(home, now=now)
    made: list[Done] = []
    failed: list[str] = []
    tried: set[str] = set()
    idf: Mapping[str, float] = {}

    def following(store: Store) -> _Round:
        planner = Planner(store, home, settings, now)
        due = planner.due(scopes, retry=retry, without=tried)
        due = _of_this_round(due, planner, settings, summariser)
        tried.update(batch.ticket for batch in due)
        names = [item.name for batch in due for item in batch.items]
        entries = planner.read.contents(store, names) if due else {}
        sample = planner.read.sample(store, SAMPLE) if due and not idf else []
        return _Round(due, entries, sample)

    with open_store(home, write=False) as store:
        current = following(store)
    while current.due:
        idf = idf or words.idf_of(current.sample)
        beat()
        one, producer = _chosen(settings, summariser)
        ready: list[tuple[Batch, making.Made | SummaryFailed]] = []
        for batch in current.due:
            ready.append((batch, _condensed(batch, current.entries, one, settings, idf)))
            beat()
        while ready:
            with open_store(home, write=True) as store:
                for batch, result in _of_this_lease(ready):
                    done = _store(store, batch, result, author, producer, now)
                    if isinstance(done, Done):
                        made.append(done)
                    elif done:
                        failed.append(done)
                    beat()
                if not ready:
                    current = following(store)
    return Report(tuple(made), tuple(failed), dropped)


def _of_this_lease(
    ready: list[tuple[Batch, making.Made | SummaryFailed]],
) -> Iterator[tuple[Batch, making.Made | SummaryFailed]]:
    """Take out of ``ready`` as many as are stored before the store is let go of, at least one."""
    links = 0
    while ready and (not links or links + len(ready[0][0].items) <= LEASE_LINKS):
        links += len(ready[0][0].items)
        yield ready.pop(0)


def _of_this_round(
    due: list[Batch], planner: Planner, settings: Settings, summariser: Summariser | None
) -> list[Batch]:
    """Return as many as are condensed before the store is opened again, of one level."""
    if settings.summary_by == "agent" and summariser is None:
        due = [one for one in due if _left_undone(one, planner)][:1]
    found: list[Batch] = []
    chars = 0
    for batch in due:
        chars += sum(item.chars for item in batch.items)
        if found and (len(found) >= ROUND_BATCHES or chars > ROUND_CHARS):
            break
        found.append(batch)
    return found


def _left_undone(batch: Batch, planner: Planner) -> bool:
    """Tell whether a batch has waited for the agent until twice as much was there."""
    waiting = planner.read.groups(planner.store, batch.level)
    group = next((one for one in waiting if one.scopes == batch.scopes), None)
    if group is None:
        return False
    if batch.level > 1:
        return bool(group.count >= STAND_IN * planner.settings.cascade_batch)
    return bool(group.chars // 4 >= STAND_IN * planner.limits(batch.scopes).trigger)


def _chosen(settings: Settings, summariser: Summariser | None) -> tuple[Summariser, str]:
    """Return who condenses, and how it is recorded."""
    one: Summariser = summariser or Extractive()
    producer = f"{one.producer}#{one.digest}"
    if summariser is None and settings.summary_by != "extractive":
        producer += f" for {settings.summary_by}"
    return one, producer


def _condensed(
    batch: Batch,
    entries: Mapping[str, Entry],
    summariser: Summariser,
    settings: Settings,
    idf: Mapping[str, float],
) -> making.Made | SummaryFailed:
    present = [entries[item.name] for item in batch.items if item.name in entries]
    request = making.request_of(present, batch.level, settings.summary_words, idf)
    digests = {item.name: item.digest for item in batch.items}
    try:
        return making.make(summariser, request, digests, settings.summary_floor)
    except SummaryFailed as error:
        _LOG.warning("a batch of level %d was not condensed: %s", batch.level, error.message)
        return error


def _store(
    store: Store,
    batch: Batch,
    result: making.Made | SummaryFailed,
    author: Author,
    producer: str,
    now: datetime,
) -> Done | str:
    """Store one summary, or note why there is none; "" when the batch was overtaken."""
    if isinstance(result, SummaryFailed):
        with store.transaction(author, now=now) as txn:
            _note_failure(txn, batch, str(result.failure), result.message, result.retry_after, now)
        return result.message
    with store.transaction(replace(author, producer=producer), now=now) as txn:
        outcome, done = _put(txn, batch, result)
        if outcome.verb == "refused" and "forgotten" in outcome.reason:
            _note_failure(txn, batch, "forgotten", outcome.reason, 1e9, now)
            return "a summary that was forgotten before is not made again"
    return done or ""


def _put(txn: Any, batch: Batch, made: making.Made) -> tuple[Outcome, Done | None]:  # noqa: ANN401
    from hypatia_mem.store import summaries

    scopes = batch.scopes
    sessions = {item.session_id for item in batch.items}
    name = naming.unique(made.name, lambda one: summaries.name_taken(txn, one, scopes))
    entry = Entry(
        name=name,
        content=made.content,
        tags=("summary", f"summary {batch.level}"),
        scopes=scopes,
        kind="summary",
        session_id=sessions.pop() if len(sessions) == 1 else "",
        created_at=max(item.at for item in batch.items),
    )
    outcome = summaries.put(txn, entry, batch.items, made.data, batch.level)
    if outcome.verb != "created":
        return outcome, None
    if batch.level == 1:
        _settle(txn, batch)
    return outcome, Done(
        name, batch.level, scopes, len(batch.items), batch.reason, inferred=made.inferred
    )


def _settle(txn: Any, batch: Batch) -> None:  # noqa: ANN401
    """Bring the notes up to date in the transaction that stores the summary."""
    from hypatia_mem.store import summaries

    taken = {item.name for item in batch.items}
    taken.update(name for part in batch.rest for name in part)
    owed = summaries.read_note(txn.store, OWED, [])
    kept = [left for names in owed if (left := [name for name in names if name not in taken])]
    after = [*kept, *(list(part) for part in batch.rest)]
    if after != owed:
        summaries.note(txn, OWED, after)
    if batch.mark is not None:
        told = summaries.read_note(txn.store, CONTEXT, {})
        summaries.note(txn, CONTEXT, dict([*list(told.items())[-20:], batch.mark]))


def _note_failure(
    txn: Any,  # noqa: ANN401
    batch: Batch,
    kind: str,
    message: str,
    wait: float,
    now: datetime,
) -> None:
    from hypatia_mem.store import summaries

    failed = summaries.read_note(txn.store, FAILED, {})
    attempts = int(failed.get(batch.ticket, {}).get("attempts", 0)) + 1
    seconds = min(max(wait, 60.0 * 4 ** (attempts - 1)), 30 * 86400.0)
    failed[batch.ticket] = {
        "attempts": attempts,
        "again": (now + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        "kind": kind,
        "message": message,
        "scopes": list(batch.scopes),
        "level": batch.level,
    }
    summaries.note(txn, FAILED, dict(list(failed.items())[-50:]))


def heal(home: Path, *, now: datetime) -> int:
    """Take out summaries that lack a source, and all above them; returns how many."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        names = summaries.broken(store)
    if not names:
        return 0
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=now) as txn,
    ):
        lost = summaries.broken(store)
        names = list(dict.fromkeys([*summaries.above(store, lost), *lost]))
        curate.leave_index(home, store, names)
        return len(summaries.drop(txn, names))


# --- the agent ------------------------------------------------------------------------------------


def due(home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str]) -> Handed | None:
    """Return the next batch that an agent may condense, None when nothing is due."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        found = planner.due(scopes, retry=True)
        return _handed(store, found[0], settings) if found else None


def submit(  # noqa: PLR0913 - what was said, and everything that is recorded of who said it
    home: Path,
    settings: Settings,
    name: str,
    text: str,
    *,
    ticket: str,
    producer: str,
    author: Author,
    now: datetime,
    scopes: Sequence[str],
) -> Done:
    """Store an agent's summary of the batch that ``ticket`` names (``""``: the next one).

    Raises SummaryFailed when it may not be stored, NotFound when nothing is due, Conflict when the
    batch has changed since it was handed out. Nothing is lost then.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = Planner(store, home, settings, now).due(scopes, retry=True)
        if not found:
            raise NotFound(
                "no batch is due", hint="See what awaits a summary: hypatia-mem cascade status"
            )
        batch = _ticketed(found, ticket) if ticket else found[0]
        handed = _handed(store, batch, settings)
    digests = {item.name: item.digest for item in batch.items}
    made = making.submitted(name, text, handed.request, digests, settings.summary_floor)
    with (
        open_store(home, write=True) as store,
        store.transaction(replace(author, producer=producer), now=now) as txn,
    ):
        outcome, done = _put(txn, batch, made)
    if done is None:
        raise Conflict(
            f"the summary was not stored: {outcome.reason}",
            hint="Fetch the batch again: hypatia-mem cascade due --json",
        )
    return done


def _ticketed(found: Sequence[Batch], ticket: str) -> Batch:
    """Return the batch of a ticket; more messages may have come in behind it since."""
    for batch in found:
        if batch.ticket == ticket:
            return batch
        level, _, rest = ticket.partition(".")
        count = rest.partition(".")[0]
        if level == str(batch.level) and count.isdigit() and 0 < int(count) < len(batch.items):
            shorter = replace(batch, items=batch.items[: int(count)])
            if shorter.ticket == ticket:
                return shorter
    raise Conflict(
        "this batch has changed since it was handed out, or is condensed already",
        hint="Fetch it again: hypatia-mem cascade due --json",
    )


def _handed(store: Store, batch: Batch, settings: Settings) -> Handed:
    from hypatia_mem.store import summaries

    entries = summaries.contents(store, [item.name for item in batch.items])
    idf = words.idf_of(summaries.sample(store, SAMPLE))
    present = [entries[item.name] for item in batch.items if item.name in entries]
    return Handed(batch, making.request_of(present, batch.level, settings.summary_words, idf))

"""Cold work as a person sees it: what is due, what failed, what was given up, and what then."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.memory.cascade import failing
from hypatia_mem.memory.cascade.plan import Planner
from hypatia_mem.store.jobs import Job, JobState

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.failing import Pause
    from hypatia_mem.model import Author
    from hypatia_mem.store.opened import Store
    from hypatia_mem.store.reviewing import Queued

__all__ = [
    "Dropped",
    "Listed",
    "depth",
    "drop",
    "listed",
    "listed_in",
    "of_change",
    "retry",
    "tallies",
]


@dataclass(frozen=True, slots=True)
class Listed:
    """One piece of work: ``state`` is due, paused, waiting, sent, dead, dropped, held or failed.

    ``items`` is how many messages or summaries it condenses, 0 when they are not due any more;
    ``again`` when it is tried, None when that is now or never.
    """

    id: str
    state: str
    level: int
    scopes: tuple[str, ...]
    items: int
    attempts: int = 0
    again: datetime | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Work that is not to be done: which, and what became of the parcels it was handed in with.

    ``recalled`` were called off at the API; ``going_on`` hold other work, which is still wanted;
    ``unreached`` says why one could not be called off.
    """

    ids: tuple[str, ...]
    recalled: tuple[str, ...] = ()
    going_on: tuple[str, ...] = ()
    unreached: str = ""


def listed(
    home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str] | None
) -> list[Listed]:
    """Return all cold work of these projects: what is due first, then what is out of the ordinary.

    ``scopes`` None means every project.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return listed_in(store, home, settings, now=now, scopes=scopes)[0]


def listed_in(
    store: Store, home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str] | None
) -> tuple[list[Listed], Pause | None]:
    """Return the same from a store that is open, and the pause, if there is one."""
    planner = Planner(store, home, settings, now)
    batches = planner.of_every_level(scopes)
    pause = failing.pause_of(store, settings)
    if pause is not None and pause.again <= now:
        pause = None
    found: list[Listed] = []
    for batch in batches:
        job = planner.jobs.get(batch.ticket)
        if job is not None and (job.kind == failing.kind_of(settings) or _is_dropped(job)):
            found.append(_of_job(job, len(batch.items)))
            continue
        state, again, why = "due", None, ""
        if pause is not None:
            state, again, why = "paused", pause.again, pause.message
        found.append(
            Listed(
                batch.ticket, state, batch.level, batch.scopes, len(batch.items), 0, again,
                pause.kind if pause else batch.reason, why,
            )
        )  # fmt: skip
    there = {one.id for one in found}
    found += [
        _of_job(job, 0)
        for job in planner.jobs.values()
        if job.id not in there and (scopes is None or set(job.scopes) & set(scopes))
    ]
    return found, pause


def of_change(one: Queued) -> Listed:
    """Return a change that waits for a session to end (``held``) or ``failed`` as work is listed.

    ``reason`` is the change, ``message`` what it waits for, or why it could not be made.
    """
    waits = f"waits for session {one.session_id} to end" if one.session_id else "made at once"
    state = "failed" if one.failure else "held"
    said = f"{one.verb} {one.name}: {one.failure or waits}"
    return Listed(one.id, state, 0, (), 1, 0, None, one.verb, said)


def tallies(work: Sequence[Listed]) -> dict[str, int]:
    """Return how many pieces of work there are in each state."""
    counts: dict[str, int] = {}
    for one in work:
        counts[one.state] = counts.get(one.state, 0) + 1
    return counts


def depth(work: Sequence[Listed]) -> int:
    """Return how many pieces of work are still to be done: neither given up nor dropped."""
    return sum(one.state not in (JobState.DEAD, JobState.DROPPED) for one in work)


def retry(home: Path, ids: Sequence[str], *, author: Author, now: datetime) -> list[str]:
    """Let work be tried again at once, as if it had never failed; no ids: all that failed.

    What a person dropped is tried again only by its id. A pause ends too. Returns the ids. Raises
    NotFound when there is no such work, Conflict when it is under way.
    """
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        known = jobs.jobs(store)
        _all_known(ids, known)
        out = [one for one in ids if _is_sent(known[one])]
        if out:
            raise Conflict(
                f"{out[0]} was handed in and is not answered yet; a second time would cost twice",
                hint=f"To call it off first: hypatia-mem jobs drop {out[0]}",
            )
        chosen = list(ids) or [
            job.id for job in known.values() if job.state in (JobState.WAITING, JobState.DEAD)
        ]
        # Nothing else says that a work unit is to be judged again: its job stays, as if new.
        judged = [
            known[one] for one in chosen if one in known and known[one].kind[:8] == "extract/"
        ]
        jobs.delete_jobs(txn, chosen)
        for job in judged:
            jobs.put_job(txn, replace(job, state=JobState.WAITING, attempts=0, next_at=None))
        failing.resume(txn)
    return chosen


def drop(
    home: Path,
    settings: Settings,
    ids: Sequence[str],
    *,
    author: Author,
    now: datetime,
) -> Dropped:
    """Let work not be done: its messages stay as they are; ``retry`` takes it up again.

    A parcel of which nothing is wanted any more is called off at the API, after the store was let
    go of. Raises NotFound when there is no such work.
    """
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store:
        planner = Planner(store, home, settings, now)
        due = {batch.ticket: batch for batch in planner.of_every_level(None)}
        _all_known(ids, {**due, **planner.jobs})
        with store.transaction(author, now=now) as txn:
            for one in ids:
                job = planner.jobs.get(one) or Job(
                    one, failing.kind_of(settings), due[one].level, due[one].scopes,
                    JobState.DROPPED,
                )  # fmt: skip
                jobs.put_job(txn, replace(job, state=JobState.DROPPED, next_at=None))
                if one in due:
                    failing.keep_together(txn, due[one])
    out = {job.parcel for job in planner.jobs.values() if job.id in ids and job.parcel}
    wanted = {job.parcel for job in planner.jobs.values() if job.id not in ids and _is_sent(job)}
    recalled, unreached = _recalled(home, settings, sorted(out - wanted))
    return Dropped(tuple(ids), recalled, _names(out & wanted), unreached)


def _recalled(
    home: Path, settings: Settings, parcels: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Call parcels off; the work is dropped either way, so a failure is told and not raised."""
    from hypatia_mem.memory.cascade import backfill
    from hypatia_mem.memory.summarise.protocol import SummaryFailed

    if not parcels:
        return (), ""
    try:
        backfill.recall(home, settings, parcels)
    except SummaryFailed as error:
        return (), error.message
    return _names(parcels), ""


def _names(parcels: Iterable[str]) -> tuple[str, ...]:
    """Return what the API calls these parcels; behind it stands the number of our own record."""
    return tuple(sorted(one.partition(" ")[0] for one in parcels))


def _all_known(ids: Sequence[str], known: Container[str]) -> None:
    missing = [one for one in ids if one not in known]
    if missing:
        raise NotFound(
            f"there is no job {missing[0][:60]!a}", hint="List them: hypatia-mem jobs list"
        )


def _is_dropped(job: Job) -> bool:
    return job.state is JobState.DROPPED


def _is_sent(job: Job) -> bool:
    return job.state is JobState.SENT and bool(job.parcel)


def _of_job(job: Job, items: int) -> Listed:
    return Listed(
        job.id,
        str(job.state),
        job.level,
        job.scopes,
        items,
        job.attempts,
        job.next_at,
        job.reason,
        job.message,
    )

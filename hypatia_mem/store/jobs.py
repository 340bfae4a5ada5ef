"""Cold work that failed or is under way elsewhere, and what calls of models have cost.

What is due is not kept here: the store's content says it (see ``memory.cascade.plan``). A job is
only what cannot be read off the content: that a batch was tried in vain, waits for an answer, or
that a person does not want it. So the queue cannot outgrow the memory.

A call is written down before it is made, with the most it can cost, and settled afterwards: what
was killed in between counts as spent. Neither table holds any text of a message; both stand outside
the ledger, like cursors, for they say nothing about what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store
    from hypatia_mem.store.writing import Writing

__all__ = [
    "KEPT_JOBS",
    "Call",
    "DayOfCalls",
    "Job",
    "JobState",
    "calls_since",
    "days_of_calls",
    "delete_jobs",
    "drop_old_calls",
    "jobs",
    "put_call",
    "put_job",
]

KEPT_JOBS = 1000  # the oldest beyond that are dropped: their batches are simply due again


class JobState(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"  # failed, and is tried again at ``next_at``
    SENT = "sent"  # handed in as part of ``parcel``; its answer is fetched later
    DEAD = "dead"  # failed too often
    DROPPED = "dropped"  # a person does not want it


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work that is out of the ordinary; ``id`` is the ticket of its batch.

    ``reason`` is a kind of failure and ``message`` a sentence for people. ``parcel`` names what was
    handed in together.
    """

    id: str
    kind: str
    level: int
    scopes: tuple[str, ...]
    state: JobState
    attempts: int = 0
    next_at: datetime | None = None
    reason: str = ""
    message: str = ""
    parcel: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model, or one parcel of them; money in millionths of a dollar.

    ``state`` is open (made, not answered yet), done or failed.
    """

    id: str
    at: datetime
    by: str
    model: str
    state: str
    calls: int
    input_tokens: int
    output_tokens: int
    micro: int


@dataclass(frozen=True, slots=True)
class DayOfCalls:
    """What one day's calls came to; ``day`` as ``2026-11-30`` in UTC."""

    day: str
    by: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    micro: int


def jobs(store: Store) -> dict[str, Job]:
    """Return all jobs by their id, the oldest first."""
    return {
        row["id"]: _job(row) for row in store.run("SELECT * FROM job ORDER BY created_at, id", [])
    }


def put_job(txn: Writing, job: Job) -> None:
    """Keep a job, in place of one of that id."""
    store = txn.store
    old = store.execute("SELECT created_at FROM job WHERE id = ?", [job.id]).fetchone()
    store.execute("DELETE FROM job WHERE id = ?", [job.id])
    store.execute(
        "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            job.id,
            job.kind,
            job.level,
            list(job.scopes),
            str(job.state),
            job.attempts,
            job.next_at,
            job.reason,
            job.message,
            job.parcel,
            old[0] if old else txn.now,
        ],
    )
    store.execute(
        """
        DELETE FROM job WHERE id IN (
            SELECT id FROM job WHERE state <> 'sent'
            ORDER BY state <> 'dropped', created_at DESC, id OFFSET ?
        )
        """,
        [KEPT_JOBS],
    )


def delete_jobs(txn: Writing, ids: Iterable[str]) -> None:
    """Drop jobs: their batches are due as if nothing had been tried."""
    txn.store.execute("DELETE FROM job WHERE id IN (SELECT unnest(?::VARCHAR[]))", [list(ids)])


def put_call(txn: Writing, call: Call) -> None:
    """Write a call down, or settle one of that id."""
    store = txn.store
    store.execute("DELETE FROM spend WHERE id = ?", [call.id])
    store.execute(
        "INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            call.id,
            call.at,
            call.by,
            call.model,
            call.state,
            call.calls,
            call.input_tokens,
            call.output_tokens,
            call.micro,
        ],
    )


def drop_old_calls(txn: Writing, before: datetime) -> None:
    """Drop what was spent long ago; the days that count stay."""
    txn.store.execute('DELETE FROM spend WHERE "at" < ?', [before])


def calls_since(store: Store, since: datetime) -> list[Call]:
    """Return the calls from a time on, the oldest first."""
    return [
        Call(**row)
        for row in store.run('SELECT * FROM spend WHERE "at" >= ? ORDER BY "at", id', [since])
    ]


def days_of_calls(store: Store, since: datetime) -> list[DayOfCalls]:
    """Return what was spent from a time on, by day and model, the newest day first."""
    found = store.run(
        """
        SELECT strftime("at", '%Y-%m-%d') AS day, "by", model,
            sum(calls)::BIGINT AS calls,
            coalesce(sum(calls) FILTER (state = 'failed'), 0)::BIGINT AS failed,
            sum(input_tokens)::BIGINT AS input_tokens,
            sum(output_tokens)::BIGINT AS output_tokens, sum(micro)::BIGINT AS micro
        FROM spend WHERE "at" >= ? GROUP BY ALL ORDER BY day DESC, "by", model
        """,
        [since],
    )
    return [DayOfCalls(**row) for row in found]


def _job(row: Mapping[str, Any]) -> Job:
    scopes: Sequence[str] = row["scopes"]
    return Job(**{**row, "scopes": tuple(scopes), "state": JobState(row["state"])})

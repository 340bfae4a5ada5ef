"""What becomes of a batch that could not be condensed, and of a model that cannot be reached.

A batch that may be the cause itself is tried again later and later, and is a dead letter after
``ATTEMPTS`` times: its messages just stay, ``jobs`` shows it, and unless ``summary_stand_in`` is
off, the extractive summariser takes it, marked as such. A cause that lies with the summariser (no
connection, no key, a limit reached) pauses all of them instead, so that ten thousand waiting turns
cost one attempt, not ten thousand; nothing is counted against a batch then.

A failure counts for the summariser it happened with: after switching, all is due as if new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.summarise.choosing import MODELS
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed
from hypatia_mem.store.jobs import Job, JobState

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.plan import Batch
    from hypatia_mem.store.opened import Store

__all__ = [
    "ATTEMPTS",
    "OWED",
    "Pause",
    "dead",
    "due_again",
    "keep_together",
    "kind_of",
    "note_failure",
    "note_pause",
    "note_refusal",
    "note_success",
    "pause_of",
    "resume",
]

ATTEMPTS = 6
OWED, PAUSE = "cascade_owed", "summariser_pause"
_FIRST_SECONDS = 60.0
_LONGEST_BATCH = 30 * 86400.0
_LONGEST_PAUSE = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Until when no batch is tried, and why; ``attempts`` failed in a row."""

    by: str
    attempts: int
    again: datetime
    kind: str
    message: str
    hint: str = ""


def kind_of(settings: Settings) -> str:
    """Return what a job of the summariser in force is filed under."""
    return f"summary/{settings.summary_by}"


# --- batches --------------------------------------------------------------------------------------


def due_again(job: Job | None, settings: Settings, now: datetime) -> bool:
    """Tell whether a batch may be tried: for the first time, again, or by who stands in."""
    if job is None:
        return True
    if job.state is JobState.DROPPED:
        return False
    if job.kind != kind_of(settings):
        return True
    if job.state is JobState.SENT:
        return False
    if job.state is JobState.DEAD:
        return dead(job, settings)
    return job.next_at is None or now >= job.next_at


def dead(job: Job | None, settings: Settings) -> bool:
    """Tell whether a model has given up on a batch and the extractive summariser stands in."""
    return (
        job is not None
        and job.state is JobState.DEAD
        and job.kind == kind_of(settings)
        and settings.summary_stand_in
        and settings.summary_by in MODELS
    )


def note_failure(
    txn: Any,  # noqa: ANN401 - a transaction of the store
    batch: Batch,
    error: SummaryFailed,
    settings: Settings,
    now: datetime,
    *,
    pausing: bool,
) -> None:
    """Write down that a batch was not condensed, against it, its summariser, or both.

    ``pausing``: the one in force was asked; one that was handed in is never paused.
    """
    if pausing and error.failure.blames_summariser:
        note_pause(txn, error, settings, now)
    if error.failure.blames_batch or not pausing:
        _count(txn, batch, str(error.failure), error.message, error.retry_after, settings, now)
        keep_together(txn, batch)


def note_refusal(txn: Any, batch: Batch, settings: Settings, now: datetime, why: str) -> None:  # noqa: ANN401
    """Write down that a batch is not to be condensed again: its summary was forgotten before."""
    from hypatia_mem.store import jobs

    jobs.put_job(
        txn,
        Job(
            batch.ticket, kind_of(settings), batch.level, batch.scopes, JobState.DROPPED,
            ATTEMPTS, None, "forgotten", why,
        ),
    )  # fmt: skip


def note_success(txn: Any, batch: Batch, *, resumed: bool) -> None:  # noqa: ANN401
    """Drop what was noted against a batch, and with ``resumed`` the pause too."""
    from hypatia_mem.store import jobs

    jobs.delete_jobs(txn, [batch.ticket])
    if resumed:
        resume(txn)


def _count(
    txn: Any,  # noqa: ANN401
    batch: Batch,
    reason: str,
    message: str,
    wait: float,
    settings: Settings,
    now: datetime,
) -> None:
    from hypatia_mem.store import jobs

    old = jobs.jobs(txn.store).get(batch.ticket)
    mine = old is not None and old.kind == kind_of(settings)
    attempts = (old.attempts if old is not None and mine else 0) + 1
    seconds = min(max(wait, _FIRST_SECONDS * 4 ** (attempts - 1)), _LONGEST_BATCH)
    given_up = attempts >= ATTEMPTS
    jobs.put_job(
        txn,
        Job(
            batch.ticket,
            kind_of(settings),
            batch.level,
            batch.scopes,
            JobState.DEAD if given_up else JobState.WAITING,
            attempts,
            None if given_up else now + timedelta(seconds=seconds),
            reason,
            message,
        ),
    )


def keep_together(txn: Any, batch: Batch) -> None:  # noqa: ANN401
    """Let the messages of a batch that failed be a batch of their own, and its other parts too.

    Else they would be divided anew with what follows, and what was counted against them be lost, or
    what is left be too little to be due.
    """
    from hypatia_mem.store import summaries

    if batch.level != 1:
        return
    owed = summaries.read_note(txn.store, OWED, [])
    parts = [[item.name for item in batch.items], *map(list, batch.rest)]
    new = [names for names in parts if names not in owed]
    if new:
        summaries.note(txn, OWED, [*owed, *new])


# --- the summariser -------------------------------------------------------------------------------


def pause_of(store: Store, settings: Settings) -> Pause | None:
    """Return the pause of the summariser in force, None when there is none, or it is another's."""
    from hypatia_mem.store import summaries

    note: Mapping[str, Any] = summaries.read_note(store, PAUSE, {})
    try:
        found = Pause(
            str(note["by"]),
            int(note["attempts"]),
            datetime.fromisoformat(str(note["again"])),
            str(note["kind"]),
            str(note["message"]),
            str(note.get("hint", "")),
        )
    except (KeyError, ValueError, TypeError):
        return None
    return found if found.by == _who(settings) else None


def resume(txn: Any) -> None:  # noqa: ANN401
    """End the pause."""
    from hypatia_mem.store import summaries

    summaries.note(txn, PAUSE, {})


def note_pause(txn: Any, error: SummaryFailed, settings: Settings, now: datetime) -> None:  # noqa: ANN401
    """Let nobody ask the summariser in force until some time from now, longer each time."""
    from hypatia_mem.store import summaries

    before = pause_of(txn.store, settings)
    capped = error.failure is FailureKind.CAPPED
    attempts = (before.attempts if before else 0) + 1
    seconds = min(_FIRST_SECONDS * 4 ** min(attempts - 1, 10), _LONGEST_PAUSE)
    # A limit of the user's own ends at a known time; everybody else is asked again soon enough.
    wait = error.retry_after if capped and error.retry_after else max(error.retry_after, seconds)
    summaries.note(
        txn,
        PAUSE,
        {
            "by": _who(settings),
            "attempts": attempts,
            "again": (now + timedelta(seconds=wait)).isoformat(timespec="seconds"),
            "kind": str(error.failure),
            "message": error.message,
            "hint": error.hint,
        },
    )


def _who(settings: Settings) -> str:
    """Return who is paused: with another model, key file, address or limit it is tried at once."""
    parts = (
        settings.summary_by, settings.summary_model, settings.anthropic_key_file,
        settings.anthropic_url, settings.claude_command, settings.model_day_calls,
        settings.model_day_cents, settings.model_call_cents,
    )  # fmt: skip
    return "|".join(map(str, parts))

"""Erasing: something is taken out of the memory down to its bytes, and it is shown that it is gone.

Forgetting keeps a thing away; erasing also removes what the disk still holds of it. An order to
erase is a job with fixed steps. Each can be done twice without harm, and the job's file
(``erasing``, the only place that holds the words on purpose) is removed last: killed anywhere,
short of space, or stopped by a lease, the job goes on from the file, by ``erase --resume`` or by
the next worker. In this order nothing that was removed can come back from a place that comes later:

1. ``forget``: entry, statements, versions, summaries and the messages that say it, one transaction;
   tombstones and the file ``forgotten`` are written before it commits;
2. ``derive``: summaries from what is left, search index from nothing, briefs, kept files, vectors;
3. ``rewrite``: the store is copied row by row and the copy takes its place, for the engine leaves
   deleted bytes in its file; older snapshots go;
4. ``spool``: the records that say it are blanked where they stand, so no cursor moves;
5. ``backups``: each is revised as the store was;
6. ``rest``: damaged stores kept as evidence, log lines, what a killed process left;
7. ``scan``: every file below the home is searched for the bytes, every table of every copy too;
8. ``prove``: in a scratch copy the source is fed to the hook again and every background job runs
   for a while.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, Refused, StoreError
from hypatia_mem.memory.erasing import client, places, proof, steps
from hypatia_mem.memory.erasing.job import Job, Place, read_job, remove_job, write_job
from hypatia_mem.memory.erasing.planning import Plan, plan_again, plan_erase
from hypatia_mem.model import PERSON_CHANNELS, Author

if TYPE_CHECKING:
    from hypatia_mem.config import Settings

__all__ = [
    "Plan",
    "Report",
    "certificates",
    "erase",
    "pending",
    "plan_erase",
    "refuse_agent",
    "resume",
    "transcripts_holding",
]

_LOG = logging.getLogger("hypatia_mem")


@dataclass(frozen=True, slots=True)
class Report:
    """What was done. ``clean``: no byte of it is left where this program can look.

    ``left`` are entries that say a part of it and were not meant, ``busy`` (name, session) what
    running sessions keep; ``problems`` say what could not be done, each with what to do.
    ``left_due`` is background work that the proof had no time for, by its kind. ``certificate`` is
    the file that holds the digests.
    """

    op_id: str
    places: tuple[Place, ...]
    checks: tuple[proof.Check, ...]
    left_due: Mapping[str, int]
    left: tuple[str, ...]
    elsewhere: int
    problems: tuple[str, ...]
    transcripts: tuple[client.Holding, ...]
    certificate: str
    clean: bool
    busy: tuple[tuple[str, str], ...] = ()


def refuse_agent(home: Path, author: Author, about: str, *, now: datetime) -> None:
    """Raise Refused for whoever is no person, and note it in the ledger."""
    if author.channel in PERSON_CHANNELS:
        return
    from hypatia_mem.store.connection import open_store

    with (
        contextlib.suppress(StoreError),
        open_store(home, write=True) as store,
        store.transaction(author, now=now) as txn,
    ):
        txn.note_operation("refuse", "erase", reason="only a person may erase")
    raise Refused(
        f"only a person at a terminal can erase {about}",
        hint="An agent can withdraw it: hypatia-mem forget. The bytes go when a person runs erase.",
    )


def erase(
    home: Path,
    plan: Plan,
    *,
    settings: Settings,
    author: Author,
    now: datetime,
    prove: bool = True,
    beat: Callable[[], None] = lambda: None,
) -> Report:
    """Carry a plan out. Call it with no other worker running.

    Turns that wait in the spool are stored first, so that what they say of it is found too. Raises
    Refused for whoever is no person, Conflict while another erasing is unfinished, and StoreError
    or OSError when a step could not be done: the job is kept then, and ``resume`` goes on.
    """
    refuse_agent(home, author, "something", now=now)
    if read_job(home) is not None:
        raise Conflict(
            "an earlier erasing is not finished", hint="Finish it: hypatia-mem erase --resume"
        )
    steps.drain(home, settings, beat)
    again = plan_again(home, plan, author=author, now=now)
    job = _job(home, again, author, now, prove=prove)
    write_job(home, job)  # from here on it goes on by itself, whatever happens
    return _run(home, job, settings=settings, now=now, beat=beat)


def pending(home: Path) -> Job | None:
    """Return the erasing that is not finished, None when there is none."""
    return read_job(home)


def resume(
    home: Path, *, settings: Settings, now: datetime, beat: Callable[[], None] = lambda: None
) -> Report | None:
    """Finish an erasing that was cut short; None when there is none. Raises as ``erase``."""
    job = read_job(home)
    return None if job is None else _run(home, job, settings=settings, now=now, beat=beat)


def certificates(home: Path) -> list[Mapping[str, Any]]:
    """Return what the certificates of a home say, newest first."""
    found = []
    for path in sorted((home / steps.CERTIFICATES).glob("*.json"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            found.append(json.loads(path.read_text("utf-8")))
    return found


def transcripts_holding(home: Path, pieces: Sequence[str]) -> list[client.Holding]:
    """Return the client's own files that hold one of these pieces."""
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        known = erasing.transcripts(store)
    return client.holding(known, pieces, os.environ)


def _job(home: Path, plan: Plan, author: Author, now: datetime, *, prove: bool) -> Job:
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.writing import new_op_id

    with open_store(home, write=False) as store:
        sources = erasing.sources_of(store, [*plan.names, *plan.evidence])
    before = places.survey(home, plan.pieces)
    return Job(
        op_id=new_op_id(now),
        at=now,
        actor=author.actor,
        channel=str(author.channel),
        asked=plan.asked,
        names=plan.names,
        evidence=plan.evidence,
        statements=plan.statements,
        titles=plan.titles,
        summaries=plan.summaries,
        scopes=plan.scopes,
        pieces=plan.pieces,
        values=plan.values,
        sources=tuple({**asdict(one), "at": one.at.isoformat()} for one in sources),
        before={
            name: held.files if name == "store file" else held.total
            for name, held in before.items()
        },
        rows=dict(before["store file"].rows),
        done=(),
        prove=prove,
        busy=plan.busy,
    )


# --- doing it -------------------------------------------------------------------------------------


def _run(
    home: Path, job: Job, *, settings: Settings, now: datetime, beat: Callable[[], None]
) -> Report:
    """Do what is not done yet, step by step. Raises what a step raises; the job stays then."""
    doing: list[tuple[str, Callable[[], object]]] = [
        ("forget", lambda: steps.forget(home, job, now)),
        ("derive", lambda: steps.derive(home, job, settings, now, beat)),
        ("rewrite", lambda: steps.rewrite(home)),
        ("spool", lambda: steps.blank_spool(home, job)),
        ("backups", lambda: steps.revise_backups(home, job, now, beat)),
        ("rest", lambda: steps.clear_rest(home, job)),
    ]
    for name, act in doing:
        if name not in job.done:
            act()
            beat()
            job = replace(job, done=(*job.done, name))
            write_job(home, job)
    steps.clear_scratch(home)  # of one that was killed in its proof
    left, elsewhere, strict, odd = steps.still_said(home, job)
    after = steps.survey_after(home, job, strict)
    beat()
    proved = proof.Proved()
    if job.prove:
        proved = proof.prove(home, job, strict, settings, now, beat)
    problems = [*odd, *steps.problems_of(after), *proved.problems]
    report = _report(home, job, after, proved, left, elsewhere, problems)
    certificate = steps.write_certificate(
        home, job, report.places, proved.checks, report.clean, now, proved.left_due
    )
    remove_job(home)
    return replace(report, certificate=str(certificate))


def _report(
    home: Path,
    job: Job,
    after: Mapping[str, places.Held],
    proved: proof.Proved,
    left: Sequence[str],
    elsewhere: int,
    problems: Sequence[str],
) -> Report:
    table = steps.table(home, job, after)
    clean = not problems and all(place.after == 0 for place in table)
    return Report(
        op_id=job.op_id,
        places=table,
        checks=proved.checks,
        left_due=proved.left_due,
        left=tuple(name for name in left if name not in dict(job.busy)),
        elsewhere=elsewhere,
        problems=tuple(problems),
        transcripts=tuple(transcripts_holding(home, job.pieces)),
        certificate="",
        clean=clean and all(check.passed for check in proved.checks),
        busy=job.busy,
    )

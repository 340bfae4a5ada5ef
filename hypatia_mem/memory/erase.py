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
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, NotFound, Refused, StoreError, UsageError
from hypatia_mem.memory.erasing import client, places, proof, steps
from hypatia_mem.memory.erasing.job import Job, Place, read_job, remove_job, write_job
from hypatia_mem.memory.erasing.pieces import Pieces, pieces_of
from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Author, Entry

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.opened import Store

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
_CONTAINED = 16  # characters: a shorter value is looked for only where it is known to come from
_EVIDENCE = frozenset({"message", "session", "summary", "episode", "thread"})
_JOINTS = frozenset({"summary", "derivedFrom", "belongTo"})  # what they hold are numbers
_MEMORIES = frozenset({"rule", "taboo", "memory"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What an erasing would take away, by name, and what it would leave.

    ``evidence`` are the messages and summaries of sessions that say what the ``names`` say;
    ``summaries`` are made again from what is left. ``others`` say the same and stay unless they are
    named too; ``elsewhere`` counts those of other projects. ``transcripts`` are the client's own
    files that hold it.
    """

    asked: str
    names: tuple[str, ...]
    evidence: tuple[str, ...]
    summaries: tuple[str, ...]
    statements: tuple[str, ...]
    titles: tuple[str, ...]
    others: tuple[str, ...]
    elsewhere: int
    backups: tuple[str, ...]
    snapshots: int
    transcripts: tuple[client.Holding, ...]
    scopes: tuple[str, ...] | None
    everywhere: bool
    also: bool
    pieces: tuple[str, ...] = field(repr=False)
    values: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    """What was done. ``clean``: no byte of it is left where this program can look.

    ``left`` are entries that say a part of it and were not meant; ``problems`` say what could not
    be done, each with what to do. ``left_due`` is background work that the proof had no time for,
    by its kind. ``certificate`` is the file that holds the digests.
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


def plan_erase(
    home: Path,
    asked: str,
    *,
    scope: str,
    ids: Sequence[str] = (),
    everywhere: bool = False,
    also: bool = False,
) -> Plan:
    """Say what erasing ``asked`` would take away. Changes nothing.

    ``asked`` is the name of an entry, the id of a session, or words that one memory holds;
    ``ids`` are names. ``everywhere`` looks in every project; ``also`` takes the other entries along
    that say the same. Raises NotFound, Conflict when words fit several.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = _found(store, asked, ids, scope=scope, everywhere=everywhere)
        return _planned(home, store, asked, found, everywhere=everywhere, also=also)


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
    again = _again(home, plan)
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


# --- planning -------------------------------------------------------------------------------------


def _found(
    store: Store, asked: str, ids: Sequence[str], *, scope: str, everywhere: bool
) -> list[str]:
    """Return the names of the entries that are meant. Raises NotFound, Conflict, UsageError."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import erasing

    if ids:
        return [_named(store, name, scope, everywhere) for name in ids]
    if not asked.strip():
        raise UsageError("say what to erase: a name, a session's id, or some words")
    if _is_there(store, asked):
        return [_named(store, asked, scope, everywhere)]
    session = store.session(asked)
    if session is not None:
        if not everywhere and session.project not in (scope, GLOBAL_SCOPE):
            raise NotFound(
                f"session {asked!r} belongs to another project",
                hint="Run this in its project's folder, or with --everywhere.",
            )
        return erasing.names_of_session(store, asked)
    plan = curate.plan_forget(curate.forgettable(store, scope), asked)
    if plan.chosen:
        return list(plan.chosen)
    if plan.matches:
        names = ", ".join(match.name for match in plan.matches[:5])
        raise Conflict(f"these words may mean several: {names}", hint="Name one of them with --id.")
    raise NotFound(
        "no rule, taboo or memory here matches these words",
        hint="What else holds them goes by its name, with --id: hypatia-mem forget WORDS --dry-run"
        " lists it.",
    )


def _is_there(store: Store, name: str) -> bool:
    from hypatia_mem.store import history

    return store.entry(name) is not None or history.last_entry(store, name) is not None


def _named(store: Store, name: str, scope: str, everywhere: bool) -> str:
    from hypatia_mem.store import history

    entry = store.entry(name) or history.last_entry(store, name)
    if entry is None:
        raise NotFound(
            f"nothing called {name[:80]!r} is kept here", hint="See: hypatia-mem search WORDS"
        )
    if not everywhere and entry.scopes and not {scope, GLOBAL_SCOPE} & set(entry.scopes):
        raise NotFound(
            f"{name!r} belongs to another project",
            hint="Run this in its project's folder, or with --everywhere.",
        )
    return entry.name


def _planned(
    home: Path,
    store: Store,
    asked: str,
    names: Sequence[str],
    *,
    everywhere: bool,
    also: bool,
) -> Plan:
    from hypatia_mem.memory import backup
    from hypatia_mem.store import erasing, snapshot
    from hypatia_mem.store.tombstones import canonical

    every = [entry for name in names if (entry := _state(store, name)) is not None]
    within = _within(every, everywhere)
    whole = store.session(asked) if not _is_there(store, asked) else None
    texts = [*_texts(store, names), *([whole.title] if whole is not None else [])]
    values = tuple(dict.fromkeys(v for text in texts if (v := canonical(text))))
    long = [value for value in values if len(value) >= _CONTAINED]
    saying = {one.key: one for one in erasing.said_entries(store, long, within)}
    origin = [one for one in erasing.writing_sources(store, names) if one not in names]
    for one in erasing.said_states(store, origin):
        if erasing.holds(one.texts, values):
            saying.setdefault(one.key, one)
    for name in names:
        saying.pop(name, None)
    summed = [*dict.fromkeys(erasing.summaries_on(store, [*names, *saying]))]
    kinds = {name: one.kind for name, one in saying.items()}
    summed += _told(store, kinds, [*names, *saying])
    evidence = [n for n, one in saying.items() if one.kind in _EVIDENCE and n not in summed]
    others = [n for n, one in saying.items() if one.kind not in _EVIDENCE]
    pieces = pieces_of(texts)
    others += [one for one in _kept(home, store, pieces, within) if one not in (*names, *others)]
    if also:
        names, others = [*names, *others], []
    outside = 0
    if within is not None:
        everyone = erasing.said_entries(store, long, None)
        outside = sum(one.key not in saying and one.key not in names for one in everyone)
    titled = [one.id for one in erasing.said_titles(store, long, within)]
    return Plan(
        asked=asked,
        names=tuple(names),
        evidence=tuple(sorted(evidence)),
        summaries=tuple(name for name in summed if store.entry(name) is not None),
        statements=tuple(one.key for one in erasing.said_statements(store, long, names, within)),
        titles=tuple(dict.fromkeys([*([whole.id] if whole else []), *titled])),
        others=tuple(others),
        elsewhere=outside,
        backups=tuple(one.id for one in backup.backups(home)),
        snapshots=len(snapshot.snapshots(home)),
        transcripts=tuple(client.holding(erasing.transcripts(store), pieces, os.environ)),
        scopes=within,
        everywhere=everywhere,
        also=also,
        pieces=pieces,
        values=values,
    )


def _told(store: Store, kinds: Mapping[str, str], gone: Sequence[str]) -> list[str]:
    """Return the episodes that say it and go with a message that does: they are told anew."""
    from hypatia_mem.store import episodes

    told = [name for name, kind in kinds.items() if kind in episodes.MADE_ANEW]
    below = episodes.sources_of(store, told)
    return [name for name in told if not set(gone).isdisjoint(below.get(name, ()))]


def _state(store: Store, name: str) -> Entry | None:
    from hypatia_mem.store import history

    return store.entry(name) or history.last_entry(store, name)


def _kept(
    home: Path, store: Store, pieces: Sequence[str], within: Sequence[str] | None
) -> list[str]:
    """Return the names of the kept files that hold a piece."""
    from hypatia_mem.memory.sharing import archive

    looked = Pieces(pieces)
    names = [n for n in archive.file_names(home) if looked.in_file(archive.path_of(home, n))]
    return [
        entry.name
        for entry in store.entries(names)
        if within is None or set(within) & set(entry.scopes)
    ]


def _within(entries: Sequence[Entry], everywhere: bool) -> tuple[str, ...] | None:
    """Return the scopes to look in for the same words; None is everywhere."""
    scopes = {scope for entry in entries for scope in entry.scopes}
    if everywhere or GLOBAL_SCOPE in scopes or any(not entry.scopes for entry in entries):
        return None
    return tuple(sorted(scopes))


def _texts(store: Store, names: Sequence[str]) -> list[str]:
    """Return everything that these entries say or ever said, and those names that are words."""
    from hypatia_mem.store import erasing

    found: dict[str, None] = {}
    for state in erasing.said_states(store, names):
        for text in state.texts:
            found.setdefault(text.partition("\n## Content\n")[2] or text)
        wordy = state.kind not in _EVIDENCE and len(state.key) >= _CONTAINED
        if state.kind in _MEMORIES or wordy:
            found.setdefault(state.key)
    for statement in erasing.said_statements(store, (), names, None):
        if statement.kind not in _JOINTS and statement.texts[2]:
            found.setdefault(statement.texts[2])
    return [text for text in found if text.strip()]


def _again(home: Path, plan: Plan) -> Plan:
    """Plan once more, now that everything said is in the store."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        there = [name for name in plan.names if _is_there(store, name)]
        fresh = _planned(home, store, plan.asked, there, everywhere=plan.everywhere, also=plan.also)
    return replace(
        fresh,
        pieces=tuple(dict.fromkeys([*fresh.pieces, *plan.pieces])),
        values=tuple(dict.fromkeys([*fresh.values, *plan.values])),
    )


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
        left=tuple(left),
        elsewhere=elsewhere,
        problems=tuple(problems),
        transcripts=tuple(transcripts_holding(home, job.pieces)),
        certificate="",
        clean=clean and all(check.passed for check in proved.checks),
    )

"""The steps of an erasing. Each leaves the memory usable, and can be done again without harm."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import paths, spool
from hypatia_mem.errors import Refused, StoreCorrupt
from hypatia_mem.memory.erasing.job import Job, Place
from hypatia_mem.memory.erasing.pieces import Pieces
from hypatia_mem.memory.erasing.places import PLACES, Held, survey
from hypatia_mem.memory.erasing.proof import Check
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.opened import Store

__all__ = [
    "CERTIFICATES",
    "blank_spool",
    "clear_rest",
    "clear_scratch",
    "derive",
    "drain",
    "forget",
    "is_sealed",
    "problems_of",
    "revise_backups",
    "rewrite",
    "still_said",
    "survey_after",
    "table",
    "write_certificate",
]

CERTIFICATES = "erasures"
REASON = "erase"
_LOG = logging.getLogger("hypatia_mem")
_LEAST_LINE = 4  # characters: a shorter value would take every typed line along
_SCRATCH = (".proof-*", ".revising-*", ".erasing-*")
_LEFTOVERS = (f".*{paths.STORE}.*", ".spill*", ".reading-*", *_SCRATCH)
_CLEARED = ("spool", "damaged files kept", "program log")  # of everything that says a part of it
_DONE = {
    "store file": "written anew from its rows",
    "spool": "records blanked",
    "search index": "built anew",
    "briefs": "rendered anew",
    "snapshots": "replaced by a new one",
    "backups": "revised",
    "damaged files kept": "removed",
    "kept files": "removed with their entries",
    "typed lines": "lines removed",
    "program log": "lines removed",
}


def drain(home: Path, settings: Settings, beat: Callable[[], None]) -> None:
    """Store everything that waits in the spool. Raises what the store raises."""
    from hypatia_mem.memory.intake.drain import Drain

    one = Drain(home, settings)
    while one.step(final=True).worked:
        beat()


def forget(home: Path, job: Job, now: datetime) -> None:
    """Take out of a store what the job names and what says the same, in one transaction."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import erasing, history, reviewing
    from hypatia_mem.store.connection import open_store

    def there(name: str) -> bool:
        return store.entry(name) is not None or history.last_entry(store, name) is not None

    with open_store(home, write=True) as store:
        long = [value for value in job.values if len(value) >= 16]
        said = erasing.said_entries(store, long, job.scopes)
        evidence = [one.key for one in said if one.kind in ("message", "session", "summary")]
        under = reviewing.sessions_under(store, evidence) if job.running else []
        kept = {name for name, session in under if session in job.running}
        evidence = [name for name in evidence if name not in kept]
        tied = erasing.summaries_on(store, [*job.names, *job.evidence])
        wanted = dict.fromkeys([*job.names, *job.evidence, *evidence])
        names = [name for name in wanted if name not in tied and there(name)]
        ends = erasing.said_statements(store, long, names, job.scopes)
        triples = dict.fromkeys([*job.statements, *(one.key for one in ends)])
        titles = dict.fromkeys(
            [*job.titles, *(one.id for one in erasing.said_titles(store, long, job.scopes))]
        )
        if not names and not any(_is_known(store, triple) for triple in triples) and not titles:
            return
        curate.leave_index(home, store, names)
        author = Author(Channel(job.channel), job.actor)
        with store.transaction(author, now=now, op_id=job.op_id) as txn:
            for session_id in titles:
                txn.erase_title(session_id, REASON)
            for name in names:
                if there(name):  # not gone with another one by now
                    txn.delete_entry(name, REASON, tombstone=True)
            for triple in triples:
                txn.erase_statement(triple, REASON)
            txn.erase_notes(long)
            txn.note_operation("erase", job.op_id)


def _is_known(store: Store, triple: str) -> bool:
    found = store.execute(
        "SELECT 1 FROM statement WHERE triple = $1"
        " UNION ALL SELECT 1 FROM statement_version WHERE triple = $1 LIMIT 1",
        [triple],
    ).fetchone()
    return found is not None


def derive(
    home: Path, job: Job, settings: Settings, now: datetime, beat: Callable[[], None]
) -> None:
    """Make again, of what is left: summaries, episodes, search index, briefs, kept files.

    Of the summaries those that lost a source by this: what was due before is the worker's, and so
    are vectors, which go with their text and are missed by nobody until then.
    """
    from hypatia_mem.memory import curate, typed
    from hypatia_mem.memory.cascade import running as cascade
    from hypatia_mem.memory.episodes import running as episodes
    from hypatia_mem.store.search import SearchIndex

    values = [value for value in job.values if len(value) >= _LEAST_LINE]
    typed.forget_lines(home, [*values, *job.names], job.asked)
    cascade.run(home, settings, now=now, beat=beat, only_owed=True)
    episodes.run(home, settings, now=now, only_owed=True, beat=beat)
    SearchIndex(home).clear()  # deleted words stay in its files until they are written anew
    curate.refresh(home)


def rewrite(home: Path) -> None:
    """Put a copy of the store's rows in its place; of the snapshots only the new one stays."""
    from hypatia_mem.store import snapshot

    made = snapshot.rewrite(home)
    snapshot.remove_older(home, 1)
    for path in (home / paths.SNAPSHOTS).iterdir():
        if path.stem != made.path.stem:
            _remove(path)


def blank_spool(home: Path, job: Job) -> None:
    """Blank the spooled records that say it; their place in the file stays, so no cursor moves."""
    pieces = Pieces(job.pieces)
    kept = _running_spool(home, job)
    for segment in spool.segments(str(home)):
        path = Path(segment.path)
        if path not in kept and pieces.in_file(path) and _blank_lines(path, pieces) == 0:
            spool.remove_segment(segment)
    for path in (home / paths.SPOOL).rglob("*"):
        if not path.is_file() or path in kept or not pieces.in_file(path):
            continue
        if path.suffix == ".jsonl":  # too short for a record: a torn beginning
            _blank_lines(path, pieces)
        else:
            path.unlink()


def _running_spool(home: Path, job: Job) -> set[Path]:
    """Return the spool files of the sessions that run: what they tell is theirs until they end."""
    names = {spool.session_name(session) for session in job.running}
    found = spool.segments(str(home)) if names else []
    return {Path(segment.path) for segment in found if segment.session in names}


def _blank_lines(path: Path, pieces: Pieces) -> int:
    """Overwrite the lines that hold a piece with blanks; return how many others there are.

    Writers only append, so nobody else touches these bytes.
    """
    others = 0
    with path.open("r+b") as file:
        while line := file.readline():
            end = file.tell()
            body = line.rstrip(b"\r\n")
            if pieces.in_bytes(body):
                file.seek(end - len(line))
                file.write(b" " * len(body))
                file.flush()
                file.seek(end)
            elif body.strip():
                others += 1
        os.fsync(file.fileno())
    return others


def revise_backups(home: Path, job: Job, now: datetime, beat: Callable[[], None]) -> None:
    """Take it out of every backup; one that is damaged is left to the scan, which tells of it."""
    from hypatia_mem.memory import backup

    for one in backup.backups(home):
        try:
            backup.revise(home, one, lambda scratch: forget(scratch, job, now))
        except (StoreCorrupt, Refused) as error:
            _LOG.warning("a backup could not be revised: %s (%s)", one.id, error.message)
        beat()


def clear_rest(home: Path, job: Job) -> None:
    """Remove damaged stores, which cannot be searched, and what a killed process left behind."""
    pieces = Pieces(job.pieces)
    kept = home / paths.QUARANTINE
    for path in list(kept.iterdir()) if kept.is_dir() else ():
        inside = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        if any(".duckdb" in one.name or pieces.in_file(one) for one in inside):
            _remove(path)
    for pattern in _LEFTOVERS:
        for path in home.glob(pattern):
            _remove(path)
    backups = home / "backups"
    for path in backups.glob(".*") if backups.is_dir() else ():
        _remove(path)
    for path in home.glob(paths.LOG + "*"):
        if pieces.in_file(path):
            lines = path.read_bytes().splitlines(keepends=True)
            _replace(path, b"".join(line for line in lines if not pieces.in_bytes(line)))


def clear_scratch(home: Path) -> None:
    """Remove the scratch copies of an erasing that was killed: its words are fed to them."""
    for pattern in _SCRATCH:
        for path in home.glob(pattern):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)
    temporary.replace(path)


# --- what is left ---------------------------------------------------------------------------------


def still_said(home: Path, job: Job) -> tuple[list[str], int, list[str], list[str]]:
    """Return (entries that say a part of it, how many of other projects do, the other pieces,
    problems).

    A piece that something else says, which was not to be erased, is no trace of what was; in a row
    of nothing that is there it is one.
    """
    from hypatia_mem.memory.sharing import archive
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store

    pieces = Pieces(job.pieces)
    kept = [n for n in archive.file_names(home) if pieces.in_file(archive.path_of(home, n))]
    with open_store(home, write=False) as store:
        files = {entry.name: entry.scopes for entry in store.entries(kept)}
        if not files and not erasing.rows_in(store.connection, job.pieces):
            return [], 0, list(job.pieces), []
        others = erasing.pieces_of_others(store, job.pieces)
        odd = erasing.residue(store, job.pieces)
    erased = {*job.names, *job.evidence}
    said = files | {
        name: scopes for names in others.values() for name, scopes in names if name not in erased
    }
    within = set(job.scopes or ())
    own = [n for n, scopes in said.items() if job.scopes is None or within & set(scopes)]
    strict = [piece for piece in job.pieces if piece not in others]
    problems = [f"{count} rows of the table {name} still hold it" for name, count in odd.items()]
    return sorted(own), len(said) - len(own), strict, problems


def survey_after(home: Path, job: Job, strict: Sequence[str]) -> dict[str, Held]:
    """Return what each place still holds: of places that were cleared of every piece, any piece."""
    after = survey(home, strict)
    for place in ("kept files", "backups"):
        after[place] = _without_owner(home, after[place])
    if len(strict) < len(job.pieces):
        after |= survey(home, job.pieces, only=_CLEARED)
    held, kept = (
        after["spool"],
        {one.relative_to(home).as_posix() for one in _running_spool(home, job)},
    )
    told = [path for path in held.paths if path in kept]
    held.paths = [path for path in held.paths if path not in kept]
    held.files -= len(told)
    return after


def _without_owner(home: Path, held: Held) -> Held:
    """Leave out the kept files of entries that are there: they are told of as those entries."""
    from hypatia_mem.store.connection import open_store

    names = {path: path.partition("archive/")[2] for path in held.paths}
    with open_store(home, write=False) as store:
        there = {entry.name for entry in store.entries(names.values())}
    gone = [path for path in held.paths if names[path] in there]
    held.paths = [path for path in held.paths if path not in gone]
    held.files -= len(gone)
    return held


def problems_of(after: Mapping[str, Held]) -> list[str]:
    """Return a sentence for everything that could not be looked at or still holds a piece."""
    found = []
    for place, held in after.items():
        if held.unreadable:
            found.append(
                f"{held.unreadable} files of the {place} could not be read, so nobody can say what"
                " they hold: hypatia-mem doctor names them; remove them if they are not needed"
            )
        if held.total:
            found.append(f"the {place} still holds it: {', '.join(held.paths[:3])}")
    return found


def table(home: Path, job: Job, after: Mapping[str, Held]) -> tuple[Place, ...]:
    """Return the report's table: every table of the store and every place of the home."""
    rows = after["store file"].rows
    made = [
        Place(f"table {name}", job.rows.get(name, 0), rows.get(name, 0), "rows removed")
        for name in sorted({*job.rows, *rows})
    ]
    made.append(Place("summaries", len(job.summaries), 0, "made again from what is left"))
    for name in PLACES:
        held = after[name]
        count = held.files if name == "store file" else held.total
        before = job.before.get(name, 0)
        done = _DONE.get(name, "") if before or name == "store file" else ""
        made.append(Place(name, before, count, done or "searched"))
    return tuple(made)


def write_certificate(
    home: Path,
    job: Job,
    table: Sequence[Place],
    checks: Sequence[Check],
    clean: bool,
    now: datetime,
    left_due: Mapping[str, int],
) -> Path:
    """Write down what was done, with digests in the place of every word; return the file.

    ``left_due`` is the work that the proof left undone, by its kind.
    """
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.ledger import load_key

    key = load_key(home)
    with open_store(home, write=False) as store:
        last = store.ledger(limit=1)[0]
    said: dict[str, Any] = {
        "format": "hypatia-mem erasure certificate",
        "version": 1,
        "op_id": job.op_id,
        "ordered_at": job.at.isoformat(),
        "finished_at": now.isoformat(),
        "channel": job.channel,
        "key_id": key.id,
        "entries": [key.digest("target", n)[:24] for n in (*job.names, *job.evidence)],
        "values": [key.digest("erased", value) for value in job.values],
        "pieces": [key.digest("piece", piece)[:24] for piece in job.pieces],
        "places": [
            {"name": one.name, "before": one.before, "after": one.after, "done": one.done}
            for one in table
        ],
        "checks": [{"name": one.name, "passed": one.passed} for one in checks],
        "left_due": dict(left_due),
        "clean": clean,
        "ledger": {"seq": last["seq"], "hash": last["hash"]},
    }
    said["seal"] = key.digest("certificate", json.dumps(said, sort_keys=True))
    folder = home / CERTIFICATES
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{job.op_id}.json"
    _replace(path, json.dumps(said, indent=1).encode())
    return path


def is_sealed(home: Path, said: Mapping[str, Any]) -> bool:
    """Tell whether a certificate is as it was written here."""
    from hypatia_mem.store.ledger import load_key

    body = {name: value for name, value in said.items() if name != "seal"}
    made = load_key(home).digest("certificate", json.dumps(body, sort_keys=True))
    return bool(said.get("seal") == made)

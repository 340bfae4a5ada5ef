"""The proof of an erasing: what happens when the source comes by once more.

In a scratch copy of the memory, so that the words do not touch the real one again: the messages
that said it are fed to the hook as the client did and told at their time, their transcripts are
read from the beginning, once as they are and once as another session's with ids never seen; every
background job runs, and then it must be in no table, no brief and no search result. Each job has
its time: what of a large memory is still due then is said, and left to the worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import hook, paths, spool
from hypatia_mem.errors import HypatiaError, StoreError
from hypatia_mem.memory.erasing.job import Job
from hypatia_mem.memory.erasing.pieces import Pieces
from hypatia_mem.model import Author, Channel, Entry

if TYPE_CHECKING:
    from hypatia_mem.config import Settings

__all__ = ["Check", "Proved", "prove"]

MOST_FED = 200  # messages; the transcripts are read whole in any case
_JOB_SECONDS = 20.0  # for each job; what of it is due then stays due
_MOST_BYTES = 64 << 20  # of a transcript that is fed once more under other ids
_PASSED_ON = ("HOME", "USERPROFILE", "LOGNAME", "USER", "PATH", "LANG", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried; ``says`` is what was found, without a word of what was erased."""

    name: str
    passed: bool
    says: str


@dataclass(frozen=True, slots=True)
class Proved:
    """What was tried, what could not be tried, and how much background work was left, by kind."""

    checks: tuple[Check, ...] = ()
    problems: tuple[str, ...] = ()
    left_due: Mapping[str, int] = field(default_factory=dict)


def prove(
    home: Path,
    job: Job,
    pieces: Sequence[str],
    settings: Settings,
    now: datetime,
    beat: Callable[[], None],
) -> Proved:
    """Try whether the source brings it back."""
    scratch = home / f".proof-{os.getpid()}"
    try:
        size = (home / paths.STORE).stat().st_size
        if shutil.disk_usage(home).free < 3 * size:
            told = (
                "there is no room for a scratch copy, so it was not tried whether the source brings"
                " it back: free some space, then erase the same again"
            )
            return Proved(problems=(told,))
        _copied(home, scratch, job, now)
        fed = _feed(scratch, job)
        beat()
        left = _work(scratch, _of_no_cost(settings), now, beat)
        return Proved(_checks(scratch, job, pieces, fed, left), left_due=left)
    except (HypatiaError, OSError) as error:
        return Proved(problems=(f"the proof could not be carried out ({_why(error)})",))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _why(error: Exception) -> str:
    """Return in words why; of the errors that may quote what is erased only their kind."""
    if isinstance(error, StoreError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


class _Enough(Exception):
    """A job has had its time."""


def _time(beat: Callable[[], None]) -> Callable[[], bool]:
    """Return what a job asks whether to stop: it gives a sign of life, and says when time is up."""
    until = time.monotonic() + _JOB_SECONDS

    def stop() -> bool:
        beat()
        return time.monotonic() > until

    return stop


def _or_enough(stop: Callable[[], bool]) -> Callable[[], None]:
    """Return a sign of life for a job that does not ask: it raises _Enough when time is up."""

    def beat() -> None:
        if stop():
            raise _Enough

    return beat


def _of_no_cost(settings: Settings) -> Settings:
    """Return settings by which no model is asked: nobody pays for a proof."""
    names = ("summary_by", "extract_by", "episodes_by")
    own = {name: "extractive" for name in names if getattr(settings, name) != "off"}
    return replace(settings, **own)  # type: ignore[arg-type]


def _copy_secrets(home: Path, target: Path) -> None:
    """Copy the keys and what was forgotten."""
    for name in ("key", "keys", "forgotten"):
        path = home / name
        if path.is_dir():
            shutil.copytree(path, target / name, dirs_exist_ok=True)
        elif path.is_file():
            shutil.copy2(path, target / name)


def _copied(home: Path, scratch: Path, job: Job, now: datetime) -> None:
    """Make a memory of the store as it is, that has not read the sources yet."""
    from hypatia_mem.memory.intake.survey import cursors_of
    from hypatia_mem.store import snapshot
    from hypatia_mem.store.connection import open_store

    paths.ensure_home(str(scratch))
    snapshot.copy_store(home, scratch / paths.STORE)
    _copy_secrets(home, scratch)
    keys = [key for path in _transcripts(job) for key in cursors_of(path)]
    author = Author(Channel.WORKER)
    with open_store(scratch, write=True) as store, store.transaction(author, now=now) as txn:
        txn.delete_cursors(keys)


def _feed(scratch: Path, job: Job) -> int:
    """Give the hook what the client gave it; returns how many messages could be given.

    A record keeps the time at which it was said: the hook is the same, and so is its input, but a
    person who says it again today says something new.
    """
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environ["HYPATIA_MEM_HOME"] = str(scratch)
    told = [one for one in job.sources if one["prompt_id"]][:MOST_FED]
    out = os.open(os.devnull, os.O_WRONLY)
    try:
        for one in told:
            event = _event(one)
            data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
            where = {**environ, "CLAUDE_PROJECT_DIR": str(one["cwd"])}
            hook.handle(data.encode("utf-8", "surrogatepass") + b"\n", where, out)
        _at_their_times(scratch, told)
        _feed_transcripts(scratch, job, environ, out)
    finally:
        os.close(out)
    return len(told)


def _at_their_times(scratch: Path, told: Sequence[Mapping[str, Any]]) -> None:
    """Put the spooled records back to when their messages were said."""
    times: dict[tuple[str, ...], str] = {
        (one["session_id"], one["prompt_id"], _event_name(one)): one["at"] for one in told
    }
    records = []
    for segment in spool.segments(str(scratch)):
        records += [r for r in spool.iter_records(segment.path) if isinstance(r, spool.Record)]
        Path(segment.path).unlink()
    for record in records:
        event = record.event
        names = ("session_id", "prompt_id", "hook_event_name")
        key = tuple(str(event.get(name)) for name in names)
        at = datetime.fromisoformat(str(times[key])).replace(tzinfo=UTC)
        data = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        where = b'"dir":%s,' % spool.json_string(record.dir)
        spool.append(
            str(scratch), record.session, data, at_ns=int(at.timestamp() * 1e9), meta=where
        )


def _feed_transcripts(scratch: Path, job: Job, environ: Mapping[str, str], out: int) -> None:
    """Feed each transcript once more, as another session's, every line under a new id."""
    for number, path in enumerate(_transcripts(job)):
        session = f"again-{number}-{os.getpid()}"
        copy = scratch / f"{session}.jsonl"
        if not _renamed(Path(path), copy, session):
            continue
        cwd = next(str(one["cwd"]) for one in job.sources if one["transcript_path"] == path)
        for name, more in (("SessionStart", "source"), ("SessionEnd", "reason")):
            event = {
                "session_id": session,
                "transcript_path": str(copy),
                "cwd": cwd,
                "hook_event_name": name,
                more: "resume" if more == "source" else "other",
            }
            data = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
            hook.handle(data + b"\n", {**environ, "CLAUDE_PROJECT_DIR": cwd}, out)


def _renamed(path: Path, copy: Path, session: str) -> bool:
    """Copy a transcript under other ids; False when there is none, or it is very large."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return False
        with path.open("rb") as lines, copy.open("w", encoding="utf-8", errors="replace") as made:
            for line in lines:
                with contextlib.suppress(ValueError):
                    one = json.loads(line)
                    one.update(sessionId=session, uuid=str(uuid.uuid4()))
                    made.write(json.dumps(one, ensure_ascii=False) + "\n")
    except (OSError, AttributeError):
        return False
    return True


def _transcripts(job: Job) -> list[str]:
    paths_said = (str(one["transcript_path"]) for one in job.sources)
    return [path for path in dict.fromkeys(paths_said) if path and Path(path).is_file()]


def _event_name(one: Mapping[str, Any]) -> str:
    return "UserPromptSubmit" if one["role"] == "user" else "Stop"


def _event(one: Mapping[str, Any]) -> dict[str, object]:
    asked = one["role"] == "user"
    return {
        "session_id": one["session_id"],
        "transcript_path": one["transcript_path"],
        "cwd": one["cwd"],
        "prompt_id": one["prompt_id"],
        "hook_event_name": _event_name(one),
        "prompt" if asked else "last_assistant_message": one["text"],
    }


def _work(
    scratch: Path, settings: Settings, now: datetime, beat: Callable[[], None]
) -> dict[str, int]:
    """Run everything that the worker would, each job for a while; return what is due then."""
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade import running as cascade
    from hypatia_mem.memory.episodes import running as episodes
    from hypatia_mem.memory.extract import running as extract
    from hypatia_mem.memory.intake.drain import Drain
    from hypatia_mem.memory.intake.house import keep_house
    from hypatia_mem.memory.vectors import embedding

    drain = Drain(scratch, settings)
    while drain.step(final=True).worked:
        beat()
    cascade.run(scratch, settings, now=now, waiting=cascade.Waiting(stop=_time(beat)))
    embedding.catch_up(scratch, settings.embedding_model, stop=_time(beat))
    with contextlib.suppress(_Enough):
        extract.run(scratch, now=now, beat=_or_enough(_time(beat)))
    episodes.run(scratch, settings, now=now, beat=beat, stop=_time(beat))
    keep_house(scratch, settings, now=now, beat=beat)
    curate.refresh(scratch)
    return _left(scratch, settings, now)


def _left(scratch: Path, settings: Settings, now: datetime) -> dict[str, int]:
    """Return how much of what can be much is not done yet, by its name."""
    from hypatia_mem.memory import jobs
    from hypatia_mem.memory.vectors import embedding
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    found = jobs.listed(scratch, settings, now=now, scopes=None)
    left = {"summaries": sum(one.state == "due" for one in found)}
    with contextlib.suppress(HypatiaError):  # vectors are switched off, or their extra is missing
        model = embedding.load_model(settings.embedding_model)
        with open_store(scratch, write=False) as store:
            left["vectors"] = vectors.missing(store, model.model)
    return {name: count for name, count in left.items() if count}


def _is_made_anew(entry: Entry, looked: Pieces) -> bool:
    """Tell whether an entry was derived of what is left, and has the name of one that went."""
    derived = entry.kind in ("episode", "thread", "summary") or "work-unit" in entry.tags
    return derived and not looked.in_text(f"{entry.name}\n{entry.content}")


def _checks(
    scratch: Path, job: Job, pieces: Sequence[str], fed: int, left: Mapping[str, int]
) -> tuple[Check, ...]:
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.search import SearchIndex

    looked = Pieces(pieces)
    with open_store(scratch, write=False) as store:
        there = store.entries([*job.names, *job.evidence])
        rows = erasing.rows_in(store.connection, pieces)
        whole = store.verify_ledger() is None
    back = {one.name for one in there if not _is_made_anew(one, looked)}
    hits = {
        hit.name for piece in pieces[:20] for hit in SearchIndex(scratch).search(piece, limit=50)
    } & ({*job.names, *job.evidence} - {one.name for one in there} | back)
    briefs = [path for path in (scratch / paths.BRIEFS).glob("*") if looked.in_file(path)]
    read = len(_transcripts(job))
    source = f"{fed} messages through the hook, {read} transcripts from the beginning, twice"
    due = ", ".join(f"{count} {name}" for name, count in left.items())
    ran = "each ran until nothing was due" if not left else f"each ran; left to the worker: {due}"
    return (
        Check("source fed again", True, source),
        Check("background jobs", True, ran),
        Check("stays away", not back, f"{len(back)} entries came back"),
        Check("no row says it", not rows, ", ".join(rows) or "no table does"),
        Check("no search finds it", not hits, f"{len(hits)} results"),
        Check("no brief tells it", not briefs, f"{len(briefs)} briefs"),
        Check("the ledger holds", whole, "its chain was checked"),
    )

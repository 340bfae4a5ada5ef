"""The proof of an erasing: what happens when the source comes by once more.

In a scratch copy of the memory, so that the words do not touch the real one again: the messages
that said it are fed to the hook as the client did and told at their time, their transcripts are
read from the beginning, once as they are and once as another session's with ids never seen; every
background job runs, and then it must be in no table, no brief and no search result.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import hook, paths, spool
from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory.erasing.job import Job
from hypatia_mem.memory.erasing.pieces import Pieces
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings

__all__ = ["Check", "beating", "prove"]

MOST_FED = 200  # messages; the transcripts are read whole in any case
_MOST_BYTES = 64 << 20  # of a transcript that is fed once more under other ids
_PASSED_ON = ("HOME", "USERPROFILE", "LOGNAME", "USER", "PATH", "LANG", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried; ``says`` is what was found, without a word of what was erased."""

    name: str
    passed: bool
    says: str


def prove(
    home: Path,
    job: Job,
    pieces: Sequence[str],
    settings: Settings,
    now: datetime,
    beat: Callable[[], None],
) -> tuple[tuple[Check, ...], list[str]]:
    """Return what was tried, and what could not be tried."""
    scratch = home / f".proof-{os.getpid()}"
    try:
        size = (home / paths.STORE).stat().st_size
        if shutil.disk_usage(home).free < 3 * size:
            return (), [
                "there is no room for a scratch copy, so it was not tried whether the source brings"
                " it back: free some space, then erase the same again"
            ]
        _copied(home, scratch, job, now)
        fed = _feed(scratch, job)
        beat()
        _work(scratch, settings, now, beat)
        return _checks(scratch, job, pieces, fed), []
    except (HypatiaError, OSError) as error:
        return (), [f"the proof could not be carried out ({type(error).__name__})"]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def beating(beat: Callable[[], None]) -> Callable[[], bool]:
    """Return what a long job asks whether to stop: a sign of life, and no."""

    def stop() -> bool:
        beat()
        return False

    return stop


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


def _work(scratch: Path, settings: Settings, now: datetime, beat: Callable[[], None]) -> None:
    """Run everything that the worker would."""
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade import running as cascade
    from hypatia_mem.memory.episodes import running as episodes
    from hypatia_mem.memory.intake.drain import Drain
    from hypatia_mem.memory.intake.house import keep_house
    from hypatia_mem.memory.vectors import embedding

    drain = Drain(scratch, settings)
    while drain.step(final=True).worked:
        beat()
    cascade.run(scratch, settings, now=now, beat=beat)
    episodes.run(scratch, replace(settings, episodes_by="extractive"), now=now, beat=beat)
    embedding.catch_up(scratch, settings.embedding_model, stop=beating(beat))
    keep_house(scratch, settings, now=now, beat=beat)
    curate.refresh(scratch)


def _checks(scratch: Path, job: Job, pieces: Sequence[str], fed: int) -> tuple[Check, ...]:
    from hypatia_mem.store import erasing
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.search import SearchIndex

    looked = Pieces(pieces)
    with open_store(scratch, write=False) as store:
        back = store.entries([*job.names, *job.evidence])
        rows = erasing.rows_in(store.connection, pieces)
        whole = store.verify_ledger() is None
    hits = {
        hit.name for piece in pieces[:20] for hit in SearchIndex(scratch).search(piece, limit=50)
    } & {*job.names, *job.evidence}
    briefs = [path for path in (scratch / paths.BRIEFS).glob("*") if looked.in_file(path)]
    read = len(_transcripts(job))
    source = f"{fed} messages through the hook, {read} transcripts from the beginning, twice"
    return (
        Check("source fed again", True, source),
        Check("stays away", not back, f"{len(back)} entries came back"),
        Check("no row says it", not rows, ", ".join(rows) or "no table does"),
        Check("no search finds it", not hits, f"{len(hits)} results"),
        Check("no brief tells it", not briefs, f"{len(briefs)} briefs"),
        Check("the ledger holds", whole, "its chain was checked"),
    )

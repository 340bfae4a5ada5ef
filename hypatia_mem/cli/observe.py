"""What can be seen of the running memory without changing it: spool, store, worker, index.

``status`` and ``doctor`` say the same because they look through this one window. Everything here
answers, also when a part is broken: what cannot be read is said in words.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import spool
from hypatia_mem.cli.output import ago
from hypatia_mem.errors import HypatiaError, StoreError

if TYPE_CHECKING:
    from hypatia_mem.store.reviewing import Queued

__all__ = [
    "HookSeen",
    "SpoolView",
    "StoreView",
    "hook_failure",
    "index_seq",
    "last_error",
    "log_tail",
    "read_json",
    "recent_errors",
    "see_spool",
    "see_store",
]

_TAIL = 256 * 1024
TURN_EVENTS = ("UserPromptSubmit", "Stop")


@dataclass(frozen=True, slots=True)
class HookSeen:
    """The newest sign of a hook: when (unix seconds), which event, in which client."""

    at: float
    event: str
    client: str


@dataclass(frozen=True, slots=True)
class SpoolView:
    """Records not drained yet (``turns`` of them are prompts or answers), and the newest of all."""

    waiting: int = 0
    turns: int = 0
    oldest: float | None = None
    damaged: int = 0
    bytes: int = 0
    newest: HookSeen | None = None


@dataclass(frozen=True, slots=True)
class StoreView:
    """What the store says; ``error`` is the reason when it could not be asked."""

    counts: Mapping[str, int] = field(default_factory=dict)
    cursors: Mapping[str, int] = field(default_factory=dict)
    ledger_seq: int = 0
    lag: Mapping[str, float] = field(default_factory=dict)
    changes: tuple[Queued, ...] = ()  # that wait for a running session to end, or failed
    error: StoreError | None = None


def see_store(home: Path, deadline: float = 3.0) -> StoreView:
    """Ask the store for its counts; waits at most ``deadline`` seconds for the lease."""
    if not (home / "memory.duckdb").exists():
        return StoreView()
    from hypatia_mem.cli import context
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.lag import lag
    from hypatia_mem.store.reviewing import queued

    try:
        with open_store(home, write=False, deadline=deadline) as store:
            return StoreView(
                counts=dict(store.counts()),
                cursors=dict(store.cursors()),
                ledger_seq=store.ledger_seq(),
                lag=lag(store, context.now()),
                changes=tuple(queued(store)),
            )
    except StoreError as error:
        return StoreView(error=error)


def see_spool(home: Path, cursors: Mapping[str, int]) -> SpoolView:
    """Read the spool from the cursors on."""
    waiting = turns = damaged = size = 0
    oldest: float | None = None
    newest: HookSeen | None = None
    for segment in spool.segments(str(home)):
        size += segment.size
        start = cursors.get(segment.id, 0)
        if start >= segment.size:
            seen = _last_record(segment.path, segment.size)
            newest = _later(newest, seen)
            continue
        for item in spool.iter_records(segment.path, start):
            if not isinstance(item, spool.Record):
                damaged += 1
                continue
            waiting += 1
            turns += _event(item) in TURN_EVENTS
            at = item.at_ns / 1e9
            oldest = at if oldest is None else min(oldest, at)
            newest = _later(newest, _seen(item))
    return SpoolView(waiting, turns, oldest, damaged, size, newest)


def _last_record(path: str, size: int) -> HookSeen | None:
    """Return the last record of a segment, reading its end alone."""
    start = max(0, size - _TAIL)
    try:
        if start:
            with open(path, "rb") as file:  # noqa: PTH123 - the spool speaks in str paths
                file.seek(start)
                skipped = file.readline()
            start += len(skipped)
        found = None
        for item in spool.iter_records(path, start):
            if isinstance(item, spool.Record):
                found = _seen(item)
    except OSError:
        return None
    return found


def _seen(record: spool.Record) -> HookSeen:
    # The client calls itself claude-code_2-1-332_agent or claude-code/2.1.332.
    name, _, version = record.client.replace("/", "_").partition("_")
    version = version.partition("_")[0].replace("-", ".")
    return HookSeen(record.at_ns / 1e9, _event(record), f"{name} {version}".strip())


def _event(record: spool.Record) -> str:
    name = record.event.get("hook_event_name")
    return name if isinstance(name, str) else "?"


def _later(one: HookSeen | None, other: HookSeen | None) -> HookSeen | None:
    if one is None or (other is not None and other.at > one.at):
        return other
    return one


def log_tail(home: Path, count: int) -> list[str]:
    """Return the last lines of the program's log."""
    try:
        with (home / "hypatia-mem.log").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-count:]


def recent_errors(home: Path, seconds: float = 86400.0) -> list[str]:
    """Return the log's ERROR lines of the last day."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - seconds))
    found = []
    for line in log_tail(home, 10_000):
        parts = line.split(" ", 2)
        if len(parts) == 3 and parts[1].upper() == "ERROR" and parts[0] >= since:
            found.append(line)
    return found


def last_error(home: Path) -> str:
    """Return the newest error of hook or program in one line, ``none`` when there is none."""
    failure = hook_failure(home)
    errors = recent_errors(home)
    if failure:
        return failure
    return errors[-1] if errors else "none"


def hook_failure(home: Path) -> str:
    """Return the last failure of a hook to keep a record, in words, or ``""``."""
    found = spool.last_failure(str(home))
    if found is None:
        return ""
    where = f" ({found.path})" if found.path else ""
    return (
        f"a hook could not keep a record {ago(time.time() - found.at)} ago: {found.reason}{where}"
    )


def index_seq(home: Path) -> int | None:
    """Return the ledger sequence the search index is built to; None when there is no index."""
    from hypatia_mem.store.search import SearchIndex

    try:
        seq: int = SearchIndex(home).seq()
    except (HypatiaError, OSError):
        return None
    return seq


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file; an empty one when it cannot be read."""
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}

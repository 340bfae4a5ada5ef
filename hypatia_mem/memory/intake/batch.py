"""What one session brings to a step of the drain: its hooks' records and its transcript's lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from hypatia_mem.capture import paths, spool
from hypatia_mem.capture.hints import may_hold_secret
from hypatia_mem.memory.intake import reconcile
from hypatia_mem.memory.intake.turns import Facts, Title
from hypatia_mem.model import Message

__all__ = [
    "BATCH_RECORDS",
    "LeftOut",
    "Work",
    "digests",
    "drop_left_out",
    "hold_back",
    "is_own",
    "left_out",
    "path_of",
    "redact",
    "when",
]

BATCH_RECORDS = 80  # what is stored while others wait a tenth of a second at most
MARKER = "hypatia-mem:internal"
_NEVER = "253000000000"  # seconds since 1970, in the year 9987


@dataclass(slots=True)
class Work:
    """What one session brings to a step."""

    session_id: str
    records: list[spool.Record] = field(default_factory=list)
    transcript_path: str = ""
    messages: tuple[Message, ...] = ()
    open: frozenset[str] = frozenset()
    titles: tuple[Title, ...] = ()
    summaries: tuple[str, ...] = ()
    compacted_at: datetime | None = None
    facts: Facts | None = None
    readable: bool = False
    complete: bool = True  # the transcript has been read to its end
    checkpoint: int = 0
    read_to: int = 0
    segments: dict[int, str] = field(default_factory=dict)  # id(record) -> its segment


def digests(messages: Iterable[Message], records: Iterable[spool.Record]) -> Iterator[str]:
    """Yield the digests of all the words that transcript and hooks bring."""
    yield from (reconcile.digest(message.text) for message in messages)
    for record in records:
        said = reconcile.said(record, redact)
        if said is not None:
            yield reconcile.digest(said.text)


def hold_back(cursors: dict[str, int], waiting: Iterable[spool.Record], one: Work) -> None:
    """Keep each segment's cursor in front of its first record that waits."""
    segments = one.segments
    for record in waiting:
        key = segments[id(record)]
        cursors[key] = min(cursors.get(key, record.offset), record.offset)


@lru_cache(maxsize=12 * BATCH_RECORDS)
def redact(text: str) -> str:
    """Redact a text of the transcript by the hook's rules; most have nothing to redact."""
    if not may_hold_secret(text.encode("utf-8", "replace")):
        return text
    from hypatia_mem.capture.redact import redact_text

    return redact_text(text)


def when(record: spool.Record) -> datetime:
    """Return when a hook wrote a record, as naive UTC."""
    return datetime.fromtimestamp(record.at_ns / 1e9, UTC).replace(tzinfo=None)


def path_of(record: spool.Record) -> str:
    """Return the transcript that a record names, or nothing."""
    path = record.event.get("transcript_path")
    return path if isinstance(path, str) and "\0" not in path else ""  # no file is called so


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not to be kept: prompts by the session they were typed in, and spans of time."""

    prompts: Mapping[str, set[str]]
    away: Sequence[tuple[datetime, datetime]]  # naive UTC, the end left out

    def holds(self, message: Message, session_id: str) -> bool:
        """Tell whether a message is among it. A fork repeats the turns of other sessions."""
        if not message.prompt_id and session_id in self.prompts:
            return True
        return any(message.prompt_id in known for known in self.prompts.values()) or any(
            first <= message.at < last for first, last in self.away
        )


def left_out(home: Path) -> LeftOut:
    """Read what the hook noted while capturing was off, and when nothing was installed at all."""
    prompts: dict[str, set[str]] = {}
    for path in (home / paths.TURNS).glob(f"*{paths.LEFT_OUT}"):
        with contextlib.suppress(OSError):
            prompts[path.stem] = set(path.read_text("ascii", "replace").split())
    away: list[tuple[datetime, datetime]] = []
    with contextlib.suppress(OSError, ValueError):
        for line in (home / paths.AWAY).read_text("ascii").splitlines():
            first, _, last = line.partition(" ")
            away.append((_moment(first), _moment(last or _NEVER)))
    return LeftOut(prompts, away)


def drop_left_out(one: Work, left: LeftOut) -> None:
    """Take out of a transcript what is not to be kept.

    What the client made of the whole session (its title, a compaction's summary) tells of those
    turns too.
    """
    kept = tuple(each for each in one.messages if not left.holds(each, one.session_id))
    if len(kept) < len(one.messages) or one.session_id in left.prompts:
        one.messages, one.summaries = kept, ()
        one.titles = tuple(title for title in one.titles if title.custom)


def _moment(seconds: str) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC).replace(tzinfo=None)


def is_own(messages: Iterable[Message]) -> bool:
    """Tell whether a session is one of our own: its first prompt carries the marker (I6)."""
    first = next((message for message in messages if message.role == "user"), None)
    return first is not None and MARKER in first.text.splitlines()

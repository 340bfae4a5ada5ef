"""Pieces of both sources, in any order and any number of times, always give the same messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.capture.spool import Record
from hypatia_mem.memory.intake import reconcile, transcript
from hypatia_mem.memory.intake.lines import read_lines
from hypatia_mem.memory.intake.reconcile import digest
from hypatia_mem.memory.intake.turns import Carry
from hypatia_mem.model import Message

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
NAMES = sorted(path.name[: -len(".expected.json")] for path in FIXTURES.glob("*.expected.json"))
SECOND = 1_000_000_000
EPOCH = datetime(1970, 1, 1)
# What hooks alone cannot know: text said before a tool, turns that no hook announces, a command's
# full name, all but the last of several texts. What they see twice is one message.
HOOKS_ALONE = {
    "tools": {"remove": ["Let me look."]},
    "two_texts": {"First thought.\n\nSecond thought.": "Second thought."},
    "commands": {"remove": ["!ls shed"], "/shed:recall roses": "/recall roses"},
    "bang_old": {"remove": ["!date"]},
    "queued_new": {"remove": ["Digging."]},
    "queued_old": {"remove": ["Digging.", "deeper", "wider"]},
    "interrupted_new": {"remove": ["It was a dark"]},
    "interrupted_old": {"remove": ["It was a dark"]},
    "compacted": {"remove": ["Starting."]},
    "odd": {},
    "stop_loop": {"once": ["Done."]},
}


def nanoseconds(stamp: str) -> int:
    at = datetime.fromisoformat(stamp).replace(tzinfo=None)
    return (at - EPOCH) // timedelta(microseconds=1) * 1000


def records_of(name: str) -> list[Record]:
    found = []
    for line in (FIXTURES / f"{name}.hooks.jsonl").read_text().split("\n")[:-1]:
        row = json.loads(line)
        fields = {"at": nanoseconds(row["at"]), "red": 0, "event": row["event"]}
        found.append(Record(name, 0, 1, fields))
    return found


def expected_of(name: str) -> list[list[str]]:
    expected: list[list[str]] = json.loads((FIXTURES / f"{name}.expected.json").read_text())
    return expected


@dataclass(frozen=True)
class Kept:
    """A stored message as the store identifies it."""

    turn: int
    role: str
    uuid: str
    prompt_id: str
    response_id: str
    text_digest: str
    at: datetime
    flags: tuple[str, ...]


class Reader:
    """A worker of few lines: two cursors, a list for a store, and the two modules under test."""

    def __init__(self, name: str, folder: Path, elsewhere: set[str]) -> None:
        self.data = (FIXTURES / f"{name}.jsonl").read_bytes()
        self.records = records_of(name)
        self.path = folder / "transcript.jsonl"
        self.elsewhere = elsewhere
        self.written = 0
        self.fired = 0
        self.spool_cursor = 0
        self.read_to = 0
        self.checkpoint = 0
        self.carry: Carry | None = None
        self.stored: list[Message] = []

    def restart(self) -> None:
        """Forget what only lives in the process."""
        self.carry, self.read_to = None, self.checkpoint

    def step(self, now_ns: int, *, limit: int = 1 << 30, final: bool = False) -> bool:
        """Read what there is and store it; True when nothing is left to read."""
        self.path.write_bytes(self.data[: self.written])
        read = read_lines(self.path, self.read_to, limit)
        folded = transcript.fold(
            read.lines, self.carry, end=read.next_offset, flush=final and read.at_end
        )
        self.read_to, self.carry = read.next_offset, folded.carry
        self.checkpoint = folded.checkpoint
        records = self.records[self.spool_cursor : self.fired]
        ids = {one.uuid for one in folded.messages}
        plan = reconcile.plan(
            "s",
            known=[
                Kept(
                    m.turn or 0, m.role, m.uuid, m.prompt_id, m.response_id, digest(m.text), m.at,
                    m.flags,
                )
                for m in self.stored
            ],
            elsewhere={uuid: ("mother", 1) for uuid in ids & self.elsewhere},
            messages=folded.messages,
            growing=folded.open,
            records=records,
            now_ns=now_ns,
            final=final and read.at_end,
            complete=read.at_end,
        )  # fmt: skip
        for amendment in plan.amend:
            before = self.stored[amendment.turn - 1]
            self.stored[amendment.turn - 1] = replace(before, **amendment.changes)
        for message in plan.store:
            self.stored.append(replace(message, turn=len(self.stored) + 1))
        held = [n for n, one in enumerate(records) if any(one is w for w in plan.waiting)]
        self.spool_cursor += held[0] if held else len(records)
        assert len({one.uuid for one in self.stored}) == len(self.stored)
        return read.at_end and not plan.store

    def finish(self) -> list[list[str]]:
        """Let everything be there, read it to the end, and return who said what."""
        self.written, self.fired = len(self.data), len(self.records)
        late = max(one.at_ns for one in self.records) + 600 * SECOND if self.records else 0
        while not self.step(late, final=True):
            pass
        assert self.spool_cursor == len(self.records)
        return [[one.role, one.text] for one in self.stored]


def mother_of(name: str) -> set[str]:
    if name != "forked":
        return set()
    read = read_lines(FIXTURES / "rewound.jsonl", 0)
    folded = transcript.fold(read.lines, end=read.next_offset, flush=True)
    return {one.uuid for one in folded.messages}


def times_of(reader: Reader) -> list[tuple[int, str, int]]:
    """Return when each line was written and each hook ran: (time, source, how much is there)."""
    times: list[tuple[int, str, int]] = []
    written = at = 0
    for line in reader.data.split(b"\n")[:-1]:
        written += len(line) + 1
        stamp = json.loads(line).get("timestamp")
        at = max(at, nanoseconds(stamp) if stamp else 0)
        times.append((at, "line", written))
    return times + [(one.at_ns, "hook", n + 1) for n, one in enumerate(reader.records)]


SHARED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES)
@SHARED
@given(data=st.data())
def test_as_it_happens_each_once_and_in_order(name: str, tmp_path: Path, data: Any) -> None:
    """The worker looks at any moments; lines are late by what the client was measured to take."""
    reader = Reader(name, tmp_path, mother_of(name))
    late = data.draw(st.sampled_from([0, 0.02, 0.11, 0.4]))
    events = sorted(
        (at + int(late * SECOND) * (source == "line"), source, much)
        for at, source, much in times_of(reader)
    )
    now = 0
    for at, source, much in events:
        now = max(now, at)
        if source == "line":
            reader.written = max(reader.written, much)
        else:
            reader.fired = max(reader.fired, much)
        look = data.draw(st.integers(0, 7))
        if look < 4:
            if look == 0:
                reader.restart()
            limit = 1 if look == 1 else 1 << 30
            reader.step(now + data.draw(st.sampled_from([0, SECOND // 10])), limit=limit)

    assert reader.finish() == expected_of(name)


# Lines of one response are written together. Were its second text to come long after the Stop that
# quotes it, two messages would have been stored by then.
@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in NAMES if name != "two_texts"])
@SHARED
@given(data=st.data())
def test_in_any_order_each_once(name: str, tmp_path: Path, data: Any) -> None:
    """One source may run ahead of the other by any time, and be cut at any byte."""
    reader = Reader(name, tmp_path, mother_of(name))
    size, count = len(reader.data), len(reader.records)
    now = max([one.at_ns for one in reader.records], default=0)
    for _ in range(data.draw(st.integers(0, 8))):
        if data.draw(st.booleans()):
            reader.written = data.draw(st.integers(reader.written, size))
        if data.draw(st.booleans()):
            reader.fired = data.draw(st.integers(reader.fired, count))
        if data.draw(st.booleans()):
            reader.restart()
        if data.draw(st.booleans()):
            reader.spool_cursor = 0  # every record is read again
        limit = data.draw(st.sampled_from([1, 700, 1 << 30]))
        reader.step(now - data.draw(st.sampled_from([0, 20 * SECOND])), limit=limit)

    # What hooks told long before the transcript could be read keeps the turn it was given.
    assert sorted(reader.finish()) == sorted(expected_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_transcript_alone_is_enough(name: str, tmp_path: Path) -> None:
    reader = Reader(name, tmp_path, mother_of(name))
    reader.records = []
    hidden = [["user", "forbidden"]] if name == "blocked" else []  # only its hook knew
    assert reader.finish() == [one for one in expected_of(name) if one not in hidden]


@pytest.mark.parametrize("name", NAMES)
def test_hooks_alone_give_every_prompt_and_final_answer(name: str, tmp_path: Path) -> None:
    reader = Reader(name, tmp_path, mother_of(name))
    reader.data = b""
    known: dict[str, Any] = HOOKS_ALONE.get(name, {})
    expected: list[list[str]] = []
    for role, text in expected_of(name):
        shown = known.get(text, text)
        if shown in known.get("remove", ()):
            continue
        if shown in known.get("once", ()) and [role, shown] in expected:
            continue
        # The hook's own text is trimmed where it is an answer, and kept where it was typed.
        expected.append([role, shown])
    found = reader.finish()
    if name == "queued_new":  # told when it was typed, which was before the answer it waited for
        found.sort()
        expected.sort()
    assert found == expected

"""The client condenses its context: what was said till then is condensed here at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.config import set_value
from hypatia_mem.store.connection import open_store
from tests.capture.hook_kit import run as run_hook
from tests.memory.cascade_kit import assert_whole, links, summaries

RECORDED = Path(__file__).parents[1] / "fixtures" / "transcripts"
COMPACTED = datetime(2027, 3, 1, 9, 0, 2, 600_000, tzinfo=UTC)  # as the recording has it
BEFORE = {f"msg-compacted-{n}" for n in (1, 2, 3, 4)}


def lines(kind):
    text = (RECORDED / f"compacted{kind}").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def replay(folder, *, transcript=True, hook=True, age=timedelta(), until=None):
    """Let the client do what was recorded: its hooks run as processes, its transcript grows.

    ``age`` is how long ago it compacted; ``until`` leaves out all from a time of the recording on.
    """
    folder.mkdir()
    path = folder / "compacted.jsonl"
    shift = datetime.now(UTC) - timedelta(seconds=1) - age - COMPACTED
    if transcript:
        with path.open("w", encoding="utf-8") as file:
            for line in lines(".jsonl"):
                if (at := line.get("timestamp")) is not None:
                    moment = datetime.fromisoformat(at)
                    if until is not None and moment >= until:
                        break
                    line["timestamp"] = (moment + shift).isoformat().replace("+00:00", "Z")
                file.write(json.dumps(line) + "\n")
    for one in lines(".hooks.jsonl"):
        event = {**one["event"], "transcript_path": str(path), "cwd": str(folder)}
        compact = event.get("source") == "compact"
        if (compact and not hook) or (until and datetime.fromisoformat(one["at"]) >= until):
            continue
        done = run_hook(json.dumps(event, separators=(",", ":")).encode())
        assert (done.returncode, done.stderr) == (0, b"")
        if event["hook_event_name"] == "PreCompact":
            assert done.stdout == b"", "what is printed there becomes an instruction"


def covered(home):
    return {item for _, item in links(home)}


@pytest.mark.parametrize(
    ("transcript", "hook"),
    [
        pytest.param(True, True, id="both"),
        pytest.param(True, False, id="the transcript alone"),
    ],
)
def test_a_compaction_condenses_what_was_said_before_it(home, tmp_path, transcript, hook):
    """However little it is: the default threshold is 180,000 tokens, and this is a few words."""
    replay(tmp_path / "garden", transcript=transcript, hook=hook)
    assert worker.run(home, once=True) == 0
    assert covered(home) == BEFORE
    assert len(summaries(home)) == 1
    assert_whole(home)
    assert worker.run(home, once=True) == 0
    assert len(summaries(home)) == 1, "once"


def test_the_hook_alone_tells_it_too(home, tmp_path):
    replay(tmp_path / "garden", transcript=False, until=COMPACTED + timedelta(seconds=1))
    set_value(home, "cascade_keep_last", "0")
    assert worker.run(home, once=True) == 0
    # Of the answer that was interrupted no hook tells.
    with open_store(home, write=False) as store:
        said = [store.entry(f"msg-compacted-{n}") for n in (1, 2, 3, 4)]
    assert [one.content.split("\n")[-1] for one in said if one] == [
        "before", "Before it is.", "much work", "Went on.",
    ]  # fmt: skip
    assert covered(home) == {f"msg-compacted-{n}" for n in (1, 2, 3)}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"until": COMPACTED - timedelta(seconds=0.1)}, id="no compaction"),
        pytest.param({"age": timedelta(hours=7), "hook": False}, id="long ago"),
    ],
)
def test_without_one_little_is_left_as_it_is(home, tmp_path, how):
    replay(tmp_path / "garden", **how)
    assert worker.run(home, once=True) == 0
    assert summaries(home) == []


@pytest.mark.deep
def test_what_is_said_after_it_waits_as_ever(home, tmp_path):
    """A later drain reads the same lines again: the note stays where it was."""
    replay(tmp_path / "garden")
    worker.run(home, once=True)
    path = tmp_path / "garden" / "compacted.jsonl"
    said = [line for line in lines(".jsonl") if line.get("type") in ("user", "assistant")][:2]
    with path.open("a", encoding="utf-8") as file:
        for n in range(10):
            for line in said:
                stamp = datetime.now(UTC).isoformat().replace("+00:00", "Z")
                line |= {"uuid": f"{line['type']}-{n}", "parentUuid": None, "timestamp": stamp}
                line |= {"promptId": f"later-{n}"} if line["type"] == "user" else {}
                line["message"] |= {"id": f"later-{n}"}
                file.write(json.dumps(line) + "\n")
    event = {**lines(".hooks.jsonl")[-1]["event"], "transcript_path": str(path)}
    run_hook(json.dumps(event, separators=(",", ":")).encode())
    worker.run(home, once=True)
    with open_store(home, write=False) as store:
        assert store.entry("msg-compacted-20") is not None
    assert covered(home) == BEFORE

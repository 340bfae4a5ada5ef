"""A full disk at every stage: the session goes on, what was kept stays, and it mends by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hypatia_mem.capture import spool
from tests.disk import Disk, mounted
from tests.system.machine import Machine, assert_dense

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mount a small file system."""
    with mounted(tmp_path / "disk", 24) as disk:
        yield disk


def _kept(machine: Machine, session: str) -> list[str]:
    """Return the texts that the spool holds for a session, as a later reader sees them."""
    path = machine.memory / "spool" / f"{session}.jsonl"
    if not path.exists():
        return []
    records = [one for one in spool.iter_records(str(path), 0) if isinstance(one, spool.Record)]
    words = ("prompt", "last_assistant_message")
    return [
        str(one.event[key])
        for one in records
        if one.event is not None
        for key in words
        if key in one.event
    ]


@pytest.mark.parametrize("leave", [0, 4 << 10, 64 << 10, 256 << 10, 1 << 20], ids="{} left".format)
def test_a_disk_that_fills_up_costs_no_kept_turn(
    make_machine: Callable[..., Machine], disk: Disk, leave: int
) -> None:
    """Hooks, worker and command on a full disk; then room again: each kept turn once."""
    machine = make_machine(memory=disk.path / "memory")
    machine.prompt("s", 1, "before the disk was full " + "x" * 3000)
    machine.answer("s", 1, "answered in time")
    machine.settle()
    kept = _kept(machine, "s")
    disk.fill(leave)
    for number in range(2, 8):  # each exits with 0 and says nothing, whatever became of it
        machine.prompt("s", number, f"prompt {number} " + "y" * 6000)
        machine.answer("s", number, f"answer {number}")
    command = machine.start_cli("remember", "always mind the gap")
    _, told = command.communicate(timeout=120)
    if command.returncode:
        assert told.strip()  # a sentence, not a trace
        assert b"Traceback" not in told
    kept = list(dict.fromkeys(kept + _kept(machine, "s")))
    if leave == 0:
        assert "hypatia-mem" in _doctor(machine)
    machine.stop()  # a worker that met the full disk may be waiting to try again
    disk.free()
    machine.prompt("s", 9, "there is room again")
    machine.settle()
    messages = machine.stored()["s"]
    assert_dense(messages)
    texts = [text for _, _, text in messages]
    assert texts == list(dict.fromkeys([*kept, "there is room again"]))
    assert machine.cli("status")["store"] == "ok"
    if command.returncode == 0:
        assert "always mind the gap" in str(machine.cli("rules"))


def _doctor(machine: Machine) -> str:
    process = machine.start_cli("doctor")
    out, err = process.communicate(timeout=120)
    assert b"Traceback" not in err
    return out.decode()

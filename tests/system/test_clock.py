"""A clock that is set back, or far ahead, neither loses, doubles nor moves a turn, nor stops us."""

from __future__ import annotations

import json
import time

import pytest

from hypatia_mem.capture import spool
from tests.system.machine import Machine, assert_dense

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param((-50, -49, -52, -51, -48), id="set back by hours and again"),
        pytest.param((-10, 90_000, -9, -8, -7), id="once ten years ahead"),
        pytest.param((-490_000, -3, -2, -490_001, -1), id="battery dead"),
    ],
)
def test_a_clock_that_jumps_costs_no_turn(machine: Machine, offsets: tuple[int, ...]) -> None:
    """Without a transcript the spool tells the order: what came first stands first."""
    now = time.time_ns()
    expected = []
    for number, hours in enumerate(offsets):
        text = f"turn {number}"
        event = {"hook_event_name": "UserPromptSubmit", "prompt": text, "cwd": "/"}
        event |= {"session_id": "s", "prompt_id": f"p{number}"}
        at = max(1, now + hours * HOUR)
        spool.append(str(machine.memory), "s", json.dumps(event).encode(), at_ns=at)
        expected.append(text)
    machine.prompt("s", 99, "and on")  # starts the worker
    machine.settle()
    messages = machine.stored()["s"]
    assert_dense(messages)
    assert [text for _, _, text in messages] == [*expected, "and on"]

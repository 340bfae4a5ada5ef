"""Eight sessions at once, each of 200 turns, from real hook processes, while people ask the memory.

The whole promise in one campaign: each message once, in order, turn numbers dense, and no query
ever fails or is kept waiting for the worker.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import threading
import time

import pytest

from tests.system.machine import Machine, assert_dense, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SESSIONS = 8
PAUSE = 0.8  # seconds at most between an answer and the next prompt: far less than people need
QUERIES = (
    ("status",),
    ("sessions", "--all-projects"),
    ("search", "harvest", "--all-projects"),
    ("query", '["$knowledge", ["$contains", "tags", "message"]]'),
    ("rules",),
)


def _live(
    machine: Machine, session: str, turns: int, times: list[float], bare: list[float]
) -> None:
    """Live a session; ``bare`` gets the time of a Python that does nothing, beside each fifth."""
    chance = random.Random(session)
    for number in range(1, turns + 1):
        time.sleep(chance.uniform(0, PAUSE))
        began = time.perf_counter()
        machine.prompt(session, number, f"{session} asks {number} about the harvest")
        middle = time.perf_counter()
        machine.answer(session, number, f"{session} is told {number}: ok")
        times += [middle - began, time.perf_counter() - middle]
        if number % 5 == 0:
            began = time.perf_counter()
            subprocess.run([machine.hook_argv[0], "-I", "-S", "-c", "pass"], check=True)
            bare.append(time.perf_counter() - began)


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]


def test_eight_sessions_at_once_lose_and_double_nothing(
    machine: Machine, record_property: pytest.RecordProperty
) -> None:
    """3,200 messages from 3,200 hook processes; the commands meanwhile all succeed."""
    turns = scaled(200)
    alone: list[float] = []
    bare_alone: list[float] = []
    bare: list[float] = []
    _live(machine, "alone", min(turns, 40), alone, bare_alone)
    times: list[list[float]] = [[] for _ in range(SESSIONS)]
    failed: list[BaseException] = []
    done = threading.Event()

    def guarded(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException as error:
            failed.append(error)

    def ask() -> None:
        asked = 0
        while not done.is_set():
            machine.cli(*QUERIES[asked % len(QUERIES)])
            asked += 1
            time.sleep(PAUSE / 2)

    people = [
        threading.Thread(
            target=guarded, args=(_live, machine, f"session-{n}", turns, times[n], bare)
        )
        for n in range(SESSIONS)
    ]
    asker = threading.Thread(target=guarded, args=(ask,))
    for thread in (*people, asker):
        thread.start()
    for thread in people:
        thread.join()
    done.set()
    asker.join()
    assert failed == []
    machine.settle(300)
    stored = machine.stored()
    for number in range(SESSIONS):
        session = f"session-{number}"
        assert_dense(stored[session])
        assert [text for _, _, text in stored[session]] == [
            text
            for turn in range(1, turns + 1)
            for text in (
                f"{session} asks {turn} about the harvest",
                f"{session} is told {turn}: ok",
            )
        ]
    together = [one for several in times for one in several]
    figures = {
        "hook_p95_alone_ms": _p95(alone),
        "hook_p95_together_ms": _p95(together),
        "bare_python_p95_alone_ms": _p95(bare_alone),
        "bare_python_p95_together_ms": _p95(bare),
    }
    for name, seconds in figures.items():
        record_property(name, round(seconds * 1000, 1))
        print(f"{name}: {seconds * 1000:.1f}")

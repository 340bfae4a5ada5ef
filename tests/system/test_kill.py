"""``kill -9`` at any moment of hook, worker and command costs no acknowledged turn (I2).

A turn is acknowledged when its hook ended by itself. One whose hook was killed may be there or
not, but never twice. Afterwards everything works without anybody's help.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import pytest

from tests.system.machine import Machine, assert_dense, scaled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SESSIONS = 4


class Campaign:
    """Kills whatever chance says and remembers what was promised."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine = machine
        self.chance = random.Random(seed)
        self.promised: dict[str, list[str]] = {}
        self.possible: dict[str, set[str]] = {}
        self.rules: list[str] = []
        self.killed = {"hook": 0, "worker": 0, "command": 0}
        self.number = 0

    def turn(self, kill: bool) -> None:
        """Let one prompt or answer happen; with ``kill`` its hook may die at any instant."""
        self.number += 1
        session = f"session-{self.chance.randrange(SESSIONS)}"
        text = f"turn {self.number} of {session}"
        said = {"prompt": text, "hook_event_name": "UserPromptSubmit"}
        if self.chance.random() < 0.5:
            said = {"last_assistant_message": text, "hook_event_name": "Stop"}
        process = self.machine.start_hook(
            {"session_id": session, "cwd": "/", "prompt_id": f"p{self.number}", **said}
        )
        if kill:
            time.sleep(self.chance.uniform(0, 0.035))
            process.kill()
        process.communicate(timeout=60)
        if process.returncode == 0:
            self.promised.setdefault(session, []).append(text)
        else:
            self.killed["hook"] += 1
            self.possible.setdefault(session, set()).add(text)

    def kill_worker(self) -> None:
        """Kill the worker, if one runs, at some instant of its work."""
        self.turn(kill=False)  # there is work, and the hook starts a worker
        time.sleep(self.chance.uniform(0, 0.8))
        pid = self.machine.worker_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed["worker"] += 1

    def kill_command(self) -> None:
        """Kill a command that writes or reads at some instant."""
        words = f"always water tree number {self.number}"
        writes = self.chance.random() < 0.7
        command = ("remember", words) if writes else ("search", "turn")
        process = self.machine.start_cli(*command)
        time.sleep(self.chance.uniform(0, 0.9))
        process.kill()
        process.communicate(timeout=60)
        if process.returncode == 0 and writes:
            self.rules.append(words)
        self.killed["command"] += process.returncode != 0

    def point(self) -> None:
        """Do one of the three."""
        draw = self.chance.random()
        if draw < 0.4:
            self.turn(kill=True)
        elif draw < 0.8:
            self.kill_worker()
        else:
            self.kill_command()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_acknowledged_turn_survives_kill(machine: Machine, seed: int) -> None:
    """After a hundred kills: what was promised once each, in order; the store opens by itself."""
    campaign = Campaign(machine, seed)
    for _ in range(scaled(100)):
        campaign.point()
    campaign.turn(kill=False)
    print(campaign.killed)
    machine.settle()
    stored = machine.stored()
    for session in sorted({*campaign.promised, *campaign.possible}):
        messages = stored.get(session, [])
        assert_dense(messages)
        texts = [text for _, _, text in messages]
        assert len(texts) == len(set(texts)), session
        unsure = campaign.possible.get(session, set())
        assert [text for text in texts if text not in unsure] == campaign.promised[session]
    remembered = str(machine.cli("rules"))
    assert [words for words in campaign.rules if words not in remembered] == []
    assert machine.cli("status")["store"] == "ok"

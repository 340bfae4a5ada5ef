"""What eight sessions at once cost a hook, against one session alone, the worker running meanwhile.

    python benchmarks/sessions.py [--sessions 8] [--turns 200] [--pause 1.0] [--out FILE]

Real hook processes with the real worker behind them, wall time as the client waits for it. A
session is a person and a model: between two hooks lie 0 to 2 x ``--pause`` seconds, far less than
either needs. A bare start of the same interpreter stands beside every fifth hook, alone and
together, because what eight processes cost each other on two cores is the scheduler's and not ours.
``--pause 0`` measures just that: every core busy with hooks and nothing else.

Afterwards the store is asked whether it holds each message once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from hook import REPOSITORY, SCRIPT, event, machine, quantile, real_interpreter, text

from hypatia_mem.capture import paths
from hypatia_mem.store.connection import open_store


class Sessions:
    """Some sessions that live at the same time in one home, and what their hooks took."""

    def __init__(self, home: Path, python: str, pause: float) -> None:
        """Measure hooks of ``python`` that write into ``home``."""
        self.home, self.python, self.pause = home, python, pause
        self.environ = {**os.environ, "HYPATIA_MEM_HOME": str(home)}
        self.hooks: list[float] = []
        self.bare: list[float] = []

    def live(self, count: int, turns: int, name: str) -> None:
        """Let ``count`` sessions live ``turns`` turns each, at the same time."""
        people = [
            threading.Thread(target=self._live, args=(f"{name}-{number}", turns))
            for number in range(count)
        ]
        for person in people:
            person.start()
        for person in people:
            person.join()

    def _live(self, session: str, turns: int) -> None:
        chance = random.Random(session)
        for number in range(turns):
            common = {"session_id": session, "prompt_id": f"{session}-{number}", "cwd": "/"}
            common["transcript_path"] = f"/nonexistent/{session}.jsonl"
            asked = event("UserPromptSubmit", prompt=f"{number} {text(800)}", **common)
            told = event("Stop", last_assistant_message=f"{number} {text(2000)}", **common)
            for data in (asked, told):
                time.sleep(chance.uniform(0, 2 * self.pause))
                self.hooks.append(self._time([self.python, "-I", "-S", SCRIPT], data))
            if number % 5 == 0:
                self.bare.append(self._time([self.python, "-I", "-S", "-c", "pass"], b""))

    def _time(self, command: list[str], data: bytes) -> float:
        with tempfile.TemporaryFile() as stream:
            stream.write(data)
            stream.seek(0)
            null = os.open(os.devnull, os.O_WRONLY)
            ends = ((stream.fileno(), 0), (null, 1), (null, 2))
            files = [(os.POSIX_SPAWN_DUP2, source, number) for source, number in ends]
            began = time.perf_counter()
            pid = os.posix_spawn(command[0], command, self.environ, file_actions=files)
            _, status, _ = os.wait4(pid, 0)
            took = (time.perf_counter() - began) * 1000
            os.close(null)
        if status:
            raise SystemExit(f"{command}: the process ended with status {status}")
        return took


def stored(home: Path) -> int:
    """Let the worker finish; return how many messages the store holds."""
    command = [sys.executable, "-m", "hypatia_mem", "status", "--json"]
    environ = {**os.environ, "HYPATIA_MEM_HOME": str(home)}
    deadline = time.monotonic() + 300
    while True:
        done = subprocess.run(command, env=environ, cwd=REPOSITORY, check=True, capture_output=True)
        status = json.loads(done.stdout)
        if not status["waiting"] and not status["waiting_records"]:
            break
        if time.monotonic() > deadline:
            raise SystemExit(f"turns still wait: {status}")
        time.sleep(1)
    with open_store(home, write=False) as store:
        return sum(turns for _, turns in store.sessions(limit=1_000_000, include_archived=True))


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--turns", type=int, default=200, help="turns of each session")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two hooks")
    parser.add_argument("--python", default=real_interpreter(), help="the hook's interpreter")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        paths.ensure_home(str(home))
        (home / paths.HOOK_CONF).write_text(
            f"python={sys.executable}\nworker_path={REPOSITORY}\nextract_every=5\n"
        )
        alone = Sessions(home, options.python, options.pause)
        alone.live(1, options.turns, "alone")
        together = Sessions(home, options.python, options.pause)
        together.live(options.sessions, options.turns, "session")
        expected = 2 * options.turns * (options.sessions + 1)
        found = stored(home)
        stop = [sys.executable, "-m", "hypatia_mem", "worker", "stop"]
        environ = {**os.environ, "HYPATIA_MEM_HOME": str(home)}
        subprocess.run(stop, env=environ, cwd=REPOSITORY, check=False, capture_output=True)
    rows: dict[str, float] = {}
    for name, run in (("alone", alone), ("together", together)):
        for what, values in (("hook", run.hooks), ("bare_python", run.bare)):
            rows[f"{what}_{name}_ms_p50"] = round(quantile(values, 0.5), 2)
            rows[f"{what}_{name}_ms_p95"] = round(quantile(values, 0.95), 2)
    for what in ("hook", "bare_python"):
        rows[f"{what}_p95_ratio"] = round(
            rows[f"{what}_together_ms_p95"] / rows[f"{what}_alone_ms_p95"], 2
        )
    for name, value in rows.items():
        print(f"{name:28} {value:8.2f}")
    print(f"messages stored: {found} of {expected}")
    if options.out:
        result = {
            "benchmark": "sessions",
            "sessions": options.sessions,
            "turns": options.turns,
            "pause_s": options.pause,
            "machine": machine(options.python),
            "messages_stored": found,
            "messages_expected": expected,
            "results": rows,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""What the worker's drain costs: one worker process stores N spooled turns.

    python benchmarks/drain.py [--turns 10000] [--runs 3] [--out FILE]

A turn is one message (a prompt or an answer of some 300 characters), 400 to a session. Per turn:
wall and CPU time of the whole process (start, store, index, briefs, snapshot), its largest
resident memory, and how long it held the store's lease each time: that is what others wait.
Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from hook import event, machine, quantile, text  # noqa: E402 - beside this file

from hypatia_mem.capture import paths, spool  # noqa: E402 - the clone, not an installed version


def fill(home: Path, turns: int) -> None:
    """Spool ``turns`` messages as the hook would have, without its ``fsync``."""
    at = time.time_ns() - turns * 1_000_000_000
    for number in range(turns):
        session = f"bench-{number // 400:05d}"
        answer = number % 2
        name, key = ("Stop", "last_assistant_message") if answer else ("UserPromptSubmit", "prompt")
        more = {key: f"{number} {text(300)}", "prompt_id": f"p-{number // 2}"}
        body = json.loads(event(name, session_id=session, **more))
        body.pop("transcript_path")
        when = at + number * 1_000_000_000
        spool.append(str(home), session, json.dumps(body).encode(), at_ns=when)


def drain_here(home: Path, report: Path) -> None:
    """Run one worker in this process and write down how long each lease was held."""
    from hypatia_mem import worker
    from hypatia_mem.store import connection

    held: list[tuple[bool, float]] = []
    real = connection.lease

    @contextmanager
    def timed(home: Path, *, write: bool, deadline: float = 10.0) -> Iterator[None]:
        with real(home, write=write, deadline=deadline):
            started = time.perf_counter()
            yield
            held.append((write, (time.perf_counter() - started) * 1000))

    connection.lease = timed  # type: ignore[assignment]
    code = worker.run(home, once=True)
    report.write_text(json.dumps(held))
    sys.exit(code)


def drained(home: Path, turns: int) -> dict[str, float]:
    """Drain a filled home in a process of its own; return what was measured."""
    from hypatia_mem.store.connection import open_store

    report = home.with_name("held.json")
    command = [sys.executable, __file__, "--child", str(home), str(report)]
    started = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    with open_store(home, write=False) as store:
        stored = store.counts()["messages"]
    if status or stored != turns:
        raise SystemExit(f"the worker ended with status {status} and {stored} of {turns} turns")
    holds = json.loads(report.read_text())
    write = [ms for writes, ms in holds if writes]
    read = [ms for writes, ms in holds if not writes]
    return {
        "us_per_turn": wall / turns * 1e6,
        "cpu_us_per_turn": (usage.ru_utime + usage.ru_stime) / turns * 1e6,
        "wall_s": wall,
        "peak_rss_mib": usage.ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10)),
        "store_mib": (home / "memory.duckdb").stat().st_size / (1 << 20),
        "write_leases": len(write),
        "write_lease_ms_p50": statistics.median(write),
        "write_lease_ms_p95": quantile(write, 0.95),
        "read_lease_ms_p50": statistics.median(read) if read else 0.0,
        "read_lease_ms_p95": quantile(read, 0.95) if read else 0.0,
    }


def bare_start(runs: int = 20) -> float:
    """Return the median wall time of an interpreter that does nothing, in seconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10_000, help="messages to spool")
    parser.add_argument("--runs", type=int, default=3, help="fresh memories to drain")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        drain_here(*options.child)
    found: list[dict[str, float]] = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            paths.ensure_home(str(home))
            fill(home, options.turns)
            found.append(drained(home, options.turns))
    bare = bare_start()
    row = {key: round(statistics.median(one[key] for one in found), 2) for key in found[0]}
    row["ratio_to_bare_start"] = round(row["wall_s"] / bare, 1)
    row["turns_per_bare_start"] = round(bare * 1e6 / row["us_per_turn"], 1)
    print(f"{options.turns} turns, median of {options.runs} runs")
    for name, value in row.items():
        print(f"{name:24} {value:10.2f}")
    if options.out:
        result = {
            "benchmark": "drain",
            "turns": options.turns,
            "runs": options.runs,
            "machine": machine(sys.executable),
            "results": row,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

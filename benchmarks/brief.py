"""What a brief costs with N rules: composing the text, and rendering every brief of a memory.

    python benchmarks/brief.py [--rules 1000] [--runs 50] [--out FILE]

``compose`` is pure and in memory; ``text`` reads the rules from the store first; ``render`` writes
the files that hooks print, for every project and the global one. p50 and p95 in milliseconds. What
a session start costs is measured by ``hook.py``. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from hook import machine, quantile, text  # noqa: E402 - beside this file

from hypatia_mem.capture import paths  # noqa: E402 - the clone, not an installed version
from hypatia_mem.memory import compose  # noqa: E402
from hypatia_mem.model import Author, Channel, Entry, Message, Session  # noqa: E402
from hypatia_mem.store.connection import open_store  # noqa: E402

NOW = datetime(2026, 11, 30, 12)  # noqa: DTZ001 - naive UTC
KINDS = ("rule", "taboo", "memory")


def fill(home: Path, folder: Path, rules: int) -> None:
    """Store ``rules`` rules, taboos and memories, a tenth of them global, and one exchange."""
    author = Author(Channel.CLI_PERSON)
    folder.mkdir()
    with open_store(home, write=True) as store, store.transaction(author, now=NOW) as txn:
        for number in range(rules):
            kind = KINDS[number % 3]
            txn.put_entry(
                Entry(
                    f"{kind}:number-{number}",
                    f"Number {number}: {text(80 + number % 200)}",
                    kind=kind,
                    scopes=("" if number % 10 == 0 else "app",),
                    created_at=NOW + timedelta(seconds=number),
                )
            )
        txn.put_project("app")
        txn.put_root(str(folder), scope="app")
        txn.put_session(Session("s-1", project="app", started_at=NOW, updated_at=NOW))
        said = [
            Message("s-1", "u-1", "user", text(400), NOW),
            Message("s-1", "u-2", "assistant", text(2000), NOW),
        ]
        txn.put_messages("s-1", said, "app")


def times(runs: int, act: Callable[[], object]) -> list[float]:
    """Return the wall time of each of ``runs`` calls in milliseconds, after one to warm up."""
    act()
    found = []
    for _ in range(runs):
        started = time.perf_counter()
        act()
        found.append((time.perf_counter() - started) * 1000)
    return found


def measure(home: Path, runs: int) -> dict[str, list[float]]:
    """Measure the three steps on an open store, and the open itself with the render."""

    def opened() -> None:
        with open_store(home, write=False) as store:
            compose.render_briefs(store, home)

    with open_store(home, write=False) as store:
        entries = store.rules(["app", ""])
        found = {
            "compose": times(runs, lambda: compose.compose("app", entries, None)),
            "text": times(runs, lambda: compose.brief_text(store, "app")),
            "render": times(runs, lambda: compose.render_briefs(store, home)),
        }
    found["open and render"] = times(runs, opened)
    return found


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", type=int, default=1000, help="rules, taboos and memories")
    parser.add_argument("--runs", type=int, default=50, help="calls of each step")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        paths.ensure_home(str(home))
        fill(home, Path(folder) / "app", options.rules)
        found = measure(home, options.runs)
        sizes = [path.stat().st_size for path in (home / "briefs").glob("*.json")]
    print(f"{options.rules} rules; the largest brief has {max(sizes)} bytes")
    print(f"{'':20} {'ms p50':>8} {'p95':>8}")
    rows = []
    for name, values in found.items():
        middle, high = statistics.median(values), quantile(values, 0.95)
        print(f"{name:20} {middle:8.2f} {high:8.2f}")
        rows.append({"step": name, "ms_p50": round(middle, 2), "ms_p95": round(high, 2)})
    if options.out:
        result = {
            "benchmark": "brief",
            "rules": options.rules,
            "runs": options.runs,
            "largest_brief_bytes": max(sizes),
            "machine": machine(sys.executable),
            "results": rows,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""What a person feels: turns of the real client with our hooks, with ``/bin/true``, with none.

Offline, in namespaces of its own (root, iproute2 and the client are needed: ``tests/client``).
Conversations over stream-json against an instant stub, interleaved; the difference of medians is
what the hooks add to a turn, worker included. ``python benchmarks/client.py --binary CLAUDE
--product VENV [--out FILE]``.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
ROUNDS, TURNS = 4, 8


class Clocked:
    """Messages that note when the client comes for the next one."""

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages
        self.times: list[float] = []

    def __iter__(self) -> Iterator[str]:
        for message in self.messages:
            self.times.append(time.perf_counter())
            yield message
        self.times.append(time.perf_counter())

    def turns(self) -> list[float]:
        """Return seconds of every turn but the first, which starts the client."""
        pairs = zip(self.times[1:], self.times[2:], strict=False)
        return [after - before for before, after in pairs]


def inside(binary: Path, product: Path, scratch: Path) -> None:
    """Measure, in the namespaces already."""
    from tests.client.harness import MOUNT, Desk, enter

    enter(scratch)
    desk = Desk(binary, product, "2.1.332" if "332" in str(binary) else "2.1.197")
    folder = desk.repository("bench")
    desk.memory("install")
    skill = desk.settings.parent / "skills" / "hypatia-memory"
    aside = desk.settings.parent / "aside"
    plain = desk.settings.read_text()
    true = {"hooks": [{"type": "command", "command": "/bin/true", "args": []}]}
    with_true = {**json.loads(plain), "hooks": {event: [true] for event in EVENTS}}
    found: dict[str, list[float]] = {"none": [], "true": [], "ours": []}
    for number in range(ROUNDS):
        for name in found:
            if name == "ours" and aside.exists():
                aside.rename(skill)
            elif name != "ours" and skill.exists():
                skill.rename(aside)
            desk.settings.write_text(json.dumps(with_true) if name == "true" else plain)
            said = Clocked([f"round {number} turn {turn}" for turn in range(TURNS)])
            desk.talk(said, cwd=folder)  # type: ignore[arg-type]
            found[name] += said.turns()
            time.sleep(1)
    (MOUNT / "out" / "times.json").write_text(json.dumps(found))


def main() -> int:
    """Enter the namespaces, print the table, store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--product", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.binary, options.product, options.inside)
        return 0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "dev").mkdir()
        command = ["unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"]
        command += ["bash", "-c", '"$@"; exit $?', "first"]
        command += [sys.executable, str(Path(__file__).resolve()), "--inside", name]
        command += ["--binary", str(options.binary), "--product", str(options.product)]
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        subprocess.run(
            command, check=True, cwd="/", env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        )
        times = json.loads((scratch / "times.json").read_text())
    rows = {
        kind: {
            "turns": len(seconds),
            "median_ms": round(statistics.median(seconds) * 1000, 1),
            "least_ms": round(min(seconds) * 1000, 1),
        }
        for kind, seconds in times.items()
    }
    for kind, row in rows.items():
        print(f"{kind:6} {row['turns']:3} turns  median {row['median_ms']:7.1f} ms", end="")
        print(f"  least {row['least_ms']:7.1f} ms")
    added = rows["ours"]["median_ms"] - rows["true"]["median_ms"]
    print(f"our two hooks add {added:.1f} ms to a turn, against two of /bin/true")
    if options.out:
        client = next(p for p in options.binary.parts if p.startswith("2."))
        held = {"client": client, "processors": os.cpu_count(), "cases": rows, "added_ms": added}
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(json.dumps(held, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

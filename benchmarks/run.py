"""Run every benchmark one after the other; ``--short`` for a sign of life, else stored results.

``python benchmarks/run.py [--short]`` prints each table; without ``--short`` the results go to
``benchmarks/results/``. Nothing here passes or fails: numbers are for people.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SHORT = {
    "hook.py": ["--runs", "8"],
    "drain.py": ["--turns", "400"],
    "sessions.py": ["--turns", "4", "--pause", "0.2"],
    "brief.py": ["--rules", "50"],
    "query.py": ["--size", "2000", "--runs", "3"],
    "gateway.py": ["--runs", "40", "--bulk", "2000"],
}


def main() -> int:
    """Run them all; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    for name, arguments in SHORT.items():
        results = HERE / "results" / name.replace(".py", ".json")
        more = arguments if short else ["--out", str(results)]
        print(f"--- {name}", flush=True)
        done = subprocess.run([sys.executable, str(HERE / name), *more], check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

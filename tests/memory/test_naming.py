"""A name says the same whatever the interpreter's seed of hashes is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
from hypatia_mem.memory.summarise import naming
said = ["The root cause is that refresh_token() returns None", "src/auth/session.py uses session.get"]
print(naming.suggest(said, {"": 3.0}, "2026-11-30"))
"""


def test_a_name_does_not_depend_on_the_process():
    names = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(5)
    }  # fmt: skip

    assert len(names) == 1

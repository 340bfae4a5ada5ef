"""The program as a user has it: the wheel alone in a fresh virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path) -> Path:
    """Build the wheel, install it below ``folder``; return the virtual environment.

    ``HYPATIA_TEST_PRODUCT`` names one to take instead (quick runs while developing). Raises
    CalledProcessError with pip's own words.
    """
    given = os.environ.get("HYPATIA_TEST_PRODUCT")
    if given:
        return Path(given)
    wheels = folder / "wheels"
    venv = folder / "product"
    python = venv / "bin" / "python"
    _run(sys.executable, "-m", "build", "--wheel", "--outdir", str(wheels), str(ROOT))
    _run(sys.executable, "-m", "venv", str(venv))
    [wheel] = wheels.glob("*.whl")
    quiet = ("--quiet", "--disable-pip-version-check")
    _run(str(python), "-m", "pip", "install", *quiet, str(wheel))
    _run(str(python), "-m", "compileall", "-q", str(venv / "lib"))
    return venv


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

"""The language's suites once more, against the wheel: from outside the clone, as a user has it.

The tests beside this one import the clone. What a user runs is the wheel, with the files that came
into it; so the conformance suite, the published command lines and a sample of the properties are
copied away and run there by the wheel's own Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system import product

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
COPIED = (
    "conftest.py",
    "conformance",
    "properties/jse_worlds.py",
    "properties/test_jse_properties.py",
)
CONFIG = """\
[pytest]
addopts = --strict-markers --import-mode=importlib -p no:cacheprovider -m "not slow"
pythonpath = .
filterwarnings =
    error
    ignore:Generating overly large repr
markers =
    slow: campaigns of minutes
    timeout: seconds that a campaign may take
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """Return the Python of an environment with the wheel, and pytest and hypothesis beside it."""
    venv = product.build(tmp_path_factory.mktemp("wheel"))
    found = venv / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([found, "-m", "pip", "install", *quiet, "pytest", "hypothesis"], check=True)
    return found


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> Path:
    """Return a folder that holds the suites and nothing else of the clone."""
    folder = tmp_path_factory.mktemp("outside")
    for name in COPIED:
        target = folder / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TESTS / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(TESTS / name, target, ignore=ignored)
        else:
            shutil.copyfile(TESTS / name, target)
    (folder / "pytest.ini").write_text(CONFIG)
    return folder


def run(python: Path, folder: Path, *arguments: str) -> str:
    """Run something there, with nothing of the clone in reach; return what it printed."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HYPATIA"))
    }
    done = subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def passed(said: str) -> int:
    found = re.search(r"(\d+) passed", said)
    assert found, said[-2000:]
    assert "skipped" not in said, said[-2000:]
    return int(found[1])


def test_it_is_the_wheel_that_is_tested(python, outside):
    """The control: nothing of the clone is imported there."""
    said = run(python, outside, "-c", "import hypatia_mem; print(hypatia_mem.__file__)")
    where = Path(said.strip())
    assert where.is_relative_to(python.parent.parent)
    assert not where.is_relative_to(ROOT)


def test_every_conformance_case_holds_on_the_wheel(python, outside):
    """Every operator, every documented example, every dropped filter, injection and trap."""
    assert passed(run(python, outside, "-m", "pytest", "-q", "tests/conformance")) > 1_500


def test_a_sample_of_the_properties_holds_on_the_wheel(python, outside):
    """Generated expressions: rows by SQL are the matcher's, and pages are a partition of them."""
    assert passed(run(python, outside, "-m", "pytest", "-q", "tests/properties")) >= 1


def test_a_wrong_wheel_would_fail(python, outside):
    """The control: with one operator of it turned round, the suite does not pass."""
    broken = outside / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "from hypatia_mem.jse import sql\nsql.SIGNS['$gt'] = '<'\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(broken)}
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-x", "tests/conformance/test_conformance.py", "-k", "gt"],
        cwd=outside,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-2000:]
    assert "1 failed" in done.stdout

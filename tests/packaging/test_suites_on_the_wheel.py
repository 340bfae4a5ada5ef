"""What must hold, against the wheel: from outside the clone, as a user has it.

The tests beside this one import the clone. What a user runs is the wheel, with the files that came
into it; so the conformance suite, the published command lines, the survival matrix and a sample of
the properties are copied away and run there by the wheel's own Python. The campaigns of
``tests/system`` (secrets, sessions, kills, the rubric's probes) have a wheel of their own and nothing
of the clone in reach.
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
    "disk.py",
    "conformance",
    "contracts/survival.md",
    "contracts/survival_kit.py",
    "contracts/test_survival.py",
    "memory/cascade_kit.py",
    "memory/test_cascade.py",
    "memory/test_cascade_killed.py",
    "properties/jse_worlds.py",
    "properties/test_all_verbs.py",
    "properties/test_jse_properties.py",
    "properties/test_sources.py",
    "properties/verbs_world.py",
    "store/conftest.py",
    "store/likeness",
    "store/test_likeness.py",
    "store/test_store_campaigns.py",
    "system/machine.py",
)
EVERY_BOUNDARY = {"HYPATIA_TEST_POINTS": "1000"}
A_SAMPLE = {"HYPATIA_TEST_SCALE": "0.2"}
# What is shown of the wheel: in which files, which of their tests, how, and how many at least.
CAMPAIGNS = {
    "killed, without room, eight at once": (
        ("contracts/test_survival.py", "store/test_store_campaigns.py"),
        "not changes_killed and not writers_killed",
        EVERY_BOUNDARY,
        85,
    ),
    "any sequence of verbs": (
        ("properties/test_all_verbs.py", "properties/test_sources.py"),
        "",
        A_SAMPLE,
        10,
    ),
    "what is forgotten and comes back": (("store/test_likeness.py",), "", {}, 20),
    "the cascade, killed": (
        ("memory/test_cascade.py", "memory/test_cascade_killed.py"),
        "killed or sixteen",
        {},
        4,
    ),
}
needs_root = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="mounts a small file system: needs root"
)
NOTED_LATER = """\
from hypatia_mem.store.gateway import Transaction
finish = Transaction.finish
def later(self):
    self.store.connection.execute("COMMIT")
    self.store.connection.execute("BEGIN")
    finish(self)
Transaction.finish = later
"""
CONFIG = """\
[pytest]
addopts = --strict-markers --import-mode=importlib -p no:cacheprovider -m "not slow"
pythonpath = .
filterwarnings =
    error
    ignore:Generating overly large repr
markers =
    deep: costs seconds
    slow: campaigns of minutes
    deep: cost seconds
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


def ended(
    python: Path, folder: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run something there, with nothing of the clone in reach."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HYPATIA"))
    }
    return subprocess.run(
        [python, *arguments],
        cwd=folder,
        env={**kept, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def run(python: Path, folder: Path, *arguments: str, **environ: str) -> str:
    """Run something there that has to go well; return what it printed."""
    done = ended(python, folder, *arguments, **environ)
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


@needs_root
@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_campaign_holds_on_the_wheel(python, outside, campaign):
    files, chosen, environ, least = CAMPAIGNS[campaign]
    suites = [f"tests/{file}" for file in files]
    how = ("-m", "pytest", "-q", "-m", "", *suites, "-k", chosen)
    assert passed(run(python, outside, *how, **environ)) >= least


@pytest.mark.parametrize(
    ("wrong", "suite", "chosen"),
    [
        (
            "from hypatia_mem.jse import sql\nsql.SIGNS['$gt'] = '<'\n",
            "conformance/test_conformance.py",
            "gt",
        ),
        (
            "from hypatia_mem.store.likeness import Index\nIndex.near = lambda *args: None\n",
            "store/test_likeness.py",
            "twenty",
        ),
        (NOTED_LATER, "contracts/test_survival.py", "boundaries and pin"),
    ],
    ids=["an operator", "a likeness", "a transaction"],
)
def test_a_wrong_wheel_would_fail(python, outside, tmp_path, wrong, suite, chosen):
    """The control: with one thing of it turned round, the suite does not pass."""
    (tmp_path / "sitecustomize.py").write_text(wrong)
    how = ("-m", "pytest", "-q", "-x", "-m", "", f"tests/{suite}", "-k", chosen)
    done = ended(python, outside, *how, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1, done.stdout[-2000:]
    assert "1 failed" in done.stdout

"""Erasing under SIGKILL, in a process of its own: nothing half, nothing left, nothing else lost.

Once at every so-many-th change of a file that an undisturbed erasing makes, and once after times
drawn at random. What comes next is in turn the same command with --resume, the next worker, or the
next command; some of these are killed too.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.memory import erase
from hypatia_mem.memory.erasing import places
from hypatia_mem.store.connection import open_store
from tests.memory import test_erase as made

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).parents[2]
POINTS = 24  # of some hundred changes of files
TIMES = 16
SAID = ("message", "knowledge", "rule", "taboo", "memory")  # the worker derives other kinds
DOING = """
import os, signal, sys
from datetime import datetime
from pathlib import Path

home, deadly, resume = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "resume"
count = 0

def counting(name):
    real = getattr(os, name)
    def call(*arguments, **options):
        global count
        count += 1
        if count == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    setattr(os, name, call)

for name in ("replace", "rename", "unlink", "fsync", "rmdir", "ftruncate", "mkdir"):
    counting(name)

from hypatia_mem.memory import erase
from tests.memory import test_erase as made

now = datetime.fromisoformat(sys.argv[4])
if resume:
    report = erase.resume(home, settings=made.CONFIG, now=now)
else:
    plan = erase.plan_erase(home, made.RULE, scope="app", also=True)
    report = erase.erase(home, plan, settings=made.CONFIG, author=made.PERSON, now=now)
print(count, "none" if report is None else report.clean)
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> made.World:
    world = made.World(tmp_path_factory.mktemp("killed") / "world")
    made._fill(world)
    return world


@pytest.fixture(scope="module")
def undisturbed(filled: made.World, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """How many changes of files an erasing makes, how long it takes, and what is there then."""
    world = filled.copy(tmp_path_factory.mktemp("undisturbed") / "world")
    began = time.monotonic()
    said = _erase(world).split()
    assert said[1] == "True"
    return int(said[0]), time.monotonic() - began, _rest(world)


def _erase(world: made.World, *, at: int = 0, after: float = 0.0, resume: bool = False) -> str:
    """Erase in a process of its own; kill it at a change of a file, or after so many seconds."""
    with subprocess.Popen(
        [sys.executable, "-c", DOING, str(world.home), str(at), "resume" if resume else "",
         world.at().isoformat()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY,
    ) as process:  # fmt: skip
        try:
            said, wrong = process.communicate(timeout=after or 600)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            said, wrong = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), wrong
    return said


def _rest(world: made.World) -> dict[str, object]:
    """Return everything that was not to be erased: entries, statements, messages, tombstones."""
    with open_store(world.home, write=False) as store:
        assert store.verify_ledger() is None
        entries = store.run("SELECT name, content, kind, tags, scopes FROM entry ORDER BY name")
        own = [row for row in entries if row["kind"] in SAID and "work-unit" not in row["tags"]]
        stones = store.run("SELECT DISTINCT digest, scope FROM tombstone ORDER BY 1, 2")
        messages = store.run('SELECT uuid, role, "at", parts FROM message ORDER BY turn')
        links = store.run("SELECT subject, object FROM statement WHERE predicate = 'summary'")
        known = {row["name"] for row in entries}
        ends = {row["subject"] for row in links} | {row["object"] for row in links}
    assert ends <= known  # no link into nothing
    return {
        "entries": own,
        "stones": stones,
        "messages": messages,
        "summed": bool(links),
        "kept": sorted(path.name for path in (world.home / "archive").rglob("*")),
    }


def _usable(world: made.World) -> None:
    """Whatever happened: it opens, and what was not meant is there."""
    with open_store(world.home, write=False) as store:
        assert store.entry("broker").content == "the broker listens on port 4711"
        assert store.entry("notice") is not None
        assert store.entry("msg-s-1-1") is not None
        assert store.verify_ledger() is None


def _go_on(world: made.World, how: int) -> None:
    """Do what comes next: finish it, let the worker do so, or ask for it again."""
    if erase.pending(world.home) is None:
        if world.holding():  # not ordered yet, or done to the last
            _erase(world)
    elif how % 3 == 0:
        _erase(world, resume=True)
    elif how % 3 == 1:
        worker.run(world.home, once=True)
    else:
        _erase(world, at=5 + how, resume=True)  # killed once more
        _usable(world)
        _erase(world, resume=True)


def _finished(world: made.World, undisturbed: tuple) -> None:
    assert erase.pending(world.home) is None
    assert not (world.home / places.JOB).exists()
    assert world.holding() == set()
    left = [path.name for path in world.home.glob(".*")]
    assert not [name for name in left if name.startswith((".proof", ".revising", ".erasing"))]
    now, then = _rest(world), undisturbed[2]
    for what in then:
        assert now[what] == then[what], what


@pytest.mark.parametrize("number", range(POINTS))
def test_killed_at_a_change_of_a_file(
    filled: made.World, undisturbed: tuple, tmp_path: Path, number: int
) -> None:
    count = undisturbed[0]
    at = 1 + number * (count - 1) // (POINTS - 1)
    world = filled.copy(tmp_path / "own")
    said = _erase(world, at=at)
    assert not said or at == count
    _usable(world)
    _go_on(world, number)
    _finished(world, undisturbed)
    shutil.rmtree(tmp_path / "own")


@pytest.mark.parametrize("seed", range(TIMES))
def test_killed_at_any_time(
    filled: made.World, undisturbed: tuple, tmp_path: Path, seed: int
) -> None:
    drawn = random.Random(seed)
    world = filled.copy(tmp_path / "own")
    _erase(world, after=0.3 + drawn.random() * undisturbed[1])
    _usable(world)
    _go_on(world, seed)
    _finished(world, undisturbed)
    shutil.rmtree(tmp_path / "own")

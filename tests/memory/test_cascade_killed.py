"""Killed at every step, the cascade ends as if it had not been."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem.memory.cascade import running as cascade
from tests.memory.cascade_kit import (
    assert_whole,
    counts,
    fill,
    links,
    run,
    settings,
    talk,
)

CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {repository!r})
from tests.memory.cascade_kit import run, settings
from hypatia_mem.memory.cascade import running as cascade, storing
from hypatia_mem.store import gateway, summaries

point, number = sys.argv[2], int(sys.argv[3])
calls = 0

def maybe():
    global calls
    calls += 1
    if calls == number:
        os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        maybe()
        return real(*args, **kwargs)
    setattr(owner, name, wrapped)

def after(owner, name):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        result = real(*args, **kwargs)
        maybe()
        return result
    setattr(owner, name, wrapped)

how, owner, name = {{
    "read": (after, summaries, "contents"),
    "condensed": (after, cascade._Pass, "_condensed"),
    "entry": (after, gateway.Transaction, "put_entry"),
    "links": (after, summaries, "put"),
    "notes": (after, storing, "_settle"),
    "ledger": (after, gateway.Transaction, "finish"),
    "stored": (after, cascade._Pass, "_store"),
    "never": (after, cascade, "plan_nothing"),
}}[point] if point != "never" else (None, None, None)
if how:
    how(owner, name)
run(Path(sys.argv[1]), settings(cascade_batch=4, cascade_max_tokens=200, summary_window=50))
"""


def killed_at(home, point, number):
    repository = str(Path(__file__).parents[2])
    code = CHILD.format(repository=repository)
    command = [sys.executable, "-c", code, str(home), point, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_at_every_step_it_ends_as_if_it_had_not_been(home):
    """kill -9 after reading, condensing, each write, before the commit, after it: again and again.

    The trigger's batch is split in two, so that the second part must survive the first's death.
    """
    fill(home, talk(32))
    points = ("read", "condensed", "entry", "links", "notes", "ledger", "stored")
    kills = 0
    for number in (1, 2, 3):
        for point in points:
            kills += killed_at(home, point, number)
            assert_whole(home)
    while killed_at(home, "stored", 5):
        assert_whole(home)
    assert kills >= len(points)
    assert not killed_at(home, "never", 0)
    assert_whole(home)
    assert counts(home, 4) == [32, 8, 2, 0]
    assert len({item for _, item in links(home) if item.startswith("msg-")}) == 32


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_between_two_parts_the_second_is_still_made(home):
    """In one process: the first part is committed, then the pass dies."""
    fill(home, talk(2))
    config = settings(cascade_max_tokens=200, summary_window=50)

    class Died(Exception):
        pass

    real = cascade._Pass._store
    calls = []

    def once(*args):
        if calls:
            raise Died
        calls.append(1)
        return real(*args)

    cascade._Pass._store = once
    try:
        with pytest.raises(Died):
            run(home, config)
    finally:
        cascade._Pass._store = real
    assert len(links(home)) == 1
    assert len(run(home, config).made) == 1
    assert len(links(home)) == 2
    assert_whole(home)

"""Killed at every step, extraction by a model ends as if it had not been: each piece once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.store import lessons
from hypatia_mem.store.connection import open_store
from tests.memory.corpus import conversations
from tests.memory.model_server import ModelServer, Step
from tests.memory.test_extract import NOW, say
from tests.memory.test_extract_model import config, run

CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {repository!r})
from hypatia_mem.memory.extract import asking, running
from hypatia_mem.store import gateway
from tests.memory.test_extract_model import config, run

point, number, calls = sys.argv[2], int(sys.argv[3]), 0
owner, name = {{
    "judged": (asking.Judge, "judge"),
    "entry": (gateway.Transaction, "put_entry"),
    "links": (gateway.Transaction, "put_statement"),
    "cursor": (gateway.Transaction, "set_cursor"),
    "ledger": (gateway.Transaction, "finish"),
    "noted": (asking.Judge, "note"),
    "kept": (running._Pass, "_keep"),
}}[point]
real = getattr(owner, name)

def wrapped(*args, **kwargs):
    global calls
    result = real(*args, **kwargs)
    calls += 1
    if calls == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, wrapped)

class Model:
    url = sys.argv[4]

run(Path(sys.argv[1]), Model, hours=100)
"""
POINTS = ("judged", "entry", "links", "cursor", "ledger", "noted", "kept")


def killed_at(home, point, number, model):
    code = CHILD.format(repository=str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", code, str(home), point, str(number), model.url],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "ANTHROPIC_API_KEY": "sk-ant-for-tests"},
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def spans(home):
    """Return the first and last turn of each unit, by session; every unit whole."""
    with open_store(home, write=False) as store:
        found = lessons.known_units(store, ["app"])
        for one in found:
            links = {(link.predicate, link.object) for link in store.statements_of(one.name)}
            assert ("is_a", "work-unit") in links
        return sorted(lessons.turns_of(store, [one.name for one in found]).values())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_at_every_step_each_piece_is_kept_once(home, tmp_path, monkeypatch):
    """kill -9 after each answer, each write, before the commit, after it: again and again."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-for-tests")
    model = ModelServer().start()
    other = tmp_path / "never-killed"
    paths.ensure_home(str(other))
    chosen = [one for one in conversations() if len(one.topics) > 1][:4]
    try:
        model.says(Step("no form at all"))
        for number, one in enumerate(chosen):
            said = [(each.role, each.text) for each in one.said]
            for where in (home, other):
                say(where, said, session=f"s{number}", at=NOW + timedelta(days=number / 2))
        run(other, model, hours=200, settings=config(model))
        kills = 0
        for number in (1, 2):
            for point in POINTS:
                kills += killed_at(home, point, number, model)
                made = spans(home)
                assert len(made) == len(set(made))
        run(home, model, hours=200, settings=config(model))
        assert kills >= len(POINTS)
        assert spans(home) == spans(other)
        assert len(spans(home)) > len(chosen)
        assert run(home, model, hours=201, settings=config(model)).kept == ()
    finally:
        model.stop()

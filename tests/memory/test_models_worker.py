"""The worker with a model: turns are stored while it is silent, and it goes when it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.config import set_value
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import summaries, talk
from tests.memory.model_server import ModelServer, Step

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)
GOOD = "NAME: retry queue report\n- It was seen before and nobody knew why."


@pytest.fixture
def model(home):
    server = ModelServer().start()
    for key, value in {
        "summary_by": "anthropic", "anthropic_url": server.url, "cascade_max_tokens": "100",
        "cascade_keep_last": "0", "worker_idle_seconds": "0", "model_timeout_seconds": "60",
    }.items():  # fmt: skip
        set_value(home, key, value)
    yield server
    server.stop()


@pytest.fixture
def worker(home):
    running = []

    def begin(*more):
        argv = [sys.executable, "-m", "hypatia_mem.worker", "--home", str(home), *more]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "ANTHROPIC_API_KEY": "sk-mine"}
        running.append(subprocess.Popen(argv, env=env, cwd="/"))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


def said(home, session, text):
    event = {
        "session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": text,
        "prompt_id": text[:20], "cwd": str(home.parent),
    }  # fmt: skip
    at = time.time_ns() - 60 * 10**9
    spool.append(str(home), session, json.dumps(event).encode(), at_ns=at)


def messages(home):
    with open_store(home, write=False) as store:
        return store.counts()["messages"]


def until(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.deep
def test_turns_are_stored_while_the_model_is_silent_and_the_worker_goes_when_told(
    home, model, worker
):
    model.says(Step(silent=True))
    said(home, "s-1", talk(1)[0])
    process = worker()
    until(lambda: model.asked)
    said(home, "s-2", "a word in between")
    until(lambda: messages(home) == 2)
    assert process.poll() is None, "it still waits for the model"
    process.terminate()
    assert process.wait(15) == 0
    assert summaries(home) == []


@pytest.mark.deep
def test_the_worker_condenses_by_itself_and_its_log_holds_no_words(home, model, worker):
    model.says(Step(status=429), Step(GOOD))
    text = talk(1)[0]
    said(home, "s-1", text)
    assert worker().wait(120) == 0
    assert summaries(home) == [], "it does not stay to wait for the end of a pause"
    set_value(home, "model_day_calls", "77")  # with another limit it is tried at once
    assert worker().wait(120) == 0
    (made,) = summaries(home)
    assert made.name == "retry-queue-report"
    log = (home / "hypatia-mem.log").read_text()
    assert "summaries wait: the API asks to wait (429)" in log
    assert "Cascade: +1 summary 1" in log
    for words in ("retry queue loses", "nobody knew", "sk-mine"):
        assert words not in log

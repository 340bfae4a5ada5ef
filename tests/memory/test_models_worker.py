"""The worker with a model: turns are stored while it is silent, and it goes when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hypatia_mem.capture import paths, spool
from hypatia_mem.config import load_settings, set_value, write_hook_conf
from hypatia_mem.store.connection import open_store
from hypatia_mem.worker import state
from tests.capture import hook_kit
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


def test_a_lie_reaches_no_rule_and_no_brief_and_is_marked_wherever_it_is_kept(home, model, worker):
    """Whoever is asked says it: the cascade, the judge of finished work, the teller of episodes."""
    lie = "Never deploy on fridays, because Kafka has no rollback."
    model.says(Step(f"{GOOD}\n- {lie}"))
    for n, text in enumerate(talk(3)):
        said(home, f"s-{n}", f"remember: the port of module_{n} is {4700 + n}. {text}")
    assert worker().wait(120) == 0
    assert summaries(home)
    with open_store(home, write=False) as store:
        rows = store.run("SELECT content, trust FROM entry WHERE contains(content, 'fridays')")
    assert rows, "it is somewhere, or this shows nothing"
    for row in rows:
        lines = [line for line in row["content"].splitlines() if "fridays" in line]
        assert all(line.endswith("[inferred]") for line in lines) or row["trust"] == "candidate"
    briefs = [path.read_text("utf-8") for path in (home / "briefs").iterdir() if path.is_file()]
    assert any("4700" in one for one in briefs), "and what was said is told"
    assert not any("fridays" in one for one in briefs)


@pytest.mark.deep
def test_no_prompt_waits_for_the_model_and_its_answer_comes_all_the_same(home, model, tmp_path):
    """A full context: the hook starts the worker, the model sleeps, the person goes on typing."""
    awake = threading.Event()
    model.meanwhile = lambda: awake.wait(50)
    model.says(GOOD)
    write_hook_conf(home, load_settings(home), python=sys.executable, worker_path=str(ROOT))
    quiet = tmp_path / "quiet"
    paths.ensure_home(str(quiet))
    said(home, "s-1", talk(1)[0])
    prompt(home, "the first prompt")
    try:
        until(lambda: model.asked)
        own, beside = [], []
        for n in range(9):  # by turns, so that what else the machine does meets both
            own.append(prompt(quiet, f"prompt {n}"))
            beside.append(prompt(home, f"prompt {n}"))
        assert summaries(home) == [], "the model still sleeps"
        assert len(model.asked) == 1
        assert min(beside) < 2 * min(own)
        assert sorted(beside)[4] < 3 * sorted(own)[4]
        assert not list(quiet.glob("worker*")), "there nobody is at work"
    finally:
        awake.set()
    try:
        until(lambda: summaries(home))
        assert [one.name for one in summaries(home)] == ["retry-queue-report"]
    finally:  # it would stay for what the hook caught and no transcript shows yet
        os.kill(state(home).pid, signal.SIGTERM)
        until(lambda: not state(home).running)


def prompt(home, text):
    """Type a prompt through the real hook; return the seconds that it took."""
    env = {**os.environ, "HYPATIA_MEM_HOME": str(home), "ANTHROPIC_API_KEY": "sk-mine"}
    began = time.monotonic()
    done = hook_kit.run(hook_kit.event(prompt=text, cwd=str(home.parent)), env=env)
    took = time.monotonic() - began
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert any(text.encode() in file.read_bytes() for file in (home / "spool").rglob("*.jsonl"))
    return took

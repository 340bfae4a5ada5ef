"""The worker's life, with real processes: one at a time, no lost wake-up, none that hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import hook, spool
from hypatia_mem.store.connection import open_store

ROOT = Path(__file__).parent.parent


def said(home: Path, session: str, text: str, age: float = 60.0) -> None:
    """Spool one prompt, ``age`` seconds old so that no grace applies."""
    event = {
        "session_id": session,
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
        "prompt_id": text,
        "cwd": str(home.parent),
    }
    at = time.time_ns() - int(age * 1e9)
    spool.append(str(home), session, json.dumps(event).encode(), at_ns=at)


def stored(home: Path) -> int:
    with open_store(home, write=False) as store:
        return store.counts()["messages"]


def wait_for(condition, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def start(home: Path):
    """Start workers as the hook does and see to it that none outlives the test."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*more: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "hypatia_mem.worker", "--home", str(home), *more]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(argv, env=env, cwd="/")
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


def settings(home: Path, **values: object) -> None:
    lines = "".join(f"{key} = {value}\n" for key, value in values.items())
    (home / "config.toml").write_text(lines, "utf-8")


@pytest.mark.deep
def test_works_and_goes(home: Path, start) -> None:
    """Nothing left to do: the process ends and says so by its exit code."""
    settings(home, worker_idle_seconds=0)
    said(home, "s-1", "hello")
    assert start().wait(30) == 0
    assert stored(home) == 1
    assert not worker.state(home).running


@pytest.mark.deep
def test_a_worker_that_finds_only_what_was_stored_before_goes_too(home: Path, start) -> None:
    """The spool of earlier sessions is kept for days; it is no work."""
    settings(home, worker_idle_seconds=0)
    said(home, "s-1", "hello")
    assert start().wait(60) == 0
    assert start().wait(60) == 0
    assert stored(home) == 1


def test_second_worker_leaves_at_once(home: Path, start) -> None:
    """Two never work side by side."""
    settings(home, worker_idle_seconds=30)
    first = start()
    assert wait_for(lambda: worker.state(home).running)
    assert worker.state(home).pid == first.pid
    began = time.monotonic()
    assert start().wait(15) == 0
    assert time.monotonic() - began < 10
    assert first.poll() is None


@pytest.mark.deep
def test_lingering_worker_takes_what_comes(home: Path, start) -> None:
    """A prompt that arrives while the worker idles is stored without another start."""
    settings(home, worker_idle_seconds=30)
    start()
    assert wait_for(lambda: worker.state(home).running)
    said(home, "s-1", "hello")
    assert wait_for(lambda: stored(home) == 1)


@pytest.mark.deep
def test_sigterm_ends_it_cleanly(home: Path, start) -> None:
    """The batch at hand is finished, the lock is free, the next worker goes on."""
    settings(home, worker_idle_seconds=30)
    process = start()
    assert wait_for(lambda: worker.state(home).running)
    said(home, "s-1", "hello")
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0
    settings(home, worker_idle_seconds=0)
    assert start().wait(30) == 0
    assert stored(home) == 1


@pytest.mark.deep
def test_killed_worker_leaves_no_lock(home: Path, start) -> None:
    """``kill -9``: the kernel lets go, the next one begins at once."""
    settings(home, worker_idle_seconds=30)
    process = start()
    assert wait_for(lambda: worker.state(home).running)
    process.kill()
    process.wait()
    assert not worker.state(home).running
    said(home, "s-1", "hello")
    settings(home, worker_idle_seconds=0)
    assert start().wait(30) == 0
    assert stored(home) == 1


@pytest.mark.deep
def test_stopped_worker_is_replaced(home: Path, start, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGSTOP: the holder wakes by SIGCONT and lives, or is killed and replaced."""
    settings(home, worker_idle_seconds=30)
    process = start()
    assert wait_for(lambda: worker.state(home).running)
    process.send_signal(signal.SIGSTOP)
    said(home, "s-1", "hello")
    old = time.time() - 600
    os.utime(home / "worker.lock", (old, old))
    assert worker.state(home).stalled
    assert start("--takeover").wait(30) == 0, "the woken holder shows life: the successor leaves"
    assert process.poll() is None
    assert wait_for(lambda: stored(home) == 1)


@pytest.mark.deep
def test_dead_still_worker_is_killed(home: Path, start) -> None:
    """A holder that cannot be woken is killed; its successor does the work."""
    settings(home, worker_idle_seconds=0)
    code = (
        "import os, sys, time\n"
        "from hypatia_mem.worker import Lock\n"
        "from pathlib import Path\n"
        "lock = Lock(Path(sys.argv[1])); assert lock.acquire(); print('held', flush=True)\n"
        "time.sleep(120)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    hung = subprocess.Popen(
        [sys.executable, "-c", code, str(home)], env=env, stdout=subprocess.PIPE
    )
    assert hung.stdout is not None
    hung.stdout.readline()
    said(home, "s-1", "hello")
    assert start("--takeover").wait(40) == 0
    assert hung.wait(5) == -signal.SIGKILL
    hung.stdout.close()
    assert stored(home) == 1


@pytest.mark.deep
def test_clock_that_jumped_kills_nobody(home: Path, start) -> None:
    """A heartbeat from the future or the past is no proof of death: the holder goes on beating."""
    settings(home, worker_idle_seconds=30)
    process = start()
    assert wait_for(lambda: worker.state(home).running)
    for jump in (-7200, 7200):
        moment = time.time() + jump
        os.utime(home / "worker.lock", (moment, moment))
        assert start("--takeover").wait(15) == 0
        assert process.poll() is None


def test_hook_starts_one_worker_and_only_one(home: Path) -> None:
    """Ten hooks at once: one worker, everything stored, no process left behind."""
    settings(home, worker_idle_seconds=0)
    (home / "hook.conf").write_text(f"python={sys.executable}\nworker_path={ROOT}\n", "utf-8")
    for number in range(10):
        said(home, f"s-{number}", "hello")
        hook.start_worker(str(home), dict(os.environ))
    assert wait_for(lambda: stored(home) == 10)
    assert wait_for(lambda: not worker.state(home).running)


def test_worker_does_not_bring_back_a_removed_home(tmp_path: Path, start) -> None:
    """A purge is not undone by a worker that the last hook started."""
    gone = tmp_path / "gone"
    assert worker.run(gone) == 0
    assert not gone.exists()


def test_newer_store_is_left_alone(home: Path) -> None:
    """Two versions at once: the older one says so in the log and changes nothing."""
    with open_store(home, write=True) as store:
        store.run("INSERT INTO migration VALUES ('m999_from_the_future', now()::TIMESTAMP)")
    said(home, "s-1", "hello")
    assert worker.run(home, once=True) == 1
    assert "newer hypatia-mem" in (home / "hypatia-mem.log").read_text("utf-8")
    assert [s.session for s in spool.segments(str(home))] == ["s-1"], "the turn stays spooled"


@pytest.mark.deep
def test_damaged_store_is_set_aside_and_everything_drained_again(home: Path) -> None:
    """The session never notices; the evidence stays; doctor has a line to show."""
    said(home, "s-1", "hello")
    assert worker.run(home, once=True) == 0
    (home / "memory.duckdb").write_bytes(b"garbage" * 9999)
    said(home, "s-1", "again")
    assert worker.run(home, once=True) == 0
    assert stored(home) == 2
    assert list((home / "quarantine").rglob("memory.duckdb"))
    assert "the store is damaged" in (home / "hypatia-mem.log").read_text("utf-8")


@pytest.mark.deep
def test_log_holds_no_words(home: Path) -> None:
    """Whatever goes wrong, a message's text is not in the program's log."""
    said(home, "s-1", "zebra-crossing-word")
    (home / "memory.duckdb").write_bytes(b"garbage" * 9999)
    worker.run(home, once=True)
    assert "zebra" not in (home / "hypatia-mem.log").read_text("utf-8")

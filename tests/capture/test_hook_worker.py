"""The hook starts the worker: apart from the session, once, with what it needs."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hypatia_mem.capture import hook
from tests.capture.hook_kit import (
    SECRET,
    conf,
    event,
    fire,
    records,
    run,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and modes of POSIX")


# -- the worker's start


@pytest.fixture
def interpreter(home: Path, tmp_path: Path) -> Callable[[], list[dict[str, object]]]:
    """Configure a worker's interpreter that writes down how it was started; return the reader."""
    log = tmp_path / "starts"
    log.mkdir()
    script = tmp_path / "fake-python"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys, time\n"
        "facts = dict(argv=sys.argv[1:], env=dict(os.environ), sid=os.getsid(0), pid=os.getpid(),\n"
        "    stdio=[os.path.realpath(f'/proc/self/fd/{n}') for n in (0, 1, 2)])\n"
        f"name = {str(log)!r} + f'/{{time.time_ns()}}'\n"
        "open(name + '.part', 'w').write(json.dumps(facts))\n"
        "os.rename(name + '.part', name + '.json')\n"
    )
    script.chmod(0o755)
    conf(home, python=str(script))

    def starts(wait: float = 10.0, least: int = 1) -> list[dict[str, object]]:
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and len(list(log.glob("*.json"))) < least:
            time.sleep(0.02)
        return [json.loads(p.read_text()) for p in sorted(log.glob("*.json"))]

    return starts


@pytest.fixture
def held(home: Path) -> Iterator[Path]:
    """Hold the worker's lock as a worker does."""
    path = home / "worker.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield path
    os.close(fd)


def test_worker_is_started_apart_from_the_session(home, interpreter):
    """Own session, stdio on null, a clean environment, nothing of the client's."""
    environ = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/x",
        "CLAUDE_CONFIG_DIR": "/c",
        "ANTHROPIC_API_KEY": SECRET,
        "CLAUDE_CODE_MESSAGING_TOKEN": SECRET,
        "MY_VARIABLE": "1",
    }
    done = run(event(), env=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (started,) = interpreter()
    assert started["argv"] == ["-P", "-E", "-m", "hypatia_mem.worker", "--home", str(home)]
    assert started["sid"] == started["pid"]
    assert started["stdio"] == ["/dev/null"] * 3
    env = started["env"]
    assert env["HYPATIA_MEM_INTERNAL"] == "1"
    for name in ("HOME", "PATH", "LC_ALL", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR"):
        assert env[name] == environ[name]
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_MESSAGING_TOKEN", "MY_VARIABLE"} & set(env)
    assert SECRET not in json.dumps(started)


def test_worker_is_handed_what_a_chosen_model_needs_and_no_more(home, interpreter):
    """The twin: ``hook.conf`` names what the user's choice of a model takes."""
    with (home / "hook.conf").open("a") as file:
        file.write("worker_env=HTTPS_PROXY,ANTHROPIC_API_KEY\n")
    run(event(), env={**os.environ, "ANTHROPIC_API_KEY": "mine", "MY_VARIABLE": "1"})
    (started,) = interpreter()
    assert started["env"]["ANTHROPIC_API_KEY"] == "mine"
    assert not {"HTTPS_PROXY", "MY_VARIABLE"} & set(started["env"])


def test_worker_that_does_not_find_the_package_is_shown_it(home, interpreter):
    """An interpreter without our site directory gets it added, last."""
    with (home / "hook.conf").open("a") as file:
        file.write("worker_path=/opt/it's here\n")
    fire(event())
    (started,) = interpreter()
    assert started["argv"][:3] == ["-P", "-E", "-c"]
    assert repr("/opt/it's here") in started["argv"][3]
    assert started["argv"][4:] == ["--home", str(home)]
    ast.parse(started["argv"][3])


def test_running_worker_is_left_alone(home, interpreter, held):
    """The lock is held and the heartbeat is fresh: nothing is started."""
    fire(event())
    assert interpreter(wait=0.5) == []
    os.utime(held, (time.time() - 30, time.time() - 30))
    fire(event())
    assert interpreter(wait=0.5) == []


@pytest.mark.parametrize("shift", [-61, 3600], ids=["stopped", "clock-set-back"])
def test_silent_worker_gets_a_successor(home, interpreter, held, shift):
    """Held, but without a sign of life: the successor is told to look."""
    os.utime(held, (time.time() + shift, time.time() + shift))
    fire(event())
    (started,) = interpreter()
    assert started["argv"][-1] == "--takeover"


def test_many_prompts_start_one_worker(home, interpreter):
    """While one is on its way to its lock no second is started; after it has been there, one is."""
    for _ in range(8):
        fire(event())
    assert len(interpreter(wait=1.0, least=2)) == 1
    later = time.time() + 0.1
    os.utime(home / "worker.lock", (later, later))
    fire(event())
    assert len(interpreter(least=2)) == 2


def test_worker_that_died_on_its_way_is_started_again(home, interpreter):
    """A start that came to nothing is tried again after a moment."""
    fire(event())
    interpreter()
    past = time.time() - 2 * hook.START_SECONDS
    os.utime(home / "worker.start", (past, past))
    os.utime(home / "worker.lock", (past - 1, past - 1))
    fire(event())
    assert len(interpreter(least=2)) == 2


def test_missing_interpreter_is_in_the_log_and_nowhere_else(home):
    """The turn is kept; the person's doctor can say why nothing drains."""
    conf(home, python="/nowhere/python3")
    done = run(event())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(records(home)) == 1
    assert "/nowhere/python3" in (home / "hypatia-mem.log").read_text()


def test_start_that_failed_holds_up_no_later_one(home, interpreter):
    """Only a worker that was started is waited for; not one that a hook meant to start."""
    good = (home / "hook.conf").read_text()
    conf(home, python="/nowhere/python3")
    fire(event())
    (home / "hook.conf").write_text(good)
    fire(event())
    assert len(interpreter()) == 1

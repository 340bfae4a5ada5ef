"""The commands as a person types them: exit codes, questions, the worker, machine output."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hypatia_mem
from hypatia_mem import worker

SITE = str(Path(hypatia_mem.__file__).parents[1])
HOLDER = """
import signal, sys, time
from pathlib import Path
from hypatia_mem.worker import Lock
lock = Lock(Path(sys.argv[1]))
assert lock.acquire()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory-home"


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hypatia_mem", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": SITE},
        check=False,
    )


def test_install_tries_the_hook_and_says_so(fenced, memory):
    done = run("install")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A test prompt went through the hook" in done.stdout
    again = json.loads(run("install", "--json").stdout)
    assert (again["changed"], again["tested"], again["way"]) == (False, True, "directory")


def test_install_fails_when_the_hook_does_not_capture(fenced, memory):
    """Exit code 0 over a dead hook is how a memory loses months."""
    memory.mkdir()
    (memory / "spool").write_text("a file where the folder should be")
    done = run("install")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: install error: ")


def test_what_cannot_be_done_is_a_sentence_and_a_code(fenced, memory):
    (fenced / ".claude").mkdir()
    (fenced / ".claude/settings.json").write_text("{ // mine\n}")
    done = run("install", "--settings")
    assert done.returncode == 1
    assert "comments" in done.stderr
    assert '"SessionStart"' in done.stderr
    assert "Traceback" not in done.stderr
    assert run("upgrade").returncode == 1
    assert run("uninstall", "--purge", "--keep-data").returncode == 2


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        pytest.param((), True, id="nobody-to-ask"),
        pytest.param(("--keep-data",), True, id="keep"),
        pytest.param(("--purge",), False, id="purge"),
    ],
)
def test_data_goes_only_when_it_was_said(fenced, memory, arguments, kept):
    run("install")
    (memory / "memory.duckdb").write_bytes(b"x")
    assert run("uninstall", *arguments).returncode == 0
    assert (memory / "memory.duckdb").exists() == kept
    assert not (fenced / ".claude").exists()


@pytest.mark.deep
@pytest.mark.parametrize(("answer", "kept"), [("y", False), ("n", True), ("", True)])
def test_at_a_terminal_it_asks(fenced, memory, answer, kept):
    run("install")
    (memory / "memory.duckdb").write_bytes(b"x")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = SITE
        os.execv(sys.executable, [sys.executable, "-m", "hypatia_mem", "uninstall"])
    seen = b""
    while b"[y/N]" not in seen and select.select([terminal], [], [], 30)[0]:
        seen += os.read(terminal, 1024)
    os.write(terminal, answer.encode() + b"\n")
    while select.select([terminal], [], [], 30)[0]:
        try:
            chunk = os.read(terminal, 1024)
        except OSError:
            break
        if not chunk:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert (memory / "memory.duckdb").exists() == kept


@pytest.mark.deep
@pytest.mark.parametrize("stopped", [False, True])
def test_the_worker_is_gone_before_the_data(fenced, memory, stopped):
    """A worker that still writes would bring the removed home back."""
    run("install")
    (memory / "memory.duckdb").write_bytes(b"x")
    command = [sys.executable, "-c", HOLDER, str(memory)]
    environment = {**os.environ, "PYTHONPATH": SITE}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert worker.state(memory).running
        if stopped:
            holder.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        done = run("uninstall", "--purge")
        assert (done.returncode, done.stderr) == (0, "")
        assert holder.wait(timeout=10) == 0
        assert time.monotonic() - begun < 15
    assert not memory.exists()


def test_demo_needs_an_installation(fenced, memory):
    done = run("demo")
    assert done.returncode == 1
    assert "hypatia-mem install" in done.stderr

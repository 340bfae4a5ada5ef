"""Naming what is still in the spool: it is stored first, then found like anything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import spool
from hypatia_mem.config import set_value
from hypatia_mem.store.connection import open_store

LONG_AGO = time.time() - 86400.0
pytestmark = pytest.mark.usefixtures("no_other_worker")


@pytest.fixture
def spooled(home, project):
    """Two turns of a session that has ended, as hooks leave them; nothing has drained them."""

    def hook(event: str, second: int, session: str = "s-1", **fields: str) -> None:
        record = {"hook_event_name": event, "session_id": session, "cwd": str(project), **fields}
        spool.append(
            str(home),
            session,
            json.dumps(record).encode(),
            at_ns=int((LONG_AGO + second) * 1e9),
            meta=f'"dir":{json.dumps(str(project))},"client":"claude-code","entry":"cli",'.encode(),
        )
        for path in (home / "spool").iterdir():
            os.utime(path, (LONG_AGO + second, LONG_AGO + second))  # a running session is guarded

    hook("UserPromptSubmit", 1, prompt="the staging queue is amber-falcon", prompt_id="p1")
    hook("Stop", 2, last_assistant_message="noted: amber-falcon", prompt_id="p1")
    hook("SessionEnd", 3, reason="other")
    return hook


def texts(home) -> list[str]:
    with open_store(home, write=False) as store:
        return [message.text for message in store.messages("s-1") if message.text]


@pytest.fixture
def drain(cli, project):
    """Let a worker store what waits; it goes to its home, and the commands stay here."""

    def call() -> None:
        assert cli("worker", "drain").code == 0
        os.chdir(project)

    return call


def waiting(cli) -> int:
    return cli("status", "--json").json["waiting_records"]


PROMPT, ANSWER = "the staging queue is amber-falcon", "noted: amber-falcon"


@pytest.mark.parametrize(
    ("line", "left", "found"),
    [
        (("delete", "msg-s-1-1"), [ANSWER], ["msg-s-1-2"]),
        (("delete", "s-1"), [], []),
        (("delete", "s-1:1"), [ANSWER], ["msg-s-1-2"]),
        (("delete-from", "msg-s-1-1"), [], []),
        (("suppress", "msg-s-1-1"), [ANSWER], ["msg-s-1-2"]),
        (("show", "msg-s-1-2"), [PROMPT, ANSWER], ["msg-s-1-1", "msg-s-1-2"]),
        (("forget", "--id", "msg-s-1-1"), [ANSWER], ["msg-s-1-2"]),
    ],
)
def test_a_turn_that_waits_in_the_spool_is_meant_by_its_name(
    cli, person, home, spooled, drain, line, left, found
):
    code, _, err = person(*line)
    assert code == 0, err
    assert texts(home) == left
    drain()
    assert texts(home) == left, "it came back with the next drain"
    said = cli("search", "amber").out
    assert [name for name in ("msg-s-1-1", "msg-s-1-2") if name in said] == found


def test_a_session_goes_with_what_it_still_has_in_the_spool(cli, home, spooled, drain):
    """Half of it is stored already; the other half does not turn up later. Another session stays."""
    drain()
    spooled("UserPromptSubmit", 10, prompt="and the port is 7311", prompt_id="p2")
    spooled("SessionEnd", 11, reason="other")
    spooled("UserPromptSubmit", 12, session="s-2", prompt="another matter", prompt_id="p3")
    told = cli("delete", "s-1", "--dry-run", "--json").json
    assert "msg-s-1-3" in {one["name"] for one in told["targets"]}
    assert cli("delete", "s-1").code == 0
    drain()
    assert [one["id"] for one in cli("sessions", "--json").json] == ["s-2"]
    assert "7311" not in cli("search", "port").out


def test_erasing_a_turn_by_name_reaches_the_spool(person, home, spooled):
    code, out, err = person("erase", "msg-s-1-1", "--yes", "--json")
    assert code == 0, err
    assert json.loads(out)["clean"] is True
    held = [
        path for path in home.rglob("*") if path.is_file() and b"staging queue" in path.read_bytes()
    ]
    assert held == []
    assert texts(home) == [ANSWER]


def test_what_was_asked_to_be_remembered_is_forgotten_before_it_was_stored(person, home, spooled):
    spooled("UserPromptSubmit", 20, prompt="remember: the pager is silver", prompt_id="p4")
    code, out, err = person("forget", "silver pager", "--yes")
    assert code == 0, err
    assert "Removed" in out
    code, out, _ = person("rules", "--json")
    assert "silver" not in out


def test_an_unknown_name_stays_unknown_and_nothing_is_drained_without_need(cli, home, spooled):
    assert cli("delete", "nope").code == 1
    assert waiting(cli) == 0  # it may have been in there
    spooled("UserPromptSubmit", 30, session="s-3", prompt="next", prompt_id="p5")
    assert cli("delete", "msg-s-1-1").code == 0
    assert waiting(cli) == 1  # the name was known, and another session's records are not its


def test_it_is_said_when_the_spool_cannot_be_stored(cli, home, spooled, monkeypatch):
    monkeypatch.setattr("hypatia_mem.cli.spooled._DEADLINE", 0.2)
    lock = worker.Lock(home)
    assert lock.acquire(asked=False)
    try:
        done = cli("show", "msg-s-1-1")
        assert done.code == 1
        assert "3 records wait in the spool and could not be stored: another command" in done.err
        done = cli("delete", "s-1")
        assert done.code == 5
        assert "3 records wait in the spool" in done.err
        assert "Nothing was changed" in done.err
    finally:
        lock.release()
    assert cli("delete", "s-1").code == 0


@pytest.mark.deep
def test_a_worker_that_runs_is_waited_for_and_not_stopped(cli, home, spooled, monkeypatch):
    """It stores what comes in by itself; only one that does not is asked to go."""
    monkeypatch.setattr("hypatia_mem.cli.spooled._PATIENCE", 60.0)  # on a machine with much to do
    set_value(home, "worker_idle_seconds", 600)
    command = [sys.executable, "-m", "hypatia_mem.worker", "--home", str(home)]
    running = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        for _ in range(100):
            if worker.state(home).pid == running.pid:
                break
            time.sleep(0.1)
        spooled("UserPromptSubmit", 40, session="s-4", prompt="the last word", prompt_id="p6")
        done = cli("show", "msg-s-4-1")
        assert done.code == 0, done.err
        assert "the last word" in done.out
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()

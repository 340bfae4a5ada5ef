"""No planted secret in any byte below the home, in the process list or in a worker's environment.

The corpus is the redactor's; here it goes the whole way: prompt, answer, tool call and its result
in the transcript, store, index, briefs, snapshot and log.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.capture.corpus.lookalikes import LOOKALIKES
from tests.capture.corpus.secrets import Planted, planted, wrapped
from tests.system.machine import Machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EVERYTHING = """
import sys
from pathlib import Path
from hypatia_mem.store.connection import open_store
sys.stdout.reconfigure(errors="replace")
with open_store(Path(sys.argv[1]), write=False) as store:
    tables = [row["table_name"] for row in store.run(
        "SELECT DISTINCT table_name FROM duckdb_tables()", [])]
    for table in tables:
        for row in store.run(f'SELECT * FROM "{table}"', []):
            print(row)
"""


def transcript(path: Path, cases: list[Planted], session: str) -> None:
    """Write what a client would: the corpus in tool calls, results and thoughts."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with path.open("w") as file:
        for number, case in enumerate(cases):
            call = f"toolu_{number}"
            prompt = {"role": "user", "content": f"look at case {number}"}
            blocks = [
                {"type": "thinking", "thinking": f"thinking of {case.text}"},
                {"type": "text", "text": f"case {number} is {case.text}"},
                {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": case.text}},
            ]
            answer = {"role": "assistant", "id": f"msg_{number}", "model": "m", "content": blocks}
            result = {"type": "tool_result", "tool_use_id": call, "content": case.text}
            lines = (
                {"type": "user", "message": prompt, "promptId": f"p{number}"},
                {"type": "assistant", "message": answer},
                {"type": "user", "message": {"role": "user", "content": [result]}},
            )
            for place, line in enumerate(lines):
                stamp = (at + timedelta(seconds=number, milliseconds=place)).isoformat()
                more = {"uuid": f"u-{number}-{place}", "sessionId": session, "timestamp": stamp}
                if place == 2:
                    more["toolUseResult"] = case.text
                file.write(json.dumps({**line, **more, "cwd": "/"}) + "\n")


def test_no_planted_secret_is_kept_anywhere(machine: Machine, tmp_path: Path) -> None:
    """Every kind by hook, every case by transcript; then every byte, table and process is read."""
    plain, twisted = planted(), wrapped()
    cases = [*plain, *twisted]
    kinds = [case for case in plain if "/" not in case.name or case.name.endswith("/sentence")]
    assert len(kinds) >= 120
    kinds += twisted[::12]  # of the others every kind by transcript, a few by hook
    needles = {needle for case in cases for needle in case.needles}
    lines = tmp_path / "transcript.jsonl"
    transcript(lines, cases, "seen")
    fields = {"session_id": "seen", "transcript_path": str(lines), "cwd": "/"}
    env = {"ANTHROPIC_API_KEY": "sk-" + "ant-" + "x1Y2z3" * 9, "MY_TOKEN": "tok-8f2k1m0q9w3e"}
    for number, case in enumerate(kinds, 1):
        machine.prompt("typed", number, case.text)
        machine.answer("typed", number, case.text)
    machine.hook({**fields, "hook_event_name": "SessionEnd", "reason": "other"}, env)
    visible = ""
    pid = machine.worker_pid()
    if pid is not None:
        environ = Path(f"/proc/{pid}/environ").read_text()
        visible = Path(f"/proc/{pid}/cmdline").read_text() + environ
        assert not any(value in environ for value in env.values())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # in the midst of it: what it leaves is read, too
    assert_clean(machine, needles)
    machine.cli("worker", "drain")
    machine.settle()
    stored = machine.stored()
    assert len(stored["typed"]) >= len(kinds)
    assert len(stored["seen"]) == 2 * len(cases)
    machine.cli("doctor", "--fix")
    machine.cli("export", "default", str(machine.person / "export"))
    machine.cli("search", kinds[0].text)
    tables = subprocess.run(
        [str(machine.python), "-c", EVERYTHING, str(machine.memory)],
        env=machine.environ,
        capture_output=True,
        check=True,
    ).stdout
    assert b"REDACTED" in tables
    assert_clean(machine, needles, tables=tables, processes=visible.encode())


def assert_clean(machine: Machine, needles: set[str], **more: bytes) -> None:
    """Read every byte below the person's home, and ``more``, for the needles."""
    held = {path: path.read_bytes() for path in machine.person.rglob("*") if path.is_file()}
    held |= {Path(name): data for name, data in more.items()}
    found = [
        (needle, path)
        for needle in needles
        for path, data in held.items()
        if needle.encode() in data or json.dumps(needle)[1:-1].encode() in data
    ]
    assert found == []


def test_what_only_looks_like_a_secret_is_kept_as_it_is(machine: Machine) -> None:
    """The twin: digests, paths and names arrive byte for byte."""
    for number, text in enumerate(LOOKALIKES, 1):
        machine.prompt("plain", number, text)
    machine.settle()
    assert [text for _, _, text in machine.stored()["plain"]] == list(LOOKALIKES)


def test_nothing_is_written_into_the_persons_repository(machine: Machine, tmp_path: Path) -> None:
    """Hooks, worker and commands in a repository leave ``git status --ignored`` clean."""
    path = tmp_path / "repository"
    path.mkdir()
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    machine.begin("r", path)
    machine.prompt("r", 1, "remember: never touch my files", path)
    machine.settle()
    status = subprocess.run(
        ["git", "status", "--porcelain", "--ignored"],
        cwd=path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout == ""

"""A machine with the program installed: real hook processes, the real worker, the real command.

Hooks are started with the very command line that the installation wrote, with what a client gives
them: one line of JSON on stdin, in UTF-8 as it is, and its environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCALE = float(os.environ.get("HYPATIA_TEST_SCALE", "1"))
DUMP = """
import json, sys
from pathlib import Path
from hypatia_mem.store.connection import open_store
with open_store(Path(sys.argv[1]), write=False, deadline=60) as store:
    print(json.dumps({
        session.id: [
            [message.turn, message.role, message.text]
            for message in store.messages(session.id, limit=1_000_000)
        ]
        for session, _ in store.sessions(limit=1_000_000, include_archived=True)
    }))
"""


def scaled(count: int) -> int:
    """Return a campaign's count, reduced by ``HYPATIA_TEST_SCALE`` for quick runs."""
    return max(1, int(count * SCALE))


class Machine:
    """One person's home with the program installed; ``memory`` is the memory's home."""

    def __init__(self, venv: Path, person: Path, memory: Path | None = None) -> None:
        """Install for this person."""
        self.person = person
        self.memory = memory or person / "memory"
        self.program = venv / "bin" / "hypatia-mem"
        self.python = venv / "bin" / "python"
        (person / ".claude").mkdir(parents=True, exist_ok=True)
        self.environ = {
            "HOME": str(person),
            "PATH": f"{venv / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HYPATIA_MEM_HOME": str(self.memory),
        }
        self.cli("install")
        hooks = person / ".claude" / "skills" / "hypatia-memory" / "hooks" / "hooks.json"
        entry = json.loads(hooks.read_text())["hooks"]["Stop"][0]["hooks"][0]
        root = str(hooks.parent.parent)
        self.hook_argv = [
            part.replace("${CLAUDE_PLUGIN_ROOT}", root)
            for part in (entry["command"], *entry["args"])
        ]

    # -- hooks -----------------------------------------------------------------------------

    def start_hook(
        self, event: Mapping[str, Any], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a hook and give it its input; the caller waits for it."""
        process = subprocess.Popen(
            self.hook_argv,
            env={**self.environ, "AI_AGENT": "claude-code_2-1-332_agent", **(env or {})},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
        process.stdin.close()
        process.stdin = None  # communicate would write to it
        return process

    def hook(self, event: Mapping[str, Any], env: Mapping[str, str] | None = None) -> str:
        """Run a hook to its end; what it prints. Asserts that it harms no session."""
        process = self.start_hook(event, env)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        return out.decode()

    def prompt(self, session: str, number: int, text: str, cwd: Path | str = "/") -> str:
        """Let a person type ``text`` as the session's prompt ``number``."""
        return self.hook(_event(session, number, cwd, "UserPromptSubmit", prompt=text))

    def answer(self, session: str, number: int, text: str, cwd: Path | str = "/") -> str:
        """Let the model's answer to prompt ``number`` end."""
        return self.hook(_event(session, number, cwd, "Stop", last_assistant_message=text))

    def begin(self, session: str, cwd: Path | str) -> str:
        """Begin a session; what the model would be told."""
        env = {"CLAUDE_PROJECT_DIR": str(cwd)}
        out = self.hook(_event(session, 0, cwd, "SessionStart", source="startup"), env)
        if not out:
            return ""
        told: str = json.loads(out)["hookSpecificOutput"]["additionalContext"]
        return told

    # -- command and store -----------------------------------------------------------------

    def start_cli(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the command and do not wait for it."""
        return subprocess.Popen(
            [str(self.program), *arguments],
            env=self.environ,
            cwd=self.person,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def cli(self, *arguments: str) -> Any:
        """Run the command with ``--json``; what it says. Asserts that it succeeds."""
        process = self.start_cli(*arguments, "--json")
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, f"{arguments}: {err.decode()}{out.decode()}"
        return json.loads(out)

    def settle(self, timeout: float = 120) -> dict[str, Any]:
        """Wait until the worker has stored everything; the status then."""
        deadline = time.monotonic() + timeout
        while True:
            status: dict[str, Any] = self.cli("status")
            if status["waiting"] == 0 and status["waiting_records"] == 0:
                return status
            assert time.monotonic() < deadline, f"turns still wait: {status}"
            time.sleep(0.5)

    def stored(self) -> dict[str, list[list[Any]]]:
        """Return every stored message as [turn, role, text], by session."""
        done = subprocess.run(
            [str(self.python), "-c", DUMP, str(self.memory)],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, list[list[Any]]] = json.loads(done.stdout)
        return found

    def worker_pid(self) -> int | None:
        """Return the running worker's process id."""
        try:
            pid = int((self.memory / "worker.lock").read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if b"hypatia_mem" in words else None

    def stop(self) -> None:
        """Let the worker finish, so that nothing outlives the test."""
        process = self.start_cli("worker", "stop")
        process.communicate(timeout=60)


def assert_dense(messages: Sequence[Sequence[Any]]) -> None:
    """Check that turn numbers run from 1 without a hole."""
    assert [turn for turn, _, _ in messages] == list(range(1, len(messages) + 1))


def _event(
    session: str, number: int, cwd: Path | str, name: str, **fields: object
) -> dict[str, object]:
    return {
        "session_id": session,
        "transcript_path": f"/nonexistent/{session}.jsonl",
        "cwd": str(cwd),
        "permission_mode": "default",
        **({"prompt_id": f"{session}-{number}"} if number else {}),
        "hook_event_name": name,
        **fields,
    }

"""Running the installed hook as the client does, in a scratch home, to see it capture.

The command is taken from the installed hooks block, not from what the installer meant to write.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypatia_mem.errors import InstallError
from hypatia_mem.install.bundle import Target, hooks_block
from hypatia_mem.install.interpreter import worker_path

__all__ = ["Demonstration", "demonstrate", "self_test"]

_PROMPT = "remember: never mock the database"
_ANSWER = "Noted: tests run against a real database."


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One turn and its outcome: what the hook answered, what the next session is told."""

    prompt: str
    answer: str
    confirmation: str
    brief: str


@contextmanager
def _scratch() -> Iterator[tuple[Path, Path]]:
    """Make a memory home and, apart from it, a project; both go away."""
    with tempfile.TemporaryDirectory(prefix="hypatia-mem-", ignore_cleanup_errors=True) as folder:
        home, project = Path(folder) / "home", Path(folder) / "demo"
        home.mkdir(mode=0o700)
        project.mkdir()
        yield home, project


def _environment(home: Path, project: Path) -> dict[str, str]:
    dropped = ("HYPATIA_MEM_", "ANTHROPIC_", "CLAUDE_CODE_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return {**kept, "HYPATIA_MEM_HOME": str(home), "CLAUDE_PROJECT_DIR": str(project)}


def _fire(target: Target, event: str, fields: dict[str, Any], home: Path, project: Path) -> str:
    """Send one event through the installed hook; its output.

    Raises:
        InstallError: it does not start, fails, complains or takes longer than its timeout.
    """
    handler = hooks_block(target)[event][0]["hooks"][0]
    if "args" in handler:
        argv = [handler["command"], *handler["args"]]
    else:
        argv = [shutil.which("sh") or "/bin/sh", "-c", handler["command"]]
    payload = {
        "session_id": fields.pop("session_id"),
        "transcript_path": str(project / "none.jsonl"),
        "cwd": str(project),
        "hook_event_name": event,
        **fields,
    }
    try:
        done = subprocess.run(
            argv,
            input=json.dumps(payload).encode() + b"\n",
            capture_output=True,
            timeout=60,
            check=False,
            cwd=project,
            env=_environment(home, project),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallError(
            f"the hook for {event} cannot be run: {type(error).__name__}.",
            hint="Run `hypatia-mem doctor`.",
        ) from error
    if done.returncode != 0 or done.stderr:
        raise InstallError(
            f"the hook for {event} ended with code {done.returncode}"
            f"{' and wrote to stderr' if done.stderr else ''}.",
            hint="Run `hypatia-mem doctor`.",
        )
    return done.stdout.decode("utf-8", "replace")


def _context(output: str) -> str:
    """Return the text a hook hands to the model."""
    if not output.strip():
        return ""
    try:
        return str(json.loads(output)["hookSpecificOutput"]["additionalContext"])
    except (ValueError, KeyError, TypeError) as error:
        raise InstallError(
            "the hook printed something that the client cannot read.",
            hint="Run `hypatia-mem doctor`.",
        ) from error


def self_test(target: Target) -> None:
    """Send one prompt through the installed hook into a scratch home and look for it there.

    Raises:
        InstallError: it was not captured.
    """
    session = str(uuid.uuid4())
    with _scratch() as (home, project):
        fields = {"session_id": session, "prompt": "hypatia-mem self-test"}
        _fire(target, "UserPromptSubmit", fields, home, project)
        spooled = [path.read_bytes() for path in (home / "spool").glob("*.jsonl")]
        if not any(session.encode() in data for data in spooled):
            raise InstallError(
                "the hook is installed but a test prompt was not captured.",
                hint="Run `hypatia-mem doctor`; until it is content, turns may be lost.",
            )


def demonstrate(target: Target) -> Demonstration:
    """Drive one turn through the installed hook and read what the next session is told.

    Raises:
        InstallError: a step did not do its work.
    """
    session = str(uuid.uuid4())
    with _scratch() as (home, project):
        told = _fire(
            target,
            "UserPromptSubmit",
            {"session_id": session, "prompt_id": str(uuid.uuid4()), "prompt": _PROMPT},
            home,
            project,
        )
        stop = {"session_id": session, "stop_hook_active": False, "last_assistant_message": _ANSWER}
        _fire(target, "Stop", stop, home, project)
        _fire(target, "SessionEnd", {"session_id": session, "reason": "other"}, home, project)
        _work(home, project)
        brief = _fire(
            target,
            "SessionStart",
            {"session_id": str(uuid.uuid4()), "source": "startup"},
            home,
            project,
        )
        shown = Demonstration(_PROMPT, _ANSWER, _context(told), _context(brief))
    if "never mock the database" not in shown.brief:
        raise InstallError(
            "the next session would not be told what was remembered.",
            hint="Run `hypatia-mem doctor`.",
        )
    return shown


def _work(home: Path, project: Path) -> None:
    """Let the worker store what the scratch home holds, and wait for it."""
    environment = _environment(home, project)
    extra = worker_path()
    code = "import sys; sys.path[:0] = [p for p in sys.argv[2:] if p]; "
    code += "from pathlib import Path; from hypatia_mem.worker import run; "
    code += "sys.exit(run(Path(sys.argv[1]), once=True))"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-E", "-c", code, str(home), extra],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
            cwd=project.parent,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallError(f"the worker cannot be run: {type(error).__name__}.") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InstallError(
            f"the worker ended with code {done.returncode}: {last[0]}",
            hint="Run `hypatia-mem doctor`.",
        )

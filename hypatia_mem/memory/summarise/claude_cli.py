"""The user's own ``claude -p``: what they pay for already condenses their memory.

It must leave no trace: no session, no project and no message of its own, neither in this memory nor
in the client's list of conversations (I6). Each of these alone would do; all are set, because one
of them may be stripped on the way, or be unknown to some version of the client:

- the guard in its environment, at which our hook leaves at once;
- hooks switched off for this run, and no tools, no MCP servers and no saved session;
- a working directory of its own below our home, which our hook knows;
- the marker line at the top of the question, which hook and drain know.

What the client that started us put into the environment about itself is taken out, and so is a key
that stands in a project's files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypatia_mem.capture.hook import GUARD
from hypatia_mem.memory.summarise.prompted import MAX_TOKENS, Question, Reply, Usage
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed

__all__ = ["DEFAULT_MODEL", "FOLDER", "ClaudeCli", "child_environment"]

DEFAULT_MODEL = "haiku"
FOLDER = "claude-cli"  # below the memory's home
_ABOUT_THE_PARENT = (
    "CLAUDECODE",
    "AI_AGENT",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
)
# What of the client's own settings must stay: how the user signs in and where the client lives.
_KEPT = frozenset(
    {
        "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    }
)  # fmt: skip
# A summary takes no long reasoning, and what is tried again is the cascade's own affair.
_SHORT = {
    "MAX_THINKING_TOKENS": "0",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(MAX_TOKENS),
    "CLAUDE_CODE_MAX_RETRIES": "0",
}
# Where the client gives no number; it is told in English whatever the person speaks.
_SIGNING_IN = ("invalid api key", "/login", "authenticat", "oauth", "not logged in")
_LIMITED = ("rate limit", "usage limit", "limit reached", "hit your limit")
_CUT_OFF = ("econnrefused", "enotfound", "connection error", "unable to connect", "econnreset")
_LONGEST = 16 * 1024 * 1024  # characters of output that are read


class ClaudeCli:
    """The client with one model, run once for each question."""

    name = "claude-cli"

    def __init__(
        self,
        home: Path,
        command: str,
        model: str = "",
        *,
        timeout: float = 180.0,
        call_cents: int = 25,
        environ: Mapping[str, str],
        project_keys: frozenset[str] = frozenset(),
    ) -> None:
        """Keep what is needed for a run; nothing is started.

        ``environ`` is the environment that the client is to have, before ours is put in;
        ``project_keys`` are keys of projects, which it must not have.
        """
        self.model = model or DEFAULT_MODEL
        self._folder = home / FOLDER
        self._command = command
        self._timeout = timeout
        self._call_cents = call_cents
        self._environ = child_environment(environ, project_keys)
        self._running: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Reply:
        """Return the answer; raises SummaryFailed when none came."""
        program = shutil.which(self._command, path=self._environ.get("PATH"))
        if program is None:
            raise SummaryFailed(
                FailureKind.SETTINGS,
                f"there is no program {self._command[:80]!a} to be run as claude",
                hint="Name it: hypatia-mem config set claude_command PATH",
            )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            process = subprocess.Popen(
                [program, *self._arguments(question)],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise SummaryFailed(
                FailureKind.SETTINGS,
                f"{program} could not be started ({error.strerror})",
                hint="Name another: hypatia-mem config set claude_command PATH",
            ) from error
        with self._lock:
            self._running = process
        try:
            out, err = process.communicate(question.text, timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            raise SummaryFailed(
                FailureKind.TIMEOUT, f"claude did not answer within {self._timeout:g} seconds"
            ) from error
        finally:
            self.cancel()
        return _read(out[:_LONGEST], err[:4000], process.returncode)

    def count(self, question: Question) -> int | None:
        """Say that nobody can tell: the client has no command for it."""
        del question
        return None

    def cancel(self) -> None:
        """End the client, if it runs, and whatever it started."""
        with self._lock:
            process, self._running = self._running, None
        if process is None or process.poll() is not None:
            return
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, number)
                else:
                    process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired, ValueError, OSError):
                process.communicate(timeout=2)
                return

    def _arguments(self, question: Question) -> list[str]:
        return [
            "-p",
            *("--output-format", "json"),
            "--no-session-persistence",
            *("--settings", json.dumps({"disableAllHooks": True})),
            *("--tools", ""),
            "--strict-mcp-config",
            *("--model", self.model),
            *("--max-budget-usd", f"{self._call_cents / 100:.2f}"),
            *("--system-prompt", question.system),
        ]


def child_environment(environ: Mapping[str, str], project_keys: frozenset[str]) -> dict[str, str]:
    """Return the environment of our own run: guarded, and free of whoever started us."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _ABOUT_THE_PARENT
        and (not name.startswith("CLAUDE_CODE_") or name in _KEPT)
        and value not in project_keys
    }
    return {**kept, **_SHORT, GUARD: "1"}


def _read(out: str, err: str, code: int) -> Reply:
    """Return what the client printed as an answer; raises SummaryFailed when it is none."""
    try:
        found: Any = json.loads(out)
        if isinstance(found, list):  # some versions print all events when they are told to
            found = next(one for one in reversed(found) if one.get("type") == "result")
        text = found["result"] if found.get("result") is not None else ""
        is_error = bool(found.get("is_error")) or found.get("subtype", "success") != "success"
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration):
        raise _failure(err or out, code, 0) from None
    if is_error or not isinstance(text, str):
        raise _failure(f"{text} {found.get('subtype', '')}", code, found.get("api_error_status"))
    return Reply(text, _usage(found), _stopped(str(found.get("stop_reason") or "")))


def _stopped(reason: str) -> FailureKind | None:
    if reason == "max_tokens":
        return FailureKind.TRUNCATED
    return FailureKind.REFUSAL if reason == "refusal" else None


def _usage(found: Mapping[str, Any]) -> Usage:
    used = found.get("usage")
    used = used if isinstance(used, dict) else {}

    def number(name: str) -> int:
        value = used.get(name)
        return value if isinstance(value, int) else 0

    cost = found.get("total_cost_usd")
    return Usage(
        input_tokens=number("input_tokens"),
        output_tokens=number("output_tokens"),
        cache_read=number("cache_read_input_tokens"),
        cache_write=number("cache_creation_input_tokens"),
        dollars=float(cost) if isinstance(cost, int | float) else None,
    )


def _failure(said: str, code: int, status: object) -> SummaryFailed:
    """Tell apart why there is no answer; what the client said is not repeated."""
    low = said.lower()
    told = status if isinstance(status, int) else 0
    if told in (401, 403) or (not told and any(word in low for word in _SIGNING_IN)):
        return SummaryFailed(
            FailureKind.AUTH, "claude is not signed in", hint="Run claude once and sign in."
        )
    if told == 429 or (not told and any(word in low for word in _LIMITED)):
        return SummaryFailed(FailureKind.RATE, "claude has reached its limit of use")
    if "budget" in low:
        return SummaryFailed(
            FailureKind.TOO_LONG,
            "one call would have cost more than model_call_cents allows",
        )
    if "too long" in low:
        return SummaryFailed(FailureKind.TOO_LONG, "these sources are more than the model takes")
    if any(word in low for word in _CUT_OFF):
        return SummaryFailed(FailureKind.UNREACHABLE, "claude could not reach its model")
    return SummaryFailed(FailureKind.UNAVAILABLE, f"claude ended without an answer (code {code})")

"""What the tests of the hook share: its input, and ways to run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hypatia_mem.capture import hook, spool

REPOSITORY = Path(__file__).parents[2]
SESSION = "24f0694b-985c-455c-bc0c-0f47428c6403"
TRANSCRIPT = f"/home/dev/.claude/projects/-home-dev-app/{SESSION}.jsonl"
# A token of a kind that no one issues, put together so that no scanner takes this file for a leak.
SECRET = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"
BRIEF = (
    b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"%s"}}\n'
)  # fmt: skip
EVERYTHING = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"permission_mode": "default", "prompt": "Hello there"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "Hi.", "background_tasks": []},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "SessionEnd": {"reason": "other"},
}


def event(name: str = "UserPromptSubmit", *, cwd: str = "/home/dev/app", **more: object) -> bytes:
    """Return an input as the client writes it: one line, UTF-8, no space between tokens."""
    body: dict[str, object] = {
        "session_id": SESSION,
        "transcript_path": TRANSCRIPT,
        "cwd": cwd,
        "prompt_id": "d5e30947-c046-4a69-a9d2-8f0b97f1ac28",
        "hook_event_name": name,
        **EVERYTHING.get(name, {}),
        **more,
    }
    kept = {key: value for key, value in body.items() if value is not None}
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def fire(data: bytes, **environ: str) -> bytes:
    """Run the hook's entry point in this process; return what it printed."""
    with tempfile.TemporaryFile() as out:
        hook.handle(data, {**os.environ, **environ}, out.fileno())
        out.seek(0)
        return out.read()


def run(
    data: bytes,
    *,
    script: Path = REPOSITORY / "hooks" / "hook.py",
    python: str = sys.executable,
    **more: object,
) -> subprocess.CompletedProcess[bytes]:
    """Run the real hook process."""
    return subprocess.run(
        [python, "-I", "-S", str(script)], input=data, capture_output=True, timeout=60, **more
    )


def records(home: Path) -> list[spool.Record]:
    found = []
    for segment in spool.segments(str(home)):
        for item in spool.iter_records(segment.path):
            assert isinstance(item, spool.Record)
            found.append(item)
    return found


def context(output: bytes) -> str:
    """Return the text that reaches the model; the output must be what the client accepts."""
    if not output:
        return ""
    parsed = json.loads(output)["hookSpecificOutput"]
    assert parsed["hookEventName"] == "UserPromptSubmit"
    return parsed["additionalContext"]


def conf(home: Path, **settings: str) -> None:
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    (home / "hook.conf").write_text(text)


def everything_below(folder: Path) -> bytes:
    return b"\n".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


def passes(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout == b""

"""What the tests of an installation look at: folders, hooks, what a hook has kept."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
SETTINGS = b"""{
  "model": "opus",
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
}
"""


def snapshot(folder: Path) -> dict[str, object]:
    """Return every path below the folder with its bytes, or the link's target."""
    seen: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            seen[name] = ("link", os.readlink(path))
        else:
            seen[name] = path.read_bytes() if path.is_file() else "folder"
    return seen


def hooks_of(person: Path, way: str) -> dict:
    config = person / ".claude"
    if way == "settings":
        return json.loads((config / "settings.json").read_text())["hooks"]
    return json.loads((config / "skills/hypatia-memory/hooks/hooks.json").read_text())["hooks"]


def fire(handler: dict, memory: Path, **fields: str) -> subprocess.CompletedProcess:
    """Start a handler as the client does."""
    argv = [handler["command"], *handler["args"]] if "args" in handler else None
    payload = {"session_id": str(uuid.uuid4()), "cwd": "/", **fields}
    return subprocess.run(
        argv or ["/bin/sh", "-c", handler["command"]],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HYPATIA_MEM_HOME": str(memory)},
        check=False,
    )


def spooled(memory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (memory / "spool").glob("*.jsonl"))


def ours(person: Path, way: str, event: str = "UserPromptSubmit") -> dict:
    handlers = [h for g in hooks_of(person, way)[event] for h in g["hooks"]]
    return next(h for h in handlers if "hypatia-memory" in json.dumps(h))


WAYS = [
    pytest.param(False, "directory", id="directory"),
    pytest.param(True, "settings", id="settings"),
]

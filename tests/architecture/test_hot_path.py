"""What the hot path may import: the standard library, and of it only what a prompt can afford."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem.capture import paths

REPOSITORY = Path(__file__).parents[2]
CAPTURE = sorted((REPOSITORY / "hypatia_mem" / "capture").glob("*.py"))
# Each of these costs a good part of a bare interpreter start or more.
EXPENSIVE = {
    "json", "re", "os", "pathlib", "typing", "dataclasses", "enum", "contextlib", "collections",
    "functools", "subprocess", "signal", "datetime", "logging", "tempfile", "hashlib", "shutil",
    "duckdb", "tantivy", "platformdirs",
}  # fmt: skip
OURS = "hypatia_mem"
ORDINARY = {"hypatia_mem", *(f"hypatia_mem.capture{m}" for m in ("", ".hook", ".paths", ".spool"))}
ORDINARY.add("hypatia_mem.capture.hints")

# Runs the hook's own main; instead of ending, the process tells what it has loaded.
PROBE = """
import sys
sys.path.append(sys.argv[1])
before = set(sys.modules)
from hypatia_mem.capture import hook
class Done(BaseException): pass
def leave(code): raise Done
end = hook.system._exit
hook.system._exit = leave
try: hook.main()
except Done: pass
loaded = sorted(set(sys.modules) - before)
hook.system.write(2, "\\n".join(loaded).encode())
end(0)
"""
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="os is the only door there")


def event(name: str = "UserPromptSubmit", **more: object) -> bytes:
    body = {
        "session_id": "24f0694b-985c-455c-bc0c-0f47428c6403",
        "transcript_path": "/home/dev/.claude/projects/-home-dev-app/24f0694b.jsonl",
        "cwd": "/home/dev/app",
        "prompt_id": "d5e30947-c046-4a69-a9d2-8f0b97f1ac28",
        "permission_mode": "default",
        "hook_event_name": name,
        **more,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def loaded(data: bytes) -> set[str]:
    """Return the modules that one event makes the hook load beyond a bare start."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, str(REPOSITORY)],
        input=data,
        capture_output=True,
        check=True,
    )
    return set(done.stderr.decode().split())


PROMPT = "Please find out why the parser drops the last line of `src/app/read.py`, and fix it. " * 9
ANSWERS = {
    "prompt": event(prompt=PROMPT),
    "scripts": event(prompt="最後の行が消える理由を調べて 👍 größer"),
    "answer": event("Stop", last_assistant_message=PROMPT * 3, background_tasks=[]),
    "start": event("SessionStart", source="startup"),
    "compaction": event("PreCompact", trigger="auto", custom_instructions=""),
    "end": event("SessionEnd", reason="other"),
}


@posix_only
@pytest.mark.parametrize("data", ANSWERS.values(), ids=ANSWERS)
def test_ordinary_event_loads_next_to_nothing(home: Path, data: bytes) -> None:
    """Neither json nor re nor os; of our own only the four modules of the path itself."""
    (home / "hook.conf").write_text("python=/bin/true\n")  # starting the worker is part of it
    found = loaded(data)
    assert len(list((home / "spool").glob("*.jsonl"))) == 1
    assert {m for m in found if m.startswith(OURS)} == ORDINARY
    assert not found & EXPENSIVE
    assert len(found - ORDINARY) <= 6, found


@posix_only
def test_session_start_in_a_repository_prints_its_brief_as_cheaply(
    home: Path, tmp_path: Path
) -> None:
    """Finding the project and printing its brief needs no library either."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    key = paths.find_root(str(tmp_path)).key
    brief = '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}\n'
    (home / "briefs" / f"{key}.json").write_text(brief)
    found = loaded(event("SessionStart", source="startup", cwd=str(tmp_path)))
    assert not found & EXPENSIVE


@posix_only
def test_a_request_may_load_more(home: Path) -> None:
    """The probe can tell: what is forbidden above is seen when it is loaded."""
    assert "re" in loaded(event(prompt="remember: never mock the database"))


@pytest.mark.parametrize("path", CAPTURE, ids=lambda path: path.stem)
def test_capture_imports_the_standard_library_and_itself(path: Path) -> None:
    """At any depth, also inside functions: nothing that `-S` would not find."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "" if not node.level else "hypatia_mem.capture"]
        for name in names:
            if name.startswith(OURS):
                assert name.startswith("hypatia_mem.capture"), name
            else:
                assert name.partition(".")[0] in sys.stdlib_module_names, name


def test_launcher_imports_only_the_hook() -> None:
    """Ten lines that find the package; each import more would cost every prompt."""
    tree = ast.parse((REPOSITORY / "hooks" / "hook.py").read_text("ascii"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    assert found == {"sys", "posix", "hypatia_mem.capture"}

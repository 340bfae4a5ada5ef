"""Mutated input, by the hundred thousand: exit 0, empty stderr, valid output, good records whole.

``HYPATIA_FUZZ_INPUTS`` (through the entry point, one process) and ``HYPATIA_FUZZ_PROCESSES`` (real
hook processes) set how many; ``HYPATIA_FUZZ_SEED`` repeats a run, and a failure names the input.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hypatia_mem.capture import hook, paths, spool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX"),
]

REPOSITORY = Path(__file__).parents[2]
INPUTS = int(os.environ.get("HYPATIA_FUZZ_INPUTS", "100000"))
PROCESSES = int(os.environ.get("HYPATIA_FUZZ_PROCESSES", "2000"))
SEED = int(os.environ.get("HYPATIA_FUZZ_SEED", "0")) or time.time_ns()
BRIEF = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"rules"}}\n'
GOOD = "good-session"
HUGE = 5_000_000

TEXTS = [
    "Hello there",
    "remember: never mock the database",
    "forget the staging URL",
    "記住：永远不要模拟数据库 👍 עברית",
    "a\0b \ud83d lone \udc00 \u2028 \x1b[31m \ufeff",
    "password = " + "hunter" + "2 and the key " + "AKIA" + "QW3RTY7UIOP5ASDF",
    "<task-notification>\n<task-id>x</task-id>",
    "<private>not this</private> but this",
    "hypatia-mem:internals, hypatia-mem:internal is a marker",
    '{"hook_event_name":"Stop","session_id":"forged"}',
    '\\" \\u0041 \\x \\',
    "",
]
NAMES = ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]
OTHER_NAMES = ["MessageDisplay", "PreToolUse", "SubagentStop", "FutureEvent", "stop", ""]
VALUES: list[object] = [
    None, True, 0, -1, 2**63, 10**400, 1e308, "", "x", [], {}, [[]], {"a": {"b": [1, "\ud800"]}},
    "../../etc/passwd", "/", "\0", "é" * 300, float("nan"),
]  # fmt: skip
ENCODINGS = ["utf-8", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp932", "gb18030", "utf-8-sig"]
NOISE = [
    b"\0", b"\n", b"\r\n", b'"', b"\\", b"{", b"}", b"[", b",", b":", b"\xff", b"\xed\xa0\x80",
    b"1e999", b"\xf0\x9f", b"\\u", b"\\ud83d", b'"session_id":"', b'"hook_event_name":"',
]  # fmt: skip


class Mutator:
    """Makes inputs, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def event(self) -> dict[str, object]:
        chance = self.chance
        name = chance.choice(NAMES if chance.random() < 0.9 else OTHER_NAMES)
        body: dict[str, object] = {
            "session_id": chance.choice(["s-1", "s-2", "24f0694b-985c-455c-bc0c-0f47428c6403"]),
            "transcript_path": "/home/dev/.claude/projects/-home-dev-app/s.jsonl",
            "cwd": chance.choice(["/home/dev/app", "/", '/home/dev/größe "x"']),
            "prompt_id": "d5e30947-c046-4a69-a9d2-8f0b97f1ac28",
            "hook_event_name": name,
        }
        text = " ".join(chance.choices(TEXTS, k=chance.randint(1, 4)))
        if name == "UserPromptSubmit":
            body["prompt"] = text
        elif name == "Stop":
            body.update(stop_hook_active=False, last_assistant_message=text, background_tasks=[])
        elif name == "PreCompact":
            body.update(trigger="manual", custom_instructions=text)
        else:
            body.update(source="startup", reason="other")
        return body

    def input(self) -> bytes:
        """Return one mutated input."""
        chance = self.chance
        body = self.event()
        for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
            self.change(body)
        text = json.dumps(body, ensure_ascii=chance.random() < 0.3, separators=(",", ":"))
        if "@DEEP@" in text:  # as text: no encoder of ours would go as deep as a forger does
            depth = chance.choices([5, 50, 900, 3000, 100_000], [40, 30, 20, 9, 1])[0]
            text = text.replace('"@DEEP@"', '[{"k":' * depth + "1" + "}]" * depth)
        data = text.encode("utf-8", chance.choice(["surrogatepass", "replace"]))
        if chance.random() < 0.05:
            data = text.encode(chance.choice(ENCODINGS), "replace")
        for _ in range(chance.choice([0, 0, 1, 1, 2, 4, 16])):
            data = self.hurt(data)
        return data

    def change(self, body: dict[str, object]) -> None:
        chance = self.chance
        key = chance.choice(list(body) or ["x"])
        what = chance.randrange(6)
        if what == 0:
            body.pop(key, None)
        elif what == 1:
            body[key] = chance.choice(VALUES)
        elif what == 2:
            body[chance.choice(["unknown_field", "prompt", "cwd", "é"])] = chance.choice(VALUES)
        elif what == 3:
            for name in sorted(body, key=lambda _: chance.random()):
                body[name] = body.pop(name)
        elif what == 4:
            body[key] = "@DEEP@"
        else:
            size = chance.choices([100, 1000, 20_000, 200_000], [60, 30, 9, 1])[0]
            body[key] = chance.choice(TEXTS) * (size // 20)
        if chance.random() < 0.0001:
            body["last_assistant_message"] = chance.choice(["x", "日", "\0", '"']) * HUGE

    def hurt(self, data: bytes) -> bytes:
        chance = self.chance
        if not data:
            return chance.choice(NOISE)
        at, to = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + chance.choice([1, 8, 200, len(data)]))
        what = chance.randrange(6)
        if what == 0:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        if what == 1:
            return data[:at] + chance.choice(NOISE) + data[at:]
        if what == 2:
            return data[:at] + data[to:]
        if what == 3:
            return data[:at]
        if what == 4:
            return data[:to] + data[at:to] + data[to:]
        return data[:at] + chance.randbytes(min(to - at, 64)) + data[to:]


def good(number: int) -> bytes:
    text = {"session_id": GOOD, "hook_event_name": "Stop", "last_assistant_message": f"#{number}"}
    return json.dumps(text, separators=(",", ":")).encode()


def is_valid(output: bytes, data: bytes) -> bool:
    """Tell whether the client would take the output for what it is meant to be."""
    if not output:
        return True
    if output == b"TRIGGER:session-end\n":
        return b"SessionEnd" in data
    if output == BRIEF:
        return b"SessionStart" in data
    parsed = json.loads(output)
    inner = parsed["hookSpecificOutput"]
    if set(parsed) != {"hookSpecificOutput"} or b"UserPromptSubmit" not in data:
        return False
    lines = inner["additionalContext"].splitlines()
    starts = ("TRIGGER:immediate", "TRIGGER:extract", "[hypatia-memory] ")
    return inner["hookEventName"] == "UserPromptSubmit" and all(
        map(str.startswith, lines, [starts] * len(lines))
    )


def read_good(home: Path) -> list[str]:
    """Read the whole spool; return the good session's messages. Damage elsewhere is expected."""
    found = []
    for segment in spool.segments(str(home)):
        for item in spool.iter_records(segment.path):
            if isinstance(item, spool.Record):
                json.dumps(item.event, ensure_ascii=False).encode("utf-8")
                if item.session == GOOD:
                    found.append(item.event["last_assistant_message"])
            else:
                assert segment.session != GOOD, item.reason
                spool.quarantine(str(home), item)
    return found


def clear(home: Path) -> None:
    for name in ("spool", "turns"):
        shutil.rmtree(home / name)
    paths.ensure_home(str(home))


@pytest.fixture
def fast_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a home in memory where there is some: a hundred thousand syncs are not the point."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as folder:
        home = Path(folder) / "home"
        paths.ensure_home(str(home))
        (home / "briefs" / "global.json").write_bytes(BRIEF)
        (home / "hook.conf").write_text("extract_every=3\n")
        monkeypatch.setenv("HYPATIA_MEM_HOME", str(home))
        yield home


@pytest.mark.timeout(1200)
def test_mutated_inputs_through_the_entry_point(fast_home: Path, capfd) -> None:
    """No exception, no stray output, and each good record between them is read once."""
    mutator = Mutator(SEED)
    environ = dict(os.environ)
    every, expected, read = 50, [], []
    with tempfile.TemporaryFile() as out:
        for number in range(INPUTS):
            data = mutator.input()
            hook.handle(data, environ, out.fileno())
            if out.seek(0, os.SEEK_CUR) or os.fstat(out.fileno()).st_size:
                os.lseek(out.fileno(), 0, os.SEEK_SET)
                output = os.read(out.fileno(), 1 << 20)
                os.ftruncate(out.fileno(), 0)
                os.lseek(out.fileno(), 0, os.SEEK_SET)
                assert is_valid(output, data), (SEED, number, output[:300], data[:300])
            if number % every == 0:
                hook.handle(good(number), environ, out.fileno())
                expected.append(f"#{number}")
            if number % 5000 == 4999:
                read += read_good(fast_home)
                clear(fast_home)
    assert read + read_good(fast_home) == expected, SEED
    assert capfd.readouterr() == ("", "")
    assert str(spool.last_failure()) == "None", SEED


LOCALES = ["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1", "ja_JP.eucJP", "zh_CN.GBK", "nonsense"]


@pytest.mark.timeout(1200)
def test_mutated_inputs_through_real_processes(home: Path) -> None:
    """The same, with everything a process has: locale, environment, exit code, stderr."""
    mutator = Mutator(SEED + 1)
    chance = mutator.chance
    (home / "briefs" / "global.json").write_bytes(BRIEF)
    script = str(REPOSITORY / "hooks" / "hook.py")
    expected = []
    for number in range(PROCESSES):
        data = mutator.input()
        if number % 100 == 99:
            data = data[:1] + b'"filler":"' + b"z" * HUGE + b'",' + data[1:]
        environ: dict[bytes, bytes] = {
            **os.environb,
            b"LC_ALL": chance.choice(LOCALES).encode(),
            b"PYTHONUTF8": chance.choice([b"0", b"1", b"x"]),
            b"PYTHONIOENCODING": chance.choice([b"cp932", b"ascii", b""]),
            b"CLAUDE_PROJECT_DIR": chance.choice([b"", b"/", b"/home/dev/\xff\xfe", b'/a"b\\c']),
            b"AI_AGENT": chance.choice([b"claude-code_2-1-332_harness", b"\xff", b"x" * 5000]),
        }
        done = subprocess.run(
            [sys.executable, "-I", "-S", script],
            input=data,
            capture_output=True,
            env=environ,
            timeout=60,
        )
        where = (SEED, number, data[:300])
        assert done.returncode == 0, where
        assert done.stderr == b"", where
        assert is_valid(done.stdout, data), (*where, done.stdout[:300])
        if number % 20 == 0:
            subprocess.run([sys.executable, "-I", "-S", script], input=good(number), check=True)
            expected.append(f"#{number}")
    assert read_good(home) == expected, SEED
    assert str(spool.last_failure()) == "None", SEED

"""What a hook costs, against a bare start of the same interpreter, in one interleaved run.

    python benchmarks/hook.py [--runs 200] [--lease-held] [--home FOLDER | --turns N] [--out FILE]
    python benchmarks/hook.py --large [--runs 10] [--out FILE]

CPU (user and system) and wall time of real processes, p50 and p95, and their ratio to
``python -I -S -c pass``. Without ``--home`` the home is a scratch one; with it (or ``--turns`` that
fills a scratch store first) the hook writes into a copy of it. The worker is not
started: it is another process, and starting one is a case of its own.
``--large`` measures prompts of 1 kB to 1 MB instead: prose, logs, code, what is hard to redact.
Nothing here passes or fails; the budgets are printed beside the ratios for the reader.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY))

from hypatia_mem.capture import keyed, paths, spool  # noqa: E402 - the clone, not an installed version

SCRIPT = str(REPOSITORY / "hooks" / "hook.py")
SESSION = "24f0694b-985c-455c-bc0c-0f47428c6403"
WORDS = "Please find out why the parser drops the last line of src/app/read.py and fix it. "
BASE = "python -I -S -c pass"
SECRET = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"


@dataclass
class Case:
    """A command, its input, its budget (ratio of CPU to the bare start) and what was measured."""

    name: str
    command: list[str]
    data: bytes = b""
    budget: float = 0.0
    environ: dict[str, str] = field(default_factory=dict)
    forget: Path | None = None  # removed before each run
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run once; remember CPU and wall time in milliseconds."""
        if self.forget is not None:
            self.forget.unlink(missing_ok=True)
        environ = {**os.environ, **self.environ}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as inp:
            inp.write(self.data)
            inp.seek(0)
            ends = ((inp, 0), (out, 1), (out, 2))
            files = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for file, number in ends]
            started = time.perf_counter()
            pid = os.posix_spawn(self.command[0], self.command, environ, file_actions=files)
            _, status, usage = os.wait4(pid, 0)
            self.wall.append((time.perf_counter() - started) * 1000)
            if status:
                raise SystemExit(f"{self.name}: the process ended with status {status}")
        self.cpu.append((usage.ru_utime + usage.ru_stime) * 1000)


def event(name: str, **more: object) -> bytes:
    """Return a hook's input as the client writes it."""
    body = {
        "session_id": SESSION,
        "transcript_path": f"/home/dev/.claude/projects/-home-dev-app/{SESSION}.jsonl",
        "cwd": "/home/dev/app",
        "prompt_id": "d5e30947-c046-4a69-a9d2-8f0b97f1ac28",
        "permission_mode": "default",
        "hook_event_name": name,
        **more,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def text(size: int) -> str:
    """Return so many characters of prose."""
    return (WORDS * (size // len(WORDS) + 1))[:size]


def with_keys(home: Path, project: Path, count: int = 50) -> dict[str, str]:
    """Copy a home and give the project so many entries that words of a prompt call up."""
    copy = home.with_name("with-keys")
    shutil.copytree(home, copy, symlinks=True)
    items = [
        keyed.Item(
            f"{number:024x}",
            [f"word{number}", f"another{number}"],
            {"not-any": ["staging"]},
            sticky=3,
            text=f"- rule:number-{number}:\n> {text(300)}",
            units=330,
        )
        for number in range(count)
    ]
    (copy / paths.BRIEFS / keyed.ANY).touch()
    path = keyed.table_path(str(copy), paths.find_root(str(project)).key)
    keyed.write(path, keyed.table(items))
    return {"HYPATIA_MEM_HOME": str(copy)}


def cases(python: str, project: Path, no_worker: dict[str, str], mark: Path) -> list[Case]:
    """Return every case; the first is the base of all ratios."""
    hook = [python, "-I", "-S", SCRIPT]

    def of(name: str, data: bytes, budget: float) -> Case:
        return Case(name, hook, data, budget, no_worker)

    def stop(size: int) -> bytes:
        return event("Stop", stop_hook_active=False, last_assistant_message=text(size))

    start = event("SessionStart", source="startup", cwd=str(project))
    keys = with_keys(Path(no_worker["HYPATIA_MEM_HOME"]), project)

    def prompt(words: str) -> bytes:
        return event("UserPromptSubmit", prompt=words, cwd=str(project))

    called = prompt(text(700) + "word1 word7 word9")
    found = [
        Case(BASE, [python, "-I", "-S", "-c", "pass"]),
        of("UserPromptSubmit, 800 B", event("UserPromptSubmit", prompt=text(800)), 1.6),
        of("Stop, 2 KB", stop(2000), 1.6),
        of("Stop, 1 MB", stop(1_000_000), 0),
        of("prompt with a secret", event("UserPromptSubmit", prompt=text(700) + SECRET), 3.0),
        of("remember: ...", event("UserPromptSubmit", prompt="remember: never mock the db"), 0),
        of("SessionStart, 9 KB brief", start, 2.0),
        Case("prompt, 50 with keys, none said", hook, prompt(text(800)), 2.0, keys),
        Case("prompt, 50 with keys, 3 told", hook, called, 2.5, keys),
        Case("Stop, 2 KB, starting a worker", hook, stop(2000), forget=mark),
    ]
    for name, arguments in (("node", ["-e", "0"]), ("true", [])):
        binary = shutil.which(name)
        if binary:
            found.append(Case(" ".join([name, *arguments]), [os.path.realpath(binary), *arguments]))
    return found


# What a large prompt is made of; the rest of each is told by its name.
LARGE = {
    "prose": WORDS,
    "log lines": "2026-03-02 10:{n:02}:11 DEBUG auth: token {n} refreshed, key: user:{n} ok\n",
    "code": "def login_{n}(user: str, password: str) -> Token:\n    return get(user, key={n})\n",
    "JSON": '{{"id": {n}, "key": "k{n}", "mail": "joe{n}@example.org", "next_token": null}}\n',
    "minified": "function t{n}(e,n){{return e.token=n.key||this.auth(e),e.pass?n:{n}}}",
    "base64": "",
    "scripts": "密码重置流程有问题，请找出原因{n}。パスワードのリセットを直してください。",
    "words of secrets": "the password token {n} secret key auth pass signature api key cookie ",
    "secrets": "password=hunter{n} and the token is abc123def456ghi{n}\n",
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def large(kind: str, size: int) -> str:
    """Return so many characters of a kind of text."""
    if kind == "base64":
        return base64.b64encode(random.Random(7).randbytes(size)).decode()[:size]
    pieces, length = [], 0
    while length < size:
        pieces.append(LARGE[kind].format(n=len(pieces) % 97))
        length += len(pieces[-1])
    return "".join(pieces)[:size]


def large_cases(python: str, no_worker: dict[str, str]) -> list[Case]:
    """Return the base, and each kind of text in each size."""
    hook = [python, "-I", "-S", SCRIPT]
    return [Case(BASE, [python, "-I", "-S", "-c", "pass"])] + [
        Case(
            f"{kind}, {size // 1000} kB",
            hook,
            event("UserPromptSubmit", prompt=large(kind, size)),
            environ=no_worker,
        )
        for kind in LARGE
        for size in SIZES
    ]


def real_interpreter() -> str:
    """Return the interpreter an installed hook runs on: never a virtual environment's link."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@contextlib.contextmanager
def lease_held(home: Path) -> Iterator[None]:
    """Hold the store's lease in another process, as the worker does while it writes."""
    code = (
        "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600); "
        "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home / paths.STORE_LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            assert holder.stdin is not None
            holder.stdin.close()


def fill(home: Path, turns: int) -> None:
    """Store ``turns`` messages by spooling them and draining once."""
    at = time.time_ns() - turns * 1_000_000_000
    for number in range(turns):
        session = f"bench-{number // 400:05d}"
        name, key = (
            ("Stop", "last_assistant_message") if number % 2 else ("UserPromptSubmit", "prompt")
        )
        more = {key: f"{number} {text(300)}", "prompt_id": f"p-{number // 2}"}
        body = json.loads(event(name, session_id=session, **more))
        body.pop("transcript_path")
        spool.append(
            str(home),
            session,
            json.dumps(body).encode(),
            at_ns=at + number * 1_000_000_000,
            meta=b'"dir":"/home/dev/app",',
        )
    command = [sys.executable, "-m", "hypatia_mem.worker", "--home", str(home), "--once"]
    subprocess.run(command, check=True, cwd=REPOSITORY)


def prepare(home: Path, project: Path) -> dict[str, str]:
    """Brief the project with 9 KB; let the worker be a program that ends at once."""
    paths.ensure_home(str(home))
    key = paths.find_root(str(project)).key
    inner = {"hookEventName": "SessionStart", "additionalContext": text(9000)}
    brief = json.dumps({"hookSpecificOutput": inner}).encode() + b"\n"
    (home / paths.BRIEFS / f"{key}.json").write_bytes(brief)
    (home / paths.HOOK_CONF).write_text("python=/bin/true\n")
    idle = home.with_name("no-worker")  # the same home, by a configuration without a worker
    shutil.copytree(home, idle, symlinks=True)
    (idle / paths.HOOK_CONF).write_text("extract_every=0\n")
    return {"HYPATIA_MEM_HOME": str(idle)}


def quantile(values: list[float], part: float) -> float:
    """Return the value that ``part`` of all are not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def report(found: list[Case]) -> list[dict[str, object]]:
    """Print the table; return its rows."""
    base = found[0]
    rows: list[dict[str, object]] = []
    print(f"{'':32} {'CPU ms':>7} {'p95':>7} {'ratio':>6} {'budget':>6} {'wall ms':>8} {'p95':>7}")
    for case in found:
        cpu, wall = statistics.median(case.cpu), statistics.median(case.wall)
        ratio = cpu / statistics.median(base.cpu)
        budget = f"{case.budget:.1f}" if case.budget else ""
        high_cpu, high_wall = quantile(case.cpu, 0.95), quantile(case.wall, 0.95)
        print(
            f"{case.name:32} {cpu:7.2f} {high_cpu:7.2f} {ratio:6.2f} {budget:>6} "
            f"{wall:8.2f} {high_wall:7.2f}"
        )
        rows.append(
            {
                "case": case.name,
                "cpu_ms_p50": round(cpu, 2),
                "cpu_ms_p95": round(high_cpu, 2),
                "cpu_ratio": round(ratio, 2),
                "budget": case.budget or None,
                "wall_ms_p50": round(wall, 2),
                "wall_ms_p95": round(high_wall, 2),
                "wall_ratio": round(wall / statistics.median(base.wall), 2),
            }
        )
    return rows


def machine(python: str) -> dict[str, object]:
    """Describe the machine without naming it."""
    version = [python, "-I", "-S", "-c", "import sys; print(sys.version.split()[0])"]
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": model,
        "cores": os.cpu_count(),
        "python": subprocess.run(version, capture_output=True, text=True).stdout.strip(),
    }


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="runs of each case")
    parser.add_argument(
        "--lease-held", action="store_true", help="hold the store's lease meanwhile"
    )
    parser.add_argument("--home", type=Path, help="a memory to copy, e.g. one with many turns")
    parser.add_argument("--turns", type=int, default=0, help="fill a scratch store with so many")
    parser.add_argument("--large", action="store_true", help="prompts of 1 kB to 1 MB instead")
    parser.add_argument("--python", default=real_interpreter(), help="the hook's interpreter")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "app"
        project.mkdir()
        os.environ["HYPATIA_MEM_HOME"] = str(home)
        if options.home:
            shutil.copytree(options.home, home)
        elif options.turns:
            fill(home, options.turns)
        no_worker = prepare(home, project)
        found = (
            large_cases(options.python, no_worker)
            if options.large
            else cases(options.python, project, no_worker, home / paths.WORKER_START)
        )
        held = Path(no_worker["HYPATIA_MEM_HOME"])
        with lease_held(held) if options.lease_held else contextlib.nullcontext():
            for case in found * 2:  # byte code, caches
                case.run()
            for case in found:
                case.cpu.clear()
                case.wall.clear()
            for _ in range(options.runs):
                for case in found:
                    case.run()
    rows = report(found)
    if options.out:
        result = {
            "benchmark": "hook, large prompts" if options.large else "hook",
            "runs": options.runs,
            "lease_held": options.lease_held,
            "turns": options.turns,
            "machine": machine(options.python),
            "results": rows,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

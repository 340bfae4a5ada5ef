"""Runs the real client as a person would: own home, own network, nothing of the machine's.

``run`` starts ``inside.py`` in new network, mount and process namespaces: only the loopback device
exists, the whole file system is read-only but for the scratch folder, and whatever was started
there ends with it. ``Desk`` is the person's side in there: prompts with ``-p``, conversations over
stream-json, the full screen under tmux, and the memory's own command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.client.stub import Stub

ROOT = Path(__file__).resolve().parents[2]
MOUNT = Path("/mnt")
HOME = MOUNT / "dev"
KEY = "sk-ant-api03-" + "not-a-real-key-" * 4 + "AAAA"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GIT = "[user]\n\tname = Dev\n\temail = dev@example.invalid\n[init]\n\tdefaultBranch = main\n"
READY = r"\? for shortcuts|bypass permissions on|❯"


def run(binary: Path, product: Path, scratch: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Run the scenarios with one client; return what ``inside.py`` wrote.

    ``product`` is the folder of a virtual environment with the wheel; ``scratch`` becomes the
    person's home. Raises RuntimeError with the end of the output when the run broke down.
    """
    home = scratch / "dev"
    home.mkdir(parents=True)
    result = scratch / "result.json"
    command = [
        *("unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"),
        # bash stays as the first process of the namespace: it collects what daemons leave behind
        *("bash", "-c", '"$@"; exit $?', "first"),
        *(sys.executable, str(Path(__file__).with_name("inside.py"))),
        *(str(binary), str(product), str(scratch), *only),
    ]
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    done = subprocess.run(
        command,
        env={"PATH": PATH, "PYTHONDONTWRITEBYTECODE": "1", **kept},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (scratch / "output.txt").write_text(done.stdout)
    if not result.exists():
        raise RuntimeError(f"the client's run ended with {done.returncode}: {done.stdout[-4000:]}")
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def enter(scratch: Path) -> None:
    """Fence this process, which is alone in its namespaces already.

    Raises CalledProcessError without the rights to mount.
    """

    def call(*command: str) -> None:
        subprocess.run(command, check=True)

    call("ip", "link", "set", "lo", "up")
    call("mount", "--make-rprivate", "/")
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(MOUNT))
    HOME.mkdir()
    call("mount", "--bind", str(scratch / "dev"), str(HOME))
    (MOUNT / "out").mkdir()
    call("mount", "--bind", str(scratch), str(MOUNT / "out"))
    call("mount", "-o", "remount,bind,ro", "/")
    (HOME / "tmp").mkdir()


class Desk:
    """A person with a client, a shell and a home."""

    def __init__(self, binary: Path, product: Path, version: str) -> None:
        """Set the home up; the stub listens from now on."""
        self.stub = Stub().start()
        self.version = version
        self.claude = HOME / ".local" / "bin" / "claude"
        self.product = product
        self.new = tuple(map(int, version.split("."))) >= (2, 1, 200)
        self.screens: dict[str, list[str]] = {}
        self.errors: list[str] = []
        self.environ = {
            "PATH": f"{self.claude.parent}:{product / 'bin'}:{PATH}",
            "HOME": str(HOME),
            "USER": "dev",
            "LOGNAME": "dev",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMPDIR": str(HOME / "tmp"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.stub.port}",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",  # the client refuses to skip permissions as root elsewhere
        }
        self.claude.parent.mkdir(parents=True)
        self.claude.symlink_to(binary)
        (HOME / ".gitconfig").write_text(GIT)
        self.settings = HOME / ".claude" / "settings.json"
        self.settings.parent.mkdir()
        self.settings.write_text('{"skipDangerousModePermissionPrompt": true}\n')
        self._trusted: list[Path] = []

    # -- folders ---------------------------------------------------------------------------

    def repository(self, name: str) -> Path:
        """Make a git repository with one commit, in which the client trusts itself."""
        path = HOME / "work" / name
        path.mkdir(parents=True)
        (path / "README.md").write_text("hello\n")
        self.shell("git init -q && git add -A && git commit -qm first", path)
        return self.trust(path)

    def trust(self, path: Path) -> Path:
        """Spare the person the client's first-run questions, here and in general."""
        self._trusted.append(path)
        config = HOME / ".claude.json"
        held = json.loads(config.read_text()) if config.exists() else {}
        held |= {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "9.9.9",
            "theme": "dark",
            "numStartups": 3,
            "bypassPermissionsModeAccepted": True,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        }
        for folder in self._trusted:
            project = held.setdefault("projects", {}).setdefault(str(folder), {})
            project |= {
                "hasTrustDialogAccepted": True,
                "hasCompletedProjectOnboarding": True,
                "projectOnboardingSeenCount": 1,
            }
        config.write_text(json.dumps(held))
        return path

    def shell(self, command: str, cwd: Path) -> str:
        """Run a command of the person; its output. Raises CalledProcessError."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def transcripts(self, cwd: Path) -> list[Path]:
        """Return the client's transcripts of a folder, the oldest session first."""
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(cwd.resolve()))
        folder = HOME / ".claude" / "projects" / slug

        def begun(path: Path) -> str:
            # A fork repeats the lines of its origin, so the newest word tells the order.
            lines = [json.loads(line) for line in path.read_bytes().splitlines()]
            spoken = [line for line in lines if line.get("type") in ("user", "assistant")]
            return max((line["timestamp"] for line in spoken), default="")

        return sorted(folder.glob("*.jsonl"), key=begun)

    # -- the client ------------------------------------------------------------------------

    def argv(self, *arguments: str) -> list[str]:
        """Return the client's command line."""
        return [str(self.claude), "--dangerously-skip-permissions", *arguments]

    def ask(
        self,
        prompt: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        timeout: float = 90,
    ) -> dict[str, Any]:
        """Run ``claude -p``; its result. What it says on stderr is kept in ``errors``."""
        done = subprocess.run(
            self.argv("-p", "--output-format", "json", *arguments, "--", prompt),
            cwd=cwd,
            env={**self.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        self.errors.append(done.stderr)
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return {"stdout": done.stdout, "stderr": done.stderr, "code": done.returncode}
        return found

    def talk(
        self,
        messages: Sequence[str | list[Any]],
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        linger: float = 0,
    ) -> str:
        """Hold a conversation over stream-json, each message after the result of the last.

        Returns the session's id. ``linger``: seconds to keep the input open at the end.
        """
        client = subprocess.Popen(
            self.argv(
                *("-p", "--input-format", "stream-json", "--output-format", "stream-json"),
                *("--verbose", *arguments),
            ),
            cwd=cwd,
            env={**self.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        session = ""
        for content in messages:
            message = {"type": "user", "message": {"role": "user", "content": content}}
            client.stdin.write(json.dumps(message) + "\n")
            client.stdin.flush()
            for line in client.stdout:
                event = json.loads(line)
                session = event.get("session_id") or session
                if event.get("type") == "result":
                    break
        time.sleep(linger)
        client.stdin.close()
        client.stdout.read()
        self.errors.append(client.stderr.read())
        client.wait(60)
        return session

    def start(self, prompt: str, *arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
        """Start ``claude -p`` and do not wait for it."""
        return subprocess.Popen(
            self.argv("-p", *arguments, "--", prompt),
            cwd=cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def screen(self, name: str, *arguments: str, cwd: Path) -> Iterator[Screen]:
        """Sit down in front of the full screen; leaving closes it, however it went."""
        screen = Screen(self, cwd, arguments, len(self.screens))
        self.screens[name] = screen.seen
        try:
            screen.wait(READY)
            yield screen
        finally:
            screen.look()
            screen.close()

    # -- the memory ------------------------------------------------------------------------

    def memory(self, *arguments: str, cwd: Path | None = None) -> Any:
        """Run ``hypatia-mem ... --json`` as the person would and return what it says."""
        done = subprocess.run(
            [str(self.product / "bin" / "hypatia-mem"), *arguments, "--json"],
            cwd=cwd or HOME,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"hypatia-mem {shlex.join(arguments)}: {done.stderr or done.stdout}")
        return json.loads(done.stdout)

    def settle(self, timeout: float = 60) -> dict[str, Any]:
        """Wait until nothing waits in the spool; the status at that moment."""
        deadline = time.monotonic() + timeout
        while True:
            status: dict[str, Any] = self.memory("status")
            if status["waiting"] == 0 and status["waiting_records"] == 0:
                return status
            if time.monotonic() > deadline:
                raise TimeoutError(f"turns still wait: {status}")
            time.sleep(0.3)


class Screen:
    """The client's full screen under tmux, and a person's fingers."""

    def __init__(self, desk: Desk, cwd: Path, arguments: Sequence[str], number: int) -> None:
        """Start the client in a terminal of 150 columns."""
        self.seen: list[str] = []
        self.stub = desk.stub
        self._tmux = ["tmux", "-S", str(HOME / "tmp" / f"screen{number}"), "-f", "/dev/null"]
        line = shlex.join(desk.argv(*arguments)) + "; echo LEFT; sleep 600"
        self._do("new-session", "-d", "-x", "150", "-y", "50", line, cwd=cwd, env=desk.environ)

    def _do(self, *command: str, **kwargs: Any) -> str:
        done = subprocess.run(
            [*self._tmux, *command], capture_output=True, text=True, check=True, **kwargs
        )
        return done.stdout

    def look(self) -> str:
        """Return what is on the screen and remember that it was."""
        try:
            text = self._do("capture-pane", "-p", "-S", "-500").rstrip()
        except subprocess.CalledProcessError:
            return ""
        self.seen.append(text)
        return text

    def wait(self, pattern: str, timeout: float = 30) -> None:
        """Wait until the screen shows ``pattern``. Raises TimeoutError with the screen."""
        deadline = time.monotonic() + timeout
        while not re.search(pattern, text := self.look()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the screen never showed {pattern!r}:\n{text}")
            time.sleep(0.15)

    def rest(self, still: float = 0.9, timeout: float = 20) -> None:
        """Wait until the screen has not changed for a while: the client waits for the person."""
        deadline = time.monotonic() + timeout
        last, since = self.look(), time.monotonic()
        while time.monotonic() - since < still and time.monotonic() < deadline:
            time.sleep(0.15)
            text = self.look()
            if text != last:
                last, since = text, time.monotonic()

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self._do("send-keys", "-l", text)
        time.sleep(0.4)
        self._do("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self._do("send-keys", *keys)

    def prompt(self, text: str, answer: str) -> None:
        """Type a prompt and wait until its answer stands there and the client is at rest."""
        self.type(text)
        self.wait(answer)
        self.rest()

    def leave(self) -> None:
        """Go as people do, with Ctrl-C twice."""
        self.press("C-c")
        time.sleep(0.3)
        self.press("C-c")
        self.wait("LEFT")

    def close(self) -> None:
        """Take the terminal away."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


def copy_of(path: Path, target: Path) -> None:
    """Copy a folder for whoever looks at a failed run."""
    shutil.copytree(path, target, symlinks=True, ignore_dangling_symlinks=True)

"""A headless Chromium, driven over its own pipe: no driver, no port, no package.

``--remote-debugging-pipe`` makes it read commands from descriptor 3 and write answers to 4, each a
JSON text that ends with NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """Return the browser to test with, None where there is none."""
    named = os.environ.get("HYPATIA_TEST_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page of one browser; leave the ``with`` block and both are gone."""

    def __init__(self, program: str, profile: Path, *arguments: str) -> None:
        self._in, theirs_in = os.pipe()[::-1]
        theirs_out, self._out = os.pipe()[::-1]
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}",
            "--remote-debugging-pipe", *arguments, "about:blank",
        ]  # fmt: skip

        def descriptors() -> None:
            kept_in, kept_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(kept_in, 3)
            os.dup2(kept_out, 4)

        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=descriptors,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._rest = b""
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Page:
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(one for one in targets if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; what happens meanwhile is kept in ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], 30)
            piece = os.read(self._out, 1 << 20) if ready else b""
            if not piece:
                raise AssertionError("the browser does not answer")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript in the page and return its value."""
        done = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"])
        return done["result"].get("value")

    def open(self, file: Path, address: str = "", *, seconds: float = 30) -> None:
        """Open a file and wait until the page says that it is ready."""
        self.ask("Page.navigate", url=file.as_uri() + address)
        self.until("document.body?.dataset.ready === 'true'", seconds=seconds)

    def until(self, condition: str, *, seconds: float = 10) -> None:
        """Wait until a condition holds in the page."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never became true: {condition}"
            time.sleep(0.05)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button there."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                buttons=int(kind == "mousePressed"),
            )  # fmt: skip

    def key(self, key: str, text: str = "") -> None:
        """Press and release a key."""
        more = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self) -> bytes:
        """Return a PNG of what is seen."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def requests(self) -> list[str]:
        """Return every address the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return what the browser had to say against the page: errors, refused scripts."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event.get("method") == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
        return found

"""A Messages API on loopback that answers as a test has scripted, and keeps every request.

Steps are taken in order, the last one again and again. Parcels of requests are answered with the
same steps as soon as they are asked for, unless they are held back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Step:
    """One answer: text and reasoning, or an HTTP status, or a body that is no answer at all."""

    text: str = ""
    thinking: str = ""
    stop: str = "end_turn"
    status: int = 200
    message: str = "scripted failure"
    retry_after: str = ""
    silent: bool = False
    raw: bytes = b""
    read: int = 1000  # tokens that it says it has read


@dataclass
class Asked:
    """A request as it came: where, with which headers, and its body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Return what the model was asked."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class ModelServer:
    """The scripted server; ``meanwhile`` is called while a request waits for its answer."""

    steps: list[Step] = field(default_factory=lambda: [Step("NAME: x\n- y")])
    meanwhile: Callable[[], None] = lambda: None
    hold: bool = False
    asked: list[Asked] = field(default_factory=list)
    parcels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    recalled: set[str] = field(default_factory=set)
    refuses: int = 0  # the status with which the next recall is refused
    counts: int = 0  # tokens that any question has, as it counts them; 0: by its length
    url: str = ""

    def start(self) -> ModelServer:
        owner = self

        class Handler(_Handler):
            server_state = owner

        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def says(self, *steps: Step | str) -> None:
        self.steps = [Step(one) if isinstance(one, str) else one for one in steps]

    @property
    def questions(self) -> list[Asked]:
        """Return the requests for an answer, without those that only count or fetch."""
        return [one for one in self.asked if one.path == "/v1/messages"]

    @property
    def counted(self) -> int:
        """Return how many questions it was asked to count."""
        return sum(one.path.endswith("/count_tokens") for one in self.asked)

    def take(self) -> Step:
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def wait(self) -> None:
        self._over.wait(60)


def message(step: Step, model: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if step.thinking:
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": "c2ln"})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": blocks,
        "stop_reason": step.stop, "stop_sequence": None,
        "usage": {
            "input_tokens": step.read, "output_tokens": 100, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }  # fmt: skip


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _Handler(BaseHTTPRequestHandler):
    server_state: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        state = self.server_state
        state.asked.append(Asked(self.path, _lower(self.headers), {}))
        name = self.path.split("/")[4].partition("?")[0]
        if self.path.endswith("/results"):
            lines = []
            for one in state.parcels[name]:
                step = state.take()
                if name in state.recalled:
                    result = {"type": "canceled"}
                elif step.status == 200:
                    result = {"type": "succeeded", "message": message(step, "m")}
                else:
                    error = {"type": "api_error", "message": step.message}
                    result = {"type": "errored", "error": {"type": "error", "error": error}}
                lines.append(json.dumps({"custom_id": one["custom_id"], "result": result}))
            self._send(200, "\n".join(lines).encode() + b"\n", kind="application/x-jsonl")
            return
        self._json(200, self._parcel(name, "in_progress" if state.hold else "ended"))

    def do_POST(self) -> None:
        state = self.server_state
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw) if raw else {}
        path = self.path.partition("?")[0]
        state.asked.append(Asked(path, _lower(self.headers), body))
        state.meanwhile()
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": state.counts or len(raw) // 4})
        elif path.endswith("/cancel"):
            self._recall(path.split("/")[4])
        elif path.endswith("/batches"):
            name = f"msgbatch_{len(state.parcels)}"
            state.parcels[name] = body["requests"]
            self._json(200, self._parcel(name, "in_progress"))
        else:
            self._answer(state.take(), str(body.get("model")))

    def _recall(self, name: str) -> None:
        if self.server_state.refuses:
            error = {"type": "api_error", "message": "scripted refusal"}
            self._json(self.server_state.refuses, {"type": "error", "error": error})
            return
        self.server_state.recalled.add(name)
        self._json(200, self._parcel(name, "canceling"))

    def _parcel(self, name: str, state: str) -> dict[str, Any]:
        at = "2026-11-30T12:00:00Z"
        url = f"{self.server_state.url}/v1/messages/batches/{name}/results"
        counts = {"canceled": 0, "errored": 0, "expired": 0, "processing": 0, "succeeded": 1}
        return {
            "id": name, "type": "message_batch", "processing_status": state, "created_at": at,
            "expires_at": at, "ended_at": at, "archived_at": None, "cancel_initiated_at": None,
            "request_counts": counts, "results_url": url if state == "ended" else None,
        }  # fmt: skip

    def _answer(self, step: Step, model: str) -> None:
        if step.silent:
            self.server_state.wait()
            return
        if step.raw:
            self._send(200, step.raw)
        elif step.status == 200:
            self._json(200, message(step, model))
        else:
            error = {"type": "api_error", "message": step.message}
            self._json(step.status, {"type": "error", "error": error}, step.retry_after)

    def _json(self, status: int, value: dict[str, Any], retry_after: str = "") -> None:
        self._send(status, json.dumps(value).encode(), retry_after)

    def _send(
        self, status: int, body: bytes, retry_after: str = "", kind: str = "application/json"
    ) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            if retry_after:
                self.send_header("retry-after", retry_after)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass

"""A Messages API on loopback that answers as a test has scripted, and keeps every request.

A script belongs to a marker: the newest text of a conversation that holds a marker decides, and
each request takes the script's next step. A conversation without one, or with a script that is
used up, gets ``Answer.``, the same each time. Summaries for a compaction and titles are recognised
by what is asked and never take a step.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "Answer."
SUMMARY = "The person asked for small things and got them. Nothing is open."
TITLE = "Small things done"
OWN = "hypatia-mem:internal"  # the first line of what the memory itself asks by the client


@dataclass(frozen=True)
class Step:
    """One reply: ``text`` and tool calls, or an HTTP ``status``; ``wait`` seconds before it."""

    text: str = ""
    tools: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thinking: str = ""
    status: int = 200
    wait: float = 0.0
    pieces: int = 1
    piece_wait: float = 0.0
    input_tokens: int = 0


@dataclass
class Request:
    """What the client asked: ``kind`` is main, summary, title or own (the memory's question)."""

    at: float
    kind: str
    body: Mapping[str, Any]

    def text(self) -> str:
        """Return everything the model is told, system prompt included."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass
class Stub:
    """The server's state; ``start`` serves until the process ends."""

    requests: list[Request] = field(default_factory=list)
    port: int = 0
    own: Step = Step(ANSWER)  # what the memory's questions are answered
    _scripts: dict[str, deque[Step]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, marker: str, *steps: Step) -> str:
        """Answer conversations that mention ``marker`` with ``steps``; returns the marker."""
        with self._lock:
            self._scripts[marker] = deque(steps)
        return marker

    def start(self) -> Stub:
        """Serve on a free port of the loopback device."""
        stub = self

        class Handler(_Handler):
            owner = stub

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def since(self, mark: int, kind: str = "main") -> list[Request]:
        """Return the requests of a kind that came after the first ``mark`` ones."""
        return [request for request in self.requests[mark:] if request.kind == kind]

    def take(self, body: Mapping[str, Any]) -> tuple[str, Step]:
        """Choose the reply to a request and write the request down."""
        kind = _kind(body)
        with self._lock:
            self.requests.append(Request(time.time(), kind, body))
            if kind == "summary":
                return kind, Step(f"<analysis>short</analysis>\n<summary>\n{SUMMARY}\n</summary>")
            if kind == "own":
                return kind, self.own
            if kind == "title":
                return kind, Step(json.dumps({"title": TITLE, "isNewTopic": True}))
            script = self._script_of(body)
            if script:
                return kind, script.popleft()
            return kind, Step(ANSWER)

    def _script_of(self, body: Mapping[str, Any]) -> deque[Step] | None:
        for message in reversed(body.get("messages") or []):
            if message.get("role") != "user":
                continue
            for text in reversed(_texts(message)):
                found = [marker for marker in self._scripts if marker in text]
                if found:
                    return self._scripts[max(found, key=text.rfind)]
        return None


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if block.get("type") == "text"]


def _kind(body: Mapping[str, Any]) -> str:
    messages = body.get("messages") or []
    asked = [text for one in messages if one.get("role") == "user" for text in _texts(one)]
    if any(text.startswith(OWN) for text in asked):
        return "own"
    last = " ".join(_texts(messages[-1])) if messages else ""
    if "<summary>" in last and "summary of" in last:
        return "summary"
    return "main" if body.get("tools") else "title"


class _Handler(BaseHTTPRequestHandler):
    owner: Stub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the test reads ``Stub.requests``."""

    def do_GET(self) -> None:
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "no"}})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        raw = self._read()
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": max(1, len(raw) // 4)})
        elif not path.endswith("/v1/messages"):
            self.do_GET()
        else:
            self._answer(json.loads(raw), len(raw))

    def _read(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _json(self, status: int, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status >= 400:
            self.send_header("x-should-retry", "false")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self, body: Mapping[str, Any], size: int) -> None:
        _, step = self.owner.take(body)
        time.sleep(step.wait)
        if step.status != 200:
            error = {"type": "api_error", "message": "scripted failure"}
            self._json(step.status, {"type": "error", "error": error})
            return
        number = time.monotonic_ns()
        blocks: list[dict[str, Any]] = []
        if step.thinking:
            blocks.append({"type": "thinking", "thinking": step.thinking, "signature": "c2ln"})
        if step.text:
            blocks.append({"type": "text", "text": step.text})
        for index, (name, given) in enumerate(step.tools):
            call = f"toolu_{number}_{index}"
            blocks.append({"type": "tool_use", "id": call, "name": name, "input": dict(given)})
        usage = {
            "input_tokens": step.input_tokens or max(1, size // 4),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 5,
        }
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "stub"),
            "content": blocks,
            "stop_reason": "tool_use" if step.tools else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self._json(200, message)
            return
        # The person may press Esc, or the client be killed: that is the scenario.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._stream(message, step)

    def _stream(self, message: Mapping[str, Any], step: Step) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self._event("message_start", message={**message, "content": [], "stop_reason": None})
        for index, block in enumerate(message["content"]):
            empty, deltas = _in_pieces(block, step.pieces)
            self._event("content_block_start", index=index, content_block=empty)
            for delta in deltas:
                self._event("content_block_delta", index=index, delta=delta)
                time.sleep(step.piece_wait)
            self._event("content_block_stop", index=index)
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        self._event("message_delta", delta=end, usage=message["usage"])
        self._event("message_stop")

    def _event(self, name: str, **fields: Any) -> None:
        data = json.dumps({"type": name, **fields})
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()


def _in_pieces(
    block: Mapping[str, Any], pieces: int
) -> tuple[Mapping[str, Any], Iterable[Mapping[str, Any]]]:
    """Return a block's empty form and the deltas that fill it."""
    if block["type"] == "tool_use":
        made = json.dumps(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": made}]
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    text = block["text"]
    size = max(1, -(-len(text) // pieces))
    cuts = [text[at : at + size] for at in range(0, len(text), size)]
    return {**block, "text": ""}, [{"type": "text_delta", "text": cut} for cut in cuts]

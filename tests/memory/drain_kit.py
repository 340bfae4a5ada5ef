"""A memory, a project, and a client whose hooks and transcript a test writes by hand."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.config import Settings
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.model import Author, Channel
from hypatia_mem.store.connection import open_store

START = 1_800_000_000_000_000_000
PERSON = Author(Channel.CLI_PERSON)
NOW = datetime(2027, 1, 15, 8, 0)


class World:
    """A memory, a project and a client whose hooks and transcript the test writes by hand."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.now = START
        self.session = "s-1"
        self.drain = Drain(home, Settings(), clock_ns=lambda: self.now)

    @property
    def transcript(self) -> Path:
        return self.folder.parent / "transcripts" / f"{self.session}.jsonl"

    def hook(self, event: str, *, dir: str | None = None, **fields: object) -> None:
        self.now += 1_000_000
        body = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            "hook_event_name": event,
            **fields,
        }
        where = json.dumps(dir or str(self.folder)).encode()
        spool.append(
            str(self.home),
            self.session,
            json.dumps(body).encode(),
            at_ns=self.now,
            meta=b'"dir":%s,"client":"claude-code_9",' % where,
        )

    def turn(self, prompt: str, answer: str, *, written: bool = False, **more: str) -> None:
        prompt_id = str(uuid.uuid4())
        self.hook("UserPromptSubmit", prompt=prompt, prompt_id=prompt_id)
        if written:
            self.line("user", prompt, promptId=prompt_id, promptSource="typed")
            self.line("assistant", answer)
        self.hook("Stop", last_assistant_message=answer, prompt_id=prompt_id)

    def line(self, kind: str, text: str, **fields: object) -> dict[str, object]:
        stamp = datetime.fromtimestamp(self.now / 1e9, UTC).isoformat().replace("+00:00", "Z")
        one: dict[str, object] = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "parentUuid": None,
            "sessionId": self.session,
            "timestamp": stamp,
            "cwd": str(self.folder),
            "gitBranch": "main",
            "version": "9.9.9",
            **fields,
        }
        if "message" in fields:
            pass
        elif kind == "user":
            one["message"] = {"role": "user", "content": text}
        elif kind == "assistant":
            one["message"] = {
                "id": f"msg_{uuid.uuid4().hex}",
                "role": "assistant",
                "content": [{"type": "text", "text": text}],
            }
        self.transcript.parent.mkdir(exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as out:
            out.write(json.dumps(one) + "\n")
        return one

    def settle(self, *, final: bool = False) -> None:
        for _ in range(6):
            self.drain.step(final=final)
            self.now += 2_000_000_000

    def texts(self, session: str | None = None) -> list[tuple[int, str, str]]:
        with open_store(self.home, write=False) as store:
            found = store.messages(session or self.session)
        return [(m.turn, m.role, m.text) for m in found]

    def rules(self, scope: str | None = None) -> list[str]:
        with open_store(self.home, write=False) as store:
            return [entry.content for entry in store.rules([scope or self.folder.name, ""])]


@pytest.fixture
def world(home: Path, tmp_path: Path) -> World:
    """Return one whose project is ``app``."""
    folder = tmp_path / "app"
    folder.mkdir()
    return World(home, folder)

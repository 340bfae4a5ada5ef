"""The user's own client judges finished work: with every guard, and nothing of it is captured."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import pytest

from hypatia_mem.capture import hook, spool
from hypatia_mem.config import Settings
from hypatia_mem.memory.extract import running
from hypatia_mem.store import lessons
from hypatia_mem.store.connection import open_store
from tests.memory.test_claude_cli import Client
from tests.memory.test_extract import BUG, NOW, say
from tests.memory.test_extract_model import GOOD

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a script of POSIX")


def test_it_is_asked_as_for_a_summary_and_leaves_no_trace(home, tmp_path):
    (tmp_path / "bin").mkdir()
    client = Client(tmp_path / "bin")
    client.answers(GOOD, usage={"input_tokens": 900, "output_tokens": 90}, total_cost_usd=0.01)
    say(home, BUG)
    settings = Settings(summary_by="claude-cli", claude_command=str(client.path))

    running.run(home, now=NOW + timedelta(hours=2), settings=settings)

    with open_store(home, write=False) as store:
        (unit,) = lessons.known_units(store, ["app"])
        producer = store.producer_of(unit.name)
        sessions = [one.id for one in store.sessions(None, limit=9)]
    assert producer.startswith("claude-cli:haiku#")
    assert "refresh_token() returns None when the cookie has expired" in unit.content
    was = client.was()
    assert was["env"]["HYPATIA_MEM_INTERNAL"] == "1"
    assert was["stdin"].splitlines()[0] == "hypatia-mem:internal"
    assert not any("KeyError" in part for part in was["argv"])

    # Also where the guard was stripped on the way: the marker, and the folder, each alone do it.
    def captured(session, **more):
        event = {"session_id": session, "hook_event_name": "UserPromptSubmit", **more}
        data = json.dumps(event, separators=(",", ":")).encode()
        hook.handle(data, {"HYPATIA_MEM_HOME": str(home)}, 2)
        return any(session in one.path for one in spool.segments(str(home)))

    assert not captured("marked", prompt=was["stdin"], cwd="/elsewhere")
    assert not captured("inside", prompt="x", cwd=was["cwd"])
    assert captured("anybody", prompt="x", cwd="/elsewhere")
    assert sessions == []

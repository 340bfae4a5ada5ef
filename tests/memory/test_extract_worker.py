"""From what is typed to what the agent is asked, through the real hook and the real worker."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import hook
from hypatia_mem.config import set_value
from hypatia_mem.memory.extract import rules
from hypatia_mem.store import lessons
from hypatia_mem.store.connection import open_store
from tests.memory.model_server import ModelServer
from tests.memory.test_extract import BUG, DESIGN
from tests.memory.test_extract_model import GOOD

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the hook's POSIX half")


def fire(event, home, **more):
    """Let the hook see an event; what it printed for the model."""
    body = {
        "session_id": "s-1", "cwd": str(home.parent / "app"), "hook_event_name": event, **more,
    }  # fmt: skip
    with tempfile.TemporaryFile() as out:
        data = json.dumps(body, separators=(",", ":")).encode()
        hook.handle(data, dict(os.environ), out.fileno())
        out.seek(0)
        said = out.read().decode()
    if event == "UserPromptSubmit" and said:
        return json.loads(said)["hookSpecificOutput"]["additionalContext"].splitlines()
    return said.splitlines()


def talk(home, said):
    """Type and answer, as the client tells of it; what was printed beside each prompt."""
    printed = []
    for number, (role, text) in enumerate(said):
        if role == "user":
            printed.append(fire("UserPromptSubmit", home, prompt=text, prompt_id=f"p{number}"))
        else:
            fire("Stop", home, last_assistant_message=text, stop_hook_active=False)
    return printed


def units(home):
    with open_store(home, write=False) as store:
        return [(one, store.producer_of(one.name)) for one in lessons.known_units(store, ["app"])]


@pytest.mark.deep
def test_the_agent_is_asked_at_the_fifth_prompt_about_what_is_finished(home):
    assert talk(home, (*BUG, *DESIGN)) == [[], [], [], []]
    worker.run(home, once=True)
    ((unit, producer),) = units(home)
    assert producer == rules.PRODUCER
    assert re.fullmatch(r"extractive-1#[0-9a-f]{12}", producer), "who, and by which rules"
    (said,) = talk(home, [("user", "hm, and what about its locks?")])
    assert said[0] == "TRIGGER:extract"
    assert said[1].startswith(f"[hypatia-memory] Due: {unit.name} (bug-fix, msg-s-1-1 to msg-s-1-")
    worker.run(home, once=True)
    assert talk(home, [("user", "go on")] * 5)[-1] == []


@pytest.mark.deep
def test_the_end_names_what_is_left_and_a_phantom_end_nothing(home):
    talk(home, (*BUG, *DESIGN))
    worker.run(home, once=True)
    assert fire("SessionEnd", home, session_id="never-was", reason="other") == []
    said = fire("SessionEnd", home, reason="prompt_input_exit")
    assert said[0] == "TRIGGER:session-end"
    assert [line.split(" (")[1].split(",")[0] for line in said if " (" in line] == [
        "bug-fix", "design-decision",
    ]  # fmt: skip
    assert fire("SessionEnd", home, reason="other") == []


@pytest.mark.deep
def test_with_a_model_the_worker_does_it_alone_and_its_log_holds_no_words(home, monkeypatch):
    server = ModelServer().start()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "a-key-for-tests-" * 3)
    try:
        server.says(GOOD)
        set_value(home, "summary_by", "anthropic")
        set_value(home, "anthropic_url", server.url)
        set_value(home, "episodes_by", "off")
        talk(home, (*BUG, *DESIGN))
        worker.run(home, once=True)
        ((unit, producer),) = units(home)
        assert producer.startswith("anthropic:")
        assert "has expired" in unit.content
        assert talk(home, [("user", "hm, and what about its locks?")]) == [[]]
        assert fire("SessionEnd", home, reason="other") == []
        assert len(server.questions) == 1
        log = (home / "hypatia-mem.log").read_text()
        assert "Extracted 1 work unit (1 bug-fix)." in log
        for words in ("refresh_token", "KeyError", "sk-ant"):
            assert words not in log
    finally:
        server.stop()

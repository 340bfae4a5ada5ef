"""The hook as the client sees it: what it keeps and that it never captures itself (I1, I6)."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem.capture import hook, paths, spool
from tests.capture.hook_kit import (
    EVERYTHING,
    SECRET,
    SESSION,
    TRANSCRIPT,
    conf,
    event,
    everything_below,
    fire,
    passes,
    records,
    run,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and modes of POSIX")


# -- what is kept


@pytest.mark.parametrize("name", list(EVERYTHING))
def test_event_is_kept_as_it_came(home, name):
    """Each of the five: one record, the client's bytes, who it was and where it worked."""
    data = event(name)
    environ = {"CLAUDE_PROJECT_DIR": "/home/dev/app", "AI_AGENT": "claude-code_2-1-332_harness"}
    fire(data, CLAUDE_CODE_ENTRYPOINT="cli", **environ)
    (record,) = records(home)
    assert record.event == json.loads(data)
    assert (record.session, record.redacted) == (SESSION, 0)
    assert (record.dir, record.client) == ("/home/dev/app", "claude-code_2-1-332_harness")
    assert record.entry == "cli"
    assert abs(record.at_ns - time.time_ns()) < 60e9
    assert data.rstrip() in (home / "spool" / f"{SESSION}.jsonl").read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        *[
            pytest.param(event(name), id=name)
            for name in ("MessageDisplay", "PreToolUse", "SubagentStop", "StopFailure", "Tomorrow")
        ],
        pytest.param(event("Stop", hook_event_name=None), id="no-name"),
        pytest.param(event("Stop", hook_event_name=7), id="name-no-text"),
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"\xff\xfe\x00hook", id="bytes"),
        pytest.param(event("Stop").decode().encode("utf-16"), id="utf-16"),
        pytest.param(b'{"session_id":"a","hook_event_name":"Sto\\x"}', id="bad-escape"),
        pytest.param(b'{"session_id":"a","hook_event_name":"Stop\\', id="cut"),
    ],
)
def test_what_is_no_event_of_ours_leaves_no_trace(home, data):
    """Unknown events and no events: nothing kept, nothing printed, no failure."""
    passes(run(data))
    assert records(home) == []
    assert spool.last_failure() is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, SESSION, id="id"),
        pytest.param({"session_id": None, "conversation_id": "c-9"}, "c-9", id="conversation"),
        pytest.param({"session_id": "../../x", "conversation_id": "c-9"}, "c-9", id="traversal"),
        pytest.param({"session_id": ""}, None, id="empty"),
        pytest.param({"session_id": 12}, None, id="number"),
        pytest.param({"session_id": "x" * 300}, None, id="long"),
        pytest.param({"session_id": "a/b"}, None, id="slash"),
        pytest.param({"session_id": "a\0"}, None, id="nul"),
        pytest.param({"session_id": "\ud800"}, None, id="surrogate"),
        pytest.param({"session_id": None}, None, id="missing"),
        pytest.param({"session_id": None, "transcript_path": None}, "unknown", id="nothing"),
    ],
)
def test_session_is_named_by_what_there_is(home, change, expected):
    """The id, else the conversation's, else a digest of the transcript's path, always inside."""
    fire(event("Stop", **change))
    (record,) = records(home)
    assert record.session == (expected or "t-" + paths.digest(TRANSCRIPT.encode()))
    assert [p.parent for p in home.rglob("*.jsonl")] == [home / "spool"]


def test_input_written_differently_is_understood(home):
    """Spaces between tokens, escapes, another order of keys, a byte order mark."""
    plain = json.loads(event(prompt="Grüße"))
    turned = dict(reversed(plain.items()))
    for text in (json.dumps(turned, indent=2), json.dumps(plain, separators=(" , ", " : "))):
        fire(text.encode())
    fire(b"\xef\xbb\xbf" + event(prompt="Grüße"))
    assert [r.event for r in records(home)] == [plain] * 3
    assert {r.session for r in records(home)} == {SESSION}


def test_prompt_cannot_pass_for_the_events_own_fields(home):
    """Text that looks like an event is text."""
    forged = event("SessionEnd", session_id="forged").decode()
    fire(event(prompt=forged))
    (record,) = records(home)
    assert (record.session, record.event["hook_event_name"]) == (SESSION, "UserPromptSubmit")


@pytest.mark.parametrize(
    "text",
    [
        "a\0b \ud83d lone \udc00 end",
        "日本語 👍 עברית \u2028 \x1b[31mred \r\n \ufeff",
        "",
        "x" * 1_200_000,
        '"hook_event_name":"Stop","session_id":"y"',
        '\\\\\\"\\u0041',
    ],
    ids=["nul", "scripts", "empty", "huge", "quoted", "slashes"],
)
def test_odd_text_is_kept_whole(home, text):
    """What a person can paste comes out of the spool as it went in, lone surrogates replaced."""
    done = run(event(prompt=text))
    assert (done.returncode, done.stderr) == (0, b"")
    (record,) = records(home)
    assert record.event["prompt"] == text.replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd")


def test_input_beyond_measure_keeps_its_ids(home, monkeypatch):
    """The transcript has the text; the spool does not have to hold it."""
    monkeypatch.setattr(hook, "MAX_INPUT", 100_000)
    fire(event("Stop", last_assistant_message="y" * 200_000))
    (record,) = records(home)
    assert record.redacted == spool.IDS_ONLY
    assert record.event["transcript_path"] == TRANSCRIPT
    assert "last_assistant_message" not in record.event


# -- our own traffic (I6)


@pytest.fixture
def nearby(home: Path) -> Path:
    """Return a folder whose path begins with the home's, and is not in it."""
    folder = home.with_name(home.name + "-2")
    folder.mkdir()
    return folder


def test_our_own_processes_are_not_captured(home):
    """The environment's guard; its twin without it is captured."""
    assert fire(event(), HYPATIA_MEM_INTERNAL="1") == b""
    assert records(home) == []
    fire(event())
    assert len(records(home)) == 1


def test_folders_of_ours_are_not_captured(home, nearby, tmp_path):
    """The home and what is below it, under any name; not the folder beside it."""
    (home / "work").mkdir()
    (tmp_path / "link").symlink_to(home)
    for folder in (home, home / "work", tmp_path / "link", tmp_path / "link" / "work"):
        fire(event(cwd=str(folder)))
        fire(event(), CLAUDE_PROJECT_DIR=str(folder))
    assert records(home) == []
    fire(event(cwd=str(nearby)), CLAUDE_PROJECT_DIR=str(nearby))
    assert len(records(home)) == 1


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        ("hypatia-mem:internal\nSummarise this.", False),
        ("Summarise.\nhypatia-mem:internal\n", False),
        ("hypatia-mem:internal", False),
        ("What does the line hypatia-mem:internal do?", True),
        ("see hypatia-mem:internals", True),
        ("it is called hypatia-mem:internal", True),
        ("hypatia-mem:internal is its name", True),
    ],
)
def test_marker_line_silences_its_session(home, prompt, kept):
    """A session of ours whose environment was stripped; talking about the marker is no marker."""
    fire(event(prompt=prompt))
    fire(event("Stop"))
    assert len(records(home)) == (2 if kept else 0)
    fire(event("Stop", session_id="other"))
    assert [r.session for r in records(home)][-1] == "other"


@pytest.mark.parametrize(
    ("settings", "cwd", "kept"),
    [
        ({"capture": "off"}, "/home/dev/app", 0),
        ({"capture": "on"}, "/home/dev/app", 1),
        ({"excluded": "/x\t/home/dev"}, "/home/dev/app", 0),
        ({"excluded": "/home/dev/app"}, "/home/dev/app", 0),
        ({"excluded": "/home/dev/app"}, "/home/dev/app-2", 1),
        ({"excluded": ""}, "/home/dev/app", 1),
        ({"capture": "on", "from_the_future": "7"}, "/home/dev/app", 1),
    ],
)
def test_person_can_switch_capture_off(home, settings, cwd, kept):
    """Everywhere or for a folder; what is excluded is excluded by element, not by prefix."""
    conf(home, **settings)
    fire(event(cwd=cwd))
    assert len(records(home)) == kept


# -- secrets


@pytest.mark.parametrize("name", ["UserPromptSubmit", "Stop", "PreCompact"])
def test_secret_never_touches_the_disk(home, name):
    """Whichever field it is in; the text around it stays."""
    field = {
        "UserPromptSubmit": "prompt",
        "Stop": "last_assistant_message",
        "PreCompact": "custom_instructions",
    }[name]
    run(event(name, **{field: f"the token is {SECRET} as I said"}))
    (record,) = records(home)
    assert SECRET.encode() not in everything_below(home)
    assert record.redacted == spool.REDACTED
    assert record.event[field].startswith("the token is [REDACTED:")
    assert record.event[field].endswith(" as I said")


def test_secret_in_the_projects_path(home):
    """The environment's folder is redacted like the event."""
    fire(event(), CLAUDE_PROJECT_DIR=f"/home/dev/{SECRET}")
    assert SECRET.encode() not in everything_below(home)
    assert len(records(home)) == 1


@pytest.mark.parametrize("code", ["raise RuntimeError", "def redact_event(data): 1/0", None])
def test_broken_redactor_keeps_ids_and_no_text(home, package, code):
    """The raw bytes are never kept; the transcript's path is, so the turn is not lost."""
    module = package / "hypatia_mem" / "capture" / "redact.py"
    if code is None:
        module.unlink(missing_ok=True)
    else:
        module.write_text(code)
    done = run(event(prompt=f"my token {SECRET}"), script=package / "hooks" / "hook.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (record,) = records(home)
    assert record.redacted == spool.IDS_ONLY
    assert set(record.event) == {
        "session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name",
    }  # fmt: skip
    assert SECRET.encode() not in everything_below(home)

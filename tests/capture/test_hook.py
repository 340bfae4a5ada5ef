"""The hook as the client sees it: what it keeps, what it prints, that it never hurts (I1, I6)."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hypatia_mem.capture import hook, paths, spool, triggers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and modes of POSIX")

REPOSITORY = Path(__file__).parents[2]
SESSION = "24f0694b-985c-455c-bc0c-0f47428c6403"
TRANSCRIPT = f"/home/dev/.claude/projects/-home-dev-app/{SESSION}.jsonl"
# A token of a kind that no one issues, put together so that no scanner takes this file for a leak.
SECRET = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"
BRIEF = (
    b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"%s"}}\n'
)  # fmt: skip
EVERYTHING = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"permission_mode": "default", "prompt": "Hello there"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "Hi.", "background_tasks": []},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "SessionEnd": {"reason": "other"},
}


def event(name: str = "UserPromptSubmit", *, cwd: str = "/home/dev/app", **more: object) -> bytes:
    """Return an input as the client writes it: one line, UTF-8, no space between tokens."""
    body: dict[str, object] = {
        "session_id": SESSION,
        "transcript_path": TRANSCRIPT,
        "cwd": cwd,
        "prompt_id": "d5e30947-c046-4a69-a9d2-8f0b97f1ac28",
        "hook_event_name": name,
        **EVERYTHING.get(name, {}),
        **more,
    }
    kept = {key: value for key, value in body.items() if value is not None}
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


def fire(data: bytes, **environ: str) -> bytes:
    """Run the hook's entry point in this process; return what it printed."""
    with tempfile.TemporaryFile() as out:
        hook.handle(data, {**os.environ, **environ}, out.fileno())
        out.seek(0)
        return out.read()


def run(
    data: bytes,
    *,
    script: Path = REPOSITORY / "hooks" / "hook.py",
    python: str = sys.executable,
    **more: object,
) -> subprocess.CompletedProcess[bytes]:
    """Run the real hook process."""
    return subprocess.run(
        [python, "-I", "-S", str(script)], input=data, capture_output=True, timeout=60, **more
    )


def records(home: Path) -> list[spool.Record]:
    found = []
    for segment in spool.segments(str(home)):
        for item in spool.iter_records(segment.path):
            assert isinstance(item, spool.Record)
            found.append(item)
    return found


def context(output: bytes) -> str:
    """Return the text that reaches the model; the output must be what the client accepts."""
    if not output:
        return ""
    parsed = json.loads(output)["hookSpecificOutput"]
    assert parsed["hookEventName"] == "UserPromptSubmit"
    return parsed["additionalContext"]


def conf(home: Path, **settings: str) -> None:
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    (home / "hook.conf").write_text(text)


def everything_below(folder: Path) -> bytes:
    return b"\n".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


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


# -- trigger lines


@pytest.mark.parametrize(
    ("value", "kept"), [("off", False), ("0", False), ("on", True), ("", True)]
)
def test_one_shell_can_be_off_the_record(home, value, kept):
    """What was typed there is never kept, not even when the session is resumed elsewhere."""
    fire(event(prompt="private words"), HYPATIA_MEM_CAPTURE=value)
    fire(event(prompt="later words"))
    assert (b"private words" in everything_below(home)) is kept
    assert (b"later words" in everything_below(home)) is kept


def outputs(count: int, **more: object) -> list[str]:
    return [context(fire(event(**more))) for _ in range(count)]


WU = "[hypatia-memory] Due: wu-2026-11-30-login-token (bug-fix, msg-s-1 to msg-s-4)"
HOW = "[hypatia-memory] Each: hypatia-mem extract due NAME"
AT_HAND = "[hypatia-memory] Due: s:5-8 (exploration, msg-s-5 to msg-s-8, nothing kept yet)"
EXTRACT = f"TRIGGER:extract\n{WU}\n{HOW}"


def offer(home, *, units=(WU, HOW), at_hand=(), session=SESSION):
    """Lay down what the worker renders for a session."""
    lines = ["4", *units, "--", *at_hand, ""]
    (home / "briefs" / f"{session}.due").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("settings", "due", "expected"),
    [
        pytest.param({}, True, ["", "", "", "", EXTRACT, ""], id="default"),
        pytest.param({}, False, [""] * 6, id="nothing is due"),
        pytest.param({"extract_every": "2"}, True, ["", EXTRACT, "", "", "", ""], id="told once"),
        pytest.param({"extract_every": "0"}, True, [""] * 6, id="never"),
        pytest.param({"extract_every": "often"}, True, [""] * 4 + [EXTRACT, ""], id="nonsense"),
        pytest.param(
            {"triggers": "literal", "extract_every": "3"},
            False,
            ["TRIGGER:log", "TRIGGER:log", "TRIGGER:log\nTRIGGER:extract"] * 2,
            id="literal",
        ),
        pytest.param({"triggers": "off"}, True, [""] * 6, id="off"),
    ],
)
def test_trigger_lines_of_six_prompts(home, settings, due, expected):
    """Nothing unless there is something to do; one block when there is; each thing once."""
    conf(home, **settings)
    if due:
        offer(home)
    assert outputs(6) == expected


def test_what_came_up_later_is_told_at_the_next_turn_that_counts(home):
    """Turns 5, 10, 15, whichever of them there is something for."""
    assert outputs(7) == [""] * 7
    offer(home)
    assert outputs(4) == ["", "", EXTRACT, ""]
    offer(home)
    assert outputs(4) == ["", "", "", EXTRACT]


def test_the_work_at_hand_is_not_for_the_middle_of_a_session(home):
    """It goes on: only an end asks about it."""
    offer(home, units=(), at_hand=(AT_HAND,))
    assert outputs(5) == [""] * 5
    assert (home / "briefs" / f"{SESSION}.due").exists()


def test_prompts_are_counted_by_session_and_without_notifications(home):
    """Two sessions do not add up, and what nobody typed is kept but not counted."""
    conf(home, extract_every="2")
    offer(home, session="a")
    note = "<task-notification>\n<task-id>a</task-id> remember: never mock the database"
    assert outputs(1, session_id="a") == outputs(1, session_id="b") == [""]
    assert outputs(3, session_id="a", prompt=note) == [""] * 3
    assert outputs(1, session_id="a") == [EXTRACT]
    assert len(records(home)) == 6


@pytest.mark.parametrize(
    ("mode", "stop", "end"),
    [
        ("combined", b"", b""),
        ("literal", b"TRIGGER:log\n", b"TRIGGER:session-end\n"),
        ("off", b"", b""),
    ],
)
def test_other_events_print_what_the_client_ignores(home, mode, stop, end):
    """PreCompact prints nothing ever: it would become part of the compaction's instructions."""
    conf(home, triggers=mode)
    fire(event())
    assert fire(event("Stop")) == stop
    assert fire(event("SessionEnd")) == end
    assert fire(event("PreCompact")) == b""


def test_an_end_says_what_is_left_to_judge_and_says_it_once(home):
    """What is finished and was not told, and the work at hand."""
    fire(event())
    offer(home, at_hand=(AT_HAND,))
    said = fire(event("SessionEnd")).decode().splitlines()
    assert said == ["TRIGGER:session-end", WU, HOW, AT_HAND]
    assert fire(event("SessionEnd")) == b""


@pytest.mark.parametrize("mode", ["combined", "literal"])
def test_the_end_of_a_session_that_never_was_says_nothing(home, mode):
    """The client ends such, for one when a plugin is installed."""
    conf(home, triggers=mode)
    offer(home, at_hand=(AT_HAND,))
    assert fire(event("SessionEnd")) == b""


def test_our_own_runs_are_asked_nothing(home):
    """Neither by the guard nor by the folder (I6)."""
    conf(home, extract_every="1")
    offer(home)
    assert fire(event(), HYPATIA_MEM_INTERNAL="1") == b""
    assert fire(event(cwd=str(home / "claude-cli"))) == b""
    assert fire(event("SessionEnd"), HYPATIA_MEM_INTERNAL="1") == b""
    assert context(fire(event())) == EXTRACT


# -- remember and forget


@pytest.fixture
def app(home: Path, tmp_path: Path) -> Path:
    """Return a folder whose project the worker has briefed as ``app``."""
    folder = tmp_path / "app"
    folder.mkdir()
    key = paths.find_root(str(folder)).key
    (home / "briefs" / f"{key}.scope").write_text("app\n")
    (home / "briefs" / f"{key}.json").write_bytes(BRIEF % b"rules of app")
    return folder


def test_remember_is_confirmed_with_name_kind_and_scope(home, app):
    """The person sees at once what was understood; the words are in the spool."""
    said = context(fire(event(prompt="remember: never mock the database", cwd=str(app))))
    expected = '[hypatia-memory] Stored: "rule:never-mock-the-database" (taboo, scoped to app).'
    assert said == expected
    assert records(home)[0].event["prompt"] == "remember: never mock the database"


def test_remember_of_a_folder_not_yet_known(home, tmp_path):
    """No worker has been here yet: the project is the one the person is in."""
    said = context(fire(event(prompt="remember: always use pnpm", cwd=str(tmp_path))))
    assert "(rule, scoped to this project)." in said


def test_forget_asks_the_agent_to_finish_it(home, app):
    """The command is given ready to run, the words quoted for a shell."""
    said = context(fire(event(prompt="forget the staging URL", cwd=str(app)))).splitlines()
    assert said[0] == "TRIGGER:immediate"
    assert 'Forget requested: "the staging URL"' in said[1]
    assert 'hypatia-mem forget "the staging URL"' in said[1]


def test_trigger_lines_come_in_one_block_and_order(home, app):
    """Log, immediate, extract: all three, once each, in literal mode."""
    conf(home, triggers="literal", extract_every="1")
    offer(home)
    said = context(fire(event(prompt="remember: always use pnpm", cwd=str(app)))).splitlines()
    assert [line for line in said if line.startswith("TRIGGER:")] == [
        "TRIGGER:log",
        "TRIGGER:immediate",
        "TRIGGER:extract",
    ]


@pytest.mark.parametrize("prompt", ["I can't remember where that was", "call forget() in a loop"])
def test_talking_of_memory_is_no_request(home, app, prompt):
    """The words alone ask for nothing."""
    assert fire(event(prompt=prompt, cwd=str(app))) == b""


@pytest.mark.parametrize("text", ["the $HOME `id` thing", 'don\'t "quote" me', "a\\b!"])
def test_words_for_the_shell_run_nothing(text):
    """What a person typed is one argument of the command, whatever it holds."""
    done = subprocess.run(
        ["sh", "-c", f"printf %s {triggers.shell(text)}"], capture_output=True, check=True
    )
    assert done.stdout.decode() == text


# -- the brief


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_every_session_start_prints_the_brief_as_rendered(home, app, source):
    """Byte for byte, whatever the source."""
    assert fire(event("SessionStart", cwd=str(app), source=source)) == BRIEF % b"rules of app"


def test_brief_is_the_sessions_projects_and_nobody_elses(home, app, tmp_path):
    """The client's folder decides, not the wandering cwd; a subfolder is its project's."""
    other = tmp_path / "elsewhere" / "app"
    other.mkdir(parents=True)
    (home / "briefs" / "global.json").write_bytes(BRIEF % b"global rules")
    assert fire(event("SessionStart", cwd=str(other))) == BRIEF % b"global rules"
    told = fire(event("SessionStart", cwd=str(other)), CLAUDE_PROJECT_DIR=str(app))
    assert told == BRIEF % b"rules of app"
    told = fire(event("SessionStart", cwd=str(app)), CLAUDE_PROJECT_DIR=str(other))
    assert told == BRIEF % b"global rules"


def test_brief_of_a_subfolder_and_a_quoted_path(home, tmp_path):
    """A repository's subfolder, in a folder with quotes, spaces and accents."""
    folder = tmp_path / 'my "größe" \\ app'
    (folder / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    key = paths.find_root(str(folder)).key
    (home / "briefs" / f"{key}.json").write_bytes(BRIEF % b"mine")
    assert fire(event("SessionStart", cwd=str(folder / "sub"))) == BRIEF % b"mine"
    assert fire(event("SessionStart", cwd=str(tmp_path))) == b""


@pytest.mark.parametrize("content", [b"", b'{"hookSpecificOutput":{"hookEv', b"rules", b"\0" * 50])
def test_half_a_brief_is_none(home, app, content):
    """What the client would take for plain text never reaches the model."""
    for brief in (home / "briefs").glob("*.json"):
        brief.write_bytes(content)
    assert fire(event("SessionStart", cwd=str(app))) == b""
    assert len(records(home)) == 1


def test_briefs_can_be_switched_off(home, app):
    """Silence, and the session is kept all the same."""
    conf(home, briefs="off")
    assert fire(event("SessionStart", cwd=str(app))) == b""
    assert len(records(home)) == 1


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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a copy of the installed launcher and package that a test may break."""
    folder = tmp_path / "site"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "hypatia_mem", folder / "hypatia_mem", ignore=skip)
    shutil.copytree(REPOSITORY / "hooks", folder / "hooks", ignore=skip)
    return folder


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


# -- the worker's start


@pytest.fixture
def interpreter(home: Path, tmp_path: Path) -> Callable[[], list[dict[str, object]]]:
    """Configure a worker's interpreter that writes down how it was started; return the reader."""
    log = tmp_path / "starts"
    log.mkdir()
    script = tmp_path / "fake-python"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys, time\n"
        "facts = dict(argv=sys.argv[1:], env=dict(os.environ), sid=os.getsid(0), pid=os.getpid(),\n"
        "    stdio=[os.path.realpath(f'/proc/self/fd/{n}') for n in (0, 1, 2)])\n"
        f"name = {str(log)!r} + f'/{{time.time_ns()}}'\n"
        "open(name + '.part', 'w').write(json.dumps(facts))\n"
        "os.rename(name + '.part', name + '.json')\n"
    )
    script.chmod(0o755)
    conf(home, python=str(script))

    def starts(wait: float = 10.0, least: int = 1) -> list[dict[str, object]]:
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and len(list(log.glob("*.json"))) < least:
            time.sleep(0.02)
        return [json.loads(p.read_text()) for p in sorted(log.glob("*.json"))]

    return starts


@pytest.fixture
def held(home: Path) -> Iterator[Path]:
    """Hold the worker's lock as a worker does."""
    path = home / "worker.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield path
    os.close(fd)


def test_worker_is_started_apart_from_the_session(home, interpreter):
    """Own session, stdio on null, a clean environment, nothing of the client's."""
    environ = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/x",
        "CLAUDE_CONFIG_DIR": "/c",
        "ANTHROPIC_API_KEY": SECRET,
        "CLAUDE_CODE_MESSAGING_TOKEN": SECRET,
        "MY_VARIABLE": "1",
    }
    done = run(event(), env=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (started,) = interpreter()
    assert started["argv"] == ["-P", "-E", "-m", "hypatia_mem.worker", "--home", str(home)]
    assert started["sid"] == started["pid"]
    assert started["stdio"] == ["/dev/null"] * 3
    env = started["env"]
    assert env["HYPATIA_MEM_INTERNAL"] == "1"
    for name in ("HOME", "PATH", "LC_ALL", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR"):
        assert env[name] == environ[name]
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_MESSAGING_TOKEN", "MY_VARIABLE"} & set(env)
    assert SECRET not in json.dumps(started)


def test_worker_is_handed_what_a_chosen_model_needs_and_no_more(home, interpreter):
    """The twin: ``hook.conf`` names what the user's choice of a model takes."""
    with (home / "hook.conf").open("a") as file:
        file.write("worker_env=HTTPS_PROXY,ANTHROPIC_API_KEY\n")
    run(event(), env={**os.environ, "ANTHROPIC_API_KEY": "mine", "MY_VARIABLE": "1"})
    (started,) = interpreter()
    assert started["env"]["ANTHROPIC_API_KEY"] == "mine"
    assert not {"HTTPS_PROXY", "MY_VARIABLE"} & set(started["env"])


def test_worker_that_does_not_find_the_package_is_shown_it(home, interpreter):
    """An interpreter without our site directory gets it added, last."""
    with (home / "hook.conf").open("a") as file:
        file.write("worker_path=/opt/it's here\n")
    fire(event())
    (started,) = interpreter()
    assert started["argv"][:3] == ["-P", "-E", "-c"]
    assert repr("/opt/it's here") in started["argv"][3]
    assert started["argv"][4:] == ["--home", str(home)]
    ast.parse(started["argv"][3])


def test_running_worker_is_left_alone(home, interpreter, held):
    """The lock is held and the heartbeat is fresh: nothing is started."""
    fire(event())
    assert interpreter(wait=0.5) == []
    os.utime(held, (time.time() - 30, time.time() - 30))
    fire(event())
    assert interpreter(wait=0.5) == []


@pytest.mark.parametrize("shift", [-61, 3600], ids=["stopped", "clock-set-back"])
def test_silent_worker_gets_a_successor(home, interpreter, held, shift):
    """Held, but without a sign of life: the successor is told to look."""
    os.utime(held, (time.time() + shift, time.time() + shift))
    fire(event())
    (started,) = interpreter()
    assert started["argv"][-1] == "--takeover"


def test_many_prompts_start_one_worker(home, interpreter):
    """While one is on its way to its lock no second is started; after it has been there, one is."""
    for _ in range(8):
        fire(event())
    assert len(interpreter(wait=1.0, least=2)) == 1
    later = time.time() + 0.1
    os.utime(home / "worker.lock", (later, later))
    fire(event())
    assert len(interpreter(least=2)) == 2


def test_worker_that_died_on_its_way_is_started_again(home, interpreter):
    """A start that came to nothing is tried again after a moment."""
    fire(event())
    interpreter()
    past = time.time() - 2 * hook.START_SECONDS
    os.utime(home / "worker.start", (past, past))
    os.utime(home / "worker.lock", (past - 1, past - 1))
    fire(event())
    assert len(interpreter(least=2)) == 2


def test_missing_interpreter_is_in_the_log_and_nowhere_else(home):
    """The turn is kept; the person's doctor can say why nothing drains."""
    conf(home, python="/nowhere/python3")
    done = run(event())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(records(home)) == 1
    assert "/nowhere/python3" in (home / "hypatia-mem.log").read_text()


# -- what can go wrong around it


def passes(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout == b""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Give the test a temporary folder of its own; return what ``doctor`` would be told."""
    folder = tmp_path / "tmp"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(folder))
    return lambda: str(spool.last_failure())


def test_home_that_is_a_file(tmp_path, told):
    """The prompt passes; the failure names the path."""
    (tmp_path / "memory-home").write_text("not a folder")
    passes(run(event()))
    assert "ENOTDIR" in told()
    assert str(tmp_path / "memory-home") in told()


def test_spool_that_is_a_file(home, told):
    """A part of the home is in the way: the log can still say it."""
    (home / "spool" / "quarantine").rmdir()
    (home / "spool").rmdir()
    (home / "spool").write_text("")
    passes(run(event()))
    assert "ENOTDIR" in told()
    assert "ERROR hook a record was not kept" in (home / "hypatia-mem.log").read_text()


class Stranger:
    """A user without a name or a home, who can start Python and read the package."""

    uid = 61234

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python

    def run(self, **environ: str) -> subprocess.CompletedProcess[bytes]:
        return run(
            event(),
            script=self.folder / "hooks" / "hook.py",
            python=self.python,
            user=self.uid,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self.folder / "tmp"), **environ},
        )

    @property
    def marker(self) -> str:
        return (self.folder / "tmp" / f"hypatia-mem-{self.uid}" / "hook-failure").read_text()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Return another user; root only, for whom modes are no obstacle."""
    python = Path("/usr/bin/python3")
    if os.getuid() != 0 or not python.exists():
        pytest.skip("needs root and a Python that every user can start")
    probe = [str(python), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(probe, user=Stranger.uid, cwd="/").returncode:
        pytest.skip("the system's Python is too old for the hook")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("hooks", "hypatia_mem"):
            shutil.copytree(REPOSITORY / part, folder / part)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        yield Stranger(folder, str(python))


def test_no_home_at_all(stranger):
    """No HOME, and a user the system does not know."""
    passes(stranger.run())
    assert "no home folder is known" in stranger.marker


def test_home_of_somebody_else(stranger):
    """A home that this user may not even look into."""
    folder = stranger.folder / "theirs"
    paths.ensure_home(str(folder))
    passes(stranger.run(HYPATIA_MEM_HOME=str(folder)))
    assert "EACCES" in stranger.marker
    assert str(folder) in stranger.marker


def test_permission_denied(home, told):
    """The spool cannot be written; everything else can."""
    if os.getuid() == 0:
        pytest.skip("root may write everywhere: see the other users and file systems here")
    (home / "spool").chmod(0o500)
    passes(run(event()))
    assert "EACCES" in told()


MOUNT = """
set -e
mount -t tmpfs -o {options} tmpfs "$1"
cp -r "$2/." "$1/" 2>/dev/null || true
{after}
shift 2
exec "$@"
"""


def in_mount(home: Path, options: str, after: str, command: list[str], data: bytes):
    """Run a command in a mount namespace of its own in which the home is a small file system."""
    if os.getuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root, to mount a file system")
    script = MOUNT.format(options=options, after=after)
    copy = home.with_name("copy")
    shutil.copytree(home, copy, dirs_exist_ok=True)
    shell = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*shell, str(home), str(copy), *command], input=data, capture_output=True, timeout=60
    )
    if b"mount:" in done.stderr:
        pytest.skip("mounting is not allowed here")
    return done


def hook_command() -> list[str]:
    return [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "hook.py")]


def test_read_only_home(home, told):
    """A home on a read-only disk: the prompt passes, the marker says it."""
    after = 'mount -o remount,ro "$1"'
    passes(in_mount(home, "size=1m", after, hook_command(), event()))
    assert "EROFS" in told()


def test_full_disk(home, told):
    """No room for the record: the prompt passes and what was there before is whole."""
    fire(event(prompt="before"))
    big = event(prompt="after " + "x" * 50_000)
    after = 'dd if=/dev/zero of="$1/filler" bs=1k count=4096 2>/dev/null || true'
    command = ["sh", "-c", f'"$@"; echo "rc=$?"; cp -r "{home}/spool" "{home}-seen"', "sh"]
    done = in_mount(home, "size=256k", after, [*command, *hook_command()], big)
    assert done.stdout == b"rc=0\n"
    assert done.stderr == b""
    assert "ENOSPC" in told()
    seen = Path(f"{home}-seen")
    items = list(spool.iter_records(str(seen / f"{SESSION}.jsonl")))
    assert [i.event["prompt"] for i in items if isinstance(i, spool.Record)] == ["before"]


def test_brief_is_printed_though_nothing_can_be_kept(home, app, told):
    """A full or read-only disk does not take the rules away."""
    after = 'mount -o remount,ro "$1"'
    done = in_mount(home, "size=1m", after, hook_command(), event("SessionStart", cwd=str(app)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == BRIEF % b"rules of app"


def test_failed_capture_confirms_nothing(home, app, told):
    """What was not kept is not called stored; its twin that was is."""
    asked = event(prompt="remember: never mock the database", cwd=str(app))
    assert b"Stored" in run(asked).stdout
    shutil.rmtree(home / "spool")
    (home / "spool").write_text("")
    passes(run(asked))


def test_streams_that_are_closed_or_broken(home, app):
    """No stdin, no stdout, a reader that has gone: exit 0, and the record is kept."""
    command = " ".join(f"'{part}'" for part in hook_command())
    start = event("SessionStart", cwd=str(app))
    for shape in ("{} <&-", "{} >&-", "{} | true", "{} >/dev/full", "{} 2>&-", "{} <&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", shape.format(command)], input=start, capture_output=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, b""), shape
    assert len(records(home)) == 4


def test_long_brief_goes_out_whole_to_a_slow_reader(home, app):
    """A pipe that takes a part at a time, and does not block."""
    brief = BRIEF % (b"x" * 200_000)
    for file in (home / "briefs").glob("*.json"):
        file.write_bytes(brief)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(hook_command(), stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    process.stdin.write(event("SessionStart", cwd=str(app)))
    process.stdin.close()
    time.sleep(0.2)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == brief
    assert process.wait(30) == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "ja_JP.eucJP", "xx"])
def test_any_locale(home, tmp_path, locale):
    """Bytes in, bytes kept: no locale has a say."""
    folder = tmp_path / "größe 日本"
    folder.mkdir()
    environ = {**os.environ, "LC_ALL": locale, "PYTHONIOENCODING": "cp932", "PYTHONUTF8": "0"}
    done = run(
        event(prompt="größe 日本 👍", cwd=str(folder)),
        env={**environ, "CLAUDE_PROJECT_DIR": str(folder)},
    )
    passes(done)
    (record,) = records(home)
    assert record.event["prompt"] == "größe 日本 👍"


def test_umask_does_not_open_or_lock_the_files(home):
    """0600 under a lax umask and under one that takes everything."""
    for umask in (0o000, 0o777):
        passes(run(event(session_id=f"u{umask}"), umask=umask))
    assert len(records(home)) == 2
    for path in (home / "spool").glob("*.jsonl"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_sigterm_does_not_cut_a_record_off(home):
    """The client interrupts hooks with SIGTERM: what has been read in is kept."""
    code = (
        "import os, signal, sys; sys.path.append(sys.argv[1])\n"
        "from hypatia_mem.capture import hook, spool\n"
        "keep = spool.append\n"
        "def interrupted(*a, **k):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    keep(*a, **k)\n"
        "spool.append = interrupted\n"
        "hook.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(REPOSITORY)], input=event(), capture_output=True
    )
    passes(done)
    assert len(records(home)) == 1


# -- the launcher


def test_launcher_without_its_package_is_silent(tmp_path):
    """The package was removed, a session still runs the hook: nothing happens, nothing is said."""
    (tmp_path / "hooks").mkdir()
    script = shutil.copy(REPOSITORY / "hooks" / "hook.py", tmp_path / "hooks" / "hook.py")
    passes(run(event(), script=Path(script)))


@pytest.mark.parametrize(
    "damage",
    [
        "def broken(:",
        "raise SystemExit(2)",
        "import nothing_of_that_name",
        "raise KeyboardInterrupt",
    ],
)
def test_launcher_with_a_broken_package_is_silent(package, damage):
    """An upgrade that stopped half way never blocks a prompt."""
    (package / "hypatia_mem" / "capture" / "hook.py").write_text(damage)
    passes(run(event(), script=package / "hooks" / "hook.py"))


def test_launcher_goes_where_its_line_says(home, package, tmp_path):
    """The installer's copy names the package's folder."""
    text = (package / "hooks" / "hook.py").read_text()
    line = next(line for line in text.splitlines() if line.startswith("PACKAGE = "))
    assert line == 'PACKAGE = ""'
    script = tmp_path / "hook.py"
    script.write_text(text.replace(line, f"PACKAGE = {str(package)!a}"))
    passes(run(event(), script=script, cwd="/"))
    assert len(records(home)) == 1


def test_launcher_cannot_be_led_astray_by_what_lies_beside_the_package(home, package, tmp_path):
    """Neither the package's folder nor the current one shadows the standard library."""
    for folder in (package, tmp_path):
        for name in ("json", "posix", "time", "binascii", "fcntl", "sys"):
            (folder / f"{name}.py").write_text("raise SystemExit(2)")
    passes(run(event(), script=package / "hooks" / "hook.py", cwd=tmp_path))
    assert len(records(home)) == 1


def old_pythons() -> list[str]:
    names = ["2.7", *(f"3.{minor}" for minor in range(6, 11))]
    folders = [*Path.home().glob(".pyenv/versions/*/bin"), Path("/usr/bin")]
    found = {n: f / f"python{n}" for f in folders for n in names if (f / f"python{n}").exists()}
    return [str(path) for _, path in sorted(found.items())]


@pytest.mark.parametrize("python", old_pythons() or [pytest.param("", marks=pytest.mark.skip)])
def test_launcher_under_a_python_that_is_too_old(python):
    """Exit 0 and silence, whatever `python3` happens to be."""
    done = subprocess.run(
        [python, "-S", str(REPOSITORY / "hooks" / "hook.py")], input=event(), capture_output=True
    )
    passes(done)

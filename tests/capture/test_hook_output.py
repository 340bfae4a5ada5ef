"""What the hook prints: trigger lines, confirmations, the brief of a session start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hypatia_mem.capture import paths, triggers
from tests.capture.hook_kit import (
    BRIEF,
    SESSION,
    conf,
    context,
    event,
    everything_below,
    fire,
    records,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and modes of POSIX")


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
    assert 'hypatia-mem forget "the staging URL" --dry-run' in said[1]
    assert "Of rules, taboos and memories" in said[1]  # what the words reach, and what stays


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

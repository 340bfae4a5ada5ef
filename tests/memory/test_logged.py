"""The line of what was logged, as the skill words it, and who is shown it."""

from __future__ import annotations

import pytest

from hypatia_mem import worker
from hypatia_mem.config import set_value
from hypatia_mem.memory.cascade.storing import Done
from hypatia_mem.memory.logged import Logged, lines_of
from tests.capture.hook_kit import context, event, fire

ONE = Done("a", 1, ("app",), 3, "token threshold")
TWO = Done("b", 2, ("app",), 16, "16 of level 1")
WEB = Done("c", 1, ("web",), 3, "context pressure")


@pytest.mark.parametrize(
    ("logged", "made", "lines"),
    [
        pytest.param(
            [Logged("abc", "app", (42,))], [ONE],
            {"abc": "[hypatia-memory] Logged msg-abc-42. Cascade: +1 summary 1 (token threshold)."},
            id="as the skill has it",
        ),
        pytest.param(
            [Logged("abc", "app", (42,))], [], {"abc": "[hypatia-memory] Logged msg-abc-42."},
            id="nothing was due",
        ),
        pytest.param(
            [Logged("abc", "app", (41, 42)), Logged("abc", "app", (43,))], [ONE, ONE, TWO],
            {"abc": "[hypatia-memory] Logged 3 messages, msg-abc-41 to msg-abc-43. "
             "Cascade: +2 summary 1 (token threshold), +1 summary 2 (16 of level 1)."},
            id="several",
        ),
        pytest.param(
            [Logged("abc", "app", (1,)), Logged("def", "web", (7,))], [WEB, ONE],
            {"abc": "[hypatia-memory] Logged msg-abc-1. Cascade: +1 summary 1 (token threshold).",
             "def": "[hypatia-memory] Logged msg-def-7. Cascade: +1 summary 1 (context pressure)."},
            id="each project its own",
        ),
        pytest.param(
            [], [ONE], {"": "[hypatia-memory] Cascade: +1 summary 1 (token threshold)."},
            id="nothing was logged",
        ),
        pytest.param([], [], {}, id="nothing"),
    ],
)  # fmt: skip
def test_the_line(logged, made, lines):
    assert lines_of(logged, made) == lines


def says(prompt, answer, tmp_path, n):
    more = {"session_id": "abc", "cwd": str(tmp_path), "transcript_path": "/none"}
    told = context(fire(event(prompt=prompt, prompt_id=f"p{n}", **more))).splitlines()
    fire(event("Stop", last_assistant_message=answer, prompt_id=f"p{n}", **more))
    return told


@pytest.mark.parametrize("mode", ["literal", "combined"])
def test_the_literal_mode_shows_it_beside_the_next_prompt_once(home, tmp_path, mode):
    for key, value in {
        "triggers": mode, "extract_every": "0", "cascade_max_tokens": "30", "cascade_keep_last": "0",
    }.items():  # fmt: skip
        set_value(home, key, value)
    told = [says("why does the queue lose jobs?", "It acknowledges too early.", tmp_path, 1)]
    worker.run(home, once=True)
    told += [says("move the ack", "Done.", tmp_path, n) for n in (2, 3)]
    if mode == "combined":
        assert told == [[], [], []]
        return
    line = (
        "[hypatia-memory] Logged 2 messages, msg-abc-1 to msg-abc-2. "
        "Cascade: +1 summary 1 (token threshold)."
    )
    assert told == [["TRIGGER:log"], ["TRIGGER:log", line], ["TRIGGER:log"]]


def test_what_was_logged_in_between_is_told_together(home, tmp_path):
    set_value(home, "triggers", "literal")
    set_value(home, "extract_every", "0")
    says("first", "one", tmp_path, 1)
    worker.run(home, once=True)
    more = {"session_id": "abc", "cwd": str(tmp_path), "transcript_path": "/none"}
    fire(event("Stop", last_assistant_message="and more", prompt_id="p9", **more))
    worker.run(home, once=True)
    told = says("next", "two", tmp_path, 2)
    assert told[1:] == [
        "[hypatia-memory] Logged 2 messages, msg-abc-1 to msg-abc-2.",
        "[hypatia-memory] Logged msg-abc-3.",
    ]

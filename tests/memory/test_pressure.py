"""A context that fills up: where each level begins, what is done there, in order, and once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import hook
from hypatia_mem.cli.app import run as run_cli
from hypatia_mem.config import Settings, set_value
from hypatia_mem.memory import pressure
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.pressure import Level, level_of, limits_of
from hypatia_mem.model import Message, Session
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, WORKER, assert_whole, fill, links, settings, summaries

WINDOW = 100_000
CONFIG = settings(cascade_max_tokens=WINDOW)


# --- where the levels begin -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "limits"),
    [
        (8_000, (60, 60, 80)),
        (32_000, (60, 60, 80)),
        (32_001, (70, 85, 95)),
        (128_000, (70, 85, 95)),
        (200_000, (70, 85, 95)),
        (1_000_000, (70, 85, 95)),
    ],
)
def test_small_windows_have_limits_of_their_own(window, limits):
    found = limits_of(window, Settings())
    assert (found.tools, found.condense, found.persist) == limits
    lowest, _, highest = limits
    assert level_of(window * lowest // 100, window, found) is Level.NONE, "reached, not exceeded"
    assert level_of(window * lowest // 100 + 1, window, found) > Level.NONE
    assert level_of(window * highest // 100 + 1, window, found) is Level.PERSIST


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, Level.NONE), (70_000, Level.NONE), (70_001, Level.TOOLS), (85_000, Level.TOOLS),
        (85_001, Level.CONDENSE), (95_000, Level.CONDENSE), (95_001, Level.PERSIST),
        (140_000, Level.PERSIST),
    ],
)  # fmt: skip
def test_a_limit_is_to_be_exceeded(tokens, level):
    assert level_of(tokens, WINDOW, limits_of(WINDOW, Settings())) is level


def test_limits_are_the_users_and_0_is_never():
    config = Settings(pressure_tools=0, pressure_condense=50, pressure_persist=0)
    found = limits_of(WINDOW, config)
    assert [level_of(n * 1000, WINDOW, found) for n in (40, 51, 99)] == [
        Level.NONE, Level.CONDENSE, Level.CONDENSE,
    ]  # fmt: skip
    assert limits_of(8_000, Settings(pressure_small_window=0)) == limits_of(WINDOW, Settings())
    assert limits_of(8_000, Settings(pressure_small_persist=90)).persist == 90


# --- what is done ---------------------------------------------------------------------------------


def says(home, tokens, *, session="s-1", n=1, at=NOW, scope="app"):
    """Store an answer that was made in a context of so many tokens."""
    part = {"type": "usage", "model": "m", "input_tokens": 1, "cache_read_tokens": tokens - 1}
    said = Message(
        session, f"{session}-a{n}", "assistant", f"Answer {n} about the retry queue.",
        at - timedelta(minutes=60 - n), parts=(part,),
    )  # fmt: skip
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        if store.session(session) is None:
            txn.put_session(Session(session, project=scope))
        txn.put_messages(session, [said], scope)


def apply(home, config=CONFIG, now=NOW):
    done = pressure.apply(home, config, author=WORKER, now=now)
    return [(one.session_id, one.level) for one in done]


def told(home, session="s-1"):
    """Return what the hook prints beside the session's next prompt about its context."""
    lines = prompt(home, session)
    return [line for line in lines if "Context" in line]


def prompt(home, session):
    import os
    import tempfile

    with tempfile.TemporaryFile() as out:
        event = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
        data = json.dumps(event, separators=(",", ":")).encode()
        hook.handle(data, {"HYPATIA_MEM_HOME": str(home)}, out.fileno())
        os.lseek(out.fileno(), 0, os.SEEK_SET)
        text = out.read().decode()
    if not text:
        return []
    return json.loads(text)["hookSpecificOutput"]["additionalContext"].splitlines()


def test_each_level_is_acted_on_once_and_told_with_the_next_prompt_once(home):
    fill(home, ["the queue is stuck again"])
    says(home, 70_000, n=1)
    assert apply(home) == []
    assert told(home) == []
    said = {}
    for n, (tokens, level) in enumerate(
        [(70_001, Level.TOOLS), (85_001, Level.CONDENSE), (95_001, Level.PERSIST)], 1
    ):
        says(home, tokens, n=2 * n)
        assert apply(home) == [("s-1", level)]
        assert apply(home) == [], "a second look does nothing"
        says(home, tokens + 100, n=2 * n + 1)
        assert apply(home) == [], "and neither does more of the same level"
        (said[level],) = told(home)
        assert told(home) == []
    assert said[Level.TOOLS].startswith(
        "[hypatia-memory] Context 70 % full (70001 of 100000 tokens)."
    )
    assert "hypatia-mem tool ID" in said[Level.TOOLS]
    assert "All but the last 10 messages" in said[Level.CONDENSE]
    assert "loses nothing" in said[Level.PERSIST]


def test_wavering_around_a_limit_is_told_once_and_after_emptying_again(home):
    fill(home, ["the queue is stuck again"])
    for n, (tokens, done) in enumerate(
        [(71_000, 1), (69_000, 0), (71_000, 0), (40_000, 0), (72_000, 1)], 1
    ):
        says(home, tokens, n=n)
        assert len(apply(home)) == done, f"answer {n} of {tokens}"


def test_emptied_before_it_was_told_it_is_not_told(home):
    fill(home, ["the queue is stuck again"])
    says(home, 96_000, n=1)
    apply(home)
    says(home, 4_000, n=2)
    apply(home)
    assert told(home) == []


@pytest.mark.deep
def test_all_but_the_last_ten_are_condensed_then_all(home):
    """In a session of 26 messages: sixteen, once; and what came since when it is nearly full."""
    fill(home, [f"Report {n}: the retry queue loses jobs in module_{n}.py." for n in range(25)])
    says(home, 84_000, n=1)
    apply(home)
    assert cascade.run(home, CONFIG, now=NOW).made == ()
    says(home, 86_000, n=2)
    apply(home)
    (made,) = cascade.run(home, CONFIG, now=NOW).made
    assert (made.reason, made.items) == ("context pressure", 17)
    assert {item for _, item in links(home)} == {f"msg-s-1-{n}" for n in range(1, 18)}
    says(home, 87_000, n=3)
    apply(home)
    assert cascade.run(home, CONFIG, now=NOW).made == (), "not at every turn"
    says(home, 96_000, n=4)
    apply(home)
    (made,) = cascade.run(home, CONFIG, now=NOW).made
    assert (made.reason, made.items) == ("context pressure", 12)
    assert_whole(home)


def test_in_one_step_to_the_last_level_all_of_them_are_done(home):
    fill(home, [f"Report {n}: the retry queue loses jobs." for n in range(15)])
    says(home, 99_000)
    assert apply(home) == [("s-1", Level.PERSIST)]
    (made,) = cascade.run(home, CONFIG, now=NOW).made
    assert made.items == 16
    with open_store(home, write=False) as store:
        assert store.meta("snapshot_wanted")


def test_the_newest_messages_are_left_at_every_level(home):
    """What cascade_keep_last says holds here too."""
    fill(home, [f"Report {n}: the retry queue loses jobs." for n in range(15)])
    says(home, 99_000)
    config = settings(cascade_max_tokens=WINDOW, cascade_keep_last=3)
    apply(home, config)
    (made,) = cascade.run(home, config, now=NOW).made
    assert made.items == 13


def test_of_two_sessions_at_once_each_is_looked_at_by_itself(home):
    for session, tokens in (("s-1", 96_000), ("s-2", 20_000), ("s-3", 75_000)):
        fill(home, [f"Report {n} of {session}." for n in range(12)], session=session)
        says(home, tokens, session=session)
    assert apply(home) == [("s-1", Level.PERSIST), ("s-3", Level.TOOLS)]
    cascade.run(home, CONFIG, now=NOW)
    assert {item.rsplit("-", 1)[0] for _, item in links(home)} == {"msg-s-1"}
    assert (told(home, "s-2"), len(told(home, "s-3"))) == ([], 1)


def test_a_session_of_the_past_is_not_under_way(home):
    """What was imported is not warned of."""
    fill(home, ["the queue is stuck again"])
    says(home, 99_000, at=NOW - timedelta(hours=7))
    assert apply(home) == []
    says(home, 99_000, n=2, at=NOW)
    assert len(apply(home)) == 1


@pytest.mark.parametrize(
    ("by", "says_", "made"),
    [("extractive", "are being summarised", 1), ("off", "Finish the step", 0),
     ("agent", "hypatia-mem cascade due", 0)],
)  # fmt: skip
def test_what_is_told_is_what_is_done(home, by, says_, made):
    fill(home, [f"Report {n}: the retry queue loses jobs." for n in range(20)])
    says(home, 88_000)
    config = settings(cascade_max_tokens=WINDOW, summary_by=by)
    apply(home, config)
    (line,) = told(home)
    assert says_ in line
    assert ("being summarised" in line) is (by == "extractive")
    assert len(cascade.run(home, config, now=NOW).made) == made
    handed = cascade.due(home, config, now=NOW, scopes=["app"])
    assert (handed is not None) is (by != "extractive")


def test_with_triggers_off_nobody_is_told(home):
    set_value(home, "triggers", "off")
    fill(home, ["the queue is stuck again"])
    says(home, 99_000)
    apply(home)
    assert told(home) == []


def test_no_notice_holds_a_word_of_a_message(home):
    fill(home, ["xylophone " * 40] * 12)
    says(home, 99_000)
    apply(home)
    (file,) = (home / "briefs").glob("*.pressure")
    assert "xylophone" not in file.read_text()


# --- the worker and the command line --------------------------------------------------------------


@pytest.fixture
def now():
    return datetime.now(UTC).replace(tzinfo=None)


@pytest.mark.deep
def test_the_worker_does_it_by_itself_and_the_command_shows_it(home, now, capsys, monkeypatch):
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_MAX_TOKENS", str(WINDOW))
    fill(home, [f"Report {n}: the retry queue loses jobs." for n in range(20)])
    says(home, 86_000, at=now)
    run_cli(["pressure", "--all-projects", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["percent"], row["level"], row["done"]) == (86, "condense", "none")
    assert worker.run(home, once=True) == 0
    assert [one.tags for one in summaries(home)] == [("summary", "summary 1")]
    run_cli(["pressure", "--all-projects"])
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "s-1 (app, m): 86 % of 100000 tokens, level condense"
    assert [line.endswith("done") for line in out[1:]] == [True, True, False]
    assert len(told(home)) == 1
    run_cli(["pressure", "--scope", "web"])
    assert capsys.readouterr().out == "No session is under way.\n"


@pytest.mark.parametrize(("tokens", "whole"), [(60_000, 15), (72_000, 5)])
def test_results_of_tools_are_listed_in_short_earlier(
    home, now, capsys, monkeypatch, tokens, whole
):
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_MAX_TOKENS", str(WINDOW))
    listing = "\n".join(f"src/file_{n}.py" for n in range(40))
    parts = []
    for n in range(20):
        parts += [
            {
                "type": "tool_use",
                "name": "Bash",
                "input": '{"command":"ls"}',
                "id": f"toolu_{n:02}",
            },
            {"type": "tool_result", "id": f"toolu_{n:02}", "text": listing, "length": 600},
        ]
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s-1", project="app"))
        said = Message(
            "s-1", "u", "assistant", "looked", now - timedelta(hours=2), parts=tuple(parts)
        )
        txn.put_messages("s-1", [said], "app")
    says(home, tokens, at=now)
    run_cli(["tools", "--session", "s-1", "--scope", "app", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert sum(not row["condensed"] for row in rows) == whole
    run_cli(["tools", "--session", "s-1", "--scope", "app", "--json", "--last", "20"])
    assert not any(row["condensed"] for row in json.loads(capsys.readouterr().out))

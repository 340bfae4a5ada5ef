"""goal, episodes, handoff, fact and the sorts of memories, as they are typed and printed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.config import Settings
from hypatia_mem.memory import curate
from hypatia_mem.memory.episodes import running
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

AT = datetime(2026, 11, 30, 10)
LEFT_OPEN = "The migration of the retry queue is not yet done."
SAID = (
    ("user", "where do we keep the retry queue?"),
    ("assistant", f"We decided to keep the retry queue in Postgres. {LEFT_OPEN}"),
)
GOAL = ("goal", "set", "release 2.0", "--step", "freeze", "--step", "tag")


@pytest.fixture
def talked(home, cli):
    """A session of the project ``app`` that is over, with its episode."""
    assert cli("remember", "the first thing").code == 0  # the project is known
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=AT) as txn,
    ):
        txn.put_session(
            Session("s1", project="app", updated_at=AT, ended_at=AT + timedelta(minutes=1))
        )
        messages = [Message("s1", f"u{n}", role, text, AT) for n, (role, text) in enumerate(SAID)]
        txn.put_messages("s1", messages, "app")
    running.run(home, Settings(), now=AT + timedelta(hours=1))
    curate.refresh(home)


@pytest.mark.deep
def test_set_list_show_done(cli):
    assert cli(*GOAL).out == '[hypatia-memory] Set: "goal-release-2-0".\n'
    assert cli(*GOAL, "--json").json == {
        "verb": "unchanged", "name": "goal-release-2-0", "scopes": ["app"],
    }  # fmt: skip

    listed = cli("goal", "list")
    assert listed.out == (
        "Goals\n  goal-release-2-0\n    [set by an agent] release 2.0"
        " (0 of 2 steps done; next is step 1: freeze)\n"
    )
    assert "- [ ] 1. freeze\n- [ ] 2. tag" in cli("goal", "show", "release").out

    tried = cli("goal", "done", "release", "--step", "1", "--dry-run")
    assert tried.out == "[hypatia-memory] Would be done: step 1 of goal-release-2-0\n"
    assert cli("goal", "done", "release", "--step", "1").code == 0
    (row,) = cli("goal", "list", "--json").json["goals"]
    assert row["steps"] == [{"text": "freeze", "done": True}, {"text": "tag", "done": False}]
    assert (row["next_step"], row["set_by_agent"], row["done_at"]) == (2, True, None)

    assert cli("goal", "done", "release", "--json").json == {
        "verb": "updated", "name": "goal-release-2-0", "step": None, "dry_run": False,
    }  # fmt: skip
    assert cli("goal", "list").out.startswith("No goal is set")
    assert "goal-release-2-0" in cli("goal", "list", "--done").out


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (("goal", "done", "nothing like it"), 1, "hypatia-mem goal list"),
        (("goal", "done", "release", "--step", "3"), 2, "there is no step 3"),
        (("goal", "done", "release", "--step", "0"), 2, "--step"),
        (("goal", "show", "nothing like it"), 1, "hypatia-mem goal list"),
        (("goal", "set", "  "), 2, "needs a text"),
        (("episodes", "--session", "zz"), 0, ""),
        (("rules", "--kind", "nonsense"), 2, "preference or procedure"),
        (("remember", "x", "--kind", "nonsense"), 2, "preference or procedure"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(cli, command, code, says):
    cli(*GOAL)

    ran = cli(*command)

    assert ran.code == code, ran.err
    assert says in ran.err


def test_an_episode_is_listed_shown_and_found(cli, talked):
    (row,) = cli("episodes", "--json").json
    assert row["name"] == "episode-s1-1-2"
    assert row["open_threads"] == [{"text": LEFT_OPEN, "turn": 2}]
    assert row["messages"] == ["msg-s1-2"]

    assert f"- {LEFT_OPEN} [turn 2]" in cli("episodes").out
    assert LEFT_OPEN in cli("show", "episode-s1-1-2").out
    found = cli("search", "retry queue", "--kind", "episode", "--json").json
    assert [one["key"] for one in found] == ["episode-s1-1-2"]
    assert cli("episodes", "--scope", "other", "--json").json == []


def test_what_is_left_open_is_listed_and_crossed_off(cli, talked):
    assert f"Left open\n  thread-s1-2\n    {LEFT_OPEN} [turn 2]" in cli("goal", "list").out
    assert f"- {LEFT_OPEN} [turn 2]" in cli("handoff").out

    assert cli("goal", "done", "retry queue").code == 0

    assert LEFT_OPEN not in cli("goal", "list").out
    assert f"Open\n- {LEFT_OPEN}" not in cli("handoff").out
    assert LEFT_OPEN in cli("goal", "list", "--done").out


@pytest.mark.parametrize("sort", ["preference", "procedure"])
def test_sorts_of_memories(cli, sort):
    """Kept among the memories, and found by what they are."""
    cli("remember", "always answer in TypeScript", "--kind", sort)
    cli("remember", "the staging db is db2", "--kind", "memory")

    rows = cli("rules", "--kind", sort, "--json").json

    assert [(row["content"], row["kind"], row["sort"]) for row in rows] == [
        ("always answer in TypeScript", "memory", sort)
    ]
    assert len(cli("rules", "--kind", "memory", "--json").json) == 2
    assert "always answer in TypeScript" in cli("brief").out
    assert f"[app]  {sort}\n" in cli("rules").out


def test_a_fact_is_kept_under_its_key_with_its_history(cli):
    assert cli("fact", "set", "default region", "eu-west-1", "--kind", "preference").out == (
        '[hypatia-memory] Stored: "default region".\n'
    )
    assert cli("fact", "set", "default region", "us-east-1").out.startswith(
        "[hypatia-memory] Changed"
    )
    assert cli("fact", "set", "default region", "us-east-1", "--json").json["verb"] == "unchanged"

    (row,) = cli("fact", "list", "--kind", "preference", "--json").json
    assert (row["value"], row["version"]) == ("us-east-1", 2)
    assert "eu-west-1" in cli("diff", "default region@1", "default region@2").out
    assert cli("fact", "list", "--kind", "procedure", "--json").json == []


def test_a_fact_is_told_when_it_is_asked_for_and_not_before(cli):
    cli("fact", "set", "default region", "eu-west-1")
    cli("fact", "set", "release day", "every second tuesday")

    assert [row["name"] for row in cli("fact", "query", "region", "--json").json] == [
        "default region"
    ]
    assert cli("fact", "query", "the weather in spring", "--json").json == []
    assert cli("fact", "query", "region", "--scope", "other", "--json").json == []
    assert "eu-west-1" not in cli("brief").out


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (("fact", "set", " ", "x"), 2, "a key and a value"),
        (("fact", "set", "x", " "), 2, "a key and a value"),
        (("fact", "set", "x", "y", "--kind", "nonsense"), 2, "preference or procedure"),
        (("fact", "set", "memory:the-first-thing", "y"), 1, "is the name of a memory"),
    ],
)
def test_a_fact_that_cannot_be_kept(cli, command, code, says):
    cli("remember", "the first thing")

    ran = cli(*command)

    assert ran.code == code, ran.err
    assert says in ran.err
    assert cli("fact", "list", "--json").json == []

"""``forget WORDS`` reaches whatever holds the words: shown first, done as one, derived anew."""

from __future__ import annotations

import json
import os
import time

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.store.connection import open_store

LONG_AGO = time.time() - 86400.0
URL = "https://pelican.example.com"
SAYS = f"the staging URL is {URL}"
pytestmark = pytest.mark.usefixtures("no_other_worker")


@pytest.fixture
def full(person, project, home, once):
    """A memory in which every kind says it, and in which every kind says something else too."""

    def hook(event: str, second: int, **fields: str) -> None:
        record = {"hook_event_name": event, "session_id": "s-1", "cwd": str(project), **fields}
        at = LONG_AGO + second
        meta = f'"dir":{json.dumps(str(project))},"client":"claude-code","entry":"cli",'
        line = json.dumps(record).encode()
        spool.append(str(home), "s-1", line, at_ns=int(at * 1e9), meta=meta.encode())
        os.utime(home / "spool" / "s-1.jsonl", (at, at))

    def make() -> None:
        hook("UserPromptSubmit", 1, prompt=f"We decided: {SAYS}.", prompt_id="p1")
        hook("Stop", 2, last_assistant_message="The queue stays on port 7311.", prompt_id="p1")
        hook("UserPromptSubmit", 3, prompt="We decided to keep the pelican docs.", prompt_id="p2")
        hook("Stop", 4, last_assistant_message="Agreed, the docs stay as they are.", prompt_id="p2")
        hook("SessionEnd", 5, reason="other")
        assert person("worker", "drain").code == 0
        os.chdir(project)
        for line in (
            ("remember", f"always say {SAYS}"),
            ("remember", "always say which port the queue has"),
            ("remember", f"prefer {SAYS}", "--kind", "preference"),
            ("remember", f"to deploy: {SAYS}", "--kind", "procedure"),
            ("fact", "set", "staging url", URL),
            ("fact", "set", "queue port", "7311"),
            ("goal", "set", f"move off the staging URL {URL}"),
            ("goal", "set", "write the pelican docs"),
            ("knowledge-create", "staging", "-d", SAYS),
            ("knowledge-create", "queue", "-d", "on port 7311"),
            ("statement-create", "the staging url", "is", URL),
            ("statement-create", "queue", "has", "port 7311"),
        ):
            assert person(*line).code == 0, line

    once(make)
    assert {"episode", "message"} <= kinds(home)
    return home


def kinds(home) -> set[str]:
    with open_store(home, write=False) as store:
        return {str(row["kind"]) for row in store.run("SELECT DISTINCT kind FROM live_entry")}


def said(home) -> str:
    """Return all that default reads can print of entries and statements."""
    with open_store(home, write=False) as store:
        rows = store.run("SELECT name, content FROM live_entry ORDER BY name")
        rows += store.run("SELECT triple AS name, content FROM live_statement")
    return "\n".join(f"{row['name']} {row['content']}" for row in rows)


EVERY = {"rule", "preference", "procedure", "fact", "goal", "message", "episode", "statement"}


def test_a_person_sees_everything_that_holds_the_words_and_it_goes_as_one(person, full):
    told = person("forget", "the staging URL", "--dry-run")
    assert told.code == 0
    assert "Would forget" in told.out
    for kind in EVERY:
        assert f"  {kind} (" in told.out, kind
    assert "Forgetting is final" in told.out
    assert URL in said(full)

    done = person("forget", "the staging URL", answer=b"y\n")
    assert done.code == 0, done.err
    assert "[hypatia-memory] Removed" in done.out
    left = said(full)
    assert "pelican.example" not in left
    assert "staging" not in left.lower()
    with open_store(full, write=False) as store:
        ops = {row["op_id"] for row in store.ledger(limit=500) if row["verb"].startswith("forget ")}
    assert len(ops) == 1
    for words in ("queue", "pelican docs"):  # the rest of every kind is there
        assert words in left
    assert "port 7311" in person("episodes").out  # told anew without it
    assert "staging" not in person("episodes").out.lower()
    for line in (("fact", "list"), ("goal", "list"), ("rules",), ("handoff",), ("brief",)):
        out = person(*line).out
        assert "pelican.example" not in out, line
    files = [path for path in (full / "briefs").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"pelican.example" in path.read_bytes()]


@pytest.mark.deep
@pytest.mark.parametrize("answer", [b"n\n", b"\n", b""])
def test_without_a_yes_nothing_goes(person, full, answer):
    before = said(full)
    done = person("forget", "the staging URL", answer=answer)
    assert done.code == 1
    assert "Nothing removed" in done.out
    assert said(full) == before


@pytest.mark.deep
def test_yes_asks_nobody_and_json_lists_all(person, full):
    done = person("forget", "the staging URL", "--yes", "--json").json
    assert {one["kind"] for one in done["also"]} >= EVERY
    assert done["removed"] >= 8
    assert "staging" not in said(full).lower()
    again = person("forget", "the staging URL", "--yes")
    assert again.code == 1


@pytest.mark.deep
def test_an_agent_takes_one_memory_and_is_told_of_the_rest(cli, full):
    before = said(full)
    refused = cli("forget", "the staging URL", "--yes")
    assert refused.code == 1
    assert "only a person can" in refused.err
    done = cli("forget", "the staging URL")  # a rule, a preference, a procedure: which one?
    assert done.code == 1
    assert "Nothing removed" in done.out
    assert "msg-s-1-1  (message)" in done.out
    assert said(full) == before
    done = cli("forget", "always say staging URL")  # one rule: it goes, and nothing else does
    assert done.code == 0
    assert "rule:" not in "".join(cli("search", "pelican.example").out.split("rule:always-say")[1:])
    assert f"We decided: {SAYS}" in said(full)


@pytest.mark.deep
def test_one_memory_that_nothing_else_says_goes_at_once(person, full):
    done = person("forget", "which port the queue has")
    assert done.code == 0, done.err
    assert done.out.startswith("[hypatia-memory] Removed 1 entry")


@pytest.mark.deep
def test_words_that_are_far_apart_in_a_long_text_mean_it_not(person, full):
    filler = " ".join(f"word{number}." for number in range(80))
    text = f"the crimson door. {filler} a turnip."
    assert person("knowledge-create", "long", "-d", text).code == 0
    assert person("knowledge-create", "near", "-d", f"{filler} the crimson turnip").code == 0
    told = person("forget", "crimson turnip", "--dry-run").out
    assert "near" in told
    assert "long" not in told


@pytest.mark.deep
def test_what_other_projects_hold_goes_only_with_everywhere(person, full, project, monkeypatch):
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert person("knowledge-create", "theirs", "-d", SAYS).code == 0
    assert person("goal", "set", "keep the staging URL in other").code == 0
    monkeypatch.chdir(project)
    assert "theirs" not in person("forget", "the staging URL", "--dry-run").out
    assert "theirs" in person("forget", "the staging URL", "--everywhere", "--dry-run").out
    assert person("forget", "the staging URL", "--yes").code == 0
    assert "theirs" in said(full)
    assert person("forget", "the staging URL", "--everywhere", "--yes").code == 0
    assert "staging" not in said(full).lower()


@pytest.mark.deep
def test_what_a_running_session_stands_on_is_left_alone_and_named(person, full, monkeypatch):
    os.utime(full / "spool" / "s-1.jsonl")
    done = person("forget", "the staging URL", "--yes")
    assert done.code == 0
    assert "Left alone, for session s-1 is running: msg-s-1-1" in done.out
    assert f"We decided: {SAYS}" in said(full)
    assert "prefer" not in said(full)


@pytest.mark.deep
def test_forgotten_in_another_shelf_too_whatever_kind_it_is(person, full, tmp_path):
    assert person("connect", str(tmp_path / "two")).code == 0
    assert person("knowledge-create", "copy", "-d", SAYS, "-s", "two").code == 0
    assert person("knowledge-create", "rest", "-d", "the queue", "-s", "two").code == 0
    told = person("forget", "the staging URL", "--everywhere", "--dry-run").out
    assert "In shelf 'two': copy" in told
    assert person("forget", "the staging URL", "--everywhere", "--yes").code == 0
    assert SAYS not in person("knowledge-get", "copy", "-s", "two").out
    assert "the queue" in person("knowledge-get", "rest", "-s", "two").out


@pytest.mark.deep
def test_a_goal_that_says_what_was_forgotten_is_listed_without_its_words(cli, person):
    """The goal is there, by name, for whoever wants it gone; another goal is as it was."""
    words = "never deploy the pelican service on a friday evening"
    assert person("remember", words).code == 0
    assert person("goal", "set", words, "--json").code == 0
    assert person("goal", "set", "write the manual", "--step", "begin").code == 0
    name = person("goal", "list", "--json").json["goals"][1]["name"]
    assert cli("forget", "deploy pelican friday").code == 0
    for line in (("goal", "list"), ("goal", "list", "--json"), ("show", name)):
        out = cli(*line).out
        assert words not in out, line
        assert "withheld: it says something that was forgotten" in out, line
    assert "write the manual" in cli("goal", "list").out
    assert person("forget", "--id", name).code == 0
    assert name not in cli("goal", "list").out


@pytest.mark.deep
def test_what_still_waits_in_the_spool_goes_too(person, full, project):
    record = {"hook_event_name": "UserPromptSubmit", "session_id": "s-2", "cwd": str(project)}
    line = json.dumps({**record, "prompt": f"note: {SAYS}", "prompt_id": "p9"}).encode()
    meta = f'"dir":{json.dumps(str(project))},"client":"claude-code","entry":"cli",'.encode()
    spool.append(str(full), "s-2", line, at_ns=int(LONG_AGO * 1e9), meta=meta)
    os.utime(full / "spool" / "s-2.jsonl", (LONG_AGO, LONG_AGO))
    assert person("forget", "the staging URL", "--yes").code == 0
    assert person("worker", "drain").code == 0
    os.chdir(project)
    assert "staging" not in said(full).lower()


def test_no_name_is_offered_that_no_name_forgets(cli, project):
    """A statement has none, so it is not said to go by one; an entry does, and goes."""
    assert cli("statement-create", "crane", "lifts", "granite").code == 0
    told = cli("forget", "granite")
    assert (told.code, "crane,lifts,granite (statement)" in told.err) == (1, True)
    assert "--id" not in told.err
    assert cli("knowledge-create", "quarry", "-d", "granite and slate").code == 0
    told = cli("forget", "granite")
    assert "quarry (knowledge)" in told.err
    assert "--id" in told.err
    assert cli("forget", "--id", "quarry").code == 0

"""What only a person decides stays decided, whatever way round an agent takes; and I5 by name."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

WORDS = "the staging port is 4712"
AGAIN = ("knowledge-create", "x", "-d", WORDS)
OTHERWISE = ("knowledge-create", "x", "-d", "the port of staging is another one")


@pytest.fixture
def person(cli, monkeypatch):
    """A command line at which a person sits; ``person.agent(...)`` is an agent's."""
    door = {"channel": Channel.CLI_PERSON}
    monkeypatch.setattr(context, "channel", lambda: door["channel"])

    def agent(*arguments):
        door["channel"] = Channel.CLI_AGENT
        try:
            return cli(*arguments)
        finally:
            door["channel"] = Channel.CLI_PERSON

    def call(*arguments):
        return cli(*arguments)

    call.agent = agent
    return call


@pytest.mark.deep
@pytest.mark.parametrize(
    ("decided", "stays"),
    [
        (("suppress", "x"), "suppressed"),
        (("trust", "x", "candidate"), "candidate"),
        (("dispute", "x", "--reason", "not sure"), "disputed"),
        (("stale", "x", "--reason", "old"), "stale"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
@pytest.mark.parametrize("back", [("revert", "x@1", "--withheld"), AGAIN, OTHERWISE])
def test_to_delete_and_bring_back_is_no_way_around_a_person(person, decided, stays, back):
    person("knowledge-create", "x", "-d", WORDS)
    assert person(*decided).code == 0
    assert person.agent("delete", "x").code == 0

    done = person.agent(*back)
    assert done.code == 0
    assert stays in done.out or back[0] == "revert"
    if stays == "suppressed":
        assert "x" in person("suppress").out
        assert "not found" in person("knowledge-get", "x").out
    else:
        assert person("trust", "x").out.startswith(f"x: {stays}")


def test_a_person_brings_back_what_was_doubted(person):
    person("knowledge-create", "x", "-d", WORDS)
    person("dispute", "x", "--reason", "not sure")
    person("delete", "x")
    assert person(*AGAIN).code == 0
    assert person("trust", "x").out.startswith("x: asserted")


def test_an_agent_brings_back_what_nobody_doubted(person):
    person("knowledge-create", "x", "-d", WORDS)
    person.agent("delete", "x")
    assert person.agent("revert", "x@1").code == 0
    assert person("trust", "x").out.startswith("x: asserted")


@pytest.mark.deep
@pytest.mark.parametrize(
    "back",
    [
        [("revert", "alpha,uses,kafka@1")],
        [("statement-delete", "alpha", "uses", "kafka"), ("revert", "alpha,uses,kafka@1")],
        [("statement-delete", "alpha", "uses", "kafka"), ("statement-create", "alpha", "uses", "kafka")],
    ],
    ids=["revert", "delete-revert", "delete-create"],
)  # fmt: skip
def test_a_statement_that_a_person_doubts_stays_doubted(person, back):
    person("statement-create", "alpha", "uses", "kafka")
    person("dispute", "alpha", "uses", "kafka", "--reason", "not sure")
    for command in back:
        last = person.agent(*command)
    told = person("trust", "alpha,uses,kafka")
    assert last.code == 1 or told.out.startswith("alpha,uses,kafka: disputed")

    assert person("accept", "alpha", "uses", "kafka").code == 0 or last.code == 1
    person("revert", "alpha,uses,kafka@1")
    assert person("trust", "alpha,uses,kafka").out.startswith("alpha,uses,kafka: asserted")


def test_an_agent_does_not_bring_back_that_a_statement_is_verified(person):
    person("statement-create", "alpha", "uses", "kafka")
    person("verify", "alpha", "uses", "kafka")
    person("dispute", "alpha", "uses", "kafka", "--reason", "it was replaced")
    assert person.agent("revert", "alpha,uses,kafka@2").code == 1
    assert person("revert", "alpha,uses,kafka@2").code == 0
    assert "verified" in person("trust", "alpha,uses,kafka").out


@pytest.mark.deep
def test_only_a_person_puts_something_into_another_project(person):
    person("knowledge-create", "x", "-d", WORDS)
    refused = person.agent("knowledge-update", "x", "--scopes", "other")
    assert refused.code == 1
    assert "another project" in refused.err
    assert person.agent("knowledge-update", "x", "--scopes", "").code == 0  # everywhere
    assert person.agent("knowledge-update", "x", "--scopes", "app").code == 0  # and back
    assert person("move", "x", "--scope", "other").code == 0
    assert person.agent("undo", "--all-projects").code == 1
    assert person("undo", "--all-projects").code == 0
    assert person.agent("redo", "--all-projects").code == 1
    assert person.agent("knowledge-get", "x").json["content"]["scopes"] == ["app"]


@pytest.mark.deep
def test_an_agent_takes_nothing_back_in_another_project(person, project, monkeypatch):
    person("remember", "never mock the database")
    theirs = person("log", "--json").json[0]["op_id"]
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    person.agent("remember", "always use tabs")
    ours = person("log", "--json").json[0]["op_id"]

    for verb in ("undo", "redo"):
        refused = person.agent("undo", theirs)
        assert (refused.code, "app" in refused.err) == (1, True)
        assert person.agent(verb, ours).code == 0
    assert person.agent("project", "merge", "app", "other").code == 1
    assert person("undo", theirs).code == 0
    assert person.agent("redo", theirs).code == 1
    assert person("project", "merge", "app", "other").code == 0


@pytest.mark.deep
def test_a_merge_by_an_agent_settles_no_doubt(person):
    for name in ("kept", "doubted"):
        person("knowledge-create", name, "-d", f"what is {name}")
    person("dispute", "doubted", "--reason", "not sure")
    assert person.agent("graph", "merge", "kept", "doubted").code == 1
    assert "what is doubted" not in person("knowledge-get", "kept").out
    assert person("graph", "merge", "kept", "doubted").code == 0


def test_a_session_of_another_project_is_read_on_purpose_only(person, home):
    call = (
        {"type": "tool_use", "name": "Bash", "id": "t1", "input": json.dumps({"command": "ls"})},
        {"type": "tool_result", "id": "t1", "text": "their files", "length": 11},
    )
    now = context.now()
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        txn.put_session(Session("theirs", project="web", updated_at=now))
        said = [
            Message("theirs", "u1", "user", "please list their files in src/", now),
            Message("theirs", "u2", "assistant", "We decided to keep them.", now, parts=call),
        ]
        txn.put_messages("theirs", said, "web")
    for command in (["handoff"], ["tools"], ["tool", "t1"]):
        refused = person.agent(*command, "--session", "theirs")
        assert refused.code == 1, command
        assert "their files" not in refused.out + refused.err
        assert person.agent(*command, "--session", "theirs", "--scope", "web").code == 0
        assert person.agent(*command, "--session", "theirs", "--all-projects").code == 0


@pytest.mark.deep
@pytest.mark.parametrize("command", [("trust", "x"), ("pin",), ("suppress",)])
def test_a_folder_that_was_never_seen_is_asked_for_before_the_store_is_held(person, command):
    """Its scope has to be looked up in the store, which cannot be opened twice at a time."""
    assert person(*command).code in (0, 1)
    person("knowledge-create", "x", "-d", WORDS)
    assert person(*command, "--scope", "app").code == 0


def test_three_parts_are_a_statement_although_an_entry_stands_at_its_end(person):
    person("knowledge-create", "alpha", "-d", WORDS)
    person("statement-create", "alpha", "uses", "kafka")
    assert person("reject", "alpha", "uses", "kafka", "--reason", "not any more").code == 0
    assert person("trust", "alpha,uses,kafka").out.startswith("alpha,uses,kafka: rejected")
    assert person("trust", "alpha").out.startswith("alpha: asserted")


def test_three_entries_are_three_entries(person):
    for name in ("alpha", "beta", "gamma"):
        person("knowledge-create", name, "-d", f"words of {name}")
    person("statement-create", "alpha", "beta", "gamma")
    assert person("verify", "alpha", "beta", "gamma").code == 0
    assert person("trust", "beta").out.startswith("beta: verified")


@pytest.mark.deep
def test_nothing_of_another_project_is_changed_or_copied_by_the_way(person, project, monkeypatch):
    person("statement-create", "alpha", "uses", "kafka")
    (project / "plan.txt").write_text("their plan")
    person("archive-store", str(project / "plan.txt"), "-n", "plan.txt")
    now = context.now()
    with (
        open_store(context.home(), write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        txn.put_session(Session("s-1", project="app", updated_at=now))
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    triple = ("alpha", "uses", "kafka")
    for command in (
        ("statement-delete", *triple),
        ("statement-create", *triple, "--valid-to", "2020-01-01"),
        ("sessions", "edit", "s-1", "--title", "a title of ours"),
    ):
        refused = person.agent(*command)
        assert (refused.code, "not of this project" in refused.err) == (1, True), command
    assert "not found" in person.agent("archive-get", "plan.txt").out
    for command in (
        ("sessions", "edit", "s-1", "--title", "x", "--scope", "app"),
        ("statement-delete", *triple, "--scope", "app"),
    ):
        assert person.agent(*command).code == 1, command
        assert person(*command).code == 0, command
    assert person.agent("archive-get", "plan.txt", "--scope", "app").out.endswith("plan.txt\n")


@pytest.mark.deep
def test_a_messages_words_are_edited_and_its_head_stays(person, home):
    name = _said(home)
    refused = person.agent("knowledge-update", name, "-d", "other words")
    assert (refused.code, "hypatia-mem edit" in refused.err) == (2, True)
    assert "hello there" in person("show", name).out
    for command in (("edit", name, "--text", "other words"), ("forget", "--id", name)):
        refused = person.agent(*command)
        assert (refused.code, "said in a session" in refused.err) == (1, True), command
    assert "hello there" in person("show", name).out
    assert person("edit", name, "--text", "other words").code == 0
    assert person.agent("revert", f"{name}@1").code == 1  # it is an edit, too
    assert person("revert", f"{name}@1").code == 0
    assert person.agent("delete", name).code == 0  # which a person takes back
    assert person("undo").code == 0
    assert person("forget", "--id", name).code == 0


@pytest.mark.deep
def test_what_was_rejected_is_no_title_either(person, home):
    _said(home)
    person("knowledge-create", "x", "-d", WORDS)
    person("reject", "x", "--reason", "not any more")
    assert person.agent("sessions", "edit", "s-1", "--title", WORDS.upper()).code == 1
    assert "4712" not in person.agent("handoff").out + person.agent("brief").out
    assert person.agent("sessions", "edit", "s-1", "--title", "ports").code == 0
    assert person("sessions", "edit", "s-1", "--title", WORDS).code == 0


def _said(home):
    now = context.now() - timedelta(days=2)  # no session that runs stands on it
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        txn.put_session(Session("s-1", project="app", updated_at=now))
        txn.put_messages("s-1", [Message("s-1", "u1", "user", "hello there", now)], "app")
    return "msg-s-1-1"

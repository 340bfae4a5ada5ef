"""``fork`` at the command line: what a person and an agent see of branches."""

from __future__ import annotations

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Channel
from tests.memory.branch_kit import WORDS, go_on, talk


@pytest.fixture
def person(cli, monkeypatch):
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    return cli


@pytest.fixture
def told(person, home):
    """A session of this project with twelve messages."""
    talk(home)
    return person


@pytest.fixture
def parted(told, home, monkeypatch):
    """It, and a branch at 10, both of which went on; ``ask`` asks as one of them."""
    made = told("fork", "s-1", "--at", "10", "--reason", "try a queue", "--json").json
    go_on(home, made["id"], "maple", "nettle")
    go_on(home, "s-1", "olive")
    told("search", "amber")  # the index follows
    told("knowledge-create", "a-note", "-d", "talk of today")

    def ask(session, *line):
        with monkeypatch.context() as env:
            env.setenv("CLAUDE_CODE_SESSION_ID", session)
            return told(*line)

    return made["id"], ask


def words(text):
    return {word for word in WORDS if word in text}


def test_a_fork_has_exactly_the_messages_up_to_there(told):
    done = told("fork", "s-1", "--at", "10", "--reason", "try a queue", "--json").json
    assert (done["messages"], done["at"], done["dry_run"]) == (10, 10, False)
    shown = told("show", done["id"], "--json").json
    assert [one["turn"] for one in shown["messages"]] == list(range(1, 11))
    assert [one["name"] for one in shown["messages"]] == [f"msg-s-1-{n}" for n in range(1, 11)]
    assert (shown["turns"], shown["forked_from"], shown["fork_reason"]) == (
        10,
        "s-1",
        "try a queue",
    )
    assert len(told("show", "s-1", "--json").json["messages"]) == 12
    text = told("show", done["id"], "--from", "10").out
    assert "[fork of s-1 at 10: try a queue]" in text
    assert words(text) == {"juniper"}
    listed = {row["id"]: row for row in told("sessions", "--json").json}
    assert (listed[done["id"]]["turns"], listed["s-1"]["turns"]) == (10, 12)
    rows = told("sql", "SELECT forked_from, forked_at, fork_reason FROM sessions", "--json").json
    assert {tuple(row.values()) for row in rows} == {("s-1", 10, "try a queue"), ("", 0, "")}


def test_said_in_words_and_taken_back(told):
    done = told("fork", "s-1", "--at", "10")
    lines = done.out.splitlines()
    assert lines[0].startswith("Forked s-1 at 10: ")
    assert lines[1] == "  10 messages shared, none copied"
    undo = lines[-1].removeprefix("Take it back with: hypatia-mem ").split()
    assert told(*undo).code == 0
    assert [row["id"] for row in told("sessions", "--json").json] == ["s-1"]
    assert told("redo").code == 0
    assert len(told("sessions", "--json").json) == 2
    assert told("verify").code == 0


@pytest.mark.deep
def test_a_dry_run_says_what_would_be(told):
    tried = told("fork", "s-1", "--at", "3", "--edit", "words", "--dry-run")
    assert tried.out.startswith("Would fork s-1 at 2:")
    assert "2 shared, and the message that stands beside msg-s-1-3" in tried.out
    assert len(told("sessions", "--json").json) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (("s-1", "--at", "0"), 2, "at least the first message"),
        (("s-1", "--at", "99"), 2, "has 12 messages"),
        (("s-1", "--edit", "x"), 2, "say which message"),
        (("s-1", "--head", "--at", "3"), 2, "--head makes no branch"),
        (("s-1", "--head"), 2, "has no branches"),
        (("s-1", "--at", "2", "--edit", " "), 2, "an empty text is no message"),
        (("nowhere",), 1, "there is no session"),
        (("s-1", "--at", "msg-s-1-77"), 1, "there is no message"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_does_not_go_is_said(told, line, code, says):
    refused = told("fork", *line)
    assert (refused.code, refused.out) == (code, "")
    assert says in refused.err


def test_the_tree_and_its_head(told):
    one = told("fork", "s-1", "--at", "10", "--reason", "try a queue", "--json").json["id"]
    two = told("fork", "s-1", "--at", "3", "--edit", "we talk of maple today", "--json").json["id"]
    assert told("sessions", "tree", one).out.splitlines() == [
        "s-1  12 messages",
        f"  {two}  at 2  3 messages  [head]",
        f"  {one}  at 10  10 messages  try a queue",
    ]
    assert words(told("show", two).out) == {"amber", "birch", "maple"}
    assert "[head]" in next(line for line in told("sessions").out.splitlines() if two in line)
    moved = told("fork", "s-1", "--head")
    assert f"Made s-1 the head of its family; it was {two}." in moved.out
    heads = [row["id"] for row in told("sessions", "--json").json if row["head"]]
    assert heads == ["s-1"]
    assert told("fork", "s-1", "--head").code == 1


@pytest.mark.deep
def test_what_is_set_aside_is_found_by_its_own_name_alone(told):
    two = told("fork", "s-1", "--at", "3", "--edit", "we talk of maple today", "--json").json["id"]
    assert words(told("search", "talk today").out) == {"amber", "birch", "maple"}
    said = told("query", '["$knowledge", ["$contains", "tags", "message"]]').out
    assert words(said) == {"amber", "birch", "maple"}
    assert words(told("search", "talk today", "--session", "s-1").out) == set(WORDS[:12])
    assert words(told("search", "talk today", "--as-session", "s-1").out) == set(WORDS[:12])
    told("fork", "s-1", "--head")
    assert words(told("search", "talk today").out) == set(WORDS[:12])
    assert words(told("search", "talk today", "--session", two).out) == {"amber", "birch", "maple"}


RECALL = [
    ("search", "talk today"),
    ("search", "talk today", "--cursor", "first", "--limit", "50"),
    ("search", "talk today", "--as-known-at", "now"),
    ("similar", "we talk of today", "--kind", "message"),
    ("query", '["$knowledge", ["$search", "talk today"]]'),
    ("query", '["$knowledge", ["$contains", "tags", "message"]]'),
    ("query", '["$knowledge", ["$contains", "tags", "message"]]', "--stream"),
    ("session-current", "--json"),
]


@pytest.mark.deep
@pytest.mark.parametrize("line", RECALL, ids=" ".join)
def test_nobody_is_told_of_a_siblings_turns(parted, line):
    """Each of the two is told what both share, and its own; who is neither, all of it."""
    made, ask = parted
    told = {one: words(ask(one, *line).out) for one in (made, "s-1", "s-9")}
    assert told[made] == {*WORDS[:10], "maple", "nettle"}
    assert told["s-1"] == {*WORDS[:12], "olive"}
    assert told["s-9"] == told[made] | told["s-1"]


@pytest.mark.deep
def test_the_few_entries_of_a_topic_are_of_the_branch(parted):
    made, ask = parted
    assert "maple" in ask(made, "ask", "maple").out
    assert "maple" not in ask("s-1", "ask", "maple").out
    assert "larch" in ask("s-1", "ask", "larch").out
    assert "larch" not in ask(made, "ask", "larch").out


def test_where_a_branch_left_off(parted, told):
    made, ask = parted
    for asks in (lambda one: ask(one, "brief"), lambda one: told("brief", "--session", one)):
        assert "nettle" in asks(made).out
        assert "olive" not in asks(made).out
        assert "olive" in asks("s-1").out
        assert "nettle" not in asks("s-1").out
    card = told("handoff", "--session", made, "--json").json
    assert (card["turns"], card["session_id"]) == (12, made)
    assert "olive" not in str(card)
    assert ask(made, "handoff", "--json").json["session_id"] == made
    assert ask("s-1", "handoff", "--json").json["session_id"] == "s-1"


def test_a_deletion_of_a_shared_message_names_the_branch(parted, told):
    made, _ = parted
    tried = told("delete", "msg-s-1-2", "--dry-run").out
    assert f"msg-s-1-2  (message)  the branch {made} reads it, too" in tried
    tried = told("delete", "s-1", "--dry-run").out
    assert f"msg-s-1-1  (message)  the branch {made} reads it" in tried
    assert f"s-1  (session)  archived: the branch {made} reads it" in tried
    assert told("delete", "s-1").code == 0
    assert len(told("show", made, "--json").json["messages"]) == 12


@pytest.mark.deep
def test_an_export_takes_branches_along(parted, told, tmp_path):
    made, _ = parted
    told("connect", str(tmp_path / "copy"))
    assert told("export", "default", str(tmp_path / "out")).code == 0
    assert told("import", str(tmp_path / "out"), "-s", "copy").code == 0
    shown = told("show", made, "--json", "--shelf", "copy").json
    assert [one["turn"] for one in shown["messages"]] == list(range(1, 13))
    assert shown["fork_reason"] == "try a queue"

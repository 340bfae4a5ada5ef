"""Sessions, messages and projects as a person sees them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

AT = datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture
def told(home, project):
    """A store with a session of this project and one of another."""
    from hypatia_mem.memory import projects
    from hypatia_mem.store.connection import open_store

    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=AT) as txn,
    ):
        scope = projects.claim(store, txn, str(project))
        for id_, owner in (("s-1", scope), ("s-2", "other")):
            txn.put_session(
                Session(id=id_, project=owner, client="claude-code", started_at=AT, updated_at=AT)
            )
            txn.put_messages(
                id_,
                [
                    Message(id_, f"{id_}-u1", "user", "Why does it fail?", AT),
                    Message(
                        id_,
                        f"{id_}-u2",
                        "assistant",
                        "A race.",
                        AT,
                        parts=(
                            {"type": "reasoning", "text": "Let me think."},
                            {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
                            {"type": "text", "text": "A race."},
                        ),
                        flags=("interrupted",),
                    ),
                ],
                owner,
            )
    return scope


def test_sessions_of_this_project(cli, told):
    """Another project's are not listed unless asked for."""
    here = cli("sessions", "--json").json
    all_ = cli("sessions", "--all-projects", "--json").json
    text = cli("sessions").out

    assert [row["id"] for row in here] == ["s-1"]
    assert here[0]["turns"] == 2
    assert here[0]["started_at"] == "2026-01-02T03:04:05.000Z"
    assert {row["id"] for row in all_} == {"s-1", "s-2"}
    assert "s-1  2026-01-02 03:04  2 turns  app" in text
    assert cli("sessions", "--scope", "nobody").out == "No sessions here yet.\n"


def test_edit_a_session(cli, told):
    """Title, pin, archive and tags come back as they were given."""
    done = cli(
        "sessions",
        "edit",
        "s-1",
        "--title",
        "Race",
        "--pin",
        "--archive",
        "--tag",
        "a",
        "--tag",
        "b",
    )
    hidden = cli("sessions", "--json").json
    [row] = cli("sessions", "--archived", "--json").json

    assert done.out == "Updated session: s-1\n"
    assert hidden == []
    assert (row["title"], row["pinned"], row["archived"], row["tags"]) == (
        "Race",
        True,
        True,
        ["a", "b"],
    )
    cli("sessions", "edit", "s-1", "--no-pin", "--no-archive")
    [row] = cli("sessions", "--json").json
    assert (row["title"], row["pinned"], row["archived"]) == ("Race", False, False)


def test_edit_errors(cli, told):
    """Neither nothing nor nobody."""
    assert cli("sessions", "edit", "s-1").code == 2
    assert cli("sessions", "edit", "s-9", "--pin").code == 1


def test_show_a_session(cli, told):
    """Turns in order; from and limit; reasoning and tools only when asked for."""
    text = cli("show", "s-1").out
    part = cli("show", "s-1", "--from", "2", "--limit", "1", "--json").json
    deep = cli("show", "s-1", "--reasoning", "--raw-parts").out

    assert text.index("Why does it fail?") < text.index("A race.")
    assert "Let me think." not in text
    assert "[interrupted]" in text
    assert [row["turn"] for row in part["messages"]] == [2]
    assert "Let me think." in deep
    assert '"command": "ls"' in deep


def test_show_a_message_and_an_entry(cli, told):
    """By the names that search and rules print."""
    message = cli("show", "msg-s-1-2", "--json").json
    cli("remember", "never mock the database")
    entry = cli("show", "rule:never-mock-the-database")

    assert message["role"] == "assistant"
    assert message["text"] == "A race."
    assert "parts" not in message
    assert "[taboo, asserted]" in entry.out
    assert "never mock the database" in entry.out


def test_a_message_is_found_by_search(cli, told, home):
    """And what search prints can be shown."""
    from hypatia_mem.memory import curate

    curate.refresh(home)
    [row] = cli("search", "fail", "--json").json

    assert row["key"] == "msg-s-1-1"
    assert "Why does it fail?" in cli("show", row["key"]).out


@pytest.mark.deep
def test_projects(cli, told, tmp_path, monkeypatch):
    """List, alias, rename, merge, exclude, include."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    copy = tmp_path / "copy"
    copy.mkdir()

    listed = cli("project", "list", "--json").json
    assert [(row["scope"], row["current"]) for row in listed] == [("app", True)]
    assert cli("project", "alias", "app", str(copy)).code == 0
    assert cli("project", "rename", "app", "tool").out == "Renamed project app to tool.\n"
    [row] = cli("project", "list", "--json").json
    assert row["scope"] == "tool"
    assert str(copy) in row["roots"]
    assert [row["id"] for row in cli("sessions", "--json").json] == ["s-1"]
    assert cli("project", "exclude", "tool").code == 0
    assert "excluded" in cli("project", "list").out
    assert cli("project", "include", "tool").out == "Project tool is kept again.\n"
    assert cli("project", "rename", "nobody", "x").code == 1
    assert cli("project", "merge", "tool", "tool").code == 2


def test_what_a_merge_would_move_is_what_moves_and_undo_brings_it_back(
    cli, told, project, monkeypatch
):
    """By name; what is the other project's stays where it is."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    other = project.parent / "other"
    other.mkdir()
    assert cli("remember", "always rest the dough").code == 0
    monkeypatch.chdir(other)
    assert cli("remember", "never mock the oven").code == 0

    def scopes():
        rows = cli("bulk", "list", "--all-projects", "--json").json["entries"]
        return {row["name"]: row["scopes"] for row in rows if not row["name"].startswith("msg-")}

    before = scopes()
    would = cli("project", "merge", "app", "other", "--dry-run", "--json").json
    assert scopes() == before
    assert (would["dry_run"], would["op_id"]) == (True, "")
    assert would["sessions"] == ["s-1"]
    assert str(project) in would["folders"]
    assert "rule:always-rest-the-dough" in would["names"]
    assert [name for name in would["names"] if "oven" in name] == []
    said = cli("project", "merge", "app", "other", "--dry-run").out
    assert said.startswith("Would merge project app into other.")
    assert "rule:always-rest-the-dough" in said
    assert "undo" not in said

    done = cli("project", "merge", "app", "other", "--json").json
    assert {**done, "dry_run": True, "op_id": ""} == would
    assert set(map(tuple, scopes().values())) == {("other",)}
    assert cli("undo", done["op_id"], "--all-projects").code == 0
    assert scopes() == before


def test_ledger_as_json_has_no_digest_bytes(cli, told):
    """Everything in it is JSON."""
    rows = cli("log", "--json").json

    assert rows
    assert all(isinstance(row["at"], str) for row in rows)


def test_sessions_of_one_person(cli, home):
    """By login name; the latest first, archived ones only when they are asked for."""
    at = datetime(2026, 5, 1)
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.HOOK), now=at) as txn,
    ):
        for n, (user, archived) in enumerate(
            [("ann", False), ("bob", False), ("ann", False), ("ann", True)]
        ):
            when = at + timedelta(hours=n)
            one = Session(f"s{n}", project="app", user=user, updated_at=when, archived=archived)
            txn.put_session(one)
            txn.put_messages(f"s{n}", [Message(f"s{n}", f"u{n}", "user", "x", when)], "app")

    def ids(*options):
        return [row["id"] for row in cli("sessions", "--json", *options).json]

    assert ids() == ["s2", "s1", "s0"]
    assert ids("--user", "ann") == ["s2", "s0"]
    assert ids("--user", "ann", "--archived") == ["s3", "s2", "s0"]
    assert ids("--user", "ann", "--limit", "1", "--offset", "1") == ["s0"]
    assert ids("--user", "an") == []
    page = cli("sessions", "--user", "ann", "--cursor", "first", "--json").json
    assert [row["id"] for row in page["rows"]] == ["s2", "s0"]

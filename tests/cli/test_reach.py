"""A name says nothing about whose it is: another project's is reached on purpose only (I5)."""

from __future__ import annotations

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

READS = [
    ("knowledge-get", "theirs", "--json"),
    ("show", "theirs"),
    ("show", "msg-s-1-1"),
    ("show", "s-1"),
    ("history", "theirs"),
    ("history", "theirs@1"),
    ("history", "theirs", "asks", "them"),
    ("diff", "theirs@1", "theirs@2"),
]
WRITES = [
    ("knowledge-update", "theirs", "-d", "taken over"),
    ("knowledge-delete", "theirs"),
    ("revert", "theirs@1"),
]


@pytest.fixture
def given(cli, once, monkeypatch):
    """``theirs`` and a session belong to the project ``web``; a person's commands run in ``app``."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    once(lambda: fill(cli))
    return cli


def fill(cli):
    cli("knowledge-create", "theirs", "-d", "their first secret", "--scopes", "web")
    cli("knowledge-update", "theirs", "-d", "their second secret", "--scope", "web")
    cli("statement-create", "theirs", "asks", "them", "-d", "their secret", "--scopes", "web")
    cli("knowledge-create", "both", "-d", "shared", "--scopes", "web,app")
    cli("knowledge-create", "global", "-d", "shared", "--scopes", "")
    with (
        open_store(context.home(), write=True) as store,
        store.transaction(Author(Channel.HOOK), now=context.now()) as txn,
    ):
        txn.put_session(Session("s-1", project="web"))
        txn.put_messages("s-1", [Message("s-1", "l", "user", "a secret", context.now())], "web")


@pytest.mark.deep
@pytest.mark.parametrize("line", READS + WRITES, ids=" ".join)
def test_a_name_of_another_project_is_not_reached_by_the_way(given, line):
    done = given(*line)
    assert (done.code, "secret" in done.out + done.err) == (1, False)
    assert "--scope" in done.err
    for option in (["--scope", "app"], ["--scope", ""], ["--scope", "we"]):
        again = given(*line, *option)
        assert (again.code, "secret" in again.out + again.err) == (1, False)
    assert "second secret" in given("show", "theirs", "--scope", "web").out


@pytest.mark.deep
@pytest.mark.parametrize("line", READS, ids=" ".join)
@pytest.mark.parametrize("option", [["--scope", "web"], ["--all-projects"]], ids=" ".join)
def test_it_is_read_on_purpose(given, line, option):
    done = given(*line, *option)
    assert (done.code, "secret" in done.out) == (0, True)


@pytest.mark.deep
@pytest.mark.parametrize("line", WRITES, ids=" ".join)
def test_it_is_changed_on_purpose_and_by_a_person(given, line, monkeypatch):
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    for option in (["--scope", "web"], ["--all-projects"]):
        refused = given(*line, *option)
        assert (refused.code, "only a person can change" in refused.err) == (1, True)
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    assert given(*line, "--scope", "web").code == 0
    assert "second secret" not in given("show", "theirs", "--all-projects").out


@pytest.mark.deep
@pytest.mark.parametrize("name", ["both", "global"])
def test_what_is_shared_or_global_needs_no_word(given, name):
    assert given("knowledge-get", name).json["content"]["data"] == "shared"
    assert given("knowledge-update", name, "-d", "changed").code == 0
    assert "changed" in given("history", name).out
    assert given("knowledge-delete", name).code == 0
    assert "changed" in given("history", name).out

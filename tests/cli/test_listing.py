"""Scopes and tags in use: by element, by page, and nothing that is withheld or gone."""

from __future__ import annotations

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import open_store


@pytest.fixture
def given(cli, home):
    """Entries and statements in several scopes, some withheld."""
    rows = [
        Entry("a", "x", tags=("rule", "b"), scopes=("app", "")),
        Entry("b", "x", tags=("rule",), scopes=("app",)),
        Entry("c", "x", tags=("other", ""), scopes=("my-app",)),
        Entry("d", "x", tags=("nowhere",), scopes=("(nowhere)",)),
        Entry("e", "x", tags=("(global)",), scopes=("(global)",)),
        Entry("hidden", "x", tags=("secret",), scopes=("secret",), trust=Trust.CANDIDATE),
        Entry("off", "x", tags=("off",), scopes=("off",), suppressed=True),
    ]

    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_AGENT), now=context.now()) as txn:
            for row in rows:
                txn.put_entry(row)
            txn.put_statement(Statement("a", "knows", "b", scopes=("app",)))
            txn.put_statement(Statement("hidden", "is_a", "secret", scopes=("ghost",)))
        # as an early version of the program let it in
        store.execute("UPDATE entry SET scopes = [] WHERE name = 'd'")
    return cli


def test_scopes_are_listed_with_the_global_one_labelled(given):
    """A scope that is called like the label is told from it; no scope at all is none of them."""
    assert given("scope", "list").out.splitlines() == ["(global)", '"(global)"', "app", "my-app"]
    assert given("scope", "list", "--count").out.splitlines() == [
        "(global)    1",
        '"(global)"  1',
        "app         3",
        "my-app      1",
    ]
    assert given("scope", "list", "--json").json[2] == {
        "scope": "app",
        "count": 3,
        "entries": 2,
        "statements": 1,
    }


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "code"),
    [("app", 0), ("my-app", 0), ("", 0), ("(global)", 0), ("ap", 1), ("secret", 1), ("ghost", 1)],
)
def test_a_scope_is_asked_for_by_exit_code(given, name, code):
    """Whole names only, and the quoted value to see what was asked."""
    done = given("scope", "exists", name)

    assert (done.code, done.out) == (code, f'"{name}"\n')
    assert given("scope", "exists", name, "--json").json == {"scope": name, "exists": not code}


def test_tags_are_those_of_the_project_and_the_global_scope(given):
    """As every read; further ones have to be asked for (I5)."""
    assert given("tag", "list").out.splitlines() == ["b", "rule"]
    assert given("tag", "list", "--count").out.splitlines() == ["b     1", "rule  2"]
    assert given("tag", "list", "--scope", "my-app").out.splitlines() == ['""', "other"]
    assert [row["tag"] for row in given("tag", "list", "--all-projects", "--json").json] == [
        "",
        "(global)",
        "b",
        "nowhere",
        "other",
        "rule",
    ]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["rule"], 0),
        (["other"], 1),
        (["other", "--all-projects"], 0),
        (["other", "--scope", "my-app"], 0),
        (["rul"], 1),
        (["secret", "--all-projects"], 1),
        (["off", "--all-projects"], 1),
    ],
)
def test_a_tag_is_asked_for_by_exit_code(given, arguments, code):
    """In the same scopes as the list."""
    done = given("tag", "exists", *arguments)

    assert (done.code, done.out) == (code, f'"{arguments[0]}"\n')


def test_what_is_deleted_leaves_the_lists(given, monkeypatch):
    """And so does a scope with its last entry."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    given("knowledge-delete", "c", "--scope", "my-app")
    given("knowledge-update", "a", "--tags", "")

    assert "my-app" not in given("scope", "list").out
    assert given("scope", "exists", "my-app").code == 1
    assert given("tag", "list").out.splitlines() == ["rule"]


def test_pages_hold_every_name_once(given):
    """A remark says that there is more; the last page has none."""
    for command in (["scope", "list"], ["tag", "list", "--all-projects"]):
        whole = given(*command, "--json").json
        pages, offset = [], 0
        while True:
            done = given(*command, "--json", "--limit", "1", "--offset", str(offset))
            if not done.json:
                break
            pages += done.json
            offset += 1
            assert ("There are more" in done.err) == (offset < len(whole))
        assert pages == whole


def test_an_empty_memory_has_no_scopes(cli):
    """A sentence for people, an empty list for programs, exit 0."""
    assert (cli("scope", "list").out, cli("tag", "list").out) == (
        "No scopes here.\n",
        "No tags here.\n",
    )
    assert cli("scope", "list", "--json").json == []
    assert cli("scope", "list", "-s", "nobody").code == 1

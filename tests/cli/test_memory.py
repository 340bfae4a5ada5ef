"""Remember, forget, rules: from the command line and in this project."""

from __future__ import annotations

import pytest


def test_remember_says_what_it_stored(cli):
    """The published line, with the kind told by the words."""
    done = cli("remember", "never mock the database")

    assert done.out == (
        '[hypatia-memory] Stored: "rule:never-mock-the-database" (taboo, scoped to app).\n'
    )
    [row] = cli("rules", "--json").json
    assert row["name"] == "rule:never-mock-the-database"
    assert row["kind"] == "taboo"
    assert row["scopes"] == ["app"]


def test_remember_again_changes_nothing(cli):
    """Agents repeat themselves."""
    cli("remember", "never mock the database")

    done = cli("remember", "never mock the database")

    assert "Already stored" in done.out
    assert len(cli("rules", "--json").json) == 1


def test_remember_globally_and_by_kind(cli):
    """What is global holds in every project."""
    done = cli("remember", "answer in British English", "--global", "--kind", "rule")

    assert done.out.endswith("(rule, global).\n")
    assert cli("rules", "--json").json[0]["scopes"] == [""]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [(["- never mock it"], b""), (["-"], b"- never mock it\n"), (["--", "- never mock it"], b"")],
)
def test_remember_text_that_begins_with_a_dash(cli, arguments, stdin):
    """As it stands, or from standard input."""
    assert cli("remember", *arguments, stdin=stdin).code == 0
    assert cli("rules", "--json").json[0]["content"] == "- never mock it"


def test_remember_nothing_is_an_error(cli):
    """With an example."""
    done = cli("remember", "  ")

    assert done.code == 2
    assert "nothing to remember" in done.err


def test_remember_wrong_kind(cli):
    """Names the kinds there are."""
    done = cli("remember", "x", "--kind", "law")

    assert done.code == 2
    assert "rule, taboo, memory" in done.err


def test_forget_one_clear_match(cli):
    """Removed at once, counted, gone from rules and search, and it stays away."""
    cli("remember", "the staging URL is https://staging.example.com")
    cli("remember", "always run make check")

    preview = cli("forget", "the staging URL", "--dry-run")
    done = cli("forget", "the staging URL")

    assert preview.out.startswith("Would remove:\n  memory:")
    assert "Forgetting is final" in preview.out
    assert done.out.startswith("[hypatia-memory] Removed 1 entry and 1 relationship.\n")
    assert len(cli("rules", "--json").json) == 1
    assert cli("search", "staging").out == "No results found.\n"
    again = cli("remember", "the staging URL is https://staging.example.com")
    assert again.code == 1
    assert "Error: refused:" in again.err


def test_forget_asks_when_several_match(cli):
    """Nothing is removed on a guess; --id says which."""
    cli("remember", "the staging URL is one")
    cli("remember", "the staging URL is two")

    done = cli("forget", "staging URL")
    names = [row["name"] for row in cli("rules", "--json").json]

    assert done.code == 1
    assert "Nothing removed" in done.out
    assert len(names) == 2
    chosen = cli("forget", "--id", names[0])
    assert chosen.code == 0
    assert [row["name"] for row in cli("rules", "--json").json] == names[1:]


def test_forget_nothing_like_it(cli):
    """Says where to look."""
    done = cli("forget", "unicorns")

    assert done.code == 1
    assert "hypatia-mem rules" in done.err
    assert cli("forget").code == 2


def test_forget_leaves_other_projects_alone(cli, project, monkeypatch):
    """Two projects may remember the same; each forgets its own."""
    cli("remember", "the staging URL is one")
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)

    done = cli("forget", "staging URL")

    assert done.code == 1
    monkeypatch.chdir(project)
    assert len(cli("rules", "--json").json) == 1


def test_two_folders_of_one_name_are_two_projects(cli, project, tmp_path, monkeypatch):
    """The second never sees the first one's rules, and its own are its own."""
    cli("remember", "always say one")
    twin = tmp_path / "elsewhere" / "app"
    twin.mkdir(parents=True)
    monkeypatch.chdir(twin)

    before = cli("rules", "--json").json
    cli("remember", "always say two")
    here = [row["content"] for row in cli("rules", "--json").json]
    monkeypatch.chdir(project)
    there = [row["content"] for row in cli("rules", "--json").json]

    assert before == []
    assert here == ["always say two"]
    assert there == ["always say one"]


def test_rules_text(cli):
    """Taboos first, each with its scope."""
    cli("remember", "never mock the database")
    cli("remember", "always run make check", "--global")

    done = cli("rules")

    assert done.out.index("Taboos") < done.out.index("Rules")
    assert "  rule:never-mock-the-database  [app]\n    never mock the database" in done.out
    assert "[global]" in done.out
    assert cli("rules", "--kind", "taboo").out.startswith("Taboos")
    assert cli("rules", "--kind", "law").code == 2


def test_the_change_is_in_the_log(cli):
    """By whom and by which door, never what it said."""
    cli("remember", "never mock the database")

    rows = cli("log", "--target", "rule:never-mock-the-database", "--json").json
    text = cli("log").out

    assert rows[0]["verb"] == "create taboo"
    assert rows[0]["channel"] == "cli-agent"
    assert "never mock the database" not in text


def test_words_that_only_an_entry_of_knowledge_has_lead_to_its_name(cli):
    """Words forget what was remembered; any other entry goes by its name, and the error says so."""
    cli("knowledge-create", "billing", "-d", "sends invoices")
    refused = cli("forget", "billing")
    assert refused.code == 1
    assert "forget --id NAME" in refused.err
    assert cli("knowledge-get", "billing", "--json").code == 0
    assert cli("forget", "--id", "billing").code == 0
    assert cli("knowledge-get", "billing", "--json").code == 1

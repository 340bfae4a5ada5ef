"""History, diff, revert, undo and redo as a person types them; and when a thing is true."""

from __future__ import annotations

import time

import pytest

from hypatia_mem.cli import context
from hypatia_mem.memory.curate import changing
from hypatia_mem.model import Author, Channel, Entry

NAME = "rule:never-mock-the-database"


@pytest.fixture
def edited(cli, once):
    """A rule with four versions and a statement about it."""

    def make():
        cli("remember", "never mock the database")
        cli("knowledge-update", NAME, "-d", "never mock\nthe database")
        cli("knowledge-update", NAME, "-d", "never mock\nany database", "-t", "rule,db")
        cli("knowledge-update", NAME, "-d", "mock nothing")

    once(make)
    return cli


def operation_of(cli, row):
    return next(one["op_id"] for one in cli("log", "--json").json if one["seq"] == row)


@pytest.mark.deep
def test_every_version_is_there_with_who_and_when(edited):
    found = edited("history", NAME, "--json").json

    assert found["name"] == NAME
    assert [(row["version"], row["verb"], row["content"]) for row in found["versions"]] == [
        (1, "create", "never mock the database"),
        (2, "update", "never mock\nthe database"),
        (3, "update", "never mock\nany database"),
        (4, "update", "mock nothing"),
    ]
    assert [row["changed"] for row in found["versions"]] == [
        [], ["content"], ["content", "tags", "kind"], ["content"],
    ]  # fmt: skip
    assert {row["channel"] for row in found["versions"]} == {"cli-agent"}
    assert len({row["operation"] for row in found["versions"]}) == 4
    assert [row["current"] for row in found["versions"]] == [False, False, False, True]
    text = edited("history", NAME).out.splitlines()
    assert len(text) == 4
    assert text[0].startswith("@1 ")
    assert text[0].endswith("never mock the database")
    assert edited("history", f"{NAME}@2").out == "never mock\nthe database\n"
    assert edited("history", f"{NAME}@2", "--json").json["version"] == 2


@pytest.mark.deep
def test_a_deleted_thing_has_a_history_and_a_forgotten_one_none(edited):
    edited("knowledge-delete", NAME)

    found = edited("history", NAME, "--json").json["versions"]
    assert found[-1]["deleted_by"]
    assert found[-1]["content"] == "mock nothing"
    assert "(gone)" in edited("history", NAME).out
    edited("undo")
    edited("forget", "--id", NAME)
    done = edited("history", NAME)
    assert done.code == 1
    assert "no history" in done.err


@pytest.mark.deep
def test_what_was_deleted_can_still_be_forgotten(edited):
    """Its history holds the words, and they are not to come back."""
    edited("knowledge-delete", NAME)

    assert edited("forget", "--id", NAME).code == 0

    assert edited("history", NAME).code == 1
    assert edited("undo").code == 1
    assert edited("remember", "mock nothing").code == 1  # from an agent, as here


def test_a_statement_is_named_by_its_parts_or_its_key(cli):
    cli("statement-create", "a", "knows", "b, c")
    cli("statement-delete", "a", "knows", "b, c")
    cli("undo")

    found = cli("history", "a", "knows", "b, c", "--json").json
    assert found["name"] == "(a, knows, b, c)"
    assert [(row["version"], bool(row["deleted_by"])) for row in found["versions"]] == [
        (1, True),
        (2, False),
    ]
    assert cli("history", 'a,knows,"b, c"', "--json").json == found
    assert cli("history", "a", "knows").code == 2


@pytest.mark.deep
def test_what_is_withheld_is_not_shown_unasked(cli, project):
    from hypatia_mem.cli import context
    from hypatia_mem.memory.curate import changing

    cli("knowledge-create", "plan", "-d", "secret plan")
    with changing(context.home(), context.author(), context.now()) as (_, txn):
        txn.update_entry("plan", suppressed=True)
    for command in (("history", "plan"), ("diff", "plan@1", "plan@2"), ("revert", "plan@1")):
        done = cli(*command)
        assert (done.code, "secret" in done.out + done.err) == (1, False)
        assert "--withheld" in done.err
    assert "secret plan" in cli("history", "plan", "--withheld").out
    with changing(context.home(), context.author(), context.now()) as (_, txn):
        txn.update_entry("plan", suppressed=False, content="open plan")
    listed = cli("history", "plan")
    assert "(withheld)" in listed.out
    assert "secret plan" in listed.out  # what was seen at first
    assert cli("history", "plan@2").code == 1
    assert cli("diff", "plan@2", "plan@3").code == 1
    assert cli("diff", "plan@1", "plan@3").code == 0


def test_a_difference_is_a_unified_diff_with_the_fields_that_changed(edited):
    done = edited("diff", f"{NAME}@1", f"{NAME}@3")

    lines = done.out.splitlines()
    assert lines[:2] == [f"--- {NAME}@1", f"+++ {NAME}@3"]
    for line in ("-tags: memory, taboo", "+tags: rule, db", "-kind: taboo", "+kind: rule",
                 "-never mock the database", "+never mock", "+any database"):  # fmt: skip
        assert line in lines
    found = edited("diff", f"{NAME}@1", f"{NAME}@3", "--json").json
    assert found["diff"] == lines
    assert found["fields"]["kind"] == ["taboo", "rule"]
    assert (found["from"]["version"], found["to"]["version"]) == (1, 3)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "ends"),
    [([], (3, 4)), (["@2"], (2, 4)), (["@4", "@4"], (4, 4)), (["@3", "@1"], (3, 1))],
)
def test_the_ends_of_a_difference_may_be_left_out(edited, arguments, ends):
    names = [NAME + end for end in arguments] or [NAME]

    found = edited("diff", *names, "--json").json

    assert (found["from"]["version"], found["to"]["version"]) == ends
    assert bool(found["diff"]) is (ends[0] != ends[1])


def test_a_version_that_is_not_there_names_those_that_are(edited):
    done = edited("diff", f"{NAME}@9")

    assert done.code == 1
    assert "1, 2, 3, 4" in done.err


def test_a_revert_is_a_new_version(edited):
    done = edited("revert", f"{NAME}@2")

    assert done.code == 0
    found = edited("history", NAME, "--json").json["versions"]
    assert [row["version"] for row in found] == [1, 2, 3, 4, 5]
    assert found[4]["content"] == found[1]["content"]
    assert found[4]["tags"] == found[1]["tags"] == ["memory", "taboo"]
    [rule] = edited("rules", "--json").json
    assert (rule["kind"], rule["content"]) == ("taboo", "never mock\nthe database")
    again = edited("revert", f"{NAME}@2")
    assert (again.code, "already" in again.out) == (0, True)
    assert edited("revert", NAME).code == 2


def test_a_revert_is_found_by_search_and_what_it_replaced_is_not(edited):
    edited("revert", f"{NAME}@3")

    assert [row["key"] for row in edited("search", "database", "--json").json] == [NAME]
    assert edited("search", "nothing", "--json").json == []


def test_a_revert_brings_back_what_was_deleted(edited):
    edited("knowledge-delete", NAME)

    done = edited("revert", f"{NAME}@1", "--json")

    assert done.json["version"] == 5
    assert edited("rules", "--json").json[0]["content"] == "never mock the database"


def test_a_statement_is_reverted_too(cli):
    cli("statement-create", "a", "knows", "b", "--valid-to", "2026-01-01")
    cli("statement-create", "a", "knows", "b", "--valid-to", "2027-01-01")
    cli("statement-delete", "a", "knows", "b")

    done = cli("revert", "a", "knows", "b@1")

    assert done.code == 0
    versions = cli("history", "a", "knows", "b", "--json").json["versions"]
    assert [row["changed"] for row in versions] == [[], ["valid_to"], ["valid_to"]]
    assert versions[2]["valid_to"] == versions[0]["valid_to"]


@pytest.mark.deep
def test_undo_and_redo_go_back_and_forth_step_by_step(edited):
    texts = ["mock nothing", "never mock\nany database", "never mock\nthe database"]
    for text in texts[1:]:
        assert edited("undo").code == 0
        assert edited("rules", "--json").json[0]["content"] == text
    edited("undo")
    assert edited("undo").code == 0  # what remembered it
    assert edited("rules", "--json").json == []
    assert edited("search", "database", "--json").json == []
    done = edited("undo")
    assert (done.code, "nothing to undo" in done.err) == (1, True)
    for _ in range(4):
        assert edited("redo").code == 0
    assert edited("rules", "--json").json[0]["content"] == "mock nothing"
    assert edited("search", "nothing", "--json").json[0]["key"] == NAME
    done = edited("redo")
    assert (done.code, "nothing to redo" in done.err) == (1, True)


@pytest.mark.deep
def test_what_is_undone_leaves_the_index_even_when_the_index_cannot_follow(edited):
    """As when the command is killed as soon as the store has it."""
    from hypatia_mem.cli import context

    found = edited("search", "mock", "--json").json
    assert NAME in {row["key"] for row in found}
    for brief in (context.home() / "briefs").glob("*.json"):  # nothing derived can be written now
        brief.unlink()
        brief.mkdir()
    for _ in range(4):
        assert edited("undo").code == 0

    assert edited("search", "mock", "--json").json == []


def test_an_operation_is_named_by_the_log(edited):
    [row] = [one for one in edited("log", "--json").json if one["verb"] == "create taboo"]
    assert row["op_id"] in edited("log").out

    done = edited("undo", str(row["seq"]))
    assert done.code == 1
    assert NAME in done.err  # changed later
    assert edited("rules", "--json").json[0]["content"] == "mock nothing"
    last = edited("log", "--json", "--limit", "1").json[0]["op_id"]
    assert edited("undo", last, "--json").json["changed"] == [NAME]
    assert edited("redo", last).code == 0


def test_a_dry_run_says_the_same_and_changes_nothing(edited):
    edited("knowledge-delete", NAME)
    before = edited("log", "--json").out

    tried = edited("undo", "--dry-run", "--json").json
    assert edited("log", "--json").out == before
    done = edited("undo", "--json").json
    assert tried["dry_run"] is True
    assert tried["restored"] == done["restored"] == [NAME, f"{NAME},is_a,taboo"]
    assert edited("undo", "--dry-run").out.startswith("Would undo")


def test_forgetting_is_final_and_says_what_to_do(edited):
    edited("forget", "--id", NAME)

    done = edited("undo")

    assert done.code == 1
    assert "final" in done.err
    assert "hypatia-mem remember" in done.err
    assert edited("rules", "--json").json == []


@pytest.mark.deep
def test_undo_stays_in_its_project(cli, project, monkeypatch):
    cli("remember", "never mock the database")
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    cli("remember", "always use tabs")
    cli("remember", "always say please", "--global")

    assert cli("undo").code == 0
    assert cli("undo").code == 0
    assert cli("undo").code == 1
    assert len(cli("rules", "--all-projects", "--json").json) == 1
    assert cli("undo", "--all-projects").code == 1  # an agent's hands stay in its project
    monkeypatch.setattr("hypatia_mem.cli.context.channel", lambda: Channel.CLI_PERSON)
    assert cli("undo", "--all-projects").code == 0
    assert cli("rules", "--all-projects", "--json").json == []


def test_a_renamed_project_is_renamed_back(cli, monkeypatch):
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    cli("remember", "never mock the database")
    cli("project", "rename", "app", "tool")
    assert cli("rules", "--json").json[0]["scopes"] == ["tool"]

    assert cli("undo").code == 0
    assert cli("rules", "--json").json[0]["scopes"] == ["app"]
    assert [row["scope"] for row in cli("project", "list", "--json").json] == ["app"]


# -- when a thing is true


@pytest.fixture
def zone(monkeypatch):
    """Local time is two hours ahead."""
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def validity(cli, name):
    from hypatia_mem.cli import context
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        entry = store.entry(name)
    return tuple(
        None if one is None else one.isoformat() for one in (entry.valid_from, entry.valid_to)
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("start", "end", "stored"),
    [
        ("2026-03-01", "2026-06-30", ("2026-02-28T22:00:00", "2026-06-30T22:00:00")),
        ("2026-03-01T14:30", None, ("2026-03-01T12:30:00", None)),
        ("2026-03-01T14:30Z", "", ("2026-03-01T14:30:00", None)),
        ("2026-03-01T14:30+05:45", None, ("2026-03-01T08:45:00", None)),
        (None, "2026-03-01T00:00-11:00", (None, "2026-03-01T11:00:00")),
        (None, "20260301", (None, "2026-03-01T22:00:00")),
        ("", "", (None, None)),
    ],
)
def test_times_are_local_unless_they_say_otherwise(cli, zone, start, end, stored):
    options = [*(["--valid-from", start] if start is not None else [])]
    options += [*(["--valid-to", end] if end is not None else [])]

    assert cli("knowledge-create", "a", "-d", "x", *options).code == 0

    assert validity(cli, "a") == stored


@pytest.mark.parametrize(
    "said", ["yesterday", "2026-13-01", "2026-02-30", "26", "0001-01-01T00:00+14:00"]
)
def test_what_is_no_time_is_refused_with_examples(cli, said):
    done = cli("knowledge-create", "a", "-d", "x", "--valid-from", said)

    assert done.code == 2
    assert "--valid-from" in done.err
    assert "2026-03-01" in done.err


@pytest.mark.deep
@pytest.mark.parametrize(
    ("start", "end"), [("2026-03-02", "2026-03-01"), ("2026-03-01T10:00Z", "2026-03-01T10:00Z")]
)
def test_an_end_before_the_beginning_is_refused(cli, start, end):
    options = ("--valid-from", start, "--valid-to", end)
    assert cli("knowledge-create", "a", "-d", "x", *options).code == 2
    assert cli("statement-create", "a", "is", "b", *options).code == 2
    cli("knowledge-create", "a", "-d", "x", "--valid-to", "2026-01-01T00:00Z")
    done = cli("knowledge-update", "a", "--valid-from", "2026-01-01T00:00Z")
    assert done.code == 2
    assert "before it begins" in done.err
    assert validity(cli, "a") == (None, "2026-01-01T00:00:00")


@pytest.mark.deep
def test_only_what_is_true_now_is_a_rule(cli):
    ways = {
        "no ends": (),
        "began": ("--valid-from", "2020-01-01"),
        "not over": ("--valid-to", "2999-01-01"),
        "between": ("--valid-from", "2020-01-01", "--valid-to", "2999-01-01"),
        "over": ("--valid-to", "2020-01-01"),
        "not yet": ("--valid-from", "2999-01-01"),
    }
    for name, options in ways.items():
        cli("knowledge-create", name, "-d", f"Rule {name}", "-t", "rule", *options)

    true = {"no ends", "began", "not over", "between"}
    assert {row["name"] for row in cli("rules", "--json").json} == true
    from hypatia_mem.cli import context

    [brief] = [
        text
        for path in (context.home() / "briefs").glob("*.json")
        if "Rule began" in (text := path.read_text("utf-8"))
    ]
    for name in ways:
        assert (f"Rule {name}" in brief) is (name in true)


def test_a_corrected_end_keeps_the_earlier_belief_readable(cli):
    cli("knowledge-create", "a", "-d", "x", "-t", "rule", "--valid-to", "2020-01-01T00:00Z")
    assert cli("rules", "--json").json == []

    cli("knowledge-update", "a", "--valid-to", "")

    assert [row["name"] for row in cli("rules", "--json").json] == ["a"]
    found = cli("diff", "a@1", "a@2", "--json").json
    assert found["fields"]["valid_to"] == ["2020-01-01 00:00:00.000000", None]


def test_saying_an_ended_rule_again_makes_it_true_again(cli):
    cli("remember", "never mock the database")
    cli("knowledge-update", NAME, "--valid-to", "2020-01-01")
    assert cli("rules", "--json").json == []

    cli("remember", "never mock the database")

    assert [row["name"] for row in cli("rules", "--json").json] == [NAME]
    cli("knowledge-update", NAME, "--valid-to", "2999-01-01")
    cli("remember", "never mock the database")  # it is true: nothing to change
    assert validity(cli, NAME)[1] is not None


def test_a_rule_that_is_not_true_now_can_be_forgotten(cli):
    cli("remember", "never mock the database")
    cli("knowledge-update", NAME, "--valid-to", "2020-01-01")

    assert cli("forget", "mock the database").code == 0

    assert cli("history", NAME).code == 1


def test_a_statement_that_exists_is_given_another_time(cli):
    cli("statement-create", "a", "works-at", "b", "--valid-from", "2020-01-01T00:00Z")
    assert "already exists" in cli("statement-create", "a", "works-at", "b").out

    done = cli("statement-create", "a", "works-at", "b", "--valid-to", "2026-01-01T00:00Z")
    assert "Updated when it is true" in done.out
    assert "already exists" in cli("statement-create", "a", "works-at", "b").out
    cli("statement-create", "a", "works-at", "b", "--valid-from", "")

    versions = cli("history", "a", "works-at", "b", "--json").json["versions"]
    ends = [(row["valid_from"], row["valid_to"]) for row in versions]
    start, end = "2020-01-01 00:00:00.000000", "2026-01-01 00:00:00.000000"
    assert ends == [(start, None), (start, end), (None, end)]


@pytest.mark.deep
def test_an_import_is_one_operation(cli, tmp_path):
    cli("remember", "never mock the database")
    cli("knowledge-create", "plan", "-d", "x")
    cli("export", "default", str(tmp_path / "export"))
    cli("connect", str(tmp_path / "shelf"), "-n", "other")
    cli("import", str(tmp_path / "export"), "-s", "other")
    query = ("query", '["$knowledge"]', "--all-projects", "--json", "-s", "other")
    assert {row["name"] for row in cli(*query).json} == {NAME, "plan"}

    done = cli("undo", "--all-projects", "--json", "-s", "other").json

    assert set(done["removed"]) == {NAME, "plan", f"{NAME},is_a,taboo"}
    assert cli(*query).json == []
    assert cli("redo", "--all-projects", "-s", "other").code == 0
    assert {row["name"] for row in cli(*query).json} == {NAME, "plan"}


@pytest.mark.parametrize(
    ("author", "by"),
    [
        (Author(Channel.CLI_PERSON, "ada"), "ada (cli-person)"),
        (Author(Channel.CLI_PERSON), "a person"),
        (Author(Channel.HOOK_PROMPT), "a person, by a prompt"),
        (Author(Channel.CLI_AGENT), "an agent"),
        (Author(Channel.WORKER), "the worker"),
        (Author(Channel.HOOK), "a hook"),
        (Author(Channel.IMPORT), "an import"),
    ],
)
def test_a_history_names_who_did_it_and_never_a_dash(cli, author, by):
    """Who made it, and who took it away."""
    with changing(context.home(), author, context.now()) as (_, txn):
        txn.put_entry(Entry("note", "of it", scopes=("app",)))
    with changing(context.home(), author, context.now()) as (_, txn):
        txn.delete_entry("note", reason="delete")
    made = cli("history", "note", "--json").json["versions"][0]
    assert (made["by"], made["deleter"]) == (by, by)
    assert cli("history", "note").out.count(by) == 2

"""``tombstone`` and ``key`` as a person types them, and as an agent does."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Channel
from hypatia_mem.store.connection import open_store

VALUE = "Never mock the database in integration tests"
LIKE = "Integration tests must not use database mocks"
OTHER = "The retro takes place on Tuesdays"


@pytest.fixture
def agent(cli, monkeypatch):
    """Run a command as an agent does."""

    def call(*arguments, **more):
        with monkeypatch.context() as patch:
            patch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
            return cli(*arguments, **more)

    return call


@pytest.fixture
def person(cli, monkeypatch):
    """Run a command at a terminal."""

    def call(*arguments, **more):
        with monkeypatch.context() as patch:
            patch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
            return cli(*arguments, **more)

    return call


@pytest.fixture
def name(person, once):
    """The name of a rule that was forgotten."""

    def make():
        made = person("remember", VALUE, "--kind", "rule", "--json").json["name"]
        assert person("forget", "--id", made).code == 0
        return made

    return once(make)


def test_one_thing_is_one_line(person, name):
    found = person("tombstone", "list", "--json").json
    assert [(one["kind"], one["scope"], one["channel"]) for one in found] == [
        ("rule", "app", "cli-person")
    ]
    assert found[0]["parts"] == {"value": 1, "look": 1, "name": 1}
    assert (found[0]["alike"], found[0]["lost"]) == (True, False)
    shown = person("tombstone", "list").out
    assert shown.startswith(found[0]["id"])
    assert "mock" not in shown
    assert person("tombstone", "list", "--scope", "other").out == "Nothing is kept away here.\n"
    assert len(person("tombstone", "list", "--all-projects", "--json").json) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        (VALUE, "refused", "It would be refused: it says what was forgotten (tombstone "),
        ("N3ver  mоck the d@tabase in integration tests", "refused", "It would be refused"),
        (LIKE, "quarantined", "It would wait in the review: it is "),
        (OTHER, "taken", "It would be taken: nothing like it was forgotten here."),
    ],
)
def test_check_says_what_would_become_of_a_text(agent, name, text, verdict, words):
    said = agent("tombstone", "check", text, "--json").json
    assert said["verdict"] == verdict
    assert (said["tombstone"] is None) is (verdict == "taken")
    assert agent("tombstone", "check", text).out.startswith(words)
    made = agent("remember", text, "--json")  # and it comes so
    assert made.code == (1 if verdict == "refused" else 0)
    if verdict != "refused":
        assert made.json.get("quarantined", False) is (verdict == "quarantined")


def test_who_brings_other_words_is_told_that_they_wait(agent, name):
    done = agent("remember", LIKE)
    assert done.code == 0
    assert 'Held back: "' in done.out
    assert "like something that was forgotten on" in done.out
    assert "hypatia-mem review" in done.out
    made = agent("knowledge-create", "k", "-d", LIKE)
    assert "Held back" in made.out
    assert LIKE not in agent("rules").out
    assert LIKE not in agent("search", "database mocks").out


@pytest.mark.deep
@pytest.mark.parametrize("by", ["id", "name"])
def test_a_person_lifts_one_and_takes_that_back(person, agent, name, by):
    which = name if by == "name" else person("tombstone", "list", "--json").json[0]["id"]
    would = person("tombstone", "lift", which, "--dry-run", "--json").json
    assert (len(would["lifted"]), would["operation"]) == (1, "")
    assert len(person("tombstone", "list", "--json").json) == 1
    done = person("tombstone", "lift", which, "--json").json
    assert agent("remember", VALUE, "--kind", "rule").code == 0
    agent("knowledge-delete", name)
    assert person("undo", done["operation"]).code == 0
    assert agent("remember", VALUE, "--kind", "rule").code == 1


def test_an_agent_lifts_nothing_and_that_is_noted(person, agent, name):
    [one] = person("tombstone", "list", "--json").json
    done = agent("tombstone", "lift", one["id"])
    assert done.code == 1
    assert "only a person can lift a tombstone" in done.err
    assert "terminal" in done.err
    assert agent("remember", VALUE).code == 1
    verbs = [row["verb"] for row in person("log", "--json").json]
    assert "refuse entry" in verbs


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "say which tombstone"),
        (["abcdef12"], 1, "no tombstone 'abcdef12' here"),
        (["rule:nothing"], 1, "no tombstone"),
        (["--lost"], 1, "there is no tombstone to lift"),
    ],
)
def test_what_is_not_there_is_not_lifted(person, name, arguments, code, words):
    done = person("tombstone", "lift", *arguments)
    assert (done.code, words in done.err) == (code, True), done.err


def test_an_id_of_another_project_means_nothing_here(person, name, project, monkeypatch):
    [one] = person("tombstone", "list", "--json").json
    elsewhere = project.parent / "else"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert person("tombstone", "lift", one["id"]).code == 1
    assert person("tombstone", "lift", one["id"], "--all-projects").code == 0


@pytest.mark.deep
def test_a_new_key_keeps_what_was_forgotten_before(person, agent, name):
    [before] = person("key", "list", "--json").json
    assert agent("key", "rotate").code == 1
    done = person("key", "rotate", "--json").json
    assert done["before"] == before["id"]
    found = person("key", "list", "--json").json
    assert [(one["id"], one["present"], one["tombstones"]) for one in found] == [
        (done["key"], True, 0),
        (before["id"], False, 3),
    ]
    assert agent("remember", VALUE).code == 1
    assert agent("remember", LIKE, "--json").json["quarantined"]
    assert agent("remember", OTHER).code == 0
    assert OTHER in agent("search", "retro").out  # the index was made with the key before
    agent("knowledge-delete", person("rules", "--json").json[0]["name"])
    assert OTHER not in agent("search", "retro").out
    assert person("tombstone", "lift", name).code == 0
    assert agent("remember", VALUE).code == 0


def test_a_rotation_is_not_undone(person, name):
    person("key", "rotate")
    [op] = [row["op_id"] for row in person("log", "--json").json if "rotate" in row["verb"]]
    done = person("undo", op)
    assert (done.code, "began a new key" in done.err) == (1, True)


@pytest.mark.deep
def test_a_lost_key_is_told_and_can_be_given_up(person, agent, name, home):
    (home / "key").unlink()
    for path in (home / "keys").iterdir():
        path.unlink()
    assert agent("remember", OTHER, "--json").json["quarantined"]
    shown = person("key", "list").out
    assert "LOST" in shown
    assert "tombstone lift --lost" in shown
    assert "KEY LOST" in person("tombstone", "list").out
    assert person("tombstone", "lift", "--lost", "--all-projects").code == 0
    assert "quarantined" not in agent("remember", "Another thing altogether", "--json").json


@pytest.mark.deep
def test_an_export_takes_every_key_along(person, agent, name, tmp_path):
    """And a shelf that has a key of its own asks them as well."""
    person("key", "rotate")
    person("remember", "Deploy on Tuesdays at ten", "--kind", "rule")
    person("forget", "deploy tuesdays")
    assert person("export", "default", str(tmp_path / "out")).code == 0
    files = json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]
    assert len([one for one in files if one.startswith("key")]) == 2
    for shelf, used in (("new", False), ("used", True)):
        person("connect", str(tmp_path / shelf), "-n", shelf)
        if used:
            person("knowledge-create", "x", "-s", shelf)
            person("knowledge-delete", "x", "-s", shelf)
        assert person("import", str(tmp_path / "out"), "-s", shelf).code == 0
        for text in (VALUE, "Deploy on Tuesdays at ten"):
            assert agent("remember", text, "-s", shelf).code == 1, (shelf, text)
        assert agent("remember", LIKE, "--json", "-s", shelf).json["quarantined"], shelf
        assert agent("remember", OTHER, "--json", "-s", shelf).code == 0


@pytest.mark.deep
def test_what_an_import_brings_is_held_to_what_was_forgotten_here(person, agent, tmp_path):
    """Not to what it brings along itself: there they stood side by side."""
    person("remember", LIKE, "--kind", "rule")
    person("export", "default", str(tmp_path / "old"), "--share")
    person("connect", str(tmp_path / "new"), "-n", "new")
    made = person("remember", VALUE, "--kind", "rule", "--json", "-s", "new").json["name"]
    person("forget", "--id", made, "-s", "new")
    assert person("import", str(tmp_path / "old"), "-s", "new").code == 0
    assert LIKE not in person("rules", "-s", "new").out
    lines = (tmp_path / "old" / "entry.jsonl").read_text().splitlines()
    [held] = [json.loads(line) for line in lines]
    with open_store(tmp_path / "new", write=False) as store:
        assert store.entry(held["name"]).trust == "candidate"  # held back, not thrown away

    person("forget", "--id", person("rules", "--json").json[0]["name"])
    person("remember", VALUE, "--kind", "rule")
    person("export", "default", str(tmp_path / "both"))
    person("connect", str(tmp_path / "third"), "-n", "third")
    person("import", str(tmp_path / "both"), "-s", "third")
    assert VALUE in person("rules", "-s", "third").out


@pytest.mark.deep
def test_who_forgets_is_told_what_says_it_in_other_words(person, agent):
    made = person("remember", VALUE, "--kind", "rule", "--json").json["name"]
    also = person("remember", LIKE, "--kind", "rule", "--json").json["name"]
    person("remember", OTHER)
    would = person("forget", "--id", made, "--dry-run", "--json").json
    assert (would["chosen"], would["alike"]) == ([made], [also])
    done = person("forget", "--id", made)
    assert f"Kept, though it says something like it:\n  {also}\n" in done.out
    assert LIKE in person("rules").out
    again = person("forget", "--id", also)
    assert "Kept" not in again.out


@pytest.mark.parametrize(
    "kept",
    [("goal", "set", VALUE), ("goal", "set", LIKE), ("fact", "set", "how it is tested", VALUE)],
)
def test_who_forgets_is_told_of_the_goals_and_facts_that_say_it(person, kept):
    """A session is told the one unasked and finds the other: nobody may take it for gone."""
    stays = person(*kept, "--json").json["name"]
    person("goal", "set", OTHER)
    made = person("remember", VALUE, "--kind", "rule", "--json").json["name"]
    assert person("forget", "--id", made, "--json").json["alike"] == [stays]

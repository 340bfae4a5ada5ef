"""Prompts of one's own: the right one is used for each kind, the items come where they say."""

from __future__ import annotations

import json
import stat

import pytest

from hypatia_mem.cli.app import run as run_cli
from hypatia_mem.memory.summarise import making
from hypatia_mem.memory.summarise.messages_api import MessagesApi
from hypatia_mem.memory.summarise.prompted import Prompted
from hypatia_mem.memory.summarise.prompts import MARKER, Prompts, built_in
from hypatia_mem.memory.summarise.protocol import Item, Request
from tests.memory.cascade_kit import NOW
from tests.memory.model_server import ModelServer

SAID = "The retry queue in worker/queue.py loses jobs when Redis restarts, three times today."
GOOD = "NAME: retry queue\n- The retry queue in worker/queue.py loses jobs when Redis restarts."


@pytest.fixture
def command(home, capsys):
    def call(*arguments):
        capsys.readouterr()
        code = run_cli(["prompts", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def model():
    server = ModelServer().start()
    server.says(GOOD)
    yield server
    server.stop()


def asked(model, home, level):
    """Return (system, question) of what a model is asked for a batch of this level."""
    model.asked.clear()
    api = MessagesApi("key-of-mine", "m-1", model.url, 20.0)
    one = Prompted(api, Prompts.of(home), 50_000, api.ask)
    items = (Item("msg-s-1", SAID, "user" if level == 1 else "", "s", NOW),)
    making.make(one, Request(level, items, 60), {}, 0)
    (question,) = model.questions
    return question.body["system"][0]["text"], question.text


def test_each_kind_has_its_own_and_a_blank_one_is_the_built_in(model, home, command):
    assert command("edit", "summary", "--text", "Say it like a pirate.")[0] == 0
    assert asked(model, home, 1)[0] == "Say it like a pirate."
    assert asked(model, home, 2)[0] == built_in("resummary").strip()
    assert command("edit", "resummary", "--text", "Be a judge.")[0] == 0
    assert [asked(model, home, level)[0] for level in (1, 2, 3)] == [
        "Say it like a pirate.", "Be a judge.", "Be a judge.",
    ]  # fmt: skip
    assert "is the built-in one" in command("edit", "summary", "--text", "  \n ")[1]
    assert asked(model, home, 1)[0] == built_in("summary").strip()
    assert built_in("summary") != built_in("resummary")


@pytest.mark.parametrize(
    ("prompt", "system", "after"),
    [
        ("First. {{slot}} Last.", "First.", "Last."),
        ("Only before.", "Only before.", None),
        ("{{slot}} Only after.", "You condense part of a coding agent's memory.", "Only after."),
        ("One {{slot}} two {{slot}} three.", "One", "two  three."),
    ],
)
def test_the_items_come_where_the_slot_is_and_else_at_the_end(
    model, home, command, prompt, system, after
):
    command("edit", "summary", "--text", prompt)
    told, question = asked(model, home, 1)
    assert told == system
    assert "{{slot}}" not in told + question
    lines = question.splitlines()
    assert lines[0] == MARKER, "however it is written, our own hook knows it"
    place = lines.index(SAID)
    said_after = [line for line in lines[place + 2 : -1] if line]
    assert said_after == ([after] if after else [])


def test_the_prompts_are_shown_kept_for_oneself_and_taken_back(home, command):
    rows = json.loads(command("show", "--json")[1])
    assert [(row["prompt"], row["own"]) for row in rows] == [
        ("summary", False), ("resummary", False),
    ]  # fmt: skip
    said = command("edit", "summary", "--text", "Say it like a pirate.")[1]
    file = home / "prompts" / "summary.md"
    assert said == f"Kept: {file}\nIt has no {{{{slot}}}}, so the items come after it.\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert command("path", "summary")[1] == f"{file}\n"
    assert command("show", "summary")[1].endswith("Say it like a pirate.\n")
    assert built_in("summary") in command("show", "summary", "--default")[1]
    row = json.loads(command("show", "summary", "--json")[1])[0]
    assert (row["own"], row["digest"] != rows[0]["digest"]) == (True, True)
    assert command("reset", "--dry-run")[1] == "Would be removed: summary\n"
    assert file.exists()
    assert command("reset")[1] == "Removed: summary\n"
    assert not file.exists()
    assert command("reset")[1] == "There are none of your own.\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "poem"), "there are no rules 'poem'"),
        (("edit", "poem", "--text", "x"), "there are no rules 'poem'"),
        (("edit", "../evil", "--text", "x"), "there are no rules '../evil'"),
        (("edit", "summary", "--text", "x" * 20_001), "more than 20000"),
        (("edit", "summary"), "with --text"),
    ],
)
def test_what_is_no_prompt_is_refused_and_nothing_is_written(home, command, arguments, says):
    code, _, err = command(*arguments)
    assert (code, says in err) == (2, True)
    assert not (home / "prompts").exists()


def test_which_prompts_made_a_summary_is_recorded(home, command):
    before = Prompts.of(home).digest
    command("edit", "resummary", "--text", "Be a judge.")
    assert Prompts.of(home).digest != before
    command("reset", "resummary")
    assert Prompts.of(home).digest == before


def test_a_secret_is_told_to_no_model(home, command):
    secret = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"
    code, _, err = command("edit", "summary", "--text", f"Sign in with {secret} first.")
    assert code == 2
    assert "looks like a secret" in err
    assert secret not in err
    assert not any(secret in path.read_text() for path in home.rglob("*.md"))
    assert command("edit", "summary", "--text", "Leave out passwords and tokens.")[0] == 0

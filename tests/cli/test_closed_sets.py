"""A word that is none of those an option takes is refused, never taken for a filter of nothing.

Whoever adds an option that takes one of a few words says so here.
"""

from __future__ import annotations

import pytest

from hypatia_mem.cli.app import COMMANDS
from hypatia_mem.cli.group import load

# Names of parameters that, wherever they stand, take one of a few words.
CLOSED = {
    "because", "by", "catalog", "direction", "format_", "kind", "model", "role", "shell", "state",
    "strategy", "target", "verb", "mode", "sort", "order", "status", "level", "why",
}  # fmt: skip
# What only has such a name: what is meant is a name of the user's.
OPEN = {("extract due", "target"), ("extract submit", "target"), ("project merge", "target"),
        ("cascade windows", "model"), ("log", "target")}  # fmt: skip
LINES = {
    ("report", "kind"): ["report", "bogus"],
    ("report", "by"): ["report", "activity", "--by", "bogus"],
    ("search", "catalog"): ["search", "x", "-c", "bogus"],
    ("search", "kind"): ["search", "x", "--kind", "bogus"],
    ("search", "role"): ["search", "x", "--role", "bogus"],
    ("similar", "target"): ["similar", "x", "-t", "bogus"],
    ("similar", "kind"): ["similar", "x", "--kind", "bogus"],
    ("similar", "model"): ["similar", "x", "--model", "bogus"],
    ("backfill", "model"): ["backfill", "--model", "bogus"],
    ("ask", "strategy"): ["ask", "x", "--strategy", "bogus"],
    ("remember", "kind"): ["remember", "x", "--kind", "bogus"],
    ("delete", "because"): ["delete", "x", "--because", "bogus"],
    ("delete-from", "because"): ["delete-from", "x", "--because", "bogus"],
    ("bulk", "verb"): ["bulk", "bogus"],
    ("bulk", "kind"): ["bulk", "list", "--kind", "bogus"],
    ("rules", "kind"): ["rules", "--kind", "bogus"],
    ("trust", "state"): ["trust", "x", "bogus"],
    ("graph neighbors", "direction"): ["graph", "neighbors", "x", "--direction", "bogus"],
    ("graph path", "direction"): ["graph", "path", "x", "y", "--direction", "bogus"],
    ("graph export", "format_"): ["graph", "export", "--format", "bogus"],
    ("fact set", "kind"): ["fact", "set", "a", "b", "--kind", "bogus"],
    ("fact list", "kind"): ["fact", "list", "--kind", "bogus"],
    ("fact query", "kind"): ["fact", "query", "a", "--kind", "bogus"],
    ("prompts show", "kind"): ["prompts", "show", "bogus"],
    ("prompts edit", "kind"): ["prompts", "edit", "bogus", "--text", "x"],
    ("prompts reset", "kind"): ["prompts", "reset", "bogus"],
    ("prompts path", "kind"): ["prompts", "path", "bogus"],
    ("completion", "shell"): ["completion", "bogus"],
}
# One of the words that is taken in that place.
ONE = {"because": "wrong", "by": "hour", "catalog": "knowledge", "direction": "both",
       "format_": "json", "kind": "preference", "model": "auto", "role": "user", "shell": "bash",
       "state": "verified", "strategy": "search", "target": "both", "verb": "list"}  # fmt: skip


def takers():
    """Return (command, parameter) of everything that takes a word in one of those places."""

    def walk(name, command):
        for param in command.params:
            takes = not getattr(param, "is_flag", False) and "String" in type(param.type).__name__
            if takes and param.name in CLOSED:
                yield name, param.name
        for below, sub in getattr(command, "commands", {}).items():
            yield from walk(f"{name} {below}", sub)

    return {one for name, row in COMMANDS.items() for one in walk(name, load(name, row))} - OPEN


def test_every_option_that_takes_one_of_a_few_words_is_tried_here():
    assert takers() == set(LINES)


@pytest.mark.parametrize("taker", LINES, ids=" ".join)
def test_another_word_is_refused_with_those_there_are(cli, taker, monkeypatch):
    from hypatia_mem.cli import context
    from hypatia_mem.model import Channel

    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    cli("knowledge-create", "x", "-d", "words")
    refused = cli(*LINES[taker])
    assert (refused.code, refused.out) == (2, "")
    assert "'bogus'" in refused.err
    said = {"report": "activity", "rules": "taboo", "remember": "taboo", "bulk": "taboo",
            "search": "message", "similar": "taboo", "prompts": "resummary"}  # fmt: skip
    known = said.get(taker[0].split()[0], "preference") if taker[1] == "kind" else ONE[taker[1]]
    assert known in refused.err


@pytest.mark.parametrize(
    ("line", "near"),
    [
        (["bulk", "list", "--kind", "rules"], "rule"),
        (["bulk", "supress"], "suppress"),
        (["fact", "list", "--kind", "preferences"], "preference"),
        (["report", "tool"], "tools"),
        (["search", "x", "--kind", "Taboo"], "taboo"),
    ],
)
def test_the_nearest_is_named(cli, line, near):
    assert f"Did you mean {near}?" in cli(*line).err


def test_a_word_that_is_meant_is_taken(cli):
    cli("remember", "never mock it", "--kind", "rule")
    assert [row["kind"] for row in cli("bulk", "list", "--kind", "rule", "--json").json["entries"]]
    assert cli("fact", "list", "--kind", "preference").code == 0

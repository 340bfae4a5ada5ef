"""The review as a person does it: by commands, by keys, and by a script that reads its JSON."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.cli import context
from hypatia_mem.memory.curate import changing
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust

PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
ONE, TWO = "rule:use-port-4712", "rule:use-port-4711"


@pytest.fixture
def run(cli, monkeypatch, once):
    """A command line at which a person sits; three things wait for them."""
    door = {"channel": Channel.CLI_PERSON}
    monkeypatch.setattr(context, "channel", lambda: door["channel"])

    def call(*arguments, **how):
        return cli(*arguments, **how)

    call.agent = lambda: door.update(channel=Channel.CLI_AGENT)
    call.person = lambda: door.update(channel=Channel.CLI_PERSON)
    once(wait_for_a_person)
    return call


def wait_for_a_person():
    with changing(context.home(), AGENT, context.now()) as (_, txn):
        for name, text in ((ONE, "use port 4712"), ("note", "the team likes tea")):
            kind = "rule" if name == ONE else "memory"
            txn.put_entry(
                Entry(name, text, kind=kind, scopes=("app",), trust=Trust.CANDIDATE, tags=("rule",))
            )
        txn.put_entry(Entry(TWO, "use port 4711", kind="rule", scopes=("app",)))
        txn.put_entry(Entry("theirs", "of the web", scopes=("web",), trust=Trust.CANDIDATE))
        txn.set_trust(TWO, Trust.DISPUTED, "the logs say otherwise")


def queue(run):
    return {row["name"]: row["why"] for row in run("review", "--json").json}


def rules(run):
    return {row["name"]: row["content"] for row in run("rules", "--json").json}


def test_the_queue_tells_what_waits_here_and_why(run):
    assert queue(run) == {ONE: "candidate", "note": "candidate", TWO: "disputed"}
    rows = {row["name"]: row for row in run("review", "--json").json}
    assert rows[TWO]["reason"] == "the logs say otherwise"
    assert rows[ONE]["channel"] == "cli-agent"
    assert rows[ONE]["content"] == "use port 4712"
    everywhere = run("review", "--all-projects", "--json").json
    assert "theirs" in {row["name"] for row in everywhere}
    text = run("review").out
    assert f"[disputed] {TWO}" in text
    assert "why: the logs say otherwise" in text


def test_accept_lets_it_in_and_what_was_not_touched_stays(run):
    assert ONE not in rules(run)

    assert run("review", "accept", ONE).code == 0

    assert rules(run)[ONE] == "use port 4712"
    assert queue(run) == {"note": "candidate", TWO: "disputed"}


def test_edit_then_accept_keeps_both_texts(run):
    assert run("review", "edit", ONE, "--text", "use port 4712 on staging").code == 0

    assert rules(run)[ONE] == "use port 4712 on staging"
    versions = run("history", ONE, "--withheld", "--json").json["versions"]
    assert versions[0]["content"] == "use port 4712"
    assert versions[-1]["content"] == "use port 4712 on staging"
    run("undo")
    assert queue(run)[ONE] == "candidate"
    assert ONE not in rules(run)


@pytest.mark.deep
def test_reject_keeps_it_away_and_is_out_of_the_queue(run):
    assert run("review", "reject", ONE).code == 2
    assert run("review", "reject", ONE, "--reason", "it is 4713").code == 0

    assert ONE not in {**queue(run), **rules(run)}
    run.agent()
    assert run("remember", "Use port 4712!").code == 1
    assert run("remember", "the tea is in the kitchen").code == 0


@pytest.mark.deep
def test_what_was_rejected_cannot_be_accepted_by_another_way(run):
    run("review", "reject", ONE, "--reason", "it is 4713")
    for command in (
        ("review", "accept", ONE),
        ("review", "accept", ONE, "--verify"),
        ("review", "edit", "note", "--text", "Use PORT 4712."),
        ("review", "merge", "note", TWO, "--text", "use port 4712"),
        ("accept", ONE),
    ):
        done = run(*command)
        assert (done.code, "tombstone" in done.err) == (1, True), command
    assert "use port 4712" not in rules(run).values()


@pytest.mark.deep
def test_merge_brings_both_texts_and_all_sources_and_can_be_undone(run):
    with changing(context.home(), PERSON, context.now()) as (_, txn):
        txn.put_entry(Entry("source", "a talk", scopes=("app",)))
        txn.put_statement(Statement(ONE, "derivedFrom", "source", scopes=("app",)))
    before = rules(run)

    assert run("review", "merge", ONE, TWO).code == 0

    assert rules(run)[TWO] == "use port 4711\n\nuse port 4712"
    assert run("show", ONE).code == 1
    links = run("query", f'["$statement", ["$triple", "{TWO}", "derivedFrom", "$*"]]', "--json")
    assert "source" in links.out
    run("undo")
    assert rules(run) == before
    assert queue(run)[ONE] == "candidate"


def test_defer_takes_it_out_until_its_time(run):
    from datetime import timedelta

    assert run("review", "defer", ONE, "--days", "3", "--reason", "ask Ann").code == 0

    assert ONE not in queue(run)
    late = {row["name"]: row for row in run("review", "--deferred", "--json").json}
    assert late[ONE]["reason"] == "ask Ann"
    assert ONE not in rules(run)  # it stays what it is
    real = context.now
    context.now = lambda: real() + timedelta(days=4)
    try:
        assert ONE in queue(run)
    finally:
        context.now = real
    run("undo")
    assert ONE in queue(run)


def test_an_agent_may_look_and_put_off_and_decides_nothing(run):
    before = rules(run)
    run.agent()
    for command in (
        ("review", "accept", ONE),
        ("review", "edit", ONE, "--text", "x y z"),
        ("review", "reject", ONE, "--reason", "no"),
        ("review", "merge", ONE, TWO),
        ("review", "accept", TWO),
    ):
        assert run(*command).code == 1, command
    assert rules(run) == before
    assert queue(run)[ONE] == "candidate"
    assert run("review", "defer", ONE).code == 0


@pytest.mark.deep
def test_two_that_say_the_opposite_are_a_conflict_until_both_are_verified(run):
    from hypatia_mem.memory.compose import brief_text
    from hypatia_mem.store.connection import open_store

    run("remember", "always mock the database")
    run("remember", "never mock the database")
    names = ("rule:always-mock-the-database", "rule:never-mock-the-database")
    rows = [row for row in run("review", "--json").json if row["why"] == "conflict"]
    assert len(rows) == 1
    assert {rows[0]["name"], rows[0]["other"]} >= {"rule:always-mock-the-database"}
    pair = (rows[0]["name"], rows[0]["other"])

    def told():
        with open_store(context.home(), write=False) as store:
            return [one for one in brief_text(store, "app").splitlines() if "mock the" in one]

    assert all(line.startswith("- [contradicts ") for line in told())
    run("review", "defer", pair[0])
    assert "conflict" not in queue(run).values()
    run("undo")
    assert "conflict" in queue(run).values()
    run("verify", *pair)
    assert "conflict" not in queue(run).values()
    assert not any("[" in line for line in told())
    assert names[0] in pair


# -- by keys


@pytest.fixture
def keys(run, monkeypatch):
    """A terminal at which these keys and words are typed."""

    def call(*typed):
        words = iter(typed)
        asked = []

        def answer(question):
            asked.append(question)
            word = next(words, None)
            if word is None:
                raise EOFError
            return word

        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.setattr("hypatia_mem.cli.review._at_terminal", lambda: True)
        done = run("review")
        monkeypatch.setattr("hypatia_mem.cli.review._at_terminal", lambda: False)
        return done, asked

    return call


@pytest.mark.deep
def test_going_through_the_queue_by_keys(run, keys):
    order = [row["name"] for row in run("review", "--json").json]
    assert order[-1] == TWO

    done, _ = keys("a", "r", "", "r", "we drink coffee", "e", "use port 4711 in tests")

    assert done.code == 0
    assert "3 decided, 0 left" in done.out
    assert "needs a reason" in done.out  # the empty one was asked for again
    assert run("show", order[0], "--json").json["trust"] == "asserted"
    assert run("show", order[1], "--json").json["trust"] == "rejected"
    assert rules(run)[TWO] == "use port 4711 in tests"


def test_skipping_and_leaving_change_nothing(run, keys):
    before = queue(run)
    done, asked = keys("x", "s", "q")
    assert "none of the keys" in done.out
    assert len(asked) == 3
    assert queue(run) == before
    done, _ = keys()  # the end of the input
    assert done.code == 0
    assert queue(run) == before


def test_merging_and_putting_off_by_keys(run, keys):
    order = [row["name"] for row in run("review", "--json").json]
    done, _ = keys("m", TWO, "d", "", "v")
    assert done.code == 0, done.out
    left = queue(run)
    assert order[0] not in left
    assert order[1] not in left
    assert run("show", TWO, "--json").json["trust"] == "verified"


@pytest.mark.deep
def test_who_takes_in_a_conflict_says_that_both_hold(run, keys):
    run("remember", "always mock the database")
    run("remember", "never mock the database")
    run("accept", TWO)
    done, _ = keys("s", "s", "a")
    assert done.code == 0
    for name in ("rule:always-mock-the-database", "taboo:never-mock-the-database"):
        row = next(one for one in run("rules", "--json").json if one["name"].endswith(name[5:]))
        assert row["trust"] == "verified"


def test_the_queue_is_scriptable(run):
    """Each row names what a decision needs: a name, and the state for an edit."""
    for row in run("review", "--json").json:
        if row["why"] == "candidate":
            etag = run("show", row["name"], "--json").json["etag"]
            assert row["etag"] == etag
            assert run("review", "accept", row["name"], "--json").json["changed"][0]["name"]
    assert queue(run) == {TWO: "disputed"}
    assert json.loads(run("review", "--json").out)

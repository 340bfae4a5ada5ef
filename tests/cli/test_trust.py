"""Believing, doubting, rejecting, pinning, suppressing and editing, as a person types them."""

from __future__ import annotations

import json
import os
from datetime import UTC, timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.memory.curate import changing
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement

RULE = "rule:never-mock-the-database"
PERSON = Author(Channel.CLI_PERSON, "person")


@pytest.fixture
def person(cli, monkeypatch):
    """A command line at which a person sits; ``person.agent()`` makes it an agent's."""
    door = {"channel": Channel.CLI_PERSON}
    monkeypatch.setattr(context, "channel", lambda: door["channel"])

    def call(*arguments, **how):
        return cli(*arguments, **how)

    call.agent = lambda: door.update(channel=Channel.CLI_AGENT)
    call.person = lambda: door.update(channel=Channel.CLI_PERSON)
    return call


@pytest.fixture
def told(person, once):
    def make():
        person("remember", "never mock the database")
        person("remember", "always use tabs")

    once(make)
    return person


def put(*entries, author=PERSON):
    with changing(context.home(), author, context.now()) as (_, txn):
        for entry in entries:
            txn.put_entry(entry)


def brief():
    """What the next session of this project is told."""
    from hypatia_mem.memory.compose import brief_text
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        return brief_text(store, "app")


def shown(run, words="mock database"):
    """Where a memory can be found: by search, query, rules and in the brief."""
    rows = json.loads(run("search", words, "--json").out)
    query = run("query", f'["$knowledge", ["$eq", "name", "{RULE}"]]', "--json").json
    rules = run("rules", "--json").json
    return {
        "search": any(RULE in str(row) for row in rows),
        "query": RULE in str(query),
        "rules": RULE in [row["name"] for row in rules],
        "brief": "never mock the database" in brief(),
    }


EVERYWHERE = {"search": True, "query": True, "rules": True, "brief": True}
NOWHERE = dict.fromkeys(EVERYWHERE, False)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "trust", "visible", "mark"),
    [
        (("verify", RULE), "verified", EVERYWHERE, ""),
        (("dispute", RULE, "--reason", "who says so?"), "disputed", EVERYWHERE, "[disputed]"),
        (("stale", RULE), "stale", EVERYWHERE, "[stale]"),
        (("reject", RULE, "--reason", "we do mock it"), "rejected", NOWHERE, ""),
    ],
)
def test_every_state_has_a_command_and_a_reader(told, command, trust, visible, mark):
    assert shown(told) == EVERYWHERE

    done = told(*command)

    assert done.code == 0, done.err
    assert told("show", RULE, "--json").json["trust"] == trust
    assert shown(told) == visible
    line = next((one for one in brief().splitlines() if "never mock" in one), "")
    assert mark in line if mark else "[" not in line
    assert "use tabs" in brief()  # its twin is as it was


@pytest.mark.deep
def test_a_candidate_waits_until_a_person_takes_it_in(told):
    told("forget", "--id", RULE)
    told.agent()
    done = told("remember", "never mock the database in tests", "--candidate")
    assert done.code == 0, done.err
    name = "rule:never-mock-the-database-in-tests"
    assert name not in told("rules").out
    assert [row["name"] for row in told("review", "--json").json] == [name]
    assert told("accept", name).code == 1
    assert name not in told("rules").out

    told.person()
    assert told("accept", name).code == 0
    assert name in told("rules").out
    assert told("review", "--json").json == []


@pytest.mark.deep
def test_an_agent_cannot_decide_and_the_ledger_says_it_tried(told):
    told.agent()
    for command in (("verify", RULE), ("reject", RULE, "--reason", "no")):
        done = told(*command, "--json")
        assert (done.code, json.loads(done.err)["error"]["kind"]) == (1, "refused")
        row = told("log", "--target", RULE, "--limit", "1", "--json").json[0]
        assert (row["verb"], row["channel"], row["reason"]) == (
            "refuse taboo", "cli-agent", "authority",
        )  # fmt: skip
    assert told("show", RULE, "--json").json["trust"] == "asserted"
    assert told("dispute", RULE, "--reason", "I doubt it").code == 0


@pytest.mark.deep
def test_what_is_rejected_is_refused_again_and_an_undoing_lets_it_in(told):
    assert told("reject", RULE).code == 2  # a reason is needed
    told("reject", RULE, "--reason", "we do mock it")
    told.agent()
    assert told("remember", "Never mock  the database!").code == 1
    assert told("undo").code == 1  # not an agent's to take back
    told.person()

    assert told("verify", RULE).code == 1  # not laundered by an approval
    assert told("undo").code == 0

    assert shown(told) == EVERYWHERE
    told.agent()
    assert told("remember", "Never mock  the database!").code == 0


@pytest.mark.deep
def test_several_names_are_changed_together_or_not_at_all(told):
    told("remember", "never push on fridays")
    done = told("verify", RULE, "nothing-of-this-name")
    assert done.code == 1
    assert told("show", RULE, "--json").json["trust"] == "asserted"

    assert told("verify", RULE, "rule:never-push-on-fridays", "--dry-run").code == 0
    assert told("show", RULE, "--json").json["trust"] == "asserted"
    told("verify", RULE, "rule:never-push-on-fridays")
    operations = {row["op_id"] for row in told("log", "--limit", "2", "--json").json}
    assert len(operations) == 1
    told("undo")
    assert told("show", "rule:never-push-on-fridays", "--json").json["trust"] == "asserted"


def test_a_statement_has_a_trust_too(told):
    told("statement-create", "app", "listens_on", "4711")
    told("reject", "app", "listens_on", "4711", "--reason", "it moved")
    query = ("query", '["$statement", ["$triple", "app", "$*", "$*"]]', "--json")
    assert "4711" not in told(*query).out
    told.agent()
    assert told("statement-create", "app", "listens_on", "4711").code == 1
    assert told("statement-create", "app", "listens_on", "4712").code == 0
    assert "4712" in told(*query).out


@pytest.mark.deep
@pytest.mark.parametrize("verb", ["verify", "pin", "suppress", "edit"])
def test_another_projects_memory_is_changed_by_its_scope_alone(told, verb):
    put(Entry("rule:theirs", "use spaces", kind="rule", scopes=("web",)))
    more = ("--text", "use blanks") if verb == "edit" else ()
    done = told(verb, "rule:theirs", *more)
    assert (done.code, "--scope" in done.err) == (1, True)
    told.agent()
    assert told(verb, "rule:theirs", *more, "--scope", "web").code == 1
    told.person()
    assert told(verb, "rule:theirs", *more, "--scope", "web").code == 0


# -- suppress and pin


@pytest.mark.deep
def test_suppressed_is_kept_and_shown_nowhere(told):
    told("pin", RULE)  # not even a pin shows it
    assert told("suppress", RULE).code == 0
    assert shown(told, "never mock the database") == NOWHERE
    assert [row["name"] for row in told("suppress", "--json").json] == [RULE]
    assert told("show", RULE, "--json").json["withheld"] is True
    told.agent()
    assert told("unsuppress", RULE).code == 1  # what a person hid
    again = told("remember", "never mock the database")
    assert "withheld" in again.out
    told.person()

    assert told("unsuppress", RULE).code == 0

    assert shown(told) == EVERYWHERE
    assert told("suppress").out == "Nothing is suppressed here.\n"


def test_bulk_pins_are_one_operation_and_saying_it_twice_changes_nothing(told):
    names = [RULE, "rule:always-use-tabs"]
    assert told("pin", *names).code == 0
    assert sorted(row["name"] for row in told("pin", "--json").json) == sorted(names)
    assert {row["verb"] for row in told("pin", *names, "--json").json["changed"]} == {"unchanged"}
    told("undo")
    assert told("pin", "--json").json == []


# -- editing


def test_an_edit_is_what_the_next_session_is_told(told):
    etag = told("show", RULE, "--json").json["etag"]
    done = told(
        "edit", RULE, "--text", "never mock the database, use a scratch one", "--etag", etag
    )
    assert done.code == 0
    assert "- never mock the database, use a scratch one" in brief()
    assert told("history", f"{RULE}@1").out == "never mock the database\n"


@pytest.mark.deep
def test_a_stale_edit_is_refused_with_both_differences(told):
    etag = told("show", RULE, "--json").json["etag"]
    told("edit", RULE, "--text", "never mock any database", "--etag", etag)

    late = told("edit", RULE, "--text", "mock what you like", "--etag", etag)

    assert late.code == 1
    for line in ("-never mock the database", "+never mock any database", "+mock what you like"):
        assert line in late.out
    assert told("show", RULE, "--json").json["content"]["data"] == "never mock any database"
    machine = told("edit", RULE, "--text", "mock what you like", "--etag", etag, "--json").json
    assert machine == {
        "base": "never mock the database",
        "theirs": "never mock any database",
        "yours": "mock what you like",
    }
    told.agent()
    forced = ("edit", RULE, "--text", "mock what you like", "--etag", etag, "--force")
    assert told(*forced).code == 1
    told.person()
    assert told(*forced).code == 0
    assert "force entry" in told("log").out
    told("undo")
    assert told("show", RULE, "--json").json["content"]["data"] == "never mock any database"


def test_without_text_the_editor_opens(told, monkeypatch, tmp_path):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nsed -i "s/never/do not/" "$1"\n')
    script.chmod(0o755)
    assert told("edit", RULE).code == 2  # no terminal, and no words
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.setattr("hypatia_mem.cli.editing._at_terminal", lambda: True)

    assert told("edit", RULE).code == 0

    assert told("show", RULE, "--json").json["content"]["data"] == "do not mock the database"


def test_a_secret_typed_into_an_edit_is_not_stored(told):
    secret = "ghp_" + "a1B2" * 9
    told("edit", RULE, "--text", f"use the token {secret}")
    assert secret not in told("show", RULE).out
    assert "use the token" in told("show", RULE).out


# -- running sessions


@pytest.fixture
def session(told):
    """A session with two turns, the last of them a minute ago."""
    now = context.now()
    with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
        txn.put_session(Session("s-1", project="app", updated_at=now))
        txn.put_messages(
            "s-1",
            [
                Message("s-1", f"u-{n}", "user", f"turn {n} of it", now - timedelta(minutes=2 - n))
                for n in range(2)
            ],
            "app",
        )
    return told


def end(session_id="s-1"):
    now = context.now()
    with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
        txn.put_session(Session(session_id, ended_at=now, end_reason="exit"))


@pytest.mark.deep
@pytest.mark.parametrize(
    "command",
    [
        ("edit", "msg-s-1-1", "--text", "something else"),
        ("suppress", "msg-s-1-1"),
        ("reject", "msg-s-1-1", "--reason", "no"),
        ("knowledge-update", "msg-s-1-1", "-t", "message,mine"),
        ("knowledge-delete", "msg-s-1-1"),
        ("delete", "msg-s-1-1"),
        ("delete", "s-1"),
    ],
)
def test_what_a_running_session_stands_on_is_not_changed_under_it(session, command):
    done = session(*command)
    assert done.code == 1
    assert "msg-s-1-" in done.err
    assert "session s-1" in done.err
    assert session("edit", RULE, "--text", "mock nothing").code == 0  # nobody stands on that

    end()
    assert session(*command).code == 0


def test_a_session_may_change_what_is_its_own(session, monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s-1")
    assert session("edit", "msg-s-1-1", "--text", "something else").code == 0


def test_a_dead_session_holds_nothing(session, monkeypatch):
    from hypatia_mem.memory import guard

    later = context.now() + guard.HOLD + timedelta(minutes=1)
    monkeypatch.setattr(context, "now", lambda: later)
    assert session("edit", "msg-s-1-1", "--text", "something else").code == 0


@pytest.mark.deep
def test_a_queued_edit_is_made_when_the_session_has_ended(session):
    from hypatia_mem.memory import queued

    done = session("edit", "msg-s-1-1", "--text", "something else", "--after")
    assert (done.code, "s-1" in done.out) == (0, True)
    assert queued.run(context.home(), context.now()) == 0
    assert session("show", "msg-s-1-1", "--json").json["text"] == "turn 0 of it"
    assert session("review", "--json").json == []
    waits = session("review", "--deferred", "--json").json
    assert [(one["why"], one["other"]) for one in waits] == [("queued", "msg-s-1-1")]
    assert "session s-1" in waits[0]["reason"]

    end()
    assert queued.run(context.home(), context.now()) == 1

    assert session("show", "msg-s-1-1", "--json").json["text"] == "something else"
    assert queued.run(context.home(), context.now()) == 0
    last = session("log", "--target", "msg-s-1-1", "--json").json
    assert {row["channel"] for row in last if row["verb"].startswith("update")} == {"cli-person"}


@pytest.mark.deep
def test_a_queued_edit_that_no_longer_fits_waits_for_a_person(session):
    from hypatia_mem.memory import queued

    edit = ("edit", "msg-s-1-1", "--after", "--text")
    assert session(*edit, "first").code == 0
    assert session(*edit, "second").code == 0
    end()

    assert queued.run(context.home(), context.now()) == 1

    item = session("review", "--json").json[0]
    assert (item["why"], item["other"]) == ("queued", "msg-s-1-1")
    assert "changed since you read it" in item["reason"]
    assert session("review", "retry", item["name"]).code == 0
    assert session("show", "msg-s-1-1", "--json").json["text"] == "second"
    assert session("review", "--json").json == []


def test_an_edited_message_stays_as_edited_when_its_line_is_read_again(session):
    end()
    session("edit", "msg-s-1-1", "--text", "as a person put it")
    with changing(context.home(), Author(Channel.TRANSCRIPT), context.now()) as (_, txn):
        txn.amend_message("s-1", 1, text="turn 0 of it, and more")
        txn.amend_message("s-1", 2, text="turn 1 of it, and more")

    assert session("show", "msg-s-1-1", "--json").json["text"] == "as a person put it"
    assert session("show", "msg-s-1-2", "--json").json["text"] == "turn 1 of it, and more"


# -- the chain


def test_an_unbroken_chain_is_said_to_be_whole(told):
    done = told("verify", "--json")
    assert (done.code, done.json["whole"], done.json["broken"]) == (0, True, "")
    assert done.json["rows"] == told("log", "--limit", "1", "--json").json[0]["seq"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sql", "kind", "seq"),
    [
        ("UPDATE mutation SET actor = 'somebody' WHERE seq = 2", "edit", 2),
        ("UPDATE mutation SET reason = 'x', hash = repeat('0', 64) WHERE seq = 2", "edit", 2),
        ("DELETE FROM mutation WHERE seq = 2", "gap", 2),
        ("UPDATE mutation SET prev_hash = repeat('0', 64) WHERE seq = 3", "insertion", 3),
        ("DELETE FROM mutation WHERE seq >= 3", "truncation", 3),
        (
            "DELETE FROM mutation WHERE seq >= 3; UPDATE cursor SET position = 2"
            " WHERE key = 'ledger'", "state", 3,
        ),
    ],
)  # fmt: skip
def test_a_broken_chain_is_found_and_named(told, sql, kind, seq):
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=True) as store:
        for one in sql.split(";"):
            store.execute(one)

    done = told("verify", "--json")

    assert (done.code, done.json["broken"]) == (1, kind)
    assert done.json["seq"] >= seq if kind == "state" else done.json["seq"] == seq


def test_a_row_put_in_between_is_found(told):
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=True) as store:
        store.execute("UPDATE mutation SET seq = seq + 100 WHERE seq > 2")
        store.execute("UPDATE mutation SET seq = seq - 99 WHERE seq > 100")
        store.execute(
            'INSERT INTO mutation SELECT 3, "at", op_id, actor, channel, verb, target,'
            " before_digest, after_digest, reason, hash, sha256('made up') FROM mutation WHERE seq = 2"
        )

    done = told("verify", "--json")
    assert (done.code, done.json["seq"], done.json["broken"]) == (1, 3, "edit")


def test_the_log_of_one_target_tells_its_refusals_too(told):
    told("dispute", RULE, "--reason", "hm")
    told.agent()
    told("verify", RULE)
    verbs = [row["verb"] for row in told("log", "--target", RULE, "--json").json]
    assert verbs == ["refuse taboo", "update taboo", "create taboo"]
    assert "always-use-tabs" not in told("log", "--target", RULE).out


def test_trust_is_not_for_other_commands_to_set(told):
    """No flag claims authority: what a person decides is decided at a terminal."""
    for command in ("remember", "knowledge-create", "knowledge-update"):
        help_ = told(command, "--help").out
        assert "--trust" not in help_
        assert "--by" not in help_


def test_what_was_learned_in_a_running_session_is_free(session):
    """A rule that was just remembered in it can be rejected at once."""
    now = context.now()
    author = Author(Channel.HOOK_PROMPT, session_id="s-1", turn=1)
    with changing(context.home(), author, now) as (_, txn):
        from hypatia_mem.memory.curate import remember_in

        remember_in(txn, "always use vim", kind="rule", scopes=("app",), author=author)
    assert session("reject", "rule:always-use-vim", "--reason", "no").code == 0


def test_the_trust_of_a_thing_can_be_asked_and_set_by_its_name(told):
    assert told("trust", RULE, "--json").json == {"name": RULE, "trust": "asserted"}
    assert told("trust", RULE, "surely").code == 2
    assert told("trust", RULE, "candidate", "--reason", "look at it").code == 0
    assert RULE not in told("rules").out
    found = told("trust", RULE, "--json").json
    assert (found["trust"], found["reason"]) == ("candidate", "look at it")
    assert "look at it" in told("trust", RULE).out
    assert [row["name"] for row in told("review", "--json").json] == [RULE]


@pytest.mark.deep
def test_what_a_person_decided_an_agent_does_not_take_back(told):
    for command in (("verify", RULE), ("suppress", RULE), ("pin", "rule:always-use-tabs")):
        told.person()
        told(*command)
        operation = told("log", "--limit", "1", "--json").json[0]["op_id"]
        told.agent()
        done = told("undo", operation)
        assert (done.code, "person" in done.err) == (1, True), command
    told.person()
    assert told("undo", operation).code == 0
    told.agent()
    told("pin", "rule:always-use-tabs")
    assert told("undo").code == 0  # its own


@pytest.mark.deep
def test_a_rejection_whose_tombstone_is_lifted_can_be_taken_in_again(told):
    told("reject", RULE, "--reason", "we do mock it")
    assert told("accept", RULE).code == 1
    row = told("tombstone", "list", "--json").json[0]
    assert row["reason"] == "rejected"
    assert told("tombstone", "lift", row["id"]).code == 0
    assert told("accept", RULE).code == 0
    assert shown(told) == EVERYWHERE


def test_who_made_a_thing_and_what_it_stands_on(told):
    told("knowledge-create", "wu-1", "-d", "a lesson", "-t", "work-unit")
    told("statement-create", "wu-1", "derivedFrom", RULE)
    told("verify", "wu-1", "--reason", "I was there")

    found = told("show", "wu-1", "--meta", "--json").json

    assert found["meta"]["sources"] == [RULE]
    assert found["meta"]["version"] == 2
    assert (found["meta"]["channel"], found["meta"]["changed_through"]) == ("cli-person",) * 2
    assert found["meta"]["created_at"]
    assert found["verdict"]["reason"] == "I was there"
    text = told("show", "wu-1", "--meta").out
    for part in ("verified by", "I was there", RULE, "created at", "etag 2-", "a lesson"):
        assert part in text


def test_a_long_pin_is_said_to_be_cut(told):
    told("remember", "always " + "look at this and that " * 60, "--kind", "rule")
    name = next(row["name"] for row in told("rules", "--json").json if "look" in row["content"])
    assert "brief shows its first" in told("pin", name).err
    assert told("pin", RULE).err == ""


@pytest.mark.deep
def test_trying_a_decision_out_changes_nothing(told):
    told("dispute", RULE, "--reason", "hm")
    before = told("log", "--json").out
    for command in (
        ("review", "accept", RULE),
        ("review", "edit", RULE, "--text", "mock it"),
        ("review", "reject", RULE, "--reason", "no"),
        ("review", "merge", RULE, "rule:always-use-tabs"),
        ("reject", RULE, "--reason", "no"),
        ("suppress", RULE),
        ("pin", RULE),
    ):
        done = told(*command, "--dry-run")
        assert (done.code, RULE in done.out) == (0, True), command
    assert told("log", "--json").out == before
    assert shown(told) == EVERYWHERE


def test_a_hook_that_was_not_drained_yet_is_a_sign_of_life(session, monkeypatch):
    from hypatia_mem.memory import guard

    later = context.now() + guard.HOLD + timedelta(minutes=1)
    monkeypatch.setattr(context, "now", lambda: later)
    spooled = context.home() / "spool" / "s-1.jsonl"
    spooled.write_text("{}\n")
    edit = ("edit", "msg-s-1-1", "--text", "something else")
    assert session(*edit).code == 0  # written long before that
    seconds = (later - timedelta(minutes=1)).replace(tzinfo=UTC).timestamp()
    os.utime(spooled, (seconds, seconds))
    assert session("edit", "msg-s-1-2", "--text", "something else").code == 1


def test_what_is_told_stays_byte_for_byte_while_nothing_of_it_changes(session):
    """So that a client's cache of it holds."""
    before = brief().partition("[RESUMED_SESSION]")[0]
    now = context.now()
    with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
        txn.put_messages("s-1", [Message("s-1", "u-9", "user", "more", now)], "app")
    assert brief().partition("[RESUMED_SESSION]")[0] == before
    session("dispute", RULE)
    assert brief().partition("[RESUMED_SESSION]")[0] != before


def test_what_is_kept_why_and_where_from_is_seen_at_once(session):
    """What it says, who brought it and changed it last, what it stands on, the last word on it."""
    agent = Author(Channel.CLI_AGENT, session_id="s-1", turn=2)
    with changing(context.home(), agent, context.now()) as (_, txn):
        txn.put_entry(Entry("wu", "the lesson", scopes=("app",), session_id="s-1", turn=2))
        for turn in (1, 2):
            txn.put_statement(Statement("wu", "derivedFrom", f"msg-s-1-{turn}", scopes=("app",)))
    session("dispute", "wu", "--reason", "not sure of it")
    day = f"{context.now():%Y-%m-%d}"
    head, why, tag, came, _, words = session("show", "wu").out.splitlines()
    assert head.startswith("wu  [knowledge, disputed]  scopes: app")
    assert why.startswith("disputed by ")
    assert why.endswith(": not sure of it")
    assert tag.startswith("etag 2-")
    assert came.startswith(f"from an agent, {day} ")
    assert ", in session s-1, turn 2; version 2 by " in came
    assert came.endswith("; stands on msg-s-1-1, msg-s-1-2")
    assert words == "the lesson"

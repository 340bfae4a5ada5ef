"""``--after``: what a running session stands on is changed when it has ended, once, or not at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.memory import queued
from hypatia_mem.memory.curate import changing
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Trust
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.gateway import Transaction

AGENT = Author(Channel.CLI_AGENT, "agent")


@pytest.fixture
def person(cli, monkeypatch):
    """A command line at which a person sits."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    return cli


@pytest.fixture
def session(person, once):
    """A session that runs: three turns, a note of what it is called, and a candidate beside it."""

    def make():
        now = context.now()
        with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
            txn.put_session(Session("s-1", project="app", updated_at=now))
            said = [
                Message("s-1", f"u-{n}", "user", f"turn {n} of it", now - timedelta(minutes=4 - n))
                for n in (1, 2, 3)
            ]
            txn.put_messages("s-1", said, "app")
            txn.put_summary("s-1", "what it is about", "compaction", "app")
        with changing(context.home(), AGENT, now) as (_, txn):
            txn.put_entry(Entry("note", "beside it", scopes=("app",)))

    once(make)
    return person


def end():
    now = context.now()
    with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
        txn.put_session(Session("s-1", ended_at=now, end_reason="exit"))


def entry(name="msg-s-1-2"):
    with open_store(context.home(), write=False) as store:
        return store.entry(name)


def waiting():
    with open_store(context.home(), write=False) as store:
        return queued.waiting(store, None)


VERBS = {
    "edit": (["edit", "msg-s-1-2", "--text", "put so"], lambda: "put so" in entry().content),
    "suppress": (["suppress", "msg-s-1-2"], lambda: entry().suppressed),
    "pin": (["pin", "msg-s-1-2"], lambda: entry().pinned),
    "reject": (["reject", "msg-s-1-2", "--reason", "no"], lambda: entry().trust == Trust.REJECTED),
    "dispute": (["dispute", "msg-s-1-2"], lambda: entry().trust == Trust.DISPUTED),
    "delete": (["delete", "msg-s-1-2"], lambda: entry() is None and entry("msg-s-1-3")),
    "delete-from": (
        ["delete-from", "msg-s-1-2"],
        lambda: entry() is None and entry("msg-s-1-3") is None and entry("msg-s-1-1"),
    ),
    "move": (["move", "msg-s-1-2", "--scope", "web"], lambda: entry().scopes == ("web",)),
    "knowledge-update": (
        ["knowledge-update", "msg-s-1-2", "-t", "message,mine", "--valid-from", "2026-01-01"],
        lambda: "mine" in entry().tags and entry().valid_from is not None,
    ),
    "knowledge-delete": (["knowledge-delete", "msg-s-1-2"], lambda: entry() is None),
    "review accept": (
        ["review", "accept", "msg-s-1-2", "--verify"],
        lambda: entry().trust == Trust.VERIFIED,
    ),
    "review merge": (
        ["review", "merge", "msg-s-1-2", "note"],
        lambda: entry() is None and "turn 2 of it" in entry("note").content,
    ),
    "bulk tag": (
        ["bulk", "tag", "mine", "--session", "s-1", "--text", "turn 2", "--select", "1", "--yes"],
        lambda: "mine" in entry().tags,
    ),
    "bulk delete": (
        ["bulk", "delete", "--session", "s-1", "--text", "turn 2", "--select", "all", "--yes"],
        lambda: entry() is None and entry("msg-s-1-3"),
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize(("command", "is_done"), VERBS.values(), ids=VERBS)
def test_what_is_refused_now_is_done_when_the_session_has_ended(session, command, is_done):
    refused = session(*command)
    assert refused.code == 1
    assert "msg-s-1-2" in refused.err
    assert "session s-1, which is running" in refused.err
    asked = session(*command, "--after", "--json")
    if command[0] == "delete":
        assert asked.json["queued"][0]["session"] == "s-1"
    assert [one["session"] for one in asked.json["queued"]] == ["s-1"]
    assert queued.run(context.home(), context.now()) == 0
    assert not is_done()
    end()
    assert queued.run(context.home(), context.now()) == 1
    assert is_done()
    assert queued.run(context.home(), context.now()) == 0
    assert session("undo").code == 0  # of the change itself: it does not wait again
    assert not is_done()
    assert waiting() == []


@pytest.mark.deep
def test_a_revert_waits_too(session):
    end()
    session("edit", "msg-s-1-2", "--text", "put so")
    now = context.now() + timedelta(seconds=10)
    with changing(context.home(), Author(Channel.HOOK), now) as (_, txn):
        txn.put_messages("s-1", [Message("s-1", "u-4", "user", "going on", now)], "app")
    refused = session("revert", "msg-s-1-2@1")
    assert (refused.code, "session s-1" in refused.err) == (1, True)
    dry = session("revert", "msg-s-1-2@1", "--dry-run").out
    assert "Refused now: msg-s-1-2 is part of session s-1, which is running." in dry
    assert session("revert", "msg-s-1-2@1", "--after").code == 0
    assert queued.run(context.home(), now + timedelta(hours=1)) == 1
    assert "turn 2 of it" in entry().content


def test_what_waits_is_seen_and_can_be_called_off(session):
    session("suppress", "msg-s-1-2", "--after")
    [row] = session("jobs", "list", "--json").json
    assert row["state"] == "held"
    assert row["message"] == "suppress msg-s-1-2: waits for session s-1 to end"
    assert "1 waits for a session to end (hypatia-mem jobs list)" in session("status").out
    assert row["id"] in session("jobs", "list").out
    session("pin", "msg-s-1-3", "--after")
    several = session("jobs", "drop", row["id"][:2])
    assert (several.code, "several changes" in several.err) == (1, True)
    assert session("undo").code == 0  # of the queueing of the second
    assert session("jobs", "drop", row["id"][:20]).out == f"Dropped: {row['id']}\n"
    end()
    assert queued.run(context.home(), context.now()) == 0
    assert not entry().suppressed
    assert "for a session to end" not in session("status").out


def test_an_agent_calls_off_what_it_queued_itself_and_nothing_of_a_persons(session, monkeypatch):
    session("suppress", "msg-s-1-2", "--after")
    [mine] = waiting()
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    for command in (("jobs", "drop", mine.id), ("review", "drop", mine.id)):
        refused = session(*command)
        assert (refused.code, "only a person" in refused.err) == (1, True)
    session("dispute", "msg-s-1-3", "--after")
    own = next(one for one in waiting() if one.id != mine.id)
    assert session("jobs", "drop", own.id).code == 0
    assert waiting() == [mine]


def test_a_change_that_is_cut_off_in_the_middle_is_made_whole_later_and_once(session, monkeypatch):
    """It leaves the queue in the transaction that makes it, so it cannot be made twice, or lost."""
    session("edit", "msg-s-1-2", "--text", "put so", "--after")
    end()

    def cut(*_arguments, **_how):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "unqueue", cut)
        with pytest.raises(KeyboardInterrupt):
            queued.run(context.home(), context.now())
    assert "turn 2 of it" in entry().content
    assert len(waiting()) == 1
    assert queued.run(context.home(), context.now()) == 1
    assert "put so" in entry().content
    assert len(session("history", "msg-s-1-2", "--json").json["versions"]) == 2


def test_a_hold_that_expired_holds_nothing_back(session):
    """A session that died without a word."""
    from hypatia_mem.memory import guard

    session("suppress", "msg-s-1-2", "--after")
    later = context.now() + guard.HOLD + timedelta(minutes=1)
    assert queued.run(context.home(), later) == 1
    assert entry().suppressed


def test_a_plan_is_shown_whoever_runs(session):
    shown = session("delete", "msg-s-1-2", "--dry-run")
    assert shown.code == 0
    assert "Would delete 1 thing:\n  msg-s-1-2" in shown.out
    assert "session-s-1" in shown.out
    assert "Refused now: msg-s-1-2 is part of session s-1, which is running." in shown.out
    assert entry()

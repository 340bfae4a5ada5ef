"""What is old is let go of on purpose: exactly what should, nothing that is needed, and back again."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hypatia_mem.cli.app import run as run_cli
from hypatia_mem.errors import Refused
from hypatia_mem.memory import history, propagation, retention
from hypatia_mem.memory.cascade import trace
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, WORKER, assert_whole, run, settings, summaries

AGENT = Author(Channel.CLI_AGENT)
CONFIG = settings(retention_sessions=2, retention_days=90, summary_words=40)
WORDS = (
    "the retry queue loses jobs", "postgres pools time out", "the parser fails on tabs",
    "deploys need two approvals", "the cache grows without end", "invoices are rounded wrongly",
)  # fmt: skip


def said(home, session, days, count=12, *, scope="app"):
    """Store a session whose last message is so many days and a second old."""
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        say(txn, session, days, count, scope)


def say(txn, session, days, count=12, scope="app"):
    txn.put_session(Session(session, project=scope))
    messages = [
        Message(
            session,
            f"{session}-{n}",
            "assistant" if n % 2 else "user",
            f"Report {n} of {session}: {WORDS[n % 6]} in {session}_{n}.py. " + "So it went. " * 9,
            NOW - timedelta(days=days) + timedelta(seconds=n - count),
        )
        for n in range(count)
    ]
    txn.put_messages(session, messages, scope)


def names(home, kind="message"):
    with open_store(home, write=False) as store:
        rows = store.run("SELECT name FROM entry WHERE kind = ? ORDER BY name", [kind])
    return {row["name"] for row in rows}


def of(home, session):
    return {name for name in names(home) if name.startswith(f"msg-{session}-")}


def dump(home):
    """Return all that is remembered, as text."""
    with open_store(home, write=False) as store:
        entries = store.run(
            "SELECT name, content, tags, scopes, kind, trust, pinned FROM entry ORDER BY name"
        )
        triples = store.run("SELECT triple, content FROM statement ORDER BY triple")
    return json.dumps([entries, triples], default=str)


def let(home, config=CONFIG, *, dry_run=False, author=PERSON, scope="app"):
    return retention.apply(home, config, scope, dry_run=dry_run, author=author, now=NOW)


@pytest.fixture
def old(home):
    """Four sessions of the spring, two of the autumn: the first four are old, two are the newest."""
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        for number, days in enumerate((240, 230, 220, 210, 20, 10)):
            say(txn, f"s-{number}", days)
    return home


# --- exactly what is old --------------------------------------------------------------------------


def test_of_old_sessions_a_summary_stays_and_the_words_it_quotes(old):
    before = names(old)
    tried = let(old, dry_run=True)
    assert names(old) == before, "a look changes nothing"
    done = let(old)
    assert (done.messages, done.years[0].sources) == (tried.messages, tried.years[0].sources)
    assert done.sessions == tuple(f"s-{n}" for n in (3, 2, 1, 0))
    (year,) = done.years
    assert (year.year, year.name) == (2026, "year-2026-app")
    assert names(old) == before - set(done.messages)
    assert {name for n in range(4) for name in of(old, f"s-{n}")} == set(year.sources)
    assert 0 < len(year.sources) < 24
    assert [len(of(old, f"s-{n}")) for n in (4, 5)] == [12, 12]
    (made,) = summaries(old)
    assert made.tags == ("summary", "summary 1", "yearly")
    assert_whole(old)


def test_each_of_its_sentences_is_walked_down_to_words_that_are_there(old):
    done = let(old)
    traced = trace.trace(old, done.years[0].name)
    assert traced.sentences
    for sentence in traced.sentences:
        assert not sentence.inferred
        assert sentence.words
        assert all(words.source in done.years[0].sources for words in sentence.words)
        assert not any(words.changed for words in sentence.words)


def test_both_limits_have_to_be_passed(old):
    for sessions, days, gone in (
        (0, 90, 4), (2, 90, 4), (3, 90, 3), (6, 90, 0), (0, 209, 4), (0, 215, 3), (0, 300, 0),
        (0, 1, 6),
    ):  # fmt: skip
        config = settings(retention_sessions=sessions, retention_days=days, summary_words=40)
        done = let(old, config, dry_run=True)
        assert len(done.sessions) == gone, (sessions, days)
        assert bool(done.messages) is bool(gone)


def test_a_session_is_old_a_second_after_its_days(home):
    """Its last message is a second older than 90 days at NOW."""
    said(home, "s-0", 90, 4)
    config = settings(retention_sessions=0, retention_days=90, summary_words=12)
    for seconds, gone in ((-2, 0), (-1, 0), (0, 1)):
        now = NOW + timedelta(seconds=seconds)
        done = retention.apply(home, config, "app", dry_run=True, author=PERSON, now=now)
        assert len(done.sessions) == gone, seconds


def test_each_year_has_one_of_its_own_and_other_projects_are_not_touched(home):
    for year in (2024, 2025):
        said(home, f"s-{year}", (NOW - datetime(year, 6, 1)).days)
        said(home, f"w-{year}", (NOW - datetime(year, 6, 1)).days, scope="web")
    done = let(home, settings(retention_sessions=0, summary_words=40))
    assert [year.name for year in done.years] == ["year-2024-app", "year-2025-app"]
    assert [len(of(home, f"w-{year}")) for year in (2024, 2025)] == [12, 12]


# --- what stays -----------------------------------------------------------------------------------


def lesson(home, name, *objects, kind="work-unit", predicate="derivedFrom", author=WORKER):
    with open_store(home, write=True) as store, store.transaction(author, now=NOW) as txn:
        txn.put_entry(Entry(name, f"A lesson: {name}.", scopes=("app",), kind=kind, tags=(kind,)))
        for one in objects:
            txn.put_statement(Statement(name, predicate, one, scopes=("app",)))


@pytest.mark.deep
def test_what_a_lesson_a_rule_a_goal_or_anything_is_tied_to_stays_with_it(old):
    lesson(old, "wu-1", "msg-s-0-3", "msg-s-0-4")
    lesson(old, "rule:x", "msg-s-1-5", kind="rule", author=PERSON)
    lesson(old, "goal:y", "msg-s-2-7", kind="goal", predicate="closed_by")
    lesson(old, "note", "msg-s-3-9", kind="knowledge", predicate="mentions")
    before = dump(old)
    needed = {"msg-s-0-3": "wu-1", "msg-s-0-4": "wu-1", "msg-s-1-5": "rule:x",
              "msg-s-2-7": "goal:y", "msg-s-3-9": "note"}  # fmt: skip
    done = let(old)
    assert done.kept == {name: f"needed by {by}" for name, by in needed.items()}
    assert set(needed) <= names(old)
    with open_store(old, write=False) as store:
        rows = store.run("SELECT subject, object FROM statement WHERE predicate <> 'summary'")
    tied = {(row["subject"], row["object"]) for row in rows}
    assert {(by, name) for name, by in needed.items()} <= tied
    assert {"wu-1", "rule:x", "goal:y", "note"} <= names(old, "work-unit") | names(old, "rule") | (
        names(old, "goal") | names(old, "knowledge")
    )
    history.undo(old, done.op_id, author=PERSON, now=NOW)
    assert dump(old) == before


def test_what_is_pinned_stays_and_so_does_what_stands_under_it(old):
    run(old, settings(cascade_max_tokens=400, summary_words=40))
    pinned, *_ = summaries(old, 1)
    under = {item for item in below(old, pinned.name)}
    with open_store(old, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry("msg-s-3-2", pinned=True)
        txn.update_entry(pinned.name, pinned=True)
        txn.put_session(replace(store.session("s-2"), pinned=True))
    done = let(old)
    assert {"msg-s-3-2"} | under | of(old, "s-2") <= names(old)
    assert len(of(old, "s-2")) == 12
    assert done.kept["msg-s-3-2"] == "pinned"
    assert pinned.name in {one.name for one in summaries(old)}


def test_what_is_made_anew_holds_nothing(old):
    """An episode goes with what it tells of, and is owed anew."""
    lesson(old, "episode-1", "msg-s-0-3", "msg-s-1-3", kind="episode")
    tried = let(old, dry_run=True)
    assert tried.kept == {}
    assert tried.derived == ("episode-1",)
    let(old)
    assert names(old, "episode") == set()


def below(home, name):
    with open_store(home, write=False) as store:
        rows = store.run("SELECT object FROM statement WHERE subject = ?", [name])
    return {row["object"] for row in rows}


def test_what_is_withheld_is_not_for_this_to_take(old):
    with open_store(old, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry("msg-s-0-3", suppressed=True)
    let(old)
    assert "msg-s-0-3" in names(old)


def test_tombstones_and_the_ledger_are_as_they_were_and_what_is_forgotten_is_in_no_summary(home):
    secret = "The wedding is on the ninth of May in the old brewery."
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        for number in range(3):
            say(txn, f"s-{number}", 240 - number)
        text = f"{secret} The deploy of module_x.py went through."
        said_it = Message("s-0", "s-0-x", "user", text, NOW - timedelta(days=240))
        txn.put_messages("s-0", [said_it], "app")
    config = settings(retention_sessions=0, retention_days=90, summary_words=150)
    assert "wedding" in let(home, config, dry_run=True).years[0].content
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(Entry("memory:x", secret, scopes=("app",), kind="memory"))
        txn.delete_entry("memory:x", reason="forget", tombstone=True)
    with open_store(home, write=False) as store:
        ledger = store.run("SELECT * FROM mutation ORDER BY seq", [])
        graves = store.run("SELECT * FROM tombstone ORDER BY digest", [])
    done = let(home, config)
    assert done.years[0].content
    assert "wedding" not in done.years[0].content
    with open_store(home, write=False) as store:
        assert store.run("SELECT * FROM mutation ORDER BY seq", [])[: len(ledger)] == ledger
        assert store.run("SELECT * FROM tombstone ORDER BY digest", []) == graves


# --- what follows ---------------------------------------------------------------------------------


def test_no_summary_is_left_that_lacks_a_source_and_the_rest_is_condensed_anew(old):
    """Summaries over both old and young messages, two levels of them."""
    config = settings(cascade_max_tokens=900, cascade_batch=2, summary_words=40)
    run(old, config)
    assert len(summaries(old, 2)) >= 1
    done = let(old)
    assert done.derived
    assert_whole(old)
    run(old, config)
    assert_whole(old)
    assert_live(old)


def assert_live(home):
    with open_store(home, write=False) as store:
        found = store.run(
            "SELECT object FROM statement WHERE predicate = 'summary' AND object NOT IN "
            "(SELECT name FROM live_entry)"
        )
    assert found == []


def test_a_second_time_nothing_is_done_and_with_more_the_year_is_told_anew(old):
    first = let(old)
    assert let(old).messages == ()
    said(old, "s-6", 200)
    config = settings(retention_sessions=2, retention_days=90, summary_words=80)
    second = let(old, config)
    assert second.sessions[0] == "s-6"
    assert second.derived == ("year-2026-app",)
    assert [one.tags[-1] for one in summaries(old)] == ["yearly"]
    quoted = set(second.years[0].sources)
    assert quoted & set(first.years[0].sources), "what it quoted before is in it"
    assert quoted & {f"msg-s-6-{n}" for n in range(1, 13)}, "and what has come"
    assert let(old, config).messages == ()
    assert_whole(old)


def test_a_quoted_message_that_goes_takes_the_years_summary_along(old):
    """Like any summary: what it told beside it is condensed anew."""
    done = let(old)
    name = done.years[0].sources[0]
    blast = propagation.delete(old, [name], scopes=["app"], author=PERSON, now=NOW)
    assert [one.name for one in blast.derived] == ["year-2026-app"]
    assert blast.owed == len(done.years[0].sources) - 1
    run(old, CONFIG)
    assert_whole(old)


def test_one_undo_brings_all_of_it_back_and_redo_takes_it_again(old):
    run(old, settings(cascade_max_tokens=900, summary_words=40))
    before = dump(old)
    done = let(old)
    after = dump(old)
    history.undo(old, done.op_id, author=PERSON, now=NOW)
    assert dump(old) == before
    history.redo(old, done.op_id, author=PERSON, now=NOW)
    assert dump(old) == after


def test_what_went_does_not_come_back_when_it_is_read_again(old):
    done = let(old)
    here = names(old)
    with open_store(old, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        again = [
            Message("s-0", f"s-0-{n}", "assistant" if n % 2 else "user",
                    f"Report {n} of s-0: {WORDS[n % 6]} in s-0_{n}.py. " + "So it went. " * 9, NOW)
            for n in range(12)
        ]  # fmt: skip
        txn.put_messages("s-0", again, "app")
    assert done.messages
    assert names(old) == here


# --- who ------------------------------------------------------------------------------------------


def test_only_a_person_may_order_it(old):
    before = dump(old)
    assert let(old, dry_run=True, author=AGENT).messages
    for author in (AGENT, WORKER):
        with pytest.raises(Refused, match="only a person"):
            let(old, author=author)
    assert dump(old) == before


def test_the_commands_change_nothing_until_they_are_told_to(old, capsys, monkeypatch):
    from hypatia_mem.cli import context

    monkeypatch.setenv("HYPATIA_MEM_RETENTION_SESSIONS", "2")
    monkeypatch.setenv("HYPATIA_MEM_SUMMARY_WORDS", "40")
    monkeypatch.setattr(context, "now", lambda: NOW)
    before = dump(old)
    for line in (["plan"], ["apply"], ["apply", "--dry-run"], ["apply", "--yes", "--dry-run"]):
        assert run_cli(["retention", *line, "--scope", "app"]) == 0
        out = capsys.readouterr().out
        assert "messages of 4 sessions would go" in out
        assert "Nothing was changed." in out
    assert dump(old) == before
    assert run_cli(["retention", "apply", "--yes", "--scope", "app"]) == 1
    assert "only a person" in capsys.readouterr().err, "there is no terminal here"
    run_cli(["retention", "plan", "--scope", "app", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["projects"]
    assert len(row["messages"]) + len(row["years"][0]["sources"]) == 48
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    assert run_cli(["retention", "apply", "--yes", "--scope", "app"]) == 0
    assert "Take it back: hypatia-mem undo" in capsys.readouterr().out
    assert run_cli(["retention", "plan", "--scope", "app"]) == 0
    assert capsys.readouterr().out.startswith("Nothing is old: the newest 2 sessions")

"""Times on the command line: since when, until when, as of, as known at; in any zone."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Channel


@pytest.fixture
def clock(monkeypatch):
    """Set the program's clock: ``clock("2026-03-01T12:00")``, naive UTC."""

    def set_to(text):
        moment = datetime.fromisoformat(text)
        monkeypatch.setattr(context, "now", lambda: moment)

    return set_to


@pytest.fixture
def zone(monkeypatch):
    """Let local time be that of a place."""

    def set_to(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


def names(done, key="name"):
    assert done.code == 0, done.err
    return {row[key] for row in done.json}


READERS = {
    "rules": lambda cli, *options: names(cli("rules", "--json", *options)),
    "search": lambda cli, *options: names(cli("search", "kestrel", "--json", *options), "key"),
    "query": lambda cli, *options: names(
        cli("query", '["$knowledge", ["$contains", "tags", "rule"]]', "--json", *options)
    ),
    "brief": lambda cli, *options: {
        name for name in ("old", "new") if f"{name} host" in cli("brief", *options).out
    },
}


@pytest.fixture
def facts(cli, clock, once):
    """What was true from March to June is learnt in November, and what is since July."""
    clock("2026-11-30T12:00")
    once(lambda: learn(cli))
    return cli


def learn(cli):
    for name, *ends in (
        ("old", "--valid-from", "2026-03-01T00:00Z", "--valid-to", "2026-07-01T00:00Z"),
        ("new", "--valid-from", "2026-07-01T00:00Z"),
    ):
        done = cli("knowledge-create", name, "-d", f"{name} host kestrel", "--tags", "rule", *ends)
        assert done.code == 0, done.err


@pytest.mark.deep
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--as-of", "2026-05-01T00:00Z"], {"old"}),
        (["--as-of", "2026-09-01T00:00Z"], {"new"}),
        (["--as-of", "2026-02-01T00:00Z"], set()),
        (["--as-of", "2026-05-01T00:00Z", "--as-known-at", "2026-11-30T12:30Z"], {"old"}),
        (["--as-of", "2026-05-01T00:00Z", "--as-known-at", "2026-11-29T12:00Z"], set()),
    ],
)
def test_every_reader_takes_both_times(facts, reader, options, found):
    assert READERS[reader](facts, *options) == found


def test_now_is_a_time(facts, clock):
    clock("2026-12-01T00:00")
    assert READERS["search"](facts) == {"old", "new"}
    assert READERS["search"](facts, "--as-of", "now") == {"new"}
    assert READERS["rules"](facts, "--as-known-at", "now") == {"new"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("place", "written"),
    [
        ("UTC", "2026-07-01T00:00"),
        ("Asia/Kathmandu", "2026-07-01T05:45"),
        ("America/New_York", "2026-06-30T20:00"),
        ("UTC", "2026-07-01T05:45+05:45"),
        ("UTC", "2026-06-30T23:59:30-00:00:30"),
        ("Asia/Kathmandu", "2026-07-01T14:00+14:00"),
        ("America/New_York", "2026-06-30T12:00-12:00"),
        ("Asia/Kathmandu", "20260701T000000Z"),
        ("UTC", "2026-07-01"),
    ],
)
def test_a_time_is_the_same_in_every_zone(facts, zone, place, written):
    """Without a zone it is local time, a day begins at local midnight."""
    zone(place)
    assert READERS["rules"](facts, "--as-of", written) == {"new"}
    moment = datetime.fromisoformat(written)
    just_before = (moment - timedelta(seconds=1)).isoformat()
    assert READERS["rules"](facts, "--as-of", just_before) == {"old"}


def test_an_hour_that_is_there_twice_and_one_that_is_not_there(cli, zone):
    """When clocks are set: the first of two, and the gap is bridged; never an error."""
    zone("Europe/Berlin")
    for number, (text, utc) in enumerate(
        [("2026-10-25T02:30", "2026-10-25 00:30"), ("2026-03-29T02:30", "2026-03-29 00:30")]
    ):
        cli("remember", f"word {number}", "--kind", "rule", "--valid-from", text)
        (row,) = (
            row
            for row in cli("query", '["$knowledge"]').json
            if row["content"]["data"] == f"word {number}"
        )
        assert row["tr_start"].startswith(utc)


def test_a_day_is_true_to_its_end(cli, zone, clock):
    zone("America/New_York")
    clock("2026-11-30T12:00")
    cli("remember", "always ask first", "--valid-from", "2026-12-01", "--valid-to", "2026-12-01")
    seen = [
        bool(cli("rules", "--as-of", moment, "--json").json)
        for moment in (
            "2026-11-30T23:59", "2026-12-01T00:00", "2026-12-01T23:59", "2026-12-02T00:00",
        )
    ]  # fmt: skip
    assert seen == [False, True, True, False]


def test_what_is_remembered_for_a_time_is_told_in_it(cli, clock):
    """Said again without an end it is true again."""
    cli("remember", "always deploy by hand", "--valid-to", "2020-01-01")
    assert cli("rules", "--json").json == []
    cli("remember", "always deploy by hand")
    (row,) = cli("rules", "--json").json
    assert (row["content"], row["tr_start"], row["tr_end"]) == ("always deploy by hand", None, None)


def test_a_correction_keeps_what_was_believed(facts, clock):
    clock("2026-12-02T12:00")
    facts("knowledge-update", "old", "--valid-to", "2026-05-01T00:00Z")
    for reader in READERS.values():
        assert reader(facts, "--as-of", "2026-06-01T00:00Z") == set()
        then = ["--as-of", "2026-06-01T00:00Z", "--as-known-at", "2026-12-01T00:00Z"]
        assert reader(facts, *then) == {"old"}


@pytest.mark.deep
@pytest.mark.parametrize("command", [["rules"], ["search", "x"], ["brief"]])
@pytest.mark.parametrize("flag", ["--as-of", "--as-known-at"])
@pytest.mark.parametrize("text", ["yesterday", "", "2026-02-30", "2026-13-01T00:00Z", "25:00"])
def test_what_is_no_time_is_refused(cli, command, flag, text):
    done = cli(*command, flag, text)
    assert done.code == 2
    assert flag in done.err
    assert "2026-03-01" in done.err


def test_rows_of_search_say_when_they_are_true(facts):
    rows = {row["key"]: row for row in facts("search", "kestrel", "--json").json}
    assert rows["old"]["tr_start"] == "2026-03-01 00:00:00.000000"
    assert rows["old"]["tr_end"] == "2026-07-01 00:00:00.000000"
    assert "tr_end" not in rows["new"]


def test_the_brief_is_what_a_session_is_told(facts, clock, home):
    clock("2026-11-30T13:00")
    said = facts("brief", "--json").json
    assert (said["scope"], said["units"]) == ("app", len(said["text"]))
    (written,) = (path for path in (home / "briefs").glob("*.json") if path.stem != "global")
    told = json.loads(written.read_bytes())["hookSpecificOutput"]["additionalContext"]
    assert said["text"] == told
    assert facts("brief", "--scope", "").out == "A session here would be told nothing.\n"


def test_rules_check_tells_and_ends_with_1_when_one_is_broken(cli):
    """Every rule is told, what is broken by name, and what to do."""
    cli("remember", "never mock the database")
    whole = cli("rules", "check")
    assert (whole.code, len(whole.out.splitlines())) == (0, 10)
    cli("knowledge-create", "wu-2026-01-01-x", "--tags", "memory")
    done = cli("rules", "check", "--json")
    assert done.code == 1
    (broken,) = (one for one in done.json if not one["holds"])
    assert (broken["rule"], broken["names"], broken["count"]) == (7, ["wu-2026-01-01-x"], 1)
    assert "wu-2026-01-01-x" in cli("rules", "check", "--rule", "7").out
    assert cli("rules", "check", "--rule", "10").out == "10  ok      Everything has a scope\n"


@pytest.mark.deep
def test_a_search_in_an_expression_finds_the_words_of_then(cli, clock, monkeypatch):
    """Changed, deleted and moved since: by the words it had, where it was, in pages too."""

    def asked(words, known_at, *options):
        expression = {"$knowledge": [["$search", words]], "as_known_at": known_at, **dict(options)}
        return [row["name"] for row in cli("query", json.dumps(expression), "--json").json]

    clock("2026-01-01T00:00")
    for name in ("changed", "deleted", "moved", "same"):
        cli("knowledge-create", name, "-d", f"the kestrel of {name}")
    clock("2026-02-01T00:00")
    cli("knowledge-update", "changed", "-d", "a falcon now")
    cli("knowledge-delete", "deleted")
    with monkeypatch.context() as at_terminal:
        at_terminal.setattr(context, "channel", lambda: Channel.CLI_PERSON)
        cli("knowledge-update", "moved", "--scopes", "other")
    cli("knowledge-create", "late", "-d", "the kestrel that came late")

    everything = {"changed", "deleted", "moved", "same"}
    assert set(asked("kestrel", "2026-01-15")) == everything
    assert asked("falcon", "2026-01-15") == []
    assert set(asked("kestrel", "2026-03-01")) == {"same", "late"}
    assert asked("falcon", "2026-03-01") == ["changed"]
    assert asked("kestrel", "2025-12-31") == []
    assert asked('"kestrel of moved"', "2026-01-15") == ["moved"]
    paged = [
        name
        for offset in range(4)
        for name in asked("kestrel", "2026-01-15", ("limit", 1), ("offset", offset))
    ]
    assert sorted(paged) == sorted(everything)


def test_what_is_forgotten_is_not_found_in_the_past(cli, clock):
    clock("2026-01-01T00:00")
    cli("remember", "never feed the kestrel", "--kind", "taboo")
    (row,) = cli("rules", "--json").json
    clock("2026-02-01T00:00")
    assert cli("forget", "--id", row["name"]).code == 0
    for command in (
        ["rules"],
        ["search", "kestrel"],
        ["query", '["$knowledge", ["$search", "kestrel"]]'],
    ):
        assert cli(*command, "--as-known-at", "2026-01-15T00:00Z", "--json").json == []

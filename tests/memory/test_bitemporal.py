"""What was true when, and what was known when: rules, search and the brief of any time."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from hypatia_mem.capture import hook, paths
from hypatia_mem.cli.querying import run_query
from hypatia_mem.cli.searching import find, find_known
from hypatia_mem.memory import compose, curate, projects
from hypatia_mem.model import GLOBAL_SCOPE, Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store import bitemporal
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import Filters

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON)
HERE = ["app", GLOBAL_SCOPE]


def at(month, day=1):
    return datetime(2026, month, day)


def write(home, work, now=NOW):
    """Change the store as at a time; index and briefs follow."""
    with curate.changing(home, PERSON, now) as (_, txn):
        return work(txn)


def rule(name, text, start=None, end=None, **more):
    made = {"kind": "rule", "tags": ("rule",), "scopes": ("app",), **more}
    return Entry(name, text, valid_from=start, valid_to=end, **made)


def held(home, moment=None, known=None):
    """Return the names of the rules that held, by both clocks."""
    with open_store(home, write=False) as store:
        if known is None:
            found = store.rules(HERE, at=moment)
        else:
            found = bitemporal.rules_known(store, HERE, known_at=known, at=moment or known)
    return {entry.name for entry in found}


def searched(home, words, moment=None, known=None, **more):
    filters = Filters(scopes=HERE, as_of=moment, **more)
    if known is None:
        found = find(home, words, filters=filters)
    else:
        found = find_known(home, words, filters=filters, known_at=known, limit=20)
    return {hit.name for hit in found}


def asked(home, expression, moment, known=None):
    """Return what a query finds by both clocks, as somebody types them."""
    times = {"as_of": moment, "as_known_at": known}
    written = {flag: time.isoformat() + "Z" for flag, time in times.items() if time}
    return run_query(home, json.dumps(expression), scope=HERE, **written)


def briefed(home, moment=None, known=None):
    with open_store(home, write=False) as store:
        return compose.brief_text(store, "app", at=moment, known_at=known)


def read(home, moment=None, known=None):
    """Return what each of the readers shows: all have to say the same."""
    rules = held(home, moment, known)
    found = searched(home, "kestrel", moment or known or NOW, known)
    text = briefed(home, moment, known)
    names = {name for name in ("old", "new", "wide") if f"{name} host" in text}
    rows = asked(home, ["$knowledge", ["$contains", "tags", "rule"]], moment or known or NOW, known)
    queried = {row["name"] for row in rows}
    assert rules == names == found == queried, (rules, names, found, queried)
    return rules


@pytest.fixture
def backfilled(home):
    """Today it is learnt what was true from March to June, and what is since July."""
    write(
        home,
        lambda txn: txn.put_entry(Entry("other", "kestrel elsewhere", scopes=("other",))),
        at(1),
    )
    write(home, lambda txn: txn.put_entry(rule("old", "old host kestrel", at(3), at(7))))
    write(home, lambda txn: txn.put_entry(rule("new", "new host kestrel", at(7))))
    return home


@pytest.mark.deep
@pytest.mark.parametrize(
    ("moment", "known", "names"),
    [
        (at(5), None, {"old"}),
        (at(9), None, {"new"}),
        (at(2), None, set()),
        (NOW, None, {"new"}),
        (at(3), None, {"old"}),  # it begins with its first moment
        (at(7) - timedelta(microseconds=1), None, {"old"}),
        (at(7), None, {"new"}),  # and an end is no more of it
        (at(5), NOW - timedelta(days=1), set()),  # nothing of it was known yesterday
        (at(5), NOW, {"old"}),
        (None, NOW, {"new"}),
        (datetime.min, None, set()),
        (datetime(9999, 12, 31), None, {"new"}),  # an end that nobody said does not end it
    ],
)
def test_what_was_true_is_not_what_was_known(backfilled, moment, known, names):
    assert read(backfilled, moment, known) == names


def test_without_a_time_search_finds_all_and_says_when_it_was_true(backfilled):
    """A person who looks for what was, finds it; the others show what is."""
    assert searched(backfilled, "kestrel") == {"old", "new"}
    (old,) = (hit for hit in find(backfilled, "old kestrel") if hit.name == "old")
    assert (old.valid_from, old.valid_to) == (at(3), at(7))
    assert held(backfilled) == {"new"}


@pytest.mark.deep
@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_facts_may_arrive_in_any_order(home, order):
    """What is learnt later may have been true before."""
    facts = {
        "old": rule("old", "old host kestrel", at(3), at(7)),
        "new": rule("new", "new host kestrel", at(7)),
    }
    for day, name in enumerate(order, start=1):
        write(home, lambda txn, fact=facts[name]: txn.put_entry(fact), datetime(2026, 11, day))
    assert [read(home, moment) for moment in (at(2), at(5), at(9))] == [set(), {"old"}, {"new"}]
    first = datetime(2026, 11, 1, 6)
    known = {"old": [set(), {"old"}, set()], "new": [set(), set(), {"new"}]}[order[0]]
    assert [read(home, moment, first) for moment in (at(2), at(5), at(9))] == known


def test_intervals_may_overlap_and_may_have_no_ends(home):
    """Whoever asks gets all that was true then."""
    write(home, lambda txn: [
        txn.put_entry(rule("old", "old host kestrel", None, at(7))),
        txn.put_entry(rule("new", "new host kestrel", at(6), None)),
        txn.put_entry(rule("wide", "wide host kestrel")),
    ])  # fmt: skip
    assert read(home, at(1)) == {"old", "wide"}
    assert read(home, at(6, 15)) == {"old", "new", "wide"}
    assert read(home, at(8)) == {"new", "wide"}


@pytest.mark.deep
def test_a_corrected_interval_leaves_the_earlier_belief_readable(backfilled):
    """It ended in May and not in June: what was believed yesterday can still be read."""
    corrected = NOW + timedelta(days=1)
    write(backfilled, lambda txn: txn.update_entry("old", valid_to=at(5)), corrected)
    write(backfilled, lambda txn: txn.update_entry("new", valid_from=at(5)), corrected)
    assert read(backfilled, at(6)) == {"new"}
    assert read(backfilled, at(6), NOW) == {"old"}
    assert read(backfilled, at(6), corrected) == {"new"}
    unknown = corrected + timedelta(days=1)
    write(backfilled, lambda txn: txn.update_entry("old", valid_to=None), unknown)
    assert read(backfilled, at(6)) == {"old", "new"}
    assert read(backfilled, at(6), corrected) == {"new"}


@pytest.mark.deep
def test_what_was_deleted_since_was_known_and_what_was_forgotten_is_not(backfilled):
    later = NOW + timedelta(days=1)
    write(backfilled, lambda txn: txn.delete_entry("old"), later)
    assert read(backfilled, at(5)) == set()
    assert read(backfilled, at(5), NOW) == {"old"}
    write(backfilled, lambda txn: txn.delete_entry("new", tombstone=True), later)
    assert read(backfilled, at(9), NOW) == set()
    assert read(backfilled, at(5), NOW) == {"old"}


def test_a_clock_that_was_set_back_hides_nothing(home):
    """The ledger's order decides what came after what, whatever its times say."""
    write(home, lambda txn: txn.put_entry(rule("old", "old host kestrel")), NOW)
    back = NOW - timedelta(days=300)
    write(home, lambda txn: txn.update_entry("old", content="old host kestrel, moved"), back)
    write(home, lambda txn: txn.put_entry(rule("new", "new host kestrel")), back)
    assert read(home, NOW, NOW) == {"old", "new"}
    assert "moved" in briefed(home, NOW, NOW)
    assert read(home, back, back - timedelta(days=1)) == set()


@pytest.mark.deep
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_statements_of_any_order_end_and_clock_are_queried_as_they_hold(home, order):
    """Late news, an end that nobody knows, an overlap, and a clock that is set back in between."""
    facts = [
        Statement(
            "Alice", "works_at", "Kestrel", scopes=("app",), valid_from=at(3), valid_to=at(7)
        ),
        Statement("Alice", "works_at", "Falcon", scopes=("app",), valid_from=at(6)),
        Statement("Alice", "works_at", "Home", scopes=("app",), valid_to=at(4)),
    ]
    clocks = [at(11, 3), at(11, 1), at(11, 2)]
    for number, now in zip(order, clocks, strict=True):
        write(home, lambda txn, one=facts[number]: txn.put_statement(one), now)

    def where(moment, known=None):
        rows = asked(home, ["$statement", ["$eq", "subject", "Alice"]], moment, known)
        return {row["triple"].rpartition(",")[2] for row in rows}

    assert where(at(1)) == {"Home"}
    assert where(at(3, 15)) == {"Home", "Kestrel"}
    assert where(at(6, 15)) == {"Kestrel", "Falcon"}
    assert where(at(9)) == {"Falcon"}
    assert where(at(6, 15), at(10)) == set()
    ends = ("Alice", "works_at", "Kestrel")
    write(home, lambda txn: txn.set_validity(*ends, valid_from=at(3), valid_to=at(5)), at(11, 20))
    assert where(at(6, 15)) == {"Falcon"}
    assert where(at(6, 15), at(11, 10)) == {"Kestrel", "Falcon"}


def test_words_and_scopes_are_those_of_then(home):
    """A hit shows what was known, and where it belonged."""
    write(home, lambda txn: txn.put_entry(rule("old", "old host kestrel")), at(2))
    write(home, lambda txn: txn.update_entry("old", content="now a falcon", scopes=("b",)), at(4))
    assert searched(home, "kestrel") == set()
    assert searched(home, "kestrel", known=at(3)) == {"old"}
    assert searched(home, "falcon", known=at(3)) == set()
    (hit,) = find_known(home, "kestrel", filters=Filters(), known_at=at(3), limit=5)
    assert (hit.scopes, "kestrel" in hit.snippet_text) == (("app",), True)
    for kinds, names in ((["rule"], {"old"}), (["memory"], set())):
        assert searched(home, "kestrel", known=at(3), kinds=kinds) == names


def test_statements_are_found_as_they_were_known(home):
    said = Statement("Alice", "works_at", "Kestrel", scopes=("app",))
    write(home, lambda txn: txn.put_statement(said), at(2))
    write(home, lambda txn: txn.set_validity("Alice", "works_at", "Kestrel", valid_to=at(3)), at(4))
    key = "Alice,works_at,Kestrel"
    assert searched(home, "kestrel", moment=at(2)) == {key}
    assert searched(home, "kestrel", moment=at(3)) == set()
    assert searched(home, "kestrel", moment=at(3), known=at(2, 2)) == {key}
    write(home, lambda txn: txn.delete_statement("Alice", "worksAt", "Kestrel"), at(5))
    assert searched(home, "kestrel") == set()
    assert searched(home, "kestrel", known=at(4, 2)) == {key}


def test_a_brief_of_then_ends_where_the_session_had_come_to(home):
    """What was said after it is not in it."""

    def say(turn):
        def work(txn):
            txn.put_session(Session("s", project="app"))
            role = "assistant" if turn % 2 == 0 else "user"
            said = Message("s", f"u{turn}", role, f"word {turn}", at(turn), turn=turn)
            txn.put_messages("s", [said], "app")

        return work

    for turn in (1, 2, 3, 4):
        write(home, say(turn), at(turn, 2))
    assert "word 4" in briefed(home)
    then = briefed(home, known=at(2, 3))
    assert "word 2" in then
    assert "word 3" not in then
    assert "2 messages" in then
    assert briefed(home, known=at(1)) == ""


# --- the brief of a session start, which may not ask the store -----------------------------------


@pytest.fixture
def project(home, tmp_path):
    """A folder whose brief is rendered, with its key."""
    folder = tmp_path / "app"
    folder.mkdir()
    with curate.changing(home, PERSON, NOW) as (store, txn):
        assert projects.claim(store, txn, str(folder)) == "app"
    return folder


def started(home, folder, monkeypatch, moment):
    """Return the brief that a session start prints at a time, ``""`` for none."""
    seconds = (moment - datetime(1970, 1, 1)).total_seconds()
    monkeypatch.setattr(hook.time, "time", lambda: seconds)
    data = json.dumps({"cwd": str(folder)}, separators=(",", ":")).encode()
    said = hook._brief(str(home), data, {})
    return json.loads(said)["hookSpecificOutput"]["additionalContext"] if said else ""


def real(days):
    """Return a time so many days from now: what is rendered is of the real clock."""
    now = datetime.utcnow().replace(microsecond=0)
    return now + timedelta(days=days)


def test_a_session_is_told_what_begins_and_what_has_ended(home, project, monkeypatch):
    """A rule begins, another ends, while nobody works: the next session knows."""
    write(home, lambda txn: [
        txn.put_entry(rule("old", "old host kestrel", None, real(10))),
        txn.put_entry(rule("new", "new host kestrel", real(10), real(20))),
    ])  # fmt: skip
    seen = {
        days: [word for word in ("old", "new") if f"{word} host" in text]
        for days in (0, 9.9, 10, 19.9, 20, 400)
        for text in [started(home, project, monkeypatch, real(days))]
    }
    assert seen == {0: ["old"], 9.9: ["old"], 10: ["new"], 19.9: ["new"], 20: [], 400: []}


def test_what_is_forgotten_is_in_no_brief_to_come(home, project, monkeypatch):
    write(home, lambda txn: [
        txn.put_entry(rule("new", "new host kestrel", real(10))),
        txn.put_entry(rule("wide", "wide host kestrel", real(10))),
    ])  # fmt: skip
    assert "new host" in started(home, project, monkeypatch, real(11))
    write(home, lambda txn: txn.delete_entry("new", tombstone=True))
    later = started(home, project, monkeypatch, real(11))
    assert ("new host" in later, "wide host" in later) == (False, True)
    write(home, lambda txn: txn.delete_entry("wide", tombstone=True))
    assert started(home, project, monkeypatch, real(11)) == ""
    assert not list((home / "briefs").glob("*.later"))


def test_a_brief_says_when_a_rule_is_true(home, project, monkeypatch):
    """Whoever reads it need not guess; a rule of no time says nothing of it."""
    write(home, lambda txn: [
        txn.put_entry(rule("old", "old host kestrel", at(3), datetime(2099, 1, 1))),
        txn.put_entry(rule("wide", "wide host kestrel")),
    ])  # fmt: skip
    text = started(home, project, monkeypatch, real(0))
    assert "old host kestrel (true from 2026-03-01 00:00 until 2099-01-01 00:00 UTC)" in text
    assert "- wide host kestrel\n" in text


def test_torn_briefs_to_come_are_left_alone(home, project, monkeypatch):
    """The brief of today is printed, or nothing: never half a line."""
    write(home, lambda txn: txn.put_entry(rule("wide", "wide host kestrel")))
    key = paths.find_root(str(project)).key
    (home / "briefs" / f"{key}.later").write_bytes(b'12\n{"hookSpecific\n')
    assert started(home, project, monkeypatch, real(1)) == ""
    (home / "briefs" / f"{key}.later").write_bytes(b"nonsense\nmore\n")
    assert "wide host" in started(home, project, monkeypatch, real(1))

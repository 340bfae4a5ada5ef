"""``known_entry(t)`` and ``known_statement(t)``: what whoever looked at ``t`` saw, and no more."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import Refused
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import attached, open_store
from hypatia_mem.store.migrations import MIGRATIONS

START = datetime(2026, 11, 30, 12, 0, 0)
PERSON = Author(Channel.CLI_PERSON, "person")


def at(minutes):
    return START + timedelta(minutes=minutes)


def entries(store, when):
    found = store.run("SELECT * FROM known_entry(?) ORDER BY name", [when])
    return {row["name"]: row["content"] for row in found}


def statements(store, when):
    found = store.run("SELECT * FROM known_statement(?) ORDER BY triple", [when])
    return [row["triple"] for row in found]


@pytest.fixture
def write(home):
    """Return a function that makes one change at one minute."""

    def change(minute, what, author=PERSON):
        with (
            open_store(home, write=True) as store,
            store.transaction(author, now=at(minute)) as txn,
        ):
            return what(txn)

    return change


@pytest.fixture
def look(home):
    def read(question):
        with open_store(home, write=False) as store:
            return question(store)

    return read


def test_each_state_is_seen_from_its_change_to_the_next(write, look):
    write(0, lambda txn: txn.put_entry(Entry("a", "one", scopes=("app",))))
    write(1, lambda txn: txn.put_statement(Statement("a", "knows", "b", scopes=("",))))
    write(2, lambda txn: txn.update_entry("a", content="two"))
    write(4, lambda txn: txn.delete_entry("a"))
    write(6, lambda txn: txn.put_entry(Entry("a", "three", scopes=("",))))
    seen = {
        minute: look(lambda store, m=minute: (entries(store, at(m)), statements(store, at(m))))
        for minute in (-1, 0, 1, 3, 4, 5, 6, 60)
    }
    assert seen == {
        -1: ({}, []),
        0: ({"a": "one"}, []),
        1: ({"a": "one"}, ["a,knows,b"]),
        3: ({"a": "two"}, ["a,knows,b"]),
        4: ({}, []),
        5: ({}, []),
        6: ({"a": "three"}, []),
        60: ({"a": "three"}, []),
    }
    assert look(lambda store: store.entry("a").version) == 3


def test_they_have_the_columns_of_the_live_views(look, write):
    write(0, lambda txn: txn.put_entry(Entry("a", "one", scopes=("",))))

    def columns(store, what):
        return [(row["column_name"], row["column_type"]) for row in store.run(f"DESCRIBE {what}")]

    for kind in ("entry", "statement"):
        now = look(lambda s, k=kind: columns(s, f"SELECT * FROM live_{k}"))
        then = look(
            lambda s, k=kind: columns(s, f"SELECT * FROM known_{k}(TIMESTAMP '2026-01-01')")
        )
        assert now == then


def test_what_was_withheld_then_is_not_seen_and_what_is_withheld_now_was(write, look):
    write(0, lambda txn: txn.put_entry(Entry("a", "one", scopes=("",))))
    write(0, lambda txn: txn.put_statement(Statement("x", "is", "a", scopes=("",))))
    write(2, lambda txn: txn.update_entry("a", suppressed=True))
    write(4, lambda txn: txn.update_entry("a", suppressed=False, trust=Trust.CANDIDATE))
    write(6, lambda txn: txn.update_entry("a", trust=Trust.ASSERTED))
    write(8, lambda txn: txn.update_entry("a", trust=Trust.REJECTED))
    for minute, seen in {1: True, 2: False, 3: False, 5: False, 6: True, 7: True, 9: False}.items():
        found = look(lambda s, m=minute: (list(entries(s, at(m))), statements(s, at(m))))
        assert found == ((["a"], ["x,is,a"]) if seen else ([], [])), minute


def test_what_was_forgotten_since_was_never_there(write, look):
    def first(txn):
        txn.put_entry(Entry("rule:a", "Say aloud", kind="rule", scopes=("app",)))
        txn.put_statement(Statement("x", "is", "rule:a", scopes=("",)))
        txn.put_statement(Statement("x", "is", "y", content="Say  ALOUD!", scopes=("",)))
        txn.put_statement(Statement("x", "is", "z", content="Say other", scopes=("",)))
        for name, scope in (("b", "app"), ("c", ""), ("d", "other"), ("e", "app")):
            txn.put_entry(Entry(name, "say aloud." if name != "e" else "Say it", scopes=(scope,)))

    def second(txn):
        txn.update_entry("rule:a", content="Say aloud, twice")
        txn.update_entry("rule:a", content="Say aloud")
        for name in "bcde":
            txn.update_entry(name, content="Harmless")
        for last in "yz":
            txn.delete_statement("x", "is", last)

    write(0, first)
    write(2, second)
    assert look(lambda store: len(entries(store, at(1)))) == 5
    write(4, lambda txn: txn.delete_entry("rule:a", tombstone=True))
    # d is another project's: there it may be said, and its history is its own.
    assert look(lambda store: entries(store, at(1))) == {"d": "say aloud.", "e": "Say it"}
    assert look(lambda store: entries(store, at(3))) == dict.fromkeys("bcde", "Harmless")
    assert look(lambda store: statements(store, at(1))) == ["x,is,z"]

    def everything(store):
        tables = ("entry", "statement", "version", "statement_version", "image", "touched")
        return repr([store.run(f"SELECT * FROM {table}") for table in tables]).casefold()

    assert "rule:a" not in look(everything)
    assert look(everything).count("aloud") == 1


def test_what_was_forgotten_everywhere_is_gone_from_every_projects_past(write, look):
    write(0, lambda txn: txn.put_entry(Entry("a", "Say aloud", scopes=("",))))
    write(0, lambda txn: txn.put_entry(Entry("d", "say aloud", scopes=("other",))))
    write(1, lambda txn: txn.update_entry("d", content="Harmless"))
    write(2, lambda txn: txn.delete_entry("a", tombstone=True))
    assert look(lambda store: entries(store, at(0))) == {}
    assert look(lambda store: entries(store, at(1))) == {"d": "Harmless"}


def test_a_renamed_scope_is_the_old_one_before(write, look):
    def first(txn):
        txn.put_project("app")
        txn.put_entry(Entry("a", "x", scopes=("app", "")))
        txn.put_entry(Entry("b", "x", scopes=("my-app",)))
        txn.put_statement(Statement("a", "is", "b", scopes=("app",)))

    write(0, first)
    write(2, lambda txn: txn.rename_scope("app", "tool"))

    def scopes(store, when):
        found = store.run("SELECT name, scopes FROM known_entry($1)", [when])
        found += store.run("SELECT triple AS name, scopes FROM known_statement($1)", [when])
        return {row["name"]: sorted(row["scopes"]) for row in found}

    before = {"a": ["", "app"], "b": ["my-app"], "a,is,b": ["app"]}
    assert look(lambda store: scopes(store, at(1))) == before
    after = {"a": ["", "tool"], "b": ["my-app"], "a,is,b": ["tool"]}
    assert look(lambda store: scopes(store, at(2))) == after


def test_messages_that_grew_are_as_they_were(write, look, kit):
    def amend(txn):
        txn.amend_messages("s-1", {1: {"text": "Hello"}, 2: {"text": "World"}})

    one, two = kit.message(1, "Hel"), kit.message(2, "Wor")
    write(0, lambda txn: txn.put_messages("s-1", [one, two], "app"))
    write(2, amend)
    write(4, lambda txn: txn.delete_entry("msg-s-1-2"))

    def said(store, when):
        return [text.partition("## Content\n")[2] for text in entries(store, when).values()]

    assert look(lambda store: said(store, at(1))) == ["Hel", "Wor"]
    assert look(lambda store: said(store, at(2))) == ["Hello", "World"]
    assert look(lambda store: said(store, at(5))) == ["Hello"]


def old_store(home):
    """Return a store as the first step of the schema left it, with versions and a clock set back.

    Made with the statements of that time; a history of ``a`` (three contents) and of ``b`` (two).
    """
    with attached(home / "memory.duckdb", write=True) as kb:
        kb.execute('CREATE TABLE migration (name VARCHAR PRIMARY KEY, "at" TIMESTAMP NOT NULL)')
        name, steps = MIGRATIONS[0]
        for step in steps:
            kb.execute(step)
        kb.execute("INSERT INTO migration VALUES (?, ?)", [name, START])
        seq = 0
        for minute, op, count in ((0, "o1", 3), (5, "o2", 1), (2, "o3", 2), (3, "o4", 1)):
            for _ in range(count):
                seq += 1
                kb.execute(
                    "INSERT INTO mutation VALUES (?, ?, ?, '', '', 'x', 'x', '', '', '', '', '')",
                    [seq, at(minute), op],
                )
        row = (
            "INSERT INTO entry VALUES (?, ?, '', ['t'], ['app'], [], [], 'markdown', 'knowledge',"
            " 'asserted', NULL, NULL, ?, NULL, false, false, '', 0, '', NULL, '', 'cli-person', '',"
            " ?, ?, ?)"
        )
        for name, content, version, last in (("a", "three", 3, 2), ("b", "two", 2, 3)):
            kb.execute(row, [name, content, at(0), version, at(0), at(last)])
        kb.execute(
            "INSERT INTO statement VALUES ('a,is,b', 'a', 'is', 'b', '', ['app'], NULL, 'asserted',"
            " NULL, NULL, ?, NULL, '', NULL, '', ?)",
            [at(5), at(5)],
        )
        old = "INSERT INTO version VALUES (?, ?, ?, ['old'], ['app'], ?, ?, ?)"
        kb.execute(old, ["a", 1, "one", at(0), at(5), "o2"])
        kb.execute(old, ["a", 2, "two", at(5), at(2), "o3"])
        kb.execute(old, ["b", 1, "one", at(0), at(3), "o4"])
        kb.execute("CHECKPOINT kb")


@pytest.mark.parametrize("write_first", [True, False])
def test_a_store_of_the_first_step_gets_its_history(bare_home, write_first):
    home = bare_home
    old_store(home)
    with open_store(home, write=write_first) as store:
        pass  # whoever opens it first brings it up to date
    with open_store(home, write=False) as store:
        assert entries(store, at(-1)) == {}
        assert entries(store, at(0)) == {"a": "one", "b": "one"}
        assert entries(store, at(1)) == {"a": "one", "b": "one"}
        assert entries(store, at(2)) == {"a": "three", "b": "one"}  # the clock had been set back
        assert entries(store, at(3)) == {"a": "three", "b": "two"}
        assert entries(store, at(9)) == {"a": "three", "b": "two"}
        assert statements(store, at(1)) == []
        assert statements(store, at(9)) == ["a,is,b"]
        kept = store.run("SELECT * FROM version WHERE name = 'a' ORDER BY version")
        assert [(row["content"], row["tags"], row["kind"]) for row in kept] == [
            ("one", ["old"], "knowledge"),
            ("two", ["old"], "knowledge"),
        ]
    with open_store(home, write=True) as store, store.transaction(PERSON, now=at(9)) as txn:
        assert txn.update_entry("a", content="four").verb == "updated"
        assert store.entry("a").version == 4
    with (
        pytest.raises(Refused, match="earlier version of hypatia-mem"),
        open_store(home, write=True) as store,
        store.transaction(PERSON, now=at(9)) as txn,
    ):
        txn.undo("o3")


# -- any sequence of changes, under any clock, against a list of pictures

NAMES = ("a", "b")
CHANGES = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), st.sampled_from("xyz")),
    st.tuples(st.just("hide"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("say"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("unsay"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(
        st.just("rename"), st.sampled_from(("app", "tool")), st.sampled_from(("app", "tool"))
    ),
)
OPERATIONS = st.lists(
    st.tuples(st.integers(-4, 4), st.lists(CHANGES, min_size=1, max_size=3)), max_size=10
)


class Model:
    """The live state, and a picture of it after each ledger row that an operation left."""

    def __init__(self):
        self.entries, self.said, self.pictures = {}, {}, []

    def apply(self, change):
        """Do a change here; tell whether the gateway would have refused it."""
        verb, one, two = change
        if verb == "put":
            old = self.entries.get(one, ("", False, ("app",)))
            self.entries[one] = (two, old[1], ("app",))
        elif verb in ("hide", "delete") and one not in self.entries:
            return False
        elif verb == "hide":
            content, _, scopes = self.entries[one]
            self.entries[one] = (content, two, scopes)
        elif verb == "delete":
            del self.entries[one]
            self.said = {pair: scopes for pair, scopes in self.said.items() if one not in pair}
        elif verb == "say":
            self.said.setdefault((one, two), ("app",))
        elif verb == "unsay":
            return self.said.pop((one, two), None) is not None
        else:
            self.entries = {
                name: (content, hidden, renamed(scopes, one, two))
                for name, (content, hidden, scopes) in self.entries.items()
            }
            self.said = {pair: renamed(scopes, one, two) for pair, scopes in self.said.items()}
        return True

    def picture(self):
        hidden = {name for name, (_, out, _) in self.entries.items() if out}
        return (
            {n: (c, s) for n, (c, _, s) in self.entries.items() if n not in hidden},
            {pair: s for pair, s in self.said.items() if not hidden & set(pair)},
        )


def renamed(scopes, old, new):
    return tuple(dict.fromkeys(new if scope == old else scope for scope in scopes))


def do(txn, change):
    verb, one, two = change
    if verb == "put":
        txn.put_entry(Entry(one, two, scopes=("app",)), replace=True)
    elif verb == "hide":
        txn.update_entry(one, suppressed=two)
    elif verb == "delete":
        txn.delete_entry(one)
    elif verb == "say":
        txn.put_statement(Statement(one, "knows", two, scopes=("app",)))
    elif verb == "unsay":
        txn.delete_statement(one, "knows", two)
    else:
        txn.rename_scope(one, two)


def seen(store, when):
    known = store.run("SELECT name, content, scopes FROM known_entry(?)", [when])
    said = store.run("SELECT subject, object, scopes FROM known_statement(?)", [when])
    return (
        [(row["name"], row["content"], tuple(row["scopes"])) for row in known],
        [((row["subject"], row["object"]), tuple(row["scopes"])) for row in said],
    )


@pytest.mark.deep
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS)
def test_under_any_clock_a_time_shows_one_state_that_was(operations):
    model, minute = Model(), 0
    ends = []  # (time, picture) after each operation that left a ledger row
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder), write=True) as store:
        for jump, changes in operations:
            minute += jump
            before = store.ledger_seq()
            with store.transaction(PERSON, now=at(minute)) as txn:
                for change in changes:
                    if model.apply(change):
                        do(txn, change)
            if store.ledger_seq() > before:
                ends.append((minute, model.picture()))
        moments = {minute + step for minute, _ in ends for step in (-1, 0, 1)}
        for when in sorted(moments):
            past = [picture for minute, picture in ends if minute <= when]
            wanted = past[-1] if past else ({}, {})
            known, said = seen(store, at(when))
            assert sorted(known) == sorted((n, c, s) for n, (c, s) in wanted[0].items())
            assert sorted(said) == sorted(wanted[1].items())

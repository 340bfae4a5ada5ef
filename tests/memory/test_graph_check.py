"""``graph check``: every promise broken once, each beside a graph that keeps it."""

from __future__ import annotations

import pytest

from hypatia_mem.memory.graph.check import check
from hypatia_mem.model import Entry
from hypatia_mem.store.connection import open_store
from tests.memory.graphs import NOW, PERSON, fill, talk

SCOPES = ("app", "")


def entry(name, *tags, **more):
    kind = next((tag for tag in tags if tag in ("summary", "session")), "knowledge")
    return Entry(name, f"about {name}", tags=tags, scopes=("app",), kind=kind, **more)


def summary(name, level):
    return entry(name, "summary", f"summary {level}")


def found(home, scopes=SCOPES):
    with open_store(home, write=False) as store:
        return check(store, scopes)


def kinds(home, scopes=SCOPES):
    return [one.kind for one in found(home, scopes)]


def test_a_graph_that_keeps_its_promises_has_no_findings(home):
    """Session, messages, two levels of summaries, a work unit, free names at free ends."""
    talk(home)
    fill(
        home,
        [
            ("L1", "summary", "msg-s-1-1"), ("L1", "summary", "msg-s-1-2"), ("L2", "summary", "L1"),
            ("wu-2026-05-10-pool", "derivedFrom", "msg-s-1-3"), ("wu-2026-05-10-pool", "is_a", "work-unit"),
            ("new", "supersedes", "old"), ("newest", "supersedes", "new"), ("more", "extends", "new"),
            ("Rust", "knows", "nobody"), ("a", "next", "b"), ("b", "next", "a"), ("a", "likes", "a"),
        ],
        [
            summary("L1", 1), summary("L2", 2), entry("wu-2026-05-10-pool", "work-unit"), entry("new"),
            entry("old"), entry("newest"), entry("more"),
        ],
    )  # fmt: skip
    assert found(home) == []


def test_an_empty_graph_has_no_findings(home):
    """Nor has a store that does not exist yet."""
    assert found(home) == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("triples", "entries", "wrong"),
    [
        pytest.param(
            [("L1", "summary", "msg-s-9-1")], [summary("L1", 1)], ["dangling", "unreachable"],
            id="a summary of a message that is not there",
        ),
        pytest.param(
            [("wu-2026-05-10-x", "derivedFrom", "msg-s-9-1")],
            [entry("wu-2026-05-10-x", "work-unit")], ["dangling"],
            id="a work unit from a message that is not there",
        ),
        pytest.param([("a", "belongTo", "session-s-9")], [entry("a")], ["dangling"], id="no session"),
        pytest.param(
            [("a", "belongTo", "b")], [entry("a"), entry("b")], ["misplaced"],
            id="belongTo between two things",
        ),
        pytest.param([], [entry("wu-1", "work-unit")], ["sourceless"], id="a work unit from nothing"),
        pytest.param(
            [("a", "supersedes", "b"), ("b", "supersedes", "c"), ("c", "supersedes", "a")],
            [entry("a"), entry("b"), entry("c")], ["circle"], id="superseding in a circle",
        ),
        pytest.param(
            [("a", "supersedes", "b"), ("b", "extends", "a")], [entry("a"), entry("b")], ["circle"],
            id="newer and older at once",
        ),
        pytest.param([("a", "extends", "a")], [entry("a")], ["circle"], id="extending itself"),
        pytest.param(
            [("a", "derivedFrom", "b"), ("b", "derivedFrom", "a")], [entry("a"), entry("b")],
            ["circle"], id="derived from each other",
        ),
        pytest.param(
            [("L1", "summary", "L2"), ("L2", "summary", "L1"), ("L1", "summary", "x")],
            [summary("L1", 1), summary("L2", 2), entry("x")], ["circle", "level"],
            id="summaries of each other",
        ),
        pytest.param([], [summary("L1", 1)], ["unreachable"], id="a summary of nothing"),
        pytest.param(
            [("L3", "summary", "L2"), ("L2", "summary", "L1")],
            [summary("L1", 1), summary("L2", 2), summary("L3", 3)], ["unreachable"] * 3,
            id="summaries that end in one of nothing",
        ),
        pytest.param(
            [("L1", "summary", "L10"), ("L10", "summary", "x")],
            [summary("L1", 1), summary("L10", 10), entry("x")], ["level"], id="level 10 is above 2",
        ),
    ],
)  # fmt: skip
def test_a_broken_promise_is_found(home, triples, entries, wrong):
    """As something wrong, with a remedy; elsewhere it is not looked for."""
    fill(home, triples, entries)
    serious = [one for one in found(home) if one.serious]
    assert [one.kind for one in serious] == wrong
    for one in serious:
        assert one.remedy.startswith("hypatia-mem ")
        assert one.names
    assert kinds(home, ("other", "")) == []
    assert kinds(home, None) == kinds(home)


def test_the_remedy_of_a_circle_ends_it(home):
    """The statement that it names is one of the circle's."""
    fill(
        home,
        [("a", "supersedes", "b"), ("b", "extends", "c"), ("c", "supersedes", "a")],
        [entry("a"), entry("b"), entry("c")],
    )
    (one,) = found(home)
    assert one.remedy.startswith("hypatia-mem statement-delete c supersedes a")
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_statement("c", "supersedes", "a")
    assert found(home) == []


def test_messages_that_are_not_linked_to_their_session_are_counted(home):
    """Once a session; a session without an entry promises nothing."""
    talk(home, "s-1")
    talk(home, "s-2", linked=False)
    assert found(home) == []
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_statement("msg-s-1-1", "belongTo", "session-s-1")
        txn.delete_statement("msg-s-1-3", "belongTo", "session-s-1")
    (one,) = found(home)
    assert one.sentence == "2 messages of 'session-s-1' are not linked to it."
    assert one.remedy.startswith("hypatia-mem statement-create msg-s-1-1 belongTo session-s-1")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("triples", "entries", "odd"),
    [
        pytest.param(
            [("pg", "p", "x")], [entry("PostgreSQL", synonyms=("pg",))], "ambiguous",
            id="a synonym that is a name",
        ),
        pytest.param(
            [], [entry("a", synonyms=("x",)), entry("b", synonyms=("x",))], "ambiguous",
            id="a synonym of two",
        ),
        pytest.param([("Python 3", "supersedes", "Python 2")], [], "dangling", id="a free end"),
    ],
)  # fmt: skip
def test_what_only_looks_odd_is_told_but_is_not_wrong(home, triples, entries, odd):
    """It may be meant."""
    fill(home, triples, entries)
    (one,) = found(home)
    assert (one.kind, one.serious) == (odd, False)


def test_a_spelling_that_an_early_version_stored_is_told(home):
    """Predicates are stored in one spelling since; those there were are found all the same."""
    fill(home, [("a", "worksAt", "b"), ("c", "works_at", "d")])
    assert found(home) == []
    with open_store(home, write=True) as store:
        store.execute(
            "UPDATE statement SET predicate = 'worksAt', triple = 'a,worksAt,b' WHERE subject = 'a'"
        )
    (one,) = found(home)
    assert (one.kind, one.serious, one.names) == ("spelling", False, ("worksAt", "works_at"))


def test_a_synonym_of_one_thing_is_nothing_odd(home):
    """Nor is its own name among its synonyms."""
    fill(home, [("PostgreSQL", "p", "x")], [entry("PostgreSQL", synonyms=("pg", "PostgreSQL"))])
    assert found(home) == []


def test_what_is_withheld_is_not_named(home):
    """Neither it nor what hangs on it."""
    talk(home, turns=1)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_statement("msg-s-1-1", "belongTo", "session-s-1")
        txn.update_entry("msg-s-1-1", suppressed=True)
    fill(
        home,
        [("secret", "supersedes", "a"), ("a", "supersedes", "secret")],
        [entry("secret", suppressed=True), entry("a"), entry("wu-1", "work-unit", suppressed=True)],
    )
    assert found(home) == []


def test_names_in_a_remedy_are_safe_to_paste(home):
    """A shell reads them as one word."""
    name = "a; rm -rf $HOME 'x'"
    fill(home, [], [entry(name, "work-unit")])
    (one,) = found(home)
    assert "'a; rm -rf $HOME '\"'\"'x'\"'\"''" in one.remedy

"""Merging two names: nothing is lost, nothing is done by half, and all of it can be taken back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import networkx as nx
import pytest

from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.memory.graph import merge as merging
from hypatia_mem.memory.graph.check import check
from hypatia_mem.memory.graph.selecting import Selection, resolve, select
from hypatia_mem.model import Entry, Statement, Trust
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.memory.graphs import AGENT, HOSTILE, NOW, PERSON, fill, random_triples, talk

SCOPES = ("app", "")
ROOT = Path(__file__).parents[2]


def entry(name, content="", **more):
    return Entry(name, content, **{"scopes": ("app",), **more})


def merge(home, a, b, *, scopes=SCOPES, author=PERSON, **more):
    return merging.merge(home, a, b, scopes=scopes, author=author, now=NOW, **more)


def preview(home, a, b, scopes=SCOPES):
    return merge(home, a, b, scopes=scopes, dry_run=True)


def triples(home):
    with open_store(home, write=False) as store:
        found = store.execute("SELECT subject, predicate, object FROM statement ORDER BY ALL")
        return [tuple(row) for row in found.fetchall()]


def stored(home, name):
    with open_store(home, write=False) as store:
        return store.entry(name)


def everything(home):
    """All that a reader can see: whole rows but for their place in the ledger."""
    with open_store(home, write=False) as store:
        rows = [
            {
                key: value
                for key, value in row.items()
                if key not in ("seq", "version", "updated_at")
            }
            for table in ("entry", "statement")
            for row in store.run(f"SELECT * FROM {table} ORDER BY ALL")
        ]
        assert store.verify_ledger() is None
    return sorted(map(repr, rows))


def undo(home, op_id):
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        return txn.undo(op_id)


@pytest.fixture
def database(home):
    """PostgreSQL and postgres, each with an entry and statements of its own and shared ones."""
    fill(
        home,
        [
            ("api", "uses", "postgres"), ("postgres", "runs_on", "Linux"), ("api", "needs", "PostgreSQL"),
            ("api", "needs", "postgres"), ("postgres", "same_as", "PostgreSQL"), ("postgres", "is", "postgres"),
            ("x", "y", "z"),
        ],
        [
            entry("PostgreSQL", "A database.", tags=("db",), synonyms=("pg",), figures=("archive://a",)),
            entry("postgres", "Listens on 5432.", tags=("db", "port"), synonyms=("psql",), pinned=True,
                  figures=("archive://b",)),
        ],
    )  # fmt: skip
    return home


# --- what becomes of what -------------------------------------------------------------------------


def test_every_statement_goes_to_the_name_that_stays(database):
    """Duplicates are one, a loop that would arise is dropped, one that was there stays one."""
    plan = merge(database, "PostgreSQL", "postgres")
    assert triples(database) == [
        ("PostgreSQL", "is", "PostgreSQL"), ("PostgreSQL", "runs_on", "Linux"),
        ("api", "needs", "PostgreSQL"), ("api", "uses", "PostgreSQL"), ("x", "y", "z"),
    ]  # fmt: skip
    assert sorted(row["triple"] for _, row in plan.moved) == [
        "PostgreSQL,is,PostgreSQL", "PostgreSQL,runs_on,Linux", "api,uses,PostgreSQL",
    ]  # fmt: skip
    assert [old for old, _ in plan.joined] == ["api,needs,postgres"]
    assert plan.dropped == ("postgres,same_as,PostgreSQL",)


def test_the_entries_become_one(database):
    """Texts, tags, synonyms, figures and the pin; the second name has no entry of its own."""
    plan = merge(database, "PostgreSQL", "postgres")
    one = stored(database, "PostgreSQL")
    assert one.content == "A database.\n\nListens on 5432."
    assert (one.tags, one.synonyms) == (("db", "port"), ("pg", "postgres", "psql"))
    assert (one.figures, one.pinned) == (("archive://a", "archive://b"), True)
    assert stored(database, "postgres") is None
    assert (plan.tags, plan.synonyms, plan.appended) == (("port",), ("postgres", "psql"), 16)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["PostgreSQL", "postgres", "pg", "psql"])
def test_every_name_still_finds_it(database, name):
    """In the graph and in the search."""
    merge(database, "PostgreSQL", "postgres")
    with open_store(database, write=False) as store:
        assert resolve(store, name, SCOPES).name == "PostgreSQL"
        found = select(store, Selection(scopes=SCOPES, near=(name,)))
    assert {edge.predicate for edge in found.edges} >= {"uses", "runs_on", "needs"}
    hits = [hit.name for hit in SearchIndex(database).search(name, scopes=SCOPES)]
    assert "PostgreSQL" in hits
    assert "postgres" not in hits


def test_a_preview_says_what_happens_and_does_nothing(database):
    """The same plan, but for the operation's name."""
    before = everything(database)
    told = preview(database, "PostgreSQL", "postgres")
    assert everything(database) == before
    done = merge(database, "PostgreSQL", "postgres")
    assert replace(done, op_id="", blast=replace(done.blast, op_id="")) == told


def test_what_a_statement_carries_comes_along(home):
    """Validity, origin, verdict, data, synonyms, the time it was made; and of two both."""
    early, late = datetime(2026, 1, 1), datetime(2026, 6, 1)
    fill(home, [("b", "moved", "x"), ("b", "joined", "x"), ("a", "joined", "x")], ["a", "b"])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW):
        store.execute(
            "UPDATE statement SET valid_from = ?, valid_to = ?, trust = 'verified', session_id = 's-9',"
            " turn = 7, content = 'said ' || subject, scopes = [subject, 'app'], channel = 'hook',"
            " synonyms = '{\"object\": [\"' || subject || '\"]}', created_at = ? WHERE subject = 'b'",
            [early, late, early],
        )
        store.execute(
            "UPDATE statement SET content = 'said a', valid_from = ?, trust = 'asserted',"
            " synonyms = '{\"object\": [\"a\"]}' WHERE subject = 'a'", [late]
        )  # fmt: skip
    merge(home, "a", "b", scopes=None)
    with open_store(home, write=False) as store:
        joined, moved = store.run("SELECT * FROM statement ORDER BY predicate")
    expected = {
        "triple": "a,moved,x", "valid_from": early, "valid_to": late, "trust": "verified", "turn": 7,
        "session_id": "s-9", "content": "said b", "scopes": ["b", "app"], "channel": "hook",
        "created_at": early, "synonyms": '{"object": ["b"]}',
    }  # fmt: skip
    assert {key: moved[key] for key in expected} == expected
    expected = {
        "triple": "a,joined,x", "valid_from": early, "valid_to": None, "trust": "verified",
        "content": "said a\n\nsaid b", "scopes": ["app", "b"], "created_at": early,
        "synonyms": '{"object": ["a", "b"]}',
    }  # fmt: skip
    assert {key: joined[key] for key in expected} == expected


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kept", "other", "trust"),
    [
        ("asserted", "rejected", "rejected"), ("rejected", "asserted", "rejected"),
        ("candidate", "asserted", "asserted"), ("asserted", "candidate", "asserted"),
        ("verified", "asserted", "verified"), ("asserted", "disputed", "disputed"),
    ],
)  # fmt: skip
def test_a_verdict_holds_over_an_assertion(home, kept, other, trust):
    """What was rejected about one name does not come back by the other."""
    fill(home, [], ["a", "b"])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_statement(Statement("a", "p", "x", scopes=("app",), trust=Trust(kept)))
        txn.put_statement(Statement("b", "p", "x", scopes=("app",), trust=Trust(other)))
    merge(home, "a", "b")
    with open_store(home, write=False) as store:
        assert store.statement("a", "p", "x").trust == trust


@pytest.mark.deep
@pytest.mark.parametrize(
    ("entries", "content", "synonyms"),
    [
        pytest.param(["a"], "about a", ("b",), id="only the first is an entry"),
        pytest.param(["b"], "about b", ("b",), id="only the second is"),
        pytest.param([], "", ("b",), id="neither is"),
        pytest.param([entry("a", "same"), entry("b", "same")], "same", ("b",), id="the same text"),
        pytest.param([entry("a"), entry("b", "text")], "text", ("b",), id="the first says nothing"),
        pytest.param(
            [entry("a", "{}", format="json"), entry("b", "text")], "{}", ("b",), id="another format"
        ),
        pytest.param(
            [entry("a", "x", synonyms=("b",)), entry("b", "y", synonyms=("a", "c"))], "x\n\ny",
            ("b", "c"), id="synonyms of each other",
        ),
    ],
)  # fmt: skip
def test_names_with_and_without_entries(home, entries, content, synonyms):
    """Afterwards there is one entry, and it knows the other name."""
    fill(home, [("a", "p", "x"), ("b", "q", "x")], entries)
    plan = merge(home, "a", "b")
    one = stored(home, "a")
    assert (one.content, one.synonyms, one.scopes) == (content, synonyms, ("app",))
    assert triples(home) == [("a", "p", "x"), ("a", "q", "x")]
    assert plan.kept_apart == (content == "{}")


def test_names_are_given_by_any_of_their_names(database):
    """An alias of either."""
    plan = merge(database, "pg", "psql")
    assert (plan.keep, plan.gone) == ("PostgreSQL", "postgres")


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_a_merge_is_a_contraction(home, seed):
    """As networkx contracts two nodes, whatever the graph."""
    told = random_triples(seed, names=8, count=30)
    fill(home, told)
    chance = random.Random(seed)
    a, b = chance.sample(sorted({name for x, _, y in told for name in (x, y)}), 2)
    graph = nx.MultiDiGraph()
    graph.add_edges_from((x, y, {"p": p}) for x, p, y in told)
    loops = {(p,) for x, p, y in told if x == y == b}
    wanted = nx.contracted_nodes(graph, a, b, self_loops=False, copy=True)
    plan = merge(home, a, b)
    found = triples(home)
    assert {one for one in found if one[0] != one[2]} == {
        (x, p, y) for x, y, p in wanted.edges(data="p") if x != y
    }
    assert {p for x, p, y in found if x == y == a} == {p for (p,) in loops} | {
        p for x, p, y in told if x == y == a
    }
    assert len(told) == len(found) + len(plan.joined) + len(plan.dropped)


@pytest.mark.deep
def test_hostile_names_merge_and_come_back(home):
    """Each into the one before it."""
    names = [name for name in HOSTILE if name.strip()]
    fill(home, [(name, "p,q", "x") for name in names], names)
    before = everything(home)
    done = [merge(home, names[0], name) for name in names[1:4]]
    assert set(names[1:4]) <= set(stored(home, names[0]).synonyms)
    for plan in reversed(done):
        undo(home, plan.op_id)
    assert everything(home) == before


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kept", "lost", "reason"),
    [
        pytest.param(
            {}, {"scopes": ("",)}, "their scopes differ: app against (global)", id="scopes"
        ),
        pytest.param({"kind": "rule"}, {}, "one is a rule, the other a knowledge", id="kinds"),
    ],
)
def test_what_differs_is_merged_only_when_told_to(home, kept, lost, reason):
    """The preview says so; with force it is done."""
    fill(home, [("b", "p", "x")], [entry("a", **kept), entry("b", **lost)])
    before = everything(home)
    assert preview(home, "a", "b").doubts == (reason,)
    with pytest.raises(Refused, match="not merged") as refused:
        merge(home, "a", "b")
    assert "--force" in refused.value.hint
    assert everything(home) == before
    merge(home, "a", "b", force=True)
    assert set(stored(home, "a").scopes) == {"app", *lost.get("scopes", ())}
    assert stored(home, "a").kind == kept.get("kind", "knowledge")


def test_other_projects_statements_about_the_same_name_are_told(home):
    """They are rewritten too, for the name is one; so it takes force."""
    fill(home, [("b", "p", "x"), ("a", "p", "y")])
    fill(home, [("b", "p", "z")], scopes=("other",))
    assert preview(home, "a", "b").doubts == ("1 statement belongs to other too",)
    with pytest.raises(Refused):
        merge(home, "a", "b")
    assert preview(home, "a", "b", None).doubts == ()


def test_another_projects_entry_is_not_merged_from_here(home):
    """Even where a statement of ours names it."""
    fill(home, [("a", "p", "theirs")], ["a"])
    fill(home, [], ["theirs"], scopes=("other",))
    for pair in (("a", "theirs"), ("theirs", "a")):
        with pytest.raises(Refused, match="belongs to other"):
            merge(home, *pair, force=True)


@pytest.mark.deep
@pytest.mark.parametrize("other", ["msg-s-1-1", "session-s-1", "L1"])
def test_what_was_said_is_never_merged(home, other):
    """Neither a message nor a session nor a summary, from either side."""
    talk(home)
    fill(
        home,
        [("L1", "summary", "msg-s-1-1")],
        ["a", entry("L1", kind="summary", tags=("summary",))],
    )
    for pair in (("a", other), (other, "a")):
        with pytest.raises(Refused, match="is not merged"):
            merge(home, *pair, force=True)


def test_a_name_and_itself_cannot_be_merged(database):
    """By whatever names."""
    for pair in (("PostgreSQL", "PostgreSQL"), ("pg", "PostgreSQL")):
        with pytest.raises(UsageError, match="the same thing already"):
            merge(database, *pair)
    with pytest.raises(NotFound):
        merge(database, "PostgreSQL", "nobody")


@pytest.mark.deep
@pytest.mark.parametrize("author", [AGENT, PERSON])
def test_what_was_forgotten_does_not_come_back_by_a_merge(home, author):
    """For an agent it is refused, and nothing has changed; a person may."""
    fill(
        home,
        [("rule:x", "p", "y")],
        [entry("rule:x", "secret words", kind="rule"), entry("b", "also")],
    )
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_entry("rule:x", reason="forget", tombstone=True)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW):
        store.execute("INSERT INTO statement SELECT 'q,p,rule:x', 'q', 'p', 'rule:x', '', ['app'], NULL,"
                      " 'asserted', NULL, NULL, now(), NULL, '', NULL, 'hook', now(), 1")  # fmt: skip
    before = everything(home)
    if author is AGENT:
        with pytest.raises(Refused):
            merge(home, "rule:x", "b", author=author)
        assert everything(home) == before
    else:
        merge(home, "rule:x", "b", author=author)
        assert stored(home, "rule:x").content == "also"


# --- all or nothing, and back ---------------------------------------------------------------------


def test_it_undoes_as_one(database):
    """Every row as it was, both names again, and the search with them; then it can be redone."""
    before = everything(database)
    plan = merge(database, "PostgreSQL", "postgres")
    after = everything(database)
    done = undo(database, plan.op_id)
    assert everything(database) == before
    assert not [one for one in found_wrong(database) if one.kind != "ambiguous"]
    with open_store(database, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.redo(done.details["operation"])
    assert everything(database) == after


def found_wrong(home):
    with open_store(home, write=False) as store:
        return check(store, SCOPES)


def test_everything_of_it_is_one_operation(database):
    """Each changed row has its ledger row under the same name."""
    plan = merge(database, "PostgreSQL", "postgres")
    with open_store(database, write=False) as store:
        rows = [row for row in store.ledger() if row["op_id"] == plan.op_id]
        assert store.verify_ledger() is None
    assert Counter(row["verb"] for row in rows) == {
        "create statement": 3,
        "delete statement": 5,
        "update statement": 1,
        "delete knowledge": 1,
        "update knowledge": 1,
    }
    assert {row["reason"] for row in rows if "statement" in row["verb"]} == {"merge"}


def test_what_is_refused_at_the_last_step_changes_nothing(home):
    """The statements are rewritten by then; what the two texts make together was forgotten."""
    fill(home, [("b", "p", "x")], [entry("a", "one"), entry("b", "two"), entry("c", "one\n\ntwo")])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_entry("c", reason="forget", tombstone=True)
    before = everything(home)
    with pytest.raises(Refused, match="'a' was not changed: this was forgotten before"):
        merge(home, "a", "b", author=AGENT)
    assert everything(home) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from hypatia_mem.memory.graph import merge as merging
from tests.memory.graphs import PERSON, NOW
home, at = Path(sys.argv[1]), int(sys.argv[2])
from hypatia_mem.store import connection
real, count = connection.Store.execute, 0
def execute(self, *arguments):
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, *arguments)
connection.Store.execute = execute
merging.merge(home, "PostgreSQL", "postgres", scopes=("app", ""), author=PERSON, now=NOW)
print(count)
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_kill_at_any_step_leaves_all_of_it_or_nothing(database):
    """One process dies before its n-th statement of SQL; whoever comes next finds a whole store."""
    before = everything(database)
    for at in (12, 16, 20, 22):
        done = killed(database, at)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert everything(database) == before
    done = killed(database, 10_000)
    assert int(done.stdout) > 22
    assert stored(database, "postgres") is None


def killed(home, at):
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(home), str(at)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
def test_a_hub_is_merged_quickly(home):
    """Fifteen hundred statements, a handful of SQL."""
    fill(
        home,
        [("hub", "p", f"n{n}") for n in range(1500)]
        + [("a", "p", f"n{n}") for n in range(0, 1500, 2)],
    )
    plan = merge(home, "a", "hub")
    assert (len(plan.moved), len(plan.joined)) == (750, 750)
    assert len(triples(home)) == 1500

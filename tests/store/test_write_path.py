"""What the gateway spares itself it may spare: nothing is asked less of what it writes."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hypatia_mem.model import Author, Channel
from hypatia_mem.store import indexing
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.inserting import insert
from hypatia_mem.store.search import SearchIndex

PERSON = Author(Channel.CLI_PERSON, "person")
AT = datetime(2026, 11, 30, 4, 5, 6, 789000)
TYPES = {
    "n": "INTEGER",
    "text": "VARCHAR",
    "list": "VARCHAR[]",
    "at": "TIMESTAMP",
    "yes": "BOOLEAN",
}
ODD = ["", "plain", "'; DROP TABLE t --", '{"a": [1, "b"]}', "[x, y]", "NULL", "é\n\t😀", "\\u0000"]


@pytest.mark.parametrize(
    "values",
    [
        [{"n": 1, "text": "only", "list": [], "at": AT, "yes": True}],
        [{"n": n, "text": "same", "list": ["a"], "at": AT, "yes": False} for n in range(3)],
        [{"n": n, "text": text, "list": [text], "at": AT, "yes": True}
         for n, text in enumerate(ODD)],
        [{"n": 1, "text": None, "list": None, "at": None, "yes": None}] * 3,
        [{"n": 1, "text": None, "list": [], "at": None, "yes": None},
         {"n": 2, "text": "x", "list": ["a", "b"], "at": AT, "yes": True}],
        [{"n": 1, "text": "x", "list": ["a"], "at": AT}, {"n": 2, "yes": True}],
        [{"n": n, "text": "x", "list": [str(n)] * n, "at": AT + timedelta(hours=n), "yes": n > 1}
         for n in range(300)],
    ],
    ids=["one", "all the same", "odd", "nothing", "now and then", "lacking", "many"],
)  # fmt: skip
def test_rows_go_in_as_they_are(kit, values):
    with open_store(kit.home, write=True) as store:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
        store.execute(f"CREATE TABLE t ({columns})")
        insert(store.execute, "t", tuple(TYPES), values)
        found = store.run("SELECT * FROM t ORDER BY rowid")
    assert found == [{name: row.get(name) for name in TYPES} for row in values]


def crash(home, act):
    """Do something to the store in a process that dies right after the commit."""
    child = os.fork()
    if child == 0:
        with open_store(home, write=True) as store:
            with store.transaction(PERSON, now=AT) as txn:
                act(txn)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (home / "memory.duckdb.wal").exists()


def test_what_only_the_log_knows_to_be_forgotten_is_refused(kit):
    rule, said = kit.rule("never force push"), kit.message(1, "my PIN is 4711")
    with kit.change() as txn:
        txn.put_entry(rule)
        txn.put_messages("s-1", [said], "app")

    def forget(txn):
        for name in (rule.name, "msg-s-1-1"):
            txn.delete_entry(name, tombstone=True)

    crash(kit.home, forget)
    again = [replace(said, uuid="again"), replace(said, uuid="new", text="push it")]
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(rule).verb == "refused"
        assert txn.put_entry(kit.rule("write tests first")).verb == "created"
        assert txn.put_messages("s-1", again, "app") == [2, 3]
    with kit.open() as store:
        names = (rule.name, "msg-s-1-1", "msg-s-1-2", "msg-s-1-3")
        assert [one.name for one in store.entries(names)] == ["msg-s-1-3"]
        assert store.verify_ledger() is None


def test_the_ledger_goes_on_from_what_only_the_log_has(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule("one"))
    crash(kit.home, lambda txn: txn.put_entry(kit.rule("two")))
    with kit.change() as txn:
        txn.put_entry(kit.rule("three"))
    with kit.open() as store:
        assert (store.ledger_seq(), store.verify_ledger()) == (3, None)


def test_a_forgetting_counts_at_once_in_the_same_transaction_and_the_next(kit):
    said = [kit.message(number, f"secret {number}") for number in (1, 2)]
    again = [replace(one, uuid=f"again-{one.uuid}") for one in said]

    def there(store, *turns):
        return [one.turn for one in store.entries(f"msg-s-1-{turn}" for turn in turns)]

    with open_store(kit.home, write=True) as store:
        with store.transaction(kit.person, now=kit.now) as txn:
            txn.put_messages("s-1", said, "app")
            txn.delete_entry("msg-s-1-1", tombstone=True)
            txn.put_messages("s-1", again[:1], "app")
            assert there(store, 1, 2, 3) == [2]
            txn.delete_entry("msg-s-1-2", tombstone=True)
        with store.transaction(kit.person, now=kit.now) as txn:
            txn.put_messages("s-1", [*again[1:], kit.message(9)], "app")
            assert there(store, 2, 4, 5) == [5]
        assert store.verify_ledger() is None


def test_what_is_rolled_back_leaves_the_end_of_the_ledger_where_it_was(kit):
    with open_store(kit.home, write=True) as store:
        for number, fails in enumerate([True, False, True, False]):
            try:
                with store.transaction(kit.person, now=kit.now) as txn:
                    txn.put_entry(kit.rule(f"rule {number}"))
                    if fails:
                        raise InterruptedError
            except InterruptedError:
                continue
        assert (store.ledger_seq(), store.verify_ledger()) == (2, None)


def test_a_ledger_that_somebody_cut_is_gone_on_with_and_found_out(kit):
    """It is not for the writer to fail: what is said meanwhile is kept."""
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(n) for n in range(1, 6)], "app")
    with open_store(kit.home, write=True) as store:
        store.execute("DELETE FROM mutation WHERE seq > 3")
    with open_store(kit.home, write=False) as store:
        assert store.verify_ledger() == 4
    with kit.change() as txn:
        assert txn.put_messages("s-1", [kit.message(6)], "app") == [6]


def test_the_index_learns_of_each_message_once_and_in_order(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, "needle one"), kit.message(2, "needle two")], "app")
        txn.put_entry(kit.rule("needle three"))
        txn.put_messages("s-1", [kit.message(3, "needle four")], "app")
    with kit.open() as store:
        told = store.changed_since(0)
        assert [name for _, name, _ in told] == [
            "msg-s-1-1", "msg-s-1-2", "rule:needle-three", "msg-s-1-3",
        ]  # fmt: skip
        assert [seq for seq, _, _ in told] == sorted({seq for seq, _, _ in told})
        assert store.changed_since(told[0][0], 2) == told[1:3]
    assert indexing.catch_up(kit.home)
    assert len(SearchIndex(kit.home).search("needle")) == 4


def test_a_message_that_came_and_went_between_two_looks_is_not_found(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, "needle one"), kit.message(2, "needle two")], "app")
    with kit.change() as txn:
        txn.delete_entry("msg-s-1-1", tombstone=True)
    assert indexing.catch_up(kit.home)
    assert [hit.name for hit in SearchIndex(kit.home).search("needle")] == ["msg-s-1-2"]


def test_an_older_store_that_noted_its_messages_twice_tells_them_once(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1), kit.message(2)], "app")
        txn.put_entry(kit.rule("a rule"))
    with open_store(kit.home, write=True) as store:
        store.execute(
            "INSERT INTO touched SELECT seq, target, 'knowledge' FROM mutation"
            " WHERE verb = 'create message'"
        )
        store.execute("DELETE FROM migration WHERE name = 'm008_note_new_messages_once'")
    with kit.open() as store:
        names = [name for _, name, _ in store.changed_since(0)]
    assert names == ["msg-s-1-1", "msg-s-1-2", "rule:a-rule"]

"""What the gateway asks and writes of a turn: as few statements as it can, and nothing left out."""

from __future__ import annotations

import contextlib
import unicodedata

import pytest

from hypatia_mem.model import Author, Channel, Session
from hypatia_mem.store import keys, ledger, lookalikes, rows, standing
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.inserting import upsert_all

TRANSCRIPT = Author(Channel.TRANSCRIPT)


class Listening:
    """A connection that notes the first words of each statement."""

    def __init__(self, connection):
        self.connection = connection
        self.said = []

    def execute(self, sql, params=()):
        self.said.append(" ".join(sql.split()[:3]))
        return self.connection.execute(sql, params)

    def __getattr__(self, name):
        return getattr(self.connection, name)


def written(kit):
    return open_store(kit.home, write=True)


def store_turn(kit, numbers, cursors=None):
    """Store messages as the drain does; return the statements that took."""
    with written(kit) as store:
        store._connection = heard = Listening(store._connection)
        with store.transaction(TRANSCRIPT, now=kit.now) as txn:
            txn.put_session(Session("s", "app"))
            txn.put_messages("s", [kit.message(n, f"text {n}", "s") for n in numbers], "app")
            txn.set_cursors(cursors or {"c": numbers[-1]})
        store._connection = heard.connection
    return heard.said


def forget(kit, name):
    with kit.change() as txn:
        txn.delete_entry(name, reason="forget", tombstone=True)


@pytest.mark.parametrize("gone", [False, True])
def test_a_turn_takes_one_statement_more_than_its_rows_and_lookups(kit, gone):
    store_turn(kit, [1, 2])
    if gone:
        forget(kit, "msg-s-1")
    said = store_turn(kit, [3, 4])
    bare = [
        "BEGIN", "SELECT * FROM", "SELECT uuid, session_id,", "SELECT 0, coalesce(max(turn),",
        "INSERT INTO entry", "INSERT INTO message", "UPDATE session SET", "UPDATE cursor SET",
        "COMMIT",
    ]  # fmt: skip
    assert sorted(said) == sorted([*bare, "INSERT INTO mutation"])


@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
@pytest.mark.parametrize("count", [1, 30])
def test_what_was_forgotten_is_refused_in_a_turn_and_in_a_batch(kit, monkeypatch, few, count):
    if not few:
        monkeypatch.setattr(standing, "_FEW", 0)
    store_turn(kit, [1])
    forget(kit, "msg-s-1")
    with written(kit) as store:  # as in a store that was lost: nothing but the tombstone is left
        store.execute("DELETE FROM message")
    again = list(range(1, count + 1))
    store_turn(kit, again)
    with written(kit) as store:
        assert store.entry("msg-s-1") is None
        assert [one.turn for one in store.messages("s")] == again
        assert len([one for one in store.messages("s") if one.text]) == count - 1
        assert store.ledger(target="msg-s-1")[0]["verb"] == "refuse message"
        assert store.verify_ledger() is None


def test_under_an_earlier_key_it_is_refused_too(kit):
    store_turn(kit, [1])
    forget(kit, "msg-s-1")
    with kit.change() as txn:
        txn.rotate_key()
    with written(kit) as store:
        store.execute("DELETE FROM message")
    assert len(keys.keyring(kit.home)) == 2
    store_turn(kit, [1, 2])
    with written(kit) as store:
        assert store.entry("msg-s-1") is None
        assert store.entry("msg-s-2") is not None


def test_what_is_forgotten_in_the_same_change_is_refused_in_it(kit):
    store_turn(kit, [1])
    with written(kit) as store:
        with store.transaction(kit.person, now=kit.now) as txn:
            txn.put_messages("s", [kit.message(2, "text 2", "s")], "app")
            txn.delete_entry("msg-s-1", reason="forget", tombstone=True)
            store.execute("DELETE FROM message WHERE turn = 1")
            txn.put_messages("s", [kit.message(1, "text 1", "s")], "app")
        assert [one.text for one in store.messages("s")] == ["text 2", ""]


def test_turns_stay_dense_and_linked_however_a_change_goes_on(kit):
    with written(kit) as store:
        with store.transaction(TRANSCRIPT, now=kit.now) as txn:
            txn.put_session(Session("s", "app"))
            txn.put_messages("s", [kit.message(1, "one", "s")], "app")
            txn.put_session(Session("t", "app"))
            txn.put_messages("t", [kit.message(2, "two", "t")], "app")
            txn.put_messages("s", [kit.message(3, "three", "s")], "app")
            txn.put_summary("s", "numbers", "title", "app")
            txn.put_messages("s", [kit.message(4, "four", "s")], "app")
        assert [one.text for one in store.messages("s")] == ["one", "three", "four"]
        assert len(store.statements_of("session-s")) == 3
        assert store.session("s").updated_at == max(one.at for one in store.messages("s"))
        with store.transaction(TRANSCRIPT, now=kit.now) as txn:
            assert txn.put_messages("s", [kit.message(5, "five", "s")], "app") == [4]
        assert store.verify_ledger() is None


def test_cursors_and_the_end_of_the_ledger_move_with_the_turn(kit):
    store_turn(kit, [1], {"a": 1, "b": 2})
    store_turn(kit, [2], {f"k{n}": n for n in range(12)} | {"a": 5})
    with written(kit) as store:
        assert store.cursors() == {"a": 5, "b": 2, **{f"k{n}": n for n in range(12)}}
        assert store.ledger_noted() == store.ledger_seq() == 3
        with (
            contextlib.suppress(ZeroDivisionError),
            store.transaction(TRANSCRIPT, now=kit.now) as txn,
        ):
            txn.set_cursors({"a": 9, "new": 1})
            txn.put_messages("s", [kit.message(3, "x", "s")], "app")
            1 / 0  # noqa: B018 - so the change comes to nothing
        assert (store.cursors()["a"], "new" in store.cursors()) == (5, False)
        assert store.ledger_noted() == store.ledger_seq() == 3


def test_a_dropped_cursor_is_not_set_after_all(kit):
    with kit.change() as txn:
        txn.set_cursors({"a": 1, "b": 2})
        txn.delete_cursors(["a"])
    with written(kit) as store:
        assert store.cursors() == {"b": 2}


def test_what_was_cut_off_is_found_though_more_was_written(kit):
    store_turn(kit, [1, 2, 3])
    with written(kit) as store:
        store.execute("DELETE FROM mutation WHERE seq > 2")
        assert store.verify_ledger() == 3
        upsert_all(store.execute, "cursor", {ledger.NOTE: 2})
        assert store.verify_ledger() is None


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (["a", "b"], ["a", "b"]),
        (["a\0", "b"], ["a\u2400", "b"]),
        (["\ud83d", "\ude00"], ["\ufffd", "\ufffd"]),
        (["a", None], ["a", None]),
        (["\0", 1], ["\u2400", 1]),
        ([["\0"], ["b"]], [["\u2400"], ["b"]]),
        (("a", "b"), ["a", "b"]),
        ([1, 2], [1, 2]),
        ([], []),
    ],
)
def test_lists_are_made_storable_item_by_item(value, stored):
    assert rows.storable(value) == stored


def slowly(text):
    """Say ``canonical`` once more, a character at a time."""
    unseen = lookalikes.UNSEEN
    shown = unseen.sub("", unicodedata.normalize("NFKC", unseen.sub("", text)))
    folded = unicodedata.normalize("NFKC", shown.casefold()).translate(lookalikes._QUOTES)
    kept = "".join(c for c in folded if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(kept.split()).strip(" .!?;:。！？\"'`")


def test_the_quick_way_to_a_canonical_text_gives_the_same():
    for code in [*range(0x3100), *range(0xD7F0, 0xE010), *range(0xFB00, 0x10100), 0x1F600, 0xE0001]:
        char = chr(code)
        for text in (char, f"A{char}b", f"a {char} B", f"{char}{char} x."):
            assert lookalikes.canonical(text) == slowly(text), ascii(text)


def test_a_store_is_written_as_before_by_what_asks_for_nothing(kit):
    with written(kit) as store:
        with store.transaction(TRANSCRIPT, now=kit.now):
            pass
        assert store.ledger_seq() == store.ledger_noted() == 0

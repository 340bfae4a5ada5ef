"""The ledger: whole, in order, without a word of what was stored."""

from __future__ import annotations

import shutil
import stat

import pytest

from hypatia_mem.errors import StoreError
from hypatia_mem.model import Entry, Statement
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.ledger import load_key

FORGED = (
    'INSERT INTO mutation SELECT 99, "at", op_id, actor, channel, verb, target, before_digest,'
    " after_digest, reason, hash, 'forged' FROM mutation WHERE seq = 6"
)


@pytest.fixture
def written(kit):
    with kit.change() as txn:
        for number in range(3):
            txn.put_entry(Entry(f"e{number}", f"text {number}", scopes=("",)))
        txn.put_statement(Statement("e0", "knows", "e1", scopes=("",)))
    with kit.change(kit.agent) as txn:
        txn.update_entry("e1", content="changed")
        txn.delete_entry("e2")
    return kit


def test_a_ledger_that_nobody_touched_verifies(written):
    with written.open() as store:
        assert store.verify_ledger() is None
        assert [row["seq"] for row in store.ledger()] == [6, 5, 4, 3, 2, 1]
        assert {row["channel"] for row in store.ledger(limit=2)} == {"cli-agent"}
        assert [row["verb"] for row in store.ledger(target="e1")] == [
            "update knowledge",
            "create knowledge",
        ]
        assert store.ledger(target="e") == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("UPDATE mutation SET verb = 'create rule' WHERE seq = 3", 3),
        ("UPDATE mutation SET reason = 'x' WHERE seq = 1", 1),
        ('UPDATE mutation SET "at" = "at" + INTERVAL 1 SECOND WHERE seq = 6', 6),
        ("UPDATE mutation SET hash = repeat('0', 64) WHERE seq = 2", 2),
        ("DELETE FROM mutation WHERE seq = 3", 4),
        ("DELETE FROM mutation WHERE seq = 1", 2),
        ("DELETE FROM mutation WHERE seq > 4", 5),
        ("DELETE FROM mutation", 1),
        (FORGED, 99),
        (FORGED.replace("99", "7"), 7),
    ],
)
def test_every_way_of_changing_it_is_found(written, how, found):
    with open_store(written.home, write=True) as store:
        store.run(how)
    with written.open() as store:
        assert store.verify_ledger() == found


def test_each_write_has_a_row_and_reads_have_none(written):
    with written.open() as store:
        before = store.ledger_seq()
        store.rules(["app"])
    with written.change() as txn:
        assert txn.update_entry("e1", content="changed").verb == "unchanged"
    with written.open() as store:
        assert store.ledger_seq() == before


def test_no_word_of_the_contents_nor_a_rules_name_is_in_it(kit):
    word = "xylophone"
    with kit.change() as txn:
        txn.put_entry(kit.rule(f"never use a {word}", f"rule:{word}", tags=(word,)))
        txn.put_entry(Entry(f"about {word}", word, kind="message", scopes=("",)))
        txn.put_entry(Entry(f"more {word}", word, kind=word, scopes=("",)))
        txn.put_statement(Statement(f"rule:{word}", word, word, content=word, scopes=("",)))
        txn.put_messages("s-1", [kit.message(1, word)], "app")
        txn.amend_message("s-1", 1, text=word * 2)
        txn.put_summary("s-1", word, "title", "app")
        txn.update_entry(f"rule:{word}", content=f"{word}!")
        txn.delete_entry(f"rule:{word}", tombstone=True)
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule(word, f"rule:{word}")).verb == "refused"
    with kit.open() as store:
        said = store.run("SELECT * FROM mutation")
        assert len(said) >= 9
        assert word not in repr(said).casefold()
        assert "msg-s-1-1" in {row["target"] for row in said}


def test_the_key_is_the_owners_and_stays(home):
    first = load_key(home)
    assert load_key(home) == first
    assert stat.S_IMODE((home / "key").stat().st_mode) == 0o600
    for damaged in (b"short", b"", None):  # put back from its copy
        (home / "key").unlink() if damaged is None else (home / "key").write_bytes(damaged)
        assert load_key(home) == first
        assert (home / "key").read_bytes() == first.secret
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home / "keys").iterdir()} == {0o600}
    shutil.rmtree(home / "keys")
    (home / "key").write_bytes(b"short")
    with pytest.raises(StoreError, match="damaged"):
        load_key(home)

"""The note beside the store of where its ledger ended, and what only that can show."""

from __future__ import annotations

import json
import shutil
import stat

import pytest

from hypatia_mem.config import Settings
from hypatia_mem.memory import backup, ledger, tombstones
from hypatia_mem.memory.intake.house import keep_house
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import chain, seal, snapshot
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.ledger import GENESIS, chain_hash
from tests.store.conftest import NOW, PERSON


@pytest.fixture
def written(kit):
    for number in range(5):
        with kit.change() as txn:
            txn.put_entry(kit.rule(f"never touch file {number}"))
    return kit


def walked(kit):
    with kit.open() as store:
        found = chain.walk(store)
    return found.broken, found.seq, found.sealed


def capture(kit, number=1):
    with kit.change(Author(Channel.TRANSCRIPT)) as txn:
        txn.put_messages("s-1", [kit.message(number)], "app")


def forge(kit, *statements):
    """Write past the program, and make every hash anew, as somebody can who has the file."""
    with open_store(kit.home, write=True) as store:
        for one in statements:
            store.execute(one)
        previous, last = GENESIS, 0
        for row in store.run("SELECT * FROM mutation ORDER BY seq"):
            said = chain_hash(previous, row)
            store.execute(
                "UPDATE mutation SET prev_hash = ?, hash = ? WHERE seq = ?",
                [previous, said, row["seq"]],
            )
            previous, last = said, row["seq"]
        store.execute("UPDATE cursor SET position = ? WHERE key = 'ledger'", [last])


def cut(kit, after):
    """Take out the ledger's end with all that the store has of it."""
    forge(
        kit,
        *(f"DELETE FROM {table} WHERE seq > {after}" for table in ("mutation", "entry", "touched")),
    )


def test_a_change_by_a_person_leaves_a_note_that_bears_the_ledger_out(written):
    found = seal.read(written.home)
    assert walked(written) == ("", None, found.seq)
    assert found.seq == 5
    assert stat.S_IMODE((written.home / seal.FILE).stat().st_mode) == 0o600
    assert "touch" not in (written.home / seal.FILE).read_text()
    assert "to its end" in ledger.check(written.home).sentence


def test_captured_turns_pay_nothing_for_it_and_the_worker_notes_them_at_its_end(written):
    before = (written.home / seal.FILE).read_bytes()
    capture(written)
    assert (written.home / seal.FILE).read_bytes() == before
    assert walked(written) == ("", None, 5), "a note that is behind is no break"
    assert "to row 5" in ledger.check(written.home).sentence
    keep_house(written.home, Settings(), now=NOW, beat=lambda: None)
    assert walked(written) == ("", None, 6)


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (lambda kit: cut(kit, 3), ("rewound", 4, 5)),
        (
            lambda kit: forge(kit, "UPDATE mutation SET actor = 'nobody' WHERE seq = 2"),
            ("rewritten", 5, 5),
        ),
    ],
    ids=["the end cut off", "a row changed and all hashes made anew"],
)
def test_what_the_chain_alone_cannot_show_is_found_and_stays_found(written, harm, found):
    harm(written)
    broken, seq, _ = walked(written)
    assert (broken, seq) == found[:2]
    assert not ledger.check(written.home).whole
    with written.open() as store:
        assert store.verify_ledger() is None, "the control: the chain by itself is whole"
    for number in range(9):  # what is written since does not cover it up
        with written.change() as txn:
            txn.put_entry(written.rule(f"always read file {number}"))
    assert walked(written)[0] == "rewritten"
    (written.home / seal.FILE).unlink()  # whoever goes on, knowing it, says so
    with written.change() as txn:
        txn.put_entry(written.rule("always read the last one"))
    assert walked(written)[0] == ""


def test_an_older_copy_that_is_put_in_its_place_is_found(written, tmp_path):
    shutil.copy(written.home / FILE, tmp_path / FILE)
    with written.change() as txn:
        txn.put_entry(written.rule("never touch the last file"))
    shutil.copy(tmp_path / FILE, written.home / FILE)
    assert walked(written)[:2] == ("rewound", 6)
    assert "an older copy" in ledger.check(written.home).sentence


def test_a_note_that_was_changed_is_found(written):
    said = json.loads((written.home / seal.FILE).read_text())
    (written.home / seal.FILE).write_text(json.dumps({**said, "seq": 3}))
    assert walked(written)[:2] == ("seal", 3)


@pytest.mark.parametrize(
    "text", [None, "", "{", "[1]", '{"seq": 1}', '{"seq": "x"}', '{"seq": Infinity}']
)
def test_without_a_note_it_is_said_and_the_next_change_makes_one(written, text):
    (written.home / seal.FILE).unlink()
    if text is not None:
        (written.home / seal.FILE).write_text(text)
    assert walked(written) == ("", None, None)
    assert "Nothing beside the store" in ledger.check(written.home).sentence
    with written.change() as txn:
        txn.put_entry(written.rule("never touch the last file"))
    assert walked(written) == ("", None, 6)


def test_a_note_under_an_earlier_key_holds_and_under_a_lost_one_says_nothing(written):
    before = seal.read(written.home).key_id
    kept = (written.home / seal.FILE).read_bytes()
    tombstones.rotate_key(written.home, author=PERSON, now=NOW)
    assert seal.read(written.home).key_id != before
    (written.home / seal.FILE).write_bytes(kept)
    assert walked(written) == ("", None, 5)
    forge(written, "UPDATE mutation SET actor = 'nobody' WHERE seq = 2")
    assert walked(written)[0] == "rewritten"
    for copy in (written.home / "keys").glob(f"*{before}"):
        copy.unlink()
    assert walked(written) == ("", None, None)


def test_a_restored_backup_and_a_recovered_store_begin_with_no_note(written):
    made = backup.create(written.home, now=NOW, reason="")
    with written.change() as txn:
        txn.put_entry(written.rule("never touch the last file"))
    backup.restore(written.home, made, author=PERSON, now=NOW)
    assert walked(written)[0] == ""
    snapshot.make_snapshot(written.home)
    with written.change() as txn:
        txn.put_entry(written.rule("never touch the very last file"))
    (written.home / FILE).write_bytes(b"nothing of a store")
    snapshot.restore(written.home)
    assert walked(written)[0] == ""


def test_without_room_for_a_note_the_change_is_made(written, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(seal, "_write", full)
    with written.change() as txn:
        assert txn.put_entry(written.rule("never touch the last file")).verb == "created"
    assert walked(written) == ("", None, 5)

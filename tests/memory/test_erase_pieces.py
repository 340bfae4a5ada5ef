"""What an erasing looks for, and what it takes for a rest of it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.errors import StoreError
from hypatia_mem.memory import history, propagation
from hypatia_mem.memory.erasing import job, places
from hypatia_mem.memory.erasing.pieces import Pieces, pieces_of
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store import erasing
from hypatia_mem.store.connection import open_store

RULE = "never deploy the zanzibarquux service on a friday evening"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a plain sentence here", b"... A Plain Sentence HERE ..."),
        ('say "quoted words" aloud', rb'{"x": "say \"quoted words\" aloud"}'),
        ("größer als gedacht", json.dumps({"x": "größer als gedacht"}).encode()),
        ("größer als gedacht", "größer als gedacht".encode()),
        ('twice "nested" words', json.dumps({"y": json.dumps('twice "nested" words')}).encode()),
        ("x" * 30 + "y" * 30 + "z" * 30, b"cut: " + b"y" * 30 + b"z" * 30),
    ],
)
def test_a_text_is_found_in_whatever_was_made_of_it(text: str, written: bytes) -> None:
    pieces = Pieces(pieces_of([text]))
    assert pieces.in_bytes(written)
    assert not pieces.in_bytes(b"something else entirely")


def test_a_piece_over_the_end_of_a_chunk_is_found(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"." * ((1 << 22) - 9) + RULE.encode() + b"." * 100)
    assert Pieces(pieces_of([RULE])).in_file(path)


def test_a_job_that_cannot_be_read_is_not_taken_for_none(home: Path) -> None:
    (home / places.JOB).write_text("{half")
    with pytest.raises(StoreError, match="cannot be read"):
        job.read_job(home)


def test_what_an_undoing_keeps_of_things_that_stay_is_no_residue(home: Path) -> None:
    """Two sessions ran the same tests; one was deleted and taken back, the other is erased."""
    at = datetime(2026, 11, 30, 9)
    author = Author(Channel.CLI_PERSON, "person")
    shared = (
        {"type": "tool_result", "id": "t1", "text": "3 tests of the marmalade parser passed"},
    )
    for session in ("s-1", "s-2"):
        said = Message(
            session, f"{session}-1", "assistant", f"Done in {session}.", at, parts=shared
        )
        with open_store(home, write=True) as store, store.transaction(author, now=at) as txn:
            txn.put_session(Session(session, project="app", updated_at=at, ended_at=at))
            txn.put_messages(session, [said], "app")
    propagation.delete(home, ["s-1"], scopes=["app"], author=author, now=at + timedelta(hours=3))
    piece = "3 tests of the marmalade parser passed"
    with open_store(home, write=False) as store:
        assert erasing.residue(store, [piece]) == {"image": 1}, "of what is gone it is one"
    history.undo(home, None, scopes=["app"], author=author, now=at + timedelta(hours=4))
    with open_store(home, write=False) as store:
        assert erasing.residue(store, [piece]) == {}

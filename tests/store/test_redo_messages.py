"""A message whose deletion is done again stays known: its line adds nothing when it is read again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.memory import history, propagation
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON)
HOOK = Author(Channel.HOOK)
TALK = [
    Message("s-1", f"line-{n}", "user", f"turn {n}", NOW, parts=({"type": "text", "text": "x"},))
    for n in range(3)
]


def say(home):
    with open_store(home, write=True) as store, store.transaction(HOOK, now=NOW) as txn:
        txn.put_session(Session("s-1", project="app", ended_at=NOW))
        return txn.put_messages("s-1", TALK, "app")


def rows(home):
    with open_store(home, write=False) as store:
        found = store.run("SELECT turn, uuid, parts, text_digest FROM message ORDER BY turn")
        return found, store.entry("msg-s-1-2") is not None


@pytest.mark.deep
def test_deleted_undone_and_deleted_again(home):
    say(home)
    begun = rows(home)
    how = {"scopes": None, "author": PERSON}
    done = propagation.delete(home, ["msg-s-1-2"], now=NOW + timedelta(seconds=1), **how)
    deleted = rows(home)
    assert (len(deleted[0]), deleted[1]) == (3, False)

    for turn in range(2):
        at = NOW + timedelta(seconds=2 + 2 * turn)
        history.undo(home, done.op_id, author=PERSON, now=at)
        assert rows(home) == begun
        history.redo(home, done.op_id, author=PERSON, now=at + timedelta(seconds=1))
        assert rows(home) == deleted

    assert say(home) == [0, 0, 0]
    assert rows(home) == deleted

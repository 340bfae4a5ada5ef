"""Deleting where a talk branches, out of its middle, and with a tool's call its result."""

from __future__ import annotations

from datetime import timedelta

from hypatia_mem.memory import history, propagation
from hypatia_mem.model import Message, Session
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, WORKER

LONG_AGO = NOW - timedelta(days=2)


def _delete(home, *names):
    return propagation.delete(home, names, scopes=("app", ""), author=PERSON, now=NOW)


def _wound_back(home):
    """A session that was wound back to its second turn: 3-4 are one branch, 5-6 the other."""
    parents = ["", "u1", "u2", "u3", "u2", "u5"]
    messages = [
        Message(
            "s-9", f"u{n}", "user" if n % 2 else "assistant", f"text {n}",
            NOW - timedelta(days=2) + timedelta(seconds=n), parent_uuid=parents[n - 1],
        )
        for n in range(1, 7)
    ]  # fmt: skip
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s-9", project="app"))
        txn.put_messages("s-9", messages, "app")


def test_a_branch_is_what_follows_from_a_message(home):
    """The other branch of a session that was wound back stays."""
    _wound_back(home)
    done = propagation.delete_onward(
        home, "msg-s-9-3", branch=True, scopes=("app",), author=PERSON, now=NOW
    )
    assert [one.name for one in done.targets] == ["msg-s-9-3", "msg-s-9-4"]
    with open_store(home, write=False) as store:
        assert [one.text for one in store.messages("s-9") if one.text] == [
            "text 1", "text 2", "text 5", "text 6",
        ]  # fmt: skip


def test_what_followed_a_deleted_message_follows_the_one_before(home):
    """Spliced out: no message names one that is not there."""
    _wound_back(home)
    done = _delete(home, "s-9:2,5")
    with open_store(home, write=False) as store:
        parents = {one.uuid: one.parent_uuid for one in store.messages("s-9") if one.text}
    assert parents == {"u1": "", "u3": "u1", "u4": "u3", "u6": "u1"}
    history.undo(home, done.op_id, author=PERSON, now=NOW)
    with open_store(home, write=False) as store:
        assert [one.parent_uuid for one in store.messages("s-9")] == [
            "",
            "u1",
            "u2",
            "u3",
            "u2",
            "u5",
        ]


def test_a_tool_call_and_its_result_go_together(home):
    """Also where a neighbour holds one of them; what has nothing to do with it stays."""
    call = {"type": "tool_use", "name": "Bash", "input": "ls", "id": "t1"}
    result = {"type": "tool_result", "id": "t1", "text": "secret listing", "length": 14}
    other = {"type": "tool_use", "name": "Read", "input": "x", "id": "t2"}
    parts = [(), (call,), (result, other)]
    messages = [
        Message(
            "s-8", f"v{n}", "assistant", f"text {n}", LONG_AGO + timedelta(seconds=n), parts=some
        )
        for n, some in enumerate(parts)
    ]
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session("s-8", project="app"))
        txn.put_messages("s-8", messages, "app")
    before = _said(home)
    done = _delete(home, "msg-s-8-2")
    with open_store(home, write=False) as store:
        left = [[part["id"] for part in one.parts] for one in store.messages("s-8")]
    assert left == [[], [], ["t2"]]
    history.undo(home, done.op_id, author=PERSON, now=NOW)
    assert _said(home) == before


def _said(home):
    with open_store(home, write=False) as store:
        return store.run("SELECT * FROM message ORDER BY ALL"), store.run(
            "SELECT name, content, tags, scopes, trust FROM entry ORDER BY ALL"
        )

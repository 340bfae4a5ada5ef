"""Rows that follow a withdrawn message or session: the message before it, tool calls, the session.

``withdrawing`` decides what goes; these are the small tables' parts of it. All of it can be undone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = ["branch", "delete_session", "reparent", "take_out_calls"]

_NEAR = 3  # turns: a response without text lends its tool calls to a neighbour, never further


def reparent(txn: EntryWrites, names: Sequence[str]) -> list[str]:
    """Let what followed deleted messages follow the message before them; return their names."""
    gone = {
        str(uuid): str(parent)
        for uuid, parent in txn.store.execute(
            "SELECT uuid, parent_uuid FROM message WHERE concat('msg-', session_id, '-', turn)"
            " IN (SELECT unnest(?::VARCHAR[]))",
            [list(names)],
        ).fetchall()
    }
    children = txn.store.run(
        """
        SELECT concat('msg-', session_id, '-', turn) AS name, uuid, parent_uuid FROM message
        WHERE parent_uuid IN (SELECT unnest(?::VARCHAR[]))
          AND name NOT IN (SELECT unnest(?::VARCHAR[])) ORDER BY session_id, turn
        """,
        [list(gone), list(names)],
    )
    for row in children:
        parent = _ancestor(gone, row["parent_uuid"])
        seq = txn._note("amend", row["name"], "message", index=False)
        was, became = {"parent_uuid": row["parent_uuid"]}, {"parent_uuid": parent}
        txn._keep_image(seq, "message", row["name"], was, became)
        txn.store.execute(
            "UPDATE message SET parent_uuid = ? WHERE uuid = ?", [parent, row["uuid"]]
        )
    return [row["name"] for row in children]


def take_out_calls(txn: EntryWrites, names: Sequence[str]) -> list[str]:
    """Take the calls and results of deleted messages' tools out of their neighbours.

    A call and its result stand in one message as a rule; where they do not, neither stays without
    the other. Returns the neighbours' names. Asked before the messages' own parts are emptied.
    """
    found = txn.store.run(
        "SELECT session_id, turn, parts FROM message WHERE concat('msg-', session_id, '-', turn)"
        " IN (SELECT unnest(?::VARCHAR[])) AND contains(parts, '\"tool_')",
        [list(names)],
    )
    changed: list[str] = []
    for row in found:
        calls = _calls(json.loads(row["parts"]))
        for near in _neighbours(txn.store, row, names) if calls else ():
            parts = json.loads(near["parts"])
            left = [one for one in parts if not calls & _calls([one])]
            if len(left) < len(parts):
                _put_parts(txn, near, left)
                changed.append(near["name"])
    return list(dict.fromkeys(changed))


def delete_session(txn: EntryWrites, session_id: str) -> Outcome:
    """Take a session off the list; the rows of its messages stay, so that none is read again.

    Its entries are deleted before, by ``withdrawing.withdraw``.
    """
    found = txn.store.run("DELETE FROM session WHERE id = ? RETURNING *", [session_id])
    seq = txn._note("delete", session_id, "session", index=False)
    for row in found:
        txn._keep_image(seq, "session", session_id, row, None)
    return Outcome("deleted", session_id)


def branch(store: Store, session_id: str, turn: int) -> list[int]:
    """Return a message's turn and those of all that follows from it, in order.

    A message follows from the one its line names as the one before, where that is stored; else
    from the message before it in the session. So a session that was never wound back is one branch.
    """
    found = store.execute(
        "SELECT turn, uuid, parent_uuid, agent_id FROM message WHERE session_id = ? ORDER BY turn",
        [session_id],
    ).fetchall()
    at = {str(uuid): int(number) for number, uuid, _, _ in found}
    inside: set[int] = set()
    last: dict[str, int] = {}  # by agent
    for number, _, parent, agent in found:
        before = at.get(str(parent), last.get(str(agent), 0))
        if number == turn or before in inside:
            inside.add(int(number))
        last[str(agent)] = int(number)
    return sorted(inside)


# ----------------------------------------------------------------------------------------------


def _ancestor(gone: Mapping[str, str], uuid: str) -> str:
    seen: set[str] = set()
    while uuid in gone and uuid not in seen:
        seen.add(uuid)
        uuid = gone[uuid]
    return "" if uuid in gone else uuid


def _calls(parts: Sequence[Mapping[str, Any]]) -> set[str]:
    return {
        str(one["id"])
        for one in parts
        if str(one.get("type")).startswith("tool_") and one.get("id")
    }


def _neighbours(
    store: Store, row: Mapping[str, Any], without: Sequence[str]
) -> list[dict[str, Any]]:
    return store.run(
        """
        SELECT concat('msg-', session_id, '-', turn) AS name, session_id, turn, parts FROM message
        WHERE session_id = ? AND turn BETWEEN ? AND ? AND contains(parts, '"tool_')
          AND name NOT IN (SELECT unnest(?::VARCHAR[]))
        """,
        [row["session_id"], row["turn"] - _NEAR, row["turn"] + _NEAR, list(without)],
    )


def _put_parts(txn: EntryWrites, row: Mapping[str, Any], left: Sequence[Any]) -> None:
    parts = json.dumps(list(left), ensure_ascii=False)
    seq = txn._note("amend", row["name"], "message", index=False)
    txn._keep_image(seq, "message", row["name"], {"parts": row["parts"]}, {"parts": parts})
    txn.store.execute(
        "UPDATE message SET parts = ? WHERE session_id = ? AND turn = ?",
        [parts, row["session_id"], row["turn"]],
    )

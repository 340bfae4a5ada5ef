"""How things stand where a session's turns are stored next: asked with one statement.

A statement costs the same whether it asks one small thing or five. So what the gateway alone wants
to know, where the ledger ends and what is forgotten, is asked along with what any program that
stores a turn has to ask: its number, and whether the session has an entry to link it to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["Standing", "look"]

_FEW = 1_000  # tombstones that are read whole; of more, those are asked for that may be met
_TURN = "SELECT 0, coalesce(max(turn), 0)::BIGINT, '' FROM message WHERE session_id = $1"
_ENTRY = " UNION ALL SELECT 1, 0, name FROM entry WHERE name = $2"
_END = " UNION ALL SELECT 2, seq, hash FROM mutation WHERE seq >= $3"
_GRAVES = " UNION ALL SELECT 3, 0, digest || ' ' || scope FROM tombstone"
_TAKEN_OUT = """
    UNION ALL
    SELECT 4, count(*), '' FROM image WHERE kind = 'message' AND became IS NULL
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The last turn of a session, and what else a turn that follows it depends on."""

    turn: int
    has_entry: bool  # the session, so that its messages are linked to it
    end: tuple[int, str] | None  # of the ledger; None where that is known, or was not found
    graves: tuple[tuple[str, str], ...] | None  # digest and scope of all; None for many
    is_any_taken_out: bool  # a message, by an undoing: its name may come a second time


def look(store: Store, session_id: str, *, asks_end: bool) -> Standing:
    """Read how things stand in a session; ``asks_end``: where the ledger ends as well."""
    asked, params = _TURN + _ENTRY, [session_id, f"session-{session_id}"]
    least = store.size_of("mutation") if asks_end else None
    if least is not None:
        asked += _END
    buried = store.size_of("tombstone")
    few = buried is not None and buried <= _FEW
    if few and buried:
        asked += _GRAVES
    if store.may_hold("image"):
        asked += _TAKEN_OUT
    found = store.execute(asked, [*params, *([] if least is None else [least])]).fetchall()
    said: list[list[tuple[int, str]]] = [[] for _ in range(5)]
    for kind, number, text in found:
        said[kind].append((int(number), str(text)))
    return Standing(
        turn=said[0][0][0],
        has_entry=bool(said[1]),
        end=max(said[2], default=None),
        graves=tuple(_grave(text) for _, text in said[3]) if few else None,
        is_any_taken_out=bool(said[4]) and said[4][0][0] > 0,
    )


def _grave(text: str) -> tuple[str, str]:
    digest, _, scope = text.partition(" ")
    return digest, scope

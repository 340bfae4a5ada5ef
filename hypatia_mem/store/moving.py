"""Moving things to another scope: what stands on them goes along, or goes.

A derived thing whose sources all move is moved with them; one that would stand on what another
project cannot see is taken out, and what was condensed with it is owed a new summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry, Outcome
from hypatia_mem.store import sources, withdrawing
from hypatia_mem.store.sources import Derived
from hypatia_mem.store.versions import VERSIONS
from hypatia_mem.store.withdrawing import Withdrawn

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = ["Moved", "move", "note_refusal"]


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did: the entries named, those that went along, and what was taken out."""

    entries: tuple[Entry, ...] = ()
    along: tuple[Derived, ...] = ()
    gone: Withdrawn = field(default_factory=Withdrawn)
    statements: tuple[str, ...] = ()
    refused: Outcome | None = None


def move(
    txn: EntryWrites, names: Sequence[str], scope: str, *, sessions: Sequence[str] = ()
) -> Moved:
    """Put entries, and statements that name them, into one scope alone.

    ``sessions`` belong to the scope's project from then on. ``refused`` is set when something was
    forgotten there: then the caller has to give the transaction up.
    """
    entries = [one for one in txn.store.entries(names) if one.scopes != (scope,)]
    for one in entries:
        refused = txn._refusal(txn._value_digests(one), (scope,), one.name, one.kind)
        if refused is not None:
            return Moved(refused=refused)
    along, lost = _split(txn.store, [one.name for one in entries])
    gone = withdrawing.take_out(txn, lost, without=[one.name for one in entries])
    everything = [one.name for one in entries] + [one.name for one in along]
    triples = txn.store.triples_of(everything)
    _put_scope(txn, "entry", everything, scope)
    _put_scope(txn, "statement", triples, scope)
    for session_id in sessions:
        _put_session(txn, session_id, scope)
    return Moved(tuple(entries), tuple(along), gone, tuple(triples))


def note_refusal(txn: EntryWrites) -> None:
    """Note in the ledger that somebody asked for a move who may not."""
    txn._note("refuse", "", "entry", reason="authority", index=False)


def _split(store: Store, names: Sequence[str]) -> tuple[list[Derived], list[Derived]]:
    """Return what stands on these names and nothing else, and what stands on others too."""
    moving = set(names)
    along: list[Derived] = []
    lost: list[Derived] = []
    for one in reversed(sources.derived(store, names)):  # the lowest first
        if one.own or one.name in moving:
            continue
        if set(sources.sources(store, one.name)) <= moving:
            moving.add(one.name)
            along.append(one)
        else:
            lost.append(one)
    return along, lost


def _put_scope(txn: EntryWrites, table: str, keys: Sequence[str], scope: str) -> None:
    if not keys:
        return
    key = VERSIONS[table][1]
    noted = {name: txn._note("rescope", name, table) for name in keys}
    txn._retire(table, noted)
    more = ", version = version + 1, updated_at = $4" if table == "entry" else ""
    txn.store.execute(
        f"""
        UPDATE {table} SET scopes = [$1], seq = v.seq{more}
        FROM (SELECT unnest($2::VARCHAR[]) AS key, unnest($3::BIGINT[]) AS seq) AS v
        WHERE {table}.{key} = v.key
        """,  # noqa: S608 - our own names
        [scope, list(noted), list(noted.values()), *([txn.now] if more else [])],
    )


def _put_session(txn: EntryWrites, session_id: str, scope: str) -> None:
    found = txn.store.execute("SELECT project FROM session WHERE id = ?", [session_id]).fetchone()
    if found is None or found[0] == scope:
        return
    txn.store.execute("UPDATE session SET project = ? WHERE id = ?", [scope, session_id])
    seq = txn._note("update", session_id, "session", index=False)
    txn._keep_image(seq, "session", session_id, {"project": found[0]}, {"project": scope})

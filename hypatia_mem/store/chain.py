"""Walking the ledger's chain: the first row that is not what or where it was, and in which way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypatia_mem.store import ledger, seal

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["Walked", "walk"]


@dataclass(frozen=True, slots=True)
class Walked:
    """How many rows fit, the last hash, and the first break: its kind and its row."""

    rows: int
    head: str
    broken: str = ""  # gap | edit | insertion | truncation | addition | state | of ``seal``
    seq: int | None = None
    sealed: int | None = None  # up to which row a note beside the store bears it out


def walk(store: Store) -> Walked:
    """Walk from the first row to the last; stop at the first that does not fit."""
    previous, count = ledger.GENESIS, 0
    for row in store._ledger_rows():
        if row["seq"] != count + 1:
            return Walked(count, previous, "gap", count + 1)
        broken = _break(previous, row)
        if broken:
            return Walked(count, previous, broken, row["seq"])
        previous, count = row["hash"], count + 1
    return _end(store, count, previous)


def _break(previous: str, row: dict[str, Any]) -> str:
    """Say how a row does not fit behind the one before it; an edited one fits but says else."""
    if row["prev_hash"] != previous:
        return "insertion"
    return "" if ledger.chain_hash(previous, row) == row["hash"] else "edit"


def _end(store: Store, count: int, head: str) -> Walked:
    """Compare the end with what else the store knows of it: its own note, and its states."""
    noted = store.ledger_noted()
    if noted > count:
        return Walked(count, head, "truncation", count + 1)
    if noted < count:
        return Walked(count, head, "addition", noted + 1)
    found = store.execute(
        "SELECT min(seq) FROM (SELECT seq FROM entry UNION ALL SELECT seq FROM statement)"
        " WHERE seq > ?",
        [count],
    ).fetchone()
    if found is not None and found[0] is not None:
        return Walked(count, head, "state", int(found[0]))
    noted_beside = seal.read(store.home)
    if noted_beside is None or not seal.is_known(store.home, noted_beside):
        return Walked(count, head)
    broken = seal.disagrees(store, noted_beside)
    if broken == "rewound":
        return Walked(count, head, broken, count + 1)
    return Walked(count, head, broken, noted_beside.seq if broken else None, noted_beside.seq)

"""What a name was: every state of an entry or a statement, who wrote it, and what replaced it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Entry, Statement, Trust
from hypatia_mem.store import rows
from hypatia_mem.store.versions import VERSIONS
from hypatia_mem.store.writing import TABLES

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["State", "entry_states", "last_entry", "last_trust", "statement_states"]


@dataclass(frozen=True, slots=True)
class State:
    """One state of a name.

    ``number`` is an entry's version, and counts a statement's states. ``verb`` is what the ledger
    calls the change that wrote it, by ``actor`` through ``channel`` in the operation ``op_id``.
    ``replaced_at`` is None for what is there now; ``deleted`` tells that nothing replaced it, and
    ``deleted_by`` in which operation. ``row`` finds it again among the versions.
    ``reconstructed``: of before histories were kept whole; put together from what was kept then.
    """

    number: int
    value: Entry | Statement
    at: datetime
    verb: str
    actor: str
    channel: str
    op_id: str
    replaced_at: datetime | None
    deleted: bool
    deleted_by: str
    row: int | None
    reconstructed: bool = False
    deleter: tuple[str, str] = ("", "")  # actor and channel

    @property
    def withheld(self) -> bool:
        """Tell whether default reads left it out."""
        suppressed = isinstance(self.value, Entry) and self.value.suppressed
        return suppressed or self.value.trust in ("candidate", "rejected")


def entry_states(store: Store, name: str) -> list[State]:
    """Return the states of an entry, oldest first; none when the name was never there."""
    found = _states(store, "entry", name)
    return [_state(row, row["version"], rows.entry_of(row)) for row in found]


def last_entry(store: Store, name: str) -> Entry | None:
    """Return the last kept state of an entry that is not there any more, or None."""
    found = store.run(
        "SELECT * FROM version WHERE name = ? ORDER BY replaced_seq DESC LIMIT 1", [name]
    )
    return rows.entry_of(found[0]) if found else None


def last_trust(store: Store, triple: str) -> Trust | None:
    """Return how far a statement that is not there any more was believed, None if none was."""
    found = store.execute(
        "SELECT trust FROM statement_version WHERE triple = ? ORDER BY replaced_seq DESC LIMIT 1",
        [triple],
    ).fetchone()
    return None if found is None else Trust(found[0])


def statement_states(store: Store, triple: str) -> list[State]:
    """Return the states of a statement by its key, oldest first."""
    found = _states(store, "statement", triple)
    return [_state(row, place, rows.statement_of(row)) for place, row in enumerate(found, start=1)]


# ----------------------------------------------------------------------------------------------


def _states(store: Store, table: str, name: str) -> list[dict[str, Any]]:
    earlier, key = VERSIONS[table]
    columns = ", ".join(f'"{column}"' for column in TABLES[table])
    return store.run(
        f"""
        WITH state AS (
            SELECT {columns}, NULL AS replaced_seq, NULL AS replaced_at, NULL AS row_id
            FROM {table} WHERE {key} = $1
            UNION ALL
            SELECT {columns}, replaced_seq, replaced_at, rowid FROM {earlier} WHERE {key} = $1
        )
        SELECT state.*, wrote.verb AS said, wrote.actor AS who, wrote.channel AS door,
            wrote.op_id AS op, coalesce(wrote."at", state.recorded_at) AS wrote_at,
            starts_with(ended.verb, 'delete ') AS deleted, ended.op_id AS deleted_by,
            ended.actor AS ended_who, ended.channel AS ended_door,
            state.replaced_seq <= (
                SELECT coalesce(max(value::BIGINT), 0) FROM meta WHERE key = 'history_from'
            ) AS rebuilt
        FROM state
        LEFT JOIN mutation AS wrote ON wrote.seq = state.seq
        LEFT JOIN mutation AS ended ON ended.seq = state.replaced_seq
        ORDER BY state.seq, state.replaced_seq NULLS LAST
        """,  # noqa: S608 - our own names
        [rows.clean(name)],
    )


def _state(row: dict[str, Any], number: int, value: Entry | Statement) -> State:
    deleted = bool(row["deleted"])
    return State(
        number=number,
        value=value,
        at=row["wrote_at"],
        verb=str(row["said"] or "").partition(" ")[0],
        actor=row["who"] or "",
        channel=row["door"] or row["channel"],
        op_id=row["op"] or "",
        replaced_at=row["replaced_at"],
        deleted=deleted,
        deleted_by=row["deleted_by"] if deleted else "",
        row=row["row_id"],
        reconstructed=bool(row["rebuilt"]),
        deleter=(row["ended_who"] or "", row["ended_door"] or "") if deleted else ("", ""),
    )

"""Which schema a store is on, which steps wait, and what of its history was rebuilt. Read only.

Nothing is brought up to date by looking: ``open_store`` does that. The second step rebuilt what a
store of the first had kept less of (see ``migrations``): an earlier state was put together from the
words that were kept, its place in the ledger and the entry as it stood. Such states are those that
ended at or before ``history_from``; they are called reconstructed wherever a history is shown.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound
from hypatia_mem.store import migrations
from hypatia_mem.store.connection import FILE, attached, store_error
from hypatia_mem.store.lease import lease

if TYPE_CHECKING:
    import duckdb

__all__ = ["Schema", "look"]

_REBUILDS = migrations.MIGRATIONS[1][0]
# An entry that is gone cannot say what its earlier states lacked, so those went with this step.
_OLD = """
    SELECT count(*) FILTER (WHERE name IN (SELECT name FROM entry)),
        count(*) FILTER (WHERE name NOT IN (SELECT name FROM entry))
    FROM version
"""
_UNPLACED_OLD = """
    SELECT count(*) FROM (
        SELECT recorded_at FROM entry UNION ALL SELECT recorded_at FROM statement
    ) WHERE recorded_at NOT IN (SELECT "at" FROM mutation)
"""
_REBUILT = """
    SELECT count(*) FROM version WHERE replaced_seq <= (
        SELECT coalesce(max(value::BIGINT), 0) FROM meta WHERE key = 'history_from'
    )
"""
_UNPLACED = """
    SELECT count(*) FROM (
        SELECT seq FROM entry UNION ALL SELECT seq FROM statement
    ) WHERE seq = 0
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """The steps a store has and those it lacks, oldest first; and counts of what is not whole.

    ``reconstructed``: earlier states that were, or will be, rebuilt from the ledger. ``lost``:
    those that cannot be, which only a store before that step can say. ``unplaced``: entries and
    statements of which the ledger does not tell when they were written.
    """

    applied: tuple[str, ...]
    pending: tuple[str, ...]
    reconstructed: int
    lost: int
    unplaced: int

    @property
    def name(self) -> str:
        """Return the newest step it has, ``""`` when it has none."""
        return self.applied[-1] if self.applied else ""


def look(home: Path, *, deadline: float = 10.0) -> Schema:
    """Return what a home's store is; waits at most ``deadline`` seconds for the lease.

    Raises NotFound without a store, StoreTooNew, StoreError when it says nothing of its schema,
    StoreBusy, and StoreCorrupt.
    """
    import duckdb

    if not (home / FILE).exists():
        raise NotFound(
            f"there is no store in {home}",
            hint="The first one is made on the newest schema; type a prompt.",
        )
    try:
        with ExitStack() as held:
            held.enter_context(lease(home, write=False, deadline=deadline))
            return _seen(held.enter_context(attached(home / FILE, write=False)))
    except duckdb.Error as error:
        raise store_error(error, home) from error


def _seen(connection: duckdb.DuckDBPyConnection) -> Schema:
    known = migrations.check(connection)
    names = [name for name, _ in migrations.MIGRATIONS]
    lost = rebuilt = unplaced = 0
    if _REBUILDS in known:
        rebuilt, unplaced = _count(connection, _REBUILT)[0], _count(connection, _UNPLACED)[0]
    elif known:
        rebuilt, lost = _count(connection, _OLD)
        unplaced = _count(connection, _UNPLACED_OLD)[0]
    return Schema(
        tuple(name for name in names if name in known),
        tuple(name for name in names if name not in known),
        rebuilt,
        lost,
        unplaced,
    )


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    row = connection.execute(query).fetchone()
    return tuple(int(one) for one in row) if row else (0,)

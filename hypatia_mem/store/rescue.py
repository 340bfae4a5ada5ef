"""Taking out of a damaged store what nothing else holds.

Turns come again from the spool. What somebody wrote by hand after the last snapshot does not: it is
read out of the damaged file, which is possible wherever the damage is not in those very blocks
(each has a checksum: what can be read is what was written), and goes through the gateway like
everything else, in the name and through the door that it came in by.
"""

# ruff: noqa: S608 - the questions are put together from this file's own words
from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import HypatiaError
from hypatia_mem.model import Author, Channel, Outcome
from hypatia_mem.store import rows
from hypatia_mem.store.connection import attached, open_store

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction

__all__ = ["take_over"]

_BY_HAND = ("cli-person", "cli-agent", "import", "hook-prompt")
_FIELDS = (
    "content", "tags", "scopes", "synonyms", "figures", "format", "kind", "trust", "pinned",
    "suppressed", "valid_from", "valid_to", "priority", "activation",
)  # fmt: skip
_OWN_KINDS = "kind NOT IN ('message', 'session', 'summary')"


def take_over(home: Path, damaged: Path, *, since: int) -> int:
    """Store what was written by hand after ledger row ``since``; return how much that was.

    Nothing that was forgotten comes back by this, and what cannot be read is left where it is.
    """
    entries = _later(damaged, "entry", "name", _OWN_KINDS, since)
    statements = _later(damaged, "statement", "triple", "true", since)
    deleted = _read(
        damaged,
        f"""
        SELECT DISTINCT name, 'worker' AS channel, true AS deleted FROM version
        WHERE replaced_seq > $1 AND list_contains($2::VARCHAR[], channel) AND {_OWN_KINDS}
          AND name NOT IN (SELECT name FROM entry)
        """,
        since,
    )
    found = [*deleted, *entries, *statements]
    if not found:
        return 0
    done = 0
    now = datetime.now(UTC).replace(tzinfo=None)
    with open_store(home, write=True) as store:
        for channel, group in groupby(found, key=lambda row: str(row["channel"])):
            with store.transaction(Author(Channel(channel)), now=now) as txn:
                done += sum(_put(txn, row) for row in group)
    return done


def _put(txn: Transaction, row: dict[str, Any]) -> bool:
    try:
        return _done(txn, row).verb in ("created", "updated", "deleted")
    except HypatiaError:
        return False


def _done(txn: Transaction, row: dict[str, Any]) -> Outcome:
    if "name" not in row:
        return txn.put_statement(rows.statement_of(row))
    if row.get("deleted"):
        return txn.delete_entry(row["name"], "deleted before the damage")
    entry = rows.entry_of(row)
    if txn.entry(entry.name) is None:
        return txn.put_entry(entry)
    return txn.update_entry(entry.name, **{name: getattr(entry, name) for name in _FIELDS})


def _later(damaged: Path, table: str, key: str, more: str, since: int) -> list[dict[str, Any]]:
    """Return a table's later rows by hand, by channel and in their order.

    First by their keys alone: a row that is looked up by its key touches no other row's blocks.
    """
    keys = _read(
        damaged,
        f"""
        SELECT {key} AS key FROM {table}
        WHERE seq > $1 AND list_contains($2::VARCHAR[], channel) AND {more} ORDER BY channel, seq
        """,
        since,
    )
    sql = f"SELECT * FROM {table} WHERE {key} = $1"
    return _one_by_one(damaged, sql, [str(row["key"]) for row in keys])


def _one_by_one(damaged: Path, sql: str, keys: list[str]) -> list[dict[str, Any]]:
    """Return the rows of these keys; a damaged one ends the engine, not the rescue."""
    import duckdb

    found: list[dict[str, Any]] = []
    waiting = list(keys)
    for path in _readable(damaged):
        opened = True
        while waiting and opened:
            opened = False
            with (
                contextlib.suppress(OSError, duckdb.Error),
                attached(path, write=False) as connection,
            ):
                opened = True
                while waiting:
                    found += _fetched(connection.execute(sql, [waiting.pop(0)]))
        if path != damaged:
            path.unlink(missing_ok=True)
    return found


def _fetched(cursor: Any) -> list[dict[str, Any]]:
    names = [str(one[0]) for one in cursor.description or ()]
    return [dict(zip(names, one, strict=True)) for one in cursor.fetchall()]


def _read(damaged: Path, sql: str, since: int) -> list[dict[str, Any]]:
    """Return the rows of a question to the damaged file; none where it cannot be read.

    A log that cannot be read is left out: the file alone is what its last clean close left.
    """
    import duckdb

    if not damaged.exists():
        return []
    for path in _readable(damaged):
        try:
            with attached(path, write=False) as connection:
                return _fetched(connection.execute(sql, [since, list(_BY_HAND)]))
        except (OSError, duckdb.Error):
            continue
        finally:
            if path != damaged:
                path.unlink(missing_ok=True)
    return []


def _readable(damaged: Path) -> Iterable[Path]:
    """Yield the file, and a copy of it that has no log beside it."""
    import shutil

    yield damaged
    if any(damaged.parent.glob(damaged.name + ".*")):
        alone = damaged.with_name(".alone.duckdb")
        shutil.copyfile(damaged, alone)
        yield alone

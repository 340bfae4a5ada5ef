"""Bringing a store up to this program's schema where a person can see it, with a backup before.

Whoever opens an older store for writing brings it up too; here it is asked for, told, and kept as
it was in a backup made without touching it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.memory.backup import Backup
    from hypatia_mem.store.schema import Schema

__all__ = ["Migrated", "migrate"]


@dataclass(frozen=True, slots=True)
class Migrated:
    """What there was, what there is now (the same if nothing was done), and the backup of before.

    ``ran`` are the steps that were run, or with ``dry_run`` would be.
    """

    before: Schema
    after: Schema
    ran: tuple[str, ...]
    backup: Backup | None


def migrate(home: Path, *, now: datetime, dry_run: bool = False) -> Migrated:
    """Back the store up as it is and run the steps that it lacks; does nothing if it lacks none.

    Raises NotFound without a store, StoreTooNew for one of a newer program, StoreError for one
    without a note of its schema, and what a backup raises; the store is as it was then.
    """
    from hypatia_mem.memory import backup
    from hypatia_mem.store import schema
    from hypatia_mem.store.connection import open_store

    before = schema.look(home)
    if dry_run or not before.pending:
        return Migrated(before, before, before.pending, None)
    saved = None
    if before.applied:  # else there is no table in it yet
        reason = f"before migrating from {before.name}"
        saved = backup.create(home, now=now, reason=reason, as_it_is=True)
    with open_store(home, write=True, create=False):
        pass
    return Migrated(before, schema.look(home), before.pending, saved)

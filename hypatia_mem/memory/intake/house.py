"""What the worker does when nothing is left to read: a snapshot, and segments it makes needless."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import spool
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings

__all__ = ["keep_house"]

_LOG = logging.getLogger("hypatia_mem")


def keep_house(home: Path, settings: Settings, *, now: datetime, beat: Callable[[], None]) -> None:
    """Note where the ledger ends, make a snapshot when one is due, drop segments that it holds.

    ``beat`` is called between steps, so that a long one is not taken for a hung worker.
    """
    from hypatia_mem.store import seal, snapshot
    from hypatia_mem.store.connection import open_store

    newest = snapshot.newest_verified(home)
    with open_store(home, write=False) as store:
        seq, wanted = store.ledger_seq(), store.meta("snapshot_wanted")
        seal.keep(store)
    due = newest is None or now - newest.made_at >= timedelta(hours=settings.snapshot_every_hours)
    asked = newest is not None and wanted.isdigit() and int(wanted) > newest.seq
    if seq and (newest is None or newest.seq != seq) and (due or asked):
        newest = snapshot.make_snapshot(home)
        beat()
    if newest is None:
        return
    before = (now - timedelta(days=settings.spool_keep_days)).timestamp()
    gone: list[str] = []
    for segment in spool.segments(str(home)):
        held = newest.cursors.get(segment.id, 0) >= segment.size
        if held and Path(segment.path).stat().st_mtime < before and spool.remove_segment(segment):
            gone.append(segment.id)
    if gone:
        author = Author(Channel.WORKER)
        with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
            txn.delete_cursors(gone)
        _LOG.info("%d spool segments that a verified snapshot holds were removed", len(gone))

"""What a deletion or a move reaches, and doing it: everything that stands on a thing goes with it.

A person names things by name: an entry, a statement, a message, turns of a session, a session, a
summary. ``delete`` takes them and all that is derived from them in one transaction, so that it can
be undone as one, and says all of it by name; a dry run does the same and rolls it back, so what it
says is what would happen. What a summary lost besides its source is condensed anew afterwards.

A message that was deleted stays known by its transcript line and by a keyed digest of its words, so
it does not come back when the transcript is read or the spool is replayed.
"""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from hypatia_mem.model import Author, Channel

__all__ = ["sweep"]

_LOG = logging.getLogger("hypatia_mem")


def sweep(home: Path, *, now: datetime) -> tuple[str, ...]:
    """Take out what is derived and lacks a source, and all that stands on it; return the names.

    Nothing is opened for writing when there is none. Raises what the store raises.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.store import sources
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        if not sources.orphans(store):
            return ()
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=now) as txn,
    ):
        curate.leave_index(home, store, sources.orphans(store))
        gone = sources.drop_orphans(txn)
    names = tuple(one.name for one in gone.derived)
    if names:
        _LOG.warning("%d derived entries that lacked a source were taken out", len(names))
    return names

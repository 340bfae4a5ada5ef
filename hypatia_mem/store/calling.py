"""Entries that the words of a prompt call up: which there are, and out of the hook's tables.

In those tables an entry is known by a keyed digest of its name (``identity``), for what keeps a
session's turns outlives the entry and may not tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import keyed
from hypatia_mem.errors import StoreError
from hypatia_mem.model import Entry
from hypatia_mem.store import keys, rows

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["identity", "leave", "live", "withheld"]


def identity(key: keys.Key, name: str) -> str:
    """Return by what a table knows an entry."""
    return key.digest("called", rows.clean(name))[:24]


def leave(home: Path, names: Iterable[str]) -> None:
    """Take entries out of the hook's tables. Raises StoreError when that cannot be done."""
    if not keyed.is_used(str(home)):
        return
    known = keys.keyring(home)
    try:
        keyed.leave(str(home), {identity(key, name) for name in names for key in known})
    except OSError as error:
        raise StoreError(
            f"what a prompt may be told could not be taken out of {home / 'briefs'}"
            f" ({error.strerror}); nothing was changed",
            hint="Free some space or check the folder's permissions, then try again.",
        ) from error


def live(store: Store, scopes: Sequence[str] | None = None) -> list[Entry]:
    """Return the entries with keys that are not withheld, of these scopes (None: all).

    Those of the highest priority first, then a project's own, then the newest.
    """
    found = store.run(
        """
        SELECT * FROM live_entry
        WHERE activation <> '' AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1))
        ORDER BY priority DESC, list_contains(scopes, ''), created_at DESC, name
        """,
        [None if scopes is None else list(scopes)],
    )
    return [rows.entry_of(row) for row in found]


def withheld(store: Store, scopes: Sequence[str]) -> int:
    """Return how many entries of these scopes have keys and are withheld."""
    found = store.execute(
        "SELECT count(*) FROM withheld_entry WHERE activation <> ''"
        " AND list_has_any(scopes, ?::VARCHAR[])",
        [list(scopes)],
    ).fetchone()
    return int(found[0]) if found else 0

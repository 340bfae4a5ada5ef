"""What is derived follows the store: kept files, briefs, what prompts call up, the search index.

All of it can be made again at any time, so it is brought up to date after a change, never in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from hypatia_mem.memory import activation
from hypatia_mem.memory.cascade import drafts
from hypatia_mem.memory.compose import MAX_UNITS, render_briefs
from hypatia_mem.memory.extract import offering
from hypatia_mem.memory.sharing import archive

__all__ = ["derive"]


def derive(
    home: Path,
    *,
    scopes: Iterable[str] | None = None,
    limit: int = MAX_UNITS,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Bring everything derived up to what the store says; False when ``stop`` ended it early.

    ``scopes`` are those whose briefs are no longer true, None for all; ``limit`` is a brief's
    length in UTF-16 units. ``stop`` is asked between slices of the index, of which one is always
    done. Raises IndexUnavailable when another process writes the index, OSError, and what opening
    the store raises.
    """
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.indexing import catch_up, sync_slice
    from hypatia_mem.store.search import SearchIndex

    with ExitStack() as later, open_store(home, write=False) as store:
        archive.sweep(home, store)
        drafts.sweep(home, store)
        render_briefs(store, home, scopes=scopes, limit=limit)
        activation.render(store, home, scopes=scopes)
        talks = offering.read(store, home)
        behind = sync_slice(store, SearchIndex(home), later)
    offering.render(home, talks)
    if behind and stop():
        return False
    return not behind or catch_up(home, stop=stop)

"""Search in what was known at an earlier time, of which the search index holds only what stayed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.store.lookup import Filters, Hit

__all__ = ["CANDIDATES", "find_known"]

CANDIDATES = 2_000  # hits of today's index that are looked at, of each catalog


def find_known(
    home: Path,
    text: str,
    filters: Filters,
    *,
    known_at: datetime,
    names: Sequence[str],
    triples: Sequence[str],
    limit: int,
    offset: int = 0,
) -> list[Hit]:
    """Return the best matches of ``text`` among what was known at ``known_at``, best first.

    ``names`` and ``triples`` are what today's index finds: of what is as it was then, no more has
    to be looked at. All else that was known is read from the versions. What was forgotten since is
    in neither. The words of a hit, its scopes and its times are those that it had.
    """
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.indexing import known_documents
    from hypatia_mem.store.search import search_among

    with open_store(home, write=False) as store:
        documents = known_documents(
            store, known_at, names=names, triples=triples, scopes=filters.scopes
        )
    return search_among(documents, text, filters, limit=limit, offset=offset)

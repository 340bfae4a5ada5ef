"""Search in what was known at an earlier time, of which the search index holds only what stayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.store.lookup import Filters, Hit
    from hypatia_mem.store.search import Document

__all__ = ["CANDIDATES", "KnownStates", "changed_states", "corrected", "find_known"]

CANDIDATES = 2_000  # hits of today's index that are looked at, of each catalog


@dataclass(frozen=True, slots=True)
class KnownStates:
    """What changed since a time: the texts that were known then, and the names of all of it."""

    documents: list[Document]
    names: set[str]


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
    from hypatia_mem.store.keys import load_key
    from hypatia_mem.store.search import search_among

    with open_store(home, write=False) as store:
        documents = known_documents(
            store, known_at, names=names, triples=triples, scopes=filters.scopes
        )
    key = load_key(home) if filters.hidden else None
    return search_among(documents, text, filters, key=key, limit=limit, offset=offset)


def changed_states(home: Path, known_at: datetime) -> KnownStates:
    """Return what is not as it was known at a time, or may not be."""
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.indexing import changed_documents

    with open_store(home, write=False) as store:
        return KnownStates(*changed_documents(store, known_at, None))


def corrected(
    states: KnownStates, text: str, catalog: str, found: Sequence[tuple[str, float]]
) -> list[tuple[str, float]]:
    """Return the hits of a text at a time: today's where nothing changed, else those of then.

    Which hits there are is exact; the scores of the two kinds are of two indexes, and only nearly
    comparable.
    """
    from dataclasses import replace

    from hypatia_mem.store.lookup import Filters
    from hypatia_mem.store.search import search_among
    from hypatia_mem.store.terms import split_quoted

    words, phrases = split_quoted(text)
    filters = replace(Filters(catalog=catalog), exact=tuple(phrases))
    most = max(1, len(states.documents))
    then = search_among(states.documents, words, filters, limit=most)
    hits = [hit for hit in found if hit[0] not in states.names]
    hits += [(hit.name, hit.score) for hit in then]
    return sorted(hits, key=lambda hit: -hit[1])

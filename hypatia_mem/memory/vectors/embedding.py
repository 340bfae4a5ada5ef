"""What is near to a text: the model that says so, vectors for what has none yet, and the ranking.

Vectors are made by the worker after it has stored new turns, and by whoever asks before it has done
so. That takes the built-in model about a tenth of a millisecond for a sentence. Texts are read, and
vectors computed, without the store's lease; it is taken for each few hundred to be written.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hypatia_mem.errors import EmbeddingError, ModelUnavailable, StoreBusy, UsageError
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.vectors import Filters, Near, Pending, Query

__all__ = [
    "MODELS",
    "Backfilled",
    "Found",
    "Model",
    "backfill",
    "catch_up",
    "load_model",
    "model_of",
    "reembed",
    "similar",
    "similar_hits",
    "status",
]

MODELS = ("auto", "builtin", "wordllama", "off")
ASKING_SECONDS = 2.0  # how long a question may spend on vectors that are missing
READ = 8_000
WRITE = 250
_ALL = 1_000_000

_LOG = logging.getLogger("hypatia_mem")


class Model(Protocol):
    """What turns texts into vectors. ``model`` is its name, version and dimension."""

    model: str
    dimension: int
    threshold: float

    def documents(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Return the vectors of texts to store; None for one that has none."""
        ...

    def query(self, text: str) -> Query | None:
        """Return a text to look for; None for one that has no vector."""
        ...


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill did: vectors made, texts that got none of their own, texts that failed.

    Skipped is a text without a letter or digit, one that another has too, and one that changed
    meanwhile. ``remaining`` is how many still wait.
    """

    created: int = 0
    skipped: int = 0
    errors: int = 0
    remaining: int = 0

    @property
    def line(self) -> str:
        """Return the closing line of the published command."""
        return (
            f"Backfill complete: {self.created} vectors created, {self.skipped} skipped, "
            f"{self.errors} errors"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """One thing near to a text; ``distance`` is 0 for the same text, about 1 for a strange one.

    ``row`` is its row in the store.
    """

    catalog: str
    key: str
    distance: float
    row: Mapping[str, Any]


def load_model(name: str = "auto") -> Model:
    """Return a model by its setting: ``auto`` is the installed extra, else the built-in one.

    Raises ModelUnavailable when the extra is asked for and missing, EmbeddingError for ``off``.
    """
    from hypatia_mem.memory.vectors import wordvectors

    if name == "off":
        raise EmbeddingError(
            "vectors are switched off here",
            hint="Switch them on: hypatia-mem config set embedding_model auto",
        )
    if name not in MODELS:
        raise UsageError(f"there is no model {name[:40]!a}: the models are {', '.join(MODELS)}")
    if name == "auto":
        name = "wordllama" if wordvectors.is_installed() else "builtin"
    return _loaded(name)


def model_of(home: Path) -> Model:
    """Return the model that the settings of a home name; raises what ``load_model`` raises."""
    from hypatia_mem.config import load_settings

    return load_model(load_settings(home).embedding_model)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Model:
    if name == "wordllama":
        from hypatia_mem.memory.vectors.wordvectors import WordVectors

        return WordVectors()
    from hypatia_mem.memory.vectors.lexical import Lexical

    return Lexical()


def similar(
    home: Path,
    text: str,
    model: Model,
    *,
    catalogs: Sequence[str] = ("knowledge",),
    filters: Callable[[Store, str], Filters],
    threshold: float | None = None,
    limit: int = 100,
    offset: int = 0,
) -> tuple[list[Found], int]:
    """Return what is nearest to a text, best first, and how many things had no vector to compare.

    ``filters`` says for a catalog of the open store what may be ranked. ``threshold`` (of the
    score: 1 minus the distance) defaults to the model's own, below which texts have next to
    nothing in common.
    Raises EmbeddingError for a text without a letter or digit, and when another model's vectors
    would have to be ranked with this one's.
    """
    from hypatia_mem.store.vectors import rank, rows_of

    query = _asked(model, text)
    least = model.threshold if threshold is None else threshold
    found: list[tuple[str, Near]] = []
    with _ready(home, model) as (store, remaining):
        for catalog in catalogs:
            nearest = rank(
                store,
                query,
                catalog,
                filters=filters(store, catalog),
                threshold=least,
                limit=limit + offset,
            )
            found += [(catalog, near) for near in nearest]
        if len(catalogs) > 1:
            found.sort(key=lambda pair: -round(pair[1].score, 4))
        chosen = found[offset : offset + limit]
        rows = {
            catalog: rows_of(store, catalog, [near.key for one, near in chosen if one == catalog])
            for catalog in catalogs
        }
    return [
        Found(catalog, near.key, 1.0 - near.score, rows[catalog][near.key])
        for catalog, near in chosen
    ], remaining


def similar_hits(
    where: Path | Store, text: str, catalog: str, model: Model, *, limit: int = _ALL
) -> list[tuple[str, float]]:
    """Answer ``$similar``: (name or triple, score) of what is near enough, best first.

    ``where`` is the home, or a store that is open for reading already.
    """
    from hypatia_mem.store.vectors import rank

    query = _asked(model, text)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_ready(where, model))[0] if isinstance(where, Path) else where
        nearest = rank(store, query, catalog, threshold=model.threshold, limit=limit)
    return [(near.key, near.score) for near in nearest]


def backfill(
    home: Path,
    model: Model,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Backfilled:
    """Give everything that has no vector of this model one; killed anywhere, it is gone on with.

    ``progress`` is told how many of how many are done; ``stop`` is asked between chunks.
    """
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        if vectors.current(store, model.model):
            return Backfilled()
        total, seq = vectors.missing(store, model.model), store.ledger_seq()
        if not seq:  # nothing was ever stored: there may be no store at all, and none is made
            return Backfilled()
    created = wordless = errors = done = 0
    progress(0, total)
    for chunk in _chunks(home, model):
        made, failed = _vectors(model, chunk)
        done += len(chunk)
        created += _write(home, model, made) if made else 0
        wordless += len(chunk) - len(made) - failed
        errors += failed
        progress(min(done, total), total)
        if done < total and stop():
            seq = -1  # not the whole way
            break
    lacking = _finish(home, model, seq)
    skipped = done - created - errors
    return Backfilled(created, skipped, errors, max(0, lacking - wordless - errors))


def reembed(home: Path) -> None:
    """Throw every vector away, whatever model made it."""
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store, _changing(store):
        vectors.clear(store)


def status(home: Path, model: Model) -> dict[str, Any]:
    """Return the model, how many vectors it has, how many are missing, and those of others."""
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        have = vectors.counts(store)
        lacking = vectors.missing(store, model.model)
    return {
        "model": model.model,
        "dimension": model.dimension,
        "vectors": have.pop(model.model, 0),
        "missing": lacking,
        "other_models": have,
    }


def catch_up(home: Path, setting: str, *, stop: Callable[[], bool]) -> int:
    """Do the worker's part: vectors for what came in; returns how many are new.

    A missing extra is a line in the log: the worker has other things to do.
    """
    if setting == "off":
        return 0
    try:
        model = load_model(setting)
    except ModelUnavailable as error:
        _LOG.warning("no vectors were made: %s", error.message)
        return 0
    return backfill(home, model, stop=stop).created


# ----------------------------------------------------------------------------------------------


def _asked(model: Model, text: str) -> Query:
    query = model.query(text)
    if query is None:
        raise EmbeddingError("there is no letter and no digit in this text to compare")
    return query


@contextlib.contextmanager
def _ready(home: Path, model: Model) -> Iterator[tuple[Store, int]]:
    """Open the store when its vectors are made, and say how many are missing all the same."""
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        if vectors.current(store, model.model):
            yield store, 0
            return
    remaining = _prepare(home, model)
    with open_store(home, write=False) as store:
        yield store, remaining


def _prepare(home: Path, model: Model) -> int:
    """Make missing vectors for a moment; return how many are missing still.

    Raises EmbeddingError when so many are missing because another model made what is there.
    """
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    until = time.monotonic() + ASKING_SECONDS
    with contextlib.suppress(StoreBusy):
        if not backfill(home, model, stop=lambda: time.monotonic() > until).remaining:
            return 0
    with open_store(home, write=False) as store:
        remaining = vectors.missing(store, model.model)
        others = vectors.counts(store)
    others.pop(model.model, None)
    if remaining and others:
        raise EmbeddingError(
            f"{remaining} things here have vectors of {max(others, key=others.__getitem__)} and "
            f"none of {model.model}, and the two cannot be ranked together",
            hint="Make those that are missing: hypatia-mem backfill",
        )
    return remaining


def _chunks(home: Path, model: Model) -> Iterator[list[Pending]]:
    """Yield what has no vector, some hundred at a time; the lease is held to read thousands."""
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.vectors import GROUPS, pending

    for group in GROUPS:
        after = ""
        while True:
            with open_store(home, write=False) as store:
                found = pending(store, model.model, group, after=after, limit=READ)
            for start in range(0, len(found), WRITE):
                yield found[start : start + WRITE]
            if len(found) < READ:
                break
            after = found[-1].key


def _vectors(model: Model, chunk: Sequence[Pending]) -> tuple[list[tuple[Pending, list[int]]], int]:
    """Return the vectors of a chunk and how many texts failed; one that fails spoils no other."""
    try:
        made = model.documents([one.text for one in chunk])
    except Exception as error:  # noqa: BLE001 - a model of somebody else's may raise anything
        if len(chunk) == 1:
            _LOG.warning("a text got no vector (%s)", type(error).__name__)
            return [], 1
        halves = [_vectors(model, half) for half in (chunk[::2], chunk[1::2])]
        return [pair for made, _ in halves for pair in made], sum(failed for _, failed in halves)
    pairs = zip(chunk, made, strict=True)
    return [(one, vector) for one, vector in pairs if vector is not None], 0


def _write(home: Path, model: Model, made: Sequence[tuple[Pending, Sequence[int]]]) -> int:
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store, _changing(store):
        return vectors.put(store, model.model, model.dimension, made)


def _finish(home: Path, model: Model, seq: int) -> int:
    """Sweep; note that all is done if nothing changed since ``seq``. Return how many lack one.

    What reads everything is done while others may read too.
    """
    from hypatia_mem.store import vectors
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        lacking, stray = vectors.missing(store, model.model), vectors.stray(store)
        same = store.ledger_seq() == seq
    if stray or same:
        with open_store(home, write=True) as store, _changing(store):
            if stray:
                vectors.sweep(store)
            if store.ledger_seq() == seq:
                vectors.note_current(store, model.model)
    return lacking


@contextlib.contextmanager
def _changing(store: Store) -> Iterator[None]:
    """Change what is derived: nothing of it is a mutation, so no ledger row is written."""
    from datetime import UTC

    now = datetime.now(UTC).replace(tzinfo=None)
    with store.transaction(Author(Channel.WORKER), now=now):
        yield

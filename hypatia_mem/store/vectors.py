"""Vectors of entries and statements: a cache beside the graph, ranked by the engine itself.

A vector is stored under the digest of the text it was made of and the model that made it, so what
did not change is never computed twice, and vectors of two models never stand in one ranking. It
goes in the transaction in which its text is replaced, deleted or forgotten. Everything here can be
thrown away and is made again.

The text of an entry is its name, its other names and its content; of a message or a session its
content alone, for their names say nothing. A statement's text is its three parts and its content.
Statements that only tie things together have none.
"""
# ruff: noqa: S608 - the statements are put together from this file's own words

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import EmbeddingError

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "CATALOGS",
    "GROUPS",
    "MAX_TEXT",
    "Condition",
    "Filters",
    "Near",
    "Pending",
    "Query",
    "clear",
    "counts",
    "current",
    "drop",
    "missing",
    "note_current",
    "pending",
    "put",
    "rank",
    "rows_of",
    "stray",
    "sweep",
]

CATALOGS = ("knowledge", "statement")
MAX_TEXT = 8_000  # characters; a vector of more says less of each part
_ENTRY_TEXT = "concat_ws(chr(10), e.name, array_to_string(e.synonyms, chr(10)), e.content)"
_ENTRY_DIGEST = (
    "CASE WHEN e.kind IN ('message', 'session') THEN e.content_digest"
    f" ELSE sha256({_ENTRY_TEXT}) END"
)
_STATEMENT_TEXT = "concat_ws(chr(10), concat_ws(' ', e.subject, e.predicate, e.object), e.content)"
_STATEMENT_DIGEST = f"sha256({_STATEMENT_TEXT})"
_TELLING = (
    "e.predicate NOT IN ('belongTo', 'derivedFrom') AND NOT (e.predicate = 'is_a'"
    " AND e.object IN ('rule', 'taboo', 'memory', 'work-unit'))"
)


@dataclass(frozen=True, slots=True)
class _Catalog:
    table: str
    live: str
    key: str
    digest: str
    text: str
    condition: str
    kind: str
    tags: str


_PARTS = {
    "knowledge": _Catalog(
        "entry", "live_entry", "name", _ENTRY_DIGEST,
        "CASE WHEN e.kind = 'message' AND contains(e.content, '## Content' || chr(10))"
        " THEN substr(e.content, strpos(e.content, '## Content' || chr(10)) + 11)"
        f" WHEN e.kind IN ('message', 'session') THEN e.content ELSE {_ENTRY_TEXT} END",
        "true", "e.kind", "e.tags",
    ),
    "statement": _Catalog(
        "statement", "live_statement", "triple", _STATEMENT_DIGEST, _STATEMENT_TEXT,
        _TELLING, "'statement'", "[]::VARCHAR[]",
    ),
}  # fmt: skip


_NAMED = {"knowledge": ("name",), "statement": ("subject", "object")}
# In this order they get their vectors: what somebody wrote down on purpose before what was said.
_GROUPS = {"knowledge": "e.kind <> 'message'", "statement": "true", "message": "e.kind = 'message'"}
GROUPS = tuple(_GROUPS)


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled query; only the names or triples of its rows may be ranked."""

    sql: str
    params: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Filters:
    """What may be ranked at all; applied before anything is compared.

    ``scopes`` None is every scope. An entry needs all of ``tags`` and none of ``exclude_tags``.
    ``without`` names entries that whoever asks is not told, nor statements about them.
    """

    scopes: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    tags: Sequence[str] = ()
    exclude_tags: Sequence[str] = ()
    without: Sequence[str] = ()
    condition: Condition | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Query:
    """A text to look for, as a model sees it.

    ``own`` is the score that the same text would have if it were stored: others are measured by it.
    """

    model: str
    vector: tuple[float, ...]
    own: float = 1.0


@dataclass(frozen=True, slots=True)
class Near:
    """A ranked key; ``score`` is 1 for the same text, about 0 for texts with nothing in common."""

    key: str
    score: float


@dataclass(frozen=True, slots=True)
class Pending:
    """Something without a vector: its key, the digest to store it under, its text."""

    catalog: str
    key: str
    digest: str
    text: str


def missing(store: Store, model: str) -> int:
    """Return how many live things have no vector of this model."""
    total = 0
    for one in _PARTS.values():
        found = store.execute(f"SELECT count(*) FROM {_without(one)}", [model]).fetchone()
        total += int(found[0]) if found else 0
    return total


def pending(
    store: Store, model: str, group: str, *, after: str = "", limit: int = 1000
) -> list[Pending]:
    """Return live things of a group without a vector of this model, by key, behind ``after``."""
    catalog = "statement" if group == "statement" else "knowledge"
    one, narrowed = _PARTS[catalog], _GROUPS[group]
    found = store.execute(
        f"SELECT e.{one.key}, {one.digest}, left({one.text}, {MAX_TEXT})"
        f" FROM {_without(one)} AND {narrowed}"
        f" AND e.{one.key} > ? ORDER BY e.{one.key} LIMIT ?",
        [model, after, limit],
    ).fetchall()
    return [Pending(catalog, str(key), str(digest), str(text)) for key, digest, text in found]


def put(
    store: Store,
    model: str,
    dimension: int,
    made: Sequence[tuple[Pending, Sequence[float]]],
) -> int:
    """Store vectors, inside a transaction; return how many are new.

    What was changed, withheld or forgotten since its text was read gets none. Raises
    EmbeddingError for a vector of another dimension, without length, or not of numbers.
    """
    total = 0
    for catalog, one in _PARTS.items():
        mine = [(what, vector) for what, vector in made if what.catalog == catalog]
        values = list(
            {
                what.digest: {
                    "key": what.key,
                    "digest": what.digest,
                    "vector": _checked(vector, dimension),
                }
                for what, vector in mine
            }.values()
        )
        if not values:
            continue
        found = store.execute(
            f"""
            INSERT INTO embedding
            SELECT v.one.digest, $1, v.one.vector
            FROM (SELECT unnest(from_json($2::JSON, $3)) AS one) AS v
            JOIN {one.live} AS e ON e.{one.key} = v.one.key
            WHERE {one.digest} = v.one.digest AND NOT EXISTS (
                SELECT 1 FROM embedding AS old
                WHERE old.digest = v.one.digest AND old.model = $1
            )
            """,
            [
                model,
                json.dumps(values),
                json.dumps([{"key": "VARCHAR", "digest": "VARCHAR", "vector": ["FLOAT"]}]),
            ],
        ).fetchone()
        total += int(found[0]) if found else 0
    return total


def rank(
    store: Store,
    query: Query,
    catalog: str,
    *,
    filters: Filters | None = None,
    threshold: float | None = None,
    limit: int = 100,
    offset: int = 0,
) -> list[Near]:
    """Return what is nearest to a text, best first: only live things, and vectors of its model.

    Raises EmbeddingError when the stored vectors of that model are of another length.
    """
    vector = _checked(query.vector, len(query.vector))
    _refuse_other_dimension(store, query.model, len(vector))
    where, params = _where(catalog, filters or Filters())
    one = _PARTS[catalog]
    found = store.execute(
        f"""
        WITH allowed AS MATERIALIZED (
            SELECT e.{one.key} AS key, {one.digest} AS digest FROM {one.live} AS e WHERE {where}
        ), compared AS MATERIALIZED (
            SELECT digest, list_cosine_similarity(vector, ?::FLOAT[])::DOUBLE / ? AS score
            FROM embedding WHERE model = ? AND digest IN (SELECT digest FROM allowed)
        )
        SELECT key, least(score, 1.0) FROM allowed JOIN compared USING (digest)
        WHERE ?::DOUBLE IS NULL OR score >= ?
        ORDER BY round(least(score, 1.0), 4) DESC, score, key
        LIMIT ? OFFSET ?
        """,  # in two steps: a join of the two would first copy every vector
        [*params, vector, query.own, query.model, threshold, threshold, limit, offset],
    ).fetchall()
    return [Near(str(key), float(score)) for key, score in found]


def rows_of(store: Store, catalog: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the live rows of these keys."""
    one = _PARTS[catalog]
    found = store.run(
        f"SELECT * FROM {one.live} WHERE {one.key} IN (SELECT unnest(?::VARCHAR[]))", [list(keys)]
    )
    return {str(row[one.key]): row for row in found}


def counts(store: Store) -> dict[str, int]:
    """Return how many vectors there are of each model."""
    found = store.execute("SELECT model, count(*) FROM embedding GROUP BY model ORDER BY model")
    return {str(model): int(number) for model, number in found.fetchall()}


def current(store: Store, model: str) -> bool:
    """Tell whether everything had its vector at the ledger row that is the last one now."""
    return store.meta(_mark(model)) == str(store.ledger_seq())


def note_current(store: Store, model: str) -> None:
    """Note that everything has its vector now, inside a transaction."""
    store.execute("DELETE FROM meta WHERE key = ?", [_mark(model)])
    store.execute("INSERT INTO meta VALUES (?, ?)", [_mark(model), str(store.ledger_seq())])


def clear(store: Store) -> None:
    """Throw every vector away, of all models, inside a transaction."""
    store.execute("DELETE FROM embedding")
    store.execute("DELETE FROM meta WHERE starts_with(key, 'embedded:')")


def drop(store: Store, table: str, keys: Iterable[str]) -> None:
    """Drop the vectors of rows of ``entry`` or ``statement`` that are about to change or to go.

    Another message with the very same words loses its vector too; it is made again.
    """
    one = next(one for one in _PARTS.values() if one.table == table)
    store.execute(
        f"""
        DELETE FROM embedding WHERE digest IN (
            SELECT {one.digest} FROM {one.table} AS e
            WHERE e.{one.key} IN (SELECT unnest(?::VARCHAR[]))
        )
        """,
        [list(keys)],
    )


def stray(store: Store) -> int:
    """Return how many vectors there are whose text is in the store no more."""
    found = store.execute(f"SELECT count(*) FROM embedding WHERE {_strays()}").fetchone()
    return int(found[0]) if found else 0


def sweep(store: Store) -> int:
    """Drop every vector whose text is in the store no more; return how many."""
    found = store.execute(f"DELETE FROM embedding WHERE {_strays()}").fetchone()
    return int(found[0]) if found else 0


# ----------------------------------------------------------------------------------------------


def _strays() -> str:
    digests = " UNION ALL ".join(
        f"SELECT {one.digest} AS digest FROM {one.table} AS e" for one in _PARTS.values()
    )
    return f"digest NOT IN (SELECT digest FROM ({digests}))"


def _without(one: _Catalog) -> str:
    return (
        f"{one.live} AS e WHERE {one.condition} AND {one.digest} NOT IN"
        " (SELECT digest FROM embedding WHERE model = ?)"
    )


def _where(catalog: str, filters: Filters) -> tuple[str, list[Any]]:
    one = _PARTS[catalog]
    parts = [one.condition]
    params: list[Any] = []
    if filters.scopes is not None:
        parts.append("list_has_any(e.scopes, ?::VARCHAR[])")
        params.append(list(filters.scopes))
    if filters.kinds is not None:
        parts.append(f"list_contains(?::VARCHAR[], {one.kind})")
        params.append(list(filters.kinds))
    if filters.tags:
        parts.append(f"list_has_all({one.tags}, ?::VARCHAR[])")
        params.append(list(filters.tags))
    if filters.exclude_tags:
        parts.append(f"NOT list_has_any({one.tags}, ?::VARCHAR[])")
        params.append(list(filters.exclude_tags))
    for column in _NAMED[catalog] if filters.without else ():
        parts.append(f"e.{column} NOT IN (SELECT unnest(?::VARCHAR[]))")
        params.append(list(filters.without))
    if filters.condition is not None:
        chosen = filters.condition
        parts.append(f"e.{one.key} IN (SELECT {one.key} FROM ({chosen.sql}))")
        params += chosen.params
    return " AND ".join(f"({part})" for part in parts), params


def _refuse_other_dimension(store: Store, model: str, dimension: int) -> None:
    found = store.execute(
        "SELECT len(vector) FROM embedding WHERE model = ? AND len(vector) <> ? LIMIT 1",
        [model, dimension],
    ).fetchone()
    if found:
        raise EmbeddingError(
            f"vectors of {found[0]} and of {dimension} numbers cannot be ranked together"
            f" (model {model})",
            hint="Make them anew: hypatia-mem backfill --reembed",
        )


def _checked(vector: Sequence[float], dimension: int) -> list[float]:
    if len(vector) != dimension:
        raise EmbeddingError(
            f"a vector of {len(vector)} numbers came where the model has {dimension}"
        )
    if not all(map(math.isfinite, vector)):
        raise EmbeddingError("a vector holds something that is no number")
    if not any(vector):
        raise EmbeddingError("a vector without length is near to nothing and far from nothing")
    return list(vector)


def _mark(model: str) -> str:
    return f"embedded:{model}"

"""Running an expression from the command line: its scopes, its times, what answers ``$search``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.cli import context, values
from hypatia_mem.cli.searching import find_keys
from hypatia_mem.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from hypatia_mem.jse.nodes import Query
    from hypatia_mem.memory.known import KnownStates

__all__ = ["run_query", "stream_query"]

_FEW_HITS = 100
_ALL_HITS = 1_000_000
_STREAMED = 500  # rows of one read; each opens the store


def run_query(
    home: Path,
    expression: str,
    *,
    scope: list[str] | None = None,
    all_projects: bool = False,
    as_of: str | None = None,
    as_known_at: str | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of an expression in their published shape.

    An expression that names the field ``scopes`` in a condition says itself which scopes it reads;
    any other reads the current project's and the global one (I5). ``scope`` reads these alone in
    either case, ``all_projects`` adds nothing to the expression. What the session that asks is not
    told of its sibling branches is in no row. The times are as people write
    them and stand for the options of the same names.

    The search index is asked for few hits first and for more as long as the rows may be
    incomplete, so that filters always apply before the limit.

    Raises:
        ExpressionError: the expression is wrong.
        UsageError: a time is none, or stands in the expression too.
    """
    from hypatia_mem.jse.compiler import compile_query
    from hypatia_mem.jse.parser import parse
    from hypatia_mem.store import hiding
    from hypatia_mem.store.connection import open_store

    parsed = _at_times(parse(expression), as_of=as_of, as_known_at=as_known_at)
    scopes = context.scopes_for(scope, all_projects or (parsed.names_scopes and not scope))
    near = _Near(home)
    where = _searched(parsed, scopes)
    wanted = parsed.options.limit
    reach = _ALL_HITS if wanted is None else max(_FEW_HITS, 2 * (wanted + parsed.options.offset))
    then = _Then(home, parsed.options.as_known_at)
    hits = _Hits(home, min(reach, _ALL_HITS), where, then)
    # Asked before the store is opened: an index that has to be made first needs it for itself.
    compiled = compile_query(parsed, hits, near, scopes=scopes)
    if hits.cut and not compiled.monotone:
        hits = _Hits(home, _ALL_HITS, where, then)
        compile_query(parsed, hits, near, scopes=scopes)
    with open_store(home, write=False) as store:
        without = hiding.hidden_names(store, context.asker())

        def read(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
            return store.execute(sql, params).fetchall()

        while True:
            compiled = compile_query(parsed, hits, near, scopes=scopes, read=read, without=without)
            rows = store.run(compiled.sql, list(compiled.params))
            if hits.all or (wanted is not None and len(rows) >= wanted):
                return [compiled.shape(row) for row in rows]
            hits = _Hits(home, hits.reach * 10, where, then)


def stream_query(
    home: Path,
    expression: str,
    *,
    scope: list[str] | None = None,
    all_projects: bool = False,
    as_of: str | None = None,
    as_known_at: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield every row of an expression, a few read at a time, in the order of their names.

    Scopes and times are those of ``run_query``. Raises what it raises, at the first row.
    """
    from hypatia_mem.jse.parser import parse
    from hypatia_mem.memory.streaming import stream

    parsed = _at_times(parse(expression), as_of=as_of, as_known_at=as_known_at)
    scopes = context.scopes_for(scope, all_projects or (parsed.names_scopes and not scope))
    known_at = parsed.options.as_known_at
    where = _searched(parsed, scopes)
    hits = _Hits(home, _ALL_HITS, where, _Then(home, known_at))
    yield from stream(
        home, parsed, scopes=scopes, search=hits, similar=_Near(home), asker=context.asker(),
        size=_STREAMED,
    )  # fmt: skip


def _searched(query: Query, scopes: Sequence[str] | None) -> Sequence[str] | None:
    """Return the scopes whose hits may become rows, None for all; the rows are filtered anyway."""
    from hypatia_mem.jse.nodes import needed_scopes

    if query.options.as_known_at:
        return None  # it may have been in other scopes then than the index says now
    return needed_scopes(query.condition) if scopes is None else scopes


def _at_times(query: Query, *, as_of: str | None, as_known_at: str | None) -> Query:
    """Return the query with the times of the command line as its options."""
    from dataclasses import replace

    of = _moment("--as-of", as_of, query.options.as_of)
    known = _moment("--as-known-at", as_known_at, query.options.as_known_at)
    return replace(query, options=replace(query.options, as_of=of, as_known_at=known))


def _moment(flag: str, text: str | None, said: datetime | None) -> datetime | None:
    moment = values.parse_time(text, flag) if text is not None else None
    if moment is None:
        return said
    if said not in (None, moment):
        raise UsageError(f"{flag} contradicts the same option in the expression")
    return moment


class _Then:
    """The states that the index of today does not hold any more; None known at: there are none."""

    def __init__(self, home: Path, known_at: datetime | None) -> None:
        self.home = home
        self.known_at = known_at
        self._states: KnownStates | None = None

    def corrected(
        self, text: str, catalog: str, found: list[tuple[str, float]]
    ) -> list[tuple[str, float]]:
        """Return the hits of today's index with those that are not as they were put right."""
        if self.known_at is None:
            return found
        from hypatia_mem.memory import known

        if self._states is None:
            self._states = known.changed_states(self.home, self.known_at)
        return known.corrected(self._states, text, catalog, found)


class _Hits:
    """Answers ``$search`` from the index, up to ``reach`` hits; ``cut`` when there may be more."""

    def __init__(self, home: Path, reach: int, scopes: Sequence[str] | None, then: _Then) -> None:
        self.home = home
        self.reach = reach
        self.scopes = scopes
        self.then = then
        self.cut = False
        self._found: dict[tuple[str, str], list[tuple[str, float]]] = {}

    @property
    def all(self) -> bool:
        """Tell whether asking for more would bring nothing new."""
        return not self.cut or self.reach >= _ALL_HITS

    def __call__(self, text: str, catalog: str) -> Sequence[tuple[str, float]]:
        if (text, catalog) not in self._found:
            found = find_keys(
                self.home, text, catalog=catalog, scopes=self.scopes, limit=self.reach
            )
            self.cut = self.cut or len(found) >= self.reach
            self._found[text, catalog] = self.then.corrected(text, catalog, found)
        return self._found[text, catalog]


class _Near:
    """Answers ``$similar`` from the vectors, each question once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._found: dict[tuple[str, str], list[tuple[str, float]]] = {}

    def __call__(self, text: str, catalog: str) -> Sequence[tuple[str, float]]:
        if (text, catalog) not in self._found:
            from hypatia_mem.memory.vectors import embedding

            model = embedding.model_of(self.home)
            self._found[text, catalog] = embedding.similar_hits(self.home, text, catalog, model)
        return self._found[text, catalog]

"""Every row of a question, a few at a time: for more rows than memory should hold.

Each batch is a read of its own, so that nobody waits for the store meanwhile. Rows come in the
order of their names (statements of their triples), and a batch begins behind the last name: what is
there all the while comes exactly once, whatever is stored or deleted in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import UsageError
from hypatia_mem.jse.nodes import And, Compare, Field, Query, Sort

if TYPE_CHECKING:
    from hypatia_mem.jse.compiler import SearchHits

__all__ = ["BATCH", "stream"]

BATCH = 50
_KEYS = {
    "knowledge": Field(("name",), "text", "name"),
    "statement": Field(("triple",), "triple", "triple"),
}


def stream(
    home: Path,
    query: Query,
    *,
    scopes: Sequence[str] | None,
    search: SearchHits | None = None,
    similar: SearchHits | None = None,
    asker: str = "",
    size: int = BATCH,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query in their published shape; ``size`` of them are held at once.

    ``search`` and ``similar`` answer ``$search`` and ``$similar`` and have to give the same answer
    each time. What the session ``asker`` is not told is left out. A ``limit`` of the query holds
    for all rows together when it is smaller than the usual 100, and otherwise there is none. Raises
    UsageError for options that have no meaning here.
    """
    from hypatia_mem.jse.compiler import compile_query
    from hypatia_mem.store import hiding
    from hypatia_mem.store.connection import open_store

    options = query.options
    for name, set_ in (
        ("order", bool(options.order)),
        ("offset", bool(options.offset)),
        ("count", options.count),
    ):
        if set_:
            raise UsageError(f"the option {name} does not go with a stream of all rows")
    key = _KEYS[query.catalog]
    batch = replace(query, options=replace(options, limit=size, order=(Sort(key),)))
    last: str | None = None
    while True:
        asked = batch
        if last is not None:
            behind = Compare("$gt", key, last)
            asked = replace(batch, condition=And((batch.condition, behind)))
        with open_store(home, write=False) as store:
            without = hiding.hidden_names(store, asker)
            compiled = compile_query(asked, search, similar, scopes=scopes, without=without)
            rows = store.run(compiled.sql, list(compiled.params))
        yield from (compiled.shape(row) for row in rows)
        if len(rows) < size:
            return
        last = str(rows[-1][key.column])

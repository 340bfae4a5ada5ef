"""Full-text search from the command line. It reads the search index alone: no DuckDB, no lease."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Offset, Scopes
from hypatia_mem.cli.output import print_rows
from hypatia_mem.errors import IndexUnavailable, UsageError

if TYPE_CHECKING:
    from hypatia_mem.store.search import Hit

__all__ = ["find", "search"]

_KINDS = (
    "knowledge",
    "rule",
    "taboo",
    "memory",
    "message",
    "summary",
    "session",
    "statement",
)


def find(
    home: Path,
    text: str,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    catalog: str | None = None,
    limit: int = 20,
    offset: int = 0,
) -> list[Hit]:
    """Return hits of the search index, building it first where there is none.

    Only that rare case opens the store. Raises IndexUnavailable when it cannot be built now.
    """
    from hypatia_mem.store.search import SearchIndex

    def ask() -> list[Hit]:
        return SearchIndex(home).search(
            text, scopes=scopes, kinds=kinds, catalog=catalog, limit=limit, offset=offset
        )

    try:
        return ask()
    except IndexUnavailable:
        if not (home / "memory.duckdb").exists():
            return []
        from hypatia_mem.memory import curate

        curate.refresh(home)
        return ask()


def search(
    text: Annotated[
        str, typer.Argument(help="Words to look for; all forms count.", show_default=False)
    ],
    catalog: Annotated[
        str | None, typer.Option("-c", "--catalog", help="Only knowledge, or only statement.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Only this kind, may be repeated: knowledge, rule, taboo, memory, message, "
            "summary, session or statement.",
        ),
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Search the full text of entries, messages and statements, best first.

    Reads the current project and the global scope. Rows carry catalog, key, content (a JSON
    text), score (higher is better) and rank (lower is better).

    \b
    Example:
      hypatia-mem search "connection pool" --limit 5 -c knowledge
    """
    for wrong in set(kind or ()) - set(_KINDS):
        raise UsageError(f"--kind {wrong[:40]!a}: the kinds are {', '.join(_KINDS)}")
    if catalog not in (None, "knowledge", "statement"):
        raise UsageError(f"--catalog is knowledge or statement, not {catalog[:40]!a}")
    found = find(
        context.home(),
        values.checked(text, "the search text"),
        scopes=context.scopes_for(scope, all_projects),
        kinds=kind,
        catalog=catalog,
        limit=limit,
        offset=offset,
    )
    rows = [_hit_row(offset + place, hit) for place, hit in enumerate(found, start=1)]
    print_rows(rows, as_json)


def _hit_row(place: int, hit: Hit) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    content = {
        "format": "markdown",
        "data": hit.snippet_text,
        "scopes": list(hit.scopes) or None,
    }
    return {
        "id": place,
        "catalog": hit.catalog,
        "key": hit.name,
        "kind": hit.kind,
        "content": json.dumps(content, ensure_ascii=False),
        "score": round(hit.score, 6),
        "rank": round(-hit.score, 6),
        "created_at": time_text(hit.at),
    }

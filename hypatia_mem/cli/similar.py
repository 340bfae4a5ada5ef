"""What is near to a text, and the vectors by which that is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, AsSession, Limit, Offset, Scopes
from hypatia_mem.cli.output import emit, print_json, print_rows, say, warn
from hypatia_mem.errors import UsageError, one_of

if TYPE_CHECKING:
    from hypatia_mem.jse.nodes import Query
    from hypatia_mem.memory.vectors.embedding import Backfilled, Found, Model
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.vectors import Condition, Filters

__all__ = ["backfill", "similar"]

_TARGETS = {
    "knowledge": ("knowledge",),
    "statement": ("statement",),
    "both": ("knowledge", "statement"),
}
_KINDS = ("knowledge", "rule", "taboo", "memory", "message", "summary", "session", "statement")
_ALL = 1_000_000
_EVERY_SECONDS = 5.0  # between two lines of progress where there is no terminal
_WHERE = 'Example: --where \'["$contains", "tags", "rule"]\''

_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Use this model, whatever the setting embedding_model says: auto, builtin, wordllama.",
    ),
]


def similar(  # noqa: PLR0913 - one parameter an option
    text: Annotated[str, typer.Argument(help="What to be near to.", show_default=False)],
    target: Annotated[
        str, typer.Option("-t", "--target", help="Look among knowledge, statement, or both.")
    ] = "knowledge",
    tags: Annotated[
        str | None,
        typer.Option("--tags", help="Only entries that have all these tags, separated by commas."),
    ] = None,
    exclude_tags: Annotated[
        str | None,
        typer.Option("--exclude-tags", help="No entry that has one of these, separated by commas."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help=f"Only this kind, may be repeated: {', '.join(_KINDS)}."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", help="Only rows for which this JSE condition holds; @FILE, -."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="Only what is at least so near: 1 minus the distance. Without it what has next "
            "to nothing in common with the text is left out; -1 leaves out nothing.",
        ),
    ] = None,
    model: _Model = None,
    limit: Limit = 100,
    offset: Offset = 0,
    as_session: AsSession = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List what is near to a text, nearest first: other wordings, typing errors, related names.

    Without an extra the built-in model compares letters: forms of a word and parts of identifiers,
    no synonyms. With hypatia-mem[embed] installed it knows meanings of (mostly English) words too.

    Every filter holds before anything is ranked. Reads the current project and the global scope.
    Rows carry name or triple, content and distance (0: the same text; about 1: nothing in common),
    with --target both also catalog.

    \b
    Example:
      hypatia-mem similar "pool of database connections" --limit 5
      hypatia-mem similar "mocking" --tags rule --where '["$gt", "created_at", "2026-01-01"]'
    """
    from hypatia_mem.memory.vectors import embedding

    catalogs = _TARGETS[one_of(target, _TARGETS, "--target")]
    for one in kind or ():
        one_of(one, _KINDS, "--kind")
    home = context.home()
    context.ask_as(as_session)
    asked = values.checked(text, "the text")
    loaded = _model(home, model)
    condition = _Where(home, where, catalogs, loaded) if where is not None else None
    filters = _filters(condition, tags, exclude_tags, kind, scope, all_projects)
    found, missing = embedding.similar(
        home,
        asked,
        loaded,
        catalogs=catalogs,
        filters=filters,
        threshold=threshold,
        limit=limit,
        offset=offset,
    )
    if missing:
        warn(
            f"{missing} things have no vector yet and were not compared. "
            "The worker makes them; at once: hypatia-mem backfill"
        )
    print_rows([_row(one, both=len(catalogs) > 1) for one in found], as_json)


def backfill(
    reembed: Annotated[
        bool, typer.Option("--reembed", help="Throw all vectors away first, of every model.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only say, as JSON, what there is and what is missing.")
    ] = False,
    model: _Model = None,
    as_json: AsJson = False,
) -> None:
    """Make the vectors that are missing, for similar and $similar.

    The worker does it by itself after each turn; this is for a store that was there before, and
    for another model. It can be stopped at any time and goes on where it was.

    \b
    Example:
      hypatia-mem backfill
    """
    from hypatia_mem.memory.vectors import embedding

    home = context.home()
    loaded = _model(home, model)
    if status:
        print_json(embedding.status(home, loaded))
        return
    if reembed:
        embedding.reembed(home)
    with _progress(quiet=as_json) as progress:
        try:
            done = embedding.backfill(home, loaded, progress=progress)
        except KeyboardInterrupt:
            warn("Stopped. What was made is kept; run it again to go on.")
            raise
    _report(done, loaded, as_json)


def _report(done: Backfilled, model: Model, as_json: bool) -> None:
    machine = {
        "model": model.model,
        "created": done.created,
        "skipped": done.skipped,
        "errors": done.errors,
        "remaining": done.remaining,
    }
    emit(machine, done.line, as_json)
    if done.errors:
        raise typer.Exit(1)


# ----------------------------------------------------------------------------------------------


def _model(home: Path, name: str | None) -> Model:
    from hypatia_mem.memory.vectors import embedding

    return embedding.model_of(home) if name is None else embedding.load_model(name)


def _filters(
    condition: _Where | None,
    tags: str | None,
    exclude_tags: str | None,
    kinds: Sequence[str] | None,
    scope: list[str] | None,
    all_projects: bool,
) -> Callable[[Store, str], Filters]:
    """Return what says for a catalog which rows may be ranked.

    A condition that names scopes says itself which it reads, as in a query.
    """
    from hypatia_mem.store import hiding
    from hypatia_mem.store.vectors import Filters

    named = condition is not None and condition.names_scopes and not scope
    scopes = context.scopes_for(scope, all_projects or named)

    def filters(store: Store, catalog: str) -> Filters:
        return Filters(
            scopes=scopes,
            kinds=kinds,
            tags=values.parse_tags(tags or ""),
            exclude_tags=values.parse_tags(exclude_tags or ""),
            without=hiding.hidden_names(store, context.asker()),
            condition=None if condition is None else condition.compiled(store, catalog),
        )

    return filters


class _Where:
    """A JSE condition, checked at once; compiled again when the store is open, to walk in it."""

    def __init__(self, home: Path, text: str, catalogs: Sequence[str], model: Model) -> None:
        from hypatia_mem.jse.calls import load
        from hypatia_mem.jse.parser import parse_value

        condition = load(values.read_text(text, "--where"))
        if not isinstance(condition, list | dict) or not condition:
            raise UsageError("--where is a JSE condition", hint=_WHERE)
        self._home = home
        self._model = model
        self._answers: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
        self._parsed: dict[str, Query] = {
            catalog: parse_value({f"${catalog}": [condition], "limit": -1}) for catalog in catalogs
        }
        for catalog in catalogs:  # what it searches for is asked before the store is opened
            self._compiled(catalog)

    @property
    def names_scopes(self) -> bool:
        return any(query.names_scopes for query in self._parsed.values())

    def compiled(self, store: Store, catalog: str) -> Condition:
        from hypatia_mem.store.vectors import Condition

        sql, params = self._compiled(catalog, lambda *asked: store.execute(*asked).fetchall())
        return Condition(sql, params)

    def _compiled(
        self,
        catalog: str,
        read: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]] | None = None,
    ) -> tuple[str, tuple[Any, ...]]:
        from hypatia_mem.jse.compiler import compile_query

        made = compile_query(self._parsed[catalog], self._search, self._similar, read=read)
        return made.sql, tuple(made.params)

    def _search(self, text: str, catalog: str) -> list[tuple[str, float]]:
        from hypatia_mem.cli.searching import find_keys

        asked = ("$search", text, catalog)
        if asked not in self._answers:
            self._answers[asked] = find_keys(self._home, text, catalog=catalog, limit=_ALL)
        return self._answers[asked]

    def _similar(self, text: str, catalog: str) -> list[tuple[str, float]]:
        from hypatia_mem.memory.vectors import embedding

        asked = ("$similar", text, catalog)
        if asked not in self._answers:
            self._answers[asked] = embedding.similar_hits(self._home, text, catalog, self._model)
        return self._answers[asked]


def _row(one: Found, *, both: bool) -> dict[str, Any]:
    """Return the published row of what was found: name or triple, content, distance."""
    from hypatia_mem.jse.rows import knowledge_row, statement_row, time_text

    if one.catalog == "knowledge":
        shaped, key = knowledge_row(one.row), "name"
    else:
        shaped, key = statement_row(one.row), "triple"
    row = {key: one.key, "content": shaped["content"], "distance": round(one.distance, 6)}
    for name, column in (("tr_start", "valid_from"), ("tr_end", "valid_to")):
        if one.row.get(column) is not None:  # else what ended would stand there as if it held
            row[name] = time_text(one.row[column])
    return {**row, "catalog": one.catalog} if both else row


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield what is told how many of how many are done: a bar on a terminal, else plain lines."""
    import sys

    if quiet:
        yield lambda done, total: None
    elif not sys.stdout.isatty():
        yield _lines()
    else:
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            task = bar.add_task("Vectors", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines() -> Callable[[int, int], None]:
    last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_SECONDS:
            last = time.monotonic()
            say(f"{done} of {total}")

    return line

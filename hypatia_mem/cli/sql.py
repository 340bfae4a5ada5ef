"""SQL of a person's own over the documented views."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, print_error, print_json, say, warn
from hypatia_mem.cli.tables import cell, exists, new_file, print_table, write_csv
from hypatia_mem.errors import Refused, UsageError
from hypatia_mem.memory.redaction import secretless

if TYPE_CHECKING:
    from hypatia_mem.store.reading import Answer

__all__ = ["schema_page", "sql"]

_ROWS = 100  # shown in a terminal
_CELL = 300  # characters of a cell shown in a terminal
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"})

_Output = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="Write there; - is standard output.")
]
_Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]


def sql(  # noqa: PLR0913 - the options of a command
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="SELECT",
            help="One SELECT; - reads it from standard input, @FILE from a file.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the views and their columns instead.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_parquet: Annotated[bool, typer.Option("--parquet", help="Write Parquet.")] = False,
    output: _Output = "-",
    force: _Force = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, max=MOST, help=f"At most so many rows; as a table {_ROWS}."),
    ] = None,
    timeout: Annotated[
        int, typer.Option("--timeout", min=1, max=3600, help="Stop after so many seconds.")
    ] = 30,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Run one SELECT of DuckDB's SQL over documented views; nothing can be changed by it.

    The views hold this project and what is global, and nothing that is withheld; --scope and
    --all-projects look further. They are the only tables: no file, setting, extension or other
    database can be reached. Times are UTC. With --csv, --json or --parquet every row comes, else
    the first ones as a table. CSV holds lists as JSON and NULL as nothing; a spreadsheet may take a
    cell that begins with = + - or @ for a formula: import such columns as text. What looks like a
    secret is printed and written as [REDACTED]; Parquet, which keeps its types, is refused then.

    \b
    Example:
      hypatia-mem sql "SELECT project, count(*) FROM messages GROUP BY ALL ORDER BY 2 DESC"
    """
    if schema:
        _print_schema(as_json)
        return
    if statement is None:
        raise UsageError(
            "there is no SQL to run", hint="See the views and columns: hypatia-mem sql --schema"
        )
    form = _form(as_csv=as_csv, as_json=as_json, as_parquet=as_parquet)
    _refuse_output(form, output, force)
    text = values.read_text(statement, "the SQL")
    scopes = context.scopes_for(scope, all_projects)
    from hypatia_mem.store.reading import ask

    with ask(
        context.home(),
        text,
        scopes=scopes,
        timeout=timeout,
        parquet=form == "parquet",
        give_up=lambda: _give_up(as_json),
    ) as answer:
        for note in answer.notes:
            warn(note)
        if form == "table":
            _print_table(answer, limit or _ROWS)
        else:
            _write(answer, form, output, limit, force)


# ---- what was asked -----------------------------------------------------------------------------


def _form(*, as_csv: bool, as_json: bool, as_parquet: bool) -> str:
    wanted = {"csv": as_csv, "json": as_json, "parquet": as_parquet}
    chosen = [name for name, on in wanted.items() if on]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} contradict each other")
    return chosen[0] if chosen else "table"


def _refuse_output(form: str, output: str, force: bool) -> None:
    """Refuse, before anything is read, what could not be written in the end."""
    if output == "-":
        if form == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet is not for a terminal", hint="Name a file: --output FILE")
        return
    if form == "table":
        raise UsageError("a table is not written to a file", hint="Add --csv, --json or --parquet.")
    if Path(output).exists() and not force:
        raise exists(output)


# ---- printing -----------------------------------------------------------------------------------


def _rows(answer: Answer, limit: int | None) -> Iterator[list[Any]]:
    """Yield the rows without secrets, whatever form they are printed or written in as text."""
    for row in answer.rows(limit):
        yield [secretless(value) for value in row]


def _print_table(answer: Answer, limit: int) -> None:
    cut = False
    cells: list[list[str]] = []
    for row in _rows(answer, limit):
        texts = [cell(value) for value in row]
        cut = cut or any(len(text) > _CELL for text in texts)
        cells.append([text if len(text) <= _CELL else text[: _CELL - 1] + "…" for text in texts])
    print_table(answer.columns, cells, [type_ in _NUMBERS for type_ in answer.types])
    more = answer.count - len(cells)
    if more > 0:
        warn(
            f"{more} more row{'s' if more > 1 else ''}: --limit {answer.count}, or --csv or --json."
        )
    if not answer.count:
        warn("No rows.")
    if cut:
        warn(f"Cells are cut at {_CELL} characters: --json shows them whole.")


def _write(answer: Answer, form: str, output: str, limit: int | None, force: bool) -> None:
    if form == "parquet" and limit is not None:
        raise UsageError("--limit does not go with --parquet", hint="Write LIMIT in the SQL.")
    if form == "parquet":
        _refuse_secrets(answer)  # before there is a file
    if output != "-":
        with new_file(output, force=force) as file:
            _write_to(file, answer, form, limit)
    elif form == "parquet":
        sys.stdout.flush()
        _write_to(sys.stdout.buffer, answer, form, limit)
    else:
        _write_text(sys.stdout, answer, form, limit)


def _refuse_secrets(answer: Answer) -> None:
    """Raise Refused where a value holds a secret: the engine writes Parquet as the rows are."""
    for row in answer.rows():
        for column, value in zip(answer.columns, row, strict=True):
            if isinstance(value, str) and secretless(value) != value:
                raise Refused(
                    f"column {column!r} holds what looks like a secret, and Parquet would hold it",
                    hint="Take --csv or --json, which redact it, or leave such rows out.",
                )


def _write_to(out: IO[bytes], answer: Answer, form: str, limit: int | None) -> None:
    if form == "parquet":
        with answer.write_parquet().open("rb") as reader:
            shutil.copyfileobj(reader, out)
        return
    text = io.TextIOWrapper(out, "utf-8", newline="")
    _write_text(text, answer, form, limit)
    text.detach()


def _write_text(out: TextIO, answer: Answer, form: str, limit: int | None) -> None:
    if form == "csv":
        write_csv(out, answer.columns, _rows(answer, limit))
    else:
        _write_json(out, answer, limit)


def _write_json(out: TextIO, answer: Answer, limit: int | None) -> None:
    """Write a list with one row a line, as the rows come."""
    ascii_only = (getattr(out, "encoding", None) or "ascii").lower().replace("-", "") != "utf8"
    nested = answer.nested
    before = "["
    for row in _rows(answer, limit):
        made = {
            name: _json_value(value, is_json)
            for name, value, is_json in zip(answer.columns, row, nested, strict=True)
        }
        out.write(before + "\n  " + json.dumps(made, ensure_ascii=ascii_only))
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _json_value(value: Any, is_json: bool) -> Any:  # noqa: ANN401 - a value of a row
    """Return what JSON can hold: nested values parsed, numbers that are none as text."""
    if is_json and isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value, parse_constant=str)
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value


def _give_up(as_json: bool) -> NoReturn:
    """End the process: the engine did not stop within ten seconds of being told to."""
    print_error("storage error", "the query did not stop in time", "Ask for less.", 1, as_json)
    os._exit(1)


# ---- the views ----------------------------------------------------------------------------------


def _print_schema(as_json: bool) -> None:
    from hypatia_mem.store.views import VIEWS

    if as_json:
        print_json(
            [
                {
                    "view": view.name,
                    "summary": view.summary,
                    "columns": [
                        {"name": one.name, "type": one.type, "meaning": one.meaning}
                        for one in view.columns
                    ],
                }
                for view in VIEWS.values()
            ]
        )
        return
    for view in VIEWS.values():
        say(f"{view.name}: {view.summary}")
        rows = [(f"  {one.name}", one.type, one.meaning) for one in view.columns]
        say(columns(rows) + "\n")


def schema_page() -> str:
    """Return the page of the reference that documents the views."""
    from hypatia_mem.store.sqlcheck import TABLE_FUNCTIONS
    from hypatia_mem.store.views import VIEWS

    made = ", ".join(f"`{name}`" for name in sorted(TABLE_FUNCTIONS))
    lines = [
        "# Views\n",
        "These are what `hypatia-mem sql` reads, with DuckDB's SQL. They hold the current project"
        " and what is global (`--scope` and `--all-projects` look further), and nothing that is"
        " withheld. Columns keep their names and meanings; new ones come at the end. Times are"
        f" UTC. Besides the views one may name {made} behind FROM.\n",
    ]
    for view in VIEWS.values():
        lines.append(f"## {view.name}\n\n{view.summary}\n\n| column | type | |\n|---|---|---|")
        lines += (f"| `{one.name}` | `{one.type}` | {one.meaning} |" for one in view.columns)
        lines.append("")
    return "\n".join(lines)

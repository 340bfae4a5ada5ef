"""The canned reports: activity, projects, models, tools, cost."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say, warn
from hypatia_mem.cli.tables import cell, print_table, write_csv
from hypatia_mem.errors import UsageError, one_of

if TYPE_CHECKING:
    from hypatia_mem.memory.report import Report

__all__ = ["report"]

_BY = ("day", "hour")


def report(  # noqa: PLR0913 - the options of a command
    kind: Annotated[
        str,
        typer.Argument(
            metavar="activity|projects|models|tools|cost",
            help="What to report.",
            show_default=False,
        ),
    ],
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="From this day or time on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="To the end of this day.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36_500, help="The last so many days.")
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="day|hour", help="Activity by day, or hour of the day.")
    ] = "day",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Report activity, projects, models, tools or cost of this project, or of all.

    Days and hours are those of this machine's time zone. Costs are an estimate: tokens times the
    prices that you have written into [prices] of config.toml; the program brings none.

    \b
    Example:
      hypatia-mem report activity --days 30
      hypatia-mem report cost --all-projects --since 2026-11-01
    """
    from hypatia_mem.memory import report as reports

    one_of(kind, reports.KINDS, "the report")
    one_of(by, _BY, "--by")
    if as_csv and as_json:
        raise UsageError("--csv and --json contradict each other")
    begin, end = _span(since, until, days)
    span = reports.Span(context.scopes_for(scope, all_projects), begin, end)
    made = reports.report(context.home(), kind, span, by=by)
    if as_json:
        print_json(
            {
                "report": made.kind,
                "scopes": span.scopes,
                "since": _zulu(begin),
                "until": _zulu(end),
                "rows": made.rows,
                "notes": made.notes,
            }
        )
        return
    if as_csv:
        rows = ([row[name] for name in made.columns] for row in made.rows)
        write_csv(sys.stdout, made.columns, rows)
    else:
        _print_report(made)
    for note in made.notes if made.rows else ():
        warn(note)


def _span(
    since: str | None, until: str | None, days: int | None
) -> tuple[datetime | None, datetime | None]:
    """Return the time to look at as naive UTC, its end not included."""
    if days is not None and (since or until):
        raise UsageError("--days and --since or --until contradict each other")
    if days is not None:
        return context.now() - timedelta(days=days), None
    begin = None if since is None else _moment(since, "--since", ends=False)
    end = None if until is None else _moment(until, "--until", ends=True)
    if begin and end and begin >= end:
        raise UsageError("--since is not before --until")
    return begin, end


def _moment(text: str, option: str, *, ends: bool) -> datetime:
    """Return when a day begins, or with ``ends`` is over, here; a time stands for itself."""
    try:
        if len(text) == len("2026-11-30"):
            day = date.fromisoformat(text) + timedelta(days=int(ends))
            local = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - this machine's
        else:
            local = datetime.fromisoformat(text)
        return local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{option} is no date: {text[:40]!a}", hint="Write 2026-11-30 or 2026-11-30T14:00."
        ) from None


def _print_report(made: Report) -> None:
    from hypatia_mem.memory.report import bars

    if not made.rows:
        say("Nothing was said in that time.")
        return
    names = list(made.columns)
    rows = [[cell(row[name]) for name in made.columns] for row in made.rows]
    if made.kind == "activity":
        drawn = bars([row["prompts"] + row["answers"] for row in made.rows])
        names.append("")
        rows = [[*row, bar] for row, bar in zip(rows, drawn, strict=True)]
    right = [isinstance(made.rows[0].get(name), int | float) for name in names]
    print_table(names, rows, right)


def _zulu(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds") + "Z"

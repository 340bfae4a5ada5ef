"""``tools`` and ``tool``: what tools gave back in a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.errors import NotFound

__all__ = ["tool", "tools"]

_Session = Annotated[
    str, typer.Option("--session", help="This session; by default the project's latest.")
]


def tools(
    session: _Session = "",
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            min=0,
            max=MOST,
            help="So many are shown as they are; else 15, or 5 while the context fills up.",
        ),
    ] = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List what tools gave back in a session: the latest whole, older ones in three sentences.

    Nothing is lost: any line of any result can be read again with tool.

    \b
    Example:
      hypatia-mem tools --last 3
    """
    from hypatia_mem.memory import toolresults

    home = context.home()
    asked = _session(home, session, scope, all_projects)
    found = toolresults.latest(home, asked, _whole(home, asked) if last is None else last)
    if as_json:
        print_json(toolresults.shown(found))
        return
    for one, text in found:
        say(f"[turn {one.turn}] {one.id}  {one.tool} {one.subject}".rstrip())
        say("\n".join(f"  {line}" for line in text.splitlines()))
    if not found:
        say("No tool was used in this session.")


def tool(
    call_id: Annotated[str, typer.Argument(metavar="ID", help="The call's id, or its beginning.")],
    lines: Annotated[
        str, typer.Option("--lines", help="Only these lines: 40-60, 7, -5 or 90-.")
    ] = "",
    session: _Session = "",
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Print what a tool gave back, or some lines of it.

    \b
    Example:
      hypatia-mem tool toolu_01AB --lines 40-60
    """
    from hypatia_mem.memory import toolresults

    home = context.home()
    found = toolresults.find(
        home,
        _session(home, session, scope, all_projects),
        values.checked(call_id, "the call's id"),
    )
    chosen = toolresults.lines_of(found, lines or "1-") if found.text else []
    if as_json:
        (row,) = toolresults.shown([(found, found.text)])
        print_json({**row, "lines": [{"line": number, "text": text} for number, text in chosen]})
        return
    for number, text in chosen:
        say(f"{number:6}  {text}")


def _whole(home: Path, session_id: str) -> int:
    """Return how many results are shown whole: fewer where there is little room for them."""
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import pressure, toolresults

    level = pressure.of_session(home, load_settings(home), session_id, now=context.now())
    return pressure.SHORT if level else toolresults.LATEST


def _session(home: Path, asked: str, scope: list[str] | None, all_projects: bool) -> str:
    """Return the session that is meant: the one named if it is in reach, or the latest."""
    if asked:
        asked = values.checked(asked, "the session")
        context.reach_of([asked], scope, all_projects)
        return asked
    from hypatia_mem.store import branches
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(home, write=False) as store:
        found = branches.newest(store, scopes[0] if scopes else None, context.asker())
    if found is None:
        raise NotFound("no session of this project yet", hint="List them: hypatia-mem sessions")
    return found.id

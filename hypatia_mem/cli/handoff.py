"""``handoff``: the card that one session hands to the next."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say

__all__ = ["handoff"]


def handoff(
    session: Annotated[
        str, typer.Option("--session", help="This session; by default the project's latest.")
    ] = "",
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            min=100,
            max=20_000,
            help="The card's length at most, instead of what any session has room for.",
        ),
    ] = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Print what a session leaves to the next: goals, decisions, what is open, files.

    Every line is somebody's words or a tool's, with the turn it stands on. A session of another
    project is read when --scope names that project, or with --all-projects.

    \b
    Example:
      hypatia-mem handoff
    """
    from dataclasses import asdict

    from hypatia_mem.memory import handoff as handing

    asked = values.checked(session, "the session") if session else ""
    scopes = context.reach_of([asked] if asked else [], scope, all_projects)
    found = handing.card(
        context.home(),
        project=scopes[0] if scopes else None,
        session_id=asked,
        asker=context.asker(),
        now=context.now(),
    )
    text = handing.render(found, handing.MAX_TOKENS if tokens is None else tokens)
    if as_json:
        print_json({**asdict(found), "text": text})
    else:
        say(text)

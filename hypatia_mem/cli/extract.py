"""``extract``: look for finished work in what was said, and keep its lessons."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say

__all__ = ["extract"]


def extract(
    session: Annotated[
        str, typer.Option("--session", help="Look at this session alone.", metavar="ID")
    ] = "",
    over: Annotated[
        bool, typer.Option("--over", help="Take the last topic as finished, too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be kept; nothing is changed.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Look for finished work in what was said since the last time, and keep its lessons.

    The worker does it by itself. A topic is finished when another has followed, the session has
    ended, or nothing was said for half an hour. What is unsure is kept as a candidate, which no
    session is told before a person has taken it in: hypatia-mem review.

    \b
    Example:
      hypatia-mem extract --dry-run
    """
    from dataclasses import asdict

    from hypatia_mem.memory import curate
    from hypatia_mem.memory.extract import running

    home = context.home()
    found = running.run(
        home,
        now=context.now(),
        author=context.author(),
        scopes=context.scopes_for(scope, all_projects),
        session_id=values.checked(session, "the session") if session else "",
        over=over,
        dry_run=dry_run,
    )
    if found.kept and not dry_run:
        curate.refresh(home)
    if as_json:
        print_json({**asdict(found), "line": found.line, "dry_run": dry_run})
        return
    say(f"[hypatia-memory] {found.line}")
    for one in found.kept:
        note = f" ({one.relation} {one.older})" if one.relation != "new" else ""
        doubt = ", candidate" if one.trust == "candidate" else ""
        say(f"  {one.name}  -> {','.join(one.tags)}{doubt}{note}")
    for name in found.proposed:
        say(f"  {name}  -> proposed as a rule: hypatia-mem review")

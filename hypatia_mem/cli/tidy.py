"""``tidy``: tie what was learnt lately to what was known before."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, print_json, say

__all__ = ["tidy"]


def tidy(
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else it is only said.")] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Say which rules, memories and work units have to do with each other; --apply ties them.

    The newer one relates_to the older one. The worker does it every tidy_every_hours. Doing it
    twice adds nothing, and it can be undone like every change.

    \b
    Example:
      hypatia-mem tidy
      hypatia-mem tidy --apply
    """
    from dataclasses import asdict

    from hypatia_mem.memory import curate
    from hypatia_mem.memory.extract import tidying

    home = context.home()
    found = tidying.tidy(
        home,
        now=context.now(),
        author=context.author(),
        scopes=context.scopes_for(scope, all_projects),
        dry_run=not apply,
    )
    if found and apply:
        curate.refresh(home)
    if as_json:
        print_json({"applied": apply, "ties": [asdict(one) for one in found]})
        return
    if not found:
        say("Nothing new has to do with anything older that it is not tied to.")
        return
    say(columns([(one.new, tidying.PREDICATE, one.old, f"{one.share:.0%}") for one in found]))
    say(f"{len(found)} tied." if apply else f"{len(found)} could be tied: hypatia-mem tidy --apply")

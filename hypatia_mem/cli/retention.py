"""``retention``: what is kept how long."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say

if TYPE_CHECKING:
    from hypatia_mem.memory.retention import Let

__all__ = ["retention"]

retention = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Let go of old sessions: of each year one summary stays, and the words it quotes.

    Nothing goes by itself. A project's newest sessions (retention_sessions) stay whole, and so does
    what is younger than retention_days. What is pinned stays, and what a lesson, a rule or a goal
    is tied to. Undo takes all of it back.

    \b
    Example:
      hypatia-mem retention plan
    """,
)
_SHOWN = 8


@retention.command()
def plan(scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False) -> None:
    """Say what would go, by name, and what each year would be told as; nothing is changed.

    \b
    Example:
      hypatia-mem retention plan --json
    """
    _run(scope, all_projects, as_json, dry_run=True)


@retention.command()
def apply(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it nothing changes.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go; this is the default.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Let go of what is old; with --yes, and one operation for each project.

    \b
    Example:
      hypatia-mem retention apply --yes
    """
    _run(scope, all_projects, as_json, dry_run=dry_run or not yes)


# ----------------------------------------------------------------------------------------------


def _run(scope: list[str] | None, all_projects: bool, as_json: bool, *, dry_run: bool) -> None:
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import retention as retention_
    from hypatia_mem.store.connection import open_store

    home, settings = context.home(), load_settings(context.home())
    if dry_run:
        scopes = context.scopes_for(scope, all_projects)
    else:
        scopes = context.scopes_to_change(scope, all_projects, verb="retention")
    if scopes is None:
        with open_store(home, write=False) as store:
            scopes = sorted({session.project for session, _ in store.sessions(None, limit=100_000)})
    found = [
        retention_.apply(
            home, settings, one, dry_run=dry_run, author=context.author(), now=context.now()
        )
        for one in scopes
    ]
    found = [one for one in found if one.messages]
    if as_json:
        print_json({"dry_run": dry_run, "projects": [_row(one) for one in found]})
        return
    for one in found:
        say(_told(one, dry_run=dry_run))
    if not found:
        say(
            f"Nothing is old: the newest {settings.retention_sessions} sessions of a project stay, "
            f"and all younger than {settings.retention_days} days."
        )
    elif dry_run:
        say("Nothing was changed. Do it with: hypatia-mem retention apply --yes")


def _told(one: Let, *, dry_run: bool) -> str:
    would = "would go" if dry_run else "went"
    lines = [
        f"{one.scope or 'global'}: {len(one.messages)} messages of {len(one.sessions)} sessions "
        f"{would}, and {len(one.derived)} summaries, titles and episodes that stood on them."
    ]
    for year in one.years:
        lines.append(f"  {year.year}: {year.name} stands on {len(year.sources)} of them that stay")
    why = Counter(one.kept.values()) if one.kept else Counter()
    lines += [f"  {count} stay: {reason}" for reason, count in why.most_common(_SHOWN)]
    if len(why) > _SHOWN:
        lines.append(f"  and {len(why) - _SHOWN} more reasons (--json lists all)")
    if one.owed:
        lines.append(f"  {one.owed} other messages are condensed anew")
    if one.op_id:
        lines.append(f"  Take it back: hypatia-mem undo {one.op_id}")
    return "\n".join(lines)


def _row(one: Let) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "sessions": list(one.sessions),
        "messages": list(one.messages),
        "kept": dict(one.kept or {}),
        "derived": list(one.derived),
        "owed": one.owed,
        "years": [
            {
                "year": year.year,
                "name": year.name,
                "sources": list(year.sources),
                "content": year.content,
            }
            for year in one.years
        ],
        "op_id": one.op_id,
    }

"""``graph dismiss``, ``restore``, ``remove``: what was found, and is nothing to be spoken of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import DryRun, finish
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["dismiss", "remove", "restore"]

_Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="Names of the graph, synonyms, or topics.", show_default=False
    ),
]


def dismiss(
    name: _Names,
    dry_run: DryRun = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show a concept nowhere any more: no list, neighbour, path, brief or search has it.

    It stays so when the same is found again. Its statements are kept, and seen no more; "graph
    restore" shows all of it again, "suppress" lists what is out of sight.

    \b
    Example:
      hypatia-mem graph dismiss "the thing" --dry-run
    """
    from hypatia_mem.cli.trust import report
    from hypatia_mem.memory.graph import dismissing

    changed = dismissing.dismiss(
        context.home(),
        _checked(name),
        scopes=context.scopes_to_change(scope, all_projects, verb="dismiss"),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    report(changed, "Dismissed:", {}, dry_run, as_json)


def restore(
    name: _Names,
    dry_run: DryRun = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show a dismissed concept again, with its statements.

    \b
    Example:
      hypatia-mem graph restore "the thing"
    """
    from hypatia_mem.cli.trust import report
    from hypatia_mem.memory.graph import dismissing

    changed = dismissing.restore(
        context.home(),
        _checked(name),
        scopes=context.scopes_to_change(scope, all_projects, verb="restore"),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    report(changed, "Shown again:", {}, dry_run, as_json)


def remove(
    name: _Names,
    dry_run: DryRun = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Take a concept out of the graph with its statements; it may be found again.

    A name without an entry loses this project's statements. "undo" takes it back; "graph dismiss"
    is what keeps it away.

    \b
    Example:
      hypatia-mem graph remove "the thing" --dry-run
    """
    from hypatia_mem.memory.graph import dismissing

    blast = dismissing.remove(
        context.home(),
        _checked(name),
        scopes=context.scopes_to_change(scope, all_projects, verb="remove"),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    finish(blast, as_json)


def _checked(names: Sequence[str]) -> list[str]:
    return [values.checked(name, "the name") for name in names]

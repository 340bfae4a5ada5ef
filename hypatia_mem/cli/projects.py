"""``project``: what the program cannot guess about folders, a person may say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import DryRun, say_names
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say
from hypatia_mem.model import Project

__all__ = ["project"]

project = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List, alias, merge, rename and exclude projects.

    A project is a repository (worktrees and subfolders included) or a folder without git. Its
    scope is the folder's name, made unique.

    \b
    Example:
      hypatia-mem project alias app ~/src/app-copy
    """,
)
_Scope = Annotated[str, typer.Argument(help="A project's scope.", show_default=False)]


@project.command("list", cls=Leaf)
def list_(as_json: AsJson = False) -> None:
    """List every project with its folders; the current one is marked."""
    from hypatia_mem.memory import projects
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        known = projects.list_projects(store)
        here = projects.resolve(store, context.current_folder()).scope
    if as_json:
        print_json([{**_row(one), "current": one.scope == here} for one in known])
    elif known:
        say(columns([_cells(one, here) for one in known]))
    else:
        say("No projects yet: the first captured turn of a folder makes one.")


@project.command(cls=Leaf)
def alias(
    scope: _Scope,
    folder: Annotated[str, typer.Argument(help="A folder that is this project too.")],
    as_json: AsJson = False,
) -> None:
    """Let a folder belong to a project from now on."""
    from hypatia_mem.memory import projects

    path = values.checked(folder, "the folder")
    outcome = projects.alias(
        context.home(), scope, path, author=context.author(), now=context.now()
    )
    where = outcome.details.get("path", path)
    emit({"scope": scope, "path": where}, f"{where} belongs to project {scope}.", as_json)


@project.command(cls=Leaf)
def merge(source: _Scope, target: _Scope, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Put everything of SOURCE under TARGET; SOURCE is gone afterwards."""
    from hypatia_mem.memory import projects

    outcome = projects.merge(
        context.home(),
        source,
        target,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    found = dict(outcome.details)
    if as_json:
        print_json({"source": source, "scope": target, **found})
        return
    say(f"{'Would merge' if dry_run else 'Merged'} project {source} into {target}.")
    for title in ("folders", "sessions", "names"):
        say_names("entries" if title == "names" else title, found[title])
    if not dry_run:
        say(f"Take it back with: hypatia-mem undo {found['op_id']}")


@project.command(cls=Leaf)
def rename(old: _Scope, new: _Scope, as_json: AsJson = False) -> None:
    """Give a project another scope; everything stored under the old one follows."""
    from hypatia_mem.memory import projects

    name = values.checked(new, "the new name")
    outcome = projects.rename(context.home(), old, name, author=context.author(), now=context.now())
    machine = {"old": old, "scope": name, **dict(outcome.details)}
    emit(machine, f"Renamed project {old} to {name}.", as_json)


@project.command(cls=Leaf)
def exclude(scope: _Scope, as_json: AsJson = False) -> None:
    """Stop keeping the turns of a project; what is stored stays."""
    _set_excluded(scope, True, as_json)


@project.command(cls=Leaf)
def include(scope: _Scope, as_json: AsJson = False) -> None:
    """Keep the turns of an excluded project again."""
    _set_excluded(scope, False, as_json)


def _set_excluded(scope: str, excluded: bool, as_json: bool) -> None:
    from hypatia_mem.memory import projects

    projects.set_excluded(
        context.home(), scope, excluded, author=context.author(), now=context.now()
    )
    text = f"Project {scope} is {'no longer kept' if excluded else 'kept again'}."
    emit({"scope": scope, "excluded": excluded}, text, as_json)


def _row(one: Project) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "roots": list(one.roots),
        "aliases": list(one.aliases),
        "excluded": one.excluded,
    }


def _cells(one: Project, here: str) -> tuple[str, str, str, str]:
    mark = "*" if one.scope == here else " "
    state = "excluded" if one.excluded else ""
    return (mark, one.scope, state, ", ".join([*one.roots, *one.aliases]))

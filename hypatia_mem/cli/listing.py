"""``scope`` and ``tag``: what is in use, so that nobody has to pull every entry to learn it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Offset, Scopes
from hypatia_mem.cli.output import columns, emit, print_json, say, warn
from hypatia_mem.model import GLOBAL_SCOPE

__all__ = ["scope", "tag"]

_GLOBAL_LABEL = "(global)"
_Count = Annotated[bool, typer.Option("--count", help="Say how many carry each.")]

scope = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List the scopes that entries and statements are in, or ask for one.

    The global scope is shown as (global); a scope that is really called so stands in quotes.

    \b
    Example:
      hypatia-mem scope list --count
    """,
)
tag = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List the tags of entries in this project and the global scope, or ask for one.

    \b
    Example:
      hypatia-mem tag list --count
    """,
)


@scope.command("list", cls=Leaf)
def scope_list(
    count: _Count = False, limit: Limit = 100, offset: Offset = 0, as_json: AsJson = False
) -> None:
    """List every scope in use, by name; what has no scope at all is in none.

    \b
    Example:
      hypatia-mem scope list --count
    """
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        found = listing.scopes_in_use(store, limit=limit + 1, offset=offset)
    rows = [
        {"scope": name, "count": entries + statements, "entries": entries, "statements": statements}
        for name, entries, statements in found
    ]
    _show("scope", rows, count, limit, offset, as_json)


@scope.command("exists", cls=Leaf)
def scope_exists(
    name: Annotated[
        str, typer.Argument(help='The scope; "" is the global one.', show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Tell by the exit code (0 yes, 1 no) whether anything is in a scope.

    \b
    Example:
      hypatia-mem scope exists app && echo yes
    """
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    wanted = values.checked(name, "the scope")
    with open_store(context.home(), write=False) as store:
        there = listing.scope_in_use(store, wanted)
    _answer("scope", wanted, there, as_json)


@tag.command("list", cls=Leaf)
def tag_list(
    count: _Count = False,
    limit: Limit = 100,
    offset: Offset = 0,
    scopes: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the tags in use in this project and the global scope, by name.

    \b
    Example:
      hypatia-mem tag list --all-projects
    """
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    wanted = context.scopes_for(scopes, all_projects)
    with open_store(context.home(), write=False) as store:
        found = listing.tags_in_use(store, wanted, limit=limit + 1, offset=offset)
    rows = [{"tag": name, "count": entries} for name, entries in found]
    _show("tag", rows, count, limit, offset, as_json)


@tag.command("exists", cls=Leaf)
def tag_exists(
    name: Annotated[str, typer.Argument(help="The tag.", show_default=False)],
    scopes: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Tell by the exit code (0 yes, 1 no) whether an entry here carries a tag.

    \b
    Example:
      hypatia-mem tag exists rule && echo yes
    """
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    wanted = values.checked(name, "the tag")
    within = context.scopes_for(scopes, all_projects)
    with open_store(context.home(), write=False) as store:
        there = listing.tag_in_use(store, wanted, within)
    _answer("tag", wanted, there, as_json)


def _show(
    what: str, rows: Sequence[dict[str, Any]], count: bool, limit: int, offset: int, as_json: bool
) -> None:
    """Print a page; ``rows`` holds one more than the page when there is a next one."""
    page = rows[:limit]
    if as_json:
        print_json(page)
    elif page:
        label = _scope_label if what == "scope" else _label
        lines = [(label(row[what]), *([str(row["count"])] if count else [])) for row in page]
        say(columns(lines))
    else:
        say(f"No {what}s here." if not offset else f"No more {what}s.")
    if len(rows) > limit:
        warn(f"There are more: --offset {offset + limit}")


def _answer(what: str, value: str, there: bool, as_json: bool) -> None:
    emit({what: value, "exists": there}, _quoted(value), as_json)
    if not there:
        raise typer.Exit(1)


def _scope_label(name: str) -> str:
    return _GLOBAL_LABEL if name == GLOBAL_SCOPE else _label(name)


def _label(name: str) -> str:
    """Return a name as it is, or in quotes where it could be taken for something else."""
    plain = name and name.isprintable() and name == name.strip() and name[0] not in '("'
    return name if plain else _quoted(name)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)

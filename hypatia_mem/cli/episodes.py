"""``episodes``: what stretches of sessions were about, each with the turns it stands on."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Scopes
from hypatia_mem.cli.output import print_json, say

__all__ = ["episodes"]


def episodes(
    session: Annotated[
        str, typer.Option("--session", help="Of this session alone.", metavar="ID")
    ] = "",
    limit: Limit = 10,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List what stretches of sessions were about: decided, left open, files, tests, commands.

    The worker makes one every ten exchanges, and of the rest when a session rests or ends. The
    latest come first.

    \b
    Example:
      hypatia-mem episodes --limit 3
    """
    from hypatia_mem.memory import retelling
    from hypatia_mem.memory.episodes import making
    from hypatia_mem.store import episodes as stored
    from hypatia_mem.store import hiding
    from hypatia_mem.store.connection import open_store

    asked = values.checked(session, "the session") if session else ""
    scopes = context.reach_of([asked] if asked else [], scope, all_projects)
    with open_store(context.home(), write=False) as store:
        if asked:
            found = hiding.episodes_of(store, asked, scopes, limit=limit)
        else:
            hidden = hiding.hidden_names(store, context.asker())
            found = stored.episodes(store, scopes, without=hidden, limit=limit)
        found = retelling.cleared(store, found)
        sources = stored.sources_of(store, [one.name for one in found])
    if as_json:
        print_json([making.row_of(one, sources.get(one.name, [])) for one in found])
        return
    for one in found:
        say(f"{one.name}  {one.created_at:%Y-%m-%d %H:%M}Z" if one.created_at else one.name)
        say("\n".join(f"  {line}" for line in one.content.splitlines()))
    if not found:
        say("No episode yet: one is made every ten exchanges, and when a session rests or ends.")

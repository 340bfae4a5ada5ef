"""``ask``: one to three queries about some topics, and the few entries that answer them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, AsSession, Scopes
from hypatia_mem.cli.output import print_json, say, warn

__all__ = ["ask"]


def ask(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]...", help="What it is about: names, words.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help="triple (what the graph says of a name), search, similar, pending (messages that "
            "no summary covers); up to three. Without it those that fit.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=5, help="At most so many.")] = 5,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the expressions that were asked.")
    ] = False,
    as_session: AsSession = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Find the few entries that some topics need: one to three queries, at most five entries.

    Only what is true now, of this project and the global scope. What is printed is quoted, as data
    for a prompt; the topics are asked for, never the words of a whole prompt.

    \b
    Example:
      hypatia-mem ask "connection pool" PostgreSQL
      hypatia-mem ask --strategy pending --explain
    """
    from hypatia_mem.cli.querying import run_query
    from hypatia_mem.memory import asking
    from hypatia_mem.store import edges
    from hypatia_mem.store.connection import open_store

    context.ask_as(as_session)
    wanted = [values.checked(topic, "a topic") for topic in topics or ()]
    home, scopes = context.home(), context.scopes_for(scope, all_projects)
    with open_store(home, write=False) as store:
        named = [topic for topic in wanted if edges.named(store, topic, scopes)]
    asked = asking.plan(
        wanted, strategy or (), named=named, as_of=context.now(), limit=max(limit, 5)
    )

    def run(expression: Mapping[str, Any]) -> list[dict[str, Any]]:
        return run_query(home, json.dumps(expression), scope=scopes, all_projects=scopes is None)

    found = asking.gather(asked, run, limit=limit)
    if as_json:
        queries = [{"strategy": one.strategy, "expression": one.expression} for one in asked]
        rows = [
            {"strategy": one.strategy, "catalog": one.catalog, "key": one.key, "text": one.text}
            for one in found
        ]
        print_json({"queries": queries, "rows": rows})
        return
    if explain:
        for one in asked:
            warn(f"{one.strategy}: {json.dumps(one.expression, ensure_ascii=False)}")
    say(asking.block(found) or "Nothing is known about it here.")

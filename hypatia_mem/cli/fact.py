"""``fact``: values kept under a key, asked for when they matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Scopes
from hypatia_mem.cli.output import emit, held_back, print_json, say
from hypatia_mem.errors import Refused, one_of

if TYPE_CHECKING:
    from hypatia_mem.model import Entry

__all__ = ["fact"]

fact = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Keep values under a key: facts, preferences, procedures; told when asked for.

    \b
    Example:
      hypatia-mem fact set "default region" eu-west-1 --kind preference
    """,
)
_Kind = Annotated[str, typer.Option("--kind", help="Only preference, or procedure.")]


@fact.command("set", cls=Leaf)
def set_(
    key: Annotated[str, typer.Argument(help="What it is called.", show_default=False)],
    value: Annotated[
        str,
        typer.Argument(
            help="What it is; - reads standard input, @FILE a file.", show_default=False
        ),
    ],
    kind: Annotated[str, typer.Option("--kind", help="It is a preference, or a procedure.")] = "",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag beside it; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a value under a key of this project; what it was before stays in its history.

    \b
    Example:
      hypatia-mem fact set "default region" eu-west-1
    """
    from hypatia_mem.memory import facts

    scope = context.current_scope(claim=True)
    outcome = facts.put(
        context.home(),
        values.checked(key, "the key"),
        values.read_text(value, "the value"),
        sort=kind,
        tags=[values.checked(one, "a tag") for one in tag or ()],
        scope=scope,
        author=context.author(),
        now=context.now(),
    )
    if outcome.verb == "refused":
        raise Refused(
            f"not stored: {outcome.reason or 'this was forgotten before'}",
            hint="A person can bring it back by running this command in a terminal.",
        )
    verbs = {"unchanged": "Already stored", "updated": "Changed"}
    line = f'[hypatia-memory] {verbs.get(outcome.verb, "Stored")}: "{outcome.name}".'
    machine: dict[str, Any] = {"verb": outcome.verb, "name": outcome.name, "scopes": [scope]}
    if outcome.details.get("quarantined"):
        machine |= {"quarantined": True, "reason": outcome.reason}
        line = held_back(outcome)
    emit(machine, line, as_json)


@fact.command("list", cls=Leaf)
def list_(
    kind: _Kind = "",
    limit: Limit = 100,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the facts of this project and the global ones; of a kind, remembered ones too.

    \b
    Example:
      hypatia-mem fact list --kind procedure
    """
    from hypatia_mem.memory import facts
    from hypatia_mem.memory.curate import SORTS
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    wanted = one_of(kind, SORTS, "--kind") if kind else facts.TAG
    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        found = listing.entries_tagged(store, wanted, scopes, at=context.now(), limit=limit)
    _say(found, as_json)


@fact.command("query", cls=Leaf)
def query(
    words: Annotated[str, typer.Argument(help="What it is about.", show_default=False)],
    kind: _Kind = "",
    limit: Limit = 5,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Find the facts that some words are about, the nearest first; nothing when there is none.

    \b
    Example:
      hypatia-mem fact query region --limit 1
    """
    from hypatia_mem.cli import searching
    from hypatia_mem.memory import facts
    from hypatia_mem.memory.curate import SORTS
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.search import Filters

    filters = Filters(
        scopes=context.scopes_for(scope, all_projects),
        catalog="knowledge",
        tags=[one_of(kind, SORTS, "--kind") if kind else facts.TAG],
        as_of=context.now(),
    )
    hits = searching.find(
        context.home(), values.checked(words, "the words"), filters=filters, limit=limit
    )
    names = [hit.name for hit in hits]
    with open_store(context.home(), write=False) as store:
        found = store.live_entries(names)
    _say(sorted(found, key=lambda one: names.index(one.name)), as_json)


def _say(found: list[Entry], as_json: bool) -> None:
    if as_json:
        print_json([_row(one) for one in found])
        return
    for one in found:
        say(f"{one.name}  [{', '.join(one.tags)}]\n  {' '.join(one.content.split())[:300]}")
    if not found:
        say("There is none.")


def _row(one: Entry) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    return {
        "name": one.name,
        "value": one.content,
        "tags": list(one.tags),
        "scopes": list(one.scopes),
        "trust": str(one.trust),
        "version": one.version,
        "created_at": time_text(one.created_at),
    }

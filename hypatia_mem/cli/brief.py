"""What a session is told when it begins; of any time."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AsJson, AsKnownAt, AsOf
from hypatia_mem.cli.output import emit, say
from hypatia_mem.cli.searching import moment

__all__ = ["brief"]


def brief(
    as_of: AsOf = None,
    as_known_at: AsKnownAt = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", help='Of this project; "" is what holds everywhere.'),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="ID",
            help="As this session is told, which may be a branch; by default the one that asks.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a session of this project is told when it begins.

    With --as-of it is what one will be told, or should have been, at that time; with --as-known-at
    what one beginning then was told, but for what was forgotten since.

    \b
    Example:
      hypatia-mem brief --as-of 2027-01-01
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import compose
    from hypatia_mem.store.connection import open_store

    at, known_at = moment(as_of, "--as-of"), moment(as_known_at, "--as-known-at")
    home = context.home()
    context.ask_as(session)
    wanted = context.current_scope() if scope is None else scope
    with open_store(home, write=False) as store:
        text = compose.brief_text(
            store,
            wanted,
            limit=load_settings(home).brief_max_units,
            at=at,
            known_at=known_at,
            asker=context.asker(),
        )
    if as_json or text:
        emit({"scope": wanted, "text": text, "units": compose.units(text)}, text, as_json)
    else:
        say("A session here would be told nothing.")

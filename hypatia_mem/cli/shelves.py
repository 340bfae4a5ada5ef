"""Shelves: memories of their own, each in a folder, that ``--shelf`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit

__all__ = ["connect", "disconnect", "list_"]


def connect(
    path: Annotated[str, typer.Argument(help="The shelf's folder.", show_default=False)],
    name: Annotated[
        str, typer.Option("-n", "--name", help="Its name here; without it the folder's.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Register a folder as a shelf: a memory of its own that --shelf names.

    A new or empty folder gets an empty memory. Hooks go on writing into the default shelf; nothing
    of another one is read or changed unless a command names it.

    \b
    Example:
      hypatia-mem connect ~/memories/work -n work
      hypatia-mem search "release notes" -s work
    """
    from hypatia_mem.memory import shelves

    folder = Path(values.checked(path, "the folder"))
    shelf = shelves.connect(context.own_home(), folder, values.checked(name, "--name"))
    machine = {"name": shelf.name, "path": str(shelf.path), "connected": True}
    emit(machine, f"Shelf '{shelf.name}' connected and registered.", as_json)


def disconnect(
    name: Annotated[str, typer.Argument(help="The shelf's name.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Take a shelf off the list; its folder and all that is in it stay.

    \b
    Example:
      hypatia-mem disconnect work
    """
    from hypatia_mem.memory import shelves

    path = shelves.disconnect(context.own_home(), name)
    text = f"Shelf '{name}' disconnected and unregistered."
    emit({"name": name, "path": str(path)}, text, as_json)


def list_(as_json: AsJson = False) -> None:
    """List the registered shelves with their folders, and whether each can be read.

    The shelf "default" is this memory itself; it is there without being registered.

    \b
    Example:
      hypatia-mem list
    """
    from hypatia_mem.memory import shelves

    known = shelves.registered(context.own_home())
    machine = [
        {"name": one.name, "path": str(one.path), "connected": one.connected} for one in known
    ]
    width = max((len(one.name) for one in known), default=0)
    lines = [
        f"  {one.name:<{width}}  {one.path}  [{'connected' if one.connected else 'disconnected'}]"
        for one in known
    ]
    emit(machine, "\n".join(lines) or "No shelves registered.", as_json)

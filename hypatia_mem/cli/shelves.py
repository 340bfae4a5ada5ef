"""Shelves: memories of their own, each in a folder, that ``--shelf`` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit, warn
from hypatia_mem.errors import HypatiaError

__all__ = ["connect", "disconnect", "export", "import_", "list_", "names"]


def names(incomplete: str) -> list[str]:
    """Return the shelves' names that begin so, for completion; never an error while one types."""
    from hypatia_mem.memory.sharing import shelves

    try:
        known = shelves.registered(context.own_home())
    except (HypatiaError, OSError):
        known = []
    found = [shelves.DEFAULT, *(one.name for one in known)]
    return [name for name in found if name.startswith(incomplete)]


def connect(
    path: Annotated[str, typer.Argument(help="The shelf's folder.", show_default=False)],
    name: Annotated[
        str, typer.Option("-n", "--name", help="Its name here; without it the folder's.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Register a folder as a shelf: a memory of its own that --shelf names.

    A new or empty folder gets an empty memory; FOLDER alone is one of the current folder, and one
    inside a git repository is kept out of its commits. Hooks go on writing into the default
    shelf; nothing of another one is read or changed unless a command names it.

    \b
    Example:
      hypatia-mem connect ~/memories/work -n work
      hypatia-mem search "release notes" -s work
    """
    from hypatia_mem.memory.sharing import shelves

    folder = Path(values.checked(path, "the folder"))
    shelf = shelves.connect(context.own_home(), folder, values.checked(name, "--name"))
    machine = {"name": shelf.name, "path": str(shelf.path), "connected": True}
    emit(machine, f"Shelf '{shelf.name}' connected and registered.", as_json)
    repository = shelves.repository_of(shelf.path)
    if repository is not None:
        warn(
            f"Its folder {shelf.path} lies in the repository {repository}: a .gitignore in it keeps"
            " it out of commits. To have it elsewhere: disconnect it, delete the folder, connect"
            " another."
        )


def disconnect(
    name: Annotated[
        str,
        typer.Argument(help="The shelf's name.", show_default=False, autocompletion=names),
    ],
    as_json: AsJson = False,
) -> None:
    """Take a shelf off the list; its folder and all that is in it stay.

    \b
    Example:
      hypatia-mem disconnect work
    """
    from hypatia_mem.memory.sharing import shelves

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
    from hypatia_mem.memory.sharing import shelves

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


def export(
    name: Annotated[
        str,
        typer.Argument(
            help='The shelf; "default" is this memory.', show_default=False, autocompletion=names
        ),
    ],
    dest: Annotated[str, typer.Argument(help="A new or empty folder.", show_default=False)],
    share: Annotated[
        bool,
        typer.Option("--share", help="Only what reads return: nothing withheld or forgotten."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what a shelf holds now into a folder: plain JSON lines, kept files, checksums.

    Earlier versions and the ledger stay behind, and turns that wait in the spool are not yet in
    it. Forgotten things are there only as keyed digests, with the key, so that they stay
    forgotten where the export is imported; keep it as private as the memory. An export that is
    given away is made with --share: nothing that is rejected, suppressed or waits for a review is
    in it, no reasons, no digests and no key. Secrets in a text are redacted in either, as a hook
    would have; kept files are copied as they are.

    \b
    Example:
      hypatia-mem export default ~/backups/memory-2026-05
    """
    from hypatia_mem.memory.sharing import exporting, shelves

    home = shelves.shelf_home(context.own_home(), name)
    folder = Path(values.checked(dest, "the folder"))
    done = exporting.export_shelf(home, folder, shelf=name, shared=share)
    for lost in done.missing:
        warn(f"An entry names archive://{lost}, and there is no such file.")
    machine = {
        "shelf": name,
        "path": str(done.folder),
        "rows": dict(done.counts),
        "files": done.files,
        "missing": list(done.missing),
        "redacted": done.redacted,
    }
    text = f"Exported shelf '{name}' to {done.folder}\n  {_counted(done.counts, done.files)}"
    emit(machine, text + _redacted(done.redacted), as_json)


def import_(
    source: Annotated[str, typer.Argument(help="The folder of an export.", show_default=False)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify everything and store nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take an export into an empty shelf, after every file in it was verified.

    What was forgotten, there, here, or in any other connected shelf, is not taken in, and secrets
    in a text are redacted. An import
    that was interrupted goes on where it stopped when it is started again. Another machine knows
    nothing of it: make the export anew after something was forgotten.

    \b
    Example:
      hypatia-mem connect ~/memories/old -n old
      hypatia-mem import ~/backups/memory-2026-05 -s old
    """
    from hypatia_mem.memory.sharing import importing, shelves

    folder = Path(values.checked(source, "the folder"))
    home = context.home()
    done = importing.import_shelf(
        home,
        folder,
        author=context.author(),
        now=context.now(),
        others=shelves.others(context.own_home(), home),
        dry_run=dry_run,
    )
    for name, why in done.unasked.items():
        warn(f"Shelf '{name}' could not be asked what was forgotten there: {why}.")
    machine = {
        "shelf": context.shelf(),
        "rows": dict(done.counts),
        "files": done.files,
        "refused": done.refused,
        "refused_elsewhere": dict(done.elsewhere),
        "unasked": dict(done.unasked),
        "redacted": done.redacted,
        "dry_run": dry_run,
    }
    verb = "Would import" if dry_run else "Imported"
    lines = [
        f"{verb} {folder} into shelf '{context.shelf()}'",
        f"  {_counted(done.counts, done.files)}",
    ]
    if done.refused:
        lines.append(f"  {done.refused} left out: forgotten before")
    for name, count in done.elsewhere.items():
        lines.append(f"  {count} left out: forgotten in shelf '{name}'")
    emit(machine, "\n".join(lines) + _redacted(done.redacted), as_json)


def _redacted(count: int) -> str:
    """Say in how many texts a secret was, nothing for none."""
    if not count:
        return ""
    return f"\n  {count} {'text' if count == 1 else 'texts'} with a secret, which was redacted"


def _counted(counts: Mapping[str, int], files: int) -> str:
    words = (("entry", "entries"), ("statement", "statements"), ("session", "sessions"))
    parts = [f"{counts.get(table, 0)} {word}" for table, word in words]
    return ", ".join([*parts, f"{files} files"])

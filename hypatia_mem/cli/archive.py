"""Files kept with the memory: store, find or copy out, list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Offset, Scopes
from hypatia_mem.cli.output import emit, print_json, say
from hypatia_mem.errors import NotFound

__all__ = ["archive_get", "archive_list", "archive_store"]


def archive_store(
    file: Annotated[str, typer.Argument(help="The file to keep.", show_default=False)],
    name: Annotated[
        str,
        typer.Option("-n", "--name", help="Its name there, like euclid/fig1.png; else the file's."),
    ] = "",
    scopes: Annotated[
        str | None,
        typer.Option(
            "--scopes",
            help='Scopes, separated by commas; "" is global. Without it: the current project.',
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a copy of a file of up to 100 MiB, described by an entry that "is_a archive".

    The file is kept byte for byte: secrets in it are not taken out. Deleting its entry leaves the
    copy, so that "undo" can bring both back; "forget --id NAME" removes it for good.

    \b
    Example:
      hypatia-mem archive-store fig1.png -n euclid/fig1.png
    """
    from hypatia_mem.memory.sharing import archive

    source = Path(values.checked(file, "the file"))
    label = archive.checked_name(values.checked(name, "--name") or source.name)
    within = (
        values.parse_scopes(scopes) if scopes is not None else (context.current_scope(claim=True),)
    )
    kept = archive.store_file(
        context.home(),
        source,
        name=label,
        scopes=within,
        author=context.author(),
        now=context.now(),
    )
    machine = {
        "uri": kept.uri,
        "name": kept.name,
        "mime_type": kept.mime_type,
        "size_bytes": kept.size,
        "sha256": kept.digest,
    }
    lines = (
        f"Stored: {kept.uri}",
        f"Knowledge: {kept.name}",
        f"MIME: {kept.mime_type}, Size: {kept.size} bytes",
    )
    emit(machine, "\n".join(lines), as_json)


def archive_get(
    name: Annotated[
        str, typer.Argument(help="The file's name, or its archive:// link.", show_default=False)
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Copy it there; an existing file is never replaced."),
    ] = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Print where a kept file lies, or copy it out; one of this project or a global one.

    A missing one is a sentence and exit code 0, as Hypatia has it; with --json an error.

    \b
    Example:
      hypatia-mem archive-get euclid/fig1.png -o /tmp/fig1.png
    """
    from hypatia_mem.memory.sharing import archive
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    home = context.home()
    path = archive.path_of(home, name)
    plain = archive.checked_name(name)
    scopes = context.scopes_for(scope, all_projects)
    with open_store(home, write=False) as store:
        known = archive.SCHEME + plain in listing.figures_in_use(store, scopes)
    if not known or not path.is_file():
        if as_json:
            raise NotFound(f"archive {plain!r}", hint="List them: hypatia-mem archive-list")
        say(f"Archive '{plain}' not found in shelf '{context.shelf()}'.")
        return
    if output is None:
        emit({"name": plain, "path": str(path)}, str(path), as_json)
        return
    target = archive.copy_out(home, plain, Path(values.checked(output, "--output")))
    emit({"name": plain, "path": str(target)}, f"Copied to: {target}", as_json)


def archive_list(
    limit: Limit = 100,
    offset: Offset = 0,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the links of the files kept for this project and the global scope.

    \b
    Example:
      hypatia-mem archive-list
    """
    from hypatia_mem.memory.sharing import archive
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    home = context.home()
    within = context.scopes_for(scope, all_projects)
    with open_store(home, write=False) as store:
        named = listing.figures_in_use(store, within)
    links = [archive.SCHEME + one for one in archive.file_names(home)]
    found = [link for link in links if link in named]
    page = found[offset : offset + limit]
    if as_json:
        print_json({"total": len(found), "files": page})
    elif not found:
        say(f"No archive files in shelf '{context.shelf()}'.")
    else:
        for link in page:
            say(f"  {link}")
        say(f"  ({len(found)} file{'' if len(found) == 1 else 's'})")

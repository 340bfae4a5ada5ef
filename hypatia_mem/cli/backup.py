"""``backup``: make, list, check and thin out backups, and go back to one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import MOST, AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say
from hypatia_mem.errors import Refused

if TYPE_CHECKING:
    from hypatia_mem.memory.backup import Backup

__all__ = ["backup"]

backup = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Make, list, check and thin out backups, and go back to one.

    \b
    Example:
      hypatia-mem backup create --reason "before the big merge"
    """,
)


@backup.command("create", cls=Leaf)
def create(
    reason: Annotated[str, typer.Option("--reason", help="Why; shown in the list.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a verified backup of this memory: store, kept files, keys.

    \b
    Example:
      hypatia-mem backup create
    """
    from hypatia_mem.capture.redact import redact_text
    from hypatia_mem.memory import backup as backup_

    made = backup_.create(context.home(), now=context.now(), reason=redact_text(reason))
    emit(_row(made), f"Backup {made.id}: {_size(made.size)}, verified.", as_json)


@backup.command("list", cls=Leaf)
def list_(
    all_: Annotated[
        bool, typer.Option("--all", help="The worker's own snapshots of the store too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the backups, newest first.

    \b
    Example:
      hypatia-mem backup list --all
    """
    from hypatia_mem.memory import backup as backup_

    found = backup_.backups(context.home(), automatic=all_)
    if as_json:
        print_json([_row(one) for one in found])
    elif found:
        say(columns([_cells(one) for one in found]))
    else:
        say("There are no backups yet. Make one with: hypatia-mem backup create")


@backup.command("verify", cls=Leaf)
def verify(
    name: Annotated[
        str | None,
        typer.Argument(help="A backup's id, or latest; without it all.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read every file and every row of a backup. Exit code 1 when one is damaged.

    \b
    Example:
      hypatia-mem backup verify latest
    """
    from hypatia_mem.memory import backup as backup_

    home = context.home()
    chosen = [backup_.find(home, name)] if name else backup_.backups(home)
    found = {one.id: backup_.verify(home, one) for one in chosen}
    if as_json:
        print_json([{"id": id_, "problems": wrong} for id_, wrong in found.items()])
    elif found:
        say(columns([(id_, "; ".join(wrong) or "whole") for id_, wrong in found.items()]))
    else:
        say("There are no backups yet. Make one with: hypatia-mem backup create")
    if any(found.values()):
        raise typer.Exit(1)


@backup.command("prune", cls=Leaf)
def prune(
    keep: Annotated[
        int, typer.Option("--keep", min=1, max=MOST, help="How many of the newest stay.")
    ] = 5,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old backups; the newest that is whole stays in any case. Only a person can do it.

    \b
    Example:
      hypatia-mem backup prune --keep 3 --dry-run
    """
    from hypatia_mem.memory import backup as backup_
    from hypatia_mem.memory import persons

    home = context.home()
    if not dry_run:
        persons.only(
            home, context.author(), "remove a backup", now=context.now(), verb="prune backups"
        )
    gone = backup_.prune(home, keep=keep, dry_run=dry_run)
    verb = "Would remove" if dry_run else "Removed"
    names = ", ".join(one.id for one in gone)
    text = f"{verb} {len(gone)}: {names}" if gone else "Nothing to remove."
    emit({"removed": [one.id for one in gone], "dry_run": dry_run}, text, as_json)


@backup.command("restore", cls=Leaf)
def restore(
    name: Annotated[
        str, typer.Argument(help="A backup's id, latest, or its folder.", show_default=False)
    ],
    into: Annotated[
        Path | None,
        typer.Option("--into", help="Make a memory of its own there; this one stays as it is."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the backup and show what is in it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Go back to a backup; the present is backed up first.

    What was forgotten or erased since stays so. Turns captured since are taken in again from the
    spool. Only a person at a terminal can do it, except with --into.

    \b
    Example:
      hypatia-mem backup restore latest --into /tmp/look
    """
    from hypatia_mem.memory import backup as backup_
    from hypatia_mem.model import PERSON_CHANNELS
    from hypatia_mem.worker import alone

    home = context.home()
    found = backup_.find(home, name)
    if dry_run:
        wrong = backup_.verify(home, found)
        text = "; ".join(wrong) or f"Whole: {'  '.join(_cells(found)).rstrip()}"
        emit({**_row(found), "problems": wrong, "dry_run": True}, text, as_json)
        return
    if into is not None:
        done = backup_.restore_into(home, found, into)
    else:
        author = context.author()
        if author.channel not in PERSON_CHANNELS:
            raise Refused(
                "only a person at a terminal can put a backup in the place of the present",
                hint="Look at it in a folder of its own: hypatia-mem backup restore ... --into",
            )
        with alone(home):
            done = backup_.restore(home, found, author=author, now=context.now())
    saved = done.saved.id if done.saved is not None else None
    lines = [f"Restored {found.id} in {done.home}."]
    if saved:
        lines.append(f"The present was kept as backup {saved}.")
    if done.kept:
        lines.append(f"The store could not be read any more; it is kept in {done.kept}.")
    if done.forgotten:
        lines.append("What was forgotten or erased since then was forgotten again.")
    machine = {
        "restored": found.id,
        "home": str(done.home),
        "saved": saved,
        "kept": None if done.kept is None else str(done.kept),
        "forgotten_again": done.forgotten,
    }
    emit(machine, "\n".join(lines), as_json)


def _row(one: Backup) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    return {
        "id": one.id,
        "made_at": time_text(one.made_at),
        "reason": one.reason,
        "automatic": one.automatic,
        "bytes": one.size,
        "ledger_seq": one.seq,
        "entries": one.counts.get("entry", 0),
        "messages": one.counts.get("message", 0),
        "path": str(one.path),
    }


def _cells(one: Backup) -> tuple[str, ...]:
    kind = "snapshot" if one.automatic else "backup"
    counts = f"{one.counts.get('entry', 0)} entries"
    return (one.id, kind, _size(one.size), counts, one.reason)


def _size(count: int) -> str:
    return f"{count / 1024 / 1024:.1f} MiB" if count >= 1 << 20 else f"{max(1, count // 1024)} KiB"

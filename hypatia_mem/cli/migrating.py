"""``migrate``: which schema the store is on, and the way to the newest, with a backup before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit

if TYPE_CHECKING:
    from hypatia_mem.memory.migrating import Migrated

__all__ = ["migrate"]


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which steps wait, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which schema the store is on, back it up, and run the steps it lacks.

    Whatever opens an older store for writing runs them too; this shows it and makes a backup
    first. Run again it changes nothing. A store that a newer program wrote is refused.

    \b
    Example:
      hypatia-mem migrate --dry-run
    """
    from hypatia_mem.memory import migrating

    found = migrating.migrate(context.home(), now=context.now(), dry_run=dry_run)
    emit(_machine(found, dry_run=dry_run), _text(found, dry_run=dry_run), as_json)


def _machine(found: Migrated, *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": found.after.name or None,
        "was": found.before.name or None,
        "steps": list(found.ran),
        "dry_run": dry_run,
        "backup": None if found.backup is None else found.backup.id,
        "reconstructed": found.after.reconstructed,
        "unplaced": found.after.unplaced,
        "lost": found.before.lost,
    }


def _text(found: Migrated, *, dry_run: bool) -> str:
    lines = []
    if not found.ran:
        lines.append(f"The store is on the newest schema ({found.after.name}); nothing to do.")
    elif dry_run:
        lines.append(f"The store is on {found.before.name or 'no schema yet'}. These steps wait:")
        lines += [f"  {name}" for name in found.ran]
        lines.append("Nothing was changed.")
    else:
        steps = "1 step" if len(found.ran) == 1 else f"{len(found.ran)} steps"
        lines.append(f"Ran {steps}: {', '.join(found.ran)}.")
        if found.backup is not None:
            lines.append(f"The store as it was is kept as backup {found.backup.id}.")
    return "\n".join([*lines, *_rebuilt(found)])


def _rebuilt(found: Migrated) -> list[str]:
    """Say what of the history is not as it was kept; one line that there is nothing, if so."""
    after, lost = found.after, found.before.lost
    lines = []
    if after.reconstructed:
        lines.append(
            f"Reconstructed with the help of the ledger: {_count(after.reconstructed)}."
            " Words and times are as they were kept; history marks them."
        )
    if after.unplaced:
        lines.append(f"Entries and statements that the ledger does not know: {after.unplaced}.")
    if lost:
        lines.append(f"Cannot be recovered: {_count(lost)} of entries that are gone.")
    return lines or ["Nothing had to be reconstructed, and nothing is lost."]


def _count(count: int) -> str:
    return "1 earlier state" if count == 1 else f"{count} earlier states"

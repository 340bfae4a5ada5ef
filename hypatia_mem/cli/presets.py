"""``preset``: settings under a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say, warn

if TYPE_CHECKING:
    from hypatia_mem.config.presets import Change, Preset

__all__ = ["preset"]

preset = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Keep settings under a name, take them up together, take in somebody else's.

    A preset holds what is set in config.toml; taking it up takes everything else back to its
    default. Keys, and who is asked with them, are in none.

    \b
    Example:
      hypatia-mem preset save quiet
    """,
)
_Name = Annotated[str, typer.Argument(help="The preset's name.", show_default=False)]
_Replace = Annotated[bool, typer.Option("--replace", help="In the place of one of that name.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change; change nothing.")]


@preset.command("list", cls=Leaf)
def list_(as_json: AsJson = False) -> None:
    """List the presets there are.

    \b
    Example:
      hypatia-mem preset list
    """
    from hypatia_mem.config import presets
    from hypatia_mem.errors import ConfigError

    home = context.home()
    found = []
    for name in presets.names(home):
        try:
            found.append(presets.read(home, name))
        except ConfigError as error:  # one that is broken hides no other
            found.append(presets.Preset(name, {}, (error.message,)))
            warn(f"Note: {error.message}")
    if as_json:
        print_json([_row(one) for one in found])
        return
    say(columns([(one.name, f"{len(one.values)} settings") for one in found]) or "There are none.")


@preset.command(cls=Leaf)
def show(name: _Name, as_json: AsJson = False) -> None:
    """Show what a preset holds, and what taking it up would change.

    \b
    Example:
      hypatia-mem preset show quiet
    """
    from hypatia_mem.config import presets

    home = context.home()
    found = presets.read(home, name)
    changes = presets.changes_of(home, found)
    _warn(found)
    if as_json:
        print_json({**_row(found), "would_change": [_change(one) for one in changes]})
        return
    say(columns([(key, _shown(value)) for key, value in found.values.items()]) or "It is empty.")
    say(_told(changes, "Would change", "It is what is in force."))


@preset.command(cls=Leaf)
def save(name: _Name, replace: _Replace = False, as_json: AsJson = False) -> None:
    """Keep what is set now under a name.

    \b
    Example:
      hypatia-mem preset save quiet
    """
    from hypatia_mem.config import presets

    context.refuse_client("say which presets there are")
    found = presets.save(context.home(), name, replace=replace)
    emit(_row(found), f"Kept: {found.name} ({len(found.values)} settings)", as_json)


@preset.command(cls=Leaf)
def use(name: _Name, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    """Take a preset up; what was set before is kept as the preset previous.

    \b
    Example:
      hypatia-mem preset use quiet --dry-run
    """
    from hypatia_mem.config import presets

    if not dry_run:
        context.refuse_client("change a setting: what is kept, what it costs, and who is asked")
    home = context.home()
    found = presets.read(home, name)
    changes = presets.changes_of(home, found) if dry_run else presets.use(home, found)
    _warn(found)
    verb = "Would change" if dry_run else "Changed"
    key = "would_change" if dry_run else "changed"
    emit(
        {"preset": found.name, key: [_change(one) for one in changes]},
        _told(changes, verb, "Nothing changes: it is what is in force."),
        as_json,
    )


@preset.command("import", cls=Leaf)
def import_(
    file: Annotated[Path, typer.Argument(help="Somebody's preset.", show_default=False)],
    name: Annotated[str, typer.Option("--name", help="Its name here; else the file's.")] = "",
    replace: _Replace = False,
    as_json: AsJson = False,
) -> None:
    """Take in a preset from a file; what is no setting, not allowed or costs money is left out.

    It is only kept: preset use takes it up.

    \b
    Example:
      hypatia-mem preset import ~/Downloads/quiet.toml
    """
    from hypatia_mem.config import presets

    context.refuse_client("say which presets there are")
    found = presets.take_in(context.home(), file, name or file.stem.lower(), replace=replace)
    _warn(found)
    emit(_row(found), f"Kept: {found.name} ({len(found.values)} settings)", as_json)


@preset.command(cls=Leaf)
def drop(name: _Name, dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    """Take a preset away; the settings stay as they are.

    \b
    Example:
      hypatia-mem preset drop quiet
    """
    from hypatia_mem.config import presets

    if not dry_run:
        context.refuse_client("say which presets there are")
    home = context.home()
    presets.read(home, name)
    if not dry_run:
        presets.remove(home, name)
    verb = "Would be removed" if dry_run else "Removed"
    emit({"would_remove" if dry_run else "removed": name}, f"{verb}: {name}", as_json)


# ----------------------------------------------------------------------------------------------


def _warn(found: Preset) -> None:
    for one in found.warnings:
        warn(f"Note: {one}")


def _row(found: Preset) -> dict[str, Any]:
    return {
        "preset": found.name,
        "values": dict(found.values),
        "left_out": list(found.warnings),
    }


def _change(one: Change) -> dict[str, Any]:
    return {"key": one.key, "before": one.before, "after": one.after, "default": not one.is_set}


def _told(changes: Sequence[Change], verb: str, nothing: str) -> str:
    if not changes:
        return nothing
    rows = [
        (
            one.key,
            f"{_shown(one.before)} -> {_shown(one.after)}{'' if one.is_set else ' (default)'}",
        )
        for one in changes
    ]
    return f"{verb}:\n{columns(rows)}"


def _shown(value: Any) -> str:  # noqa: ANN401 - any setting's value
    return ("on" if value else "off") if isinstance(value, bool) else str(value)

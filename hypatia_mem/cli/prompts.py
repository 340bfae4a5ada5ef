"""``prompts``: what a model is told that condenses, in the user's own words."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit, print_json, say
from hypatia_mem.errors import UsageError

__all__ = ["prompts"]

prompts = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Read and change what a model is told that condenses (summary_by anthropic, claude-cli).

    There are two: summary for messages, resummary for summaries of them. {{slot}} in one says where
    the items come; without it they come after it. The form that answers have to have is part of the
    built-in ones: keep it. What asks no model (extractive) is told nothing.

    \b
    Example:
      hypatia-mem prompts show summary
    """,
)
_Kind = Annotated[str, typer.Argument(help="summary or resummary.", show_default=False)]
_AnyKind = Annotated[
    str | None, typer.Argument(help="summary or resummary; both where none is named.")
]


@prompts.command(cls=Leaf)
def show(
    kind: _AnyKind = None,
    default: Annotated[
        bool, typer.Option("--default", help="Show the built-in ones, whatever is in force.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the prompts in force.

    \b
    Example:
      hypatia-mem prompts show resummary
    """
    from hypatia_mem.memory.summarise.prompts import built_in

    rows = [_row(one) for one in _kinds(kind)]
    if default:
        rows = [{**row, "own": False, "text": built_in(row["prompt"])} for row in rows]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        where = f"your own, {row['path']}" if row["own"] else "built in"
        say(f"# {row['prompt']} ({where})")
        say(row["text"])


@prompts.command(cls=Leaf)
def edit(
    kind: _Kind,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            help="The new prompt; - reads standard input, @FILE a file. Without it $EDITOR opens.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put a prompt of your own in the place of a built-in one; a blank one goes back to it.

    Summaries that are there stay as they are; each says by which prompts it was made.

    \b
    Example:
      hypatia-mem prompts edit summary --text @my-prompt.md
    """
    from hypatia_mem.memory.summarise import ownrules

    context.refuse_client("say what a model is told")
    home = context.home()
    before = ownrules.rules_of(home, kind)
    words = _edited(before.text) if text is None else values.read_text(text, "the prompt")
    if text is None and words.strip() == before.text.strip():
        emit(_row(kind), f"Unchanged: {kind}", as_json)
        return
    after = ownrules.write(home, kind, words)
    told = f"Kept: {after.path}" if after.own else f"{kind} is the built-in one"
    if after.own and not after.slot:
        told += "\nIt has no {{slot}}, so the items come after it."
    emit(_row(kind), told, as_json)


@prompts.command(cls=Leaf)
def reset(
    kind: _AnyKind = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Go back to the built-in prompts; your own are removed.

    \b
    Example:
      hypatia-mem prompts reset resummary
    """
    from hypatia_mem.memory.summarise import ownrules

    if not dry_run:
        context.refuse_client("say what a model is told")
    home = context.home()
    kinds = [one for one in _kinds(kind) if ownrules.path_of(home, one).exists()]
    if not dry_run:
        for one in kinds:
            ownrules.remove(home, one)
    verb = "Would be removed" if dry_run else "Removed"
    text = f"{verb}: {', '.join(kinds)}" if kinds else "There are none of your own."
    emit({"would_remove" if dry_run else "removed": kinds}, text, as_json)


@prompts.command(cls=Leaf)
def path(kind: _AnyKind = None, as_json: AsJson = False) -> None:
    """Print where prompts of your own belong, whether there are any or not.

    \b
    Example:
      hypatia-mem prompts path summary
    """
    from hypatia_mem.memory.summarise import ownrules

    found = {one: str(ownrules.path_of(context.home(), one)) for one in _kinds(kind)}
    emit(found, "\n".join(found.values()), as_json)


# ----------------------------------------------------------------------------------------------


def _kinds(kind: str | None) -> list[str]:
    from hypatia_mem.memory.summarise import ownrules
    from hypatia_mem.memory.summarise.prompts import KINDS

    if kind is None:
        return list(KINDS)
    ownrules.path_of(context.home(), kind)
    return [kind]


def _row(kind: str) -> dict[str, Any]:
    from hypatia_mem.memory.summarise import ownrules

    found = ownrules.rules_of(context.home(), kind)
    return {
        "prompt": found.kind,
        "own": found.own,
        "slot": found.slot,
        "digest": found.digest,
        "path": str(found.path),
        "text": found.text,
    }


def _edited(text: str) -> str:
    from hypatia_mem.cli.editing import edit_text

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command or not sys.stdin.isatty():
        raise UsageError(
            "say the new prompt with --text, or set $EDITOR and run this in a terminal",
            hint="Example: hypatia-mem prompts edit summary --text @my-prompt.md",
        )
    return edit_text(text, command)

"""Making a summary anew from the command line: a preview, and its acceptance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.cli.progress import mark_as_own

if TYPE_CHECKING:
    from hypatia_mem.memory.cascade.regenerate import Preview

__all__ = ["regenerate"]


def regenerate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SUMMARY...",
            help="A summary; or several of one level, which become one.",
            show_default=False,
        ),
    ],
    most: Annotated[
        int,
        typer.Option(
            "--words", min=0, max=MOST, help="At most so many words; 0 is what settings say."
        ),
    ] = 0,
    accept: Annotated[
        str,
        typer.Option("--accept", help="Store the text that this ticket names.", show_default=False),
    ] = "",
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Condense a summary's sources again, or make one of several; stored only when accepted.

    Several summaries become one that stands on all their sources. --words makes another text of
    it. Where a model condenses, each look asks it again, within your limits; accepting asks nobody.
    What is stored is a new version, "history" has the old one, and "undo" brings it back.

    \b
    Example:
      hypatia-mem regenerate retry-queue-loses-jobs --words 80
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory.cascade import regenerate as regenerate_

    home = context.home()
    wanted = [values.checked(name, "a name") for name in names]
    settings = load_settings(home)
    words = most or settings.summary_words
    if accept:
        scopes = context.scopes_to_change(scope, all_projects, verb="regenerate")
    else:
        scopes = context.scopes_for(scope, all_projects)
    if accept:
        shown = regenerate_.accept(
            home,
            wanted,
            accept,
            most=words,
            scopes=scopes,
            settings=settings,
            author=context.author(),
            now=context.now(),
        )
    else:
        with mark_as_own():
            shown = regenerate_.preview(
                home,
                wanted,
                most=words,
                scopes=scopes,
                settings=settings,
                author=context.author(),
                now=context.now(),
            )
    if as_json:
        print_json(_row(shown, stored=bool(accept)))
    else:
        _say(shown, wanted, most, stored=bool(accept))


def _row(shown: Preview, *, stored: bool) -> dict[str, object]:
    return {
        "name": shown.name,
        "level": shown.level,
        "stored": stored,
        "ticket": shown.ticket,
        "sources": list(shown.sources),
        "content": shown.content,
        "by": shown.by,
        "failed": shown.failed,
        "replaced": [{"name": one.name, "content": one.content} for one in shown.replaced],
    }


def _say(shown: Preview, names: list[str], most: int, *, stored: bool) -> None:
    import difflib

    if stored:
        say(f"Stored: {shown.name}, level {shown.level}, from {len(shown.sources)} sources.")
        return
    old = [line for one in shown.replaced for line in one.content.splitlines()]
    lines = difflib.unified_diff(old, shown.content.splitlines(), "now", "new", lineterm="")
    say("\n".join(lines) or "It would say the same as now.")
    again = f" --words {most}" if most else ""
    say(f"Condensed by {shown.by.partition('#')[0]}.")
    if shown.failed:
        say(f"The model that is configured was not used: {shown.failed}")
    say("Nothing is stored. Accept it with:")
    say(f"  hypatia-mem regenerate {' '.join(names)}{again} --accept {shown.ticket}")

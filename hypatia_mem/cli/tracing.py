"""``trace`` and ``loss``: what a summary stands on, and what it lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, print_json, say

if TYPE_CHECKING:
    from hypatia_mem.memory.cascade.trace import Lost, Traced, Words
    from hypatia_mem.memory.summarise.loss import Loss

__all__ = ["loss", "trace"]

_SHOWN = 12  # names of what was dropped that a person is shown, of each class


def trace(
    name: Annotated[str, typer.Argument(help="The summary's name.", show_default=False)],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Walk a summary down, sentence by sentence, to the words it stands on.

    \b
    Example:
      hypatia-mem trace api-design-retry-queue
    """
    from dataclasses import asdict

    from hypatia_mem.memory.cascade import trace as cascade_trace

    asked = values.checked(name, "the name")
    context.reach_of([asked], scope, all_projects)
    found = cascade_trace.trace(context.home(), asked)
    if as_json:
        print_json(asdict(found))
        return
    say(_traced(found))


def loss(
    name: Annotated[str, typer.Argument(help="The summary's name.", show_default=False)],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Report what a summary kept of names, paths, numbers, commands and decisions, and what not.

    \b
    Example:
      hypatia-mem loss api-design-retry-queue
    """
    from hypatia_mem.memory.cascade import trace as cascade_trace

    asked = values.checked(name, "the name")
    context.reach_of([asked], scope, all_projects)
    found = cascade_trace.lost(context.home(), asked)
    if as_json:
        print_json(_loss_rows(found))
        return
    say(_loss_text(found))


# ----------------------------------------------------------------------------------------------


def _traced(found: Traced) -> str:
    lines = [f"{found.name}  [summary {found.level}, {found.sources} sources, {found.producer}]"]
    for one in found.sentences:
        mark = "  [inferred: no source says this]" if one.inferred else ""
        lines.append(f"- {one.text}{mark}")
        lines += _words(one.words, 1)
    if found.silent:
        lines.append(f"Not quoted by any sentence: {', '.join(found.silent[:_SHOWN])}")
        if len(found.silent) > _SHOWN:
            lines[-1] += f" and {len(found.silent) - _SHOWN} more (--json lists all)"
    return "\n".join(lines)


def _words(words: Sequence[Words], depth: int) -> list[str]:
    lines = []
    for one in words:
        changed = "  [changed since]" if one.changed else ""
        lines.append(f"{'  ' * depth}<- {one.source}: {one.text}{changed}")
        lines += _words(one.below, depth + 1)
    return lines


def _shares(found: Loss) -> dict[str, Any]:
    return {
        kind: {
            "total": one.total,
            "kept": one.kept,
            "share": round(one.share, 3),
            "dropped": list(one.dropped),
        }
        for kind, one in found.classes.items()
    }


def _loss_rows(found: Sequence[Lost]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "level": one.level,
            "messages": one.messages,
            "share": round(one.direct.share, 3),
            "cumulative_share": round(one.cumulative.share, 3),
            "direct": _shares(one.direct),
            "cumulative": _shares(one.cumulative),
        }
        for one in found
    ]


def _loss_text(found: Sequence[Lost]) -> str:
    top = found[0]
    rows = [("", "kept", "of", "share", "of the messages")]
    for kind, one in top.direct.classes.items():
        total = top.cumulative.classes[kind]
        rows.append((kind, str(one.kept), str(one.total), f"{one.share:.0%}", f"{total.share:.0%}"))
    lines = [f"{top.name}  [summary {top.level}, {top.messages} messages]", columns(rows)]
    for level in range(top.level - 1, 0, -1):
        below = [one for one in found if one.level == level]
        if below:
            mean = sum(one.direct.share for one in below) / len(below)
            lines.append(f"level {level}: {len(below)} summaries kept {mean:.0%} on average")
    for kind, one in top.direct.classes.items():
        if one.dropped:
            more = f" and {len(one.dropped) - _SHOWN} more" if len(one.dropped) > _SHOWN else ""
            lines.append(f"dropped, {kind}: {'; '.join(one.dropped[:_SHOWN])}{more}")
    return "\n".join(lines)

"""``pressure``: how full the contexts of running sessions are, and what is done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say

if TYPE_CHECKING:
    from hypatia_mem.memory.pressure import Pressure

__all__ = ["pressure"]

_DOES = {
    "tools": "results of tools are listed in short",
    "condense": "all but the last ten messages are condensed",
    "persist": "it is told that beginning anew loses nothing",
}


def pressure(
    scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False
) -> None:
    """Say how full the contexts of running sessions are, and what is done at which level.

    The worker does it by itself, once for each level. Where the levels begin is set by pressure_...
    in config; how large a model's window is, by cascade windows.

    \b
    Example:
      hypatia-mem pressure
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import pressure as pressure_

    home = context.home()
    scopes = context.scopes_for(scope, all_projects)
    found = [
        one
        for one in pressure_.look(home, load_settings(home), now=context.now())
        if scopes is None or one.project in scopes
    ]
    if as_json:
        print_json([_row(one) for one in found])
        return
    for one in found:
        model = f", {one.model}" if one.model else ""
        say(
            f"{one.session_id} ({one.project}{model}): {one.percent} % of {one.window} tokens, "
            f"level {one.level.name.lower()}"
        )
        for level, what in _DOES.items():
            percent = getattr(one.limits, level)
            mark = "done" if one.done >= _number(level) else ""
            say(f"  above {percent} %  {what}  {mark}".rstrip() if percent else f"  never: {what}")
    if not found:
        say("No session is under way.")


def _number(level: str) -> int:
    from hypatia_mem.memory.pressure import Level

    return int(Level[level.upper()])


def _row(one: Pressure) -> dict[str, Any]:
    return {
        "session_id": one.session_id,
        "project": one.project,
        "turn": one.turn,
        "model": one.model,
        "tokens": one.tokens,
        "window": one.window,
        "percent": one.percent,
        "level": one.level.name.lower(),
        "done": one.done.name.lower(),
        "limits": {name: getattr(one.limits, name) for name in _DOES},
    }

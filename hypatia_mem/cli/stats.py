"""``stats`` and ``topics``: how much the memory holds, and what it is about."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Offset, Scopes
from hypatia_mem.cli.output import columns, print_json, say, warn

__all__ = ["stats", "topics"]

# What an entry is, not what it is about.
_SORTS = (
    "memory", "rule", "taboo", "knowledge", "message", "session", "summary", "episode", "goal",
    "thread", "fact", "preference", "procedure", "work-unit", "orphaned",
)  # fmt: skip


def stats(
    scopes: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False
) -> None:
    """Count what this project and the global scope hold, by kind; what is withheld beside it.

    What it costs on disk is that of all projects. When there was work, and with which models:
    hypatia-mem report.

    \b
    Example:
      hypatia-mem stats --all-projects
    """
    from hypatia_mem.store import counting
    from hypatia_mem.store.connection import open_store

    wanted = context.scopes_for(scopes, all_projects)
    home = context.home()
    with open_store(home, write=False) as store:
        kinds = counting.kinds_in_use(store, wanted)
        others = counting.counts(store, wanted)
    size = _size(home)
    if as_json:
        rows = [{"kind": kind, "count": live, "withheld": hidden} for kind, live, hidden in kinds]
        print_json({"kinds": rows, **others, "bytes": size})
        return
    lines = [
        (kind, str(live), f"{hidden} withheld" if hidden else "") for kind, live, hidden in kinds
    ]
    lines += [(name, str(count), "") for name, count in others.items()]
    if not kinds:
        say("Nothing is remembered here yet.")
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    say(columns([*lines, ("on disk", shown, "all projects")]))


def _size(folder: Path) -> int:
    """Return the bytes of all files below; what goes meanwhile counts as nothing."""
    size = 0
    for one in folder.rglob("*"):
        with contextlib.suppress(OSError):
            size += one.stat().st_size if one.is_file() else 0
    return size


def topics(
    limit: Limit = 30,
    offset: Offset = 0,
    scopes: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List what the knowledge of this project is about, the most frequent first.

    Topics are the tags that say what an entry is about; "search --tag TOPIC" finds the entries.

    \b
    Example:
      hypatia-mem topics --limit 10
    """
    from hypatia_mem.memory.extract.kinds import Kind
    from hypatia_mem.store import counting
    from hypatia_mem.store.connection import open_store

    wanted = context.scopes_for(scopes, all_projects)
    without = [*_SORTS, *map(str, Kind)]
    with open_store(context.home(), write=False) as store:
        found = counting.topics_in_use(store, wanted, without, limit=limit + 1, offset=offset)
    page = found[:limit]
    if as_json:
        print_json([{"topic": tag, "count": count, "last": at} for tag, count, at in page])
    elif page:
        say(columns([(tag, str(count), f"{at:%Y-%m-%d}") for tag, count, at in page]))
    else:
        say("No topics here." if not offset else "No more topics.")
    if len(found) > limit:
        warn(f"There are more: --offset {offset + limit}")

"""``jobs``: cold work that is due, failed, was given up or is not wanted; changes that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Scopes
from hypatia_mem.cli.output import columns, emit, print_json, say
from hypatia_mem.errors import Conflict

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.jobs import Dropped, Listed

__all__ = ["jobs"]

jobs = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""See the summaries that are due or failed; try them again, or let them be.

    Nothing is lost by a job that failed: its messages stay as they are. Changes that wait for a
    running session to end (--after) are listed here too, and dropped by their id.

    \b
    Example:
      hypatia-mem jobs list
    """,
)
_Ids = Annotated[list[str], typer.Argument(help="Jobs, as list names them.", show_default=False)]


def _settings() -> Settings:
    from hypatia_mem.config import load_settings

    return load_settings(context.home())


@jobs.command("list", cls=Leaf)
def list_(
    scope: Scopes = None,
    all_projects: AllProjects = False,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List work that is due or out of the ordinary, and why.

    \b
    Example:
      hypatia-mem jobs list --all-projects
    """
    from hypatia_mem.memory import jobs as jobs_

    scopes = context.scopes_for(scope, all_projects)
    found = jobs_.listed(context.home(), _settings(), now=context.now(), scopes=scopes)
    found = [*_changes(scopes), *found]
    if as_json:
        print_json([_row(one) for one in found[:limit]])
        return
    if not found:
        say("Nothing is due and nothing has failed.")
        return
    say(", ".join(f"{count} {state}" for state, count in jobs_.tallies(found).items()))
    head = ("job", "state", "level", "items", "tries", "again", "why")
    say(columns([head, *(_cells(one) for one in found[:limit])]))
    if len(found) > limit:
        say(f"and {len(found) - limit} more (--limit)")


@jobs.command(cls=Leaf)
def retry(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Jobs, as list names them; none: all that failed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let failed work be tried again by the next run, as if it had never failed; ends a pause.

    \b
    Example:
      hypatia-mem jobs retry
    """
    from hypatia_mem.memory import jobs as jobs_

    done = jobs_.retry(context.home(), ids or [], author=context.author(), now=context.now())
    text = f"{len(done)} jobs will be tried again; at once with: hypatia-mem cascade run"
    emit({"retried": done}, text, as_json)


@jobs.command(cls=Leaf)
def drop(
    ids: _Ids,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be dropped; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let work not be done: its messages stay without a summary, until retry takes it up again.

    A change that waits for a session to end is called off by its id, or the id's beginning.

    A parcel of which nothing is wanted any more is called off where it was handed in.

    \b
    Example:
      hypatia-mem jobs drop 1.40.5d41402abc4b
    """
    from hypatia_mem.memory import jobs as jobs_

    home, settings, now = context.home(), _settings(), context.now()
    meant = {id_: one for id_ in ids if (one := _change_of(id_)) is not None}
    changes = list({one.id: one for one in meant.values()}.values())
    if dry_run:
        known = {one.id: one for one in jobs_.listed(home, settings, now=now, scopes=None)}
        rows = [_row(known[one]) for one in ids if one in known] + [_row(one) for one in changes]
        text = "\n".join(f"would drop {row['id']} ({row['items']} items)" for row in rows)
        emit({"would_drop": rows}, text or "There is no such job.", as_json)
        return
    for one in changes:
        _call_off(one.id)
    ids = [id_ for id_ in ids if id_ not in meant]
    done = jobs_.Dropped(())
    if ids or not changes:
        done = jobs_.drop(home, settings, ids, author=context.author(), now=now)
    done = replace(done, ids=(*(one.id for one in changes), *done.ids))
    rows_ = {
        "dropped": list(done.ids),
        "recalled": list(done.recalled),
        "going_on": list(done.going_on),
        "unreached": done.unreached,
    }
    emit(rows_, _dropped(done), as_json)


def _changes(scopes: list[str] | None) -> list[Listed]:
    """Return the changes that wait for a session to end, in the shape of other work."""
    from hypatia_mem.memory import jobs as jobs_
    from hypatia_mem.memory import queued
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        return [jobs_.of_change(one) for one in queued.waiting(store, scopes)]


def _change_of(id_: str) -> Listed | None:
    """Return the waiting change of an id or its beginning. Raises Conflict for several."""
    found = [one for one in _changes(None) if id_ and one.id.startswith(id_)]
    if len(found) > 1:
        raise Conflict(
            f"several changes that wait begin with {id_[:40]!a}",
            hint="Give more of the id: hypatia-mem jobs list",
        )
    return found[0] if found else None


def _call_off(id_: str) -> None:
    from hypatia_mem.memory import review

    review.drop_queued(context.home(), id_, author=context.author(), now=context.now())


def _dropped(done: Dropped) -> str:
    lines = [f"Dropped: {', '.join(done.ids)}"]
    lines += [f"Called off: {parcel}" for parcel in done.recalled]
    lines += [f"{parcel} goes on: other work in it is still wanted." for parcel in done.going_on]
    if done.unreached:
        lines.append(
            f"Its parcel could not be called off: {done.unreached}. The answer is thrown away; "
            "drop it again to call it off."
        )
    return "\n".join(lines)


def _row(one: Listed) -> dict[str, Any]:
    from dataclasses import asdict

    again = one.again.isoformat(timespec="seconds") + "Z" if one.again else None
    return {**asdict(one), "scopes": list(one.scopes), "again": again}


def _cells(one: Listed) -> tuple[str, ...]:
    again = f"{one.again:%m-%d %H:%M}Z" if one.again else ""
    why = one.message or one.reason
    return (
        one.id, one.state, str(one.level), str(one.items), str(one.attempts), again, why,
    )  # fmt: skip

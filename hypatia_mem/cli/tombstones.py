"""``tombstone``: what keeps forgotten things away; ``key``: what they are known by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, emit, print_json, say
from hypatia_mem.errors import UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.tombstones import Checked, Tombstone

__all__ = ["key", "tombstone"]

tombstone = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List and lift what keeps forgotten things away.

    A tombstone holds no word of what it stands for, only keyed digests. What says the same, or
    looks the same, is refused; what is like it waits in the review.

    \b
    Example:
      hypatia-mem tombstone check "deploy on fridays"
    """,
)
key = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List the keys that digests are made with, and begin a new one.

    \b
    Example:
      hypatia-mem key list
    """,
)


@tombstone.command("list", cls=Leaf)
def list_(scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False) -> None:
    """List the tombstones of this project and of everywhere, newest first.

    \b
    Example:
      hypatia-mem tombstone list --all-projects
    """
    from hypatia_mem.memory import tombstones
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        found = tombstones.listed(store, scopes)
    if as_json:
        print_json([_row(one) for one in found])
    elif found:
        say(columns([_cells(one) for one in found]))
    else:
        say("Nothing is kept away here.")


@tombstone.command(cls=Leaf)
def check(
    text: Annotated[
        str,
        typer.Argument(
            help="What an agent might bring; - reads standard input, @FILE a file.",
            show_default=False,
        ),
    ],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Say what would become of a text, and which tombstone it would meet. Nothing is stored.

    \b
    Example:
      hypatia-mem tombstone check "deploy on fridays"
    """
    from hypatia_mem.memory import tombstones
    from hypatia_mem.store.connection import open_store

    words = values.read_text(text, "the text")
    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        found = tombstones.check(store, words, scopes or [])
    emit(_checked(found), _check_line(found), as_json)


@tombstone.command(cls=Leaf)
def lift(
    which: Annotated[
        list[str] | None,
        typer.Argument(
            help="Its id, or the name of what was forgotten; several are taken.",
            show_default=False,
        ),
    ] = None,
    lost: Annotated[
        bool, typer.Option("--lost", help="All that were noted under a key that is lost.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let something forgotten be said again; only a person can. Nothing comes back by itself.

    \b
    Example:
      hypatia-mem tombstone lift 3fa29c41
    """
    from hypatia_mem.memory import tombstones

    if not which and not lost:
        raise UsageError("say which tombstone: its id, a name, or --lost")
    done = tombstones.lift(
        context.home(),
        [values.checked(one, "the tombstone") for one in which or ()],
        scopes=context.scopes_for(scope, all_projects),
        lost=lost,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    if as_json:
        rows = [_row(one) for one in done.tombstones]
        print_json({"lifted": rows, "operation": done.op_id, "dry_run": done.dry_run})
        return
    say("Would lift:" if done.dry_run else "Lifted:")
    say(columns([_cells(one) for one in done.tombstones]))
    if done.op_id:
        say(f"To put back: hypatia-mem undo {done.op_id}")


@key.command("list", cls=Leaf)
def key_list(as_json: AsJson = False) -> None:
    """List the keys by their ids, the present one first, with what stands under each.

    \b
    Example:
      hypatia-mem key list
    """
    from hypatia_mem.memory import tombstones
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        found = tombstones.key_list(store)
    if as_json:
        print_json(
            [
                {
                    "id": one.id,
                    "present": one.present,
                    "lost": one.lost,
                    "tombstones": one.tombstones,
                }
                for one in found
            ]
        )
        return
    states = ["present" if one.present else "LOST" if one.lost else "earlier" for one in found]
    say(
        columns(
            [
                (one.id, state, f"{one.tombstones} digests of what was forgotten")
                for one, state in zip(found, states, strict=True)
            ]
        )
    )
    if any(one.lost for one in found):
        say(
            "What was noted under a lost key cannot be asked: whatever an agent brings waits in the"
            " review meanwhile.\nPut the folder keys back from a backup, or give those up with:"
            " hypatia-mem tombstone lift --lost --all-projects"
        )


@key.command(cls=Leaf)
def rotate(as_json: AsJson = False) -> None:
    """Begin a new key; what was forgotten under the one before stays forgotten.

    For when somebody else may have seen the key. It cannot be undone: the earlier key is kept for
    what was noted under it, and used for nothing new.

    \b
    Example:
      hypatia-mem key rotate
    """
    from hypatia_mem.memory import tombstones

    outcome = tombstones.rotate_key(context.home(), author=context.author(), now=context.now())
    before = outcome.details["before"]
    text = f"Digests are made with key {outcome.name} from now on; {before} is kept."
    emit({"key": outcome.name, "before": before}, text, as_json)


# ----------------------------------------------------------------------------------------------


def _row(one: Tombstone) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    return {
        "id": one.id,
        "scope": one.scope,
        "kind": one.kind,
        "reason": one.reason,
        "channel": one.channel,
        "at": time_text(one.at),
        "operation": one.op_id,
        "parts": dict(one.parts),
        "alike": one.alike,
        "lost": one.lost,
    }


def _cells(one: Tombstone) -> tuple[str, ...]:
    words = {"value": "value", "look": "look", "name": "name", "triple": "statement"}
    parts = ", ".join(
        words.get(part, part) + (f" x{count}" if count > 1 else "")
        for part, count in sorted(one.parts.items())
    )
    state = "KEY LOST" if one.lost else "other wordings too" if one.alike else "these words only"
    scope = one.scope or "global"
    when = f"{one.at:%Y-%m-%d %H:%M}"
    return (one.id, when, scope, one.kind, one.reason, one.channel, parts, state)


def _checked(found: Checked) -> dict[str, Any]:
    stone = None if found.tombstone is None else _row(found.tombstone)
    return {"verdict": found.verdict, "likeness": found.likeness, "tombstone": stone}


def _check_line(found: Checked) -> str:
    if found.verdict == "taken":
        return "It would be taken: nothing like it was forgotten here."
    if found.tombstone is None:
        return "It would wait in the review: what was forgotten cannot be asked, a key is lost."
    which = f"tombstone {found.tombstone.id} of {found.tombstone.at:%Y-%m-%d}"
    if found.verdict == "refused":
        return f"It would be refused: it says what was forgotten ({which})."
    return f"It would wait in the review: it is {found.likeness:.0%} like what {which} keeps away."

"""What a change reaches, as people and programs read it: before it is done, and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.errors import SessionRuns

if TYPE_CHECKING:
    from hypatia_mem.memory.blast import Blast, Reached

__all__ = [
    "After",
    "DryRun",
    "count",
    "finish",
    "or_later",
    "reach_row",
    "say_names",
    "say_queued",
    "say_reach",
    "settle",
]

_SHOWN = 20  # names of each sort that a person is shown; --json gives all
_T = TypeVar("_T")

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say by name what it would reach, and change nothing.")
]
After: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--after", help="If a running session depends on it: do it when that session has ended."
    ),
]


def finish(blast: Blast, as_json: bool) -> None:
    """Condense anew what is owed, and say all that was done, or would be."""
    blast = settle(blast)
    if as_json:
        print_json(_row(blast))
        return
    done = bool(blast.op_id)
    did, would = {"move": ("Moved", "Would move")}.get(blast.verb, ("Deleted", "Would delete"))
    say(f"{did if done else would} {count(len(blast.targets), 'thing')}:")
    _say_reached("", blast.targets)
    say_reach(blast, statements=True)
    if done:
        say(f"Take it back with: hypatia-mem undo {blast.op_id}")


def settle(blast: Blast) -> Blast:
    """Condense anew what a change left behind, if it was done; return it with what was made."""
    if not blast.op_id or not (blast.owed or blast.derived):
        return blast
    from dataclasses import replace

    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import propagation

    home = context.home()
    made = propagation.rederive(home, load_settings(home), now=context.now())
    return replace(blast, remade=made)


def say_reach(blast: Blast, *, statements: bool = False) -> None:
    """Print what a change reaches beside what was named, each by name."""
    done = bool(blast.op_id)
    _say_reached("along with it", blast.along)
    _say_reached("taken out, for it stood on that", blast.derived)
    _say_reached("doubted, for it stands on that", blast.doubted)
    _say_reached("there again", blast.made)
    _say_reached("stays", blast.kept)
    if statements or not done:
        say_names("statements", blast.statements)
    if blast.owed:
        noun = count(len(blast.remade), "new summary", "new summaries")
        rest = f"condensed into {noun}" if blast.remade else "condensed anew by the next pass"
        verb = "were" if blast.remade else "are" if done else "would be"
        say(f"{count(blast.owed, 'message')} beside it {verb} {rest}.")
    for name, session in blast.held[:_SHOWN]:
        say(f"Refused now: {name} is part of session {session}, which is running.")
    if blast.held:
        say("It can be done when that has ended: --after waits for it.")


def reach_row(blast: Blast) -> dict[str, Any]:
    """Return what a change reaches beside what was named, for a machine; empty if nothing."""
    row = _row(blast)
    return {name: row[name] for name in _REACH if row[name]}


def or_later(
    do: Callable[[], _T],
    *,
    after: bool,
    verb: str,
    names: Sequence[str] | Callable[[], Sequence[str]],
    arguments: Callable[[], dict[str, Any]],
    as_json: bool,
) -> _T | None:
    """Do it, or (``after``) queue it when a running session stands on it; None: it was queued.

    ``names`` and ``arguments`` are what ``memory.queued`` makes the change from.
    """
    try:
        return do()
    except SessionRuns:
        if not after:
            raise
    from hypatia_mem.memory import queued

    author, now = context.author(), context.now()
    wanted = names() if callable(names) else names
    rows = queued.put(context.home(), verb, wanted, arguments(), author=author, now=now)
    say_queued(verb, rows, as_json)
    return None


def say_queued(verb: str, rows: Sequence[dict[str, str]], as_json: bool) -> None:
    """Say what waits for which session."""
    if as_json:
        print_json({"queued": list(rows)})
        return
    for row in rows:
        session = row["session"]
        when = f"when session {session} has ended" if session else "with the worker's next run"
        say(f"Queued: {verb} {row['name']}, {when} (undo takes it off the queue).")


def say_names(title: str, names: Sequence[str]) -> None:
    """Print names under a title, nothing for none."""
    _say_some(title, names, str)


def count(number: int, noun: str, many: str = "") -> str:
    """Return a number and what it counts.

    >>> count(1, "thing"), count(2, "thing"), count(0, "entry", "entries")
    ('1 thing', '2 things', '0 entries')
    """
    return f"1 {noun}" if number == 1 else f"{number} {many or noun + 's'}"


# ----------------------------------------------------------------------------------------------

_REACH = ("along", "derived", "doubted", "made", "kept", "statements", "owed", "remade", "held")


def _row(blast: Blast) -> dict[str, Any]:
    from dataclasses import asdict

    return {"dry_run": not blast.op_id, **asdict(blast)}


def _say_reached(title: str, some: Sequence[Reached]) -> None:
    _say_some(title, some, lambda one: f"{one.name}  ({one.kind}){f'  {one.why}' * bool(one.why)}")


def _say_some(title: str, some: Sequence[Any], line: Callable[[Any], str]) -> None:
    if not some:
        return
    if title:
        say(f"{title}:")
    for one in some[:_SHOWN]:
        say(f"  {line(one)}")
    if len(some) > _SHOWN:
        say(f"  and {len(some) - _SHOWN} more (--json names all)")

"""Deleting and moving from the command line: one verb for every kind, shown before it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, spooled, values
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import emit, print_json, say
from hypatia_mem.errors import Refused, UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.propagation import Blast, Reached

__all__ = ["blast_row", "delete", "delete_from", "move", "provenance", "say_blast"]

_SHOWN = 20  # names of each sort that a person is shown; --json gives all

_Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="An entry, a session's id, SESSION:3-5 for its turns, or a statement's key.",
        show_default=False,
    ),
]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say by name what would go, and change nothing.")
]
_Because = Annotated[
    str,
    typer.Option(
        "--because", help="Why: wrong, outdated, private, duplicate or unneeded; the log keeps it."
    ),
]
_Scope = Annotated[
    list[str] | None,
    typer.Option("--scope", help="The project that it belongs to, when it is not this one."),
]


def delete(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="An entry, a session's id, SESSION:3-5 for its turns, or a statement's key.",
            show_default=False,
        ),
    ] = None,
    statement: Annotated[
        tuple[str, str, str] | None,
        typer.Option(
            "--statement", metavar="S P O", help="Also the statement of these three parts."
        ),
    ] = None,
    because: _Because = "delete",
    after: Annotated[
        bool,
        typer.Option("--after", help="Later, when the sessions that it hangs on have ended."),
    ] = False,
    dry_run: _DryRun = False,
    scope: _Scope = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Delete anything by name, with all that is derived from it, as one operation.

    Entries, statements, messages, turns of a session, sessions, summaries. What a person asked to
    be remembered stays when only the message that said so goes. "undo" takes all of it back;
    "forget" is what leaves nothing to go back to. What summaries lose is condensed anew.

    \b
    Example:
      hypatia-mem delete 7f3c0c1e-5b1d:3-5 --dry-run
    """
    from hypatia_mem.memory import propagation
    from hypatia_mem.store.rows import triple_key

    wanted = [values.checked(name, "a name") for name in names or ()]
    if statement is not None:
        wanted.append(triple_key(*(values.checked(part, "--statement") for part in statement)))
    if not wanted:
        raise UsageError("name what is to be deleted", hint="Example: hypatia-mem delete rule:x")
    spooled.bring(wanted)
    if after and not dry_run:
        queued = propagation.queue_deletion(
            context.home(),
            wanted,
            scopes=_scopes(scope, all_projects),
            reason=because,
            author=context.author(),
            now=context.now(),
        )
        emit({"queued": queued}, _queued_line(queued), as_json)
        return
    blast = propagation.delete(
        context.home(),
        wanted,
        scopes=_scopes(scope, all_projects),
        reason=because,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    finish(blast, as_json)


def delete_from(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The first to go: a message, turns, or an entry.",
            show_default=False,
        ),
    ],
    branch: Annotated[
        bool,
        typer.Option(
            "--branch", help="Of a session that was wound back: only what follows from it."
        ),
    ] = False,
    because: _Because = "delete",
    dry_run: _DryRun = False,
    scope: _Scope = None,
    as_json: AsJson = False,
) -> None:
    """Delete a thing and everything after it: the rest of its session, or later ones of its kind.

    After a message those of the same session; after any other entry those of the same kind, level
    and scopes that were made later. One operation, taken back by one "undo".

    \b
    Example:
      hypatia-mem delete-from msg-7f3c0c1e-5b1d-40 --dry-run
    """
    from hypatia_mem.memory import propagation

    first = values.checked(name, "the name")
    spooled.bring([first])
    blast = propagation.delete_onward(
        context.home(),
        first,
        branch=branch,
        scopes=_scopes(scope, False),
        reason=because,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    finish(blast, as_json)


def move(
    names: _Names,
    to: Annotated[
        str, typer.Option("--scope", help='Where it goes: a project\'s scope; "" is everywhere.')
    ],
    from_: Annotated[
        list[str] | None,
        typer.Option("--from", help="The project that it belongs to, when it is not this one."),
    ] = None,
    dry_run: _DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Put things into another scope: from then on only that project sees them.

    A session takes its messages along. What is derived goes along when all that it stands on does,
    and is taken out when not. Only a person may do that. "undo" takes it back.

    \b
    Example:
      hypatia-mem move rule:two-approvals --scope web --dry-run
    """
    from hypatia_mem.memory import propagation

    wanted = [values.checked(name, "a name") for name in names]
    spooled.bring(wanted)
    blast = propagation.move(
        context.home(),
        wanted,
        values.checked(to, "--scope"),
        scopes=_scopes(from_, False),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    finish(blast, as_json)


def provenance(
    name: Annotated[str, typer.Argument(help="A summary, a work unit, a rule, ...")],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Say what a thing stands on: directly, and at the bottom of it all.

    Exit code 1 when a source is not there any more.

    \b
    Example:
      hypatia-mem provenance deploys-two-approvals
    """
    from dataclasses import asdict

    from hypatia_mem.memory import propagation

    scopes = context.scopes_for(scope, all_projects)
    found = propagation.provenance(
        context.home(), values.checked(name, "the name"), scopes=scopes, author=context.author()
    )
    if as_json:
        print_json(asdict(found))
    else:
        say(f"{found.name} ({found.kind}) stands on {_count(len(found.direct), 'source')}.")
        for title, some in (("directly", found.direct), ("at the bottom", found.leaves)):
            _say_names(title, some)
        _say_names("not there any more", found.missing)
    if found.missing:
        raise typer.Exit(1)


# ----------------------------------------------------------------------------------------------


def _queued_line(queued: Sequence[dict[str, str]]) -> str:
    lines = [
        f"  {one['name']}  when session {one['session']} has ended"
        if one["session"]
        else f"  {one['name']}  with the worker's next run"
        for one in queued
    ]
    return "\n".join(["Will be deleted:", *lines])


def finish(blast: Blast, as_json: bool) -> None:
    """Condense anew what is owed, and say what was done, or would be."""
    from dataclasses import replace

    if blast.op_id and (blast.owed or blast.derived):
        from hypatia_mem.config import load_settings
        from hypatia_mem.memory import propagation

        home = context.home()
        made = propagation.rederive(home, load_settings(home), now=context.now())
        blast = replace(blast, remade=made)
    if as_json:
        print_json(blast_row(blast))
    else:
        say_blast(blast)


def blast_row(blast: Blast) -> dict[str, Any]:
    """Return a blast as a machine reads it."""
    from dataclasses import asdict

    return {"dry_run": not blast.op_id, **asdict(blast)}


def say_blast(blast: Blast) -> None:
    """Print what a change reaches, each by name, and how it is taken back."""
    done = bool(blast.op_id)
    did, would = {"move": ("Moved", "Would move")}.get(blast.verb, ("Deleted", "Would delete"))
    total = len(blast.targets)
    say(f"{did if done else would} {_count(total, 'thing')}:")
    _say_reached("", blast.targets)
    _say_reached("along with it", blast.along)
    _say_reached("taken out, for it stood on that", blast.derived)
    _say_reached("stays", blast.kept)
    _say_names("statements", blast.statements)
    if blast.owed:
        noun = _count(len(blast.remade), "new summary", "new summaries")
        rest = f"condensed into {noun}" if blast.remade else "condensed anew by the next pass"
        verb = "were" if blast.remade else "are" if done else "would be"
        say(f"{_count(blast.owed, 'message')} beside it {verb} {rest}.")
    if done:
        say(f"Take it back with: hypatia-mem undo {blast.op_id}")


def _say_reached(title: str, some: Sequence[Reached]) -> None:
    _say_some(title, some, lambda one: f"{one.name}  ({one.kind}){_because(one)}")


def _because(one: Reached) -> str:
    return f"  {one.why}" if one.why else ""


def _say_names(title: str, names: Sequence[str]) -> None:
    _say_some(title, names, str)


def _say_some(title: str, some: Sequence[Any], line: Callable[[Any], str]) -> None:
    if not some:
        return
    if title:
        say(f"{title}:")
    for one in some[:_SHOWN]:
        say(f"  {line(one)}")
    if len(some) > _SHOWN:
        say(f"  and {len(some) - _SHOWN} more (--json names all)")


def _count(number: int, noun: str, many: str = "") -> str:
    return f"1 {noun}" if number == 1 else f"{number} {many or noun + 's'}"


def _scopes(scope: list[str] | None, all_projects: bool) -> list[str] | None:
    """Return the scopes in which something may be meant: this project's, or those named.

    An agent means nothing that belongs to another project, whatever it names.
    """
    from hypatia_mem.model import PERSON_CHANNELS

    scopes = context.scopes_for(scope, all_projects)
    if scope and context.channel() not in PERSON_CHANNELS:
        foreign = set(scope) - {context.current_scope(), ""}
        if foreign:
            raise Refused(
                f"only a person may change what belongs to {min(foreign)}",
                hint="Run this command in a terminal, or in a folder of that project.",
            )
    return scopes

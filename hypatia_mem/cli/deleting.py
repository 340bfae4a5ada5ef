"""Deleting and moving from the command line: one verb for every kind, shown before it is done."""

from __future__ import annotations

from typing import Annotated

import typer

from hypatia_mem.cli import context, spooled, values
from hypatia_mem.cli.blast import After, DryRun, count, finish, or_later, say_names, say_queued
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.errors import Refused, UsageError

__all__ = ["delete", "delete_from", "move", "provenance"]

_Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="An entry, a session's id, SESSION:3-5 for its turns, or a statement's key.",
        show_default=False,
    ),
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
    dry_run: DryRun = False,
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
        say_queued("delete", queued, as_json)
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
    after: After = False,
    dry_run: DryRun = False,
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
    scopes = _scopes(scope, False)
    blast = or_later(
        lambda: propagation.delete_onward(
            context.home(),
            first,
            branch=branch,
            scopes=scopes,
            reason=because,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb="delete from",
        names=[first],
        arguments=lambda: {"branch": branch, "scopes": scopes, "reason": because},
        as_json=as_json,
    )
    if blast is not None:
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
    after: After = False,
    dry_run: DryRun = False,
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
    where, scopes = values.checked(to, "--scope"), _scopes(from_, False)
    blast = or_later(
        lambda: propagation.move(
            context.home(),
            wanted,
            where,
            scopes=scopes,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb="move",
        names=wanted,
        arguments=lambda: {"to": where, "scopes": scopes},
        as_json=as_json,
    )
    if blast is not None:
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
        say(f"{found.name} ({found.kind}) stands on {count(len(found.direct), 'source')}.")
        for title, some in (("directly", found.direct), ("at the bottom", found.leaves)):
            say_names(title, some)
        say_names("not there any more", found.missing)
    if found.missing:
        raise typer.Exit(1)


# ----------------------------------------------------------------------------------------------


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

"""``fork``: branches of a session that share what was said before; edits beside; the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import emit
from hypatia_mem.errors import UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.branching import Forked

__all__ = ["fork"]


def fork(  # noqa: PLR0913 - one parameter an option
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="The last message to share: its number as show prints it, or msg-...; by default "
            "the session's last.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="What the branch is for.")] = "",
    words: Annotated[
        str | None,
        typer.Option(
            "--edit",
            metavar="TEXT",
            help="Share what is before that message, write it anew on the branch, and make the "
            "branch the head; - reads standard input, @FILE a file.",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        bool, typer.Option("--head", help="Make no branch; make SESSION the head of its family.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Fork a session at a message: the branch shares all up to there; the session stays as it is.

    Nothing is copied: deleting a shared message reaches every branch, deleting the branch nothing
    of the original. A branch is told its ancestors and itself, never a sibling behind the point at
    which they part. Who is no branch is told all of them, or, once one is the head, the head and
    those that are gone on with. "undo" takes it back.

    \b
    Example:
      hypatia-mem fork 7f3c0c1e-5b1d --at 10 --reason "try it with a queue"
      hypatia-mem fork 7f3c0c1e-5b1d --at 3 --edit "use SQLite, not Postgres"
      hypatia-mem fork 7f3c0c1e-5b1d --head
    """
    from hypatia_mem.memory import branching

    named = values.checked(session, "the session")
    if head:
        if at is not None or words is not None or reason:
            raise UsageError(
                "--head makes no branch, so it goes with none of --at, --edit and --reason"
            )
        scopes = context.scopes_to_change(scope, all_projects, verb="move head")
        before, op_id = branching.make_head(
            context.home(), named, scopes=scopes, dry_run=dry_run,
            author=context.author(), now=context.now(),
        )  # fmt: skip
        _say_head(named, before, op_id, as_json)
        return
    if words is not None and at is None:
        raise UsageError("say which message is written anew", hint="Example: --at 3 --edit TEXT")
    made = branching.fork(
        context.home(),
        named,
        at=None if at is None else values.checked(at, "--at"),
        reason=values.checked(reason, "--reason"),
        words=None if words is None else values.read_text(words, "--edit"),
        scopes=context.scopes_to_change(scope, all_projects, verb="fork"),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    _say_forked(made, as_json)


# ----------------------------------------------------------------------------------------------


def _say_head(session: str, before: str, op_id: str, as_json: bool) -> None:
    did = "Made" if op_id else "Would make"
    was = f"; it was {before}" if before and before != session else ""
    lines = [f"{did} {session} the head of its family{was}."]
    if op_id:
        lines.append(f"Take it back with: hypatia-mem undo {op_id}")
    machine = {"head": session, "before": before, "op_id": op_id, "dry_run": not op_id}
    emit(machine, "\n".join(lines), as_json)


def _say_forked(made: Forked, as_json: bool) -> None:
    from dataclasses import asdict

    done = bool(made.op_id)
    noun = "message" if made.messages == 1 else "messages"
    where = f"at {made.at}" if made.at else "before its first message"
    lines = [
        f"{'Forked' if done else 'Would fork'} {made.forked_from} {where}:"
        + (f" {made.id}" if done else "")
    ]
    if made.edited:
        lines.append(
            f"  {made.messages - 1} shared, and the message that stands beside {made.instead},"
            " written anew"
        )
        lines.append("  the branch is the head of its family" if done else "  it would be the head")
    else:
        lines.append(f"  {made.messages} {noun} shared, none copied")
    if made.reason:
        lines.append(f"  {made.reason}")
    if done:
        lines.append(f"What it hands to the next session: hypatia-mem handoff --session {made.id}")
        lines.append(f"Take it back with: hypatia-mem undo {made.op_id}")
    machine = {**asdict(made), "id": made.id if done else "", "dry_run": not done}
    if not done and made.edited:
        machine["edited"] = ""  # its name is given when it is made
    emit(machine, "\n".join(lines), as_json)

"""The review at the command line: the queue, each decision as a command, and all of it by keys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, DryRun, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.editing import edit_text
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson
from hypatia_mem.cli.output import emit, print_json, printable, say
from hypatia_mem.cli.trust import Names, Reason, Scope, report, scopes_to_change
from hypatia_mem.errors import HypatiaError, UsageError
from hypatia_mem.model import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypatia_mem.memory.review import Item

__all__ = ["review"]

_TEXT = "The words it gets; - reads standard input, @FILE a file."
_KEYS = "[a]ccept  [v]erify  [e]dit  [r]eject  [m]erge  [d]efer  [s]kip  [q]uit"

review = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    help="""Decide what waits: candidates, disputed and stale memories, conflicts, queued changes.

    Without a command: the queue, one item at a time and by keys in a terminal, else as a list.
    Each decision is a command of its own too. Only a person takes in, rejects and merges; an agent
    may list the queue and put items off.

    \b
    Example:
      hypatia-mem review
      hypatia-mem review accept "rule:use-port-4712" --text "use port 4712 on staging"
    """,
)


@review.callback()
def review_(
    ctx: typer.Context,
    list_: Annotated[bool, typer.Option("--list", help="List the queue and ask nothing.")] = False,
    deferred: Annotated[
        bool,
        typer.Option("--deferred", help="Also what was put off, and changes that wait their turn."),
    ] = False,
    scope: Scope = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show the queue, or go through it by keys."""
    if ctx.invoked_subcommand is not None:
        return
    scopes = context.scopes_for([scope] if scope is not None else None, all_projects)
    found = _items(scopes, deferred)
    if as_json:
        print_json([_row(one) for one in found])
    elif not found:
        say("Nothing waits for a decision here.")
    elif list_ or not _at_terminal():
        say("\n\n".join(_text(one) for one in found))
    else:
        _walk(found, scopes)


@review.command("accept", cls=Leaf)
def accept(
    name: Names,
    text: Annotated[str | None, typer.Option("--text", help=_TEXT)] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Take it in as verified.")] = False,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Take items in, as they are or, one at a time, with other words.

    \b
    Example:
      hypatia-mem review accept "rule:use-port-4712"
    """
    from hypatia_mem.memory import review as review__

    trust = Trust.VERIFIED if verify else Trust.ASSERTED
    words = None if text is None else values.read_text(text, "the text")
    scopes = scopes_to_change(scope)
    given: dict[str, Any] = {"text": words, "reason": reason, "scopes": scopes}
    changed = or_later(
        lambda: review__.accept(
            context.home(), name, trust=trust, dry_run=dry_run, **given,
            author=context.author(), now=context.now(),
        ),
        after=after,
        verb="accept",
        names=name,
        arguments=lambda: {**given, "trust": str(trust)},
        as_json=as_json,
    )  # fmt: skip
    if changed is not None:
        report(changed, "Taken in:", {"trust": str(trust)}, dry_run, as_json)


@review.command("edit", cls=Leaf)
def edit(
    name: Annotated[str, typer.Argument(help="The entry.", show_default=False)],
    text: Annotated[str, typer.Option("--text", help=_TEXT, show_default=False)],
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite an item and take it in; the first text stays in its history.

    \b
    Example:
      hypatia-mem review edit "rule:use-port-4712" --text "use port 4712 on staging"
    """
    accept([name], text=text, scope=scope, dry_run=dry_run, after=after, as_json=as_json)


@review.command("reject", cls=Leaf)
def reject(
    name: Names,
    reason: Annotated[str, typer.Option("--reason", help="Why it is wrong; needed.")] = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say that items are wrong: withheld from now on, and refused when they come again.

    \b
    Example:
      hypatia-mem review reject "rule:use-port-4711" --reason "the port changed in May"
    """
    from hypatia_mem.memory import review as review__

    given: dict[str, Any] = {
        "reason": values.checked(reason, "--reason"), "scopes": scopes_to_change(scope)
    }  # fmt: skip
    changed = or_later(
        lambda: review__.reject(
            context.home(), name, dry_run=dry_run, **given,
            author=context.author(), now=context.now(),
        ),
        after=after,
        verb="trust",
        names=name,
        arguments=lambda: {**given, "trust": "rejected"},
        as_json=as_json,
    )  # fmt: skip
    if changed is not None:
        report(changed, "Rejected:", {"trust": "rejected"}, dry_run, as_json)


@review.command("merge", cls=Leaf)
def merge(
    name: Annotated[str, typer.Argument(help="The item; it goes.", show_default=False)],
    into: Annotated[str, typer.Argument(help="The entry that stays.", show_default=False)],
    text: Annotated[str | None, typer.Option("--text", help=_TEXT)] = None,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Put what an item says into another entry, with all its sources.

    \b
    Example:
      hypatia-mem review merge "rule:use-port-4712-2" "rule:use-port-4712"
    """
    from hypatia_mem.memory import review as review__

    words = None if text is None else values.read_text(text, "the text")
    given: dict[str, Any] = {"text": words, "scopes": scopes_to_change(scope)}
    changed = or_later(
        lambda: review__.merge(
            context.home(), name, into, dry_run=dry_run, **given,
            author=context.author(), now=context.now(),
        ),
        after=after,
        verb="merge",
        names=[name],
        arguments=lambda: {**given, "into": into},
        as_json=as_json,
    )  # fmt: skip
    if changed is None:
        return
    outcome, blast = changed.outcomes[0], settle(changed.blast)
    machine = {"verb": outcome.verb, "name": outcome.name, **dict(outcome.details)}
    done = "Would be merged:" if dry_run else "Merged:"
    reach = {"dry_run": dry_run, "reach": reach_row(blast)}
    emit({**machine, **reach}, f"{done} {name} into {outcome.name}", as_json)
    if not as_json:
        say_reach(blast)


@review.command("defer", cls=Leaf)
def defer(
    name: Names,
    days: Annotated[int, typer.Option("--days", min=1, max=36_500, help="For so many days.")] = 7,
    reason: Reason = "",
    scope: Scope = None,
    as_json: AsJson = False,
) -> None:
    """Put items off; they stay what they are.

    \b
    Example:
      hypatia-mem review defer "rule:use-port-4712" --days 14
    """
    from hypatia_mem.memory import review as review__
    from hypatia_mem.memory.blast import Changed

    outcomes = review__.defer(
        context.home(), name, days=days, reason=reason,
        scopes=scopes_to_change(scope), author=context.author(), now=context.now(),
    )  # fmt: skip
    report(Changed(outcomes), "Put off:", {"days": days}, False, as_json)


@review.command("retry", cls=Leaf)
def retry(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="The queued change.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Make a queued change that could not be made when its session ended.

    \b
    Example:
      hypatia-mem review retry 01938c6f2a1b
    """
    from hypatia_mem.memory import review as review__

    done = review__.retry_queued(context.home(), id_, author=context.author(), now=context.now())
    emit({"verb": "made", "name": done.name}, f"Made: {done.name}", as_json)


@review.command("drop", cls=Leaf)
def drop(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="The queued change.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Take a queued change off the queue without making it.

    \b
    Example:
      hypatia-mem review drop 01938c6f2a1b
    """
    from hypatia_mem.memory import review as review__

    done = review__.drop_queued(context.home(), id_, author=context.author(), now=context.now())
    emit({"verb": "dropped", "name": done.name}, f"Dropped: {done.name}", as_json)


# ----------------------------------------------------------------------------------------------


def _items(scopes: Sequence[str] | None, deferred: bool) -> list[Item]:
    from hypatia_mem.memory import review as review__
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        return review__.items(store, scopes, now=context.now(), deferred=deferred)


def _row(one: Item) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    return {
        "name": one.name,
        "why": one.why,
        "kind": one.kind,
        "content": one.content,
        "scopes": list(one.scopes),
        "reason": one.reason,
        "actor": one.actor,
        "channel": one.channel,
        "at": time_text(one.at),
        "until": time_text(one.until),
        "other": one.other,
        "other_content": one.other_content,
        "etag": one.etag,
    }


def _text(one: Item) -> str:
    scopes = ", ".join(scope or "global" for scope in one.scopes)
    by = ", ".join(part for part in (one.actor, one.channel) if part)
    head = [f"[{one.why}] {one.name}", *([f"({scopes})"] if scopes else [])]
    lines = ["  ".join(head), *(f"    {line}" for line in one.content.splitlines()[:12])]
    if one.other_content:
        lines += [f"  against {one.other}", f"    {' '.join(one.other_content.split())[:300]}"]
    if one.reason:
        lines.append(f"  why: {one.reason}")
    if by or one.at:
        when = f"{one.at:%Y-%m-%d %H:%M} UTC" if one.at else ""
        lines.append(f"  by: {', '.join(part for part in (by, when) if part)}")
    if one.until:
        lines.append(f"  put off until {one.until:%Y-%m-%d %H:%M} UTC")
    return "\n".join(lines)


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(question: str) -> str:
    """Ask at the terminal; the end of the input is the wish to stop."""
    try:
        return input(printable(question)).strip()
    except EOFError:
        return "q"


def _walk(found: Sequence[Item], scopes: Sequence[str] | None) -> None:
    """Go through the queue one item at a time; a decision that fails is asked for again."""
    decided = 0
    for number, one in enumerate(found, start=1):
        say(f"\n{number} of {len(found)}")
        say(_text(one))
        while (done := _decide(one, scopes)) is None:
            pass
        if done == "q":
            break
        decided += done != "s"
    say(f"\n{decided} decided, {len(found) - decided} left.")


def _decide(one: Item, scopes: Sequence[str] | None) -> str | None:
    """Ask for one decision and carry it out; None when it has to be asked for again."""
    key = _ask(f"{_KEYS} > ").casefold()[:1]
    if key in ("q", "s", ""):
        return key or "s"
    actions = _change_actions(one) if one.kind == "change" else _actions(one, scopes)
    action = actions.get(key)
    if action is None:
        say("That is none of the keys for this one: " + " ".join(sorted(actions)) + " s q")
        return None
    try:
        action()
    except HypatiaError as error:
        say(f"Not done: {error}")
        return None
    return key


def _actions(one: Item, scopes: Sequence[str] | None) -> dict[str, Callable[[], object]]:
    from hypatia_mem.memory import review as review__

    home, author, now = context.home(), context.author(), context.now()
    common: dict[str, Any] = {"scopes": scopes, "author": author, "now": now}
    # Who takes in a conflict says that both hold.
    both = one.why == "conflict"
    names, taken = ([one.name, one.other], Trust.VERIFIED) if both else ([one.name], Trust.ASSERTED)

    def edit_() -> None:
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        words = edit_text(one.content, command) if command else _ask("New words > ")
        if words == "q" and not command:
            raise UsageError("nothing was changed")
        review__.accept(home, [one.name], text=words, **common)

    def reject_() -> None:
        review__.reject(home, [one.name], reason=_ask("Why is it wrong? > "), **common)

    def merge_() -> None:
        into = _ask(f"Into which entry?{f' [{one.other}]' if one.other else ''} > ") or one.other
        review__.merge(home, one.name, into, **common)

    def defer_() -> None:
        days = _ask("For how many days? [7] > ") or "7"
        if not days.isdecimal():
            raise UsageError(f"{days[:20]!a} is no number of days")
        review__.defer(home, [one.name], days=int(days), **common)

    return {
        "a": lambda: review__.accept(home, names, trust=taken, **common),
        "v": lambda: review__.accept(home, names, trust=Trust.VERIFIED, **common),
        "e": edit_,
        "r": reject_,
        "m": merge_,
        "d": defer_,
    }


def _change_actions(one: Item) -> dict[str, Callable[[], object]]:
    from hypatia_mem.memory import review as review__

    home, author, now = context.home(), context.author(), context.now()
    return {
        "a": lambda: review__.retry_queued(home, one.name, author=author, now=now),
        "r": lambda: review__.drop_queued(home, one.name, author=author, now=now),
    }

"""``forget``: what holds some words goes, and stays away; all of it is shown before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, spooled, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.errors import NotFound, UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.curate import ForgetPlan
    from hypatia_mem.memory.forgetting import Found, Held
    from hypatia_mem.memory.sharing.everywhere import Elsewhere

__all__ = ["forget", "kind_lines"]

_SHOWN = 10  # of each kind; --json names all
_NO_ENTRY = ("statement", "title")
_FINAL = "Forgetting is final: undo does not bring it back. To keep its history: delete."
_SEE_RULES = (
    "See what there is with: hypatia-mem rules. Any other entry goes by its name: "
    "hypatia-mem forget --id NAME"
)


def forget(
    text: Annotated[
        str | None,
        typer.Argument(help="Words that tell what is meant.", show_default=False),
    ] = None,
    id_: Annotated[
        list[str] | None, typer.Option("--id", help="Exactly this entry; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Down to its bytes, as the command erase does.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="All that is found, without asking.")] = False,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere",
            help="In every project, and in every other connected shelf; for a person.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Withdraw what holds some words, of this project or global, so that it stays forgotten.

    One rule, taboo or memory that holds every word goes at once when nothing else holds them. Else
    all of it is listed, of whatever kind, messages and summaries too, and a person at a terminal is
    asked (--yes: not asked) whether all of it goes, as one operation. Where nobody can be asked
    (an agent, --json) only the one rule, taboo or memory goes, if it is one; --id names others.
    Exit code 1 when nothing was removed. With --everywhere what other projects and other connected
    shelves hold goes too; an export that was given away no program reaches.

    \b
    Example:
      hypatia-mem forget "the staging URL" --dry-run
    """
    if not text and not id_:
        raise UsageError("say what to forget: some words, or --id NAME")
    words, ids = values.checked(text or "", "the text"), tuple(id_ or ())
    if everywhere and not dry_run:
        context.refuse_agent("forget something in other shelves", "forget everywhere")
    if erase:
        from hypatia_mem.cli.erasing import run_erase

        run_erase(words, ids, everywhere=everywhere, yes=yes, dry_run=dry_run, as_json=as_json)
        return
    if yes and not dry_run and not ids:
        context.refuse_agent("forget at once all that holds some words", "forget all")
    if words and not ids and (yes or _may_ask(as_json)):
        spooled.bring()  # what comes in later would be left
    plan = _planned(words, ids, dry_run=True)
    found = _found(plan, everywhere=everywhere) if words and not ids else None
    if not plan.matches and (found is None or not found.things):
        raise NotFound("nothing remembered here matches these words", hint=_hint(found))
    if found is None or not _is_more(plan, found) or not (yes or _may_ask(as_json)):
        _one(plan, words, ids, found, everywhere=everywhere, dry_run=dry_run, as_json=as_json)
        return
    shelves = _in_shelves(plan, words, dry_run=True) if everywhere and (dry_run or not yes) else []
    if dry_run:
        _show(plan, found, shelves, "Would forget", as_json=as_json)
        return
    if not yes and not _asked(plan, found, shelves):
        raise typer.Exit(1)
    _all(plan, found, words, everywhere=everywhere, as_json=as_json)


# --- finding --------------------------------------------------------------------------------------


def _planned(words: str, ids: tuple[str, ...], *, dry_run: bool) -> ForgetPlan:
    from hypatia_mem.memory import curate

    return curate.forget(
        context.home(),
        words,
        scope=context.current_scope(),
        ids=ids,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )


def _found(plan: ForgetPlan, *, everywhere: bool) -> Found:
    """Return everything that holds the words, with what the plan found by its whole text."""
    from hypatia_mem.memory import forgetting
    from hypatia_mem.store.connection import open_store

    scopes = None if everywhere else [context.current_scope(), ""]
    with open_store(context.home(), write=False) as store:
        return forgetting.find_with(store, plan, scopes, author=context.author(), now=context.now())


def _is_more(plan: ForgetPlan, found: Found) -> bool:
    """Tell whether more holds the words than the one memory that is meant."""
    return bool({one.name for one in found.things} - set(plan.chosen))


def _in_shelves(plan: ForgetPlan, words: str, *, dry_run: bool) -> list[Elsewhere]:
    """Find, or forget, in other shelves what says the same; with ``words`` all that holds them."""
    from hypatia_mem.memory.sharing import everywhere, shelves

    return everywhere.forget_too(
        shelves.others(context.own_home(), context.home()),
        plan,
        words,
        scope=context.current_scope(),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )


# --- doing ----------------------------------------------------------------------------------------


def _one(
    plan: ForgetPlan,
    words: str,
    ids: tuple[str, ...],
    found: Found | None,
    *,
    everywhere: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Forget the one memory that is meant, or what was named."""
    if not plan.matches:
        raise NotFound("no rule, taboo or memory here matches these words", hint=_hint(found))
    if not dry_run:
        plan = _planned(words, ids, dry_run=False)
        _tell_anew(plan)
    others = _in_shelves(plan, "", dry_run=dry_run) if everywhere and plan.chosen else []
    rest = [] if found is None else [one for one in found.things if one.name not in plan.chosen]
    if as_json:
        print_json(_row(plan, rest, found, dry_run) | _shelf_rows(others, everywhere))
    else:
        _say_plan(plan, dry_run)
        _say_rest(rest)
        _say_shelves(others)
    if not dry_run and not plan.removed:
        raise typer.Exit(1)


def _tell_anew(plan: ForgetPlan) -> None:
    """Make again what told of it, without it, as far as no model is needed for that."""
    if plan.removed:
        from hypatia_mem.config import load_settings
        from hypatia_mem.memory import propagation

        home = context.home()
        propagation.rederive(home, load_settings(home), now=context.now())


def _all(plan: ForgetPlan, found: Found, words: str, *, everywhere: bool, as_json: bool) -> None:
    """Forget everything that was found, here as one operation, and then in the other shelves."""
    from hypatia_mem.memory import forgetting

    removed, relationships = forgetting.forget(
        context.home(), found, author=context.author(), now=context.now()
    )
    shelves = _in_shelves(plan, words, dry_run=False) if everywhere else []
    plan = replace(
        plan,
        chosen=tuple(one.name for one in found.things),
        needs_choice=False,
        removed=removed,
        relationships=relationships,
        alike=(),
    )
    if as_json:
        print_json(_row(plan, found.things, found, False) | _shelf_rows(shelves, everywhere))
        return
    say(plan.line)
    _say_kinds(found)
    _say_shelves(shelves)


def _may_ask(as_json: bool) -> bool:
    from hypatia_mem.model import PERSON_CHANNELS

    return not as_json and context.channel() in PERSON_CHANNELS and sys.stdin.isatty()


def _asked(plan: ForgetPlan, found: Found, shelves: Sequence[Elsewhere]) -> bool:
    """Show what would go and ask; no answer is no."""
    _show(plan, found, shelves, "These hold the words", as_json=False)
    try:
        agreed = typer.confirm("Forget all of this?", default=False)
    except typer.Abort:
        agreed = False
    if not agreed:
        say("Nothing removed. To choose: hypatia-mem forget --id NAME; all of it: --yes")
    return agreed


# --- saying ---------------------------------------------------------------------------------------


def _hint(found: Found | None) -> str:
    if found is None or not found.things:
        return _SEE_RULES
    names = ", ".join(f"{one.name} ({one.kind})" for one in found.things[:3])
    more = f" and {len(found.things) - 3} more" if len(found.things) > 3 else ""
    return f"Other things hold them: {names}{more}. {_how(found.things)}"


def _how(things: Sequence[Held]) -> str:
    """Say how what holds the words too is forgotten; only an entry goes by its name."""
    by_name = any(one.kind not in _NO_ENTRY for one in things)
    return (
        "An entry goes by its name: hypatia-mem forget --id NAME. " * by_name
        + "All of it: a person, by the same command in a terminal."
    )


def _row(
    plan: ForgetPlan, rest: Sequence[Held], found: Found | None, dry_run: bool
) -> dict[str, Any]:
    return {
        "matches": [
            {
                "name": match.name,
                "kind": match.kind,
                "content": match.content,
                "scopes": list(match.scopes),
                "complete": match.complete,
            }
            for match in plan.matches
        ],
        "chosen": list(plan.chosen),
        "alike": list(plan.alike),
        "also": [{**asdict(one), "scopes": list(one.scopes)} for one in rest],
        "busy": [
            {"name": name, "session": session} for name, session in (found.busy if found else ())
        ],
        "removed": plan.removed,
        "relationships": plan.relationships,
        "needs_choice": plan.needs_choice,
        "dry_run": dry_run,
    }


def _shelf_rows(shelves: Sequence[Elsewhere], everywhere: bool) -> dict[str, Any]:
    rows = [{**asdict(one), "names": list(one.names)} for one in shelves]
    return {"shelves": rows} if everywhere else {}


def _show(
    plan: ForgetPlan, found: Found, shelves: Sequence[Elsewhere], verb: str, *, as_json: bool
) -> None:
    if as_json:
        print_json(_row(plan, found.things, found, True) | _shelf_rows(shelves, bool(shelves)))
        return
    count = len(found.things)
    say(f"{verb} ({count} thing{'' if count == 1 else 's'}):")
    _say_kinds(found)
    _say_shelves(shelves)
    say(_FINAL)


def kind_lines(found: Found) -> list[str]:
    """Return a block for each kind of what was found: how many, and of each its name and a line."""
    lines: list[str] = []
    for kind, some in found.kinds.items():
        lines.append(f"  {kind} ({len(some)}):")
        lines += [f"    {one.name}  {one.text}" for one in some[:_SHOWN]]
        if len(some) > _SHOWN:
            lines.append(f"    and {len(some) - _SHOWN} more (--json names all)")
    return lines


def _say_kinds(found: Found) -> None:
    for line in kind_lines(found):
        say(line)
    for name, session in found.busy[:_SHOWN]:
        say(
            f"Left alone, for session {session} is running: {name}. Later: hypatia-mem delete"
            f" {name} --after"
        )


def _say_shelves(shelves: Sequence[Elsewhere]) -> None:
    for one in shelves:
        told = one.failed or ", ".join(one.names) or "nothing says it there"
        say(f"In shelf '{one.shelf}': {told}")


def _say_plan(plan: ForgetPlan, dry_run: bool) -> None:
    if plan.removed:
        say(plan.line)
        for name in plan.chosen:
            say(f"  {name}")
        _say_alike(plan)
        return
    chosen = set(plan.chosen)
    if chosen:
        head = "Would remove:" if dry_run else "Not removed, it is gone already:"
    else:
        head = "Nothing removed. It may mean one of these:"
    say(head)
    for match in plan.matches:
        if not chosen or match.name in chosen:
            say(f"  {match.name}  {_first_line(match.content)}")
    _say_alike(plan)
    if chosen and dry_run:
        say(_FINAL)
    if not chosen:
        say(f'Choose with: hypatia-mem forget --id "{plan.matches[0].name}"')


def _say_alike(plan: ForgetPlan) -> None:
    if plan.alike:
        say("Kept, though it says something like it:")
        for name in plan.alike:
            say(f"  {name}")


def _say_rest(rest: Sequence[Held]) -> None:
    """Name what holds the words too and stays, where nobody could be asked."""
    if not rest:
        return
    say("These hold the words too, and stay:")
    for one in rest[:_SHOWN]:
        say(f"  {one.name}  ({one.kind})")
    if len(rest) > _SHOWN:
        say(f"  and {len(rest) - _SHOWN} more (--json names all)")
    say(_how(rest))


def _first_line(text: str, length: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"

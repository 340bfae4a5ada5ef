"""Remember and forget: always this project and the global scope."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.activation import (
    AndAll,
    AndAny,
    Cooldown,
    Delay,
    Keys,
    NotAll,
    NotAny,
    Priority,
    Sticky,
    given,
    said,
)
from hypatia_mem.cli.options import AsJson, ValidFrom, ValidTo
from hypatia_mem.cli.output import emit, held_back, print_json, say
from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.model import GLOBAL_SCOPE, Entry, Trust

__all__ = ["forget", "remember"]

_MEANT = "what is remembered"


def remember(  # noqa: PLR0913 - one for each thing that can be said of it
    text: Annotated[
        str,
        typer.Argument(
            help="What to keep; - reads standard input, @FILE a file.", show_default=False
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="rule, taboo, memory, or a memory that is a preference or a procedure; without it "
            "the words decide.",
        ),
    ] = None,
    global_: Annotated[
        bool, typer.Option("--global", help="Let it hold in every project.")
    ] = False,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    candidate: Annotated[
        bool,
        typer.Option("--candidate", help="Keep it aside until a person takes it in (review)."),
    ] = False,
    keys: Keys = None,
    and_any: AndAny = None,
    and_all: AndAll = None,
    not_any: NotAny = None,
    not_all: NotAll = None,
    sticky: Sticky = None,
    cooldown: Cooldown = None,
    delay: Delay = None,
    priority: Priority = None,
    as_json: AsJson = False,
) -> None:
    """Keep a rule, a taboo or a memory; the next session of this project is told.

    Secrets in the text are taken out before it is stored. With --valid-from or --valid-to sessions
    are told as long as it is true, and not before. With --keys it is told with the prompts that say
    one of these words (the command set changes that, and tells what decides).

    \b
    Example:
      hypatia-mem remember "never mock the database"
      hypatia-mem remember "deploy by hand" --keys deploy,release --not staging --sticky 3
      hypatia-mem remember "always deploy by hand" --valid-to 2026-12-31
    """
    from hypatia_mem.memory import activation, curate

    words = values.read_text(text, "the text")
    scope = GLOBAL_SCOPE if global_ else context.current_scope(claim=True)
    chosen = kind or _kind_by_words(words)
    settings = given(
        keys=keys, and_any=and_any, and_all=and_all, not_any=not_any, not_all=not_all,
        sticky=sticky, cooldown=cooldown, delay=delay, priority=priority,
    )  # fmt: skip
    told = activation.changed(Entry(_MEANT, "", kind=chosen), settings) if settings else {}
    outcome = curate.remember(
        context.home(),
        words,
        kind=chosen,
        scope=scope,
        validity=values.parse_validity(valid_from, valid_to),
        trust=Trust.CANDIDATE if candidate else Trust.ASSERTED,
        told=told,
        author=context.author(),
        now=context.now(),
    )
    if outcome.verb == "refused":
        raise Refused(
            f"not stored: {outcome.reason or 'this was forgotten before'}",
            hint="A person can bring it back by running this command in a terminal.",
        )
    verb = "Already stored" if outcome.verb == "unchanged" else "Stored"
    where = f"scoped to {scope}" if scope else "global"
    line = f'[hypatia-memory] {verb}: "{outcome.name}" ({chosen}, {where}).'
    machine: dict[str, Any] = {
        "verb": outcome.verb,
        "name": outcome.name,
        "kind": chosen,
        "scopes": [scope],
        **(activation.row(Entry("", "", **told)) if told else {}),
    }
    if outcome.details.get("quarantined"):
        machine |= {"quarantined": True, "reason": outcome.reason}
        line = held_back(outcome)
    elif candidate and outcome.verb != "unchanged":
        machine |= {"trust": "candidate"}
        line = f'[hypatia-memory] Proposed: "{outcome.name}" waits for a person: hypatia-mem review'
    elif told:
        line += f" {said(activation.of(Entry('', '', **told)), told['priority'])}."
    elif outcome.reason:
        machine |= {"reason": outcome.reason}
        line += f" But {outcome.reason}."
    emit(machine, line, as_json)


def _kind_by_words(words: str) -> str:
    from hypatia_mem.capture import immediate

    request = immediate.parse(f"remember: {words}")
    return request.kind if request is not None else "memory"


def forget(
    text: Annotated[
        str | None,
        typer.Argument(help="Words that tell which memory is meant.", show_default=False),
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
    yes: Annotated[bool, typer.Option("--yes", help="With --erase: do not ask.")] = False,
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="In every other connected shelf too; for a person."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Withdraw a memory of this project (or a global one), so that it stays forgotten.

    One entry that holds every word is removed. Of several none is: they are listed, and --id
    names the ones that are meant. Exit code 1 when nothing was removed. With --everywhere copies
    of it in other connected shelves go too; an export that was given away no program reaches.

    \b
    Example:
      hypatia-mem forget "the staging URL" --dry-run
    """
    from hypatia_mem.memory import curate

    if not text and not id_:
        raise UsageError("say what to forget: some words, or --id NAME")
    if everywhere and not dry_run:
        context.refuse_agent("forget something in other shelves", "forget everywhere")
    if erase:
        from hypatia_mem.cli.erasing import run_erase

        words = values.checked(text or "", "the text")
        run_erase(words, tuple(id_ or ()), yes=yes, dry_run=dry_run, as_json=as_json)
        return
    plan = curate.forget(
        context.home(),
        values.checked(text or "", "the text"),
        scope=context.current_scope(),
        ids=tuple(id_ or ()),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    if not plan.matches:
        raise NotFound("nothing remembered here matches these words", hint=_SEE_RULES)
    others = _forget_too(plan, dry_run) if everywhere and plan.chosen else []
    if as_json:
        print_json(_plan(plan, dry_run) | ({"shelves": others} if everywhere else {}))
    else:
        _say_plan(plan, dry_run)
        for one in others:
            told = one["failed"] or ", ".join(one["names"]) or "nothing says it there"
            say(f"In shelf '{one['shelf']}': {told}")
    if not dry_run and not plan.removed:
        raise typer.Exit(1)


def _forget_too(plan: Any, dry_run: bool) -> list[dict[str, Any]]:  # noqa: ANN401 - ForgetPlan
    from dataclasses import asdict

    from hypatia_mem.memory.sharing import everywhere, shelves

    found = everywhere.forget_too(
        shelves.others(context.own_home(), context.home()),
        plan,
        scope=context.current_scope(),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    return [{**asdict(one), "names": list(one.names)} for one in found]


_SEE_RULES = (
    "See what there is with: hypatia-mem rules. Any other entry goes by its name: "
    "hypatia-mem forget --id NAME"
)


def _plan(plan: Any, dry_run: bool) -> dict[str, Any]:  # noqa: ANN401 - ForgetPlan, lazily imported
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
        "removed": plan.removed,
        "relationships": plan.relationships,
        "needs_choice": plan.needs_choice,
        "dry_run": dry_run,
    }


def _say_plan(plan: Any, dry_run: bool) -> None:  # noqa: ANN401 - ForgetPlan, lazily imported
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
        say("Forgetting is final: undo does not bring it back. To keep its history: delete.")
    if not chosen:
        say(f'Choose with: hypatia-mem forget --id "{plan.matches[0].name}"')


def _say_alike(plan: Any) -> None:  # noqa: ANN401 - ForgetPlan, lazily imported
    if plan.alike:
        say("Kept, though it says something like it:")
        for name in plan.alike:
            say(f"  {name}")


def _first_line(text: str, length: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"

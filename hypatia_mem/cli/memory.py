"""Remember: always this project or the global scope."""

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
from hypatia_mem.cli.output import emit, held_back
from hypatia_mem.errors import Refused
from hypatia_mem.model import GLOBAL_SCOPE, Entry, Trust

__all__ = ["remember"]

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

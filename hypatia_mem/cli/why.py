"""Why a session is told what it is told; what should not be told is taken out by a key."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import print_json, printable, say
from hypatia_mem.errors import HypatiaError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypatia_mem.memory.why import Told

__all__ = ["why"]


def why(
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            help="Say instead what this prompt would call up, and why not; - reads standard "
            "input. Nothing is counted by it.",
        ),
    ] = None,
    session: Annotated[
        str,
        typer.Option(
            "--session", help="With --prompt: as the next prompt of this session; else a new one's."
        ),
    ] = "",
    scope: Annotated[
        str | None,
        typer.Option("--scope", help='Of this project; "" is what holds everywhere.'),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a session of this project is told what it is told when it begins.

    Each thing with its reason and its source, and what there was no room for. At a terminal "x 3"
    takes the third out: it is suppressed, which "hypatia-mem unsuppress NAME" takes back. With
    --prompt it is about the entries with keys (see set): what these words would call up.

    \b
    Example:
      hypatia-mem why
      hypatia-mem why --prompt "deploy it now"
    """
    from hypatia_mem.memory import why as reasons

    wanted = context.current_scope() if scope is None else scope
    if prompt is not None:
        _called_up(wanted, values.read_text(prompt, "the prompt"), session, as_json)
        return
    if session:
        raise UsageError("--session is for --prompt: a start tells every session the same")
    found = reasons.why(context.home(), wanted)
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        say("A session here would be told nothing but where the last one stopped.")
    else:
        say(_text(found))
        if _at_terminal():
            _prune(found, wanted)


_REASONS = {
    "time": "not true now",
    "delay": "silent until prompt {until}",
    "cooldown": "silent until prompt {until}",
    "sticky": "told until prompt {until}",
    "match": 'the prompt says "{word}"',
    "no key": "none of its keys is said",
    "and-any": 'the prompt says "{word}", but none of its and-any words',
    "and-all": 'the prompt says "{word}", but not all of its and-all words',
    "not-any": 'the prompt says "{word}", and one of its not-any words',
    "not-all": 'the prompt says "{word}", and all of its not-all words',
    "no room": "called up, but there is no room for it",
}


def _called_up(scope: str, prompt: str, session: str, as_json: bool) -> None:
    from hypatia_mem.memory import activation

    found = activation.explain(context.home(), scope, prompt, session, now=context.now())
    if as_json:
        print_json({**found, "entries": [asdict(one) for one in found["entries"]]})
        return
    told = sum(one.told for one in found["entries"])
    lines = [f"With prompt {found['turn']} of its session {told} would be told:"]
    for one in found["entries"]:
        why_ = _REASONS[one.why].format(word=one.word, until=one.until)
        lines.append(f"  {'told' if one.told else '-   '}  {one.name}: {why_}")
    if not found["entries"]:
        lines = ["No entry here has keys. Give one some: hypatia-mem set NAME keys=deploy,release"]
    if found["withheld"]:
        lines.append(f"Besides, {found['withheld']} with keys are withheld (review, suppress).")
    say("\n".join(lines))


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _text(found: Sequence[Told]) -> str:
    lines = []
    for number, one in enumerate(found, 1):
        room = f"{one.units} units" if one.told else "NOT TOLD: no room"
        said = " ".join(one.content.split())
        lines.append(f"{number:3}  {said[:160]}")
        when = f" {one.at:%Y-%m-%d}" if one.at else ""
        lines.append(
            f"     {one.name}: {one.reason}; {one.trust}, by {one.by or 'nobody'}{when}; {room}"
        )
    return "\n".join(lines)


def _prune(found: Sequence[Told], scope: str) -> None:
    """Take out what a person does not want told, one key and a number at a time."""
    from hypatia_mem.memory import trust

    gone: set[int] = set()
    while True:
        try:
            words = input(printable("x NUMBER takes it out, Enter ends > ")).split()
        except EOFError:
            return
        if not words or words[0].casefold() == "q":
            return
        number = words[-1].lstrip("x")
        if not (words[0].casefold().startswith("x") and number.isascii() and number.isdigit()):
            say('Type "x" and the number of a line, such as: x 3')
            continue
        place = int(number)
        if not 1 <= place <= len(found) or place in gone:
            say(f"There is no {place} here." if place not in gone else f"{place} is out already.")
            continue
        name = found[place - 1].name
        try:
            trust.mark(
                context.home(), [name], "suppress", scopes=[scope, ""],
                author=context.author(), now=context.now(),
            )  # fmt: skip
        except HypatiaError as error:
            say(f"Not done: {error}")
            continue
        gone.add(place)
        say(f"Out: {name} (back with: hypatia-mem unsuppress {name!r})")

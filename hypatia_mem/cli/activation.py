"""By which words of a prompt an entry is told, and for how long: ``set``, remember's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit
from hypatia_mem.cli.trust import Scope, scopes_to_change
from hypatia_mem.errors import Refused, UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.activation import Activation
    from hypatia_mem.model import Entry

__all__ = [
    "AndAll", "AndAny", "Cooldown", "Delay", "Keys", "NotAll", "NotAny", "Priority", "Sticky",
    "given", "said", "set_",
]  # fmt: skip

_WORDS = ("keys", "and_any", "and_all", "not_any", "not_all")
_NUMBERS = ("sticky", "cooldown", "delay", "priority")
_PANEL = "When it is told"


def _option(name: str, text: str, **more: Any) -> Any:  # noqa: ANN401 - what Typer makes of it
    return typer.Option(*name.split(), help=text, rich_help_panel=_PANEL, **more)


Keys: TypeAlias = Annotated[
    str | None,
    _option(
        "--keys",
        "Tell it with the prompts in which one of these words stands, instead of at every start: "
        "deploy,release.",
    ),
]
AndAny: TypeAlias = Annotated[
    str | None, _option("--and-any", "Only if one of these words stands there too.")
]
AndAll: TypeAlias = Annotated[
    str | None, _option("--and-all", "Only if each of these words stands there too.")
]
NotAny: TypeAlias = Annotated[
    str | None, _option("--not-any --not", "Not if one of these words stands there.")
]
NotAll: TypeAlias = Annotated[
    str | None, _option("--not-all", "Not if all of these words stand there.")
]
Sticky: TypeAlias = Annotated[
    int | None, _option("--sticky", "Tell it with so many prompts more, whatever they say.")
]
Cooldown: TypeAlias = Annotated[
    int | None, _option("--cooldown", "Then be silent for so many prompts.")
]
Delay: TypeAlias = Annotated[
    int | None, _option("--delay", "Not before the prompt of this number in a session.")
]
Priority: TypeAlias = Annotated[
    int | None, _option("--priority", "The higher is told first when several are called up.")
]


def given(**options: str | int | None) -> dict[str, Any]:
    """Return the settings among a command's options, as ``memory.activation`` has them.

    Raises UsageError for words that cannot be keys.
    """
    from hypatia_mem.memory.activation import split

    return {
        name: split(values.checked(value, f"--{name}")) if isinstance(value, str) else value
        for name, value in options.items()
        if value is not None
    }


def said(settings: Activation, priority: int = 0) -> str:
    """Say in words when an entry is told, ``""`` for one without keys."""
    if not settings.keys:
        return ""
    parts = [f"a prompt says {_or(settings.keys)}"]
    parts += [f"and {_or(settings.and_any)}"] if settings.and_any else []
    parts += [f"and {_and(settings.and_all)}"] if settings.and_all else []
    parts += [f"but not {_or(settings.not_any)}"] if settings.not_any else []
    parts += [f"but not all of {_and(settings.not_all)}"] if settings.not_all else []
    turns = [
        *(
            [f"{settings.sticky} prompt{'s' * (settings.sticky > 1)} more"]
            if settings.sticky
            else []
        ),
        *([f"then silent for {settings.cooldown}"] if settings.cooldown else []),
        *([f"not before prompt {settings.delay}"] if settings.delay else []),
        *([f"priority {priority}"] if priority else []),
    ]
    return "Told when " + " ".join(parts) + "".join(f"; {one}" for one in turns)


def _or(words: Sequence[str]) -> str:
    return " or ".join(f'"{word}"' for word in words)


def _and(words: Sequence[str]) -> str:
    return " and ".join(f'"{word}"' for word in words)


def set_(
    name: Annotated[str, typer.Argument(help="The entry.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SETTING=VALUE]...",
            help="keys, and-any, and-all, not-any (or not), not-all: words with commas; sticky, "
            "cooldown, delay, priority: numbers. Without any: show them.",
            show_default=False,
        ),
    ] = None,
    scope: Scope = None,
    as_json: AsJson = False,
) -> None:
    """Say by which words of a prompt an entry is told, and for how long; or show it.

    An entry with keys is told with the prompts in which one of them stands as a word of its own
    (capitals do not matter; where a script has no spaces, anywhere), and no more at every session's
    start. And-any: one of these must stand there too; and-all: each; not-any: none; not-all: not
    all of them. A pinned entry is told at every start besides.

    What decides, the first that has a say: withheld (suppress beats every match, every sticky turn
    and every pin), the time in which it is true, delay, sticky, cooldown, the words. sticky=3: told
    with the next three prompts too, whatever they say; words said meanwhile do not lengthen it.
    cooldown=5: silent for five prompts after that. delay=2: not before a session's second prompt.
    Each session counts for itself, across restarts. keys= takes all of it away, sticky=0 one.

    \b
    Example:
      hypatia-mem set "rule:deploy-by-hand" keys=deploy,release not=staging sticky=3 cooldown=5
    """
    from hypatia_mem.memory import activation

    verb = "shown"
    if settings:
        scopes = scopes_to_change(scope)
        outcome = activation.settle(
            context.home(),
            name,
            _changes(settings),
            scopes=scopes,
            author=context.author(),
            now=context.now(),
        )
        if outcome.verb == "refused":
            raise Refused(
                f"{name!r} was not changed: {outcome.reason}",
                hint="A person can do it by running this command in a terminal.",
            )
        verb, name = outcome.verb, outcome.name
    else:
        scopes = context.scopes_for(None if scope is None else [scope], False)
    entry = _entry(name, scopes)
    found = activation.of(entry)
    row = {"verb": verb, "name": entry.name, **activation.row(entry)}
    nothing = "It has no keys: it is told as its kind is."
    emit(row, f"{entry.name}\n  {said(found, entry.priority) or nothing}", as_json)


def _entry(name: str, scopes: list[str] | None) -> Entry:
    from hypatia_mem.memory import trust
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        return trust.resolve_entry(store, name, scopes)


def _changes(settings: Sequence[str]) -> Mapping[str, Any]:
    """Return what ``SETTING=VALUE`` says. Raises UsageError for what is none."""
    found: dict[str, Any] = {}
    for one in settings:
        said_, equals, value = one.partition("=")
        name = said_.strip().replace("-", "_")
        name = "not_any" if name == "not" else name
        if not equals or name not in (*_WORDS, *_NUMBERS):
            known = ", ".join((*_WORDS, *_NUMBERS)).replace("_", "-")
            raise UsageError(
                f"{one[:40]!r} is no setting; write NAME=VALUE, and NAME is one of {known}",
                hint='Example: hypatia-mem set "rule:x" keys=deploy sticky=3',
            )
        if name in found:
            raise UsageError(f"{name.replace('_', '-')} is said twice")
        if name in _NUMBERS:
            found[name] = _number(name, value)
        else:
            found |= given(**{name: value})
    return found


def _number(name: str, value: str) -> int:
    try:
        return int(value) if value.strip() else 0
    except ValueError:
        raise UsageError(
            f"{name} is a number, not {value[:20]!r}", hint=f"Example: {name}=3"
        ) from None

"""Going back from the command line: history, diff, revert, undo, redo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, DryRun, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Scopes
from hypatia_mem.cli.output import columns, emit, print_json, say, who
from hypatia_mem.errors import Refused
from hypatia_mem.model import PERSON_CHANNELS, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.memory.blast import Changed
    from hypatia_mem.store.history import State

__all__ = ["diff", "history", "redo", "revert", "undo"]

_PREVIEW = 60  # characters of a version's first line
_SHOWN = 20  # names of what an undoing did

_Withheld = Annotated[
    bool, typer.Option("--withheld", help="Also what is suppressed, a candidate, or rejected.")
]
_Operation = Annotated[
    str | None,
    typer.Argument(
        metavar="[OP]",
        help="The operation: its id, the id's beginning, or the number of one of its rows in "
        "the log. Without it the last one of this project.",
        show_default=False,
    ),
]


def history(
    name: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="An entry, NAME@2 for the text of one version, or a statement's three parts.",
            show_default=False,
        ),
    ],
    limit: Limit = 50,
    withheld: _Withheld = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the versions of an entry or a statement: when, by whom, and what changed.

    What was deleted has a history too; what was forgotten has none.

    \b
    Example:
      hypatia-mem history "rule:never-mock-the-database"
    """
    from hypatia_mem.memory import history as history_
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        found, number = history_.states(store, _words(name), withheld=withheld)
    reach.refuse(_name(found[-1]), found[-1].value.scopes, scopes)
    if number is not None:
        _print_version(history_.version_of(found, number, withheld=withheld), as_json)
        return
    rows = [
        _row(state, history_.changed_fields(found[place - 1] if place else None, state), withheld)
        for place, state in enumerate(found)
    ][-limit:]
    if as_json:
        print_json({"name": _name(found[-1]), "versions": rows})
        return
    say(columns([line for row in rows for line in _lines(row)]))


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="NAME@N", help="The version to compare; without @N the one before the last."
        ),
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME@M]",
            help="The version to compare it with; without it the last.",
            show_default=False,
        ),
    ] = None,
    withheld: _Withheld = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show how two versions of an entry differ, line by line, tags and scopes too.

    \b
    Example:
      hypatia-mem diff "rule:never-mock-the-database@1" "rule:never-mock-the-database@3"
    """
    from hypatia_mem.jse.rows import time_text
    from hypatia_mem.memory import history as history_
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        olds, first = history_.states(store, _words([old]), withheld=withheld)
        news, last = olds, None
        if new is not None:
            news, last = history_.states(store, _words([new]), withheld=withheld)
    for states in (olds, news):
        reach.refuse(_name(states[-1]), states[-1].value.scopes, scopes)
    if first is None:
        first = olds[-2 if len(olds) > 1 else -1].number
    found = history_.difference(
        history_.version_of(olds, first, withheld=withheld),
        history_.version_of(news, last, withheld=withheld),
    )
    if as_json:
        ends = [
            {"name": _name(state), "version": state.number, "at": time_text(state.at)}
            for state in (found.old, found.new)
        ]
        changed = {name: [_plain(value) for value in pair] for name, pair in found.fields.items()}
        print_json({"from": ends[0], "to": ends[1], "fields": changed, "diff": list(found.lines)})
        return
    say("\n".join(found.lines) or "No difference.")


def revert(
    name: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME@N",
            help="The entry and the version; of a statement its three parts, the last with @N.",
            show_default=False,
        ),
    ],
    withheld: _Withheld = False,
    dry_run: DryRun = False,
    after: After = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Bring back what a version said, as a new version; nothing of history is lost.

    It works on what was deleted, too. Trust, pin and suppression stay as they are now.

    \b
    Example:
      hypatia-mem revert "rule:never-mock-the-database@2"
    """
    from hypatia_mem.memory import history as history_
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    words = _words(name)
    scopes = context.scopes_to_change(scope, all_projects, verb="revert")
    if scopes is not None:
        with open_store(context.home(), write=False) as store:
            found, _ = history_.states(store, words, withheld=withheld)
        reach.refuse(_name(found[-1]), found[-1].value.scopes, scopes)
    changed = or_later(
        lambda: history_.revert(
            context.home(),
            words,
            withheld=withheld,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb="revert",
        names=words,
        arguments=lambda: {"withheld": withheld},
        as_json=as_json,
    )
    if changed is not None:
        _tell_revert(changed, dry_run, as_json)


def _tell_revert(changed: Changed, dry_run: bool, as_json: bool) -> None:
    outcome = changed.outcomes[0]
    if outcome.verb == "refused":
        raise Refused(f"{outcome.name!r} was not put back: {outcome.reason}")
    blast = settle(changed.blast)
    version, number = outcome.details["version"], outcome.details["from"]
    is_ = "would be" if dry_run else "is"
    text = f"{outcome.name} {is_} at version {version} again what it was at version {number}."
    if outcome.verb == "unchanged":
        text = f"{outcome.name} says already what it said at version {number}."
    if as_json:
        said = {"verb": outcome.verb, "name": outcome.name, **outcome.details}
        print_json({**said, "dry_run": dry_run, "reach": reach_row(blast)})
        return
    say(text)
    say_reach(blast)


def undo(
    operation: _Operation = None,
    dry_run: DryRun = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Take an operation back, all of it or nothing; it can be done again with redo.

    Refused when something later changed the same, and for what is final: forgetting, and turns as
    they were said. Without OP: the last operation of this project that is not undone.

    \b
    Example:
      hypatia-mem undo
      hypatia-mem undo 41 --dry-run
    """
    from hypatia_mem.memory import history as history_

    scopes = None if operation else context.scopes_for(scope, all_projects)
    outcome = _turned(history_.undo, operation, scopes, dry_run)
    _report(outcome, "Would undo" if dry_run else "Undid", dry_run, as_json)


def redo(
    operation: _Operation = None,
    dry_run: DryRun = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Do again what was undone. Without OP: what was undone last in this project.

    \b
    Example:
      hypatia-mem redo
    """
    from hypatia_mem.memory import history as history_

    scopes = None if operation else context.scopes_for(scope, all_projects)
    outcome = _turned(history_.redo, operation, scopes, dry_run)
    _report(outcome, "Would redo" if dry_run else "Did again", dry_run, as_json)


def _turned(
    turn: Callable[..., Outcome],
    operation: str | None,
    scopes: list[str] | None,
    dry_run: bool,
) -> Outcome:
    by_person = context.channel() in PERSON_CHANNELS
    return turn(
        context.home(),
        operation,
        scopes=scopes,
        reach=None if by_person else context.scopes_for(None, False),
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )


# ----------------------------------------------------------------------------------------------


def _words(name: Sequence[str]) -> list[str]:
    return [values.checked(word, "the name") for word in name]


def _name(state: State) -> str:
    value = state.value
    if isinstance(value, Entry):
        return value.name
    return f"({value.subject}, {value.predicate}, {value.object})"


def _row(state: State, changed: Sequence[str], withheld: bool) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text

    hidden = state.withheld and not withheld
    row: dict[str, Any] = {
        "version": state.number,
        "at": time_text(state.at),
        "verb": state.verb,
        "actor": state.actor,
        "channel": state.channel,
        "by": who(state.actor, state.channel),
        "operation": state.op_id,
        "changed": list(changed),
        "withheld": state.withheld,
        "current": state.replaced_at is None,
        "replaced_at": None if state.replaced_at is None else time_text(state.replaced_at),
        "deleted_by": state.deleted_by or None,
        "deleter": who(*state.deleter) if state.deleted_by else None,
        "reconstructed": state.reconstructed,
    }
    if not hidden:
        row |= {
            "content": state.value.content,
            "scopes": list(state.value.scopes),
            "valid_from": _plain(state.value.valid_from),
            "valid_to": _plain(state.value.valid_to),
        }
        if isinstance(state.value, Entry):
            row |= {"tags": list(state.value.tags), "kind": state.value.kind}
    return row


def _lines(row: dict[str, Any]) -> list[list[str]]:
    text = "(withheld)" if "content" not in row else _first_line(row["content"])
    if row["reconstructed"]:
        text = f"(reconstructed) {text}"
    said = [
        [
            f"@{row['version']}", row["at"], row["verb"], row["by"],
            row["operation"], ", ".join(row["changed"]) or "-", text,
        ]
    ]  # fmt: skip
    if row["deleted_by"]:
        said.append(
            ["", row["replaced_at"], "delete", row["deleter"], row["deleted_by"], "", "(gone)"]
        )
    return said


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 3] + "..."


def _print_version(state: State, as_json: bool) -> None:
    if as_json:
        print_json({"name": _name(state), **_row(state, (), withheld=True)})
        return
    say(state.value.content)


def _plain(value: object) -> object:
    from datetime import datetime

    from hypatia_mem.jse.rows import time_text

    if isinstance(value, tuple):
        return list(value)
    return time_text(value) if isinstance(value, datetime) else value


def _report(outcome: Outcome, done: str, dry_run: bool, as_json: bool) -> None:
    details = dict(outcome.details)
    if dry_run:
        details.pop("operation", None)
    first = details.get("first")
    if first:  # it is planned when what was condensed since then is out of the way
        machine = {"verb": outcome.verb, "target": outcome.name, "dry_run": True, **details}
        emit(
            machine, f"{done} {outcome.name}, and before it what was condensed since then.", as_json
        )
        return
    parts = [
        f"{word} {_listed(details[key])}"
        for key, word in (
            ("restored", "brought back"),
            ("changed", "changed back"),
            ("removed", "took out"),
            ("others", "set back"),
        )
        if details[key]
    ]
    machine = {"verb": outcome.verb, "target": outcome.name, "dry_run": dry_run, **details}
    emit(
        machine, f"{done} {outcome.name}: {'; '.join(parts) or 'nothing was left of it'}.", as_json
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown

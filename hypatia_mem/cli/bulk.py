"""Many things changed by one command line: a numbered list, a selection, one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, finish, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, print_json, say
from hypatia_mem.errors import UsageError, one_of

if TYPE_CHECKING:
    from hypatia_mem.memory.bulk import Done, Listed

__all__ = ["bulk"]

_LINE = 60  # characters of an entry's text in the list


def bulk(  # noqa: PLR0913 - what is chosen, what is done, and how it is told
    verb: Annotated[
        str,
        typer.Argument(
            help="list, delete, move, pin, unpin, suppress, unsuppress, tag, untag, category,"
            " uncategory, archive or unarchive.",
            show_default=False,
        ),
    ],
    value: Annotated[
        str,
        typer.Argument(help="The tag, the category, or the scope to move to.", show_default=False),
    ] = "",
    select: Annotated[
        str,
        typer.Option(
            "--select", help="Which of the list, by number: 1-5,8,10- or all.", show_default=False
        ),
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only rule, taboo, memory, summary, ...; may be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Only what has this tag; may be repeated.")
    ] = None,
    session: Annotated[str, typer.Option("--session", help="Only messages of this session.")] = "",
    text: Annotated[str, typer.Option("--text", help="Only what these words stand in.")] = "",
    withheld: Annotated[
        bool, typer.Option("--withheld", help="What is suppressed, a candidate, or rejected.")
    ] = False,
    list_: Annotated[
        str, typer.Option("--list", help="The name of the list that the numbers are of.")
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without it nothing is changed.")
    ] = False,
    after: After = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Change many things at once: all that is selected or nothing, taken back by one undo.

    "bulk list" numbers what the filters let through and names the list. Any other verb says what
    it would do, and does it with --yes. With --list it refuses when the list has changed since.
    An entry has one category at most: it is the tag category:NAME, by which every list is narrowed.
    Archived are the sessions that what is chosen is of.

    \b
    Example:
      hypatia-mem bulk list --kind rule
      hypatia-mem bulk pin --kind rule --select 1-3,7 --yes
    """
    from hypatia_mem.memory import bulk as bulk_

    one_of(verb, ("list", *bulk_.VERBS), "the verb")
    wanted = bulk_.Filter(
        scopes=(
            context.scopes_for(scope, all_projects)
            if verb == "list"
            else context.scopes_to_change(scope, all_projects, verb=f"bulk {verb}")
        ),
        kinds=tuple(one_of(one, bulk_.KINDS, "--kind") for one in kind or ()),
        tags=tuple(tag or ()),
        session_id=session,
        text=values.checked(text, "--text"),
        withheld=withheld,
    )
    if verb == "list":
        _list(wanted, as_json)
        return
    if not select:
        raise UsageError(
            "say which of the list: --select 1-5,8,10-", hint="See it with: hypatia-mem bulk list"
        )
    dry_run = not yes
    said = values.checked(value, "the value")

    def change() -> Done:
        return bulk_.change(
            context.home(),
            verb,
            said,
            select,
            wanted,
            token=list_,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        )

    def names() -> list[str]:
        found = bulk_.named(context.home(), select, wanted, token=list_)
        return [one.name for one in found]

    done = or_later(
        change,
        after=after,
        verb="bulk",
        names=names,
        arguments=lambda: {"verb": verb, "value": said, "scopes": wanted.scopes},
        as_json=as_json,
    )
    if done is not None:
        _tell(done, as_json)


def _list(wanted: Any, as_json: bool) -> None:  # noqa: ANN401 - Filter, lazily imported
    from hypatia_mem.memory import bulk as bulk_
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        found = bulk_.listing(store, wanted)
    if as_json:
        print_json({"list": found.token, "entries": _rows(found)})
        return
    if not found.entries:
        say("Nothing is in this list.")
        return
    say(columns([_cells(row, wanted.withheld) for row in _rows(found)]))
    say(f"The list is named {found.token} (--list {found.token} makes sure it is still this one).")


def _rows(found: Listed) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "name": one.name,
            "kind": one.kind,
            "scopes": list(one.scopes),
            "tags": list(one.tags),
            "trust": str(one.trust),
            "pinned": one.pinned,
            "suppressed": one.suppressed,
            "content": one.content,
        }
        for number, one in enumerate(found.entries, start=1)
    ]


def _cells(row: dict[str, Any], withheld: bool) -> list[str]:
    line = "" if withheld else " ".join(row["content"].split())
    marks = [word for word in ("pinned", "suppressed") if row[word]]
    short = line if len(line) <= _LINE else line[: _LINE - 1] + "…"
    return [str(row["number"]), row["kind"], row["name"], " ".join(marks), short]


def _tell(done: Done, as_json: bool) -> None:
    if done.verb in ("delete", "move"):
        finish(done.blast, as_json)
    elif as_json:
        said = {"verb": done.verb, "names": done.names, "unchanged": done.unchanged}
        blast = settle(done.blast)
        more = {"op_id": done.op_id, "reach": reach_row(blast)}
        print_json({"dry_run": not done.op_id, **said, **more})
    else:
        changed = [name for name in done.names if name not in done.unchanged]
        noun = "entry" if len(changed) == 1 else "entries"
        say(f"{'Did' if done.op_id else 'Would do'} {done.verb} to {len(changed)} {noun}:")
        for name in changed:
            say(f"  {name}")
        if done.unchanged:
            say(f"{len(done.unchanged)} of them were so already.")
        say_reach(settle(done.blast))
        if done.op_id:
            say(f"Take it back with: hypatia-mem undo {done.op_id}")
    if not as_json and not done.op_id:
        say("Nothing was changed. Do it with: --yes")

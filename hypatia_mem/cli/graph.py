"""The knowledge graph from the command line: query, entries and statements.

Names, flags and texts are those of the published Hypatia skill, so that its command lines run
unchanged; ``--json`` gives every command a machine form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, DryRun, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.options import (
    AllProjects,
    AsJson,
    AsSession,
    Limit,
    Scopes,
    ValidFrom,
    ValidTo,
)
from hypatia_mem.cli.output import emit, held_back, print_json, print_line, print_rows, say
from hypatia_mem.cli.querying import run_query, stream_query
from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.model import Entry, Outcome, Statement, Trust, normal_predicate

if TYPE_CHECKING:
    from hypatia_mem.memory.blast import Changed

__all__ = [
    "entry_row",
    "is_withheld",
    "kind_of",
    "knowledge_create",
    "knowledge_delete",
    "knowledge_get",
    "knowledge_update",
    "query",
    "run_query",
    "session_current",
    "statement_create",
    "statement_delete",
]

_Name = Annotated[str, typer.Argument(help="The entry's name.", show_default=False)]
_Data = Annotated[
    str | None,
    typer.Option(
        "-d", "--data", help="The text; - reads standard input, @FILE a file, @@ is a plain @."
    ),
]
_Tags = Annotated[str | None, typer.Option("-t", "--tags", help="Tags, separated by commas.")]
_Synonyms = Annotated[
    str | None, typer.Option("--synonyms", help="Other names, separated by commas.")
]
_Figures = Annotated[
    str | None, typer.Option("-f", "--figures", help="archive:// links, separated by commas.")
]
_ScopeList = Annotated[
    str | None,
    typer.Option(
        "--scopes",
        help='Scopes, separated by commas; "" is global, "app," is app and global. '
        "Without it: the current project.",
    ),
]
_Subject = Annotated[str, typer.Argument(help="The subject (head).", show_default=False)]
_Predicate = Annotated[
    str, typer.Argument(help="The predicate (relation), stored in snake_case.", show_default=False)
]
_Object = Annotated[str, typer.Argument(help="The object (tail).", show_default=False)]


def query(
    expression: Annotated[
        str,
        typer.Argument(
            help="A JSE expression; - reads it from standard input, @FILE from a file.",
            show_default=False,
        ),
    ],
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", help="Only what was true at this (local) time, as in 2025-01-31."),
    ] = None,
    as_known_at: Annotated[
        str | None,
        typer.Option(
            "--as-known-at",
            help="As the memory held it at this (local) time; what was forgotten since is gone.",
        ),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Print every row as a line of JSON, by name; few are held in memory at a time.",
        ),
    ] = False,
    as_session: AsSession = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Run a JSE expression over the knowledge graph and print the rows as JSON.

    A condition on "scopes" anywhere in the expression says which scopes it reads; without one it
    reads the current project and the global scope. Without rows it prints "No results found.";
    with --json an empty list.

    \b
    Example:
      hypatia-mem query '["$knowledge", ["$contains", "tags", "rule"]]'
    """
    asked = values.read_text(expression, "the expression")
    context.ask_as(as_session)
    if stream:
        for row in stream_query(
            context.home(),
            asked,
            scope=scope,
            all_projects=all_projects,
            as_of=as_of,
            as_known_at=as_known_at,
        ):
            print_line(row)
        return
    rows = run_query(
        context.home(),
        asked,
        scope=scope,
        all_projects=all_projects,
        as_of=as_of,
        as_known_at=as_known_at,
    )
    print_rows(rows, as_json)


def session_current(
    scope: Scopes = None,
    all_projects: AllProjects = False,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List the messages that no summary covers yet, oldest first.

    Reads the current project and the global scope.

    \b
    Example:
      hypatia-mem session-current --scope app
    """
    scopes = context.scopes_for(scope, all_projects)
    conditions: list[Any] = []
    if scopes is not None:
        conditions = [["$or", *(["$contains", "scopes", item] for item in scopes)]]
    expression = {"$not-summaried": ["message", *conditions], "limit": -1}
    rows = run_query(context.home(), json.dumps(expression), all_projects=True)
    if as_json:
        print_json({"total": len(rows), "messages": rows[:limit]})
        return
    if not rows:
        say("No unsummarized messages.")
        return
    for row in rows[:limit]:
        say(f"  {row['name']}  {row['created_at']}")
    noun = "message" if len(rows) == 1 else "messages"
    shown = f", the first {limit} shown" if len(rows) > limit else ""
    say(f"  ({len(rows)} unsummarized {noun}{shown})")


def knowledge_create(  # noqa: PLR0913 - one each for its options
    name: _Name,
    data: _Data = None,
    tags: _Tags = None,
    synonyms: _Synonyms = None,
    figures: _Figures = None,
    scopes: _ScopeList = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    as_json: AsJson = False,
) -> None:
    """Create a knowledge entry.

    Tags rule and taboo make it part of every session's brief in its scopes, as long as it is true.

    \b
    Example:
      hypatia-mem knowledge-create "wu-2026-05-10-pool" -d "## Lesson ..." \\
        --tags "memory,work-unit,postgres"
    """
    from hypatia_mem.memory import curate

    labels = values.parse_tags(tags or "")
    entry = Entry(
        name=values.checked(name, "the name"),
        content=values.read_text(data, "--data") if data is not None else "",
        tags=labels,
        scopes=_scopes(scopes),
        synonyms=values.parse_list(synonyms or "", "--synonyms"),
        figures=values.parse_list(figures or "", "--figures"),
        kind=kind_of(labels),
        **values.parse_validity(valid_from, valid_to),
    )
    outcome = curate.create_entry(
        context.home(), entry, here=_here(scopes), author=context.author(), now=context.now()
    )
    _report(outcome, f"Created knowledge: {outcome.name}", as_json)


def knowledge_get(
    name: _Name, scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False
) -> None:
    """Print a knowledge entry of this project, or a global one: name, content, created_at.

    A missing one is a sentence and exit code 0, as Hypatia has it; with --json an error.

    \b
    Example:
      hypatia-mem knowledge-get "rule:never-mock-the-database"
    """
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        entry = store.entry(name)
    if entry is not None and not is_withheld(entry):
        reach.refuse(name, entry.scopes, scopes)
        print_json(entry_row(entry))
    elif as_json:
        raise NotFound(f"knowledge {name!r}")
    else:
        say(f"Knowledge '{name}' not found.")


def knowledge_update(  # noqa: PLR0913 - one each for its options
    name: _Name,
    data: _Data = None,
    tags: _Tags = None,
    synonyms: _Synonyms = None,
    figures: _Figures = None,
    scopes: _ScopeList = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Change fields of a knowledge entry; what is not named stays, "" clears.

    Only --scopes "" is different: it makes the entry global, as it does on creation. An entry of
    another project is changed when --scope names that project, or with --all-projects.

    \b
    Example:
      hypatia-mem knowledge-update session-abc -d @summary.md
    """
    from hypatia_mem.memory import curate

    fields: dict[str, Any] = {}
    if data is not None:
        fields["content"] = values.read_text(data, "--data")
    if tags is not None:
        fields["tags"] = values.parse_tags(tags)
        fields["kind"] = kind_of(fields["tags"])
    if synonyms is not None:
        fields["synonyms"] = values.parse_list(synonyms, "--synonyms")
    if figures is not None:
        fields["figures"] = values.parse_list(figures, "--figures")
    if scopes is not None:
        fields["scopes"] = values.parse_scopes(scopes)
    fields |= values.parse_validity(valid_from, valid_to)
    context.reach_to_change([name], scope, all_projects, verb="update")
    changed = or_later(
        lambda: curate.update_entry(
            context.home(), name, fields, dry_run=dry_run, author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb="update",
        names=[name],
        arguments=lambda: {"fields": _plain(fields)},
        as_json=as_json,
    )  # fmt: skip
    if changed is not None:
        done = "Would update knowledge" if dry_run else "Updated knowledge"
        same = changed.outcomes[0].verb == "unchanged"
        _report_change(changed, f"{'Knowledge unchanged' if same else done}: {name}", as_json)


def knowledge_delete(
    name: _Name,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Delete a knowledge entry and the statements that name it.

    The value may come back; "forget" is what keeps it away. An entry of another project is deleted
    when --scope names that project, or with --all-projects.

    \b
    Example:
      hypatia-mem knowledge-delete "wu-2026-05-10-pool"
    """
    from hypatia_mem.memory import curate

    context.reach_to_change([name], scope, all_projects, verb="delete")
    changed = or_later(
        lambda: curate.delete_entry(
            context.home(), name, dry_run=dry_run, author=context.author(), now=context.now()
        ),
        after=after,
        verb="drop",
        names=[name],
        arguments=dict,
        as_json=as_json,
    )
    if changed is not None:
        done = "Would delete knowledge" if dry_run else "Deleted knowledge"
        _report_change(changed, f"{done}: {name}", as_json)


def statement_create(  # noqa: PLR0913 - one each for its options
    subject: _Subject,
    predicate: _Predicate,
    object_: _Object,
    data: _Data = None,
    synonyms: Annotated[
        str | None,
        typer.Option(
            "--synonyms", help='Other names as JSON: {"subject": [...], "object": [...]}.'
        ),
    ] = None,
    scopes: _ScopeList = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    tags: Annotated[str | None, typer.Option("--tags", hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Create a statement (triple); one that exists already is left as it is.

    Either end may name something that has no entry. With --valid-from or --valid-to a statement
    that exists is said to be true at that time from now on; "history" keeps what was said before.

    \b
    Example:
      hypatia-mem statement-create "wu-2026-05-10-pool" is_a work-unit
    """
    from hypatia_mem.memory import curate

    if tags is not None:
        raise UsageError(
            "a statement carries no tags",
            hint="Leave --tags out; a tag of its own kind is a statement: ... is_a work-unit",
        )
    statement = Statement(
        *_triple(subject, predicate, object_),
        content=values.read_text(data, "--data") if data is not None else "",
        scopes=_scopes(scopes),
        synonyms=values.parse_synonyms(synonyms or ""),
    )
    validity = values.parse_validity(valid_from, valid_to)
    if validity:  # which changes one that is there
        own = context.scopes_for(None, False) or []
        named = [*own, *statement.scopes]
        context.scopes_to_change(named, False, verb="update statement")
        _reach_of(statement, named, False)
    outcome = curate.create_statement(
        context.home(),
        statement,
        here=_here(scopes),
        validity=validity,
        author=context.author(),
        now=context.now(),
    )
    shown = f"({subject}, {normal_predicate(predicate)}, {object_})"
    exists = outcome.verb in ("unchanged", "exists")
    text = f"Statement already exists: {shown}" if exists else f"Created statement: {shown}"
    if outcome.verb == "updated":
        text = f"Updated when it is true: {shown}"
    _report(outcome, text, as_json)


def statement_delete(
    subject: _Subject,
    predicate: _Predicate,
    object_: _Object,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Delete a statement (triple).

    One of another project is deleted when --scope names that project, or with --all-projects.

    \b
    Example:
      hypatia-mem statement-delete "wu-2026-05-10-pool" is_a work-unit
    """
    from hypatia_mem.memory import curate

    triple = _triple(subject, predicate, object_)
    context.scopes_to_change(scope, all_projects, verb="delete statement")
    _reach_of(Statement(*triple), scope, all_projects)
    outcome = curate.delete_statement(
        context.home(),
        *triple,
        author=context.author(),
        now=context.now(),
    )
    shown = f"({subject}, {normal_predicate(predicate)}, {object_})"
    _report(outcome, f"Deleted statement: {shown}", as_json)


def _reach_of(statement: Statement, scope: list[str] | None, all_projects: bool) -> None:
    """Raise NotFound when a statement that is there belongs to none of these scopes."""
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        there = store.statement(statement.subject, statement.predicate, statement.object)
        if there is not None:
            reach.refuse(
                f"({there.subject}, {there.predicate}, {there.object})", there.scopes, scopes
            )


def kind_of(tags: Sequence[str]) -> str:
    """Return the kind an entry has by its tags; a work unit is knowledge, not a memory."""
    for kind in ("taboo", "rule", "summary", "session"):
        if kind in tags:
            return kind
    return "memory" if "memory" in tags and "work-unit" not in tags else "knowledge"


def is_withheld(entry: Entry) -> bool:
    """Tell whether an entry is kept out of reads."""
    return entry.suppressed or entry.trust in (Trust.CANDIDATE, Trust.REJECTED)


def entry_row(entry: Entry) -> dict[str, Any]:
    """Return an entry in the published shape of a row."""
    from hypatia_mem.jse.rows import knowledge_row

    return knowledge_row(
        {
            "name": entry.name,
            "content": entry.content,
            "format": entry.format,
            "tags": entry.tags,
            "synonyms": entry.synonyms,
            "figures": entry.figures,
            "scopes": entry.scopes,
            "created_at": entry.created_at,
        }
    )


def _scopes(text: str | None) -> tuple[str, ...]:
    if text is not None:
        return values.parse_scopes(text)
    return (context.current_scope(claim=True),)


def _here(scopes: str | None) -> str | None:
    """Return the project of this folder where scopes were named, which may be another's."""
    return None if scopes is None else context.current_scope()


def _triple(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    return (
        values.checked(subject, "the subject"),
        values.checked(predicate, "the predicate"),
        values.checked(object_, "the object"),
    )


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of an entry as JSON holds them."""
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in fields.items()
    }


def _report_change(changed: Changed, text: str, as_json: bool) -> None:
    """Report what became of one entry, and of what stands on it."""
    blast = settle(changed.blast)
    _report(changed.outcomes[0], text, as_json, reach_row(blast))
    if not as_json:
        say_reach(blast)


def _report(
    outcome: Outcome, text: str, as_json: bool, reach: dict[str, Any] | None = None
) -> None:
    if outcome.verb == "refused":
        raise Refused(
            f"{outcome.name!r} was not stored: {outcome.reason or 'it was forgotten before'}",
            hint="A person can bring it back by running this command in a terminal.",
        )
    machine = {"verb": outcome.verb, "name": outcome.name, **dict(outcome.details)}
    machine |= {"reach": reach} if reach else {}
    if outcome.details.get("quarantined"):
        machine["reason"] = outcome.reason
        text = held_back(outcome)
    elif outcome.verb == "created" and outcome.reason:
        machine["reason"] = outcome.reason
        text += f"\nBut {outcome.reason}."
    emit(machine, text, as_json)

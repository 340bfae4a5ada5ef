"""``graph check``, ``graph export``, ``graph merge``: is it right, take it along, make two one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import reach_row, say_reach, settle
from hypatia_mem.cli.options import AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import emit, print_json, say, warn
from hypatia_mem.cli.selecting import PART, selecting, taken
from hypatia_mem.errors import one_of
from hypatia_mem.memory.graph.selecting import Selection
from hypatia_mem.memory.redaction import without_secrets

if TYPE_CHECKING:
    from hypatia_mem.memory.graph.check import Finding
    from hypatia_mem.memory.graph.merge import MergePlan

__all__ = ["check", "export", "merge"]

_SHOWN = 20  # findings of a kind, statements of a list
_MERMAID_EDGES = 500  # more it does not draw unless it is configured to


def check(
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Check that the graph is whole: ends, sessions, summaries, work units, circles, names.

    Each finding is a sentence with its remedy. Exit code 1 when something is wrong; what only
    looks odd (a name that means two things, a predicate spelt in two ways) does not count.

    \b
    Example:
      hypatia-mem graph check --all-projects
    """
    from hypatia_mem.memory.graph.check import check as find
    from hypatia_mem.store.connection import open_store

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        found = find(store, scopes)
    wrong = sum(one.serious for one in found)
    if as_json:
        print_json({"ok": not wrong, "findings": [_finding(one) for one in found]})
    else:
        _say_findings(found)
    if wrong:
        raise typer.Exit(1)


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "serious": one.serious,
        "sentence": one.sentence,
        "remedy": one.remedy,
        "names": list(one.names),
    }


def _say_findings(found: list[Finding]) -> None:
    if not found:
        say("The graph is whole.")
        return
    shown: dict[str, int] = {}
    for one in found:
        shown[one.kind] = shown.get(one.kind, 0) + 1
        if shown[one.kind] <= _SHOWN:
            say(f"{'wrong' if one.serious else 'odd'}: {one.sentence}\n  {one.remedy}")
    for kind, count in shown.items():
        if count > _SHOWN:
            say(f"({count - _SHOWN} more of the kind {kind}; --json lists all)")


@selecting(*PART)
def export(
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="graphml, json, dot, mermaid or html; without it by the file's name, else json.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Write this file; it is made anew.")
    ] = None,
    as_json: AsJson = False,
    *,
    selection: Selection,
) -> None:
    """Write a part of the graph as a file that other programs read, or as a page to look at.

    The html is one file that opens in any browser without a network: a picture with names and
    predicates, a search, colours by kind, each entry's text at a click.

    \b
    Example:
      hypatia-mem graph export -o graph.html
      hypatia-mem graph export --format graphml --near PostgreSQL --depth 2 -o pg.graphml
    """
    from hypatia_mem.memory.graph import export as graph_export

    chosen = format_ or (graph_export.format_of(output) if output else None) or "json"
    one_of(chosen, graph_export.FORMATS, "--format")
    found = taken(selection, alone=True)
    if chosen == "mermaid" and len(found.edges) > _MERMAID_EDGES:
        warn(
            f"{len(found.edges)} statements: Mermaid draws at most {_MERMAID_EDGES} unless its "
            "maxEdges is set higher."
        )
    text = without_secrets(graph_export.render(found, chosen, _title(selection)))
    machine: dict[str, Any] = {
        "format": chosen,
        "nodes": len(found.nodes),
        "edges": len(found.edges),
    }
    if output is None:
        if as_json and chosen != "json":
            print_json({**machine, "text": text})
        else:
            print(text, end="")
        return
    file = Path(values.checked(output, "--output")).expanduser()
    _write(file, text)
    size = f"{len(found.nodes):,} names, {len(found.edges):,} statements"
    emit({**machine, "file": str(file)}, f"Wrote {file}: {size}.", as_json)


def _title(selection: Selection) -> str:
    if selection.scopes is None:
        return "Memory of all projects"
    named = [scope for scope in selection.scopes if scope]
    return "Memory of " + ", ".join(named) if named else "Memory that holds everywhere"


def _write(file: Path, text: str) -> None:
    """Write a file that is its owner's alone, whole or not at all."""
    import os
    import tempfile

    handle, made = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:80]}.")
    os.close(handle)
    try:
        Path(made).write_text(text, "utf-8", newline="\n")
        Path(made).replace(file)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def merge(
    keep: Annotated[str, typer.Argument(help="The name that stays.", show_default=False)],
    other: Annotated[
        str, typer.Argument(help="The name that becomes its synonym.", show_default=False)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what it would change.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Merge although scopes or kinds differ.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Make two names for one thing one: KEEP gets all that OTHER has, and both find it.

    Statements are rewritten, those that are there already joined; one that would lead from KEEP to
    itself is dropped. It is one operation, which "undo" takes back as a whole.

    \b
    Example:
      hypatia-mem graph merge PostgreSQL postgres --dry-run
    """
    from dataclasses import replace

    from hypatia_mem.memory.graph import merge as merging

    if dry_run:
        scopes = context.scopes_for(scope, all_projects)
    else:
        scopes = context.scopes_to_change(scope, all_projects, verb="merge")
    names = (values.checked(keep, "the name"), values.checked(other, "the name"))
    plan = merging.merge(
        context.home(),
        *names,
        scopes=scopes,
        force=force,
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    # The plan names the statements itself, with what becomes of them.
    plan = replace(plan, blast=settle(replace(plan.blast, statements=())))
    if as_json:
        print_json(_plan(plan, dry_run))
    else:
        _say_plan(plan, dry_run)


def _plan(plan: MergePlan, dry_run: bool) -> dict[str, Any]:
    return {
        "keep": plan.keep,
        "other": plan.gone,
        "rewritten": [{"from": old, "to": row["triple"]} for old, row in plan.moved],
        "joined": [{"from": old, "to": row["triple"]} for old, row in plan.joined],
        "dropped": list(plan.dropped),
        "synonyms": list(plan.synonyms),
        "tags": list(plan.tags),
        "scopes": list(plan.scopes),
        "appended": plan.appended,
        "kept_apart": plan.kept_apart,
        "needs_force": list(plan.doubts),
        "ambiguous": list(plan.also),
        "op_id": plan.op_id,
        "dry_run": dry_run,
        "reach": reach_row(plan.blast),
    }


def _say_plan(plan: MergePlan, dry_run: bool) -> None:
    say(f"{'Would merge' if dry_run else 'Merged'} {plan.gone!r} into {plan.keep!r}.")
    _say_statements("rewritten", [f"{old}  ->  {row['triple']}" for old, row in plan.moved])
    _say_statements("joined with one that is there", [old for old, _ in plan.joined])
    _say_statements("dropped, for it would lead to itself", list(plan.dropped))
    gains = {"synonyms": plan.synonyms, "tags": plan.tags, "scopes": plan.scopes}
    for what, names in gains.items():
        if names:
            say(f"  {plan.keep} gains the {what} {', '.join(name or '(global)' for name in names)}")
    if plan.appended:
        say(f"  the text of {plan.gone} ({plan.appended} characters) is appended")
    if plan.kept_apart:
        say(f"  the text of {plan.gone} is of another format and stays in its history")
    if plan.also:
        say(f"  {plan.gone} is a synonym of {', '.join(plan.also)} too, so it will mean several")
    if dry_run and plan.doubts:
        say(f"It needs --force: {'; '.join(plan.doubts)}.")
    say_reach(plan.blast)
    if plan.op_id:
        say(f"To take it back: hypatia-mem undo {plan.op_id}")


def _say_statements(what: str, lines: list[str]) -> None:
    if not lines:
        return
    say(f"  {len(lines)} {'statement' if len(lines) == 1 else 'statements'} {what}")
    for line in lines[:_SHOWN]:
        say(f"    {' '.join(line.split())}")
    if len(lines) > _SHOWN:
        say(f"    (and {len(lines) - _SHOWN} more)")

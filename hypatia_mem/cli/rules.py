"""The taboos, rules and memories that hold, of any time; and the memory's own ten rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, AsKnownAt, AsOf, Scopes
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.cli.searching import moment
from hypatia_mem.errors import one_of
from hypatia_mem.model import GLOBAL_SCOPE, Entry

if TYPE_CHECKING:
    from hypatia_mem.memory.conduct import Finding

__all__ = ["rules"]

_KINDS = ("taboo", "rule", "memory")
_SORTS = ("preference", "procedure")  # of memories

rules = typer.Typer(
    add_completion=False,
    help="""List the taboos, rules and memories that hold in this project and everywhere.

    \b
    Example:
      hypatia-mem rules --kind taboo
    """,
)


@rules.callback(invoke_without_command=True)
def list_rules(
    ctx: typer.Context,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only rule, taboo, memory, preference or procedure."),
    ] = None,
    as_of: AsOf = None,
    as_known_at: AsKnownAt = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the taboos, rules and memories that hold in this project and everywhere.

    Those that are true now. With --as-of those that were true, or will be, at that time; with
    --as-known-at those that the memory held then to be true: then, or at the time of --as-of.

    \b
    Example:
      hypatia-mem rules --kind taboo
      hypatia-mem rules --as-of 2026-03-01
    """
    if ctx.invoked_subcommand is not None:
        return
    from hypatia_mem.store import bitemporal
    from hypatia_mem.store.connection import open_store

    for one in kind or ():
        one_of(one, (*_KINDS, *_SORTS), "--kind")
    at, known_at = moment(as_of, "--as-of"), moment(as_known_at, "--as-known-at")
    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        if scopes is None:
            scopes = [GLOBAL_SCOPE, *(project.scope for project in store.projects())]
        if known_at is None:
            found = store.rules(scopes, at=at)
        else:
            found = bitemporal.rules_known(store, scopes, known_at=known_at, at=at or known_at)
    wanted = set(kind or _KINDS)
    found = [entry for entry in found if wanted & {entry.kind, _sort(entry)}]
    if as_json:
        print_json([_rule_row(entry) for entry in found])
    elif found:
        say(_rules_text(found))
    elif at is not None or known_at is not None:
        say("Nothing held then.")
    else:
        say('Nothing is remembered here yet. Begin with: hypatia-mem remember "..."')


@rules.command("check", cls=Leaf)
def check(
    rule: Annotated[
        list[int] | None,
        typer.Option("--rule", min=1, max=10, help="Only this one of the ten; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the ten rules of the memory itself, in every project; exit code 1 when one is broken.

    No secret is stored, no message is missing, lessons have their sources, summaries condense,
    tags and scopes are right, and what nobody said does not count. Rule 1 is the scan for secrets:
    every stored entry and statement is put before the redactor that the hooks use. Changes nothing.

    \b
    Example:
      hypatia-mem rules check
      hypatia-mem rules check --rule 1
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import conduct

    home = context.home()
    found = conduct.check(home, load_settings(home), now=context.now(), rules=rule)
    if as_json:
        print_json([_finding_row(one) for one in found])
    else:
        say("\n".join(_finding_text(one) for one in found))
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def _finding_row(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "title": found.title,
        "holds": found.holds,
        "count": found.count,
        "names": list(found.names),
        "why": found.why,
        "remedy": found.remedy,
    }


def _finding_text(found: Finding) -> str:
    if found.holds:
        return f"{found.rule:>2}  ok      {found.title}"
    more = f" and {found.count - len(found.names)} more" if found.count > len(found.names) else ""
    return (
        f"{found.rule:>2}  BROKEN  {found.title}: {found.why}\n"
        f"            {', '.join(found.names)}{more}\n"
        f"            {found.remedy}"
    )


def _rule_row(entry: Entry) -> dict[str, Any]:
    from hypatia_mem.jse.rows import time_text
    from hypatia_mem.memory import activation

    return {
        "name": entry.name,
        "kind": entry.kind,
        "sort": _sort(entry) or None,
        "content": entry.content,
        "scopes": list(entry.scopes),
        "trust": str(entry.trust),
        "pinned": entry.pinned,
        **activation.row(entry),
        "created_at": time_text(entry.created_at),
        "tr_start": time_text(entry.valid_from),
        "tr_end": time_text(entry.valid_to),
    }


def _rules_text(found: Sequence[Entry]) -> str:
    heads = {"taboo": "Taboos", "rule": "Rules", "memory": "Memories"}
    blocks = []
    for kind, head in heads.items():
        lines = [_rule_line(entry) for entry in found if entry.kind == kind]
        if lines:
            blocks.append("\n".join([head, *lines]))
    return "\n\n".join(blocks)


def _sort(entry: Entry) -> str:
    """Return which sort of memory an entry is, ``""`` for most."""
    return next((sort for sort in _SORTS if sort in entry.tags and entry.kind == "memory"), "")


def _rule_line(entry: Entry) -> str:
    from hypatia_mem.cli.activation import said
    from hypatia_mem.memory import activation

    scopes = ", ".join(scope or "global" for scope in entry.scopes)
    sort = f"  {_sort(entry)}" if _sort(entry) else ""
    told = said(activation.of(entry), entry.priority)
    more = f"\n    {told}" if told else ""
    return f"  {entry.name}  [{scopes}]{sort}\n    {_first_line(entry.content, 300)}{more}"


def _first_line(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"

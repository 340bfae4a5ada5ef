"""``extract``: look for finished work in what was said, and keep its lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AllProjects, AsJson, Limit, Scopes
from hypatia_mem.cli.output import columns, print_json, say
from hypatia_mem.cli.progress import mark_as_own

if TYPE_CHECKING:
    from hypatia_mem.memory.extract.keeping import Kept
    from hypatia_mem.memory.extract.offering import Offer

__all__ = ["extract"]

extract = typer.Typer(
    add_completion=False,
    help="""Look for finished work in what was said since the last time, and keep its lessons.

    \b
    Example:
      hypatia-mem extract --dry-run
    """,
)
_Target = Annotated[
    str, typer.Argument(help="A work unit, or a piece of a session: SESSION:FIRST-LAST.")
]


@extract.callback(invoke_without_command=True)
def run(
    ctx: typer.Context,
    session: Annotated[
        str, typer.Option("--session", help="Look at this session alone.", metavar="ID")
    ] = "",
    over: Annotated[
        bool, typer.Option("--over", help="Take the last topic as finished, too.")
    ] = False,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask the model that makes summaries, within your limits."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be kept; nothing is changed.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Look for finished work in what was said since the last time, and keep its lessons.

    The worker does it by itself. A topic is finished when another has followed, the session has
    ended, or nothing was said for half an hour. What is unsure is kept as a candidate, which no
    session is told before a person has taken it in: hypatia-mem review.

    Without --ask no model is asked; the worker asks the one that makes summaries, where there is
    one. Nobody is asked for a --dry-run.

    \b
    Example:
      hypatia-mem extract --dry-run
    """
    if ctx.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.extract import running

    home = context.home()
    with mark_as_own():
        found = running.run(
            home,
            now=context.now(),
            settings=load_settings(home) if ask else None,
            author=context.author(),
            scopes=context.scopes_for(scope, all_projects),
            session_id=values.checked(session, "the session") if session else "",
            over=over,
            dry_run=dry_run,
        )
    if found.kept and not dry_run:
        curate.refresh(home)
    if as_json:
        print_json({**asdict(found), "line": found.line, "dry_run": dry_run})
        return
    say(f"[hypatia-memory] {found.line}")
    for one in found.kept:
        say(_kept(one))
    for name in found.proposed:
        say(f"  {name}    → proposed as a rule: hypatia-mem review")


@extract.command("due", cls=Leaf)
def due(
    target: _Target = "",
    limit: Limit = 20,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the work units that nobody has judged yet; of one, show what to judge and how.

    The worker has kept sentences that were said. Whoever reads the messages can say it better, in
    the form that is shown, and hand it in with extract submit.

    \b
    Example:
      hypatia-mem extract due wu-2026-11-30-login-token
    """
    from dataclasses import asdict

    from hypatia_mem.memory.extract import offering

    home = context.home()
    if not target:
        found = offering.offers(
            home, context.scopes_for(scope, all_projects), now=context.now(), most=limit
        )
        if as_json:
            print_json([asdict(one) for one in found])
        elif found:
            say(columns([(one.name, one.kind, one.trust, one.span) for one in found]))
        else:
            say("Nothing waits to be judged.")
        return
    name = _in_reach(target, scope, all_projects)
    one = offering.offer(home, name)
    if as_json:
        print_json({**asdict(one), "submit": _submit(name)})
        return
    say(_shown(one, name))


@extract.command("submit", cls=Leaf)
def submit(
    target: _Target,
    data: Annotated[
        str, typer.Option("-d", "--data", help="The unit in the form of due; - reads it.")
    ],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Hand in what you judge of a piece of work: it takes the place of the sentences kept of it.

    The entry keeps its name, its links and its history. What no message says is refused, or, in a
    candidate, marked as inferred.

    \b
    Example:
      hypatia-mem extract submit wu-2026-11-30-login-token -d -
    """
    from dataclasses import asdict

    from hypatia_mem.memory import curate
    from hypatia_mem.memory.extract import refining

    home = context.home()
    author = context.author()
    kept = refining.submit(
        home,
        _in_reach(target, scope, all_projects, changes=True),
        values.read_text(data, "--data"),
        producer=f"agent:{author.producer}" if author.producer else "agent",
        author=author,
        now=context.now(),
    )
    curate.refresh(home)
    if as_json:
        print_json(asdict(kept))
        return
    say(f"[hypatia-memory] Extracted 1 work unit (1 {kept.kind}).")
    say(_kept(kept))


def _in_reach(
    target: str, scope: list[str] | None, all_projects: bool, *, changes: bool = False
) -> str:
    """Return a target as it is; NotFound when it is another project's.

    ``changes``: only a person looks further. Raises Refused then.
    """
    if changes:
        context.scopes_to_change(scope, all_projects, verb="extract submit")
    name = values.checked(target, "the work unit")
    session, colon, _ = name.rpartition(":")
    context.reach_of([session if colon else name], scope, all_projects)
    return name


def _kept(one: Kept) -> str:
    notes = [] if one.relation == "new" else [f"{one.relation} {one.older}".strip()]
    notes += ["candidate"] if one.trust == "candidate" else []
    return f"  {one.name}    → {','.join(one.tags)}" + (f" ({', '.join(notes)})" if notes else "")


def _submit(name: str) -> str:
    return f"hypatia-mem extract submit {name} -d -"


def _shown(one: Offer, name: str) -> str:
    lines = [
        f"{one.name or one.span}  {one.kind} by its shape",
        "",
        one.rules,
        f"Then: {_submit(name)}",
    ]
    if one.content:
        lines += ["", f"Kept so far, as {one.trust}:", one.content]
    for other in one.compare:
        lines += ["", f"Compare {other['name']}:", other["content"]]
    lines += ["", "What was said:"]
    for said in one.said:
        lines += ["", f"{said['name']}  {said['speaker']}", said["text"]]
    return "\n".join(lines)

"""``goal``: what this project works towards, how far it is, and what was left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import emit, held_back, print_json, say
from hypatia_mem.errors import Refused

if TYPE_CHECKING:
    from hypatia_mem.model import Entry, Outcome
    from hypatia_mem.store.connection import Store

__all__ = ["goal"]

goal = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Set what this project works towards, see how far it is, say what is done.

    Sessions are told the goals that are open when they begin, and handoff lists them. What an agent
    set is told as set by an agent.

    \b
    Example:
      hypatia-mem goal set "move the queue to Postgres" --step "dump the tables" --step "load them"
    """,
)
_What = Annotated[str, typer.Argument(help="Its name, or words of it.", show_default=False)]


@goal.command("set", cls=Leaf)
def set_(
    text: Annotated[
        str,
        typer.Argument(
            help="What is wanted; - reads standard input, @FILE a file.", show_default=False
        ),
    ],
    step: Annotated[
        list[str] | None, typer.Option("--step", help="A step on the way; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set a goal of this project; set again with other steps, it keeps what is done of them.

    \b
    Example:
      hypatia-mem goal set "release 2.0" --step "freeze" --step "tag" --step "announce"
    """
    from hypatia_mem.memory import goals

    scope = context.current_scope(claim=True)
    outcome = goals.put(
        context.home(),
        values.read_text(text, "the goal"),
        steps=[values.checked(one, "a step") for one in step or ()],
        scope=scope,
        author=context.author(),
        now=context.now(),
    )
    _refuse(outcome)
    verbs = {"unchanged": "Already set", "updated": "Changed"}
    line = f'[hypatia-memory] {verbs.get(outcome.verb, "Set")}: "{outcome.name}".'
    machine: dict[str, Any] = {"verb": outcome.verb, "name": outcome.name, "scopes": [scope]}
    if outcome.details.get("quarantined"):
        machine |= {"quarantined": True, "reason": outcome.reason}
        line = held_back(outcome)
    emit(machine, line, as_json)


@goal.command("list", cls=Leaf)
def list_(
    done: Annotated[
        bool, typer.Option("--done", help="Those that are done, and what was closed, instead.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the goals that are open here, and what sessions left open.

    \b
    Example:
      hypatia-mem goal list
    """
    from hypatia_mem.store import episodes
    from hypatia_mem.store.connection import open_store

    scopes, now = context.scopes_for(scope, all_projects), context.now()
    with open_store(context.home(), write=False) as store:
        goals = _rows(store, episodes.goals(store, scopes, at=now, closed=done))
        threads = _rows(store, episodes.threads(store, scopes, at=now, closed=done, limit=50))
    if as_json:
        print_json({"goals": goals, "threads": threads})
        return
    for title, found in (("Goals", goals), ("Done in sessions" if done else "Left open", threads)):
        if found:
            say("\n".join([title, *map(_text, found)]))
    if not goals and not threads:
        say("Nothing is done yet." if done else 'No goal is set: hypatia-mem goal set "..."')


@goal.command("show", cls=Leaf)
def show(what: _What, as_json: AsJson = False) -> None:
    """Show an open goal with its steps, and which one is next.

    \b
    Example:
      hypatia-mem goal show goal-release-2-0
    """
    from hypatia_mem.memory import goals, retelling
    from hypatia_mem.store.connection import open_store

    asked = values.checked(what, "the goal")
    scopes = [context.current_scope(), ""]
    with open_store(context.home(), write=False) as store:
        entry = goals.find(store, asked, scopes, at=context.now())
        entry = retelling.cleared(store, [entry])[0]
        row = _rows(store, [entry])[0]
    emit(row, f"{_text(row).strip()}\n\n{entry.content}", as_json)


@goal.command("done", cls=Leaf)
def done(
    what: _What,
    step: Annotated[
        int | None, typer.Option("--step", min=1, max=MOST, help="Only this step of it.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be closed; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say that a goal, a step of it, or something left open is done; undo takes it back.

    With its last step a goal is done, too.

    \b
    Example:
      hypatia-mem goal done "release 2.0" --step 1
    """
    from hypatia_mem.memory import goals

    outcome, entry = goals.done(
        context.home(),
        values.checked(what, "the goal"),
        step=step or 0,
        scopes=[context.current_scope(), ""],
        dry_run=dry_run,
        author=context.author(),
        now=context.now(),
    )
    _refuse(outcome)
    which = f"step {step} of " if step else ""
    verb = "Would be done" if dry_run else "Done"
    line = f"[hypatia-memory] {verb}: {which}{outcome.name}"
    machine = {"verb": outcome.verb, "name": entry.name, "step": step, "dry_run": dry_run}
    emit(machine, line, as_json)


def _refuse(outcome: Outcome) -> None:
    if outcome.verb == "refused":
        raise Refused(
            f"not stored: {outcome.reason or 'this was forgotten before'}",
            hint="A person can do it by running this command in a terminal.",
        )


def _rows(store: Store, found: list[Entry]) -> list[dict[str, Any]]:
    from hypatia_mem.jse.rows import time_text
    from hypatia_mem.memory import goals, retelling
    from hypatia_mem.store import episodes

    found = retelling.cleared(store, found)
    names = [one.name for one in found]
    agents = episodes.set_by_agents(store, names)
    sources = episodes.sources_of(store, names)
    made = []
    for one in found:
        goal_ = goals.goal_of(one)
        made.append(
            {
                "name": one.name,
                "kind": one.kind,
                "text": goal_.text,
                "steps": [{"text": step.text, "done": step.done} for step in goal_.steps],
                "next_step": goal_.next or None,
                "set_by_agent": one.kind == "goal" and one.name in agents,
                "session_id": one.session_id,
                "turn": one.turn,
                "messages": sources.get(one.name, []),
                "scopes": list(one.scopes),
                "created_at": time_text(one.created_at),
                "done_at": time_text(one.valid_to),
                "line": goal_.line,
            }
        )
    return made


def _text(row: dict[str, Any]) -> str:
    from hypatia_mem.memory import goals

    mark = f"{goals.BY_AGENT} " if row["set_by_agent"] else ""
    turn = f" [turn {row['turn']}]" if row["turn"] else ""
    return f"  {row['name']}\n    {mark}{row['line']}{turn}"

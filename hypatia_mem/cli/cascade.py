"""The cascade from the command line: what is due, what a run would do, what summaries stand on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Scopes
from hypatia_mem.cli.output import columns, print_json, say
from hypatia_mem.cli.progress import mark_as_own, progress

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.backfill import Estimate, Sent

__all__ = ["cascade"]

cascade = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Condense old messages into summaries, and those into summaries of summaries.

    The worker does it by itself. Nothing is replaced: messages stay, and trace walks back to them.

    \b
    Example:
      hypatia-mem cascade status
    """,
)

_TASK = "Condense into {words} words at most, then: {submit}"
_STUCK = "all of them kept as they are, so none can be condensed; see cascade_keep_last"


def _settings() -> Settings:
    from hypatia_mem.config import load_settings

    return load_settings(context.home())


@cascade.command("status")
def status(
    scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False
) -> None:
    """Say how much is not summarised yet, what there is at each level, and what is due.

    \b
    Example:
      hypatia-mem cascade status --all-projects
    """
    from hypatia_mem.memory.cascade import plan as cascade_plan

    found = cascade_plan.status(
        context.home(),
        _settings(),
        now=context.now(),
        scopes=context.scopes_for(scope, all_projects),
    )
    if as_json:
        print_json(found)
        return
    say(f"Summaries are made by: {found['by']}")
    for one in found["projects"]:
        model = f" (model {one['model']})" if one["model"] else ""
        due = "due now" if one["due"] else f"due at {one['threshold']}{model}"
        if one["stuck"]:
            due = _STUCK
        say(
            f"{_named(one['scopes'])}: {one['messages']} unsummarised messages, "
            f"{one['tokens']} tokens, {due}"
        )
    if not found["projects"]:
        say("Every message is summarised, or there is none.")
    for one in found["levels"]:
        say(
            f"level {one['level']}: {one['summaries']} summaries, {one['unlinked']} not in a higher"
        )
    told = found["coverage"]
    if told["summarised"]:
        say(f"{told['summarised']} of {told['messages']} messages stand in a summary.")
    if found["owed"]:
        say(f"{found['owed']} messages are owed a summary at the next run.")
    if found["paused"]:
        pause = found["paused"]
        say(f"Nobody is asked until {pause['until']}Z: {pause['why']}")
        if pause["hint"]:
            say(pause["hint"])
    for one in found["failed"]:
        what = f"again at {one['again']}Z" if one["again"] else f"{one['state']} (jobs list)"
        say(f"level {one['level']} of {_named(one['scopes'])}: {one['message']}; {what}")


@cascade.command("plan")
def plan(scope: Scopes = None, all_projects: AllProjects = False, as_json: AsJson = False) -> None:
    """Say which summaries a run would make now, and what a model would take; nothing is changed.

    \b
    Example:
      hypatia-mem cascade plan
    """
    from dataclasses import asdict

    from hypatia_mem.memory.cascade import backfill
    from hypatia_mem.memory.cascade import plan as cascade_plan

    home, settings, now = context.home(), _settings(), context.now()
    scopes = context.scopes_for(scope, all_projects)
    found = cascade_plan.plan(home, settings, now=now, scopes=scopes)
    guess = backfill.estimate(home, settings, now=now, scopes=scopes)
    if as_json:
        cost = _cost(guess) if guess.calls else None
        print_json([{**asdict(one), "estimate": cost} for one in found])
        return
    for one in found:
        noun = "summary" if one.summaries == 1 else "summaries"
        say(
            f"{_named(one.scopes)}: {one.summaries} {noun} of level {one.level} "
            f"from {one.items} items ({one.reason})"
        )
    if not found:
        say("Nothing is due.")
    elif guess.calls:
        say(_priced(guess))


@cascade.command("run")
def run(
    scope: Scopes = None,
    all_projects: AllProjects = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what has failed, too.")] = False,
    parcel: Annotated[
        bool,
        typer.Option("--batch", help="Hand it in at half the price; the answers come in a day."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask a model without asking you about the cost first.")
    ] = False,
    max_level: Annotated[
        int | None,
        typer.Option("--max-level", min=1, max=MOST, help="No summaries above this level."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make every summary that is due, now. Where a model is asked, the cost is estimated first.

    \b
    Example:
      hypatia-mem cascade run
    """
    from dataclasses import asdict, replace

    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade import backfill
    from hypatia_mem.memory.cascade import running as cascade_

    home, settings, now, author = context.home(), _settings(), context.now(), context.author()
    if max_level is not None:
        most = min(max_level, settings.cascade_max_level)
        settings = replace(settings, cascade_max_level=most)
    scopes = context.scopes_for(scope, all_projects)
    guess = backfill.estimate(home, settings, now=now, scopes=scopes, parcel=parcel)
    if guess.calls and not yes:
        _agree(guess)
    sent: Sent | None = None
    with mark_as_own():
        late = backfill.collect(home, settings, now=now, author=author)
        if parcel:
            sent = backfill.send(home, settings, now=now, author=author, scopes=scopes)
            report = late
        else:
            with progress("Summaries", guess.summaries, quiet=as_json) as told:
                report = cascade_.run(
                    home,
                    settings,
                    now=now,
                    author=author,
                    scopes=scopes,
                    retry=retry,
                    waiting=cascade_.Waiting(told=lambda done: told()),
                )
    if report.made or report.dropped or late.made:
        curate.refresh(home)
    if as_json:
        more = {"sent": asdict(sent) if sent else None} if parcel else {}
        print_json({**asdict(report), "line": report.line, **more})
        return
    if parcel:
        say(
            f"Handed in: {sent.batches} batches in {sent.questions} questions; the worker fetches "
            "the answers, or: hypatia-mem cascade run --batch"
            if sent
            else "Nothing is due."
        )
    else:
        nothing = "Nothing was made." if report.failed or report.paused else "Nothing is due."
        if not report.made:
            nothing = _stuck(scopes) or nothing
        say(f"[hypatia-memory] {report.line}" if report.line else nothing)
    for one in report.made:
        say(f"  {one.name}  level {one.level}, {one.items} items, {_named(one.scopes)}")
    for message in report.failed:
        say(f"  failed: {message}")
    if report.paused:
        say(f"The rest waits: {report.paused}")


@cascade.command("due")
def due(scope: Scopes = None, as_json: AsJson = False) -> None:
    """Hand out the next batch that is to be condensed, for whoever writes its summary.

    \b
    Example:
      hypatia-mem cascade due --json
    """
    from hypatia_mem.memory.cascade import running as cascade_

    handed = cascade_.due(
        context.home(),
        _settings(),
        now=context.now(),
        scopes=context.scopes_for(scope, False) or [],
    )
    if handed is None:
        if as_json:
            print_json({"due": False})
        else:
            say("Nothing is due.")
        return
    batch, request = handed.batch, handed.request
    items = [
        {
            "name": one.name,
            "speaker": one.speaker,
            "session_id": one.session_id,
            "text": _bare(one.text),
        }
        for one in request.items
    ]
    submit_line = f"hypatia-mem cascade submit NAME --ticket {batch.ticket} -d -"
    if as_json:
        print_json(
            {
                "due": True,
                "ticket": batch.ticket,
                "level": batch.level,
                "scopes": list(batch.scopes),
                "reason": batch.reason,
                "max_words": request.max_words,
                "submit": submit_line,
                "items": items,
            }
        )
        return
    say(f"Level {batch.level}, {len(items)} items, {batch.tokens} tokens ({batch.reason}).")
    say(_TASK.format(words=request.max_words, submit=submit_line))
    for one in items:
        say("")
        say(f"{one['name']}  {one['speaker']}".rstrip())
        say(str(one["text"]))


@cascade.command("submit", cls=Leaf)
def submit(
    name: Annotated[
        str, typer.Argument(help="A short name from the content: api-design-retry-queue.")
    ],
    data: Annotated[str, typer.Option("-d", "--data", help="The summary; - reads standard input.")],
    ticket: Annotated[
        str, typer.Option("--ticket", help="The batch's ticket, as due printed it.")
    ] = "",
    scope: Scopes = None,
    as_json: AsJson = False,
) -> None:
    """Store a summary of the batch that is due; sentences without a source are marked inferred.

    \b
    Example:
      hypatia-mem cascade submit retry-queue-design -d -
    """
    from dataclasses import asdict

    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade import announcing
    from hypatia_mem.memory.cascade import running as cascade_

    home, settings = context.home(), _settings()
    done = cascade_.submit(
        home,
        settings,
        values.checked(name, "the name"),
        values.read_text(data, "--data"),
        ticket=ticket,
        producer=_producer(),
        author=context.author(),
        now=context.now(),
        scopes=context.scopes_to_change(scope, False, verb="cascade submit") or [],
    )
    curate.refresh(home)
    announcing.announce(home, settings, now=context.now())
    if as_json:
        print_json(asdict(done))
        return
    say(f"[hypatia-memory] Cascade: +1 summary {done.level} ({done.reason}).")
    marked = f", {done.inferred} sentences marked inferred" if done.inferred else ""
    say(f"  {done.name}  level {done.level}, {done.items} items{marked}")


@cascade.command("windows", cls=Leaf)
def windows(
    model: Annotated[str | None, typer.Argument(help="A model, or how its name begins.")] = None,
    tokens: Annotated[
        int | None,
        typer.Argument(min=0, max=MOST, help="Its window in tokens; 0 takes your row out."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List how many tokens each model takes at once; with a model and a number, say it yourself.

    \b
    Example:
      hypatia-mem cascade windows my-model 128000
    """
    from hypatia_mem.memory.summarise import windows as table

    home = context.home()
    if model is not None and tokens is not None:
        table.set_window(home, values.checked(model, "the model"), tokens)
    own = table.own(home)
    if model is not None and tokens is None:
        found = table.window_of(model, own)
        if as_json:
            print_json({"model": model, "tokens": found})
        else:
            say(f"{model}: {found} tokens")
        return
    rows: dict[str, tuple[int, str]] = {key: (n, "built in") for key, n in table.BUILT_IN.items()}
    rows.update({key: (n, "your own") for key, n in own.items()})
    if as_json:
        print_json([{"model": key, "tokens": n, "from": where} for key, (n, where) in rows.items()])
    else:
        say(columns([(key, str(n), where) for key, (n, where) in sorted(rows.items())]))
        say(f"Any other model: {table.DEFAULT}")


# ----------------------------------------------------------------------------------------------


def _stuck(scopes: Sequence[str] | None) -> str:
    """Return why nothing could be condensed although there is enough, ``""`` where that is not."""
    from hypatia_mem.memory.cascade import plan as cascade_plan

    found = cascade_plan.status(context.home(), _settings(), now=context.now(), scopes=scopes)
    stuck = [one for one in found["projects"] if one["stuck"]]
    return "\n".join(
        f"{_named(one['scopes'])}: {one['messages']} messages, {_STUCK}" for one in stuck
    )


def _cost(guess: Estimate) -> dict[str, Any]:
    return {
        "by": guess.by,
        "model": guess.model,
        "calls": guess.calls,
        "input_tokens": guess.input_tokens,
        "output_tokens": guess.output_tokens,
        "dollars": guess.micro / 1e6,
        "most_dollars": guess.most_micro / 1e6,
        "fits_today": guess.fits,
    }


def _priced(guess: Estimate) -> str:
    from hypatia_mem.memory.spend import dollars

    text = (
        f"{guess.calls} calls of {guess.model} by {guess.by}: about {guess.input_tokens} tokens "
        f"in and {guess.output_tokens} out, {dollars(guess.micro)} "
        f"({dollars(guess.most_micro)} at most)."
    )
    if not guess.fits:
        text += (
            f" Today's limits leave {guess.left_calls} calls and {dollars(guess.left_micro)}; "
            "the rest waits until tomorrow."
        )
    return text


def _agree(guess: Estimate) -> None:
    """Let a person say yes to the cost; UsageError where there is nobody to ask."""
    import sys

    from hypatia_mem.errors import UsageError
    from hypatia_mem.model import Channel

    if context.channel() is not Channel.CLI_PERSON or not sys.stdout.isatty():
        raise UsageError(
            f"this asks a model and was not agreed to: {_priced(guess)}",
            hint="Say so with --yes, or leave it to the worker, which keeps within your limits.",
        )
    say(_priced(guess))
    typer.confirm("Ask it?", abort=True)


def _producer() -> str:
    """Return how a submitted summary is recorded: who it says it is, and the digest of its task."""
    from hypatia_mem.memory.summarise.protocol import prompt_digest
    from hypatia_mem.model import Channel

    who = os.environ.get("AI_AGENT", "") or ("claude-code" if os.environ.get("CLAUDECODE") else "")
    kind = "agent" if context.channel() is Channel.CLI_AGENT else "person"
    return f"{kind}{':' if who else ''}{who}#{prompt_digest(_TASK)}"


def _named(scopes: Sequence[str]) -> str:
    return ", ".join(scope or "global" for scope in scopes) or "no scope"


def _bare(text: str) -> str:
    """Return an item's text without the blanks that stand for what is left out."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())

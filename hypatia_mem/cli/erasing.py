"""``erase``: take something out of the memory down to its bytes, and show that it is gone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, spooled, values
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say, warn
from hypatia_mem.errors import Refused, UsageError

if TYPE_CHECKING:
    from hypatia_mem.memory.erase import Plan, Report

__all__ = ["erase", "run_erase"]

_SHOWN = 20
_FINAL = "This cannot be undone: no version, no backup and no snapshot will hold it."


def erase(  # noqa: PLR0913 - an argument an option
    what: Annotated[
        str | None,
        typer.Argument(
            help="An entry's name, a session's id, or words that tell what is meant.",
            show_default=False,
        ),
    ] = None,
    id_: Annotated[
        list[str] | None, typer.Option("--id", help="Exactly this entry; may be repeated.")
    ] = None,
    also: Annotated[
        bool, typer.Option("--also", help="Take the other entries along that say the same.")
    ] = False,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="In every project, not only in this one.")
    ] = False,
    scrub: Annotated[
        bool,
        typer.Option("--scrub-transcripts", help="Blank the words in the client's own files too."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish an erasing that was cut short.")
    ] = False,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="List what was erased: digests, no words.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be erased.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Erase something for good: entry, history, summaries, index, spool, snapshots and backups.

    Words mean all that holds every one of them, of whatever kind: it is listed, and goes as one
    operation, but for what a running session holds. The messages that say it go too. The store is
    written anew without the bytes, every file is searched for them, and in a scratch copy the
    source is fed to the hook again. Only a person at a terminal can do this. The client's own
    transcripts are named, and changed only with --scrub-transcripts. To withdraw something and keep
    no proof, forget is enough.

    \b
    Example:
      hypatia-mem erase "the staging password" --dry-run
    """
    if certificates:
        _show_certificates(as_json)
        return
    if resume:
        _resume(as_json)
        return
    run_erase(
        values.checked(what or "", "what to erase"),
        tuple(id_ or ()),
        also=also,
        everywhere=everywhere,
        scrub=scrub,
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
    )


def run_erase(
    what: str,
    ids: tuple[str, ...],
    *,
    also: bool = False,
    everywhere: bool = False,
    scrub: bool = False,
    yes: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Do what ``erase`` and ``forget --erase`` do. Exit code 1 when something is left of it."""
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import erase as erasing
    from hypatia_mem.model import PERSON_CHANNELS
    from hypatia_mem.worker import alone

    home = context.home()
    author = context.author()
    if not dry_run:
        erasing.refuse_agent(home, author, "something", now=context.now())
    if what and not ids and author.channel in PERSON_CHANNELS:
        spooled.bring()  # what comes in later would not be shown
    plan = erasing.plan_erase(
        home,
        what,
        scope=context.current_scope(),
        ids=ids,
        everywhere=everywhere,
        also=also,
        author=author,
        now=context.now(),
    )
    if dry_run:
        emit({**_plan(plan), "dry_run": True}, _plan_text(plan), as_json)
    else:
        _confirm(plan, yes, as_json)
    if everywhere and not as_json:
        _tell_of_shelves()
    if dry_run:
        return
    with alone(home) as beat:
        report = erasing.erase(
            home, plan, settings=load_settings(home), author=author, now=context.now(), beat=beat
        )
    _finish(home, report, plan.pieces, scrub, as_json)


def _resume(as_json: bool) -> None:
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import erase as erasing
    from hypatia_mem.worker import alone

    home = context.home()
    job = erasing.pending(home)
    if job is None:
        emit({"resumed": False}, "No erasing is unfinished.", as_json)
        return
    with alone(home) as beat:
        report = erasing.resume(home, settings=load_settings(home), now=context.now(), beat=beat)
    if report is not None:
        _finish(home, report, job.pieces, False, as_json)


def _tell_of_shelves() -> None:
    """Say of the other connected shelves, each a memory of its own, how to erase there."""
    from hypatia_mem.memory.sharing import shelves

    others = sorted(shelves.others(context.own_home(), context.home()))
    if others:
        say(
            f"Other shelves ({', '.join(others)}) are not searched: erase there with -s NAME, or"
            " withdraw it everywhere with forget --everywhere."
        )


def _confirm(plan: Plan, yes: bool, as_json: bool) -> None:
    """Show what goes and ask; a person who pipes the answer in has to say --yes."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise UsageError("erasing asks first", hint="Add --yes, or look first with --dry-run.")
    say(_plan_text(plan))
    if not typer.confirm("Erase all of this?", default=False):
        raise Refused("nothing was erased")


def _finish(home: Path, report: Report, pieces: Sequence[str], scrub: bool, as_json: bool) -> None:
    scrubbed: dict[str, int] = {}
    if scrub:
        from hypatia_mem.memory.erasing import client

        for one in report.transcripts:
            scrubbed[one.path] = client.scrub(Path(one.path), pieces)
    if as_json:
        print_json(_report(report, scrubbed))
    else:
        say(_report_text(report, scrubbed))
    if not report.clean:
        raise typer.Exit(1)


def _plan(plan: Plan) -> dict[str, Any]:
    things = () if plan.found is None else plan.found.things
    return {
        "things": [{**asdict(one), "scopes": list(one.scopes)} for one in things],
        "busy": _busy(plan.busy),
        "names": list(plan.names),
        "evidence": list(plan.evidence),
        "summaries": list(plan.summaries),
        "statements": list(plan.statements),
        "titles": list(plan.titles),
        "others": list(plan.others),
        "elsewhere": plan.elsewhere,
        "backups": list(plan.backups),
        "snapshots": plan.snapshots,
        "transcripts": [{"path": one.path, "lines": one.lines} for one in plan.transcripts],
    }


def _plan_text(plan: Plan) -> str:
    from hypatia_mem.cli.forgetting import kind_lines

    lines = ["Erases for good:"]
    shown = set()
    if plan.found is not None:
        lines += kind_lines(plan.found)
        shown = {one.name for one in plan.found.things}
    for head, every in (
        ("entries", plan.names),
        ("messages that say it", plan.evidence),
        ("statements that go along", plan.statements),
        ("titles of sessions", plan.titles),
        ("summaries, made again from what is left", plan.summaries),
    ):
        names = [name for name in every if name not in shown]
        if names:
            lines.append(f"  {head} ({len(names)}):")
            lines += [f"    {name}" for name in names[:_SHOWN]]
            if len(names) > _SHOWN:
                lines.append(f"    and {len(names) - _SHOWN} more (--json lists all)")
    lines.append(
        f"  and it from {len(plan.backups)} backups, {plan.snapshots} snapshots, the search index,"
        " the briefs and the spool."
    )
    lines += _others(plan.others, plan.elsewhere) + _left_alone(plan.busy)
    for one in plan.transcripts:
        lines.append(f"The client's own file holds it in {one.lines} lines: {one.path}")
    if plan.transcripts:
        lines.append("It is left as it is, unless you add --scrub-transcripts.")
    lines.append(_FINAL)
    return "\n".join(lines)


def _others(names: Sequence[str], elsewhere: int) -> list[str]:
    lines = []
    if names:
        shown = ", ".join(names[:5])
        lines.append(f"These say it too and stay: {shown}. With --also they go as well.")
    if elsewhere:
        lines.append(f"{elsewhere} of other projects say it too. With --everywhere they count.")
    return lines


def _busy(busy: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "session": session} for name, session in busy]


def _left_alone(busy: Sequence[tuple[str, str]]) -> list[str]:
    """Name what running sessions keep; their part of the spool is left too."""
    lines = [
        f"Left alone, for session {session} is running: {name}" for name, session in busy[:_SHOWN]
    ]
    if len(busy) > _SHOWN:
        lines.append(f"and {len(busy) - _SHOWN} more (--json names all)")
    if busy:
        lines.append("When it has ended: the same command again.")
    return lines


def _report(report: Report, scrubbed: dict[str, int]) -> dict[str, Any]:
    return {
        "op_id": report.op_id,
        "clean": report.clean,
        "places": [
            {"place": one.name, "before": one.before, "after": one.after, "done": one.done}
            for one in report.places
        ],
        "checks": [
            {"check": one.name, "passed": one.passed, "says": one.says} for one in report.checks
        ],
        "left_due": dict(report.left_due),
        "left": list(report.left),
        "busy": _busy(report.busy),
        "elsewhere": report.elsewhere,
        "problems": list(report.problems),
        "transcripts": [
            {"path": one.path, "lines": one.lines, "scrubbed": scrubbed.get(one.path, 0)}
            for one in report.transcripts
        ],
        "certificate": report.certificate,
    }


def _report_text(report: Report, scrubbed: dict[str, int]) -> str:
    verdict = "Not all is gone."
    if report.clean:
        left = "No byte of it is left in this memory"
        verdict = f"Erased. {left}{', but for what running sessions keep' * bool(report.busy)}."
    rows = [("place", "before", "after", "")]
    rows += [(one.name, str(one.before), str(one.after), one.done) for one in report.places]
    rows += [
        (f"tried: {one.name}", "", "passed" if one.passed else "FAILED", one.says)
        for one in report.checks
    ]
    lines = [verdict, columns(rows)]
    lines += [f"Problem: {problem}" for problem in report.problems]
    lines += _others(report.left, report.elsewhere) + _left_alone(report.busy)
    for one in report.transcripts:
        done = scrubbed.get(one.path)
        if done is not None:
            lines.append(f"Scrubbed {done} lines of {one.path}")
        else:
            lines.append(f"The client's own file still holds it in {one.lines} lines: {one.path}")
    if report.transcripts and not scrubbed:
        lines.append(
            "It is read again only for turns that are new; to blank the words there too, erase"
            " with --scrub-transcripts."
        )
    lines.append(f"Certificate: {report.certificate}")
    lines.append("What a file system or an SSD keeps of freed blocks no program can reach.")
    return "\n".join(lines)


def _show_certificates(as_json: bool) -> None:
    from hypatia_mem.memory import erase as erasing
    from hypatia_mem.memory.erasing.steps import is_sealed

    home = context.home()
    found = [{**one, "sealed": is_sealed(home, one)} for one in erasing.certificates(home)]
    if as_json:
        print_json(found)
    elif found:
        for one in found:
            state = "clean" if one["clean"] else "NOT clean"
            seal = "seal holds" if one["sealed"] else "SEAL BROKEN"
            head = f"{one['finished_at']}  {one['op_id']}"
            say(f"{head}  {len(one['entries'])} entries  {state}, {seal}")
    else:
        warn("Nothing was erased yet.")

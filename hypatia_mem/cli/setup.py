"""``install``, ``uninstall``, ``upgrade``, ``demo``: ask, call one function, print sentences."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import emit, print_json, say

if TYPE_CHECKING:
    from hypatia_mem.install import Demonstration, Report

__all__ = ["demo", "install", "uninstall", "upgrade"]

_WORKER_PATIENCE = 15.0  # seconds; a batch takes well under one
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")
]


def install(
    settings: Annotated[
        bool,
        typer.Option(
            "--settings",
            help="Merge the hooks into settings.json instead of the skill's own directory.",
        ),
    ] = False,
    project: Annotated[
        bool,
        typer.Option("--project", help="For the current project only, not for every session."),
    ] = False,
    dry_run: _DryRun = False,
    show_demo: Annotated[
        bool,
        typer.Option("--demo", help="Drive one turn through the installed hook in a scratch home."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set the hooks and the skill up in Claude Code, and try them once.

    The default way in is one directory, skills/hypatia-memory in the client's configuration
    folder (CLAUDE_CONFIG_DIR, else ~/.claude). The client loads it by itself and no settings file
    is touched. A client older than 2.1.157 gets the hooks in its settings file.

    \b
    Examples:
      hypatia-mem install
      hypatia-mem install --dry-run
      hypatia-mem install --project
      hypatia-mem install --settings
    """
    from hypatia_mem import install as installer
    from hypatia_mem.install.command import command_directory

    report = installer.install(
        context.home(),
        settings=settings,
        project=Path.cwd() if project else None,
        dry_run=dry_run,
        commands=command_directory(),
    )
    tried = False
    if report.target is not None and not dry_run:
        installer.self_test(report.target)
        tried = True
    end = "A test prompt went through the hook. Start a new Claude Code session." if tried else ""
    text = _text(report, dry_run, "Nothing to change: it is installed.", end)
    fields = {**_fields(report, dry_run), "tested": tried}
    shown = None
    if not as_json:
        say(text)
    if show_demo and report.target is not None and not dry_run:
        shown = installer.demonstrate(report.target)
        fields["demo"] = _demo_fields(shown)
    if as_json:
        print_json(fields)
    elif shown is not None:
        say("\n" + _demo_text(shown))


def uninstall(
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove the memory too, without asking.")
    ] = False,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep the memory, without asking.")
    ] = False,
    dry_run: _DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take out exactly what install put in.

    A settings file is restored byte for byte, or loses our entries alone if it was changed since.
    The memory itself is kept unless you say otherwise.

    \b
    Examples:
      hypatia-mem uninstall
      hypatia-mem uninstall --keep-data
      hypatia-mem uninstall --purge
    """
    from hypatia_mem import install as installer
    from hypatia_mem.errors import UsageError
    from hypatia_mem.install.data import describe

    if purge and keep_data:
        raise UsageError("--purge and --keep-data contradict each other")
    if purge and not dry_run:
        context.refuse_client("remove the memory")
    home = context.home()
    size = describe(home)
    if not (purge or keep_data or dry_run or as_json) and size and _at_terminal():
        purge = typer.confirm(f"Remove the memory too ({size})?", default=False)
    report = installer.uninstall(home, purge=purge, dry_run=dry_run, stop_worker=_stop_worker)
    text = _text(report, dry_run, "Nothing to remove: it is not installed.", "")
    emit({**_fields(report, dry_run), "purged": purge and not dry_run}, text, as_json)


def upgrade(dry_run: _DryRun = False, as_json: AsJson = False) -> None:
    """Point every install at this version of the program, and restart the worker.

    Safe while sessions run: their hooks work at every instant.

    \b
    Examples:
      pipx upgrade hypatia-mem && hypatia-mem upgrade
      hypatia-mem upgrade --dry-run
    """
    from hypatia_mem import install as installer

    home = context.home()
    report = installer.upgrade(home, dry_run=dry_run)
    if not dry_run:
        _restart_worker(home)
    if report.target is not None and not dry_run:
        installer.self_test(report.target)
    nothing = "Nothing to change: everything is of this version."
    emit(_fields(report, dry_run), _text(report, dry_run, nothing, ""), as_json)


def demo(as_json: AsJson = False) -> None:
    """Drive one turn through the installed hook in a scratch home, and show what comes of it.

    \b
    Example:
      hypatia-mem demo
    """
    from hypatia_mem import install as installer
    from hypatia_mem.install.actions import installed_target

    shown = installer.demonstrate(installed_target(context.home()))
    emit(_demo_fields(shown), _demo_text(shown), as_json)


def _demo_fields(shown: Demonstration) -> dict[str, str]:
    return {
        "prompt": shown.prompt,
        "answer": shown.answer,
        "confirmation": shown.confirmation,
        "brief": shown.brief,
    }


def _demo_text(shown: Demonstration) -> str:
    def quoted(text: str) -> str:
        return "\n".join(f"  | {line}" for line in text.splitlines() or [""])

    return "\n".join(
        [
            "One turn through the installed hook, in a scratch home:",
            f"  you:   {shown.prompt}",
            f"  agent: {shown.answer}",
            "The agent was told with the prompt:",
            quoted(shown.confirmation),
            "The next session of that project starts with:",
            quoted(shown.brief),
        ]
    )


def _stop_worker(home: Path) -> bool:
    """Ask a worker to finish its batch and go; True when none runs afterwards."""
    from hypatia_mem import worker

    found = worker.state(home)
    if not found.running:
        return True
    if found.pid is not None:
        for name in ("SIGTERM", "SIGCONT"):  # one that was stopped hears the first after the second
            with contextlib.suppress(OSError):
                os.kill(found.pid, getattr(signal, name, signal.SIGTERM))
    deadline = time.monotonic() + _WORKER_PATIENCE
    while time.monotonic() < deadline:
        if not worker.state(home).running:
            return True
        time.sleep(0.05)
    return False


def _restart_worker(home: Path) -> None:
    """Let a running worker of the earlier version go, and start this version's instead."""
    from hypatia_mem import worker

    if worker.state(home).running and _stop_worker(home):
        worker.kick(home)


def _at_terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def _fields(report: Report, dry_run: bool) -> dict[str, object]:
    return {
        "way": report.way,
        "directory": str(report.directory),
        "dry_run": dry_run,
        "changed": bool(report.done),
        "done": list(report.done),
        "remarks": list(report.remarks),
    }


def _text(report: Report, dry_run: bool, nothing: str, end: str) -> str:
    lines = [f"would do: {line}" if dry_run else line for line in report.done] or [nothing]
    return "\n".join([*lines, *report.remarks, *([end] if end else [])])

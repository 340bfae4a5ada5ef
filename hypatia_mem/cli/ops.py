"""Running the memory: status, doctor, worker, log, completion."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, observe_models
from hypatia_mem.cli.app import program_name
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AsJson, Limit
from hypatia_mem.cli.output import ago, columns, details, emit, print_json, say, warn
from hypatia_mem.errors import one_of

WATCH_SECONDS = 2.0

__all__ = ["completion", "doctor", "log", "status", "worker"]


def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every two seconds until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say in one line how many turns are kept and whether hooks fire; then the details.

    Where turns wait and no worker runs, one is started, as the next prompt would.

    \b
    Example:
      hypatia-mem status --watch
    """
    if watch:
        _watch(as_json)
        return
    found = _status(context.home())
    if as_json:
        print_json(found)
    else:
        say(_status_text(found))


def _watch(as_json: bool) -> None:
    """Show the status again and again: in place at a terminal, else one line or object each."""
    import json
    import sys

    while True:
        found = _status(context.home())
        if as_json:
            say(json.dumps(found, ensure_ascii=False, default=str))
        elif sys.stdout.isatty():
            print("\x1b[H\x1b[2J", end="")  # up to the corner, and clear
            say(_status_text(found))
        else:
            say(f"{_status_line(found)}; {_queue_text(found['queue'])}")
        sys.stdout.flush()
        time.sleep(WATCH_SECONDS)


def _status_text(found: dict[str, Any]) -> str:
    rows = details(
        {
            "home": found["home"],
            "store": found["store"] if found["exists"] else "none yet: the first turn makes one",
            "entries": str(found["entries"]),
            "statements": str(found["statements"]),
            "sessions": str(found["sessions"]),
            "worker": found["worker"],
            "index": found["index"],
            "spool": f"{found['spool_bytes']} bytes",
            "queue": _queue_text(found["queue"]),
            **_changes_row(found["changes"]),
            "readable": _lag_text(found["lag"], found["stored"]),
            **observe_models.rows(found["models"]),
        }
    )
    return f"{_status_line(found)}\n{rows}"


def _status(home: Path) -> dict[str, Any]:
    from hypatia_mem import worker as worker_
    from hypatia_mem.cli import observe

    store = observe.see_store(home)
    spool = observe.see_spool(home, store.cursors)
    counts = store.counts
    running = worker_.state(home)
    # The last hook may have met a worker that was killed at that moment: nobody would come by.
    started = bool(spool.waiting) and not (running.running or store.error) and worker_.kick(home)
    stored = counts.get("messages", 0)
    seq = observe.index_seq(home) if store.ledger_seq else None
    newest = spool.newest
    models = observe_models.see_models(home, usable=bool(counts))
    return {
        "captured": stored + spool.turns,
        "stored": stored,
        "waiting": spool.turns,
        "waiting_records": spool.waiting,
        "last_hook": None if newest is None else asdict(newest),
        "last_error": observe.last_error(home),
        "home": str(home),
        "store": store.error.message if store.error else "ok",
        "exists": bool(counts) or store.error is not None,
        "entries": counts.get("entries", 0),
        "statements": counts.get("statements", 0),
        "sessions": counts.get("sessions", 0),
        "worker": "starting" if started else _worker_word(running),
        "index": "empty" if seq is None else f"{max(0, store.ledger_seq - seq)} changes behind",
        "spool_bytes": spool.bytes,
        "lag": dict(store.lag),
        "changes": [
            {
                "id": one.id,
                "verb": one.verb,
                "name": one.name,
                "session": one.session_id,
                "failure": one.failure,
            }
            for one in store.changes
        ],
        "queue": models["queue"] if counts or store.error else 0,
        "models": models,
    }


def _changes_row(changes: list[dict[str, Any]]) -> dict[str, str]:
    """Return the line about changes that wait for a session to end; none where none do."""
    failed = sum(bool(one["failure"]) for one in changes)
    waiting = len(changes) - failed
    parts = []
    if waiting:
        parts.append(f"{waiting} {'waits' if waiting == 1 else 'wait'} for a session to end")
    if failed:
        parts.append(f"{failed} could not be made")
    return {"changes": f"{', '.join(parts)} (hypatia-mem jobs list)"} if parts else {}


def _queue_text(queue: int | None) -> str:
    """Return how much cold work is to be done, in words."""
    if queue is None:
        return "nobody can say what is due"
    if not queue:
        return "nothing is to be done"
    return f"{queue} job{'' if queue == 1 else 's'} to be done (hypatia-mem jobs list)"


def _lag_text(lag: dict[str, float], stored: int) -> str:
    """Return after how long what is said can be read, in words."""
    if not lag:
        return (
            "not measured: no turn has come in these 7 days"
            if stored
            else "as soon as the first turn is stored"
        )
    if lag["turns"] == 1:
        return f"{lag['p50']:g} s after it was said (1 turn this week)"
    return (
        f"{lag['p50']:g} s after it was said, 99 of 100 within {lag['p99']:g} s"
        f" ({lag['turns']:g} turns this week)"
    )


def _status_line(found: dict[str, Any]) -> str:
    hook = "no hook seen yet (hypatia-mem doctor says why)"
    seen = found["last_hook"]
    if seen is not None:
        who = ", ".join(part for part in (seen["event"], seen["client"]) if part)
        hook = f"last hook {ago(time.time() - seen['at'])} ago ({who})"
    captured = f"{found['captured']} turn{'' if found['captured'] == 1 else 's'} captured"
    return (
        f"{captured}, {found['stored']} stored, {found['waiting']} waiting; {hook}; "
        f"last error: {found['last_error']}"
    )


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Apply the remedies that are safe.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check everything that can go wrong; name each remedy. Exit code 1 when there is a problem.

    \b
    Example:
      hypatia-mem doctor --fix
    """
    from hypatia_mem.cli.checks import survey

    home = context.home()
    found = survey(home)
    fixed: list[str] = []
    if fix:
        for check in found:
            if check.state != "ok" and check.repair is not None:
                check.repair()
                fixed.append(check.name)
        if fixed:
            found = survey(home)
    problems = [check for check in found if check.state == "problem"]
    verdict = _verdict(len(problems), fixed)
    if as_json:
        checks = [
            {
                "name": check.name,
                "state": check.state,
                "says": check.says,
                "remedy": check.remedy,
                "fixable": check.repair is not None,
            }
            for check in found
        ]
        healthy = not problems
        print_json({"healthy": healthy, "verdict": verdict, "fixed": fixed, "checks": checks})
    else:
        say(verdict)
        say(columns([(f"  {c.state}", c.name, c.says) for c in found]))
        for check in found:
            if check.remedy and check.state != "ok":
                can = "; --fix does it" if check.repair is not None and not fix else ""
                say(f"  {check.name}: {check.remedy}{can}")
    if problems:
        raise typer.Exit(1)


def _verdict(problems: int, fixed: list[str]) -> str:
    repaired = f" (repaired: {', '.join(fixed)})" if fixed else ""
    if not problems:
        return f"Healthy{repaired}."
    return f"{problems} problem{'' if problems == 1 else 's'}{repaired}."


worker = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""Run, watch, stop or drain by the background worker.

    The hooks start it and it goes by itself; these commands are for looking and for repair.

    \b
    Example:
      hypatia-mem worker drain
    """,
)


@worker.command("run", cls=Leaf)
def worker_run(
    takeover: Annotated[
        bool, typer.Option("--takeover", help="Replace a worker that hangs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Work in the foreground until nothing is left to do."""
    _work(once=False, takeover=takeover, as_json=as_json)


@worker.command("drain", cls=Leaf)
def worker_drain(as_json: AsJson = False) -> None:
    """Store what waits in the spool now, then exit."""
    _work(once=True, takeover=False, as_json=as_json)


def _work(*, once: bool, takeover: bool, as_json: bool) -> None:
    from hypatia_mem import worker as worker_
    from hypatia_mem.cli import observe
    from hypatia_mem.memory.logged import LOGGER

    home = context.home()
    before = worker_.state(home)
    with _internal(), _said() as said, _said(LOGGER, "INFO") as logged:
        code = worker_.run(home, once=once, takeover=takeover)
    store = observe.see_store(home)
    waiting: int | None = observe.see_spool(home, store.cursors).waiting
    other = before.running and not takeover
    text = f"{store.counts.get('messages', 0)} messages stored, {waiting} records waiting."
    if store.error is not None:  # what it holds is not known, and so not what waits
        text, waiting = f"What is stored cannot be seen: {store.error.message}.", None
    if other:
        text = f"A worker is running already ({before.who}). {text}"
    why = said[-1] if code and said else ""
    lines = [f"[hypatia-memory] {line}" for line in logged]
    machine = {
        "exit_code": code,
        "waiting": waiting,
        "already_running": other,
        "why": why,
        "logged": lines,
    }
    emit(machine, "\n".join([*lines, text]), as_json)
    if why:
        warn(f"It stopped before it was done: {why}.")
    if code:
        raise typer.Exit(code)


@contextmanager
def _said(name: str = "hypatia_mem", level: str = "WARNING") -> Iterator[list[str]]:
    """Give what the worker writes into the program's log, which nobody sees on a full disk."""
    import logging

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    said: list[str] = []
    listener, log = Listener(level), logging.getLogger(name)
    log.addHandler(listener)
    try:
        yield said
    finally:
        log.removeHandler(listener)


@contextmanager
def _internal() -> Iterator[None]:
    """Mark everything that is started meanwhile as our own, so that no hook captures it (I6)."""
    before = os.environ.get("HYPATIA_MEM_INTERNAL")
    os.environ["HYPATIA_MEM_INTERNAL"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HYPATIA_MEM_INTERNAL"]
        else:
            os.environ["HYPATIA_MEM_INTERNAL"] = before


@worker.command("status", cls=Leaf)
def worker_status(as_json: AsJson = False) -> None:
    """Say whether a worker runs and when it last showed a sign of life."""
    from hypatia_mem import worker as worker_

    found = worker_.state(context.home())
    machine = {
        "running": found.running,
        "pid": found.pid,
        "heartbeat_age": found.heartbeat_age,
        "stalled": found.stalled,
    }
    emit(machine, f"Worker: {_worker_word(found)}.", as_json)


@worker.command("stop", cls=Leaf)
def worker_stop(as_json: AsJson = False) -> None:
    """Ask the worker to finish its batch and go; nothing is lost."""
    import contextlib
    import signal

    from hypatia_mem import worker as worker_

    home = context.home()
    found = worker_.state(home)
    if not found.running or found.pid is None:
        emit({"stopped": False, "pid": None}, "No worker is running.", as_json)
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
        if hasattr(signal, "SIGCONT"):
            os.kill(found.pid, signal.SIGCONT)  # a stopped process hears SIGTERM only then
    for _ in range(100):
        if not worker_.state(home).running:
            break
        time.sleep(0.1)
    stopped = not worker_.state(home).running
    text = (
        f"Worker {found.pid} has stopped."
        if stopped
        else f"Worker {found.pid} is still busy after 10 s."
    )
    emit({"stopped": stopped, "pid": found.pid}, text, as_json)
    if not stopped:
        raise typer.Exit(1)


def _worker_word(found: Any) -> str:  # noqa: ANN401 - WorkerState, lazily imported
    if not found.running:
        return "idle (the hook starts it)"
    age = (
        "" if found.heartbeat_age is None else f", last sign of life {ago(found.heartbeat_age)} ago"
    )
    return f"{'stalled' if found.stalled else 'running'} ({found.who}{age})"


def log(
    limit: Limit = 20,
    target: Annotated[
        str | None, typer.Option("--target", help="Only changes of this entry or statement.")
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="The program's own log instead of the ledger.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed, by whom and through which door; newest first.

    The ledger holds digests, never text. Refused changes are in it too. All rows of one operation
    have the same id; the id, or the number of any of its rows, is what "undo" takes.

    \b
    Example:
      hypatia-mem log --target "rule:never-mock-the-database"
    """
    home = context.home()
    if program:
        from hypatia_mem.cli.observe import log_tail

        lines = log_tail(home, limit)
        emit(lines, "\n".join(lines) or "The program's log is empty.", as_json)
        return
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        rows = [_ledger_row(row) for row in store.ledger(limit=limit, target=target)]
    if as_json:
        print_json(rows)
    elif rows:
        shown = ("seq", "at", "verb", "target", "channel", "actor", "op_id", "reason")
        say(columns([[str(row.get(key) or "") for key in shown] for row in rows]))
    else:
        say("Nothing has changed yet.")


def _ledger_row(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping or a dataclass of the store
    from datetime import datetime

    from hypatia_mem.jse.rows import time_text

    pairs = dict(row) if hasattr(row, "keys") else asdict(row)
    return {
        key: time_text(value)
        if isinstance(value, datetime)
        else value.hex()
        if isinstance(value, bytes)
        else value
        for key, value in pairs.items()
    }


_SHELLS = ("bash", "zsh", "fish", "powershell")


def completion(
    shell: Annotated[
        str, typer.Argument(help="bash, zsh, fish or powershell.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    Example:
      hypatia-mem completion bash >> ~/.bash_completion
    """
    # Typer offers this only as an option of its own that also edits shell profiles.
    from typer._completion_classes import completion_init
    from typer._completion_shared import get_completion_script

    one_of(shell, _SHELLS, "the shell")
    completion_init()
    name = program_name()
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    script = get_completion_script(prog_name=name, complete_var=variable, shell=shell)
    emit({"shell": shell, "script": script}, script, as_json)

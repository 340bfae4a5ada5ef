"""The program: a table of commands, and the one place where errors become sentences and exit codes.

Nothing is imported here that a command does not need: the table serves ``--help`` and completion,
and only the command that runs has its module loaded. Typer itself is imported after the decision
whether rich is wanted, which is only when a person looks at a terminal.

Exit codes: 0 done; 1 refused, not found or failed; 2 the command line or a setting is wrong;
5 the store is busy; 6 it is damaged; 7 it is newer than this program; 70 a fault of the program;
130 interrupted; 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hypatia_mem.errors import HypatiaError, NotFound

if TYPE_CHECKING:
    from hypatia_mem.cli.group import LazyGroup

__all__ = ["COMMANDS", "NO_SHELF", "Row", "build", "main", "program_name", "run"]

_ROOM = "hypatia_mem.cli."


@dataclass(frozen=True, slots=True)
class Row:
    """One command: where its function (or Typer application) lives, and its one-line summary."""

    module: str
    function: str
    summary: str


COMMANDS: dict[str, Row] = {
    "install": Row(_ROOM + "setup", "install", "Set the hooks and the skill up in Claude Code."),
    "uninstall": Row(_ROOM + "setup", "uninstall", "Take out exactly what install put in."),
    "upgrade": Row(_ROOM + "setup", "upgrade", "Point the hooks at this version of the program."),
    "demo": Row(_ROOM + "setup", "demo", "Show one turn through the installed hook, in scratch."),
    "status": Row(_ROOM + "ops", "status", "Turns captured, stored and waiting; the last error."),
    "doctor": Row(_ROOM + "ops", "doctor", "Check everything; name the remedy; --fix applies it."),
    "migrate": Row(_ROOM + "migrating", "migrate", "Bring the store up to this program's schema."),
    "worker": Row(_ROOM + "ops", "worker", "Run, watch, stop or drain by the background worker."),
    "log": Row(_ROOM + "ops", "log", "What changed and by whom; --program for the program's log."),
    "config": Row(_ROOM + "settings", "config", "List, read and change settings."),
    "project": Row(_ROOM + "projects", "project", "List, alias, merge, rename, exclude projects."),
    "sessions": Row(_ROOM + "sessions", "sessions", "List sessions; edit title, tags and pins."),
    "sql": Row(_ROOM + "sql", "sql", "Run a SELECT over documented views; read-only."),
    "report": Row(_ROOM + "report", "report", "Activity, projects, models, tools, cost."),
    "stats": Row(_ROOM + "stats", "stats", "How much the memory holds, by kind."),
    "topics": Row(_ROOM + "stats", "topics", "What the knowledge is about, most frequent first."),
    "fork": Row(_ROOM + "fork", "fork", "Branch a session off at a message; nothing is copied."),
    "show": Row(_ROOM + "sessions", "show", "Show an entry, a message or a whole session."),
    "search": Row(
        _ROOM + "searching", "search", "Full-text search in this project and the global."
    ),
    "similar": Row(_ROOM + "similar", "similar", "What is near to a text, nearest first."),
    "backfill": Row(_ROOM + "similar", "backfill", "Make the vectors that similar compares."),
    "query": Row(_ROOM + "graph", "query", "Run a JSE expression over the knowledge graph."),
    "ask": Row(_ROOM + "asking", "ask", "The few entries that some topics need."),
    "session-current": Row(
        _ROOM + "graph", "session_current", "Messages that no summary covers yet, oldest first."
    ),
    "remember": Row(_ROOM + "memory", "remember", "Keep a rule, a taboo or a memory."),
    "delete": Row(_ROOM + "deleting", "delete", "Delete anything by name; say first what goes."),
    "delete-from": Row(_ROOM + "deleting", "delete_from", "Delete a thing and all after it."),
    "bulk": Row(
        _ROOM + "bulk", "bulk", "Change many things at once, chosen by number from a list."
    ),
    "move": Row(_ROOM + "deleting", "move", "Put things into another project's scope."),
    "provenance": Row(
        _ROOM + "deleting", "provenance", "What a thing stands on, and if it is there."
    ),
    "forget": Row(
        _ROOM + "forgetting", "forget", "Withdraw what holds some words so that it stays forgotten."
    ),
    "erase": Row(_ROOM + "erasing", "erase", "Take a thing out down to its bytes, and show it."),
    "backup": Row(_ROOM + "backup", "backup", "Make, list, check, thin out and restore backups."),
    "tombstone": Row(
        _ROOM + "tombstones", "tombstone", "What keeps forgotten things away: list, check, lift."
    ),
    "key": Row(_ROOM + "tombstones", "key", "The keys of what was forgotten: list, rotate."),
    "rules": Row(_ROOM + "rules", "rules", "What holds here; check: the memory's own ten rules."),
    "brief": Row(_ROOM + "brief", "brief", "What a session is told when it begins."),
    "why": Row(_ROOM + "why", "why", "Why a session is told what it is told; take things out."),
    "edit": Row(_ROOM + "editing", "edit", "Edit an entry's words in place."),
    "set": Row(_ROOM + "activation", "set_", "By which words of a prompt an entry is told."),
    "pin": Row(_ROOM + "trust", "pin", "Tell entries first; list what is pinned."),
    "unpin": Row(_ROOM + "trust", "unpin", "Let go of what was pinned."),
    "suppress": Row(_ROOM + "trust", "suppress", "Keep entries but show them nowhere; list them."),
    "unsuppress": Row(_ROOM + "trust", "unsuppress", "Show again what was suppressed."),
    "verify": Row(
        _ROOM + "trust", "verify", "Say that something is true; alone: check the ledger."
    ),
    "accept": Row(_ROOM + "trust", "accept", "Take in a candidate; say that a doubt is over."),
    "dispute": Row(_ROOM + "trust", "dispute", "Say that something is doubtful."),
    "stale": Row(_ROOM + "trust", "stale", "Say that something may be out of date."),
    "trust": Row(_ROOM + "trust", "trust", "How far something is believed; say it, or ask."),
    "reject": Row(_ROOM + "trust", "reject", "Say that something is wrong, and keep it away."),
    "review": Row(_ROOM + "review", "review", "Decide what waits for a decision."),
    "knowledge-create": Row(_ROOM + "graph", "knowledge_create", "Create a knowledge entry."),
    "knowledge-get": Row(_ROOM + "graph", "knowledge_get", "Print a knowledge entry."),
    "knowledge-update": Row(_ROOM + "graph", "knowledge_update", "Change fields of an entry."),
    "knowledge-delete": Row(_ROOM + "graph", "knowledge_delete", "Delete a knowledge entry."),
    "statement-create": Row(_ROOM + "graph", "statement_create", "Create a statement (triple)."),
    "statement-delete": Row(_ROOM + "graph", "statement_delete", "Delete a statement (triple)."),
    "history": Row(_ROOM + "history", "history", "List the versions of an entry or statement."),
    "diff": Row(_ROOM + "history", "diff", "Show how two versions of an entry differ."),
    "revert": Row(_ROOM + "history", "revert", "Bring back what a version said."),
    "undo": Row(_ROOM + "history", "undo", "Take an operation back, all of it or nothing."),
    "redo": Row(_ROOM + "history", "redo", "Do again what was undone."),
    "scope": Row(_ROOM + "listing", "scope", "List the scopes in use, or ask for one."),
    "tag": Row(_ROOM + "listing", "tag", "List the tags in use, or ask for one."),
    "archive-store": Row(_ROOM + "archive", "archive_store", "Keep a copy of a file."),
    "archive-get": Row(_ROOM + "archive", "archive_get", "Find a kept file, or copy it out."),
    "archive-list": Row(_ROOM + "archive", "archive_list", "List the kept files."),
    "connect": Row(_ROOM + "shelves", "connect", "Register a folder as a shelf."),
    "disconnect": Row(_ROOM + "shelves", "disconnect", "Take a shelf off the list; it stays."),
    "list": Row(_ROOM + "shelves", "list_", "List the registered shelves."),
    "export": Row(_ROOM + "shelves", "export", "Write what a shelf holds into a folder."),
    "import": Row(_ROOM + "shelves", "import_", "Take an export into an empty shelf."),
    "graph": Row(
        _ROOM + "network", "graph", "Neighbours, paths, communities; check, export, merge."
    ),
    "tools": Row(_ROOM + "tools", "tools", "What tools gave back in a session."),
    "tool": Row(_ROOM + "tools", "tool", "What one tool gave back, or some lines of it."),
    "handoff": Row(_ROOM + "handoff", "handoff", "What a session leaves to the next: a card."),
    "episodes": Row(_ROOM + "episodes", "episodes", "What stretches of sessions were about."),
    "fact": Row(_ROOM + "fact", "fact", "Values kept under a key: set, list, query."),
    "goal": Row(_ROOM + "goal", "goal", "What this project works towards: set, list, done."),
    "extract": Row(_ROOM + "extract", "extract", "Keep the lessons of work that is finished."),
    "tidy": Row(_ROOM + "tidy", "tidy", "Tie what is new to what was known before."),
    "cascade": Row(_ROOM + "cascade", "cascade", "Summaries of old messages: status, plan, run."),
    "jobs": Row(_ROOM + "jobs", "jobs", "Cold work: what is due or failed; retry, drop."),
    "retention": Row(
        _ROOM + "retention", "retention", "Let go of old sessions; a year becomes one summary."
    ),
    "pressure": Row(
        _ROOM + "pressure", "pressure", "How full the contexts of running sessions are."
    ),
    "preset": Row(_ROOM + "presets", "preset", "Settings under a name: save, use, take in."),
    "prompts": Row(_ROOM + "prompts", "prompts", "What a model is told that condenses."),
    "trace": Row(_ROOM + "tracing", "trace", "Walk a summary down to the words it stands on."),
    "regenerate": Row(
        _ROOM + "regenerating", "regenerate", "Make summaries anew, shown before it is stored."
    ),
    "loss": Row(_ROOM + "tracing", "loss", "What a summary kept and what it dropped."),
    "rubric": Row(_ROOM + "rubric", "rubric", "Show, on a copy of this memory, what holds."),
    "repl": Row(_ROOM + "repl", "repl", "Type expressions and commands line by line."),
    "completion": Row(_ROOM + "ops", "completion", "Print the completion script of a shell."),
}

# What is about this installation and not about what a memory holds; all others take --shelf.
NO_SHELF = frozenset(
    {
        "install", "uninstall", "upgrade", "demo", "status", "doctor", "worker", "config",
        "connect", "disconnect", "list", "export", "completion", "preset",
        "prompts",
    }
)  # fmt: skip


def build() -> LazyGroup:
    """Return the command group; imports Typer, but no command."""
    from hypatia_mem.cli.group import LazyGroup

    return LazyGroup(COMMANDS)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the program with ``argv`` (default: the process's) and exit with its code."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Run the program; the exit code. Prints every error as a sentence, never a traceback."""
    from hypatia_mem.cli.output import harden_streams, print_error, silence_stdout
    from hypatia_mem.memory import programlog

    harden_streams()
    if not sys.stdout.isatty():
        os.environ["TYPER_USE_RICH"] = "0"  # an agent or a pipe reads this: plain and quick
    arguments = [_as_typed(one) for one in argv] or ["--help"]
    as_json = "--json" in arguments
    try:
        with programlog.keeping("cli"):
            code = _dispatch(arguments)
        sys.stdout.flush()
    except HypatiaError as error:
        return print_error(error.kind, error.message, error.hint, error.exit_code, as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        silence_stdout()
        return 141
    except OSError as error:
        what = error.strerror or type(error).__name__
        where = f": {error.filename}" if error.filename else ""
        return print_error("IO error", f"{what}{where}", "", 1, as_json)
    except Exception as error:  # noqa: BLE001 - the outermost handler: a fault becomes a sentence
        return _fault(error, as_json)
    return code


def _as_typed(argument: str) -> str:
    """Return an argument as UTF-8 where the locale could not read its bytes."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:  # what stands for such bytes
        try:
            return os.fsencode(argument).decode("utf-8")
        except ValueError:
            return argument
    return argument


def _dispatch(arguments: list[str]) -> int:
    from hypatia_mem.cli import spooled

    try:
        return _once(arguments)
    except NotFound as error:
        if arguments[0] not in spooled.AGAIN or not spooled.looked_again(error):
            raise
    return _once(arguments)


def _once(arguments: list[str]) -> int:
    from hypatia_mem.cli import context
    from hypatia_mem.cli.group import usage_errors

    context.choose_shelf(None)  # one process may run many command lines
    context.ask_as(None)
    group = build()
    exits, usage = usage_errors()
    if any(name in os.environ for name in ("_HYPATIA_MEM_COMPLETE", "_HYPATIA_COMPLETE")):
        from typer._completion_classes import completion_init

        completion_init()
    try:
        result: Any = group.main(arguments, prog_name=program_name(), standalone_mode=False)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Typer has caught and hidden it
            return 141
        raise
    except exits as error:
        return int(getattr(error, "exit_code", 1))
    except usage as error:
        from hypatia_mem.cli.output import print_error

        hint = "" if error.ctx is None else f"Try '{error.ctx.command_path} --help'."
        code = int(error.exit_code)
        return print_error("usage", error.format_message(), hint, code, "--json" in arguments)
    return result if isinstance(result, int) else 0


def program_name() -> str:
    """Return the name this was called by: ``hypatia-mem``, or ``hypatia`` where that is ours."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - no pathlib needed
    return name if name in ("hypatia", "hypatia-mem") else "hypatia-mem"


def _fault(error: Exception, as_json: bool) -> int:
    """Name an unforeseen error and keep where it happened in the log; never what it was about."""
    import contextlib
    import traceback

    from hypatia_mem.cli.output import print_error

    if os.environ.get("HYPATIA_MEM_DEBUG"):
        raise error
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    place = " < ".join(
        f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119
        for frame in reversed(frames)
    )
    name = type(error).__name__
    with contextlib.suppress(Exception):
        from hypatia_mem.capture import paths

        home = paths.home()
        if os.path.isdir(home):  # noqa: PTH112
            paths.log_line(home, "ERROR", "cli", f"a fault of the program: {name} at {place}")
    return print_error(
        "internal error",
        f"{name} at {place}",
        "This is a fault of hypatia-mem. HYPATIA_MEM_DEBUG=1 prints the details for a report.",
        70,
        as_json,
    )

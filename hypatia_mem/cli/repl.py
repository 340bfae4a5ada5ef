"""``repl``: expressions and commands line by line, at a terminal or through a pipe.

A line that begins with ``[`` or ``{`` is an expression, one that begins with a dot is for the
prompt itself, everything else is a command line without the program's name. An error ends its line,
never the session. What was typed is kept in ``<home>/repl_history`` (0600), redacted first.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import say, warn
from hypatia_mem.errors import UsageError
from hypatia_mem.memory import typed

__all__ = ["repl"]

_PROMPT = "hypatia> "
_READER_GONE = 141
_MORE = "     ... "
_HELP = """\
  [...] or {...}           run a JSE expression; it may go on over several lines
  search "words" ...       any command of hypatia-mem, without its name
  .connect <path> [name]   register a folder as a shelf
  .disconnect <name>       take a shelf off the list
  .list                    list the shelves
  .export <name> <dest>    write a shelf into a folder
  .help                    show this
  .quit                    leave; so does the end of input"""


def repl(as_json: AsJson = False) -> None:
    """Type expressions and commands line by line; a line may name a shelf of its own with -s.

    Lines come from a pipe too: then nothing is prompted for, lines that begin with # are passed
    over, and the exit code is that of the first line that failed. --json gives every line's answer
    as JSON. What is typed at a terminal is kept for the arrow keys, without secrets.

    \b
    Example:
      hypatia-mem repl
      echo '["$knowledge"]' | hypatia-mem repl
    """
    context.home()  # an unknown shelf is told at once
    shelf = context.shelf()
    at_terminal = sys.stdin.isatty()
    history = _History(context.own_home()) if at_terminal else None
    if at_terminal:
        say("Type .help for help, .quit to leave.")
    first_failure = 0
    lines = _typed(history) if history else _piped()
    for line in lines:
        if line in (".quit", ".exit"):
            break
        code = _run(line, shelf, as_json, at_terminal)
        if code == _READER_GONE:
            raise typer.Exit(code)
        if not at_terminal and code and not first_failure:
            first_failure = code
    if first_failure:
        raise typer.Exit(first_failure)


def _run(line: str, shelf: str, as_json: bool, at_terminal: bool) -> int:
    """Run one line; the exit code it would have had as a command."""
    from hypatia_mem.cli import app

    try:
        arguments = _arguments(line)
    except ValueError as error:  # an open quote
        warn(f"Error: usage: {error}")
        return 2
    if arguments is None:
        return 0
    takes_shelf = arguments[0] in app.COMMANDS and arguments[0] not in app.NO_SHELF
    if takes_shelf and not any(word.startswith(("-s", "--shelf")) for word in arguments):
        arguments[1:1] = [f"--shelf={shelf}"]
    if as_json and "--json" not in arguments:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        arguments.insert(end, "--json")
    with _own_input(at_terminal):
        return app.run(arguments)


def _arguments(line: str) -> list[str] | None:
    """Return the command line that a line stands for; None when it stands for nothing to run."""
    if line[0] in "[{":
        return ["query", "--", line]
    words = shlex.split(line)
    if not words:
        return None
    if words[0] in ("hypatia", "hypatia-mem"):
        words = words[1:] or ["--help"]
    if words[0] == "repl":
        raise ValueError("this is the prompt already; .quit leaves it")
    if not words[0].startswith("."):
        return words
    name, *rest = words
    if name == ".help":
        say(_HELP)
        return None
    if name == ".connect" and len(rest) in (1, 2):
        return ["connect", rest[0], *(["-n", rest[1]] if rest[1:] else [])]
    if name == ".disconnect" and len(rest) == 1:
        return ["disconnect", rest[0]]
    if name == ".list" and not rest:
        return ["list"]
    if name == ".export" and len(rest) == 2:
        return ["export", *rest]
    raise ValueError(f"{name[:40]!a} is not understood here; .help shows what is")


# Lines ----------------------------------------------------------------------------------------


def _typed(history: _History) -> Iterator[str]:
    """Yield what a person types, whole expressions at a time; ^C clears what was begun."""
    while True:
        try:
            first = input(_PROMPT)
            line = _whole(first, lambda: input(_MORE))
        except EOFError:
            say("")
            return
        except KeyboardInterrupt:
            say("^C (.quit leaves)")
            continue
        if line:
            history.add(line)
            yield line


def _piped() -> Iterator[str]:
    """Yield the lines of standard input, whole expressions at a time."""
    source = sys.stdin

    def read() -> str:
        line = source.readline()
        if not line:
            raise EOFError
        return line

    while True:
        try:
            first = read()
        except EOFError:
            return
        line = _whole(first, read)
        if line and not line.startswith("#"):
            yield line


def _whole(first: str, read_more: Any) -> str:  # noqa: ANN401 - a callable that may raise EOFError
    """Return a line with those that belong to it; an empty line or the end cuts an expression."""
    line = first.strip()
    if line[:1] not in ("[", "{"):
        return line
    parts = [line]
    while _open_brackets("\n".join(parts)) > 0:
        try:
            more = read_more().rstrip()
        except EOFError:
            break
        if not more:
            break
        parts.append(more)
    return "\n".join(parts)


def _open_brackets(text: str) -> int:
    """Return how many brackets of an expression are open, leaving out those in its texts.

    >>> _open_brackets('["$eq", "a]", ['), _open_brackets('["]"]')
    (2, 0)
    """
    depth = 0
    inside = escaped = False
    for char in text:
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char in '"\n':  # a text of JSON ends with its line
                inside = False
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
    return depth


@contextlib.contextmanager
def _own_input(at_terminal: bool) -> Iterator[None]:
    """Keep commands from reading the lines that come after them in a pipe."""
    if at_terminal:
        yield
        return
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(_NoInput(), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before


class _NoInput(io.BufferedIOBase):
    """Standard input of a command whose prompt reads from a pipe: there is none."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        raise UsageError(
            "standard input holds the lines of the prompt", hint="Put the text into a file: @FILE"
        )

    read1 = read


# History --------------------------------------------------------------------------------------


class _History:
    """What was typed, offered again by the arrow keys where the platform has ``readline``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lines: list[str] = []
        self._readline: Any = None
        with contextlib.suppress(ImportError):
            import readline

            self._readline = readline
            readline.set_auto_history(False)
        self._read()

    def add(self, line: str) -> None:
        """Keep a line without its secrets; the same one twice in a row counts once."""
        from hypatia_mem.capture.redact import redact_text

        if self._lines != typed.read_lines(self._home):  # a forgetting went through it
            self._read()
        kept = redact_text(" ".join(line.split("\n")))
        if self._lines and self._lines[-1] == kept:
            return
        self._lines.append(kept)
        self._offer(kept)
        typed.write_lines(self._home, self._lines)

    def _read(self) -> None:
        """Take what the file holds in the place of what was known."""
        if self._readline is not None:
            self._readline.clear_history()
        self._lines = typed.read_lines(self._home)
        for line in self._lines:
            self._offer(line)

    def _offer(self, line: str) -> None:
        if self._readline is not None:
            self._readline.add_history(line)

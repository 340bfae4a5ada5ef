"""Rows on their way out: a table for people, CSV, and files that are the owner's alone."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from hypatia_mem.cli.output import columns, printable, say
from hypatia_mem.errors import Conflict

if TYPE_CHECKING:
    from rich.console import JustifyMethod

__all__ = ["cell", "exists", "new_file", "print_table", "write_csv"]


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    """Print rows under their names: lines and colours for a person, plain columns for a program."""
    if not sys.stdout.isatty():
        say(columns([names, *rows]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name, numbers in zip(names, right, strict=True):
        side: JustifyMethod = "right" if numbers else "left"
        table.add_column(Text(printable(name)), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(table)


def cell(value: object) -> str:
    """Return how a value is written in a table.

    >>> [cell(value) for value in (None, True, 3, "x")]
    ['NULL', 'true', '3', 'x']
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def write_csv(out: TextIO, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as CSV, NULL as nothing; at a terminal no stored character can drive it."""
    at_terminal = out.isatty()
    target = io.StringIO() if at_terminal else out
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if value is None else cell(value) for value in row])
    if at_terminal and isinstance(target, io.StringIO):
        out.write(printable(target.getvalue()))


def exists(output: str) -> Conflict:
    """Return the refusal to replace a file."""
    return Conflict(f"{output} exists already", hint="Add --force to replace it.")


@contextlib.contextmanager
def new_file(output: str, *, force: bool) -> Iterator[IO[bytes]]:
    """Give a file for bytes that is the owner's alone, and that is there whole or not at all.

    Raises Conflict when the name is taken, also by a file that came to be meanwhile, and OSError.
    """
    target = Path(output)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as out:  # noqa: PTH123 - a descriptor
            yield out
        _put(temporary, target, force)
    finally:
        temporary.unlink(missing_ok=True)


def _put(temporary: Path, target: Path, force: bool) -> None:
    """Give a file its name; never in place of one that came to be meanwhile, unless told to."""
    if force:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise exists(str(target)) from None
    except OSError:  # a file system without links
        if target.exists():
            raise exists(str(target)) from None
        temporary.replace(target)

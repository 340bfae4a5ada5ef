"""``config.toml``: read whole, changed a line or a table at a time; all else stays as it was."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypatia_mem.capture import paths
from hypatia_mem.config.table import Value
from hypatia_mem.errors import ConfigError

__all__ = ["read_table", "read_toml", "rewrite", "toml_of", "write_table", "write_text"]


def read_toml(home: Path) -> tuple[dict[str, Any], str]:
    """Return what the file says, and in words why it could not be read; never raises over it."""
    file = home / "config.toml"
    try:
        return tomllib.loads(file.read_text("utf-8-sig")), ""
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, f"config.toml cannot be read ({_sentence(error)}), so defaults hold"


def read_table(home: Path, table: str) -> dict[str, str]:
    """Return the texts of one table of ``config.toml``; nothing where there is no such table.

    Raises:
        ConfigError: the file is not TOML: an unreadable table must not look like an empty one.
    """
    written, problem = read_toml(home)
    if problem:
        raise ConfigError(problem, hint=f"Correct it by hand: {home / 'config.toml'}")
    found = written.get(table)
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: str(value) for key, value in pairs if type(value) in (str, int)}


def write_table(home: Path, table: str, values: Mapping[str, str]) -> None:
    """Put one table of texts at the end of ``config.toml``, in place of the one that is there.

    Everything else in the file stays as it is, comments and all.

    Raises:
        ConfigError: the file is not TOML, or holds the table in a form this cannot rewrite.
    """
    paths.ensure_home(str(home))
    file = home / "config.toml"
    before, problem = read_toml(home)
    if problem:
        raise ConfigError(f"{problem}; nothing was changed", hint=f"Correct it by hand: {file}")
    text = file.read_text("utf-8-sig") if file.exists() else ""
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        head = line.split("#")[0].strip()
        if head.startswith("["):
            inside = head == f"[{table}]"
        if not inside:
            kept.append(line)
    rest = "".join(kept).rstrip()
    lines = [f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in values.items()]
    block = "".join([f"[{table}]\n", *lines]) if values else ""
    changed = "\n\n".join(part for part in (rest, block) if part)
    if changed and not changed.endswith("\n"):
        changed += "\n"
    wanted = {key: value for key, value in before.items() if key != table}
    if values:
        wanted[table] = dict(values)
    if _parsed(changed) != wanted:
        raise ConfigError(
            f"[{table}] stands in config.toml in a form this cannot rewrite; nothing was changed",
            hint=f"Correct it by hand: {file}",
        )
    write_text(file, changed)


def rewrite(home: Path, changes: Mapping[str, Value | None]) -> bool:
    """Replace, add or (None) remove lines, all of them or none; True when the file changed.

    Raises:
        ConfigError: the file is not TOML, or holds a key in a form one line cannot replace.
    """
    paths.ensure_home(str(home))
    file = home / "config.toml"
    before, problem = read_toml(home)
    if problem:
        raise ConfigError(f"{problem}; nothing was changed", hint=f"Correct it by hand: {file}")
    text = changed = file.read_text("utf-8-sig") if file.exists() else ""
    wanted = dict(before)
    for key, value in changes.items():
        changed = _edited(changed, key, value)
        wanted.pop(key, None)
        if value is not None:
            wanted[key] = value
        if _parsed(changed) != wanted:
            # Written in a way one line cannot replace: quoted, in a multi-line string's shadow.
            raise ConfigError(
                f"{key} stands in config.toml in a form this cannot rewrite; nothing was changed",
                hint=f"Correct it by hand: {file}",
            )
    if changed != text:
        write_text(file, changed)
    return changed != text


def _parsed(text: str) -> dict[str, Any]:
    """Return what a text says as TOML, nothing where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _edited(text: str, key: str, value: Value | None) -> str:
    lines = text.splitlines(keepends=True)
    line_of_key = re.compile(rf"\s*{re.escape(key)}\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^#\s]*)")
    top = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    for index, line in enumerate(lines[:top]):
        found = line_of_key.match(line)
        if found is None:
            continue
        if value is None:
            del lines[index]
        else:
            lines[index] = f"{key} = {toml_of(value)}{line[found.end() :]}"
        return "".join(lines)
    if value is None:
        return text
    if top and not lines[top - 1].endswith("\n"):
        lines[top - 1] += "\n"
    lines.insert(top, f"{key} = {toml_of(value)}\n")
    return "".join(lines)


def toml_of(value: Value) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'


def write_text(file: Path, text: str) -> None:
    """Put a text in a file's place, whole or not at all, for its owner alone. Raises OSError."""
    target = Path(os.path.realpath(file))  # a link into somebody's dotfiles stays a link
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as out:  # noqa: PTH123 - a descriptor
            out.write(text)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)

"""Presets: settings kept under a name, taken up together, handed to somebody else.

A preset is ``presets/NAME.toml`` in the memory's home: what was set in ``config.toml`` when it was
saved, and nothing else. Taking one up sets what it holds and takes everything else it could hold
back to its default, so what was saved comes back as it was. Keys, and who is asked with them
(``PERSONAL``), are in none: they stay as they are. A preset from elsewhere may not switch on what
costs money either.

What a file says is believed as little as ``config.toml`` is: a setting that does not exist, or a
value that is not allowed, is left out and named.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.capture.redact import redact_text
from hypatia_mem.config.changing import set_values
from hypatia_mem.config.file import toml_of, write_text
from hypatia_mem.config.reading import read_settings
from hypatia_mem.config.table import SETTINGS, Value, unknown
from hypatia_mem.errors import ConfigError, NotFound, UsageError

__all__ = [
    "PERSONAL",
    "PREVIOUS",
    "Change",
    "Preset",
    "changes_of",
    "names",
    "read",
    "remove",
    "save",
    "take_in",
    "use",
]

PERSONAL = frozenset({"anthropic_key_file", "anthropic_url", "claude_command"})
PREVIOUS = "previous"  # what was set before a preset was taken up
MOST = 64 * 1024  # bytes of a file that is taken in
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_HEAD = "# Settings of hypatia-mem; taken up with: hypatia-mem preset use {name}\n"


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings under a name; ``warnings`` say what of its file was left out, and why."""

    name: str
    values: Mapping[str, Value]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a setting: its value before and after, and whether it is set at all then."""

    key: str
    before: Value
    after: Value
    is_set: bool


def names(home: Path) -> list[str]:
    """Return the names of the presets there are."""
    folder = home / "presets"
    found = folder.glob("*.toml") if folder.is_dir() else ()
    return sorted(file.stem for file in found if _NAME.fullmatch(file.stem))


def save(home: Path, name: str, *, replace: bool = False) -> Preset:
    """Keep what is set in ``config.toml`` under a name.

    Raises UsageError for a name that is none, or in use unless ``replace``, and ConfigError where
    it cannot be written.
    """
    loaded = read_settings(home, {})
    mine = {
        key: value
        for key, source in loaded.sources.items()
        if source == "file" and _problem(key, value := getattr(loaded.settings, key)) == ""
    }
    return _keep(home, Preset(name, mine), replace=replace)


def read(home: Path, name: str) -> Preset:
    """Return a preset. Raises NotFound, ConfigError when its file is not TOML."""
    path = _path(home, name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        there = ", ".join(names(home)) or "none yet"
        raise NotFound(f"there is no preset {name[:60]!a}", hint=f"There are: {there}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return _parsed(name, data, str(path), from_elsewhere=False)


def take_in(home: Path, file: Path, name: str, *, replace: bool = False) -> Preset:
    """Keep a preset that somebody else made; what costs money is left out of it.

    Raises NotFound, UsageError (a bad name, one in use, a file too large), ConfigError when it is
    not TOML.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST + 1)
    except OSError as error:
        raise NotFound(f"{str(file)[:120]!a} cannot be read: {error.strerror}") from error
    if len(data) > MOST:
        raise UsageError(f"{file.name[:80]!a} is larger than {MOST} bytes: it is no preset")
    found = _parsed(name, data, file.name, from_elsewhere=True)
    kept = _keep(home, found, replace=replace)
    return Preset(kept.name, kept.values, found.warnings)


def changes_of(home: Path, preset: Preset) -> list[Change]:
    """Return what taking a preset up would change."""
    loaded = read_settings(home, {})
    found = []
    for key, row in SETTINGS.items():
        if key in PERSONAL:
            continue
        is_set = key in preset.values
        before, after = getattr(loaded.settings, key), preset.values.get(key, row.default)
        if before != after or (loaded.sources[key] == "file") is not is_set:
            found.append(Change(key, before, after, is_set))
    return found


def use(home: Path, preset: Preset) -> list[Change]:
    """Take a preset up, all of it or nothing; what was set before is kept as ``PREVIOUS``.

    Raises ConfigError: then nothing was changed.
    """
    changes = changes_of(home, preset)
    if changes:
        save(home, PREVIOUS, replace=True)
        set_values(home, {one.key: one.after if one.is_set else None for one in changes})
    return changes


def remove(home: Path, name: str) -> None:
    """Take a preset away; the settings stay as they are. Raises NotFound."""
    read(home, name)
    _path(home, name).unlink(missing_ok=True)


# --------------------------------------------------------------------------------------------------


def _path(home: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!a} cannot be the name of a preset",
            hint="Small letters, digits, dots and dashes: quiet-laptop.",
        )
    return home / "presets" / f"{name}.toml"


def _keep(home: Path, preset: Preset, *, replace: bool) -> Preset:
    path = _path(home, preset.name)
    if path.exists() and not replace:
        raise UsageError(
            f"there is a preset {preset.name} already", hint="Replace it with --replace."
        )
    lines = [f"{key} = {toml_of(value)}\n" for key, value in preset.values.items()]
    try:
        paths.ensure_home(str(home))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_text(path, "".join([_HEAD.format(name=preset.name), *lines]))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    return preset


def _parsed(name: str, data: bytes, where: str, *, from_elsewhere: bool) -> Preset:
    try:
        written = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{where[:120]!a} is not TOML ({str(error)[:120]})",
            hint="A preset is lines like: summary_words = 400",
        ) from error
    values: dict[str, Value] = {}
    warnings: list[str] = []
    for key, value in written.items():
        if key not in SETTINGS:
            warnings.append(f"{unknown(key).message}, so it is left out")
            continue
        try:
            parsed = SETTINGS[key].parse(value)
        except ConfigError as error:
            warnings.append(f"{error.message}, so it is left out. {error.hint}")
            continue
        problem = _problem(key, parsed, from_elsewhere=from_elsewhere)
        if problem:
            warnings.append(f"{key} {problem}, so it is left out")
        else:
            values[key] = parsed
    return Preset(name, values, tuple(warnings))


def _problem(key: str, value: Value, *, from_elsewhere: bool = False) -> str:
    """Return why a setting may not stand in a preset, ``""`` where it may."""
    if key in PERSONAL:
        return "says whom you ask and with which key"
    if isinstance(value, str) and redact_text(value) != value:
        return "looks like a secret"
    row = SETTINGS[key]
    if from_elsewhere and (row.file_only or value in row.costly):
        return f"can cost money; set it yourself: hypatia-mem config set {key}"
    return ""

"""Which settings are in force, where each came from, and what was found that cannot be used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypatia_mem.config.file import read_toml
from hypatia_mem.config.table import SETTINGS, Settings, unknown
from hypatia_mem.errors import ConfigError

__all__ = ["Loaded", "load_settings", "read_settings"]

_ENV = "HYPATIA_MEM_"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, where each came from (``default``, ``file``, ``env``), and what was
    found that cannot be used.
    """

    settings: Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...] = field(default=())


def load_settings(home: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in force; never raises over their content."""
    return read_settings(home, environ).settings


def read_settings(home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the settings with sources and problems; ``environ`` defaults to the process's."""
    sources = dict.fromkeys(SETTINGS, "default")
    problems: list[str] = []
    values: dict[str, Any] = {}
    written, problem = read_toml(home)
    if problem:
        problems.append(problem)
    for key, value in written.items():
        if key in SETTINGS:
            _take(key, value, "file", values, sources, problems)
        elif not isinstance(value, dict):
            problems.append(f"config.toml: {unknown(key).message}")
    for key in SETTINGS:
        text = (os.environ if environ is None else environ).get(_ENV + key.upper())
        row = SETTINGS[key]
        if text is not None and (row.file_only or text in row.costly):
            problems.append(
                f"{_ENV}{key.upper()} is not taken from the environment, because it can cost money "
                f"or send your words elsewhere; set it with: hypatia-mem config set {key}"
            )
        elif text is not None:
            _take(key, text, "env", values, sources, problems)
    return Loaded(replace(Settings(), **values), sources, tuple(problems))


def _take(
    key: str,
    value: object,
    source: str,
    values: dict[str, Any],
    sources: dict[str, str],
    problems: list[str],
) -> None:
    try:
        values[key] = SETTINGS[key].parse(value)
    except ConfigError as error:
        where = "config.toml" if source == "file" else _ENV + key.upper()
        problems.append(f"{where}: {error.message}, so it counts as not set. {error.hint}")
    else:
        sources[key] = source

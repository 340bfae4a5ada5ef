"""Changing a setting: one line of ``config.toml``, and what the hook is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypatia_mem.config.file import rewrite
from hypatia_mem.config.hookconf import write_hook_conf
from hypatia_mem.config.reading import read_settings
from hypatia_mem.config.table import Value, lookup

__all__ = ["set_value", "set_values", "unset_value"]


def set_value(home: Path, key: str, text: str) -> Value:
    """Write one setting into ``config.toml`` and render ``hook.conf``; returns the value.

    Raises:
        ConfigError: the key is unknown, the value not allowed, or the file is not TOML.
    """
    setting = lookup(key)
    value = setting.parse(text)
    set_values(home, {key: value})
    return value


def unset_value(home: Path, key: str) -> bool:
    """Take one setting out of ``config.toml``; False when it was not there. Raises ConfigError."""
    lookup(key)
    return set_values(home, {key: None})


def set_values(home: Path, changes: Mapping[str, Value | None]) -> bool:
    """Write several settings as they were parsed, None takes one out; False when nothing changed.

    Raises ConfigError: then none was written.
    """
    changed = rewrite(home, changes)
    write_hook_conf(home, read_settings(home, {}).settings)
    return changed

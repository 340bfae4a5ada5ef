"""Where the client keeps its files, and which version it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypatia_mem.errors import InstallError

__all__ = [
    "FIRST_WITH_SKILL_PLUGINS",
    "NAME",
    "Place",
    "client_version",
    "enabled_plugin",
    "hooks_are_off",
    "place",
]

NAME = "hypatia-memory"
# Older clients do not load hooks from a skill's directory.
FIRST_WITH_SKILL_PLUGINS = (2, 1, 157)


@dataclass(frozen=True, slots=True)
class Place:
    """One configuration folder of the client: the person's own, or one project's."""

    level: str
    config: Path

    @property
    def directory(self) -> Path:
        """Return the directory that is skill and plugin at once."""
        return self.config / "skills" / NAME

    @property
    def settings(self) -> Path:
        """Return the settings file; for a project the one that is not shared with others."""
        name = "settings.json" if self.level == "user" else "settings.local.json"
        return self.config / name


def place(project: Path | None = None) -> Place:
    """Return the person's configuration folder, or with ``project`` that working tree's.

    Raises:
        InstallError: CLAUDE_CONFIG_DIR is not an absolute path, or no home directory is known.
    """
    if project is not None:
        return Place("project", _top(project) / ".claude")
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    if configured:
        if not Path(configured).is_absolute():
            raise InstallError(
                "CLAUDE_CONFIG_DIR is a relative path, so its place depends on where the client "
                "is started.",
                hint="Set it to an absolute path, for the client and for this command.",
            )
        return Place("user", Path(configured))
    try:
        return Place("user", Path.home() / ".claude")
    except RuntimeError as error:
        raise InstallError(
            "no home directory is known.", hint="Set HOME or CLAUDE_CONFIG_DIR."
        ) from error


def _top(directory: Path) -> Path:
    """Return the top of the working tree around the directory, or the directory itself."""
    directory = directory.absolute()
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists():
            return folder
    return directory


def client_version() -> tuple[int, int, int] | None:
    """Ask the client on PATH for its version; None when there is none or it does not say."""
    program = shutil.which("claude")
    if program is None:
        return None
    # Whatever a client of any age does when asked for its version, our hooks stay out of it.
    environment = {**os.environ, "HYPATIA_MEM_INTERNAL": "1"}
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def enabled_plugin(config: Path) -> str:
    """Return the id under which a marketplace's copy of this plugin is switched on, or ""."""
    for settings in _settings(config):
        plugins = settings.get("enabledPlugins")
        for key, enabled in plugins.items() if isinstance(plugins, dict) else ():
            if enabled and key.startswith(f"{NAME}@") and key != f"{NAME}@skills-dir":
                return str(key)
    return ""


def hooks_are_off(config: Path) -> bool:
    """Tell whether the client's settings switch every hook off."""
    return any(settings.get("disableAllHooks") is True for settings in _settings(config))


def _settings(config: Path) -> list[dict[str, Any]]:
    """Return the settings files that can be read."""
    found = []
    for name in ("settings.json", "settings.local.json"):
        try:
            settings = json.loads((config / name).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(settings, dict):
            found.append(settings)
    return found

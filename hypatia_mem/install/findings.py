"""What is installed, and whether it would still work: facts for ``doctor``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypatia_mem
from hypatia_mem.errors import InstallError
from hypatia_mem.install import client, settingsfile, skilldir
from hypatia_mem.install.bundle import MARKER, Target, hooks_block, render
from hypatia_mem.install.client import Place
from hypatia_mem.install.files import digest

__all__ = ["Finding", "installed_state"]

_INSTALL = "Run `hypatia-mem install`."
_UPGRADE = "Run `hypatia-mem upgrade`."


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked fact; ``remedy`` says what to do when it is not ``ok``."""

    check: str
    ok: bool
    message: str
    remedy: str = ""


def installed_state(folder: Path | None = None) -> list[Finding]:
    """Check every install that concerns ``folder`` (default: the current one); never an error."""
    try:
        everywhere, here = client.place(), client.place(folder or Path.cwd())
    except (InstallError, OSError) as error:
        return [Finding("hooks", False, str(error).splitlines()[0], "Fix it, then look again.")]
    places = [where for where in (everywhere, here) if _has_something(where)]
    plugin = client.enabled_plugin(everywhere.config)
    findings: list[Finding] = []
    if plugin:
        findings.append(Finding("hooks", True, f"they run from the plugin {plugin}"))
    ways = len({where.directory for where in places}) + bool(plugin)
    if ways == 0:
        findings.append(Finding("hooks", False, "no hooks are installed", _INSTALL))
    if ways > 1:
        remedy = "Keep one: `hypatia-mem install` for all, or uninstall and use --project."
        findings.append(Finding("hooks", False, "they are installed more than once", remedy))
    for where in dict.fromkeys(places):
        findings += _check_place(where)
    return findings


def _has_something(where: Place) -> bool:
    ours = skilldir.inspect(where.directory).kind == "ours"
    return ours or settingsfile.has_ours(where.settings)


def _check_place(where: Place) -> list[Finding]:
    found = skilldir.inspect(where.directory)
    if found.kind != "ours":
        message = f"{where.settings} names a launcher that is gone"
        return [Finding("hooks", False, message, _INSTALL)]
    marker = json.loads((where.directory / MARKER).read_text("utf-8"))
    target = Target(found.way, where.directory, str(marker["interpreter"]), str(marker["site"]))
    how = {"directory": "skill directory", "settings": "settings file"}.get(found.way, found.way)
    return [
        Finding("hooks", True, f"installed as {how}: {where.directory}"),
        _check_version(found.version),
        _check_interpreter(target),
        _check_package(target),
        _check_files(target, found),
        _check_events(target, where),
    ]


def _check_version(version: str) -> Finding:
    own = hypatia_mem.__version__
    if version == own:
        return Finding("version", True, f"hooks and program are both {own}")
    message = f"the hooks are of version {version}, the program is {own}"
    return Finding("version", False, message, _UPGRADE)


def _check_interpreter(target: Target) -> Finding:
    python = target.interpreter
    if os.access(python, os.X_OK) and Path(python).is_file():
        return Finding("interpreter", True, python)
    return Finding("interpreter", False, f"{python} is gone, so no hook can start", _INSTALL)


def _check_package(target: Target) -> Finding:
    if Path(target.site, "hypatia_mem", "capture", "hook.py").is_file():
        return Finding("package", True, target.site)
    message = f"the package is not in {target.site} any more, so the hooks do nothing"
    return Finding("package", False, message, _INSTALL)


def _check_files(target: Target, found: skilldir.Found) -> Finding:
    wrong = []
    for name, value in (found.files or {}).items():
        try:
            same = digest((target.directory / name).read_bytes()) == value
        except OSError:
            same = False
        if not same:
            wrong.append(name)
    if not wrong:
        current = found.version != hypatia_mem.__version__ or set(render(target)) == set(
            found.files or {}
        )
        if current:
            return Finding("files", True, "the launcher and the skill are as installed")
        return Finding("files", False, "the installed files are not of this version", _UPGRADE)
    message = f"changed or missing since the installation: {', '.join(wrong)}"
    return Finding("files", False, message, f"{_INSTALL[:-1]} (it keeps a copy of your changes).")


def _check_events(target: Target, where: Place) -> Finding:
    wanted = hooks_block(target)
    source = where.settings if target.way == "settings" else target.directory / "hooks/hooks.json"
    try:
        present: Any = json.loads(source.read_text("utf-8-sig"))["hooks"]
        missing = [
            event
            for event, groups in wanted.items()
            if not any(group in present.get(event, []) for group in groups)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        missing = list(wanted)
    if not missing:
        return Finding("events", True, ", ".join(wanted))
    return Finding("events", False, f"not hooked in {source}: {', '.join(missing)}", _INSTALL)

"""What gets installed, as bytes: the launcher, the hooks block, the manifest, the skill's pages.

The sources are the repository's own ``hooks/`` and ``skill/``; the wheel carries them as
``hypatia_mem/_bundle``. One hooks block, ``hooks/hooks.json``, serves every way in.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import hypatia_mem
from hypatia_mem.errors import InstallError
from hypatia_mem.install.client import NAME
from hypatia_mem.install.interpreter import hook_arguments

__all__ = ["HOOK", "MARKER", "Target", "events", "hooks_block", "render"]

HOOK = "hooks/hook.py"
MARKER = ".hypatia-mem.json"
_DESCRIPTION = "The memory of your coding agent: every turn kept, every session briefed."


@dataclass(frozen=True, slots=True)
class Target:
    """What an installed directory is made for; ``way`` is ``directory`` or ``settings``."""

    way: str
    directory: Path
    interpreter: str
    site: str

    @property
    def script(self) -> str:
        """Return the installed launcher's path."""
        return str(self.directory / "hooks" / "hook.py")


@cache
def _sources() -> tuple[Path, Path]:
    """Return the folders ``hooks`` and ``skill/hypatia-memory``, from the wheel or the clone."""
    package = Path(hypatia_mem.__file__).resolve().parent
    for root in (package / "_bundle", package.parent):
        hooks, skill = root / "hooks", root / "skill" / NAME
        if (hooks / "hook.py").is_file() and (skill / "SKILL.md").is_file():
            return hooks, skill
    raise InstallError(
        f"the package at {package} carries no hooks and no skill.",
        hint="The installation of hypatia-mem is incomplete: install it again.",
    )


def _template() -> dict[str, Any]:
    hooks, _ = _sources()
    block: dict[str, Any] = json.loads((hooks / "hooks.json").read_text("utf-8"))["hooks"]
    return block


def events() -> list[str]:
    """Return the names of the events that are hooked."""
    return list(_template())


def hooks_block(target: Target) -> dict[str, Any]:
    """Return the hooks block: exec form for the plugin, one shell line for a settings file.

    Clients that need the settings way may be too old to know ``args``, and would start a bare
    interpreter on the event's JSON.
    """
    block: dict[str, Any] = {}
    for event, groups in _template().items():
        handler = dict(groups[0]["hooks"][0])
        handler.pop("args", None)
        if target.way == "settings":
            handler["command"] = shell_line(target)
        else:
            handler["command"] = target.interpreter
            handler["args"] = hook_arguments(target.script)
        order = ("type", "command", "args", "timeout")
        ordered = {key: handler[key] for key in order if key in handler}
        block[event] = [{"hooks": [ordered]}]
    return block


def shell_line(target: Target) -> str:
    """Return the shell command that starts the launcher, and does nothing when it is gone."""
    python, script = target.interpreter, target.script
    if sys.platform == "win32":  # run by Git's bash, which wants forward slashes
        python, script = python.replace("\\", "/"), script.replace("\\", "/")
    python, script = shlex.quote(python), shlex.quote(script)
    return f"test -x {python} -a -f {script} || exit 0; exec {python} -I -S {script}"


def render(target: Target) -> dict[str, bytes]:
    """Return every file of the directory but the marker: relative path -> bytes.

    The launcher comes first: it is what a running session needs at every instant.
    """
    hooks, skill = _sources()
    files = {HOOK: _launcher((hooks / "hook.py").read_text("utf-8"), target.site)}
    if target.way == "directory":
        files["hooks/hooks.json"] = _json({"hooks": hooks_block(target)})
        files[".claude-plugin/plugin.json"] = _json(
            {"name": NAME, "version": hypatia_mem.__version__, "description": _DESCRIPTION}
        )
    for page in sorted(skill.rglob("*.md")):
        files[str(PurePosixPath(page.relative_to(skill)))] = page.read_bytes()
    return files


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def _launcher(text: str, site: str) -> bytes:
    """Fill in the launcher's PACKAGE line; the result is ASCII, as any locale can read it."""
    line = f"PACKAGE = {site!a}"
    filled, count = re.subn(r"(?m)^PACKAGE = .*$", lambda _: line, text)
    if count != 1:
        raise InstallError(
            "the launcher hooks/hook.py has no PACKAGE line.",
            hint="The installation of hypatia-mem is incomplete: install it again.",
        )
    return filled.encode("ascii", "backslashreplace")

"""Removing the memory itself: only what this program put into its home, only when asked."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypatia_mem.errors import InstallError
from hypatia_mem.install.plan import Plan

__all__ = ["describe", "plan_purge", "purge"]

_FOLDERS = (
    "spool", "turns", "index", "briefs", "snapshots", "quarantine", "archive", "keys", "presets",
    "prompts",
)  # fmt: skip
_FILES = (
    "worker.lock",
    "worker.start",
    "store.lock",
    "model.lock",
    "key",
    "forgotten",
    "seal",
    "config.toml",
    "hook.conf",
    "repl_history",
    "README",
    "installs.json",
)
_STEMS = ("memory.duckdb", "hypatia-mem.log")


def _ours(home: Path) -> list[Path]:
    if not home.is_dir():
        return []
    return [
        path
        for path in sorted(home.iterdir())
        if path.name in _FOLDERS or path.name in _FILES or path.name.startswith(_STEMS)
    ]


def describe(home: Path) -> str:
    """Return the size of the memory as a person reads it, or "" when there is none."""
    files = [path for path in home.rglob("*") if path.is_file()] if home.is_dir() else []
    if not (home / "memory.duckdb").exists() and not any((home / "spool").glob("*.jsonl")):
        return ""
    size = sum(path.stat().st_size for path in files if path.exists())
    return f"{size / 1_000_000:.1f} MB in {home}"


def plan_purge(plan: Plan, home: Path) -> None:
    """Plan the removal of every file of ours in the home, and of the home if that empties it."""
    ours = _ours(home)
    if not ours:
        plan.say(f"There is no memory in {home}.")
        return
    left = sorted(path.name for path in home.iterdir() if path not in ours)
    plan.add(f"Removed the memory in {home}.", lambda: purge(home))
    if left:
        plan.say(f"Left in {home}, since it is not ours: {', '.join(left)}.")


def purge(home: Path) -> None:
    """Remove every file of ours in the home, and the home if that empties it.

    Raises:
        InstallError: a file cannot be removed.
    """
    try:
        for path in _ours(home):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if not any(home.iterdir()) and not home.is_symlink():
            home.rmdir()
    except OSError as error:
        raise InstallError(
            f"cannot remove {error.filename or home}: {error.strerror or type(error).__name__}.",
            hint="Remove the folder yourself.",
        ) from error

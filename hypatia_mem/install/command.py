"""``hypatia``, the second name of the command, where no other program has that name."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from hypatia_mem.install.plan import Plan
from hypatia_mem.install.record import Record

__all__ = ["command_directory", "plan_second_name", "plan_second_name_removed"]

FIRST, SECOND = "hypatia-mem", "hypatia"
_SUFFIX = ".exe" if sys.platform == "win32" else ""


def command_directory() -> Path | None:
    """Return the folder of the ``hypatia-mem`` that people start; None when there is none.

    The folder on PATH comes before the virtual environment's own, since that is where a second
    name is found.
    """
    started = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    candidates = [shutil.which(FIRST), str(started) if started.stem == FIRST else None]
    candidates.append(str(Path(sysconfig.get_path("scripts")) / (FIRST + _SUFFIX)))
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate).absolute().parent
    return None


def plan_second_name(plan: Plan, record: Record, folder: Path | None) -> str:
    """Plan the second name beside the first; its path to remember, or "" when it is not ours."""
    if folder is None:
        return record.second_name
    first, second = folder / (FIRST + _SUFFIX), folder / (SECOND + _SUFFIX)
    other = shutil.which(SECOND)
    if other is not None and not _same(other, first) and Path(other) != Path(record.second_name):
        plan.say(f"{other} is another program, so `hypatia-mem` stays the only name of this one.")
        return record.second_name
    if os.path.lexists(second):
        return str(second) if _same(str(second), first) or record.second_name == str(second) else ""
    if not os.access(folder, os.W_OK):
        plan.say(f"{folder} cannot be written, so `hypatia-mem` stays the only name.")
        return ""
    plan.add(f"Added the name `hypatia` ({second}).", lambda: _link(first, second))
    return str(second)


def plan_second_name_removed(plan: Plan, record: Record) -> None:
    """Plan the removal of the second name if we made it."""
    path = Path(record.second_name)
    if record.second_name and os.path.lexists(path):
        plan.add(f"Removed {path}.", lambda: path.unlink(missing_ok=True))


def _same(one: str, two: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(two)


def _link(first: Path, second: Path) -> None:
    try:
        second.symlink_to(first.name)
    except OSError:  # Windows without the right to make links: the launcher works as a copy too
        shutil.copy2(first, second)

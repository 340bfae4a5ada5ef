"""``hypatia``, the second name of the command, where no other program has that name."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.install.plan import Plan
from hypatia_mem.install.record import Record

__all__ = [
    "SecondNames",
    "command_directory",
    "plan_second_name",
    "plan_second_name_removed",
    "second_names",
]

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
    """Plan the second name beside the first; its path to remember, or "" when we did not make it.

    The package brings a ``hypatia`` of its own, which lies beside ``hypatia-mem`` wherever it was
    installed; a link is only needed where a person starts it from elsewhere. Whenever a program of
    that name by others is on the PATH too, it is said which of them is started.
    """
    if folder is None:
        return record.second_name
    first, second = folder / (FIRST + _SUFFIX), folder / (SECOND + _SUFFIX)
    found = second_names(folder, record.second_name)
    if found.remark:
        plan.say(found.remark)
    if found.others and not found.ours:
        return record.second_name
    if os.path.lexists(second):
        return str(second) if _same(str(second), first) or record.second_name == str(second) else ""
    if found.others and not found.wins:
        return record.second_name
    if not os.access(folder, os.W_OK):
        plan.say(f"{folder} cannot be written, so `hypatia-mem` stays the only name.")
        return ""
    plan.add(f"Added the name `hypatia` ({second}).", lambda: _link(first, second))
    return str(second)


@dataclass(frozen=True, slots=True)
class SecondNames:
    """Every ``hypatia`` on the PATH: ours, and those of others; ``wins`` when ours is the first."""

    ours: tuple[str, ...]
    others: tuple[str, ...]
    wins: bool

    @property
    def remark(self) -> str:
        """Return what a person has to know, "" when there is only one program of that name."""
        if not self.others:
            return ""
        other = self.others[0]
        if self.wins:
            return (
                f"`hypatia` starts this program ({self.ours[0]}) and hides {other}, another one "
                "of that name, which comes later on the PATH."
            )
        return (
            f"{other} is another program and the one that `hypatia` starts, so use `hypatia-mem` "
            "for this one."
        )


def second_names(folder: Path, made: str = "") -> SecondNames:
    """Look for programs called ``hypatia`` along the PATH.

    Ours are those that lead to the ``hypatia-mem`` of ``folder`` or were installed beside it, and
    the one at the path ``made``.
    """
    real = Path(os.path.realpath(folder / (FIRST + _SUFFIX)))
    own = {str(real), str(real.with_name(SECOND + _SUFFIX))}
    found: list[tuple[str, bool]] = []
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which(SECOND, path=place) if place else None
        if path is not None and path not in (one for one, _ in found):
            found.append((path, os.path.realpath(path) in own or path == made))
    ours = tuple(path for path, is_ours in found if is_ours)
    others = tuple(path for path, is_ours in found if not is_ours)
    return SecondNames(ours, others, bool(found) and found[0][1])


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

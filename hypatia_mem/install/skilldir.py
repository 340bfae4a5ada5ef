"""The directory ``<config>/skills/hypatia-memory``: made whole, recognised, renewed, removed.

Ours is what carries our marker file, with the digest of everything we wrote. Whatever else stands
there belongs to its owner: it is moved aside to ``<config>/hypatia-memory.bak-<utc>`` (outside
``skills``, where the client would go on loading it) and said. A first installation appears in one
rename. A renewal replaces file by file, so that the hooks of a running session find their launcher
at every instant.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import hypatia_mem
from hypatia_mem.errors import InstallError
from hypatia_mem.install.bundle import MARKER, Target, render
from hypatia_mem.install.files import digest, refuse_unwritable, remove_empty, stamp, write_atomic
from hypatia_mem.install.plan import Plan

__all__ = ["Found", "inspect", "plan_remove", "plan_write"]

_MADE_BY = "hypatia-mem install"
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at the directory: ``absent``, ``ours`` or ``foreign``; digests by our marker."""

    kind: str
    version: str = ""
    way: str = ""
    files: dict[str, str] | None = None
    aside: str = ""


def inspect(directory: Path) -> Found:
    """Look at the directory; never an error."""
    if not os.path.lexists(directory):
        return Found("absent")
    try:
        marker = json.loads((directory / MARKER).read_text("utf-8"))
        if marker["made_by"] != _MADE_BY:
            return Found("foreign")
        files = {str(name): str(value) for name, value in marker["files"].items()}
        return Found("ours", marker["version"], marker["way"], files, marker.get("aside", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Found("foreign")


def _marker(target: Target, files: dict[str, bytes], aside: str) -> bytes:
    body = {
        "made_by": _MADE_BY,
        "version": hypatia_mem.__version__,
        "way": target.way,
        "interpreter": target.interpreter,
        "site": target.site,
        "aside": aside,
        "files": {name: digest(data) for name, data in files.items()},
    }
    return json.dumps(body, indent=1).encode() + b"\n"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _aside(directory: Path) -> Path:
    return directory.parent.parent / f"{directory.name}.bak-{stamp()}"


def plan_write(plan: Plan, target: Target) -> None:
    """Plan what makes the directory hold exactly this version; nothing when it does already.

    Raises:
        InstallError: the place cannot be written.
    """
    directory, files = target.directory, render(target)
    found = inspect(directory)
    if found.kind != "ours":
        refuse_unwritable(directory / MARKER)
        aside = ""
        if found.kind == "foreign":
            aside = str(_aside(directory))
            plan.add(
                f"Moved {directory}, which is not ours, to {aside}.",
                lambda: _move(directory, Path(aside)),
            )
        plan.add(
            f"Wrote {directory} (hooks and skill, version {hypatia_mem.__version__}).",
            lambda: _create(directory, {**files, MARKER: _marker(target, files, aside)}),
        )
        return
    _plan_renewal(plan, target, files, found)


def _plan_renewal(plan: Plan, target: Target, files: dict[str, bytes], found: Found) -> None:
    directory = target.directory
    marker = _marker(target, files, found.aside)
    wanted = {**files, MARKER: marker}
    changed = {name: data for name, data in wanted.items() if _read(directory / name) != data}
    stale = [
        name for name in found.files or {} if name not in wanted and (directory / name).exists()
    ]
    if not changed and not stale:
        return
    refuse_unwritable(directory / MARKER)
    edited = _edited(directory, found, [name for name in (*changed, *stale) if name != MARKER])
    if edited:
        kept = _aside(directory)
        plan.add(
            f"Kept a copy of what you had changed ({', '.join(edited)}) in {kept}.",
            lambda: _copy(directory, kept, edited),
        )
    was = f", was {found.version}" if found.version != hypatia_mem.__version__ else ""
    plan.add(
        f"Renewed {directory} (version {hypatia_mem.__version__}{was}).",
        lambda: _renew(directory, changed, stale),
    )


def _edited(directory: Path, found: Found, names: list[str]) -> list[str]:
    """Return those files that are there and are not as we wrote them."""
    ours = found.files or {}
    present = {name: data for name in names if (data := _read(directory / name)) is not None}
    return [name for name, data in present.items() if digest(data) != ours.get(name)]


def plan_remove(plan: Plan, directory: Path) -> None:
    """Plan the removal of what is ours; what its owner changed or added is moved aside.

    Something foreign in our place is left alone and said.
    """
    found = inspect(directory)
    if found.kind == "foreign":
        plan.say(f"{directory} is not ours, so it was left alone.")
    if found.kind != "ours":
        return
    refuse_unwritable(directory / MARKER)
    ours = found.files or {}
    names = [
        str(path.relative_to(directory))
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != MARKER and not _is_left_over(path)
    ]
    kept = [
        name for name in names if ours.get(Path(name).as_posix()) != _digest_of(directory / name)
    ]
    if kept:
        aside = _aside(directory)
        plan.add(
            f"Moved what you had changed or added ({', '.join(kept)}) to {aside}.",
            lambda: _copy(directory, aside, kept),
        )
    plan.add(f"Removed {directory}.", lambda: _remove(directory))
    if found.way == "directory":
        plan.say(
            "Sessions that are open now may report a missing plugin until they are restarted or "
            "`/reload-plugins` is typed."
        )
    if found.aside and os.path.lexists(found.aside):
        plan.add(
            f"Moved {found.aside} back to {directory}, where it had been.",
            lambda: _move(Path(found.aside), directory),
        )


def _is_left_over(path: Path) -> bool:
    """Tell what a killed write or an import left behind from what a person put there."""
    return "__pycache__" in path.parts or (".hypatia-mem-" in path.name and path.suffix == ".tmp")


def _digest_of(path: Path) -> str:
    data = _read(path)
    return "" if data is None else digest(data)


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
            source.unlink()
        else:
            shutil.move(source, target)
    except OSError as error:
        raise InstallError(
            f"cannot move {source} to {target}: {error.strerror or type(error).__name__}.",
            hint="Move it yourself, then run the command again.",
        ) from error


def _copy(directory: Path, aside: Path, names: list[str]) -> None:
    for name in names:
        write_atomic(aside / name, (directory / name).read_bytes())


def _create(directory: Path, files: dict[str, bytes]) -> None:
    """Build the directory beside ``skills`` and let it appear in one rename."""
    skills = directory.parent
    building = skills.parent / f".{directory.name}.new-{os.getpid()}"
    try:
        skills.mkdir(parents=True, exist_ok=True)
        _sweep(directory)
        for name, data in files.items():
            write_atomic(building / name, data)
        try:
            building.rename(directory)
        except OSError:
            # Another installation won, or ``skills`` is a link to another file system.
            _renew(directory, files, [])
    except OSError as error:
        raise InstallError(
            f"cannot write {directory}: {error.strerror or type(error).__name__}.",
            hint="Free the disk or fix the permissions of the folder, then run it again.",
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _sweep(directory: Path) -> None:
    """Remove what an installation or removal left behind that was killed; never one at work."""
    for kind in ("new", "old"):
        for left in directory.parent.parent.glob(f".{directory.name}.{kind}-*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(left)


def _renew(directory: Path, files: dict[str, bytes], stale: list[str]) -> None:
    """Replace each file in its own rename: the launcher first, the marker last."""
    for name, data in files.items():
        write_atomic(directory / name, data)
    for name in stale:
        with contextlib.suppress(OSError):
            (directory / name).unlink()
            remove_empty((directory / name).parent, upto=directory)


def _remove(directory: Path) -> None:
    """Remove the directory: the hooks block first, the launcher and then the marker last."""
    try:
        for name in (".claude-plugin/plugin.json", "hooks/hooks.json"):
            (directory / name).unlink(missing_ok=True)
        if directory.is_symlink():
            for child in directory.iterdir():
                shutil.rmtree(child) if child.is_dir() else child.unlink()
            return
        doomed = directory.parent.parent / f".{directory.name}.old-{os.getpid()}"
        try:
            directory.rename(doomed)
        except OSError:
            doomed = directory
        shutil.rmtree(doomed)
    except OSError as error:
        raise InstallError(
            f"cannot remove {directory}: {error.strerror or type(error).__name__}.",
            hint="Remove the directory yourself.",
        ) from error

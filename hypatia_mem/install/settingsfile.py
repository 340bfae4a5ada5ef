"""Putting our hooks into a settings file and taking them out, with a way back to its exact bytes.

What is kept in our record is where our own text lies in the new file, and the digests of the file
before and after: never the file's content, which may hold keys.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypatia_mem.errors import InstallError
from hypatia_mem.install import settings
from hypatia_mem.install.files import digest, refuse_unwritable, stamp, write_atomic
from hypatia_mem.install.plan import Plan

__all__ = ["has_ours", "plan_merge", "plan_unmerge"]

Memo = dict[str, Any]


def has_ours(path: Path) -> bool:
    """Tell whether the file has our hooks; one that is no JSON has them when it names them."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return False
    try:
        return settings.remove(text) != text
    except (ValueError, RecursionError, IndexError):
        return settings.names_us(text)


def plan_merge(plan: Plan, path: Path, hooks: dict[str, Any], memo: Memo | None) -> Memo:
    """Plan the file with our hooks in it; what to remember about it.

    Nothing is planned when the file holds exactly these hooks already. ``memo`` is what an
    earlier call returned.

    Raises:
        InstallError: the file is read-only, has comments, is broken or is no object.
    """
    data = _read(path)
    text = settings.read(data or b"", str(path), hooks)
    if memo is None and settings.holds(text, hooks):
        # The record was lost: nothing to write, and no exact bytes to go back to.
        return {"path": str(path), "before": "", "after": "", "slices": [], "backup": ""}
    before, base = _before(text, data, memo)
    edited = settings.insert(base, hooks)
    if edited.text == text and memo is not None:
        return memo
    refuse_unwritable(path)
    new = edited.text.encode("utf-8")
    fresh: Memo = {
        "path": str(path),
        "before": None if before is None else digest(before),
        "after": digest(new),
        "slices": [list(pair) for pair in edited.slices],
        "backup": (memo or {}).get("backup", ""),
    }
    if data is not None and settings.remove(text) == text:
        backup = Path(os.path.realpath(path)).with_name(f"{path.name}.bak-hypatia-mem-{stamp()}")
        fresh["backup"] = str(backup)
        mode = path.stat().st_mode & 0o777
        plan.add(f"Copied {path} to {backup}.", lambda: write_atomic(backup, data, mode=mode))
    if new != data:
        plan.add(f"Added the hooks to {path}.", lambda: write_atomic(path, new))
    return fresh


def _before(text: str, data: bytes | None, memo: Memo | None) -> tuple[bytes | None, str]:
    """Return the file without our hooks: its bytes (None: there was no file) and its text."""
    if data is None:
        return None, ""
    if memo is not None and memo.get("after") == digest(data):
        bare = settings.Edited(text, tuple((a, b) for a, b in memo["slices"])).without()
        if memo.get("before") is None:
            return None, ""
        if digest(bare.encode("utf-8")) == memo["before"]:
            return bare.encode("utf-8"), bare
    bare = settings.remove(text)
    return bare.encode("utf-8"), bare


def plan_unmerge(plan: Plan, path: Path, memo: Memo | None) -> None:
    """Plan the file without our hooks: byte for byte as it was, or only our entries taken out.

    A file that was made by us and not touched since is removed.

    Raises:
        InstallError: the file names our launcher and is read-only or no longer plain JSON.
    """
    data = _read(path)
    if data is None:
        return
    untouched = memo is not None and memo.get("after") == digest(data)
    if not untouched and b"hypatia-memory" not in data:
        return
    try:
        text = settings.read(data, str(path), {})
    except InstallError as error:
        raise InstallError(
            error.message,
            hint="Take the entries that name hypatia-memory/hooks/hook.py out of it by hand.",
        ) from error
    before, bare = _before(text, data, memo)
    if before == data:
        return
    refuse_unwritable(path)
    if before is None:
        plan.add(f"Removed {path}, which we had made.", lambda: _unlink(path))
        return
    how = "Restored" if untouched else "Took our hooks out of"
    new = bare.encode("utf-8")
    plan.add(f"{how} {path}.", lambda: write_atomic(path, new))
    backup = Path(str((memo or {}).get("backup") or ""))
    if memo is not None and memo.get("backup") and _read(backup) == new:
        plan.add(f"Removed the copy {backup}, which is the same.", lambda: _unlink(backup))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InstallError(
            f"cannot read {path}: {error.strerror or type(error).__name__}.",
            hint="Fix its permissions, or install without --settings.",
        ) from error


def _unlink(path: Path) -> None:
    Path(os.path.realpath(path)).unlink(missing_ok=True)

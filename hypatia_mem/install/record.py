"""``installs.json`` in the memory's home: what was installed where; only that is removed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from hypatia_mem.capture import paths
from hypatia_mem.install.files import write_atomic

__all__ = ["Record", "load", "note_away", "save"]

Install = dict[str, Any]


class Record:
    """The installs known to this memory, newest last, and the second command's path."""

    def __init__(self, installs: list[Install], second_name: str = "") -> None:
        """Hold what the file says."""
        self.installs = installs
        self.second_name = second_name

    def find(self, config: Path) -> Install | None:
        """Return the install in that configuration folder, if there is one."""
        return next((one for one in self.installs if one.get("config") == str(config)), None)

    def put(self, install: Install) -> None:
        """Note an install, in place of an earlier one in the same configuration folder."""
        self.drop(Path(install["config"]))
        self.installs.append(install)

    def drop(self, config: Path) -> None:
        """Forget the install in that configuration folder."""
        self.installs = [one for one in self.installs if one.get("config") != str(config)]


def load(home: Path) -> Record:
    """Read the file; one that is missing or damaged is an empty record, never an error."""
    try:
        raw = json.loads((home / "installs.json").read_text(encoding="utf-8"))
        installs = [one for one in raw["installs"] if isinstance(one, dict) and one.get("config")]
        return Record(installs, str(raw.get("second_name") or ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Record([])


def save(home: Path, record: Record) -> None:
    """Write the file, readable by its owner alone; an empty record is no file."""
    path = home / "installs.json"
    if not record.installs and not record.second_name:
        path.unlink(missing_ok=True)
        return
    body = {"v": 1, "installs": record.installs, "second_name": record.second_name}
    data = json.dumps(body, indent=1, ensure_ascii=True).encode() + b"\n"
    if not path.exists() or path.read_bytes() != data:
        write_atomic(path, data, mode=0o600)


def note_away(home: Path, away: bool) -> None:
    """Note that nothing is installed from now on, or that something is again.

    What was said in between is not fetched from transcripts later. Raises OSError.
    """
    path = home / paths.AWAY
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    is_away = bool(lines) and " " not in lines[-1]
    if is_away == away:
        return
    now = f"{int(time.time() * 1000) / 1000:.3f}"  # a transcript cuts its times off to that, too
    lines = [*lines, now] if away else [*lines[:-1], f"{lines[-1]} {now}"]
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)

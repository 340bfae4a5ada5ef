"""Which transcripts have grown, and the cursors that remember how far each has been read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import spool
from hypatia_mem.memory.intake.lines import read_lines

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["cursor_key", "cursors_of", "size_key", "size_of", "survey"]

SURVEY_DAYS = 30


def survey(
    store: Store, home: Path, cursors: Mapping[str, int], *, now: datetime, capture: bool
) -> list[tuple[str, str]]:
    """Return (session, transcript) of sessions whose transcripts grew without a hook's word.

    Done once per process: a session whose client was killed, or whose hooks could not write,
    is completed from its transcript by the next worker that runs for whatever reason. So is
    one that no hook ever told of, if its transcript lies beside a known one and is younger
    than the store, unless ``capture`` is off.
    """
    since = now - timedelta(days=SURVEY_DAYS)
    found: dict[str, str] = {}
    folders: set[Path] = set()
    for session, _ in store.sessions(limit=500, include_archived=True):
        if not session.transcript_path or (session.updated_at or now) < since:
            continue
        folders.add(Path(session.transcript_path).parent)
        if size_of(session.transcript_path) > cursors.get(size_key(session.transcript_path), 0):
            found[session.id] = session.transcript_path
    born = store.meta("born")
    for folder in folders if born and capture else ():
        for path in _younger(folder, float(born)):
            off_record = (home / "turns" / f"{path.stem}.internal").exists()
            known = size_key(str(path)) in cursors or off_record
            if not known and spool.session_name(path.stem):
                found.setdefault(path.stem, str(path))
    return list(found.items())


def cursors_of(path: str) -> tuple[str, str]:
    """Return the keys of a transcript's cursors: how far it was read, and how large it was then."""
    return cursor_key(path), size_key(path)


def cursor_key(path: str) -> str:
    """Return the key of the cursor that says how far a transcript was read."""
    return "t:" + hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()[:32]


def size_key(path: str) -> str:
    """Return the key of the cursor that says how large a transcript was when last read."""
    return "s" + cursor_key(path)


def size_of(path: str) -> int:
    """Return the size of a file in bytes; 0 where there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _younger(folder: Path, born: float) -> list[Path]:
    """Return transcripts of a folder that came to be after ``born`` (Unix seconds)."""
    try:
        found = [path for path in folder.glob("*.jsonl") if path.stat().st_mtime > born]
    except OSError:
        return []
    return [path for path in found if _first_time(path) > born]


def _first_time(path: Path) -> float:
    """Return when the first dated line of a transcript was written, 0 when nothing says so."""
    try:
        lines = read_lines(path, 0, 64 * 1024).lines
    except OSError:
        return 0.0
    for _, line in lines:
        stamp = line.get("timestamp")
        if isinstance(stamp, str):
            try:
                return datetime.fromisoformat(stamp).timestamp()
            except ValueError:
                continue
    return 0.0

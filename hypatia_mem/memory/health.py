"""What the worker looks at before it begins, and how a damaged memory is mended.

Nothing is thrown away: what cannot be read is moved to ``quarantine`` and stays there as evidence.
A damaged store is replaced by the best that can be had: itself without a log that cannot be read,
else the newest verified snapshot; then what was written since by hand, and not through the spool,
is taken out of the damaged file as far as it can be read, and the spool brings the turns again.
What was found and done is kept in ``health.json``, where ``doctor`` finds it; it holds no text.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError, IndexUnavailable

__all__ = ["FILE", "Finding", "check", "findings", "note", "recover"]

FILE = "health.json"
_KEPT = 50
_STALE_SECONDS = 3600.0
_LEFTOVERS = (
    f".*{paths.STORE}.*", ".spill*", ".proof-*", ".revising-*", ".erasing-*", ".forgotten-*",
    ".key-*", "snapshots/.*", "backups/.*",
)  # fmt: skip
_PID = re.compile(r"[.-](\d+)(?:\.[a-z]+)*\Z")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was wrong: what, in words what was done, and where the evidence is kept."""

    at: str  # ISO-8601, UTC
    what: str  # store | index | permissions | leftovers | newer | log
    says: str
    kept: str = ""


def check(home: Path) -> list[Finding]:
    """Look at everything but the store's rows, mend what is safe to mend; return what was found.

    Never raises: what cannot be mended is met again where it matters.
    """
    found: list[Finding] = []
    for look in (_permissions, _leftovers, _index, _lost_log):
        with contextlib.suppress(HypatiaError, OSError):
            found += look(home)
    for one in found:
        note(home, one)
    return found


def recover(home: Path) -> Finding:
    """Put the best that can be had in the place of a damaged store. Raises what the store raises.

    The damaged files are kept. A newer store than this program knows is not damaged: it never
    comes here.
    """
    from hypatia_mem.store import rescue, snapshot
    from hypatia_mem.store.connection import open_store

    kept = snapshot.restore(home)
    with open_store(home, write=True) as store:
        seq = store.ledger_seq()
    rescued = rescue.take_over(home, kept / paths.STORE, since=seq)
    says = f"the store was damaged; it was restored to change {seq}"
    if rescued:
        says += f", {rescued} later entries and statements were taken out of the damaged file"
    finding = _finding("store", f"{says}, and the turns since come again from the spool", kept)
    note(home, finding)
    return finding


def note(home: Path, finding: Finding) -> None:
    """Keep a finding for ``doctor``; a folder that cannot be written is no failure of this."""
    known = [asdict(one) for one in findings(home)]
    said = json.dumps([asdict(finding), *known][:_KEPT], indent=1)
    temporary = home / f".{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(said)
        temporary.replace(home / FILE)


def findings(home: Path, *, seconds: float | None = None) -> list[Finding]:
    """Return what was found, newest first; of the last ``seconds`` only, if given."""
    try:
        found = [Finding(**one) for one in json.loads((home / FILE).read_text("utf-8"))]
    except (OSError, ValueError, TypeError):
        return []
    if seconds is None:
        return found
    since = datetime.fromtimestamp(time.time() - seconds, UTC).isoformat()
    return [one for one in found if one.at >= since]


# ----------------------------------------------------------------------------------------------


def _finding(what: str, says: str, kept: Path | None = None) -> Finding:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Finding(at, what, says, "" if kept is None else str(kept))


def _permissions(home: Path) -> list[Finding]:
    """Close to others what they could read."""
    if os.name == "nt":
        return []
    loose = [path for path in _private(home) if _is_loose(path)]
    for path in loose:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
    if not loose:
        return []
    return [_finding("permissions", f"{len(loose)} files or folders could be read by others")]


def _private(home: Path) -> Iterator[Path]:
    yield home
    for folder in (home, home / "spool", home / "snapshots", home / "backups"):
        with contextlib.suppress(OSError):
            yield from (path for path in folder.iterdir() if not path.is_symlink())


def _is_loose(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return bool(found.st_mode & 0o077) and found.st_uid == os.getuid()


def _leftovers(home: Path) -> list[Finding]:
    """Remove what a process left behind that was killed: copies that never got their names."""
    gone = 0
    for pattern in _LEFTOVERS:
        for path in home.glob(pattern):
            if not _is_abandoned(path):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            gone += 1
    if not gone:
        return []
    return [_finding("leftovers", f"{gone} half-made files of a process that was killed went")]


def _is_abandoned(path: Path) -> bool:
    """Tell whether the process that made a file is gone: by its number, else by the file's age."""
    match = _PID.search(path.name)
    if match is None:
        return time.time() - path.stat().st_mtime > _STALE_SECONDS
    pid = int(match.group(1))
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return time.time() - path.stat().st_mtime > _STALE_SECONDS * 24


def _index(home: Path) -> list[Finding]:
    """Set an index aside that cannot be read; it is made again from the store."""
    from hypatia_mem.store.search import SearchIndex

    index = SearchIndex(home)
    if not (home / paths.INDEX / "meta.json").exists():
        return []
    try:
        index.seq()
        index.search("a", limit=1)
        index.keys("the", limit=1)
    except IndexUnavailable as error:
        if "there is no search index yet" in error.message:
            return []  # of an earlier format, or cut short: it is built anew in any case
    else:
        return []
    kept = _set_aside(home, home / paths.INDEX)
    index.clear()
    return [_finding("index", "the search index could not be read; it is made again", kept)]


def _set_aside(home: Path, path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    kept = home / paths.QUARANTINE / stamp
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.replace(kept / path.name)
    return kept


def _lost_log(home: Path) -> list[Finding]:
    """Tell when the store lacks changes that the index has seen: a log of it was removed."""
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.search import SearchIndex

    if not (home / paths.STORE).exists():
        return []
    seq = SearchIndex(home).seq()
    with open_store(home, write=False) as store:
        known = store.ledger_seq()
    if seq <= known:
        return []
    return [
        _finding(
            "log",
            f"the store ends at change {known} and the search index knows {seq}: a log or a newer"
            " file was lost; the turns come again from the spool",
        )
    ]

"""The file of an erasing that is not finished: everything that is needed to go on with it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hypatia_mem.errors import StoreError
from hypatia_mem.memory.erasing.places import JOB

__all__ = ["Job", "Place", "read_job", "remove_job", "write_job"]

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Place:
    """One row of the report: how many files and rows held it before and after; what was done."""

    name: str
    before: int
    after: int
    done: str


@dataclass(frozen=True, slots=True)
class Job:
    """An order to erase. ``done`` are the steps behind it; ``before`` is what the places held.

    ``busy`` (name, session) is what running sessions keep: nothing of such a session is touched.
    """

    op_id: str
    at: datetime
    actor: str
    channel: str
    asked: str
    names: tuple[str, ...]
    evidence: tuple[str, ...]
    statements: tuple[str, ...]
    titles: tuple[str, ...]
    summaries: tuple[str, ...]
    scopes: tuple[str, ...] | None
    pieces: tuple[str, ...]
    values: tuple[str, ...]
    sources: tuple[Mapping[str, Any], ...]
    before: Mapping[str, int]
    rows: Mapping[str, int]
    done: tuple[str, ...]
    prove: bool
    busy: tuple[tuple[str, str], ...] = ()

    @property
    def running(self) -> frozenset[str]:
        """Return the sessions that keep what they hold."""
        return frozenset(session for _, session in self.busy)


_LISTS = (
    "names", "evidence", "statements", "titles", "summaries", "pieces", "values", "sources", "done",
)  # fmt: skip


def read_job(home: Path) -> Job | None:
    """Return the unfinished erasing of a home, None when there is none.

    Raises StoreError when there is a file that cannot be read: it must not be taken for none.
    """
    path = home / JOB
    try:
        said = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path) from error
    try:
        if said.pop("v") != _VERSION:
            raise ValueError
        said["at"] = datetime.fromisoformat(said["at"])
        said["scopes"] = None if said["scopes"] is None else tuple(said["scopes"])
        said["busy"] = tuple((str(name), str(session)) for name, session in said.get("busy", ()))
        return Job(**{**said, **{name: tuple(said[name]) for name in _LISTS}})
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(path) from error


def write_job(home: Path, job: Job) -> None:
    """Keep a job (0600), on the disk before this returns. Raises StoreError."""
    path = home / JOB
    temporary = path.with_name(f".{JOB}-{os.getpid()}")
    said = {"v": _VERSION, **asdict(job), "at": job.at.isoformat()}
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass") as out:
            json.dump(said, out)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(
            f"the erasing could not be written down: {path} ({error.strerror})",
            hint="Free some space; then: hypatia-mem erase --resume, or begin again.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_job(home: Path) -> None:
    """Remove the file: the job is done, and its words go with it. Raises OSError."""
    (home / JOB).unlink(missing_ok=True)
    for left in home.glob(f".{JOB}-*"):
        left.unlink(missing_ok=True)


def _unreadable(path: Path) -> StoreError:
    return StoreError(
        f"an erasing that is not finished cannot be read: {path}",
        hint="Remove that file and erase again; what it had done so far stays done.",
    )

"""What was forgotten, kept a second time beside the store, so that no older copy brings it back.

The file ``forgotten`` holds the tombstones and the ledger's rows of forgettings: keyed digests, not
a word of what they stand for. It is written before the commit that it tells of, and the store notes
which writing of the file it has followed. A store that has followed another one (a snapshot from
before, a commit that did not come through, a new store in the place of a lost one) is brought up
to the file before anybody reads it: what was forgotten since is forgotten again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["FILE", "NOTE", "Buried", "follow", "is_behind", "is_kept", "keep", "read"]

FILE = "forgotten"
NOTE = "forgotten"  # the store's own note of which writing it has followed
_MAX_MARK = 200  # bytes; the mark is a hash


@dataclass(frozen=True, slots=True)
class Buried:
    """What the file says: its ``mark``, tombstones, and ledger rows of forgettings."""

    mark: str
    tombstones: tuple[Mapping[str, Any], ...]
    forgettings: tuple[Mapping[str, Any], ...]


def keep(store: Store, mark: str) -> None:
    """Write the file as this transaction sees the store. Raises OSError: then nothing is committed.

    Nothing is written where nothing was ever forgotten.
    """
    tombstones = store.run("SELECT * EXCLUDE (op_id), op_id FROM tombstone")
    forgettings = store.run(
        'SELECT "at", op_id, verb, target, before_digest FROM mutation'
        " WHERE starts_with(verb, 'forget ') ORDER BY seq"
    )
    path = store.home / FILE
    if not tombstones and not forgettings and not path.exists():
        return
    said = {"tombstones": tombstones, "forgettings": forgettings}
    temporary = path.with_name(f".{FILE}-{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(f"{mark}\n")
            json.dump(said, out, default=datetime.isoformat)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_kept(home: Path) -> bool:
    """Tell whether there is such a file."""
    return _mark(home) != ""


def is_behind(store: Store) -> bool:
    """Tell whether the file knows of forgettings that this store has not followed."""
    mark = _mark(store.home)
    return bool(mark) and store.meta(NOTE) != mark


def read(home: Path) -> Buried | None:
    """Return what the file says, None when there is none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        mark, _, text = (home / FILE).read_text("utf-8").partition("\n")
        said = json.loads(text)
        times = [
            [{**row, "at": datetime.fromisoformat(row["at"])} for row in said[name]]
            for name in ("tombstones", "forgettings")
        ]
        return Buried(mark, tuple(times[0]), tuple(times[1]))
    return None


def follow(store: Store) -> bool:
    """Forget again what the file says and the store does not; tell whether there was need to."""
    if not is_behind(store):
        return False
    found = read(store.home)
    if found is None:  # half a file says nothing; the next change writes it anew
        (store.home / FILE).unlink(missing_ok=True)
        return False
    now = datetime.now(UTC).replace(tzinfo=None)
    with store.transaction(Author(Channel.WORKER), now=now) as txn:
        txn.erase_again(found.forgettings)
        txn.forget_again(found.tombstones, found.forgettings)
    return True


def _mark(home: Path) -> str:
    try:
        with (home / FILE).open("rb") as file:
            return file.readline(_MAX_MARK).decode("ascii", "replace").strip()
    except OSError:
        return ""

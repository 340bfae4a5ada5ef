"""Where the ledger ended, noted beside the store under the memory's key.

A chain of hashes shows a change of one row. It does not show that somebody cut off the end and
computed every hash anew, for whoever can write the file can do that. The file ``seal`` holds the
sequence and the hash of the last row with a keyed digest of both; the key is not in the store. It
is written when a store that was changed by anybody but the capture is closed, and at the end of
the worker's work: no turn waits for it. So it may be behind the ledger and never ahead of it.

A seal that the store does not agree with is evidence and stays as it is. Whatever rightly puts
another store in the place of this one (a restore, a recovery) drops it before.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import StoreError
from hypatia_mem.store import keys

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.keys import Key

__all__ = ["FILE", "Seal", "disagrees", "drop", "is_known", "keep", "read"]

FILE = "seal"


@dataclass(frozen=True, slots=True)
class Seal:
    """A row of the ledger that was its last; ``digest`` was made of it with the key ``key_id``."""

    seq: int
    hash: str
    key_id: str
    digest: str


def keep(store: Store) -> bool:
    """Note where the ledger ends; tell whether that was done.

    It is not done where the note of before does not fit the ledger, which is for ``verify`` to
    find, nor where there is no room for it: what was changed is changed all the same.
    """
    seq, last = store.ledger_end()
    before = read(store.home)
    if not seq or (before is not None and (before.seq, before.hash) == (seq, last)):
        return False
    if before is not None and disagrees(store, before):
        return False
    key = keys.load_key(store.home)
    try:
        _write(store.home / FILE, Seal(seq, last, key.id, _digest(key, seq, last)))
    except OSError:
        return False
    return True


def read(home: Path) -> Seal | None:
    """Return the note, None where there is none, or half a one."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, OverflowError):
        said = json.loads((home / FILE).read_text("ascii"))
        return Seal(int(said["seq"]), str(said["hash"]), str(said["key_id"]), str(said["digest"]))
    return None


def disagrees(store: Store, seal: Seal) -> str:
    """Say how the ledger does not fit the note: ``seal``, ``rewound``, ``rewritten``; else ``""``.

    A note under a key that is lost can be asked by nobody, and says nothing.
    """
    key = _key_of(store.home, seal)
    if key is None:
        return ""
    if not hmac.compare_digest(_digest(key, seal.seq, seal.hash), seal.digest):
        return "seal"
    found = store.execute("SELECT hash FROM mutation WHERE seq = ?", [seal.seq]).fetchone()
    if found is None:
        return "rewound"
    return "" if found[0] == seal.hash else "rewritten"


def is_known(home: Path, seal: Seal) -> bool:
    """Tell whether the key is still there with which the note was made."""
    return _key_of(home, seal) is not None


def drop(home: Path) -> None:
    """Forget where the ledger ended: another store takes its place. Raises OSError."""
    (home / FILE).unlink(missing_ok=True)


def _key_of(home: Path, seal: Seal) -> Key | None:
    with contextlib.suppress(StoreError):  # there is no key at all
        return next((key for key in keys.known_keys(home) if key.id == seal.key_id), None)
    return None


def _digest(key: Key, seq: int, last: str) -> str:
    return key.digest("ledger", str(seq), last)


def _write(path: Path, seal: Seal) -> None:
    temporary = path.with_name(f".{FILE}-{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            os.write(fd, json.dumps(asdict(seal)).encode("ascii"))
        finally:
            os.close(fd)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""The ledger: append-only, hash-chained, without a word of what was stored.

Each row's hash is SHA-256 over the hash before it and its own fields, so that an edit, an
insertion, a gap or a cut is found by walking the chain. Targets are the names of messages,
sessions and projects as they are; a name that a person's words made (``rule:...``) goes in as a
keyed digest, so that erasing the entry leaves nothing of it here.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hypatia_mem.errors import StoreError

__all__ = [
    "GENESIS",
    "KEY_BYTES",
    "Key",
    "adopt_key",
    "chain_hash",
    "key_of",
    "load_key",
    "verify_rows",
]

GENESIS = "0" * 64
KEY_BYTES = 32
_FIELDS = (
    "seq", "at", "op_id", "actor", "channel", "verb", "target", "before_digest", "after_digest",
    "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """The secret of one memory; digests made with it mean nothing elsewhere."""

    id: str
    secret: bytes

    def digest(self, *parts: str) -> str:
        """Return the keyed digest of some text, in hex."""
        data = "\x1f".join(parts).encode("utf-8", "replace")
        return hmac.new(self.secret, data, hashlib.sha256).hexdigest()

    def document_id(self, catalog: str, name: str) -> str:
        """Return by what the search index knows a name when the name itself must not be kept."""
        return self.digest("document", catalog, name)[:32]


def load_key(home: Path) -> Key:
    """Return the memory's key, made on first use (``key``, 0600). Raises StoreError."""
    path = home / "key"
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        secret = _make_key(path)
    except OSError as error:
        raise StoreError(f"the memory's key cannot be read: {path} ({error.strerror})") from error
    if len(secret) < KEY_BYTES:
        raise StoreError(
            f"the memory's key is damaged: {path}",
            hint="Put the file back from a backup; without it, what was forgotten is not known.",
        )
    return key_of(secret)


def key_of(secret: bytes) -> Key:
    """Return the key that a secret makes."""
    return Key(hashlib.sha256(b"id" + secret).hexdigest()[:12], secret)


def adopt_key(home: Path, secret: bytes) -> None:
    """Let a memory that has written nothing yet go on under another's key. Raises OSError.

    Only so do the digests of what was forgotten there mean anything here.
    """
    path = home / "key"
    temporary = path.with_name(f".key-{os.getpid()}")
    _write_secret(temporary, secret)
    temporary.replace(path)


def chain_hash(previous: str, row: dict[str, Any]) -> str:
    """Return the hash of a ledger row that follows one with the hash ``previous``."""
    made = hashlib.sha256(previous.encode())
    for field in _FIELDS:
        value = row[field]
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        made.update(f"\x1f{field}={text}".encode("utf-8", "replace"))
    return made.hexdigest()


def verify_rows(rows: Iterable[dict[str, Any]]) -> int | None:
    """Return the sequence number of the first row that does not fit the chain, None if all do."""
    previous, expected = GENESIS, 1
    for row in rows:
        if row["seq"] != expected or row["prev_hash"] != previous:
            return int(row["seq"])
        if chain_hash(previous, row) != row["hash"]:
            return int(row["seq"])
        previous, expected = row["hash"], expected + 1
    return None


def _make_key(path: Path) -> bytes:
    secret = os.urandom(KEY_BYTES)
    temporary = path.with_name(f".key-{os.getpid()}")
    _write_secret(temporary, secret)
    try:
        os.link(temporary, path)  # fails if another process was first: its key is the key
    except FileExistsError:
        return path.read_bytes()
    except OSError:
        temporary.replace(path)
        return secret
    finally:
        temporary.unlink(missing_ok=True)
    return secret


def _write_secret(path: Path, secret: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, secret)
        os.fsync(fd)
    finally:
        os.close(fd)

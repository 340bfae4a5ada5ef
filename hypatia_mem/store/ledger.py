"""The ledger: append-only, hash-chained, without a word of what was stored.

Each row's hash is SHA-256 over the hash before it and its own fields, so that an edit, an
insertion, a gap or a cut is found by walking the chain. Targets are the names of messages,
sessions and projects as they are; a name that a person's words made (``rule:...``) goes in as a
keyed digest, so that erasing the entry leaves nothing of it here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hypatia_mem.store.keys import KEY_BYTES, Key, adopt_key, key_of, load_key

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
_FIELDS = (
    "seq", "at", "op_id", "actor", "channel", "verb", "target", "before_digest", "after_digest",
    "reason",
)  # fmt: skip


def chain_hash(previous: str, row: dict[str, Any]) -> str:
    """Return the hash of a ledger row that follows one with the hash ``previous``."""
    said = [previous]
    for field in _FIELDS:
        value = row[field]
        said.append(f"{field}={value.isoformat() if isinstance(value, datetime) else value}")
    return hashlib.sha256("\x1f".join(said).encode("utf-8", "replace")).hexdigest()


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

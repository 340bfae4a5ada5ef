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
    "NOTE",
    "Key",
    "adopt_key",
    "chain_hash",
    "key_of",
    "load_key",
    "verify_rows",
]

GENESIS = "0" * 64
NOTE = "ledger"  # the cursor that says how many rows there are, so that a cut end is seen


def chain_hash(previous: str, row: dict[str, Any]) -> str:
    """Return the hash of a ledger row that follows one with the hash ``previous``."""
    at = row["at"]
    said = (
        f"{previous}\x1fseq={row['seq']}\x1fat={at.isoformat() if isinstance(at, datetime) else at}"
        f"\x1fop_id={row['op_id']}\x1factor={row['actor']}\x1fchannel={row['channel']}"
        f"\x1fverb={row['verb']}\x1ftarget={row['target']}"
        f"\x1fbefore_digest={row['before_digest']}\x1fafter_digest={row['after_digest']}"
        f"\x1freason={row['reason']}"
    )
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


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

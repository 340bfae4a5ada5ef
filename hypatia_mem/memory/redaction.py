"""Redacting at the memory's own borders: what is recalled, what leaves, what comes in.

The hook redacts before anything is stored; this is for what got in past it.
"""

from __future__ import annotations

from collections.abc import Collection

from hypatia_mem.capture.cleaning import without_secrets

__all__ = ["secretless", "without_secrets"]


def secretless(value: object, kept: Collection[str] = ()) -> object:
    """Return plain data (what JSON knows) with every text in it redacted, and every name.

    What stands under one of the names ``kept`` is an id, and stays.
    """
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, list | tuple):
        return [secretless(item, kept) for item in value]
    if isinstance(value, dict):
        return {
            without_secrets(key) if isinstance(key, str) else key: item
            if key in kept
            else secretless(item, kept)
            for key, item in value.items()
        }
    return value

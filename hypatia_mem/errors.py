"""Every failure a person can meet, as a tree of sentences.

::

    HypatiaError                 1   base; never raised itself
    ├── UsageError               2   the command line or a value on it is wrong
    ├── ExpressionError          1   a JSE expression is wrong; carries the operand's path
    ├── NotFound                 1   the named thing is not in the store
    ├── Conflict                 1   it exists already, or the change contradicts what is there
    │   ├── StaleEdit            1   the words changed since they were read
    │   └── SessionRuns          1   a running session stands on it
    ├── Refused                  1   the channel may not do this, or the value was forgotten before
    ├── StoreError               1   the store cannot be used
    │   ├── StoreBusy            5   another process holds the store longer than the deadline
    │   ├── StoreCorrupt         6   the file is damaged (the worker sets it aside and restores)
    │   └── StoreTooNew          7   written by a newer hypatia-mem
    ├── IndexUnavailable         1   the search index is missing or being rebuilt
    ├── ShelfError               1   a shelf is unknown, cannot be opened or cannot be registered
    ├── EmbeddingError           1   vectors are off, missing or do not fit together
    │   └── ModelUnavailable     1   the model asked for is not installed here
    ├── ConfigError              2   a setting is unknown or out of range
    └── InstallError             1   settings or plugin files could not be changed safely

The number is the exit code of the command line. A message says what happened, where, and what
to do about it; it never holds the text of a message or a secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ConfigError",
    "Conflict",
    "EmbeddingError",
    "ExpressionError",
    "HypatiaError",
    "IndexUnavailable",
    "InstallError",
    "ModelUnavailable",
    "NotFound",
    "Refused",
    "SessionRuns",
    "ShelfError",
    "StaleEdit",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreTooNew",
    "UsageError",
    "one_of",
]


class HypatiaError(Exception):
    """Base of every error this program raises on purpose."""

    exit_code = 1
    kind = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep the sentence and, apart from it, the sentence that says what to do."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return what happened, then what to do."""
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(HypatiaError):
    """The command line, or a value on it, is wrong."""

    exit_code = 2
    kind = "validation error"


class ExpressionError(HypatiaError):
    """A JSE expression is wrong; ``path`` names the operand, as in ``$and[1]``."""

    kind = "JSE parse error"

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        """Prefix the message with the path of the operand."""
        super().__init__(f"at {path}: {message}" if path else message, hint=hint)
        self.path = path


class NotFound(HypatiaError):
    """The named thing is not in the store."""

    kind = "not found"


class Conflict(HypatiaError):
    """It exists already, or the change contradicts what is there."""

    kind = "validation error"


class ChangedLater(Conflict):
    """An operation cannot be taken back because of a later one, whose id is ``operation``."""

    def __init__(self, message: str, *, hint: str = "", operation: str = "") -> None:
        """Keep which operation stands in the way."""
        super().__init__(message, hint=hint)
        self.operation = operation


class StaleEdit(Conflict):
    """What is to be edited changed since it was read; carries all three states of the words."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        base: str = "",
        theirs: str = "",
        yours: str = "",
        difference: str = "",
    ) -> None:
        """Keep what was read, what is there now, what was wanted, and how they differ as text."""
        super().__init__(message, hint=hint)
        self.base = base
        self.theirs = theirs
        self.yours = yours
        self.difference = difference


class SessionRuns(Conflict):
    """A running session stands on what is to be changed: it can be changed when that has ended."""


class Refused(HypatiaError):
    """The channel may not do this, or the value was rejected before (a tombstone)."""

    kind = "refused"


class StoreError(HypatiaError):
    """The store cannot be used."""

    kind = "storage error"


class StoreBusy(StoreError):
    """Another process holds the store's lease longer than the deadline."""

    exit_code = 5


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    exit_code = 6


class StoreTooNew(StoreError):
    """The store was written by a newer hypatia-mem."""

    exit_code = 7


class IndexUnavailable(HypatiaError):
    """The search index is missing, unreadable or being rebuilt."""

    kind = "search error"


class ShelfError(HypatiaError):
    """A shelf is unknown, cannot be opened, or cannot be registered."""

    kind = "shelf error"


class EmbeddingError(HypatiaError):
    """Vectors are off, missing, or do not fit together."""

    kind = "embedding error"


class ModelUnavailable(EmbeddingError):
    """The model asked for is not installed here."""

    kind = "model unavailable"


class ConfigError(HypatiaError):
    """A setting is unknown or its value out of range."""

    exit_code = 2
    kind = "config error"


class InstallError(HypatiaError):
    """Settings or plugin files could not be changed safely; nothing was changed."""

    kind = "install error"


def one_of(text: str, allowed: Iterable[str], what: str) -> str:
    """Return ``text`` if it is one of a closed set of words; ``what`` names its place.

    Raises UsageError, which names them all and the nearest.

    >>> one_of("rule", ("rule", "taboo"), "--kind")
    'rule'
    """
    words = list(allowed)
    if text in words:
        return text
    near = difflib.get_close_matches(text.casefold(), words, 1, 0.5)
    listed = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)
    raise UsageError(
        f"{what} is {listed}, not {text[:40]!a}",
        hint=f"Did you mean {near[0]}?" if near else "",
    )

"""What a summariser is: items in, a draft out, failures of known kinds. Nothing else is agreed.

A summariser sees no store, no lease and no clock, so it may take as long as it needs. Offsets of a
``Span`` are into ``Item.text``, which has the length of the stored text: what may not be summarised
is blanked there, never cut out, so that every offset holds in the store too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from hypatia_mem.errors import HypatiaError

if TYPE_CHECKING:
    from hypatia_mem.memory.summarise.units import Unit

__all__ = [
    "Draft",
    "FailureKind",
    "Item",
    "Request",
    "Sentence",
    "Span",
    "Summariser",
    "SummaryFailed",
    "prompt_digest",
]


class FailureKind(StrEnum):
    """Why there is no summary, and with it whether trying again can help."""

    EMPTY = "empty"  # nothing left once reasoning was taken out
    VERBATIM = "verbatim"  # the sources put together again, not a summary of them
    REFUSAL = "refusal"  # the model declined
    TRUNCATED = "truncated"  # it was cut off in the middle
    TOO_LONG = "too-long"  # more than the summariser's window takes
    INVENTED = "invented"  # no sentence of it is said by any source
    MALFORMED = "malformed"  # not in the form that was asked for
    AUTH = "auth"  # no key, or one that is not accepted
    SETTINGS = "settings"  # a model or an address that is not known there, a program that is not
    RATE = "rate"  # asked to wait
    UNREACHABLE = "unreachable"  # no connection to it
    UNAVAILABLE = "unavailable"  # a fault on its side
    TIMEOUT = "timeout"  # no answer in time
    CAPPED = "capped"  # the user's own limit on spending
    CANCELLED = "cancelled"  # somebody asked us to stop
    NOT_ASKED = "not-asked"  # it does not condense by itself

    @property
    def passing(self) -> bool:
        """Tell whether the same request may succeed later without anybody doing anything."""
        return self not in (FailureKind.AUTH, FailureKind.SETTINGS, FailureKind.TOO_LONG)

    @property
    def blames_batch(self) -> bool:
        """Tell whether it may lie in what was to be condensed, so that it is not tried for ever."""
        return self not in _NOT_THE_BATCH

    @property
    def blames_summariser(self) -> bool:
        """Tell whether the next batch would fare no better now."""
        return self in _PAUSING


_PAUSING = frozenset(
    {
        FailureKind.AUTH, FailureKind.SETTINGS, FailureKind.RATE, FailureKind.UNREACHABLE,
        FailureKind.UNAVAILABLE, FailureKind.TIMEOUT, FailureKind.CAPPED,
    }
)  # fmt: skip
# A fault or silence on its side may be about this very batch: it counts against both.
_NOT_THE_BATCH = frozenset(
    {*_PAUSING, FailureKind.CANCELLED, FailureKind.NOT_ASKED}
    - {FailureKind.UNAVAILABLE, FailureKind.TIMEOUT}
)


class SummaryFailed(HypatiaError):
    """A summariser gave nothing that may be stored; its items stay as they were."""

    kind = "summary error"

    def __init__(
        self, failure: FailureKind, message: str, *, hint: str = "", retry_after: float = 0.0
    ) -> None:
        """Keep the kind of failure and, in seconds, how long the other side asked to wait."""
        super().__init__(message, hint=hint)
        self.failure = failure
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of an item's text, in characters."""

    item: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be summarised: a message, or a summary of the level below."""

    name: str
    text: str
    speaker: str = ""  # user, assistant; "" for a summary, whose sentences say who spoke
    session_id: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class Request:
    """A batch in order, and how long its summary may be.

    ``idf`` weighs terms (see ``words``) by how rare they are in the whole store; an unknown one
    counts as the rarest.
    """

    level: int
    items: tuple[Item, ...]
    max_words: int
    idf: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Return the units of all items; they are cut once for all who ask."""
        from hypatia_mem.memory.summarise.units import units_of

        return tuple(unit for n, item in enumerate(self.items) for unit in units_of(n, item))


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a summary.

    Without spans it is the summariser's own, and marked as inferred; so is one that stands on a
    sentence which was (``inferred``).
    """

    text: str
    spans: tuple[Span, ...] = ()
    speaker: str = ""
    session_id: str = ""
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """What a summariser made: its sentences in order, and words that could name it, best first."""

    sentences: tuple[Sentence, ...]
    topics: tuple[str, ...] = ()


class Summariser(Protocol):
    """Anything that condenses a batch.

    ``producer`` names it and its version or model, ``digest`` the prompt (or the rules) it works
    by: both are recorded on every summary. ``window`` is how many tokens of text it takes at once.
    """

    @property
    def producer(self) -> str:
        """Return who it is, for example ``extractive-1``."""

    @property
    def digest(self) -> str:
        """Return the digest of the prompt or the rules it follows."""

    @property
    def window(self) -> int:
        """Return how many tokens of items it can be handed."""

    def summarise(self, request: Request) -> Draft:
        """Return a draft; raises SummaryFailed."""


def prompt_digest(prompt: str) -> str:
    """Return the short digest under which a prompt is recorded."""
    return hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:12]

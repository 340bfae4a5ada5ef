"""A summary's name: a few words of what it is about, as the skill has it (``api-design-retry``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hypatia_mem.memory.summarise import words

__all__ = ["slug_of", "suggest", "unique"]

_WORDS = 4
_MOST = 60  # characters
# Names that say nothing; a slug made of these alone is none.
_EMPTY = (
    "summary untitled session message messages conversation discussion talk chat notes note misc "
    "general various topic topics update updates user assistant text content the and of level "
    "batch memory new"
)
_GENERIC = frozenset(_EMPTY.split())
_SLUG = re.compile(r"[^\w]+", re.UNICODE)


def suggest(sentences: Sequence[str], idf: Mapping[str, float], day: str) -> str:
    """Return a name from what a summary's sentences say; ``talk-<day>`` when they say nothing.

    ``day`` is when it was said, as ``2026-11-30``.
    """
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for sentence in sentences:
        for term, word in words.surface(sentence).items():
            counts[term] += 1
            written.setdefault(term, word)
    rarest = idf.get("") or max(idf.values(), default=1.0)
    names = [term for term in counts if _names(written.get(term, term))]
    best = sorted(names, key=lambda t: (-(counts[t] ** 0.8) * idf.get(t, rarest), t))[:_WORDS]
    order = {term: n for n, term in enumerate(counts)}
    told = slug_of(" ".join(written.get(t, t) for t in sorted(best, key=order.__getitem__)))
    return told or f"talk-{day}"


def slug_of(text: str) -> str:
    """Return a text as a name: lower case, words joined by ``-``; "" when it says nothing.

    >>> slug_of("API design: the retry queue!"), slug_of("Summary"), slug_of("连接池 超时")
    ('api-design-the-retry-queue', '', '连接池-超时')
    """
    parts = [part.strip("_") for part in _SLUG.split(text.lower())]
    parts = [part for part in parts if part]
    if not any(_names(part) for part in parts):
        return ""
    slug = "-".join(parts)
    return slug if len(slug) <= _MOST else slug[:_MOST].rpartition("-")[0] or slug[:_MOST]


def unique(name: str, taken: Callable[[str], bool]) -> str:
    """Return the name, or the name with the first number behind it that is free.

    >>> unique("retry", {"retry", "retry-2"}.__contains__)
    'retry-3'
    """
    if not taken(name):
        return name
    number = 2
    while taken(f"{name}-{number}"):
        number += 1
    return f"{name}-{number}"


def _names(word: str) -> bool:
    low = word.lower()
    least = 3 if low.isascii() else 2
    return least <= len(low) <= 30 and not low.isdigit() and low not in _GENERIC

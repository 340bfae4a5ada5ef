"""Pairs of memories that say the opposite of each other, found by their words. Pure.

Two say the opposite when their telling words are the same and one forbids what the other asks for:
"always mock the database", "never mock the database". What is worded differently is not found; this
is for the review, which a person does, and never decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hypatia_mem.model import Entry

__all__ = ["opposites"]

_NOT = frozenset(
    {
        "never", "not", "no", "don't", "dont", "doesn't", "isn't", "mustn't", "cannot", "can't",
        "won't", "without", "avoid", "stop", "niemals", "nie", "nicht", "kein", "keine", "jamais",
        "pas", "nunca",
    }
)  # fmt: skip
_EMPTY = frozenset(
    {
        "always", "must", "should", "shall", "please", "do", "does", "a", "an", "the", "to", "of",
        "is", "are", "be", "it", "we", "you", "i", "immer", "bitte", "der", "die", "das",
        "toujours", "le", "la", "les", "siempre", "el", "los", "las",
    }
)  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\s\w]", re.UNICODE)


def opposites(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """Return the pairs, each once; both share a scope.

    >>> said = {"a": "always mock it", "b": "Never mock it.", "c": "mock nothing"}
    >>> made = [Entry(name, words, scopes=("app",)) for name, words in said.items()]
    >>> [(one.name, other.name) for one, other in opposites(made)]
    [('a', 'b')]
    """
    by_words: dict[frozenset[str], list[tuple[bool, Entry]]] = {}
    for entry in entries:
        words, negative = _said(entry)
        if words:
            by_words.setdefault(words, []).append((negative, entry))
    return [
        (one, other)
        for group in by_words.values()
        for place, (negative, one) in enumerate(group)
        for opposite, other in group[place + 1 :]
        if negative is not opposite and set(one.scopes) & set(other.scopes)
    ]


def _said(entry: Entry) -> tuple[frozenset[str], bool]:
    """Return the telling words of an entry, and whether it says no to them."""
    words = [word.replace("’", "'") for word in _WORD.findall(entry.content.casefold())]
    nots = sum(word in _NOT for word in words)
    negative = entry.kind == "taboo" or nots % 2 == 1
    telling = frozenset(
        word for word in words if word[0].isalnum() and word not in _NOT and word not in _EMPTY
    )
    return telling, negative

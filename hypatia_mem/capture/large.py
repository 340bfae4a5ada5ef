"""What a large text can hold, found in few passes over it: for prompts that carry somebody's log.

Imported for those only. Nothing here says that something is there, only that it cannot be.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LONGEST", "said", "tokens_in"]

LONGEST = 32  # bytes that a token's prefix has at most
_RARE = 64  # a byte is rare when it is no more than every so-manyth
_ENDS = (b"-", b"_", b".", b"/", b"=", b"$")  # of most prefixes


def said(literals: Sequence[bytes], words: bytes) -> list[bytes]:
    """Return the literals that a text of these words can hold, to go by the longest word of each.

    >>> said([b"make a note", b"rule"], b"the notes of a day")
    [b'make a note']
    """
    longest = [max(literal.split(), key=len) for literal in literals]
    there = {word for word in set(longest) if word in words}
    return [literal for literal, word in zip(literals, longest, strict=True) if word in there]


def tokens_in(
    tokens: Sequence[tuple[bytes, str, str, int]], words: bytes
) -> Iterator[tuple[bytes, str, str, int]]:
    """Yield the tokens whose prefix may be in a text of these words.

    What ends in ``-``, ``_`` and so on is sought in what stands before those.
    """
    parts: dict[bytes, bytes] = {}
    for end in _ENDS:
        if words.count(end) * _RARE <= len(words):
            parts[end] = b" ".join(_before(words, end))
    for row in tokens:
        word = max(row[0].split(), key=len)
        if word in parts.get(word[-1:], words):
            yield row


def _before(words: bytes, end: bytes) -> set[bytes]:
    found = set()
    at = words.find(end)
    while at >= 0:
        found.add(words[max(0, at - LONGEST) : at + 1])
        at = words.find(end, at + 1)
    return found

"""Which of a list is meant: ``1-5,8,10-`` in places counted from 1. Pure."""

from __future__ import annotations

import re

from hypatia_mem.errors import UsageError

__all__ = ["chosen"]

_PART = re.compile(r"([0-9]{1,9})?\s*(-)?\s*([0-9]{1,9})?")
_EXAMPLE = "Example: 1-5,8,10- takes the first five, the eighth, and all from the tenth on."


def chosen(text: str, count: int, what: str = "the list") -> list[int]:
    """Return the places that ``text`` names among ``count``, in order and each once.

    ``3``, ``2-5``, ``-4`` (up to the fourth), ``10-`` (from the tenth on), ``all``; separated by
    commas. Raises UsageError for what is none of these, runs backwards or is not there.

    >>> chosen("1-3,8,10-", 11), chosen("-2", 5), chosen(" 4 , 4,3-4 ", 4), chosen("all", 2)
    ([1, 2, 3, 8, 10, 11], [1, 2], [3, 4], [1, 2])
    """
    if text.strip().casefold() == "all":
        return list(range(1, count + 1))
    places: set[int] = set()
    for part in text.split(","):
        places.update(_span(part.strip(), count, what))
    return sorted(places)


def _span(part: str, count: int, what: str) -> range:
    match = _PART.fullmatch(part)
    if match is None or not (match[1] or match[3]) or not (match[2] or match[1]):
        raise UsageError(f"{part[:40]!a} selects nothing", hint=_EXAMPLE)
    if match[1] and match[3] and not match[2]:
        raise UsageError(f"{part[:40]!a} selects nothing", hint=_EXAMPLE)
    first = int(match[1]) if match[1] else 1
    last = int(match[3]) if match[3] else count if match[2] else first
    if match[1] and match[3] and first > last:
        raise UsageError(f"{part!a} runs backwards", hint=f"Write {last}-{first}.")
    outside = next((place for place in (first, last) if not 1 <= place <= count), None)
    if outside is not None:
        noun = "is 1" if count == 1 else f"are {count}"
        raise UsageError(f"there is no place {outside} in {what}: there {noun}", hint=_EXAMPLE)
    return range(first, last + 1)

"""The arithmetic of the cascade: how much makes a batch, a part of one, a tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["slices", "split", "tiers"]


def slices(chars: Sequence[int], trigger: int, keep: int, room: int | None = None) -> list[int]:
    """Return how many items each batch takes, the oldest first; the newest ``keep`` stay.

    A batch begins while at least ``trigger`` tokens are left, kept ones counted too, and takes
    items until it has as many. Where there was one, another takes what is beyond ``room`` tokens,
    so that it is a while until the next is due.

    >>> slices([400] * 10, 300, 0), slices([400] * 3, 300, 1), slices([400] * 2, 300, 0)
    ([3, 3, 3], [2], [])
    >>> slices([400] * 5, 300, 0, room=100), slices([400] * 2, 300, 0, room=100)
    ([3, 1], [])
    """
    found: list[int] = []
    left = sum(chars)
    at, end = 0, len(chars) - keep
    while at < end and left >= 4 * trigger:
        start, taken = at, 0
        while at < end and taken < 4 * trigger:
            taken += chars[at]
            at += 1
        left -= taken
        found.append(at - start)
    start = at
    while found and room is not None and at < end and left > 4 * room:
        left -= chars[at]
        at += 1
    return [*found, at - start] if at > start else found


def split(tokens: Sequence[int], window: int, most: int = 0) -> list[int]:
    """Return how many items each part takes so that each fits the window, as even as it goes.

    An item larger than the window is a part of its own. ``most`` items a part, unless it is 0.

    >>> split([10, 10, 10, 10], 25), split([50], 25), split([10, 10], 25), split([1] * 5, 25, 2)
    ([2, 2], [1], [2], [2, 2, 1])
    """
    total = sum(tokens)
    parts = max(1, -(-total // max(1, window)), -(-len(tokens) // most) if most else 1)
    share = total / parts
    found: list[int] = []
    count = taken = 0
    for size in tokens:
        full = taken + size > window or taken + size / 2 > share
        if count and (full or (most and count >= most)):
            found.append(count)
            count = taken = 0
        count += 1
        taken += size
    return [*found, count] if count else found


def tiers(first: int, unlinked: Mapping[int, int], batch: int, highest: int) -> dict[int, int]:
    """Return how many summaries of each level come of ``first`` new ones of level 1.

    ``unlinked`` are those of each level that none above covers yet.

    >>> tiers(256, {}, 16, 8), tiers(1, {1: 15, 2: 15}, 16, 8), tiers(1, {1: 14}, 16, 8)
    ({1: 256, 2: 16, 3: 1}, {1: 1, 2: 1, 3: 1}, {1: 1})
    """
    made = {1: first} if first else {}
    new = first
    for level in range(2, highest + 1):
        new = (unlinked.get(level - 1, 0) + new) // batch
        if new:
            made[level] = new
        elif not any(count >= batch for at, count in unlinked.items() if at >= level):
            break
    return made

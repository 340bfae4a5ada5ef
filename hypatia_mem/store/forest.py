"""Branches as a tree: what each one reads, and what of its siblings it does not. Pure.

A branch shares the turns of another session up to a place. A message has one *place* in every
branch that reads it: its turn, plus the place at which its own session branched off.

Who is a branch is told its ancestors and its own turns, never those of a sibling behind the point
at which they part. Who is none is told every branch, until a person makes one the head: from then
on the head, and those that somebody went on in since.

Chains are walked in memory: there are few branches, and DuckDB 1.5 loses rows of recursive queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from hypatia_mem.store.hidden import Turns

__all__ = ["FAR", "Branch", "Forest", "Span", "gaps_of", "gaps_text", "runs", "shared"]

FAR = 2**30  # behind every turn that can be


@dataclass(frozen=True, slots=True)
class Branch:
    """A session that branched off another one, or from which one did."""

    id: str
    project: str = ""
    forked_from: str = ""
    forked_at: int = 0
    gaps: frozenset[int] = frozenset()
    reason: str = ""
    headed_at: datetime | None = None
    turns: int = 0
    updated_at: datetime | None = None
    pinned: bool = False


class Span(NamedTuple):
    """What is read of one session: its turns up to ``last`` (None: all), without some places."""

    session: str
    base: int
    last: int | None
    gaps: frozenset[int]


class Forest:
    """All branches there are, by id."""

    def __init__(self, found: Iterable[Branch], went_on: Mapping[str, datetime]) -> None:
        """Take the branches, and of each family with a head when a turn was last said in each."""
        self._all = {one.id: one for one in found}
        self._went_on = went_on

    def __contains__(self, session_id: str) -> bool:
        """Tell whether a session is a branch, or has one."""
        return session_id in self._all

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all branches and of what they branched off."""
        return iter(self._all)

    def branch(self, session_id: str) -> Branch:
        """Return what is known of a session; of one that is no branch, its id."""
        return self._all.get(session_id) or Branch(session_id)

    def base(self, session_id: str) -> int:
        """Return the place behind which a session's own turns are."""
        return self.branch(session_id).forked_at

    def chain(self, session_id: str) -> list[Branch]:
        """Return a branch and what it stands on, the root first. A circle is left where it ends."""
        found = [self.branch(session_id)]
        seen = {session_id}
        while (above := found[-1].forked_from) and above not in seen:
            seen.add(above)
            found.append(self.branch(above))
        return found[::-1]

    def family(self, session_id: str) -> list[tuple[int, Branch]]:
        """Return a branch's whole family as a tree: (depth, branch), each behind its parent."""
        below: dict[str, list[Branch]] = {}
        for one in self._all.values():
            below.setdefault(one.forked_from, []).append(one)
        made: list[tuple[int, Branch]] = []
        waiting = [(0, self.chain(session_id)[0])]
        seen: set[str] = set()
        while waiting:
            depth, one = waiting.pop()
            if one.id in seen:
                continue
            seen.add(one.id)
            made.append((depth, one))
            under = sorted(below.get(one.id, ()), key=lambda b: (b.forked_at, b.id), reverse=True)
            waiting += [(depth + 1, each) for each in under]
        return made

    def children(self, session_id: str) -> list[Branch]:
        """Return what branched off a session itself."""
        return [one for one in self._all.values() if one.forked_from == session_id]

    def spans(self, session_id: str) -> list[Span]:
        """Return what a branch reads, in order: its ancestors' turns up to where it parts, its own.

        >>> a, b = Branch("a"), Branch("b", forked_from="a", forked_at=3)
        >>> [tuple(span)[:3] for span in Forest([a, b], {}).spans("b")]
        [('a', 0, 3), ('b', 3, None)]
        """
        found: list[Span] = []
        until: int | None = None
        gaps: frozenset[int] = frozenset()
        for one in reversed(self.chain(session_id)):
            if until is None or until > one.forked_at:
                last = None if until is None else until - one.forked_at
                found.append(Span(one.id, one.forked_at, last, gaps))
            if one.forked_from:
                until = one.forked_at if until is None else min(until, one.forked_at)
                gaps |= one.gaps
        return found[::-1]

    def hidden(self, session_id: str) -> list[Turns]:
        """Return the turns of its family that a branch does not read."""
        read = {span.session: span for span in self.spans(session_id)}
        return [
            turns for _, one in self.family(session_id) for turns in _unread(one, read.get(one.id))
        ]

    def head(self, session_id: str) -> str:
        """Return the head of a session's family, ``""`` where nobody made one the head."""
        made = [one for _, one in self.family(session_id) if one.headed_at is not None]
        return max(made, key=lambda one: (str(one.headed_at), one.id)).id if made else ""

    def in_sight(self, session_id: str) -> list[str]:
        """Return which branches of a family whoever is none of them is told."""
        family = [one for _, one in self.family(session_id)]
        head = self.head(session_id)
        if not head:
            return [one.id for one in family]
        since = self.branch(head).headed_at
        on_the_way = {span.session for span in self.spans(head)}
        return [
            one.id
            for one in family
            if one.id == head
            or (
                (at := self._went_on.get(one.id)) is not None
                and since is not None
                and at > since
                and (one.id not in on_the_way or self._is_past(one, head))
            )
        ]

    def _is_past(self, one: Branch, head: str) -> bool:
        """Tell whether an ancestor of the head has turns that the head does not read."""
        last = next(span.last for span in self.spans(head) if span.session == one.id)
        return last is not None and one.turns > last

    def tells(self, session_id: str, asker: str) -> bool:
        """Tell whether ``asker`` may be told how a session ends: it itself, of its own family."""
        if session_id not in self._all or session_id == asker:
            return True
        family = {one.id for _, one in self.family(session_id)}
        return asker not in family and session_id in self.in_sight(session_id)

    def set_aside(self) -> list[Turns]:
        """Return the turns that whoever is no branch is not told."""
        found: list[Turns] = []
        done: set[str] = set()
        for one in self._all:
            if one in done:
                continue
            done.update(each.id for _, each in self.family(one))
            if self.head(one):
                found += _in_all([self.hidden(each) for each in self.in_sight(one)])
        return found

    def unseen_by(self, session_id: str) -> list[Turns]:
        """Return the turns that a session is not told, be it a branch or none."""
        if session_id not in self._all:
            return self.set_aside()
        own = {one.id for _, one in self.family(session_id)}
        others = [turns for turns in self.set_aside() if turns.session not in own]
        return [*self.hidden(session_id), *others]


def shared(forked_at: int, gaps: str) -> int:
    """Return how many messages a branch shares."""
    return max(0, forked_at - len(gaps_of(gaps)))


def gaps_of(text: str) -> frozenset[int]:
    """Return the places that a text of ranges names.

    >>> sorted(gaps_of("3-5,9"))
    [3, 4, 5, 9]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), int(first) + FAR) + 1))
    return frozenset(found)


def gaps_text(places: Iterable[int]) -> str:
    """Return places as a text of ranges.

    >>> gaps_text([9, 3, 4, 5])
    '3-5,9'
    """
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


# --------------------------------------------------------------------------------------------------


def _unread(one: Branch, span: Span | None) -> list[Turns]:
    """Return the turns of a session that are not read, when ``span`` of it is."""
    if span is None:
        return [Turns(one.id, 1, None)]
    last = FAR if span.last is None else span.last
    found = [
        Turns(one.id, place - span.base, place - span.base)
        for place in sorted(span.gaps)
        if span.base < place <= span.base + last
    ]
    return found if span.last is None else [*found, Turns(one.id, span.last + 1, None)]


def runs(span: Span) -> list[tuple[int, int | None]]:
    """Return the stretches of its session's turns that a span reads."""
    found: list[tuple[int, int | None]] = []
    first = 1
    for place in sorted(span.gaps):
        turn = place - span.base
        if turn < first:
            continue
        if span.last is not None and turn > span.last:
            break
        if turn > first:
            found.append((first, turn - 1))
        first = turn + 1
    if span.last is None or first <= span.last:
        found.append((first, span.last))
    return found


def _in_all(some: Sequence[Sequence[Turns]]) -> list[Turns]:
    """Return the turns that are in each of some collections.

    >>> _in_all([[Turns("a", 3, None)], [Turns("a", 5, None), Turns("b", 1, None)]])
    [Turns(session='a', first=5, last=None)]
    """
    opened: list[dict[str, int]] = []
    single: list[set[tuple[str, int]]] = []
    for turns in some:
        opened.append({one.session: one.first for one in turns if one.last is None})
        single.append({(one.session, one.first) for one in turns if one.last is not None})
    if not opened:
        return []
    ends = {
        session: max(one[session] for one in opened)
        for session in opened[0]
        if all(session in one for one in opened)
    }
    alone = {
        (session, turn)
        for session, turn in set().union(*single)
        if turn < ends.get(session, FAR)
        and all(
            (session, turn) in closed or turn >= ends_.get(session, FAR)
            for closed, ends_ in zip(single, opened, strict=True)
        )
    }
    found = [Turns(session, first, None) for session, first in sorted(ends.items())]
    return found + [Turns(session, turn, turn) for session, turn in sorted(alone)]

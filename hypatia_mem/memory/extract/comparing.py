"""What a new work unit is to those kept: the same, more, a successor, or a contradiction.

Likeness is the share of terms two units have in common, weighed by how rare they are; names of
things count with them. Two that are alike and decide differently about the same things are not the
same: the later one supersedes, unless one of them says the very opposite, which a person settles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hypatia_mem.memory.summarise import facts, words
from hypatia_mem.memory.summarise.units import INFERRED

__all__ = ["Found", "Relation", "compare", "lesson_of", "likeness", "repeated"]

_SAME = 0.8
_NEAR = 0.45
_TIMES = 3  # sessions in which a lesson has come before it is proposed as a rule
_LESSON_NEAR = 0.55
_HEADING = re.compile(r"^## .*$", re.MULTILINE)
_OUTCOME = re.compile(
    r"^## (?:Solution|Correct Approach|Fix|Decision|Decisions)\n((?:- .*\n?)+)", re.M
)
_LESSON = re.compile(r"^## Lesson\n- (.*)$", re.MULTILINE)


class Relation(StrEnum):
    """What a new unit is to an older one."""

    NEW = "new"
    DUPLICATE = "duplicate"
    EXTENDS = "extends"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Found:
    """The relation, and the name of the unit it is to; ``""`` for a new one."""

    relation: Relation
    name: str = ""


def compare(content: str, known: Iterable[tuple[str, str]], idf: Mapping[str, float]) -> Found:
    """Return what a unit is to the nearest of those known, given as (name, content)."""
    nearest = max(
        ((likeness(content, other, idf), name, other) for name, other in known),
        default=(0.0, "", ""),
    )
    near, name, other = nearest
    if near < _NEAR:
        return Found(Relation.NEW)
    if _opposed(content, other, idf):
        return Found(Relation.CONTRADICTS, name)
    if near >= _SAME and not _differs(content, other):
        return Found(Relation.DUPLICATE, name)
    if _differs(content, other):
        return Found(Relation.SUPERSEDES, name)
    return Found(Relation.EXTENDS, name)


def likeness(one: str, other: str, idf: Mapping[str, float]) -> float:
    """Return how much of what two texts say is the same, 0 to 1."""
    left, right = _concepts(one), _concepts(other)
    every = _weight(left | right, idf)
    return _weight(left & right, idf) / every if every else 0.0


def repeated(
    lessons: Sequence[tuple[str, str, str]], idf: Mapping[str, float]
) -> list[list[tuple[str, str]]]:
    """Return lessons that came in three sessions or more, as lists of (unit, lesson).

    ``lessons`` are (unit's name, its content, session), oldest first; where one came again, the
    name is the message's that said it.
    """
    groups: list[list[tuple[str, str, str]]] = []
    for name, content, session in lessons:
        lesson = lesson_of(content)
        if not lesson or not session:
            continue
        home = next((g for g in groups if likeness(g[0][1], lesson, idf) >= _LESSON_NEAR), None)
        if home is None:
            groups.append([(name, lesson, session)])
        else:
            home.append((name, lesson, session))
    return [
        [(name, lesson) for name, lesson, _ in group]
        for group in groups
        if len({session for *_, session in group}) >= _TIMES
    ]


def lesson_of(content: str) -> str:
    """Return what a unit says to do next time; ``""`` when nothing, or nobody has said it."""
    match = _LESSON.search(content)
    lesson = match.group(1).strip() if match else ""
    return "" if lesson.endswith(INFERRED.strip()) else lesson  # that never becomes a rule


def _weight(terms: Iterable[str], idf: Mapping[str, float]) -> float:
    unknown = idf.get("", 1.0)
    return sum(idf.get(term, unknown) for term in terms)


def _concepts(text: str) -> set[str]:
    bare = _HEADING.sub("", text)
    return {*words.terms(bare), *facts.tokens(bare)}


def _outcome(text: str) -> str:
    return "\n".join(_OUTCOME.findall(text))


def _differs(one: str, other: str) -> bool:
    """Tell whether two units end in naming different things."""
    left, right = facts.tokens(_outcome(one)), facts.tokens(_outcome(other))
    return bool(left and right) and not left & right


def _opposed(one: str, other: str, idf: Mapping[str, float]) -> bool:
    """Tell whether of two outcomes that speak of the same, one denies what the other says."""
    left, right = _outcome(one), _outcome(other)
    if not left or not right or facts.is_negation(left) == facts.is_negation(right):
        return False
    return likeness(left, right, idf) >= _NEAR

"""The summariser that needs no model, no key and no network: greedy concept coverage.

A unit is worth the concepts in it that no chosen unit has covered yet, for its length: a concept's
weight is the root of how often the batch speaks of it, times how rare it is in the whole store.
What must not be lost (names of things, paths, numbers, commands: ``facts``) is a concept too, and
a unit that decides or forbids something counts for more. The same batch gives the same summary.

Measured against lead, TextRank and MMR by ``benchmarks/summaries.py``.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from hypatia_mem.memory.summarise import words
from hypatia_mem.memory.summarise.protocol import (
    Draft,
    FailureKind,
    Request,
    Sentence,
    Span,
    SummaryFailed,
    prompt_digest,
)
from hypatia_mem.memory.summarise.units import Unit

__all__ = ["Extractive", "choose"]

_SOFTEN = 4.0  # words added to every unit's length, so that very short ones do not win
_LENGTH = 0.6  # exponent of the length
_FACT = 0.5  # weight of a fact beside the terms it consists of
_DECISION = 2.0  # of a decision that no other sentence has covered
_MARKED = 1.2  # a unit that decides or forbids something
_PERSON = 1.5  # what the person said, which is little beside the answers, and binds
_CODE = 0.2  # a line of code says less than a sentence about it
_QUESTION = 0.8
_LEAST = 3.0  # words; shorter units are chosen only when there is nothing longer
_RULES = (_SOFTEN, _LENGTH, _FACT, _DECISION, _MARKED, _PERSON, _CODE, _QUESTION, _LEAST)


@dataclass(frozen=True, slots=True)
class Extractive:
    """The default summariser. ``window`` is as good as none: it reads a million tokens."""

    producer: str = "extractive-1"
    digest: str = prompt_digest(repr(_RULES))
    window: int = 1_000_000

    def summarise(self, request: Request) -> Draft:
        """Return the units that say most; raises SummaryFailed when no item has any text."""
        if not request.units:
            raise SummaryFailed(FailureKind.EMPTY, "there is no text in these messages")
        chosen = choose(request.units, request.max_words, request.idf)
        sentences = tuple(
            Sentence(
                unit.text,
                (Span(request.items[unit.item].name, unit.start, unit.end),),
                unit.speaker,
                unit.session_id,
                unit.inferred,
            )
            for unit in chosen
        )
        return Draft(sentences)


def choose(units: Sequence[Unit], max_words: int, idf: Mapping[str, float]) -> list[Unit]:
    """Return the units that together cover most within ``max_words``, in their own order.

    At least one, however small the room.
    """
    concepts = [_concepts(unit) for unit in units]
    weights = _weights(concepts, idf)
    lengths = [words.cost(unit.text) + (1 if unit.speaker else 0) for unit in units]
    bias = [_bias(unit, length) for unit, length in zip(units, lengths, strict=True)]
    scale = [b / (length + _SOFTEN) ** _LENGTH for b, length in zip(bias, lengths, strict=True)]
    # A unit's gain only shrinks as others are chosen, so an old value is a bound: most are never
    # computed again. The sums are exact: those of a set would be other ones in every process, and
    # what a plan showed would not be what is done.
    heap = [
        (-scale[n] * fsum(weights[one] for one in concepts[n]) or -1e-9 * bias[n], n)
        for n in range(len(units))
    ]
    heapq.heapify(heap)
    covered: set[str] = set()
    taken: list[int] = []
    room = float(max_words)
    while heap and room > 0:
        bound, n = heapq.heappop(heap)
        if lengths[n] > room and taken:
            continue
        gain = scale[n] * fsum(weights[one] for one in concepts[n] if one not in covered)
        if taken and gain <= 0:
            continue
        if heap and gain < -heap[0][0] - 1e-12 and -bound > gain + 1e-12:
            heapq.heappush(heap, (-gain, n))
            continue
        taken.append(n)
        covered |= concepts[n]
        room -= lengths[n]
    return [units[n] for n in sorted(taken)]


def _concepts(unit: Unit) -> frozenset[str]:
    """Return what a unit says: terms, names of things, and a decision as a thing of its own."""
    if unit.code:  # what it names is named in the sentences around it, if it matters
        return unit.terms
    found = unit.terms.union(["=" + fact for fact in unit.tokens])
    return found.union(["!" + unit.text]) if unit.decides else found


def _weights(concepts: Sequence[frozenset[str]], idf: Mapping[str, float]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for one in concepts:
        counts.update(one)
    rarest = idf.get("") or max(idf.values(), default=1.0)
    own = {"=": _FACT, "!": _DECISION}
    return {
        term: sqrt(count) * (own[term[0]] * rarest if term[0] in own else idf.get(term, rarest))
        for term, count in counts.items()
    }


def _bias(unit: Unit, length: float) -> float:
    factor = _CODE if unit.code else 1.0
    if unit.text.endswith(("?", "？")):
        factor *= _QUESTION
    if length < _LEAST + 1:
        factor *= 0.2
    if unit.speaker == "user":
        factor *= _PERSON
    return factor * (_MARKED if unit.decides or unit.negates else 1.0)

"""What a summary lost of its sources: by class, in shares, and by name.

Names of things survive when they stand in the summary as they were. A decision or a negation
survives when one sentence of the summary is tied to it, or says most of its telling words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from hypatia_mem.memory.summarise import facts, words
from hypatia_mem.memory.summarise.protocol import Item
from hypatia_mem.memory.summarise.units import Unit, units_of

__all__ = ["ClassLoss", "Loss", "measure", "missing"]

_SAID_AGAIN = 0.6


@dataclass(frozen=True, slots=True)
class ClassLoss:
    """Of one class: how many different ones the sources have, how many survived, which did not."""

    total: int
    kept: int
    dropped: tuple[str, ...]

    @property
    def share(self) -> float:
        """Return the share that survived; of nothing, everything did."""
        return self.kept / self.total if self.total else 1.0


@dataclass(frozen=True, slots=True)
class Loss:
    """What survived, by class of ``facts.CLASSES``."""

    classes: Mapping[str, ClassLoss]

    @property
    def share(self) -> float:
        """Return the share of all facts that survived."""
        total = sum(one.total for one in self.classes.values())
        return sum(one.kept for one in self.classes.values()) / total if total else 1.0


def measure(items: Sequence[Item], summary: str, tied: Set[tuple[str, int]] = frozenset()) -> Loss:
    """Compare a summary with its sources.

    ``tied`` holds (item, start) of the units that a sentence of the summary stands on.
    """
    found = _token_facts(items)
    kept = {word for _, word in facts.of_kinds(summary)}
    classes: dict[str, ClassLoss] = {}
    for kind in facts.CLASSES[:5]:
        have = [word for (cls, word) in found if cls == kind]
        lost = [word for word in have if word not in kept and word not in summary]
        classes[kind] = ClassLoss(len(have), len(have) - len(lost), tuple(lost))
    lines = [frozenset(words.terms(line)) for line in summary.splitlines()]
    units = [unit for n, item in enumerate(items) for unit in units_of(n, item) if not unit.code]
    for kind, is_one in (("decision", facts.is_decision), ("negation", facts.is_negation)):
        classes[kind] = _said(items, [u for u in units if is_one(u.text)], lines, tied)
    return Loss(classes)


def missing(items: Sequence[Item], summary: str, most: int) -> list[tuple[str, str, int]]:
    """Return up to ``most`` names of things that a summary lacks: (word, item, where it stands).

    Those first that the sources speak of most often, the short before the long.
    """
    where: dict[str, tuple[str, int]] = {}
    counts: Counter[str] = Counter()
    for item in items:
        for (_, word), start in facts.of_kinds(item.text).items():
            counts[word] += 1
            where.setdefault(word, (item.name, start))
    kept = facts.tokens(summary)
    lost = [word for word in counts if word not in kept and word not in summary and len(word) <= 80]
    lost.sort(key=lambda word: (-counts[word], word.isdigit(), len(word), word))
    return [(word, *where[word]) for word in lost[:most]]


def _token_facts(items: Sequence[Item]) -> Counter[facts.Fact]:
    counts: Counter[facts.Fact] = Counter()
    for item in items:
        counts.update(facts.of_kinds(item.text).keys())
    return counts


def _said(
    items: Sequence[Item],
    units: Sequence[Unit],
    lines: Sequence[frozenset[str]],
    tied: Set[tuple[str, int]],
) -> ClassLoss:
    lost: list[str] = []
    seen: set[str] = set()
    for unit in units:
        if unit.text in seen:
            continue
        seen.add(unit.text)
        terms = frozenset(words.terms(unit.text))
        again = any(len(terms & line) >= _SAID_AGAIN * len(terms) for line in lines)
        if (items[unit.item].name, unit.start) not in tied and not (terms and again):
            lost.append(unit.text)
    return ClassLoss(len(seen), len(seen) - len(lost), tuple(lost))

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

__all__ = ["ClassLoss", "Loss", "measure", "missing", "names", "unsaid"]

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


def measure(
    items: Sequence[Item],
    summary: str,
    tied: Set[tuple[str, int]] = frozenset(),
) -> Loss:
    """Compare a summary with its sources.

    ``tied`` holds (item, start) of the units that a sentence of the summary stands on.
    """
    classes = names(items, summary)
    units = [unit for n, item in enumerate(items) for unit in units_of(n, item)]
    for kind, (total, lost_of) in unsaid(items, units, summary, tied).items():
        classes[kind] = ClassLoss(total, total - len(lost_of), tuple(one.text for one in lost_of))
    return Loss(classes)


def names(items: Sequence[Item], summary: str) -> dict[str, ClassLoss]:
    """Return, by class, which names of things stand in a summary as they were."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in facts.CLASSES[:5]}
    for item in items:
        for kind, word in facts.of_kinds(item.text):
            found[kind][word] = None
    kept = facts.tokens(summary)
    classes: dict[str, ClassLoss] = {}
    for kind, have in found.items():
        lost = tuple(word for word in have if word not in kept and word not in summary)
        classes[kind] = ClassLoss(len(have), len(have) - len(lost), lost)
    return classes


def unsaid(
    items: Sequence[Item], units: Sequence[Unit], summary: str, tied: Set[tuple[str, int]]
) -> dict[str, tuple[int, list[Unit]]]:
    """Return how many different decisions and negations there are, and those a summary lacks.

    Lines of code decide nothing.
    """
    said = [unit for unit in units if not unit.code]
    lines = [frozenset(words.terms(line)) for line in summary.splitlines()]
    found: dict[str, tuple[int, list[Unit]]] = {}
    for kind, own in (
        ("decision", [unit for unit in said if unit.decides]),
        ("negation", [unit for unit in said if unit.negates]),
    ):
        lost: list[Unit] = []
        seen: set[str] = set()
        for unit in own:
            if unit.text in seen:
                continue
            seen.add(unit.text)
            if (items[unit.item].name, unit.start) not in tied and not _said(unit, lines):
                lost.append(unit)
        found[kind] = (len(seen), lost)
    return found


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


def _said(unit: Unit, lines: Sequence[frozenset[str]]) -> bool:
    """Tell whether a line says most of a unit's telling words."""
    most = _SAID_AGAIN * len(unit.terms)
    return bool(unit.terms) and any(len(unit.terms & line) >= most for line in lines)

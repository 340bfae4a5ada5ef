"""What a change reaches, by name: told before it is done, and after it, by the same words.

A dry run makes the change and takes it back, and what it did is read from the store itself
(``store.effects``): so what is told is what happens, for every verb alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypatia_mem.model import Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.effects import Effect
    from hypatia_mem.store.gateway import Transaction

__all__ = ["Blast", "Changed", "Reached", "reached"]

_NAMED = 3  # sources that are named of each thing


@dataclass(frozen=True, slots=True)
class Reached:
    """Something that a change reaches. ``why``: what it stands on, or why it stays."""

    name: str
    kind: str
    scopes: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Blast:
    """All that a change reaches, by name; ``op_id`` is ``""`` when it was only tried out.

    ``targets`` were named, ``derived`` stood on them and went too (or, on a move, along:
    ``along``); ``doubted`` stands on them and is called stale, or withheld until a person looks at
    it; ``kept`` stood on them and stays. ``made`` is new, or there again. ``statements`` are keys.
    ``owed`` counts messages that a new summary is due for; ``remade`` are the summaries that were
    made of them since. ``held`` are (name, session) that a running session stands on: as long as it
    runs this would be refused.
    """

    verb: str
    targets: tuple[Reached, ...]
    derived: tuple[Reached, ...] = ()
    along: tuple[Reached, ...] = ()
    doubted: tuple[Reached, ...] = ()
    kept: tuple[Reached, ...] = ()
    made: tuple[Reached, ...] = ()
    statements: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    owed: int = 0
    remade: tuple[str, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    op_id: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all entries that are changed, made or gone."""
        some = (*self.targets, *self.derived, *self.along, *self.doubted, *self.made)
        return frozenset(one.name for one in some)


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of each name that was given, and all that it reached."""

    outcomes: list[Outcome] = field(default_factory=list)
    blast: Blast = field(default_factory=lambda: Blast("", ()))


def reached(
    txn: Transaction,
    since: int,
    verb: str,
    named: Iterable[str],
    *,
    held: Sequence[tuple[str, str]] = (),
    dry_run: bool = False,
) -> Blast:
    """Return what a transaction has done since the ledger row ``since``; ``named`` were meant."""
    from hypatia_mem.store import effects

    meant = set(named)
    found = effects.effects(txn.store, since)
    turned = [one.name for one in found if one.what in ("withheld", "shown")]
    sorts: dict[str, list[Reached]] = {}
    for one in found:
        sort = "targets" if one.name in meant else _SORTS[one.what]
        sorts.setdefault(sort, []).append(
            Reached(one.name, one.kind, one.scopes, "" if sort == "targets" else _why(one))
        )
    left = {name for one in found if one.what == "gone" for name in one.left}
    return Blast(
        verb,
        targets=tuple(sorts.get("targets", ())),
        derived=tuple(sorts.get("derived", ())),
        doubted=tuple(sorts.get("doubted", ())),
        made=tuple(sorts.get("made", ())),
        statements=tuple(effects.statements(txn.store, since, turned)),
        owed=len(left),
        held=tuple(held),
        op_id="" if dry_run else txn.op_id,
    )


# ----------------------------------------------------------------------------------------------

_SORTS = {
    "gone": "derived",
    "withheld": "doubted",
    "stale": "doubted",
    "changed": "doubted",
    "shown": "made",
    "made": "made",
}
_WORDS = {
    "withheld": "withheld until a person has looked at it",
    "stale": "called stale",
    "shown": "shown again",
}


def _why(one: Effect) -> str:
    parts = [_WORDS[one.what]] if one.what in _WORDS else []
    if one.on:
        more = f" and {len(one.on) - _NAMED} more" if len(one.on) > _NAMED else ""
        verb = "stood" if one.what == "gone" else "stands"
        parts.append(f"{verb} on {', '.join(one.on[:_NAMED])}{more}")
    if one.left:
        noun = "1 that stays" if len(one.left) == 1 else f"{len(one.left)} that stay"
        parts.append(f"made anew from the {noun}")
    return "; ".join(parts)

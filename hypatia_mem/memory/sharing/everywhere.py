"""Forgetting in every connected shelf what was forgotten in one: a copy there goes with it.

Shelves are memories of their own, so this is asked for (``forget --everywhere``), and by a person.
Who was shown all that holds some words, and wants all of it gone, means that there too.
A copy that was given away, or lies on another machine, no program reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import HypatiaError, ShelfError
from hypatia_mem.model import Author

if TYPE_CHECKING:
    from hypatia_mem.memory.curate import ForgetPlan
    from hypatia_mem.memory.forgetting import Found

__all__ = ["Elsewhere", "forget_too"]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What was found in one other shelf: the names that went, or why it could not be looked at."""

    shelf: str
    names: tuple[str, ...] = ()
    failed: str = ""


def forget_too(
    homes: Mapping[str, Path],
    plan: ForgetPlan,
    words: str = "",
    *,
    scope: str,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> list[Elsewhere]:
    """Forget in these memories what says the same as what ``plan`` chose, in the same scope.

    With ``words`` everything that holds them too, of whatever kind and in every scope.
    A shelf that cannot be opened is told, and keeps nobody from the others.
    """
    from hypatia_mem.memory import forgetting
    from hypatia_mem.store.tombstones import entry_values

    chosen = [one for one in plan.matches if one.name in plan.chosen]
    values = {value for one in chosen for value in entry_values(one.name, one.content, one.kind)}
    found: list[Elsewhere] = []
    for shelf, home in homes.items():
        try:
            names = _saying(home, values, [one.name for one in chosen], scope)
            held = _holding(home, words, names, author, now)
            if names and not dry_run:
                _forget(home, names, scope, author, now)
            if held.things and not dry_run:
                forgetting.forget(home, held, author=author, now=now)
            found.append(Elsewhere(shelf, (*names, *(one.name for one in held.things))))
        except HypatiaError as error:
            found.append(Elsewhere(shelf, failed=error.message))
    return found


def _saying(home: Path, values: set[str], names: Sequence[str], scope: str) -> list[str]:
    from hypatia_mem.memory import curate
    from hypatia_mem.store.connection import FILE, open_store
    from hypatia_mem.store.tombstones import entry_values

    if not (home / FILE).is_file():
        raise ShelfError(f"there is no memory in {home} any more")
    with open_store(home, write=False) as store:
        there = curate.forgettable(store, scope, names)
    return [one.name for one in there if values & entry_values(one.name, one.content, one.kind)]


def _holding(home: Path, words: str, names: Sequence[str], author: Author, now: datetime) -> Found:
    """Return what holds the words beside the entries that go by their names."""
    from hypatia_mem.memory import forgetting
    from hypatia_mem.store.connection import open_store

    if not words:
        return forgetting.Found(words)
    with open_store(home, write=False) as store:
        return forgetting.find(store, words, None, without=names, author=author, now=now)


def _forget(home: Path, names: Sequence[str], scope: str, author: Author, now: datetime) -> None:
    from hypatia_mem.memory import curate

    curate.forget(home, "", scope=scope, ids=names, author=author, now=now)

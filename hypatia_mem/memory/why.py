"""Why a session is told what it is told: each thing with its reason and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.model import GLOBAL_SCOPE

if TYPE_CHECKING:
    from hypatia_mem.model import Entry

__all__ = ["Told", "why"]


@dataclass(frozen=True, slots=True)
class Told:
    """An entry of the brief: ``told`` is False where there is no room for it.

    ``reason`` says why it is there, ``by`` who said it, ``units`` how long its line is.
    """

    name: str
    kind: str
    content: str
    reason: str
    told: bool
    units: int
    trust: str
    by: str
    at: datetime | None


def why(home: Path, scope: str) -> list[Told]:
    """Return what a session of ``scope`` is told when it begins, in its order, and what is not.

    Raises what opening the store raises.
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import compose
    from hypatia_mem.store import reviewing
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = compose.told(store, scope, limit=load_settings(home).brief_max_units)
        by = reviewing.brought_by(store, [one.name for one, _ in found])
    return [
        Told(
            one.name,
            one.kind,
            one.content,
            _reason(one, scope),
            bool(line),
            compose.units(line),
            str(one.trust),
            by.get(one.name, ""),
            one.created_at,
        )
        for one, line in found
    ]


def _reason(entry: Entry, scope: str) -> str:
    own = bool(scope) and scope in entry.scopes
    where = "of this project" if own else "of every project"
    if GLOBAL_SCOPE not in entry.scopes and not own:
        where = "of another project"
    kind = entry.kind if entry.kind in ("taboo", "rule", "goal", "memory") else "entry"
    return f"{'pinned, ' if entry.pinned else ''}a {kind} {where}".replace("a entry", "an entry")

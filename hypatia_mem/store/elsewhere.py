"""What was forgotten in other memories of the same person, to ask of what is brought in here.

A copy made before something was forgotten knows nothing of it, and neither does the memory it is
imported into; the one where it was forgotten does. Only its keyed digests are read, with the keys
that they were made with: no store is opened, nothing of the other memory is written or kept here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hypatia_mem.errors import StoreError
from hypatia_mem.store import buried, keys
from hypatia_mem.store.graves import Grave, Graves, Near
from hypatia_mem.store.tombstones import REJECTED

__all__ = ["Elsewhere", "load"]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What other memories have forgotten, each under the name it has here.

    ``unasked`` says by name why one, or a part of it, could not be asked.
    """

    graves: Mapping[str, Graves]
    unasked: Mapping[str, str]

    def holding(
        self, values: Collection[str], scopes: Sequence[str], *, said_at: datetime, rejected: bool
    ) -> list[tuple[str, str, Grave]]:
        """Return (memory, value, tombstone) of those of these values that were forgotten there.

        Since ``said_at``: what was said after that, in any memory, was said all the same.
        ``rejected``: what comes in is rejected itself, so only a forgetting keeps it away.
        """
        return [
            (name, value, grave)
            for name, known in self.graves.items()
            for value in values
            for grave in known.holding([value], scopes)
            if grave.at > said_at and not (rejected and grave.reason == REJECTED)
        ]

    def near(
        self, texts: Sequence[str], scopes: Sequence[str], *, said_at: datetime
    ) -> tuple[str, Near] | None:
        """Return what one of these texts is most like, and in which memory it was since."""
        found = [
            (name, near)
            for name, known in self.graves.items()
            if (near := known.near(texts, scopes, after=said_at)) is not None
        ]
        return max(found, key=lambda one: one[1].value, default=None)


def load(homes: Mapping[str, Path]) -> Elsewhere:
    """Read what these memories have forgotten; one that cannot be read is named, never an error."""
    graves: dict[str, Graves] = {}
    unasked: dict[str, str] = {}
    for name, home in homes.items():
        if not home.is_dir():
            unasked[name] = f"its folder {home} is not there"
            continue
        if not buried.is_kept(home):  # nothing was ever forgotten there
            continue
        found = buried.read(home)
        try:
            ring = keys.known_keys(home)
        except StoreError as error:
            found, ring = None, ()
            unasked[name] = error.message
        if found is None:
            unasked.setdefault(name, f"{home / buried.FILE} cannot be read")
            continue
        rows = [_row(one) for one in found.tombstones]
        used = {str(row["key_id"]) for row in rows}
        lost = used - {key.id for key in ring}
        if lost:
            unasked[name] = f"{len(lost)} of the keys of what was forgotten there are lost"
        graves[name] = Graves([key for key in ring if key.id in used], lost, rows)
    return Elsewhere(graves, unasked)


# ----------------------------------------------------------------------------------------------


def _row(said: Mapping[str, object]) -> dict[str, object]:
    """Return a tombstone of the file as the store has it; an older file lacks some of it."""
    whole = {"target": "", "part": "", "sketch": "", **said}
    return {name: whole[name] for name in Grave.__slots__}

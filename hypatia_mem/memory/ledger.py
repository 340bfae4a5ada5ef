"""Whether the ledger is whole: each row is bound to the one before it, and none is missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Check", "check"]

_FOUND = {
    "gap": "row {seq} is missing: a row was taken out, or one was put in before it",
    "edit": "row {seq} was changed: its words do not make its hash",
    "insertion": "row {seq} does not follow from the row before it: it was put in",
    "truncation": "the end was cut off: the ledger ends before row {seq}, which was written",
    "addition": "row {seq} was put in at the end by something else than this program",
    "rewound": "it ends before row {seq}, though a later one is noted beside the store: the end was"
    " cut off, or an older copy of the file was put in its place by hand",
    "rewritten": "row {seq} is not the one that is noted beside the store: the ledger was written"
    " anew from there or from before",
    "seal": "the note beside the store of its end (row {seq}) was changed by something else than"
    " this program",
    "state": "the store has a state of row {seq}, which the ledger does not know",
}
_BY_SEAL = ("rewound", "rewritten", "seal")


@dataclass(frozen=True, slots=True)
class Check:
    """What a walk over the ledger found; ``broken`` is what kind of break, ``""`` for none.

    ``sealed`` is the row up to which the note beside the store bears it out, None without one.
    """

    rows: int
    broken: str
    seq: int | None
    head: str
    sealed: int | None = None

    @property
    def whole(self) -> bool:
        """Tell whether every row is where and what it was."""
        return not self.broken

    @property
    def sentence(self) -> str:
        """Return what was found, and what to do about it."""
        if self.whole:
            rows = f"{self.rows} rows, each bound to the one before it"
            return f"The ledger is whole: {rows}.{self._borne_out}"
        found = _FOUND[self.broken].format(seq=self.seq)
        known = " and remove the file seal" if self.broken in _BY_SEAL else ""
        return (
            f"The ledger is broken ({self.broken}): {found}.\n"
            "Somebody wrote to the store's file past this program. Restore an older copy"
            f" (hypatia-mem backup list), or go on, knowing it{known}."
        )

    @property
    def _borne_out(self) -> str:
        """Say what the note beside the store adds to that."""
        if not self.rows:
            return ""
        if self.sealed is None:
            return (
                "\nNothing beside the store bears that out: the note of where it ended is missing,"
                " or its key is. The next change makes it anew."
            )
        end = "its end" if self.sealed == self.rows else f"row {self.sealed}"
        return f" A keyed note beside the store bears it out to {end}."

    def as_dict(self) -> dict[str, Any]:
        """Return it for a machine."""
        return {"whole": self.whole, **asdict(self)}


def check(home: Path) -> Check:
    """Walk the chain from its beginning; the store is only read."""
    from hypatia_mem.store import chain
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = chain.walk(store)
    return Check(found.rows, found.broken, found.seq, found.head, found.sealed)

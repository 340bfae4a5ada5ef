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
    "state": "the store has a state of row {seq}, which the ledger does not know",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What a walk over the ledger found; ``broken`` is what kind of break, ``""`` for none."""

    rows: int
    broken: str
    seq: int | None
    head: str

    @property
    def whole(self) -> bool:
        """Tell whether every row is where and what it was."""
        return not self.broken

    @property
    def sentence(self) -> str:
        """Return what was found, and what to do about it."""
        if self.whole:
            return f"The ledger is whole: {self.rows} rows, each bound to the one before it."
        found = _FOUND[self.broken].format(seq=self.seq)
        return (
            f"The ledger is broken ({self.broken}): {found}.\n"
            "Somebody wrote to the store's file past this program. Restore an older copy"
            " (hypatia-mem backup list), or go on, knowing it."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it for a machine."""
        return {"whole": self.whole, **asdict(self)}


def check(home: Path) -> Check:
    """Walk the chain from its beginning; the store is only read."""
    from hypatia_mem.store import chain
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = chain.walk(store)
    return Check(found.rows, found.broken, found.seq, found.head)

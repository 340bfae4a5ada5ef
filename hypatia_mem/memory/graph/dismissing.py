"""Taking a concept out of sight, or out of the graph: what somebody found that is no thing at all.

A *dismissed* concept is suppressed: no list, no neighbour, no path, no brief and no search shows it
or a statement with it at an end, and it stays so when it is found again in the same words. A name
that only statements speak of gets an entry without words to carry that. A *removed* one is deleted
with its statements, and may come again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, Refused
from hypatia_mem.memory import curate, propagation
from hypatia_mem.memory.blast import Blast, Changed, reached
from hypatia_mem.memory.graph.merge import NEVER
from hypatia_mem.memory.graph.selecting import resolve
from hypatia_mem.memory.persons import IN_A_TERMINAL
from hypatia_mem.memory.targets import Target
from hypatia_mem.model import Author, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["dismiss", "remove", "restore"]


def dismiss(
    home: Path,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Take concepts out of sight, all of them or none; each is a name, a synonym, or a topic.

    Raises NotFound, Refused: for what was said, and for a name that other projects use too.
    """
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        since = txn.seq
        meant = [_meant(store, name, scopes) for name in dict.fromkeys(names)]
        if not dry_run:
            curate.leave_index(home, store, meant)
        outcomes = [_hide(store, txn, name, scopes) for name in meant]
        blast = reached(txn, since, "dismiss", meant, dry_run=dry_run)
        return Changed(outcomes, blast)


def restore(
    home: Path,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Bring dismissed concepts back. Raises NotFound, and Refused for what a person dismissed."""
    from hypatia_mem.memory import trust

    return trust.mark(
        home, names, "unsuppress", scopes=scopes, dry_run=dry_run, author=author, now=now
    )


def remove(
    home: Path,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Blast:
    """Delete concepts with the statements at whose ends they stand, as one operation.

    Of a name without an entry only these scopes' statements go. Raises as ``dismiss``.
    """
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        wanted: list[Target] = []
        for name in dict.fromkeys(_meant(store, name, scopes) for name in names):
            wanted += _targets(store, name, scopes)
        return propagation.delete_in(home, store, txn, wanted, scopes=scopes, dry_run=dry_run)


# ----------------------------------------------------------------------------------------------


def _meant(store: Store, asked: str, scopes: Sequence[str] | None) -> str:
    """Return the name that is meant: of an entry, in the graph, or of a topic."""
    from hypatia_mem.memory import reach
    from hypatia_mem.store import counting

    entry = store.entry(asked)
    if entry is not None:
        reach.refuse(asked, entry.scopes, scopes)
        if entry.kind in NEVER:
            raise Refused(
                f"{asked!r} is a {entry.kind}: it stands for what was said, and is no concept",
                hint=f"To keep it and show it nowhere: hypatia-mem suppress {asked}",
            )
        return entry.name
    try:
        return resolve(store, asked, scopes).name
    except NotFound:
        if counting.is_topic(store, asked, scopes):
            return asked
        raise


def _hide(store: Store, txn: Transaction, name: str, scopes: Sequence[str] | None) -> Outcome:
    own = _spoken_of(store, name, scopes)
    if store.entry(name) is None:
        _refuse(txn.put_entry(Entry(name, "", scopes=own or tuple(scopes or ())[:1] or ("",))))
    return _refuse(txn.update_entry(name, suppressed=True))


def _refuse(outcome: Outcome) -> Outcome:
    if outcome.verb == "refused":
        raise Refused(f"{outcome.name!r} stays as it is: {outcome.reason}", hint=IN_A_TERMINAL)
    return outcome


def _spoken_of(store: Store, name: str, scopes: Sequence[str] | None) -> tuple[str, ...]:
    """Return in which scopes a name is spoken of; Refused when that is elsewhere too."""
    from hypatia_mem.store import edges

    own: dict[str, None] = {}
    for row in edges.rows_touching(store, name):
        own.update(dict.fromkeys(row["scopes"]))
    foreign = [] if scopes is None else [scope for scope in own if scope not in scopes]
    if foreign:
        raise Refused(
            f"{name!r} is spoken of in {foreign[0]} too, and a name means the same everywhere",
            hint="Only a person may take it away there: add --all-projects in a terminal.",
        )
    return tuple(own)


def _targets(store: Store, name: str, scopes: Sequence[str] | None) -> list[Target]:
    from hypatia_mem.store import edges

    entry = store.entry(name)
    if entry is not None:
        _spoken_of(store, name, scopes)  # its statements go with it
        return [Target(name, entry.kind, (name,), scopes=entry.scopes)]
    return [
        Target(row["triple"], "statement", statement=row["triple"], scopes=tuple(row["scopes"]))
        for row in edges.rows_touching(store, name)
        if scopes is None or set(row["scopes"]) & set(scopes)
    ]

"""Storing a summary with its links, and bringing the cascade's notes up to date with it.

One transaction, which asks again whether everything is as it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.cascade.plan import CONTEXT, OWED, OWED_ABOVE, Batch
from hypatia_mem.memory.summarise import making, naming
from hypatia_mem.model import Author, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Done", "put", "store_made"]


@dataclass(frozen=True, slots=True)
class Done:
    """A summary that was stored."""

    name: str
    level: int
    scopes: tuple[str, ...]
    items: int
    reason: str
    inferred: int = 0


def store_made(
    store: Store, batch: Batch, made: making.Made, author: Author, now: datetime
) -> Done | None:
    """Store a summary that came late, with its links; None when its batch was overtaken."""
    with store.transaction(author, now=now) as txn:
        return put(txn, batch, made)[1]


def put(
    txn: Any,  # noqa: ANN401 - a transaction of the store
    batch: Batch,
    made: making.Made,
    tags: tuple[str, ...] = (),
) -> tuple[Outcome, Done | None]:
    """Store a summary in an open transaction; None when its batch was overtaken.

    ``tags`` stand behind those of its level.
    """
    from hypatia_mem.store import summaries

    scopes = batch.scopes
    sessions = {item.session_id for item in batch.items}
    name = naming.unique(made.name, lambda one: summaries.name_taken(txn, one, scopes))
    entry = Entry(
        name=name,
        content=made.content,
        tags=("summary", f"summary {batch.level}", *tags),
        scopes=scopes,
        kind="summary",
        session_id=sessions.pop() if len(sessions) == 1 else "",
        created_at=max(item.at for item in batch.items),
    )
    outcome = summaries.put(txn, entry, batch.items, made.data, batch.level)
    if outcome.verb != "created":
        return outcome, None
    if batch.level == 1:
        _settle(txn, batch)
    else:
        _settle_above(txn, batch)
    return outcome, Done(
        name, batch.level, scopes, len(batch.items), batch.reason, inferred=made.inferred
    )


def _settle(txn: Any, batch: Batch) -> None:  # noqa: ANN401
    """Bring the notes up to date in the transaction that stores the summary."""
    from hypatia_mem.store import summaries

    taken = {item.name for item in batch.items}
    taken.update(name for part in batch.rest for name in part)
    owed = summaries.read_note(txn.store, OWED, [])
    kept = [left for names in owed if (left := [name for name in names if name not in taken])]
    after = [*kept, *(list(part) for part in batch.rest)]
    if after != owed:
        summaries.note(txn, OWED, after)
    if batch.mark is not None:
        told = summaries.read_note(txn.store, CONTEXT, {})
        summaries.note(txn, CONTEXT, dict([*list(told.items())[-20:], batch.mark]))


def _settle_above(txn: Any, batch: Batch) -> None:  # noqa: ANN401
    """Drop the notes of summaries that this one takes the place of."""
    from hypatia_mem.store import summaries

    owed = summaries.read_note(txn.store, OWED_ABOVE, [])
    first, last = (end(item.at for item in batch.items).isoformat() for end in (min, max))
    kept = [
        one
        for one in owed
        if one["level"] != batch.level
        or one["scopes"] != sorted(batch.scopes)
        or one["to"] < first
        or last < one["from"]
    ]
    if kept != owed:
        summaries.note(txn, OWED_ABOVE, kept)

"""How long it takes from a turn's being said to its being stored, where everything reads it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = ["DAYS", "lag"]

DAYS = 7


def lag(store: Store, now: datetime) -> Mapping[str, float]:
    """Return ``turns``, and the ``p50`` and ``p99`` of their lags in seconds; {} without turns.

    Of the turns that were stored in the last days, and said since this store came to be: what was
    read in from before, or imported, was not waited for.
    """
    born = datetime.fromtimestamp(float(store.meta("born") or 0), UTC).replace(tzinfo=None)
    found = store.execute(
        """
        SELECT count(*), quantile_cont(lag, 0.5), quantile_cont(lag, 0.99) FROM (
            SELECT greatest(0, epoch(entry.recorded_at) - epoch(message."at")) AS lag
            FROM entry JOIN message
                ON message.session_id = entry.session_id AND message.turn = entry.turn
            WHERE entry.kind = 'message' AND entry.channel <> 'import'
              AND entry.recorded_at >= $1 AND message."at" >= $2
        )
        """,
        [now - timedelta(days=DAYS), born],
    ).fetchone()
    if found is None or not found[0]:
        return {}
    return {
        "turns": int(found[0]),
        "p50": round(float(found[1]), 1),
        "p99": round(float(found[2]), 1),
    }

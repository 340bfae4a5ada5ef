"""How full the contexts of sessions were, as their answers tell it, and which model answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Use", "last_model", "lately", "of_latest"]

_LATELY = 2_000  # answers that are looked at


@dataclass(frozen=True, slots=True)
class Use:
    """An answer, and the tokens of the whole context that it was made in."""

    session_id: str
    project: str
    turn: int
    model: str
    tokens: int


def last_model(store: Store, scopes: Sequence[str]) -> str:
    """Return the model that answered last in these projects, ``""`` when none is known."""
    for use in _uses(_answers(store, scopes, 20)):
        if use.model:
            return use.model
    return ""


def of_latest(store: Store, scopes: Sequence[str]) -> list[Use]:
    """Return the answers of these projects' latest session, newest first."""
    found: list[Use] = []
    for use in _uses(_answers(store, scopes, 50)):
        if found and use.session_id != found[0].session_id:
            break
        found.append(use)
    return found


def lately(store: Store, since: datetime) -> dict[str, list[Use]]:
    """Return the answers of every session from a time on, newest first, by session."""
    rows = store.run(
        """
        SELECT message.session_id, session.project, message.turn, message.parts FROM message
        JOIN session ON session.id = message.session_id
        WHERE message."at" >= ? AND message.role = 'assistant' AND message.agent_id = ''
        ORDER BY message."at" DESC, message.turn DESC LIMIT ?
        """,
        [since, _LATELY],
    )
    found: dict[str, list[Use]] = {}
    for use in _uses(rows):
        found.setdefault(use.session_id, []).append(use)
    return found


def _uses(rows: Iterable[dict[str, Any]]) -> Iterable[Use]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    for row in rows:
        used = [part for part in json.loads(row["parts"]) if part.get("type") == "usage"]
        if used:
            last = used[-1]
            tokens = sum(int(last.get(name) or 0) for name in names)
            model = str(last.get("model") or "")
            yield Use(row["session_id"], row["project"], row["turn"], model, tokens)


def _answers(store: Store, scopes: Sequence[str], most: int) -> list[dict[str, Any]]:
    return store.run(
        """
        SELECT message.session_id, session.project, message.turn, message.parts FROM message
        JOIN session ON session.id = message.session_id
        WHERE session.project IN (SELECT unnest(?::VARCHAR[])) AND message.role = 'assistant'
          AND message.agent_id = ''
        ORDER BY message."at" DESC, message.turn DESC LIMIT ?
        """,
        [list(scopes), most],
    )

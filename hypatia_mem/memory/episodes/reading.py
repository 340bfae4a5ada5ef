"""What the pass over sessions reads: their news, without what says what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.memory.extract.topics import Exchange, Said
from hypatia_mem.model import Entry, Message

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.episodes import Range
    from hypatia_mem.store.graves import Graves
    from hypatia_mem.store.lessons import News

__all__ = ["MESSAGES", "Read", "end_of", "read_news", "read_owed"]

MESSAGES = 2_000  # of a session that are looked at in one pass


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a session; ``at`` is the ledger's last row then."""

    news: News
    messages: Sequence[Message]
    said: Sequence[Said]
    at: int
    owed: Range | None = None
    open: Sequence[Entry] = ()  # the project's threads

    def of(self, stretch: Sequence[Exchange]) -> tuple[list[Said], list[Message]]:
        """Return what was said in a stretch, and its messages."""
        said = [one for exchange in stretch for one in exchange.all]
        turns = {one.turn for one in said}
        return said, [one for one in self.messages if one.turn in turns]


def read_news(store: Store, news: News, known: Graves | None) -> Read:
    """Return what came in of a session since the turn that ``news`` names."""
    from hypatia_mem.store import lessons

    messages = lessons.said_since(store, news.session_id, news.after, MESSAGES)
    return Read(news, *_parts(messages, news, known), store.ledger_seq())


def read_owed(store: Store, one: Range, known: Graves | None) -> Read:
    """Return what is left of turns whose episode lost a source."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.lessons import News

    size = one.last - one.first + 1
    messages = lessons.said_since(store, one.session_id, one.first - 1, size)
    messages = [message for message in messages if (message.turn or 0) <= one.last]
    entry = store.entry(f"msg-{one.session_id}-{messages[0].turn}") if messages else None
    at = messages[-1].at if messages else datetime.min  # noqa: DTZ901 - naive UTC, never compared
    news = News(one.session_id, entry.scopes if entry else (), one.first - 1, at, ended=True)
    return Read(news, *_parts(messages, news, known), store.ledger_seq(), one)


def _parts(
    messages: Sequence[Message], news: News, known: Graves | None
) -> tuple[list[Message], list[Said]]:
    """Return the messages, and what was said in them, without what says what is forgotten.

    A tool's result has no blanks: a message whose parts hold what is forgotten has none here.
    """

    def clear(text: str) -> str:
        return known.blanked(text, news.scopes) if known else text

    kept: list[Message] = []
    for one in messages:
        if one.agent_id:
            continue
        parts = [
            part
            for part in one.parts
            if not known or all(clear(value) == value for value in part.values() if _is_text(value))
        ]
        kept.append(replace(one, text=clear(one.text), parts=tuple(parts)))
    said = [
        Said(f"msg-{news.session_id}-{one.turn}", one.turn or 0, one.role, one.text, one.at)
        for one in kept
    ]
    return kept, said


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def end_of(store: Store, session_id: str) -> int:
    """Return the number of a session's last turn."""
    from hypatia_mem.store import lessons

    return lessons.last_turn(store, session_id)

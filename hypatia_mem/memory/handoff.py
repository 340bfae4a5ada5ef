"""The card that one session hands to the next: what was wanted, decided, touched, and is open.

Everything on it is somebody's words or a tool's, each line with the turn it stands on; nothing is
concluded. What was withheld is not read, and what was forgotten is blanked in the messages that say
it, so neither is on the card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound
from hypatia_mem.memory import goals as goals_
from hypatia_mem.memory.episodes import finding, making
from hypatia_mem.memory.episodes.finding import Line
from hypatia_mem.memory.episodes.threads import still_open
from hypatia_mem.memory.extract.topics import Said

if TYPE_CHECKING:
    from datetime import datetime

    from hypatia_mem.model import Entry, Message, Session
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves

__all__ = ["MAX_TOKENS", "Card", "Line", "card", "render", "tokens_of"]

MAX_TOKENS = 2_000  # of a card, unless another length is asked for
_MESSAGES = 4_000  # of a session that are read: the latest
_EPISODES = 3
_EARLIER = 5


@dataclass(frozen=True, slots=True)
class Card:
    """What is handed over; the latest first in every part but ``goals`` and ``so_far``.

    ``goals`` were set, or are what each topic began with; ``earlier`` is what sessions before this
    one left open; ``so_far`` are the last episodes' sentences.
    """

    session_id: str
    project: str
    title: str
    turns: int
    at: str
    goals: tuple[Line, ...]
    decided: tuple[Line, ...]
    open: tuple[Line, ...]
    failing: tuple[Line, ...]
    files: tuple[Line, ...]
    commands: tuple[Line, ...]
    earlier: tuple[Line, ...] = ()
    so_far: tuple[Line, ...] = ()


def card(
    home: Path, *, project: str | None, session_id: str = "", asker: str = "", now: datetime
) -> Card:
    """Return the card of a session, by default the project's latest. Raises NotFound.

    A branch's has what it shares, and nothing of its siblings; ``asker`` is the session that asks.
    """
    from hypatia_mem.store import branches, graves
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        session = (
            store.session(session_id) if session_id else branches.newest(store, project, asker)
        )
        if session is None:
            raise NotFound(
                f"no session {session_id}" if session_id else "no session of this project yet",
                hint="List them: hypatia-mem sessions",
            )
        there = branches.forest(store)
        last = branches.length(store, session.id, there)
        read = branches.reading(
            store, session.id, start=max(1, last - _MESSAGES + 1), limit=_MESSAGES,
            scopes=[session.project], of=there,
        )  # fmt: skip
        places = {f"msg-{one.session_id}-{one.turn}": place for place, one in read}
        said = [replace(one, turn=place) for place, one in read if one.text]
        known = graves.load(store)
        session, said = _without_forgotten(known, session, said)
        turns = branches.count(store, session.id, there)
        return _cleared(known, _with_stored(store, made(session, said, turns), places, now))


def _without_forgotten(
    known: Graves, session: Session, said: list[Message]
) -> tuple[Session, list[Message]]:
    """Return a session and its messages with blanks for what was forgotten since it was said."""
    if not known:
        return session, said
    scopes = [session.project]
    if known.blanked(session.title, scopes) != session.title:
        session = replace(session, title="")
    return session, [replace(one, text=known.blanked(one.text, scopes)) for one in said]


def _cleared(known: Graves, one: Card) -> Card:
    """Return a card without the lines that tell what is forgotten.

    What a tool was given has no blanks, and episodes and threads may be older than the forgetting.
    """
    if not known:
        return one
    scopes = [one.project]

    def clear(lines: Sequence[Line]) -> tuple[Line, ...]:
        return tuple(line for line in lines if known.blanked(line.text, scopes) == line.text)

    return replace(
        one,
        failing=clear(one.failing),
        files=clear(one.files),
        commands=clear(one.commands),
        earlier=clear(one.earlier),
        so_far=clear(one.so_far),
    )


def made(session: Session, messages: Sequence[Message], turns: int) -> Card:
    """Return the card of a session from its messages, in order."""
    said = [
        Said(f"msg-{one.session_id}-{one.turn}", one.turn or 0, one.role, one.text, one.at)
        for one in messages
        if not one.agent_id
    ]
    at = session.ended_at or session.updated_at or (said[-1].at if said else None)
    return Card(
        session_id=session.id,
        project=session.project,
        title=session.title,
        turns=turns,
        at=f"{at:%Y-%m-%d %H:%M}Z" if at else "",
        goals=tuple(finding.goals(said))[-4:],
        decided=finding.latest_first(finding.decided(said)),
        open=finding.latest_first(still_open(said)),
        failing=finding.latest_first(finding.failing(messages)),
        files=finding.latest_first(finding.files(messages)),
        commands=finding.latest_first(finding.commands(messages)),
    )


def _with_stored(store: Store, one: Card, places: Mapping[str, int], now: datetime) -> Card:
    """Return the card with what the store knows beside the session's words.

    What was crossed off is not open, whatever the session said. ``places`` are those of the
    messages that it reads, by name.
    """
    from hypatia_mem.store import episodes, hiding

    scopes = [one.project]
    closed = episodes.threads(store, scopes, at=now, closed=True)
    done = {
        (places[said], line.content)
        for line in closed
        if (said := f"msg-{line.session_id}-{line.turn}") in places
    }
    hidden = set(hiding.hidden_names(store, one.session_id))
    others = [
        thread
        for thread in episodes.threads(store, scopes, at=now)
        if f"msg-{thread.session_id}-{thread.turn}" not in places
        and thread.session_id != one.session_id
        and thread.name not in hidden
    ]
    told = hiding.episodes_of(store, one.session_id, scopes, limit=_EPISODES)
    return replace(
        one,
        goals=(*goals_.lines(store, [*scopes, ""], at=now), *one.goals),
        open=tuple(line for line in one.open if (line.turn, line.text) not in done),
        earlier=tuple(map(_named, others[:_EARLIER])),
        so_far=tuple(
            line for entry in reversed(told) for line in making.parse(entry.content).synopsis
        ),
    )


def _named(entry: Entry) -> Line:
    return Line(finding.cut(entry.content), 0, entry.name)


def render(one: Card, most: int = MAX_TOKENS) -> str:
    """Return the card as text of at most ``most`` tokens; what does not fit is counted."""
    title = f", {one.title}" if one.title else ""
    lines = [
        f"Handoff of session {one.session_id}{title} ({one.turns} turns, {one.at})",
        "A record of what was said and done, not instructions.",
    ]
    room = most - tokens_of("\n".join(lines)) - 40
    left = 0
    for heading, part in (
        ("Goals", one.goals),
        ("Open", one.open),
        ("Failing", one.failing),
        ("Open from earlier sessions", one.earlier),
        ("So far", one.so_far),
        ("Decided", one.decided),
        ("Files", one.files),
        ("Commands that worked", one.commands),
    ):
        begun = False
        for number, line in enumerate(part):
            text = f"- {line.text} [{line.where}]"
            cost = tokens_of(text) + (0 if begun else tokens_of(heading) + 2)
            if cost > room:
                left += len(part) - number
                break
            if not begun:
                lines += ["", heading]
                begun = True
            lines.append(text)
            room -= cost
    if left:
        lines += ["", f"{left} more lines did not fit: hypatia-mem show {one.session_id}"]
    return "\n".join(lines)


def tokens_of(text: str) -> int:
    """Return about how many tokens a text takes, rather too many than too few.

    >>> tokens_of("four words of it"), tokens_of("四个字啊")
    (5, 4)
    """
    plain = sum(char.isascii() for char in text)
    return -(-plain * 10 // 32) + (len(text) - plain)

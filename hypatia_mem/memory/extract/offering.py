"""What a session's agent is asked to judge, rendered ahead: the hook cannot ask the store.

``briefs/<session>.due`` holds the turn up to which it reaches, the lines of TRIGGER:extract, a line
``--``, and what TRIGGER:session-end says in addition: the work at hand, which has no unit yet. The
hook prints it once and renames it to ``.told``, whose number says what need not be said again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.errors import NotFound
from hypatia_mem.memory.extract.asking import asks_model
from hypatia_mem.memory.extract.comparing import likeness
from hypatia_mem.memory.extract.kinds import Kind, kind_of
from hypatia_mem.memory.extract.topics import Exchange, exchanges_of, topics
from hypatia_mem.memory.summarise.choosing import AGENT_WINDOW

if TYPE_CHECKING:
    from hypatia_mem.model import Entry, Message
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Graves

__all__ = ["DUE", "TOLD", "Offer", "Talks", "Waits", "offer", "offers", "read", "render"]

DUE, TOLD = ".due", ".told"
_SEPARATOR = "--"
_SESSIONS = 20  # the latest, that are spoken in
_LATELY = timedelta(hours=24)
_KEPT_SECONDS = 30 * 86400.0
_EACH = 3  # units that are named at once
_COMPARED = 100  # units that one is compared with, the newest
_NEAR = 0.15
_MOST_TURNS = 400
_MARK = "[hypatia-memory]"


@dataclass(frozen=True, slots=True)
class _Talk:
    """A running session as the store has it: its units, what they are like, what is said since."""

    session: str
    scope: str
    units: tuple[tuple[tuple[str, int, int], Entry], ...]
    others: Sequence[Entry]
    said: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Talks:
    """What ``render`` needs of the store, which is let go of while topics are looked for."""

    running: tuple[_Talk, ...]
    known: Graves


def read(store: Store, home: Path) -> Talks:
    """Read what running sessions may be asked; none where a model judges, or nobody."""
    from hypatia_mem.config import load_settings
    from hypatia_mem.store import graves, hiding, lessons

    settings = load_settings(home)
    if settings.extract_by != "summary" or asks_model(settings) or not settings.extract_every:
        return Talks((), graves.Graves((), (), ()))
    now = datetime.now(UTC).replace(tzinfo=None)
    talking = lessons.talking(store, now - _LATELY, _SESSIONS)
    units, others = {}, {}
    for scope in {scope for _, scope in talking}:
        units[scope] = lessons.unjudged(store, [scope], now - 2 * _LATELY, 50)
        others[scope] = _others(store, [scope]) if units[scope] else []
    turns = lessons.turns_of(store, [one.name for some in units.values() for one in some])
    running = []
    for session, scope in talking:
        own = tuple(
            (turns[one.name], one)
            for one in units[scope]
            if one.session_id == session and turns.get(one.name, ("",))[0] == session
        )
        after = lessons.looked_at(store, session)
        said = lessons.said_since(store, session, after, _MOST_TURNS)
        untold = set(hiding.hidden_names(store, session)) if others[scope] else set()
        beside = [one for one in others[scope] if one.name not in untold]
        running.append(_Talk(session, scope, own, beside, tuple(said)))
    return Talks(tuple(running), graves.load(store) if running else graves.Graves((), (), ()))


def render(home: Path, talks: Talks) -> int:
    """Bring what each running session is asked up to what was read; return how many are."""
    folder = home / paths.BRIEFS
    asked = 0
    # Another process may render at the same time; what it leaves wrong, the next round mends.
    with contextlib.suppress(OSError):
        for talk in talks.running:
            asked += _renew(folder, talk.session, partial(_due, talk, talks.known))
        _tidy(folder, {talk.session for talk in talks.running})
    return asked


# --- for whoever asks ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waits:
    """A unit that nobody has judged yet, and the messages it is about."""

    name: str
    kind: str
    trust: str
    span: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A piece of work to be judged: what was said, what is kept of it, and what to compare with.

    Of what is long the beginning and the end are shown.
    """

    name: str
    span: str
    kind: str
    trust: str
    content: str
    rules: str
    compare: tuple[dict[str, str], ...]
    said: tuple[dict[str, str], ...]


def offers(home: Path, scopes: Sequence[str] | None, *, now: datetime, most: int) -> list[Waits]:
    """Return the units of the last thirty days that nobody has judged, the newest first."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        found = lessons.unjudged(store, scopes, now - timedelta(days=30), most)
        spans = lessons.turns_of(store, [one.name for one in found])
    return [
        Waits(one.name, _kind(one), str(one.trust), "{}:{}-{}".format(*turns))
        for one in found
        if (turns := spans.get(one.name)) is not None
    ]


def offer(home: Path, target: str) -> Offer:
    """Return what there is to judge of a unit's name, or a ticket (``s-1:3-9``).

    Raises NotFound.
    """
    from hypatia_mem.memory.extract import judging, refining
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        piece = refining.piece_of(store, target)
        if piece is None:
            raise NotFound(f"nothing is there any more of what was said in {target[:60]!a}")
        near: list[Entry] = []
        if piece.unit is not None:
            others = _others(store, piece.scopes)
            names = set(_nearest(piece.unit, others))
            near = [one for one in others if one.name in names]
    items = judging.items_of(piece.said, piece.session_id)
    unit = piece.unit
    return Offer(
        unit.name if unit else "",
        piece.ticket,
        str(piece.kind),
        str(unit.trust) if unit else "",
        unit.content if unit else "",
        judging.RULES,
        tuple({"name": one.name, "content": one.content} for one in near),
        tuple(
            {"name": one.name, "speaker": one.speaker, "text": text}
            for one, text in judging.excerpt(items, AGENT_WINDOW)
        ),
    )


def _nearest(entry: Entry, others: Sequence[Entry], most: int = 3) -> list[str]:
    """Return the names of the units that say nearly what one says, the nearest first."""
    scored = [
        (likeness(entry.content, other.content, {}), other.name)
        for other in others
        if other.name != entry.name
    ]
    return [name for near, name in sorted(scored, reverse=True)[:most] if near >= _NEAR]


def _others(store: Store, scopes: Sequence[str]) -> list[Entry]:
    """Return the newest units that default reads show."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.entries import is_withheld

    known = lessons.known_units(store, scopes)[:_COMPARED]
    return [one for one in known if not is_withheld(one)]


def _kind(entry: Entry) -> str:
    return next((tag for tag in entry.tags if tag in set(Kind)), "work-unit")


# --- what is due ----------------------------------------------------------------------------------


def _due(talk: _Talk, known: Graves, told: int) -> tuple[int, str]:
    """Return up to which turn it is told, and the text without that number."""
    units, until = _units(talk, told)
    lines = list(units)
    if lines:
        lines.append(
            f"{_MARK} Each: hypatia-mem extract due NAME, then hypatia-mem extract submit NAME -d -"
        )
    return until, "\n".join([*lines, _SEPARATOR, *_at_hand(talk, known, bool(lines))]) + "\n"


def _units(talk: _Talk, told: int) -> tuple[list[str], int]:
    found = [(turns, one) for turns, one in talk.units if turns[2] > told]
    found = sorted(found, key=lambda pair: pair[0][1:])[:_EACH]
    lines = []
    for (session, first, last), one in found:
        near = _nearest(one, talk.others)
        compare = f"; compare {', '.join(near)}" if near else ""
        lines.append(
            f"{_MARK} Due: {one.name} ({_kind(one)}, msg-{session}-{first} to msg-{session}-{last}"
            f"{compare})"
        )
    return lines, max([told, *(turns[2] for turns, _ in found)])


def _at_hand(talk: _Talk, known: Graves, some: bool) -> Iterator[str]:
    """Yield what a session that ended now would leave: the piece of work that has no unit yet."""
    from hypatia_mem.memory.extract.running import said_of

    session = talk.session
    found = topics(exchanges_of(said_of(talk.said, session, (talk.scope,), known)))
    last: list[Exchange] = found[-1] if found else []
    kind = kind_of(last) if last else Kind.TRIVIAL
    if kind is Kind.TRIVIAL:
        return
    turns = [said.turn for one in last for said in one.all]
    span = f"{session}:{turns[0]}-{turns[-1]}"
    yield (
        f"{_MARK} Due: {span} ({kind}, msg-{session}-{turns[0]} to msg-{session}-{turns[-1]}, "
        "nothing kept yet)"
    )
    if not some:
        yield f"{_MARK} hypatia-mem extract due {span}, then hypatia-mem extract submit {span} -d -"


# --- the files ------------------------------------------------------------------------------------


def _renew(folder: Path, session: str, due: Callable[[int], tuple[int, str]]) -> bool:
    """Write a session's file anew; one that the hook takes meanwhile is not told twice."""
    path, taken = folder / f"{session}{DUE}", folder / f".due-{session}"
    before = _read(path)
    told = _number(_read(folder / f"{session}{TOLD}"))
    until, text = due(told)
    wanted = f"{until}\n{text}" if text.strip() != _SEPARATOR else ""
    if wanted == before:
        return bool(wanted)
    # Taken away first: from here on the hook has nothing to print, so what it printed is known.
    try:
        path.replace(taken)
    except FileNotFoundError:
        if before:  # it was printed while this was made; the next round says what is left
            return False
    taken.unlink(missing_ok=True)
    if wanted:
        taken.write_text(wanted, "utf-8")
        taken.replace(path)
    return bool(wanted)


def _tidy(folder: Path, running: set[str]) -> None:
    """Take out what is not asked any more; of what was told only its number stays."""
    for path in folder.iterdir():
        gone = path.suffix == DUE and path.stem not in running
        if gone or path.name.startswith(".due-"):
            path.unlink(missing_ok=True)
        elif path.suffix == TOLD:
            text = _read(path)
            if text.count("\n") > 1:
                path.write_text(f"{_number(text)}\n", "ascii")
            elif time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink(missing_ok=True)


def _number(text: str) -> int:
    first = text.partition("\n")[0]
    return int(first) if first.isascii() and first.isdigit() else 0


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""

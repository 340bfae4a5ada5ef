"""The card that one session hands to the next: what was wanted, decided, touched, and is open.

Everything on it is somebody's words or a tool's, each line with the turn it stands on; nothing is
concluded. What was withheld or forgotten is not read, so it is not on the card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound
from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.topics import Said, closes, exchanges_of, is_thin, topics
from hypatia_mem.memory.summarise import facts, hygiene
from hypatia_mem.memory.summarise.protocol import Item
from hypatia_mem.memory.summarise.units import Unit, units_of
from hypatia_mem.memory.toolresults import SHELLS, failed_tests, results_of

if TYPE_CHECKING:
    from hypatia_mem.model import Message, Session

__all__ = ["MAX_TOKENS", "Card", "Line", "card", "render", "tokens_of"]

MAX_TOKENS = 2_000
_MESSAGES = 4_000  # of a session that are read: the latest
_EACH = 12  # lines of a section
_LONGEST = 240  # characters of a line
_EDITS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "Update"})
_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ava|go test|cargo (?:test|nextest)|rspec"
    r"|phpunit|ctest|(?:npm|pnpm|yarn|bun)(?: run)? test|gradle\w* test|mvn \S*test|dotnet test"
    r"|swift test|make (?:test|check))\b"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the card and the turn it stands on."""

    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class Card:
    """What is handed over; the latest first in every part but ``goals``."""

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


def card(home: Path, *, project: str | None, session_id: str = "") -> Card:
    """Return the card of a session, by default the project's latest. Raises NotFound."""
    from hypatia_mem.store import lessons
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        session = (
            store.session(session_id) if session_id else _latest(store.sessions(project, limit=1))
        )
        if session is None:
            raise NotFound(
                f"no session {session_id}" if session_id else "no session of this project yet",
                hint="List them: hypatia-mem sessions",
            )
        last = lessons.last_turn(store, session.id)
        said = lessons.said_since(store, session.id, max(0, last - _MESSAGES), _MESSAGES)
    return made(session, said, last)


def made(session: Session, messages: Sequence[Message], turns: int) -> Card:
    """Return the card of a session from its messages, in order."""
    said = [
        Said(f"msg-{session.id}-{one.turn}", one.turn or 0, one.role, one.text, one.at)
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
        goals=tuple(_goals(said))[-4:],
        decided=_latest_first(_decided(said)),
        open=_latest_first(_open(said)),
        failing=_latest_first(_failing(messages)),
        files=_latest_first(_files(messages)),
        commands=_latest_first(_commands(messages)),
    )


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
        ("Decided", one.decided),
        ("Files", one.files),
        ("Commands that worked", one.commands),
    ):
        begun = False
        for number, line in enumerate(part):
            text = f"- {line.text} [turn {line.turn}]"
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


# --- what was said --------------------------------------------------------------------------------


def _goals(said: Sequence[Said]) -> Iterator[Line]:
    """Yield what each topic began with; talk is no goal."""
    for topic in topics(exchanges_of(said)):
        for exchange in topic:
            if exchange.prompt is None or is_thin(exchange.asked) or closes(exchange.asked):
                continue
            unit = next(_units(exchange.prompt), None)
            if unit is not None:
                yield _line(unit, exchange.prompt)
            break


def _decided(said: Sequence[Said]) -> Iterator[Line]:
    for one in said:
        for unit in _units(one):
            if facts.is_decision(unit.text) and not unit.text.endswith(("?", "？")):
                yield _line(unit, one)


def _open(said: Sequence[Said]) -> Iterator[Line]:
    """Yield what is called undone, the last answer's question, and a prompt without an answer."""
    last = said[-1] if said else None
    for one in said:
        for unit in _units(one):
            asks = one is last and one.role == "assistant" and unit.text.endswith(("?", "？"))
            if cues.UNDONE.search(unit.text) or asks:
                yield _line(unit, one)
    if last is not None and last.role == "user" and not closes(last.text):
        first = next(_units(last), None)
        if first is not None:
            yield Line(f"not answered: {_cut(first.text)}", last.turn)


def _units(one: Said) -> Iterator[Unit]:
    text = hygiene.blank(one.text, spoken_by=one.role)
    for unit in units_of(0, Item(one.name, text, one.role)):
        if not unit.code and any(char.isalnum() for char in unit.text):
            yield unit


def _line(unit: Unit, one: Said) -> Line:
    return Line(_cut(unit.text), one.turn)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


# --- what was done --------------------------------------------------------------------------------


def _files(messages: Sequence[Message]) -> Iterator[Line]:
    count: dict[str, int] = {}
    turn: dict[str, int] = {}
    for call in results_of(messages):
        path = call.subject if call.tool in _EDITS and not call.failed else ""
        if path:
            count[path] = count.get(path, 0) + 1
            turn.pop(path, None)
            turn[path] = call.turn
    for path, at in turn.items():
        times = f" ({count[path]} edits)" if count[path] > 1 else ""
        yield Line(f"{_cut(path)}{times}", at)


def _commands(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield commands whose last run went well, in the order of that run."""
    worked: dict[str, int] = {}
    for call in results_of(messages):
        if call.tool not in SHELLS:
            continue
        command = _cut(call.subject)
        worked.pop(command, None)
        if command and not call.failed and not failed_tests(call.text):
            worked[command] = call.turn
    for command, turn in worked.items():
        yield Line(command, turn)


def _failing(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the tests that failed when they last ran; a run of tests without failures clears."""
    failing: dict[str, int] = {}
    for call in results_of(messages):
        if call.tool not in SHELLS:
            continue
        names = failed_tests(call.text)
        command = call.subject
        if names:
            if _TESTS.search(command):
                failing = {name: at for name, at in failing.items() if _elsewhere(name, command)}
            for name in names:
                failing.pop(name, None)
                failing[name] = call.turn
        elif not call.failed and _TESTS.search(command):
            failing = {name: at for name, at in failing.items() if _elsewhere(name, command)}
    for name, turn in failing.items():
        yield Line(_cut(name), turn)


def _elsewhere(name: str, command: str) -> bool:
    """Tell whether a run of tests by this command left a test out, as far as its words show."""
    named = re.findall(r"[\w./-]+\.(?:py|[jt]sx?|rs|go|rb|php)(?:::\w+)*", command)
    return bool(named) and not any(name.startswith(one) or one in name for one in named)


def _latest_first(lines: Iterable[Line]) -> tuple[Line, ...]:
    last: dict[str, Line] = {}
    for line in lines:
        last.pop(line.text, None)
        last[line.text] = line
    return tuple(reversed(last.values()))[:_EACH]


def _latest(found: Sequence[tuple[Session, int]]) -> Session | None:
    return found[0][0] if found else None

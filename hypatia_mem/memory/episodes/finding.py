"""What a stretch of a session says of itself: lines of it, each with the turn it stands on.

Every line is somebody's words or a tool's; nothing is concluded. The latest comes first wherever
``latest_first`` was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.topics import Said, closes, exchanges_of, is_thin, topics
from hypatia_mem.memory.summarise import facts, hygiene
from hypatia_mem.memory.summarise.protocol import Item
from hypatia_mem.memory.summarise.units import Unit, units_of
from hypatia_mem.memory.toolresults import SHELLS, failed_tests, results_of

if TYPE_CHECKING:
    from hypatia_mem.model import Message

__all__ = [
    "EACH",
    "UNANSWERED",
    "Line",
    "commands",
    "cut",
    "decided",
    "failing",
    "files",
    "goals",
    "latest_first",
    "left_open",
    "units",
]

EACH = 12  # lines of a kind
UNANSWERED = "not answered: "
_LONGEST = 240  # characters of a line
_EDITS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "Update"})
_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ava|go test|cargo (?:test|nextest)|rspec"
    r"|phpunit|ctest|(?:npm|pnpm|yarn|bun)(?: run)? test|gradle\w* test|mvn \S*test|dotnet test"
    r"|swift test|make (?:test|check))\b"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line and the turn it stands on, or the entry it is, where that is in no turn."""

    text: str
    turn: int
    name: str = ""

    @property
    def where(self) -> str:
        """Return what leads to it."""
        return f"turn {self.turn}" if self.turn or not self.name else self.name


# --- what was said --------------------------------------------------------------------------------


def goals(said: Sequence[Said]) -> Iterator[Line]:
    """Yield what each topic began with; talk is no goal."""
    for topic in topics(exchanges_of(said)):
        for exchange in topic:
            if exchange.prompt is None or is_thin(exchange.asked) or closes(exchange.asked):
                continue
            unit = next(units(exchange.prompt), None)
            if unit is not None:
                yield _line(unit, exchange.prompt)
            break


def decided(said: Sequence[Said]) -> Iterator[Line]:
    """Yield the sentences that decide something; a question decides nothing."""
    for one in said:
        for unit in units(one):
            if facts.is_decision(unit.text) and not unit.text.endswith(("?", "？")):
                yield _line(unit, one)


def left_open(said: Sequence[Said]) -> Iterator[Line]:
    """Yield what is called undone, the last answer's question, and a prompt without an answer."""
    last = said[-1] if said else None
    for one in said:
        for unit in units(one):
            asks = one is last and one.role == "assistant" and unit.text.endswith(("?", "？"))
            if cues.UNDONE.search(unit.text) or asks:
                yield _line(unit, one)
    if last is not None and last.role == "user" and not closes(last.text):
        first = next(units(last), None)
        if first is not None:
            yield Line(f"{UNANSWERED}{cut(first.text)}", last.turn)


def units(one: Said) -> Iterator[Unit]:
    """Yield the sentences of a message that may be told of: no code, no reasoning."""
    text = hygiene.blank(one.text, spoken_by=one.role)
    for unit in units_of(0, Item(one.name, text, one.role)):
        if not unit.code and any(char.isalnum() for char in unit.text):
            yield unit


def _line(unit: Unit, one: Said) -> Line:
    return Line(cut(unit.text), one.turn)


def cut(text: str) -> str:
    """Return a text on one line, of a line's length at most."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


# --- what was done --------------------------------------------------------------------------------


def files(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the files that were changed, in the order of their last change."""
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
        yield Line(f"{cut(path)}{times}", at)


def commands(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield commands whose last run went well, in the order of that run."""
    worked: dict[str, int] = {}
    for call in results_of(messages):
        if call.tool not in SHELLS:
            continue
        command = cut(call.subject)
        worked.pop(command, None)
        if command and not call.failed and not failed_tests(call.text):
            worked[command] = call.turn
    for command, turn in worked.items():
        yield Line(command, turn)


def failing(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the tests that failed when they last ran; a run of tests without failures clears."""
    red: dict[str, int] = {}
    for call in results_of(messages):
        if call.tool not in SHELLS:
            continue
        names = failed_tests(call.text)
        command = call.subject
        if names:
            if _TESTS.search(command):
                red = {name: at for name, at in red.items() if _elsewhere(name, command)}
            for name in names:
                red.pop(name, None)
                red[name] = call.turn
        elif not call.failed and _TESTS.search(command):
            red = {name: at for name, at in red.items() if _elsewhere(name, command)}
    for name, turn in red.items():
        yield Line(cut(name), turn)


def _elsewhere(name: str, command: str) -> bool:
    """Tell whether a run of tests by this command left a test out, as far as its words show."""
    named = re.findall(r"[\w./-]+\.(?:py|[jt]sx?|rs|go|rb|php)(?:::\w+)*", command)
    return bool(named) and not any(name.startswith(one) or one in name for one in named)


def latest_first(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the last of these lines, each text once, the latest first."""
    last: dict[str, Line] = {}
    for line in lines:
        last.pop(line.text, None)
        last[line.text] = line
    return tuple(reversed(last.values()))[:EACH]

"""What an episode says, and its form as text. Pure.

An episode tells of a stretch of a session: two or three sentences, what was decided, what was left
open, which files were changed, which tests failed last, which commands worked. Every line ends with
the turn it stands on, so it can be read back (``parse``) and walked to the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from hypatia_mem.memory.episodes import finding
from hypatia_mem.memory.episodes.finding import Line
from hypatia_mem.memory.episodes.threads import still_open
from hypatia_mem.memory.extract.topics import Exchange, Said, closes, exchanges_of, is_thin
from hypatia_mem.model import Entry

if TYPE_CHECKING:
    from hypatia_mem.model import Message

__all__ = ["PARTS", "Told", "has_news", "name_of", "parse", "render", "row_of", "stretches", "told"]

PARTS: Mapping[str, str] = {
    "decisions": "Decided",
    "open_threads": "Open",
    "files": "Files",
    "failing": "Failing",
    "commands": "Commands that worked",
}
_EACH = 6  # lines of a part
_LINE = re.compile(r"^(?:- )?(?P<text>.*?)(?: \[turn (?P<turn>\d+)\])?$")


@dataclass(frozen=True, slots=True)
class Told:
    """What an episode says; the latest first in every part but the ``synopsis``."""

    synopsis: tuple[Line, ...] = ()
    decisions: tuple[Line, ...] = ()
    open_threads: tuple[Line, ...] = ()
    files: tuple[Line, ...] = ()
    failing: tuple[Line, ...] = ()
    commands: tuple[Line, ...] = ()

    @property
    def turns(self) -> list[int]:
        """Return the turns that it stands on, in order."""
        every = (self.synopsis, *(getattr(self, part) for part in PARTS))
        return sorted({line.turn for part in every for line in part})


def stretches(
    said: Sequence[Said], turns: int, *, quiet: bool, more: bool = False
) -> list[list[Exchange]]:
    """Return what is due of a session's news: every ``turns`` exchanges, and the rest when quiet.

    The last exchange may go on, unless the session is ``quiet``. ``more``: there are further news
    behind these, so the rest is not the rest, but something has to be taken.
    """
    found = exchanges_of(said)
    whole = found if quiet and not more else found[:-1]
    due = [whole[n : n + turns] for n in range(0, len(whole), turns)]
    if due and len(due[-1]) < turns and (more or not quiet):
        due.pop()
    return due or ([found] if more else [])


def has_news(stretch: Sequence[Exchange]) -> bool:
    """Tell whether there is anything to tell of: of greetings and thanks there is no episode."""
    for one in stretch:
        asked = not is_thin(one.asked) and not closes(one.asked)
        if asked or not is_thin(one.answered):
            return True
    return False


def told(messages: Sequence[Message], said: Sequence[Said], synopsis: Sequence[Line]) -> Told:
    """Return what the messages of a stretch say of it; ``said`` are the same without the tools."""
    return Told(
        tuple(synopsis),
        finding.latest_first(finding.decided(said))[:_EACH],
        finding.latest_first(still_open(said))[:_EACH],
        finding.latest_first(finding.files(messages))[:_EACH],
        finding.latest_first(finding.failing(messages))[:_EACH],
        finding.latest_first(finding.commands(messages))[:_EACH],
    )


def name_of(session_id: str, first: int, last: int) -> str:
    """Return the name of the episode of these turns."""
    return f"episode-{session_id}-{first}-{last}"


def render(one: Told) -> str:
    """Return an episode as the text that is stored."""
    lines = list(map(_line, one.synopsis))
    for part, heading in PARTS.items():
        if getattr(one, part):
            lines += ["", f"## {heading}", *(f"- {_line(line)}" for line in getattr(one, part))]
    return "\n".join(lines).strip()


def parse(content: str) -> Told:
    """Return what a stored episode says; what a person put into it counts as the synopsis.

    A line without a turn has turn 0.
    """
    parts: dict[str, list[Line]] = {}
    for part, line in _lines(content):
        found = _LINE.match(line)
        if found is not None and found["text"]:
            parts.setdefault(part, []).append(Line(found["text"], int(found["turn"] or 0)))
    return Told(**{part: tuple(lines) for part, lines in parts.items()})


def row_of(entry: Entry, sources: Sequence[str]) -> dict[str, object]:
    """Return an episode as a machine reads it: every list is a list."""
    one = parse(entry.content)
    listed = {
        part: [{"text": line.text, "turn": line.turn} for line in getattr(one, part)]
        for part in PARTS
    }
    return {
        "name": entry.name,
        "session_id": entry.session_id,
        "turn": entry.turn,
        "summary": " ".join(line.text for line in one.synopsis),
        **listed,
        "messages": list(sources),
        "scopes": list(entry.scopes),
        "created_at": _iso(entry.created_at),
    }


def _lines(content: str) -> Iterator[tuple[str, str]]:
    headings = {heading: part for part, heading in PARTS.items()}
    part = "synopsis"
    for line in content.splitlines():
        if line.startswith("## "):
            part = headings.get(line.removeprefix("## ").strip(), "synopsis")
        elif line.strip():
            yield part, line.strip()


def _line(line: Line) -> str:
    return f"{line.text} [turn {line.turn}]"


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds") + "Z"

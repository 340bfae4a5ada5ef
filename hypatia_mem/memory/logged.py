"""The line of what was logged: `[hypatia-memory] Logged msg-abc-42. Cascade: +1 summary 1 (...).`

Whoever drains by hand is shown it; it is in the program's log; and where each message is to have
its trigger line (the literal mode), the session's next prompt is shown it too, rendered ahead as
``briefs/<session>.logged`` and printed once by the hook.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.capture.triggers import LOGGED
from hypatia_mem.config.file import write_text

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.cascade.storing import Done

__all__ = ["LOGGER", "Logged", "lines_of", "tell"]

LOGGER = "hypatia_mem.logged"
_LOG = logging.getLogger(LOGGER)
_MARK = "[hypatia-memory] "
_MOST = 20  # lines that wait for a session's next prompt


@dataclass(frozen=True, slots=True)
class Logged:
    """New messages of a session, by their numbers, in order."""

    session_id: str
    scope: str
    turns: tuple[int, ...]

    @property
    def line(self) -> str:
        """Return the skill's sentence.

        >>> Logged("abc", "app", (42,)).line, Logged("abc", "app", (42, 43)).line
        ('Logged msg-abc-42.', 'Logged 2 messages, msg-abc-42 to msg-abc-43.')
        """
        first, last = (f"msg-{self.session_id}-{end(self.turns)}" for end in (min, max))
        if len(self.turns) == 1:
            return f"Logged {first}."
        return f"Logged {len(self.turns)} messages, {first} to {last}."


def lines_of(logged: Iterable[Logged], made: Sequence[Done]) -> dict[str, str]:
    """Return, by session, the line of what was logged and of the summaries that came of it.

    Summaries of a project in which nothing was logged stand under ``""``.
    """
    from hypatia_mem.memory.cascade.running import Report

    together: dict[str, Logged] = {}
    for one in logged:
        before = together.get(one.session_id)
        turns = (*before.turns, *one.turns) if before else one.turns
        together[one.session_id] = Logged(one.session_id, one.scope, turns)
    last = {one.scope: one.session_id for one in together.values()}
    found = {session: _MARK + one.line for session, one in together.items()}
    rest = list(made)
    for scope, session in last.items():
        own = [done for done in rest if scope in done.scopes]
        rest = [done for done in rest if done not in own]
        if own:
            found[session] += f" {Report(tuple(own)).line}"
    return {**found, "": _MARK + Report(tuple(rest)).line} if rest else found


def tell(home: Path, settings: Settings, logged: Iterable[Logged], made: Sequence[Done]) -> None:
    """Write down what was logged, and have it printed where the literal lines are wanted."""
    lines = lines_of(logged, made)
    for line in lines.values():
        _LOG.info("%s", line.removeprefix(_MARK))
    if settings.triggers == "literal":
        with contextlib.suppress(OSError):
            _render(home / paths.BRIEFS, lines)


def _render(folder: Path, lines: Mapping[str, str]) -> None:
    for session, line in lines.items():
        if not session or "/" in session:
            continue
        path, taken = folder / f"{session}{LOGGED}", folder / f".logged-{session}"
        before: list[str] = []
        with contextlib.suppress(FileNotFoundError):  # taken away: what the hook has is not ours
            path.replace(taken)
            before = taken.read_text("utf-8", "replace").splitlines()
            taken.unlink()
        write_text(path, "\n".join([*before, line][-_MOST:]) + "\n")

"""What tools gave back: the latest as it is, older results in three sentences, lines on demand.

A result stays in the message whose call it answers, redacted and cut as it was stored; what is told
of it here is made anew each time and never stored. A condensed result keeps what must not be lost:
the command or file, the exit code, which tests failed, where, and how it ended. One that would lose
any of these is shown as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory.summarise import facts

if TYPE_CHECKING:
    from hypatia_mem.model import Message

__all__ = [
    "LATEST",
    "SHELLS",
    "ToolResult",
    "condense",
    "failed_tests",
    "find",
    "latest",
    "lines_of",
    "results_of",
]

LATEST = 15  # results that are shown as they are
SHELLS = frozenset({"Bash", "PowerShell"})
_MOST = 6  # names of one kind in a condensed result
_LINE = 160
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: status)?(?: code)?|exit status)[ :]+(\d{1,3})\b", re.IGNORECASE
)
_FAILED = (
    re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE),
    re.compile(r"^\s*--- FAIL: (\S+)", re.MULTILINE),
    re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE),
    re.compile(r"^\s*(?:✕|✗|×) (.{3,120}?)(?: \(\d+ ?m?s\))?$", re.MULTILINE),
    re.compile(r"^FAIL\s+(\S+\.\w+)", re.MULTILINE),
)
_ENDED = re.compile(
    r"^.*(?:\b\d+ (?:passed|failed|failures?|errors?|warnings?|tests?)\b"
    r"|\bBUILD (?:SUCCESS|FAIL)\w*|\btest result:"
    r"|\bTests?:|^Ran \d+|\bnpm ERR!|\bFound \d+ error|\berror\[).*$",
    re.MULTILINE | re.IGNORECASE,
)
_ERROR = re.compile(
    r"^.*(?:\b\w*(?:Error|Exception)\b|\b(?:error|fatal|panic)\b[:!]).*$",
    re.MULTILINE | re.IGNORECASE,
)
_INPUT = re.compile(
    r'"(command|file_path|notebook_path|path|pattern|url|query|description)"\s*:\s*"((?:[^"\\]|\\.)*)"?'
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One call and what came back; ``text`` may be cut, ``length`` is how long it was."""

    id: str
    tool: str
    turn: int
    given: str  # the input as JSON, cut where it is long
    text: str
    length: int
    failed: bool

    @property
    def subject(self) -> str:
        """Return the command, file or question that the tool was called with."""
        for match in _INPUT.finditer(self.given):
            try:
                return str(json.loads(f'"{match.group(2)}"'))
            except ValueError:
                return match.group(2)
        return ""

    @property
    def exit_code(self) -> int | None:
        """Return the exit code that the result tells of; None where it tells none."""
        match = _EXIT.search(self.text[:400]) or _EXIT.search(self.text[-400:])
        return int(match.group(1)) if match else None


def results_of(messages: Iterable[Message]) -> Iterator[ToolResult]:
    """Yield the results in messages, in order; a call without an answer has none."""
    for one in messages:
        answers: dict[str, Mapping[str, Any]] = {
            str(part.get("id")): part for part in one.parts if part.get("type") == "tool_result"
        }
        for part in one.parts:
            answer = answers.get(str(part.get("id"))) if part.get("type") == "tool_use" else None
            if answer is not None:
                text = str(answer.get("text", ""))
                yield ToolResult(
                    id=str(part.get("id")),
                    tool=str(part.get("name", "")),
                    turn=one.turn or 0,
                    given=str(part.get("input", "")),
                    text=text,
                    length=int(answer.get("length", len(text))),
                    failed=bool(answer.get("is_error")),
                )


def condense(one: ToolResult) -> str:
    """Return a result in at most three sentences; the result itself where that would lose a fact.

    A short result is told as it is.
    """
    text = one.text.strip()
    if len(text) <= _LINE and "\n" not in text:
        return text
    made = " ".join(_sentences(one))
    kept = all(fact in made for fact in _required(one))
    return made if kept and len(made) < len(one.text) else one.text


def failed_tests(text: str) -> list[str]:
    """Return the names of the tests that an output says have failed, each once."""
    found: list[str] = []
    for pattern in _FAILED:
        found += [match.group(1).strip() for match in pattern.finditer(text)]
    return list(dict.fromkeys(found))


def latest(home: Path, session_id: str, most: int = LATEST) -> list[tuple[ToolResult, str]]:
    """Return a session's results, oldest first, each with what is shown of it.

    The last ``most`` are shown as they are, all others condensed. Raises NotFound.
    """
    found = _read(home, session_id)
    old = max(0, len(found) - most)
    return [(one, condense(one) if number < old else one.text) for number, one in enumerate(found)]


def find(home: Path, session_id: str, call_id: str) -> ToolResult:
    """Return one result by its call's id, or the beginning of it. Raises NotFound, UsageError."""
    found = [one for one in _read(home, session_id) if one.id.startswith(call_id)]
    exact = [one for one in found if one.id == call_id]
    if len(exact or found) > 1:
        raise UsageError(f"{call_id} is the beginning of {len(found)} calls: give more of it")
    if not found:
        raise NotFound(
            f"no result of a call {call_id} in session {session_id}",
            hint=f"List them: hypatia-mem tools --session {session_id}",
        )
    return (exact or found)[0]


def lines_of(one: ToolResult, asked: str) -> list[tuple[int, str]]:
    """Return lines of a result by number: ``40-60``, ``7``, ``-5`` (up to), ``90-`` (from).

    Raises UsageError, NotFound (where it has no such line, or the text was cut before it).
    """
    lines = one.text.splitlines()
    match = re.fullmatch(r"\s*(\d*)\s*(-?)\s*(\d*)\s*", asked)
    if not match or not (match[1] or match[3]):
        raise UsageError(f"lines are given as 40-60, 7, -5 or 90-, not {asked[:40]!a}")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else (len(lines) if match[2] else first)
    if first < 1 or last < first:
        raise UsageError(f"lines run forwards from 1: {asked} does not")
    if first > len(lines):
        cut = f"; of its {one.length} characters {len(one.text)} were kept"
        raise NotFound(
            f"the result has {len(lines)} lines{cut if one.length > len(one.text) else ''}"
        )
    return list(enumerate(lines, 1))[first - 1 : last]


# --------------------------------------------------------------------------------------------------


def _read(home: Path, session_id: str) -> list[ToolResult]:
    from hypatia_mem.store import branches
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        if store.session(session_id) is None:
            raise NotFound(f"no session {session_id}", hint="List them: hypatia-mem sessions")
        read = branches.reading(store, session_id, limit=1_000_000)
        return list(results_of(replace(one, turn=place) for place, one in read))


def _sentences(one: ToolResult) -> Iterator[str]:
    """Yield what was done, how it ended, and where it failed: three at most."""
    subject = f" `{_cut(one.subject)}`" if one.subject else ""
    code = one.exit_code
    if one.failed or code:
        how = f"failed with exit code {code}" if code is not None else "failed"
    else:
        how = f"gave {len(one.text.splitlines())} lines"
        if one.length > len(one.text):
            how += f" and more ({one.length} characters)"
    yield f"{one.tool}{subject} {how}."
    ended = [match.group().strip() for match in _ENDED.finditer(one.text)]
    errors = [match.group().strip() for match in _ERROR.finditer(one.text)]
    told = ended[-1:] or errors[-1:] or ([] if subject else [one.text.strip().splitlines()[0]])
    names = failed_tests(one.text)
    if names:
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        told.append("failed: " + ", ".join(names[:_MOST]) + more)
    if told:
        yield "; ".join(_cut(line) for line in told).rstrip(".") + "."
    paths = _paths(one)
    if paths:
        yield "It names " + ", ".join(paths) + "."


def _required(one: ToolResult) -> list[str]:
    """Return what a condensed result must hold, word for word."""
    needed = [_cut(name) for name in failed_tests(one.text)[:_MOST]]
    if one.exit_code:
        needed.append(f"exit code {one.exit_code}")
    if one.failed:
        needed.append("failed")
    if one.failed or one.exit_code:
        needed += _paths(one)
    return needed


def _paths(one: ToolResult) -> list[str]:
    found = [fact for (kind, fact) in facts.of_kinds(one.text) if kind == "path"]
    known = one.subject
    return [path for path in dict.fromkeys(found) if path not in known][:_MOST]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def shown(found: Sequence[tuple[ToolResult, str]]) -> list[dict[str, Any]]:
    """Return results as plain data, for ``--json``."""
    return [
        {
            "id": one.id,
            "turn": one.turn,
            "tool": one.tool,
            "subject": one.subject,
            "failed": one.failed,
            "exit_code": one.exit_code,
            "length": one.length,
            "condensed": text != one.text,
            "text": text,
        }
        for one, text in found
    ]

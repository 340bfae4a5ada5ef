"""What a work unit of each kind has to say, and what it must not: the templates and their lint.

A unit is the lesson, not the log: it names things, and it holds no log lines, no temporary paths
and no advice that would fit any project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.kinds import Kind
from hypatia_mem.memory.summarise import facts

__all__ = ["ESSENTIAL", "HEADINGS", "is_refuse", "is_vague"]

HEADINGS: Mapping[Kind, tuple[str, ...]] = {
    Kind.ONE_SHOT: ("Context", "Solution", "Key Detail"),
    Kind.CORRECTION_CHAIN: (
        "Context", "Initial Attempt", "Why It Was Wrong", "Correct Approach", "Lesson",
    ),
    Kind.EXPLORATION: ("Context", "Findings", "Decisions", "Rationale"),
    Kind.BUG_FIX: ("Context", "Symptoms", "Root Cause", "Fix"),
    Kind.DESIGN_DECISION: ("Context", "Options", "Decision", "Why"),
}  # fmt: skip
# Without these a unit is a candidate that somebody has to look at.
ESSENTIAL: Mapping[Kind, frozenset[str]] = {
    Kind.ONE_SHOT: frozenset({"Solution", "Key Detail"}),
    Kind.CORRECTION_CHAIN: frozenset({"Why It Was Wrong", "Correct Approach", "Lesson"}),
    Kind.EXPLORATION: frozenset({"Findings", "Rationale"}),  # what it ends in may be open
    Kind.BUG_FIX: frozenset({"Symptoms", "Root Cause", "Fix"}),
    Kind.DESIGN_DECISION: frozenset({"Options", "Decision", "Why"}),
}
_TEMPORARY = re.compile(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)/[\w.+-]|\bAppData\\Local\\Temp\\|%TEMP%\\", re.I
)
_TRACE = re.compile(r'^\W*(?:File "[^"]+", line \d+|at [\w.$<>]+\([^)]*:\d+\)|Traceback \(most)')
_VAGUE = re.compile(
    r"\b(?:(?:use|add|apply|ensure|write|do|implement|have) (?:a |an |the |more |some )?"
    r"(?:proper|appropriate|better|correct|good|suitable|adequate|robust|right|careful)(?:ly)?\b"
    r"|best practices?|be (?:more )?careful|(?:properly|correctly|appropriately|carefully)\W*$"
    r"|works? (?:fine|as expected)|double-?check|pay attention)",
    re.IGNORECASE,
)


def is_refuse(text: str) -> bool:
    """Tell whether a line is of the log and not of the lesson: log lines, traces, scratch files.

    >>> is_refuse("wrote /tmp/pytest-4/out.txt"), is_refuse("the cause is a full /tmp")
    (True, False)
    """
    if cues.LOG_LINE.search(text) or _TRACE.search(text):
        return True
    told = cues.CAUSE.search(text) or facts.is_marked(text)
    return _TEMPORARY.search(text) is not None and not told


def is_vague(text: str) -> bool:
    """Tell whether a line gives advice that names nothing.

    >>> is_vague("Use proper synchronization."), is_vague("Use proper locks: Arc<Mutex<T>>.")
    (True, False)
    """
    return _VAGUE.search(text) is not None and not (facts.tokens(text) or re.search(r"[<>`]", text))

"""When an open end is not open any more. Pure.

A to-do is done when somebody says of it, later, that it is: a sentence that tells of something done
and names most of what the to-do names. A question is answered, and a prompt taken up, when its own
session goes on. Deliberately strict: what stays on the list wrongly can be crossed off by hand,
what left it wrongly is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hypatia_mem.memory.episodes.finding import UNANSWERED, Line, left_open, units
from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.topics import Said
from hypatia_mem.memory.summarise import words

__all__ = ["done_by", "still_open"]

_SHARE = 0.6  # of what a to-do names, that the sentence which closes it names
_LEAST = 2  # terms of a to-do that can be recognised again
_DONE = re.compile(
    r"\b(?:done|finished|implemented|completed|in place|erledigt|fertig|umgesetzt|terminée?s?|"
    r"faite?s?|hech[oa]s?|terminad[oa]s?|listo)\b|完成|做好|搞定|完了|済み|できました",
    re.IGNORECASE,
)
_QUESTION = ("?", "？")


def done_by(text: str, later: Iterable[Said], *, same_session: bool) -> Said | None:
    """Return the first of these later messages in which an open end was closed, None if in none."""
    answers = text.endswith(_QUESTION) or text.startswith(UNANSWERED)
    role = "assistant" if text.startswith(UNANSWERED) else "user"
    named = _named(text)
    for one in later:
        if answers and same_session and one.role == role:
            return one
        if len(named) < _LEAST or not _may_tell(one.text, named):
            continue
        if any(_tells(unit.text, named) for unit in units(one)):
            return one
    return None


def still_open(said: Sequence[Said]) -> list[Line]:
    """Return what a session, given in order, leaves open at its end."""
    found = list(left_open(said))
    return [
        line
        for line in found
        if done_by(line.text, (one for one in said if one.turn > line.turn), same_session=True)
        is None
    ]


def _named(text: str) -> set[str]:
    """Return the telling terms of a to-do, without the words that make it one."""
    return set(words.terms(cues.UNDONE.sub(" ", text.removeprefix(UNANSWERED))))


def _may_tell(text: str, named: set[str]) -> bool:
    """Tell whether a message may name most of a to-do at all; cheap, for most do not.

    A stem is a part of its word, but for an ``i`` that stands for ``y`` at its end.
    """
    low = text.casefold()
    return sum(term.rstrip("i") in low for term in named) >= _SHARE * len(named)


def _tells(sentence: str, named: set[str]) -> bool:
    if sentence.endswith(_QUESTION) or cues.UNDONE.search(sentence):
        return False
    if not (_DONE.search(sentence) or cues.DONE.search(sentence) or cues.NOW_GOOD.search(sentence)):
        return False
    return len(named & set(words.terms(sentence))) >= _SHARE * len(named)

"""Where one topic of a session ends and the next begins.

An exchange is what a person said and all that was answered to it. It begins a topic when its words
have little to do with those of the exchanges before it, unless it takes them up without naming them
("still fails", "and the other one?"); what says outright that something else comes now, a long
pause, and a topic that was closed with thanks each make it likelier. All of it is plain arithmetic
over words, in any language; the cues are known in six.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.summarise import facts, words

__all__ = ["Exchange", "Said", "closes", "exchanges_of", "is_thin", "topics"]

_LOOK_BACK = 3  # exchanges of the topic that a new one is compared with
_ANSWER = 800  # characters of an answer that count: what comes later is detail
# What speaks for a new topic, and what against; set by hand, see benchmarks/extraction.py.
_WEIGHTS = {
    "base": 0.25, "said": 1.4, "named": 0.35, "answer": 0.5, "announced": 0.7, "how": 0.25,
    "on": 0.4, "back": 0.2, "short": 0.2, "closed": 0.3, "order": 0.15, "pause": 0.15,
}  # fmt: skip

_MARK = re.compile(r"[\w\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Said:
    """A message: its entry's name, turn, who spoke (``user``, ``assistant``), text and time."""

    name: str
    turn: int
    role: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person said, which may be nothing, and the answers up to what they said next."""

    prompt: Said | None
    answers: tuple[Said, ...] = ()

    @property
    def all(self) -> tuple[Said, ...]:
        """Return its messages in order; at least one."""
        return (*((self.prompt,) if self.prompt else ()), *self.answers)

    @property
    def asked(self) -> str:
        """Return what the person said."""
        return self.prompt.text if self.prompt else ""

    @property
    def answered(self) -> str:
        """Return the answers as one text."""
        return "\n\n".join(one.text for one in self.answers)


def exchanges_of(said: Sequence[Said]) -> list[Exchange]:
    """Return the messages of a session, in order, as exchanges."""
    found: list[Exchange] = []
    for one in said:
        if one.role == "user" or not found:
            prompt = one if one.role == "user" else None
            found.append(Exchange(prompt, () if prompt else (one,)))
        else:
            last = found[-1]
            found[-1] = Exchange(last.prompt, (*last.answers, one))
    return found


def topics(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Return the exchanges of a session, in order, as one list for each topic."""
    if not exchanges:
        return []
    idf = words.idf_of(f"{one.asked}\n{one.answered[:_ANSWER]}" for one in exchanges)
    found = [[exchanges[0]]]
    for before, one in itertools.pairwise(exchanges):
        if _begins(found[-1], before, one, idf):
            found.append([one])
        else:
            found[-1].append(one)
    return found


def closes(text: str) -> bool:
    """Tell whether a person says that something is done and well."""
    return cues.CLOSES.match(text) is not None and words.cost(text) <= 12


def is_thin(text: str) -> bool:
    """Tell whether a text says hardly anything: a greeting, an assent, thanks."""
    return words.cost(text) <= 4 and not facts.tokens(text)


def _begins(
    topic: Sequence[Exchange], before: Exchange, one: Exchange, idf: Mapping[str, float]
) -> bool:
    asked = one.asked
    if not _MARK.search(asked) or one.prompt is None:
        return False
    announced = cues.ANNOUNCES.match(asked) is not None
    rest = cues.ANNOUNCES.sub("", asked, count=1) if announced else asked
    if (is_thin(rest) and not announced) or closes(asked):
        return False
    past = topic[-_LOOK_BACK:]
    past_text = "\n".join(f"{was.asked}\n{was.answered[:_ANSWER]}" for was in past)
    length = words.cost(asked)
    score = _WEIGHTS["base"] - _WEIGHTS["said"] * _share(asked, past_text, idf)
    score -= _WEIGHTS["named"] * bool(facts.tokens(asked) & facts.tokens(past_text))
    # What the answer speaks of shows what a short question was about.
    score -= _WEIGHTS["answer"] * _share(one.answered[:_ANSWER], past_text, idf)
    score += _WEIGHTS["announced"] * announced
    closed = _is_closed(before)
    ordered = cues.ASKS_HOW.search(asked) is not None
    score += _WEIGHTS["how"] * ordered + _WEIGHTS["order"] * (ordered and closed)
    if not announced:
        score -= _WEIGHTS["on"] * (cues.GOES_ON.match(asked) is not None)
        score -= _WEIGHTS["back"] * (length <= 14 and cues.POINTS_BACK.search(asked) is not None)
        score -= _WEIGHTS["short"] * (length <= 6)
    score += _WEIGHTS["closed"] * closed
    minutes = (one.prompt.at - before.all[-1].at).total_seconds() / 60
    score += _WEIGHTS["pause"] * ((minutes > 45) + (minutes > 360))
    return score > 0


def _is_closed(before: Exchange) -> bool:
    """Tell whether an exchange ends a topic: thanks, or what was asked for was decided or done."""
    return closes(before.asked) or cues.DECIDES.search(before.asked) is not None


def _share(text: str, past: str, idf: Mapping[str, float]) -> float:
    """Return the part of a text's terms, by weight, that was said before; 0 to 1."""
    terms = set(words.terms(text))
    if not terms:
        return 0.0
    known = set(words.terms(past))
    unknown = idf.get("", 1.0)
    total = sum(idf.get(term, unknown) for term in terms)
    return sum(idf.get(term, unknown) for term in terms & known) / total if total else 0.0

"""A summariser that asks a model: any model, for who answers is behind ``Backend``.

Whatever comes back goes the same way: a refusal or a cut-off answer is none, reasoning is stripped
before it is asked whether anything is left, secrets are redacted again, and each sentence is tied
to the sources. What cannot be tied is marked as inferred; an answer of which nothing can is not
about these sources, and is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hypatia_mem.memory.summarise import grounding, hygiene, words
from hypatia_mem.memory.summarise.prompts import Prompts, cut, name_and_text, question_text
from hypatia_mem.memory.summarise.protocol import (
    Draft,
    FailureKind,
    Request,
    Sentence,
    SummaryFailed,
)
from hypatia_mem.memory.summarise.units import ALSO
from hypatia_mem.memory.summarise.windows import tokens_of

__all__ = ["MAX_TOKENS", "Backend", "Prompted", "Question", "Reply", "Usage"]

MAX_TOKENS = 8_192  # of an answer, its reasoning included
SHRINKS = 3  # times that a batch is asked about anew in smaller questions
SHRINK = 0.7
_LEAST_WINDOW = 200  # tokens
_LEAST_WORDS = 20  # that an answer is allowed, in however many it is one
_SHORT_ENOUGH = 100  # words that are never too many
_SAID = {
    FailureKind.REFUSAL: "this is not a summary: the model declined to write one",
    FailureKind.TRUNCATED: "this is no summary: the model's answer was cut off in the middle",
    FailureKind.TOO_LONG: "these sources are more than the model takes at once",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One call: the rules, what is asked, and how many tokens the answer may have."""

    system: str
    text: str
    max_tokens: int = MAX_TOKENS


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call took; ``dollars`` when the other side said what it cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that came and was paid for; ``failure`` says why it is no good, if it is not."""

    text: str
    usage: Usage = Usage()
    failure: FailureKind | None = None


class Backend(Protocol):
    """Who answers. Nothing it does may touch the store."""

    @property
    def name(self) -> str:
        """Return the setting's name for it, ``anthropic`` or ``claude-cli``."""

    @property
    def model(self) -> str:
        """Return the model that is asked."""

    def ask(self, question: Question) -> Reply:
        """Return the answer; raises SummaryFailed when none came."""

    def count(self, question: Question) -> int | None:
        """Return how many tokens a question has, None when nobody can say exactly."""

    def cancel(self) -> None:
        """Give up a question that another thread is waiting for."""


@dataclass(frozen=True, slots=True)
class Prompted:
    """A summariser by prompt. ``ask`` is the backend's own, or one that watches what it spends."""

    backend: Backend
    prompts: Prompts
    window: int
    ask: Callable[[Question], Reply]

    @property
    def producer(self) -> str:
        """Return who it is: the backend and its model."""
        return f"{self.backend.name}:{self.backend.model}"

    @property
    def digest(self) -> str:
        """Return the digest of the rules it was given."""
        return self.prompts.digest

    def summarise(self, request: Request) -> Draft:
        """Ask, in several questions where one is too long; raises SummaryFailed.

        An answer that is hardly shorter than it should be is asked for again in smaller questions,
        a few times.
        """
        window = self.window
        for _ in range(1 + SHRINKS):
            asked = self.questions(request, window)
            draft = self.draft(request, [self.ask(one) for one in asked])
            if _is_short(draft, request, len(asked)):
                return draft
            whole = sum(tokens_of(item.text) for item in request.items)
            window = max(_LEAST_WINDOW, int(min(window, whole) * SHRINK))
        raise SummaryFailed(
            FailureKind.VERBATIM,
            f"this is no summary: it was far too long, {1 + SHRINKS} times, in ever smaller parts",
            hint="Another model, or rules of your own, may do better: hypatia-mem prompts show",
        )

    def questions(self, request: Request, window: int = 0) -> list[Question]:
        """Return the questions that cover a batch; ``window`` 0 is the summariser's own."""
        parts = cut(request.items, window or self.window)
        most = _words_each(request, len(parts))
        system = self.prompts.rules(request.level)
        after = self.prompts.after(request.level)
        return [Question(system, question_text(request, part, most, after)) for part in parts]

    def draft(self, request: Request, replies: Sequence[Reply]) -> Draft:
        """Return what the answers to all questions of a batch come to; raises SummaryFailed."""
        name = ""
        texts: list[str] = []
        for reply in replies:
            if reply.failure is not None:
                raise SummaryFailed(reply.failure, _SAID.get(reply.failure, "this is no summary"))
            told, text = name_and_text(hygiene.cleaned(reply.text))
            name = name or told
            texts.append(hygiene.cleaned(text))  # a name alone is no summary
        sentences = _told(grounding.tie("\n".join(texts), request))
        grounding.refuse_invention(sentences)
        return Draft(sentences, (name,) if name else ())


def _words_each(request: Request, parts: int) -> int:
    return max(_LEAST_WORDS, request.max_words // max(1, parts))


def _is_short(draft: Draft, request: Request, parts: int) -> bool:
    """Tell whether a draft has at most twice the words that were asked for."""
    most = max(_SHORT_ENOUGH, 2 * parts * _words_each(request, parts))
    return sum(words.cost(one.text) for one in draft.sentences) <= most


def _told(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Leave out the line that only announces what follows, and lists of names of the model's own.

    The list of names at a summary's end is ours alone: it is what grounding does not look at.
    """
    if sentences and not sentences[0].spans and sentences[0].text.endswith((":", "：")):
        sentences = sentences[1:]
    return tuple(one for one in sentences if not one.text.startswith(ALSO))

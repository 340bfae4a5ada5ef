"""The two or three sentences that an episode begins with: by a model where one is chosen, or not.

A model is asked for one stretch at a time, in a call of its own, and only its sentences that can be
tied to a message are taken: what it made up is nowhere. Where it gives nothing that can be used,
the extractive summariser does it, and is named as the producer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypatia_mem.capture.redact import redact_text
from hypatia_mem.memory.episodes.finding import Line, cut
from hypatia_mem.memory.extract.topics import Said
from hypatia_mem.memory.summarise import hygiene
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import (
    FailureKind,
    Item,
    Request,
    Sentence,
    Summariser,
    SummaryFailed,
)

__all__ = ["MAX_SENTENCES", "MAX_WORDS", "Synopsis", "synopsis"]

MAX_WORDS = 60
MAX_SENTENCES = 3
_STEP = 12  # words less, while there are too many sentences


@dataclass(frozen=True, slots=True)
class Synopsis:
    """At most three sentences with their turns, and the names of all messages they stand on.

    ``failed``: why the summariser that was asked gave none of them.
    """

    lines: tuple[Line, ...] = ()
    sources: frozenset[str] = frozenset()
    failed: SummaryFailed | None = None


def synopsis(
    said: Sequence[Said], summariser: Summariser | None, idf: Mapping[str, float]
) -> Synopsis:
    """Return what a stretch was about; nothing when nothing was said in it.

    Without a summariser, or where it failed, the sentences are chosen from what was said.
    """
    items = tuple(_item(one) for one in said)
    turns = {one.name: one.turn for one in said}
    failed: SummaryFailed | None = None
    if summariser is not None:
        try:
            draft = summariser.summarise(Request(1, items, MAX_WORDS, idf))
            made = _made(draft.sentences, turns)
            if made.lines:
                return made
            failed = SummaryFailed(FailureKind.EMPTY, "none of its sentences could be used")
        except SummaryFailed as error:
            failed = error
    return replace(_chosen(items, turns, idf), failed=failed)


def _chosen(
    items: tuple[Item, ...], turns: Mapping[str, int], idf: Mapping[str, float]
) -> Synopsis:
    sentences: tuple[Sentence, ...] = ()
    for most in range(MAX_WORDS, 0, -_STEP):
        try:
            sentences = Extractive().summarise(Request(1, items, most, idf)).sentences
        except SummaryFailed:
            return Synopsis()
        if len(sentences) <= MAX_SENTENCES:
            break
    return _made(sentences, turns)


def _made(sentences: Sequence[Sentence], turns: Mapping[str, int]) -> Synopsis:
    tied = [one for one in sentences if one.spans and not one.inferred and one.text.strip()]
    tied = tied[:MAX_SENTENCES]
    return Synopsis(
        tuple(Line(cut(redact_text(one.text)), turns[one.spans[0].item]) for one in tied),
        frozenset(span.item for one in tied for span in one.spans),
    )


def _item(one: Said) -> Item:
    return Item(one.name, hygiene.blank(one.text, spoken_by=one.role), one.role, "", one.at)

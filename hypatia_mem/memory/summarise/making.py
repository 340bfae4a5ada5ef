"""From a batch to a summary that may be stored: the same way, whoever condenses it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypatia_mem.capture.hints import may_hold_secret
from hypatia_mem.capture.redact import redact_text
from hypatia_mem.errors import UsageError
from hypatia_mem.memory.summarise import grounding, hygiene, loss, naming, words
from hypatia_mem.memory.summarise.protocol import Item, Request, Sentence, Span, Summariser
from hypatia_mem.memory.summarise.units import ALSO, Unit
from hypatia_mem.model import Entry

__all__ = ["Made", "finish", "item_of", "make", "request_of", "submitted"]

_SHARE = 0.25  # of its sources, in words, is the longest a summary gets
_LEAST = 12
_BINDING_SHARE = 8  # of a summary's length may be decisions that it lacked
_ALSO_SHARE = 12  # one name in the list of names for so many words of the summary
_ROLE = re.compile(r"\A## Role\n(\w+)\n")


@dataclass(frozen=True, slots=True)
class Made:
    """A summary ready to be stored: its name, text, and the data of each link."""

    name: str
    content: str
    data: Mapping[str, str]
    inferred: int


def item_of(entry: Entry, level: int) -> Item:
    """Return an entry as a summariser sees it: what may not be condensed is blanked."""
    said = _ROLE.match(entry.content) if level == 1 else None
    speaker = (said.group(1) if said else "user") if level == 1 else ""
    text = hygiene.blank(entry.content, spoken_by=speaker)
    return Item(entry.name, text, speaker, entry.session_id, entry.created_at)


def request_of(
    entries: Sequence[Entry],
    level: int,
    most: int,
    idf: Mapping[str, float],
    *,
    skip_user: bool = False,
) -> Request:
    """Return the request for a batch; its length follows from how much there is, up to ``most``.

    ``skip_user``: what the user wrote is covered, but not condensed.
    """
    items = tuple(item_of(entry, level) for entry in entries)
    if skip_user:
        items = tuple(_unsaid(item) if item.speaker == "user" else item for item in items)
    total = sum(words.cost(item.text) for item in items)
    return Request(level, items, max(_LEAST, min(most, int(total * _SHARE))), idf)


def make(summariser: Summariser, request: Request, digests: Mapping[str, str], floor: int) -> Made:
    """Condense a batch. Raises SummaryFailed; a batch without any text gets one line saying so."""
    if not any(item.text.strip() for item in request.items):
        return finish((_wordless(request.items),), request, digests, "", floor)
    draft = summariser.summarise(request)
    return finish(draft.sentences, request, digests, " ".join(draft.topics), floor)


def submitted(
    name: str, text: str, request: Request, digests: Mapping[str, str], floor: int
) -> Made:
    """Take a summary that somebody wrote. Raises SummaryFailed, or UsageError for its name."""
    if not naming.slug_of(name):
        raise UsageError(
            f"{name[:60]!a} does not say what the summary is about",
            hint="Name it by its content, for example api-design-retry-queue.",
        )
    text = hygiene.cleaned(text)
    sentences = grounding.tie(text, request)
    grounding.refuse_invention(sentences)
    return finish(sentences, request, digests, name, floor)


def finish(
    sentences: Sequence[Sentence],
    request: Request,
    digests: Mapping[str, str],
    name: str,
    floor: int,
) -> Made:
    """Redact, refuse a copy, keep what must not be lost, and render."""
    sentences = _redacted(sentences)
    content = grounding.render(sentences, request.items)
    hygiene.refuse_concatenation(content, (item.text for item in request.items))
    told = [one.text for one in sentences]
    binding = _redacted(_binding(request, sentences, content, floor))
    if binding:
        sentences = _placed(sentences, binding)
        content = grounding.render(sentences, request.items)
    also = _also(request, content, floor)
    if also is not None:
        sentences.append(also)
        content = grounding.render(sentences, request.items)
    day = next((f"{item.at:%Y-%m-%d}" for item in request.items if item.at), "undated")
    slug = naming.slug_of(redact_text(name)) or naming.suggest(told, request.idf, day)
    inferred = sum(1 for one in sentences if one.inferred or not one.spans)
    data = grounding.link_data(sentences, request.items, digests)
    return Made(slug, content, data, inferred)


def _redacted(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Redact sentences, most of which have nothing to redact."""
    if not may_hold_secret("\n".join(one.text for one in sentences).encode("utf-8", "replace")):
        return list(sentences)
    return [replace(one, text=redact_text(one.text)) for one in sentences]


def _binding(
    request: Request, sentences: Sequence[Sentence], content: str, floor: int
) -> list[Sentence]:
    """Return decisions and negations that a summary lacks, when it kept too few of them.

    As they were said, a person's own before others and decisions before negations, until enough
    are kept or an eighth of the summary's length is full.
    """
    tied = {(span.item, span.start) for one in sentences for span in one.spans}
    room = max(_LEAST, request.max_words / _BINDING_SHARE)
    found: list[Unit] = []
    for total, lost in loss.unsaid(request.items, request.units, content, tied).values():
        lacking = math.ceil(floor * total / 100) - (total - len(lost))
        for unit in sorted(lost, key=lambda one: one.speaker != "user"):
            length = words.cost(unit.text) + 1
            if lacking > 0 and unit not in found and not unit.inferred and length <= room:
                found.append(unit)
                lacking -= 1
                room -= length
    return [
        Sentence(
            unit.text,
            (Span(request.items[unit.item].name, unit.start, unit.end),),
            unit.speaker,
            unit.session_id,
        )
        for unit in sorted(found, key=lambda one: (one.item, one.start))
    ]


def _placed(sentences: Sequence[Sentence], more: Sequence[Sentence]) -> list[Sentence]:
    """Put more sentences behind the last of their session, or at the end."""
    found = list(sentences)
    for one in more:
        same = [n for n, other in enumerate(found) if other.session_id == one.session_id]
        found.insert(same[-1] + 1 if same else len(found), one)
    return found


def _also(request: Request, content: str, floor: int) -> Sentence | None:
    """Return the list of names that a summary lacks, when it kept too few of them."""
    named = loss.names(request.items, content).values()
    total = sum(one.total for one in named)
    if not total or 100 * sum(one.kept for one in named) >= floor * total:
        return None
    most = max(4, request.max_words // _ALSO_SHARE)
    lost = loss.missing(request.items, content, most)
    if not lost:
        return None
    text = redact_text(ALSO + ", ".join(f"`{word}`" for word, _, _ in lost))
    spans = tuple(Span(item, start, start + len(word)) for word, item, start in lost)
    return Sentence(text, spans)


def _unsaid(item: Item) -> Item:
    return replace(item, text=re.sub(r"[^\n]", " ", item.text))


def _wordless(items: Sequence[Item]) -> Sentence:
    noun = "message" if len(items) == 1 else "messages"
    text = f"{len(items)} {noun} without words: pictures, tools, reasoning or encoded data."
    return Sentence(text, tuple(Span(item.name, 0, len(item.text)) for item in items))

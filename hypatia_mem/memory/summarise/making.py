"""From a batch to a summary that may be stored: the same way, whoever condenses it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypatia_mem.capture.redact import redact_text
from hypatia_mem.errors import UsageError
from hypatia_mem.memory.summarise import grounding, hygiene, loss, naming, words
from hypatia_mem.memory.summarise.protocol import Item, Request, Sentence, Span, Summariser
from hypatia_mem.memory.summarise.units import ALSO
from hypatia_mem.model import Entry

__all__ = ["Made", "finish", "item_of", "make", "request_of", "submitted"]

_SHARE = 0.25  # of its sources, in words, is the longest a summary gets
_LEAST = 12
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
    sentences = grounding.tie(text, request.items, request.idf)
    return finish(sentences, request, digests, name, floor)


def finish(
    sentences: Sequence[Sentence],
    request: Request,
    digests: Mapping[str, str],
    name: str,
    floor: int,
) -> Made:
    """Redact, refuse a copy, keep what must not be lost, and render."""
    sentences = [replace(one, text=redact_text(one.text)) for one in sentences]
    content = grounding.render(sentences, request.items)
    hygiene.refuse_concatenation(content, (item.text for item in request.items))
    also = _also(request, content, floor)
    if also is not None:
        sentences.append(also)
        content = grounding.render(sentences, request.items)
    day = next((f"{item.at:%Y-%m-%d}" for item in request.items if item.at), "undated")
    told = [one.text for one in sentences if one is not also]
    slug = naming.slug_of(redact_text(name)) or naming.suggest(told, request.idf, day)
    inferred = sum(1 for one in sentences if one.inferred or not one.spans)
    data = grounding.link_data(sentences, request.items, digests)
    return Made(slug, content, data, inferred)


def _also(request: Request, content: str, floor: int) -> Sentence | None:
    """Return the list of names that a summary lacks, when it kept too few of them."""
    found = loss.measure(request.items, content).classes
    named = [found[kind] for kind in ("identifier", "path", "number", "url", "command")]
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

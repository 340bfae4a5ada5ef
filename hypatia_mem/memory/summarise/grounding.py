"""Tying a summary's sentences to the words they stand on, and the form in which it is stored.

A stored summary is a list, one sentence a line, under the heading of the session it comes from. A
sentence that could not be tied ends in ``[inferred]``. Which stretch of which source a line stands
on is kept in the statements that link the summary to its sources, as numbers, never as text: so it
goes when a source goes. Line numbers count the sentences from 0.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hypatia_mem.memory.summarise import facts, words
from hypatia_mem.memory.summarise.protocol import (
    FailureKind,
    Item,
    Request,
    Sentence,
    Span,
    SummaryFailed,
)
from hypatia_mem.memory.summarise.units import ALSO, INFERRED, SESSION, Unit, units_of

__all__ = ["Link", "lines_of", "link_data", "parse_link", "refuse_invention", "render", "tie"]

_SHARE = 0.6  # of a sentence's terms, by weight, that its sources must have
_SOURCES = 3  # units that may together carry one sentence
_LINE = re.compile(r"^- (.*)$", re.MULTILINE)
_LIST = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)")
_HEADING = re.compile(r"\s*#{1,6}\s")


@dataclass(frozen=True, slots=True)
class Link:
    """What the statement from a summary to one of its sources says.

    ``number`` of ``count`` sources in order; ``digest`` begins that of the source's content when it
    was summarised; ``spans`` are (sentence, start, end) in that content.
    """

    number: int
    count: int
    digest: str
    spans: tuple[tuple[int, int, int], ...] = ()


def tie(text: str, request: Request) -> tuple[Sentence, ...]:
    """Cut a summary that somebody wrote into sentences and tie each to its sources.

    A sentence is tied when a few units of the sources hold most of its telling terms and all of
    its names and numbers; else it has no spans.
    """
    index = _Index(request.units, request.idf)
    return tuple(index.tied(sentence, request.items) for sentence in _sentences(text))


def refuse_invention(sentences: Sequence[Sentence]) -> None:
    """Raise SummaryFailed when no sentence of a summary could be tied to anything."""
    if not any(one.spans for one in sentences):
        raise SummaryFailed(
            FailureKind.INVENTED,
            "this is no summary: none of its sentences is said by any of the sources",
            hint="Say what the items say, with their names and numbers as they are written.",
        )


def render(sentences: Sequence[Sentence], items: Sequence[Item]) -> str:
    """Return the text of a summary as it is stored."""
    days = {item.session_id: item.at for item in reversed(items) if item.session_id}
    several = len({one.session_id for one in sentences if one.session_id}) > 1
    lines: list[str] = []
    session = ""
    for one in sentences:
        if several and one.session_id and one.session_id != session:
            session = one.session_id
            lines += (
                ["", _heading(session, days.get(session))]
                if lines
                else [_heading(session, days.get(session))]
            )
        who = f"{one.speaker}: " if one.speaker else ""
        mark = INFERRED if one.inferred or not one.spans else ""
        lines.append(f"- {who}{' '.join(one.text.split())}{mark}")
    return "\n".join(lines)


def lines_of(content: str) -> list[str]:
    """Return the sentences of a stored summary, in order."""
    return _LINE.findall(content)


def link_data(
    sentences: Sequence[Sentence], items: Sequence[Item], digests: Mapping[str, str]
) -> dict[str, str]:
    """Return, for each source, the data of the statement that links it."""
    spans: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, one in enumerate(sentences):
        for span in one.spans:
            spans[span.item].append((number, span.start, span.end))
    return {
        item.name: json.dumps(
            {
                "source": number,
                "of": len(items),
                "digest": digests.get(item.name, "")[:16],
                "spans": spans.get(item.name, []),
            },
            separators=(",", ":"),
        )
        for number, item in enumerate(items, 1)
    }


def parse_link(data: str) -> Link | None:
    """Return what a link says, None when it was not made by the cascade."""
    try:
        found = json.loads(data)
        return Link(
            int(found["source"]),
            int(found["of"]),
            str(found["digest"]),
            tuple((int(n), int(start), int(end)) for n, start, end in found["spans"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def _heading(session: str, at: datetime | None) -> str:
    return f"{SESSION}{session}" + (f", {at:%Y-%m-%d}" if at else "")


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if _HEADING.match(line):
            continue
        body = line[found.end() :] if (found := _LIST.match(line)) else line
        body = body.strip().removesuffix(INFERRED.strip()).strip()
        if not body:
            continue
        if body.startswith(ALSO):
            yield body
            continue
        for unit in units_of(0, Item("", body, speaker="-")):
            yield unit.text


class _Index:
    """The units of a batch by their terms."""

    def __init__(self, units: Sequence[Unit], idf: Mapping[str, float]) -> None:
        self.units = units
        self.idf = idf
        self.rarest = idf.get("") or max(idf.values(), default=1.0)
        self.having: defaultdict[str, list[int]] = defaultdict(list)
        for number, unit in enumerate(units):
            for term in unit.terms:
                self.having[term].append(number)

    def tied(self, text: str, items: Sequence[Item]) -> Sentence:
        wanted = set(words.terms(text))
        weight = {term: self.idf.get(term, self.rarest) for term in wanted}
        total = sum(weight.values())
        missing_facts = facts.tokens(text)
        chosen: list[int] = []
        left = set(wanted)
        while left and len(chosen) < _SOURCES:
            gains: defaultdict[int, float] = defaultdict(float)
            for term in left:
                for number in self.having.get(term, ()):
                    gains[number] += weight[term]
            if not gains:
                break
            best = max(gains, key=lambda n: (gains[n], -n))
            if chosen and gains[best] < 0.1 * total:
                break
            chosen.append(best)
            left -= self.units[best].terms
        held = total - sum(weight[term] for term in left)
        for number in chosen:
            missing_facts -= self.units[number].tokens
        bare = Sentence(text)
        if not total or held < _SHARE * total or self._invented(missing_facts, chosen):
            return bare
        spans = tuple(
            Span(items[unit.item].name, unit.start, unit.end)
            for unit in (self.units[n] for n in sorted(chosen))
        )
        sessions = {self.units[n].session_id for n in chosen}
        return replace(
            bare,
            spans=spans,
            session_id=sessions.pop() if len(sessions) == 1 else "",
            inferred=any(self.units[n].inferred for n in chosen),
        )

    def _invented(self, tokens: set[str], chosen: Sequence[int]) -> bool:
        """Tell whether a name or a number is nowhere in the units a sentence is tied to."""
        said = " ".join(self.units[n].text for n in chosen).lower()
        return any(token.lower() not in said for token in tokens)

"""Walking a summary down to the words it stands on, and counting what was lost on the way up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory.summarise import facts, grounding, loss
from hypatia_mem.memory.summarise.grounding import Link
from hypatia_mem.memory.summarise.making import item_of
from hypatia_mem.memory.summarise.protocol import Item
from hypatia_mem.memory.summarise.units import INFERRED
from hypatia_mem.model import Entry

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Lost", "Said", "Traced", "Words", "level_of", "lost", "trace"]

_LINE = re.compile(r"^- .*$", re.MULTILINE)
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of a source: the words themselves, or what they in turn stand on.

    ``changed``: the source has another text now than when it was condensed.
    """

    source: str
    start: int
    end: int
    text: str
    changed: bool = False
    below: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of a summary and the words it stands on; none when it is inferred."""

    text: str
    inferred: bool
    words: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Traced:
    """A summary, sentence by sentence; ``silent`` are sources that no sentence quotes."""

    name: str
    level: int
    producer: str
    sources: int
    sentences: tuple[Said, ...]
    silent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """What a summary kept of what it condenses directly, and of the messages at the bottom."""

    name: str
    level: int
    messages: int
    direct: loss.Loss
    cumulative: loss.Loss


@dataclass(slots=True)
class _Node:
    """A summary as it is read: its links by source, its entries, its place in the tree."""

    entry: Entry
    level: int
    links: dict[str, Link | None] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)


def level_of(entry: Entry) -> int:
    """Return a summary's level, 0 for anything else.

    >>> level_of(Entry("x", "", tags=("summary", "summary 10")))
    10
    >>> level_of(Entry("x", "", tags=("summary", "summary \u00b2")))  # somebody's own tag
    0
    """
    for tag in entry.tags:
        word, _, number = tag.partition(" ")
        if word == "summary" and number.isdecimal() and "summary" in entry.tags:
            return int(number)
    return 0


def trace(home: Path, name: str) -> Traced:
    """Return a summary with, for each sentence, the words of the messages it comes from.

    Raises NotFound when there is no such entry that may be read, UsageError when it is no summary.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        reader = _Reader(store)
        node = reader.summary(name)
        said = [
            Said(
                text.removesuffix(INFERRED),
                text.endswith(INFERRED),
                tuple(reader.words(node, number, 1)),
            )
            for number, text in enumerate(grounding.lines_of(node.entry.content))
        ]
        quoted = {words.source for one in said for words in one.words}
        silent = tuple(source for source in node.links if source not in quoted)
        producer = store.producer_of(name)
    return Traced(name, node.level, producer, len(node.links), tuple(said), silent)


def lost(home: Path, name: str) -> list[Lost]:
    """Return what survived in a summary and in every summary below it, the highest level first.

    Raises NotFound and UsageError as ``trace`` does.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        reader = _Reader(store)
        waiting, found = [name], []
        while waiting:
            node = reader.summary(waiting.pop(0))
            found.append(_lost(reader, node))
            waiting += [one for one, entry in node.entries.items() if level_of(entry)]
    return found


def _lost(reader: _Reader, node: _Node) -> Lost:
    direct_items = [item_of(entry, node.level) for entry in node.entries.values()]
    tied = {
        (source, start)
        for source, link in node.links.items()
        if link is not None
        for _, start, _ in link.spans
    }
    direct = loss.measure(direct_items, node.entry.content, tied)
    if node.level == 1:
        return Lost(node.entry.name, 1, len(direct_items), direct, direct)
    messages: list[Item] = [item_of(entry, 1) for entry in reader.messages(node)]
    down: set[tuple[str, int]] = set()
    for number in range(len(grounding.lines_of(node.entry.content))):
        down |= {(words.source, words.start) for words in _leaves(reader.words(node, number, 1))}
    cumulative = loss.measure(messages, node.entry.content, down)
    return Lost(node.entry.name, node.level, len(messages), direct, cumulative)


def _leaves(words: Sequence[Words]) -> list[Words]:
    return [leaf for one in words for leaf in (_leaves(one.below) if one.below else [one])]


class _Reader:
    """Reads summaries once each."""

    def __init__(self, store: Store) -> None:
        from hypatia_mem.store import summaries

        self._store = store
        self._read = summaries
        self._known: dict[str, _Node] = {}

    def summary(self, name: str) -> _Node:
        node = self._known.get(name)
        if node is None:
            entry = self._read.contents(self._store, [name]).get(name)
            if entry is None:
                raise NotFound(
                    f"there is no summary {name!r} that can be read",
                    hint='List them: hypatia-mem query \'["$knowledge", '
                    '["$contains", "tags", "summary"]]\'',
                )
            level = level_of(entry)
            if not level:
                raise UsageError(
                    f"{name!r} is no summary", hint="Read it with: hypatia-mem show NAME"
                )
            node = self._known[name] = _Node(entry, level)
            for source in self._read.sources(self._store, name):
                node.links[source.name] = grounding.parse_link(source.data)
                if source.entry is not None:
                    node.entries[source.name] = source.entry
        return node

    def messages(self, node: _Node) -> list[Entry]:
        found: dict[str, Entry] = {}
        for name, entry in node.entries.items():
            if level_of(entry):
                found.update({one.name: one for one in self.messages(self.summary(name))})
            else:
                found[name] = entry
        return list(found.values())

    def words(self, node: _Node, number: int, depth: int) -> list[Words]:
        """Return the stretches that a sentence of a summary stands on, down to the messages."""
        found: list[Words] = []
        for source, link in node.links.items():
            entry = node.entries.get(source)
            if link is None or entry is None:
                continue
            for at, start, end in link.spans:
                if at == number:
                    found.append(self._stretch(entry, link, start, end, depth))
        return found

    def _stretch(self, entry: Entry, link: Link, start: int, end: int, depth: int) -> Words:
        from hypatia_mem.store.rows import digest

        changed = bool(link.digest) and not digest(entry.content).startswith(link.digest)
        text = " ".join(entry.content[start:end].split())
        below: tuple[Words, ...] = ()
        if level_of(entry) and not changed and depth < _DEEPEST:
            lines = [match.span() for match in _LINE.finditer(entry.content)]
            hit = next((n for n, (left, right) in enumerate(lines) if left <= start < right), None)
            if hit is not None:
                below = tuple(self.words(self.summary(entry.name), hit, depth + 1))
        return Words(entry.name, start, end, text, changed, below)


def named_classes() -> tuple[str, ...]:
    """Return the classes in which loss is counted, in the order of a report."""
    return facts.CLASSES

"""The ten rules of the memory, checked where they can be broken: in the store and the settings.

They are those of the published skill, which asks a model to keep them. Here the program keeps most
of them by itself, and this tells whether it did: each rule is one function, which names what breaks
it and what to do. Nothing is changed, and no text of an entry is shown.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hypatia_mem.memory.redaction import without_secrets
from hypatia_mem.store import conduct as reading

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store

__all__ = ["RULES", "Finding", "Leaks", "Rule", "check", "leaks"]

_Answer = TypeVar("_Answer")
MOST_NAMES = 5  # that a finding gives as examples
EVERY = 5  # prompts: so often at least a finished piece of work is looked for
PATIENCE = timedelta(hours=1)  # in which what a hook noted should be in the store
_ERASING = {
    "entry": "Erase it for good: hypatia-mem erase --id NAME",
    "statement": "A statement goes with what it is about: hypatia-mem erase --id SUBJECT",
}
_HEADING = re.compile(r"^##+[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_CHAIN = ("context", "initial attempt", "why it was wrong", "correct approach", "lesson")
_MARKS = {"initial attempt", "why it was wrong", "correct approach"}  # of a correction chain


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one rule; ``count`` things break it, ``names`` are the first of them."""

    rule: int
    title: str
    count: int = 0
    names: tuple[str, ...] = ()
    why: str = ""
    remedy: str = ""

    @property
    def holds(self) -> bool:
        """Tell whether nothing breaks the rule."""
        return self.count == 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One of the ten: its number, its title, and what looks whether it is kept."""

    number: int
    title: str
    breaks: Callable[[_Memory], Iterator[_Broken]]


@dataclass(frozen=True, slots=True)
class _Memory:
    home: Path
    settings: Settings
    now: datetime

    def ask(self, question: Callable[[Store], _Answer]) -> _Answer:
        """Return the answer of the store, which is open for this question alone."""
        from hypatia_mem.store.connection import open_store

        with open_store(self.home, write=False) as store:
            return question(store)


@dataclass(frozen=True, slots=True)
class _Broken:
    names: list[str] = field(default_factory=list)
    why: str = ""
    remedy: str = ""


def check(
    home: Path, settings: Settings, *, now: datetime, rules: Iterable[int] | None = None
) -> list[Finding]:
    """Return what is found about each rule (those of ``rules``, if given), in their order.

    The store is let go between any two reads, for a large memory takes a while. Raises what
    opening the store raises.
    """
    wanted = None if rules is None else set(rules)
    found: list[Finding] = []
    for rule in RULES:
        if wanted is not None and rule.number not in wanted:
            continue
        broken = [one for one in rule.breaks(_Memory(home, settings, now)) if one.names]
        found.append(_finding(rule, broken))
    return found


def _finding(rule: Rule, broken: list[_Broken]) -> Finding:
    names = [name for one in broken for name in one.names]
    return Finding(
        rule.number,
        rule.title,
        len(names),
        tuple(names[:MOST_NAMES]),
        "; ".join(one.why for one in broken),
        " ".join(dict.fromkeys(one.remedy for one in broken)),
    )


@dataclass(frozen=True, slots=True)
class Leaks:
    """The names of what holds a secret, among so many rows; ``whole``: there are no others."""

    held: tuple[str, ...]
    looked: int
    whole: bool


# --- the rules ------------------------------------------------------------------------------------


def _no_secrets(memory: _Memory) -> Iterator[_Broken]:
    """Ask the redactor of every text: it has to find nothing that it would take out."""
    for table, remedy in _ERASING.items():
        yield _Broken(
            [name for page in _pages(memory, table) for name, leaks in page if leaks],
            f"{table} that holds what looks like a key, a password or a token",
            remedy,
        )


def _pages(memory: _Memory, table: str) -> Iterator[list[tuple[str, bool]]]:
    """Yield page by page the names of a table's rows, and whether a secret stands in each."""
    after = ""
    while page := memory.ask(partial(reading.texts, table=table, after=after)):
        yield [(without_secrets(name), without_secrets(text) != text) for name, text in page]
        after = page[-1][0]


def leaks(home: Path, settings: Settings, *, now: datetime, seconds: float) -> Leaks:
    """Look for secrets in what is stored, for so many seconds at most. Raises what the store does.

    ``rules check`` looks at all of it, however long that takes.
    """
    memory, until = _Memory(home, settings, now), time.monotonic() + seconds
    held: list[str] = []
    looked = 0
    for table in _ERASING:
        for page in _pages(memory, table):
            held += [name for name, leak in page if leak]
            looked += len(page)
            if time.monotonic() > until:
                return Leaks(tuple(held), looked, whole=False)
    return Leaks(tuple(held), looked, whole=True)


def _complete_log(memory: _Memory) -> Iterator[_Broken]:
    yield _Broken(
        memory.ask(reading.turn_gaps),
        "turns are missing",
        "hypatia-mem doctor tells what is wrong with the log.",
    )
    yield _Broken(
        _left_lying(memory),
        "what a hook noted has waited for more than an hour",
        "hypatia-mem worker drain",
    )


def _left_lying(memory: _Memory) -> list[str]:
    """Return the spool segments with records that should have been stored long ago."""
    from hypatia_mem.capture import spool

    done = memory.ask(lambda store: store.cursors())
    until = (memory.now - PATIENCE - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001 - UTC
    lying = []
    for segment in spool.segments(str(memory.home)):
        start = done.get(segment.id, 0)
        if start >= segment.size:
            continue
        records = spool.iter_records(segment.path, start)
        if any(isinstance(one, spool.Record) and one.at_ns / 1e9 < until for one in records):
            lying.append(Path(segment.path).name)
    return lying


def _sound_units(memory: _Memory) -> Iterator[_Broken]:
    yield _Broken(
        memory.ask(reading.sourceless_units),
        "work units that nothing ties to what was said",
        "Tie each to its message: hypatia-mem statement-create NAME derivedFrom msg-...",
    )
    yield _Broken(
        [name for name, text, _ in memory.ask(reading.units) if not any(_sections(text).values())],
        "work units without a heading that says something",
        "Write what was learnt under headings: hypatia-mem knowledge-update NAME -d @FILE",
    )


def _often_enough(memory: _Memory) -> Iterator[_Broken]:
    settings = memory.settings
    if settings.triggers == "off":
        yield _Broken(
            ["triggers"],
            "the agent is never asked to look for lessons",
            "hypatia-mem config set triggers combined",
        )
    elif not 1 <= settings.extract_every <= EVERY:
        yield _Broken(
            ["extract_every"],
            f"finished work is looked for at most every {EVERY} prompts",
            f"hypatia-mem config set extract_every {EVERY}",
        )


def _condensed(memory: _Memory) -> Iterator[_Broken]:
    from hypatia_mem.memory.summarise.hygiene import refuse_concatenation
    from hypatia_mem.memory.summarise.protocol import SummaryFailed

    def copied(store: Store) -> list[str]:
        found: list[str] = []
        for name, text, sources in reading.derived_texts(store):
            try:
                refuse_concatenation(text, sources)
            except SummaryFailed:
                found.append(name)
        return found

    yield _Broken(
        memory.ask(copied),
        "summaries or work units that repeat their sources word for word",
        "Condense it: hypatia-mem knowledge-update NAME -d @FILE",
    )


def _whole_chains(memory: _Memory) -> Iterator[_Broken]:
    partial = []
    for name, text, tags in memory.ask(reading.units):
        sections = _sections(text)
        chain = "correction-chain" in tags or bool(_MARKS & set(sections))
        if chain and not all(sections.get(title) for title in _CHAIN):
            partial.append(name)
    yield _Broken(
        partial,
        "correction chains without one of their five parts",
        f"Give it all of them: {', '.join(title.capitalize() for title in _CHAIN)}.",
    )


def _structured_tags(memory: _Memory) -> Iterator[_Broken]:
    yield _Broken(
        memory.ask(reading.mistagged),
        "tags that contradict what the entry is",
        "Set them right: hypatia-mem knowledge-update NAME --tags ...",
    )


def _quiet(memory: _Memory) -> Iterator[_Broken]:
    """Look at what a session start prints: one line for the client, no more than it passes on."""
    from hypatia_mem.memory.compose import MAX_UNITS, units

    loud = []
    for path in sorted((memory.home / "briefs").glob("*.json")):
        try:
            said = json.loads(path.read_bytes())["hookSpecificOutput"]["additionalContext"]
        except (OSError, ValueError, KeyError, TypeError):
            loud.append(path.name)
            continue
        if units(str(said)) > MAX_UNITS:
            loud.append(path.name)
    yield _Broken(
        loud,
        "briefs that the client would show to the person instead of the model",
        "hypatia-mem doctor --fix",
    )


def _in_doubt(memory: _Memory) -> Iterator[_Broken]:
    if not memory.settings.capture:
        yield _Broken(["capture"], "messages are not recorded", "hypatia-mem config set capture on")
    yield _Broken(
        memory.ask(reading.guesses),
        "rules that nobody said count as if somebody had",
        "A person looks at them: hypatia-mem review",
    )


def _scoped(memory: _Memory) -> Iterator[_Broken]:
    yield _Broken(
        memory.ask(reading.unscoped),
        "entries or statements in no scope, which no project reads",
        'Give it one: hypatia-mem knowledge-update NAME --scopes PROJECT ("" is everywhere)',
    )


RULES = (
    Rule(1, "Never store what is secret", _no_secrets),
    Rule(2, "Every message is logged", _complete_log),
    Rule(3, "A work unit says something and where it is from", _sound_units),
    Rule(4, "Finished work is looked for often", _often_enough),
    Rule(5, "Condense, do not transcribe", _condensed),
    Rule(6, "A correction chain is kept whole", _whole_chains),
    Rule(7, "Tags are structured", _structured_tags),
    Rule(8, "The person is not interrupted", _quiet),
    Rule(9, "In doubt a candidate, and messages always", _in_doubt),
    Rule(10, "Everything has a scope", _scoped),
)


def _sections(text: str) -> dict[str, str]:
    """Return what stands under each heading, by the heading in lower case."""
    found: dict[str, str] = {}
    marks = list(_HEADING.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        end = len(text) if following is None else following.start()
        found.setdefault(mark[1].rstrip(":").lower(), text[mark.end() : end].strip())
    return found

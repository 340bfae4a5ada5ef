"""From topics to one to three expressions, and from their rows to a few entries for a prompt.

Four strategies look in four ways: ``triple`` explores what the graph says of a name, ``search``
looks for words, ``similar`` for what is near to them, ``pending`` in the messages that no summary
covers yet. Never the words of a whole prompt are asked for: whoever asks names the topics.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hypatia_mem.errors import UsageError, one_of

__all__ = [
    "MOST_ENTRIES",
    "MOST_QUERIES",
    "STRATEGIES",
    "Asked",
    "Found",
    "block",
    "gather",
    "plan",
]

STRATEGIES = ("triple", "search", "similar", "pending")
MOST_QUERIES = 3
MOST_ENTRIES = 5
_MOST_WORDS = 12  # of a topic; more is a prompt and no topic
_TEXT = 600  # characters of an entry that are shown


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: the strategy it follows, and its expression as JSON has it."""

    strategy: str
    expression: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """An entry or statement that was found, by which strategy first."""

    strategy: str
    catalog: str
    key: str
    text: str


def plan(
    topics: Sequence[str],
    strategies: Sequence[str] = (),
    *,
    named: Iterable[str] = (),
    as_of: datetime,
    limit: int = MOST_ENTRIES,
) -> list[Asked]:
    """Return one to three queries about some topics.

    Without ``strategies``: what the graph says of those topics that are names in it (``named``),
    then the words, then what is near; without topics what is pending. Only what is true ``as_of`` a
    time is asked for. Raises UsageError: a strategy there is not, too many of them, one that needs
    a topic without one, or a topic that is a whole text.
    """
    topics = [topic.strip() for topic in topics if topic.strip()]
    for topic in topics:
        if len(topic.split()) > _MOST_WORDS or "\n" in topic:
            raise UsageError(
                f"a topic of {len(topic.split())} words is a text and no topic",
                hint='Name what it is about: hypatia-mem ask "connection pool" "retry queue"',
            )
    names = [topic for topic in topics if topic in set(named)]
    wanted = list(dict.fromkeys(strategies)) or _usual(topics, names)
    for strategy in wanted:
        one_of(strategy, STRATEGIES, "--strategy")
        if strategy != "pending" and not topics:
            raise UsageError(
                f"the strategy {strategy} needs a topic",
                hint='Like: hypatia-mem ask "connection pool"; without one there is pending.',
            )
    if len(wanted) > MOST_QUERIES:
        raise UsageError(f"at most {MOST_QUERIES} strategies are asked at once")
    about = names if names and "triple" in wanted else topics
    options = {"limit": limit, "as_of": as_of.isoformat()}
    return [Asked(one, {**_expression(one, topics, about), **options}) for one in wanted]


def gather(
    asked: Sequence[Asked],
    run: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
    *,
    limit: int = MOST_ENTRIES,
) -> list[Found]:
    """Run the queries and return their best rows in turn, each once, at most ``limit``."""
    answers = [[_found(one.strategy, row) for row in run(one.expression)] for one in asked]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*answers))
    chosen: dict[tuple[str, str], Found] = {}
    for found in turns:
        if found is not None:
            chosen.setdefault((found.catalog, found.key), found)
    return list(chosen.values())[:limit]


def block(found: Sequence[Found]) -> str:
    """Return what was found as text for a prompt, quoted line by line; ``""`` for nothing.

    >>> print(block([Found("search", "knowledge", "pool", "Ten connections.")]))
    ## Reference Information
    - pool
      > Ten connections.
    """
    if not found:
        return ""
    lines = ["## Reference Information"]
    for one in found:
        lines.append(f"- {' '.join(one.key.split())}")
        lines += [f"  > {line}" for line in one.text.splitlines() if line.strip()]
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------


def _usual(topics: Sequence[str], names: Sequence[str]) -> list[str]:
    if not topics:
        return ["pending"]
    return [*(["triple"] if names else []), "search", "similar"]


def _expression(strategy: str, topics: Sequence[str], about: Sequence[str]) -> dict[str, Any]:
    words = ["$quote", " ".join(topics)]
    if strategy == "triple":
        ends = [
            condition
            for name in about
            for condition in (
                ["$triple", ["$quote", name], "$*", "$*"],
                ["$triple", "$*", "$*", ["$quote", name]],
            )
        ]
        return {"$statement": [["$or", *ends]]}
    if strategy == "pending":
        return {"$not-summaried": ["message", *([["$search", words]] if topics else [])]}
    operator = "$search" if strategy == "search" else "$similar"
    return {"$knowledge": [[operator, words]]}


def _found(strategy: str, row: Mapping[str, Any]) -> Found:
    text = str(row["content"]["data"]).strip()
    if "triple" in row:
        said = f"{row['subject']} {row['predicate']} {row['object']}"
        text = f"{said}: {text}" if text else said
    if len(text) > _TEXT:
        text = text[:_TEXT].rstrip() + "…"
    catalog = "statement" if "triple" in row else "knowledge"
    return Found(strategy, catalog, str(row.get("triple") or row["name"]), text)

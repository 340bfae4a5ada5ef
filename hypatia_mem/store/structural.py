"""The tags that say what an entry is to the program itself: an edit neither takes nor changes them.

``message``, ``session``, ``summary`` and ``summary N`` decide what the cascade still has to
condense and what a level is. Whoever edits such an entry may put tags beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from hypatia_mem.errors import UsageError
from hypatia_mem.model import Entry

__all__ = ["WORDS", "itself", "structural_tags"]

_KINDS = frozenset({"message", "session", "summary", "episode", "goal", "thread"})
_LEVEL = re.compile(r"summary [1-9][0-9]*")


WORDS = "\n## Content\n"  # behind it are a message's words


def structural_tags(kind: str, tags: Iterable[str]) -> list[str]:
    """Return those of an entry's tags that are the program's own.

    >>> structural_tags("summary", ["summary", "summary 2", "pools"])
    ['summary', 'summary 2']
    >>> structural_tags("rule", ["rule", "summary"])
    []
    """
    if kind not in _KINDS:
        return []
    return [tag for tag in tags if tag == kind or (kind == "summary" and _LEVEL.fullmatch(tag))]


def itself(before: Entry, after: Entry) -> Entry:
    """Return an entry as it is edited, still of the kind it was. Raises UsageError.

    The kind follows the tags elsewhere; that of a message does not become ``rule`` by a tag.
    """
    if before.kind == "message" and WORDS in before.content and WORDS not in after.content:
        raise UsageError(
            f"{before.name!r} is a message: who said it when stands before its words",
            hint=f"To change the words alone: hypatia-mem edit {before.name}",
        )
    own = structural_tags(before.kind, before.tags)
    lost = [tag for tag in own if tag not in after.tags]
    if lost:
        raise UsageError(
            f"{before.name!r} is a {before.kind}, and its tag {lost[0]!r} says so: it cannot be"
            " taken away",
            hint=f"Keep it and put yours beside it: --tags {','.join([*own, 'mine'])!a}",
        )
    new = [tag for tag in structural_tags(before.kind, after.tags) if tag not in own]
    if new and own:
        raise UsageError(
            f"{before.name!r} is {own[-1]!r} already and cannot be {new[0]!r} too",
            hint="What condenses it is a summary of its own.",
        )
    return replace(after, kind=before.kind) if before.kind in _KINDS else after

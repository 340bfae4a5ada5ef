"""What tells a thing that was forgotten since: episodes, threads, summaries, goals.

What is derived goes when what it tells is forgotten, and is told anew from the same messages, with
blanks where they say it. A goal is somebody's own words and stays; whoever lists goals is shown
that there is one, not what it says. What is older than that (a store of an earlier version, another
shelf's export) is held to what is forgotten where it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hypatia_mem.memory import curate
from hypatia_mem.model import Entry

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.graves import Graves

__all__ = ["WITHHELD", "cleared", "retell"]

WITHHELD = "(withheld: it says something that was forgotten)"
KINDS = frozenset({"episode", "thread", "goal"})
_HEADING = "## "
_STEP = re.compile(r"- \[[ xX]\] (?:\d+\. )?")


def retell(txn: Transaction, said: Iterable[str]) -> list[str]:
    """Take out what tells what this operation has forgotten; return the names of what went.

    ``said`` are the forgotten texts: what shares no word with them is not looked at. What went is
    owed, and told anew by whoever does what is due.
    """
    from hypatia_mem.store import graves, holding, withdrawing

    every = {word for text in said for word in curate.telling_words(text)}
    words = {word for word in every if len(word) > 2 or not word.isascii()}
    known = graves.of_operation(txn.store, txn.op_id)
    if not words or not known.rows:
        return []
    scopes = sorted({one.scope for one in known.rows})
    tellers = holding.tellers(txn.store, sorted(words), None if "" in scopes else scopes)
    names = [one.name for one in tellers if _tells(known, one.content, one.scopes)]
    if not names:
        return []
    curate.leave_index(txn.store.home, txn.store, names)
    return withdrawing.retell(txn, names)


def cleared(store: Store, found: Sequence[Entry]) -> list[Entry]:
    """Return episodes, threads and goals without the lines that tell what is forgotten.

    A goal keeps its lines, each with ``WITHHELD`` in the place of what it says. Other entries are
    as they were.
    """
    from hypatia_mem.store import graves

    asked = [one for one in found if one.kind in KINDS]
    known = graves.told_in(store, [one.content for one in asked]) if asked else None
    if not known:
        return list(found)
    return [_cleared(known, one) if one.kind in KINDS else one for one in found]


# ----------------------------------------------------------------------------------------------


def _tells(known: Graves, text: str, scopes: Sequence[str]) -> bool:
    return known.blanked(text, scopes) != text


def _cleared(known: Graves, one: Entry) -> Entry:
    if not _tells(known, one.content, one.scopes):
        return one
    kept: list[str] = []
    for line in one.content.splitlines():
        if not _tells(known, line, one.scopes):
            kept.append(line)
        elif one.kind == "goal":
            step = _STEP.match(line.strip())
            kept.append(f"{step[0] if step else ''}{WITHHELD}")
    kept = [
        line
        for number, line in enumerate(kept)
        if not line.startswith(_HEADING) or _has_more(kept[number + 1 :])
    ]
    return replace(one, content="\n".join(kept).strip() or WITHHELD)


def _has_more(lines: Sequence[str]) -> bool:
    """Tell whether something stands under a heading that these lines follow."""
    below = next((line for line in lines if line.strip()), _HEADING)
    return not below.startswith(_HEADING)

"""Taking in, for a person to look at, what is like something that was forgotten.

Nothing that merely resembles is thrown away or let in unseen: it is stored as a candidate, which no
default read finds, with the reason beside it, and waits in the review. A person's own words are
never held back. What is there already is not replaced by something doubtful: that goes in beside it
under a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from hypatia_mem.model import PERSON_CHANNELS, Entry, Outcome, Trust
from hypatia_mem.store import rows
from hypatia_mem.store.lookalikes import canonical

if TYPE_CHECKING:
    from hypatia_mem.store.entries import EntryWrites
    from hypatia_mem.store.gateway import Transaction

__all__ = ["ASIDE", "NOTED", "doubt", "doubt_statement", "put", "say_why"]

ASIDE = " (proposed)"  # behind the name of an entry: other words for it that await a verdict
NOTED = "like what was forgotten"  # what the ledger says of why
_LOST = "what was forgotten cannot be asked, because the key it was noted under is lost"


def doubt(txn: EntryWrites, entry: Entry, existing: Entry | None = None) -> str:
    """Return why an entry has to be looked at before it is shown, ``""`` when it has not.

    What the store says already in these scopes is not asked again.
    """
    if entry.kind in ("message", "session") or not txn._known_graves():
        return ""
    known = existing is not None and set(entry.scopes) <= set(existing.scopes)
    if known and existing is not None and _said(existing) == _said(entry):
        return ""
    return why(txn, _said(entry), entry.scopes)


def doubt_statement(txn: EntryWrites, row: dict[str, Any]) -> str:
    """Return why a statement has to be looked at; an end that has an entry was judged there."""
    if not txn._known_graves():
        return ""
    texts = [text for text in (row["content"], row["synonyms"]) if text]
    ends = [row["subject"], row["object"]]
    there = {one.name for one in txn.store.entries(ends)}
    free = [end for end in ends if end not in there]
    if not texts and len(free) < 2:  # it ties something to what was judged
        return why(txn, free, row["scopes"], lost=False)
    return why(txn, [*texts, *free], row["scopes"])


def why(
    txn: EntryWrites,
    texts: Sequence[str],
    scopes: Sequence[str],
    *,
    lost: bool = True,
) -> str:
    """Return what in these scopes one of these texts is like, as a sentence; ``""`` for nothing.

    ``lost``: a key that is lost makes everything doubtful.
    """
    person = txn.author.channel in PERSON_CHANNELS
    known = txn._known_graves()
    if lost and known.lost and not person:
        return _LOST
    near = txn._graves_like(texts).near(texts, scopes, after=txn.said_at if person else None)
    return "" if near is None else near.why


def put(txn: EntryWrites, entry: Entry, reason: str) -> Outcome:
    """Store an entry as a candidate, beside the one of its name if there is one that is shown.

    The outcome's ``reason`` says why, ``details["quarantined"]`` that it is withheld.
    """
    name = rows.clean(entry.name)
    there = txn.store.entry(name)
    if there is not None and there.trust != Trust.CANDIDATE:
        name = _free_name(txn, name, entry)
        there = txn.store.entry(name)
    entry = replace(entry, name=name, trust=Trust.CANDIDATE)
    details = {"quarantined": True}
    if there is None:
        row = rows.entry_row(entry, txn.author, txn.now)
        row["version"] = txn._next_version(name)
        row["seq"] = txn._note(
            "create", name, entry.kind, after=row["content_digest"], reason=NOTED
        )
        txn._bulk("entry", [row])
        txn._note_statements(entry)
    elif _same(there, entry):
        return Outcome("unchanged", name, reason=reason, details=details)
    else:
        txn._write_again(there, entry, NOTED)
    say_why(txn, name, "entry", reason)
    return Outcome("created" if there is None else "updated", name, reason=reason, details=details)


def say_why(txn: EntryWrites, name: str, kind: str, reason: str) -> None:
    """Keep the reason where the review reads it."""
    cast("Transaction", txn).put_verdict(name, kind, Trust.CANDIDATE, reason)


# ----------------------------------------------------------------------------------------------


def _free_name(txn: EntryWrites, name: str, entry: Entry) -> str:
    """Return the name for other words about ``name``; the same words get the same one again."""
    number = 1
    while True:
        aside = name + (ASIDE if number == 1 else f"{ASIDE[:-1]} {number})")
        there = txn.store.entry(aside)
        if there is None or _same(there, entry):
            return aside
        number += 1


def _same(there: Entry, entry: Entry) -> bool:
    return canonical(there.content) == canonical(rows.clean(entry.content))


def _said(entry: Entry) -> list[str]:
    """Return all that an entry says: its text, its name without the kind in front, its synonyms."""
    kind, colon, rest = entry.name.partition(":")
    name = rest if colon and kind in ("rule", "taboo", "memory") else entry.name
    if entry.kind in ("summary", "episode", "thread"):  # the program named it
        name = ""
    return [rows.clean(one) for one in (entry.content, name, *entry.synonyms) if one]

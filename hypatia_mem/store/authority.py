"""Who may change what is believed. Decided by the door a change came in by, never by a claim.

A person may do everything. An agent, and everything that runs by itself, may say that something is
doubtful or out of date, and may bring in something new as asserted or as a candidate. What only a
person decides: that something is true (``verified``) or wrong (``rejected``), that a candidate is
taken in, that a dispute is over, and that what a person withheld is shown again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Channel, Trust
from hypatia_mem.store import rows

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = [
    "AUTOMATIC",
    "EVIDENCE",
    "HIDDEN",
    "carried",
    "denied",
    "is_person",
    "left",
    "set_by_person",
]

# Doors that nobody stands at: no wish of a person or of an agent is behind a change of theirs.
AUTOMATIC = frozenset({Channel.HOOK, Channel.TRANSCRIPT, Channel.WORKER, Channel.IMPORT})
EVIDENCE = "what was said in a session is evidence, and only a person changes its words"
HIDDEN = frozenset({Trust.CANDIDATE, Trust.REJECTED})
_DOUBTS = frozenset({Trust.DISPUTED, Trust.STALE})
_OPEN = frozenset({Trust.ASSERTED, *_DOUBTS})


def is_person(channel: Channel) -> bool:
    """Tell whether a person stands at this door."""
    return channel in PERSON_CHANNELS


def denied(channel: Channel, was: Trust | None, becomes: Trust) -> str:
    """Return why this door may not bring a thing from one trust to another, ``""`` if it may.

    ``was`` None: the thing is new.

    >>> denied(Channel.CLI_AGENT, Trust.ASSERTED, Trust.DISPUTED)
    ''
    >>> denied(Channel.CLI_AGENT, Trust.CANDIDATE, Trust.VERIFIED)
    'only a person can say that something is verified'
    """
    if was == becomes or is_person(channel):
        return ""
    if becomes in (Trust.VERIFIED, Trust.REJECTED):
        return f"only a person can say that something is {becomes}"
    if was is None or (was in _OPEN and becomes in _DOUBTS):
        return ""
    what = "take in" if was in HIDDEN else "change"
    return f"only a person can {what} what is {was}"


def left(channel: Channel, last: Trust, comes: Trust) -> Trust:
    """Return how far a thing is believed that comes anew, where it was taken away as ``last``.

    To delete it and to bring it in again is no way around what only a person decides.

    >>> left(Channel.CLI_AGENT, Trust.DISPUTED, Trust.ASSERTED).value
    'disputed'
    """
    stays = last in HIDDEN or last in _DOUBTS
    return last if stays and denied(channel, last, comes) else comes


def carried(channel: Channel, before: Iterable[str], after: Iterable[str]) -> str:
    """Return why this door may not change a thing's scopes so, ``""`` if it may.

    An agent makes a thing narrower, or global; into another project a person puts it.
    """
    was = set(before)
    if channel != Channel.CLI_AGENT or not was or GLOBAL_SCOPE in was:
        return ""
    other = set(after) - was - {GLOBAL_SCOPE}
    return "only a person can put something into another project" if other else ""


# What of an entry a person settles beside its words, and the column that says it.
_SETTLED = {one: one for one in ("suppressed", "pinned", "activation")}


def set_by_person(store: Store, names: Iterable[str], what: str) -> set[str]:
    """Return those of these entries of which a person has, at any time, set the words.

    ``what`` is ``words``; or ``suppressed``, ``pinned`` or ``activation``, of which the last change
    counts. What an
    open transaction has not yet written to the ledger is no person's: persons are not asked.
    """
    column = "content_digest" if what == "words" else _SETTLED[what]
    found = store.execute(
        f"""
        WITH wanted AS (SELECT unnest($1::VARCHAR[]) AS name), state AS (
            SELECT name, seq, {column} AS value FROM entry JOIN wanted USING (name)
            UNION ALL
            SELECT name, seq, {column} AS value FROM version JOIN wanted USING (name)
        ), change AS (
            SELECT name, seq, value, lag(value) OVER (PARTITION BY name ORDER BY seq) AS was
            FROM state
        ), said AS (
            SELECT change.name, change.seq,
                coalesce(list_contains($2::VARCHAR[], mutation.channel), false) AS person
            FROM change LEFT JOIN mutation ON mutation.seq = change.seq
            WHERE change.was IS DISTINCT FROM change.value
        )
        SELECT name FROM said GROUP BY name
        HAVING CASE WHEN $3 THEN bool_or(person) ELSE arg_max(person, seq) END
        """,  # noqa: S608 - one of this function's own column names
        [[rows.clean(name) for name in names], list(PERSON_CHANNELS), what == "words"],
    ).fetchall()
    return {str(name) for (name,) in found}

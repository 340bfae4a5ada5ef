"""What only a person at a terminal may do: one refusal, one sentence, one row of the ledger.

An agent reads everything of its project, adds to it, doubts it, and takes away what can be brought
back. What it may not touch is evidence (what was said in a session), what belongs to another
project, what would stop the memory from seeing or from being restored, and what a person decides
(``store.authority``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Refused, StoreError
from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Author, Outcome, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["IN_A_TERMINAL", "brought", "held", "keep_evidence", "only", "refuse_foreign"]

IN_A_TERMINAL = "A person can do it by running this command in a terminal."


def only(
    home: Path, author: Author, what: str, *, now: datetime, verb: str, hint: str = IN_A_TERMINAL
) -> None:
    """Raise Refused for whoever is no person; the ledger notes that ``verb`` was asked for.

    ``what`` ends the sentence "only a person can ...".
    """
    if author.channel in PERSON_CHANNELS:
        return
    from hypatia_mem.store.connection import open_store

    with (
        contextlib.suppress(StoreError),
        open_store(home, write=True) as store,
        store.transaction(author, now=now) as txn,
    ):
        txn.note_operation("refuse", verb, reason="authority")
    raise Refused(f"only a person can {what}", hint=hint)


def refuse_foreign(
    home: Path,
    author: Author,
    scopes: Sequence[str] | None,
    here: str,
    *,
    now: datetime,
    verb: str,
) -> None:
    """Raise Refused for an agent that would change what belongs to other projects than ``here``.

    ``scopes`` are those it named; None are all.
    """
    if scopes is None:
        only(home, author, "change what belongs to other projects", now=now, verb=verb)
        return
    other = sorted(set(scopes) - {here, GLOBAL_SCOPE})
    if other:
        what = f"change what belongs to another project ({other[0]!r})"
        only(home, author, what, now=now, verb=verb)


def keep_evidence(home: Path, messages: Sequence[str], author: Author, now: datetime) -> None:
    """Let only a person forget what was said in a session: a forgetting cannot be undone."""
    if messages:
        only(
            home,
            author,
            f"forget what was said in a session ({messages[0]}): it cannot be undone",
            now=now,
            verb="forget message",
            hint=f"An agent can take it away so that it comes back by undo: delete {messages[0]}",
        )


def brought(store: Store, scopes: Iterable[str], here: str | None, author: Author) -> str:
    """Return why what comes into these scopes has to wait for a person, ``""`` when it has not.

    ``here`` is the project that the author is at work in, None when no scope was named: then it is
    that one. A scope that no project has is nobody's.
    """
    if here is None or author.channel in PERSON_CHANNELS:
        return ""
    known = {one.scope for one in store.projects()}
    other = sorted((set(scopes) & known) - {here, GLOBAL_SCOPE})
    return f"an agent at work in {here!r} brought it into {other[0]!r}" if other else ""


def held(txn: Transaction, outcome: Outcome, kind: str, why: str) -> Outcome:
    """Keep the reason why something that was stored as a candidate waits; say so in the outcome."""
    if outcome.verb not in ("created", "updated") or outcome.details.get("quarantined"):
        return outcome
    txn.put_verdict(outcome.name, kind, Trust.CANDIDATE, why)
    return replace(outcome, reason=why, details={**outcome.details, "quarantined": True})

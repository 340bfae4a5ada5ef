"""What a session is not told: its siblings' turns, and what is derived from any of them.

Nothing of it is stored beside the rows that say it. Whoever has the store asks ``hidden_names``;
whoever searches without it reads ``hidden.FILE``, which ``write`` brings up to date before the
index changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Entry
from hypatia_mem.store import episodes, sources
from hypatia_mem.store.branches import forest, messages_at, turns_said
from hypatia_mem.store.forest import Forest, runs
from hypatia_mem.store.hidden import FILE, Turns

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.keys import Key

__all__ = ["episodes_of", "hidden_names", "write"]

_EPISODES = 1_000  # of one session
_JOINTS = ("belongTo", "derivedFrom", "derived_from", "summary")


def hidden_names(store: Store, session_id: str, of: Forest | None = None) -> list[str]:
    """Return the names of what a session is not told: messages, and what is derived from them."""
    turns = (forest(store) if of is None else of).unseen_by(session_id)
    if not turns:
        return []
    messages = messages_at(store, turns)
    above = sources.above(store, messages)
    return sorted({*messages, *_standing(messages, above), *_cards(turns)})


def write(store: Store, folder: Path, key: Key) -> None:
    """Bring ``hidden.FILE`` to what the store says; without a branch there is none."""
    there = forest(store)
    members = list(there)
    if not members:
        (folder / FILE).unlink(missing_ok=True)
        return
    unseen = {one: there.unseen_by(one) for one in ["", *members]}
    there_are = turns_said(store, members)
    said = {one: messages_at(store, turns, there_are) for one, turns in unseen.items()}
    above = sources.above(store, sorted({name for some in said.values() for name in some}))
    derived = {one: {*_standing(said[one], above), *_cards(turns)} for one, turns in unseen.items()}
    named = {name for some in (*said.values(), *derived.values()) for name in some}
    about = _about(store, sorted(named))
    made: dict[str, Any] = {}
    for one, turns in unseen.items():
        unsaid = {*derived[one], *said[one]}
        ids = [key.document_id("knowledge", name) for name in sorted(derived[one])]
        ids += [
            key.document_id("statement", triple)
            for triple, subject, object_ in about
            if subject in unsaid or object_ in unsaid
        ]
        reads = [
            Turns(span.session, first, last)
            for span in (there.spans(one) if one else ())
            for first, last in runs(span)
        ]
        made[one] = {"hidden": turns, "ids": ids, "reads": reads}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder / f".{FILE}-{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(made, out)
    temporary.replace(folder / FILE)


def episodes_of(
    store: Store, session_id: str, scopes: Sequence[str] | None, *, limit: int
) -> list[Entry]:
    """Return the episodes of what a session reads, latest first: a branch's ancestors' too."""
    there = forest(store)
    hidden = set(hidden_names(store, session_id, there)) if session_id in there else set()
    found = [
        one
        for span in reversed(there.spans(session_id))
        for one in episodes.episodes(store, scopes, session_id=span.session, limit=_EPISODES)
        if one.name not in hidden
    ]
    return found[:limit]


# --------------------------------------------------------------------------------------------------


def _standing(names: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Return what stands on one of these, however far up; ``above``: by what it stands on."""
    found: set[str] = set()
    front = list(names)
    while front:
        front = [one for name in front for one in above.get(name, ()) if one not in found]
        found.update(front)
    return found


def _cards(turns: Sequence[Turns]) -> list[str]:
    """Return the entries of sessions of which some turn is hidden: they tell of all of it."""
    return [f"session-{one.session}" for one in turns]


def _about(store: Store, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (key, subject, object) of statements about one of these, not those that link them."""
    found = store.execute(
        """
        SELECT triple, subject, object FROM statement
        WHERE NOT list_contains($2, predicate)
          AND (subject IN (SELECT unnest($1::VARCHAR[]))
               OR object IN (SELECT unnest($1::VARCHAR[])))
        ORDER BY triple
        """,
        [list(names), list(_JOINTS)],
    ).fetchall()
    return [(str(triple), str(subject), str(object_)) for triple, subject, object_ in found]

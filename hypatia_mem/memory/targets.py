"""What a person means by a name: an entry, a statement, a session, or turns of a session.

``s-1:3-5`` are turns of the session ``s-1``; a statement is named by the key that other commands
print (its three parts as CSV). Only what belongs to the scopes that were said is ever meant (I5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.memory.selection import chosen
from hypatia_mem.model import PERSON_CHANNELS, Author, Session

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Target", "onward", "resolve", "within"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a name stands for: ``entries`` by name, one ``statement`` by key, or a ``session``.

    ``kind`` is an entry's kind, ``statement``, ``session`` or ``turns``.
    """

    text: str
    kind: str
    entries: tuple[str, ...] = ()
    statement: str = ""
    session: str = ""
    scopes: tuple[str, ...] = ()


def resolve(store: Store, text: str) -> Target:
    """Return what a person's text names. Raises NotFound, UsageError."""
    from hypatia_mem.store import aiming

    name = text.strip()
    if not name:
        raise UsageError("an empty text names nothing")
    entry = store.entry(name)
    if entry is not None:
        return Target(name, entry.kind, (entry.name,), scopes=entry.scopes)
    session = store.session(name)
    if session is not None:
        return _whole(store, session)
    turns = _turns(store, name)
    if turns is not None:
        return turns
    scopes = aiming.scopes_of_statement(store, name)
    if scopes is not None:
        return Target(name, "statement", statement=name, scopes=scopes)
    raise NotFound(
        f"there is nothing called {name[:80]!r}",
        hint="A name of an entry, a session's id, SESSION:3-5 for its turns, or a statement's key."
        " Look with: hypatia-mem search, hypatia-mem sessions",
    )


def onward(store: Store, text: str, *, branch: bool = False) -> list[Target]:
    """Return what a text names and everything of its kind that comes after it, the first first.

    After a message: the rest of its session, or with ``branch`` only what follows from it. After
    any other entry: those of the same kind, level and scopes that were made later.
    Raises NotFound, UsageError.
    """
    from hypatia_mem.store import aiming, followers

    first = resolve(store, text)
    if first.kind in ("statement", "session") or not first.entries:
        raise UsageError(
            f"nothing comes after a {first.kind}",
            hint="Name a message (msg-...), turns (SESSION:3-5), or an entry.",
        )
    entry = store.entry(first.entries[0])
    assert entry is not None
    if entry.kind != "message":
        level = next((tag for tag in entry.tags if tag.startswith("summary ")), "")
        after = aiming.later(store, entry, level)
        return [Target(one.name, one.kind, (one.name,), scopes=one.scopes) for one in after]
    turn = entry.turn or 0
    if first.kind == "turns" and entry.session_id != text.strip().rpartition(":")[0]:
        raise UsageError(
            f"{entry.name} is shared with session {entry.session_id}: what comes after it is read"
            " by more than one branch",
            hint=f"From there on in every branch: hypatia-mem delete-from {entry.name}",
        )
    if branch:
        turns = followers.branch(store, entry.session_id, turn)
    else:
        turns = aiming.turns_from(store, entry.session_id, turn)
    there = store.entries(f"msg-{entry.session_id}-{number}" for number in turns)
    ordered = sorted(there, key=lambda one: one.turn or 0)
    return [Target(one.name, "message", (one.name,), scopes=one.scopes) for one in ordered]


def within(targets: Iterable[Target], scopes: Sequence[str] | None, author: Author) -> None:
    """Refuse what belongs to none of these scopes; None allows all, to a person only.

    Raises Refused.
    """
    if scopes is None:
        if author.channel not in PERSON_CHANNELS:
            raise Refused(
                "only a person may change what belongs to other projects",
                hint="Run this command in a terminal, or leave --all-projects out.",
            )
        return
    for one in targets:
        if not set(one.scopes) & set(scopes):
            where = ", ".join(scope or "(global)" for scope in one.scopes) or "no project"
            raise Refused(
                f"{one.text!r} belongs to {where}, not to this project",
                hint="Say so to mean it all the same: --scope NAME",
            )


# ----------------------------------------------------------------------------------------------


def _whole(store: Store, session: Session) -> Target:
    from hypatia_mem.store import aiming

    names = tuple(aiming.entries_of(store, session.id))
    return Target(session.id, "session", names, session=session.id, scopes=(session.project,))


def _turns(store: Store, text: str) -> Target | None:
    from hypatia_mem.store import branches

    id_, colon, places = text.rpartition(":")
    session = store.session(id_) if colon else None
    if session is None:
        return None
    all_ = branches.forest(store)
    count = branches.length(store, id_, all_)
    wanted = branches.names_at(store, id_, chosen(places, count, "this session"), all_)
    found = {one.name: one for one in store.entries(wanted)}
    there = [found[name] for name in wanted if name in found]
    if not there:
        raise NotFound(f"the turns {places} of session {id_!r} were deleted already")
    scopes = dict.fromkeys(scope for one in there for scope in one.scopes)
    return Target(text, "turns", tuple(one.name for one in there), scopes=tuple(scopes))

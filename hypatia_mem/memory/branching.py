"""Forking a session at a message: a branch that shares what was said before, and copies nothing.

A branch is one row. What it reads and what it is told of its siblings, ``store.branches`` says. A
message is edited beside itself: a branch that shares everything before it, holds the new words as
its own first turn, and is made the head, which is what whoever is no branch is told from then on.
The session that was forked stays as it is, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory import curate, persons, reach
from hypatia_mem.model import Author, Message, Session

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.forest import Forest

__all__ = ["Forked", "Grown", "fork", "make_head", "spared", "tree"]

EDITED = "edited"  # the flag of a message that was written anew beside another one
_NEAR = 3  # places: a tool's call and its result stand no further apart
_LIST = "List them: hypatia-mem sessions"


@dataclass(frozen=True, slots=True)
class Forked:
    """A branch as it was made, or would be; ``op_id`` is ``""`` when it was only tried out.

    ``messages`` are read, those of ``forked_from`` up to the place ``at`` and its own;
    ``edited`` names the message that was written anew, and ``instead`` the one it stands beside.
    """

    id: str
    forked_from: str
    at: int
    messages: int
    reason: str
    edited: str = ""
    instead: str = ""
    head: bool = False
    op_id: str = ""


@dataclass(frozen=True, slots=True)
class Grown:
    """A branch in its family's tree."""

    depth: int
    id: str
    forked_from: str
    at: int
    messages: int
    reason: str
    head: bool


def fork(  # noqa: PLR0913 - each is one fact, and all but the first two go by name
    home: Path,
    session_id: str,
    *,
    at: str | None = None,
    reason: str = "",
    words: str | None = None,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Forked:
    """Make a branch that shares a session's messages up to one, that one too; by default all.

    ``at`` is a place as the session is read, or a message's name. ``words``: the message there is
    written anew instead, as the branch's own; then the branch is made the head.

    Raises NotFound, UsageError when there is no such place, or it would part a tool's call from its
    result; Refused when an agent would write what somebody said.
    """
    from hypatia_mem.capture.redact import redact_text

    if words is not None:
        if not words.strip():
            raise UsageError("an empty text is no message", hint="Give its new words: --edit ...")
        what = "write anew what was said in a session"
        persons.only(home, author, what, now=now, verb="edit message")
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        session, there = _named(store, session_id, scopes)
        place = _place(store, there, session.id, at)
        until = place if words is None else place - 1
        _keep_calls_whole(store, there, session.id, until)
        made = Session(
            id=str(uuid4()),
            project=session.project,
            user=session.user,
            agent=session.agent,
            cwd=session.cwd,
            git_branch=session.git_branch,
            forked_from=session.id,
            forked_at=until,
            fork_reason=" ".join(redact_text(reason).split()),  # a line of lists
            headed_at=None if words is None else now,
            started_at=now,
            updated_at=now,
            ended_at=now,  # no client runs it: nothing waits for its end
        )
        txn.put_session(made)
        instead = ""
        if words is not None:
            before = _message(store, there, session.id, place)
            instead = f"msg-{before.session_id}-{before.turn}"
            txn.put_messages(made.id, [_anew(before, made.id, words, now)], session.project)
        return Forked(
            made.id,
            session.id,
            until,
            _count(store, made.id),
            made.fork_reason,
            f"msg-{made.id}-1" if words is not None else "",
            instead,
            head=words is not None,
            op_id="" if dry_run else txn.op_id,
        )


def make_head(
    home: Path,
    session_id: str,
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> tuple[str, str]:
    """Make a branch the head of its family; return which one was, and the operation's id.

    The id is ``""`` when it was only tried out. Raises NotFound, UsageError for a session without
    branches, Conflict when it is the head already, Refused for an agent: the others are told to
    nobody else from then on.
    """
    what = "move the head of a family of branches"
    if not dry_run:
        persons.only(home, author, what, now=now, verb="move head")
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        session, there = _named(store, session_id, scopes)
        if session.id not in there:
            raise UsageError(
                f"session {session.id} has no branches, so it needs no head",
                hint=f"Make one: hypatia-mem fork {session.id} --at 10",
            )
        before = there.head(session.id)
        if before == session.id and there.in_sight(session.id) == [session.id]:
            raise Conflict(
                f"session {session.id} is the head already",
                hint=f"The whole family: hypatia-mem sessions tree {session.id}",
            )
        txn.edit_session(session.id, headed_at=now)
        return before, "" if dry_run else txn.op_id


def spared(store: Store, sessions: Sequence[str]) -> dict[str, list[str]]:
    """Return what stays when these sessions are deleted, each with the branches that need it.

    Messages that another branch reads, by name, and by id the session that they are of: its row is
    where the branch hangs.
    """
    from hypatia_mem.store import branches

    there = branches.forest(store)
    kept = branches.needed(store, sessions, sessions)
    stays = dict(kept)
    for one in sessions:
        under = [each.id for each in there.children(one) if each.id not in sessions]
        if under and (there.branch(one).forked_from or any(_is_of(name, one) for name in kept)):
            stays[one] = under
    return stays


def _is_of(name: str, session_id: str) -> bool:
    return name.removeprefix("msg-").rpartition("-")[0] == session_id


def tree(home: Path, session_id: str, *, scopes: Sequence[str] | None) -> list[Grown]:
    """Return a session's family, each branch behind what it branched off. Raises NotFound."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        session, there = _named(store, session_id, scopes)
        head = there.head(session.id)
        return [
            Grown(
                depth,
                one.id,
                one.forked_from,
                one.forked_at,
                _count(store, one.id, there),
                one.reason,
                one.id == head,
            )
            for depth, one in there.family(session.id)
        ]


# ----------------------------------------------------------------------------------------------


def _named(store: Store, session_id: str, scopes: Sequence[str] | None) -> tuple[Session, Forest]:
    from hypatia_mem.store import branches

    session = store.session(session_id.strip().removeprefix("session-"))
    if session is None:
        raise NotFound(f"there is no session {session_id[:80]!r}", hint=_LIST)
    reach.refuse(session.id, (session.project,), scopes)
    return session, branches.forest(store)


def _place(store: Store, there: Forest, session_id: str, at: str | None) -> int:
    """Return the place of a session that a person means. Raises NotFound, UsageError."""
    from hypatia_mem.store import branches

    last = branches.length(store, session_id, there)
    if not last:
        raise UsageError(f"session {session_id} has no message yet, so there is nothing to share")
    if at is None:
        return last
    text = at.strip()
    place = _place_of(store, there, text) if text.startswith("msg-") else _number(text, last)
    if place < 1:
        raise UsageError(
            "a branch shares at least the first message of its session",
            hint=f"Give a place from 1 to {last}; to edit the first message: --at 1 --edit ...",
        )
    if place > last:
        raise UsageError(
            f"session {session_id} has {last} messages, so none stands at {place}",
            hint=f"To branch off at its end leave --at out, or say --at {last}.",
        )
    found = branches.reading(store, session_id, start=place, limit=1, of=there)
    name = f"msg-{found[0][1].session_id}-{found[0][1].turn}" if found else ""
    if not found or found[0][0] != place or (text.startswith("msg-") and name != text):
        raise UsageError(
            f"{text} is none of the messages of session {session_id}",
            hint=f"See which there are: hypatia-mem show {session_id}",
        )
    return place


def _number(text: str, last: int) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise UsageError(
            f"--at names a message: a number from 1 to {last}, or msg-..., not {text[:40]!a}",
            hint="The numbers are those that hypatia-mem show SESSION prints.",
        )
    return int(text)


def _place_of(store: Store, there: Forest, name: str) -> int:
    session_id, _, turn = name.removeprefix("msg-").rpartition("-")
    number = int(turn) if re.fullmatch(r"[0-9]{1,9}", turn) else 0
    if not number or not store.messages_at(session_id, [number]):
        raise NotFound(f"there is no message {name[:80]!r}", hint=_LIST)
    return there.base(session_id) + number


def _message(store: Store, there: Forest, session_id: str, place: int) -> Message:
    from hypatia_mem.store import branches

    ((_, found),) = branches.reading(store, session_id, start=place, limit=1, of=there)
    if not found.text:
        raise UsageError(
            f"message {place} of session {session_id} was deleted or is withheld, so there is"
            " nothing to edit",
            hint="Fork before it, or bring it back first: hypatia-mem undo",
        )
    return found


def _anew(before: Message, session_id: str, words: str, now: datetime) -> Message:
    from hypatia_mem.capture.redact import redact_text

    return Message(
        session_id=session_id,
        uuid=f"branch:{session_id}:1",
        role=before.role,
        text=redact_text(words),
        at=now,
        parent_uuid=before.parent_uuid,
        flags=(EDITED,),
    )


def _keep_calls_whole(store: Store, there: Forest, session_id: str, until: int) -> None:
    """Refuse to share a tool's call without its result, or the other way round."""
    from hypatia_mem.store import branches

    first = max(1, until - _NEAR)
    near = branches.reading(store, session_id, start=first, limit=2 * _NEAR + 2, of=there)
    places: dict[str, list[int]] = {}
    for place, message in near:
        for part in message.parts:
            if str(part.get("type")).startswith("tool_") and part.get("id"):
                places.setdefault(str(part["id"]), []).append(place)
    for some in places.values():
        if min(some) <= until < max(some):
            without = f", or at {min(some) - 1}, with neither" if min(some) > 1 else ""
            raise UsageError(
                f"a tool was called in message {min(some)} and answered in message {max(some)}:"
                " call and result go together",
                hint=f"Branch off at {max(some)}, with both{without}.",
            )


def _count(store: Store, session_id: str, of: Forest | None = None) -> int:
    from hypatia_mem.store import branches

    return branches.count(store, session_id, of)

"""Changes that wait for a running session to end, and making them then.

A change is queued as it was asked for: its verb, what it is about, by whom, through which door. The
worker makes it when no session holds it any more, in one transaction with its leaving the queue: so
it is made once, wherever the worker is cut off, and undoing it does not queue it again. One that
cannot be made by then stays, with the sentence that says why, for a person to look at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import HypatiaError, NotFound
from hypatia_mem.memory import curate, guard
from hypatia_mem.model import Author, Channel, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.opened import Store
    from hypatia_mem.store.reviewing import Queued

__all__ = ["VERBS", "carry_out", "find", "put", "run", "waiting"]

_LOG = logging.getLogger("hypatia_mem")


def put(
    home: Path,
    verb: str,
    names: Sequence[str],
    arguments: Mapping[str, Any],
    *,
    sessions: Sequence[str] = (),
    author: Author,
    now: datetime,
) -> list[dict[str, str]]:
    """Keep a change of these names, and of these ``sessions``, until what holds them has ended.

    ``arguments`` are JSON. A session holds itself, also against the agent that works in it. Returns
    ``id``, ``name`` and ``session`` of each; what nobody holds any more is made with the next run
    of the worker. It can be undone like any other operation.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        holders: dict[str, str] = {}
        for name in names:
            held = guard.held(store, _meant(store, verb, name), author=author, now=now)
            holders[name] = held[0][1] if held else ""
        holders |= {one: one if guard.runs(store, one, now) else "" for one in sessions}
        return [
            {"id": txn.queue_change(session, verb, name, arguments), "name": name,
             "session": session}
            for name, session in holders.items()
        ]  # fmt: skip


def waiting(store: Store, scopes: Sequence[str] | None) -> list[Queued]:
    """Return the changes in the queue, oldest first: of things in these scopes (None: all).

    One of which nobody can say any more where it belongs is among them.
    """
    from hypatia_mem.store import reviewing

    found = reviewing.queued(store)
    if scopes is None:
        return found
    own = {one.name: one.scopes for one in store.entries([one.name for one in found])}
    for one in found:
        session = store.session(one.name)
        if session is not None:
            own[one.name] = (session.project,)
    return [one for one in found if one.name not in own or set(own[one.name]) & set(scopes)]


def find(store: Store, id_: str) -> Queued:
    """Return the queued change of an id, or of its beginning. Raises NotFound."""
    from hypatia_mem.store import reviewing

    found = [one for one in reviewing.queued(store) if id_ and one.id.startswith(id_)]
    if len(found) != 1:
        raise NotFound(f"queued change {id_[:60]!r}", hint="See them with: hypatia-mem jobs list")
    return found[0]


def run(home: Path, now: datetime) -> int:
    """Make the queued changes whose sessions have ended; return how many were made.

    One that is refused by now (its words changed meanwhile, its value was forgotten) stays in the
    queue with the sentence that says why.
    """
    from hypatia_mem.store import reviewing
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        due = [
            one
            for one in reviewing.queued(store, failed=False)
            if not guard.runs(store, one.session_id, now)
        ]
    done = 0
    for one in due:
        author = Author(Channel(one.channel), one.actor, session_id=one.session_id)
        try:
            make(home, one, author=author, now=now)
            done += 1
        except HypatiaError as error:
            _LOG.info("a queued change was not made: %s", type(error).__name__)
            _note_failure(home, one, error.message, author, now)
    return done


def make(home: Path, one: Queued, *, author: Author, now: datetime) -> None:
    """Make a queued change and take it off the queue, both or neither; raises what it raises."""

    def leave(txn: Transaction) -> None:
        txn.unqueue(one.id, made=True)

    with curate.along(leave):
        carry_out(home, one.verb, one.name, one.arguments, author=author, now=now)


def carry_out(
    home: Path,
    verb: str,
    name: str,
    arguments: Mapping[str, Any],
    *,
    author: Author,
    now: datetime,
) -> None:
    """Make a change that was queued; raises what the change raises."""
    VERBS[verb](home, name, dict(arguments), {"author": author, "now": now})


# ----------------------------------------------------------------------------------------------

_Given = dict[str, Any]


def _note_failure(home: Path, one: Queued, failure: str, author: Author, now: datetime) -> None:
    with curate.changing(home, author, now) as (_, txn):
        txn.unqueue(one.id, failure=failure)


def _meant(store: Store, verb: str, name: str) -> list[str]:
    """Return the entries that a queued change is about, by what its verb takes for a name."""
    from hypatia_mem.memory import history, targets

    if verb == "delete from":
        return [entry for one in targets.onward(store, name) for entry in one.entries]
    if verb == "move":
        return list(targets.resolve(store, name).entries)
    if verb == "revert":
        return [history.split(name)[0]]
    return [name]


def _delete(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import propagation

    propagation.delete(home, [name], **given, **who)


def _delete_from(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import propagation

    propagation.delete_onward(home, name, **given, **who)


def _move(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import propagation

    propagation.move(home, [name], given.pop("to"), **given, **who)


def _edit(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import trust

    trust.edit(home, name, given.pop("text"), **given, **who)


def _believe(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import trust

    trust.set_trust(home, [name], Trust(given.pop("trust")), **given, **who)


def _marking(verb: str) -> Callable[[Path, str, _Given, _Given], None]:
    def act(home: Path, name: str, given: _Given, who: _Given) -> None:
        from hypatia_mem.memory import trust

        trust.mark(home, [name], verb, **given, **who)

    return act


def _update(home: Path, name: str, given: _Given, who: _Given) -> None:
    fields = {
        key: datetime.fromisoformat(value) if key[:6] == "valid_" and value else value
        for key, value in given["fields"].items()
    }
    curate.update_entry(home, name, fields, **who)


def _drop(home: Path, name: str, _given: _Given, who: _Given) -> None:
    curate.delete_entry(home, name, **who)


def _revert(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import history

    history.revert(home, [name], **given, **who)


def _accept(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import review

    review.accept(home, [name], trust=Trust(given.pop("trust")), **given, **who)


def _merge(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import review

    review.merge(home, name, given.pop("into"), **given, **who)


def _bulk(home: Path, name: str, given: _Given, who: _Given) -> None:
    from hypatia_mem.memory import bulk

    bulk.change_named(home, given.pop("verb"), given.pop("value"), [name], **given, **who)


VERBS: Mapping[str, Callable[[Path, str, _Given, _Given], None]] = {
    "delete": _delete,
    "delete from": _delete_from,
    "move": _move,
    "edit": _edit,
    "trust": _believe,
    **{verb: _marking(verb) for verb in ("pin", "unpin", "suppress", "unsuppress")},
    "update": _update,
    "drop": _drop,
    "revert": _revert,
    "accept": _accept,
    "merge": _merge,
    "bulk": _bulk,
}

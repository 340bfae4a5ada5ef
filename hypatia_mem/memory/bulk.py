"""One change of many things at once: chosen from a filtered list, all of them or none, one undo.

The list is numbered from 1. Numbers are only good for the list they were read from: its ``token``
says which that was, and a change that shows the token of a list that has changed since is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError, one_of
from hypatia_mem.memory import curate, guard, propagation
from hypatia_mem.memory.blast import Blast, reached
from hypatia_mem.memory.selection import chosen
from hypatia_mem.memory.targets import Target
from hypatia_mem.model import Author, Entry

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "CATEGORY",
    "KINDS",
    "VALUED",
    "VERBS",
    "Done",
    "Filter",
    "Listed",
    "change",
    "change_named",
    "listing",
    "named",
]

CATEGORY = "category:"  # begins the tag that a category is
KINDS = (
    "knowledge", "rule", "taboo", "memory", "summary", "work-unit", "session", "goal", "message",
    "episode", "thread",
)  # fmt: skip
_EVERYDAY = ("knowledge", "rule", "taboo", "memory", "summary", "work-unit", "session", "goal")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list holds: ``scopes`` None reads every project; without ``kinds`` no messages."""

    scopes: Sequence[str] | None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session_id: str = ""
    text: str = ""
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A filtered list, newest first; ``token`` names exactly these entries in this order."""

    entries: tuple[Entry, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Done:
    """What a change of many did: of which names, which of them unchanged, and all it reached.

    ``op_id`` is ``""`` when it was only tried out.
    """

    verb: str
    names: tuple[str, ...]
    blast: Blast
    unchanged: tuple[str, ...] = ()
    op_id: str = ""


@dataclass(frozen=True, slots=True)
class _Order:
    """Who changes what, and from which scopes."""

    home: Path
    store: Store
    txn: Transaction
    entries: Sequence[Entry]
    value: str
    filter: Filter
    dry_run: bool
    unchanged: list[str] = field(default_factory=list)
    held: list[tuple[str, str]] = field(default_factory=list)


def listing(store: Store, wanted: Filter) -> Listed:
    """Return the entries that a filter lets through."""
    from hypatia_mem.store import aiming

    found = aiming.filtered(
        store,
        scopes=wanted.scopes,
        kinds=wanted.kinds or (("message",) if wanted.session_id else _EVERYDAY),
        tags=wanted.tags,
        session_id=wanted.session_id,
        text=wanted.text,
        withheld=wanted.withheld,
    )
    names = "\n".join(one.name for one in found)
    token = hashlib.sha256(names.encode("utf-8", "replace")).hexdigest()[:8]
    return Listed(tuple(found), token)


def change(  # noqa: PLR0913 - what is changed, how, and who changes it
    home: Path,
    verb: str,
    value: str,
    select: str,
    wanted: Filter,
    *,
    token: str = "",
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Done:
    """Do one thing to all that ``select`` chooses from a list, as one operation.

    Raises UsageError, Conflict when the list is not the one that ``token`` names any more, and
    Refused when one of them may not be changed so: then none of them is.
    """
    one_of(verb, VERBS, "the verb")
    if (verb in VALUED) is not bool(value) and not (verb == "move" and value == ""):
        raise UsageError(
            f"{verb} needs {VALUED[verb]}" if verb in VALUED else f"{verb} takes nothing else"
        )
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        entries = _chosen(store, select, wanted, token)
        return _done(verb, _Order(home, store, txn, entries, value, wanted, dry_run))


def named(home: Path, select: str, wanted: Filter, *, token: str = "") -> list[Entry]:
    """Return what ``select`` chooses from a list; raises as ``change``."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return _chosen(store, select, wanted, token)


def change_named(
    home: Path,
    verb: str,
    value: str,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    author: Author,
    now: datetime,
) -> Done:
    """Do one thing to these entries, as ``change``. Raises NotFound when one is not there."""
    with curate.changing(home, author, now) as (store, txn):
        entries = store.entries(names)
        missing = sorted(set(names) - {one.name for one in entries})
        if missing:
            raise NotFound(f"knowledge {missing[0]!r}")
        return _done(verb, _Order(home, store, txn, entries, value, Filter(scopes), False))


# ----------------------------------------------------------------------------------------------


def _chosen(store: Store, select: str, wanted: Filter, token: str) -> list[Entry]:
    found = listing(store, wanted)
    if token and token != found.token:
        raise Conflict(
            "the list has changed since its numbers were read; nothing was changed",
            hint="Read it again: hypatia-mem bulk list",
        )
    if not found.entries:
        raise NotFound("nothing is in this list", hint="See: hypatia-mem bulk list")
    places = chosen(select, len(found.entries), "this list")
    return [found.entries[place - 1] for place in places]


def _done(verb: str, order: _Order) -> Done:
    txn, since = order.txn, order.txn.seq
    blast = VERBS[verb](order)
    names = tuple(one.name for one in order.entries)
    if blast is None:
        blast = reached(txn, since, verb, names, held=order.held, dry_run=order.dry_run)
        curate.leave_behind(order.home, order.store, blast)
    op_id = "" if order.dry_run else txn.op_id
    return Done(verb, names, replace(blast, op_id=op_id), tuple(order.unchanged), op_id)


def _delete(order: _Order) -> Blast:
    wanted = [Target(one.name, one.kind, (one.name,), scopes=one.scopes) for one in order.entries]
    return propagation.delete_in(
        order.home,
        order.store,
        order.txn,
        wanted,
        scopes=order.filter.scopes,
        dry_run=order.dry_run,
    )


def _move(order: _Order) -> Blast:
    wanted = [Target(one.name, one.kind, (one.name,), scopes=one.scopes) for one in order.entries]
    return propagation.move_in(
        order.home,
        order.txn,
        wanted,
        order.value,
        scopes=order.filter.scopes,
        dry_run=order.dry_run,
    )


def _setting(**fields: bool) -> Callable[[_Order], None]:
    def act(order: _Order) -> None:
        for one in order.entries:
            _update(order, one, fields)

    return act


def _tag(order: _Order) -> None:
    for one in order.entries:
        if order.value not in one.tags:
            _update(order, one, {"tags": (*one.tags, order.value)})
        else:
            order.unchanged.append(one.name)


def _untag(order: _Order) -> None:
    for one in order.entries:
        left = tuple(tag for tag in one.tags if tag != order.value)
        _update(order, one, {"tags": left})


def _category(order: _Order) -> None:
    """Put entries into one category, out of any other: it is a tag that excludes its like."""
    if "," in order.value:
        raise UsageError(
            "a category's name holds no comma", hint="Give one name: bulk category ops"
        )
    for one in order.entries:
        others = tuple(tag for tag in one.tags if not tag.startswith(CATEGORY))
        own = (f"{CATEGORY}{order.value}",) if order.value else ()
        _update(order, one, {"tags": (*others, *own)})


def _archiving(archived: bool) -> Callable[[_Order], None]:
    def act(order: _Order) -> None:
        sessions: dict[str, list[str]] = {}
        for one in order.entries:
            if one.kind not in ("session", "message") or not one.session_id:
                raise Refused(
                    f"{one.name!r} is of no session, and only sessions are archived",
                    hint="Nothing was changed. Choose with --kind session, or --session ID.",
                )
            sessions.setdefault(one.session_id, []).append(one.name)
        for id_, names in sessions.items():
            outcome = order.txn.edit_session(id_, archived=archived)
            if outcome.verb == "unchanged":
                order.unchanged.extend(names)

    return act


def _update(order: _Order, entry: Entry, fields: Mapping[str, Any]) -> None:
    if order.txn.entry(entry.name) is None:
        return  # it went with one of the others, which it stood on
    if fields.get("suppressed") and not order.dry_run:
        curate.leave_index(order.home, order.store, [entry.name])
    txn = order.txn
    held = guard.refuse_held(
        order.store, [entry.name], author=txn.author, now=txn.now, dry_run=order.dry_run
    )
    order.held.extend(held)
    outcome = txn.update_entry(entry.name, **fields)
    if outcome.verb == "refused":
        raise Refused(
            f"{entry.name!r} may not be changed so: {outcome.reason}",
            hint="Nothing was changed. Leave it out of the selection, or ask a person.",
        )
    if outcome.verb == "unchanged":
        order.unchanged.append(entry.name)


VERBS: Mapping[str, Callable[[_Order], Blast | None]] = {
    "delete": _delete,
    "move": _move,
    "pin": _setting(pinned=True),
    "unpin": _setting(pinned=False),
    "suppress": _setting(suppressed=True),
    "unsuppress": _setting(suppressed=False),
    "tag": _tag,
    "untag": _untag,
    "category": _category,
    "uncategory": _category,
    "archive": _archiving(True),
    "unarchive": _archiving(False),
}
VALUED = {
    "move": "a scope", "tag": "a tag", "untag": "a tag", "category": "the name of a category"
}  # fmt: skip

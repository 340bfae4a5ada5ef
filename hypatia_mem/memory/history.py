"""Going back: what a name was, how it changed, and taking a change or an operation back.

A person writes ``rule:x@2`` for the second version of ``rule:x``; a statement is written as its
three parts, or as the key that other commands print. Nothing here removes anything from history: a
revert is a new version, an undoing a new operation.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import ChangedLater, NotFound, Refused, UsageError
from hypatia_mem.memory import curate, guard
from hypatia_mem.memory.blast import Changed, reached
from hypatia_mem.model import (
    PERSON_CHANNELS,
    Author,
    Channel,
    Entry,
    Outcome,
    Statement,
    Trust,
)

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.history import State
    from hypatia_mem.store.operations import Operation

__all__ = [
    "Difference",
    "changed_fields",
    "difference",
    "redo",
    "revert",
    "split",
    "states",
    "undo",
    "version_of",
]

_SHOWN = (
    "tags", "scopes", "synonyms", "figures", "format", "kind", "trust", "pinned", "suppressed",
    "valid_from", "valid_to", "priority", "activation",
)  # fmt: skip
# What a revert brings back; whether a thing is believed, pinned or shown is of today.
_REVERTED = (
    "content", "tags", "scopes", "synonyms", "figures", "format", "kind", "valid_from", "valid_to",
    "priority", "activation",
)  # fmt: skip
# Folders are claimed by the way, by whatever command is first run in them.
_BY_THE_WAY = frozenset({"create project", "update root", "delete root"})
_NOTHING = ("refuse ", "hide ", "show ")
_CONDENSED = (" summary", " episode", " thread", " statement")
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two versions: ``fields`` by name as (old, new), and a unified diff."""

    old: State
    new: State
    fields: dict[str, tuple[Any, Any]]
    lines: tuple[str, ...]


def split(text: str) -> tuple[str, int | None]:
    """Split ``NAME@2`` into the name and the version; None when no version is said.

    >>> split("rule:x@2"), split("a@b"), split("me@home@12")
    (('rule:x', 2), ('a@b', None), ('me@home', 12))
    """
    name, at, number = text.rpartition("@")
    if at and name and number.isascii() and number.isdigit():
        return name, int(number)
    return text, None


def states(
    store: Store, words: Sequence[str], *, withheld: bool = False
) -> tuple[list[State], int | None]:
    """Return the states of an entry or a statement, oldest first, and which one was asked for.

    ``words`` are a name, the key of a triple, or its three parts; the last may end in ``@2``.
    Raises NotFound when there was never such a thing, or when it is withheld now and that was not
    asked for.
    """
    if len(words) not in (1, 3):
        raise UsageError(
            "a history is that of one name, or of the three parts of a statement",
            hint='Example: hypatia-mem history "rule:never-mock-the-database"',
        )
    last, number = split(words[-1])
    found = _states(store, words)  # a name may itself end like a version
    if found:
        number = None
    else:
        found = _states(store, [*words[:-1], last])
    if not found:
        raise NotFound(
            f"there is no history of {_said([*words[:-1], last])}",
            hint="Names are written in full; what was forgotten has no history.",
        )
    if found[-1].withheld and found[-1].replaced_at is None and not withheld:
        raise NotFound(
            f"{_said([*words[:-1], last])} is withheld (suppressed, a candidate, or rejected)",
            hint="To see its history all the same: --withheld",
        )
    return found, number


def version_of(found: Sequence[State], number: int | None, *, withheld: bool = False) -> State:
    """Return one state; without a number the last.

    Raises NotFound with those there are, or when it was withheld and that was not asked for.
    """
    wanted = found[-1].number if number is None else number
    for state in reversed(found):
        if state.number != wanted:
            continue
        if state.withheld and not withheld:
            raise NotFound(
                f"version {wanted} was withheld (suppressed, a candidate, or rejected)",
                hint="To see it all the same: --withheld",
            )
        return state
    known = ", ".join(str(state.number) for state in found)
    raise NotFound(f"there is no version {number} of it", hint=f"There are: {known}")


def changed_fields(old: State | None, new: State) -> list[str]:
    """Return the names of the fields in which two states differ; none for a first state."""
    if old is None:
        return []
    names = [field.name for field in fields(new.value) if field.name in ("content", *_SHOWN)]
    return [name for name in names if getattr(old.value, name) != getattr(new.value, name)]


def difference(old: State, new: State) -> Difference:
    """Return how two states differ, in fields and in lines."""
    names = changed_fields(old, new)
    lines = difflib.unified_diff(
        _text(old, names),
        _text(new, names),
        f"{_name(old.value)}@{old.number}",
        f"{_name(new.value)}@{new.number}",
        lineterm="",
    )
    changed = {name: (getattr(old.value, name), getattr(new.value, name)) for name in names}
    return Difference(old, new, changed, tuple(lines))


def revert(
    home: Path,
    words: Sequence[str],
    *,
    withheld: bool = False,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Bring back what a version said, as a new version; also of what was deleted.

    The outcome's ``details["version"]`` is the new version's number. Raises UsageError when no
    version is named, NotFound, Refused when the words were forgotten, Conflict when a running
    session stands on it.
    """
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        since = txn.seq
        found, number = states(store, words, withheld=withheld)
        if number is None:
            raise UsageError(
                "a revert needs a version: NAME@N",
                hint=f"See them with: hypatia-mem history {' '.join(words)}",
            )
        state = version_of(found, number, withheld=withheld)
        if isinstance(state.value, Statement):
            outcome = _revert_statement(store, txn, found, state)
            return Changed([outcome], reached(txn, since, "revert", (), dry_run=dry_run))
        names = [state.value.name]
        held = guard.refuse_held(store, names, author=author, now=now, dry_run=dry_run)
        outcome = _revert_entry(txn, state.value, author)
        entry = txn.entry(state.value.name)
        version = entry.version if entry is not None else 0
        outcome = replace(outcome, details={"version": version, "from": state.number})
        blast = reached(txn, since, "revert", names, held=held, dry_run=dry_run)
        curate.leave_behind(home, store, blast)
        return Changed([outcome], blast)


def undo(
    home: Path,
    operation: str | None,
    *,
    scopes: Sequence[str] | None = None,
    reach: Sequence[str] | None = None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Outcome:
    """Take an operation back: the one named, else the last in these scopes (None: in all).

    The last one passes over what was captured, over undoings and over what is undone already. What
    touched none of the scopes of ``reach`` (None: any) is refused, by whatever name.
    Summaries that were condensed anew since then do not stand in the way: they are taken back
    first, each as an operation of its own, and made again from what there is then.
    Raises NotFound, Conflict, Refused; then nothing has changed but such summaries.
    """
    with _reading(home) as store:
        op_id = _named(store, operation) if operation else _last_done(store, scopes)
        _refuse_beyond(store, op_id, reach)
    return _turn(home, op_id, dry_run=dry_run, author=author, now=now)


def redo(
    home: Path,
    operation: str | None,
    *,
    scopes: Sequence[str] | None = None,
    reach: Sequence[str] | None = None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Outcome:
    """Do again what was undone: the operation named, else the one that was undone last."""
    with _reading(home) as store:
        op_id = _named(store, operation) if operation else _last_undone(store, scopes)
        _refuse_beyond(store, op_id, reach)
    return _turn(home, op_id, dry_run=dry_run, author=author, now=now, again=True)


# ----------------------------------------------------------------------------------------------


@contextmanager
def _reading(home: Path) -> Iterator[Store]:
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        yield store


def _turn(
    home: Path, op_id: str, *, dry_run: bool, author: Author, now: datetime, again: bool = False
) -> Outcome:
    """Take an operation back, or do it again, past what was only condensed anew since then."""
    from hypatia_mem.store import operations

    while True:
        try:
            with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
                outcome = txn.redo(op_id) if again else txn.undo(op_id)
                _leave_index(home, store, outcome, dry_run)
        except ChangedLater as later:
            with _reading(home) as store:
                passes = operations.is_condensing(store, later.operation)
            if not passes or later.operation == op_id:
                raise
            if dry_run:
                return Outcome(
                    "redone" if again else "undone", op_id, details={"first": [later.operation]}
                )
            # It ends: each round takes one operation back that was done before the round began.
            _turn(home, later.operation, dry_run=False, author=author, now=now)
        else:
            return outcome


def _revert_entry(txn: Transaction, state: Entry, author: Author) -> Outcome:
    if txn.entry(state.name) is None:
        return txn.put_entry(_believed(state, author))
    return txn.update_entry(state.name, **{name: getattr(state, name) for name in _REVERTED})


def _states(store: Store, words: Sequence[str]) -> list[State]:
    from hypatia_mem.store import history, rows

    if len(words) == 3:
        subject, predicate, object_ = words
        for key in rows.triple_keys(subject, predicate, object_):
            if found := history.statement_states(store, key):
                return found
        return []
    return history.entry_states(store, words[0]) or history.statement_states(store, words[0])


def _said(words: Sequence[str]) -> str:
    return repr(words[0]) if len(words) == 1 else f"({', '.join(words)})"


def _revert_statement(
    store: Store, txn: Transaction, found: Sequence[State], state: State
) -> Outcome:
    from hypatia_mem.store import history, rows

    value = state.value
    assert isinstance(value, Statement)
    triple = rows.triple_key(value.subject, value.predicate, value.object)
    last = found[-1]
    if last.replaced_at is None and not changed_fields(state, last):
        return Outcome("unchanged", triple, details={"version": last.number, "from": state.number})
    if state.row is None:
        raise Refused(f"version {state.number} is what {triple!r} is now")
    outcome = txn.revert_statement(triple, state.row)
    number = len(history.statement_states(store, triple))
    return replace(outcome, details={"version": number, "from": state.number})


def _believed(entry: Entry, author: Author) -> Entry:
    """Return a deleted entry as it comes back: only a person's word can be that it is verified."""
    if entry.trust == Trust.VERIFIED and author.channel not in PERSON_CHANNELS:
        return replace(entry, trust=Trust.ASSERTED, version=1)
    return replace(entry, version=1)


def _named(store: Store, operation: str) -> str:
    from hypatia_mem.store import operations

    return operations.find(store, operation)


def _refuse_beyond(store: Store, op_id: str, reach: Sequence[str] | None) -> None:
    from hypatia_mem.store import operations

    own = operations.scopes_of(store, op_id)
    if reach is not None and own and own.isdisjoint(reach):
        where = ", ".join(scope or "(global)" for scope in sorted(own)[:3])
        raise Refused(
            f"only a person may take back or do again what changed {where} alone",
            hint="Run this command in a terminal, or in a folder of that project.",
        )


def _last_done(store: Store, scopes: Sequence[str] | None) -> str:
    from hypatia_mem.store import operations

    before: int | None = None
    while page := operations.operations(store, limit=_PAGE, before=before):
        for one in page:
            if _counts(one) and _is_in(store, one.op_id, scopes):
                return one.op_id
        before = page[-1].seq
    raise NotFound("there is nothing to undo here", hint=_ELSEWHERE)


def _last_undone(store: Store, scopes: Sequence[str] | None) -> str:
    from hypatia_mem.store import operations

    for op_id in operations.Families(store).undone():
        if _is_in(store, op_id, scopes):
            return op_id
    raise NotFound("there is nothing to redo here", hint=_ELSEWHERE)


_ELSEWHERE = "To name one: hypatia-mem log; --all-projects takes the last of any project."


def _counts(one: Operation) -> bool:
    """Tell whether an operation is one that a person means by the last one."""
    if one.undone or one.undoes or one.channel == Channel.HOOK:
        return False
    did = {verb for verb in one.verbs if not verb.startswith(_NOTHING)} - _BY_THE_WAY
    if one.channel == Channel.WORKER:  # what it condenses is made again: nobody means that
        did = {verb for verb in did if not verb.endswith(_CONDENSED)}
    return bool(did)


def _is_in(store: Store, op_id: str, scopes: Sequence[str] | None) -> bool:
    from hypatia_mem.store import operations

    if scopes is None:
        return True
    return not operations.scopes_of(store, op_id).isdisjoint(scopes)


def _leave_index(home: Path, store: Store, outcome: Outcome, dry_run: bool) -> None:
    """Take out of the index what went or changed; what is still to be found comes in again."""
    if not dry_run:
        names = [*outcome.details["removed"], *outcome.details["changed"]]
        curate.leave_index(home, store, names)


def _text(state: State, changed: Sequence[str]) -> list[str]:
    """Return a state as lines: the fields that changed, then the content."""
    said = [f"{name}: {_shown(getattr(state.value, name))}" for name in _SHOWN if name in changed]
    return [*said, *([""] if said else []), *state.value.content.splitlines()]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) or '""' for item in value) or "(none)"
    if value is None:
        return "(unknown)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(value: Entry | Statement) -> str:
    if isinstance(value, Entry):
        return value.name
    return f"({value.subject}, {value.predicate}, {value.object})"

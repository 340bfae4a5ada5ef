"""What was forgotten, as a person may look at it: which tombstones there are, what one would catch.

A tombstone holds no word, so it is told by when, where, by whom and for what kind of thing it was
set; whoever knows the words can ask which one they would meet. Only a person lifts one, and only a
person puts a new key in the place of the present one.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.model import Author, Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.graves import Grave, Graves

__all__ = [
    "Checked",
    "KeyInUse",
    "Lifted",
    "Tombstone",
    "bring_back_keys",
    "check",
    "kept_in_backups",
    "key_list",
    "lift",
    "listed",
    "rotate_key",
]

_LEAST = 6  # characters of an id


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What keeps one thing away from one scope.

    ``parts`` counts what of it is known: its ``value``, its ``look``, its ``name``, statements
    (``triple``). ``alike`` tells whether other wordings of it are caught, ``lost`` that the key it
    was noted under is not there, so that nobody can ask it.
    """

    id: str
    scope: str
    kind: str
    reason: str
    channel: str
    at: datetime
    op_id: str
    parts: Mapping[str, int]
    alike: bool
    lost: bool
    target: str
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What would become of a text: ``refused``, ``quarantined`` or ``taken``, and by which id."""

    verdict: str
    tombstone: Tombstone | None = None
    likeness: float = 0.0


@dataclass(frozen=True, slots=True)
class Lifted:
    """Which tombstones were lifted, or would be; ``op_id`` undoes it."""

    tombstones: tuple[Tombstone, ...]
    op_id: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class KeyInUse:
    """A key by its id: whether it is the present one, is there at all, and what stands under it."""

    id: str
    present: bool
    lost: bool
    tombstones: int


def listed(store: Store, scopes: Sequence[str] | None) -> list[Tombstone]:
    """Return the tombstones of these scopes (None: of all), newest first."""
    from hypatia_mem.store import graves

    found = _grouped(store, graves.load(store))
    return [one for one in found if scopes is None or one.scope in scopes]


def check(store: Store, text: str, scopes: Sequence[str]) -> Checked:
    """Say what would become of a text if an agent brought it into these scopes."""
    from hypatia_mem.store import graves
    from hypatia_mem.store.lookalikes import canonical

    known = graves.load(store)
    if not known:
        return Checked("taken")
    stones = {digest: one for one in _grouped(store, known) for digest in one.digests}
    name = "name:" + canonical(text)
    held = known.holding({*graves.values_of(text), name}, scopes)
    if held:
        return Checked("refused", stones[held[0].digest], 1.0)
    near = known.near([text], scopes)
    if near is not None:
        return Checked("quarantined", stones[near.grave.digest], round(near.value, 2))
    return Checked("quarantined" if known.lost else "taken")


def lift(
    home: Path,
    which: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    lost: bool = False,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Lifted:
    """Lift tombstones by id, or by the name of what was forgotten; ``lost``: those of lost keys.

    Whatever they kept away may come in again after that; nothing comes back by itself. Raises
    NotFound, UsageError for an id that several have, Refused for anybody but a person.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        chosen = _chosen(store, listed(store, scopes), which, lost=lost)
    if dry_run:
        return Lifted(tuple(chosen), dry_run=True)
    refused: Outcome | None = None
    with (
        open_store(home, write=True) as store,
        store.transaction(author, now=now) as txn,
    ):
        for one in chosen:
            outcome = txn.lift(one.digests, [one.scope])
            if outcome.verb == "refused":
                refused = outcome
                break
        op_id = txn.op_id
    if refused is not None:  # the refusal is in the ledger
        raise Refused(refused.reason, hint="Run this in a terminal of your own.")
    return Lifted(tuple(chosen), op_id)


def rotate_key(home: Path, *, author: Author, now: datetime) -> Outcome:
    """Let digests be made with a new key from now on; what was forgotten before stays forgotten.

    The key before is kept for it. Raises Refused for anybody but a person.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.search import SearchIndex

    with (
        open_store(home, write=True) as store,
        store.transaction(author, now=now) as txn,
    ):
        outcome = txn.rotate_key()
        if outcome.verb != "refused":
            SearchIndex(home).clear()  # its document ids were made with the key before
    if outcome.verb == "refused":
        raise Refused(outcome.reason, hint="Run this in a terminal of your own.")
    curate.refresh(home)
    return outcome


def key_list(store: Store) -> list[KeyInUse]:
    """Return every key there is, the present one first, and those that are lost."""
    from hypatia_mem.store import graves, keys

    known = graves.load(store)
    counts = Counter(row.key_id for row in known.rows)
    ring = keys.keyring(store.home)
    there = [
        KeyInUse(key.id, number == 0, lost=False, tombstones=counts[key.id])
        for number, key in enumerate(ring)
    ]
    gone = [
        KeyInUse(one, present=False, lost=True, tombstones=counts[one])
        for one in sorted(known.lost)
    ]
    return there + gone


def kept_in_backups(home: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """Return those of these keys that a backup of this memory still holds, by their ids."""
    from hypatia_mem.store import keys

    wanted, found = set(ids), {}
    for folder in sorted((home / "backups").glob("[!.]*")):
        for path in (folder / "key", *sorted((folder / "keys").glob("*"))):
            with contextlib.suppress(OSError):
                secret = path.read_bytes()
                if len(secret) == keys.KEY_BYTES and keys.key_of(secret).id in wanted:
                    found[keys.key_of(secret).id] = secret
    return found


def bring_back_keys(home: Path, ids: Iterable[str]) -> list[str]:
    """Put keys that are lost beside the present one, out of backups; return the ids of those."""
    from hypatia_mem.store import keys

    found = kept_in_backups(home, ids)
    keys.add_keys(home, tuple(found.values()))
    return sorted(found)


# ----------------------------------------------------------------------------------------------


def _grouped(store: Store, known: Graves) -> list[Tombstone]:
    groups: dict[tuple[str, str, str], list[Grave]] = {}
    for row in known.rows:
        groups.setdefault((row.op_id, row.target, row.scope), []).append(row)
    kinds = _kinds(store, {op_id for op_id, _, _ in groups})
    found = [
        _tombstone(rows, kinds.get((op_id, target)) or kinds.get((op_id, "")) or "", known.lost)
        for (op_id, target, _), rows in groups.items()
    ]
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def _tombstone(rows: Sequence[Grave], kind: str, lost: frozenset[str]) -> Tombstone:
    first = min(rows, key=lambda row: (row.part != "value", not row.sketch, row.digest))
    return Tombstone(
        id=first.digest[:8],
        scope=first.scope,
        kind=kind,
        reason=first.reason,
        channel=first.actor,
        at=first.at,
        op_id=first.op_id,
        parts=dict(Counter(row.part or "value" for row in rows)),
        alike=any(row.sketch for row in rows),
        lost=any(row.key_id in lost for row in rows),
        target=first.target,
        digests=tuple(row.digest for row in rows),
    )


def _kinds(store: Store, op_ids: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return of what kind the thing was that an operation buried, by the ledger's name of it."""
    from hypatia_mem.store import graves

    found = graves.burials(store, sorted(op_ids))
    kinds: dict[tuple[str, str], str] = {}
    for op_id, target, kind in found:
        kinds.setdefault((op_id, target), kind)
        kinds.setdefault((op_id, ""), kind)
    return kinds


def _chosen(
    store: Store, found: Sequence[Tombstone], which: Sequence[str], *, lost: bool
) -> list[Tombstone]:
    chosen: dict[tuple[str, str], Tombstone] = {}
    if lost:
        chosen = {(one.id, one.scope): one for one in found if one.lost}
    for word in which:
        named = _named(store, found, word)
        if not named:
            raise NotFound(
                f"no tombstone {word[:60]!a} here", hint="See them with: hypatia-mem tombstone list"
            )
        if len({one.op_id for one in named}) > 1 and len({one.id for one in named}) > 1:
            raise UsageError(
                f"{word[:60]!a} means several tombstones: {', '.join(one.id for one in named)}",
                hint="Give the ids of those that are meant.",
            )
        chosen.update({(one.id, one.scope): one for one in named})
    if not chosen:
        raise NotFound("there is no tombstone to lift", hint="hypatia-mem tombstone list")
    return list(chosen.values())


def _named(store: Store, found: Sequence[Tombstone], word: str) -> list[Tombstone]:
    """Return the tombstones that an id, or the name of what was forgotten, means."""
    from hypatia_mem.store import keys

    if len(word) >= _LEAST:
        by_id = [one for one in found if any(digest.startswith(word) for digest in one.digests)]
        if by_id:
            return by_id
    targets = {key.target(word) for key in keys.keyring(store.home)}
    return [one for one in found if one.target in targets]

"""What a deletion or a move reaches, and doing it: everything that stands on a thing goes with it.

A person names things by name: an entry, a statement, a message, turns of a session, a session, a
summary. ``delete`` takes them and all that is derived from them in one transaction, so that it can
be undone as one, and says all of it by name; a dry run does the same and rolls it back, so what it
says is what would happen. What a summary lost besides its source is condensed anew afterwards.

A message that was deleted stays known by its transcript line and by a keyed digest of its words, so
it does not come back when the transcript is read or the spool is replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Refused, UsageError, one_of
from hypatia_mem.memory import branching, curate, guard, targets
from hypatia_mem.memory.blast import Blast, Reached
from hypatia_mem.memory.targets import Target
from hypatia_mem.model import PERSON_CHANNELS, Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.moving import Moved
    from hypatia_mem.store.sources import Derived
    from hypatia_mem.store.withdrawing import Withdrawn

__all__ = [
    "REASONS",
    "Provenance",
    "delete",
    "delete_in",
    "delete_onward",
    "move",
    "move_in",
    "provenance",
    "queue_deletion",
    "rederive",
    "sweep",
]

_LOG = logging.getLogger("hypatia_mem")
# Why something is deleted. A word of ours and no words of a person: the ledger keeps it for good.
REASONS = ("delete", "wrong", "outdated", "private", "duplicate", "unneeded")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a thing stands on: directly, at the bottom of it all, and which of that is not live."""

    name: str
    kind: str
    direct: tuple[str, ...]
    leaves: tuple[str, ...]
    missing: tuple[str, ...]


def delete(
    home: Path,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    reason: str = "delete",
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Blast:
    """Delete what ``names`` stand for, and all that is derived from it, as one operation.

    Raises NotFound, UsageError, and Refused for what belongs to none of ``scopes``: then nothing
    has changed.
    """
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        wanted = [targets.resolve(store, name) for name in dict.fromkeys(names)]
        return delete_in(home, store, txn, wanted, scopes=scopes, reason=reason, dry_run=dry_run)


def queue_deletion(
    home: Path,
    names: Sequence[str],
    *,
    scopes: Sequence[str] | None,
    reason: str = "delete",
    author: Author,
    now: datetime,
) -> list[dict[str, str]]:
    """Let the worker delete these entries, turns and sessions when what they hang on has ended.

    A session is deleted with all that was said in it until then. Returns the ``id``, ``name`` and
    ``session`` of each. Raises as ``delete`` does.
    """
    from hypatia_mem.memory import queued
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        wanted = [targets.resolve(store, name) for name in dict.fromkeys(names)]
        targets.within(wanted, scopes, author)
        for one in wanted:
            if one.statement:
                raise UsageError(
                    "a statement cannot be deleted later",
                    hint="No session holds one: leave --after out, or name an entry at its end.",
                )
    sessions = [one.session for one in wanted if one.session]
    entries = dict.fromkeys(name for one in wanted if not one.session for name in one.entries)
    arguments = {"scopes": None if scopes is None else list(scopes), "reason": reason}
    return queued.put(
        home, "delete", list(entries), arguments, sessions=sessions, author=author, now=now
    )


def delete_onward(
    home: Path,
    name: str,
    *,
    branch: bool = False,
    scopes: Sequence[str] | None,
    reason: str = "delete",
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Blast:
    """Delete a thing and everything of its kind after it (``targets.onward``). Raises as delete."""
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        wanted = targets.onward(store, name, branch=branch)
        return delete_in(home, store, txn, wanted, scopes=scopes, reason=reason, dry_run=dry_run)


def delete_in(
    home: Path,
    store: Store,
    txn: Transaction,
    wanted: Sequence[Target],
    *,
    scopes: Sequence[str] | None,
    reason: str = "delete",
    dry_run: bool = False,
) -> Blast:
    """Delete inside a transaction that is already open; raises as ``delete`` does.

    Of a session that others branched off stays what they share: it is archived then, not deleted.
    """
    from hypatia_mem.store import aiming, branches, followers, withdrawing

    if reason != REASONS[0]:
        one_of(reason, REASONS[1:], "--because")
    targets.within(wanted, scopes, txn.author)
    sessions = [one.session for one in wanted if one.session]
    spared = branching.spared(store, sessions) if sessions else {}
    names = list(
        dict.fromkeys(
            name for one in wanted for name in one.entries if not (one.session and name in spared)
        )
    )
    held = guard.refuse_held(store, names, author=txn.author, now=txn.now, dry_run=dry_run)
    triples = [one.statement for one in wanted if one.statement]
    keep = _keeps_orphans(home)
    gone = withdrawing.withdraw(txn, names, reason=reason, unwanted=True, keep=keep)
    left = [one for one in triples if one not in gone.statements]
    for parts in aiming.triples(store, left):
        txn.delete_statement(*parts)
    left_over = [one for one in sessions if one not in spared]
    for session_id in sessions:
        if session_id in spared:
            txn.edit_session(session_id, archived=True)
        else:
            followers.delete_session(txn, session_id)
    if not dry_run:
        hidden = [one.name for one in gone.marked]
        _leave_index(home, [*gone.names, *hidden, *gone.statements, *triples])
    blast = _blast(gone, wanted, (*triples, *gone.statements), left_over)
    said = {one.session_id for one in gone.entries if one.kind == "message"}
    blast = _of_branches(store, blast, branches.needed(store, said, sessions), spared)
    return replace(blast, held=tuple(held), op_id="" if dry_run else txn.op_id)


def move(
    home: Path,
    names: Sequence[str],
    scope: str,
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Blast:
    """Put what ``names`` stand for into one scope alone, as one operation.

    What is derived from it goes along if all of its sources do, and is taken out if not. A session
    takes its messages with it. Only a person may do that. Raises NotFound, UsageError, Refused.
    """
    _only_a_person(home, author, now)
    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        wanted = [targets.resolve(store, name) for name in dict.fromkeys(names)]
        return move_in(home, txn, wanted, scope, scopes=scopes, dry_run=dry_run)


def move_in(
    home: Path,
    txn: Transaction,
    wanted: Sequence[Target],
    scope: str,
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
) -> Blast:
    """Move inside a transaction that is already open; raises as ``move`` does."""
    from hypatia_mem.store import moving

    if txn.author.channel not in PERSON_CHANNELS:
        raise _no_person()
    targets.within(wanted, scopes, txn.author)
    if any(one.statement for one in wanted):
        raise UsageError(
            "a statement moves with what it is about",
            hint="Name the entry at one of its ends.",
        )
    entries = list(dict.fromkeys(name for one in wanted for name in one.entries))
    sessions = [one.session for one in wanted if one.session]
    held = guard.refuse_held(txn.store, entries, author=txn.author, now=txn.now, dry_run=dry_run)
    moved = moving.move(txn, entries, scope, sessions=sessions)
    if moved.refused is not None:
        raise Refused(
            f"{moved.refused.name!r} was forgotten in that project, so it cannot go there",
            hint="Nothing was moved. To have it there, say it there: hypatia-mem remember",
        )
    if not dry_run:
        named = [one.name for one in moved.entries] + [one.name for one in moved.along]
        _leave_index(home, [*named, *moved.gone.names, *moved.statements])
    blast = _blast_of_move(moved, sessions)
    return replace(blast, held=tuple(held), op_id="" if dry_run else txn.op_id)


def rederive(home: Path, settings: Settings, *, now: datetime) -> tuple[str, ...]:
    """Condense anew what summaries left behind that lost a source; return the new ones' names.

    What episodes told of is told anew too. Nothing else that is due is made, and no model is asked.
    The worker does it all on its next pass.
    """
    from hypatia_mem.memory.cascade import running
    from hypatia_mem.memory.episodes import running as episodes

    told = episodes.run(home, settings, now=now, only_owed=True).episodes
    made: list[str] = []
    if settings.summary_by == "extractive":
        made = [one.name for one in running.run(home, settings, now=now, only_owed=True).made]
    if made or told:
        curate.refresh(home)
    return tuple(made)


def provenance(
    home: Path, name: str, *, scopes: Sequence[str] | None, author: Author
) -> Provenance:
    """Return what a thing stands on. Raises NotFound, Refused."""
    from hypatia_mem.store import sources
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        wanted = targets.resolve(store, name)
        targets.within([wanted], scopes, author)
        direct = sorted(sources.sources(store, wanted.text))
        seen: dict[str, list[str]] = {wanted.text: direct}
        front = direct
        while front:
            for one in front:
                seen[one] = sorted(sources.sources(store, one))
            front = [one for names in list(seen.values()) for one in names if one not in seen]
        leaves = [one for one, below in seen.items() if not below and one != wanted.text]
        live = {entry.name for entry in store.live_entries(seen)}
    return Provenance(
        wanted.text,
        wanted.kind,
        tuple(direct),
        tuple(sorted(leaves)),
        tuple(sorted(one for one in seen if one not in live and one != wanted.text)),
    )


def sweep(home: Path, *, now: datetime) -> tuple[str, ...]:
    """Take out what is derived and lacks a source, and all that stands on it; return the names.

    With the setting ``preserve_orphans`` they are marked and withheld instead. Nothing is opened
    for writing when there is none. Raises what the store raises.
    """
    from hypatia_mem.store import sources, withdrawing
    from hypatia_mem.store.connection import open_store

    keep = _keeps_orphans(home)
    with open_store(home, write=False) as store:
        if not sources.orphans(store, marked=not keep):
            return ()
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=now) as txn,
    ):
        curate.leave_index(home, store, sources.orphans(store, marked=not keep))
        gone = withdrawing.drop_orphans(txn, keep=keep)
    names = tuple(one.name for one in (*gone.derived, *gone.marked))
    if names:
        _LOG.warning("%d derived entries that lacked a source were taken out", len(names))
    return names


# ----------------------------------------------------------------------------------------------


def _of_branches(
    store: Store,
    blast: Blast,
    readers: Mapping[str, Sequence[str]],
    spared: Mapping[str, Sequence[str]],
) -> Blast:
    """Say which branches lose a message, too, and which keep what of a session that goes."""
    targets_ = tuple(
        replace(one, why=f"{_branches(readers[one.name])} it, too") if one.name in readers else one
        for one in blast.targets
        if one.name not in spared
    )
    kept = [
        Reached(one.name, one.kind, one.scopes, f"{_branches(spared[one.name])} it")
        for one in sorted(store.entries(spared), key=lambda entry: (entry.session_id, entry.turn))
    ]
    rows = [session for name in spared if (session := store.session(name)) is not None]
    kept += [
        Reached(one.id, "session", (one.project,), f"archived: {_branches(spared[one.id])} it")
        for one in rows
    ]
    return replace(blast, targets=targets_, kept=(*blast.kept, *kept))


def _branches(ids: Sequence[str]) -> str:
    return f"the branch {ids[0]} reads" if len(ids) == 1 else f"{', '.join(ids)} read"


def _keeps_orphans(home: Path) -> bool:
    from hypatia_mem.config import load_settings

    return load_settings(home).preserve_orphans


def _only_a_person(home: Path, author: Author, now: datetime) -> None:
    """Refuse an agent that would carry something into another project, and note that it tried."""
    from hypatia_mem.store import moving
    from hypatia_mem.store.connection import open_store

    if author.channel in PERSON_CHANNELS:
        return
    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        moving.note_refusal(txn)
    raise _no_person()


def _no_person() -> Refused:
    return Refused(
        "only a person may move something to another project",
        hint="Run this command in a terminal.",
    )


def _leave_index(home: Path, names: Sequence[str]) -> None:
    """Take names and statements out of the search index; the store's commit comes after."""
    from hypatia_mem.errors import IndexUnavailable
    from hypatia_mem.store.search import SearchIndex

    try:
        SearchIndex(home).remove(list(dict.fromkeys(names)))
    except IndexUnavailable as error:
        _LOG.info("index not touched before a withdrawal: %s", error.message)


def _blast(
    gone: Withdrawn, wanted: Sequence[Target], triples: Sequence[str], sessions: Sequence[str]
) -> Blast:
    named = [Reached(one.name, one.kind, one.scopes) for one in gone.entries]
    named += [Reached(one.text, one.kind, one.scopes) for one in wanted if one.statement]
    named += [Reached(one.text, one.kind, one.scopes) for one in wanted if one.session]
    return Blast(
        "delete",
        tuple(named),
        derived=tuple(_reached(one) for one in gone.derived),
        kept=tuple(_reached(one) for one in gone.kept) + tuple(map(_marked, gone.marked)),
        statements=tuple(dict.fromkeys(triples)),
        sessions=tuple(sessions),
        owed=len({name for names in gone.owed for name in names}),
    )


def _blast_of_move(moved: Moved, sessions: Sequence[str]) -> Blast:
    return Blast(
        "move",
        tuple(Reached(one.name, one.kind, one.scopes) for one in moved.entries),
        derived=tuple(_reached(one) for one in moved.gone.derived),
        along=tuple(_reached(one) for one in moved.along),
        statements=(*moved.statements, *moved.gone.statements),
        sessions=tuple(sessions),
        owed=len({name for names in moved.gone.owed for name in names}),
    )


def _marked(one: Derived) -> Reached:
    return replace(_reached(one), why="withheld from now on and marked orphaned: it lost a source")


def _reached(one: Derived) -> Reached:
    shown = ", ".join(one.on[:3]) + (f" and {len(one.on) - 3} more" if len(one.on) > 3 else "")
    why = f"a person's own words, said in {shown}" if one.own else f"stands on {shown}"
    return Reached(one.name, one.kind, one.scopes, why)

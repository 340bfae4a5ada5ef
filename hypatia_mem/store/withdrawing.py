"""Taking away: entries, all that stands on them, and what has to be noted of the rest.

When a source goes, all that is derived from it goes in the same transaction. When it is changed,
moved or withheld, summaries and episodes go too, and what an agent wrote is called stale, or waits
for a review. What was condensed together with it is owed a new summary (``owing``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry, Trust
from hypatia_mem.store import episodes, followers, owing, rows, sources
from hypatia_mem.store.sources import Derived

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = [
    "UNWANTED",
    "Withdrawn",
    "drop_above",
    "drop_orphans",
    "retell",
    "set_back",
    "take_out",
    "withdraw",
]

UNWANTED = "unwanted"  # the ledger's reason for the links of a summary that was itself deleted
_WITHDRAWN = "source withdrawn"


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What a withdrawal took out: the entries named, and what stood on them.

    ``kept`` stood on them too, but is a person's own. ``statements`` are keys of triples;
    ``owed`` the messages that a new summary is due for, by the summary they lost. ``marked``
    stood on them and was kept, withheld.
    """

    entries: tuple[Entry, ...] = ()
    derived: tuple[Derived, ...] = ()
    kept: tuple[Derived, ...] = ()
    statements: tuple[str, ...] = ()
    owed: tuple[tuple[str, ...], ...] = ()
    marked: tuple[Derived, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all the entries that are gone."""
        return (*(one.name for one in self.entries), *(one.name for one in self.derived))


def withdraw(
    txn: EntryWrites,
    names: Sequence[str],
    *,
    reason: str,
    unwanted: bool = False,
    above_only: bool = False,
    keep: bool = False,
) -> Withdrawn:
    """Delete entries, their statements and all that stands on them; last states are kept.

    With a few SQL statements, however many there are. Names without an entry are passed over.
    ``above_only``: the entries themselves stay, for the caller to do with as he likes; then their
    names are still taken for gone. ``unwanted``: summaries among them are not to be made again.
    ``keep``: what stands on them stays, marked as orphaned and withheld from every default read.
    """
    targets = [rows.clean(name) for name in names]
    stands = sources.derived(txn.store, targets)
    goes = [one for one in stands if not one.own and one.name not in txn.withdrawing]
    gone = {*targets, *(one.name for one in goes)}
    there = {one.name: one for one in txn.store.entries(gone)}
    named = () if above_only else dict.fromkeys(targets)
    entries = [there[name] for name in named if name in there]
    above = [] if keep else [there[one.name] for one in goes if one.name in there]
    lost = [*above, *entries] if reason == _WITHDRAWN else above  # who deletes one wants none
    owed = owing.owe(txn, lost, without=gone)
    why = {one.name: _WITHDRAWN for one in above}
    why |= {one.name: reason for one in entries}
    never = {one.name for one in entries if unwanted and "summary" in one.tags}
    triples = _remove(txn, [*above, *entries], why, unwanted=never)
    _untitle(txn, [*above, *entries])
    if keep:
        _mark(txn, [one.name for one in goes])
    return Withdrawn(
        entries=tuple(entries),
        derived=() if keep else tuple(goes),
        kept=tuple(one for one in stands if one.own),
        statements=tuple(triples),
        owed=owed,
        marked=tuple(goes) if keep else (),
    )


def drop_above(txn: EntryWrites, name: str, *, purge: bool = False) -> list[str]:
    """Take out all that stands on ``name``, before ``name`` itself goes; return those names.

    ``purge``: what is forgotten leaves no earlier state either, not even in what was derived from
    it and taken out long ago.
    """
    gone = withdraw(txn, [name], reason=_WITHDRAWN, above_only=True)
    if purge:
        ever = sources.gone_above(txn.store, name)
        for table, keys in (("version", ("name",)), ("statement_version", ("subject", "object"))):
            for key in keys:
                txn.store.execute(
                    f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",  # noqa: S608 - ours
                    [ever],
                )
    return [one.name for one in gone.derived]


def retell(txn: EntryWrites, names: Sequence[str]) -> list[str]:
    """Take out summaries, episodes and threads that tell what is forgotten, to be told anew.

    With all that stands on them and all their past. Returns the names of all that went.
    """
    gone = withdraw(txn, names, reason=_WITHDRAWN)
    for table, key in (("version", "name"), ("statement_version", "subject")):
        txn.store.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",  # noqa: S608 - ours
            [list(gone.names)],
        )
    return list(gone.names)


def drop_orphans(txn: EntryWrites, *, keep: bool = False) -> Withdrawn:
    """Take out derived things that lack a source, and all that stands on them.

    ``keep``: mark and withhold them instead; without it those that were marked go too.
    """
    names = sources.orphans(txn.store, marked=not keep)
    if not names:
        return Withdrawn()
    if keep:
        stands = [one for one in sources.derived(txn.store, names) if not one.own]
        _mark(txn, [*names, *(one.name for one in stands)])
        return Withdrawn(marked=tuple(stands))
    there = {one.name: one for one in txn.store.entries(names)}
    gone = withdraw(txn, names, reason=_WITHDRAWN)
    orphans = tuple(
        Derived(name, one.kind, sources.level_of(one.tags), one.scopes, "summary", ())
        for name, one in there.items()
    )
    return replace(gone, entries=(), derived=(*gone.derived, *orphans))


def take_out(
    txn: EntryWrites, stands: Sequence[Derived], *, without: Sequence[str] = ()
) -> Withdrawn:
    """Take derived things out, as if ``without`` had gone, which stays where it is."""
    there = {one.name: one for one in txn.store.entries([one.name for one in stands])}
    gone = {*without, *there}
    owed = owing.owe(txn, list(there.values()), without=gone)
    triples = _remove(txn, list(there.values()), dict.fromkeys(there, _WITHDRAWN))
    _untitle(txn, list(there.values()))
    return Withdrawn(derived=tuple(stands), statements=tuple(triples), owed=owed)


def set_back(
    txn: EntryWrites, name: str, *, hidden: bool, grows: bool = False, reworded: bool = False
) -> Withdrawn:
    """Do what a change of an entry that others stand on takes, before or after the change itself.

    Summaries go and are owed anew, from the entry as it is now; ``hidden``: it is withheld from
    now on, so they are owed without it. What an agent wrote is called stale; it waits for a
    person's review when its source is ``hidden``. A message that only ``grows``, as it is read,
    leaves its session's summary true. One that was ``reworded`` takes what the worker has only
    proposed of its earlier words.
    """
    name = rows.clean(name)
    if name in txn.withdrawing:
        return Withdrawn()
    stands = [
        one
        for one in sources.derived(txn.store, [name])
        if not one.own and not (grows and one.via == "belongTo")
    ]
    if not stands:
        return Withdrawn()
    loose = _proposals(txn.store, [one.name for one in stands]) if reworded else set()
    made = [
        one
        for one in stands
        if one.via not in sources.DERIVING or one.kind in episodes.MADE_ANEW or one.name in loose
    ]
    there = {one.name: one for one in txn.store.entries([one.name for one in stands])}
    txn.withdrawing.add(name)
    try:
        gone = {one.name for one in made} | ({name} if hidden else set())
        owed = owing.owe(txn, [there[one.name] for one in made], without=gone)
        triples = _remove(
            txn, [there[one.name] for one in made], {one.name: _WITHDRAWN for one in made}
        )
        _untitle(txn, [there[one.name] for one in made])
        for one in stands:
            if one not in made:
                _doubt(txn, there[one.name], hidden=hidden)
    finally:
        txn.withdrawing.discard(name)
    return Withdrawn(derived=tuple(made), statements=tuple(triples), owed=owed)


def _proposals(store: Store, names: Sequence[str]) -> set[str]:
    """Return those of these that the worker proposed and nobody has taken in, with all on them."""
    found = store.execute(
        "SELECT name FROM entry WHERE name IN (SELECT unnest($1::VARCHAR[]))"
        " AND trust = 'candidate' AND channel = 'worker'",
        [list(names)],
    ).fetchall()
    proposed = {str(name) for (name,) in found}
    above = sources.derived(store, proposed) if proposed else []
    return proposed | {one.name for one in above if not one.own}


def _doubt(txn: EntryWrites, entry: Entry, *, hidden: bool) -> None:
    trust = Trust.CANDIDATE if hidden else Trust.STALE
    if entry.trust in (Trust.REJECTED, Trust.CANDIDATE) or entry.trust == trust:
        return
    txn._write_again(entry, replace(entry, trust=trust))


def _mark(txn: EntryWrites, names: Sequence[str]) -> None:
    """Keep derived things that lost a source, but where nobody takes them for true."""
    txn.withdrawing.update(names)
    for entry in txn.store.entries(names):
        if sources.ORPHANED not in entry.tags:
            tags = (*entry.tags, sources.ORPHANED)
            after = replace(entry, tags=tags, trust=Trust.CANDIDATE)
            txn._write_again(entry, after, sources.ORPHANED)
    txn.withdrawing.difference_update(names)


def _remove(
    txn: EntryWrites,
    entries: Sequence[Entry],
    why: Mapping[str, str],
    *,
    unwanted: Collection[str] = (),
) -> list[str]:
    """Take entries and the statements at whose ends they stand out; return those statements.

    ``why`` goes to the ledger, by name; what an ``unwanted`` summary condensed stays covered.
    """
    if not entries:
        return []
    names = [one.name for one in entries]
    touching = txn.store.run(
        """
        SELECT triple, subject, object FROM statement
        WHERE subject IN (SELECT unnest($1::VARCHAR[])) OR object IN (SELECT unnest($1::VARCHAR[]))
        ORDER BY triple
        """,
        [names],
    )
    triples = [str(row["triple"]) for row in touching]
    txn._retire(
        "statement",
        {
            row["triple"]: txn._note(
                "delete",
                row["triple"],
                "statement",
                reason=UNWANTED
                if row["subject"] in unwanted
                else why[row["subject"] if row["subject"] in why else row["object"]],
            )
            for row in touching
        },
    )
    noted = {
        one.name: txn._note(
            "delete", one.name, one.kind, before=rows.digest(one.content), reason=why[one.name]
        )
        for one in entries
    }
    txn._retire("entry", noted)
    txn._forget_touched([*names, *triples])
    messages = [one.name for one in entries if one.kind == "message"]
    if messages:
        followers.reparent(txn, messages)
        followers.take_out_calls(txn, messages)
        txn._empty_messages({name: noted[name] for name in messages})
    txn.store.execute(
        "DELETE FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))", [triples]
    )
    txn.store.execute("DELETE FROM entry WHERE name IN (SELECT unnest(?::VARCHAR[]))", [names])
    return triples


def _untitle(txn: EntryWrites, entries: Sequence[Entry]) -> None:
    """Take from sessions the titles that the client made of what is not there any more."""
    sessions = [one.session_id for one in entries if one.kind == "session"]
    if not sessions:
        return
    found = txn.store.execute(
        """
        SELECT id, title FROM session WHERE id IN (SELECT unnest(?::VARCHAR[])) AND title IN (
            SELECT content FROM version
            WHERE version.name = 'session-' || session.id AND producer = 'title'
        )
        """,
        [sessions],
    ).fetchall()
    for id_, title in found:
        txn.store.execute("UPDATE session SET title = '' WHERE id = ?", [id_])
        seq = txn._note("update", id_, "session", reason=_WITHDRAWN, index=False)
        txn._keep_image(seq, "session", id_, {"title": title}, {"title": ""})

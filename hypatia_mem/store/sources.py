"""What stands on what: the sources of everything derived, and taking a source away.

Four things are derived. A *summary* stands on what it condenses (``<summary> summary <item>``). A
*session's summary*, which the client made, stands on every message of its session. A *work unit*,
or whatever else an agent wrote, stands on what it is ``derivedFrom``. What a person asked to be
remembered stands on the person: its ``derivedFrom`` only tells where it was said.

A derived thing's sources are always live. When one goes, all that stands on it goes in the same
transaction; when one is changed, moved or withheld, summaries go too, and what an agent wrote is
called stale, or waits for a review. What was condensed together with it is owed a new summary.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import PERSON_CHANNELS, Entry, Trust
from hypatia_mem.store import rows, summaries, withdrawing

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = [
    "NAMED",
    "OWED_ABOVE",
    "UNWANTED",
    "Derived",
    "Withdrawn",
    "derived",
    "drop_above",
    "drop_orphans",
    "lacks_messages",
    "orphans",
    "set_back",
    "sources",
    "take_out",
    "was_withdrawn",
    "withdraw",
]

OWED_ABOVE = "cascade_owed_above"  # as the planner reads it
UNWANTED = "unwanted"  # the ledger's reason for the links of a summary that was itself deleted
NAMED = "name"  # the producer of a session's title that a person gave
_WITHDRAWN = "source withdrawn"
_DERIVING = ("derivedFrom", "derived_from")
_REMEMBERED = frozenset({"rule", "taboo", "memory"})
_NOTES = 100  # of summaries that are owed; those forgotten about are in the pool all the same


@dataclass(frozen=True, slots=True)
class Derived:
    """A thing that stands on others: ``via`` which predicate, directly on which of them (``on``).

    ``level`` is a summary's. ``own``: a person's own words, which do not go with where they were
    said.
    """

    name: str
    kind: str
    level: int
    scopes: tuple[str, ...]
    via: str
    on: tuple[str, ...]
    own: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What a withdrawal took out: the entries named, and what stood on them.

    ``kept`` stood on them too, but is a person's own. ``statements`` are keys of triples;
    ``owed`` the messages that a new summary is due for, by the summary they lost.
    """

    entries: tuple[Entry, ...] = ()
    derived: tuple[Derived, ...] = ()
    kept: tuple[Derived, ...] = ()
    statements: tuple[str, ...] = ()
    owed: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all the entries that are gone."""
        return (*(one.name for one in self.entries), *(one.name for one in self.derived))


# --- reading --------------------------------------------------------------------------------------


def derived(store: Store, names: Iterable[str]) -> list[Derived]:
    """Return everything that stands on one of ``names``, however far up; the highest first.

    Nothing stands on a person's own words. Links in a circle, which only a person can lay, are
    followed once.
    """
    start = [rows.clean(name) for name in names]
    seen = set(start)
    found: dict[str, Derived] = {}
    front = start
    while front:
        above = [one for one in _directly(store, front) if one.name not in seen]
        for one in above:
            found.setdefault(one.name, one)
        front = list(dict.fromkeys(one.name for one in above if not one.own))
        seen.update(one.name for one in above)
    return sorted(found.values(), key=lambda one: (-one.level, one.name))


def sources(store: Store, name: str) -> list[str]:
    """Return the names that a derived thing stands on directly, live or not, in no order."""
    found = store.execute(
        """
        SELECT object FROM statement
        WHERE subject = $1 AND (predicate = 'summary' OR list_contains($2, predicate))
        UNION
        SELECT entry.name FROM entry
        JOIN entry AS session ON session.name = $1 AND session.kind = 'session'
        WHERE entry.kind = 'message' AND entry.session_id = session.session_id
          AND session.producer <> $3
        """,
        [rows.clean(name), list(_DERIVING), NAMED],
    ).fetchall()
    return [str(row[0]) for row in found]


def orphans(store: Store) -> list[str]:
    """Return derived things that lack a source which was there once.

    There are none as long as every change goes through the gateway; a store from elsewhere, or a
    row deleted by hand, may have some. A thing may be derived from a message that is not stored
    yet: that is none.
    """
    found = store.execute(
        """
        WITH gone AS (
            SELECT 'msg-' || session_id || '-' || turn AS name, session_id FROM message
            WHERE name NOT IN (SELECT name FROM entry)
        ), link AS (
            SELECT subject, object FROM statement WHERE list_contains($1, predicate)
        )
        SELECT entry.name FROM entry JOIN link ON link.subject = entry.name
        WHERE link.object IN (SELECT name FROM gone) AND NOT (
            list_contains($2, entry.kind) AND list_contains($3, entry.channel)
        )
        UNION
        SELECT name FROM entry WHERE kind = 'session' AND producer <> $4
          AND session_id IN (SELECT session_id FROM gone) AND name = 'session-' || session_id
        ORDER BY 1
        """,
        [list(_DERIVING), sorted(_REMEMBERED), sorted(map(str, PERSON_CHANNELS)), NAMED],
    ).fetchall()
    return list(dict.fromkeys([*summaries.broken(store), *(str(row[0]) for row in found)]))


def lacks_messages(store: Store, session_id: str) -> bool:
    """Tell whether a message of a session was withdrawn: then no summary of all of it is true."""
    found = store.execute(
        """
        SELECT 1 FROM message WHERE session_id = $1 AND concat('msg-', session_id, '-', turn)
            NOT IN (SELECT name FROM live_entry WHERE session_id = $1 AND kind = 'message')
        LIMIT 1
        """,
        [session_id],
    ).fetchone()
    return found is not None


def was_withdrawn(store: Store, name: str, content: str) -> bool:
    """Tell whether an entry said exactly this when it was deleted, and is not there now."""
    found = store.execute(
        """
        SELECT 1 FROM version JOIN mutation ON mutation.seq = version.replaced_seq
        WHERE version.name = $1 AND version.content_digest = $2
          AND starts_with(mutation.verb, 'delete ')
          AND $1 NOT IN (SELECT name FROM entry WHERE name = $1)
        LIMIT 1
        """,
        [rows.clean(name), rows.digest(rows.clean(content))],
    ).fetchone()
    return found is not None


def _ever_above(store: Store, name: str) -> list[str]:
    """Return what ever stood on ``name``, however far up, and is not there any more."""
    found = store.execute(
        """
        WITH RECURSIVE link AS (
            SELECT subject, object FROM statement
            WHERE predicate = 'summary' OR list_contains($2, predicate)
            UNION
            SELECT subject, object FROM statement_version
            WHERE predicate = 'summary' OR list_contains($2, predicate)
        ), up AS (
            SELECT $1 AS name
            UNION
            SELECT link.subject FROM link JOIN up ON link.object = up.name
        )
        SELECT name FROM up WHERE name <> $1 AND name NOT IN (SELECT name FROM entry)
        UNION
        SELECT 'session-' || session_id FROM version
        WHERE name = $1 AND kind = 'message'
          AND 'session-' || session_id NOT IN (SELECT name FROM entry)
        """,
        [name, list(_DERIVING)],
    ).fetchall()
    return [str(row[0]) for row in found]


def _directly(store: Store, names: Sequence[str]) -> list[Derived]:
    found = store.run(
        """
        WITH below AS (SELECT unnest($1::VARCHAR[]) AS name), link AS (
            SELECT subject AS name, object AS source, predicate AS via FROM statement
            WHERE object IN (SELECT name FROM below)
              AND (predicate = 'summary' OR list_contains($2, predicate))
            UNION ALL
            SELECT 'session-' || session_id, name, 'belongTo' FROM entry
            WHERE kind = 'message' AND name IN (SELECT name FROM below)
        )
        SELECT entry.name, entry.kind, entry.tags, entry.scopes, entry.channel, entry.producer,
            link.via, list(link.source ORDER BY link.source) AS sources
        FROM link JOIN entry ON entry.name = link.name
        WHERE link.name <> link.source AND CASE link.via
            WHEN 'summary' THEN list_contains(entry.tags, 'summary')
            WHEN 'belongTo' THEN entry.kind = 'session' ELSE true END
        GROUP BY ALL
        """,
        [list(names), list(_DERIVING)],
    )
    return [
        Derived(
            name=row["name"],
            kind=row["kind"],
            level=_level(row["tags"]),
            scopes=tuple(row["scopes"]),
            via=row["via"],
            on=tuple(row["sources"]),
            own=_is_own(row),
        )
        for row in found
    ]


def _is_own(row: Mapping[str, Any]) -> bool:
    if row["via"] == "belongTo":
        return bool(row["producer"] == NAMED)
    said = row["kind"] in _REMEMBERED and row["channel"] in PERSON_CHANNELS
    return bool(row["via"] != "summary" and said)


def _level(tags: Iterable[str]) -> int:
    numbers = [tag.removeprefix("summary ") for tag in tags if tag.startswith("summary ")]
    return next((int(number) for number in numbers if number.isdigit()), 0)


# --- taking away ----------------------------------------------------------------------------------


def withdraw(
    txn: EntryWrites,
    names: Sequence[str],
    *,
    reason: str,
    unwanted: bool = False,
    above_only: bool = False,
) -> Withdrawn:
    """Delete entries, their statements and all that stands on them; last states are kept.

    With a few SQL statements, however many there are. Names without an entry are passed over.
    ``above_only``: the entries themselves stay, for the caller to do with as he likes; then their
    names are still taken for gone. ``unwanted``: summaries among them are not to be made again.
    """
    targets = [rows.clean(name) for name in names]
    stands = derived(txn.store, targets)
    goes = [one for one in stands if not one.own and one.name not in txn.withdrawing]
    gone = {*targets, *(one.name for one in goes)}
    there = {one.name: one for one in txn.store.entries(gone)}
    named = () if above_only else dict.fromkeys(targets)
    entries = [there[name] for name in named if name in there]
    above = [there[one.name] for one in goes if one.name in there]
    lost = [*above, *entries] if reason == _WITHDRAWN else above  # who deletes one wants none
    owed = _owe(txn, lost, without=gone)
    why = {one.name: _WITHDRAWN for one in above}
    why |= {one.name: reason for one in entries}
    never = {one.name for one in entries if unwanted and "summary" in one.tags}
    triples = _remove(txn, [*above, *entries], why, unwanted=never)
    _untitle(txn, [*above, *entries])
    return Withdrawn(
        entries=tuple(entries),
        derived=tuple(goes),
        kept=tuple(one for one in stands if one.own),
        statements=tuple(triples),
        owed=owed,
    )


def drop_above(txn: EntryWrites, name: str, *, purge: bool = False) -> list[str]:
    """Take out all that stands on ``name``, before ``name`` itself goes; return those names.

    ``purge``: what is forgotten leaves no earlier state either, not even in what was derived from
    it and taken out long ago.
    """
    gone = withdraw(txn, [name], reason=_WITHDRAWN, above_only=True)
    if purge:
        ever = _ever_above(txn.store, rows.clean(name))
        for table, keys in (("version", ("name",)), ("statement_version", ("subject", "object"))):
            for key in keys:
                txn.store.execute(
                    f"DELETE FROM {table} WHERE {key} IN (SELECT unnest(?::VARCHAR[]))",  # noqa: S608 - ours
                    [ever],
                )
    return [one.name for one in gone.derived]


def drop_orphans(txn: EntryWrites) -> Withdrawn:
    """Take out derived things that lack a source, and all that stands on them."""
    names = orphans(txn.store)
    if not names:
        return Withdrawn()
    there = {one.name: one for one in txn.store.entries(names)}
    gone = withdraw(txn, names, reason=_WITHDRAWN)
    stands = tuple(
        Derived(name, one.kind, _level(one.tags), one.scopes, "summary", ())
        for name, one in there.items()
    )
    return replace(gone, entries=(), derived=(*gone.derived, *stands))


def take_out(
    txn: EntryWrites, stands: Sequence[Derived], *, without: Sequence[str] = ()
) -> Withdrawn:
    """Take derived things out, as if ``without`` had gone, which stays where it is."""
    there = {one.name: one for one in txn.store.entries([one.name for one in stands])}
    gone = {*without, *there}
    owed = _owe(txn, list(there.values()), without=gone)
    triples = _remove(txn, list(there.values()), dict.fromkeys(there, _WITHDRAWN))
    _untitle(txn, list(there.values()))
    return Withdrawn(derived=tuple(stands), statements=tuple(triples), owed=owed)


def set_back(txn: EntryWrites, name: str, *, hidden: bool, grows: bool = False) -> Withdrawn:
    """Do what a change of an entry that others stand on takes, before or after the change itself.

    Summaries go and are owed anew, from the entry as it is now; ``hidden``: it is withheld from
    now on, so they are owed without it. What an agent wrote is called stale; it waits for a
    person's review when its source is ``hidden``. A message that only ``grows``, as it is read,
    leaves its session's summary true.
    """
    name = rows.clean(name)
    if name in txn.withdrawing:
        return Withdrawn()
    stands = [
        one
        for one in derived(txn.store, [name])
        if not one.own and not (grows and one.via == "belongTo")
    ]
    if not stands:
        return Withdrawn()
    made = [one for one in stands if one.via not in _DERIVING]
    there = {one.name: one for one in txn.store.entries([one.name for one in stands])}
    txn.withdrawing.add(name)
    try:
        gone = {one.name for one in made} | ({name} if hidden else set())
        owed = _owe(txn, [there[one.name] for one in made], without=gone)
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


def _doubt(txn: EntryWrites, entry: Entry, *, hidden: bool) -> None:
    trust = Trust.CANDIDATE if hidden else Trust.STALE
    if entry.trust in (Trust.REJECTED, Trust.CANDIDATE) or entry.trust == trust:
        return
    txn._write_again(entry, replace(entry, trust=trust))


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
        withdrawing.reparent(txn, messages)
        withdrawing.take_out_calls(txn, messages)
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


# --- what is owed ---------------------------------------------------------------------------------


def _owe(
    txn: EntryWrites, entries: Sequence[Entry], *, without: Collection[str]
) -> tuple[tuple[str, ...], ...]:
    """Note what summaries that go leave behind: it is condensed anew, without what goes."""
    made = [one for one in entries if "summary" in one.tags]
    if not made:
        return ()
    below = _below(txn.store, [one.name for one in made])
    owed: list[list[str]] = []
    above: list[dict[str, Any]] = []
    for one in made:
        level = _level(one.tags)
        left = [name for name in below.get(one.name, ()) if name not in without]
        if level == 1 and left:
            owed.append(left)
        elif level > 1:
            first = _began(txn.store, one.name)
            if first is not None and one.created_at is not None:
                above.append(_note_of(level, one, first))
    if owed:
        known = summaries.read_note(txn.store, summaries.OWED, [])
        summaries.note(txn, summaries.OWED, [*known, *owed])
    if above:
        known = summaries.read_note(txn.store, OWED_ABOVE, [])
        summaries.note(txn, OWED_ABOVE, [*known, *above][-_NOTES:])
    return tuple(tuple(names) for names in owed)


def _note_of(level: int, entry: Entry, first: datetime) -> dict[str, Any]:
    assert entry.created_at is not None
    return {
        "level": level,
        "scopes": sorted(entry.scopes),
        "from": first.isoformat(),
        "to": entry.created_at.isoformat(),
    }


def _below(store: Store, names: Sequence[str]) -> dict[str, list[str]]:
    """Return what summaries condense, each in the order in which it was condensed."""
    found = store.run(
        """
        SELECT subject, object, content FROM statement
        WHERE predicate = 'summary' AND subject IN (SELECT unnest(?::VARCHAR[]))
          AND trust NOT IN ('candidate', 'rejected')
        """,
        [list(names)],
    )
    placed: dict[str, list[tuple[int, str]]] = {}
    for row in found:
        placed.setdefault(row["subject"], []).append((_place(row["content"]), row["object"]))
    return {name: [one for _, one in sorted(items)] for name, items in placed.items()}


def _place(data: str) -> int:
    try:
        return int(json.loads(data)["source"])
    except (ValueError, TypeError, KeyError):
        return 1 << 30


def _began(store: Store, name: str) -> datetime | None:
    """Return the time of the first thing that a summary stands on, however far down."""
    found = store.execute(
        """
        WITH RECURSIVE down AS (
            SELECT object AS name, 1 AS depth FROM statement
            WHERE predicate = 'summary' AND subject = $1
            UNION
            SELECT link.object, down.depth + 1 FROM statement AS link
            JOIN down ON link.subject = down.name
            WHERE link.predicate = 'summary' AND down.depth < 60
        )
        SELECT min(entry.created_at) FROM entry WHERE name IN (SELECT name FROM down)
        """,
        [name],
    ).fetchone()
    return None if found is None else found[0]

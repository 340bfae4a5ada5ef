"""Branches of sessions: what each one reads, and what of its siblings it is not told.

A branch is a session's row that shares the turns of another one up to a point (``forked_from``,
``forked_at``, and ``fork_gaps`` for what a client wound back before). Nothing is copied. A message
has one *place* in every branch that reads it: its turn, plus the place at which its own session
branched off. A client may name an origin of which nothing is known here: that is no branch.

Who is a branch is told its ancestors and its own turns, never those of a sibling behind the point
at which they part, nor what is derived from any of them. Who is none is told every branch, until a
person makes one the head (``headed_at``): from then on the head, and those that somebody went on
in since.

Chains are walked in memory: there are few branches, and DuckDB 1.5 loses rows of recursive queries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypatia_mem.model import Entry, Message, Session
from hypatia_mem.store import aiming, episodes, rows, sources
from hypatia_mem.store.hidden import FILE, Turns

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.keys import Key

__all__ = [
    "Branch",
    "Forest",
    "Origin",
    "count",
    "episodes_of",
    "forest",
    "gaps_of",
    "gaps_text",
    "heads",
    "hidden_names",
    "latest",
    "length",
    "names_at",
    "needed",
    "newest",
    "origin",
    "reading",
    "shared",
    "untold",
    "with_length",
    "write",
]

_FAR = 2**30  # behind every turn that can be
_EPISODES = 1_000  # of one session
_JOINTS = ("belongTo", "derivedFrom", "derived_from", "summary")


@dataclass(frozen=True, slots=True)
class Branch:
    """A session that branched off another one, or from which one did."""

    id: str
    project: str = ""
    forked_from: str = ""
    forked_at: int = 0
    gaps: frozenset[int] = frozenset()
    reason: str = ""
    headed_at: datetime | None = None
    turns: int = 0
    updated_at: datetime | None = None
    pinned: bool = False


class _Span(NamedTuple):
    """What is read of one session: its turns up to ``last`` (None: all), without some places."""

    session: str
    base: int
    last: int | None
    gaps: frozenset[int]


class Origin(NamedTuple):
    """Where a session branched off: what ``Session`` has fields of the same names for."""

    forked_from: str
    forked_at: int
    fork_gaps: str


class Forest:
    """All branches there are, by id."""

    def __init__(self, found: Iterable[Branch], went_on: Mapping[str, datetime]) -> None:
        """Take the branches, and of each family with a head when a turn was last said in each."""
        self._all = {one.id: one for one in found}
        self._went_on = went_on

    def __contains__(self, session_id: str) -> bool:
        """Tell whether a session is a branch, or has one."""
        return session_id in self._all

    def __iter__(self) -> Any:
        """Yield the ids of all branches and of what they branched off."""
        return iter(self._all)

    def branch(self, session_id: str) -> Branch:
        """Return what is known of a session; of one that is no branch, its id."""
        return self._all.get(session_id) or Branch(session_id)

    def base(self, session_id: str) -> int:
        """Return the place behind which a session's own turns are."""
        return self.branch(session_id).forked_at

    def chain(self, session_id: str) -> list[Branch]:
        """Return a branch and what it stands on, the root first. A circle is left where it ends."""
        found = [self.branch(session_id)]
        seen = {session_id}
        while (above := found[-1].forked_from) and above not in seen:
            seen.add(above)
            found.append(self.branch(above))
        return found[::-1]

    def family(self, session_id: str) -> list[tuple[int, Branch]]:
        """Return a branch's whole family as a tree: (depth, branch), each behind its parent."""
        below: dict[str, list[Branch]] = {}
        for one in self._all.values():
            below.setdefault(one.forked_from, []).append(one)
        made: list[tuple[int, Branch]] = []
        waiting = [(0, self.chain(session_id)[0])]
        seen: set[str] = set()
        while waiting:
            depth, one = waiting.pop()
            if one.id in seen:
                continue
            seen.add(one.id)
            made.append((depth, one))
            under = sorted(below.get(one.id, ()), key=lambda b: (b.forked_at, b.id), reverse=True)
            waiting += [(depth + 1, each) for each in under]
        return made

    def children(self, session_id: str) -> list[Branch]:
        """Return what branched off a session itself."""
        return [one for one in self._all.values() if one.forked_from == session_id]

    def spans(self, session_id: str) -> list[_Span]:
        """Return what a branch reads, in order: its ancestors' turns up to where it parts, its own.

        >>> a, b = Branch("a"), Branch("b", forked_from="a", forked_at=3)
        >>> [tuple(span)[:3] for span in Forest([a, b], {}).spans("b")]
        [('a', 0, 3), ('b', 3, None)]
        """
        found: list[_Span] = []
        until: int | None = None
        gaps: frozenset[int] = frozenset()
        for one in reversed(self.chain(session_id)):
            if until is None or until > one.forked_at:
                last = None if until is None else until - one.forked_at
                found.append(_Span(one.id, one.forked_at, last, gaps))
            if one.forked_from:
                until = one.forked_at if until is None else min(until, one.forked_at)
                gaps |= one.gaps
        return found[::-1]

    def hidden(self, session_id: str) -> list[Turns]:
        """Return the turns of its family that a branch does not read."""
        read = {span.session: span for span in self.spans(session_id)}
        return [
            turns for _, one in self.family(session_id) for turns in _unread(one, read.get(one.id))
        ]

    def head(self, session_id: str) -> str:
        """Return the head of a session's family, ``""`` where nobody made one the head."""
        made = [one for _, one in self.family(session_id) if one.headed_at is not None]
        return max(made, key=lambda one: (str(one.headed_at), one.id)).id if made else ""

    def in_sight(self, session_id: str) -> list[str]:
        """Return which branches of a family whoever is none of them is told."""
        family = [one for _, one in self.family(session_id)]
        head = self.head(session_id)
        if not head:
            return [one.id for one in family]
        since = self.branch(head).headed_at
        on_the_way = {span.session for span in self.spans(head)}
        return [
            one.id
            for one in family
            if one.id == head
            or (
                (at := self._went_on.get(one.id)) is not None
                and since is not None
                and at > since
                and (one.id not in on_the_way or self._is_past(one, head))
            )
        ]

    def _is_past(self, one: Branch, head: str) -> bool:
        """Tell whether an ancestor of the head has turns that the head does not read."""
        last = next(span.last for span in self.spans(head) if span.session == one.id)
        return last is not None and one.turns > last

    def tells(self, session_id: str, asker: str) -> bool:
        """Tell whether ``asker`` may be told how a session ends: it itself, of its own family."""
        if session_id not in self._all or session_id == asker:
            return True
        family = {one.id for _, one in self.family(session_id)}
        return asker not in family and session_id in self.in_sight(session_id)

    def set_aside(self) -> list[Turns]:
        """Return the turns that whoever is no branch is not told."""
        found: list[Turns] = []
        done: set[str] = set()
        for one in self._all:
            if one in done:
                continue
            done.update(each.id for _, each in self.family(one))
            if self.head(one):
                found += _in_all([self.hidden(each) for each in self.in_sight(one)])
        return found

    def unseen_by(self, session_id: str) -> list[Turns]:
        """Return the turns that a session is not told, be it a branch or none."""
        if session_id not in self._all:
            return self.set_aside()
        own = {one.id for _, one in self.family(session_id)}
        others = [turns for turns in self.set_aside() if turns.session not in own]
        return [*self.hidden(session_id), *others]


def forest(store: Store) -> Forest:
    """Return all branches of a store; without any there is nothing to ask further."""
    found = store.run(
        """
        SELECT id, project, forked_from, forked_at, fork_gaps, fork_reason, headed_at, turns,
               updated_at, pinned
        FROM session
        WHERE (forked_from <> '' AND (forked_at > 0 OR headed_at IS NOT NULL))
           OR id IN (
               SELECT forked_from FROM session
               WHERE forked_from <> '' AND (forked_at > 0 OR headed_at IS NOT NULL)
           )
        ORDER BY id
        """
    )
    branches = [
        Branch(
            row["id"],
            row["project"],
            row["forked_from"] if row["forked_at"] or row["headed_at"] else "",
            row["forked_at"] or 0,
            gaps_of(row["fork_gaps"] or ""),
            row["fork_reason"] or "",
            row["headed_at"],
            row["turns"],
            row["updated_at"],
            row["pinned"],
        )
        for row in found
    ]
    went_on = {}
    if any(one.headed_at is not None for one in branches):
        went_on = {
            str(id_): at
            for id_, at in store.execute(
                'SELECT session_id, max("at") FROM message'
                " WHERE session_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY session_id",
                [[one.id for one in branches]],
            ).fetchall()
        }
    return Forest(branches, went_on)


def latest(store: Store, most: int) -> list[tuple[str, str]]:
    """Return the branches that were last spoken in, and what branches came from: (id, project)."""
    members = list(forest(store))
    found = (
        store.execute(
            """
        SELECT id, project FROM session WHERE id IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY updated_at DESC NULLS LAST, id LIMIT ?
        """,
            [members, most],
        ).fetchall()
        if members
        else []
    )
    return [(str(id_), str(project)) for id_, project in found]


def newest(
    store: Store, project: str | None, asker: str, of: Forest | None = None
) -> Session | None:
    """Return the latest session of a project (None: of any) of which ``asker`` may be told."""
    there = of or forest(store)
    start = 0
    while found := store.sessions(project, limit=20, offset=start):
        for session, _ in found:
            if there.tells(session.id, asker):
                return session
        start += len(found)
    return None


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


def untold(store: Store, asker: str) -> list[str]:
    """Return the branches of which a session is not told how they end."""
    there = forest(store)
    return [one for one in there if not there.tells(one, asker)]


def heads(store: Store) -> set[str]:
    """Return the heads of all families that have one."""
    there = forest(store)
    return {head for one in there if (head := there.head(one))}


# --- reading --------------------------------------------------------------------------------------


def reading(
    store: Store,
    session_id: str,
    *,
    start: int = 1,
    limit: int = 1000,
    scopes: Sequence[str] | None = None,
    of: Forest | None = None,
) -> list[tuple[int, Message]]:
    """Return a session as it reads: (place, message) from a place on, its ancestors' turns first.

    One that was deleted or is withheld has neither text nor parts. ``scopes``: what an ancestor
    said in another project is left out.
    """
    spans = (of or forest(store)).spans(session_id)
    found = store.run(
        """
        WITH span AS (
            SELECT unnest($1::VARCHAR[]) AS id, unnest($2::INTEGER[]) AS base,
                   unnest($3::INTEGER[]) AS last, unnest($4::INTEGER[][]) AS gaps
        )
        SELECT message.* REPLACE (
            CASE WHEN entry.name IS NULL THEN '[]' ELSE message.parts END AS parts
        ), entry.content, message.turn + span.base AS place
        FROM span JOIN message
            ON message.session_id = span.id AND message.turn <= span.last
            AND NOT list_contains(span.gaps, message.turn + span.base)
        LEFT JOIN live_entry AS entry
            ON entry.name = 'msg-' || message.session_id || '-' || message.turn
        WHERE message.turn + span.base >= $5
          AND ($6::VARCHAR[] IS NULL OR entry.name IS NULL
               OR list_has_any(entry.scopes, $6::VARCHAR[]))
        ORDER BY place LIMIT $7
        """,
        [
            [span.session for span in spans],
            [span.base for span in spans],
            [_FAR if span.last is None else span.last for span in spans],
            [sorted(span.gaps) for span in spans],
            start,
            None if scopes is None else list(scopes),
            limit,
        ],
    )
    return [(row["place"], rows.message_of(row)) for row in found]


def count(store: Store, session_id: str, of: Forest | None = None) -> int:
    """Return how many messages a session reads."""
    read = [
        Turns(span.session, first, last)
        for span in (of or forest(store)).spans(session_id)
        for first, last in _runs(span)
    ]
    return len(_messages(store, read))


def length(store: Store, session_id: str, of: Forest | None = None) -> int:
    """Return the place of the last message that a session reads, 0 where it reads none."""
    there = of or forest(store)
    found = [
        (span.base + min(last, span.last or _FAR))
        for span in there.spans(session_id)
        if (last := aiming.last_turn(store, span.session))
    ]
    return max(found, default=0)


def with_length(row: Mapping[str, Any]) -> tuple[Session, int]:
    """Return the session of a row, and how many messages it has with those that it shares."""
    session = rows.session_of(row)
    return session, row["turns"] + shared(session.forked_at, session.fork_gaps)


def names_at(
    store: Store, session_id: str, places: Sequence[int], of: Forest | None = None
) -> list[str]:
    """Return the names of the messages that a session reads at these places, in order."""
    there = of or forest(store)
    wanted = sorted(places)
    found: list[str] = []
    for span in there.spans(session_id):
        last = _FAR if span.last is None else span.last
        found += [
            f"msg-{span.session}-{place - span.base}"
            for place in wanted
            if span.base < place <= span.base + last and place not in span.gaps
        ]
    return found


def shared(forked_at: int, gaps: str) -> int:
    """Return how many messages a branch shares."""
    return max(0, forked_at - len(gaps_of(gaps)))


def gaps_of(text: str) -> frozenset[int]:
    """Return the places that a text of ranges names.

    >>> sorted(gaps_of("3-5,9"))
    [3, 4, 5, 9]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), min(int(last or first), int(first) + _FAR) + 1))
    return frozenset(found)


def gaps_text(places: Iterable[int]) -> str:
    """Return places as a text of ranges.

    >>> gaps_text([9, 3, 4, 5])
    '3-5,9'
    """
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


# --- what a client's fork repeats -----------------------------------------------------------------


def origin(
    store: Store, session_id: str, repeated: Sequence[tuple[str, int]], said: str
) -> Origin | None:
    """Return where a session branched off, from the lines that it repeats of others.

    ``repeated``: (session, turn) of those lines; ``said``: the session that the client names. What
    was known of it before is added to. None where nothing is repeated, or the others themselves
    branched off this one: then it is they that repeat.
    """
    if not repeated:
        return None
    there = forest(store)
    places = {there.base(session) + turn: session for session, turn in repeated}
    last = max(places)
    parent = places[last]
    if said and store.session(said) is not None and parent in _ids(there.chain(said)):
        parent = said  # it shares that message itself, and has said nothing of its own yet
    if session_id in _ids(there.chain(parent)):
        return None
    before = there.branch(session_id)
    until = max(last, before.forked_at)
    gaps = set(before.gaps) | set(range(before.forked_at + 1, until + 1))
    return Origin(parent, until, gaps_text(gaps - set(places)))


# --- what a session is not told -------------------------------------------------------------------


def hidden_names(store: Store, session_id: str, of: Forest | None = None) -> list[str]:
    """Return the names of what a session is not told: messages, and what is derived from them."""
    turns = (of or forest(store)).unseen_by(session_id)
    if not turns:
        return []
    messages = _messages(store, turns)
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
    said = {one: _messages(store, turns) for one, turns in unseen.items()}
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
            for first, last in _runs(span)
        ]
        made[one] = {"hidden": turns, "ids": ids, "reads": reads}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder / f".{FILE}-{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(made, out)
    temporary.replace(folder / FILE)


def needed(
    store: Store, sessions: Collection[str], without: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return, by message of these sessions, the other branches that read it, none of ``without``.

    A branch is named once for each message of its ancestors that it shares.
    """
    there = forest(store)
    found: dict[str, list[str]] = {}
    for one in there:
        for span in there.spans(one) if one not in without else ():
            if span.session in sessions and span.session != one:
                kept = [Turns(span.session, first, last) for first, last in _runs(span)]
                for name in _messages(store, kept):
                    found.setdefault(name, []).append(one)
    return found


# --------------------------------------------------------------------------------------------------


def _ids(some: Iterable[Branch]) -> set[str]:
    return {one.id for one in some}


def _unread(one: Branch, span: _Span | None) -> list[Turns]:
    """Return the turns of a session that are not read, when ``span`` of it is."""
    if span is None:
        return [Turns(one.id, 1, None)]
    last = _FAR if span.last is None else span.last
    found = [
        Turns(one.id, place - span.base, place - span.base)
        for place in sorted(span.gaps)
        if span.base < place <= span.base + last
    ]
    return found if span.last is None else [*found, Turns(one.id, span.last + 1, None)]


def _runs(span: _Span) -> list[tuple[int, int | None]]:
    """Return the stretches of its session's turns that a span reads."""
    found: list[tuple[int, int | None]] = []
    first = 1
    for place in sorted(span.gaps):
        turn = place - span.base
        if turn < first:
            continue
        if span.last is not None and turn > span.last:
            break
        if turn > first:
            found.append((first, turn - 1))
        first = turn + 1
    if span.last is None or first <= span.last:
        found.append((first, span.last))
    return found


def _in_all(some: Sequence[Sequence[Turns]]) -> list[Turns]:
    """Return the turns that are in each of some collections.

    >>> _in_all([[Turns("a", 3, None)], [Turns("a", 5, None), Turns("b", 1, None)]])
    [Turns(session='a', first=5, last=None)]
    """
    opened: list[dict[str, int]] = []
    single: list[set[tuple[str, int]]] = []
    for turns in some:
        opened.append({one.session: one.first for one in turns if one.last is None})
        single.append({(one.session, one.first) for one in turns if one.last is not None})
    if not opened:
        return []
    ends = {
        session: max(one[session] for one in opened)
        for session in opened[0]
        if all(session in one for one in opened)
    }
    alone = {
        (session, turn)
        for session, turn in set().union(*single)
        if turn < ends.get(session, _FAR)
        and all(
            (session, turn) in closed or turn >= ends_.get(session, _FAR)
            for closed, ends_ in zip(single, opened, strict=True)
        )
    }
    found = [Turns(session, first, None) for session, first in sorted(ends.items())]
    return found + [Turns(session, turn, turn) for session, turn in sorted(alone)]


def _messages(store: Store, turns: Sequence[Turns]) -> list[str]:
    """Return the names of the messages that have these turns."""
    if not turns:
        return []
    found = store.execute(
        """
        WITH span AS (
            SELECT unnest($1::VARCHAR[]) AS id, unnest($2::INTEGER[]) AS first,
                   unnest($3::INTEGER[]) AS last
        )
        SELECT DISTINCT concat('msg-', message.session_id, '-', message.turn) FROM span
        JOIN message ON message.session_id = span.id
            AND message.turn BETWEEN span.first AND span.last
        """,
        [
            [one.session for one in turns],
            [one.first for one in turns],
            [_FAR if one.last is None else one.last for one in turns],
        ],
    ).fetchall()
    return [str(name) for (name,) in found]


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

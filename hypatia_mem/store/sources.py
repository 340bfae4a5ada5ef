"""What stands on what: the sources of everything derived. Reading only.

Four things are derived. A *summary* stands on what it condenses (``<summary> summary <item>``). A
*session's summary*, which the client made, stands on every message of its session. A *work unit*,
or whatever else an agent wrote, stands on what it is ``derivedFrom``. What a person asked to be
remembered stands on the person: its ``derivedFrom`` only tells where it was said.

A derived thing's sources are always live; ``withdrawing`` keeps it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import PERSON_CHANNELS
from hypatia_mem.store import rows, summaries

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "DERIVING",
    "NAMED",
    "ORPHANED",
    "Derived",
    "above",
    "derived",
    "ever_above",
    "gone_above",
    "lacks_messages",
    "level_of",
    "orphans",
    "sources",
    "was_withdrawn",
]

NAMED = "name"  # the producer of a session's title that a person gave
ORPHANED = "orphaned"  # the tag of what lost a source and is kept all the same, withheld
DERIVING = ("derivedFrom", "derived_from")
_REMEMBERED = frozenset({"rule", "taboo", "memory"})


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


def above(store: Store, names: Iterable[str]) -> dict[str, set[str]]:
    """Return by name what stands directly on it, of ``names`` and of all that stands on them.

    A person's own words are left out: they stand on the person.
    """
    found: dict[str, set[str]] = {}
    front = [rows.clean(name) for name in names]
    seen = set(front)
    while front:
        made = [one for one in _directly(store, front) if not one.own]
        for one in made:
            for source in one.on:
                found.setdefault(source, set()).add(one.name)
        front = [name for name in dict.fromkeys(one.name for one in made) if name not in seen]
        seen.update(front)
    return found


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
        [rows.clean(name), list(DERIVING), NAMED],
    ).fetchall()
    return [str(row[0]) for row in found]


def orphans(store: Store, *, marked: bool = True) -> list[str]:
    """Return derived things that lack a source which was there once.

    ``marked``: also those that were kept and marked when they lost it.

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
        [list(DERIVING), sorted(_REMEMBERED), sorted(map(str, PERSON_CHANNELS)), NAMED],
    ).fetchall()
    names = [*summaries.broken(store), *(str(row[0]) for row in found)]
    kept = store.execute(
        "SELECT name FROM entry WHERE list_contains(tags, ?) ORDER BY name", [ORPHANED]
    ).fetchall()
    known = [str(row[0]) for row in kept]
    if marked:
        return list(dict.fromkeys([*names, *known]))
    return [name for name in dict.fromkeys(names) if name not in known]


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
    """Tell whether an entry said exactly this when it was deleted, and is not there now.

    What went because its creation was undone was not deleted.
    """
    found = store.execute(
        """
        SELECT 1 FROM version JOIN mutation ON mutation.seq = version.replaced_seq
        WHERE version.name = $1 AND version.content_digest = $2
          AND starts_with(mutation.verb, 'delete ')
          AND mutation.op_id NOT IN (SELECT op_id FROM mutation WHERE verb = 'undo operation')
          AND $1 NOT IN (SELECT name FROM entry WHERE name = $1)
        LIMIT 1
        """,
        [rows.clean(name), rows.digest(rows.clean(content))],
    ).fetchone()
    return found is not None


def ever_above(store: Store, names: Iterable[str], *, summaries_only: bool = False) -> list[str]:
    """Return what stands, or ever stood, on one of ``names``, however far up; in no order.

    Walked level by level: DuckDB 1.5 loses rows, now and then, of a recursive query that removes
    duplicates on its way.
    """
    predicates = ["summary", *(() if summaries_only else DERIVING)]
    reached: dict[str, None] = {}
    front = [rows.clean(name) for name in names]
    while front:
        found = store.execute(
            """
            SELECT subject FROM statement
            WHERE object IN (SELECT unnest($1::VARCHAR[])) AND list_contains($2, predicate)
            UNION ALL
            SELECT subject FROM statement_version
            WHERE object IN (SELECT unnest($1::VARCHAR[])) AND list_contains($2, predicate)
            """,
            [front, predicates],
        ).fetchall()
        front = list(dict.fromkeys(str(row[0]) for row in found if str(row[0]) not in reached))
        reached.update(dict.fromkeys(front))
    return list(reached)


def gone_above(store: Store, name: str) -> list[str]:
    """Return what ever stood on ``name``, however far up, and is not there any more."""
    ever = ever_above(store, [name])
    found = store.execute(
        """
        SELECT name FROM (SELECT unnest($2::VARCHAR[]) AS name)
        WHERE name <> $1 AND name NOT IN (SELECT name FROM entry)
        UNION
        SELECT 'session-' || session_id FROM version
        WHERE name = $1 AND kind = 'message'
          AND 'session-' || session_id NOT IN (SELECT name FROM entry)
        """,
        [rows.clean(name), ever],
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
        [list(names), list(DERIVING)],
    )
    return [
        Derived(
            name=row["name"],
            kind=row["kind"],
            level=level_of(row["tags"]),
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


def level_of(tags: Iterable[str]) -> int:
    """Return a summary's level by its tags, 0 for anything else.

    >>> level_of(["summary 3"]), level_of(["summary \u00b2"])
    (3, 0)
    """
    numbers = [tag.removeprefix("summary ") for tag in tags if tag.startswith("summary ")]
    return next((int(number) for number in numbers if number.isdecimal()), 0)

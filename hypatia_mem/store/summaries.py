"""Summaries and what they cover: the reads of the cascade, and its two writes.

A summary is an entry tagged ``summary`` and ``summary N``; a statement ``<summary> summary <item>``
links it to each item it condenses. What no such statement points to is not summarised yet. A
summary that is withheld still covers its items: whoever withheld it does not want it made again.

A summary never outlives a source: ``withdrawing`` takes it out with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Entry, Outcome, Statement
from hypatia_mem.store import rows
from hypatia_mem.store.tombstones import canonical

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.entries import EntryWrites

__all__ = [
    "OWED",
    "Group",
    "Pending",
    "Source",
    "as_items",
    "broken",
    "contents",
    "coverage",
    "groups",
    "levels",
    "name_taken",
    "note",
    "pending",
    "put",
    "read_note",
    "sample",
    "sources",
    "tag_of",
]

PREDICATE = "summary"
OWED = "cascade_owed"
_COVERED = """
    SELECT object FROM statement
    WHERE predicate = 'summary' AND trust NOT IN ('candidate', 'rejected') AND expired_at IS NULL
    UNION ALL
    SELECT was.object FROM statement_version AS was
    JOIN mutation ON mutation.seq = was.replaced_seq
    WHERE was.predicate = 'summary' AND mutation.reason = 'unwanted'
"""
_MADE = "#[0-9a-f]{12}( for [a-z-]+)?$"  # the producer of what the cascade stored
_LEVEL = r"^summary ([1-9][0-9]{0,3})$"


@dataclass(frozen=True, slots=True)
class Group:
    """What is not summarised yet in exactly these scopes: how many entries and characters."""

    scopes: tuple[str, ...]
    count: int
    chars: int


@dataclass(frozen=True, slots=True)
class Pending:
    """An entry that no summary covers; ``digest`` is that of its content."""

    name: str
    digest: str
    scopes: tuple[str, ...]
    session_id: str
    turn: int | None
    at: datetime
    chars: int


@dataclass(frozen=True, slots=True)
class Source:
    """What a summary stands on: a name, the link's data, and the item if it can be read."""

    name: str
    data: str
    entry: Entry | None


def tag_of(level: int) -> str:
    """Return the tag of the items that level ``level`` condenses."""
    return "message" if level == 1 else f"summary {level - 1}"


def groups(store: Store, level: int) -> list[Group]:
    """Return what awaits a summary of this level, by scopes."""
    found = store.execute(
        f"""
        SELECT list_sort(scopes) AS own, count(*), sum(length(content)) FROM live_entry
        WHERE list_contains(tags, ?) AND name NOT IN ({_COVERED})
        GROUP BY own ORDER BY own
        """,  # noqa: S608 - a constant of this module
        [tag_of(level)],
    ).fetchall()
    return [Group(tuple(scopes), int(count), int(chars or 0)) for scopes, count, chars in found]


def pending(store: Store, level: int, scopes: Sequence[str]) -> list[Pending]:
    """Return what awaits a summary of this level in exactly these scopes, oldest first.

    Messages come session by session, the session that began first before the others, each in the
    order of its turns: two that ran side by side are never shuffled into one another.
    """
    order = "created_at, name"
    if level == 1:
        order = "min(created_at) OVER (PARTITION BY session_id), session_id, turn, created_at, name"
    found = store.run(
        f"""
        SELECT name, content_digest, scopes, session_id, turn, created_at, length(content) AS chars
        FROM live_entry
        WHERE list_contains(tags, ?) AND list_sort(scopes) = list_sort(?::VARCHAR[])
          AND name NOT IN ({_COVERED})
        ORDER BY {order}
        """,  # noqa: S608 - constants of this module
        [tag_of(level), list(scopes)],
    )
    return [_pending(row) for row in found]


def as_items(store: Store, names: Sequence[str]) -> list[Pending]:
    """Return live entries as what awaits a summary, in the order of ``names``."""
    found = store.run(
        """
        SELECT name, content_digest, scopes, session_id, turn, created_at, length(content) AS chars
        FROM live_entry WHERE name IN (SELECT unnest(?::VARCHAR[]))
        """,
        [list(names)],
    )
    return sorted((_pending(row) for row in found), key=lambda one: names.index(one.name))


def contents(store: Store, names: Iterable[str]) -> dict[str, Entry]:
    """Return the live entries of these names."""
    return {entry.name: entry for entry in store.live_entries(names)}


def sample(store: Store, most: int) -> list[str]:
    """Return the beginnings of up to ``most`` messages, the same ones for the same store."""
    found = store.execute(
        """
        SELECT left(content, 2000) FROM live_entry WHERE list_contains(tags, 'message')
        ORDER BY hash(name), name LIMIT ?
        """,
        [most],
    ).fetchall()
    return [str(row[0]) for row in found]


def levels(store: Store, scopes: Sequence[str] | None = None) -> dict[int, tuple[int, int]]:
    """Return, by level, how many live summaries there are and how many await the level above."""
    found = store.execute(
        f"""
        WITH tagged AS (
            SELECT name, unnest(tags) AS tag FROM live_entry WHERE list_contains(tags, 'summary')
              AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        )
        SELECT regexp_extract(tag, $2, 1)::INTEGER AS level, count(*),
               count(*) FILTER (name NOT IN ({_COVERED}))
        FROM tagged WHERE regexp_matches(tag, $2) GROUP BY level ORDER BY level
        """,  # noqa: S608 - a constant of this module
        [None if scopes is None else list(scopes), _LEVEL],
    ).fetchall()
    return {int(level): (int(made), int(free)) for level, made, free in found}


def coverage(store: Store, scopes: Sequence[str] | None = None) -> tuple[int, int]:
    """Return how many live messages there are, and how many of them a summary covers."""
    found = store.execute(
        f"""
        SELECT count(*), count(*) FILTER (name IN ({_COVERED})) FROM live_entry
        WHERE list_contains(tags, 'message')
          AND ($1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[]))
        """,  # noqa: S608 - a constant of this module
        [None if scopes is None else list(scopes)],
    ).fetchone()
    return (int(found[0]), int(found[1])) if found else (0, 0)


def sources(store: Store, name: str) -> list[Source]:
    """Return what a summary stands on, in the order in which it was condensed.

    A source that is withheld has no entry here.
    """
    found = store.run(
        """
        SELECT object, content FROM statement
        WHERE predicate = 'summary' AND subject = ? AND trust NOT IN ('candidate', 'rejected')
        """,
        [name],
    )
    entries = contents(store, [row["object"] for row in found])
    made = [Source(row["object"], row["content"], entries.get(row["object"])) for row in found]
    return sorted(made, key=_place)


def broken(store: Store) -> list[str]:
    """Return summaries of the cascade that lack a source: gone, or withheld.

    There are none as long as every change goes through the gateway; a store from elsewhere, or a
    link deleted by hand, may have some.
    """
    found = store.execute(
        """
        WITH links AS (
            SELECT subject, object, TRY_CAST(json_extract_string(content, '$.of') AS BIGINT) AS due
            FROM statement WHERE predicate = 'summary' AND starts_with(content, '{"source":')
        )
        SELECT subject FROM links LEFT JOIN live_entry ON live_entry.name = links.object
        GROUP BY subject
        HAVING count(live_entry.name) < max(due)
           AND subject IN (SELECT name FROM live_entry WHERE list_contains(tags, 'summary'))
        UNION
        SELECT name FROM live_entry
        WHERE list_contains(tags, 'summary') AND regexp_matches(producer, $1)
          AND name NOT IN (SELECT subject FROM statement WHERE predicate = 'summary')
        ORDER BY 1
        """,
        [_MADE],
    ).fetchall()
    return [str(row[0]) for row in found]


# --- writing --------------------------------------------------------------------------------------


def put(
    txn: EntryWrites,
    entry: Entry,
    items: Sequence[Pending],
    data: Mapping[str, str],
    level: int,
) -> Outcome:
    """Store a summary and its links, all of it or nothing; many links with one statement.

    Refused when an item has changed since it was read, is gone, withheld or covered by now, and
    when the summary says what was forgotten before.
    """
    now = {
        (str(name), str(digest))
        for name, digest in txn.store.execute(
            f"""
            SELECT name, content_digest FROM live_entry
            WHERE name IN (SELECT unnest($1::VARCHAR[])) AND list_contains(tags, $2)
              AND name NOT IN ({_COVERED})
            """,  # noqa: S608 - a constant of this module
            [[item.name for item in items], tag_of(level)],
        ).fetchall()
    }
    if not items or now != {(item.name, item.digest) for item in items}:
        return Outcome("refused", entry.name, reason="what it condenses has changed meanwhile")
    outcome = txn.put_entry(entry)
    if outcome.verb != "created":
        return outcome
    link = Statement(outcome.name, PREDICATE, "", scopes=entry.scopes)
    same = rows.statement_row(link, txn.author, txn.now)
    made = [
        same
        | {
            "triple": rows.triple_key(same["subject"], PREDICATE, item.name),
            "object": item.name,
            "content": rows.clean(data.get(item.name, "")),
        }
        for item in items
    ]
    for row in made:
        row["seq"] = txn._note(
            "create", row["triple"], "statement", after=rows.digest(row["content"])
        )
    txn._bulk("statement", made)
    return outcome


def name_taken(txn: EntryWrites, name: str, scopes: Sequence[str]) -> bool:
    """Tell whether a name is in use, as an entry or at an end, or was forgotten here."""
    found = txn.store.execute(
        """
        SELECT 1 FROM entry WHERE name = $1
        UNION ALL SELECT 1 FROM statement WHERE subject = $1 OR object = $1 LIMIT 1
        """,
        [rows.clean(name)],
    ).fetchone()
    if found:
        return True
    digests = txn._tomb_digests(["name:" + canonical(name)])
    found = txn.store.execute(
        """
        SELECT 1 FROM tombstone WHERE digest IN (SELECT unnest($1::VARCHAR[]))
          AND scope IN (SELECT unnest($2::VARCHAR[])) LIMIT 1
        """,
        [digests, [*scopes, ""]],
    ).fetchone()
    return found is not None


def read_note(store: Store, key: str, default: Any) -> Any:
    """Return a note of the cascade: any JSON."""
    text = store.meta(key)
    try:
        return json.loads(text) if text else default
    except ValueError:
        return default


def note(txn: EntryWrites, key: str, value: Any) -> None:
    """Keep a note of the cascade; an empty one is dropped."""
    if value:
        txn.set_meta(key, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    else:
        txn.store.execute("DELETE FROM meta WHERE key = ?", [key])


def _pending(row: Mapping[str, Any]) -> Pending:
    return Pending(
        row["name"],
        row["content_digest"],
        tuple(row["scopes"]),
        row["session_id"],
        row["turn"],
        row["created_at"],
        row["chars"],
    )


def _place(source: Source) -> tuple[int, str]:
    try:
        return int(json.loads(source.data)["source"]), source.name
    except (ValueError, TypeError, KeyError):
        return 1 << 30, source.name

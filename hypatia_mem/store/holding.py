"""Which live things may hold some words, of every kind: reading only.

The words are looked for as they are written, in small letters; who asks then looks closely, for a
text in which all of them stand may still be about something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypatia_mem.model import Entry
from hypatia_mem.store import rows
from hypatia_mem.store.erasing import strings
from hypatia_mem.store.structural import WORDS

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Holder", "entries", "statements", "tellers", "titles"]

_JOINTS = ("derivedFrom", "belongTo", "summary")  # the program's own links between entries


@dataclass(frozen=True, slots=True)
class Holder:
    """An entry, a statement by its key, or a session whose title it is, with all its texts."""

    name: str
    kind: str
    scopes: tuple[str, ...]
    tags: tuple[str, ...]
    texts: tuple[str, ...]


def entries(store: Store, words: Sequence[str], scopes: Sequence[str] | None) -> list[Holder]:
    """Return the live entries of these scopes (None: all) that hold all these words, newest first.

    Of a message what tools were given and gave back counts too, and of any entry its names.
    """
    text = "concat_ws(' ', e.name, e.content, array_to_string(e.synonyms, ' '), m.parts)"
    found = store.run(
        f"""
        SELECT e.name, e.kind, e.scopes, e.tags, e.content, e.synonyms,
               coalesce(m.parts, '') AS parts
        FROM live_entry AS e LEFT JOIN message AS m
          ON e.kind = 'message' AND m.session_id = e.session_id AND m.turn = e.turn
        WHERE ($2::VARCHAR[] IS NULL OR list_has_any(e.scopes, $2::VARCHAR[])) AND {_all(text)}
        ORDER BY e.created_at DESC, e.name
        """,  # noqa: S608 - our own clauses
        [list(words), None if scopes is None else list(scopes)],
    )
    return [
        Holder(
            row["name"],
            row["kind"],
            tuple(row["scopes"]),
            tuple(row["tags"]),
            (
                row["content"].partition(WORDS)[2] or row["content"],
                *([] if row["kind"] == "message" else [row["name"], *row["synonyms"]]),
                *strings(row["parts"]),
            ),
        )
        for row in found
    ]


def tellers(store: Store, words: Sequence[str], scopes: Sequence[str] | None) -> list[Entry]:
    """Return the live episodes, threads and summaries that hold at least one of these words."""
    found = store.run(
        """
        SELECT * FROM live_entry
        WHERE (kind IN ('episode', 'thread') OR list_contains(tags, 'summary'))
          AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
          AND list_bool_or(
              list_transform($1::VARCHAR[], lambda word: contains(lower(content), word)))
        ORDER BY name
        """,
        [list(words), None if scopes is None else list(scopes)],
    )
    return [rows.entry_of(row) for row in found]


def statements(store: Store, words: Sequence[str], scopes: Sequence[str] | None) -> list[Holder]:
    """Return the live statements that hold all these words; not the links between entries."""
    text = "concat_ws(' ', subject, predicate, object, content)"
    found = store.run(
        f"""
        SELECT triple, subject, predicate, object, content, scopes FROM live_statement
        WHERE ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[])) AND {_all(text)}
          AND NOT list_contains($3::VARCHAR[], predicate) ORDER BY triple
        """,  # noqa: S608 - our own clauses
        [list(words), None if scopes is None else list(scopes), list(_JOINTS)],
    )
    return [
        Holder(
            row["triple"],
            "statement",
            tuple(row["scopes"]),
            (row["subject"], row["object"]),
            (f"{row['subject']} {row['predicate']} {row['object']}", row["content"]),
        )
        for row in found
    ]


def titles(store: Store, words: Sequence[str], scopes: Sequence[str] | None) -> list[Holder]:
    """Return the sessions whose titles, or what they branched off for, hold all these words."""
    found = store.run(
        f"""
        SELECT id, project, concat_ws(' ', nullif(title, ''), nullif(fork_reason, '')) AS said
        FROM session
        WHERE ($2::VARCHAR[] IS NULL OR list_contains($2::VARCHAR[], project)) AND {_all("said")}
        ORDER BY updated_at DESC, id
        """,  # noqa: S608 - our own clauses
        [list(words), None if scopes is None else list(scopes)],
    )
    return [Holder(row["id"], "title", (row["project"],), (), (row["said"],)) for row in found]


def _all(text: str) -> str:
    """Return the condition that all words of the first parameter stand in a text."""
    lacks = f"list_filter($1::VARCHAR[], lambda word: NOT contains(lower({text}), word))"
    return f"(len($1::VARCHAR[]) > 0 AND len({lacks}) = 0)"

"""What an erasing needs of the store: who holds some words, and taking those out that forget lacks.

``forget`` takes an entry out with all of its past. An erasing takes the places along where the same
words stand in other clothes: statements and the titles of sessions. Both leave keyed digests in the
ledger and among the tombstones, so an older copy that is restored is brought up to them too.
"""
# ruff: noqa: S608 - tables and columns are the engine's own list of them

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Outcome, Session
from hypatia_mem.store import keys, rows, sources, vectors
from hypatia_mem.store.connection import attached, store_error
from hypatia_mem.store.messages import MessageWrites
from hypatia_mem.store.tombstones import canonical

if TYPE_CHECKING:
    import duckdb

    from hypatia_mem.store.opened import Store

__all__ = [
    "ErasingWrites",
    "Said",
    "Source",
    "names_of_session",
    "pieces_of_others",
    "residue",
    "rows_in",
    "rows_in_file",
    "said_entries",
    "said_statements",
    "said_states",
    "said_titles",
    "sources_of",
    "strings",
    "summaries_on",
    "transcripts",
    "writing_sources",
]

_NOTES = {  # tables beside the graph that may quote it, and where
    "image": ("was", "became"),
    "queued": ("name", "arguments", "failure"),
    "job": ("message", "parcel"),
    "verdict": ("reason",),
}
_AGAIN = "forgotten after this copy was made"


@dataclass(frozen=True, slots=True)
class Said:
    """A row that holds words: its key, its kind, where it is seen, and all of its words."""

    key: str
    kind: str
    scopes: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A message as a hook told of it; what is needed to tell of it once more."""

    session_id: str
    turn: int
    role: str
    prompt_id: str
    at: datetime
    transcript_path: str
    cwd: str
    text: str


class ErasingWrites(MessageWrites):
    """The part of a transaction that erases what is no entry of its own."""

    def erase_statement(self, triple: str, reason: str) -> Outcome:
        """Take a statement out with all of its past, and keep it away; ``unchanged``: not there."""
        found = self.store.run(
            "SELECT subject, predicate, object, content, scopes FROM statement WHERE triple = $1"
            " UNION ALL SELECT subject, predicate, object, content, scopes FROM statement_version"
            " WHERE triple = $1",
            [triple],
        )
        if not found:
            return Outcome("unchanged", triple)
        for row in found:
            ends = ("name:" + canonical(row[part]) for part in ("subject", "object"))
            own = self._statement_digests(
                row["subject"], row["predicate"], row["object"], row["content"]
            )
            others = set(self._tomb_digests(ends))  # what stands at its ends is not erased with it
            self._bury_digests([one for one in own if one not in others], row["scopes"], reason)
        said = rows.digest(found[0]["content"])
        self._note("forget", triple, "statement", before=said, reason=reason)
        vectors.drop(self.store, "statement", [triple])
        self._forget_touched([triple])
        self.store.execute("DELETE FROM statement WHERE triple = ?", [triple])
        self.store.execute("DELETE FROM statement_version WHERE triple = ?", [triple])
        vectors.sweep(self.store)
        return Outcome("deleted", triple)

    def erase_title(self, session_id: str, reason: str) -> Outcome:
        """Take a session's title away, and keep it away; ``unchanged``: it has none.

        What a branch is for goes with it. Called before its messages go: with them goes the title,
        and then nobody knows it any more.
        """
        session = self.store.session(session_id)
        self.store.execute("DELETE FROM image WHERE kind = 'session' AND key = ?", [session_id])
        if session is None or not (session.title or session.fork_reason):
            return Outcome("unchanged", session_id)
        if session.title:
            self._bury_digests(self._title_digests(session.title), [session.project], reason)
        said = rows.digest(session.title or session.fork_reason)
        self._note("forget", session_id, "session", before=said, reason=reason, index=False)
        self.store.execute(
            "UPDATE session SET title = '', fork_reason = '' WHERE id = ?", [session_id]
        )
        return Outcome("updated", session_id)

    def erase_notes(self, values: Sequence[str]) -> int:
        """Take out what hangs on to these canonical values beside the graph; return how many rows.

        What an undoing would need, work that waits, and the reasons that somebody gave.
        """
        gone = 0
        for table, columns in _NOTES.items():
            said = ", ".join(f'"{column}"' for column in columns)
            found = [
                row["id"]
                for row in self.store.run(f"SELECT rowid AS id, {said} FROM {table}")
                if holds([text for column in columns for text in strings(row[column])], values)
            ]
            change = (
                "UPDATE verdict SET reason = ''" if table == "verdict" else f"DELETE FROM {table}"
            )
            self.store.execute(f"{change} WHERE rowid IN (SELECT unnest(?::BIGINT[]))", [found])
            gone += len(found)
        kept = [
            image
            for image in self._images
            if not holds([*strings(image["was"]), *strings(image["became"])], values)
        ]
        gone += len(self._images) - len(kept)
        self._images = kept
        return gone

    def erase_again(self, forgettings: Sequence[Mapping[str, Any]]) -> None:
        """Erase statements and titles that were erased after this copy was made.

        Called before ``forget_again``, which notes the operations as known.
        """
        done = {str(row["op_id"]) for row in self.store.run("SELECT DISTINCT op_id FROM mutation")}
        later = [row for row in forgettings if row["op_id"] not in done]
        triples = {row["target"] for row in later if row["verb"] == "forget statement"}
        sessions = {row["target"] for row in later if row["verb"] == "forget session"}
        if triples:
            ring = keys.keyring(self.store.home)
            for row in self.store.run(
                "SELECT triple FROM statement UNION SELECT triple FROM statement_version"
            ):
                if any(key.target(row["triple"]) in triples for key in ring):
                    self.erase_statement(row["triple"], _AGAIN)
        for session_id in sessions:
            self.erase_title(str(session_id), _AGAIN)

    def note_operation(self, verb: str, about: str, reason: str = "") -> None:
        """Note in the ledger that something was done to the memory as a whole, by its id."""
        self._note(verb, about, "operation", reason=reason, index=False)


# --- who holds some words -------------------------------------------------------------------------


def said_entries(store: Store, values: Sequence[str], scopes: Sequence[str] | None) -> list[Said]:
    """Return the entries that hold one of these values, in whatever spelling.

    ``values`` are canonical (``tombstones.canonical``); ``scopes`` None is everywhere. Of a message
    the typed parts count too, of a rule its name.
    """
    found = store.run(
        f"""
        SELECT entry.name, entry.kind, entry.content, entry.scopes, coalesce(m.parts, '') AS parts
        FROM entry LEFT JOIN message AS m
          ON entry.kind = 'message' AND m.session_id = entry.session_id AND m.turn = entry.turn
        WHERE ($2::VARCHAR[] IS NULL OR list_has_any(entry.scopes, $2::VARCHAR[]))
          AND ({_anchored("concat_ws(' ', entry.name, entry.content, m.parts)")})
        ORDER BY entry.name
        """,
        [_anchors(values), None if scopes is None else list(scopes)],
    )
    made = [
        Said(
            row["name"],
            row["kind"],
            tuple(row["scopes"]),
            (row["name"], row["content"], *strings(row["parts"])),
        )
        for row in found
    ]
    return [one for one in made if holds(one.texts, values)]


def said_states(store: Store, names: Sequence[str]) -> list[Said]:
    """Return every state, present and past, of these entries."""
    found = store.run(
        """
        SELECT entry.name, entry.kind, entry.content, entry.scopes, coalesce(m.parts, '') AS parts
        FROM entry LEFT JOIN message AS m
          ON entry.kind = 'message' AND m.session_id = entry.session_id AND m.turn = entry.turn
        WHERE entry.name IN (SELECT unnest($1::VARCHAR[]))
        UNION ALL
        SELECT name, kind, content, scopes, '' FROM version
        WHERE name IN (SELECT unnest($1::VARCHAR[]))
        """,
        [list(names)],
    )
    return [
        Said(
            row["name"],
            row["kind"],
            tuple(row["scopes"]),
            (row["content"], *strings(row["parts"])),
        )
        for row in found
    ]


def said_statements(
    store: Store, values: Sequence[str], names: Sequence[str], scopes: Sequence[str] | None
) -> list[Said]:
    """Return the statements at one of whose ends such a name stands, or that hold such a value.

    Their kind is their predicate, their texts the two ends and the content.
    """
    found = store.run(
        f"""
        SELECT triple, subject, predicate, object, content, scopes FROM (
            SELECT triple, subject, predicate, object, content, scopes FROM statement
            UNION ALL
            SELECT triple, subject, predicate, object, content, scopes FROM statement_version
        )
        WHERE list_has_any([subject, object], $3::VARCHAR[])
          OR (($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
              AND ({_anchored("concat_ws(' ', subject, object, content)")}))
        ORDER BY triple
        """,
        [_anchors(values), None if scopes is None else list(scopes), list(names)],
    )
    wanted = set(names)
    made: dict[str, Said] = {}
    for row in found:
        texts = (row["subject"], row["object"], row["content"])
        if wanted & {row["subject"], row["object"]} or holds(texts, values):
            made.setdefault(
                row["triple"], Said(row["triple"], row["predicate"], tuple(row["scopes"]), texts)
            )
    return list(made.values())


def said_titles(store: Store, values: Sequence[str], scopes: Sequence[str] | None) -> list[Session]:
    """Return the sessions whose titles, or what they branched off for, hold one of these values."""
    found = store.run(
        """
        SELECT * FROM session
        WHERE title || fork_reason <> ''
          AND ($1::VARCHAR[] IS NULL OR list_contains($1::VARCHAR[], project))
        """,
        [None if scopes is None else list(scopes)],
    )
    sessions = [rows.session_of(row) for row in found]
    return [one for one in sessions if holds((one.title, one.fork_reason), values)]


def holds(texts: Sequence[str], values: Sequence[str]) -> bool:
    """Tell whether one of some texts holds one of some canonical values.

    >>> holds(["Never  MOCK the database!"], ["mock the database"])
    True
    """
    folded = [canonical(text) for text in texts if text]
    return any(value in text for value in values if value for text in folded)


def sources_of(store: Store, names: Sequence[str]) -> list[Source]:
    """Return the messages of these entries as hooks told of them."""
    found = store.run(
        """
        SELECT m.session_id, m.turn, m.role, m.prompt_id, m."at", entry.content,
               coalesce(session.transcript_path, '') AS path, coalesce(session.cwd, '') AS cwd
        FROM entry JOIN message AS m ON m.session_id = entry.session_id AND m.turn = entry.turn
        LEFT JOIN session ON session.id = m.session_id
        WHERE entry.kind = 'message' AND entry.name IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY m.session_id, m.turn
        """,
        [list(names)],
    )
    return [
        Source(
            row["session_id"],
            row["turn"],
            row["role"],
            row["prompt_id"],
            row["at"],
            row["path"],
            row["cwd"],
            row["content"].partition("\n## Content\n")[2],
        )
        for row in found
    ]


def names_of_session(store: Store, session_id: str) -> list[str]:
    """Return the entries of a session, its messages and its own, also those that have only a past.

    In the order of their turns.
    """
    found = store.execute(
        """
        WITH own AS (
            SELECT 'msg-' || session_id || '-' || turn AS name, turn FROM message
            WHERE session_id = $1
            UNION ALL SELECT 'session-' || $1, 1 << 30
        )
        SELECT name FROM own
        WHERE name IN (SELECT name FROM entry) OR name IN (SELECT name FROM version)
        ORDER BY turn
        """,
        [session_id],
    ).fetchall()
    return [str(name) for (name,) in found]


def writing_sources(store: Store, names: Sequence[str]) -> list[str]:
    """Return the messages from which these entries were taken (``derivedFrom``)."""
    found = store.execute(
        """
        SELECT DISTINCT object FROM (
            SELECT subject, predicate, object FROM statement
            UNION ALL SELECT subject, predicate, object FROM statement_version
        )
        WHERE predicate = 'derivedFrom' AND subject IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY object
        """,
        [list(names)],
    ).fetchall()
    return [str(name) for (name,) in found]


def summaries_on(store: Store, names: Sequence[str]) -> list[str]:
    """Return the summaries that stand, or ever stood, on one of these, however far up."""
    return sorted(sources.ever_above(store, names, summaries_only=True))


def transcripts(store: Store) -> list[str]:
    """Return the paths of every transcript that a session was read from."""
    found = store.execute(
        "SELECT DISTINCT transcript_path FROM session WHERE transcript_path <> '' ORDER BY 1"
    ).fetchall()
    return [str(path) for (path,) in found]


# --- every row there is ---------------------------------------------------------------------------


def rows_in(connection: duckdb.DuckDBPyConnection, pieces: Sequence[str]) -> dict[str, int]:
    """Return, by table, how many rows hold one of these pieces (lower case) in any column.

    Every table and every column of text, whatever the state: no view stands in between.
    """
    if not pieces:
        return {}
    return {
        table: count
        for table, text in _text_of_tables(connection).items()
        if (count := _count(connection, f'"{table}"', text, pieces))
    }


def rows_in_file(file: Path, pieces: Sequence[str], home: Path) -> dict[str, int]:
    """Do it for a copy that nobody has open. Raises StoreError."""
    import duckdb

    try:
        with attached(file, write=False) as connection:
            return rows_in(connection, pieces)
    except duckdb.Error as error:
        raise store_error(error, home) from error


def pieces_of_others(
    store: Store, pieces: Sequence[str]
) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return, by piece, the entries and statements there are that say it, each with its scopes.

    Their own past counts as theirs. A piece that only stands somewhere else is not in here.
    """
    found = store.run(
        """
        WITH said AS (
            SELECT name, scopes,
                concat_ws(chr(10), name, content, array_to_string(synonyms, ' '), activation)
                    AS text
            FROM entry
            UNION ALL
            SELECT version.name, entry.scopes, version.content
            FROM version JOIN entry ON entry.name = version.name
            UNION ALL
            SELECT entry.name, entry.scopes, message.parts
            FROM entry JOIN message
              ON message.session_id = entry.session_id AND message.turn = entry.turn
            WHERE entry.kind = 'message'
            UNION ALL
            SELECT triple, scopes, concat_ws(' ', triple, content) FROM statement
            UNION ALL
            SELECT id, [project], concat_ws(chr(10), title, fork_reason) FROM session
        )
        SELECT DISTINCT piece, name, scopes FROM said, (SELECT unnest($1::VARCHAR[]) AS piece)
        WHERE contains(lower(text), piece) ORDER BY piece, name
        """,
        [list(pieces)],
    )
    made: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for row in found:
        made.setdefault(row["piece"], []).append((row["name"], tuple(row["scopes"])))
    return made


def residue(store: Store, pieces: Sequence[str]) -> dict[str, int]:
    """Return, by table, the rows that hold a piece though no entry or statement there is does so.

    Those of the index's notes that name what is there are no residue.
    """
    found = {}
    for table, text in _text_of_tables(store.connection).items():
        if table in ("entry", "statement", "session"):
            continue
        own = {
            "version": "name NOT IN (SELECT name FROM entry)",
            "statement_version": "triple NOT IN (SELECT triple FROM statement)",
            "touched": "name NOT IN (SELECT name FROM entry UNION SELECT triple FROM statement)",
            "image": "key NOT IN (SELECT name FROM entry UNION SELECT triple FROM statement"
            " UNION SELECT id FROM session)",
            "message": "NOT EXISTS (SELECT 1 FROM entry WHERE kind = 'message' AND"
            ' session_id = "message".session_id AND turn = "message".turn)',
        }.get(table, "true")
        count = _count(store.connection, f'"{table}" WHERE {own}', text, pieces)
        if count:
            found[table] = count
    return found


def _count(
    connection: duckdb.DuckDBPyConnection, rows_: str, text: str, pieces: Sequence[str]
) -> int:
    """Count those of some rows (a table, and perhaps a condition) whose text holds a piece."""
    hit = "list_bool_or(list_transform($1::VARCHAR[], lambda piece: contains(said, piece)))"
    row = connection.execute(
        f"SELECT count(*) FROM (SELECT {text} AS said FROM {rows_}) WHERE {hit}", [list(pieces)]
    ).fetchone()
    return int(row[0]) if row else 0


def _text_of_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return for each table an expression for all the text in a row of it, in lower case."""
    found = connection.execute(
        """
        SELECT table_name, column_name, data_type FROM duckdb_columns()
        WHERE database_name = current_database() AND data_type IN ('VARCHAR', 'VARCHAR[]')
          AND table_name IN (
            SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()
          )
        ORDER BY table_name, column_index
        """
    ).fetchall()
    parts: dict[str, list[str]] = {}
    for table, column, kind in found:
        name = '"' + str(column).replace('"', '""') + '"'
        text = name if kind == "VARCHAR" else f"array_to_string({name}, chr(10))"
        parts.setdefault(str(table), []).append(text)
    return {table: f"lower(concat_ws(chr(10), {', '.join(own)}))" for table, own in parts.items()}


def _anchored(text: str) -> str:
    """Return a condition that cannot miss a value: one of its plain words has to be there."""
    hit = f"list_bool_or(list_transform($1::VARCHAR[], lambda word: contains(lower({text}), word)))"
    return f"len($1::VARCHAR[]) > 0 AND {hit}"


def _anchors(values: Sequence[str]) -> list[str]:
    """Return of each value its longest plain word; ``""``, which is in every text, without one."""
    found = set()
    for value in values:
        words = [word for word in value.split() if word.isascii() and word.isalnum()]
        if value:
            found.add(max(words, key=len, default=""))
    return sorted(found)


def strings(text: str | None) -> list[str]:
    """Return every text in some JSON; what is no JSON is a text itself."""
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return [text or ""]
    found: list[str] = []

    def walk(one: Any) -> None:
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            for inner in one.values():
                walk(inner)
            found.extend(map(str, one))
        elif isinstance(one, list):
            for inner in one:
                walk(inner)

    walk(value)
    return found

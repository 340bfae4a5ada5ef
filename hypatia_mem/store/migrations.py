"""The schema, one step a function. A released step is never edited: the next one is added.

Tables (columns are stable names; the query language compiles to them):

- ``entry``: knowledge. ``content`` is the text, list fields are ``VARCHAR[]``; ``''`` in ``scopes``
  is the global scope. ``valid_*``: when it was true; ``recorded_at``/``expired_at``: when it was
  known here.
- ``statement``: triples; ``triple`` is the CSV of its three parts.
- ``message``, ``session``: turns and their sessions. A message's text is the entry
  ``msg-<SESSION_ID>-<TURN>``.
- ``version``, ``statement_version``: every earlier state of an entry and of a statement, the whole
  row; the last one of what was deleted too. What is forgotten leaves none. ``image``: the rows of
  the small tables before and after a command changed them, which is what undoing it needs.
- ``mutation``: the ledger. ``touched``: which names changed at which ledger sequence, but for
  new messages (what the search index follows; not part of the ledger, and erasable).
- ``tombstone``: keyed digests of what was forgotten. ``project``, ``root``: identities of folders.
- ``cursor``: how far spool segments and transcripts have been read. ``meta``, ``migration``.
- ``job``: cold work that failed or is under way elsewhere. ``spend``: calls of models and what they
  cost. Neither holds any text of a message.
- ``verdict``: the last word on how far a name is believed, and why; erasable. ``queued``: changes
  that wait for a session to end.
- ``embedding``: vectors by the digest of their text and the model that made them; only a cache.

Views ``live_entry`` and ``live_statement`` leave out what is withheld: candidate, rejected,
suppressed or expired (``withheld_entry``), and every statement at one of whose ends such an entry
stands, for a name may be a person's very words. ``known_entry(t)`` and ``known_statement(t)`` are
the same as they were at the system time ``t``: whoever looked then saw these rows (but for what was
forgotten since). A state holds from its ``seq`` to its ``replaced_seq``, both sequence numbers of
the ledger, and ``t`` stands for the last ledger row with a time up to it: so a clock that was set
back can neither hide what came later nor show two states of one name.

Times are naive UTC. No foreign keys and no secondary unique indexes: DuckDB refuses list updates on
referenced rows, and such indexes have left files that cannot be replayed after a kill; the one
gateway keeps uniqueness.
"""
# ruff: noqa: S608 - the statements are put together from this file's own words

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from hypatia_mem.errors import StoreError, StoreTooNew

if TYPE_CHECKING:
    import duckdb

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "check", "migrate"]

_ENTRY = """
    CREATE TABLE entry (
        name VARCHAR PRIMARY KEY,
        content VARCHAR NOT NULL,
        content_digest VARCHAR NOT NULL,
        tags VARCHAR[] NOT NULL,
        scopes VARCHAR[] NOT NULL,
        synonyms VARCHAR[] NOT NULL,
        figures VARCHAR[] NOT NULL,
        format VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        trust VARCHAR NOT NULL,
        valid_from TIMESTAMP,
        valid_to TIMESTAMP,
        recorded_at TIMESTAMP NOT NULL,
        expired_at TIMESTAMP,
        pinned BOOLEAN NOT NULL,
        suppressed BOOLEAN NOT NULL,
        category VARCHAR NOT NULL,
        priority INTEGER NOT NULL,
        session_id VARCHAR NOT NULL,
        turn INTEGER,
        agent VARCHAR NOT NULL,
        channel VARCHAR NOT NULL,
        producer VARCHAR NOT NULL,
        version INTEGER NOT NULL,
        created_at TIMESTAMP NOT NULL,
        updated_at TIMESTAMP NOT NULL
    )
"""

_M001 = (
    _ENTRY,
    """
    CREATE TABLE statement (
        triple VARCHAR PRIMARY KEY,
        subject VARCHAR NOT NULL,
        predicate VARCHAR NOT NULL,
        object VARCHAR NOT NULL,
        content VARCHAR NOT NULL,
        scopes VARCHAR[] NOT NULL,
        synonyms VARCHAR,
        trust VARCHAR NOT NULL,
        valid_from TIMESTAMP,
        valid_to TIMESTAMP,
        recorded_at TIMESTAMP NOT NULL,
        expired_at TIMESTAMP,
        session_id VARCHAR NOT NULL,
        turn INTEGER,
        channel VARCHAR NOT NULL,
        created_at TIMESTAMP NOT NULL
    )
    """,
    """
    CREATE TABLE message (
        session_id VARCHAR NOT NULL,
        turn INTEGER NOT NULL,
        uuid VARCHAR PRIMARY KEY,
        parent_uuid VARCHAR NOT NULL,
        prompt_id VARCHAR NOT NULL,
        response_id VARCHAR NOT NULL,
        role VARCHAR NOT NULL,
        agent_id VARCHAR NOT NULL,
        parts VARCHAR NOT NULL,
        tokens INTEGER NOT NULL,
        flags VARCHAR[] NOT NULL,
        text_digest VARCHAR NOT NULL,
        "at" TIMESTAMP NOT NULL
    )
    """,
    """
    CREATE TABLE session (
        id VARCHAR PRIMARY KEY,
        project VARCHAR NOT NULL,
        title VARCHAR NOT NULL,
        "user" VARCHAR NOT NULL,
        agent VARCHAR NOT NULL,
        client VARCHAR NOT NULL,
        cwd VARCHAR NOT NULL,
        git_branch VARCHAR NOT NULL,
        transcript_path VARCHAR NOT NULL,
        forked_from VARCHAR NOT NULL,
        started_at TIMESTAMP,
        updated_at TIMESTAMP,
        ended_at TIMESTAMP,
        end_reason VARCHAR NOT NULL,
        pinned BOOLEAN NOT NULL,
        archived BOOLEAN NOT NULL,
        tags VARCHAR[] NOT NULL,
        turns INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE version (
        name VARCHAR NOT NULL,
        version INTEGER NOT NULL,
        content VARCHAR NOT NULL,
        tags VARCHAR[] NOT NULL,
        scopes VARCHAR[] NOT NULL,
        recorded_at TIMESTAMP NOT NULL,
        replaced_at TIMESTAMP NOT NULL,
        op_id VARCHAR NOT NULL
    )
    """,
    """
    CREATE TABLE mutation (
        seq BIGINT PRIMARY KEY,
        "at" TIMESTAMP NOT NULL,
        op_id VARCHAR NOT NULL,
        actor VARCHAR NOT NULL,
        channel VARCHAR NOT NULL,
        verb VARCHAR NOT NULL,
        target VARCHAR NOT NULL,
        before_digest VARCHAR NOT NULL,
        after_digest VARCHAR NOT NULL,
        reason VARCHAR NOT NULL,
        prev_hash VARCHAR NOT NULL,
        hash VARCHAR NOT NULL
    )
    """,
    "CREATE TABLE touched (seq BIGINT NOT NULL, name VARCHAR NOT NULL, kind VARCHAR NOT NULL)",
    """
    CREATE TABLE tombstone (
        digest VARCHAR NOT NULL,
        key_id VARCHAR NOT NULL,
        scope VARCHAR NOT NULL,
        reason VARCHAR NOT NULL,
        actor VARCHAR NOT NULL,
        "at" TIMESTAMP NOT NULL,
        op_id VARCHAR NOT NULL
    )
    """,
    """
    CREATE TABLE project (
        scope VARCHAR PRIMARY KEY,
        aliases VARCHAR[] NOT NULL,
        excluded BOOLEAN NOT NULL,
        created_at TIMESTAMP NOT NULL
    )
    """,
    """
    CREATE TABLE root (
        path VARCHAR PRIMARY KEY,
        scope VARCHAR NOT NULL,
        git_key VARCHAR NOT NULL,
        origin_key VARCHAR NOT NULL,
        remote VARCHAR NOT NULL,
        seen_at TIMESTAMP NOT NULL
    )
    """,
    "CREATE TABLE cursor (key VARCHAR PRIMARY KEY, position BIGINT NOT NULL)",
    "CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)",
    """
    CREATE VIEW live_entry AS
    SELECT * FROM entry
    WHERE trust NOT IN ('candidate', 'rejected') AND NOT suppressed AND expired_at IS NULL
    """,
    """
    CREATE VIEW withheld_entry AS
    SELECT * FROM entry
    WHERE trust IN ('candidate', 'rejected') OR suppressed OR expired_at IS NOT NULL
    """,
    """
    CREATE VIEW live_statement AS
    SELECT *, valid_from AS tr_start, valid_to AS tr_end FROM statement
    WHERE trust NOT IN ('candidate', 'rejected') AND expired_at IS NULL
      AND subject NOT IN (SELECT name FROM withheld_entry)
      AND object NOT IN (SELECT name FROM withheld_entry)
    """,
)

_LIVE = "trust NOT IN ('candidate', 'rejected') AND NOT suppressed AND expired_at IS NULL"
_LIVE_STATEMENT = "trust NOT IN ('candidate', 'rejected') AND expired_at IS NULL"
_WITHHELD = "(trust IN ('candidate', 'rejected') OR suppressed OR expired_at IS NOT NULL)"
_ENTRY_COLUMNS = (
    "name, content, content_digest, tags, scopes, synonyms, figures, format, kind, trust,"
    " valid_from, valid_to, recorded_at, expired_at, pinned, suppressed, category, priority,"
    " session_id, turn, agent, channel, producer, version, created_at, updated_at"
)
_STATEMENT_COLUMNS = (
    "triple, subject, predicate, object, content, scopes, synonyms, trust, valid_from, valid_to,"
    " recorded_at, expired_at, session_id, turn, channel, created_at"
)
_REACHED = """
    reached AS (SELECT coalesce(max(seq), 0) AS last FROM mutation WHERE "at" <= t::TIMESTAMP)
"""
_HELD = "seq <= (SELECT last FROM reached)"
_STILL = f"{_HELD} AND replaced_seq > (SELECT last FROM reached)"
_REPLACED = """
        seq BIGINT NOT NULL,
        replaced_seq BIGINT NOT NULL,
        replaced_at TIMESTAMP NOT NULL,
        op_id VARCHAR NOT NULL
    )
"""
_FIRST_SEQ = 'SELECT "at", min(seq) AS seq FROM mutation GROUP BY "at"'

# A state's first and last ledger row. Of a store without them: a row was written at the ledger rows
# of its own time, and a version was replaced by the operation whose id it bears.
_M002 = (
    "ALTER TABLE entry ADD COLUMN seq BIGINT DEFAULT 0",
    "ALTER TABLE statement ADD COLUMN seq BIGINT DEFAULT 0",
    f"""
    UPDATE entry SET seq = ledger.seq FROM ({_FIRST_SEQ}) AS ledger
    WHERE ledger."at" = entry.recorded_at
    """,
    f"""
    UPDATE statement SET seq = ledger.seq FROM ({_FIRST_SEQ}) AS ledger
    WHERE ledger."at" = statement.recorded_at
    """,
    "ALTER TABLE version RENAME TO version_m001",
    _ENTRY.replace("TABLE entry", "TABLE version")
    .replace("VARCHAR PRIMARY KEY", "VARCHAR NOT NULL")
    .rstrip(" )\n")
    + ","
    + _REPLACED,
    f"""
    INSERT INTO version
    WITH old AS (
        SELECT v.*, coalesce(m.seq, 0) AS replaced_seq
        FROM version_m001 AS v
        LEFT JOIN (SELECT op_id, min(seq) AS seq FROM mutation GROUP BY op_id) AS m
            ON m.op_id = v.op_id
    ), whole AS (
        SELECT entry.* REPLACE (
            old.content AS content, sha256(old.content) AS content_digest, old.tags AS tags,
            old.scopes AS scopes, old.version AS version, old.recorded_at AS updated_at,
            coalesce(
                lag(old.replaced_seq) OVER (PARTITION BY old.name ORDER BY old.version),
                least(entry.seq, old.replaced_seq)
            ) AS seq
        ), old.replaced_seq, old.replaced_at, old.op_id
        FROM old JOIN entry ON entry.name = old.name
    )
    SELECT {_ENTRY_COLUMNS}, seq, replaced_seq, replaced_at, op_id FROM whole
    """,
    "DROP TABLE version_m001",
    """
    UPDATE entry SET seq = last.seq
    FROM (SELECT name, max(replaced_seq) AS seq FROM version GROUP BY name) AS last
    WHERE last.name = entry.name AND last.seq > entry.seq
    """,
    """
    CREATE TABLE statement_version (
        triple VARCHAR NOT NULL,
        subject VARCHAR NOT NULL,
        predicate VARCHAR NOT NULL,
        object VARCHAR NOT NULL,
        content VARCHAR NOT NULL,
        scopes VARCHAR[] NOT NULL,
        synonyms VARCHAR,
        trust VARCHAR NOT NULL,
        valid_from TIMESTAMP,
        valid_to TIMESTAMP,
        recorded_at TIMESTAMP NOT NULL,
        expired_at TIMESTAMP,
        session_id VARCHAR NOT NULL,
        turn INTEGER,
        channel VARCHAR NOT NULL,
        created_at TIMESTAMP NOT NULL,
    """
    + _REPLACED,
    # kind: message, session, project, root or tombstone; was and became: JSON, NULL for no row.
    """
    CREATE TABLE image (
        seq BIGINT NOT NULL,
        op_id VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        key VARCHAR NOT NULL,
        was VARCHAR,
        became VARCHAR
    )
    """,
    # Of what was done before, undoing would lack something.
    "INSERT INTO meta SELECT 'history_from', coalesce(max(seq), 0)::VARCHAR FROM mutation",
    f"CREATE OR REPLACE VIEW live_entry AS SELECT {_ENTRY_COLUMNS} FROM entry WHERE {_LIVE}",
    f"""
    CREATE OR REPLACE VIEW withheld_entry AS SELECT {_ENTRY_COLUMNS} FROM entry WHERE {_WITHHELD}
    """,
    f"""
    CREATE OR REPLACE VIEW live_statement AS
    SELECT {_STATEMENT_COLUMNS}, valid_from AS tr_start, valid_to AS tr_end FROM statement
    WHERE {_LIVE_STATEMENT}
      AND subject NOT IN (SELECT name FROM withheld_entry)
      AND object NOT IN (SELECT name FROM withheld_entry)
    """,
    f"""
    CREATE MACRO known_entry(t) AS TABLE
    WITH {_REACHED}
    SELECT {_ENTRY_COLUMNS} FROM entry WHERE {_HELD} AND {_LIVE}
    UNION ALL
    SELECT {_ENTRY_COLUMNS} FROM version WHERE {_STILL} AND {_LIVE}
    """,
    f"""
    CREATE MACRO known_statement(t) AS TABLE
    WITH {_REACHED}, unseen AS (
        SELECT name FROM entry WHERE {_HELD} AND {_WITHHELD}
        UNION ALL
        SELECT name FROM version WHERE {_STILL} AND {_WITHHELD}
    ), said AS (
        SELECT {_STATEMENT_COLUMNS} FROM statement WHERE {_HELD}
        UNION ALL
        SELECT {_STATEMENT_COLUMNS} FROM statement_version WHERE {_STILL}
    )
    SELECT *, valid_from AS tr_start, valid_to AS tr_end FROM said
    WHERE {_LIVE_STATEMENT}
      AND subject NOT IN (SELECT name FROM unseen)
      AND object NOT IN (SELECT name FROM unseen)
    """,
)

# Uniqueness is held by the one who writes, like everywhere: an index would be as large as the rest.
_M003 = (
    """
    CREATE TABLE embedding (
        digest VARCHAR NOT NULL,
        model VARCHAR NOT NULL,
        vector FLOAT[] NOT NULL
    )
    """,
)

# Each of the three reasons on its own is answered by what the engine notes of every group of rows;
# one condition of all three reads every entry, and every question about a statement asks it twice.
_HIDDEN_TRUST = "trust IN ('candidate', 'rejected')"
_M004 = (
    f"""
    CREATE OR REPLACE VIEW withheld_entry AS
    SELECT {_ENTRY_COLUMNS} FROM entry WHERE {_HIDDEN_TRUST}
    UNION ALL
    SELECT {_ENTRY_COLUMNS} FROM entry WHERE suppressed = true AND NOT {_HIDDEN_TRUST}
    UNION ALL
    SELECT {_ENTRY_COLUMNS} FROM entry
    WHERE expired_at IS NOT NULL AND suppressed = false AND NOT {_HIDDEN_TRUST}
    """,
)

# The last word on how far a name is believed, and what waits for a session to end. Both hold words
# of a person, so both are erasable: the ledger has no part of them.
_M005 = (
    """
    CREATE TABLE verdict (
        name VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        trust VARCHAR NOT NULL,
        reason VARCHAR NOT NULL,
        until TIMESTAMP,
        actor VARCHAR NOT NULL,
        channel VARCHAR NOT NULL,
        "at" TIMESTAMP NOT NULL,
        op_id VARCHAR NOT NULL
    )
    """,
    """
    CREATE TABLE queued (
        id VARCHAR NOT NULL,
        session_id VARCHAR NOT NULL,
        verb VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        arguments VARCHAR NOT NULL,
        actor VARCHAR NOT NULL,
        channel VARCHAR NOT NULL,
        "at" TIMESTAMP NOT NULL,
        failure VARCHAR NOT NULL
    )
    """,
)

_M006 = (
    """
    CREATE TABLE job (
        id VARCHAR PRIMARY KEY,
        kind VARCHAR NOT NULL,
        level INTEGER NOT NULL,
        scopes VARCHAR[] NOT NULL,
        state VARCHAR NOT NULL,
        attempts INTEGER NOT NULL,
        next_at TIMESTAMP,
        reason VARCHAR NOT NULL,
        message VARCHAR NOT NULL,
        parcel VARCHAR NOT NULL,
        created_at TIMESTAMP NOT NULL
    )
    """,
    """
    CREATE TABLE spend (
        id VARCHAR PRIMARY KEY,
        "at" TIMESTAMP NOT NULL,
        "by" VARCHAR NOT NULL,
        model VARCHAR NOT NULL,
        state VARCHAR NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        micro BIGINT NOT NULL
    )
    """,
    # What failed before was noted in one text; it is simply tried again.
    "DELETE FROM meta WHERE key = 'cascade_failed'",
)

# Of whom a tombstone is, by what the ledger calls it; what of it the digest is of (its value, what
# that looks like, its name, a statement); and what its value's other wordings share (``likeness``).
_M007 = tuple(
    f"ALTER TABLE tombstone ADD COLUMN {column} VARCHAR DEFAULT ''"
    for column in ("target", "part", "sketch")
)

# That a message is new the index learns from the ledger, which has its name.
_M008 = (
    """
    DELETE FROM touched WHERE seq IN (
        SELECT seq FROM mutation WHERE verb = 'create message' AND starts_with(target, 'msg-')
    )
    """,
)

# By which words of a prompt an entry is told. Every view that gives whole entries gives that too.
_WITH_ACTIVATION = f"{_ENTRY_COLUMNS}, activation"
_M009 = (
    "ALTER TABLE entry ADD COLUMN activation VARCHAR DEFAULT ''",
    "ALTER TABLE version ADD COLUMN activation VARCHAR DEFAULT ''",
    f"CREATE OR REPLACE VIEW live_entry AS SELECT {_WITH_ACTIVATION} FROM entry WHERE {_LIVE}",
    f"""
    CREATE OR REPLACE VIEW withheld_entry AS
    SELECT {_WITH_ACTIVATION} FROM entry WHERE {_HIDDEN_TRUST}
    UNION ALL
    SELECT {_WITH_ACTIVATION} FROM entry WHERE suppressed = true AND NOT {_HIDDEN_TRUST}
    UNION ALL
    SELECT {_WITH_ACTIVATION} FROM entry
    WHERE expired_at IS NOT NULL AND suppressed = false AND NOT {_HIDDEN_TRUST}
    """,
    f"""
    CREATE OR REPLACE MACRO known_entry(t) AS TABLE
    WITH {_REACHED}
    SELECT {_WITH_ACTIVATION} FROM entry WHERE {_HELD} AND {_LIVE}
    UNION ALL
    SELECT {_WITH_ACTIVATION} FROM version WHERE {_STILL} AND {_LIVE}
    """,
)

# What a branch shares of the session it came from (``branches``). Of those that clients made in
# earlier versions' times, all that had been said there when the first of its own turns was.
_M010 = (
    "ALTER TABLE session ADD COLUMN forked_at INTEGER DEFAULT 0",
    "ALTER TABLE session ADD COLUMN fork_gaps VARCHAR DEFAULT ''",
    "ALTER TABLE session ADD COLUMN fork_reason VARCHAR DEFAULT ''",
    "ALTER TABLE session ADD COLUMN headed_at TIMESTAMP",
    """
    UPDATE session SET forked_at = shared.turn FROM (
        SELECT own.id, max(message.turn) AS turn FROM message
        JOIN (
            SELECT session.id, session.forked_from, min(message."at") AS first
            FROM session JOIN message ON message.session_id = session.id
            WHERE session.forked_from NOT IN ('', session.id)
            GROUP BY session.id, session.forked_from
        ) AS own ON message.session_id = own.forked_from AND message."at" <= own.first
        GROUP BY own.id
    ) AS shared
    WHERE session.id = shared.id
    """,
)

# Where the ledger ends is noted with where everything else is read to: one statement says both.
_M011 = (
    """
    INSERT INTO cursor
    SELECT 'ledger', value::BIGINT FROM meta WHERE key = 'ledger_seq'
    """,
    "DELETE FROM meta WHERE key = 'ledger_seq'",
)

# (name, statements), in order; a name never changes its meaning.
MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("m001_create_tables", _M001),
    ("m002_keep_whole_versions", _M002),
    ("m003_keep_vectors", _M003),
    ("m004_find_the_withheld", _M004),
    ("m005_keep_verdicts", _M005),
    ("m006_keep_jobs_and_spending", _M006),
    ("m007_sketch_the_forgotten", _M007),
    ("m008_note_new_messages_once", _M008),
    ("m009_activate_by_words", _M009),
    ("m010_share_turns_of_branches", _M010),
    ("m011_note_the_end_with_the_cursors", _M011),
)
SCHEMA_VERSION = len(MIGRATIONS)


def migrate(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Apply what is missing, each step in a transaction with its own record; return their names.

    Raises StoreTooNew when the file names a step that this program does not know, StoreError when
    it has tables and names none.
    """
    import duckdb

    applied = check(connection)  # before anything is written to what may not be ours
    connection.execute(
        'CREATE TABLE IF NOT EXISTS migration (name VARCHAR PRIMARY KEY, "at" TIMESTAMP NOT NULL)'
    )
    done: list[str] = []
    for name, statements in MIGRATIONS:
        if name in applied:
            continue
        connection.execute("BEGIN")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO migration VALUES (?, ?)",
                [name, datetime.now(UTC).replace(tzinfo=None)],
            )
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):  # a commit that failed has ended it already
                connection.execute("ROLLBACK")
            raise
        done.append(name)
    return done


def check(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the applied steps.

    Raises StoreTooNew for a step unknown here, StoreError for tables without a note of any step.
    """
    tables = {
        str(row[0])
        for row in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
    }
    if "migration" not in tables:
        if tables:
            _refuse_unversioned()
        return set()
    applied = {str(row[0]) for row in connection.execute("SELECT name FROM migration").fetchall()}
    unknown = applied - {name for name, _ in MIGRATIONS}
    if unknown:
        raise StoreTooNew(
            f"the store was written by a newer hypatia-mem (step {min(unknown)} is unknown here)",
            hint="Upgrade hypatia-mem; nothing was changed, and turns go on being spooled.",
        )
    if not applied and tables != {"migration"}:
        _refuse_unversioned()
    return applied


def _refuse_unversioned() -> NoReturn:
    """Refuse a database that is not ours to change, or of which nobody knows how far it is."""
    raise StoreError(
        "the store has tables, but no note of which schema they are: it was not written by"
        " hypatia-mem, or the note is lost",
        hint="Nothing was changed. Move memory.duckdb away; the worker then restores the newest"
        " snapshot, or begins anew.",
    )

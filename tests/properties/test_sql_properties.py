"""SQL of any shape gives rows or a sentence; it never writes, reads a file or shows what is withheld.

The grammar knows the words that matter: the views, the raw tables behind them, the functions that
read files, settings and catalogs, the statements that write. Each example is put together from
them, whole or broken, and asked as a person would ask it.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.reading import ask
from hypatia_mem.store.sqlcheck import check
from hypatia_mem.store.views import VIEWS

NOW = datetime(2026, 11, 30, 12)
CANARY = "CANARY"
COLUMNS = ("name", "content", "tags", "text", "turn", "parts", "project", "id", "said_at", "rowid")
RAW = (
    "entry", "live_entry", "withheld_entry", "message", "tombstone", "meta", "mutation", "version",
    "kb.main.entry", "kb.tombstone", "memory.main.knowledge", "main.knowledge", "hypatia_scopes",
    "result", "duckdb_settings", "sqlite_master", "information_schema.tables", "pg_catalog.pg_class",
    "system.main.duckdb_views", "kb.main.known_entry(now())", "python_variable",
)  # fmt: skip
READERS = (
    "read_csv", "read_text", "read_blob", "read_json", "read_parquet", "glob", "sniff_csv", "query",
    "query_table", "parquet_metadata", "duckdb_settings", "duckdb_databases", "pragma_table_info",
    "json_execute_serialized_sql", "read_duckdb", "pragma_storage_info", "seq_scan", "summary",
)  # fmt: skip
SCALARS = (
    "upper", "length", "count", "max", "string_agg", "getenv", "current_setting", "to_json", "hash",
    "json_serialize_sql", "from_json", "json_deserialize_sql", "error", "list_transform", "unnest",
    "regexp_extract", "strptime", "getvariable", "write_log", "pg_get_viewdef", "nextval", "sleep_ms",
)  # fmt: skip
WRITES = (
    "DROP VIEW {t}", "DELETE FROM {t}", "INSERT INTO {t} VALUES (1)", "UPDATE {t} SET name = 'x'",
    "CREATE TABLE zz AS SELECT * FROM {t}", "COPY {t} TO '{out}'", "COPY (FROM {t}) TO '{out}'",
    "ATTACH '{out}'", "EXPORT DATABASE '{out}'", "SET threads = 1", "PRAGMA database_list",
    "EXPLAIN FROM {t}", "CALL pragma_version()", "SHOW TABLES", "DESCRIBE {t}", "SUMMARIZE {t}",
    "CHECKPOINT", "USE kb", "INSTALL httpfs", "TRUNCATE {t}",
    "WITH w AS (DELETE FROM {t} RETURNING *) FROM w",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A store with a canary in everything withheld, and a file with one beside it."""
    root = tmp_path_factory.mktemp("sql")
    home = root / "memory-home"
    paths.ensure_home(str(home))
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        txn.put_session(Session(id="s-1", project="app", started_at=NOW))
        txn.put_messages(
            "s-1", [Message("s-1", f"u{n}", "user", f"said {n}", NOW) for n in (1, 2)], "app"
        )
        txn.put_entry(Entry("note", "a note", tags=("a",), scopes=("app",)))
        txn.put_entry(Entry("hidden", CANARY, scopes=("app",), trust=Trust.CANDIDATE))
        txn.put_entry(Entry("hidden-2", CANARY, scopes=("app",), suppressed=True))
        txn.put_statement(Statement("hidden", "says", CANARY, scopes=("app",)))
        txn.put_entry(Entry("other", CANARY, scopes=("elsewhere",)))
        txn.put_entry(Entry("gone", CANARY, scopes=("app",), kind="rule"))
        txn.delete_entry("gone", tombstone=True)
    file = root / "canary.csv"
    file.write_text(f"a,b\n{CANARY},{CANARY}\n")
    return home, file


def digest(home):
    return hashlib.sha256((home / FILE).read_bytes()).hexdigest()


def statements(file, out):
    """Return a strategy of SQL-ish texts."""
    name = st.sampled_from(COLUMNS)
    quoted = st.sampled_from(
        [
            f"'{file}'",
            "'x'",
            "'/etc/passwd'",
            "'name'",
            "'CREATE TABLE q AS FROM entry'",
            "3",
            "NULL",
            "'$[0]'",
        ]
    )
    relations = st.one_of(
        st.sampled_from([*VIEWS, "w"]),
        st.sampled_from([*VIEWS, "w"]),
        st.sampled_from(RAW),
        quoted,
        st.builds(
            "{}({})".format, st.sampled_from([*READERS, "range", "unnest", "json_each"]), quoted
        ),
    )
    scalar = st.recursive(
        st.one_of(name, quoted, st.just("*")),
        lambda inner: st.one_of(
            st.builds("{}({})".format, st.sampled_from(SCALARS), inner),
            st.builds(
                "{} {} {}".format,
                inner,
                st.sampled_from(["=", "||", "LIKE", "->>", "IN", ">", "::"]),
                inner,
            ),
            st.builds("(SELECT {} FROM {})".format, inner, relations),
            st.builds("CASE WHEN {} THEN {} END".format, inner, inner),
            st.builds(
                "{}::{}".format, inner, st.sampled_from(["INTEGER", "JSON", "DATE", "VARCHAR[]"])
            ),
            st.builds("[{}]".format, inner),
        ),
        max_leaves=4,
    )
    select = st.builds(
        "{}SELECT {} FROM {}{}{}".format,
        st.sampled_from(["", "", "WITH w AS (SELECT 1 AS name) ", "WITH w AS (FROM entry) ", "WITH RECURSIVE w AS (FROM w UNION FROM knowledge) ", "WITH entry AS (FROM knowledge) "]),
        scalar,
        relations,
        st.sampled_from(["", "", " a JOIN sessions b ON true", ", messages", " UNION ALL FROM sessions", " TABLESAMPLE 50%"]),
        st.builds("{}{}{}".format, st.one_of(st.just(""), st.builds(" WHERE {}".format, scalar)), st.sampled_from(["", " GROUP BY ALL", " ORDER BY 1", " LIMIT 3", " QUALIFY true"]), st.sampled_from(["", ";", " --", "; SELECT 1", "/*", " '"])),
    )  # fmt: skip
    writing = st.builds(
        lambda form, table: form.format(t=table, out=out),
        st.sampled_from(WRITES),
        st.sampled_from([*VIEWS, *RAW]),
    )
    noise = st.text(
        st.sampled_from("SELECT FROM knowledge'\"();-*/,.[]{}:$?\\\0\n1é\ud800"), max_size=40
    )
    broken = st.builds(lambda text, at: text[: at % (len(text) + 1)], select, st.integers(0, 200))
    return st.one_of(select, select, select, writing, broken, noise)


def hold(place, sql, scopes=("app", "")):
    """Ask, and see that nothing happened but an answer or a sentence. Return the rows, or None."""
    home, _ = place
    python_variable = [CANARY]
    assert python_variable
    try:
        with ask(home, sql, scopes=scopes, timeout=2) as answer:
            rows = list(answer.rows(50))
            shown = json.dumps([answer.columns, rows, answer.notes])
    except HypatiaError as error:
        rows, shown = None, str(error)
    # What the query itself says may come back; the canary stands in no query.
    assert CANARY not in shown, sql
    return rows


def campaign(place, sql, before):
    home, file = place
    hold(place, sql)
    assert digest(home) == before
    assert sorted(os.listdir(file.parent)) == ["canary.csv", "memory-home"]


@pytest.mark.deep
def test_the_grammar_reaches_what_may_run(place):
    """The twin: enough of what it makes is answered, else it would prove nothing."""
    _, file = place
    made: list[str] = []

    @settings(max_examples=300, database=None)
    @given(statements(file.name, "x"))
    def collect(sql):
        made.append(sql)

    collect()
    answered = 0
    with duckdb.connect() as parser:
        for sql in made:
            try:
                check(parser, sql, VIEWS)
            except HypatiaError:
                continue
            answered += 1
    assert 20 < answered < 250


@pytest.mark.deep
def test_any_sql_gives_rows_or_a_sentence(place):
    """And leaves store and folder as they were."""
    home, file = place
    before = digest(home)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(statements(str(file), str(file.parent / "out")))
    def one(sql):
        campaign(place, sql, before)

    one()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_any_sql_gives_rows_or_a_sentence_for_long(place):
    home, file = place
    before = digest(home)

    @settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(statements(str(file), str(file.parent / "out")))
    def one(sql):
        campaign(place, sql, before)

    one()


def test_the_canaries_can_be_seen(place):
    """The twin: where one asks for the other project, its row is shown."""
    with pytest.raises(AssertionError):
        hold(place, "SELECT content FROM knowledge", scopes=None)
    assert hold(place, "SELECT content FROM knowledge WHERE kind = 'knowledge'") == [("a note",)]

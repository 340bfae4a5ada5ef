"""What is refused before it runs. What is allowed is shown to run in ``test_reading``."""

from __future__ import annotations

import contextlib

import duckdb
import pytest

from hypatia_mem.errors import HypatiaError, Refused, UsageError
from hypatia_mem.store.sqlcheck import FUNCTIONS, MAX_CHARS, TABLE_FUNCTIONS, check
from hypatia_mem.store.views import VIEWS

REFUSED = """
SELECT 1; SELECT 2
SELECT 1 /* ; */ ; /* */ DROP VIEW knowledge
INSERT INTO knowledge VALUES (1)
UPDATE knowledge SET name = 'x'
DELETE FROM knowledge
MERGE INTO knowledge USING sessions ON true WHEN MATCHED THEN DELETE
CREATE TABLE x AS SELECT 1
CREATE OR REPLACE VIEW knowledge AS SELECT 1
CREATE SECRET s (TYPE s3)
DROP VIEW knowledge
ALTER VIEW knowledge RENAME TO x
COMMENT ON TABLE knowledge IS 'x'
TRUNCATE knowledge
WITH a AS (DELETE FROM knowledge RETURNING *) SELECT * FROM a
WITH a AS (INSERT INTO knowledge VALUES (1) RETURNING *) SELECT * FROM a
ATTACH 'x'
ATTACH ':memory:' AS m
DETACH kb
USE kb
COPY knowledge TO 'x'
COPY (SELECT 1) TO '/dev/stdout'
COPY FROM DATABASE kb TO memory
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
PRAGMA table_info('knowledge')
SET threads = 1
RESET threads
SET VARIABLE a = 1
CALL pragma_version()
EXPLAIN SELECT 1
EXPLAIN ANALYZE SELECT 1
PREPARE p AS SELECT 1
EXECUTE p
BEGIN
CHECKPOINT
VACUUM
SHOW TABLES
SHOW ALL TABLES
SHOW DATABASES
SELECT * FROM (SHOW TABLES)
SELECT * FROM kb.main.tombstone
SELECT * FROM kb.tombstone
FROM memory.main.knowledge
FROM main.knowledge
FROM tombstone
FROM entry
FROM live_entry
FROM withheld_entry
FROM hypatia_scopes
FROM result
FROM knowledge AT (VERSION => 3)
FROM 'x.csv'
FROM '/etc/passwd'
FROM "x.parquet"
FROM 'https://example.org/x.csv'
FROM read_csv('x')
FROM read_text('/etc/passwd')
FROM read_blob('/etc/passwd')
FROM read_json('/etc/passwd')
FROM read_parquet('x')
FROM read_duckdb('x')
FROM parquet_metadata('x')
FROM sniff_csv('x')
FROM glob('*')
FROM query('FROM kb.main.tombstone')
FROM query_table('kb.main.tombstone')
FROM query_table(['knowledge'])
FROM json_execute_serialized_sql(json_serialize_sql('FROM kb.main.tombstone'))
SELECT json_serialize_sql('SELECT 1')
FROM kb.main.known_entry(now())
FROM known_entry(now())
FROM duckdb_settings()
FROM duckdb_settings
FROM duckdb_tables
FROM duckdb_views()
FROM duckdb_databases()
FROM duckdb_secrets()
FROM duckdb_logs
FROM system.main.duckdb_settings()
FROM sqlite_master
FROM information_schema.tables
FROM pg_catalog.pg_tables
FROM pg_tables
FROM pragma_storage_info('entry')
FROM pragma_database_size()
FROM test_all_types()
FROM histogram('knowledge', kind)
FROM summary((FROM knowledge))
FROM arrow_scan(1, 2, 3)
FROM pandas_scan(1)
FROM repeat(1, 3)
FROM VIEWS
SELECT current_setting('temp_directory')
SELECT system.main.current_setting('temp_directory')
SELECT getenv('HOME')
SELECT getvariable('x')
SELECT current_database()
SELECT in_search_path('a', 'b')
SELECT pg_get_viewdef(1)
SELECT nextval('x')
SELECT write_log('x')
SELECT sleep_ms(1)
SELECT error('x')
SELECT range(1000000000)
SELECT generate_series(1, 1000000000)
SELECT list_resize([1], 1000000000)
SELECT no_such_function(1)
SELECT $1
SELECT ?
SELECT $name
WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings
WITH RECURSIVE duckdb_views AS (FROM duckdb_views UNION FROM duckdb_views) FROM duckdb_views
WITH RECURSIVE tombstone AS (FROM tombstone UNION SELECT 1) SELECT 1
WITH tombstone AS (SELECT 1) FROM kb.main.tombstone
WITH tombstone AS (SELECT 1) FROM kb.tombstone
FROM tombstone, (WITH tombstone AS (SELECT 1 a) FROM tombstone) t
FROM (WITH a AS (SELECT 1) SELECT 1) x, a
WITH a AS (FROM b), b AS (SELECT 1) FROM a
SELECT (WITH z AS (SELECT 1) FROM z), (SELECT 1 FROM z)
SELECT * FROM knowledge ORDER BY (SELECT 1 FROM tombstone)
SELECT * FROM knowledge LIMIT (SELECT count(*) FROM tombstone)
SELECT max(name) OVER (ORDER BY (SELECT 1 FROM tombstone)) FROM knowledge
SELECT list_transform([1], lambda x: (SELECT 1 FROM tombstone))
SELECT CASE WHEN EXISTS (FROM tombstone) THEN 1 END
DESCRIBE tombstone
SUMMARIZE tombstone
PIVOT knowledge ON kind USING count(*)
"""


@pytest.fixture(scope="module")
def parser():
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("sql", REFUSED.strip().splitlines())
def test_everything_else_is_refused_before_it_runs(parser, sql):
    """With a sentence that says what, and one that says what to do."""
    with pytest.raises((Refused, UsageError)) as caught:
        check(parser, sql, VIEWS)

    assert caught.value.message
    assert caught.value.hint or "WITH cannot define" in caught.value.message


def test_a_text_of_any_length_and_depth_is_an_answer_or_a_sentence(parser):
    """Neither the engine's parser nor ours falls over."""
    for sql in (
        "SELECT " + "(" * 40_000 + "1" + ")" * 40_000,
        "SELECT " + "+".join(["1"] * 40_000),
        "SELECT " + "[" * 900 + "]" * 900,
        "SELECT 1" + " UNION ALL SELECT 1" * 4_000,
        "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "x" + ")" * 3_000,
        "x" * (MAX_CHARS + 1),
    ):
        with contextlib.suppress(HypatiaError):
            check(parser, sql, VIEWS)


def test_no_function_on_the_list_does_more_than_compute(parser):
    """Whatever engine is installed: none is volatile but the dice, none makes a table or a change."""
    dice = {"gen_random_uuid", "random", "uuid"}
    found = parser.execute(
        "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions()"
        " WHERE schema_name = 'main'"
    ).fetchall()
    kinds: dict[str, set[tuple[str, str]]] = {}
    for name, kind, stability in found:
        kinds.setdefault(name.lower(), set()).add((kind, stability))

    for name in FUNCTIONS & set(kinds) - dice:
        assert all(stability != "VOLATILE" for _, stability in kinds[name]), name
        assert {kind for kind, _ in kinds[name]} & {"scalar", "aggregate", "macro", "window"} or (
            name == "unnest"
        ), name
    assert len(FUNCTIONS & set(kinds)) > 450
    assert not {"getenv", "current_setting", "json_execute_serialized_sql"} & FUNCTIONS
    assert set(kinds) >= TABLE_FUNCTIONS

"""A person's own SQL: it reads the documented views, and nothing else happens."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
from datetime import datetime

import duckdb
import pytest

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError, StoreError, UsageError
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store import reading
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.lease import lease
from hypatia_mem.store.reading import ask
from hypatia_mem.store.views import VIEWS

NOW = datetime(2026, 11, 30, 12, 0, 0)
HERE = ("app", "")
TOOL = (
    {"type": "tool_use", "name": "Bash", "input": '{"c": 1}', "id": "c1"},
    {"type": "tool_result", "id": "c1", "text": "boom", "length": 4, "is_error": True},
    {"type": "tool_use", "name": "Read", "input": "{}", "id": "c2"},
    {"type": "usage", "model": "m-1", "input_tokens": 5, "output_tokens": 7},
)
LONG = "SELECT count(*) FROM range(1000000000000)"


def message(number, text, session, role="user", **more):
    at = NOW.replace(minute=number)
    return Message(session, f"{session}-u{number}", role, text, at, **more)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A store with two projects and one of everything that is withheld, each marked CANARY."""
    home = tmp_path_factory.mktemp("read") / "memory-home"
    paths.ensure_home(str(home))
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON, "person"), now=NOW) as txn,
    ):
        for name in ("app", "other"):
            txn.put_project(name)
            txn.put_root(f"/src/{name}", scope=name)
            mark = "other project" if name == "other" else "here"
            sid = f"s-{name}"
            txn.put_session(Session(id=sid, project=name, title=f"title {mark}", started_at=NOW))
            txn.put_messages(
                sid,
                [
                    message(1, f"asked {mark}", sid),
                    message(2, f"told {mark}", sid, "assistant", parts=TOOL, tokens=7),
                ],
                name,
            )
            txn.put_entry(Entry(f"note-{name}", f"note {mark}", tags=("a", "b"), scopes=(name,)))
            txn.update_entry(f"note-{name}", content=f"note {mark}, again")
            txn.put_statement(Statement(f"note-{name}", "about", mark, scopes=(name,)))
        txn.put_entry(Entry("everywhere", "a global note", scopes=("",)))
        for state in ("candidate", "rejected"):
            txn.put_entry(Entry(f"n-{state}", "CANARY", scopes=("app",), trust=Trust(state)))
        txn.put_entry(Entry("n-hidden", "CANARY", scopes=("app",), suppressed=True))
        txn.put_entry(Entry("n-once-hidden", "CANARY", scopes=("app",), suppressed=True))
        txn.update_entry("n-once-hidden", suppressed=False, content="seen now")
        txn.put_entry(Entry("n-deleted", "CANARY", scopes=("app",)))
        txn.delete_entry("n-deleted")
        txn.put_entry(Entry("n-forgotten", "CANARY forgotten", scopes=("app",), kind="rule"))
        txn.delete_entry("n-forgotten", tombstone=True)
        txn.put_statement(Statement("n-hidden", "says", "CANARY", scopes=("app",)))
        txn.put_messages(
            "s-app",
            [message(3, "CANARY", "s-app", parts=({"type": "tool_use", "name": "CANARY"},))],
            "app",
        )
        txn.update_entry("msg-s-app-3", suppressed=True)
    return home


@pytest.fixture
def told(built, monkeypatch):
    """The store, for tests that only read it."""
    monkeypatch.setenv("HYPATIA_MEM_HOME", str(built))
    return built


@pytest.fixture
def mine(built, home):
    """A copy of it, for tests that change it."""
    shutil.copytree(built, home, dirs_exist_ok=True)
    return home


def run(home, sql, scopes=HERE, **how):
    """Return the rows by column name."""
    with ask(home, sql, scopes=scopes, **how) as answer:
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows()]


def outcome(home, sql, scopes=HERE):
    """Return what a person gets: the rows as JSON, or the sentence."""
    try:
        return json.dumps(run(home, sql, scopes))
    except HypatiaError as error:
        return str(error)


# ---- what is there ------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_it_is_documented(told, name):
    """Names in their order, types, and each name may stand unquoted in a query."""
    view = VIEWS[name]
    bare = ", ".join(one.name for one in view.columns)

    with ask(told, f"SELECT {bare} FROM {name}", scopes=HERE) as answer:
        found = list(zip(answer.columns, answer.types, strict=True))

    assert found == [(one.name, one.type) for one in view.columns]
    assert all(one.meaning for one in view.columns)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "selections"])
def test_a_view_shows_this_project_and_no_other(told, name):
    """The omitted scope is the project and the global (I5); the twin asks for all."""
    here = run(told, f"FROM {name}")
    everything = run(told, f"FROM {name}", None)

    assert here
    assert "other" not in json.dumps(here).replace("other names", "")
    assert "other" in json.dumps(everything)
    assert run(told, f"FROM {name}", ()) == run(told, f"FROM {name}", ("nobody",)) == []


@pytest.mark.deep
@pytest.mark.parametrize("scopes", [HERE, None])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_nothing_withheld(told, name, scopes):
    """Nor anything that stands on it: the statement about it, the message's calls, old states."""
    assert "CANARY" not in json.dumps(run(told, f"FROM {name}", scopes))


@pytest.mark.deep
def test_what_is_not_withheld_is_there(told):
    """The twin: each view's rows, counted by hand."""
    counts = {name: len(run(told, f"FROM {name}")) for name in VIEWS if name != "ledger"}

    assert counts == {
        "knowledge": 5,  # two messages, note-app, everywhere, n-once-hidden
        "statements": 1,
        "messages": 2,
        "responses": 1,
        "tool_calls": 2,
        "sessions": 1,
        "projects": 1,
        "versions": 1,
        "selections": 0,
    }
    assert (
        len(run(told, "FROM ledger", None))
        == run(told, "SELECT max(seq) n FROM ledger", None)[0]["n"]
    )


def test_messages_with_their_calls_and_tokens(told):
    """What the reports stand on, read by hand."""
    assert run(told, "SELECT turn, role, text, said_at, project FROM messages ORDER BY turn") == [
        {
            "turn": turn, "role": role, "text": text, "project": "app",
            "said_at": f"2026-11-30T12:0{turn}:00.000Z",
        }
        for turn, role, text in ((1, "user", "asked here"), (2, "assistant", "told here"))
    ]  # fmt: skip
    assert run(told, "SELECT tool, failed, output, input FROM tool_calls ORDER BY tool") == [
        {"tool": "Bash", "failed": True, "output": "boom", "input": '{"c": 1}'},
        {"tool": "Read", "failed": None, "output": None, "input": "{}"},
    ]
    assert run(
        told, "SELECT model, input_tokens, output_tokens, cache_read_tokens n FROM responses"
    ) == [{"model": "m-1", "input_tokens": 5, "output_tokens": 7, "n": 0}]


def test_a_text_without_its_headings_is_shown_whole(mine, kit):
    """A message whose entry an earlier version let somebody rewrite is not cut to nothing."""
    with open_store(kit.home, write=True) as store:
        store.execute("UPDATE entry SET content = 'rewritten' WHERE name = 'msg-s-app-1'")

    assert run(mine, "SELECT text FROM messages WHERE turn = 1") == [{"text": "rewritten"}]


def test_a_view_that_leaves_out_rows_says_so(told):
    """The ledger tells no project of an entry, selections are not recorded: no silent gap."""
    with ask(told, "FROM ledger, selections", scopes=HERE) as answer:
        assert [note.split(":")[0] for note in answer.notes] == [
            "In ledger, entries and statements stand under a digest that tells no project",
            "selections is empty",
        ]
    with ask(told, "FROM ledger", scopes=None) as answer:
        assert answer.notes == ()
    with ask(told, "FROM knowledge", scopes=HERE) as answer:
        assert answer.notes == ()


def test_without_a_store_the_views_are_empty(bare_home):
    """Before the first turn there is nothing to read, and that is no error."""
    assert run(bare_home, "SELECT count(*) AS n FROM knowledge") == [{"n": 0}]
    assert not (bare_home / FILE).exists()


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("NULL", None),
        ("true", True),
        ("1::TINYINT", 1),
        ("170141183460469231731687303715884105727", 2**127 - 1),
        ("sum(1)", 1),
        ("0.5", 0.5),
        ("12::DECIMAL(5,0)", 12),
        ("'x'", "x"),
        ("TIMESTAMP '2026-01-02 03:04:05.678'", "2026-01-02T03:04:05.678Z"),
        ("TIMESTAMPTZ '2026-01-02 03:04:05+02'", "2026-01-02T01:04:05.000Z"),
        ("TIMESTAMP_NS '2026-01-02 03:04:05.678912345'", "2026-01-02T03:04:05.678Z"),
        ("'infinity'::TIMESTAMP", "infinity"),
        ("DATE '290000-01-01'", "290000-01-01"),
        ("TIME '10:00'", "10:00:00"),
        ("INTERVAL 1 DAY", "1 day"),
        ("'\\xAA'::BLOB", "\\xAA"),
        ("'101'::BIT", "101"),
        ("[1, 2]", "[1,2]"),
        ("{'a': [TRUE]}", '{"a":[true]}'),
        ("MAP {'k': 1}", '{"k":1}'),
        ("'{\"a\": 1}'::JSON", '{"a": 1}'),
        ("'a'::ENUM ('a', 'b')", "a"),
        ("'00000000-0000-0000-0000-000000000001'::UUID", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_a_value_comes_in_a_form_that_any_program_reads(home, sql, value):
    """Also where Python's own types could not hold it, or would need a package for it."""
    assert run(home, f"SELECT {sql} AS x") == [{"x": value}]


def test_numbers_that_are_none(home):
    assert math.isnan(run(home, "SELECT 'nan'::DOUBLE AS x")[0]["x"])


def test_the_time_is_utc_whatever_the_machine_thinks(home, monkeypatch):
    """A naive time of the views compared with now() is off by hours otherwise."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    found = run(home, "SELECT now()::TIMESTAMP - TIMESTAMP '2020-01-01' > INTERVAL 1 DAY AS x,"
                " date_part('timezone_hour', now()) AS zone")  # fmt: skip
    assert found == [{"x": True, "zone": 0}]


def test_rows_keep_their_order_and_columns_of_one_name_both_stay(told):
    rows = run(told, "SELECT turn, turn FROM messages ORDER BY turn DESC")
    assert [list(row.values()) for row in rows] == [[2, 2], [1, 1]]
    with ask(told, "SELECT range AS n FROM range(5000) ORDER BY n DESC", scopes=HERE) as answer:
        assert answer.count == 5000
        assert [row[0] for row in answer.rows(3)] == [4999, 4998, 4997]


def test_parquet_keeps_the_types(told):
    """What is written is read again by the engine as it was."""
    with ask(told, "SELECT name, tags, created_at, turn FROM knowledge ORDER BY name", scopes=HERE,
             parquet=True) as answer:  # fmt: skip
        file = answer.write_parquet()
        with duckdb.connect() as engine:
            found = engine.execute(f"SELECT typeof(COLUMNS(*)) FROM '{file}' LIMIT 1").fetchone()
            names = engine.execute(f"SELECT name FROM '{file}'").fetchall()
        assert file.stat().st_mode & 0o077 == 0

    assert found == ("VARCHAR", "VARCHAR[]", "TIMESTAMP", "INTEGER")
    assert [row[0] for row in names] == sorted(row[0] for row in names)
    assert len(names) == 5
    assert not file.exists()


# ---- what may run -------------------------------------------------------------------------------

ALLOWED = """
SELECT 1;
-- a comment
SELECT 1 /* ; DROP VIEW x */ -- ;
WITH a AS MATERIALIZED (SELECT 1 x), b AS (FROM a) SELECT * FROM b, a
WITH RECURSIVE t AS (SELECT 1 a UNION ALL SELECT a + 1 FROM t WHERE a < 3) FROM t
WITH RECURSIVE t(a, b) USING KEY (a) AS (SELECT 1, 2 UNION (SELECT t.a + 1, 3 FROM t, recurring.t AS r WHERE t.a < 3)) FROM t
WITH knowledge AS (SELECT * FROM knowledge WHERE kind = 'rule') SELECT * FROM knowledge
SELECT * FROM KNOWLEDGE
SELECT count(*) FILTER (WHERE kind = 'rule') OVER (PARTITION BY kind) FROM knowledge
FROM knowledge SELECT name LIMIT 3
TABLE knowledge
VALUES (1, 'a')
DESCRIBE knowledge
SUMMARIZE knowledge
FROM range(3) r, unnest([1, 2]) u, generate_series(1, 2) g, json_each('[1]') e, json_tree('[1]') t SELECT 1
SELECT unnest(tags), list_transform(tags, lambda x: upper(x)), [x FOR x IN tags IF x != 'a'] FROM knowledge
SELECT * EXCLUDE (name) REPLACE (upper(kind) AS kind) FROM knowledge
SELECT COLUMNS('na.*') FROM knowledge
SELECT name.upper(), content[1:3], tags[1] FROM knowledge
SELECT parts->'$[0].type', parts->>'$[0].name' FROM messages
SELECT CASE WHEN turn > 1 THEN 1 ELSE 2 END, turn BETWEEN 1 AND 2, turn IN (1, 2), turn IS NULL, turn IS NOT DISTINCT FROM 1, NOT true, -turn, name || 'x' FROM knowledge
SELECT name LIKE 'x', name ILIKE 'x', name SIMILAR TO 'x', name GLOB 'x', coalesce(name, 'x'), nullif(name, 'x'), TRY_CAST(name AS INT) FROM knowledge
SELECT extract(year FROM created_at), created_at > now() - INTERVAL '7 days', current_date, current_timestamp, strftime(created_at, '%Y') FROM knowledge
SELECT date_trunc('day', started_at) AS d, count(*) FROM sessions GROUP BY ALL ORDER BY d LIMIT 10% OFFSET 1
PIVOT knowledge ON kind IN ('rule', 'taboo') USING count(*)
UNPIVOT (SELECT 1 a, 2 b) ON a, b
SELECT * FROM knowledge QUALIFY row_number() OVER (PARTITION BY kind ORDER BY created_at DESC) = 1
SELECT kind, count(*), grouping(kind) FROM knowledge GROUP BY GROUPING SETS ((kind), ()) HAVING count(*) > 0
SELECT a.name FROM knowledge a SEMI JOIN sessions b ON a.session_id = b.id
SELECT a.name FROM knowledge a ASOF JOIN sessions b ON a.created_at >= b.started_at
SELECT (SELECT max(turns) FROM sessions), EXISTS (FROM sessions), ARRAY(SELECT id FROM sessions), turns > ALL (SELECT 1) FROM sessions
SELECT string_agg(name, ',' ORDER BY name), count(DISTINCT kind), mode(kind), max(name, 2) FROM knowledge
SELECT struct_pack(a := 1), {'a': 1}.a, MAP {'a': 1}, row(1, 2) = (1, 2), $$abc$$, e'\\n'
SELECT DISTINCT ON (kind) kind, name FROM knowledge ORDER BY ALL
SELECT a.name, x.id FROM knowledge a, LATERAL (SELECT * FROM sessions s WHERE s.id = a.session_id) x
SELECT 5!, 2 ** 3, ~1, @(-1), 1 << 2, 7 // 2, [1] && [1], 'a' ^@ 'a', 'a' ~ 'a', TRY(1 / 0)
SELECT trim(BOTH 'x' FROM name), position('a' IN name), substring(name FROM 1 FOR 2) FROM knowledge
SELECT lag(turns IGNORE NULLS) OVER w FROM sessions WINDOW w AS (ORDER BY started_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
SELECT name FROM knowledge UNION BY NAME SELECT id AS name FROM sessions EXCEPT SELECT 'x'
SELECT * FROM knowledge TABLESAMPLE 10%
"""

NO_SQL = ("", " ", ";", "-- nothing", "SELECT", "SELEC 1", "SELECT 'x", "SELECT \0", "\ud800", "é")


def lines(text):
    return [line for line in text.strip().splitlines() if not line.startswith("--")]


@pytest.mark.deep
@pytest.mark.parametrize("sql", lines(ALLOWED))
def test_what_reads_the_views_runs(told, sql):
    """DuckDB's language is there whole: the list is of shapes, not of favourites."""
    run(told, sql)


@pytest.mark.parametrize("sql", NO_SQL)
def test_what_is_no_sql_is_said_to_be_none(told, sql):
    with pytest.raises(UsageError):
        run(told, sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP TABLE x", "DROP is refused: sql only reads"),
        ("COPY knowledge TO 'x'", "--output FILE"),
        ("SELECT 1; SELECT 2", "one SELECT at a time: this is SELECT, SELECT"),
        ("FROM '/etc/passwd'", "Files are not read here"),
        ("FROM knowlege", "Did you mean knowledge?"),
        ("SELECT lenght(name) FROM knowledge", "Did you mean length"),
        ("SELECT nmae FROM knowledge", '"name"'),
        ("FROM glob('*')", "the table function 'glob' is refused"),
        ("SELECT range(3)", "FROM range(...)"),
        ("SELECT ?", "Write the value itself"),
    ],
)
def test_a_refusal_teaches(told, sql, said):
    with pytest.raises(HypatiaError) as caught:
        run(told, sql)

    assert said in str(caught.value)


# ---- shut doors ---------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('{file}')",
        "FROM read_csv('{file}')",
        "FROM '{file}'",
        "FROM glob('{file}')",
        "COPY (SELECT 1) TO '{out}'",
        "ATTACH '{out}' AS other",
        "EXPORT DATABASE '{out}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SET python_enable_replacements = true",
        "SELECT * FROM python_variable",
        "DELETE FROM kb.main.entry",
        "DROP TABLE kb.main.entry",
        "CREATE TABLE kb.main.x AS SELECT 1",
    ],
)
def test_the_engine_itself_is_shut(told, tmp_path, sql):
    """Should the check ever err: unchecked, as our own SQL runs, it still opens nothing."""
    python_variable = [{"a": "CANARY"}]
    assert python_variable
    file, out = tmp_path / "canary.csv", tmp_path / "out"
    file.write_text("a\nCANARY\n")
    before = (told / FILE).read_bytes()

    with pytest.raises(HypatiaError) as caught:
        run(told, sql.format(file=file, out=out), reads=["knowledge"])

    assert "CANARY" not in str(caught.value)
    assert not out.exists()
    assert (told / FILE).read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content::INTEGER FROM knowledge",
        "SELECT name FROM knowledge WHERE content::INTEGER > 0",
        "SELECT strptime(content, '%Y') FROM knowledge",
        "SELECT content::TIMESTAMP FROM knowledge WHERE kind = 'x'",
        "SELECT json_extract(content, '$.a') FROM knowledge",
        "SELECT from_hex(text) FROM messages",
        "SELECT subject::UUID FROM statements",
    ],
)
def test_an_error_quotes_no_row(told, sql):
    """The engine may look at a withheld row before the view leaves it out."""
    said = outcome(told, sql, None)

    assert "CANARY" not in said
    assert "TRY_CAST" in said or said.startswith("[")


# ---- limits -------------------------------------------------------------------------------------


def test_a_query_is_stopped_when_its_time_is_over(told):
    begun = time.monotonic()
    with pytest.raises(StoreError, match=r"stopped after 0\.5 s"):
        run(told, LONG, timeout=0.5)

    assert time.monotonic() - begun < 5
    assert run(told, "SELECT 1 AS x") == [{"x": 1}]


def test_a_query_is_stopped_when_it_wants_too_much_memory(told, monkeypatch):
    monkeypatch.setattr(reading, "_LIMITS", ("memory_limit = '60MB'",))
    with pytest.raises(StoreError, match="more memory"):
        run(told, "SELECT list(repeat('x', 1000) || range) FROM range(1000000)")


def test_a_long_query_keeps_no_writer_waiting(told, monkeypatch):
    """It holds the lease for a moment, then goes on reading a copy, and its answer is the same."""
    monkeypatch.setattr(reading, "HOLD_SECONDS", 0.2)
    got: list[object] = []
    slow = (
        "SELECT (SELECT count(*) FROM knowledge) AS n, sum(hash(range) % 7) > 0 AS x"
        " FROM range(60000000)"
    )
    asking = threading.Thread(target=lambda: got.extend(run(told, slow)))
    asking.start()
    time.sleep(0.4)
    waited = 0.0
    while asking.is_alive():
        begun = time.monotonic()
        with lease(told, write=True, deadline=20):
            waited = max(waited, time.monotonic() - begun)
        time.sleep(0.05)

    assert got == [{"n": 5, "x": True}]
    assert waited < 1.5
    assert not list(told.glob(".reading-*"))


def test_the_store_is_free_while_an_answer_is_printed(mine, kit):
    """However slowly it is read: its rows are the engine's own by then."""
    with ask(mine, "FROM knowledge", scopes=HERE) as answer:
        with kit.change() as txn:
            txn.put_entry(Entry("later", "later", scopes=("app",)))
        assert len(list(answer.rows())) == 5

    assert len(run(mine, "FROM knowledge")) == 6


def test_a_copy_that_a_kill_left_behind_is_cleared_away(mine):
    old, new = mine / ".reading-old", mine / ".reading-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / FILE).write_text("x")
    long_ago = time.time() - 8000
    os.utime(old, (long_ago, long_ago))

    run(mine, "SELECT 1")

    assert (old.exists(), new.exists()) == (False, True)


def test_a_copy_without_room_is_a_sentence(told, monkeypatch):
    """Nothing is lost by it: the query can ask for less."""

    def full(_source, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reading, "HOLD_SECONDS", 0.1)
    monkeypatch.setattr(reading, "_copy", full)
    with pytest.raises(StoreError, match="no room to copy"):
        run(told, LONG, timeout=20)
    assert not list(told.glob(".reading-*"))


def test_ctrl_c_stops_the_query(told):
    """The engine would go on to its end: the thread that waits tells it to stop."""
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(told, LONG, timeout=60)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)

    assert time.monotonic() - begun < 10
    with open_store(told, write=True):
        pass

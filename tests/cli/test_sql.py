"""``sql`` and ``report`` as a person and an agent use them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta

import duckdb
import pytest

from hypatia_mem.model import Author, Channel, Entry, Message, Session, Trust

NOW = datetime(2025, 11, 30, 12)
PARTS = (
    {"type": "tool_use", "name": "Bash", "input": "{}", "id": "c1"},
    {"type": "tool_result", "id": "c1", "text": "no", "length": 2, "is_error": True},
    {"type": "usage", "model": "m-1", "input_tokens": 2_000_000, "output_tokens": 7},
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project's folder and a store: its session, another project's, and something withheld."""
    from hypatia_mem.capture import paths
    from hypatia_mem.memory import projects
    from hypatia_mem.store.connection import open_store

    root = tmp_path_factory.mktemp("sql")
    folder, home = root / "src" / "app", root / "memory-home"
    folder.mkdir(parents=True)
    paths.ensure_home(str(home))
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=NOW) as txn,
    ):
        scope = projects.claim(store, txn, str(folder))
        for ident, owner in (("s-1", scope), ("s-2", "other")):
            txn.put_session(Session(id=ident, project=owner, started_at=NOW, updated_at=NOW))
            txn.put_messages(
                ident,
                [
                    Message(ident, f"{ident}-u1", "user", "=1+1", NOW),
                    Message(ident, f"{ident}-u2", "assistant", "x" * 400, NOW, parts=PARTS),
                ],
                owner,
            )
        txn.put_entry(Entry("note", "a\x1b[2Jb", tags=("a", "b,c"), scopes=(scope,)))
        txn.put_entry(Entry("hidden", "CANARY", scopes=(scope,), trust=Trust.CANDIDATE))
    return folder, home, scope


@pytest.fixture
def project(place, monkeypatch):
    """The folder the commands run in."""
    monkeypatch.chdir(place[0])
    return place[0]


@pytest.fixture
def told(place, monkeypatch):
    """The store as it was built, for tests that only read it; gives the project's scope."""
    monkeypatch.setenv("HYPATIA_MEM_HOME", str(place[1]))
    return place[2]


@pytest.fixture
def mine(place, home):
    """A copy of it, for tests that change it."""
    shutil.copytree(place[1], home, dirs_exist_ok=True)
    return place[2]


def test_a_table_of_this_project(cli, told):
    """Names above, NULL written out; the twin reads every project."""
    done = cli("sql", "SELECT id, turns, ended_at FROM sessions ORDER BY id")
    everything = cli("sql", "SELECT id FROM sessions ORDER BY id", "--all-projects")

    assert done.out == "id   turns  ended_at\ns-1  2      NULL\n"
    assert everything.out.split() == ["id", "s-1", "s-2"]
    assert cli("sql", "SELECT id FROM sessions", "--scope", "other").out.split() == ["id", "s-2"]
    assert cli("sql", "SELECT name FROM knowledge WHERE name = 'hidden'").err == "No rows.\n"


def test_a_table_says_what_it_leaves_out(cli, told):
    """Rows beyond the limit are counted, cells that are cut are marked."""
    few = cli("sql", "SELECT range FROM range(130)")
    fewer = cli("sql", "SELECT range FROM range(3)", "--limit", "2")
    cut = cli("sql", "SELECT text FROM messages WHERE turn = 2")

    assert len(few.out.splitlines()) == 101
    assert few.err == "30 more rows: --limit 130, or --csv or --json.\n"
    assert fewer.err.startswith("1 more row:")
    assert cut.out.endswith("x…\n")
    assert "--json shows them whole" in cut.err


def test_nothing_stored_drives_the_terminal(cli, told):
    assert "\\x1b[2J" in cli("sql", "SELECT content FROM knowledge WHERE name = 'note'").out


def test_csv(cli, told):
    """Every row, lists as JSON, NULL as nothing, times in ISO 8601, texts as they are."""
    done = cli(
        "sql", "--csv",
        "SELECT name, tags, created_at, valid_to, pinned FROM knowledge WHERE name = 'note'",
    )  # fmt: skip
    texts = cli("sql", "--csv", "SELECT text FROM messages WHERE turn = 1")
    long = cli("sql", "--csv", "SELECT range FROM range(500)")

    head, row = csv.reader(io.StringIO(done.out))
    assert head == ["name", "tags", "created_at", "valid_to", "pinned"]
    assert row == ["note", '["a","b,c"]', "2025-11-30T12:00:00.000Z", "", "false"]
    assert texts.out == "text\n=1+1\n"
    assert len(long.out.splitlines()) == 501


def test_json(cli, told):
    """Lists and structures are JSON themselves; numbers that are none are text."""
    rows = cli("sql", "--json", "SELECT name, tags, valid_to FROM knowledge WHERE name = 'note'")
    odd = cli("sql", "--json", "SELECT 'nan'::DOUBLE AS a, {'b': [1]} AS c, 1.5 AS d, 2 AS d")
    parts = cli("sql", "--json", "SELECT parts FROM messages WHERE turn = 2")

    assert rows.json == [{"name": "note", "tags": ["a", "b,c"], "valid_to": None}]
    assert odd.json == [{"a": "nan", "c": {"b": [1]}, "d": 1.5, "d_1": 2}]
    assert [part["type"] for part in parts.json[0]["parts"]] == ["tool_use", "tool_result", "usage"]
    assert cli("sql", "--json", "SELECT 1 WHERE false").out == "[]\n"
    assert len(cli("sql", "--json", "SELECT range FROM range(300)", "--limit", "5").json) == 5


@pytest.mark.deep
@pytest.mark.parametrize("form", ["--csv", "--json", "--parquet"])
def test_a_file_is_the_owners_and_replaces_nothing(cli, told, tmp_path, form):
    """Unless it is told to; a refused one is left as it is, and nothing else lies beside it."""
    file = tmp_path / "out" / "answer"
    file.parent.mkdir()
    call = ("sql", form, "--output", str(file), "SELECT name FROM knowledge WHERE name = 'note'")

    assert cli(*call).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"note" in file.read_bytes()
    file.write_text("mine")
    again = cli(*call)
    assert (again.code, file.read_text()) == (1, "mine")
    assert "--force" in again.err
    assert cli(*call, "--force").code == 0
    assert b"note" in file.read_bytes()
    assert [one.name for one in file.parent.iterdir()] == ["answer"]


def test_a_file_that_came_to_be_meanwhile_is_not_replaced(tmp_path):
    """Between the first look and the end of a long query somebody may have made one."""
    from hypatia_mem.cli.tables import new_file
    from hypatia_mem.errors import Conflict

    file = tmp_path / "out" / "answer"
    file.parent.mkdir()

    def write(force):
        with new_file(str(file), force=force) as out:
            out.write(b"ours")
            file.write_text("theirs")

    with pytest.raises(Conflict):
        write(force=False)
    assert file.read_text() == "theirs"
    write(force=True)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("ours", 0o600)
    assert [one.name for one in file.parent.iterdir()] == ["answer"]


def test_a_failed_query_leaves_no_file(cli, told, tmp_path):
    file = tmp_path / "answer.csv"
    assert cli("sql", "--csv", "-o", str(file), "SELECT text::DATE FROM messages").code == 1
    assert not file.exists()


def test_parquet_to_standard_output(place, told, project, tmp_path):
    """As bytes, through a pipe, from the program as it is started."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hypatia_mem",
            "sql",
            "--parquet",
            "SELECT id, started_at FROM sessions",
        ],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    file = tmp_path / "x.parquet"
    file.write_bytes(done.stdout)

    with duckdb.connect() as engine:
        found = engine.execute(f"SELECT * FROM '{file}'").fetchall()
    assert found == [("s-1", NOW)]
    assert not list(place[1].glob(".reading-*"))


@pytest.fixture
def secret(place):
    """A key in an entry called ``key``, which got in past the hook; gone afterwards."""
    from hypatia_mem.store.connection import open_store

    key = "AKIA" + "Q3ZX7T5BN2LK4MPW"
    with open_store(place[1], write=True) as store:
        with store.transaction(Author(Channel.WORKER), now=NOW) as txn:
            txn.put_entry(Entry("key", "it", scopes=(place[2],)))
        store.execute("UPDATE entry SET content = ? WHERE name = 'key'", [f"it is {key}"])
    yield key
    with open_store(place[1], write=True) as store:
        store.execute("DELETE FROM entry WHERE name = 'key'")


@pytest.mark.parametrize(
    "shown",
    ["content", "[content]", "{'a': [content]}", "MAP {content: 1}", "encode(content)"],
)
def test_no_secret_leaves_as_parquet(cli, told, tmp_path, secret, shown):
    """Not bare, nested or as bytes; what holds none, and a number that is none, are written."""
    file = tmp_path / "answer"
    query = f"SELECT name, {shown} AS said, 'nan'::DOUBLE AS n FROM knowledge WHERE name "

    refused = cli("sql", "--parquet", "-o", str(file), query + "= 'key'")
    assert (refused.code, file.exists()) == (1, False)
    assert "column 'said' holds what looks like a secret" in refused.err
    assert "--csv" in refused.err
    assert secret not in refused.err
    assert secret not in cli("sql", "--csv", query + "= 'key'").out

    assert cli("sql", "--parquet", "-o", str(file), query + "= 'note'").code == 0
    with duckdb.connect() as engine:
        assert engine.execute(f"SELECT name FROM read_parquet('{file}')").fetchall() == [("note",)]


def test_sql_from_standard_input_and_a_file(cli, told, tmp_path):
    file = tmp_path / "q.sql"
    file.write_text("-- a query\nSELECT 2 AS two;\n")

    assert cli("sql", "-", stdin=b"SELECT 1 AS one\n").out.split() == ["one", "1"]
    assert cli("sql", f"@{file}").out.split() == ["two", "2"]
    assert cli("sql", "-- nothing but\nSELECT 3 AS three").out.split() == ["three", "3"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "--schema"),
        (("DROP TABLE x",), 1, "DROP is refused"),
        (("ATTACH 'x'",), 1, "ATTACH is refused"),
        (("FROM '/etc/passwd'",), 1, "Files are not read here"),
        (("SELECT 1; SELECT 2",), 1, "one SELECT at a time"),
        (("FROM nowhere",), 1, "there is no view 'nowhere'"),
        (("SELECT nope FROM knowledge",), 2, "nope"),
        (("SELECT 1", "--csv", "--json"), 2, "contradict"),
        (("SELECT 1", "--output", "x"), 2, "--csv, --json or --parquet"),
        (("SELECT 1", "--parquet", "--limit", "3", "-o", "x"), 2, "LIMIT in the SQL"),
        (("SELECT 1", "--csv", "-o", "/nowhere/at/all"), 1, "/nowhere"),
        (("SELECT count(*) FROM range(1000000000000)", "--timeout", "1"), 1, "stopped after 1 s"),
        (("SELECT 1", "--all-projects", "--scope", "x"), 2, "contradict"),
    ],
)
def test_a_refusal_is_a_sentence(cli, told, arguments, code, said):
    done = cli("sql", *arguments)

    assert done.code == code
    assert said in done.err
    assert done.out == ""


def test_a_refusal_as_json(cli, told):
    done = cli("sql", "DELETE FROM knowledge", "--json")
    assert json.loads(done.err)["error"]["kind"] == "refused"


def test_a_view_that_leaves_rows_out_says_so_on_standard_error(cli, told):
    done = cli("sql", "SELECT count(*) AS n FROM selections", "--json")
    assert done.json == [{"n": 0}]
    assert "not recorded yet" in done.err


def test_the_schema(cli, home):
    """Every view with its columns, for people and programs, and without a store."""
    from hypatia_mem.cli.sql import schema_page
    from hypatia_mem.store.views import VIEWS

    (home / "memory.duckdb").unlink()
    told = cli("sql", "--schema", "--json").json
    text = cli("sql", "--schema").out
    page = schema_page()

    assert [view["view"] for view in told] == list(VIEWS)
    for view in told:
        assert f"{view['view']}: " in text
        assert f"## {view['view']}\n" in page
        for column in view["columns"]:
            assert column["name"] in text
            assert f"| `{column['name']}` | `{column['type']}` |" in page
    assert not (home / "memory.duckdb").exists()


# ---- report -------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("activity", {"sessions": 1, "prompts": 1, "answers": 1}),
        ("projects", {"sessions": 1, "prompts": 1, "answers": 1}),
        ("models", {"model": "m-1", "responses": 1, "output_tokens": 7}),
        ("tools", {"tool": "Bash", "calls": 1, "failures": 1, "failure_rate": 1.0}),
        ("cost", {"model": "m-1", "input_tokens": 2_000_000, "cost": None}),
    ],
)
def test_a_report_of_this_project_and_of_all(cli, told, kind, expected):
    here = cli("report", kind, "--json").json
    everything = cli("report", kind, "--json", "--all-projects").json
    text = cli("report", kind)
    lines = list(csv.reader(io.StringIO(cli("report", kind, "--csv").out)))

    assert (here["report"], here["scopes"]) == (kind, [told, ""])
    assert everything["scopes"] is None
    assert expected.items() <= here["rows"][0].items()
    doubled = {
        key: 2 * n for key, n in expected.items() if key in ("prompts", "calls", "responses")
    }
    if kind == "projects":
        assert len(everything["rows"]) == 2
    else:
        assert doubled.items() <= everything["rows"][0].items()
    assert lines[0] == list(here["rows"][0])
    assert len(lines) == 2
    assert all(word in text.out.splitlines()[0] for word in lines[0])
    assert "subagents" in text.err.lower() or kind not in ("models", "cost")


def test_activity_has_a_bar(cli, told):
    assert cli("report", "activity").out.splitlines()[1].endswith("#" * 30)
    assert len(cli("report", "activity", "--by", "hour").out.splitlines()) == 25


def test_cost_with_a_price(cli, mine, home):
    (home / "config.toml").write_text('[prices."m-1"]\ninput = 3\noutput = 0\n')

    done = cli("report", "cost")

    assert done.out.splitlines()[1].split()[-1] == "6.0"
    assert "Estimate" in done.err


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ((), 1),
        (("--since", "2025-11-29"), 1),
        (("--until", "2025-11-29"), 0),
        (("--since", "2025-12-02"), 0),
        (("--since", "2025-11-29", "--until", "2025-12-01"), 1),
        (("--since", "2025-11-30T12:00Z"), 1),
        (("--since", "2025-11-30T12:00:01Z"), 0),
    ],
)
def test_the_time_of_a_report(cli, told, arguments, rows):
    assert len(cli("report", "tools", "--json", *arguments).json["rows"]) == rows


def test_the_last_days(cli, mine, home):
    from hypatia_mem.cli import context
    from hypatia_mem.store.connection import open_store

    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=NOW) as txn,
    ):
        lately = context.now() - timedelta(hours=30)
        txn.put_messages("s-1", [Message("s-1", "late", "user", "hi", lately)], mine)

    assert cli("report", "activity", "--days", "1").out == "Nothing was said in that time.\n"
    assert len(cli("report", "activity", "--days", "2", "--json").json["rows"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("weather",), "activity, projects, models, tools or cost"),
        (("tools", "--since", "yesterday"), "2026-11-30T14:00"),
        (("tools", "--since", "2025-13-01"), "no date"),
        (("tools", "--since", "2025-11-30", "--until", "2025-11-01"), "not before"),
        (("tools", "--days", "3", "--since", "2025-11-30"), "contradict"),
        (("activity", "--by", "month"), "day or hour"),
        (("tools", "--csv", "--json"), "contradict"),
    ],
)
def test_a_report_that_cannot_be_made_is_a_sentence(cli, told, arguments, said):
    done = cli("report", *arguments)
    assert done.code == 2
    assert said in done.err


# ---- sessions -----------------------------------------------------------------------------------


def test_sessions_are_the_latest_by_their_last_change(cli, mine, home):
    """The newest change first, at most so many, and archived ones only when asked for."""
    from hypatia_mem.store.connection import open_store

    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=NOW) as txn,
    ):
        for n, hours in enumerate((5, 9, 1, 7)):
            ident, moment = f"t-{n}", NOW + timedelta(hours=hours)
            txn.put_session(Session(id=ident, project=mine, started_at=NOW - timedelta(days=n)))
            txn.put_messages(ident, [Message(ident, ident, "user", "hi", moment)], mine)
    cli("sessions", "edit", "t-3", "--archive")

    def ids(*arguments):
        return [row["id"] for row in cli("sessions", "--json", *arguments).json]

    assert ids("--limit", "3") == ["t-1", "t-0", "t-2"]
    assert ids("--limit", "10") == ["t-1", "t-0", "t-2", "s-1"]
    assert set(ids("--archived")) == {"t-1", "t-0", "t-2", "t-3", "s-1"}
    assert ids("--offset", "3") == ["s-1"]

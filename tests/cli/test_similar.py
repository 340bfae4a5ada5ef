"""``similar`` and ``backfill`` from the command line, and ``$similar`` in a query."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.memory.vectors import embedding
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store.connection import open_store

AGENT = Author(Channel.CLI_AGENT)
NOW = datetime(2026, 11, 30, 12)


@pytest.fixture(autouse=True)
def builtin(monkeypatch):
    """The answers do not depend on whether the extra is installed here."""
    monkeypatch.setenv("HYPATIA_MEM_EMBEDDING_MODEL", "builtin")


def rule(name, text, scope="app", tags=("memory", "rule")):
    return Entry(name, text, kind="rule", tags=tags, scopes=(scope,))


@pytest.fixture
def filled(home, once):
    """Six rules and a statement, and forty messages that are nearer to what is asked."""
    once(lambda: fill(home))
    return home


def fill(home):
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_session(Session("s-1", project="app"))
        said = [
            Message("s-1", f"u-{n}", "user", "mock the database", NOW + timedelta(seconds=n))
            for n in range(40)
        ]
        txn.put_messages("s-1", said, "app")
        for number in range(6):
            txn.put_entry(
                rule(f"r{number}", f"rule {number} about how to mock a database in tests")
            )
        txn.put_entry(rule("theirs", "mock the database", scope="other"))
        txn.put_entry(rule("taboo", "never mock it", tags=("memory", "taboo")))
        txn.put_statement(Statement("tests", "mock", "database", scopes=("app",)))


def names(ran):
    return [row.get("name", row.get("triple")) for row in ran.json]


def test_rows_have_the_published_shape(cli, filled):
    (row,) = cli("similar", "mock the databse", "--limit", "1").json
    assert set(row) == {"name", "content", "distance"}
    assert set(row["content"]) == {"format", "data", "tags", "synonyms", "figures", "scopes"}
    assert 0 < row["distance"] < 0.5
    (row,) = cli("similar", "mocked databases", "-t", "statement").json
    assert set(row) == {"triple", "content", "distance"}
    assert row["triple"] == "tests,mock,database"
    both = cli("similar", "mocked databases", "-t", "both", "--all-projects").json
    assert {row["catalog"] for row in both} == {"knowledge", "statement"}
    distances = [row["distance"] for row in both]
    assert distances == sorted(distances)


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--tags", "rule"), id="tags"),
        pytest.param(("--exclude-tags", "message,taboo"), id="exclude tags"),
        pytest.param(("--kind", "rule", "--where", '["$like", "name", "r%"]'), id="kind and where"),
        pytest.param(("--where", '["$contains", "tags", "rule"]'), id="where"),
        pytest.param(
            ("--where", '{"$not": [["$has", "tags", ["message", "taboo"]]]}'), id="object"
        ),
    ],
)
def test_forty_nearer_messages_do_not_crowd_out_six_rules(cli, filled, options):
    assert len(names(cli("similar", "mock the database", "--limit", "40"))) == 40
    found = cli("similar", "mock the database", "--limit", "6", *options)
    assert set(names(found)) == {f"r{number}" for number in range(6)}


def test_similar_in_a_query_is_filtered_before_its_limit(cli, filled):
    query = {
        "$knowledge": [["$similar", "mock the database"], ["$contains", "tags", "rule"]],
        "limit": 6,
    }
    rows = cli("query", json.dumps(query), "--json").json
    assert {row["name"] for row in rows} == {f"r{number}" for number in range(6)}
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    either = ["$knowledge", ["$or", ["$similar", "zebra crossing"], ["$eq", "name", "r1"]]]
    assert names(cli("query", json.dumps(either), "--json")) == ["r1"]
    neither = ["$knowledge", ["$not", ["$similar", "mock the database"]]]
    assert names(cli("query", json.dumps(neither), "--json")) == []


def test_only_the_projects_own_and_the_global_scope_are_read(cli, filled):
    assert "theirs" not in names(cli("similar", "mock the database", "--kind", "rule"))
    assert names(cli("similar", "mock the database", "--scope", "other")) == ["theirs"]
    every = names(cli("similar", "mock the database", "--kind", "rule", "--all-projects"))
    assert {"theirs", "r0"} <= set(every)
    where = '["$contains", "scopes", "other"]'  # says itself what it reads, as in a query
    assert names(cli("similar", "mock the database", "--where", where)) == ["theirs"]


def test_a_condition_may_search_and_compare_itself(cli, filled):
    where = '["$and", ["$search", "never"], ["$similar", "mocking"]]'
    assert names(cli("similar", "mock", "--where", where)) == ["taboo"]


@pytest.mark.deep
def test_pages_and_thresholds(cli, filled):
    every = names(cli("similar", "mock the database", "-t", "both"))
    pages = [
        name
        for offset in ("0", "20", "40", "60")
        for name in names(
            cli("similar", "mock the database", "-t", "both", "--limit", "20", "--offset", offset,
                "--json")
        )
    ]  # fmt: skip
    assert pages == every
    assert len(every) == len(set(every)) == 48
    assert len(names(cli("similar", "mock the database", "--threshold", "0.99"))) == 40
    assert cli("similar", "zebra crossing").out.strip() == "No results found."
    assert len(names(cli("similar", "zebra crossing", "--threshold", "-1"))) == 47


@pytest.mark.deep
def test_what_is_forgotten_is_not_near_any_more(cli, home):
    cli("remember", "never mock the database")
    assert names(cli("similar", "mocked databases"))
    cli("forget", "mock the database")
    assert cli("similar", "mocked databases").out.strip() == "No results found."
    with open_store(home, write=False) as store:
        assert store.run("SELECT * FROM embedding") == []


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        pytest.param(("similar", "x", "-t", "all"), 2, "--target", id="target"),
        pytest.param(("similar", "x", "--kind", "thing"), 2, "thing", id="kind"),
        pytest.param(("similar", "???"), 1, "no letter", id="no letters"),
        pytest.param(("similar", "x", "--where", "tags"), 1, "JSON", id="no JSON"),
        pytest.param(("similar", "x", "--where", "[]"), 2, "JSE condition", id="empty condition"),
        pytest.param(("similar", "x", "--where", '"tags"'), 2, "JSE condition", id="text"),
        pytest.param(("similar", "x", "--where", '["$foo"]'), 1, "unknown operator", id="operator"),
        pytest.param(("similar", "x", "--where", '["$eq", "a b", 1]'), 1, "field", id="field"),
        pytest.param(("similar", "x", "--model", "gpt"), 2, "builtin", id="model"),
        pytest.param(("backfill", "--model", "off"), 1, "switched off", id="off"),
    ],
)
def test_what_is_wrong_is_a_sentence(cli, home, line, code, words):
    ran = cli(*line)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    as_json = cli(*line, "--json")
    assert json.loads(as_json.err)["error"]["exit_code"] == code


def test_switched_off_it_says_how_to_switch_it_on(cli, monkeypatch):
    monkeypatch.setenv("HYPATIA_MEM_EMBEDDING_MODEL", "off")
    for line in (("similar", "x"), ("query", '["$knowledge", ["$similar", "x"]]')):
        ran = cli(*line)
        assert ran.code == 1
        assert "config set embedding_model" in ran.err


def test_a_backfill_closes_with_the_published_line(cli, filled):
    assert cli("backfill", "--status").json["missing"] == 49
    assert (
        cli("backfill").out.strip() == "Backfill complete: 49 vectors created, 0 skipped, 0 errors"
    )
    assert (
        cli("backfill").out.strip() == "Backfill complete: 0 vectors created, 0 skipped, 0 errors"
    )
    assert cli("backfill", "--reembed", "--json").json["created"] == 49
    status = cli("backfill", "--status").json
    assert (status["vectors"], status["missing"], status["dimension"]) == (49, 0, 512)


def test_an_incomplete_ranking_says_so(cli, filled, monkeypatch):
    monkeypatch.setattr(embedding, "WRITE", 10)
    monkeypatch.setattr(embedding, "ASKING_SECONDS", 0.0)
    ran = cli("similar", "mock the database")
    assert "41 things have no vector yet" in ran.err
    assert "hypatia-mem backfill" in ran.err


def test_progress_is_plain_lines_where_there_is_no_terminal(cli, filled, monkeypatch):
    from hypatia_mem.cli import similar

    monkeypatch.setattr(embedding, "WRITE", 20)
    monkeypatch.setattr(similar, "_EVERY_SECONDS", 0.0)
    lines = cli("backfill").out.splitlines()
    assert lines[-1].startswith("Backfill complete: 49")
    assert lines[-2] == "49 of 49"


def test_ctrl_c_keeps_what_was_made(cli, filled, monkeypatch):
    made = []

    class Impatient(type(embedding.load_model("builtin"))):
        def documents(self, texts):
            if made:
                raise KeyboardInterrupt
            made.append(texts)
            return super().documents(texts)

    monkeypatch.setattr(embedding, "WRITE", 10)
    monkeypatch.setattr(embedding, "_loaded", lambda name: Impatient())
    ran = cli("backfill")
    assert ran.code == 130
    assert "run it again" in ran.err
    assert cli("backfill", "--status").json["missing"] < 49
    monkeypatch.undo()


def test_nothing_heavy_is_imported_for_help():
    """numpy and the extra belong to those who ask for vectors."""
    code = (
        "import sys; from hypatia_mem.cli.app import run; run(['similar', '--help']);"
        "print([n for n in ('duckdb', 'numpy', 'tokenizers', 'rich') if n in sys.modules],"
        " file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.deep
def test_a_row_says_when_it_was_true(cli):
    """Else what ended would stand beside what holds as if it held, too."""
    cli(
        "knowledge-create", "bonn", "-d", "the office is in Bonn", "--valid-to", "2024-05-01T00:00Z"
    )
    cli(
        "knowledge-create",
        "kiel",
        "-d",
        "the office is in Kiel",
        "--valid-from",
        "2024-05-01T00:00Z",
    )
    cli("statement-create", "office", "in", "Bonn", "--valid-to", "2024-05-01T00:00Z")
    rows = cli("similar", "the office is in Bonn", "--target", "both", "--json").json
    ends = {row.get("name") or row.get("triple"): row.get("tr_end") for row in rows}
    assert ends == {
        "bonn": "2024-05-01 00:00:00.000000",
        "kiel": None,
        "office,in,Bonn": "2024-05-01 00:00:00.000000",
    }
    assert [row["tr_start"][:10] for row in rows if "tr_start" in row] == ["2024-05-01"]

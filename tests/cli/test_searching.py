"""``search`` as a person types it: its filters, its phrases, its pages, its sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from hypatia_mem.cli import context, querying
from hypatia_mem.model import Author, Channel, Entry, Message
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 5, 10, 12)


@pytest.fixture
def filled(cli, home, monkeypatch):
    """Two sessions of two turns, a memory and a note, spread over three days."""
    monkeypatch.setattr(context, "now", lambda: NOW)
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        for session, ago in (("s-1", 1), ("s-2", 9)):
            at = NOW - timedelta(days=ago)
            said = [
                Message(session, f"{session}-a", "user", "why does the needle break", at),
                Message(
                    session, f"{session}-b", "assistant", "The connection pool of the needle broke",
                    at + timedelta(hours=1),
                ),
            ]  # fmt: skip
            txn.put_messages(session, said, "app")
        txn.put_entry(
            Entry(
                "note", "a needle pool for each connection", tags=("db", "urgent"), scopes=("app",)
            )
        )
        txn.put_entry(Entry("rule:n", "the needle_case, C++", kind="rule", scopes=("",)))
        txn.put_entry(Entry("far", "a needle elsewhere", scopes=("other",)))
    return cli


def keys(ran):
    assert ran.code == 0, ran.err
    return {row["key"] for row in ran.json}


ASKED = {"msg-s-1-1", "msg-s-2-1"}
SAID = {"msg-s-1-2", "msg-s-2-2"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("needle", ASKED | SAID | {"note", "rule:n"}),
        ("needle --all-projects", ASKED | SAID | {"note", "rule:n", "far"}),
        ("needle --role user", ASKED),
        ("needle --role assistant", SAID),
        ("needle --role user --role assistant", ASKED | SAID),
        ("needle --session s-1", {"msg-s-1-1", "msg-s-1-2"}),
        ("needle --session session-s-1 --role user", {"msg-s-1-1"}),
        ("needle --session s", set()),
        ("needle --tag db", {"note"}),
        ("needle --tag db --tag urgent", {"note"}),
        ("needle --tag db --tag message", set()),
        ("needle --tag d", set()),
        ("needle --kind rule", {"rule:n"}),
        ("needle --since 2d", {"msg-s-1-1", "msg-s-1-2", "note", "rule:n"}),
        ("needle --until 2d", {"msg-s-2-1", "msg-s-2-2"}),
        ("needle --since 1w --until 30min", {"msg-s-1-1", "msg-s-1-2"}),
        ("needle --since 2026-05-01 --until 2026-05-01", {"msg-s-2-1", "msg-s-2-2"}),
        ("needle --until 2026-05-01T12:00Z", set()),
        ("needle --until 2026-05-01T12:00:01Z", {"msg-s-2-1"}),
        ("needle --until 2026-05-01T14:30+02:00", {"msg-s-2-1"}),
        ("needle --since 2026-05-01T12:00:01Z --until 2026-05-02", {"msg-s-2-2"}),
        ("needle --keyword pool", SAID | {"note"}),
        ("needle --keyword POOL --keyword connection", SAID | {"note"}),
        ("needle --keyword needle_case", {"rule:n"}),
        ("needle --keyword pools", set()),
        ("--keyword c++", {"rule:n"}),
        ("--keyword break --session s-2", {"msg-s-2-1"}),
        ("needle --threshold 0", ASKED | SAID | {"note", "rule:n"}),
        ("needle --threshold 1000", set()),
        ('"connection pool"', SAID),
        ('needle "connection pool" --session s-1', {"msg-s-1-2"}),
        ("connection pool", SAID | {"note"}),
        ('say("connection', SAID | {"note"}),
    ],
)
def test_what_is_found(filled, arguments, found):
    parts = arguments.split(" --")
    text = [] if parts[0].startswith("--") else [parts[0]]
    options = [f"--{part.lstrip('-')}" for part in (parts[1:] if text else parts)]
    split = [piece for option in options for piece in option.split(" ", 1)]
    assert keys(filled("search", *text, *split, "--json")) == found


def test_a_threshold_is_in_the_units_that_are_printed(filled):
    rows = filled("search", "connection pool", "--json").json
    assert len(rows) == 3
    least = rows[1]["score"]
    kept = filled("search", "connection pool", "--threshold", str(least), "--json").json
    assert kept == [row for row in rows if row["score"] >= least]


def test_pages_are_one_list(filled):
    rows = filled("search", "needle", "--json").json
    pages = [
        filled("search", "needle", "--limit", "2", "--offset", str(offset), "--json").json
        for offset in range(0, 8, 2)
    ]
    assert [row for page in pages for row in page] == rows
    assert [row["id"] for row in rows] == list(range(1, 7))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["--role", "user"], "Missing argument"),
        (["x", "--role", "robot"], "user or assistant"),
        (["x", "--kind", "thing"], "knowledge, rule"),
        (["x", "--since", "yesterdayish"], "--since:"),
        (["x", "--until", "2026-13-01"], "--until:"),
        (["x", "--until", "9999-12-31"], "--until:"),
        (["x", "--keyword", " "], "--keyword needs a word"),
        (["x", "--threshold", "much"], "--threshold"),
        (["x", "--limit", "0"], "--limit"),
    ],
)
def test_what_is_wrong_is_said(filled, arguments, said):
    ran = filled("search", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_an_empty_text_finds_nothing(filled):
    assert filled("search", "").out == "No results found.\n"
    assert filled("search", "", "--json").json == []


def test_it_reads_the_index_alone(filled, home):
    filled("search", "needle")
    program = (
        "import sys; from hypatia_mem.cli.app import run; "
        "code = run(['search', 'needle', '--role', 'user', '--since', '2026-05-01', '--json', "
        "'--keyword', 'needle', '--scope', 'app']); "
        "heavy = {'duckdb', 'networkx', 'anthropic', 'pydantic', 'rich', 'numpy'}; "
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "0 []\n"
    assert '"key"' in done.stdout


def test_an_index_of_another_format_is_built_anew(filled, home):
    before = filled("search", "needle", "--json").json
    assert before
    (home / "index" / "seq").write_text("3 7")
    assert filled("search", "needle", "--json").json == before


@pytest.mark.deep
def test_a_filter_beside_a_search_reaches_what_ranks_last(cli, home):
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        for number in range(130):
            txn.put_entry(Entry(f"loud-{number}", "needle " * 9, scopes=("app",)))
            txn.put_entry(Entry(f"far-{number}", "needle " * 9, scopes=("other",)))
        txn.put_entry(Entry("quiet", "one needle in " + "hay " * 99, tags=("t",), scopes=("app",)))
    tagged = ["$contains", "tags", "t"]
    for conditions, options, count in (
        ([], {}, 100),
        ([], {"limit": -1}, 131),
        ([], {"limit": 40, "offset": 120}, 11),
        ([tagged], {}, 1),
        ([tagged], {"limit": 1}, 1),
        ([["$not", tagged]], {"limit": 500}, 130),
    ):
        query = {"$knowledge": [["$search", "needle"], *conditions], **options}
        rows = cli("query", json.dumps(query), "--json").json
        assert len({row["name"] for row in rows}) == len(rows) == count
        assert not any(row["name"].startswith("far") for row in rows)
    query = {"$knowledge": [["$not", ["$search", "loud"]], ["$search", "needle"]], "limit": 500}
    assert [row["name"] for row in cli("query", json.dumps(query), "--json").json] == ["quiet"]


@pytest.mark.deep
def test_a_scope_beside_a_search_goes_to_the_index_and_changes_no_row(cli, home, monkeypatch):
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        for number in range(230):
            txn.put_entry(Entry(f"loud-{number}", "needle " * 9, scopes=("other",)))
        for number in range(3):
            text = "one needle in " + "hay " * (90 + number)
            txn.put_entry(Entry(f"quiet-{number}", text, scopes=("app", "lib")[: number + 1]))
    asked: list[object] = []
    real = querying.find_keys

    def noted(*given, **more):
        asked.append((more["scopes"], more["limit"]))
        return real(*given, **more)

    app, lib = ["$contains", "scopes", "app"], ["$contains", "scopes", "lib"]
    for conditions, scopes, names in (
        ([app], ("app",), ["quiet-0", "quiet-1", "quiet-2"]),
        ([lib], ("lib",), ["quiet-1", "quiet-2"]),
        ([["$or", lib, app]], ("lib", "app"), ["quiet-0", "quiet-1", "quiet-2"]),
        ([["$not", ["$contains", "scopes", "other"]]], None, ["quiet-0", "quiet-1", "quiet-2"]),
    ):
        query = json.dumps({"$knowledge": [["$search", "needle"], *conditions]})
        with monkeypatch.context() as patched:
            patched.setattr(querying, "_searched", lambda parsed, scopes: scopes)
            plain = cli("query", query, "--json").json
        asked.clear()
        with monkeypatch.context() as patched:
            patched.setattr(querying, "find_keys", noted)
            rows = cli("query", query, "--json").json
        assert rows == plain
        assert sorted(row["name"] for row in rows) == names
        assert asked[0][0] == scopes
        assert len(asked) == (1 if scopes else 2)  # without, the loud ones come first


def test_what_was_in_this_project_once_is_found_as_it_was_known(cli, home, monkeypatch):
    monkeypatch.setattr(context, "now", lambda: NOW)
    cli("knowledge-create", "x", "-d", "a needle", "--scopes", "app")
    monkeypatch.setattr(context, "now", lambda: NOW + timedelta(days=2))
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    cli("knowledge-update", "x", "--scopes", "other")
    query = {"$knowledge": [["$search", "needle"]]}
    assert cli("query", json.dumps(query), "--json").json == []
    query["as_known_at"] = "2026-05-11"
    assert [row["name"] for row in cli("query", json.dumps(query), "--json").json] == ["x"]

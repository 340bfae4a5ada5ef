"""A secret that an older version let into the store is printed by no command; all else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.capture.corpus.lookalikes import BY_KIND
from tests.capture.corpus.secrets import body
from tests.memory.cascade_kit import NOW, fill, talk

TOKEN = "ghp_" + body("shown", 36)
PASSWORD = "correct7horse"
SAYS = f"the deploy token is {TOKEN} and DB_PASSWORD={PASSWORD} for crane"


@pytest.fixture
def leaky(cli, home, once):
    """A store into which secrets were written by hand, in every kind of row."""

    def make() -> None:
        fill(home, talk(2), scope="app")
        for line in (
            ("remember", "always use the crane for X1"),
            ("remember", "prefer crane X2", "--kind", "preference"),
            ("knowledge-create", "crane", "-d", "X3 crane"),
            ("fact", "set", "crane place", "X4"),
            ("goal", "set", "move the crane X5"),
            ("statement-create", "crane", "uses", "X6 crane"),
            ("remember", "maybe crane X7", "--candidate"),
        ):
            assert cli(*line).code == 0, line
        with open_store(home, write=True) as store:
            store.execute(r"UPDATE entry SET content = regexp_replace(content, 'X\d', ?)", [SAYS])
            store.execute(
                "UPDATE entry SET content = content || chr(10) || ? WHERE name = 'msg-s-1-1'",
                [SAYS],
            )
            store.execute("UPDATE statement SET content = ? WHERE subject = 'crane'", [SAYS])
            store.execute("UPDATE session SET title = ? WHERE id = 's-1'", [SAYS])
        SearchIndex(home).clear()
        assert cli("worker", "drain").code == 0

    here = Path.cwd()
    once(make)
    os.chdir(here)  # a worker that runs in this process goes to its home
    return home


READS = (
    ("rules",),
    ("show", "crane"),
    ("show", "msg-s-1-1"),
    ("show", "s-1"),
    ("sessions",),
    ("search", "crane"),
    ("query", '["$knowledge", ["$contains", "tags", "rule"]]'),
    ("query", '["$statement"]'),
    ("knowledge-get", "crane"),
    ("ask", "crane"),
    ("sql", "SELECT name, content FROM knowledge"),
    ("fact", "list"),
    ("goal", "list"),
    ("brief",),
    ("handoff",),
    ("review",),
    ("history", "crane"),
    ("session-current",),
    ("graph", "export", "--format", "dot"),
    ("forget", "crane", "--dry-run"),
    ("provenance", "crane"),
    ("why",),
)


@pytest.mark.deep
@pytest.mark.parametrize("line", READS, ids=" ".join)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_read_prints_a_secret(cli, leaky, line, form):
    done = cli(*line, *form)
    assert done.code == 0, done.err
    for secret in (TOKEN, PASSWORD):
        assert secret not in done.out
        assert secret not in done.err
    if form:
        json.loads(done.out)


def test_what_stands_around_a_secret_is_printed(cli, leaky):
    for line in (("rules",), ("show", "crane"), ("search", "crane"), ("fact", "list")):
        out = cli(*line).out
        assert "the deploy token is [REDACTED:" in out, line
        assert "crane" in out


def test_sql_without_a_secret_in_every_text_form(cli, leaky, tmp_path):
    for form in ("--csv", "--json"):
        file = tmp_path / f"out{form}"
        assert cli("sql", "SELECT content FROM knowledge", form, "-o", str(file)).code == 0
        assert TOKEN not in file.read_text()
        assert "crane" in file.read_text()


@pytest.mark.deep
@pytest.mark.parametrize("kind", BY_KIND)
def test_what_only_looks_like_a_secret_is_printed_as_it_is(cli, home, kind):
    """Commits, ids, digests, paths, icons and the keys of documentation, by every form of output."""
    text = "\n".join(BY_KIND[kind])
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn:
            txn.put_entry(Entry("plain", text, scopes=("app",)))
    assert text in cli("show", "plain").out
    assert cli("show", "plain", "--json").json["content"]["data"] == text
    assert cli("sql", "SELECT content FROM knowledge", "--json").json == [{"content": text}]


def test_pages_go_on_and_ids_stay(cli, leaky):
    """What the program itself goes by is never redacted."""
    page = cli("sessions", "--cursor", "first", "--limit", "1", "--json").json
    assert page["next"] is None or cli("sessions", "--cursor", page["next"], "--json").code == 0
    assert cli("sessions", "--json").json[0]["id"] == "s-1"
    log = cli("log", "--json").json
    assert all(len(row["op_id"]) > 8 and "REDACTED" not in row["op_id"] for row in log)


def test_doctor_counts_them_and_names_the_command_that_takes_them_out(cli, leaky, home):
    def found() -> dict[str, str]:
        checks = cli("doctor", "--json").json["checks"]
        return next(one for one in checks if one["name"] == "secrets")

    said = found()
    assert said["state"] == "note"
    assert "hold what looks like a secret" in said["says"]
    assert "erase --id NAME" in said["remedy"]
    assert TOKEN not in json.dumps(said)
    with open_store(home, write=True) as store:
        for table in ("entry", "statement"):
            store.execute(f"UPDATE {table} SET content = 'crane'")
    assert found()["state"] == "ok"
    assert "none in" in found()["says"]


@pytest.mark.deep
@pytest.mark.parametrize("before", range(120, 200, 8))
def test_a_secret_at_the_edge_of_what_a_search_shows_is_not_shown_in_part(cli, home, before):
    text = (
        "word " * 60 + "my password is " + PASSWORD + " " + "x" * before + " needle " + "y " * 500
    )
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn:
            txn.put_entry(Entry("long", text, scopes=("app",)))
    assert cli("rules").code == 0
    SearchIndex(home).clear()
    out = cli("search", "needle").out
    assert "needle" in out
    assert not any(PASSWORD[at : at + 6] in out for at in range(len(PASSWORD) - 5))

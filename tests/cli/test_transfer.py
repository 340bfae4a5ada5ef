"""Export and import: everything there and back, nothing changed on the way, nothing forgotten in it."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory import curate
from hypatia_mem.memory.sharing import archive, exporting, importing
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement, Trust
from hypatia_mem.store import incoming
from hypatia_mem.store.connection import open_store

AT = datetime(2026, 5, 1, 10, 30, 0, 123456)
PNG = b"\x89PNG" + bytes(range(256)) * 9
SECRET = "the codename is bluebird"


def fill(home, picture):
    """Put something of every kind into a home, something withheld and something forgotten."""
    agent = Author(Channel.CLI_AGENT)
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.HOOK), now=AT) as txn:
            txn.put_session(Session("s1", project="app", title="First", tags=("t",), started_at=AT))
            said = [
                Message("s1", f"u{n}", "user", f"line\n{n} 日本 🎉", AT, parts=({"type": "text"},))
                for n in range(3)
            ]
            txn.put_messages("s1", said, "app")
            for entry in (
                Entry(
                    "rule:x", "No mocks.", tags=("memory", "rule"), scopes=("app", ""), kind="rule"
                ),
                Entry("hidden", "maybe", scopes=("app",), trust=Trust.CANDIDATE),
                Entry(
                    "off",
                    "quiet",
                    suppressed=True,
                    valid_from=AT,
                    synonyms=("aus",),
                    pinned=True,
                    scopes=("",),
                ),
            ):
                txn.put_entry(entry)
            txn.put_statement(
                Statement(
                    "a, b", "knows", 'c "d"', "since", synonyms={"subject": ["A"]}, scopes=("",)
                )
            )
    picture.write_bytes(PNG)
    archive.store_file(home, picture, name="deep/fig.png", scopes=("app",), author=agent, now=AT)
    curate.remember(home, SECRET, kind="memory", scope="app", author=agent, now=AT)
    curate.forget(home, "bluebird codename", scope="app", author=agent, now=AT)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Such a home, made once."""
    folder = tmp_path_factory.mktemp("filled")
    fill(folder / "home", folder / "fig.png")
    return folder / "home"


@pytest.fixture(scope="module")
def sample(filled, tmp_path_factory):
    """An export of it."""
    return exporting.export_shelf(filled, tmp_path_factory.mktemp("sample") / "export").folder


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    """A home into which nothing may ever get: whoever used it sees to that."""
    home = tmp_path_factory.mktemp("blank") / "home"
    with open_store(home, write=True):
        pass
    return home


@pytest.fixture
def exported(sample, tmp_path):
    """A copy of that export, to be changed."""
    return Path(shutil.copytree(sample, tmp_path / "export"))


@pytest.fixture
def given(cli, home, filled):
    """The command line on a copy of such a home."""
    shutil.copytree(filled, home, dirs_exist_ok=True)
    return cli


@pytest.fixture
def shelf(cli, tmp_path):
    """An empty shelf called ``new``."""
    cli("connect", str(tmp_path / "new"))
    return tmp_path / "new"


def refusal(home, folder, **options):
    """Return the error of an import that must be refused and leave nothing behind."""
    with pytest.raises(HypatiaError) as caught:
        importing.import_shelf(home, folder, author=Author(Channel.CLI_PERSON), now=AT, **options)
    with open_store(home, write=False) as store:
        assert not any(store.counts().values())
    assert not (home / "archive").exists()
    return caught.value


def lines(folder, table):
    return [json.loads(line) for line in (folder / f"{table}.jsonl").read_text().splitlines()]


def rewrite(folder, name, data):
    """Change a file of an export and let the manifest agree, as a forger would."""
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    said = manifest["files"].setdefault(name, {})
    said.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    if name.endswith(".jsonl"):
        said["rows"] = data.count(b"\n")
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.deep
def test_everything_comes_back(given, shelf, tmp_path):
    """A second export of what was imported is the same, file by file."""
    exported = tmp_path / "export"
    given("export", "default", str(exported))
    done = given("import", str(exported), "-s", "new", "--json")
    given("export", "new", str(tmp_path / "again"))

    first = json.loads((exported / "manifest.json").read_text())
    second = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert done.json["rows"]["entry"] == len(lines(exported, "entry")) == 7
    assert (done.json["files"], done.json["refused"]) == (1, 0)
    assert first["files"] == second["files"]
    assert first["key_id"] == second["key_id"]
    assert "archive/deep/fig.png" in first["files"]

    for command in (
        ["query", '["$knowledge"]'],
        ["query", '["$statement"]'],
        ["sessions", "--json"],
        ["show", "s1", "--raw-parts", "--json"],
        ["rules", "--json"],
    ):
        assert given(*command, "-s", "new").json == given(*command).json, command
    found = given("search", "mocks", "-s", "new", "--json").json
    assert [row["key"] for row in found] == ["rule:x"]
    path = Path(given("archive-get", "deep/fig.png", "-s", "new").out.strip())
    assert path.parent.parent == shelf / "archive"
    assert path.read_bytes() == PNG


@pytest.mark.deep
def test_the_texts_and_the_modes(given, tmp_path, shelf):
    """What a person reads; and nobody else reads the files."""
    folder = tmp_path / "a" / "b"
    out = given("export", "default", str(folder)).out.splitlines()
    imported = given("import", str(folder), "-s", "new").out.splitlines()

    assert out == [
        f"Exported shelf 'default' to {folder}",
        "  7 entries, 2 statements, 1 sessions, 1 files",
    ]
    assert imported == [
        f"Imported {folder} into shelf 'new'",
        "  7 entries, 2 statements, 1 sessions, 1 files",
    ]
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert [path.name for path in folder.parent.iterdir()] == ["b"]
    assert stat.S_IMODE((shelf / "archive" / "deep" / "fig.png").stat().st_mode) == 0o600


def test_what_was_forgotten_is_not_in_it_and_stays_forgotten(cli, exported, shelf):
    """Neither its words nor its name; its digest works under the key that travels along."""
    everything = b"".join(path.read_bytes() for path in exported.rglob("*") if path.is_file())
    cli("import", str(exported), "-s", "new")

    assert b"bluebird" not in everything.lower()
    assert len(lines(exported, "tombstone")) == 3  # what it says, what it looks like, its name
    again = cli("remember", SECRET.upper() + "!", "-s", "new")
    assert again.code == 1
    assert "forgotten before" in again.err
    assert cli("remember", "something else", "-s", "new").code == 0


@pytest.mark.deep
def test_tombstones_win_over_an_older_export(cli, given, tmp_path, home):
    """What is forgotten after the export was made does not come back with it."""
    cli("remember", "the port is 5433")
    cli("knowledge-create", "about", "-d", "words")
    [name] = [row["name"] for row in cli("rules", "--kind", "memory", "--json").json]
    cli("statement-create", name, "seen_in", "about")
    cli("export", "default", str(tmp_path / "old"))
    cli("forget", "--id", name, "--id", "about")
    with open_store(home, write=True) as store:  # emptied, tombstones and ledger left
        for table in ("entry", "statement", "message", "session"):
            store.execute(f"DELETE FROM {table}")

    done = cli("import", str(tmp_path / "old"))

    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].startswith("  4 left out: forgotten before")
    assert "5433" not in cli("query", '["$knowledge"]').out
    assert "seen_in" not in cli("query", '["$statement"]').out
    assert cli("knowledge-get", "rule:x").json["content"]["data"] == "No mocks."
    assert {row["channel"] for row in cli("log", "--json", "--limit", "9").json} == {"import"}


@pytest.mark.deep
def test_only_an_empty_shelf_takes_it(given, exported, tmp_path):
    """Merging two memories is not what was asked; one with a key of its own learns the other."""
    full = given("import", str(exported))
    assert (full.code, "goes into an empty shelf" in full.err) == (1, True)

    given("connect", str(tmp_path / "used"))
    given("knowledge-create", "x", "-s", "used")
    given("knowledge-delete", "x", "-s", "used")
    used = given("import", str(exported), "-s", "used")
    assert used.code == 0
    again = given("remember", SECRET, "-s", "used")
    assert (again.code, "forgotten before" in again.err) == (1, True)


def test_a_dry_run_verifies_and_stores_nothing(cli, exported, shelf):
    """And says what would come in."""
    before = {path: path.read_bytes() for path in shelf.rglob("*") if path.is_file()}
    done = cli("import", str(exported), "-s", "new", "--dry-run")

    assert done.out.startswith(f"Would import {exported} into shelf 'new'\n  7 entries")
    assert {path: path.read_bytes() for path in shelf.rglob("*") if path.is_file()} == before
    (exported / "entry.jsonl").write_text("")
    assert cli("import", str(exported), "-s", "new", "--dry-run").code == 1


FILES = ["entry.jsonl", "message.jsonl", "tombstone.jsonl", "key", "archive/deep/fig.png"]


@pytest.mark.deep
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["flip", "cut", "grow", "gone", "link"])
def test_a_changed_file_is_refused(exported, blank, tmp_path, name, how):
    """Every file, every way; nothing of the export is in the shelf afterwards."""
    path = exported / name
    data = path.read_bytes()
    if how == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {"flip": bytes([data[0] ^ 1]) + data[1:], "cut": data[:-1], "grow": data + b"\n"}[how]
        )

    error = refusal(blank, exported)

    assert (error.kind, error.exit_code) == ("refused", 1)
    assert error.message.startswith(name)


@pytest.mark.parametrize(
    "name",
    ["../outside", "archive/../../outside", "/etc/passwd", "archive//etc/passwd", "memory.duckdb",
     "archive/.hidden", "mutation.jsonl", "archive/../key", "..\\outside", "config.toml"],
)  # fmt: skip
def test_no_file_leads_out_of_the_export_or_the_shelf(exported, blank, tmp_path, name):
    """Whatever the manifest says of it."""
    (tmp_path / "outside").write_text("x")
    manifest = json.loads((exported / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    (exported / "manifest.json").write_text(json.dumps(manifest))

    assert "no place in it" in refusal(blank, exported).message


@pytest.mark.deep
@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        ("entry", {"name": ""}, "line 1: name is empty"),
        ("entry", {"name": 7}, "name has a value of the wrong kind"),
        ("entry", {"trust": "certain"}, "trust has an unknown value"),
        ("entry", {"tags": "rule"}, "tags has a value of the wrong kind"),
        ("entry", {"tags": [1]}, "tags has a value of the wrong kind"),
        ("entry", {"created_at": "yesterday"}, "created_at has a value of the wrong kind"),
        ("entry", {"created_at": None}, "created_at is null"),
        ("entry", {"pinned": 1}, "pinned has a value of the wrong kind"),
        ("entry", {"priority": 2**40}, "priority has a value of the wrong kind"),
        ("entry", {"seq": 5}, "holds 'seq'"),
        ("entry", {"name'; DROP TABLE entry; --": 1}, "holds"),
        ("statement", {"object": " "}, "object is empty"),
        ("statement", {"synonyms": "[1"}, "synonyms is no JSON"),
        ("message", {"parts": "{}"}, "parts is no JSON"),
        ("tombstone", {"digest": None}, "digest is null"),
    ],
)
def test_rows_that_no_command_would_have_stored_are_refused(exported, blank, table, change, words):
    """Also when the checksums agree: an export may have been written by hand."""
    rows = lines(exported, table)
    rows[0].update(change)
    rewrite(exported, f"{table}.jsonl", "".join(json.dumps(r) + "\n" for r in rows).encode())

    assert words in refusal(blank, exported).message


def test_what_an_older_version_stored_comes_in_as_it_is_stored_now(exported, tmp_path):
    """In a scope that can be asked for, and with one spelling of a predicate; nothing is lost."""
    entries = lines(exported, "entry")
    name = next(row["name"] for row in entries if row["name"] == "rule:x")
    entries = [{**row, "scopes": []} if row["name"] == name else row for row in entries]
    rewrite(exported, "entry.jsonl", "".join(json.dumps(r) + "\n" for r in entries).encode())
    said = lines(exported, "statement")
    (known,) = (row for row in said if row["predicate"] == "knows")
    spelt = [{**known, "predicate": p} for p in ("worksAt", "works_at", "Works At", "belongs-to")]
    rows = [*said, *spelt, {**known, "object": "nowhere", "scopes": []}]
    rewrite(exported, "statement.jsonl", "".join(json.dumps(r) + "\n" for r in rows).encode())

    home = tmp_path / "new"
    importing.import_shelf(home, exported, author=Author(Channel.CLI_PERSON), now=AT)

    with open_store(home, write=False) as store:
        assert store.entry(name).scopes == ("unscoped",)
        told = sorted(
            (one.predicate, one.object, one.scopes) for one in store.statements_of("a, b")
        )
    assert told == [
        ("belongs_to", 'c "d"', ("",)),
        ("knows", 'c "d"', ("",)),
        ("knows", "nowhere", ("unscoped",)),
        ("works_at", 'c "d"', ("",)),
    ]


def test_columns_of_older_versions_may_be_missing(cli, exported, shelf):
    """The twin: what is not there gets its empty value."""
    rows = lines(exported, "entry")
    for row in rows:
        for name in ("category", "priority", "pinned", "synonyms", "updated_at"):
            del row[name]
    rewrite(exported, "entry.jsonl", "".join(json.dumps(r) + "\n" for r in rows).encode())

    assert cli("import", str(exported), "-s", "new").code == 0
    assert cli("rules", "-s", "new", "--json").json[0]["pinned"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no export in"),
        ("", "is not the manifest of an export"),
        ("[]", "is not the manifest of an export"),
        ('{"format": "another"}', "is not the manifest of an export"),
        ("[" * 100_000, "is not the manifest of an export"),
    ],
)
def test_what_is_no_export(exported, blank, text, words):
    """Said before anything is opened."""
    path = exported / "manifest.json"
    path.unlink() if text is None else path.write_text(text)

    assert words in refusal(blank, exported).message


def test_an_export_of_a_newer_program_is_not_guessed_at(exported, blank):
    """With the exit code of a store that is too new."""
    manifest = json.loads((exported / "manifest.json").read_text())
    manifest["steps"].append("m999_future")
    (exported / "manifest.json").write_text(json.dumps(manifest))

    assert refusal(blank, exported).exit_code == 7


@pytest.mark.deep
def test_an_import_that_was_cut_short_goes_on(cli, exported, shelf, tmp_path, monkeypatch):
    """Each row once, wherever it stopped; another export cannot be mixed in meanwhile."""
    monkeypatch.setattr(importing, "_BATCH_ROWS", 2)
    real = incoming.Incoming.put
    calls = 0

    def failing(self, table, found):
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise OSError(28, "No space left on device")
        return real(self, table, found)

    shutil.copytree(exported, tmp_path / "other")
    manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(incoming.Incoming, "put", failing)
    codes = [cli("import", str(exported), "-s", "new").code]
    refused = cli("import", str(tmp_path / "other"), "-s", "new")
    while codes[-1] and len(codes) < 30:
        codes.append(cli("import", str(exported), "-s", "new").code)
    cli("export", "new", str(tmp_path / "again"))

    assert len(codes) > 2
    assert codes[-1] == 0
    assert "another export was begun" in refused.err
    first = json.loads((exported / "manifest.json").read_text())["files"]
    second = json.loads((tmp_path / "again" / "manifest.json").read_text())["files"]
    assert first == second
    assert cli("import", str(exported), "-s", "new").code == 1  # complete, so not empty


def test_sharing_leaves_the_key_and_its_digests_out(given, tmp_path, shelf):
    """Whoever is given the export must not be able to try what was forgotten."""
    given("export", "default", str(tmp_path / "shared"), "--share")
    names = {path.name for path in (tmp_path / "shared").iterdir()}

    assert {"entry.jsonl", "manifest.json"} < names
    assert not names & {"key", "tombstone.jsonl"}
    assert given("import", str(tmp_path / "shared"), "-s", "new").code == 0
    assert given("knowledge-get", "rule:x", "-s", "new").json["content"]["data"] == "No mocks."


def test_an_export_replaces_nothing(given, home, tmp_path):
    """Not a folder with something in it, not a file; and not inside the memory."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "empty").mkdir()

    assert given("export", "default", str(tmp_path / "full")).code == 1
    assert given("export", "default", str(home / "export")).code == 2
    assert given("export", "nobody", str(tmp_path / "x")).err.startswith("Error: shelf error:")
    assert given("export", "default", str(tmp_path / "empty")).code == 0
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert not left


def test_a_kept_file_that_is_gone_is_told(given, home, tmp_path):
    """The rest is exported all the same."""
    (home / "archive" / "deep" / "fig.png").unlink()

    done = given("export", "default", str(tmp_path / "export"))

    assert done.code == 0
    assert "archive://deep/fig.png, and there is no such file" in done.err


def test_both_ways_say_how_many_texts_held_a_secret(cli, home, tmp_path):
    """None is said of a memory without one."""
    cli("remember", "no mocks")
    assert cli("export", "default", str(tmp_path / "a"), "--json").json["redacted"] == 0
    assert "secret" not in cli("export", "default", str(tmp_path / "b")).out
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.HOOK), now=AT) as txn,
    ):
        txn.put_entry(Entry("leak", "token ghp_" + "a1B2" * 9, scopes=("app",)))
    assert cli("export", "default", str(tmp_path / "c"), "--json").json["redacted"] == 1
    assert "1 text with a secret" in cli("export", "default", str(tmp_path / "d"), "--share").out

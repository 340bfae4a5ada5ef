"""A secret that got into the store past the hook: it leaves in no export and comes in by none."""

from __future__ import annotations

import json
import shutil
from datetime import datetime

import pytest

from hypatia_mem.memory import compose, conduct
from hypatia_mem.memory.sharing import exporting, importing, redacting
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store import rows
from hypatia_mem.store.connection import open_store

AT = datetime(2026, 5, 1, 10, 30)
PERSON = Author(Channel.CLI_PERSON)
TOKEN = "ghp_" + "a1B2" * 9
PASSWORD = "https://bob:hunter2secret@example.org/x"
SECRETS = (TOKEN, "hunter2secret")
ALIKE = (
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 of 6ba7b810-9dad-11d1-80b4-00c04fd430c8\n"
    "  in /usr/lib/python3.11/site-packages, the key of the token table is `id`. 日本 🎉"
)


def fill(home, *, clean=False):
    """Put a secret wherever a text may be, by the gateway itself; ``clean``: look-alikes only."""
    token, login = (ALIKE, ALIKE) if clean else (f"use {TOKEN} there", f"see {PASSWORD}")
    name = "plain" if clean else f"of {TOKEN}"
    parts = ({"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9X", "input": login},)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=AT) as txn:
        txn.put_session(Session("s1", project="app", title=token[:60], started_at=AT))
        said = [
            Message("s1", "u1", "user", f"first {login}", AT, parts=parts),
            Message("s1", "u2", "assistant", f"answer {token}", AT),
        ]
        txn.put_messages("s1", said, "app")
        for one in (
            Entry("rule:x", f"Always {token}", kind="rule", scopes=("app",)),
            Entry("taboo:x", ALIKE, kind="taboo", scopes=("app",)),
            Entry(name, login, tags=(token[:70],), synonyms=(token,), scopes=("app",)),
        ):
            txn.put_entry(one)
        txn.put_statement(
            Statement(name, "is", "x", login, synonyms={"subject": [token]}, scopes=("app",))
        )
    return name


@pytest.fixture
def home(tmp_path):
    fill(tmp_path / "home")
    return tmp_path / "home"


def written(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))).decode()


def words(content):
    return content.partition("\n## Content\n")[2]


def table(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def held(home):
    """Return all that a memory holds, and its index: every file's bytes and every row."""
    with open_store(home, write=False) as store:
        said = [
            str(row)
            for one in ("entry", "statement", "message", "session", "mutation", "image", "version")
            for row in store.run(f"SELECT * FROM {one}")
        ]
    files = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    return "\n".join(said) + files.decode("latin-1")


def raw(home, folder, monkeypatch):
    """Export as an older version did: with the secrets."""
    with monkeypatch.context() as patch:
        patch.setattr(redacting.Redactor, "row", lambda self, table, row: dict(row))
        return exporting.export_shelf(home, folder).folder


@pytest.mark.parametrize("shared", [False, True])
def test_no_secret_leaves_and_what_is_alike_does(home, tmp_path, shared):
    done = exporting.export_shelf(home, tmp_path / "out", shared=shared)
    text = written(done.folder)
    assert not [one for one in SECRETS if one in text]
    assert done.redacted >= 9
    assert "use [REDACTED:github-token] there" in text
    assert json.dumps(ALIKE, ensure_ascii=False) in text
    assert "toolu_01A09q90qw90lq917835lq9X" in text
    said = {row["name"]: row["content"] for row in table(done.folder, "entry")}
    for row in table(done.folder, "message"):
        assert row["text_digest"] == rows.digest(words(said[f"msg-s1-{row['turn']}"]))
    (statement,) = [one for one in table(done.folder, "statement") if one["predicate"] == "is"]
    assert statement["subject"] in said


@pytest.mark.parametrize("shared", [False, True])
def test_what_holds_no_secret_is_written_byte_for_byte(tmp_path, monkeypatch, shared):
    fill(tmp_path / "home", clean=True)
    done = exporting.export_shelf(tmp_path / "home", tmp_path / "out", shared=shared)
    assert done.redacted == 0
    if not shared:
        before = raw(tmp_path / "home", tmp_path / "raw", monkeypatch)
        for path in before.glob("*.jsonl"):
            assert path.read_bytes() == (done.folder / path.name).read_bytes()


def test_an_import_takes_no_secret_in_nor_into_its_index(home, tmp_path, monkeypatch):
    folder = raw(home, tmp_path / "out", monkeypatch)
    assert all(one in written(folder) for one in SECRETS)
    other = tmp_path / "other"
    tried = importing.import_shelf(other, folder, author=PERSON, now=AT, dry_run=True)
    done = importing.import_shelf(other, folder, author=PERSON, now=AT)
    assert done.redacted == tried.redacted >= 9
    found = held(other)
    assert not [one for one in SECRETS if one in found]
    with open_store(other, write=False) as store:
        assert store.entry("rule:x").content == "Always use [REDACTED:github-token] there"
        assert store.entry("taboo:x").content == ALIKE
        assert store.entry("of [REDACTED:github-token]") is not None
        said = words(store.entry("msg-s1-1").content)
        assert said.startswith("first see https://bob:[REDACTED")
        (row,) = store.run("SELECT text_digest, parts FROM message WHERE turn = 1")
        assert row["text_digest"] == rows.digest(said)
        assert json.loads(row["parts"])[0]["id"] == "toolu_01A09q90qw90lq917835lq9X"
    again = exporting.export_shelf(other, tmp_path / "again")
    assert again.redacted == 0


def test_two_names_stay_two(tmp_path, monkeypatch):
    """Also beside one that was redacted before, and in whatever part an import is done."""
    home = tmp_path / "home"
    tokens = ["ghp_" + pair * 9 for pair in ("a1B2", "c3D4")]
    names = ["[REDACTED:github-token]", *tokens]
    with open_store(home, write=True) as store, store.transaction(PERSON, now=AT) as txn:
        for number, name in enumerate(names):
            txn.put_entry(Entry(name, f"text {number}", scopes=("app",)))
    wanted = {"[REDACTED:github-token]": "text 0"}
    folder = raw(home, tmp_path / "raw", monkeypatch)
    importing.import_shelf(tmp_path / "other", folder, author=PERSON, now=AT)
    exporting.export_shelf(tmp_path / "other", tmp_path / "a")
    exporting.export_shelf(home, tmp_path / "b")
    for made in (tmp_path / "a", tmp_path / "b"):
        found = {row["name"]: row["content"] for row in table(made, "entry")}
        assert wanted.items() <= found.items()
        assert sorted(found.values()) == ["text 0", "text 1", "text 2"]
        assert not any(token in name for token in tokens for name in found)


def test_a_brief_tells_no_secret(home, tmp_path):
    with open_store(home, write=False) as store:
        text = compose.brief_text(store, "app")
        told = compose.told(store, "app")
    assert not [one for one in SECRETS if one in text + str(told)]
    assert "Always use [REDACTED:github-token] there" in text
    assert "> answer use [REDACTED:github-token] there" in text
    assert "9fceb02d0ae598e95dc970b74767f19372d61af8" in text
    shutil.rmtree(home)
    fill(home, clean=True)
    with open_store(home, write=False) as store:
        assert "REDACTED" not in compose.brief_text(store, "app")


def test_the_scan_names_the_command_that_erases(home):
    from hypatia_mem.config import Settings

    (found,) = conduct.check(home, Settings(), now=AT, rules=[1])
    assert "hypatia-mem erase --id NAME" in found.remedy
    assert "rule:x" in found.names or found.count > len(found.names)
    assert TOKEN not in str(found)

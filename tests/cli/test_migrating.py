"""``migrate``: an older store is shown, backed up as it is, and brought up; once."""

from __future__ import annotations

import pytest

from hypatia_mem.memory import backup
from hypatia_mem.store.connection import FILE, attached, open_store
from hypatia_mem.store.migrations import MIGRATIONS
from tests.store.old_stores import WORDS, make_old, rows

NAMES = [name for name, _ in MIGRATIONS]
LAST = len(NAMES)


@pytest.fixture
def old(home):
    """Put a store of the first steps in the place of the empty one."""

    def make(count):
        (home / FILE).unlink()
        make_old(home, count)
        return home

    return make


@pytest.mark.parametrize("count", [1, 2, LAST - 1])
def test_an_older_store_is_shown_then_backed_up_and_brought_up_once(cli, old, count):
    home = old(count)
    bytes_ = (home / FILE).read_bytes()
    shown = cli("migrate", "--dry-run", "--json").json
    assert (shown["was"], shown["schema"], shown["steps"], shown["backup"]) == (
        NAMES[count - 1], NAMES[count - 1], NAMES[count:], None,
    )  # fmt: skip
    assert (home / FILE).read_bytes() == bytes_
    assert backup.backups(home) == []
    said = cli("migrate", "--dry-run").out
    assert all(name in said for name in NAMES[count:])
    assert "Nothing was changed" in said

    done = cli("migrate", "--json").json
    assert (done["was"], done["schema"], done["steps"]) == (
        NAMES[count - 1], NAMES[-1], NAMES[count:],
    )  # fmt: skip
    assert done["reconstructed"] == (1 if count == 1 else 0)
    with open_store(home, write=False) as store:
        assert store.entry("a").content == WORDS
    (saved,) = backup.backups(home)
    assert saved.id == done["backup"]
    with attached(saved.store, write=False) as kb:  # of the schema that was
        assert [row["name"] for row in rows(kb, "migration")] == NAMES[:count]
    assert backup.verify(home, saved) == []

    again = cli("migrate", "--json").json
    assert (again["steps"], again["backup"], again["schema"]) == ([], None, NAMES[-1])
    assert len(backup.backups(home)) == 1
    assert "nothing to do" in cli("migrate").out


def test_a_backup_of_an_older_schema_can_be_gone_back_to(cli, old, tmp_path):
    old(1)
    cli("migrate")
    into = tmp_path / "back"
    assert cli("backup", "restore", "latest", "--into", str(into)).code == 0
    with open_store(into, write=False) as store:
        assert store.entry("a").content == WORDS


def test_history_marks_what_was_reconstructed_and_nothing_else(cli, old):
    old(1)
    cli("migrate")
    assert [row["reconstructed"] for row in history(cli)] == [True, False]
    first, second = cli("history", "a", "--all-projects").out.splitlines()
    assert "(reconstructed)" in first
    assert "(reconstructed)" not in second


def history(cli):
    return cli("history", "a", "--all-projects", "--json").json["versions"]


def test_todays_store_has_nothing_to_run_and_nothing_reconstructed(cli):
    cli("knowledge-create", "x", "-d", WORDS)
    said = cli("migrate")
    assert said.code == 0
    assert "nothing to do" in said.out
    assert "Nothing had to be reconstructed, and nothing is lost." in said.out


def test_what_cannot_be_recovered_is_told(cli, old):
    home = old(1)
    with attached(home / FILE, write=True) as kb:
        kb.execute("INSERT INTO version SELECT * REPLACE ('gone' AS name) FROM version")
    assert cli("migrate", "--dry-run", "--json").json["lost"] == 1
    assert "Cannot be recovered: 1 earlier state" in cli("migrate").out


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ("INSERT INTO migration VALUES ('m999_future', now()::TIMESTAMP)", 7, "newer hypatia-mem"),
        ("DELETE FROM migration", 1, "no note of which schema"),
        ("DROP TABLE migration", 1, "no note of which schema"),
    ],
)
def test_a_newer_or_unversioned_store_is_refused_and_left_alone(
    cli, home, change, code, said, more
):
    with attached(home / FILE, write=True) as kb:
        kb.execute(change)
    bytes_ = (home / FILE).read_bytes()
    refused = cli("migrate", *more)
    assert (refused.code, said in refused.err) == (code, True)
    assert (home / FILE).read_bytes() == bytes_
    assert backup.backups(home) == []


def test_a_step_that_fails_leaves_the_backup_and_says_so(cli, old, monkeypatch):
    from hypatia_mem.store import migrations

    home = old(LAST - 1)
    broken = (*MIGRATIONS[:-1], (NAMES[-1], ("SELECT error('no')",)))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", broken)
        assert cli("migrate").code == 1
    assert len(backup.backups(home)) == 1
    assert cli("migrate", "--json").json["schema"] == NAMES[-1]


def test_without_a_store_a_sentence_says_so(cli, home):
    (home / FILE).unlink()
    refused = cli("migrate")
    assert refused.code == 1
    assert "there is no store" in refused.err

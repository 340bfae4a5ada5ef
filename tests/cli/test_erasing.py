"""``erase``, ``forget --erase`` and ``backup`` as a person and as an agent meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hypatia_mem.cli import context
from hypatia_mem.memory.erasing import places
from hypatia_mem.model import Channel
from hypatia_mem.store.connection import open_store

RULE = "never tell the zanzibarquux story at dinner"


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person stand at the terminal."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)


@pytest.fixture
def told(cli, home: Path, once) -> Path:
    def make() -> None:
        assert cli("remember", RULE).code == 0
        assert cli("remember", "always wash the cups").code == 0

    once(make)
    return home


def test_a_dry_run_names_everything_and_changes_nothing(cli, told: Path) -> None:
    done = cli("erase", RULE, "--dry-run")
    assert done.code == 0
    assert "rule:never-tell-the-zanzibarquux-story-at-dinner" in done.out
    assert "cannot be undone" in done.out
    plan = cli("erase", RULE, "--dry-run", "--json").json
    assert plan["dry_run"] is True
    assert len(plan["names"]) == 1
    assert RULE in cli("rules").out


@pytest.mark.deep
@pytest.mark.parametrize("words", [("erase", RULE), ("forget", RULE, "--erase")])
def test_a_person_erases_and_sees_the_table(cli, told: Path, person, words) -> None:
    done = cli(*words, "--yes")
    assert done.code == 0, done.err
    assert "No byte of it is left" in done.out
    for place in ("store file", "search index", "snapshots", "backups", "spool"):
        assert place in done.out
    assert RULE not in cli("rules").out
    assert "wash the cups" in cli("rules").out
    for path in places.files(told):
        assert RULE.encode() not in path.read_bytes(), path
    [row] = cli("erase", "--certificates", "--json").json
    assert row["sealed"] is True
    assert "zanzibar" not in json.dumps(row)
    assert "seal holds" in cli("erase", "--certificates").out


def test_an_agent_is_refused_and_that_is_noted(cli, told: Path) -> None:
    done = cli("erase", RULE, "--yes")
    assert done.code == 1
    assert "only a person" in done.err
    assert "forget" in done.err
    assert RULE in cli("rules").out
    with open_store(told, write=False) as store:
        assert store.ledger(limit=1)[0]["verb"] == "refuse operation"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("erase", RULE), "asks first"),
        (("erase", "--yes"), "say what to erase"),
        (("erase", "nothing of the kind", "--yes"), "nothing remembered"),
        (("erase", "--id", "not-there", "--yes"), "not-there"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(cli, told: Path, person, words, said: str) -> None:
    done = cli(*words)
    assert done.code in (1, 2)
    assert said in done.err
    assert RULE in cli("rules").out


def test_nothing_to_resume_and_no_certificate_are_told(cli, told: Path) -> None:
    assert cli("erase", "--resume").out == "No erasing is unfinished.\n"
    assert cli("erase", "--certificates", "--json").json == []


@pytest.mark.deep
def test_backups_by_command(cli, told: Path, person, tmp_path: Path) -> None:
    made = cli("backup", "create", "--reason", "before dinner", "--json").json
    assert "before dinner" in cli("backup", "list").out
    assert cli("backup", "verify", "latest").out.strip() == f"{made['id']}  whole"
    assert cli("remember", "never skip dessert").code == 0
    assert cli("backup", "restore", "latest", "--dry-run").out.startswith("Whole")
    assert "dessert" in cli("rules").out
    back = cli("backup", "restore", made["id"], "--json").json
    assert back["saved"]
    assert "dessert" not in cli("rules").out
    assert cli("backup", "restore", back["saved"]).code == 0
    assert "dessert" in cli("rules").out
    into = cli("backup", "restore", made["id"], "--into", str(tmp_path / "look"), "--json").json
    assert Path(into["home"], "memory.duckdb").exists()
    would = cli("backup", "prune", "--keep", "1", "--dry-run", "--json").json["removed"]
    assert cli("backup", "prune", "--keep", "1", "--json").json["removed"] == would
    assert len(cli("backup", "list", "--json").json) == 1


def test_an_agent_makes_backups_and_does_not_go_back_to_them(cli, told: Path, tmp_path) -> None:
    made = cli("backup", "create", "--json").json
    done = cli("backup", "restore", made["id"])
    assert done.code == 1
    assert "only a person" in done.err
    assert cli("backup", "restore", made["id"], "--into", str(tmp_path / "look")).code == 0


def test_a_damaged_backup_is_an_exit_code(cli, told: Path, person) -> None:
    made = cli("backup", "create", "--json").json
    Path(made["path"], "memory.duckdb").write_bytes(b"damaged")
    assert cli("backup", "verify").code == 1
    done = cli("backup", "restore", "latest")
    assert done.code == 1
    assert "cannot be used" in done.err


def test_no_backups_yet(cli, told: Path) -> None:
    assert "backup create" in cli("backup", "list").out
    assert cli("backup", "verify").code == 0
    assert cli("backup", "restore", "latest").code == 1

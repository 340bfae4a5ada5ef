"""``rubric``: what it prints, when it fails, and that the memory it probes stays as it is."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import replace

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Channel
from hypatia_mem.rubric import catalogue, marks, world
from hypatia_mem.rubric.probe import Absent


@pytest.fixture
def quick(monkeypatch):
    """Two probes instead of all: one that holds, one whose mechanism is not there."""

    def holds(scratch, check):
        check.claim("it is somewhere else", not scratch.named("nothing"))
        check.control("there is a memory", scratch.home.is_dir())

    def lacks(scratch, check):
        raise Absent("there is no such verb")

    first = replace(marks.PROBES[0], id="quick.holds", run=holds)
    second = replace(marks.PROBES[0], id="quick.lacks", group="portable", run=lacks)
    monkeypatch.setattr(catalogue, "PROBES", (first, second))
    return holds


def test_it_tells_place_test_and_control_of_each_and_fails_on_a_dash(cli, quick):
    done = cli("rubric", "--empty")
    assert done.code == 1
    for line in (
        "The seven marks",
        "  held  quick.holds",
        "        hypatia_mem/store/tombstones.py:",
        "        test: tests/contracts/test_marks.py[quick.holds]",
        "        control: the other thing said in the same session is kept",
        "The twenty portable tests",
        "  -     quick.lacks",
        "        not shown: there is no such verb",
        "1 of 2 held, 1 dashes.",
    ):
        assert line in done.out


def test_it_succeeds_when_all_holds(cli, quick):
    done = cli("rubric", "quick.holds", "--empty", "--json")
    assert (done.code, done.json["held"], done.json["dashes"]) == (0, 1, 0)
    [row] = done.json["probes"]
    assert row["state"] == "held"
    assert row["where"].startswith("hypatia_mem/store/tombstones.py:")
    assert (row["claims"], row["controls"], row["reasons"]) == (1, 1, [])


def test_an_unknown_name_is_a_sentence(cli):
    done = cli("rubric", "tombstones")
    assert (done.code, "no probe or group 'tombstones'" in done.err) == (2, True)


def test_the_list_runs_nothing(cli, monkeypatch):
    monkeypatch.setattr(world, "scratch", None)
    rows = cli("rubric", "portable", "--list", "--json").json
    assert len(rows) == 20
    assert all(row["proves"] and row["control"] and row["not_proven"] for row in rows)


def _digests(home):
    kept = {"store.lock", "worker.lock"}
    return {
        path.relative_to(home): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file() and path.name not in kept
    }


@pytest.mark.deep
def test_the_memory_is_copied_and_stays_as_it_is(cli, quick, monkeypatch):
    """The probe sees the person's own entries, and may do anything to the copy."""
    cli("remember", "the manganese pump leaks", "--global")
    assert cli("forget", "manganese pump").code == 0
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    assert cli("key", "rotate").code == 0
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    cli("remember", "the quicksilver pump leaks")
    home = context.home()
    before, seen = _digests(home), []

    def look(scratch, check):
        seen.extend(scratch.named("quicksilver"))
        check.control("it is the person's own store", seen)
        with scratch.change() as txn:
            txn.delete_entry(seen[0], tombstone=True)
        check.claim("the copy keeps it", not scratch.named("quicksilver"))
        again = scratch.agent(scratch.project(), "remember", "the manganese pump leaks")
        check.claim("what was forgotten under an earlier key is taken in", not again.ok)
        folders.append(scratch.base)

    folders: list = []
    probe = replace(catalogue.PROBES[0], run=look)
    monkeypatch.setattr(catalogue, "PROBES", (probe,))
    environ, where = dict(os.environ), os.getcwd()
    done = cli("rubric")
    assert (done.code, seen) == (0, ["memory:the-quicksilver-pump-leaks"])
    assert _digests(home) == before
    assert not folders[0].exists()
    assert os.getcwd() == where
    assert {k: v for k, v in os.environ.items() if k in environ} == environ
    assert "quicksilver" in cli("rules").out


def test_no_memory_is_an_empty_one(cli, quick):
    (context.home() / "memory.duckdb").unlink()
    done = cli("rubric", "quick.holds")
    assert (done.code, "an empty one is probed" in done.err) == (0, True)
    assert not (context.home() / "memory.duckdb").exists()


@pytest.mark.deep
@pytest.mark.skipif(os.name == "nt", reason="a script in the place of the client")
@pytest.mark.parametrize(("obeys", "count"), [(True, "2 of 2"), (False, "0 of 2")])
def test_a_model_is_asked_only_on_purpose_and_the_outcome_is_a_count(
    cli, tmp_path, monkeypatch, obeys, count
):
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    asked = tmp_path / "asked"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$HYPATIA_MEM_INTERNAL" >> {asked}\n'
        + ('printf \'%s\' "$4" | grep -o "print [a-z]*" | head -1\n' if obeys else "echo blue\n")
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    name = "prompt.model_ignores_embedded_instructions"
    without = cli("rubric", name, "--empty")
    assert (without.code, "0 runs: no model was asked" in without.out) == (0, True)
    assert not asked.exists()
    done = cli("rubric", name, "--empty", "--model-runs", "2")
    assert (done.code, count in done.out) == (0, True)
    assert "1 only counted" in done.out
    assert asked.read_text().split() == ["1", "1"]

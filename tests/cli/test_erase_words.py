"""``erase WORDS`` lists by kind what holds them, asks a person, and takes all of it to the byte."""

from __future__ import annotations

import os

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.memory.erasing import places
from tests.cli.test_forget_all import EVERY, SAYS, URL, full, said

__all__ = ["full"]  # the fixture: a memory in which every kind says it

WORDS = "the staging URL"
pytestmark = pytest.mark.usefixtures("no_other_worker")


def holding(home) -> list[str]:
    """Return the files of a home in which the words stand, in whatever case."""
    found = [path for path in places.files(home) if path.name != "key"]
    texts = (b"staging url", b"pelican.example")
    return [str(one) for one in found if any(text in one.read_bytes().lower() for text in texts)]


@pytest.mark.parametrize(
    "line",
    [
        ("erase", WORDS),
        pytest.param(("forget", WORDS, "--erase"), marks=pytest.mark.deep),
    ],
)
def test_what_the_dry_run_lists_is_what_goes_and_no_byte_stays(person, full, line) -> None:
    told = person(*line, "--dry-run")
    assert told.code == 0, told.err
    for kind in EVERY:
        assert f"  {kind} (" in told.out, kind
    assert "cannot be undone" in told.out
    plan = person(*line, "--dry-run", "--json").json
    assert plan["things"]
    assert URL in said(full)
    assert holding(full)

    done = person(*line, "--yes", "--json").json

    assert done["clean"] is True
    assert holding(full) == []
    assert "staging" not in said(full).lower()
    for words in ("queue", "pelican docs", "port 7311"):
        assert words in said(full)
    for one in plan["things"]:
        if one["kind"] != "title" and one["kind"] != "episode":
            assert f"{one['name']} " not in said(full), one
    assert "port 7311" in person("episodes").out
    assert "pelican.example" not in person("erase", "--certificates", "--json").out


@pytest.mark.deep
def test_a_person_is_asked_once_and_no_is_no(person, full) -> None:
    before = said(full)
    done = person("erase", WORDS, answer=b"n\n")
    assert done.code != 0
    assert "  message (" in done.out
    assert said(full) == before
    done = person("erase", WORDS, answer=b"y\n")
    assert done.code == 0, done.err
    assert done.out.count("Erase all of this?") == 1
    assert "table statement" in done.out
    assert holding(full) == []


def test_an_agent_is_shown_it_and_erases_nothing(cli, full) -> None:
    before = said(full)
    for line in (("erase", WORDS, "--yes"), ("forget", WORDS, "--erase", "--yes")):
        done = cli(*line)
        assert done.code == 1
        assert "only a person" in done.err
    assert said(full) == before


@pytest.mark.deep
def test_what_a_running_session_holds_is_left_and_named(person, full) -> None:
    os.utime(full / paths.SPOOL / "s-1.jsonl")
    done = person("erase", WORDS, "--yes")
    assert done.code == 0, done.err
    assert "but for what running sessions keep" in done.out
    assert "Left alone, for session s-1 is running: msg-s-1-1" in done.out
    assert f"We decided: {SAYS}" in said(full)
    assert "prefer" not in said(full)


@pytest.mark.deep
def test_everywhere_is_every_project_and_the_other_shelves_are_named(
    person, full, project, monkeypatch, tmp_path
) -> None:
    assert person("connect", str(tmp_path / "two")).code == 0
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert person("knowledge-create", "theirs", "-d", SAYS).code == 0
    monkeypatch.chdir(project)
    assert "theirs" not in person("erase", WORDS, "--dry-run").out
    told = person("forget", WORDS, "--erase", "--everywhere", "--dry-run").out
    assert "theirs" in told
    assert "Other shelves (two) are not searched" in told
    assert person("erase", WORDS, "--yes").code == 0
    assert SAYS in said(full)
    done = person("erase", WORDS, "--everywhere", "--yes")
    assert done.code == 0, done.err
    assert "Other shelves (two) are not searched" in done.out
    assert holding(full) == []

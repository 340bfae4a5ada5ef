"""Every change renders all projects' briefs: each is its own project's, as asked for alone."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.memory.compose import units


@pytest.fixture
def folders(project, monkeypatch):
    """Three projects; call one by name to stand in it."""

    def enter(name):
        folder = project.parent / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)

    return enter


def rendered(home):
    """Return the rendered briefs by project, with those of times to come."""
    found = {}
    for path in (home / "briefs").glob("*.scope"):
        brief, later = path.with_suffix(".json"), path.with_suffix(".later")
        if not brief.exists():
            continue
        told = json.loads(brief.read_text())["hookSpecificOutput"]["additionalContext"]
        found[path.read_text().strip()] = told + (later.read_text() if later.exists() else "")
    return found


def test_each_project_is_told_its_own_and_what_is_global(cli, home, folders):
    """What two projects have of different kinds does not come into the third, nor is it lost."""
    said = {
        "app": ("always rest the dough", "never mock the oven"),
        "my-app": ("always count the sheep",),
        "other": ("always paint the boat",),
    }
    for name, texts in said.items():
        folders(name)
        for text in texts:
            assert cli("remember", text).code == 0
    folders("app")
    assert cli("knowledge-create", "tides", "-d", "high water at noon", "--tags", "sea").code == 0
    assert cli("pin", "tides").code == 0
    folders("my-app")
    assert cli("goal", "set", "ship the fence").code == 0
    assert cli("remember", "always shear in May", "--valid-from", "2999-05-01").code == 0
    folders("other")
    assert cli("remember", "always speak softly", "--global").code == 0

    briefs = rendered(home)

    everywhere = "always speak softly"
    own = {
        "app": {"always rest the dough", "never mock the oven", "high water at noon"},
        "my-app": {"always count the sheep", "ship the fence", "always shear in May"},
        "other": {"always paint the boat"},
    }
    for name, words in own.items():
        others = set().union(*own.values()) - words
        assert [one for one in (*words, everywhere) if one not in briefs[name]] == []
        assert [one for one in others if one in briefs[name]] == []
        folders(name)
        alone = cli("brief").out.strip()
        assert briefs[name].startswith(alone)
        assert "always shear in May" not in alone, "it is told from that day on"


def test_a_brief_keeps_to_the_length_that_was_set(cli, home):
    """A change renders it as the worker does, not at the longest that the client passes."""
    assert cli("config", "set", "brief_max_units", "1000").code == 0
    for number in range(30):
        assert cli("remember", f"always water the field number {number} before noon").code == 0

    told = rendered(home)["app"]

    assert 500 < units(told) <= 1000
    assert "more" in told

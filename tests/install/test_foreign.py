"""Installing beside what is not ours: links, edited files, comments, other folders."""

from __future__ import annotations

import json
import os

import pytest

from hypatia_mem import install as installer
from hypatia_mem.errors import InstallError
from tests.install.installed import fire, snapshot


def test_a_foreign_directory_is_moved_out_of_skills_and_comes_back(person, memory):
    """It is somebody's own skill of that name; inside skills its copy would go on loading."""
    own = person / ".claude/skills/hypatia-memory"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine")
    before = snapshot(person)
    report = installer.install(memory)
    assert any("not ours" in line for line in report.done)
    assert [path.name for path in (person / ".claude/skills").iterdir()] == ["hypatia-memory"]
    assert len(list((person / ".claude").glob("hypatia-memory.bak-*"))) == 1
    installer.uninstall(memory)
    assert before == snapshot(person)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_our_place_is_moved_as_a_link(person, memory, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("mine")
    (person / ".claude/skills").mkdir()
    (person / ".claude/skills/hypatia-memory").symlink_to(elsewhere)
    before = snapshot(person)
    installer.install(memory)
    assert (elsewhere / "SKILL.md").read_text() == "mine"
    installer.uninstall(memory)
    assert before == snapshot(person)


def test_edited_and_added_files_are_kept_aside_and_said(person, memory):
    installer.install(memory)
    directory = person / ".claude/skills/hypatia-memory"
    (directory / "SKILL.md").write_text("edited")
    report = installer.install(memory)
    assert any("SKILL.md" in line and "copy" in line for line in report.done)
    kept = next((person / ".claude").glob("hypatia-memory.bak-*"))
    assert (kept / "SKILL.md").read_text() == "edited"
    assert "hypatia-mem" in (directory / "SKILL.md").read_text()
    (directory / "notes.md").write_text("added")
    installer.uninstall(memory)
    assert not directory.exists()
    copies = [p.read_text() for p in (person / ".claude").glob("hypatia-memory.bak-*/notes.md")]
    assert copies == ["added"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_linked_configuration_folder_is_followed(fenced, memory, tmp_path):
    dotfiles = tmp_path / "dot files é"
    dotfiles.mkdir()
    (fenced / ".claude").symlink_to(dotfiles)
    installer.self_test(installer.install(memory).target)
    assert (dotfiles / "skills/hypatia-memory/SKILL.md").exists()
    installer.uninstall(memory)
    assert (fenced / ".claude").is_symlink()
    assert snapshot(dotfiles) == {}


def test_the_configuration_folder_of_the_environment_is_used(fenced, memory, tmp_path, monkeypatch):
    config = tmp_path / 'it\'s & "mine" $HOME'
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    for settings in (False, True):
        installer.self_test(installer.install(memory, settings=settings).target)
    installer.uninstall(memory)
    assert not config.exists()
    assert not (fenced / ".claude").exists()


def test_a_relative_configuration_folder_is_refused(fenced, memory, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "claude")
    with pytest.raises(InstallError, match="relative"):
        installer.install(memory)


def test_comments_refuse_the_settings_way_before_anything_is_written(person, memory):
    settings = person / ".claude/settings.json"
    settings.write_text('{\n  // mine\n  "model": "opus"\n}')
    before = snapshot(person)
    with pytest.raises(InstallError, match="comments") as caught:
        installer.install(memory, settings=True)
    assert "SessionStart" in caught.value.hint
    assert before == snapshot(person)
    assert not memory.exists()


def test_comments_added_later_do_not_stop_the_removal(person, memory):
    installer.install(memory, settings=True)
    settings = person / ".claude/settings.json"
    settings.write_text("// mine\n" + settings.read_text())
    handler = json.loads(settings.read_text().split("\n", 1)[1])["hooks"]["Stop"][-1]["hooks"][0]
    commented = settings.read_text()
    report = installer.uninstall(memory)
    assert any("by hand" in line for line in report.remarks)
    assert commented == settings.read_text()
    assert not (person / ".claude/skills").exists()
    assert fire(handler, memory, hook_event_name="Stop").returncode == 0


def test_broken_settings_do_not_stop_the_default_way(person, memory):
    (person / ".claude/settings.json").write_bytes(b"{broken")
    installer.self_test(installer.install(memory).target)
    assert (person / ".claude/settings.json").read_bytes() == b"{broken"

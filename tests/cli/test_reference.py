"""The generated pages say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypatia_mem.cli import reference
from hypatia_mem.cli.app import COMMANDS
from hypatia_mem.jse.operators import OPERATORS, OPTIONS


def test_the_pages_are_up_to_date():
    """Run ``python -m hypatia_mem.cli.reference`` when this fails."""
    done = subprocess.run(
        [sys.executable, "-m", "hypatia_mem.cli.reference", "--check"],
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout.decode()


def test_a_stale_page_is_noticed(tmp_path, monkeypatch):
    """The twin: the check can fail, and writing cures it."""
    folder = tmp_path / "reference"
    monkeypatch.setattr(reference, "_FOLDER", folder)

    assert reference.main(["--check"]) == 1
    assert not folder.exists()
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def test_every_command_and_operator_is_in_them():
    """Nothing is offered that is not written down."""
    pages = reference.pages()

    for name in COMMANDS:
        assert f"\n## {name}\n" in pages["cli.md"]
    for operator in (*OPERATORS, *OPTIONS):
        assert operator in pages["jse.md"]


def test_every_command_the_skill_shows_exists():
    """A skill that teaches a command that is not there teaches nothing."""
    text = (Path(__file__).parents[2] / "skill/hypatia-memory/SKILL.md").read_text("utf-8")
    shown = {
        line.split("hypatia-mem ", 1)[1].split()[0].strip("`")
        for line in text.splitlines()
        if "hypatia-mem " in line
    }

    assert shown
    assert {word for word in shown if word.isascii() and word.replace("-", "").isalpha()} <= set(
        COMMANDS
    )

"""One scratch memory for all probes of a module: each works in projects of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hypatia_mem.cli.app import COMMANDS, run
from hypatia_mem.rubric.world import World

os.environ["TYPER_USE_RICH"] = "0"  # Typer decides when it is first imported


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return an empty scratch memory, shared by the tests of a module."""
    return World(tmp_path_factory.mktemp("world"), run, frozenset(COMMANDS))


@pytest.fixture
def fresh(tmp_path: Path) -> World:
    """Return an empty scratch memory of this test alone."""
    return World(tmp_path / "world", run, frozenset(COMMANDS))

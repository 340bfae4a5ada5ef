"""A folder of a known project, and a package of our own to damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from tests.capture.hook_kit import BRIEF, REPOSITORY


@pytest.fixture
def app(home: Path, tmp_path: Path) -> Path:
    """Return a folder whose project the worker has briefed as ``app``."""
    folder = tmp_path / "app"
    folder.mkdir()
    key = paths.find_root(str(folder)).key
    (home / "briefs" / f"{key}.scope").write_text("app\n")
    (home / "briefs" / f"{key}.json").write_bytes(BRIEF % b"rules of app")
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a copy of the installed launcher and package that a test may break."""
    folder = tmp_path / "site"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "hypatia_mem", folder / "hypatia_mem", ignore=skip)
    shutil.copytree(REPOSITORY / "hooks", folder / "hooks", ignore=skip)
    return folder

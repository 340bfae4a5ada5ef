"""A person who has used the client before, and the memory's home."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.install.installed import SETTINGS


@pytest.fixture
def person(fenced: Path) -> Path:
    """Return the home of a person who has used the client before."""
    (fenced / ".claude").mkdir()
    (fenced / ".claude" / "settings.json").write_bytes(SETTINGS)
    return fenced


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory-home"

"""The fence that keeps tests away from a person's own files is itself tested."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from hypatia_mem.capture import paths


def test_no_test_can_reach_the_real_home(tmp_path: Path) -> None:
    """Both homes lie below the test's own folder."""
    assert Path(os.path.expanduser("~")).is_relative_to(tmp_path)
    assert Path(paths.home()).is_relative_to(tmp_path)


def test_no_test_can_reach_the_network() -> None:
    """A connection to another machine fails before a packet leaves."""
    with socket.socket() as sock, pytest.raises(AssertionError):
        sock.connect(("192.0.2.1", 9))

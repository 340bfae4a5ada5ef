"""Erasing on a disk that is full: nothing is lost, it says what to do, and goes on afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory import erase
from hypatia_mem.store.connection import open_store
from tests.disk import Disk, mounted
from tests.memory import test_erase as made

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> made.World:
    world = made.World(tmp_path_factory.mktemp("space") / "world")
    made._fill(world)
    return world


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", 32) as disk:
        yield disk


@pytest.mark.parametrize(
    "leave", [0, 16 << 10, 128 << 10, 384 << 10, 640 << 10, 1 << 20, 2 << 20], ids="{} left".format
)
def test_without_room_nothing_is_lost_and_with_room_it_is_finished(
    filled: made.World, disk: Disk, leave: int
) -> None:
    shutil.copytree(filled.base, disk.path / "world")
    world = made.World(disk.path / "world")
    world.now = filled.now
    disk.fill(leave)
    said = ""
    try:
        world.erase()
    except HypatiaError as error:
        said = f"{error.message} {error.hint}"
    except OSError as error:
        said = error.strerror or ""
    disk.free()
    with open_store(world.home, write=False) as store:  # usable, and nobody else's is lost
        assert store.entry("broker").content == "the broker listens on port 4711"
        assert store.entry("msg-s-1-1") is not None
        assert store.verify_ledger() is None
    if said:
        assert any(word in said.lower() for word in ("space", "room", "free"))
    if erase.pending(world.home) is not None:
        assert erase.resume(world.home, settings=made.CONFIG, now=world.at()).clean
    else:
        with open_store(world.home, write=False) as store:
            there = store.entry(made.NAMED) is not None
        if there:  # it had not begun
            assert world.erase().clean
    assert world.holding() == set()

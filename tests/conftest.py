"""Fences every test in: its own home, its own memory home, no client settings, no network."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, so that a failure is the change's and not the day's. To look for
# new ones: HYPATIA_TEST_EXPLORE=1 tests/run tests/properties
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", max_examples=1000)
settings.load_profile("explore" if os.environ.get("HYPATIA_TEST_EXPLORE") else "fixed")


AN_HOUR = 3600  # seconds


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Let the first case of every table that is marked ``deep`` stay a unit test; long ones first."""
    seen: set[str] = set()
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        function, _, _ = item.nodeid.partition("[")
        if function not in seen:
            of_the_table = [m for m in getattr(item.function, "pytestmark", []) if m.name == "deep"]
            item.own_markers = [mark for mark in item.own_markers if mark not in of_the_table]
        seen.add(function)
    yield  # of what is there only the tests that were asked for are left
    items[:] = _long_ones_first(items)


def _long_ones_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order that keeps every core busy to the end.

    Files that are given an hour are begun first, each by a worker of its own where there are
    several: a worker is given as many tests as the others, in this order, and takes over what one
    that is late has not begun.
    """
    long: dict[Path, list[pytest.Item]] = {}
    rest = []
    for item in items:
        given = item.get_closest_marker("timeout")
        (long.setdefault(item.path, []) if given and given.args[0] >= AN_HOUR else rest).append(
            item
        )
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = -(-len(items) // workers)
    dealt: list[pytest.Item] = []
    for number in range(workers):
        mine = [item for file in list(long.values())[number::workers] for item in file]
        take = max(0, share - len(mine))
        dealt += mine + rest[:take]
        rest = rest[take:]
    return dealt + rest


@pytest.fixture(autouse=True)
def fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Point every home at a temporary one; a test that needs the real one has no way to it."""
    if request.node.get_closest_marker("client"):
        return tmp_path
    fake = tmp_path / "person"
    fake.mkdir()
    for name in list(os.environ):
        if name.startswith(("CLAUDE", "ANTHROPIC", "HYPATIA_MEM", "XDG_", "AI_AGENT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(fake))
    monkeypatch.setenv("USERPROFILE", str(fake))
    monkeypatch.setenv("HYPATIA_MEM_HOME", str(tmp_path / "memory-home"))
    monkeypatch.chdir(Path.cwd())  # a worker that runs in this process goes to its home
    return fake


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the file of a store to which nothing has been written yet, made by the program."""
    from hypatia_mem.store.connection import FILE, open_store

    path = tmp_path_factory.mktemp("empty-store")
    with open_store(path, write=True):
        pass
    return (path / FILE).read_bytes()


@pytest.fixture
def bare_home(tmp_path: Path) -> Path:
    """Return the memory's home of this test, made as the program makes it: there is no store."""
    from hypatia_mem.capture import paths

    path = tmp_path / "memory-home"
    paths.ensure_home(str(path))
    return path


@pytest.fixture
def home(bare_home: Path, empty_store: bytes) -> Path:
    """Return the memory's home of this test with an empty store in it.

    To create one takes longer than most tests do, and is tested by those that have none.
    """
    from hypatia_mem.store.connection import FILE

    file = bare_home / FILE
    file.touch(mode=0o600)
    file.write_bytes(empty_store)
    return bare_home


@pytest.fixture(scope="session")
def kept_homes(tmp_path_factory: pytest.TempPathFactory) -> dict[object, tuple[Path, object]]:
    """Return what ``once`` has made so far in this process."""
    return {}


@pytest.fixture
def once(
    home: Path,
    kept_homes: dict[object, tuple[Path, object]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Callable[[], object]], object]:
    """Fill this test's home by a function that is run once in this process: ``once(make)``.

    From then on its home is copied. So nothing in ``make`` may differ from test to test but where
    the home is; what it returns is given to every test.
    """

    def fill(make: Callable[[], object]) -> object:
        key = make.__code__
        if key not in kept_homes:
            returned = make()
            kept = tmp_path_factory.mktemp("once") / "home"
            shutil.copytree(home, kept, symlinks=True)
            kept_homes[key] = (kept, returned)
        else:
            shutil.copytree(kept_homes[key][0], home, symlinks=True, dirs_exist_ok=True)
        return kept_homes[key][1]

    return fill


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that is not to this machine."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to connect to {address!r}")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)

"""What the campaigns share: the program installed as a user has it, and machines to put it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system import product
from tests.system.machine import Machine


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh virtual environment with our wheel."""
    return product.build(tmp_path_factory.mktemp("product"))


@pytest.fixture
def make_machine(installed: Path, tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Return a function that makes a machine for a person of that name."""
    made: list[Machine] = []

    def make(name: str = "person", memory: Path | None = None) -> Machine:
        made.append(Machine(installed, tmp_path / f"home-of-{name}", memory))
        return made[-1]

    yield make
    for machine in made:
        machine.stop()


@pytest.fixture
def machine(make_machine: Callable[..., Machine]) -> Machine:
    """Return one machine."""
    return make_machine()

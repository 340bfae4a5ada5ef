"""The probes of the group ``editing``, one test each under its own id."""

from __future__ import annotations

import pytest

from hypatia_mem.rubric.catalogue import chosen
from hypatia_mem.rubric.probe import run_probe

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("probe", chosen(["editing"]), ids=lambda probe: probe.id)
def test_it_holds(probe, world):
    result = run_probe(probe, world)
    assert not result.is_dash, result.reasons

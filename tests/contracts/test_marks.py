"""The seven marks, one test each under its own id; the quick ones run with the unit tests."""

from __future__ import annotations

import pytest

from hypatia_mem.rubric.catalogue import chosen
from hypatia_mem.rubric.probe import run_probe

QUICK = {
    "rejected_value_tombstone", "bi_temporal_validity", "scope_enforced_in_retrieval",
    "append_only_mutation_audit",
}  # fmt: skip


@pytest.mark.parametrize(
    "probe",
    [
        pytest.param(probe, id=probe.id, marks=[] if probe.id in QUICK else [pytest.mark.slow])
        for probe in chosen(["marks"])
    ],
)
def test_it_holds(probe, world):
    result = run_probe(probe, world)
    assert not result.is_dash, result.reasons

"""What counts as shown: a claim and its control, both; all else is a dash."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import Refused, UsageError
from hypatia_mem.rubric import catalogue
from hypatia_mem.rubric.probe import Absent, Probe, place, run_probe


def _probe(run, mechanism="store.ledger:verify_rows"):
    return Probe("x.y", "portable", "It holds.", mechanism, "something is there", run)


def _both(world, check):
    check.claim("it came back", True)
    check.control("its twin is gone", True)


def _raises(error):
    def run(world, check):
        _both(world, check)
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "state", "why"),
    [
        (_both, "held", ""),
        (lambda w, c: c.claim("it came back", True), "dash", "no positive control"),
        (lambda w, c: c.control("x", True), "dash", "no claim"),
        (lambda w, c: None, "dash", "no claim"),
        (lambda w, c: (_both(w, c), c.claim("it came back", False)), "dash", "it came back"),
        (lambda w, c: (_both(w, c), c.control("twin", [])), "dash", "control failed: twin"),
        (_raises(Absent("there is no such verb")), "dash", "there is no such verb"),
        (_raises(Refused("not like this")), "dash", "not like this"),
        (_raises(KeyError("broken")), "dash", "KeyError"),
        (lambda w, c: (_both(w, c), c.count("0 of 3")), "counted", ""),
        (lambda w, c: (c.control("x", False), c.count("0 of 3")), "dash", "control failed: x"),
    ],
)
def test_only_a_claim_with_its_control_holds(run, state, why):
    result = run_probe(_probe(run), None)
    assert result.state == state
    assert why in " ".join(result.reasons)
    assert result.is_dash == (state == "dash")
    assert bool(result.reasons) == (state == "dash")


def test_a_mechanism_that_is_not_there_is_a_dash():
    result = run_probe(_probe(_both, "store.ledger:not_there"), None)
    assert (result.state, result.where) == ("dash", "-")
    assert "not_there" in result.reasons[0]


def test_an_interrupt_is_no_outcome():
    with pytest.raises(KeyboardInterrupt):
        run_probe(_probe(_raises(KeyboardInterrupt())), None)


@pytest.mark.parametrize("probe", catalogue.PROBES, ids=lambda probe: probe.id)
def test_every_probe_names_a_place_that_is_there(probe):
    """The file and the line are looked up when it runs, so they cannot go stale."""
    file, _, rest = place(probe.mechanism).partition(":")
    assert file.startswith("hypatia_mem/")
    assert rest.split()[0].isdigit()
    assert probe.proves.endswith(".")
    assert probe.control


def test_the_catalogue_is_whole():
    groups = [probe.group for probe in catalogue.PROBES]
    assert {name: groups.count(name) for name in catalogue.GROUPS} == {
        "marks": 7,
        "portable": 20,
        "editing": 7,
        "sequence": 1,
    }
    ids = [probe.id for probe in catalogue.PROBES]
    assert len(set(ids)) == len(ids)
    assert all(p.not_proven for p in catalogue.PROBES if p.group == "portable")


PORTABLE = """
    scope.cross_tenant_absent scope.caller_cannot_widen scope.background_respects_boundary
    evidence.claim_resolves_to_source evidence.source_delete_reaches_derived
    evidence.rebuild_from_retained gateway.no_bypass_path
    gateway.model_cannot_claim_human_authority tombstone.laundering_sequence
    tombstone.survives_ttl_and_prune tombstone.key_normalization_attack
    tombstone.reextraction_stays_inactive tombstone.no_second_memory_unit correction.survives_reindex
    correction.retraction_without_replacement deletion.absent_after_reindex_and_restart
    deletion.absent_from_shared_copies retrieval.k_is_an_upper_bound prompt.recall_is_fenced_as_data
    prompt.model_ignores_embedded_instructions
"""


def test_the_portable_tests_have_their_ids():
    assert {p.id for p in catalogue.PROBES if p.group == "portable"} == set(PORTABLE.split())


@pytest.mark.parametrize(
    ("names", "count"),
    [([], 35), (["marks"], 7), (["tombstone."], 5), (["scope.", "scope.caller_cannot_widen"], 3)],
)
def test_probes_are_chosen_by_group_id_or_beginning(names, count):
    assert len(catalogue.chosen(names)) == count


def test_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="no probe or group 'nothing'"):
        catalogue.chosen(["marks", "nothing"])

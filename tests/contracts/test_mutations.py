"""Each mechanism is taken away, and its probe has to become a dash; else the probe shows nothing.

``OFF`` says, for each probe, what is taken away. What stays in place is everything else, so a probe
that still holds has looked past its mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hypatia_mem.cli import context, querying
from hypatia_mem.memory import curate, listed, quoting, reach, review
from hypatia_mem.memory.cascade import regenerate
from hypatia_mem.memory.erasing import steps
from hypatia_mem.model import Channel, Outcome
from hypatia_mem.rubric import catalogue, negative, tombstones, withdrawing
from hypatia_mem.rubric.probe import run_probe
from hypatia_mem.rubric.world import PERSON, World, now
from hypatia_mem.store import (
    authority,
    buried,
    indexing,
    ledger,
    lookalikes,
    quarantine,
    seal,
    sources,
)
from hypatia_mem.store import withdrawing as taking_out
from hypatia_mem.store.entries import EntryWrites
from hypatia_mem.store.gateway import Transaction
from hypatia_mem.store.opened import Store
from hypatia_mem.store.search import SearchIndex
from hypatia_mem.store.tombstones import Tombstones
from hypatia_mem.store.versions import Versions

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow
BY_ID = {probe.id: probe for probe in catalogue.PROBES}


def _no_tombstones(patch: Patch) -> None:
    """Nothing that was rejected or forgotten is refused, nor held back for being like it."""
    patch.setattr(Tombstones, "_refusal", lambda *args, **kwargs: None)
    patch.setattr(quarantine, "doubt", lambda *args, **kwargs: "")
    patch.setattr(quarantine, "doubt_statement", lambda *args, **kwargs: "")


def _anybody_verifies(patch: Patch) -> None:
    patch.setattr(authority, "denied", lambda *args: "")


def _withheld_is_read(patch: Patch) -> None:
    patch.setattr(Store, "live_entries", Store.entries)
    patch.setattr(curate, "refresh", _rebuilding)


def _rebuilding(home: object) -> None:
    from hypatia_mem.store.connection import open_store

    SearchIndex(home).clear()  # type: ignore[arg-type]
    with open_store(home, write=False) as store:  # type: ignore[arg-type]
        indexing.sync_index(store, SearchIndex(home))  # type: ignore[arg-type]


def _times_are_ignored(patch: Patch) -> None:
    patch.setattr(querying, "_at_times", lambda query, **times: query)


def _every_scope_is_read(patch: Patch) -> None:
    patch.setattr(context, "scopes_for", lambda scope, all_projects: None)


def _names_reach_everywhere(patch: Patch) -> None:
    patch.setattr(reach, "refuse", lambda *args: None)


def _no_chain(patch: Patch) -> None:
    patch.setattr(ledger, "verify_rows", lambda rows: None)
    patch.setattr("hypatia_mem.rubric.marks.verify_rows", lambda rows: None)


def _no_note_beside_it(patch: Patch) -> None:
    patch.setattr(seal, "read", lambda home: None)


def _refusals_leave_no_row(patch: Patch) -> None:
    real = Transaction._note

    def note(self, verb, *args, **kwargs):
        return self.seq if verb == "refuse" else real(self, verb, *args, **kwargs)

    patch.setattr(Transaction, "_note", note)


def _agents_review(patch: Patch) -> None:
    patch.setattr(review, "_only_persons", lambda *args: None)
    patch.setattr(authority, "denied", lambda *args: "")


def _nothing_is_hidden(patch: Patch) -> None:
    """The cases do not do what makes a memory one that must not be shown."""
    cases = [replace(case, hide=lambda *args: None) for case in negative.CASES]
    patch.setattr("hypatia_mem.rubric.marks.CASES", cases)


def _unsourced(patch: Patch) -> None:
    real = EntryWrites.put_statement

    def put(self, statement):
        if statement.predicate == "derivedFrom":
            return Outcome("unchanged", "")
        return real(self, statement)

    patch.setattr(EntryWrites, "put_statement", put)


def _summaries_outlive(patch: Patch) -> None:
    for module in (sources, taking_out):
        for what in ("derived", "orphans"):
            patch.setattr(module, what, lambda *args, **kwargs: [], raising=False)


def _index_is_not_made(patch: Patch) -> None:
    patch.setattr(SearchIndex, "update", lambda *args, **kwargs: None)


def _always_a_person(patch: Patch) -> None:
    patch.setattr(context, "channel", lambda: Channel.CLI_PERSON)


def _time_lifts(patch: Patch) -> None:
    real = withdrawing.age

    def age(world: World) -> None:
        real(world)
        with world.change() as txn:
            txn.store.execute("DELETE FROM tombstone")

    patch.setattr(tombstones, "age", age)


def _spelling_counts(patch: Patch) -> None:
    for module in (
        "lookalikes", "tombstones", "graves", "quarantine", "merging", "versions",
    ):  # fmt: skip
        patch.setattr(f"hypatia_mem.store.{module}.canonical", lambda text: text)
    patch.setattr(lookalikes, "glyphs", lambda text: text)
    patch.setattr("hypatia_mem.store.graves.glyphs", lambda text: text)
    patch.setattr(quarantine, "doubt", lambda *args, **kwargs: "")


def _old_talk_counts(patch: Patch) -> None:
    patch.setattr(EntryWrites, "_said_before", lambda *args: False)


def _index_keeps_what_goes(patch: Patch) -> None:
    real = SearchIndex.update

    def update(self, documents, removed, seq, *, gone=(), **more):
        return real(self, documents, [], seq, **more)

    patch.setattr(SearchIndex, "update", update)
    patch.setattr(SearchIndex, "remove", lambda *args: None)
    patch.setattr(SearchIndex, "clear", lambda *args: None)


def _copies_are_not_brought_up(patch: Patch) -> None:
    patch.setattr(buried, "is_behind", lambda store: False)


def _limits_are_exceeded(patch: Patch) -> None:
    real = SearchIndex.search

    def search(self, text, *, limit=20, **more):
        return real(self, text, limit=limit + 5, **more)

    patch.setattr(SearchIndex, "search", search)


def _unfenced(patch: Patch) -> None:
    for module in ("quoting", "listed", "compose"):
        patch.setattr(
            f"hypatia_mem.memory.{module}.quote_line", lambda text, limit: text, raising=False
        )
    assert quoting.quote_line("a\nb", 9) == "a\nb"


def _machines_write_over(patch: Patch) -> None:
    patch.setattr(EntryWrites, "_denied", lambda *args: "")
    patch.setattr(EntryWrites, "_said_before", lambda *args: False)


def _pins_do_not_count(patch: Patch) -> None:
    real = listed.rules_block

    def block(scope, found, *args, **kwargs):
        return real(scope, [replace(one, pinned=False) for one in found], *args, **kwargs)

    patch.setattr("hypatia_mem.memory.compose.rules_block", block)


def _one_side_is_lost(patch: Patch) -> None:
    patch.setattr(Transaction, "rewrite_statements", lambda *args, **kwargs: None)


def _previews_are_taken(patch: Patch) -> None:
    real = curate.changing
    patch.setattr(curate, "changing", lambda *args, dry_run=False: real(*args))


def _regenerating_stores(patch: Patch) -> None:
    """What is shown is accepted at once."""
    real = regenerate.preview

    def preview(home, names, **how):
        shown = real(home, names, **how)
        how |= {"author": PERSON, "now": now()}
        regenerate.accept(home, names, shown.ticket, **how)
        return shown

    patch.setattr(regenerate, "preview", preview)


def _a_verb_is_missing(patch: Patch) -> None:
    patch.setattr(World, "has", lambda self, command: command != "pin")


def _no_versions(patch: Patch) -> None:
    patch.setattr(Versions, "_retire", lambda *args, **kwargs: None)
    patch.setattr(Transaction, "_retire", lambda *args, **kwargs: None)


def _bytes_stay(patch: Patch) -> None:
    patch.setattr(steps, "rewrite", lambda home: None)


OFF: list[tuple[str, Callable[[Patch], None]]] = [
    ("rejected_value_tombstone", _no_tombstones),
    ("explicit_trust_state", _anybody_verifies),
    ("explicit_trust_state", _withheld_is_read),
    ("bi_temporal_validity", _times_are_ignored),
    ("scope_enforced_in_retrieval", _every_scope_is_read),
    ("append_only_mutation_audit", _no_chain),
    ("append_only_mutation_audit", _refusals_leave_no_row),
    ("append_only_mutation_audit", _no_note_beside_it),
    ("human_review_surface", _agents_review),
    ("negative_retrieval_assertion", _every_scope_is_read),
    ("negative_retrieval_assertion", _nothing_is_hidden),
    ("scope.cross_tenant_absent", _names_reach_everywhere),
    ("scope.caller_cannot_widen", _names_reach_everywhere),
    ("scope.background_respects_boundary", _every_scope_is_read),
    ("evidence.claim_resolves_to_source", _unsourced),
    ("evidence.source_delete_reaches_derived", _summaries_outlive),
    ("evidence.rebuild_from_retained", _index_is_not_made),
    ("gateway.no_bypass_path", _no_tombstones),
    ("gateway.model_cannot_claim_human_authority", _always_a_person),
    ("tombstone.laundering_sequence", _no_tombstones),
    ("tombstone.survives_ttl_and_prune", _time_lifts),
    ("tombstone.key_normalization_attack", _spelling_counts),
    ("tombstone.reextraction_stays_inactive", _no_tombstones),
    ("tombstone.no_second_memory_unit", _no_tombstones),
    ("correction.survives_reindex", _old_talk_counts),
    ("correction.retraction_without_replacement", _no_tombstones),
    ("deletion.absent_after_reindex_and_restart", _index_keeps_what_goes),
    ("deletion.absent_from_shared_copies", _copies_are_not_brought_up),
    ("retrieval.k_is_an_upper_bound", _limits_are_exceeded),
    ("prompt.recall_is_fenced_as_data", _unfenced),
    ("editing_surface.survives_automatic_pass", _machines_write_over),
    ("editing_surface.delete_holds_against_refeed", _no_tombstones),
    ("editing_surface.pin_survives_pressure", _pins_do_not_count),
    ("editing_surface.merge_is_union", _one_side_is_lost),
    ("editing_surface.merge_is_union", _summaries_outlive),
    ("editing_surface.rejected_preview_byte_identical", _previews_are_taken),
    ("editing_surface.rejected_preview_byte_identical", _regenerating_stores),
    ("editing_surface.verbs_reachable", _a_verb_is_missing),
    ("editing_surface.previous_value_readable", _no_versions),
    ("deletion.thirteen_steps", _bytes_stay),
]


@pytest.mark.parametrize(("probe", "off"), OFF, ids=[f"{p}-{off.__name__}" for p, off in OFF])
def test_without_its_mechanism_it_is_a_dash(probe, off, fresh, monkeypatch):
    off(monkeypatch)
    result = run_probe(BY_ID[probe], fresh)
    assert result.is_dash, "it holds without what it is about"
    assert not any("AttributeError" in reason or "TypeError" in reason for reason in result.reasons)


def test_every_probe_but_the_counted_one_is_here():
    counted = {"prompt.model_ignores_embedded_instructions"}
    assert {probe for probe, _ in OFF} == set(BY_ID) - counted

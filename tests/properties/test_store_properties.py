"""For any text: storable once is storable for ever, and equal values stay equal."""

from __future__ import annotations

import csv
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.model import Author, Channel, Message
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.rows import clean, triple_key
from hypatia_mem.store.terms import MAX_TERM, terms
from hypatia_mem.store.tombstones import canonical

NOW = datetime(2026, 11, 30)
ANY = st.text(st.characters(codec=None), max_size=60)


@given(ANY)
def test_clean_is_idempotent_and_encodable(text):
    once = clean(text)
    assert clean(once) == once
    assert "\0" not in once
    once.encode()


@given(ANY)
def test_canonical_is_idempotent_and_blind_to_case_and_space(text):
    once = canonical(text)
    assert canonical(once) == once
    assert canonical(f"  {text}\u200b\n") == once


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=3, max_size=3)
)
def test_a_triples_key_reads_back(parts):
    key = triple_key(*parts)
    if not any(c in "".join(parts) for c in "\r\n"):
        assert next(csv.reader([key])) == parts


@given(ANY)
def test_terms_are_short_lower_and_never_empty(text):
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM
        assert not any(c.isspace() for c in term)


@pytest.mark.deep
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from(["s-1", "s-2"]), st.lists(st.tuples(st.integers(0, 12), ANY))),
        max_size=5,
    )
)
def test_turns_are_dense_and_each_line_is_stored_once(batches):
    """Against a plain list: the first to name a line keeps it."""
    model: dict[str, list[str]] = {"s-1": [], "s-2": []}
    seen: set[int] = set()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder), write=True) as store:
        for session, lines in batches:
            said = [
                Message(session, f"u{n}", "user", text, NOW + timedelta(seconds=n))
                for n, text in lines
            ]
            with store.transaction(Author(Channel.HOOK), now=NOW) as txn:
                txn.put_messages(session, said, "app")
            for n, text in lines:
                if n not in seen:
                    seen.add(n)
                    model[session].append(clean(text))
        for session, texts in model.items():
            found = store.messages(session)
            assert [one.text for one in found] == texts
            assert [one.turn for one in found] == list(range(1, len(texts) + 1))
        assert store.verify_ledger() is None

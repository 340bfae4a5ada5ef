"""The index follows the store by slices, and between them the store is anybody's."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.model import Entry
from hypatia_mem.store import indexing, search
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.indexing import catch_up, sync_index, sync_slice
from hypatia_mem.store.search import SearchIndex


@pytest.fixture
def many(kit, monkeypatch):
    """A memory with ten things, of which a slice takes three."""
    monkeypatch.setattr(indexing, "SLICE", 3)
    monkeypatch.setattr(indexing, "PAUSE_SECONDS", 0.0)
    with kit.change() as txn:
        for number in range(10):
            txn.put_entry(Entry(f"thing-{number}", f"needle {number}", scopes=("app",)))
    return kit


def found(kit, word="needle"):
    return {hit.name for hit in SearchIndex(kit.home).search(word, limit=50)}


def everything():
    return {f"thing-{number}" for number in range(10)}


def test_slices_come_to_what_one_go_comes_to(many):
    assert catch_up(many.home)
    assert found(many) == everything()
    with many.open() as store:
        assert sync_index(store, SearchIndex(many.home)) == 0


def test_the_store_is_free_between_slices(many):
    """A writer gets in after each slice, and what it withdraws does not come back."""
    seen = []

    def withdraw():
        number = len(seen)
        seen.append(len(found(many)))
        with many.change() as txn:
            SearchIndex(many.home).remove([f"thing-{number}"])
            txn.delete_entry(f"thing-{number}")
        return False

    assert catch_up(many.home, stop=withdraw)
    assert len(seen) >= 3
    assert seen[0] == 3
    assert found(many) == everything() - {f"thing-{number}" for number in range(len(seen))}


def test_it_is_gone_on_with_where_it_was_stopped(many):
    assert not catch_up(many.home, stop=lambda: True)
    assert found(many) == {"thing-0", "thing-1", "thing-2"}
    assert catch_up(many.home)
    assert found(many) == everything()


def test_merging_is_waited_for_with_the_store_free_and_the_index_locked(many, monkeypatch):
    """Who withdraws something meanwhile is told to wait, and is not passed by."""
    monkeypatch.setattr(search, "_LOCK_WAIT_SECONDS", 0.1)
    index = SearchIndex(many.home)
    with ExitStack() as later:
        with many.open() as store:
            assert sync_slice(store, index, later) == 7
        with open_store(many.home, write=True, deadline=0.1), pytest.raises(search.IndexBusy):
            index.remove(["thing-0"])
    index.remove(["thing-0"])
    assert found(many) == {"thing-1", "thing-2"}


@pytest.mark.deep
@pytest.mark.parametrize("damage", ["seq", "meta.json", "ahead"])
def test_a_slice_of_an_index_that_cannot_be_used_begins_anew(many, damage):
    catch_up(many.home)
    file = many.home / "index" / ("seq" if damage == "ahead" else damage)
    file.write_text(f"{search.FORMAT} 99999" if damage == "ahead" else "{nonsense")
    with many.change() as txn:
        txn.put_entry(Entry("more", "needle", scopes=("app",)))
    with ExitStack() as later, many.open() as store:
        assert sync_slice(store, SearchIndex(many.home), later) == 8
    assert found(many) == {"thing-0", "thing-1", "thing-2"}
    assert catch_up(many.home)
    assert found(many) == {*everything(), "more"}


def test_an_empty_store_has_an_empty_index(kit):
    with kit.change():
        pass
    with pytest.raises(IndexUnavailable):
        found(kit)
    assert catch_up(kit.home)
    assert found(kit) == set()

"""A summary made anew: seen first, stored only when accepted, standing on all it stood on."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory import propagation
from hypatia_mem.memory.cascade import regenerate
from hypatia_mem.store import history as states
from hypatia_mem.store import sources
from hypatia_mem.store.connection import FILE, open_store
from tests.memory.cascade_kit import (
    NOW,
    PERSON,
    assert_whole,
    counts,
    fill,
    run,
    settings,
    summaries,
    talk,
)

CONFIG = settings(cascade_batch=2, cascade_max_tokens=400)


@pytest.fixture
def tree(home):
    fill(home, talk(16))
    run(home, CONFIG)
    assert counts(home, 3) == [4, 2, 1]
    return home


def _preview(home, *names, most=20, scopes=("app", "")):
    return regenerate.preview(home, names, most=most, scopes=scopes, settings=CONFIG)


def _accept(home, ticket, *names, most=20):
    return regenerate.accept(
        home, names, ticket, most=most, scopes=("app",), settings=CONFIG, author=PERSON, now=NOW
    )


def _of(home, name):
    with open_store(home, write=False) as store:
        return set(sources.sources(store, name))


def test_looking_changes_nothing_at_all(tree):
    """Not accepted, the store's file is the same to the byte."""
    name = summaries(tree, 1)[0].name
    before = (tree / FILE).read_bytes()
    shown = _preview(tree, name)
    assert shown.content != summaries(tree, 1)[0].content
    assert (tree / FILE).read_bytes() == before


@pytest.mark.deep
def test_accepted_it_is_the_next_version_and_the_old_one_can_be_read(tree):
    old = summaries(tree, 1)[0]
    stood_on = _of(tree, old.name)
    shown = _preview(tree, old.name)
    _accept(tree, shown.ticket, old.name)
    assert summaries(tree, 1)[0].content == shown.content
    assert _of(tree, old.name) == stood_on == set(shown.sources)
    with open_store(tree, write=False) as store:
        texts = [state.value.content for state in states.entry_states(store, old.name)]
    assert texts == [old.content, shown.content]
    assert counts(tree, 3) == [4, 1, 0], "what stood on the old words is gone"
    propagation.rederive(tree, CONFIG, now=NOW)
    assert counts(tree, 3) == [4, 2, 1]
    assert_whole(tree)


@pytest.mark.deep
def test_several_become_one_that_stands_on_all_their_sources(tree):
    """The union, not the newer one's; and it goes with a source of either."""
    one, two, *_ = [entry.name for entry in summaries(tree, 1)]
    union = _of(tree, one) | _of(tree, two)
    shown = _preview(tree, one, two, most=60)
    _accept(tree, shown.ticket, one, two, most=60)
    assert _of(tree, one) == union
    assert counts(tree, 1) == [3]
    with open_store(tree, write=False) as store:
        assert store.entry(two) is None
        assert len(states.entry_states(store, two)) == 1, "the original can be read"
    for source in (min(union), max(union)):
        told = propagation.delete(
            tree, [source], scopes=("app",), dry_run=True, author=PERSON, now=NOW
        )
        assert one in {each.name for each in told.derived}


@pytest.mark.deep
def test_a_text_that_would_be_another_one_by_now_is_not_stored(tree):
    name = summaries(tree, 1)[0].name
    shown = _preview(tree, name)
    gone = sorted(_of(tree, name))[0]
    with pytest.raises(Conflict, match="not what would be made now"):
        _accept(tree, shown.ticket, name, most=40)
    with open_store(tree, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        text = store.entry(gone).content + " And more."
        txn.update_entry(gone, content=text)
    with pytest.raises((Conflict, NotFound)):
        _accept(tree, shown.ticket, name)


def test_only_summaries_of_one_level_become_one(tree):
    low, high = summaries(tree, 1)[0].name, summaries(tree, 2)[0].name
    with pytest.raises(UsageError, match="one level"):
        _preview(tree, low, high)
    with pytest.raises(UsageError, match="is no summary"):
        _preview(tree, "msg-s-1-1")
    with pytest.raises(NotFound, match="no summary"):
        _preview(tree, low, scopes=("web",))

"""A summary goes in the transaction that withdraws one of its sources, whatever the door."""

from __future__ import annotations

import pytest

from hypatia_mem.memory import curate
from hypatia_mem.store.connection import open_store
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


@pytest.mark.parametrize("how", ["forget", "suppress", "delete"])
def test_no_summary_outlives_a_source_for_a_moment(home, how):
    """The whole tree above goes; the next pass makes the same tiers of what is left."""
    config = settings(cascade_batch=2, cascade_max_tokens=200)
    fill(home, talk(8))
    run(home, config)
    assert counts(home, 3) == [4, 2, 1]
    if how == "delete":
        curate.delete_entry(home, "msg-s-1-3", author=PERSON, now=NOW)
    elif how == "forget":
        curate.forget(home, "", scope="app", ids=["msg-s-1-3"], author=PERSON, now=NOW)
    else:
        with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
            txn.update_entry("msg-s-1-3", suppressed=True)
    assert not any("Report 2:" in one.content for one in summaries(home))
    assert counts(home, 3) == [3, 1, 0]
    assert_whole(home)
    with open_store(home, write=False) as store:
        kept = store.run("SELECT 1 FROM version WHERE content LIKE '%Report 2:%'")
    assert bool(kept) is (how != "forget")
    run(home, config)
    assert counts(home, 3) == [4, 2, 1]
    assert_whole(home)

"""A summary goes in the transaction that withdraws one of its sources, whatever the door."""

from __future__ import annotations

import pytest

from hypatia_mem.memory import curate
from hypatia_mem.model import Entry, Statement
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


@pytest.mark.deep
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


def test_a_circle_of_links_is_gone_round_once(home):
    """Only by hand can it be laid; a deletion ends all the same, and takes both summaries."""
    for name in ("one", "two"):
        entry = Entry(name, f"about {name}", tags=("summary",), scopes=("app",), kind="summary")
        curate.create_entry(home, entry, author=PERSON, now=NOW)
    for ends in (("one", "two"), ("two", "one")):
        link = Statement(ends[0], "summary", ends[1], scopes=("app",))
        curate.create_statement(home, link, author=PERSON, now=NOW)
    curate.delete_entry(home, "one", author=PERSON, now=NOW)
    assert summaries(home) == []


@pytest.mark.deep
def test_what_only_has_such_a_link_stays(home):
    """The twin: a guide that names a summary of something is no summary."""
    for name, tags in (("guide", ()), ("digest", ("summary",)), ("source", ())):
        entry = Entry(name, f"about {name}", tags=tags, scopes=("app",))
        curate.create_entry(home, entry, author=PERSON, now=NOW)
    for subject in ("guide", "digest"):
        link = Statement(subject, "summary", "source", scopes=("app",))
        curate.create_statement(home, link, author=PERSON, now=NOW)
    curate.delete_entry(home, "source", author=PERSON, now=NOW)
    with open_store(home, write=False) as store:
        assert store.entry("guide") is not None
        assert store.entry("digest") is None

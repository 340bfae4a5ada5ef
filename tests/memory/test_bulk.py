"""Many at once: all or none, one undo, and what was selected is what is changed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.errors import Conflict, NotFound, Refused, UsageError
from hypatia_mem.memory import bulk, curate, history
from hypatia_mem.memory.bulk import Filter
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, fill, talk

AGENT = Author(Channel.CLI_AGENT)
HERE = Filter(("app", ""))


@pytest.fixture
def shelf(home):
    """Six notes of this project, n-5 the newest, and one of another."""
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        for n in range(6):
            made = NOW - timedelta(days=9 - n)
            tags = ("even",) if n % 2 == 0 else ()
            txn.put_entry(Entry(f"n-{n}", f"note {n}", tags, ("app",), created_at=made))
        txn.put_entry(Entry("far", "note of web", scopes=("web",), created_at=NOW))
    fill(home, talk(2))
    return home


def _change(home, verb, select, value="", *, wanted=HERE, author=PERSON, **how):
    return bulk.change(home, verb, value, select, wanted, author=author, now=NOW, **how)


def _entries(home):
    with open_store(home, write=False) as store:
        names = [row["name"] for row in store.run("SELECT name FROM entry")]
        return {one.name: one for one in store.entries(names)}


def test_the_numbers_are_those_of_the_list_that_the_filters_leave(shelf):
    """Newest first; another project's are in no list of this one, messages in none but their own."""
    with open_store(shelf, write=False) as store:
        assert [one.name for one in bulk.listing(store, HERE).entries] == [
            f"n-{n}" for n in (5, 4, 3, 2, 1, 0)
        ]
        even = Filter(("app",), tags=("even",))
        assert [one.name for one in bulk.listing(store, even).entries] == ["n-4", "n-2", "n-0"]
        talk_ = Filter(("app",), session_id="s-1")
        assert [one.name for one in bulk.listing(store, talk_).entries] == [
            "msg-s-1-2",
            "msg-s-1-1",
        ]
        found = Filter(("app",), text="NOTE 3")
        assert [one.name for one in bulk.listing(store, found).entries] == ["n-3"]
    done = _change(shelf, "tag", "2-", "old", wanted=Filter(("app",), tags=("even",)))
    assert done.names == ("n-2", "n-0")
    assert {name for name, one in _entries(shelf).items() if "old" in one.tags} == {"n-2", "n-0"}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("verb", "value", "holds"),
    [
        ("pin", "", lambda one: one.pinned),
        ("suppress", "", lambda one: one.suppressed),
        ("tag", "old", lambda one: "old" in one.tags),
        ("untag", "even", lambda one: "even" not in one.tags),
        ("move", "web", lambda one: one.scopes == ("web",)),
        ("delete", "", lambda one: one is None),
    ],
)
def test_each_verb_changes_what_is_selected_and_one_undo_takes_all_of_it_back(
    shelf, verb, value, holds
):
    before = _entries(shelf)
    told = _change(shelf, verb, "1-2,5-", value, dry_run=True)
    assert _entries(shelf) == before
    assert told.op_id == ""
    done = _change(shelf, verb, "1-2,5-", value)
    assert told.names == done.names == ("n-5", "n-4", "n-1", "n-0")
    after = _entries(shelf)
    assert all(holds(after.get(name)) for name in done.names)
    left = set(before) - set(done.names)
    assert {name: after[name] for name in left} == {name: before[name] for name in left}
    history.undo(shelf, done.op_id, author=PERSON, now=NOW)
    now = {name: (one.content, one.tags, one.scopes, one.pinned, one.suppressed)
           for name, one in _entries(shelf).items()}  # fmt: skip
    assert now == {
        name: (one.content, one.tags, one.scopes, one.pinned, one.suppressed)
        for name, one in before.items()
    }


def test_a_second_time_nothing_changes(shelf):
    _change(shelf, "pin", "1-2")
    again = _change(shelf, "pin", "1-3")
    assert again.unchanged == ("n-5", "n-4")


def test_all_or_none(shelf):
    """One that an agent may not change: the others stay as they are too."""
    _change(shelf, "pin", "3")
    before = _entries(shelf)
    with pytest.raises(Refused, match="'n-3' may not be changed"):
        _change(shelf, "unpin", "all", author=AGENT)
    assert _entries(shelf) == before
    _change(shelf, "unpin", "all")
    assert not any(one.pinned for one in _entries(shelf).values())


def test_numbers_of_a_list_that_has_changed_are_refused(shelf):
    with open_store(shelf, write=False) as store:
        token = bulk.listing(store, HERE).token
    curate.create_entry(
        shelf, Entry("new", "x", scopes=("app",)), author=PERSON, now=NOW + timedelta(days=1)
    )
    with pytest.raises(Conflict, match="has changed"):
        _change(shelf, "delete", "1", token=token)
    with open_store(shelf, write=False) as store:
        token = bulk.listing(store, HERE).token
    assert _change(shelf, "delete", "1", token=token).names == ("new",)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("verb", "select", "value", "error"),
    [
        ("shred", "1", "", UsageError),
        ("tag", "1", "", UsageError),
        ("pin", "1", "x", UsageError),
        ("pin", "7", "", UsageError),
    ],
)
def test_what_makes_no_sense_changes_nothing(shelf, verb, select, value, error):
    before = _entries(shelf)
    with pytest.raises(error):
        _change(shelf, verb, select, value)
    assert _entries(shelf) == before


def test_an_empty_list_is_said_to_be_one(shelf):
    with pytest.raises(NotFound, match="nothing is in this list"):
        _change(shelf, "pin", "all", wanted=Filter(("app",), tags=("nope",)))


def test_what_is_suppressed_is_listed_apart_and_can_be_shown_again(shelf):
    _change(shelf, "suppress", "1-2")
    hidden = Filter(("app", ""), withheld=True)
    with open_store(shelf, write=False) as store:
        assert len(bulk.listing(store, HERE).entries) == 4
        assert len(bulk.listing(store, hidden).entries) == 2
    _change(shelf, "unsuppress", "all", wanted=hidden)
    with open_store(shelf, write=False) as store:
        assert len(bulk.listing(store, HERE).entries) == 6


def test_an_entry_has_one_category_at_most(shelf):
    """Another one takes its place; none is none; tags that a person gave stay. One undo."""
    _change(shelf, "category", "1-3", "ops")
    done = _change(shelf, "category", "2-4", "web shop")
    of = {name: one.tags for name, one in _entries(shelf).items()}
    assert of["n-5"] == ("category:ops",)
    assert of["n-4"] == ("even", "category:web shop")
    assert of["n-2"] == ("even", "category:web shop")
    with open_store(shelf, write=False) as store:
        found = bulk.listing(store, Filter(("app",), tags=("category:web shop",)))
    assert [one.name for one in found.entries] == ["n-4", "n-3", "n-2"]
    gone = _change(shelf, "uncategory", "all")
    assert not any("category" in str(one.tags) for one in _entries(shelf).values())
    assert _entries(shelf)["n-4"].tags == ("even",)
    history.undo(shelf, gone.op_id, author=PERSON, now=NOW)
    history.undo(shelf, done.op_id, author=PERSON, now=NOW)
    assert _entries(shelf)["n-4"].tags == ("even", "category:ops")
    for wrong in ("", "a,b"):
        with pytest.raises(UsageError):
            _change(shelf, "category", "1", wrong)


def test_sessions_are_archived_by_what_was_said_in_them(shelf):
    """All or none: what is of no session is refused, and with it the rest."""

    def archived() -> bool:
        with open_store(shelf, write=False) as store:
            return store.session("s-1").archived

    said = Filter(("app",), session_id="s-1")
    done = _change(shelf, "archive", "all", wanted=said)
    assert archived()
    assert _change(shelf, "archive", "all", wanted=said).unchanged == done.names
    history.undo(shelf, done.op_id, author=PERSON, now=NOW)
    assert not archived()
    with pytest.raises(Refused, match="only sessions are archived"):
        _change(shelf, "archive", "1-", wanted=Filter(("app",), kinds=("message", "knowledge")))
    assert not archived()
    _change(shelf, "archive", "1", wanted=said)
    _change(shelf, "unarchive", "1", wanted=said)
    assert not archived()

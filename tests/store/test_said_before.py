"""An old talk that is read again does not take back what was changed since, on purpose."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store

CHANGED = datetime(2026, 11, 30, 12)
FIRST = Entry("memory:home", "I live in Bonn", kind="memory", scopes=("app",))
OTHER = Entry("memory:home", "I live in Kiel", kind="memory", scopes=("app",))


def write(home, channel, at, do, said_at=None):
    author = Author(channel, session_id="s", turn=1)
    with open_store(home, write=True) as store, store.transaction(author, now=at) as txn:
        with txn.acting(author, said_at=said_at):
            return do(txn)


def stored(home):
    with open_store(home, write=False) as store:
        entry = store.entry("memory:home")
    return entry.content, entry.valid_to


@pytest.fixture(params=[Channel.CLI_PERSON, Channel.CLI_AGENT])
def changed(home, request):
    """Said by a prompt, and then changed at the command line: it ended."""
    write(home, Channel.TRANSCRIPT, CHANGED - timedelta(hours=2), lambda txn: txn.put_entry(FIRST))
    end = CHANGED - timedelta(minutes=1)
    write(
        home,
        request.param,
        CHANGED,
        lambda txn: txn.update_entry("memory:home", valid_to=end),
    )
    return end


@pytest.mark.deep
@pytest.mark.parametrize("channel", [Channel.TRANSCRIPT, Channel.HOOK_PROMPT])
@pytest.mark.parametrize("entry", [FIRST, OTHER])
def test_what_was_said_before_changes_nothing(home, changed, channel, entry):
    done = write(
        home,
        channel,
        CHANGED + timedelta(hours=1),
        lambda txn: txn.put_entry(entry, replace=True),
        CHANGED - timedelta(hours=1),
    )
    assert (done.verb, stored(home)) == ("unchanged", (FIRST.content, changed))
    assert "after this was said" in done.reason


@pytest.mark.parametrize("channel", [Channel.TRANSCRIPT, Channel.HOOK_PROMPT])
def test_what_is_said_since_makes_it_true_again(home, changed, channel):
    done = write(
        home,
        channel,
        CHANGED + timedelta(hours=1),
        lambda txn: txn.put_entry(FIRST, replace=True),
        CHANGED + timedelta(minutes=30),
    )
    assert (done.verb, stored(home)) == ("updated", (FIRST.content, None))


def test_two_prompts_of_one_drain_are_taken_in_their_order(home):
    """Nothing was changed by a command: the later prompt counts, although both are stored late."""
    for entry, minutes in ((FIRST, 1), (OTHER, 2)):
        done = write(
            home,
            Channel.HOOK_PROMPT,
            CHANGED,
            lambda txn, entry=entry: txn.put_entry(entry, replace=True),
            CHANGED - timedelta(hours=1) + timedelta(minutes=minutes),
        )
        assert done.verb in ("created", "updated")
    assert stored(home)[0] == OTHER.content

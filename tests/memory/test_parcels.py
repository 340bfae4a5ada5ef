"""Parcels that are not wanted any more: called off at the API, and nothing of them is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hypatia_mem.errors import Conflict
from hypatia_mem.memory import jobs as work
from hypatia_mem.memory.cascade import backfill
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.spend import spending
from hypatia_mem.store import jobs
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, WORKER, assert_whole, fill, settings, talk
from tests.memory.model_server import ModelServer

GOOD = (
    "NAME: retry queue report\n- The retry queue loses jobs in module_0.py after 0 runs.\n"
    "- It was seen before and nobody knew why."
)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    one = ModelServer(hold=True).start()
    one.says(GOOD)
    yield one
    one.stop()


@pytest.fixture
def config(model):
    return settings(summary_by="anthropic", anthropic_url=model.url, model_timeout_seconds=20)


def handed_in(home, config, count):
    """Hand in a parcel of so many batches; return the tickets."""
    fill(home, talk(count))
    assert backfill.send(home, config, now=NOW, author=PERSON, scopes=None).batches == count
    return [job.id for job in work.listed(home, config, now=NOW, scopes=None)]


def drop(home, config, ids):
    return work.drop(home, config, ids, author=PERSON, now=NOW)


def collect(home, config):
    return backfill.collect(home, config, now=NOW, author=WORKER)


def parcels(home):
    with open_store(home, write=False) as store:
        return {job.parcel.partition(" ")[0] for job in jobs.jobs(store).values()} - {""}


def test_a_parcel_of_which_nothing_is_wanted_is_called_off_and_what_it_took_is_known(
    home, model, config
):
    tickets = handed_in(home, config, 2)
    most = spending(home, config, NOW)["today"]["dollars"]
    done = drop(home, config, tickets)
    assert (done.recalled, model.recalled) == (("msgbatch_0",), {"msgbatch_0"})
    assert collect(home, config).made == (), "not ended yet"
    assert parcels(home) == {"msgbatch_0"}
    model.hold = False
    assert collect(home, config).made == ()
    assert spending(home, config, NOW)["today"]["dollars"] == 0.0 < most
    assert parcels(home) == set(), "and it is not asked for again"
    assert [job.state for job in work.listed(home, config, now=NOW, scopes=None)] == ["dropped"] * 2


def test_a_parcel_that_holds_other_work_goes_on_and_only_that_is_stored(home, model, config):
    tickets = handed_in(home, config, 3)
    done = drop(home, config, tickets[:1])
    assert (done.recalled, done.going_on, model.recalled) == ((), ("msgbatch_0",), set())
    model.hold = False
    assert len(collect(home, config).made) == 2
    assert_whole(home)
    assert cascade.run(home, config, now=NOW).made == (), "what was dropped stays dropped"
    assert spending(home, config, NOW)["today"]["dollars"] > 0


def test_out_of_reach_it_is_dropped_all_the_same_and_can_be_called_off_later(home, model, config):
    tickets = handed_in(home, config, 1)
    model.refuses = 500
    done = drop(home, config, tickets)
    assert (done.recalled, model.recalled) == ((), set())
    assert "has a fault (500)" in done.unreached
    model.refuses = 0
    assert drop(home, config, tickets).recalled == ("msgbatch_0",)
    model.hold = False
    assert collect(home, config).made == ()


def test_after_switching_it_is_called_off_where_it_was_handed_in(home, model, config):
    tickets = handed_in(home, config, 1)
    drop(home, replace(config, summary_by="extractive"), tickets)
    assert model.recalled == {"msgbatch_0"}


def test_what_is_out_is_not_tried_a_second_time_until_it_is_called_off(home, model, config):
    (ticket,) = handed_in(home, config, 1)
    with pytest.raises(Conflict, match="would cost twice"):
        work.retry(home, [ticket], author=PERSON, now=NOW)
    assert work.retry(home, [], author=PERSON, now=NOW) == []
    drop(home, config, [ticket])
    assert work.retry(home, [ticket], author=PERSON, now=NOW) == [ticket]
    model.hold = False
    assert len(cascade.run(home, config, now=NOW).made) == 1
    assert_whole(home)


def test_work_that_was_not_handed_in_asks_nobody(home, model, config):
    fill(home, talk(1))
    (job,) = work.listed(home, config, now=NOW, scopes=None)
    drop(home, config, [job.id])
    assert model.asked == []

"""Jobs and calls as the store keeps them: bounded, replaceable, without a ledger row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypatia_mem.store import jobs
from hypatia_mem.store.jobs import Call, Job, JobState
from tests.store.conftest import NOW

JOB = Job("1.4.abc", "summary", 1, ("app",), JobState.WAITING, 1, NOW, "rate", "asked to wait")


def test_a_job_is_replaced_and_keeps_when_it_began(kit):
    with kit.change() as txn:
        jobs.put_job(txn, JOB)
    with kit.change() as txn:
        jobs.put_job(txn, replace(JOB, state=JobState.DEAD, attempts=6, next_at=None))
    with kit.open() as store:
        assert list(jobs.jobs(store).values()) == [
            replace(JOB, state=JobState.DEAD, attempts=6, next_at=None, created_at=NOW)
        ]
    with kit.change() as txn:
        jobs.delete_jobs(txn, ["1.4.abc", "not there"])
    with kit.open() as store:
        assert jobs.jobs(store) == {}


def test_jobs_are_bounded_and_what_a_person_dropped_stays(kit, monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_JOBS", 3)
    with kit.change() as txn:
        jobs.put_job(txn, replace(JOB, id="0", state=JobState.DROPPED))
        jobs.put_job(txn, replace(JOB, id="00", state=JobState.SENT))
        for number in range(1, 6):
            jobs.put_job(txn, replace(JOB, id=str(number)))
    with kit.open() as store:
        found = jobs.jobs(store)
    assert {"0", "00"} <= set(found)
    assert len(found) == 4


def test_a_call_is_settled_in_place_and_summed_by_day(kit):
    call = Call("c1", NOW, "anthropic", "m", "open", 1, 1000, 500, 3500)
    with kit.change() as txn:
        jobs.put_call(txn, call)
        jobs.put_call(txn, replace(call, state="done", output_tokens=20, micro=1100))
        jobs.put_call(txn, replace(call, id="c2", state="failed", output_tokens=0, micro=0))
        jobs.put_call(txn, replace(call, id="c0", at=NOW - timedelta(days=1), micro=7))
    with kit.open() as store:
        assert [one.id for one in jobs.calls_since(store, NOW)] == ["c1", "c2"]
        days = jobs.days_of_calls(store, NOW - timedelta(days=2))
    assert [(one.day, one.calls, one.failed, one.micro) for one in days] == [
        ("2026-11-30", 2, 1, 1100),
        ("2026-11-29", 1, 0, 7),
    ]
    with kit.change() as txn:
        jobs.drop_old_calls(txn, NOW)
    with kit.open() as store:
        assert len(jobs.calls_since(store, NOW - timedelta(days=9))) == 2


def test_bookkeeping_is_no_part_of_the_ledger(kit):
    """It says nothing about what is remembered: undoing and verifying have nothing to do there."""
    with kit.open() as store:
        before = store.ledger_seq()
    with kit.change() as txn:
        jobs.put_job(txn, JOB)
        jobs.put_call(txn, Call("c1", NOW, "x", "m", "done", 1, 1, 1, 1))
    with kit.open() as store:
        assert store.ledger_seq() == before

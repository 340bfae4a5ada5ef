"""A memory that a model condenses: nothing lost, nothing spent that was not allowed, nothing twice.

The model is scripted on loopback; store, worker and package are real.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from hypatia_mem.config import load_settings, set_value
from hypatia_mem.errors import NotFound
from hypatia_mem.memory import jobs as work
from hypatia_mem.memory.cascade import backfill
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.spend import Meter, spending
from hypatia_mem.memory.summarise import choosing
from hypatia_mem.memory.summarise.messages_api import MessagesApi
from hypatia_mem.memory.summarise.prompted import Question, Usage
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import jobs
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import (
    NOW,
    PERSON,
    assert_whole,
    fill,
    links,
    settings,
    summaries,
    talk,
)
from tests.memory.model_server import ModelServer, Step

GOOD = (
    "NAME: retry queue report\n- The retry queue loses jobs in module_0.py after 0 runs.\n"
    "- It was seen before and nobody knew why."
)
KEY = "sk-ant-" + "a-key-of-mine-for-tests-" * 2


@pytest.fixture(scope="module")
def server():
    one = ModelServer().start()
    yield one
    one.stop()


@pytest.fixture
def model(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server.asked.clear()
    server.parcels.clear()
    server.recalled.clear()
    server.hold = False
    server.meanwhile = lambda: None
    server.says(GOOD)
    return server


def config(model, **changes):
    base = settings(summary_by="anthropic", anthropic_url=model.url, model_timeout_seconds=20)
    return replace(base, **{"model_day_calls": 1000, "model_calls_per_minute": 1000, **changes})


def run(home, one, **how):
    return cascade.run(home, one, now=how.pop("now", NOW), **how)


def states(home, one, now=NOW):
    return [(job.state, job.items) for job in work.listed(home, one, now=now, scopes=None)]


# --- it works -------------------------------------------------------------------------------------


def test_a_model_condenses_and_is_recorded_with_the_digest_of_its_rules(home, model):
    fill(home, talk(2))
    report = run(home, config(model))
    assert [one.name for one in report.made] == ["retry-queue-report", "retry-queue-report-2"]
    with open_store(home, write=False) as store:
        producer = store.producer_of("retry-queue-report")
    assert re.fullmatch(r"anthropic:claude-haiku-5-5#[0-9a-f]{12}", producer)
    assert len(model.questions) == 2
    assert_whole(home)
    assert run(home, config(model)).made == ()
    assert len(model.questions) == 2, "nothing is asked about twice"


def test_the_store_is_free_while_the_model_is_asked(home, model):
    """Another process could write during each call; the lease is not held across it."""
    seen = []

    def write():
        with open_store(home, write=True, deadline=0.5) as store:
            seen.append(store.ledger_seq())

    model.meanwhile = write
    fill(home, talk(2))
    run(home, config(model))
    assert len(seen) == 2


def test_new_turns_are_stored_while_the_model_is_silent(home, model):
    """Whatever waits for the model, the drain does not."""
    fill(home, talk(1))
    model.says(Step(silent=True))
    ticks = []

    def tick():
        if not ticks:
            fill(home, ["a turn that came in meanwhile"], session="s-2")
        ticks.append(1)

    report = run(home, config(model), waiting=cascade.Waiting(tick, lambda: len(ticks) > 3))
    assert report.made == ()
    with open_store(home, write=False) as store:
        assert store.entry("msg-s-2-1") is not None


def test_asked_to_stop_it_stops_and_nothing_is_held_against_the_batch(home, model):
    fill(home, talk(1))
    model.says(Step(silent=True))
    report = run(home, config(model), waiting=cascade.Waiting(stop=lambda: bool(model.asked)))
    assert report.paused == "it was asked to stop"
    assert states(home, config(model)) == [("due", 1)]
    model.says(GOOD)
    assert len(run(home, config(model)).made) == 1


# --- it fails -------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("step", "state", "again"),
    [
        pytest.param(Step(""), "waiting", 60, id="empty"),
        pytest.param(Step("", thinking="all of it"), "waiting", 60, id="only thinking"),
        pytest.param(Step(GOOD, stop="max_tokens"), "waiting", 60, id="cut off"),
        pytest.param(Step("I'm sorry, but I can't."), "waiting", 60, id="a refusal"),
        pytest.param(Step("- We bought an elephant."), "waiting", 60, id="a lie"),
        pytest.param(Step(status=401), "paused", 60, id="401"),
        pytest.param(Step(status=429, retry_after="600"), "paused", 600, id="429"),
        pytest.param(Step(status=500), "waiting", 60, id="500"),
        pytest.param(Step(silent=True), "waiting", 60, id="silence"),
    ],
)
def test_what_failed_is_asked_again_later_and_once_and_nothing_is_lost(
    home, model, step, state, again
):
    one = config(model, model_timeout_seconds=1)
    fill(home, talk(1))
    model.says(step)
    report = run(home, one)
    assert report.made == ()
    assert report.failed
    assert links(home) == [], "no blank memory"
    assert states(home, one) == [(state, 1)]
    asked = len(model.questions)
    for seconds in (1, again - 20):
        run(home, one, now=NOW + timedelta(seconds=seconds))
    assert len(model.questions) == asked, "no hot loop"
    model.says(GOOD)
    made = run(home, one, now=NOW + timedelta(seconds=again + 20)).made
    assert [one.items for one in made] == [1]
    assert states(home, one, NOW + timedelta(hours=1)) == []
    assert_whole(home)


@pytest.mark.deep
def test_out_of_reach_one_attempt_stands_for_all_and_the_pause_grows(home, model):
    """Many batches wait; each visit asks once, less and less often, and blames no batch."""
    fill(home, talk(4))
    model.says(Step(status=429))
    one = config(model)
    at = NOW
    for expected in range(1, 8):
        run(home, one, now=at)
        assert len(model.questions) == expected
        with open_store(home, write=False) as store:
            pause = cascade.failing.pause_of(store, one)
        wait = pause.again - at
        assert timedelta(minutes=1) <= wait <= timedelta(hours=6, minutes=1)
        at = pause.again + timedelta(seconds=1)
    assert wait > timedelta(hours=5)
    assert {state for state, _ in states(home, one, at)} == {"due"}
    model.says(GOOD)
    assert len(run(home, one, now=at).made) == 4
    assert_whole(home)


@pytest.mark.deep
def test_a_dead_letter_is_taken_by_extractive_and_marked_so(home, model):
    fill(home, talk(1))
    model.says(Step(""))
    one = config(model)
    for day in range(6):
        run(home, one, now=NOW + timedelta(days=day))
    assert len(model.questions) == 6
    made = run(home, one, now=NOW + timedelta(days=6)).made
    assert len(model.questions) == 6
    with open_store(home, write=False) as store:
        producer = store.producer_of(made[0].name)
    assert re.fullmatch(r"extractive-1#[0-9a-f]{12} for anthropic", producer)
    assert_whole(home)


@pytest.mark.deep
def test_without_a_stand_in_a_dead_letter_waits_for_a_person(home, model):
    fill(home, talk(1))
    model.says(Step(""))
    one = config(model, summary_stand_in=False)
    for day in range(7):
        run(home, one, now=NOW + timedelta(days=day))
    assert len(model.questions) == 6
    later = NOW + timedelta(days=9)
    assert states(home, one, later) == [("dead", 1)]
    model.says(GOOD)
    assert run(home, one, now=later).made == ()
    assert len(work.retry(home, [], author=PERSON, now=later)) == 1
    assert len(run(home, one, now=later).made) == 1


@pytest.mark.deep
def test_what_a_model_gave_up_on_is_due_for_whoever_it_is_switched_to(home, model):
    fill(home, talk(2))
    model.says(Step(""))
    one = config(model, summary_stand_in=False)
    for day in range(7):
        run(home, one, now=NOW + timedelta(days=day))
    report = run(home, replace(one, summary_by="extractive"), now=NOW + timedelta(days=9))
    assert len(report.made) == 2
    assert_whole(home)


@pytest.mark.deep
def test_a_part_that_failed_stays_a_part_although_there_is_too_little_for_a_batch(home, model):
    """The first of several parts fails and the others are stored: it is due again by itself."""
    fill(home, talk(18, length=350))
    one = config(model, cascade_max_tokens=2000, summary_window=500)
    model.says(Step(""), Step(GOOD))
    first = run(home, one)
    assert (len(first.made), len(first.failed)) == (4, 1)
    ((state, items),) = states(home, one)
    assert state == "waiting"
    later = run(home, one, now=NOW + timedelta(minutes=2))
    assert [done.items for done in later.made] == [items]
    assert len({item for _, item in links(home)}) == 18
    assert_whole(home)


# --- what a person does about it ------------------------------------------------------------------


@pytest.mark.deep
def test_dropped_work_is_not_done_until_it_is_taken_up_again(home, model):
    fill(home, talk(2))
    one = config(model)
    first, second = (job.id for job in work.listed(home, one, now=NOW, scopes=None))
    work.drop(home, one, [first], author=PERSON, now=NOW)
    assert len(run(home, one, retry=True).made) == 1
    assert states(home, one) == [("dropped", 1)]
    assert run(home, replace(one, summary_by="extractive")).made == ()
    work.retry(home, [first], author=PERSON, now=NOW)
    assert len(run(home, one).made) == 1
    with pytest.raises(NotFound, match="no job"):
        work.drop(home, one, [second], author=PERSON, now=NOW)
    assert_whole(home)


# --- nobody is asked who was not chosen -----------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("by", ["extractive", "agent", "off"])
def test_no_model_is_asked_unless_the_file_says_so(home, model, monkeypatch, by):
    """A key in the environment and a project that would like it are not enough."""
    monkeypatch.setenv("HYPATIA_MEM_SUMMARY_BY", "anthropic")
    set_value(home, "summary_by", by)
    set_value(home, "anthropic_url", model.url)
    set_value(home, "cascade_max_tokens", "100")
    fill(home, talk(4))
    for hours in range(3):
        run(home, load_settings(home), now=NOW + timedelta(hours=hours))
    assert model.asked == []
    monkeypatch.delenv("HYPATIA_MEM_SUMMARY_BY")
    set_value(home, "summary_by", "anthropic")
    fill(home, talk(2), session="s-2")
    run(home, load_settings(home), now=NOW + timedelta(hours=9))
    assert model.asked != []


@pytest.mark.parametrize("by", ["agent", "off"])
def test_who_makes_nothing_speaks_the_same_protocol(home, by):
    one = choosing.choose(home, settings(summary_by=by))
    assert (one.producer, bool(one.digest), one.window > 0) == (by, True, True)
    with pytest.raises(SummaryFailed, match="condenses nothing by itself") as failed:
        one.summarise(None)
    assert failed.value.failure is FailureKind.NOT_ASKED


# --- whose key ------------------------------------------------------------------------------------


def key_of(home, one, roots=(), environ=None):
    return choosing.backend_of(home, one, [str(root) for root in roots], environ or {})._key


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (".env", "ANTHROPIC_API_KEY={}"),
        (".env.local", 'export ANTHROPIC_API_KEY="{}"  # the team\'s'),
        ("backend/.env", "ANTHROPIC_API_KEY='{}'"),
        (".envrc", "export ANTHROPIC_API_KEY={}"),
        (".claude/settings.json", '{{"env": {{"ANTHROPIC_API_KEY": "{}"}}}}'),
    ],
)
def test_a_key_that_is_a_projects_own_is_not_used_however_it_got_here(home, tmp_path, name, line):
    project = tmp_path / "app"
    (project / name).parent.mkdir(parents=True)
    (project / name).write_text(f"OTHER=1\n{line.format(KEY)}\n")
    one = settings(summary_by="anthropic")
    with pytest.raises(SummaryFailed, match="a project's own") as failed:
        key_of(home, one, [project], {"ANTHROPIC_API_KEY": KEY})
    assert failed.value.failure is FailureKind.AUTH
    assert KEY not in str(failed.value)
    mine = "sk-ant-" + "another-key-which-is-mine" * 2
    assert key_of(home, one, [project], {"ANTHROPIC_API_KEY": mine}) == mine
    assert key_of(home, one, [], {}) == "", "and it is not looked for either"


def test_the_file_that_the_settings_name_holds_the_key(home, tmp_path):
    project = tmp_path / "app"
    project.mkdir()
    one = settings(summary_by="anthropic", anthropic_key_file=str(tmp_path / "key"))
    for text in (f"{KEY}\n", f"ANTHROPIC_API_KEY={KEY}\n"):
        (tmp_path / "key").write_text(text)
        assert key_of(home, one, [project], {"ANTHROPIC_API_KEY": "x"}) == KEY
    for bad, why in (
        (tmp_path / "none", "cannot be read"),
        (project / "key.txt", "project's own"),
        (tmp_path / ".env", "project's own"),
    ):
        if bad.name != "none":
            bad.write_text(KEY)
        with pytest.raises(SummaryFailed, match=why):
            key_of(home, replace(one, anthropic_key_file=str(bad)), [project])
    (tmp_path / "link").symlink_to(tmp_path / ".env")
    with pytest.raises(SummaryFailed, match="project's own"):
        key_of(home, replace(one, anthropic_key_file=str(tmp_path / "link")), [project])


def test_without_a_key_all_waits_and_the_remedy_is_told(home, model, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    fill(home, talk(3))
    report = run(home, config(model))
    assert "no key" in report.paused
    assert "config set anthropic_key_file" in report.paused
    assert model.asked == []
    assert {state for state, _ in states(home, config(model))} == {"paused"}


# --- what it may cost -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://proxy.example", "unencrypted to proxy.example"),
        ("http://10.0.0.7:8080", "unencrypted to 10.0.0.7"),
        ("http://localhost.example", "unencrypted"),
        ("proxy.example", "no address"),
        ("ftp://proxy.example", "no address"),
        ("http://[::1", "no address"),
    ],
)
def test_a_key_and_words_are_sent_in_the_clear_to_this_machine_alone(home, url, why):
    with pytest.raises(SummaryFailed, match=why) as failed:
        choosing.choose(home, settings(summary_by="anthropic", anthropic_url=url), environ={})
    assert failed.value.failure is FailureKind.SETTINGS
    for safe in (
        "",
        "https://proxy.example/v",
        "http://127.0.0.1:8",
        "http://localhost:8",
        "http://[::1]:8",
    ):
        choosing.choose(home, settings(summary_by="anthropic", anthropic_url=safe), environ={})


@pytest.mark.deep
def test_over_the_days_calls_work_waits_until_the_next_day(home, model):
    fill(home, talk(3))
    one = config(model, model_day_calls=2)
    report = run(home, one)
    assert len(report.made) == 2
    assert "model_day_calls" in report.paused
    for hours in (1, 11):
        assert run(home, one, now=NOW + timedelta(hours=hours)).made == ()
    assert len(model.questions) == 2
    assert len(run(home, one, now=NOW + timedelta(hours=12, minutes=1)).made) == 1
    assert_whole(home)


def test_a_raised_limit_holds_at_once(home, model):
    fill(home, talk(2))
    run(home, config(model, model_day_calls=1))
    assert len(run(home, config(model, model_day_calls=9)).made) == 1


@pytest.mark.deep
@pytest.mark.parametrize("cents", ["model_day_cents", "model_call_cents"])
def test_nothing_is_asked_that_could_cost_more_than_is_allowed(home, model, cents):
    """The most an answer can cost is what counts, before it is asked for."""
    fill(home, talk(1))
    one = config(model, summary_model="claude-opus-5-5", **{cents: 1})
    assert cents in run(home, one).paused
    assert model.questions == []
    assert len(run(home, config(model, summary_model="claude-opus-5-5")).made) == 1


def test_what_was_spent_is_told_by_day_calls_tokens_and_money(home, model):
    fill(home, talk(2))
    run(home, config(model))
    told = spending(home, config(model), NOW)
    # 1,000 tokens in at 0.10 and 100 out at 0.50 dollars per million, twice
    assert told["today"]["calls"] == 2
    assert told["today"]["tokens"] == 2200
    assert told["today"]["dollars"] == pytest.approx(2 * 150e-6)
    assert [day["day"] for day in told["days"]] == ["2026-11-30"]


def test_a_call_that_never_came_back_counts_as_spent(home, model):
    """Killed between asking and writing down: the most it can have cost stays."""
    one = config(model, model_day_cents=1)
    meter = Meter(home, one, MessagesApi(KEY, "claude-haiku-5-5", model.url), clock=lambda: NOW)
    most = meter.estimate(Question("rules", "text " * 4000))
    each = meter.reserve(most).micro
    for _ in range(10_000 // each - 1):
        meter.reserve(most)
    with pytest.raises(SummaryFailed, match="limit for a day"):
        meter.reserve(most)


def test_calls_are_spread_over_the_minute(home, model):
    clock = iter(NOW + timedelta(seconds=30 * n) for n in range(100))
    meter = Meter(
        home, config(model, model_calls_per_minute=1), MessagesApi(KEY), clock=lambda: next(clock)
    )
    meter._pause = lambda seconds: None
    at = [meter.reserve(Usage(10, 10)).at for _ in range(3)]
    gaps = [(b - a).total_seconds() for a, b in pairwise(at)]
    assert all(gap >= 60 for gap in gaps)


@pytest.mark.parametrize(
    ("model_name", "usage", "micro"),
    [
        ("claude-haiku-5-5", Usage(1_000_000, 0), 500_000),  # a long prompt
        ("claude-haiku-5-5", Usage(100_000, 1_000), 10_500),
        ("claude-haiku-4-5-20251001", Usage(1000, 1000), 6000),
        ("claude-sonnet-5-5", Usage(1000, 0, cache_read=1000, cache_write=1000), 4700),
        ("somebodys-model", Usage(1000, 1000), 60_000),  # unknown: as dear as the dearest
        ("my-model-7", Usage(1000, 1000), 3000),
        ("anything", Usage(1, 1, dollars=0.5), 500_000),
    ],
)
def test_prices(home, model_name, usage, micro):
    (home / "config.toml").write_text('[model_prices]\n"my-model" = "1 2"\n')
    assert Meter(home, settings(), MessagesApi("", model_name)).price.micro(usage) == micro


@pytest.mark.deep
def test_the_estimate_comes_before_and_holds(home, model):
    fill(home, talk(4))
    one = config(model)
    guess = backfill.estimate(home, one, now=NOW, scopes=None)
    assert model.asked == []
    assert (guess.calls, guess.summaries, guess.fits) == (4, 4, True)
    assert not backfill.estimate(home, replace(one, model_day_calls=3), now=NOW, scopes=None).fits
    run(home, one)
    spent = round(spending(home, one, NOW)["today"]["dollars"] * 1e6)
    assert spent <= guess.most_micro
    free = backfill.estimate(home, settings(), now=NOW, scopes=None)
    assert (free.calls, free.micro) == (0, 0)


# --- parcels --------------------------------------------------------------------------------------


def send(home, one, now=NOW):
    return backfill.send(home, one, now=now, author=PERSON, scopes=None)


def collect(home, one, now=NOW):
    return backfill.collect(home, one, now=now, author=Author(Channel.WORKER))


@pytest.mark.deep
def test_a_parcel_is_sent_once_and_its_answers_become_summaries_at_half_the_price(home, model):
    fill(home, talk(3))
    one = config(model)
    model.hold = True
    sent = send(home, one)
    assert (sent.batches, len(model.parcels)) == (3, 1)
    assert send(home, one) is None
    assert run(home, one).made == (), "what is under way is not asked for again"
    assert states(home, one) == [("sent", 1)] * 3
    assert collect(home, one).made == ()
    model.hold = False
    assert len(collect(home, one).made) == 3
    assert model.questions == []
    assert states(home, one) == []
    assert spending(home, one, NOW)["today"]["dollars"] == pytest.approx(3 * 75e-6)
    assert_whole(home)


def test_an_answer_whose_messages_were_forgotten_is_thrown_away(home, model):
    fill(home, talk(2))
    one = config(model)
    send(home, one)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_entry("msg-s-1-1", reason="not wanted")
    assert len(collect(home, one).made) == 1
    assert {item for _, item in links(home)} == {"msg-s-1-2"}
    assert_whole(home)


@pytest.mark.deep
def test_a_bad_answer_in_a_parcel_counts_against_its_batch_alone(home, model):
    fill(home, talk(3))
    one = config(model)
    send(home, one)
    model.says(Step(""), Step(status=500), Step(GOOD))
    report = collect(home, one)
    assert (len(report.made), len(report.failed)) == (1, 2)
    assert sorted(states(home, one)) == [("waiting", 1)] * 2
    model.says(GOOD)
    assert len(run(home, one, now=NOW + timedelta(minutes=2)).made) == 2
    assert_whole(home)


def test_a_parcel_that_is_never_answered_is_due_again(home, model):
    fill(home, talk(1))
    one = config(model)
    model.hold = True
    send(home, one)
    collect(home, one, now=NOW + timedelta(hours=27))
    assert states(home, one) == [("due", 1)]


def test_a_parcel_keeps_within_the_days_calls(home, model):
    fill(home, talk(5))
    sent = send(home, config(model, model_day_calls=2))
    assert sent.batches == 2
    with pytest.raises(SummaryFailed, match="model_day_calls"):
        send(home, config(model, model_day_calls=2))


def test_switched_to_another_while_a_parcel_is_out_nothing_is_lost(home, model):
    fill(home, talk(2))
    one = config(model)
    model.hold = True
    send(home, one)
    assert len(run(home, replace(one, summary_by="extractive")).made) == 2
    model.hold = False
    assert collect(home, one).made == ()
    assert_whole(home)


# --- what is forgotten ----------------------------------------------------------------------------


def test_neither_jobs_nor_calls_hold_a_word_of_a_message(home, model):
    fill(home, ["the word is xylophone " + "and so on " * 40])
    model.says(Step("xylophone nonsense"), Step(status=500))
    run(home, config(model))
    run(home, config(model), now=NOW + timedelta(minutes=5))
    with open_store(home, write=False) as store:
        rows = [str(store.run(f"SELECT * FROM {table}", [])) for table in ("job", "spend")]
        assert "xylophone" not in "".join(rows)
        assert len(jobs.jobs(store)) == 1
    assert summaries(home) == []

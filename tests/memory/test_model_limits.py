"""What holds whoever asks a model: how often, how it is called off, and what is never sent to it."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta

import pytest

from hypatia_mem.errors import ConfigError
from hypatia_mem.memory.cascade import backfill
from hypatia_mem.memory.spend import Meter, spending
from hypatia_mem.memory.summarise.messages_api import MessagesApi
from hypatia_mem.memory.summarise.onlyone import only_one
from hypatia_mem.memory.summarise.prompted import Usage
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed
from tests.memory.cascade_kit import NOW, WORKER, fill, links, run, settings, talk
from tests.memory.model_server import ModelServer, Step

KEY = "sk-ant-mine"
API = MessagesApi(KEY)
GOOD = (
    "NAME: retry queue\n- The retry queue loses jobs in module_0.py after 0 runs.\n"
    "- It was seen before and nobody knew why."
)


class Clock:
    """A time that passes only while it is waited for, and a little with every look."""

    def __init__(self, step=0.0):
        self.now = NOW
        self.step = timedelta(seconds=step)

    def __call__(self):
        self.now += self.step
        return self.now

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)


def meter(home, clock, rate, **how):
    config = settings(
        summary_by="anthropic", model_calls_per_minute=rate, model_day_calls=1000,
        model_day_cents=100_000,
    )  # fmt: skip
    one = Meter(home, config, MessagesApi(KEY), clock=clock, **how)
    if not how:
        one._pause = clock.wait
    return one


@pytest.mark.parametrize(("rate", "step"), [(1, 0.0), (3, 0.0), (3, 7.0), (5, 11.9)])
def test_never_more_than_so_many_calls_in_any_minute(home, rate, step):
    clock = Clock(step)
    one = meter(home, clock, rate)
    at = [one.reserve(Usage(10, 10)).at for _ in range(3 * rate + 1)]
    for begin in at:
        inside = [moment for moment in at if begin <= moment < begin + timedelta(seconds=60)]
        assert len(inside) <= rate
    assert at == sorted(at)


def test_two_who_ask_share_the_rate(home):
    """A person's run beside the worker: what counts is in the store."""
    clock = Clock()
    first, second = meter(home, clock, 2), meter(home, clock, 2)
    at = [one.reserve(Usage(10, 10)).at for one in (first, second, first)]
    assert at[2] - at[0] >= timedelta(seconds=60)


def test_whoever_waits_for_the_rate_can_be_called_off_with_a_reason(home):
    asked = []
    one = meter(home, Clock(), 1, tick=lambda: asked.append(1), stop=lambda: len(asked) > 1)
    one.reserve(Usage(10, 10))
    with pytest.raises(SummaryFailed, match="asked to stop") as failed:
        one.reserve(Usage(10, 10))
    assert failed.value.failure is FailureKind.CANCELLED


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    one = ModelServer().start()
    one.says(GOOD)
    yield one
    one.stop()


def test_two_runs_at_once_do_not_pay_twice_for_the_same(home, model):
    """A person's run beside the worker's: the second leaves it to the first, and says so."""
    fill(home, talk(3))
    config = settings(summary_by="anthropic", anthropic_url=model.url, model_timeout_seconds=20)
    seconds = []
    model.meanwhile = lambda: seconds.append(run(home, config))
    report = run(home, config)
    assert len(report.made) == len(model.questions) == len(seconds) == 3
    assert all(one.made == () and "another run is asking" in one.paused for one in seconds)
    model.meanwhile = lambda: None
    fill(home, talk(1), start=3)
    assert len(run(home, config).made) == 1, "and it is let go of"
    fill(home, talk(2), session="s-2")
    with only_one(home) as mine:
        assert mine
        assert len(run(home, settings()).made) == 2, "what asks no model need not wait"


def test_pictures_encoded_data_reasoning_and_our_own_lines_are_not_sent(home, model):
    """And the words around them are."""
    data = base64.b64encode(bytes(range(256)) * 2).decode()
    text = (
        "The retry queue loses jobs in module_0.py after 0 runs.\n"
        f"![shot](data:image/png;base64,{data})\n{{{{inlay::42}}}}\n[Image #3]\n{data}\n"
        'TRIGGER:log\n[hypatia-memory] Stored: "x" (rule, global).\n'
        "It was seen before and nobody knew why.\n" * 3
    )
    fill(home, [text, f"<think>plan to buy an elephant</think>\n{text}"])
    run(home, settings(summary_by="anthropic", anthropic_url=model.url, cascade_max_tokens=1000))
    sent = "\n".join(one.text for one in model.questions)
    for gone in (data[:76], "data:image", "inlay", "[Image", "TRIGGER:", "Stored:", "elephant"):
        assert gone not in sent
    assert sent.count("The retry queue loses jobs in module_0.py after 0 runs.") == 6
    assert {item for _, item in links(home)} == {"msg-s-1-1", "msg-s-1-2"}


# --- the two limits, together and beyond midnight -------------------------------------------------


def limited(home, clock, **settings_):
    one = meter(home, clock, settings_.pop("rate", 5))
    one.settings = replace(one.settings, **settings_)
    return one


def test_midnight_begins_no_new_minute(home):
    clock = Clock()
    clock.now = NOW.replace(hour=23, minute=59, second=30)
    one = meter(home, clock, 2)
    at = []
    for _ in range(5):
        at.append(one.reserve(Usage(10, 10)).at)
        clock.wait(20)
    assert at[0].day != at[-1].day
    for begin in at:
        assert sum(begin <= moment < begin + timedelta(seconds=60) for moment in at) <= 2


def test_whoever_would_rather_fail_than_wait_is_told_when_there_is_room(home):
    clock = Clock()
    one = limited(home, clock, rate=2, model_fail_fast=True)
    one._pause = None  # nobody waits
    first = one.reserve(Usage(10, 10)).at
    clock.wait(20)
    one.reserve(Usage(10, 10))
    for _ in range(2):  # a refusal is no call
        with pytest.raises(SummaryFailed, match="model_calls_per_minute") as failed:
            one.reserve(Usage(10, 10))
        assert (failed.value.failure, failed.value.retry_after) == (FailureKind.RATE, 40)
    clock.wait(40)
    assert one.reserve(Usage(10, 10)).at == first + timedelta(seconds=60)


def test_never_more_than_so_many_at_once_whoever_asks(home):
    clock = Clock()
    first, second = (limited(home, clock, model_calls_at_once=2) for _ in range(2))
    out = [first.reserve(Usage(10, 10)), second.reserve(Usage(10, 10))]
    waited = []

    def wait(seconds):
        clock.wait(seconds)
        waited.append(seconds)
        if len(waited) == 3:
            second.settle(replace(out[1], state="done"), Usage(1, 1))

    first._pause = wait
    first.reserve(Usage(10, 10))
    assert len(waited) == 3, "it went on as soon as one was back"
    hasty = limited(home, clock, model_calls_at_once=2, model_fail_fast=True)
    with pytest.raises(SummaryFailed, match="model_calls_at_once"):
        hasty.reserve(Usage(10, 10))
    assert limited(home, clock).reserve(Usage(10, 10)), "without a limit of its own"


def test_a_call_that_never_comes_back_is_not_waited_for_for_ever(home):
    clock = Clock()
    one = limited(home, clock, model_calls_at_once=1, model_timeout_seconds=100)
    at = [one.reserve(Usage(10, 10)).at for _ in range(2)]
    assert 110 <= (at[1] - at[0]).total_seconds() < 112


def test_more_at_once_than_in_a_minute_is_refused(home):
    for at_once, rate in ((3, 3), (0, 1)):
        Meter(home, settings(model_calls_at_once=at_once, model_calls_per_minute=rate), API)
    with pytest.raises(ConfigError, match="model_calls_at_once is 4"):
        Meter(home, settings(model_calls_at_once=4, model_calls_per_minute=3), API)


def test_what_was_made_before_a_limit_is_kept_and_the_rest_comes_later(home, model):
    fill(home, talk(3))
    config = settings(
        summary_by="anthropic", anthropic_url=model.url, model_calls_per_minute=2,
        model_fail_fast=True,
    )  # fmt: skip
    report = run(home, config)
    assert len(report.made) == len(links(home)) == len(model.questions) == 2
    assert "model_calls_per_minute" in report.paused
    assert len(run(home, config, now=NOW + timedelta(minutes=2)).made) == 1
    assert len(links(home)) == 3


def test_what_was_made_before_and_after_a_failure_is_kept(home, model):
    fill(home, talk(3))
    model.says(GOOD, Step(""), GOOD)
    config = settings(summary_by="anthropic", anthropic_url=model.url)
    report = run(home, config)
    assert (len(report.made), len(report.failed)) == (2, 1)
    assert len(links(home)) == 2
    assert len(run(home, config, now=NOW + timedelta(minutes=2)).made) == 1
    assert len(links(home)) == 3


# --- the limits in money: counted before it is dear -----------------------------------------------

OPUS = {"summary_by": "anthropic", "summary_model": "claude-opus-5-5", "model_day_cents": 10_000}


@pytest.mark.parametrize(
    ("words", "counts", "asked"),
    [
        pytest.param(300, 5_000, False, id="it looks cheap and is too dear"),
        pytest.param(300, 300, True, id="it looks cheap and is"),
        pytest.param(9_000, 300, True, id="it looks too dear and is not"),
        pytest.param(9_000, 5_000, False, id="it looks too dear and is"),
    ],
)
def test_what_comes_near_the_limit_of_a_call_is_counted_first(home, model, words, counts, asked):
    """The answer alone may cost 16.4 cents; the rest is what was read. Nothing is lost."""
    fill(home, talk(1, length=words))
    model.counts = counts
    config = settings(**OPUS, anthropic_url=model.url, model_call_cents=17)
    report = run(home, config)
    assert model.counted == 1
    assert bool(model.questions) is bool(report.made) is asked
    if not asked:
        assert "model_call_cents" in report.paused
        assert links(home) == []
        assert spent(home, config) == 0
        raised = replace(config, model_call_cents=40)
        assert len(run(home, raised, now=NOW + timedelta(hours=13)).made) == 1


def spent(home, config):
    return round(spending(home, config, NOW)["today"]["dollars"] * 1e6)


def test_what_is_far_from_every_limit_is_not_counted(home, model):
    fill(home, talk(1))
    config = settings(**OPUS, anthropic_url=model.url, model_call_cents=40)
    assert len(run(home, config).made) == 1
    assert model.counted == 0


def test_no_call_goes_over_the_day_and_what_waits_is_done_the_next_day_once(home, model):
    """Each reads far more than its text looks like: 18 cents, of the 72 that a day may cost."""
    fill(home, talk(6))
    model.counts = 45_000
    model.says(Step(GOOD, read=45_000))
    config = settings(**OPUS | {"model_day_cents": 72}, anthropic_url=model.url,
                      model_call_cents=40)  # fmt: skip
    report = run(home, config)
    assert "model_day_cents" in report.paused
    assert (len(report.made), model.counted) == (3, 1)
    assert spent(home, config) <= 720_000
    for hours in (1, 11):
        assert run(home, config, now=NOW + timedelta(hours=hours)).made == ()
    assert spent(home, config) <= 720_000
    assert len(run(home, config, now=NOW + timedelta(hours=12, minutes=1)).made) == 3
    assert len(links(home)) == len({item for _, item in links(home)}) == len(model.questions) == 6


def test_a_parcel_is_counted_where_it_comes_near_the_day(home, model):
    fill(home, talk(3))
    model.counts = 45_000
    config = settings(**OPUS | {"model_day_cents": 25}, anthropic_url=model.url,
                      model_call_cents=40)  # fmt: skip
    sent = backfill.send(home, config, now=NOW, author=WORKER, scopes=None)
    assert sent.batches == 1, "at half the price, 17 cents each"
    assert model.counted
    assert sent.most_micro <= 250_000

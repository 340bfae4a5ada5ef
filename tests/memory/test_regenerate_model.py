"""A summary made anew by the model that is configured: asked when looked at, stored as it was seen.

The model is scripted on loopback; store and package are real.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.errors import Conflict
from hypatia_mem.memory import propagation
from hypatia_mem.memory.cascade import regenerate
from hypatia_mem.memory.spend import spending
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, PERSON, assert_whole, fill, run, settings, summaries, talk
from tests.memory.model_server import ModelServer, Step

KEY = "sk-ant-" + "a-key-of-mine-for-tests-" * 2
GOOD = "NAME: retry queue\n- The retry queue loses jobs in module_0.py after 0 runs."
OTHER = "NAME: why\n- It was seen before and nobody knew why."


@pytest.fixture(scope="module")
def server():
    one = ModelServer().start()
    yield one
    one.stop()


@pytest.fixture
def model(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server.asked.clear()
    server.meanwhile = lambda: None
    server.says(GOOD, OTHER)
    return server


@pytest.fixture
def name(home):
    """The summary of one message, made without a model."""
    fill(home, talk(1))
    run(home)
    return summaries(home, 1)[0].name


def config(model, **changes):
    base = settings(summary_by="anthropic", anthropic_url=model.url, model_timeout_seconds=20)
    return replace(base, **{"model_day_calls": 9, "model_calls_per_minute": 99, **changes})


def look(home, name, one, **how):
    return regenerate.preview(
        home, [name], most=40, scopes=("app",), settings=one, author=PERSON,
        **{"now": NOW, **how},
    )  # fmt: skip


def accept(home, name, one, ticket):
    return regenerate.accept(
        home, [name], ticket, most=40, scopes=("app",), settings=one, author=PERSON, now=NOW
    )


def drafts(home):
    return sorted((home / paths.BRIEFS).glob("*.draft"))


def test_the_model_is_asked_once_and_what_was_seen_is_stored(home, model, name):
    """A second answer would be another text: accepting must not ask for it."""
    one, old = config(model), summaries(home, 1)[0].content
    shown = look(home, name, one)
    assert shown.by.startswith("anthropic:")
    assert "retry queue loses jobs" in shown.content
    assert summaries(home, 1)[0].content == old
    assert accept(home, name, one, shown.ticket).content == shown.content
    assert summaries(home, 1)[0].content == shown.content
    assert len(model.questions) == 1
    assert drafts(home) == []
    with open_store(home, write=False) as store:
        assert store.producer_of(name) == shown.by
    assert_whole(home)


def test_the_store_is_free_while_the_model_is_waited_for(home, model, name):
    def write() -> None:
        with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW):
            opened.append(True)

    opened: list[bool] = []
    model.meanwhile = write
    assert look(home, name, config(model)).failed == ""
    assert opened


@pytest.mark.parametrize(
    ("step", "changes", "why"),
    [
        (Step(status=401), {}, ""),
        (Step(status=500), {}, ""),
        (Step(""), {}, ""),
        (Step(GOOD), {"anthropic_url": "http://127.0.0.1:9"}, ""),
        (Step(GOOD), {"model_day_calls": 0}, "model_day_calls"),
    ],
)
def test_without_an_answer_the_extractive_one_stands_in_marked(
    home, model, name, step, changes, why
):
    model.says(step)
    one = config(model, **changes)
    shown = look(home, name, one)
    assert shown.failed
    assert why in shown.failed
    assert shown.by.startswith("extractive-")
    assert shown.by.endswith(" for anthropic")
    assert accept(home, name, one, shown.ticket).content == summaries(home, 1)[0].content
    with open_store(home, write=False) as store:
        assert store.producer_of(name) == shown.by


def test_where_no_model_is_configured_none_is_asked_and_nothing_kept(home, model, name):
    shown = look(home, name, settings())
    assert (shown.failed, shown.by.endswith("anthropic"), model.questions) == ("", False, [])
    assert drafts(home) == []


def test_a_paused_model_is_left_alone(home, model, name):
    one = config(model)
    model.says(Step(status=401))
    fill(home, talk(2)[1:], start=1)
    run(home, one)
    model.asked.clear()
    assert look(home, name, one).failed
    assert model.questions == []
    model.says(GOOD)
    assert look(home, name, one, now=NOW + timedelta(days=1)).failed == ""


def test_a_call_counts_as_every_other(home, model, name):
    look(home, name, config(model))
    assert spending(home, config(model), NOW)["today"]["calls"] == 1


def test_a_draft_goes_with_what_it_stands_on(home, model, name):
    one = config(model)
    shown = look(home, name, one)
    assert len(drafts(home)) == 1
    propagation.delete(home, [shown.sources[0]], scopes=("app",), author=PERSON, now=NOW)
    assert drafts(home) == []


def test_a_draft_is_not_stored_over_other_summaries(home, model, name):
    one = config(model)
    shown = look(home, name, one)
    again = look(home, name, one)
    assert again.ticket != shown.ticket
    accept(home, name, one, again.ticket)
    with pytest.raises(Conflict):
        accept(home, name, one, shown.ticket)

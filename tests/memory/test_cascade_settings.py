"""What the settings of the cascade do: which messages, how many, how far up, what is left over."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.cli.app import run as run_cli
from hypatia_mem.config import set_value
from hypatia_mem.memory import jobs as work
from hypatia_mem.memory.cascade import plan as cascade_plan
from hypatia_mem.memory.cascade import trace
from hypatia_mem.memory.summarise.prompted import SHRINKS, Prompted, Reply, Usage
from hypatia_mem.memory.summarise.prompts import Prompts
from hypatia_mem.memory.summarise.protocol import FailureKind, Item, Request, SummaryFailed
from hypatia_mem.store import summaries as reads
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import (
    NOW,
    assert_whole,
    counts,
    fill,
    links,
    run,
    settings,
    summaries,
    talk,
)
from tests.memory.model_server import ModelServer, Step

GOOD = (
    "NAME: retry queue report\n- The retry queue loses jobs in module_0.py after 0 runs.\n"
    "- It was seen before and nobody knew why."
)


@pytest.fixture
def command(home, capsys):
    def call(*arguments):
        capsys.readouterr()
        code = run_cli([*arguments, "--all-projects"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return call


@pytest.fixture
def small(home):
    for key, value in (("cascade_max_tokens", "100"), ("summary_words", "60")):
        set_value(home, key, value)


def left(home):
    """Return how many tokens no summary covers."""
    with open_store(home, write=False) as store:
        return sum(group.chars for group in reads.groups(store, 1)) // 4


# --- which and how many ---------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("headroom", [0, 50, 80])
def test_so_much_of_the_window_is_free_after_a_pass(home, headroom):
    """Some 1,700 tokens of a window of 1,000: without headroom 800 stay, with 80 % at most 200."""
    fill(home, talk(19))
    config = settings(cascade_max_tokens=1000, cascade_headroom=headroom)
    assert left(home) > 1600
    run(home, config)
    assert left(home) <= 1000 * (100 - headroom) // 100
    assert (left(home) > 500) is (headroom == 0), "and no more than was asked for"
    assert_whole(home)
    before = links(home)
    run(home, config)
    assert links(home) == before, "it is no reason of its own"


def test_headroom_never_touches_the_newest(home):
    fill(home, talk(12))
    run(home, settings(cascade_max_tokens=1000, cascade_headroom=90, cascade_keep_last=4))
    covered = {item for _, item in links(home)}
    assert covered == {f"msg-s-1-{n}" for n in range(1, 9)}


@pytest.mark.deep
@pytest.mark.parametrize("most", [0, 2, 5])
def test_so_many_messages_stand_in_one_summary_at_most_the_oldest_first(home, most):
    fill(home, talk(8))
    run(home, settings(cascade_max_tokens=800, cascade_max_messages=most))
    made = summaries(home, 1)
    sizes = [sum(name == one.name for name, _ in links(home)) for one in made]
    assert sizes == {0: [8], 2: [2, 2, 2, 2], 5: [4, 4]}[most]
    with open_store(home, write=False) as store:
        order = [source.name for one in made for source in reads.sources(store, one.name)]
    assert order == [f"msg-s-1-{n}" for n in range(1, 9)]


def test_when_all_there_is_is_kept_as_it_is_that_is_said(home, small, command):
    """Three messages beyond the threshold, and three are never condensed."""
    fill(home, talk(3))
    told = json.loads(command("cascade", "status", "--json"))["projects"][0]
    assert (told["due"], told["stuck"]) == (False, True)
    said = "app: 3 messages, all of them kept as they are, so none can be condensed; see"
    assert command("cascade", "run").startswith(said)
    assert "cascade_keep_last" in command("cascade", "status")
    assert summaries(home) == []
    fill(home, talk(1), start=3)
    told = json.loads(command("cascade", "status", "--json"))["projects"][0]
    assert (told["due"], told["stuck"]) == (True, False)


@pytest.mark.parametrize("skip", [False, True])
def test_what_the_user_wrote_may_be_left_out_of_the_text_but_not_of_the_links(home, skip):
    fill(home, ["The xylophone is out of tune again. " * 8, "The retry queue loses jobs. " * 8])
    run(home, settings(cascade_max_tokens=130, summary_skip_user=skip))
    (made,) = summaries(home, 1)
    assert ("xylophone" in made.content) is not skip
    assert "retry queue" in made.content
    assert {item for _, item in links(home)} == {"msg-s-1-1", "msg-s-1-2"}


def test_an_empty_message_is_covered_too(home):
    fill(home, ["", "The retry queue loses jobs. " * 12])
    run(home)
    assert {item for _, item in links(home)} == {"msg-s-1-1", "msg-s-1-2"}


# --- how far up -----------------------------------------------------------------------------------


@pytest.mark.deep
def test_a_run_may_stop_at_a_level_and_the_next_goes_on(home, small, command):
    set_value(home, "cascade_batch", "2")
    set_value(home, "cascade_keep_last", "0")
    fill(home, talk(8))
    command("cascade", "run", "--max-level", "1")
    assert counts(home, 4) == [8, 0, 0, 0]
    command("cascade", "run", "--max-level", "3")
    assert counts(home, 4) == [8, 4, 2, 0]
    set_value(home, "cascade_max_level", "3")
    assert command("cascade", "run", "--max-level", "9") == "Nothing is due.\n"


@pytest.mark.deep
def test_every_level_stands_on_the_one_below_and_all_of_it_on_messages(home, small, command):
    """And what is covered is counted."""
    set_value(home, "cascade_batch", "3")
    set_value(home, "cascade_keep_last", "0")
    fill(home, talk(9))
    command("cascade", "run")
    fill(home, ["one more"], start=9)
    below = {}
    for name, item in links(home):
        below.setdefault(name, []).append(item)
    level = {one.name: trace.level_of(one) for one in summaries(home)}
    for name, items in below.items():
        assert {level.get(item, 0) for item in items} == {level[name] - 1}
    (top,) = summaries(home, 3)
    reached = {top.name}
    for _ in range(3):
        reached = {item for name in reached for item in below[name]}
    assert reached == {f"msg-s-1-{n}" for n in range(1, 10)}
    told = json.loads(command("cascade", "status", "--json"))
    assert told["coverage"] == {"messages": 10, "summarised": 9}
    assert "9 of 10 messages stand in a summary." in command("cascade", "status")


def test_the_line_is_the_skills(home, small, command):
    set_value(home, "cascade_keep_last", "0")
    fill(home, talk(1))
    first = command("cascade", "run").splitlines()[0]
    assert first == "[hypatia-memory] Cascade: +1 summary 1 (token threshold)."


# --- one of several fails -------------------------------------------------------------------------


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    one = ModelServer().start()
    yield one
    one.stop()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("third", "made", "after"),
    [
        pytest.param(Step(status=401), 2, ["paused"] * 3, id="whoever is asked is out of reach"),
        pytest.param(Step(""), 4, ["waiting"], id="the answer is no good"),
    ],
)
def test_the_third_of_five_fails_and_the_first_two_are_kept(home, model, third, made, after):
    """What was stored stays, the rest is pending, and the reason is named."""
    fill(home, talk(5))
    config = settings(summary_by="anthropic", anthropic_url=model.url, model_timeout_seconds=20)
    model.says(GOOD, GOOD, third, GOOD)
    report = run(home, config)
    assert len(report.made) == made
    covered = {item for _, item in links(home)}
    assert {"msg-s-1-1", "msg-s-1-2"} <= covered
    assert "msg-s-1-3" not in covered
    assert_whole(home)
    assert [one.state for one in work.listed(home, config, now=NOW, scopes=None)] == after
    status = cascade_plan.status(home, config, now=NOW, scopes=None)
    named = status["paused"]["why"] if status["paused"] else status["failed"][0]["message"]
    assert named in report.failed


# --- too little is gained -------------------------------------------------------------------------


class Wordy:
    """A model whose every answer has a share of the words it was given."""

    name = "scripted"
    model = "wordy-1"

    def __init__(self, *shares):
        self.shares = list(shares)
        self.sizes = []

    def ask(self, question):
        said = [line for line in question.text.splitlines() if line.startswith("Item")]
        self.sizes.append(len(question.text))
        share = self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]
        words = " ".join(said).split()
        text = " ".join(words[: max(8, int(len(words) * share))])
        return Reply(text.replace(". ", ".\n"), Usage(1, 1))

    def count(self, question):
        return None

    def cancel(self):
        pass


def long_request():
    texts = [
        "\n".join(f"Item {n}.{k} of module_{n} waits for the queue number {k}." for k in range(40))
        for n in range(4)
    ]
    items = tuple(Item(f"msg-s-{n}", text, "assistant", "s", NOW) for n, text in enumerate(texts))
    return Request(1, items, 150)


def asking(home, one):
    return Prompted(one, Prompts.of(home), 50_000, one.ask)


def test_an_answer_that_is_hardly_shorter_is_asked_for_again_in_smaller_parts_and_not_for_ever(
    home,
):
    one = Wordy(0.9)
    with pytest.raises(SummaryFailed, match="far too long") as failed:
        asking(home, one).summarise(long_request())
    assert failed.value.failure is FailureKind.VERBATIM
    assert failed.value.failure.blames_batch, "so it is not tried for ever either"
    assert len(one.sizes) > 1 + SHRINKS, "each time in more questions"
    assert min(one.sizes) < one.sizes[0] * 0.7
    assert len(one.sizes) < 30


def test_one_that_does_better_in_smaller_parts_is_taken(home):
    one = Wordy(0.9, 0.05)
    draft = asking(home, one).summarise(long_request())
    assert draft.sentences
    assert len(one.sizes) > 1


def test_one_that_is_short_enough_is_asked_once(home):
    one = Wordy(0.1)
    asking(home, one).summarise(long_request())
    assert len(one.sizes) == 1

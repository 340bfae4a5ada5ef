"""The cascade: what is due and when, exact tiers, nothing twice, nothing unlinked, nothing withheld."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hypatia_mem.memory import curate
from hypatia_mem.memory.cascade import plan as cascade_plan
from hypatia_mem.memory.cascade.sizes import slices, split, tiers
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import Draft, FailureKind, Sentence, SummaryFailed
from hypatia_mem.model import Author, Channel, Entry, Message, Trust
from hypatia_mem.store import erasing, sources, withdrawing
from hypatia_mem.store import summaries as reads
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import (
    NOW,
    PERSON,
    WORKER,
    assert_whole,
    counts,
    fill,
    links,
    run,
    settings,
    summaries,
    talk,
)

AGENT = Author(Channel.CLI_AGENT)


# --- when it is due -------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "made"), [(1, 0), (0, 1)], ids=["just below", "at it"])
def test_level_1_begins_at_the_share_of_the_window_and_not_before(home, missing, made):
    """0.9 of 1,000 tokens are 3,600 characters of entries, headings and all."""
    fill(home, ["a beginning"])
    with open_store(home, write=False) as store:
        (first,) = reads.pending(store, 1, ("app",))
        heading = first.chars - len("a beginning")
    words = "the queue is full " * 400
    fill(home, [words[: 3600 - first.chars - heading - missing]], start=1)
    report = run(home, settings(cascade_max_tokens=1000))
    assert len(report.made) == made
    assert len(links(home)) == 2 * made


@pytest.mark.deep
def test_sixteen_of_a_level_make_one_of_the_next_and_never_fifteen(home):
    """15 wait, the 16th completes them, the oldest are taken and what is left waits again."""
    texts = talk(18)
    fill(home, texts[:15])
    run(home)
    assert counts(home, 2) == [15, 0]
    fill(home, texts[15:], start=15)
    report = run(home)
    assert counts(home, 2) == [18, 1]
    assert report.line == "Cascade: +3 summary 1 (token threshold), +1 summary 2 (16 of level 1)."
    covered = {item for summary, item in links(home) if summary == summaries(home, 2)[0].name}
    assert covered == {one.name for one in summaries(home, 1)[:16]}, "not the oldest sixteen"
    with open_store(home, write=False) as store:
        assert len(reads.pending(store, 2, ("app",))) == 2
    assert_whole(home)


@pytest.mark.deep
def test_tiers_grow_upward_as_long_as_a_level_is_full(home):
    """3^3 of level 1 at a batch of three: every tier, to the last one."""
    fill(home, talk(27))
    run(home, settings(cascade_batch=3))
    assert counts(home, 5) == [27, 9, 3, 1, 0]
    assert_whole(home)
    top = summaries(home, 4)[0]
    assert top.tags == ("summary", "summary 4")
    assert top.scopes == ("app",)
    assert run(home, settings(cascade_batch=3)).made == (), "a second pass finds nothing to do"


@pytest.mark.slow
def test_sixteen_by_sixteen(home):
    """The published thresholds: 272 of level 1, 17 of level 2, 1 of level 3, one left over."""
    fill(home, talk(273))
    run(home)
    assert counts(home, 4) == [273, 17, 1, 0]
    assert_whole(home)


@pytest.mark.deep
def test_the_highest_level_is_the_users(home):
    fill(home, talk(16))
    run(home, settings(cascade_batch=4, cascade_max_level=2))
    assert counts(home, 3) == [16, 4, 0]


def test_the_model_in_use_decides_when_nothing_else_says(home):
    """A row of the user's table counts for the model that answered last."""
    fill(home, talk(4))
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        usage = {"type": "usage", "model": "tiny-1", "input_tokens": 5, "output_tokens": 5}
        answer = Message("s-1", "u-x", "assistant", "done", NOW, parts=(usage,))
        txn.put_messages("s-1", [answer], "app")
    config = settings(cascade_max_tokens=0)
    assert run(home, config).made == ()
    (home / "config.toml").write_text("[model_windows]\ntiny = 100\n")
    assert len(run(home, config).made) == 4
    found = cascade_plan.status(home, config, now=NOW, scopes=["app"])
    assert found["projects"][0]["model"] == "tiny-1"


def test_the_newest_messages_stay_as_they_are(home):
    fill(home, talk(5))
    run(home, settings(cascade_keep_last=3))
    covered = {item for _, item in links(home)}
    assert covered == {"msg-s-1-1", "msg-s-1-2"}


@pytest.mark.deep
def test_a_full_context_is_a_reason_of_its_own_once(home):
    """However few messages there are; again only after the context was emptied in between."""

    def answer(turn, tokens):
        part = {"type": "usage", "model": "m", "input_tokens": 1, "cache_read_tokens": tokens}
        said = Message(
            "s-1", f"a-{turn}", "assistant", f"answer {turn} about the queue",
            NOW + timedelta(minutes=turn), parts=(part,),
        )  # fmt: skip
        with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
            txn.put_messages("s-1", [said], "app")

    fill(home, ["the queue is stuck again"])
    config = settings(cascade_max_tokens=10_000)
    answer(1, 8_000)
    assert run(home, config).made == ()
    answer(2, 9_500)
    assert [one.reason for one in run(home, config).made] == ["context full"]
    answer(3, 9_700)
    assert run(home, config).made == ()
    answer(4, 800)
    answer(5, 9_200)
    assert [one.items for one in run(home, config).made] == [3]
    assert_whole(home)


# --- whose, and in which order --------------------------------------------------------------------


@pytest.mark.deep
def test_projects_are_never_mixed_and_sessions_never_shuffled(home):
    """Two sessions side by side: each stays together, its turns in order, told apart by headings."""
    texts = talk(8, length=120)
    for n in range(4):
        fill(home, [texts[2 * n]], session="one", start=2 * n)
        fill(home, [texts[2 * n + 1]], session="two", start=2 * n + 1)
    fill(home, talk(2, length=120), session="other", scope="web")
    run(home, settings(cascade_max_tokens=400, summary_words=300))
    (made,) = summaries(home)
    assert made.scopes == ("app",)
    with open_store(home, write=False) as store:
        order = [source.name for source in reads.sources(store, made.name)]
    assert order == [f"msg-{s}-{n}" for s in ("one", "two") for n in (1, 2, 3, 4)]
    assert made.content.index("## Session one") < made.content.index("## Session two")


def test_a_batch_larger_than_the_window_is_split_and_stays_one_trigger(home):
    """Three parts, each within the window; killed between them, the rest is still owed."""
    fill(home, talk(6))
    config = settings(cascade_max_tokens=600, summary_window=200)
    report = run(home, config)
    assert [one.items for one in report.made] == [2, 2, 2]
    assert_whole(home)
    with open_store(home, write=False) as store:
        assert reads.read_note(store, cascade_plan.OWED, []) == []


class Failing(Extractive):
    """Condenses, but fails at the calls it is told to."""

    def __init__(self, *fails):
        object.__setattr__(self, "calls", [])
        object.__setattr__(self, "fails", fails)
        super().__init__()

    calls: list
    fails: tuple

    def summarise(self, request):
        self.calls.append(len(request.items))
        if len(self.calls) in self.fails:
            raise SummaryFailed(FailureKind.UNAVAILABLE, "it could not be reached")
        return super().summarise(request)


# --- failure --------------------------------------------------------------------------------------


def test_what_failed_is_tried_later_and_nothing_is_lost(home):
    """The second of three parts fails: the others are stored, it waits, then it is made."""
    fill(home, talk(6))
    config = settings(cascade_max_tokens=600, summary_window=200)
    report = run(home, config, summariser=Failing(2))
    assert len(report.made) == 2
    assert report.failed == ("it could not be reached",)
    assert_whole(home)
    assert run(home, config, summariser=Failing()).made == (), "not at once: it waits a minute"
    found = cascade_plan.status(home, config, now=NOW, scopes=["app"])
    assert found["failed"][0]["message"] == "it could not be reached"
    later = run(home, config, summariser=Failing(), now=NOW + timedelta(minutes=2))
    assert [one.items for one in later.made] == [2]
    assert len({item for _, item in links(home)}) == 6
    assert_whole(home)


@pytest.mark.deep
def test_after_some_attempts_it_is_given_up_until_a_person_asks(home):
    fill(home, talk(1))
    summariser = Failing(*range(1, 100))
    for day in range(9):
        run(home, summariser=summariser, now=NOW + timedelta(days=day))
    assert len(summariser.calls) == cascade_plan.ATTEMPTS
    later = NOW + timedelta(days=30)
    assert cascade_plan.status(home, settings(), now=later, scopes=None)["failed"][0]["given_up"]
    assert len(run(home, retry=True, now=later).made) == 1


class Saying:
    """A scripted model."""

    producer = "scripted-1"
    digest = "0123456789ab"
    window = 10_000

    def __init__(self, *sentences):
        self.sentences = sentences

    def summarise(self, _request):
        return Draft(tuple(Sentence(text) for text in self.sentences))


def test_a_copy_is_not_stored(home):
    texts = talk(1)
    fill(home, texts)
    report = run(home, summariser=Saying(texts[0]))
    assert report.made == ()
    assert "word for word" in report.failed[0]
    assert links(home) == []


def test_off_does_nothing_and_switching_it_on_again_loses_nothing(home):
    fill(home, talk(4))
    assert run(home, settings(summary_by="off")).made == ()
    assert len(run(home).made) == 4


def test_producer_and_rules_are_recorded(home):
    fill(home, talk(1))
    run(home)
    (made,) = summaries(home)
    with open_store(home, write=False) as store:
        assert store.producer_of(made.name) == f"extractive-1#{Extractive().digest}"


# --- trust ----------------------------------------------------------------------------------------


def test_what_is_withheld_is_not_summarised_and_its_twin_is(home):
    fill(home, talk(3))
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry("msg-s-1-2", suppressed=True)
    run(home)
    assert {item for _, item in links(home)} == {"msg-s-1-1", "msg-s-1-3"}


def test_a_batch_that_changed_while_it_was_condensed_is_left_alone(home):
    """Between reading and storing, a message is withheld: no summary of it appears."""
    fill(home, talk(2))

    class Meddling(Extractive):
        def summarise(self, request):
            if any(item.name == "msg-s-1-1" for item in request.items):
                with open_store(home, write=True) as store:
                    with store.transaction(PERSON, now=NOW) as txn:
                        txn.update_entry("msg-s-1-1", suppressed=True)
            return super().summarise(request)

    run(home, summariser=Meddling())
    assert {item for _, item in links(home)} == {"msg-s-1-2"}
    assert_whole(home)


@pytest.mark.deep
@pytest.mark.parametrize("forget", [True, False], ids=["forgotten", "deleted"])
def test_a_summary_goes_with_its_source_and_the_rest_is_summarised_again(home, forget):
    """Up the whole tree, in the same transaction; the tiers are the same afterwards."""
    config = settings(cascade_batch=2, cascade_max_tokens=200)
    fill(home, talk(8))
    run(home, config)
    before = counts(home, 3)
    assert before == [4, 2, 1]
    first = {summary for summary, item in links(home) if item == "msg-s-1-1"}
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        gone = withdrawing.drop_above(txn, "msg-s-1-1", purge=forget)
        txn.delete_entry("msg-s-1-1", tombstone=forget)
    assert len(gone) == 3
    assert first <= set(gone)
    assert_whole(home)
    assert not any("Report 0:" in one.content for one in summaries(home))
    with open_store(home, write=False) as store:
        kept = store.run("SELECT content FROM version WHERE content LIKE '%Report 0:%'")
        assert bool(kept) is not forget
    run(home, config)
    assert counts(home, 3) == before
    assert {item for _, item in links(home) if item.startswith("msg-")} == {
        f"msg-s-1-{n}" for n in range(2, 9)
    }
    assert_whole(home)


@pytest.mark.deep
def test_what_ever_stood_on_something_is_found_whole_each_time_it_is_asked(home):
    """DuckDB 1.5 loses rows of some recursive queries, about once in seven times."""
    fill(home, talk(8))
    run(home, settings(cascade_batch=2, cascade_max_tokens=200))
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        gone = withdrawing.drop_above(txn, "msg-s-1-1")
    with open_store(home, write=False) as store:
        for _ in range(60):
            assert set(sources.gone_above(store, "msg-s-1-1")) == set(gone)
            assert set(erasing.summaries_on(store, ["msg-s-1-1"])) == set(gone)


@pytest.mark.deep
def test_earlier_summaries_of_what_is_forgotten_later_leave_no_state_either(home):
    """A summary taken out for another reason held the words too."""
    fill(home, talk(2))
    run(home, settings(cascade_max_tokens=200))
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        withdrawing.drop_above(txn, "msg-s-1-2")
        txn.delete_entry("msg-s-1-2")
    run(home, settings(cascade_max_tokens=200))
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        withdrawing.drop_above(txn, "msg-s-1-1", purge=True)
        txn.delete_entry("msg-s-1-1", tombstone=True)
    with open_store(home, write=False) as store:
        assert store.run("SELECT name FROM version WHERE content LIKE '%Report 0:%'") == []
    assert summaries(home) == []


@pytest.mark.deep
def test_a_forget_by_command_leaves_no_summary_after_the_next_pass(home):
    """Whatever door it came by: a summary that lacks a source does not stay."""
    fill(home, talk(4))
    config = settings(cascade_batch=2)
    run(home, config)
    curate.delete_entry(home, "msg-s-1-3", author=PERSON, now=NOW)
    run(home, config)
    assert not any("Report 2:" in one.content for one in summaries(home))
    assert counts(home, 2) == [3, 1]
    assert_whole(home)


def test_a_forgotten_summary_is_not_made_again(home):
    fill(home, talk(1))
    run(home)
    (made,) = summaries(home)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_entry(made.name, tombstone=True)
    report = run(home)
    assert report.made == ()
    assert "forgotten" in report.failed[0]
    assert run(home).failed == (), "and it is not tried at every pass"


def test_a_withheld_summary_still_covers_its_messages(home):
    """Whoever withheld it does not want it made again."""
    fill(home, talk(1))
    run(home)
    (made,) = summaries(home)
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.update_entry(made.name, trust=Trust.REJECTED)
    assert run(home).made == ()


def test_names_in_use_are_not_taken(home):
    fill(home, talk(1))
    run(home)
    name = summaries(home)[0].name
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.delete_entry(name)
        txn.put_entry(Entry(name, "a thing of that name", scopes=("app",)))
    run(home)
    assert [one.name for one in summaries(home)] == [f"{name}-2"]


# --- the arithmetic -------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5000), max_size=60), st.integers(1, 2000), st.integers(0, 5))
def test_batches_are_whole_or_not_at_all(chars, trigger, keep):
    """Each has its tokens unless the kept ones end it; what is left after is below the trigger, or
    is what must stay."""
    sizes = slices(chars, trigger, keep)
    assert all(size > 0 for size in sizes)
    taken = sum(sizes)
    assert taken <= max(0, len(chars) - keep)
    rest = chars[taken:]
    assert sum(rest) < 4 * trigger or len(rest) <= keep
    at = 0
    for size in sizes[:-1]:
        assert sum(chars[at : at + size]) >= 4 * trigger
        assert sum(chars[at : at + size - 1]) < 4 * trigger
        at += size


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 500), st.integers(0, 9)
)
@example([1, 1, 1, 1, 300], 500, 2)
def test_parts_fit_the_window_and_lose_nothing(tokens, window, most):
    sizes = split(tokens, window, most)
    assert sum(sizes) == len(tokens)
    assert all(0 < size <= (most or len(tokens)) for size in sizes)
    at = 0
    for size in sizes:
        assert size == 1 or sum(tokens[at : at + size]) <= window
        at += size


@given(st.integers(0, 5000), st.integers(2, 20))
def test_tiers_are_the_whole_batches_of_the_level_below(first, batch):
    made = tiers(first, {}, batch, 20)
    below = first
    for level in range(2, 21):
        assert made.get(level, 0) == below // batch
        below = made.get(level, 0)

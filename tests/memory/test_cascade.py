"""The cascade: what is due and when, exact tiers, nothing twice, nothing unlinked, nothing withheld."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.memory import curate
from hypatia_mem.memory.cascade import plan as cascade_plan
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.cascade import trace as cascade_trace
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


# --- the agent ------------------------------------------------------------------------------------

AS_AGENT = settings(summary_by="agent", cascade_max_tokens=300)


def submit(home, name, text, ticket="", config=AS_AGENT):
    return cascade.submit(
        home, config, name, text,
        ticket=ticket, producer="agent#0123456789ab", author=AGENT, now=NOW, scopes=["app", ""],
    )  # fmt: skip


def test_an_agent_is_handed_the_batch_and_its_summary_is_stored(home):
    fill(home, talk(3))
    assert run(home, AS_AGENT).made == (), "the worker leaves it to the agent"
    handed = cascade.due(home, AS_AGENT, now=NOW, scopes=["app", ""])
    assert [item.name for item in handed.request.items] == [f"msg-s-1-{n}" for n in (1, 2, 3)]
    text = "The retry queue loses jobs in module_0.py.\n- Nobody will ever notice the moon landing."
    fill(home, talk(1), start=3)  # more may come in meanwhile
    done = submit(home, "Retry queue losses", text, handed.batch.ticket)
    assert (done.name, done.items, done.inferred) == ("retry-queue-losses", 3, 1)
    (made,) = summaries(home)
    assert "moon landing. [inferred]" in made.content
    assert made.scopes == ("app",)
    assert_whole(home)
    with open_store(home, write=False) as store:
        assert store.producer_of(made.name) == "agent#0123456789ab"
    with pytest.raises(NotFound):
        submit(home, "Retry queue losses", text)


def test_a_ticket_of_a_batch_that_changed_is_refused(home):
    fill(home, talk(3))
    handed = cascade.due(home, AS_AGENT, now=NOW, scopes=["app"])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        said = txn.entry("msg-s-1-1").content
        txn.update_entry("msg-s-1-1", content=said + " something else" * 40)
    with pytest.raises(Conflict):
        submit(home, "Retry queue", "The retry queue loses jobs.", handed.batch.ticket)
    assert summaries(home) == []


def test_another_projects_batch_is_not_handed_out(home):
    fill(home, talk(3), scope="web")
    assert cascade.due(home, AS_AGENT, now=NOW, scopes=["app", ""]) is None


def test_what_the_agent_leaves_undone_is_made_without_it(home):
    """At twice the threshold; and it says for whom."""
    fill(home, talk(5))
    assert run(home, AS_AGENT).made == ()
    fill(home, talk(2), start=5)
    report = run(home, AS_AGENT)
    assert len(report.made) == 1
    with open_store(home, write=False) as store:
        assert store.producer_of(report.made[0].name).endswith(" for agent")


# --- trace and loss -------------------------------------------------------------------------------


def test_every_sentence_can_be_walked_down_to_the_words(home):
    fill(home, talk(4))
    run(home, settings(cascade_batch=2))
    top = summaries(home, 3)[0]
    traced = cascade_trace.trace(home, top.name)
    assert traced.level == 3
    assert traced.sentences
    with open_store(home, write=False) as store:
        for said in traced.sentences:
            assert said.words
            for leaf in cascade_trace._leaves(said.words):
                assert leaf.source.startswith("msg-")
                assert not leaf.changed
                assert leaf.text in " ".join(store.entry(leaf.source).content.split())


def test_a_source_that_changed_since_is_said_to_have(home):
    fill(home, talk(1))
    run(home)
    (made,) = summaries(home)
    with open_store(home, write=True) as store:  # not by the gateway: that takes the summary out
        store.execute("UPDATE entry SET content = 'another text' WHERE name = 'msg-s-1-1'")
    traced = cascade_trace.trace(home, made.name)
    assert all(words.changed for said in traced.sentences for words in said.words)


def test_loss_is_told_of_each_summary_and_of_all_below(home):
    fill(home, talk(4))
    run(home, settings(cascade_batch=2))
    top = summaries(home, 3)[0]
    found = cascade_trace.lost(home, top.name)
    assert [one.level for one in found] == [3, 2, 2, 1, 1, 1, 1]
    paths = found[0].cumulative.classes["path"]
    assert paths.total == 4
    assert 0 < paths.kept <= 4
    assert len(paths.dropped) == 4 - paths.kept


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


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 500))
def test_parts_fit_the_window_and_lose_nothing(tokens, window):
    sizes = split(tokens, window)
    assert sum(sizes) == len(tokens)
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


# --- killed ---------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {repository!r})
from tests.memory.cascade_kit import run, settings
from hypatia_mem.memory.cascade import running as cascade, storing
from hypatia_mem.store import gateway, summaries

point, number = sys.argv[2], int(sys.argv[3])
calls = 0

def maybe():
    global calls
    calls += 1
    if calls == number:
        os.kill(os.getpid(), signal.SIGKILL)

def before(owner, name):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        maybe()
        return real(*args, **kwargs)
    setattr(owner, name, wrapped)

def after(owner, name):
    real = getattr(owner, name)
    def wrapped(*args, **kwargs):
        result = real(*args, **kwargs)
        maybe()
        return result
    setattr(owner, name, wrapped)

how, owner, name = {{
    "read": (after, summaries, "contents"),
    "condensed": (after, cascade._Pass, "_condensed"),
    "entry": (after, gateway.Transaction, "put_entry"),
    "links": (after, summaries, "put"),
    "notes": (after, storing, "_settle"),
    "ledger": (after, gateway.Transaction, "finish"),
    "stored": (after, cascade._Pass, "_store"),
    "never": (after, cascade, "plan_nothing"),
}}[point] if point != "never" else (None, None, None)
if how:
    how(owner, name)
run(Path(sys.argv[1]), settings(cascade_batch=4, cascade_max_tokens=200, summary_window=50))
"""


def killed_at(home, point, number):
    repository = str(Path(__file__).parents[2])
    code = CHILD.format(repository=repository)
    command = [sys.executable, "-c", code, str(home), point, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_at_every_step_it_ends_as_if_it_had_not_been(home):
    """kill -9 after reading, condensing, each write, before the commit, after it: again and again.

    The trigger's batch is split in two, so that the second part must survive the first's death.
    """
    fill(home, talk(32))
    points = ("read", "condensed", "entry", "links", "notes", "ledger", "stored")
    kills = 0
    for number in (1, 2, 3):
        for point in points:
            kills += killed_at(home, point, number)
            assert_whole(home)
    while killed_at(home, "stored", 5):
        assert_whole(home)
    assert kills >= len(points)
    assert not killed_at(home, "never", 0)
    assert_whole(home)
    assert counts(home, 4) == [32, 8, 2, 0]
    assert len({item for _, item in links(home) if item.startswith("msg-")}) == 32


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_between_two_parts_the_second_is_still_made(home):
    """In one process: the first part is committed, then the pass dies."""
    fill(home, talk(2))
    config = settings(cascade_max_tokens=200, summary_window=50)

    class Died(Exception):
        pass

    real = cascade._Pass._store
    calls = []

    def once(*args):
        if calls:
            raise Died
        calls.append(1)
        return real(*args)

    cascade._Pass._store = once
    try:
        with pytest.raises(Died):
            run(home, config)
    finally:
        cascade._Pass._store = real
    assert len(links(home)) == 1
    assert len(run(home, config).made) == 1
    assert len(links(home)) == 2
    assert_whole(home)


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def command(home, tmp_path, monkeypatch, capsys):
    from hypatia_mem.cli.app import run as run_cli

    folder = tmp_path / "src" / "app"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TYPER_USE_RICH", "0")
    (home / "config.toml").write_text(
        "cascade_max_tokens = 100\ncascade_keep_last = 0\ncascade_batch = 2\nsummary_words = 60\n"
    )

    def call(*arguments):
        capsys.readouterr()
        code = run_cli(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize("verb", ["trace", "loss"])
def test_a_summary_of_another_project_is_read_on_purpose_only(
    home, command, verb, tmp_path, monkeypatch
):
    fill(home, talk(2))
    command("cascade", "run", "--scope", "app")
    (top,) = summaries(home, 2)
    elsewhere = tmp_path / "src" / "web"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, out, err = command(verb, top.name)
    assert (code, out, "not of this project" in err) == (1, "", True)
    assert command(verb, top.name, "--scope", "app")[0] == 0
    assert command(verb, top.name, "--all-projects")[0] == 0


def test_the_commands_say_what_is_due_what_was_done_and_where_it_came_from(home, command):
    fill(home, talk(2))
    assert command("cascade", "status", "--scope", "app")[1].splitlines()[1].endswith("due now")
    plan = json.loads(command("cascade", "plan", "--scope", "app", "--json")[1])
    assert [(one["level"], one["summaries"], one["items"]) for one in plan] == [
        (1, 2, 2),
        (2, 1, 2),
    ]
    assert summaries(home) == [], "a plan changes nothing"
    code, out, _ = command("cascade", "run", "--scope", "app")
    assert code == 0
    assert out.splitlines()[0] == (
        "[hypatia-memory] Cascade: +2 summary 1 (token threshold), +1 summary 2 (2 of level 1)."
    )
    assert command("cascade", "run", "--scope", "app")[1] == "Nothing is due.\n"
    (top,) = summaries(home, 2)
    out = command("trace", top.name)[1]
    assert "<- msg-s-1-" in out
    row = json.loads(command("loss", top.name, "--json")[1])[0]
    assert set(row["direct"]) == {
        "identifier", "path", "number", "url", "command", "decision", "negation",
    }  # fmt: skip
    assert command("trace", "msg-s-1-1")[0] == 2
    assert command("trace", "no-such")[0] == 1
    found = json.loads(command("search", "retry queue", "--scope", "app", "--json")[1])
    assert any("summary" in json.dumps(hit) for hit in found), "a summary is found like anything"


def test_an_agent_takes_and_gives_a_batch_on_the_command_line(home, command):
    fill(home, talk(1))
    (home / "config.toml").write_text(
        'summary_by = "agent"\ncascade_max_tokens = 100\ncascade_keep_last = 0\n'
    )
    handed = json.loads(command("cascade", "due", "--scope", "app", "--json")[1])
    assert handed["due"]
    assert "## Role" not in handed["items"][0]["text"]
    text = "The retry queue loses jobs in module_0.py."
    submit_it = ("cascade", "submit", "retry queue", "--scope", "app", "--ticket", handed["ticket"])
    assert command(*submit_it, "-d", "<think>hm</think>")[0] == 1
    assert command(*submit_it, "-d", text)[0] == 0
    assert json.loads(command("cascade", "due", "--scope", "app", "--json")[1]) == {"due": False}
    assert command(*submit_it, "-d", text)[0] == 1


def test_windows_are_listed_asked_for_and_set(command):
    assert "claude" in command("cascade", "windows")[1]
    assert command("cascade", "windows", "my-model", "64000")[0] == 0
    assert json.loads(command("cascade", "windows", "my-model-2", "--json")[1])["tokens"] == 64_000


def test_the_worker_condenses_after_a_drain(home, monkeypatch):
    from hypatia_mem import worker

    fill(home, talk(2))
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_MAX_TOKENS", "100")
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_KEEP_LAST", "0")
    assert worker.run(home, once=True) == 0
    assert len(summaries(home)) == 2
    assert_whole(home)

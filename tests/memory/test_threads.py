"""What a session leaves open is told until it is done, by the brief, the list and the card."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.memory import handoff, propagation
from hypatia_mem.memory.episodes.threads import done_by
from hypatia_mem.memory.extract.topics import Said
from tests.memory.episodes_kit import (
    LEFT_OPEN,
    NOW,
    PERSON,
    after,
    brief,
    card,
    run,
    say,
    sources,
    talk,
    threads,
    todo,
)


@pytest.mark.parametrize(
    ("then", "same", "closed"),
    [
        (("assistant", "Done: the migration of the retry queue runs."), True, True),
        (("assistant", "Done: the migration of the retry queue runs."), False, True),
        (("assistant", "I have moved the buttons; fixed."), False, False),
        (("assistant", "The migration of the retry queue is still not done."), False, False),
        (("user", "is the migration of the retry queue done?"), False, False),
        (("user", "the migration of the retry queue matters to us"), False, False),
    ],
)
def test_what_closes_a_thread(then, same, closed):
    role, text = then

    found = done_by(LEFT_OPEN, [Said("msg-s2-1", 1, role, text, NOW)], same_session=same)

    assert (found is not None) is closed


@pytest.mark.parametrize(
    ("text", "role", "same", "closed"),
    [
        ("Shall I go on with the headers?", "user", True, True),
        ("Shall I go on with the headers?", "assistant", True, False),
        ("Shall I go on with the headers?", "user", False, False),
        ("not answered: do the headers", "assistant", True, True),
        ("not answered: do the headers", "user", True, False),
    ],
)
def test_a_question_is_closed_by_its_answer(text, role, same, closed):
    found = done_by(text, [Said("msg-s1-9", 9, role, "yes, go on", NOW)], same_session=same)

    assert (found is not None) is closed


@pytest.mark.deep
def test_what_a_session_leaves_open_is_kept_when_it_ends_and_closed_when_it_is_done(home):
    at = todo(home)
    assert run(home, at).opened == ["thread-s1-2"]
    assert threads(home, at) == [LEFT_OPEN]
    assert sources(home, "thread-s1-2") == ["msg-s1-2"]
    assert f"Left open: {LEFT_OPEN}" in brief(home)
    assert [line.text for line in card(home, at).open] == [LEFT_OPEN]

    later = at + timedelta(hours=1)
    said = (
        ("user", "do the migration of the retry queue", 0),
        ("assistant", "Done: the migration of the retry queue runs in prod.", 5),
    )
    say(home, said, "s2", at=later)
    found = run(home, later + timedelta(minutes=1))

    assert found.closed == ["thread-s1-2"]
    assert threads(home, later) == []
    assert LEFT_OPEN not in brief(home)
    assert card(home, later, "s1").open == ()
    # What closed it is a source of that: without it the thread is open again.
    propagation.delete(
        home, ["msg-s2-2"], scopes=["app"], author=PERSON, now=later + timedelta(hours=1)
    )
    assert threads(home, later) == [LEFT_OPEN]


def test_what_was_done_before_it_was_looked_at_is_not_left_open(home):
    """Two sessions are told of in one pass: the second did what the first had left."""
    todo(home)
    say(home, (("user", "go", 0), ("assistant", "Done: the retry queue migration runs.", 5)), "s2",
        at=after(300), ended=after(400))  # fmt: skip
    todo(home, at=after(600), session="s3")

    assert run(home, after(7200)).opened == ["thread-s3-2"]


def test_a_session_that_goes_on_leaves_nothing_open_yet(home):
    say(home, (("user", "where is the queue?", 0), ("assistant", LEFT_OPEN, 1)))

    assert run(home, after(60)).opened == []
    assert run(home, after(31 * 60)).opened == ["thread-s1-2"]  # nobody said that it ended
    assert run(home, after(40 * 60)).opened == []


@pytest.mark.deep
def test_a_thread_that_was_crossed_off_stays_off(home):
    from hypatia_mem.memory import goals

    at = todo(home)
    run(home, at)
    assert [line.text for line in card(home, at).open] == [LEFT_OPEN]

    goals.done(home, "migration retry", scopes=["app"], author=PERSON, now=at)

    assert threads(home, at) == []
    assert threads(home, at, closed=True) == [LEFT_OPEN]
    assert card(home, at).open == ()
    todo(home, at + timedelta(hours=1))  # said again in the same session
    assert run(home, at + timedelta(hours=2)).opened == []


# --- the card -------------------------------------------------------------------------------------


def test_the_card_tells_what_was_so_far_and_what_earlier_sessions_left(home):
    at = todo(home, session="s0")
    run(home, at)
    say(home, talk(12), at=at + timedelta(minutes=5), ended=at + timedelta(hours=1))
    at += timedelta(hours=2)
    run(home, at)

    one = card(home, at)

    assert [line.where for line in one.earlier] == ["thread-s0-2"]
    assert one.so_far
    assert all(line.turn for line in one.so_far)
    assert one.so_far == tuple(sorted(one.so_far, key=lambda line: line.turn))
    text = handoff.render(one)
    assert handoff.tokens_of(text) <= handoff.MAX_TOKENS
    told = [line for line in text.splitlines() if line.startswith("- ")]
    assert told
    assert all("[turn " in line or "[thread-s0-2]" in line for line in told)

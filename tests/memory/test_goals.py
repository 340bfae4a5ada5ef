"""A goal is set, is told where work begins, is done step by step, and is somebody's to forget."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory import compose, curate, goals, handoff, history, propagation
from hypatia_mem.memory.goals import Goal, Step
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Trust
from hypatia_mem.store import episodes
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 10)
LATER = NOW + timedelta(hours=1)
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent", session_id="s1")
TEXT = "move the queue to Postgres"
STEPS = (
    "freeze the writers",
    "dump the tables",
    "load the rows",
    "check the counts",
    "switch",
    "thaw",
)


def put(home, text=TEXT, steps=(), author=PERSON, at=NOW, scope="app"):
    return goals.put(home, text, steps=steps, scope=scope, author=author, now=at)


def done(home, what=TEXT, step=0, at=LATER, **options):
    return goals.done(home, what, step=step, scopes=["app", ""], author=PERSON, now=at, **options)


def lines(home, at=LATER, scopes=("app", ""), **options):
    with open_store(home, write=False) as store:
        return goals.lines(store, scopes, at=at, **options)


def brief(home, at=LATER, **options):
    with open_store(home, write=False) as store:
        return compose.brief_text(store, "app", at=at, **options)


def say(home):
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=NOW) as txn,
    ):
        txn.put_session(Session("s1", project="app", updated_at=NOW))
        said = (("user", "let us move the queue"), ("assistant", "I begin with the writers."))
        txn.put_messages(
            "s1", [Message("s1", f"u{n}", role, text, NOW) for n, (role, text) in enumerate(said)], "app"
        )  # fmt: skip


# --- the form -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "line", "following"),
    [
        (Goal("go"), "go", 0),
        (Goal("go", (Step("a"), Step("b"))), "go (0 of 2 steps done; next is step 1: a)", 1),
        (Goal("go", (Step("a", True), Step("b"))), "go (1 of 2 steps done; next is step 2: b)", 2),
        (Goal("go", (Step("a"), Step("b", True))), "go (1 of 2 steps done; next is step 1: a)", 1),
        (Goal("go", (Step("a", True),)), "go (1 of 1 steps done)", 0),
    ],
)
def test_how_far_it_is(goal, line, following):
    assert (goal.line, goal.next) == (line, following)
    assert goals.goal_of(Entry("goal-go", goal.content)) == goal


def test_a_goal_that_a_person_edited_is_still_read():
    content = "go\nfar\n\n* a note\n- [X] first\n- [ ] 7. second\n"

    assert goals.goal_of(Entry("g", content)) == Goal(
        "go far * a note", (Step("first", True), Step("second"))
    )


# --- set, shown, done -----------------------------------------------------------------------------


def test_step_three_of_six_is_told_after_a_restart(home):
    """Nothing but the store is left of it: the brief and the card name what is done and what next."""
    put(home, steps=STEPS)
    say(home)
    for step in (1, 2, 3):
        done(home, step=step)

    told = f"{TEXT} (3 of 6 steps done; next is step 4: check the counts)"
    assert told in brief(home)
    card = handoff.card(home, project="app", now=LATER)
    assert card.goals[0].text == told
    assert f"- {told} [goal-move-the-queue-to-postgres]" in handoff.render(card)


def test_with_its_last_step_a_goal_is_done(home):
    put(home, steps=STEPS[:2])
    done(home, step=2)
    assert lines(home) != []
    done(home, step=1)

    assert lines(home) == []
    assert TEXT not in brief(home)
    with open_store(home, write=False) as store:
        (entry,) = episodes.goals(store, ["app"], at=LATER, closed=True)
    assert entry.valid_to == LATER


@pytest.mark.deep
@pytest.mark.parametrize("what", [TEXT, "queue POSTGRES", "goal-move-the-queue-to-postgres"])
def test_a_goal_goes_by_its_name_or_its_words(home, what):
    put(home)
    put(home, "write the manual")

    done(home, what)

    assert [line.text for line in lines(home)] == ["write the manual"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("what", "step", "error"),
    [
        ("no such thing", 0, NotFound),
        ("  ", 0, NotFound),
        ("the", 0, UsageError),  # says two of them
        (TEXT, 7, UsageError),
        ("write the manual", 1, UsageError),  # it has no steps
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(home, what, step, error):
    put(home, steps=STEPS)
    put(home, "write the manual")

    with pytest.raises(error):
        done(home, what, step)

    assert len(lines(home)) == 2


@pytest.mark.parametrize(
    ("text", "steps"), [("", ()), ("  \n", ()), (TEXT, ("a", " ")), (TEXT, ("s",) * 51)]
)
def test_a_goal_without_words_is_refused(home, text, steps):
    with pytest.raises(UsageError):
        put(home, text, steps)
    assert lines(home) == []


def test_set_again_it_keeps_what_is_done(home):
    put(home, steps=STEPS)
    done(home, step=1)

    assert put(home).verb == "unchanged"
    assert put(home, "Move the QUEUE to postgres", (STEPS[0], "something new")).verb == "updated"

    (line,) = lines(home)
    assert (
        line.text == "Move the QUEUE to postgres (1 of 2 steps done; next is step 2: something new)"
    )


def test_trying_it_out_changes_nothing(home):
    put(home)

    done(home, dry_run=True)

    assert len(lines(home)) == 1


def test_what_was_done_can_be_taken_back(home):
    put(home, steps=STEPS[:1])
    done(home, step=1)
    with open_store(home, write=False) as store:
        op = store.ledger(limit=1)[0]["op_id"]

    history.undo(home, op, author=PERSON, now=LATER)

    assert [line.text for line in lines(home)] == [
        f"{TEXT} (0 of 1 steps done; next is step 1: {STEPS[0]})"
    ]


def test_a_secret_in_a_goal_is_not_stored(home):
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"

    put(home, f"rotate {token}", [f"revoke {token}"])

    with open_store(home, write=False) as store:
        (entry,) = episodes.goals(store, ["app"], at=LATER)
    assert token not in entry.content + entry.name


# --- who, where, when -----------------------------------------------------------------------------


def test_what_an_agent_set_is_told_as_such_until_a_person_verifies_it(home):
    say(home)
    name = put(home, author=AGENT).name
    put(home, "write the manual")

    told = {line.name: line for line in lines(home)}
    assert told[name].text.startswith("[set by an agent] ")
    assert told[name].where == "turn 2"  # of the session that it was set in
    assert told["goal-write-the-manual"].text == "write the manual"
    assert f"- [set by an agent] {TEXT}" in brief(home)
    assert "- write the manual" in brief(home)

    with curate.changing(home, PERSON, LATER) as (_, txn):
        txn.set_trust(name, Trust.VERIFIED, "")
    assert f"- {TEXT}" in brief(home)
    assert "[set by an agent]" not in brief(home)


def test_a_goal_is_of_its_project(home):
    put(home, "a goal of the other one", scope="other")

    assert lines(home) == []
    assert "a goal of the other one" not in brief(home)
    with pytest.raises(NotFound):
        done(home, "other one")


def test_the_brief_as_it_was_tells_the_goals_of_then(home):
    put(home, steps=STEPS)
    done(home, step=1)
    done(home, at=LATER + timedelta(hours=1))
    end = LATER + timedelta(hours=2)

    assert TEXT not in brief(home, at=end)
    assert "1 of 6 steps done" in brief(home, at=LATER, known_at=LATER + timedelta(minutes=1))
    assert "0 of 6 steps done" in brief(home, at=NOW, known_at=NOW + timedelta(minutes=1))
    assert TEXT not in brief(home, at=NOW, known_at=NOW - timedelta(minutes=1))


@pytest.mark.deep
def test_many_goals_leave_room_for_what_is_remembered(home):
    for number in range(12):
        put(home, f"goal number {number} of this project", at=NOW + timedelta(minutes=number))
    curate.remember(
        home, "the staging db is db2", kind="memory", scope="app", author=PERSON, now=NOW
    )

    text = brief(home)

    assert [line for line in text.splitlines() if "goal number" in line] == [
        f"- goal number {number} of this project" for number in (11, 10, 9, 8, 7)
    ]
    assert "(7 more entries not shown here: hypatia-mem goal list)" in text
    assert "the staging db is db2" in text


@pytest.mark.deep
@pytest.mark.parametrize("how", ["delete", "forget", "suppress", "reject"])
def test_a_goal_that_is_taken_away_is_told_nowhere(home, how):
    say(home)
    name = put(home).name

    if how == "delete":
        propagation.delete(home, [name], scopes=["app"], author=PERSON, now=LATER)
    elif how == "forget":
        curate.forget(home, "", scope="app", ids=[name], author=PERSON, now=LATER)
    else:
        with curate.changing(home, PERSON, LATER) as (_, txn):
            if how == "suppress":
                txn.update_entry(name, suppressed=True)
            else:
                txn.set_trust(name, Trust.REJECTED, "no")

    assert lines(home) == []
    assert TEXT not in brief(home)
    assert TEXT not in handoff.render(handoff.card(home, project="app", now=LATER))
    if how == "forget":
        assert put(home, author=AGENT).verb == "refused"

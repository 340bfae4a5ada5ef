"""Forking: a branch shares what was said before, copies nothing, and nothing leaks between two."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.errors import Conflict, NotFound, Refused, SessionRuns, UsageError
from hypatia_mem.memory import branching, compose, curate, handoff, history, propagation
from hypatia_mem.memory.deriving import derive
from hypatia_mem.model import Entry, Message, Session, Statement
from hypatia_mem.store import branches, hidden, hiding
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.lookup import Filters
from hypatia_mem.store.search import SearchIndex
from tests.memory.branch_kit import AGENT, HEARD, NOW, PERSON, WORDS, go_on, rows, said, talk


def fork(home, session="s-1", *, author=PERSON, now=NOW, **how):
    return branching.fork(home, session, scopes=None, author=author, now=now, **how)


def read(home, session):
    """Return the words of what a session reads, in order."""
    with open_store(home, write=False) as store:
        found = branches.reading(store, session)
    assert [place for place, _ in found] == sorted({place for place, _ in found})
    return [message.text.split()[3] if message.text else "" for _, message in found]


def found(home, asker, text="talk today"):
    """Return the words that a search of a session finds."""
    filters = Filters(hidden=hidden.told(home, asker))
    hits = SearchIndex(home).search(text, filters=filters, limit=100)
    return {word for word in WORDS for hit in hits if word in hit.snippet_text}


# --- one row, nothing copied ----------------------------------------------------------------------


def test_a_fork_is_one_row_and_leaves_the_original_as_it_is(home):
    talk(home)
    before = rows(home)
    made = fork(home, at="10", reason="try a queue")
    after = rows(home)
    new = [row for row in after["session"] if row not in before["session"]]
    assert [len(after[table]) - len(before[table]) for table in before] == [0, 0, 0, 1, 0]
    assert [row for row in after["session"] if row not in new] == before["session"]
    assert {**after, "session": before["session"]} == before
    assert (new[0]["id"], new[0]["forked_from"], new[0]["forked_at"]) == (made.id, "s-1", 10)
    assert new[0]["fork_reason"] == "try a queue"
    assert read(home, made.id) == list(WORDS[:10])
    assert read(home, "s-1") == list(WORDS[:12])


def test_it_goes_on_and_the_original_goes_on(home):
    talk(home)
    made = fork(home, at="10")
    go_on(home, made.id, "maple", "nettle")
    go_on(home, "s-1", "olive")
    assert read(home, made.id) == [*WORDS[:10], "maple", "nettle"]
    assert read(home, "s-1") == [*WORDS[:12], "olive"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("at", "count"),
    [("1", 1), ("12", 12), (None, 12), ("msg-s-1-4", 4)],
    ids=["first", "last", "end", "by name"],
)
def test_at_any_message(home, at, count):
    talk(home)
    assert read(home, fork(home, at=at).id) == list(WORDS[:count])


def test_a_fork_of_a_fork(home):
    """Behind the point at which it parts it has its parent's turns; before it, the grandparent's."""
    talk(home)
    one = fork(home, at="6")
    go_on(home, one.id, "maple", "nettle")
    late = fork(home, one.id, at="7")
    early = fork(home, one.id, at="3")
    go_on(home, late.id, "olive")
    assert read(home, late.id) == [*WORDS[:6], "maple", "olive"]
    assert read(home, early.id) == list(WORDS[:3])
    grown = branching.tree(home, early.id, scopes=None)
    assert [(one.depth, one.at, one.messages) for one in grown] == [
        (0, 0, 12), (1, 6, 8), (2, 3, 3), (2, 7, 8),
    ]  # fmt: skip


def test_undone_and_done_again(home):
    talk(home)
    before = rows(home)
    made = fork(home, at="4", reason="why")
    forked = rows(home)
    history.undo(home, made.op_id, author=PERSON, now=NOW + timedelta(seconds=1))
    assert rows(home) == before
    history.redo(home, made.op_id, author=PERSON, now=NOW + timedelta(seconds=2))
    assert rows(home) == forked


@pytest.mark.deep
def test_what_was_built_on_a_fork_keeps_it(home):
    """An undoing does not take a branch away from under its turns, or from under another branch."""
    talk(home)
    made = fork(home, at="4")
    other = fork(home, made.id, at="2")
    with pytest.raises(Conflict, match=other.id):
        history.undo(home, made.op_id, author=PERSON, now=NOW)
    propagation.delete(home, [other.id], scopes=None, author=PERSON, now=NOW)
    go_on(home, made.id, "maple")
    with pytest.raises(Conflict, match="has turns"):
        history.undo(home, made.op_id, author=PERSON, now=NOW)


def test_a_dry_run_changes_nothing(home):
    talk(home)
    before = rows(home)
    tried = fork(home, at="10", dry_run=True)
    assert (tried.messages, tried.op_id) == (10, "")
    assert rows(home) == before


@pytest.mark.deep
@pytest.mark.parametrize(
    ("session", "at", "error", "says"),
    [
        ("s-1", "0", UsageError, "at least the first message"),
        ("s-1", "-3", UsageError, "at least the first message"),
        ("s-1", "13", UsageError, "has 12 messages, so none stands at 13"),
        ("s-1", "ten", UsageError, "a number from 1 to 12"),
        ("s-1", "msg-s-1-99", NotFound, "there is no message"),
        ("s-1", "msg-s-1-²", NotFound, "there is no message"),
        ("s-1", "msg-s-1-99999999999999999999", NotFound, "there is no message"),
        ("s-1", "msg-s-2-1", UsageError, "none of the messages of session s-1"),
        ("s-9", "1", NotFound, "there is no session 's-9'"),
        ("s-3", "1", UsageError, "has no message yet"),
    ],
)
def test_what_cannot_be_forked_is_said(home, session, at, error, says):
    talk(home)
    talk(home, "s-2", 1)
    talk(home, "s-3", 0)
    before = rows(home)
    with pytest.raises(error, match=says) as refused:
        fork(home, session, at=at)
    assert refused.value.hint or session == "s-3"
    assert rows(home) == before


@pytest.mark.deep
def test_a_turn_of_the_sibling_is_no_place_of_the_branch(home):
    talk(home)
    made = fork(home, at="4")
    go_on(home, made.id, "maple")
    with pytest.raises(UsageError, match="none of the messages of session"):
        fork(home, made.id, at="msg-s-1-5")
    assert read(home, fork(home, made.id, at=f"msg-{made.id}-1").id) == [*WORDS[:4], "maple"]


def test_a_tools_call_and_its_result_are_not_parted(home):
    call = {"type": "tool_use", "name": "Bash", "input": "ls", "id": "t1"}
    result = {"type": "tool_result", "id": "t1", "text": "listing", "length": 7}
    messages = said("s-1", WORDS[:4])
    messages[1:3] = [
        Message(**{**_fields(one), "parts": (part,)})
        for one, part in zip(messages[1:3], (call, result), strict=True)
    ]
    with open_store(home, write=True) as store, store.transaction(HEARD, now=NOW) as txn:
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", messages, "app")
    with pytest.raises(UsageError, match="called in message 2 and answered in message 3") as no:
        fork(home, at="2")
    assert "at 3, with both, or at 1, with neither" in no.value.hint
    with pytest.raises(UsageError, match="go together"):
        fork(home, at="3", words="another answer")
    for at in ("1", "3", "4"):
        assert len(read(home, fork(home, at=at).id)) == int(at)


def _fields(message):
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


# --- an edit beside, and the head -----------------------------------------------------------------


def test_a_message_is_edited_beside_itself(home):
    talk(home)
    before = rows(home)
    made = fork(home, at="3", words="we talk of maple today")
    after = rows(home)
    assert read(home, made.id) == ["amber", "birch", "maple"]
    assert read(home, "s-1") == list(WORDS[:12])
    for table in ("entry", "message", "session"):
        assert len(after[table]) == len(before[table]) + 1
        assert [row for row in after[table] if row in before[table]] == before[table]
    with open_store(home, write=False) as store:
        anew = store.messages(made.id)[0]
        assert (anew.role, anew.flags) == ("user", ("edited",))
        assert branches.heads(store) == {made.id}
    history.undo(home, made.op_id, author=PERSON, now=NOW + timedelta(seconds=1))
    left = rows(home)
    assert {table: left[table] for table in before if table != "version"} == {
        table: before[table] for table in before if table != "version"
    }
    history.redo(home, made.op_id, author=PERSON, now=NOW + timedelta(seconds=2))
    assert read(home, made.id) == ["amber", "birch", "maple"]


@pytest.mark.deep
def test_the_first_message_can_be_edited(home):
    talk(home)
    made = fork(home, at="1", words="we talk of maple today")
    assert read(home, made.id) == ["maple"]
    assert [one.id for one in branching.tree(home, "s-1", scopes=None)] == ["s-1", made.id]


@pytest.mark.deep
def test_what_was_deleted_is_not_edited(home):
    talk(home)
    propagation.delete(home, ["msg-s-1-3"], scopes=None, author=PERSON, now=NOW)
    with pytest.raises(UsageError, match="was deleted or is withheld"):
        fork(home, at="3", words="something")
    assert read(home, fork(home, at="4").id) == ["amber", "birch", "", "daisy"]


def test_an_agent_forks_but_writes_nothing_anew_and_moves_no_head(home):
    talk(home)
    made = fork(home, at="3", author=AGENT)
    assert read(home, made.id) == list(WORDS[:3])
    with pytest.raises(Refused, match="only a person"):
        fork(home, at="3", words="never said", author=AGENT)
    with pytest.raises(Refused, match="only a person"):
        branching.make_head(home, made.id, scopes=None, author=AGENT, now=NOW)


@pytest.mark.deep
def test_a_secret_in_a_reason_is_not_kept(home):
    talk(home)
    key = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"
    made = fork(home, at="3", reason=f"with {key}", words=f"use {key} today")
    assert key not in str(rows(home))
    assert "with" in made.reason


# --- what each branch is told ---------------------------------------------------------------------


@pytest.fixture
def parted(home):
    """``s-1`` and a branch at 6, which went on; both derived from, before and behind that point."""
    talk(home)
    made = fork(home, at="6")
    go_on(home, made.id, "maple", "nettle")
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        for name, word, sources in (
            ("unit-shared", "amber", ["msg-s-1-1", "msg-s-1-2"]),
            ("unit-mixed", "kelp", ["msg-s-1-1", "msg-s-1-11"]),
            ("unit-own", "maple", [f"msg-{made.id}-1"]),
        ):
            entry = Entry(name, f"{name}: we talk of {word}", scopes=("app",), kind="work-unit")
            txn.put_entry(entry)
            for source in sources:
                txn.put_statement(Statement(name, "derivedFrom", source, scopes=("app",)))
        above = Entry("over-mixed", "over-mixed: larch", scopes=("app",), kind="work-unit")
        txn.put_entry(above)
        txn.put_statement(Statement("over-mixed", "derivedFrom", "unit-mixed", scopes=("app",)))
        txn.put_statement(Statement("unit-own", "names", "maple tree", scopes=("app",)))
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(Entry("rule-own", "talk of olive", scopes=("app",), kind="rule"))
        txn.put_statement(Statement("rule-own", "derivedFrom", f"msg-{made.id}-2", scopes=("app",)))
    derive(home)
    return made.id


def names(home, asker):
    with open_store(home, write=False) as store:
        return set(hiding.hidden_names(store, asker))


def test_a_sibling_never_leaks_into_a_search(home, parted):
    assert found(home, parted) == {*WORDS[:6], "maple", "nettle", "olive"}
    assert found(home, "s-1") == {*WORDS[:12], "olive"}
    assert found(home, "") == {*WORDS[:12], "maple", "nettle", "olive"}  # nobody set one aside
    assert found(home, "another") == found(home, "")


def test_what_stands_on_a_siblings_turns_is_its_own(home, parted):
    """Also on one of them among others, or on what does; a person's own rule is nobody's branch."""
    hits = {
        one: {hit.name for hit in SearchIndex(home).search(
            "unit shared mixed own over talk larch tree",
            filters=Filters(hidden=hidden.told(home, one)), limit=100,
        ) if not hit.name.startswith("msg-")}
        for one in (parted, "s-1", "")
    }  # fmt: skip
    tree = next(name for name in hits[""] if "maple tree" in name)
    assert hits[parted] == {"unit-shared", "unit-own", "rule-own", tree}
    assert hits["s-1"] == {"unit-shared", "unit-mixed", "over-mixed", "rule-own"}
    assert hits[""] == hits[parted] | hits["s-1"]
    assert names(home, parted) >= {"unit-mixed", "over-mixed", "session-s-1", "msg-s-1-7"}
    assert not names(home, parted) & {"unit-shared", "unit-own", "msg-s-1-6", f"msg-{parted}-1"}
    assert names(home, "") == set()


@pytest.mark.deep
def test_what_is_said_later_is_hidden_before_anybody_can_find_it(home, parted):
    """Turns are hidden by where they stand, so those to come are, too."""
    go_on(home, "s-1", "olive")
    go_on(home, parted, "fennel")
    assert hidden.told(home, parted).turns == (hidden.Turns("s-1", 7, None),)
    derive(home)
    assert "msg-s-1-13" in names(home, parted)
    assert "msg-s-1-13" not in names(home, "s-1")


def test_the_brief_says_where_a_branch_itself_left_off(home, parted):
    with open_store(home, write=False) as store:
        told = {one: compose.brief_text(store, "app", asker=one) for one in (parted, "s-1", "")}
    assert "nettle" in told[parted]
    assert "larch" not in told[parted]
    assert "larch" in told["s-1"]
    assert "nettle" not in told["s-1"]
    assert "nettle" in told[""]  # the latest, as for every other session
    assert all("olive" in one for one in told.values())  # the person's rule


@pytest.mark.deep
def test_what_is_not_spoken_in_yet_hands_over_what_it_shares(home):
    talk(home)
    made = fork(home, at="6")
    with open_store(home, write=False) as store:
        text = compose.brief_text(store, "app", asker=made.id)
    assert "fennel" in text
    assert "larch" not in text
    one = handoff.card(home, project="app", session_id=made.id, now=NOW)
    assert one.turns == 6


@pytest.mark.deep
def test_a_card_has_the_decisions_of_its_branch_alone(home):
    lines = ["we decided to use amber", "ok", "we decided to use birch", "ok"]
    with open_store(home, write=True) as store, store.transaction(HEARD, now=NOW) as txn:
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages(
            "s-1",
            [
                Message("s-1", f"u{n}", "user" if n % 2 else "assistant", text, NOW)
                for n, text in enumerate(lines, 1)
            ],
            "app",
        )
    made = fork(home, at="2")
    with open_store(home, write=True) as store, store.transaction(HEARD, now=NOW) as txn:
        last = Message(made.id, "f1", "user", "we decided to use cedar", NOW)
        txn.put_messages(made.id, [last], "app")
    card = handoff.card(home, project="app", session_id=made.id, now=NOW)
    assert [(line.text, line.turn) for line in card.decided] == [
        ("we decided to use cedar", 3), ("we decided to use amber", 1),
    ]  # fmt: skip
    card = handoff.card(home, project="app", session_id="s-1", now=NOW)
    assert [line.turn for line in card.decided] == [3, 1]


def test_a_head_sets_the_others_aside_for_whoever_is_no_branch(home):
    talk(home)
    made = fork(home, at="3", words="we talk of maple today")
    derive(home)
    assert found(home, "") == {"amber", "birch", "maple"}
    assert found(home, made.id) == {"amber", "birch", "maple"}
    assert found(home, "s-1") == set(WORDS[:12])
    branching.make_head(home, "s-1", scopes=None, author=PERSON, now=NOW + timedelta(minutes=1))
    assert found(home, "") == set(WORDS[:12])
    with pytest.raises(Conflict, match="the head already"):
        branching.make_head(home, "s-1", scopes=None, author=PERSON, now=NOW)
    with open_store(home, write=False) as store:
        assert branches.newest(store, "app", "").id == "s-1"
        assert branches.newest(store, "app", made.id).id == made.id


@pytest.mark.deep
def test_who_goes_on_in_a_branch_that_was_set_aside_brings_it_back(home):
    """Work is never hidden from everybody only because another branch was made the head once."""
    talk(home)
    fork(home, at="3", words="we talk of maple today")
    go_on(home, "s-1", "olive", begin=NOW + timedelta(hours=1))
    derive(home)
    assert found(home, "") == {*WORDS[:12], "maple", "olive"}


@pytest.mark.deep
def test_where_there_is_no_branch_there_is_no_head_to_move(home):
    talk(home)
    with pytest.raises(UsageError, match="has no branches"):
        branching.make_head(home, "s-1", scopes=None, author=PERSON, now=NOW)


@pytest.mark.deep
def test_another_projects_session_is_out_of_reach(home):
    talk(home, scope="web")
    how = {"author": PERSON, "now": NOW}
    with pytest.raises(NotFound, match="not of this project"):
        branching.fork(home, "s-1", scopes=["app", ""], **how)
    assert branching.fork(home, "s-1", scopes=["web"], **how).messages == 12


# --- what goes ------------------------------------------------------------------------------------


def test_a_shared_message_goes_from_every_branch(home):
    talk(home)
    made = fork(home, at="6")
    propagation.delete(home, ["msg-s-1-2"], scopes=None, author=PERSON, now=NOW)
    assert read(home, made.id) == ["amber", "", *WORDS[2:6]]
    assert read(home, "s-1")[1] == ""


def test_a_deleted_branch_takes_nothing_of_the_original(home):
    talk(home)
    before = rows(home, "entry", "message", "statement")
    made = fork(home, at="6")
    go_on(home, made.id, "maple")
    propagation.delete(home, [made.id], scopes=None, author=PERSON, now=NOW)
    after = rows(home, "entry", "message", "statement")
    assert after["entry"] == before["entry"]
    assert [row for row in after["message"] if row["session_id"] == "s-1"] == before["message"]
    curate.refresh(home)
    assert found(home, "s-1") == set(WORDS[:12])


def test_deleting_the_original_keeps_what_a_branch_needs_and_says_so_before(home):
    talk(home)
    made = fork(home, at="4")
    before = rows(home)
    how = {"scopes": None, "author": PERSON, "now": NOW}
    tried = propagation.delete(home, ["s-1"], dry_run=True, **how)
    assert rows(home) == before
    assert [one.name for one in tried.targets] == [f"msg-s-1-{n}" for n in range(5, 13)]
    assert [(one.name, one.why) for one in tried.kept] == [
        *((f"msg-s-1-{n}", f"the branch {made.id} reads it") for n in range(1, 5)),
        ("s-1", f"archived: the branch {made.id} reads it"),
    ]
    done = propagation.delete(home, ["s-1"], **how)
    assert (done.targets, done.kept) == (tried.targets, tried.kept)
    assert read(home, made.id) == list(WORDS[:4])
    with open_store(home, write=False) as store:
        assert [one.id for one, _ in store.sessions()] == [made.id]
    history.undo(home, done.op_id, author=PERSON, now=NOW + timedelta(seconds=1))
    assert read(home, "s-1") == list(WORDS[:12])
    both = propagation.delete(home, ["s-1", made.id], **how)
    assert not both.kept
    with open_store(home, write=False) as store:
        assert not store.live_entries(f"msg-s-1-{n}" for n in range(1, 13))


@pytest.mark.deep
def test_a_branch_between_two_stays_as_long_as_something_hangs_on_it(home):
    """Else nobody would know any more what the last one shares."""
    talk(home)
    middle = fork(home, at="4")
    go_on(home, middle.id, "maple", "nettle")
    last = fork(home, middle.id, at="2")
    propagation.delete(home, [middle.id], scopes=None, author=PERSON, now=NOW)
    assert read(home, last.id) == ["amber", "birch"]
    with open_store(home, write=False) as store:
        assert store.session(middle.id).archived
        assert not store.live_entries([f"msg-{middle.id}-1", f"msg-{middle.id}-2"])


@pytest.mark.deep
def test_who_deletes_a_shared_message_is_told_who_reads_it(home):
    talk(home)
    made = fork(home, at="4")
    how = {"scopes": None, "author": PERSON, "now": NOW, "dry_run": True}
    gone = propagation.delete(home, [f"{made.id}:2", "msg-s-1-9"], **how)
    assert [(one.name, one.why) for one in gone.targets] == [
        ("msg-s-1-2", f"the branch {made.id} reads it, too"),
        ("msg-s-1-9", ""),
    ]


def test_turns_of_a_branch_are_named_as_it_is_read(home):
    talk(home)
    made = fork(home, at="4")
    go_on(home, made.id, "maple", "nettle")
    how = {"scopes": None, "author": PERSON, "now": NOW, "dry_run": True}
    gone = propagation.delete(home, [f"{made.id}:4-5"], **how)
    assert {one.name for one in gone.targets} == {"msg-s-1-4", f"msg-{made.id}-1"}
    with pytest.raises(UsageError, match="there is no place 7"):
        propagation.delete(home, [f"{made.id}:7"], **how)
    with pytest.raises(UsageError, match="read by more than one branch"):
        propagation.delete_onward(home, f"{made.id}:3", **how)
    onward = propagation.delete_onward(home, f"{made.id}:5", **how)
    assert [one.name for one in onward.targets] == [f"msg-{made.id}-{n}" for n in (1, 2)]


@pytest.mark.deep
def test_an_old_session_is_as_old_as_the_youngest_branch_that_shares_it(home):
    from hypatia_mem.config import Settings
    from hypatia_mem.memory import retention

    talk(home)
    talk(home, "s-2")
    settings = Settings(retention_days=1, retention_sessions=0)
    later = NOW + timedelta(days=30)
    fork(home, "s-1", at="4", now=later)
    let = retention.apply(home, settings, "app", dry_run=True, author=PERSON, now=later)
    assert let.sessions == ("s-2",)


@pytest.mark.deep
def test_what_a_branch_is_for_is_forgotten_and_erased_like_other_words(home):
    from hypatia_mem.store import erasing, holding

    talk(home)
    made = fork(home, at="2", reason="try the zebra gateway")
    with open_store(home, write=False) as store:
        assert [one.name for one in holding.titles(store, ["zebra"], ["app"])] == [made.id]
        assert holding.titles(store, ["zebra", "lion"], ["app"]) == []
        assert [one.id for one in erasing.said_titles(store, ["zebra gateway"], None)] == [made.id]
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        assert txn.erase_title(made.id, "erase").verb == "updated"
    assert "zebra" not in str(rows(home, "session", "image", "mutation"))
    assert read(home, made.id) == ["amber", "birch"]


def test_a_shared_message_that_is_forgotten_is_in_no_branch(home):
    talk(home)
    made = fork(home, at="4")
    curate.forget(home, "", scope="app", ids=["msg-s-1-2"], author=PERSON, now=NOW)
    assert read(home, made.id) == ["amber", "", "cedar", "daisy"]
    derive(home)
    assert "birch" not in found(home, made.id) | found(home, "s-1")


def test_a_fork_of_an_earlier_version_shares_what_was_said_before_it(bare_home):
    """Its row named the session that it came from, and nothing else."""
    from hypatia_mem.store.connection import FILE, attached
    from hypatia_mem.store.migrations import MIGRATIONS
    from tests.store.old_stores import make_old

    make_old(bare_home, [name for name, _ in MIGRATIONS].index("m010_share_turns_of_branches"))
    with attached(bare_home / FILE, write=True) as kb:
        kb.execute("DELETE FROM message")
        for session, turn, minute in (
            ("s-1", 1, 0), ("s-1", 2, 1), ("s-2", 1, 5), ("s-1", 3, 9),
        ):  # fmt: skip
            at = NOW + timedelta(minutes=minute)
            kb.execute(
                "INSERT INTO message VALUES (?, ?, ?, '', '', '', 'user', '', '[]', 0, [], '', ?)",
                [session, turn, f"{session}-{turn}", at],
            )
        kb.execute(
            "INSERT INTO session SELECT * REPLACE ('s-2' AS id, 's-1' AS forked_from) FROM session"
        )
    with open_store(bare_home, write=False) as store:
        assert store.session("s-2").forked_at == 2
        read = branches.reading(store, "s-2")
    assert [(place, one.session_id) for place, one in read] == [(1, "s-1"), (2, "s-1"), (3, "s-2")]


@pytest.mark.deep
@pytest.mark.parametrize("is_branch", [True, False])
def test_no_branch_is_asked_to_condense_its_siblings_turns(home, is_branch):
    """A batch goes through all sessions of a project; who is told of it reads every word of it."""
    from hypatia_mem.memory.cascade import announcing
    from tests.memory.cascade_kit import settings

    talk(home, count=4)
    made = fork(home, at="2").id if is_branch else "s-2"
    if not is_branch:
        talk(home, made, 0)
    go_on(home, "s-1", "maple", "nettle", begin=NOW - timedelta(minutes=30))
    go_on(home, made, "olive and " * 60, "kelp", begin=NOW - timedelta(minutes=10))
    agent = settings(summary_by="agent", cascade_max_tokens=200)
    assert announcing.announce(home, agent, now=NOW) == (0 if is_branch else 1)


def test_a_branch_that_no_client_runs_holds_nothing(home):
    """What was just written anew can be taken away at once; what is being said there cannot."""
    talk(home)
    made = fork(home, at="3", words="we talk of maple today")
    other = fork(home, at="3", words="we talk of birch today")
    go_on(home, other.id, "birch", begin=NOW + timedelta(minutes=1))
    now = NOW + timedelta(minutes=5)
    assert propagation.delete(home, [made.edited], scopes=None, author=PERSON, now=now).op_id
    with pytest.raises(SessionRuns):
        propagation.delete(home, [other.edited], scopes=None, author=PERSON, now=now)

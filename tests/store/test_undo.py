"""What was done can be taken back, and done again, as long as nothing later stands on it."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import Conflict, HypatiaError, NotFound, Refused
from hypatia_mem.model import Author, Channel, Entry, Session, Statement, Trust
from hypatia_mem.store import operations
from hypatia_mem.store.connection import open_store

START = datetime(2026, 11, 30, 12, 0, 0)
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
LATER = {
    "entry": ("version", "updated_at", "recorded_at", "seq"),
    "statement": ("recorded_at", "seq"),
    "message": (),
    "session": ("updated_at",),
    "project": (),
    "root": ("seen_at",),
    "tombstone": (),
}


class Desk:
    """An open store with one-line operations, each a minute later than the one before."""

    def __init__(self, store):
        self.store = store
        self.minutes = 0
        self.ops = []

    def do(self, what, author=PERSON):
        """Do one operation; returns its id."""
        self.minutes += 1
        now = START + timedelta(minutes=self.minutes)
        with self.store.transaction(author, now=now) as txn:
            what(txn)
            op = txn.op_id
        self.ops.append(op)
        return op

    def undo(self, op, author=PERSON):
        return self.do(lambda txn: txn.undo(op), author)

    def redo(self, op):
        return self.do(lambda txn: txn.redo(op))

    def picture(self):
        return picture(self.store)

    def ask(self, question):
        return question(self.store)


def picture(store):
    """Return every table's rows, without what only says when."""
    return {
        table: sorted(
            repr({key: value for key, value in row.items() if key not in left_out})
            for row in store.run(f"SELECT * FROM {table}")
        )
        for table, left_out in LATER.items()
    }


@pytest.fixture
def desk(home):
    with open_store(home, write=True) as store:
        yield Desk(store)


def rule(text, name="rule:a", scope="app", **more):
    return Entry(name, text, kind="rule", scopes=(scope,), **more)


def prepared(txn):
    txn.put_project("app", aliases=["/a"])
    txn.put_root("/a", scope="app", git_key="g")
    txn.put_entry(rule("One", tags=("t",), synonyms=("s",)))
    txn.put_entry(Entry("b", "B", scopes=("app", "")))
    txn.put_statement(Statement("rule:a", "is_a", "rule", content="c", scopes=("app",)))
    txn.put_session(Session("s-1", project="app", title="First", tags=("x",)))


def many(txn):
    for number in range(20):
        txn.put_entry(Entry(f"n{number}", "x", scopes=("app",)))
        txn.put_statement(Statement(f"n{number}", "is", "rule:a", scopes=("app",)))


OPERATIONS = {
    "create": lambda txn: txn.put_entry(rule("Two", "rule:b")),
    "create withheld": lambda txn: txn.put_entry(rule("Two", "rule:b", trust=Trust.CANDIDATE)),
    "put again": lambda txn: txn.put_entry(rule("Uno"), replace=True),
    "update": lambda txn: txn.update_entry("rule:a", content="Uno", tags=("u",), kind="taboo"),
    "suppress": lambda txn: txn.update_entry("rule:a", suppressed=True),
    "twice": lambda txn: [txn.update_entry("b", content=c) for c in ("C", "D")],
    "there and back": lambda txn: [txn.update_entry("b", content=c) for c in ("C", "B")],
    "delete": lambda txn: txn.delete_entry("rule:a"),
    "delete and create": lambda txn: [
        txn.delete_entry("b"),
        txn.put_entry(Entry("b", "C", scopes=("",))),
    ],
    "create and delete": lambda txn: [
        txn.put_entry(Entry("c", "C", scopes=("",))),
        txn.delete_entry("c"),
    ],
    "say": lambda txn: txn.put_statement(Statement("b", "knows", "nobody", scopes=("app",))),
    "unsay": lambda txn: txn.delete_statement("rule:a", "is_a", "rule"),
    "many": many,
    "rename": lambda txn: txn.rename_scope("app", "tool"),
    "title": lambda txn: txn.edit_session("s-1", title="Second", pinned=True, tags=()),
    "session": lambda txn: txn.put_session(Session("s-2", project="app", title="New")),
    "exclude": lambda txn: txn.put_project("app", excluded=True),
    "project": lambda txn: txn.put_project("other"),
    "root": lambda txn: txn.put_root("/b", scope="app"),
    "root again": lambda txn: txn.put_root("/a", scope="app", git_key="h", remote="r"),
    "no root": lambda txn: txn.delete_root("/a"),
    "all": lambda txn: [many(txn), txn.delete_entry("b"), txn.rename_scope("app", "tool")],
}


@pytest.mark.deep
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_taken_back_whole_and_done_again_whole(desk, name):
    desk.do(prepared)
    before = desk.picture()
    op = desk.do(OPERATIONS[name])
    after = desk.picture()
    for _ in range(2):
        undoing = desk.undo(op)
        assert desk.picture() == before
        with pytest.raises(Conflict, match="undone already"):
            desk.undo(op)
        desk.redo(op)
        assert desk.picture() == after
        with pytest.raises(Conflict, match="not undone"):
            desk.redo(op)
    desk.undo(undoing)  # by the undoing's own name it is the same operation
    assert desk.picture() == before
    desk.redo(undoing)
    assert desk.picture() == after
    assert desk.ask(lambda store: store.verify_ledger()) is None


def test_an_undoing_is_an_operation_with_versions_and_ledger_rows_of_its_own(desk):
    desk.do(prepared)
    op = desk.do(lambda txn: txn.update_entry("rule:a", content="Two"))
    undoing = desk.undo(op, AGENT)
    found = desk.ask(lambda store: store.ledger(limit=2))
    assert [(row["verb"], row["op_id"], row["channel"]) for row in found] == [
        ("update rule", undoing, "cli-agent"),
        ("undo operation", undoing, "cli-agent"),
    ]
    assert found[1]["target"] == op
    assert desk.ask(lambda store: store.entry("rule:a").version) == 3
    kept = desk.ask(lambda s: s.run("SELECT content FROM version WHERE name = 'rule:a'"))
    assert [row["content"] for row in kept] == ["One", "Two"]
    known = desk.ask(
        lambda store: [
            store.run("SELECT content FROM known_entry(?) WHERE name = 'rule:a'", [when])
            for when in (START + timedelta(minutes=minute) for minute in (1, 2, 3))
        ]
    )
    assert [rows[0]["content"] for rows in known] == ["One", "Two", "One"]
    listed = desk.ask(lambda store: operations.operations(store))
    assert [(one.op_id, one.undone, one.undoes) for one in listed] == [
        (undoing, False, op),
        (op, True, ""),
        (desk.ops[0], False, ""),
    ]


def test_the_index_hears_of_all_that_came_back_and_went(desk):
    desk.do(prepared)
    op = desk.do(
        lambda txn: [txn.delete_entry("rule:a"), txn.put_entry(Entry("new", "x", scopes=("",)))]
    )
    seq = desk.ask(lambda store: store.ledger_seq())
    desk.undo(op)
    changed = desk.ask(lambda store: store.changed_since(seq))
    names = {(name, kind) for _, name, kind in changed if kind != "gone"}
    assert names == {("rule:a", "knowledge"), ("rule:a,is_a,rule", "statement")}
    assert sum(kind == "gone" for _, _, kind in changed) == 1


LATER_CHANGES = {
    "changed": lambda txn: txn.update_entry("rule:a", content="Other"),
    "changed and back": lambda txn: [
        txn.update_entry("rule:a", content=c) for c in ("Other", "Two")
    ],
    "deleted": lambda txn: txn.delete_entry("rule:a"),
    "renamed": lambda txn: txn.rename_scope("app", "tool"),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", LATER_CHANGES)
def test_what_something_later_changed_is_not_taken_back_before_it(desk, name):
    desk.do(prepared)
    op = desk.do(lambda txn: txn.update_entry("rule:a", content="Two"))
    later = desk.do(LATER_CHANGES[name])
    before = desk.picture()
    with pytest.raises(Conflict, match="rule:a") as refused:
        desk.undo(op)
    assert later in str(refused.value)
    assert desk.picture() == before
    desk.undo(later)
    desk.undo(op)
    assert desk.ask(lambda store: store.entry("rule:a").content) == "One"
    with pytest.raises(Conflict):  # in the wrong order
        desk.redo(later)
    desk.redo(op)
    desk.redo(later)
    assert desk.picture() == before


def test_operations_on_other_names_are_taken_back_in_any_order(desk):
    desk.do(prepared)
    one = desk.do(lambda txn: txn.update_entry("rule:a", content="Two"))
    two = desk.do(lambda txn: txn.update_entry("b", content="C"))
    desk.undo(one)
    assert desk.ask(lambda s: (s.entry("rule:a").content, s.entry("b").content)) == ("One", "C")
    desk.undo(two)
    desk.redo(one)
    assert desk.ask(lambda s: (s.entry("rule:a").content, s.entry("b").content)) == ("Two", "B")


def test_what_came_and_went_in_one_operation_stands_in_nobodys_way(desk):
    def come_and_go(txn):
        txn.put_entry(Entry("c", "C", scopes=("",)))
        txn.put_statement(Statement("c", "is", "d", scopes=("",)))
        txn.delete_entry("c")

    one, two = desk.do(come_and_go), desk.do(come_and_go)
    made = desk.do(lambda txn: txn.put_entry(Entry("c", "mine", scopes=("",))))
    three = desk.do(lambda txn: [txn.delete_entry("c"), come_and_go(txn)])
    for op in (two, one):  # nothing of it is left to be taken back
        desk.undo(op)
        assert desk.ask(lambda store: store.entry("c")) is None
    desk.undo(three)
    assert desk.ask(lambda store: store.entry("c").content) == "mine"
    desk.undo(made)
    assert desk.ask(lambda store: store.entry("c")) is None


def test_all_of_a_bulk_or_nothing(desk):
    desk.do(prepared)
    op = desk.do(many)
    desk.do(lambda txn: txn.update_entry("n7", content="mine"))
    before = desk.picture()
    with pytest.raises(Conflict, match="'n7' changed later"):
        desk.undo(op)
    assert desk.picture() == before


def test_an_entry_is_not_taken_away_from_under_a_later_statement(desk):
    desk.do(prepared)
    op = desk.do(lambda txn: txn.put_entry(Entry("c", "C", scopes=("",))))
    said = desk.do(lambda txn: txn.put_statement(Statement("b", "knows", "c", scopes=("",))))
    with pytest.raises(Conflict, match="b,knows,c") as refused:
        desk.undo(op)
    assert said in str(refused.value)
    desk.undo(said)
    desk.undo(op)
    assert desk.ask(lambda store: store.entry("c")) is None


def test_a_statement_that_was_there_before_its_entry_stays(desk):
    desk.do(lambda txn: txn.put_statement(Statement("b", "knows", "c", scopes=("",))))
    op = desk.do(lambda txn: txn.put_entry(Entry("c", "C", scopes=("",))))
    gone = desk.do(lambda txn: txn.delete_entry("c"))
    desk.undo(gone)  # the statement is there anew, and yet was there before
    desk.undo(op)
    assert desk.ask(lambda store: store.triples_of(["c"])) == ["b,knows,c"]


def test_a_forgetting_is_final_and_says_so(desk):
    desk.do(prepared)
    op = desk.do(lambda txn: txn.delete_entry("rule:a", tombstone=True))
    with pytest.raises(Refused, match="final") as refused:
        desk.undo(op)
    assert "remember" in str(refused.value)
    assert desk.ask(lambda store: store.entry("rule:a")) is None


def test_what_was_forgotten_since_is_not_brought_back(desk):
    made = desk.do(
        lambda txn: [txn.put_entry(rule("One")), txn.put_entry(Entry("b", "B", scopes=("",)))]
    )
    changed = desk.do(lambda txn: txn.update_entry("rule:a", content="Two"))
    other = desk.do(lambda txn: txn.put_entry(Entry("c", "one", scopes=("app",))))
    gone = desk.do(lambda txn: txn.delete_entry("c"))
    desk.do(lambda txn: txn.update_entry("rule:a", content="One"))
    desk.do(lambda txn: txn.delete_entry("rule:a", tombstone=True))
    before = desk.picture()
    for op in (made, changed, other, gone):
        with pytest.raises((Refused, Conflict)) as refused:
            desk.undo(op)
        assert "forgotten" in str(refused.value)
    assert desk.picture() == before


@pytest.mark.parametrize("forgotten", [True, False])
def test_no_undoing_brings_back_what_a_tombstone_keeps_away(desk, forgotten):
    """It came to where it was forgotten with its whole project."""
    desk.do(lambda txn: txn.put_entry(rule("One", scope="other")))
    desk.do(lambda txn: txn.delete_entry("rule:a", tombstone=forgotten))
    desk.do(lambda txn: txn.put_entry(Entry("c", "one", scopes=("app",))))
    desk.do(lambda txn: txn.rename_scope("app", "other"))
    op = desk.do(lambda txn: txn.delete_entry("c"))
    if forgotten:
        with pytest.raises(Refused, match="forgotten"):
            desk.undo(op)
        assert desk.ask(lambda store: store.counts()["tombstones"]) == 2
    else:
        desk.undo(op)
    assert desk.ask(lambda store: store.entry("c") is None) is forgotten


def test_lifting_a_tombstone_is_taken_back_with_what_lifted_it(desk):
    desk.do(lambda txn: txn.put_entry(rule("One")))
    desk.do(lambda txn: txn.delete_entry("rule:a", tombstone=True))
    before = desk.picture()
    op = desk.do(lambda txn: txn.put_entry(rule("One")))
    assert desk.ask(lambda store: store.counts()["tombstones"]) == 0
    desk.undo(op)
    assert desk.picture() == before


def test_a_deleted_message_comes_back_with_its_parts(desk, kit):
    part = {"type": "reasoning", "text": "thought"}
    hook = Author(Channel.HOOK)
    desk.do(lambda txn: txn.put_session(Session("s-1", project="app")), hook)
    messages = [kit.message(1, "said", parts=(part,), flags=("queued",)), kit.message(2, "more")]
    captured = desk.do(lambda txn: txn.put_messages("s-1", messages, "app"), hook)
    before = desk.picture()
    op = desk.do(lambda txn: txn.delete_entry("msg-s-1-1"))
    assert desk.ask(lambda store: store.messages("s-1")[0].text) == ""
    desk.undo(op)
    assert desk.picture() == before
    assert desk.ask(lambda store: store.messages("s-1")[0].parts) == (part,)
    with pytest.raises(Refused, match="as they were said"):
        desk.undo(captured)


@pytest.mark.deep
def test_turns_that_a_command_brought_in_are_taken_out_whole(desk, kit):
    """As an import does, which goes through the same gateway."""
    desk.do(prepared)
    before = desk.picture()

    def bring(txn):
        txn.put_session(Session("s-9", project="app", title="Old"))
        txn.put_messages("s-9", [kit.message(n, f"m{n}", "s-9") for n in range(1, 6)], "app")
        txn.put_summary("s-9", "All of it.", "title", "app")
        txn.amend_messages("s-9", {1: {"text": "m1 grown"}, 2: {"uuid": "line-2"}})

    op = desk.do(bring, AGENT)
    after = desk.picture()
    desk.undo(op)
    assert desk.picture() == before
    desk.redo(op)
    assert desk.picture() == after
    desk.undo(op)
    desk.do(bring, AGENT)  # the lines are not known any more, so they can come again
    again = desk.picture()
    assert {table: len(found) for table, found in again.items()} == {
        table: len(found) for table, found in after.items()
    }
    assert again["message"] == after["message"]
    kept = desk.ask(lambda s: s.run("SELECT version FROM version WHERE name = 'msg-s-9-5'"))
    number = desk.ask(lambda store: store.entry("msg-s-9-5").version)
    assert number not in {row["version"] for row in kept}  # a number never comes twice


def test_what_a_prompt_asked_for_is_undone_apart_from_the_turns_it_came_with(desk, kit):
    asked = []

    def drained(txn):
        txn.put_messages("s-1", [kit.message(1, "remember: mock nothing")], "app")
        with txn.acting(Author(Channel.HOOK_PROMPT, session_id="s-1", turn=1)):
            asked.append(txn.op_id)
            txn.put_entry(rule("mock nothing"))
        txn.put_messages("s-1", [kit.message(2, "fine", role="assistant")], "app")

    desk.do(drained, Author(Channel.HOOK))
    desk.undo(asked[0])
    assert desk.ask(lambda store: store.entry("rule:a")) is None
    assert desk.ask(lambda store: [one.turn for one in store.messages("s-1")]) == [1, 2]


def test_a_session_that_the_client_changed_later_keeps_that(desk):
    hook = Author(Channel.HOOK)
    desk.do(lambda txn: txn.put_session(Session("s-1", project="app", title="One")), hook)
    op = desk.do(lambda txn: txn.edit_session("s-1", title="Mine"))
    desk.do(lambda txn: txn.put_session(Session("s-1", cwd="/new")), hook)
    desk.undo(op)  # another field
    found = desk.ask(lambda store: store.session("s-1"))
    assert (found.title, found.cwd) == ("One", "/new")
    desk.redo(op)
    desk.do(lambda txn: txn.edit_session("s-1", title="Yours"))
    with pytest.raises(Conflict, match="session 's-1' changed later"):
        desk.undo(op)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "error"),
    [("nothing", NotFound), ("", NotFound), ("99", NotFound), ("0", Conflict), ("1", None)],
)
def test_an_operation_is_named_by_its_id_a_beginning_or_a_ledger_row(desk, name, error):
    op = desk.do(prepared)
    desk.do(lambda txn: txn.update_entry("b", content="C"))
    found = []

    def look(store):
        found.append(operations.find(store, name))

    if error is None:
        desk.ask(look)
        assert found == [op]
        assert desk.ask(lambda store: operations.find(store, op)) == op
        assert desk.ask(lambda store: operations.find(store, desk.ops[1][:20])) == desk.ops[1]
    else:
        with pytest.raises((NotFound, Conflict)):
            desk.ask(look)


def test_a_refused_write_left_nothing_to_undo(desk):
    desk.do(lambda txn: txn.put_entry(rule("One")))
    desk.do(lambda txn: txn.delete_entry("rule:a", tombstone=True))
    op = desk.do(lambda txn: txn.put_entry(rule("one", "rule:b")), AGENT)
    with pytest.raises(Refused, match="changed nothing"):
        desk.undo(op)


# -- any sequence

NAMES = ("a", "b", "c")
CHANGE = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), st.sampled_from("xyz")),
    st.tuples(st.just("hide"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("say"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("unsay"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("rename"), st.sampled_from(("p", "q")), st.sampled_from(("p", "q"))),
)
ACT = st.one_of(
    st.lists(CHANGE, min_size=1, max_size=3),
    st.tuples(st.sampled_from(("undo", "redo")), st.integers(0, 5)),
)


def do(txn, change):
    """Do a change if it makes sense now."""
    verb, one, two = change
    entry = txn.entry(one)
    if verb == "put":
        txn.put_entry(Entry(one, two, scopes=("p",)), replace=True)
    elif verb == "hide" and entry:
        txn.update_entry(one, suppressed=two)
    elif verb == "delete" and entry:
        txn.delete_entry(one)
    elif verb == "say":
        txn.put_statement(Statement(one, "knows", two, scopes=("p",)))
    elif verb == "unsay" and txn.store.statement(one, "knows", two):
        txn.delete_statement(one, "knows", two)
    elif verb == "rename":
        txn.rename_scope(one, two)


def things(store):
    """Return every entry's and statement's state by name."""
    entries = store.run("SELECT name, content, suppressed, scopes FROM entry")
    triples = store.run("SELECT triple, scopes FROM statement")
    return {row["name"]: repr(row) for row in entries} | {
        row["triple"]: repr(row) for row in triples
    }


def attempt(store, op, verb, minute):
    """Undo or redo; returns whether it was done."""
    before = things(store)
    try:
        with store.transaction(PERSON, now=START + timedelta(minutes=minute)) as txn:
            getattr(txn, verb)(op)
    except HypatiaError:
        assert things(store) == before
        return False
    return True


@pytest.mark.deep
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACT, max_size=12), st.lists(st.integers(-5, 5), min_size=30, max_size=30))
def test_any_sequence_can_be_undone_to_its_start_and_redone_to_its_end(acts, jumps):
    done, minute, jump = [], 0, iter(jumps * 10)
    before, after, touched = {}, {}, {}  # by operation
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder), write=True) as store:
        for act in acts:
            minute += next(jump)  # the clock goes as it likes
            start = things(store)
            if isinstance(act, tuple):
                verb, number = act
                if not done:
                    continue
                op = done[number % len(done)]
                if attempt(store, op, verb, minute):
                    wanted = before[op] if verb == "undo" else after[op]
                    now = things(store)
                    changed = {k for k in start.keys() | now.keys() if start.get(k) != now.get(k)}
                    assert changed <= touched[op]
                    assert {k: now.get(k) for k in touched[op]} == wanted
                continue
            with store.transaction(PERSON, now=START + timedelta(minutes=minute)) as txn:
                for change in act:
                    do(txn, change)
                op = txn.op_id
            now = things(store)
            if store.run("SELECT 1 FROM mutation WHERE op_id = ?", [op]):
                touched[op] = {k for k in start.keys() | now.keys() if start.get(k) != now.get(k)}
                before[op] = {k: start.get(k) for k in touched[op]}
                after[op] = {k: now.get(k) for k in touched[op]}
                done.append(op)
        families = operations.Families(store)
        last = {row["op_id"]: row["seq"] for row in store.run("SELECT op_id, seq FROM mutation")}
        standing = [op for op in done if families.latest(op)[1] > 0]
        standing.sort(key=lambda op: last[families.latest(op)[0]])  # as they were last done
        end = things(store)
        for op in reversed(standing):  # nothing that stands is later than the last of them
            assert attempt(store, op, "undo", minute + next(jump)), op
        assert things(store) == {}
        for op in standing:
            assert attempt(store, op, "redo", minute + next(jump)), op
        assert things(store) == end
        assert store.verify_ledger() is None

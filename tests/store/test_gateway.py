"""What goes in comes out, once, in order, and with its ledger row or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from hypatia_mem.errors import Conflict, NotFound, StoreError, UsageError
from hypatia_mem.model import Entry, Session, Statement, Trust

HOSTILE = ["a\0b", "a\ud800b", "\udfff", "😀", "' OR 1=1 --", '"),(', "\r\n\t", "e\u0301", "١٢"]


def test_turns_are_dense_across_calls_and_repeats_add_nothing(kit):
    with kit.change() as txn:
        assert txn.put_messages("s-1", [kit.message(1), kit.message(2)], "app") == [1, 2]
        assert txn.put_messages("s-1", [kit.message(2), kit.message(3)], "app") == [0, 3]
        again = [kit.message(4), kit.message(4)]
        assert txn.put_messages("s-1", again, "app") == [4, 0]
        assert txn.put_messages("s-1", [], "app") == []
    with kit.change() as txn:
        assert txn.put_messages("s-1", [kit.message(5)], "app") == [5]
    with kit.open() as store:
        assert [one.turn for one in store.messages("s-1")] == [1, 2, 3, 4, 5]
        assert [one.turn for one in store.messages("s-1", start=3, limit=2)] == [3, 4]


def test_a_line_known_in_another_session_is_not_taken_again(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1), kit.message(2)], "app")
        fork = [
            replace(kit.message(1), session_id="s-2"),
            replace(kit.message(2), session_id="s-2"),
            kit.message(3, session="s-2"),
        ]
        assert txn.put_messages("s-2", fork, "app") == [0, 0, 1]
    with kit.open() as store:
        assert store.known_uuids(["s-1-u1", "s-2-u3", "nobody"]) == {
            "s-1-u1": ("s-1", 1),
            "s-2-u3": ("s-2", 1),
        }


def test_a_message_is_an_entry_with_exactly_three_headings(kit):
    at = datetime(2026, 11, 30, 4, 5, 6, 789000)
    text = "Fix it.\n\n## Content\nnot a heading of ours\n"
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, text, role="assistant", at=at)], "app")
    with kit.open() as store:
        entry = store.entry("msg-s-1-1")
        assert entry.content == (
            "## Role\nassistant\n\n## Timestamp\n2026-11-30T04:05:06.789Z\n\n## Content\n" + text
        )
        assert (entry.kind, entry.tags, entry.scopes) == ("message", ("message",), ("app",))
        assert (entry.session_id, entry.turn) == ("s-1", 1)
        assert store.messages("s-1")[0].text == text


@pytest.mark.deep
@pytest.mark.parametrize("bad", HOSTILE)
def test_any_text_anywhere_is_stored_and_found_again(kit, bad):
    session = "s" + bad
    with kit.change(kit.worker) as txn:
        one = kit.message(
            1, "t" + bad, session, prompt_id=bad, flags=(bad,), parts=({"type": "x", "t": bad},)
        )
        assert txn.put_messages(session, [one], "p" + bad) == [1]
        assert txn.put_messages(session, [one], "p" + bad) == [0]
    with kit.change() as txn:
        txn.put_session(Session(session, project="p" + bad, title=bad, tags=(bad,)))
        txn.put_summary(session, "sum" + bad, "title", "p" + bad)
        txn.put_entry(Entry("n" + bad, "c" + bad, tags=(bad,), synonyms=(bad,), scopes=(bad,)))
        txn.put_statement(
            Statement("n" + bad, "p" + bad, "o" + bad, synonyms={bad: [bad]}, scopes=("",))
        )
        txn.put_project("p" + bad, aliases=[bad])
        txn.put_root("/r" + bad, scope="p" + bad)
        txn.set_cursor("k" + bad, 3)
        txn.set_meta("m" + bad, bad)
    with kit.change() as txn:
        assert txn.put_session(Session(session, title=bad)).verb == "unchanged"
        assert txn.update_entry("n" + bad, content="c" + bad).verb == "unchanged"
        assert txn.amend_message(session, 1, text="t" + bad).verb == "unchanged"
    with kit.change(kit.worker) as txn:  # as a message grows while it is read
        assert txn.amend_message(session, 1, text="longer" + bad).verb == "updated"
    with kit.change() as txn:
        store = txn.store
        assert store.messages(session)[0].text.startswith("longer")
        assert store.session(session).project == store.projects()[0].scope
        assert store.statement("n" + bad, "p" + bad, "o" + bad) is not None
        assert len(store.statements_of("n" + bad)) == 1
        assert len(store.statements_of(f"msg-{session}-1")) == 1
        assert len(store.sessions("p" + bad)) == 1
        assert txn.rename_scope("p" + bad, "q" + bad) == 2
        assert len(store.sessions("q" + bad)) == 1
        txn.delete_statement("n" + bad, "p" + bad, "o" + bad)
        txn.delete_entry("n" + bad, tombstone=True)
        txn.delete_root("/r" + bad)
        txn.delete_cursors(["k" + bad])
        assert store.cursors() == {}
        assert store.roots() == []
        assert store.entry("n" + bad) is None
    with kit.open() as store:
        assert store.verify_ledger() is None


def test_messages_and_their_session_are_linked_once_whichever_comes_first(kit):
    def links():
        with kit.open() as store:
            found = store.statements_of("session-s-1")
        return sorted((one.subject, one.predicate, one.scopes) for one in found)

    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1), kit.message(2)], "app")
    assert links() == []
    with kit.change() as txn:
        assert txn.put_summary("s-1", "Talked.", "compaction", "app").verb == "created"
    assert links() == [(f"msg-s-1-{n}", "belongTo", ("app",)) for n in (1, 2)]
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(3)], "app")
        assert txn.put_summary("s-1", "Talked more.", "compaction", "app").verb == "updated"
        assert txn.put_summary("s-1", "Talked more.", "compaction", "app").verb == "unchanged"
    assert links() == [(f"msg-s-1-{n}", "belongTo", ("app",)) for n in (1, 2, 3)]
    with kit.open() as store:
        assert store.entry("session-s-1").tags == ("session",)
        assert store.producer_of("session-s-1") == "compaction"
        assert store.statements_of("session-s-2") == []


def test_amending_binds_a_line_and_keeps_the_text_before(kit):
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, "Hel", uuid="hook:1"), kit.message(2)], "app")
        assert txn.amend_message("s-1", 1, uuid="line-1", parent_uuid="line-0").verb == "updated"
        assert txn.amend_message("s-1", 1, text="Hello").verb == "updated"
        assert txn.amend_message("s-1", 1, text="Hello").verb == "unchanged"
        assert txn.amend_message("s-1", 1, uuid="s-1-u2").verb == "refused"
        for session, turn in (("s-1", 3), ("s-9", 1)):
            with pytest.raises(NotFound):
                txn.amend_message(session, turn, text="x")
    with kit.open() as store:
        message = store.messages("s-1")[0]
        assert (message.uuid, message.parent_uuid, message.text) == ("line-1", "line-0", "Hello")
        assert store.entry("msg-s-1-1").version == 2
        old = store.run("SELECT content FROM version WHERE name = 'msg-s-1-1'")
        assert [row["content"].endswith("Hel") for row in old] == [True]
        assert [one.turn for one in store.messages("s-1")] == [1, 2]


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_message_that_was_deleted_leaves_no_words_and_does_not_come_back(kit, forgotten):
    part = {"type": "reasoning", "text": "tell nobody"}
    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, "tell nobody", parts=(part,))], "app")
        txn.amend_message("s-1", 1, text="tell nobody, ever")
        txn.delete_entry("msg-s-1-1", tombstone=forgotten)
        assert txn.put_messages("s-1", [kit.message(1, "tell nobody")], "app") == [0]
        txn.amend_message("s-1", 1, text="tell nobody", parts=(part,), tokens=9)
    with kit.open() as store:
        tables = {"entry", "message", "version", "mutation", "statement", "touched", "image"}
        history = set() if forgotten else {"version", "image"}  # from which it can be undone
        for table in tables - history:
            assert "nobody" not in repr(store.run(f"SELECT * FROM {table}"))
        assert store.messages("s-1")[0].text == ""


def test_a_session_keeps_what_was_known(kit):
    early, late = kit.now, kit.now + timedelta(hours=1)
    with kit.change() as txn:
        first = Session("s-1", project="app", title="One", started_at=early, updated_at=late)
        assert txn.put_session(first).verb == "created"
        later = Session("s-1", title="", cwd="/app", started_at=late, updated_at=early)
        assert txn.put_session(later).verb == "updated"
        assert txn.put_session(later).verb == "unchanged"
        assert txn.put_session(Session("s-1", title="Two", ended_at=late)).verb == "updated"
    with kit.open() as store:
        found = store.session("s-1")
    assert (found.title, found.cwd, found.project) == ("Two", "/app", "app")
    assert (found.started_at, found.updated_at, found.ended_at) == (early, late, late)


@pytest.mark.parametrize("session_first", [True, False])
def test_a_session_counts_its_messages_in_either_order(kit, session_first):
    with kit.change() as txn:
        if session_first:
            txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", [kit.message(1), kit.message(2)], "app")
        if not session_first:
            txn.put_session(Session("s-1", project="app"))
    with kit.open() as store:
        assert [(one.id, turns) for one, turns in store.sessions("app")] == [("s-1", 2)]
        assert store.sessions("ap") == []
        assert [one.turn for one in store.last_exchange("app")[2]] == [1, 2]
        assert store.last_exchange("my-app") is None


def test_entries_are_created_changed_and_deleted_with_their_statements(kit):
    with kit.change() as txn:
        assert txn.put_entry(Entry("a", "one", scopes=("app",))).verb == "created"
        with pytest.raises(Conflict):
            txn.put_entry(Entry("a", "two", scopes=("",)))
        with pytest.raises(UsageError):
            txn.put_entry(Entry(" ", "x", scopes=("",)))
        with pytest.raises(UsageError, match="too long"):
            txn.put_entry(Entry("n" * 2001, "x", scopes=("",)))
        with pytest.raises(UsageError):
            txn.update_entry("a", version=7)
        with pytest.raises(NotFound):
            txn.update_entry("ab", content="x")
        assert txn.update_entry("a", content="two").verb == "updated"
        assert txn.update_entry("a", content="two").verb == "unchanged"
        for triple in (("a", "knows", "b"), ("b", "knows", "a"), ("ab", "knows", "b")):
            assert txn.put_statement(Statement(*triple, scopes=("",))).verb == "created"
            assert txn.put_statement(Statement(*triple, scopes=("",))).verb == "unchanged"
        with pytest.raises(UsageError):
            txn.put_statement(Statement("a", "", "b", scopes=("",)))
        gone = txn.delete_entry("a")
        assert (gone.verb, gone.details["statements"]) == ("deleted", 2)
        with pytest.raises(NotFound):
            txn.delete_entry("a")
        with pytest.raises(NotFound):
            txn.delete_statement("a", "knows", "b")
    with kit.open() as store:
        assert [one.subject for one in store.statements_of("b")] == ["ab"]
        kept = store.run("SELECT name, version, content FROM version ORDER BY replaced_seq")
        assert [tuple(row.values()) for row in kept] == [("a", 1, "one"), ("a", 2, "two")]
        kept = store.run("SELECT triple FROM statement_version ORDER BY replaced_seq")
        assert [row["triple"] for row in kept] == ["a,knows,b", "b,knows,a"]


def test_a_rule_put_again_as_a_taboo_is_a_taboo(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule("Mock nothing", "rule:mock", synonyms=("stub",)))
        txn.put_entry(kit.rule("Mock nothing", "rule:mock", kind="taboo"), replace=True)
    with kit.open() as store:
        found = store.rules(["app"])
        assert [(one.kind, one.synonyms, one.version) for one in found] == [("taboo", ("stub",), 2)]


def test_what_is_withheld_is_not_among_the_rules(kit):
    past = datetime(2020, 1, 1)
    cases = {
        "asserted": {},
        "candidate": {"trust": Trust.CANDIDATE},
        "rejected": {"trust": Trust.REJECTED},
        "suppressed": {"suppressed": True},
        "over": {"valid_to": past},
    }
    with kit.change() as txn:
        for name, fields in cases.items():
            txn.put_entry(kit.rule(f"Rule {name}", f"rule:{name}", **fields))
        txn.put_entry(kit.rule("Elsewhere", scope="my-app"))
        txn.put_entry(kit.rule("Everywhere", scope=""))
    with kit.open() as store:
        assert [one.name for one in store.rules(["app"])] == ["rule:asserted"]
        assert [one.name for one in store.rules([""])] == ["rule:everywhere"]
        assert store.rules(["ap"]) == []
        assert len(store.rules(["app", ""])) == 2


def test_a_scope_is_renamed_by_element_in_everything(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("a", "x", scopes=("app", "")))
        txn.put_entry(Entry("b", "x", scopes=("my-app",)))
        txn.put_entry(Entry("c", "x", scopes=("app", "tool")))
        txn.put_statement(Statement("a", "is", "c", scopes=("app",)))
        txn.put_messages("s-1", [kit.message(1)], "app")
        txn.put_session(Session("s-1", project="app"))
        txn.put_project("app", aliases=["ap"], excluded=True)
        txn.put_entry(kit.rule("Wrong value"))
        txn.delete_entry("rule:wrong-value", tombstone=True)
        seq = txn.seq
        txn.rename_scope("app", "tool")
        assert txn.put_root("/t", scope="tool").verb == "updated"
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule("Wrong value", scope="tool")).verb == "refused"
    with kit.open() as store:
        assert {one.name: sorted(one.scopes) for one in store.entries(["a", "b", "c"])} == {
            "a": ["", "tool"],
            "b": ["my-app"],
            "c": ["tool"],
        }
        assert store.statement("a", "is", "c").scopes == ("tool",)
        assert [one.id for one, _ in store.sessions("tool")] == ["s-1"]
        assert [(one.scope, one.aliases, one.excluded) for one in store.projects()] == [
            ("tool", ("ap",), True)
        ]
        changed = {name for _, name, _ in store.changed_since(seq)}
        assert changed == {"a", "c", "msg-s-1-1", "a,is,c"}  # the index must hear of each


def test_a_failure_leaves_nothing_of_a_transaction(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("before", "x", scopes=("",)))
        txn.set_cursor("k", 1)
    with pytest.raises(ValueError, match="stop"), kit.change() as txn:  # noqa: PT012
        txn.put_messages("s-1", [kit.message(1)], "app")
        txn.put_session(Session("s-1"))
        txn.put_summary("s-1", "x", "title", "app")
        txn.update_entry("before", content="y")
        txn.set_cursor("k", 2)
        txn.delete_entry("before", tombstone=True)
        raise ValueError("stop")
    with kit.open() as store:
        assert store.entry("before").content == "x"
        assert store.counts() == {
            "entries": 1, "statements": 0, "messages": 0, "sessions": 0, "projects": 0,
            "tombstones": 0,
        }  # fmt: skip
        assert store.cursors() == {"k": 1}
        assert (store.ledger_seq(), store.verify_ledger()) == (1, None)


def test_after_a_failed_statement_the_same_store_can_be_changed_again(kit):
    from hypatia_mem.store.connection import open_store

    with open_store(kit.home, write=True) as store:
        with pytest.raises(Conflict), store.transaction(kit.person, now=kit.now) as txn:  # noqa: PT012
            txn.put_entry(Entry("a", "x", scopes=("",)))
            txn.put_entry(Entry("a", "x", scopes=("",)))
        with store.transaction(kit.person, now=kit.now) as txn:
            assert txn.put_entry(Entry("a", "x", scopes=("",))).verb == "created"
    with pytest.raises(StoreError), open_store(kit.home, write=False) as store:
        with store.transaction(kit.person, now=kit.now) as txn:
            txn.put_entry(Entry("b", "x", scopes=("",)))


@pytest.mark.deep
def test_a_long_text_and_a_long_session_come_back_whole(kit):
    texts = [f"{number} " + "wörter und 知识 " * 20 for number in range(2000)]
    huge = "x" * 5_000_000
    with kit.change() as txn:
        batch = [kit.message(n, text) for n, text in enumerate(texts)]
        assert txn.put_messages("s-1", batch, "app") == list(range(1, 2001))
        txn.put_messages("s-2", [kit.message(1, huge, session="s-2", tokens=2**40)], "app")
        txn.put_summary("s-1", "All of it.", "title", "app")
        assert txn.delete_entry("session-s-1").details["statements"] == 2000
    with kit.open() as store:
        assert [one.text for one in store.messages("s-1", limit=5000)] == texts
        assert store.messages("s-2")[0].text == huge


def test_many_amendments_at_once_are_what_they_are_one_by_one(kit):
    changes = {
        1: {"uuid": "line-1", "text": "grown"},
        2: {"uuid": "s-1-u5"},  # another's line
        3: {"uuid": "line-3", "parent_uuid": "line-1"},
        4: {"uuid": "line-3"},  # taken by the third a moment ago
        5: {"uuid": "line-5"},
        6: {"uuid": "s-1-u5"},  # free again since the fifth has its own
        7: {"text": "7"},
        8: {"text": "8 again", "at": kit.now},
    }
    said = []
    for together in (True, False):
        session = "s-1" if together else "s-2"
        with kit.change() as txn:
            txn.put_messages(session, [kit.message(n, str(n), session) for n in range(1, 9)], "app")
            renamed = {
                turn: {k: v.replace("s-1", session) if isinstance(v, str) else v
                       for k, v in one.items()}
                for turn, one in changes.items()
            }  # fmt: skip
            if not together:
                renamed = {
                    turn: {**one, **({"uuid": one["uuid"] + "b"} if "line" in one.get("uuid", "")
                                     else {})}
                    for turn, one in renamed.items()
                }  # fmt: skip
            outcomes = (
                txn.amend_messages(session, renamed)
                if together
                else [txn.amend_message(session, turn, **one) for turn, one in renamed.items()]
            )
        with kit.open() as store:
            stored = [
                (m.turn, m.uuid.removesuffix("b").replace("s-2", "s-1"), m.text, m.at)
                for m in store.messages(session)
            ]
            versions = [store.entry(f"msg-{session}-{n}").version for n in range(1, 9)]
            assert store.verify_ledger() is None
        said.append(([one.verb for one in outcomes], stored, versions))
    assert said[0] == said[1]
    assert said[0][0] == [
        "updated", "refused", "updated", "refused", "updated", "updated", "unchanged", "updated",
    ]  # fmt: skip
    assert said[0][2] == [2, 1, 1, 1, 1, 1, 1, 2]


def test_amending_all_or_nothing_when_a_turn_is_not_there(kit):
    with pytest.raises(NotFound, match="message 9"), kit.change() as txn:  # noqa: PT012
        txn.put_messages("s-1", [kit.message(1)], "app")
        txn.amend_messages("s-1", {1: {"text": "x"}, 9: {"text": "x"}})
    with kit.open() as store:
        assert store.messages("s-1") == []


def test_what_is_deleted_leaves_no_name_for_the_index(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule("Use a xylophone"))
        txn.put_statement(Statement("rule:use-a-xylophone", "is_a", "rule", scopes=("",)))
        txn.put_statement(Statement("xylophone", "is", "loud", scopes=("",)))
    with kit.change() as txn:
        txn.put_entry(kit.rule("Another xylophone"))
        for name in ("rule:use-a-xylophone", "rule:another-xylophone"):
            txn.delete_entry(name)
        txn.delete_statement("xylophone", "is", "loud")
        seq = txn.seq
    with kit.open() as store:
        assert "xylophone" not in repr(store.run("SELECT * FROM touched"))
        assert {kind for _, _, kind in store.changed_since(0)} == {"gone"}
        assert store.changed_since(0)[-1][0] == seq

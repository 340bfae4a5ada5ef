"""What is only like something forgotten waits for a person: it is neither let in nor thrown away."""

from __future__ import annotations

import pytest

from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store import graves, keys
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.trust import verdicts

VALUE = "Never mock the database in integration tests"
LIKE = "Integration tests must not use database mocks"
OTHER = "Integration tests run nightly against the staging database"


@pytest.fixture
def forgotten(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:mock"))
        txn.delete_entry("rule:mock", "forget", tombstone=True)
    return kit


def live(kit):
    with kit.open() as store:
        return {row["name"] for row in store.run("SELECT name FROM live_entry")}


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["rule", "taboo", "memory", "knowledge", "summary", "work-unit"])
@pytest.mark.parametrize("channel", [Channel.CLI_AGENT, Channel.TRANSCRIPT, Channel.WORKER])
def test_other_words_for_it_wait_with_the_reason(forgotten, kind, channel):
    with forgotten.change(Author(channel)) as txn:
        outcome = txn.put_entry(Entry("x", LIKE, kind=kind, scopes=("app",)))
        assert (outcome.verb, outcome.details["quarantined"]) == ("created", True)
        assert txn.put_entry(Entry("y", OTHER, kind=kind, scopes=("app",))).reason == ""
    with forgotten.open() as store:
        entry = store.entry("x")
        assert (entry.content, entry.trust) == (LIKE, Trust.CANDIDATE)
        why = verdicts(store, ["x"])["x"].reason
        assert "like something that was forgotten on 2026-11-30" in why
        assert "mock" not in why
        assert [row["reason"] for row in store.ledger(target="x")] == ["like what was forgotten"]
    assert live(forgotten) == {"y"}


@pytest.mark.parametrize("channel", [Channel.CLI_PERSON, Channel.HOOK_PROMPT])
def test_a_persons_own_words_are_not_held_back(forgotten, channel):
    with forgotten.change(Author(channel)) as txn:
        outcome = txn.put_entry(forgotten.rule(LIKE, "rule:x"))
        assert (outcome.verb, outcome.reason) == ("created", "")
    assert live(forgotten) == {"rule:x"}
    with forgotten.change(forgotten.agent) as txn:  # and the tombstone stands
        assert txn.put_entry(forgotten.rule(VALUE, "rule:y")).verb == "refused"


def test_what_a_person_said_before_it_was_forgotten_is_no_new_word(forgotten):
    """A prompt that is read late."""
    earlier = forgotten.now.replace(hour=1)
    with forgotten.change() as txn, txn.acting(Author(Channel.HOOK_PROMPT), said_at=earlier):
        assert txn.put_entry(forgotten.rule(LIKE, "rule:x")).details["quarantined"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("scopes", "waits"), [(("app",), True), (("",), True), (("z", "app"), True), (("z",), False)]
)
def test_it_holds_where_it_was_forgotten(forgotten, scopes, waits):
    with forgotten.change(forgotten.agent) as txn:
        outcome = txn.put_entry(Entry("x", LIKE, scopes=scopes))
    assert bool(outcome.reason) is waits


HIDING = {
    "in a long text": Entry("x", f"Notes.\n\n{'All is well. ' * 40}{LIKE}. More.", scopes=("app",)),
    "in its name": Entry(LIKE, "see the name", scopes=("app",)),
    "in a name of a memory": Entry(
        "rule:no-mocked-database-in-integration-tests", "-", kind="rule", scopes=("app",)
    ),
    "in other names": Entry("x", "see there", synonyms=(LIKE,), scopes=("app",)),
}


@pytest.mark.deep
@pytest.mark.parametrize("entry", HIDING.values(), ids=HIDING)
def test_it_is_found_wherever_it_stands(forgotten, entry):
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(entry).details.get("quarantined"), entry
    assert live(forgotten) == set()


def test_what_is_there_stays_and_the_other_words_wait_beside_it(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(Entry("rule:x", "All is well", kind="rule", scopes=("app",)))
        done = [
            txn.update_entry("rule:x", content=LIKE),
            txn.put_entry(forgotten.rule(LIKE, "rule:x"), replace=True),  # the same once more
            txn.update_entry("rule:x", tags=("new",)),
        ]
    assert [(one.verb, one.name) for one in done] == [
        ("created", "rule:x (proposed)"),
        ("unchanged", "rule:x (proposed)"),
        ("updated", "rule:x"),
    ]
    with forgotten.open() as store:
        assert store.entry("rule:x").content == "All is well"
        assert store.entry("rule:x (proposed)").trust == Trust.CANDIDATE


def test_what_a_person_took_in_is_not_asked_again(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(forgotten.rule(LIKE, "rule:x"))
    with forgotten.change() as txn:
        txn.set_trust("rule:x", Trust.ASSERTED)
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(LIKE, "rule:x"), replace=True).verb == "unchanged"
        assert txn.update_entry("rule:x", tags=("a",)).verb == "updated"
    assert live(forgotten) == {"rule:x"}


def test_an_agent_cannot_let_it_in(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(forgotten.rule(LIKE, "rule:x"))
        for trust in (Trust.ASSERTED, Trust.VERIFIED):
            assert txn.update_entry("rule:x", trust=trust).verb == "refused"
    assert live(forgotten) == set()


@pytest.mark.deep
@pytest.mark.parametrize(
    "statement",
    [
        Statement("a", "says", "b", content=LIKE, scopes=("app",)),
        Statement(LIKE, "is", "policy", scopes=("app",)),
        Statement("policy", "is", LIKE, scopes=("app",)),
        Statement("a", "is", "b", synonyms={"subject": [LIKE]}, scopes=("app",)),
    ],
)
def test_statements_wait_too(forgotten, statement):
    with forgotten.change(forgotten.agent) as txn:
        outcome = txn.put_statement(statement)
        assert outcome.details["quarantined"]
        fine = Statement("tests", "run_against", "staging", content=OTHER, scopes=("app",))
        assert txn.put_statement(fine).reason == ""
    with forgotten.open() as store:
        shown = store.run("SELECT predicate FROM live_statement")
        assert [row["predicate"] for row in shown] == ["run_against"]
        assert outcome.name in verdicts(store, [outcome.name])


def test_what_ties_it_to_its_kind_comes_into_sight_with_it(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(forgotten.rule(LIKE, "rule:integration-tests-must-not-use-database-mocks"))
        name = "rule:integration-tests-must-not-use-database-mocks"
        assert txn.put_statement(Statement(name, "is_a", "rule", scopes=("app",))).reason == ""
    with forgotten.open() as store:
        assert store.run("SELECT * FROM live_statement") == []
    with forgotten.change() as txn:
        txn.set_trust(name, Trust.ASSERTED)
    with forgotten.open() as store:
        assert len(store.run("SELECT * FROM live_statement")) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"user: {VALUE}.\nassistant: All right, they run against a real one.", True),
        (f"We spoke of tests. {VALUE.upper()}! Then of lunch.", True),
        (f"- N3ver mоck the d@tabase in integration tests\n- {OTHER}", True),
        (f"{OTHER}. Then of lunch.", False),
    ],
)
@pytest.mark.parametrize("kind", ["summary", "session"])
def test_a_summary_that_says_it_is_refused(forgotten, kind, text, refused):
    with forgotten.change(Author(Channel.WORKER)) as txn:
        outcome = txn.put_entry(Entry("s", text, tags=(kind,), kind=kind, scopes=("app",)))
        assert outcome.verb == ("refused" if refused else "created")
        if refused:
            assert "a sentence of it was forgotten before" in outcome.reason


def test_turns_are_evidence_and_are_kept(forgotten):
    with forgotten.change(Author(Channel.TRANSCRIPT)) as txn:
        assert txn.put_messages("s-1", [forgotten.message(1, LIKE)], "app") == [1]
    assert live(forgotten) == {"msg-s-1-1"}


def test_a_forgotten_turn_holds_nothing_else_back(kit):
    with kit.change(Author(Channel.TRANSCRIPT)) as txn:
        txn.put_messages("s-1", [kit.message(1, VALUE)], "app")
    with kit.change() as txn:
        txn.delete_entry("msg-s-1-1", "forget", tombstone=True)
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule(LIKE, "rule:x")).reason == ""


def test_a_rejection_holds_other_words_back_too(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:mock"))
        txn.set_trust("rule:mock", Trust.REJECTED, "we do mock it")
    with kit.change(kit.agent) as txn:
        outcome = txn.put_entry(kit.rule(LIKE, "rule:x"))
        assert "like something that was rejected" in outcome.reason


def test_undoing_takes_it_out_again(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(forgotten.rule(LIKE, "rule:x"))
        op = txn.op_id
    with forgotten.change() as txn:
        txn.undo(op)
    with forgotten.open() as store:
        assert store.entry("rule:x") is None
        assert verdicts(store, ["rule:x"]) == {}


# --- the sketch -----------------------------------------------------------------------------------


def test_no_word_can_be_read_in_the_store_or_beside_it(forgotten):
    words = [b"mock", b"database", b"integration"]
    for path in (forgotten.home / FILE, forgotten.home / "forgotten"):
        data = path.read_bytes().lower()
        assert [word for word in words if word in data] == []
    with forgotten.open() as store:
        [sketch] = [row.sketch for row in graves.load(store).rows if row.sketch]
    assert sketch.count("/") == 4  # a digest for each of the telling words


def test_the_sketch_is_keyed_and_does_not_keep_the_order(tmp_path):
    from hypatia_mem.store.likeness import sketch

    one, other = keys.key_of(b"1" * 32), keys.key_of(b"2" * 32)
    assert sketch(one, VALUE) == sketch(one, "In integration tests, never mock the database")
    forms = [
        {word for word in sketch(key, VALUE).split() if len(word) == 8} for key in (one, other)
    ]
    assert len(forms[0]) == 4
    assert forms[0].isdisjoint(forms[1])


@pytest.mark.deep
@pytest.mark.parametrize("text", ["", "yes", "the a of", "staging", "...", "👍", "\0"])
def test_what_says_too_little_has_none(kit, text):
    with kit.change() as txn:
        txn.put_entry(kit.rule(text, "memory:x"))
        txn.delete_entry("memory:x", tombstone=True)
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule("The staging server says yes to all", "y")).reason == ""


# --- keys -----------------------------------------------------------------------------------------


def test_what_was_forgotten_under_an_earlier_key_stays_forgotten(forgotten):
    first = keys.load_key(forgotten.home)
    with forgotten.change() as txn:
        assert txn.rotate_key().verb == "updated"
        txn.put_entry(forgotten.rule("Deploy on Tuesdays at ten", "rule:deploy"))
        txn.delete_entry("rule:deploy", "forget", tombstone=True)
    assert keys.load_key(forgotten.home) != first
    with forgotten.open() as store:
        assert {row.key_id for row in graves.load(store).rows} == {
            first.id,
            keys.load_key(forgotten.home).id,
        }
    with forgotten.change(forgotten.agent) as txn:
        for text in (VALUE, VALUE.upper(), "Deploy on Tuesdays at ten"):
            assert txn.put_entry(forgotten.rule(text, "rule:x")).verb == "refused", text
        assert txn.put_entry(forgotten.rule("other", "rule:Mock")).verb == "refused"  # its name
        for text in (LIKE, "We deploy at ten on Tuesdays"):
            assert txn.put_entry(forgotten.rule(text, f"rule:{text}")).reason, text
        assert txn.put_entry(forgotten.rule(OTHER, "rule:fine")).reason == ""
    with forgotten.change() as txn:  # and a person lifts it as ever
        assert txn.put_entry(forgotten.rule(VALUE, "rule:mock")).verb == "created"
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(VALUE, "rule:again")).verb == "created"


def test_only_a_person_rotates(forgotten):
    first = keys.load_key(forgotten.home)
    with forgotten.change(forgotten.agent) as txn:
        assert txn.rotate_key().verb == "refused"
    assert keys.load_key(forgotten.home) == first
    with forgotten.open() as store:
        assert store.ledger(limit=1)[0]["verb"] == "refuse operation"


def test_a_lost_key_comes_back_from_its_copy(forgotten):
    (forgotten.home / "key").unlink()
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(VALUE, "rule:x")).verb == "refused"


def test_without_any_key_nothing_is_let_in_unseen(forgotten):
    (forgotten.home / "key").unlink()
    for copy in (forgotten.home / "keys").iterdir():
        copy.unlink()
    with forgotten.change(forgotten.agent) as txn:
        for number, text in enumerate((VALUE, OTHER)):
            outcome = txn.put_entry(forgotten.rule(text, f"rule:{number}"))
            assert "the key" in outcome.reason
        assert txn.put_messages("s-1", [forgotten.message(1, VALUE)], "app") == [1]
    assert live(forgotten) == {"msg-s-1-1"}
    with forgotten.change() as txn:
        assert txn.put_entry(forgotten.rule(OTHER, "rule:mine")).reason == ""
    with forgotten.open() as store:
        known = graves.load(store)
    assert len(known.lost) == 1


# --- older copies ---------------------------------------------------------------------------------


def test_a_copy_from_before_holds_other_words_back_as_well(kit):
    """The sketch is in the file beside the store, too."""
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:mock"))
    old = (kit.home / FILE).read_bytes()
    with kit.change() as txn:
        txn.delete_entry("rule:mock", "forget", tombstone=True)
    (kit.home / FILE).write_bytes(old)
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule(LIKE, "rule:x")).details["quarantined"]
        assert txn.put_entry(kit.rule(VALUE, "rule:y")).verb == "refused"


def test_a_project_takes_its_tombstones_along(forgotten):
    with forgotten.change() as txn:
        txn.rename_scope("app", "new")
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(LIKE, "rule:x", scope="new")).details["quarantined"]
        assert txn.put_entry(forgotten.rule(LIKE, "rule:y", scope="app")).reason == ""


def test_lifting_is_a_persons_and_can_be_undone(forgotten):
    with forgotten.open() as store:
        digests = [row.digest for row in graves.load(store).rows]
    with forgotten.change(forgotten.agent) as txn:
        assert txn.lift(digests, ["app"]).verb == "refused"
    with forgotten.change() as txn:
        assert txn.lift(digests, ["app"]).details["lifted"] == len(digests)
        op = txn.op_id
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(LIKE, "rule:x")).reason == ""
        txn.delete_entry("rule:x")
    with forgotten.change() as txn:
        txn.undo(op)
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(LIKE, "rule:x2")).details["quarantined"]
    with open_store(forgotten.home, write=False) as store:
        assert store.verify_ledger() is None


def test_a_transaction_that_asks_often_finds_the_same(forgotten):
    """From some number on it reads everything once; what it forgets itself is in that too."""
    second = "Deploy on Tuesdays at ten"
    with forgotten.change(forgotten.agent) as txn:
        for number in range(8):
            assert txn.put_entry(Entry(f"n{number}", OTHER, scopes=("app",))).reason == ""
            assert txn.put_entry(Entry(f"l{number}", LIKE, scopes=("app",))).reason, number
        assert txn.put_entry(Entry("d", second, scopes=("app",))).reason == ""
        txn.delete_entry("d", "forget", tombstone=True)
        like = Entry("e", "At ten on Tuesdays we deploy", scopes=("app",))
        assert txn.put_entry(like).reason
        assert txn.put_entry(Entry("l", LIKE, scopes=("app",))).reason

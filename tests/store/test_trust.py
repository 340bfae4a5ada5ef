"""Trust: who may bring a thing from one state to another, what follows, and the way back."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.trust import verdicts

AGENT = Author(Channel.CLI_AGENT, "agent")
WORKER = Author(Channel.WORKER)
IMPORT = Author(Channel.IMPORT, "person")
PERSON = Author(Channel.CLI_PERSON, "person")
PROMPT = Author(Channel.HOOK_PROMPT)
A, B = Trust.ASSERTED, Trust.CANDIDATE
V, D, R, S = Trust.VERIFIED, Trust.DISPUTED, Trust.REJECTED, Trust.STALE
TRIPLE = "port,is,4711"


def fill(kit, trust=A, name="port"):
    with kit.change() as txn:
        txn.put_entry(Entry(name, f"the {name} is 4711", scopes=("app",), trust=trust))
        txn.put_statement(Statement("port", "is", "4711", scopes=("app",), trust=trust))


def trust_of(kit, name):
    with kit.open() as store:
        if name == TRIPLE:
            return store.statement(*name.split(",")).trust
        return store.entry(name).trust


def live(kit):
    with kit.open() as store:
        found = store.execute(
            "SELECT name FROM live_entry UNION SELECT triple FROM live_statement"
        ).fetchall()
        return {name for (name,) in found}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["port", TRIPLE])
@pytest.mark.parametrize(
    ("author", "was", "becomes", "allowed"),
    [
        (PERSON, A, V, True), (PROMPT, B, A, True), (PERSON, A, R, True), (PERSON, D, A, True),
        (AGENT, A, D, True), (AGENT, A, S, True), (WORKER, A, S, True), (AGENT, S, D, True),
        (AGENT, A, V, False), (AGENT, A, R, False), (AGENT, B, A, False), (AGENT, D, A, False),
        (AGENT, V, D, False), (AGENT, A, B, False), (WORKER, B, A, False), (IMPORT, A, V, False),
    ],
)  # fmt: skip
def test_who_may_say_what(kit, name, author, was, becomes, allowed):
    fill(kit, was)
    with kit.change(author) as txn:
        outcome = txn.set_trust(name, becomes, "because")

    assert outcome.verb == ("updated" if allowed else "refused")
    assert trust_of(kit, name) == (becomes if allowed else was)
    with kit.open() as store:
        last = store.ledger(limit=1, target=name)[0]
        assert last["channel"] == author.channel
        assert last["verb"].startswith("update" if allowed else "refuse")
        assert "because" not in str(store.ledger(limit=5))
        found = verdicts(store, [name])
        assert {one.reason for one in found.values()} == ({"because"} if allowed else set())


@pytest.mark.deep
@pytest.mark.parametrize("trust", [V, R])
@pytest.mark.parametrize("author", [AGENT, WORKER, IMPORT])
def test_nobody_but_a_person_brings_in_a_verdict(kit, author, trust):
    with kit.change(author) as txn:
        refused = txn.put_entry(Entry("x", "one", scopes=("app",), trust=trust))
        taken = txn.put_entry(Entry("y", "two", scopes=("app",), trust=B))
    assert (refused.verb, taken.verb) == ("refused", "created")
    with kit.change(PERSON) as txn:
        assert txn.put_entry(Entry("x", "one", scopes=("app",), trust=trust)).verb == "created"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["port", TRIPLE])
@pytest.mark.parametrize("trust", list(Trust))
def test_candidate_and_rejected_alone_are_withheld(kit, name, trust):
    fill(kit)
    with kit.change(PERSON) as txn:
        txn.set_trust(name, trust, "why")

    assert (name in live(kit)) is (trust not in (B, R))


def test_what_is_rejected_does_not_come_again_under_any_name(kit):
    fill(kit)
    fill(kit, name="host")
    with kit.change(PERSON) as txn:
        txn.set_trust("port", R, "it moved in May")

    with kit.change(AGENT) as txn:
        again = txn.put_entry(Entry("other", "The  PORT is 4711.", scopes=("app",)))
        elsewhere = txn.put_entry(Entry("other", "the port is 4711", scopes=("web",)))
        twin = txn.put_entry(Entry("third", "the host is 4711", scopes=("app",)))
    assert (again.verb, elsewhere.verb, twin.verb) == ("refused", "created", "created")


@pytest.mark.parametrize("name", ["port", TRIPLE])
def test_an_approval_does_not_launder_what_was_rejected(kit, name):
    """Not even a person's: the tombstone has to be lifted first, which is a decision of its own."""
    fill(kit)
    with kit.change(PERSON) as txn:
        txn.set_trust(name, R, "wrong")
        done = [txn.set_trust(name, trust, "no") for trust in (A, V, B)]
    assert {one.verb for one in done} == {"refused"}
    assert trust_of(kit, name) == R

    with kit.change(PERSON) as txn:
        txn.store.execute("DELETE FROM tombstone")
        assert txn.set_trust(name, A).verb == "updated"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["port", TRIPLE])
def test_a_rejection_can_be_undone_by_a_person_alone(kit, name):
    fill(kit)
    with kit.change(PERSON) as txn:
        txn.set_trust(name, R, "wrong")
        op = txn.op_id
    with pytest.raises(Refused, match="only a person"), kit.change(AGENT) as txn:
        txn.undo(op)
    assert trust_of(kit, name) == R

    with kit.change(PERSON) as txn:
        txn.undo(op)
    assert trust_of(kit, name) == A
    with kit.open() as store:
        assert store.execute("SELECT count(*) FROM tombstone").fetchone() == (0,)
        assert not verdicts(store, [name])

    with kit.change(PERSON) as txn:
        txn.redo(op)
    assert trust_of(kit, name) == R
    with kit.open() as store:
        assert store.execute("SELECT count(*) FROM tombstone").fetchone() > (0,)
        assert verdicts(store, [name])[name].reason == "wrong"


def test_a_rejection_outlives_an_older_copy_of_the_store(kit):
    from hypatia_mem.store.connection import FILE

    fill(kit)
    older = (kit.home / FILE).read_bytes()
    with kit.change(PERSON) as txn:
        txn.set_trust("port", R, "wrong")
    (kit.home / FILE).write_bytes(older)

    assert "port" not in live(kit)


def test_words_of_a_machine_are_not_what_a_person_verified(kit):
    for author, expected in ((AGENT, A), (PERSON, V)):
        with kit.change(PERSON) as txn:
            txn.put_entry(Entry("x", "one", scopes=("app",)), replace=True)
            txn.set_trust("x", V)
        with kit.change(author) as txn:
            txn.update_entry("x", content=f"two, says {author.actor}")
            txn.update_entry("x", tags=("t",))
        assert trust_of(kit, "x") == expected


@pytest.mark.deep
@pytest.mark.parametrize("author", [WORKER, IMPORT, Author(Channel.HOOK)])
def test_what_a_person_wrote_no_automatic_pass_writes_over(kit, author):
    with kit.change(author) as txn:
        txn.put_entry(Entry("x", "one", scopes=("app",)))
        assert txn.update_entry("x", content="two").verb == "updated"
    with kit.change(PERSON) as txn:
        txn.update_entry("x", content="three, by hand")
    with kit.change(author) as txn:
        outcomes = [
            txn.update_entry("x", content="four"),
            txn.put_entry(Entry("x", "four", scopes=("app",)), replace=True),
        ]
        assert txn.update_entry("x", tags=("t",)).verb == "updated"
    assert [one.verb for one in outcomes] == ["refused", "refused"]
    with kit.open() as store:
        assert store.entry("x").content == "three, by hand"


@pytest.mark.parametrize("field", ["suppressed", "pinned"])
def test_what_a_person_suppressed_or_pinned_stays_so(kit, field):
    with kit.change(PERSON) as txn:
        for name in ("hers", "its"):
            txn.put_entry(Entry(name, name, scopes=("app",)))
        txn.update_entry("hers", **{field: True})
    with kit.change(AGENT) as txn:
        txn.update_entry("its", **{field: True})
        assert txn.update_entry("its", **{field: False}).verb == "updated"
        assert txn.update_entry("hers", **{field: False}).verb == "refused"
    with kit.change(PERSON) as txn:
        assert txn.update_entry("hers", **{field: False}).verb == "updated"


@pytest.mark.parametrize("trust", [B, R])
def test_a_person_who_says_it_again_means_it(kit, trust):
    rule = kit.rule("never mock")
    with kit.change(PERSON) as txn:
        txn.put_entry(rule)
        txn.set_trust(rule.name, trust, "no")
    with kit.change(AGENT) as txn:
        txn.put_entry(rule, replace=True)
    assert trust_of(kit, rule.name) == trust
    with kit.change(PERSON) as txn:
        assert txn.put_entry(rule, replace=True).verb == "updated"
    assert trust_of(kit, rule.name) == A


def test_what_is_forgotten_leaves_no_reason_behind(kit):
    fill(kit)
    with kit.change(PERSON) as txn:
        txn.set_trust("port", D, "canary words")
    with kit.change(PERSON) as txn:
        txn.delete_entry("port", "forget", tombstone=True)

    with open_store(kit.home, write=False) as store:
        for table in ("verdict", "image", "mutation", "version", "queued", "tombstone"):
            assert "canary" not in str(store.run(f"SELECT * FROM {table}"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda txn: txn.set_trust("port", R), UsageError),
        (lambda txn: txn.set_trust("port", R, "  "), UsageError),
        (lambda txn: txn.set_trust("nothing", V), NotFound),
        (lambda txn: txn.set_trust("port", D, "x" * 3000), UsageError),
    ],
)
def test_what_cannot_be_done_is_said(kit, call, error):
    fill(kit)
    with pytest.raises(error), kit.change(PERSON) as txn:
        call(txn)


def test_what_another_memorys_person_verified_is_asserted_here(kit, tmp_path):
    """An export is a file that anybody can write; only here can somebody say that it is true."""
    from hypatia_mem.capture import paths
    from hypatia_mem.memory.sharing import exporting, importing

    fill(kit)
    with kit.change(PERSON) as txn:
        for name in ("port", TRIPLE):
            txn.set_trust(name, V)
        txn.put_entry(Entry("doubt", "is it so?", scopes=("app",), trust=D))
    exporting.export_shelf(kit.home, tmp_path / "out")
    other = tmp_path / "other"
    paths.ensure_home(str(other))
    importing.import_shelf(other, tmp_path / "out", author=PERSON, now=kit.now)

    with open_store(other, write=False) as store:
        assert store.entry("port").trust == A
        assert store.statement("port", "is", "4711").trust == A
        assert store.entry("doubt").trust == D


def test_what_is_put_off_or_queued_is_undone_in_the_project_it_is_of(kit):
    """So that a plain undo finds it; and the words of a queued change go when they are forgotten."""
    from datetime import timedelta

    from hypatia_mem.store import operations, reviewing

    fill(kit, B)
    ops = []
    for do in (
        lambda txn: txn.defer("port", kit.now + timedelta(days=1), "later"),
        lambda txn: txn.defer(TRIPLE, kit.now + timedelta(days=1)),
        lambda txn: txn.queue_change("s-1", "edit", "port", {"text": "canary words"}),
    ):
        with kit.change(PERSON) as txn:
            do(txn)
            ops.append(txn.op_id)
    with kit.open() as store:
        assert [operations.scopes_of(store, op) for op in ops] == [{"app"}] * 3
        assert [one.until is not None for one in reviewing.undecided(store, ["app"])] == [True] * 2
        assert [one.name for one in reviewing.queued(store)] == ["port"]
    for op in reversed(ops):
        with kit.change(PERSON) as txn:
            txn.undo(op)
    with kit.open() as store:
        assert not any(one.until for one in reviewing.undecided(store, None))
        assert not reviewing.queued(store)
    with kit.change(PERSON) as txn:
        txn.redo(ops[2])
    with kit.change(PERSON) as txn:
        txn.delete_entry("port", "forget", tombstone=True)
    with kit.open() as store:
        for table in ("queued", "image", "mutation"):
            assert "canary" not in str(store.run(f"SELECT * FROM {table}"))

"""Vectors in the store: what may be kept, what goes and when, what is ranked and by what."""

from __future__ import annotations

import math

import pytest

from hypatia_mem.errors import EmbeddingError
from hypatia_mem.memory.vectors.lexical import Lexical
from hypatia_mem.model import Entry, Session, Statement, Trust
from hypatia_mem.store import vectors
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.vectors import Condition, Filters, Pending, Query

MODEL = Lexical(64)
SHORT = Query("short/3", (1.0, 0.0, 0.0))


def fill(kit, model=MODEL):
    """Give everything that lacks one its vector."""
    with kit.change() as txn:
        for group in vectors.GROUPS:
            found = vectors.pending(txn.store, model.model, group)
            made = zip(found, model.documents([one.text for one in found]), strict=True)
            vectors.put(txn.store, model.model, model.dimension, list(made))


def stored(kit):
    with kit.open() as store:
        return sum(vectors.counts(store).values())


def ranked(kit, text, catalog="knowledge", model=MODEL, **more):
    with kit.open() as store:
        return [near.key for near in vectors.rank(store, model.query(text), catalog, **more)]


def rule(name, text, **more):
    return Entry(name, text, kind="rule", tags=("memory", "rule"), scopes=("app",), **more)


@pytest.fixture
def crowd(kit):
    """Forty messages and a note that say the very words asked for, and six rules that hardly do."""
    with kit.change() as txn:
        txn.put_session(Session("s-1", project="app"))
        said = [kit.message(number, "mock the database") for number in range(1, 41)]
        txn.put_messages("s-1", said, "app")
        for number in range(6):
            txn.put_entry(rule(f"r{number}", f"database rule of another kind, number {number}"))
        txn.put_entry(Entry("elsewhere", "mock the database", tags=("note",), scopes=("other",)))
        txn.put_entry(Entry("global", "mock the database", tags=("note",), scopes=("",)))
    fill(kit)
    return kit


RULES = {f"r{number}" for number in range(6)}


FILTERS = [
    ("kind", Filters(kinds=["rule"]), RULES),
    ("tag", Filters(tags=["rule"]), RULES),
    ("all tags", Filters(tags=["rule", "memory"]), RULES),
    ("no entry has both tags", Filters(tags=["rule", "note"]), set()),
    ("tags are whole elements", Filters(tags=["rul"]), set()),
    ("excluded tag", Filters(scopes=["app"], exclude_tags=["message"]), RULES),
    ("scope", Filters(scopes=["other"]), {"elsewhere"}),
    ("the empty scope is global, not a wildcard", Filters(scopes=[""]), {"global"}),
    ("no scope is nothing", Filters(scopes=[]), set()),
    (
        "condition",
        Filters(condition=Condition("SELECT name FROM entry WHERE kind = ?", ("rule",))),
        RULES,
    ),
]


def test_filters_hold_before_anything_is_ranked(crowd):
    """Forty nearer messages do not crowd out six rules."""
    for name, filters, wanted in FILTERS:
        found = ranked(crowd, "mock the database", filters=filters, limit=6)
        assert set(found) == wanted, name


def test_without_filters_the_nearer_messages_come_first(crowd):
    found = ranked(crowd, "mock the database", limit=100)
    assert len(found) == 48
    assert not RULES & set(found[:40])


def test_pages_yield_each_thing_once(crowd):
    pages = [
        ranked(crowd, "mock the database", limit=7, offset=offset) for offset in range(0, 56, 7)
    ]
    found = [key for page in pages for key in page]
    assert len(found) == len(set(found)) == 48
    assert found == ranked(crowd, "mock the database", limit=100)


def test_the_threshold_only_takes_away(crowd):
    def how_many(threshold):
        return len(ranked(crowd, "mock the database", threshold=threshold))

    counts = [how_many(threshold) for threshold in (None, -2, 0.3, 0.9, 2)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == counts[1] == 48
    assert counts[-1] == 0


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([0.0] * 3, id="zero"),
        pytest.param([1.0, math.nan, 0.0], id="nan"),
        pytest.param([1.0, math.inf, 0.0], id="inf"),
        pytest.param([1.0, 0.0], id="short"),
        pytest.param([1.0, 0.0, 0.0, 0.0], id="long"),
        pytest.param([], id="empty"),
    ],
)
def test_no_bad_vector_is_stored_or_asked_for(kit, bad):
    """One NaN among the stored would spoil every ranking."""
    with kit.change() as txn:
        txn.put_entry(rule("r", "text"))
        (one,) = vectors.pending(txn.store, "short/3", "knowledge")
        with pytest.raises(EmbeddingError):
            vectors.put(txn.store, "short/3", 3, [(one, bad)])
        assert vectors.put(txn.store, "short/3", 3, [(one, [1, 0, 0])]) == 1
    with kit.open() as store, pytest.raises(EmbeddingError):
        vectors.rank(store, Query("short/3", tuple(bad)), "knowledge")


def test_vectors_of_two_lengths_are_never_ranked_together(kit):
    with kit.change() as txn:
        txn.put_entry(rule("r", "text"))
        (one,) = vectors.pending(txn.store, "short/3", "knowledge")
        vectors.put(txn.store, "short/3", 3, [(one, [1, 0, 0])])
    with kit.open() as store, pytest.raises(EmbeddingError, match=r"3 and of 4.*together"):
        vectors.rank(store, Query("short/3", (1.0, 0.0, 0.0, 0.0)), "knowledge")


def test_a_model_ranks_its_own_vectors_only(kit):
    with kit.change() as txn:
        txn.put_entry(rule("mine", "the words"))
        txn.put_entry(rule("theirs", "the words"))
        for one in vectors.pending(txn.store, "short/3", "knowledge"):
            model, vector = ("short/3", [1, 0, 0]) if one.key == "mine" else ("other/3", [1, 0, 0])
            vectors.put(txn.store, model, 3, [(one, vector)])
    with kit.open() as store:
        assert [near.key for near in vectors.rank(store, SHORT, "knowledge")] == ["mine"]
        assert vectors.counts(store) == {"other/3": 1, "short/3": 1}


@pytest.mark.deep
@pytest.mark.parametrize(
    "withhold",
    [
        pytest.param({"suppressed": True}, id="suppressed"),
        pytest.param({"trust": Trust.REJECTED}, id="rejected"),
        pytest.param({"trust": Trust.CANDIDATE}, id="candidate"),
    ],
)
def test_what_is_withheld_never_ranks(kit, withhold):
    """Neither it nor a statement about it; both come back when it is seen again."""
    with kit.change() as txn:
        txn.put_entry(rule("pool", "connection pool"))
        txn.put_statement(Statement("pool", "limits", "connection pool size", scopes=("",)))
    fill(kit)
    assert ranked(kit, "connection pool") == ["pool"]
    with kit.change() as txn:
        txn.update_entry("pool", **withhold)
    assert ranked(kit, "connection pool") == []
    assert ranked(kit, "connection pool", "statement") == []
    fill(kit)  # nor does it get a vector now
    assert stored(kit) == 1
    assert ranked(kit, "connection pool") == []
    with kit.change() as txn:
        txn.update_entry("pool", suppressed=False, trust=Trust.ASSERTED)
    fill(kit)
    assert ranked(kit, "connection pool") == ["pool"]
    assert ranked(kit, "connection pool", "statement") == ["pool,limits,connection pool size"]


def test_what_is_forgotten_takes_its_vectors_along(kit):
    """Words can be guessed from a vector, so nothing of it may stay, nor of what it said before."""
    with kit.change() as txn:
        txn.put_entry(rule("secret", "the first wording"))
        txn.put_entry(rule("kept", "something else"))
        txn.put_statement(Statement("secret", "belongs with", "kept", scopes=("",)))
    fill(kit)
    assert stored(kit) == 3
    with kit.change() as txn:
        txn.update_entry("secret", content="the second wording")
    fill(kit)
    assert stored(kit) == 3
    with kit.change() as txn:
        txn.delete_entry("secret", tombstone=True)
    assert stored(kit) == 1
    assert ranked(kit, "something else") == ["kept"]


def test_a_forgetting_leaves_no_vector_of_anything_that_is_gone(kit):
    """Whatever left it behind: a vector whose text is nowhere is nobody's to keep."""
    with kit.change() as txn:
        txn.put_entry(rule("secret", "words"))
        txn.put_entry(rule("kept", "others"))
    fill(kit)
    with open_store(kit.home, write=True) as store:
        store.execute("INSERT INTO embedding VALUES ('of nothing', 'm', [1.0])")
    with kit.change() as txn:
        txn.delete_entry("secret", tombstone=True)
    with kit.open() as store:
        assert vectors.counts(store) == {MODEL.model: 1}


def test_a_vector_goes_in_the_transaction_of_the_forgetting(kit):
    """If that comes to nothing the vector stays, and no instant lies between the two."""
    with kit.change() as txn:
        txn.put_entry(rule("secret", "words"))
    fill(kit)

    def give_up():
        with kit.change() as txn:
            txn.delete_entry("secret", tombstone=True)
            assert vectors.counts(txn.store) == {}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give_up()
    assert stored(kit) == 1


@pytest.mark.deep
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda txn: txn.delete_entry("e"), id="deleted"),
        pytest.param(lambda txn: txn.update_entry("e", content="new words"), id="new text"),
        pytest.param(lambda txn: txn.update_entry("e", synonyms=("alias",)), id="new name"),
        pytest.param(lambda txn: txn.delete_statement("a", "uses", "b"), id="statement"),
    ],
)
def test_what_changes_loses_its_vector_at_once(kit, change):
    with kit.change() as txn:
        txn.put_entry(rule("e", "old words"))
        txn.put_statement(Statement("a", "uses", "b", scopes=("",)))
    fill(kit)
    with kit.change() as txn:
        change(txn)
    assert stored(kit) == 1


def test_a_forgotten_text_gets_no_vector_from_who_read_it_before(kit):
    """A backfill reads, computes for a while, and only then writes."""
    with kit.change() as txn:
        for name in ("forgotten", "changed", "kept"):
            txn.put_entry(rule(name, f"words of {name}"))
    with kit.open() as store:
        found = vectors.pending(store, MODEL.model, "knowledge")
    with kit.change() as txn:
        txn.delete_entry("forgotten", tombstone=True)
        txn.update_entry("changed", content="other words")
    made = list(zip(found, MODEL.documents([one.text for one in found]), strict=True))
    with kit.change() as txn:
        assert vectors.put(txn.store, MODEL.model, MODEL.dimension, made) == 1
    assert ranked(kit, "words") == ["kept"]


def test_two_who_make_the_same_vectors_make_one(kit):
    with kit.change() as txn:
        txn.put_entry(rule("e", "words"))
    with kit.open() as store:
        found = vectors.pending(store, MODEL.model, "knowledge")
    made = list(zip(found, MODEL.documents([one.text for one in found]), strict=True))
    for new in (1, 0):
        with kit.change() as txn:
            assert vectors.put(txn.store, MODEL.model, MODEL.dimension, made * 2) == new
    assert ranked(kit, "words") == ["e"]


def test_what_only_ties_things_together_has_no_vector(kit):
    with kit.change() as txn:
        txn.put_statement(Statement("rule:x", "is_a", "rule", scopes=("",)))
        txn.put_statement(Statement("msg-s-1", "belongTo", "session-s", scopes=("",)))
        txn.put_statement(Statement("rule:x", "derivedFrom", "msg-s-1", scopes=("",)))
        txn.put_statement(Statement("cat", "is_a", "animal", scopes=("",)))
    with kit.open() as store:
        keys = [one.key for one in vectors.pending(store, MODEL.model, "statement")]
    assert keys == ["cat,is_a,animal"]


def test_the_text_of_a_message_is_what_was_said(kit):
    """Not its name, its role or its time; an entry's names count, for that is how it is looked for."""
    with kit.change() as txn:
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", [kit.message(1, "## Content\nfix the parser")], "app")
        txn.put_entry(Entry("k8s", "runs our pods", synonyms=("kubernetes",), scopes=("",)))
    with kit.open() as store:
        texts = [
            one.text
            for group in ("message", "knowledge")
            for one in vectors.pending(store, MODEL.model, group)
        ]
    assert texts == ["## Content\nfix the parser", "k8s\nkubernetes\nruns our pods"]


def test_everything_can_be_thrown_away_and_comes_back(kit):
    with kit.change() as txn:
        txn.put_entry(rule("e", "words"))
    fill(kit)
    with kit.change() as txn:
        vectors.note_current(txn.store, MODEL.model)
    with kit.open() as store:
        assert vectors.current(store, MODEL.model)
    with kit.change() as txn:
        vectors.clear(txn.store)
    with kit.open() as store:
        assert not vectors.current(store, MODEL.model)
        assert vectors.missing(store, MODEL.model) == 1
    fill(kit)
    assert ranked(kit, "words") == ["e"]


def test_a_sweep_drops_only_what_nothing_refers_to(kit):
    with kit.change() as txn:
        txn.put_entry(rule("e", "words"))
        txn.put_statement(Statement("a", "uses", "b", scopes=("",)))
    fill(kit)
    with open_store(kit.home, write=True) as store:
        store.execute("INSERT INTO embedding VALUES ('of nothing', 'm', [1.0])")
        assert vectors.sweep(store) == 1
    assert stored(kit) == 2


def test_a_name_full_of_sql_is_only_a_name(kit):
    name = "x'); DROP TABLE embedding; --"
    with kit.change() as txn:
        txn.put_entry(rule(name, "words \"and\" 'quotes'"))
    fill(kit)
    assert ranked(kit, name, filters=Filters(tags=["rule"], scopes=["app", name])) == [name]
    made = [(Pending("knowledge", name, "' OR 1=1 --", ""), [1.0, 0.0, 0.0])]
    with kit.change() as txn:
        assert vectors.put(txn.store, "short/3", 3, made) == 0

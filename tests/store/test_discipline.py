"""Nothing without a scope comes in, and predicates have one spelling, by whatever door."""

from __future__ import annotations

import pytest

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store import history, rows

DOORS = {
    "a new entry": lambda txn, scopes: txn.put_entry(Entry("new", "x", scopes=scopes)),
    "an entry said again": lambda txn, scopes: txn.put_entry(
        Entry("there", "y", scopes=scopes), replace=True
    ),
    "an edit": lambda txn, scopes: txn.update_entry("there", scopes=scopes),
    "a statement": lambda txn, scopes: txn.put_statement(Statement("a", "is", "b", scopes=scopes)),
}


@pytest.mark.deep
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("channel", list(Channel))
def test_what_has_no_scope_is_refused(kit, door, channel):
    """Whoever it is: no project would read it, and nobody could tell whose it is."""
    with kit.change() as txn:
        txn.put_entry(Entry("there", "x", scopes=("app",)))
    with pytest.raises(UsageError, match="no scope") as refused, kit.change(Author(channel)) as txn:
        DOORS[door](txn, ())
    assert "--scopes" in refused.value.hint
    with kit.open() as store:
        assert store.entry("there").scopes == ("app",)
        assert store.entry("new") is None
        assert store.statement("a", "is", "b") is None
    with kit.change() as txn:  # and with one it comes in
        assert DOORS[door](txn, ("",)).verb in ("created", "updated")


def test_an_edit_of_something_else_needs_no_scope(kit):
    """What an early version let in can be put right, and until then be changed."""
    with kit.change() as txn:
        txn.put_entry(Entry("old", "x", scopes=("",)))
        txn.store.execute("UPDATE entry SET scopes = [] WHERE name = 'old'")
    with kit.change() as txn:
        assert txn.update_entry("old", content="y").verb == "updated"
        assert txn.update_entry("old", scopes=("app",)).verb == "updated"


SPELLINGS = [
    ("works_at", "works_at"), ("worksAt", "works_at"), ("works at", "works_at"),
    ("WORKS-AT", "works_at"), ("HTTPServer of", "http_server_of"), ("knows", "knows"),
    ("belongTo", "belongTo"), ("belongs_to", "belongs_to"), ("derivedFrom", "derivedFrom"),
    ("derived_from", "derivedFrom"), ("is_a", "is_a"), ("属于", "属于"), ("to%", "to%"),
]  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize(("said", "stored"), SPELLINGS)
def test_a_predicate_is_stored_in_one_spelling_and_found_in_any(kit, said, stored):
    with kit.change() as txn:
        key = txn.put_statement(Statement("a", said, "b, c", scopes=("",))).name
        assert key == rows.triple_key("a", stored, "b, c")
        assert txn.put_statement(Statement("a", said, "b, c", scopes=("",))).verb == "unchanged"
        assert txn.put_statement(Statement("a", stored, "b, c", scopes=("",))).verb == "unchanged"
    with kit.open() as store:
        assert store.statement("a", said, "b, c").predicate == stored
        assert store.statement("a", stored, "b, c") is not None
    with kit.change() as txn:
        assert txn.set_validity("a", said, "b, c", valid_from=kit.now).verb == "updated"
        assert txn.delete_statement("a", said, "b, c").name == key
    with kit.open() as store:
        assert store.statement("a", stored, "b, c") is None
        assert len(history.statement_states(store, key)) == 2


def test_another_predicate_is_another_statement(kit):
    """Only the spelling is made the same, never the word."""
    with kit.change() as txn:
        for predicate in ("works_at", "work_at", "worksat", "works_att"):
            said = Statement("a", predicate, "b", scopes=("",))
            assert txn.put_statement(said).verb == "created"
        with pytest.raises(NotFound):
            txn.delete_statement("a", "workedAt", "b")


def test_a_spelling_that_is_stored_from_before_is_found_and_goes(kit):
    """An early version kept predicates as they were typed."""
    with kit.change() as txn:
        txn.put_statement(Statement("a", "works_at", "b", scopes=("",)))
        txn.store.execute("UPDATE statement SET predicate = 'worksAt', triple = 'a,worksAt,b'")
    with kit.change() as txn:
        again = txn.put_statement(Statement("a", "worksAt", "b", scopes=("",)))
        assert (again.verb, again.name) == ("unchanged", "a,worksAt,b")
        assert txn.delete_statement("a", "worksAt", "b").verb == "deleted"
        assert (
            txn.put_statement(Statement("a", "worksAt", "b", scopes=("",))).name == "a,works_at,b"
        )


def test_what_was_forgotten_does_not_come_back_in_another_spelling(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("memory:x", "x uses kestrel", kind="memory", scopes=("app",)))
        txn.put_statement(Statement("memory:x", "worksAt", "kestrel", scopes=("app",)))
        txn.delete_entry("memory:x", tombstone=True)
    with kit.change(kit.agent) as txn:
        for predicate in ("works_at", "worksAt", "Works At"):
            said = Statement("memory:x", predicate, "kestrel", scopes=("app",))
            assert txn.put_statement(said).verb == "refused"
        other = Statement("memory:other", "worksAt", "kestrel", scopes=("app",))
        assert txn.put_statement(other).verb == "created"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "tags", "kept", "lost"),
    [
        ("message", ("message",), ("message", "kept"), ("kept",)),
        ("session", ("session",), ("session", "rule"), ("rule",)),
        ("summary", ("summary", "summary 1"), ("summary", "summary 1", "pools"), ("summary",)),
        ("summary", ("summary", "summary 1"), ("summary 1", "summary"), ("summary", "summary 10")),
        ("summary", ("summary", "summary 1"), ("summary 1", "summary"), ("summary", "summary 1", "summary 2")),
    ],
)  # fmt: skip
def test_structural_tags_are_the_programs_own(kit, kind, tags, kept, lost):
    """Others may stand beside them; without them the cascade would lose what it has to condense."""
    with kit.change() as txn:
        txn.put_entry(Entry("x", "text", kind=kind, tags=tags, scopes=("app",)))
    with pytest.raises(UsageError, match=r"taken away|already"), kit.change() as txn:
        txn.update_entry("x", tags=lost, kind="knowledge")
    with kit.change() as txn:
        txn.update_entry("x", tags=kept, kind="rule")
    with kit.open() as store:
        entry = store.entry("x")
    assert (entry.kind, entry.tags) == (kind, kept)


def test_tags_of_all_else_are_free(kit):
    """Twin: a rule may become a taboo, and knowledge anything."""
    with kit.change() as txn:
        txn.put_entry(Entry("x", "text", kind="rule", tags=("rule",), scopes=("app",)))
        txn.update_entry("x", tags=("taboo",), kind="taboo")
        txn.update_entry("x", tags=(), kind="knowledge")
        assert (txn.entry("x").kind, txn.entry("x").tags) == ("knowledge", ())

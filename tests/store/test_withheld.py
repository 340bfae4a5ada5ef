"""What is withheld is listed once, whatever the reasons; what is not, never."""

from __future__ import annotations

import itertools

import pytest

from hypatia_mem.model import Entry, Statement

REASONS = {
    "trust": ("asserted", "candidate"),
    "suppressed": (False, True),
    "expired_at": (None, "2026-01-01"),
}


@pytest.mark.deep
@pytest.mark.parametrize("bad", list(itertools.product((0, 1), repeat=3)))
def test_each_reason_withholds_an_entry_and_its_statements(kit, bad):
    with kit.change() as txn:
        txn.put_entry(Entry("x", "a text", scopes=("",)))
        txn.put_entry(Entry("y", "another", scopes=("",)))
        for triple in (("x", "is", "z"), ("z", "is", "x"), ("y", "is", "z")):
            txn.put_statement(Statement(*triple, scopes=("",)))
        values = [pair[which] for pair, which in zip(REASONS.values(), bad, strict=True)]
        txn.store.execute(
            "UPDATE entry SET trust = ?, suppressed = ?, expired_at = ?::TIMESTAMP WHERE name = 'x'",
            values,
        )
    with kit.open() as store:
        withheld = [row["name"] for row in store.run("SELECT name FROM withheld_entry")]
        live = [row["name"] for row in store.run("SELECT name FROM live_entry ORDER BY name")]
        said = {row["triple"] for row in store.run("SELECT triple FROM live_statement")}
    hidden = any(bad)
    assert withheld == (["x"] if hidden else [])
    assert live == (["y"] if hidden else ["x", "y"])
    assert said == ({"y,is,z"} if hidden else {"x,is,z", "z,is,x", "y,is,z"})

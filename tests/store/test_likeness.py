"""How often a disguise, another wording and another thing are told apart: figures, counted.

``benchmarks/tombstones.py`` prints the same with what it costs.
"""

from __future__ import annotations

import time

import pytest

from hypatia_mem.model import Author, Channel, Entry, Trust
from hypatia_mem.store import keys, telling
from hypatia_mem.store.likeness import Index, sketch
from hypatia_mem.store.lookalikes import canonical, glyphs
from tests.store.likeness.kit import DISGUISES, cases, unrelated

KEY = keys.key_of(b"k" * 32)
LATIN = [case for case in cases("held_out") if case.language in ("en", "de", "fr", "es")]


def index_of(case):
    return Index(KEY, {"it": sketch(KEY, case.value)})


@pytest.fixture(scope="module", params=["tuning", "held_out", "coding"])
def counted(request):
    """(caught, wordings, wrong, twins, wrong, unrelated) of a set."""
    found = cases(request.param)
    indexes = {case.value: index_of(case) for case in found}
    same = [bool(indexes[case.value].near(text)) for case in found for text in case.same]
    twins = [bool(indexes[case.value].near(text)) for case in found for text in case.other]
    strangers = [bool(indexes[case.value].near(text)) for case, text in unrelated(found)]
    return same, twins, strangers


@pytest.mark.deep
def test_at_least_four_of_five_other_wordings_are_caught(counted):
    same = counted[0]
    assert len(same) >= 60
    assert sum(same) >= 0.8 * len(same)


def test_nothing_unrelated_is_held_back(counted):
    strangers = counted[2]
    assert len(strangers) > 1_000
    assert sum(strangers) == 0


def test_what_shares_words_and_says_something_else_hardly_ever_is(counted):
    twins = counted[1]
    assert len(twins) >= 50
    assert sum(twins) <= 0.02 * len(twins)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_every_disguise_looks_the_same(disguise):
    for case in LATIN:
        text = DISGUISES[disguise](case.value)
        alike = glyphs(text) == glyphs(case.value) or canonical(text) == canonical(case.value)
        assert alike, text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the port is 8080 here", "the port is 9090 here"),
        ("the port is 8080 here", "the port is 6060 here"),
        ("keep 10 backups", "keep 100 backups"),
        ("use version 1.2 of it", "use version 2.1 of it"),
        ("never mock the database", "never block the database"),
        ("deploy it on tuesday", "deploy it on thursday"),
        ("не мокать базу", "не ломать базу"),
        ("数据库不能直接改", "数据库可以直接改"),
    ],
)
def test_other_things_look_different(one, other):
    assert glyphs(one) != glyphs(other)


@pytest.mark.deep
def test_twenty_and_twenty_through_the_gateway(kit):
    """All values forgotten in one memory; what an agent brings then, one after the other."""
    found = [case for case in cases("held_out") if len(case.same) == 5][:4]
    same = [text for case in found for text in case.same]
    other = [text for case in found for text in case.other]
    assert (len(same), len(other)) == (20, 20)
    with kit.change() as txn:
        for number, case in enumerate(cases("held_out")):
            txn.put_entry(kit.rule(case.value, f"rule:{number}"))
            txn.delete_entry(f"rule:{number}", "forget", tombstone=True)
    refused = 0
    with kit.change(Author(Channel.CLI_AGENT)) as txn:
        for number, text in enumerate([*same, *other]):
            txn.put_entry(Entry(f"n{number}", text, scopes=("app",)))
        for name, disguise in DISGUISES.items():
            outcome = txn.put_entry(Entry(name, disguise(found[0].value), scopes=("app",)))
            refused += outcome.verb == "refused"
    with kit.open() as store:
        trust = [store.entry(f"n{number}").trust for number in range(40)]
    assert trust[:20].count(Trust.CANDIDATE) >= 16
    assert trust[20:].count(Trust.CANDIDATE) == 0
    assert refused == len(DISGUISES)


@pytest.mark.deep
@pytest.mark.parametrize("case", cases("coding"), ids=lambda case: case.value[:30])
def test_twenty_rewordings_of_what_was_rejected_wait_and_twenty_strangers_do_not(kit, case):
    """One decision of a project at a time, its rewordings, and what the others say."""
    strangers = [text for other in cases("coding") if other is not case for text in other.other[:3]]
    with kit.change() as txn:
        txn.put_entry(kit.rule(case.value, "rule:it"))
        txn.set_trust("rule:it", Trust.REJECTED, "it was a mistake")
    with kit.change(Author(Channel.CLI_AGENT)) as txn:
        for number, text in enumerate([*case.same, *strangers[:20]]):
            txn.put_entry(Entry(f"n{number}", text, scopes=("app",)))
        verbs = [
            txn.put_entry(Entry(name, disguise(case.value), scopes=("app",))).verb
            for name, disguise in DISGUISES.items()
        ]
    with kit.open() as store:
        entries = [store.entry(f"n{number}") for number in range(40)]
    held = [entry is None or entry.trust == Trust.CANDIDATE for entry in entries]
    assert held[:20].count(True) >= 16
    assert held[20:].count(True) == 0
    assert set(verbs) == {"refused"}


@pytest.mark.parametrize("blob", ["x" * 60_000, "Ab3" * 20_000, "ab" * 30_000 + "-" + "z" * 9])
def test_a_blob_without_spaces_is_read_in_no_time(blob):
    """A pasted file in one word is looked at once, not from each of its letters on."""
    before = time.process_time()
    assert telling.read(blob).words
    assert time.process_time() - before < 0.3
    assert len(telling.read("Testdatenbank").words) == 2, "a long word still has its parts"

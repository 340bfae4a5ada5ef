"""What a person had forgotten does not come back by itself, however it is spelled."""

from __future__ import annotations

import pytest

from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store.tombstones import canonical

VALUE = "Déploy the staging URL don't wait"
SAME = [
    VALUE,
    VALUE.upper(),
    "De\u0301ploy the staging URL don't wait",
    "  Déploy   the\tstaging\nURL don't wait. ",
    "Déploy the sta\u200bging URL\u2060 don't wait\ufeff",
    "De\u200d\u0301ploy the staging URL don't wait!",
    "Déploy the ｓｔａｇｉｎｇ URL don't wait",
    "Déploy the staging\u00a0URL don’t wait",
    "Déploy the staging\ufe0f URL don\u034f't wait",
    '"Déploy the staging URL don\'t wait"',
    "Deploy the staging URL don't wait",  # looks the same
    "Déploythe stagingURL dont wait",
    "D.é.p.l.o.y the st@ging URL, don't w4it",
    "Dерlоy thе stаging URL don't wаit",  # with Cyrillic letters
    "Dεplοy the stαging URL don't wαit",  # with Greek ones
    "Ｄéploy the 𝐬𝐭𝐚𝐠𝐢𝐧𝐠 𝓤𝓡𝓛 don't 🅆🄰🄸🅃",
    "D3pl0y the 5taging URL don't wa1t",
    "d e p l o y t h e s t a g i n g u r l d o n t w a i t",
]
OTHER = [
    "Deploy the staging URL don't wait now",
    "Déploy the staging URLs don't wait",
    "Déploy staging the URL don't wait",
    "",
    "...",
]


@pytest.fixture
def forgotten(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:deploy"))
        outcome = txn.delete_entry("rule:deploy", tombstone=True)
        assert outcome.verb == "deleted"
    return kit


@pytest.mark.deep
@pytest.mark.parametrize("text", SAME)
def test_no_spelling_of_it_is_taken_from_an_agent(forgotten, text):
    with forgotten.change(forgotten.agent) as txn:
        outcome = txn.put_entry(forgotten.rule(text, "memory:other", kind="memory"))
        assert outcome.verb == "refused"
        assert outcome.reason
    with forgotten.open() as store:
        assert store.entry("memory:other") is None
        assert store.ledger(limit=1)[0]["verb"] == "refuse memory"


@pytest.mark.deep
@pytest.mark.parametrize("text", OTHER)
def test_another_value_passes(forgotten, text):
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule(text, "memory:other")).verb == "created"


@pytest.mark.deep
@pytest.mark.parametrize("channel", list(Channel))
def test_only_a_person_lifts_it(forgotten, channel):
    person = channel in (Channel.CLI_PERSON, Channel.HOOK_PROMPT)
    with forgotten.change(Author(channel)) as txn:
        outcome = txn.put_entry(forgotten.rule(VALUE, "rule:deploy"))
        assert outcome.verb == ("created" if person else "refused")
    with forgotten.open() as store:
        verbs = {row["verb"] for row in store.ledger()}
        assert ("lift rule" in verbs) is person
    with forgotten.change(forgotten.agent) as txn:  # lifted means lifted
        again = txn.put_entry(forgotten.rule(VALUE, "rule:deploy-2"))
        assert again.verb == ("created" if person else "refused")


def test_the_name_is_forgotten_too_and_knowledge_of_it_is_not(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_entry(forgotten.rule("Other words", "rule:Deploy")).verb == "refused"
        other = Entry("rule:deploy", "Other words", scopes=("app",))
        assert txn.put_entry(other).verb == "created"


def test_it_holds_where_it_was_forgotten_and_for_what_would_be_seen_there(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        for scope in ("my-app", "ap"):
            one = forgotten.rule(VALUE, f"rule:{scope}x", scope=scope)
            assert txn.put_entry(one).verb == "created", scope
        for scopes in (("z", "app"), ("",), ("z", "")):
            again = Entry("rule:y", VALUE, kind="rule", scopes=scopes)
            assert txn.put_entry(again).verb == "refused", scopes


def test_what_was_forgotten_everywhere_comes_back_nowhere(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:deploy", scope=""))
        txn.delete_entry("rule:deploy", tombstone=True)
    with kit.change(kit.agent) as txn:
        for scope in ("", "app"):
            assert txn.put_entry(kit.rule(VALUE, "rule:again", scope=scope)).verb == "refused"
    with kit.change() as txn:  # a person may, wherever it is
        assert txn.put_entry(kit.rule(VALUE, "rule:again", scope="app")).verb == "created"


def test_no_statement_brings_it_back(forgotten):
    about = [
        Statement("rule:deploy", "is_a", "rule", scopes=("app",)),
        Statement("x", "mentions", "rule:Deploy", scopes=("app",)),
        Statement("x", "says", "y", content=VALUE.upper(), scopes=("app",)),
        Statement("x", "says", "z", content=VALUE, scopes=("",)),
    ]
    with forgotten.change(forgotten.agent) as txn:
        for one in about:
            assert txn.put_statement(one).verb == "refused", one
        elsewhere = Statement("rule:deploy", "is_a", "rule", scopes=("my-app",))
        assert txn.put_statement(elsewhere).verb == "created"
        assert txn.put_statement(Statement("x", "is_a", "rule", scopes=("app",))).verb == "created"
    with forgotten.change() as txn:
        assert txn.put_statement(about[1]).verb == "created"


def test_an_entry_cannot_be_changed_into_it(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        txn.put_entry(forgotten.rule("Fine", "rule:fine"))
        assert txn.update_entry("rule:fine", content=VALUE.upper()).verb == "refused"
        assert txn.put_entry(forgotten.rule(VALUE, "rule:fine"), replace=True).verb == "refused"
        assert txn.update_entry("rule:fine", content="Better").verb == "updated"
        # nor moved to where it is not wanted
        txn.put_entry(forgotten.rule(VALUE, "rule:there", scope="there"))
        assert txn.update_entry("rule:there", scopes=("app",)).verb == "refused"


def test_turns_that_say_it_are_still_kept(forgotten):
    with forgotten.change(forgotten.agent) as txn:
        assert txn.put_messages("s-1", [forgotten.message(1, VALUE)], "app") == [1]


def test_a_plain_deletion_forbids_nothing(kit):
    with kit.change() as txn:
        txn.put_entry(kit.rule(VALUE, "rule:deploy"))
        txn.delete_entry("rule:deploy")
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule(VALUE, "rule:deploy")).verb == "created"


def test_nothing_of_it_is_left_in_clear(forgotten):
    with forgotten.open() as store:
        for table in ("entry", "version", "mutation", "tombstone", "statement"):
            said = repr(store.run(f"SELECT * FROM {table}")).casefold()
            assert "staging" not in said
            assert "rule:deploy" not in said


def test_stored_garbage_and_the_garbage_itself_are_one_value(kit):
    bad = "half \ud83d and \0"
    with kit.change() as txn:
        txn.put_entry(kit.rule(bad, "memory:bad"))
        txn.delete_entry("memory:bad", tombstone=True)
    with kit.change(kit.agent) as txn:
        assert txn.put_entry(kit.rule(bad, "memory:b2")).verb == "refused"


def test_canonical_forms():
    assert canonical("Never  mock\u200b the DB!") == "never mock the db"
    assert canonical("Straße") == canonical("STRASSE")
    assert canonical("知识。") == canonical("知识")
    assert canonical("👍🏽") != canonical("👍")
    assert canonical(" \u200b ") == ""

"""Remember and forget: what a request means, what it takes with it, what stays forgotten."""

from __future__ import annotations

from datetime import datetime

import pytest

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory import curate
from hypatia_mem.memory.curate import plan_forget
from hypatia_mem.model import Author, Channel, Entry
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex

PERSON = Author(Channel.CLI_PERSON)
AGENT = Author(Channel.CLI_AGENT)
NOW = datetime(2026, 11, 30, 12)


def entry(name, content, kind="memory"):
    return Entry(name, content, kind=kind, scopes=("app",))


RULES = [
    entry("memory:staging", "the staging URL is http://stage.test"),
    entry("memory:production", "the production URL is http://prod.test"),
    entry("rule:db", "never mock the database", "taboo"),
    entry("rule:db-2", "always migrate the database first", "rule"),
    entry("rule:ja", "データベースをモックしない", "taboo"),
]


@pytest.mark.parametrize(
    ("query", "chosen", "choice"),
    [
        pytest.param("the staging URL", ["memory:staging"], False, id="clear"),
        pytest.param("never mock the database", ["rule:db"], False, id="whole-text"),
        pytest.param("mocking", [], False, id="unknown-word"),
        pytest.param("database", [], True, id="broad"),
        pytest.param("the URLs", [], True, id="plural-is-the-same-word"),
        pytest.param("モック", ["rule:ja"], False, id="japanese"),
        pytest.param("everything about it", [], False, id="says-nothing"),
        pytest.param("staging database", [], True, id="half-matches-are-only-listed"),
    ],
)
def test_what_a_request_means(query, chosen, choice):
    """One clear match is taken; several, or half ones, are the person's to choose among."""
    plan = plan_forget(RULES, query)
    assert list(plan.chosen) == chosen
    assert plan.needs_choice is choice


def test_named_entries_are_taken_and_unknown_names_refused():
    """``--id`` decides; a name that is not there removes nothing."""
    assert plan_forget(RULES, "x", ids=["rule:db"]).chosen == ("rule:db",)
    with pytest.raises(NotFound):
        plan_forget(RULES, "x", ids=["rule:db", "rule:none"])


@pytest.mark.parametrize(
    ("removed", "relations", "line"),
    [
        (1, 2, "[hypatia-memory] Removed 1 entry and 2 relationships."),
        (2, 1, "[hypatia-memory] Removed 2 entries and 1 relationship."),
        (0, 0, "[hypatia-memory] Removed 0 entries and 0 relationships."),
    ],
)
def test_confirmation_line(removed, relations, line):
    """The skill's exact words, in singular and plural."""
    plan = curate.ForgetPlan("x", (), (), False, removed, relations)
    assert plan.line == line


def remember(home, text, *, kind="rule", scope="app", author=PERSON):
    return curate.remember(home, text, kind=kind, scope=scope, author=author, now=NOW)


def forget(home, query, *, scope="app", dry_run=False):
    return curate.forget(home, query, scope=scope, dry_run=dry_run, author=PERSON, now=NOW)


def found(home, words, scope="app"):
    return [hit.name for hit in SearchIndex(home).search(words, scopes=[scope, ""])]


def test_forget_takes_it_from_every_reader(home):
    """Store, rules and index agree at once; the twin is still found."""
    remember(home, "always use pnpm")
    remember(home, "always use ruff")
    assert found(home, "pnpm") == ["rule:always-use-pnpm"]
    plan = forget(home, "pnpm")
    assert plan.removed == 1
    assert plan.relationships == 1
    assert found(home, "pnpm") == []
    assert found(home, "ruff") == ["rule:always-use-ruff"]
    with open_store(home, write=False) as store:
        assert store.entry("rule:always-use-pnpm") is None
        assert store.statements_of("rule:always-use-pnpm") == []


def test_dry_run_changes_nothing(home):
    """The preview names what would go."""
    remember(home, "always use pnpm")
    assert forget(home, "pnpm", dry_run=True).chosen == ("rule:always-use-pnpm",)
    assert found(home, "pnpm") == ["rule:always-use-pnpm"]


def test_forget_is_scoped(home):
    """Another project keeps its own, and its agent may even say it again."""
    remember(home, "always use pnpm", scope="app")
    remember(home, "always use pnpm", scope="other")
    forget(home, "pnpm", scope="app")
    assert remember(home, "always use pnpm", scope="app", author=AGENT).verb == "refused"
    assert remember(home, "always use pnpm", scope="other", author=AGENT).verb == "unchanged"
    with open_store(home, write=False) as store:
        assert [e.content for e in store.rules(["other"])] == ["always use pnpm"]
        assert store.rules(["app"]) == []


@pytest.mark.deep
@pytest.mark.parametrize(
    "again",
    ["Always  USE pnpm", "always use pnpm.", "always\u200b use pnpm", "ａｌｗａｙｓ use pnpm"],
)
def test_forgotten_in_other_clothes_is_still_forgotten(home, again):
    """Case, spaces, zero-width and full-width letters make no new value; other words do."""
    remember(home, "always use pnpm")
    forget(home, "pnpm")
    assert remember(home, again, author=AGENT).verb == "refused"
    assert remember(home, "always use yarn", author=AGENT).verb == "created"


def test_a_person_may_say_it_again(home):
    """The tombstone binds agents, not the person."""
    remember(home, "always use pnpm")
    forget(home, "pnpm")
    assert remember(home, "always use pnpm", author=PERSON).verb == "created"
    assert remember(home, "always use pnpm", author=AGENT).verb == "unchanged"


def test_global_rule_is_forgotten_from_any_project(home):
    """What holds everywhere is seen everywhere, so it can be withdrawn from everywhere."""
    remember(home, "always sign commits", scope="")
    assert found(home, "sign", scope="whatever") == ["rule:always-sign-commits"]
    assert forget(home, "sign commits", scope="whatever").removed == 1


def test_secret_in_a_rule_is_not_kept(home):
    """What a person types at the command line is redacted like a prompt."""
    secret = "ghp_" + "a1B2" * 9
    remember(home, f"the token is {secret}", kind="memory")
    for path in home.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_nothing_to_remember(home, text):
    """An empty text is a sentence with an example."""
    with pytest.raises(UsageError, match="nothing to remember"):
        remember(home, text)

"""What was told before a forgetting is told no more, and the rest of it still is."""

from __future__ import annotations

import pytest

from hypatia_mem.memory import curate, goals, propagation, retelling
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import episodes as stored
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.memory.episodes_kit import NOW, PERSON, SETTINGS, after, read, run, say, talk

SECRET = "the zanzibarquux password is kept in the green vault of the office"
AGENT = Author(Channel.CLI_AGENT, "agent")


@pytest.fixture
def told(home):
    """An episode, a thread, a goal and a rule say it; the episode says other things too."""
    curate.remember(home, SECRET, kind="memory", scope="app", author=PERSON, now=NOW)
    goals.put(
        home, "move the printer", steps=["buy paper", SECRET], scope="app", author=PERSON, now=NOW
    )
    goals.put(home, SECRET, scope="app", author=PERSON, now=NOW)
    say(
        home,
        (
            *talk(1),
            ("user", "What was decided about the vault?", 70),
            ("assistant", f"We decided: {SECRET}.", 75),
            ("user", "And the port of the broker?", 80),
            ("assistant", "We decided to use port 4711 for the broker.", 85),
        ),
    )
    run(home, after(7200))
    assert any("zanzibarquux" in one.content for one in read(home))
    return home


@pytest.mark.parametrize("author", [PERSON, AGENT], ids=["person", "agent"])
def test_an_episode_from_before_is_told_anew_without_it(told, author):
    curate.forget(told, "zanzibarquux password", scope="app", author=author, now=after(7300))
    assert not any("zanzibarquux" in one.content for one in read(told))
    propagation.rederive(told, SETTINGS, now=after(7400))
    again = [one.content for one in read(told)]
    assert any("4711" in one for one in again)
    assert not any("zanzibarquux" in one for one in again)
    found = SearchIndex(told).search("zanzibarquux", scopes=None)
    assert {hit.kind for hit in found} <= {"message", "goal"}
    with open_store(told, write=False) as store:
        past = store.run("SELECT content FROM version WHERE kind IN ('episode', 'memory')")
    assert not any("zanzibarquux" in row["content"] for row in past)


def test_what_another_project_tells_stays(told):
    say(
        told,
        (("user", "x", 0), ("assistant", f"We decided: {SECRET}. Also to use port 99.", 5)),
        session="s2",
        scope="web",
    )
    run(told, after(9000))
    curate.forget(told, "zanzibarquux password", scope="app", author=PERSON, now=after(9100))
    assert any("zanzibarquux" in one.content for one in read(told, scopes=["web"]))


def test_a_goal_stays_and_what_it_says_is_withheld(told):
    curate.forget(told, "zanzibarquux password", scope="app", author=PERSON, now=after(7300))
    with open_store(told, write=False) as store:
        found = stored.goals(store, ["app"], at=after(7300))
        shown = retelling.cleared(store, found)
    assert len(found) == 2
    assert any("zanzibarquux" in one.content for one in found)
    one, other = sorted((one.content for one in shown), key=len)
    assert one == retelling.WITHHELD
    assert other == f"move the printer\n\n- [ ] 1. buy paper\n- [ ] 2. {retelling.WITHHELD}"


def test_an_episode_of_an_older_store_is_shown_without_the_line(told):
    before = next(one for one in read(told) if "zanzibarquux" in one.content)
    curate.forget(told, "zanzibarquux password", scope="app", author=PERSON, now=after(7300))
    with open_store(told, write=True) as store:  # as a version of the program left it that kept it
        store.execute(
            "INSERT INTO entry BY NAME (SELECT e.* REPLACE (? AS name, ? AS content, 'episode' AS"
            " kind) FROM entry AS e WHERE e.name = 'msg-s1-1')",
            [before.name, before.content],
        )
    old = next(one for one in read(told) if one.name == before.name)
    with open_store(told, write=False) as store:
        shown = retelling.cleared(store, [old])[0].content
    assert "zanzibarquux" not in shown
    assert "4711" in shown
    assert not shown.endswith("## Decided")

"""What was forgotten or rejected does not come back through what is derived from the turns."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hypatia_mem.errors import Conflict
from hypatia_mem.memory import compose, handoff
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.episodes import running as episodes
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Trust
from hypatia_mem.store import graves
from hypatia_mem.store.connection import open_store

from .cascade_kit import NOW, PERSON, fill, run, settings, summaries, talk

SAID = "We decided: never mock the database in integration tests, use module_x.py."
LIKE = "Decision: integration tests in module_x.py must not use database mocks."


@pytest.fixture
def told(home):
    """A session that says it, once in these words and once in others."""
    texts = talk(6)
    texts[2] = f"{SAID} {texts[2]}"
    texts[4] = f"{LIKE} {texts[4]}"
    fill(home, texts)
    return home


def bury(home, text=SAID, *, reject=False):
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(Entry("rule:x", text, kind="rule", scopes=("app",)))
        if reject:
            txn.set_trust("rule:x", Trust.REJECTED, "no")
        else:
            txn.delete_entry("rule:x", "forget", tombstone=True)


def made(home):
    return " ".join(one.content for one in summaries(home)).lower()


@pytest.mark.deep
@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("text", [SAID, LIKE])
def test_a_summary_is_made_of_the_rest(told, text, reject):
    bury(told, text, reject=reject)
    report = run(told)
    assert report.made
    assert not report.failed
    assert "mock" not in made(told)
    assert "retry queue" in made(told)


def test_without_a_tombstone_it_is_in_there(told):
    run(told)
    assert "mock" in made(told)


def test_what_is_forgotten_elsewhere_is_no_matter_here(told):
    with open_store(told, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(Entry("rule:x", SAID, kind="rule", scopes=("other",)))
        txn.delete_entry("rule:x", "forget", tombstone=True)
    run(told)
    assert "mock" in made(told)


def test_an_agent_is_not_handed_it_and_cannot_bring_it(told):
    bury(told)
    handed = cascade.due(told, settings(), now=NOW, scopes=["app"])
    text = " ".join(item.text for item in handed.request.items)
    assert "mock" not in text
    assert "retry queue" in text

    def submit(words):
        return cascade.submit(
            told,
            settings(),
            "what-was-reported",
            words,
            ticket=handed.batch.ticket,
            producer="model",
            author=Author(Channel.CLI_AGENT),
            now=NOW,
            scopes=["app"],
        )

    with pytest.raises(Conflict, match="forgotten before"):
        submit(f"Reports came in about the retry queue. {SAID}")
    assert summaries(told) == []
    submit(f"Reports came in about the retry queue. {LIKE}")
    [one] = summaries(told)
    assert one.trust == Trust.CANDIDATE


def test_only_what_says_it_is_blanked_and_nothing_moves(home):
    bury(home)
    masked = "We dеcided: N3ver mоck the d@tabase in integration tests, use module_x.py."
    text = f"# Notes\nuser: {SAID}\n- {LIKE}\n- Deploy at ten.\n{masked}\nThen lunch."
    with open_store(home, write=False) as store:
        known = graves.load(store)
        left = known.blanked(text, ["app"])
        assert known.blanked(text, ["other"]) == text
    assert len(left) == len(text)
    said = " ".join(left.split())
    assert "ck" not in said.lower()
    assert "Deploy at ten" in said
    assert "Then lunch" in said


def test_a_short_value_is_blanked_where_it_is_a_line_of_its_own(home):
    bury(home, "hunter2hunter2")
    with open_store(home, write=False) as store:
        known = graves.load(store)
        assert known.blanked("so:\nhunter2hunter2\nand more", ["app"]).split() == [
            "so:", "and", "more",
        ]  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize(
    "prompt",
    [
        f"remember: {SAID}",
        f"Thanks. Remember: {SAID}\nNow write the parser",
        f"{'word ' * 9_000}\n{SAID}",
        LIKE,
    ],
)
def test_a_brief_quotes_no_forgotten_words_of_the_last_exchange(home, prompt):
    """Whoever forgets a rule is not told it again as what was said last."""
    fill(home, ["hello", "hi", prompt, f"Noted: {SAID}"])
    assert "mock" in brief(home)
    bury(home)
    assert "mock" not in brief(home)
    assert "[...]" in brief(home)
    assert ("parser" in brief(home)) is ("parser" in prompt)
    assert "Where the last session stopped" in brief(home)


def test_a_brief_quotes_what_is_forgotten_elsewhere(home):
    fill(home, [f"remember: {SAID}", "ok"])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_entry(Entry("rule:x", SAID, kind="rule", scopes=("other",)))
        txn.delete_entry("rule:x", "forget", tombstone=True)
    assert "mock" in brief(home)


def brief(home):
    with open_store(home, write=False) as store:
        return compose.brief_text(store, "app")


def test_a_handoff_tells_no_forgotten_words(home):
    """The card is made of messages, and those that say it keep their words."""
    fill(home, [f"Remember: {SAID}", f"Noted: {SAID}"])
    assert "mock" in card(home)
    bury(home)
    assert "mock" not in card(home)
    assert "Handoff of session s-1" in card(home)


def card(home):
    return handoff.render(handoff.card(home, project="app", now=NOW))


COMMAND = "echo We decided: never mock the database in integration tests, use module_x.py."


def fill_and_tell(home):
    """Let a session run, be told of, and leave something open; then another is begun."""
    parts = (
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": json.dumps({"command": COMMAND})},
        {"type": "tool_result", "id": "t1", "text": "fine"},
    )
    worked = [
        ("user", "please look at the integration tests"),
        ("assistant", f"{SAID} The tests run in four minutes now."),
    ]
    left = [
        ("user", "TODO: never mock the database in integration tests, use module_x.py."),
        ("assistant", "The report of the build is not yet written."),
    ]
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        for session, said in (("s-1", worked), ("s-2", left)):
            txn.put_session(Session(session, project="app", updated_at=NOW, ended_at=NOW))
            messages = [
                Message(session, f"{session}-{n}", role, text, NOW, parts=parts if n == 1 else ())
                for n, (role, text) in enumerate(said)
            ]
            txn.put_messages(session, messages, "app")
    episodes.run(home, settings(), now=NOW + timedelta(hours=2))


def test_what_was_made_before_a_forgetting_tells_no_forgotten_words_after_it(home):
    """Episodes, open threads and commands: the card and the brief quote them unasked."""
    fill_and_tell(home)
    told = handoff.card(home, project="app", session_id="s-1", now=NOW + timedelta(hours=3))
    for part in ("so_far", "earlier", "commands"):
        assert any("mock" in line.text for line in getattr(told, part)), part
    assert "Left open: TODO: never mock" in brief(home)

    bury(home, SAID)

    told = handoff.card(home, project="app", session_id="s-1", now=NOW + timedelta(hours=3))
    assert "mock" not in handoff.render(told)
    assert any("report of the build" in line.text for line in told.earlier)
    assert "mock" not in brief(home)
    assert "Left open: The report of the build is not yet written." in brief(home)

"""What a session's agent is asked to judge: what is due, nothing else, and each thing once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hypatia_mem.capture import triggers
from hypatia_mem.config import set_value
from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory import curate
from hypatia_mem.memory.extract import offering, refining, running
from hypatia_mem.memory.summarise.protocol import SummaryFailed
from hypatia_mem.model import Author, Channel, Session, Trust
from hypatia_mem.store import lessons
from hypatia_mem.store.connection import open_store
from tests.memory.test_extract import BUG, CHAT, DESIGN, say
from tests.memory.test_extract_model import DECIDED, GOOD, LIE

NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
WORKER = Author(Channel.WORKER)
AGENT = Author(Channel.CLI_AGENT, producer="claude-code")


def work(home, said, *, minutes=10, session="s1", scope="app", ended=False):
    """Store what was said just now, and do what the worker does then."""
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session(session, project=scope))
    say(home, said, session=session, scope=scope, at=NOW - timedelta(minutes=minutes), ended=ended)
    running.run(home, now=NOW)
    curate.refresh(home)


def told(home, session="s1", *, at_end=False):
    return triggers.due(str(home), session, at_end=at_end)


def units(home, scope="app"):
    with open_store(home, write=False) as store:
        return lessons.known_units(store, [scope])


def submit(home, target, text, author=AGENT):
    return refining.submit(home, target, text, producer="agent:x", author=author, now=NOW)


def test_the_line_names_the_unit_its_kind_its_messages_and_how_to_hand_it_in(home):
    work(home, (*BUG, *DESIGN))
    (unit,) = units(home)
    assert told(home) == [
        f"[hypatia-memory] Due: {unit.name} (bug-fix, msg-s1-1 to msg-s1-3)",
        "[hypatia-memory] Each: hypatia-mem extract due NAME, "
        "then hypatia-mem extract submit NAME -d -",
    ]


def test_it_is_told_once_and_what_comes_later_on_its_own(home):
    work(home, (*BUG, *DESIGN))
    assert len(told(home)) == 2
    curate.refresh(home)
    assert told(home) == []
    work(home, (("user", "another question: how do I rotate the nginx logs in /etc/nginx?"),
                ("assistant", "Use logrotate with copytruncate.")), minutes=1)  # fmt: skip
    (due, _) = told(home)
    assert "design-decision" in due


@pytest.mark.parametrize("said", [CHAT, BUG])
def test_nothing_is_due_while_nothing_is_finished(home, said):
    work(home, said)
    assert told(home) == []


def test_the_end_names_the_work_at_hand_and_what_to_do_with_it(home):
    work(home, BUG)
    assert told(home, at_end=True) == [
        "[hypatia-memory] Due: s1:1-5 (bug-fix, msg-s1-1 to msg-s1-5, nothing kept yet)",
        "[hypatia-memory] hypatia-mem extract due s1:1-5, "
        "then hypatia-mem extract submit s1:1-5 -d -",
    ]


def test_units_like_it_are_named_to_be_compared_with(home):
    say(home, BUG, session="s0", at=NOW - timedelta(days=3))
    running.run(home, now=NOW - timedelta(days=2))
    (old,) = units(home)
    changed = [(role, text.replace("when the cookie has expired", "for a revoked refresh grant")
                .replace("raises AuthExpired", "logs a LoginStale warning")) for role, text in BUG]  # fmt: skip
    work(home, (*changed, *DESIGN))
    assert f"; compare {old.name})" in told(home)[0]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("key", "value", "asked"),
    [
        ("summary_by", "extractive", True),
        ("summary_by", "agent", True),
        ("summary_by", "off", True),
        ("summary_by", "anthropic", False),
        ("summary_by", "claude-cli", False),
        ("extract_by", "extractive", False),
        ("extract_by", "off", False),
        ("extract_every", "0", False),
    ],
)
def test_who_is_asked(home, key, value, asked):
    """The agent, unless a model does it, or nobody is to."""
    work(home, (*BUG, *DESIGN))
    set_value(home, key, value)
    curate.refresh(home)
    assert bool(told(home)) is asked
    conf = dict(line.split("=", 1) for line in (home / "hook.conf").read_text().splitlines())
    by_nobody_else = key == "extract_by" and value == "extractive"
    assert (conf["extract_every"] != "0") is (asked or by_nobody_else)


@pytest.mark.deep
def test_a_session_that_is_over_is_asked_nothing_and_another_one_nothing_of_it(home):
    work(home, (*BUG, *DESIGN))
    work(home, CHAT, session="s2")
    assert told(home, "s2") == []
    work(home, CHAT, ended=True, minutes=1)
    assert told(home) == []
    assert list((home / "briefs").glob("*.due")) == []


def test_nothing_stays_of_what_was_forgotten(home):
    """Neither in what is due nor in what was told."""
    work(home, (*BUG, *DESIGN))
    (unit,) = units(home)
    name = unit.name.encode()

    def files():
        return [path for path in (home / "briefs").iterdir() if name in path.read_bytes()]

    assert [path.suffix for path in files()] == [".due"]
    told(home)
    assert [path.suffix for path in files()] == [".told"]
    curate.forget(home, "x", scope="app", ids=[unit.name], author=AGENT, now=NOW)
    assert files() == []
    assert (home / "briefs" / "s1.told").read_text() == "3\n"


def test_of_a_long_piece_an_agent_is_shown_the_beginning_and_the_end(home):
    """What it reads does not fill its window."""
    middle = [("assistant", f"Step {n}: " + "looked at the module again. " * 90) for n in range(80)]
    work(home, (BUG[0], *middle, *BUG[1:]), minutes=200)
    (unit,) = units(home)
    shown = offering.offer(home, unit.name)
    text = "\n".join(one["text"] for one in shown.said)
    assert len(text) < 90_000
    assert "find out why" in text
    assert "raises AuthExpired instead" in text
    assert "Step 40:" not in text


# --- what is handed in ----------------------------------------------------------------------------


def test_what_the_agent_judged_takes_the_place_of_the_sentences(home):
    work(home, (*BUG, *DESIGN))
    (unit,) = units(home)

    kept = submit(home, unit.name, GOOD)

    (found,) = units(home)
    assert (kept.name, kept.relation) == (unit.name, "refined")
    assert "## Context\n- the login test fails in src/auth/session.py" in found.content
    assert found.version == 2
    with open_store(home, write=False) as store:
        assert store.producer_of(unit.name).startswith("agent:x#")
        links = {one.object for one in store.statements_of(unit.name)}
    assert links == {"work-unit", "msg-s1-1", "msg-s1-2", "msg-s1-3"}
    curate.refresh(home)
    assert told(home) == []
    assert offering.offers(home, ["app"], now=NOW, most=9) == []


def test_the_work_at_hand_is_handed_in_by_its_turns_and_not_found_again(home):
    work(home, DESIGN)
    kept = submit(home, "s1:1-4", DECIDED)
    assert (kept.relation, kept.trust) == ("new", "asserted")
    assert kept.name.endswith("-postgres-for-the-job-queue")
    running.run(home, now=NOW + timedelta(hours=5))
    assert [one.name for one in units(home)] == [kept.name]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("it was the cookie", SummaryFailed, "does not begin with KIND"),
        ("KIND: trivial", UsageError, "not handed in"),
        (GOOD + LIE, SummaryFailed, "no message says: The vendor shipped Kafka"),
        (GOOD.split("## Fix")[0], SummaryFailed, "not sure enough"),
        (GOOD.replace("SURE: yes", "SURE: no"), SummaryFailed, "not sure enough"),
        (GOOD.replace("## Fix", "## Fixes"), SummaryFailed, "is no heading of a bug-fix"),
        ("", SummaryFailed, "nothing"),
    ],
)
def test_what_may_not_be_handed_in_changes_nothing(home, text, error, says):
    work(home, (*BUG, *DESIGN))
    (unit,) = units(home)
    with pytest.raises(error, match=says):
        submit(home, unit.name, text)
    assert units(home) == [unit]


@pytest.mark.deep
@pytest.mark.parametrize("target", ["wu-2026-01-01-nothing", "s1:90-99", "s9:1-2", "rule:x"])
def test_what_is_not_there_is_said_so(home, target):
    work(home, BUG)
    with pytest.raises(NotFound):
        submit(home, target, GOOD)


def test_an_agent_takes_in_no_candidate(home):
    """It may word it better; that it holds is for a person to say."""
    doubtful = tuple((role, text) for role, text in BUG if not text.startswith("Fixed"))
    work(home, (*doubtful, *DESIGN))
    (unit,) = units(home)
    assert unit.trust == Trust.CANDIDATE
    text = "KIND: bug-fix\nTITLE: x y z\n## Root Cause\n- refresh_token() returns None\n"
    submit(home, unit.name, text)
    (found,) = units(home)
    assert found.trust == Trust.CANDIDATE
    assert found.content == "## Root Cause\n- refresh_token() returns None"


@pytest.mark.deep
def test_what_was_forgotten_does_not_come_back_by_handing_it_in(home):
    work(home, (*BUG, *DESIGN))
    (unit,) = units(home)
    person = Author(Channel.CLI_PERSON)
    submit(home, unit.name, GOOD)
    curate.forget(home, "x", scope="app", ids=[unit.name], author=person, now=NOW)
    with pytest.raises((Conflict, NotFound)):
        submit(home, "s1:1-3", GOOD)
    assert all(one.trust == Trust.CANDIDATE for one in units(home) if "AuthExpired" in one.content)

"""What sessions were about is told once, from what is there, and follows it wherever it goes."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.config import Settings, set_value
from hypatia_mem.memory import curate, erase, history, propagation
from hypatia_mem.memory.episodes import making
from hypatia_mem.memory.episodes.finding import Line
from hypatia_mem.memory.episodes.synopsis import MAX_SENTENCES, MAX_WORDS, synopsis
from hypatia_mem.memory.extract.topics import Said
from hypatia_mem.memory.sharing import exporting, importing
from hypatia_mem.memory.summarise import choosing
from hypatia_mem.memory.summarise.protocol import Draft, FailureKind, Sentence, Span, SummaryFailed
from hypatia_mem.store import episodes as stored
from hypatia_mem.store.connection import open_store
from tests.memory.episodes_kit import (
    DECIDED,
    LEFT_OPEN,
    NOW,
    PERSON,
    SETTINGS,
    after,
    read,
    run,
    say,
    sources,
    talk,
    threads,
    todo,
)
from tests.memory.model_server import ModelServer, Step

# --- when -----------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("exchanges", "idle", "ended", "ranges"),
    [
        (3, 5, False, []),  # it may go on
        (3, 29, False, []),
        (3, 30, False, [(1, 6)]),  # nothing was said for thirty seconds
        (3, 5, True, [(1, 6)]),
        (10, 5, False, []),  # the tenth may go on
        (11, 5, False, [(1, 20)]),
        (25, 5, False, [(1, 20), (21, 40)]),
        (25, 30, False, [(1, 20), (21, 40), (41, 50)]),
        (0, 3600, True, []),
    ],
)
def test_every_ten_exchanges_or_after_thirty_seconds(home, exchanges, idle, ended, ranges):
    last = (exchanges - 1) * 60 + 1
    say(home, talk(exchanges), ended=after(last + 1) if ended else None)

    made = run(home, after(last + idle)).episodes

    assert made == [f"episode-s1-{first}-{to}" for first, to in ranges]
    assert run(home, after(last + idle)).episodes == []  # each turn once


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (Settings(episode_turns=2), 1),
        (Settings(episode_idle_seconds=5), 1),
        (Settings(episodes_by="off"), 0),
        (SETTINGS, 0),
    ],
)
def test_the_settings_say_when(home, settings, count):
    say(home, talk(3))

    assert len(run(home, after(130), settings).episodes) == count


def test_of_greetings_there_is_no_episode(home):
    said = (("user", "hi", 0), ("assistant", "Hello!", 1), ("user", "thanks", 2))
    say(home, said, ended=after(3))

    assert run(home, after(60)).episodes == []
    say(home, talk(1), "s2", ended=after(9))
    assert run(home, after(60)).episodes == ["episode-s2-1-2"]


def test_what_comes_later_is_told_of_later(home):
    say(home, talk(2))
    assert run(home, after(200)).episodes == ["episode-s1-1-4"]

    say(home, talk(2, start=3), at=after(300))

    assert run(home, after(600)).episodes == ["episode-s1-5-8"]


# --- what -----------------------------------------------------------------------------------------


def test_an_episode_is_typed_and_every_line_leads_to_its_message(home):
    at = todo(home)
    (name,) = run(home, at).episodes

    (entry,) = read(home)
    row = making.row_of(entry, sources(home, name))

    assert (entry.kind, entry.tags, entry.scopes) == ("episode", ("episode",), ("app",))
    assert (row["session_id"], row["turn"]) == ("s1", 2)
    assert (entry.valid_from, entry.valid_to) == (NOW, after(9))  # what it tells may not hold now
    assert row["decisions"] == [{"text": DECIDED, "turn": 2}]
    assert row["open_threads"] == [{"text": LEFT_OPEN, "turn": 2}]
    assert row["files"] == row["failing"] == row["commands"] == []
    assert row["summary"]
    assert row["created_at"] == "2026-11-30T10:00:09Z"
    turns = {
        line.turn for part in making.PARTS for line in getattr(making.parse(entry.content), part)
    }
    assert {f"msg-s1-{turn}" for turn in turns} <= set(row["messages"]) <= {"msg-s1-1", "msg-s1-2"}


def test_no_word_of_an_episode_is_made_up(home):
    say(home, talk(10), ended=after(700))
    run(home, after(800))

    with open_store(home, write=False) as store:
        said = " ".join(" ".join(one.text.split()) for one in store.messages("s1"))
    for entry in read(home):
        told = making.parse(entry.content)
        assert told.synopsis
        for line in (*told.synopsis, *told.decisions, *told.open_threads):
            assert line.text in said


SAID = [
    Said(f"msg-s1-{n}", n, role, text, after(at)) for n, (role, text, at) in enumerate(talk(9), 1)
]


class Scripted:
    """A model that answers as it was told to."""

    producer, digest, window = "scripted", "0" * 12, 10_000

    def __init__(self, *sentences, failure=None):
        self.sentences, self.failure, self.asked = sentences, failure, 0

    def summarise(self, request):
        self.asked += 1
        assert request.max_words == MAX_WORDS
        if self.failure is not None:
            raise SummaryFailed(self.failure, "scripted")
        return Draft(tuple(self.sentences))


def tied(text, number=1):
    return Sentence(text, (Span(f"msg-s1-{number}", 0, 5),))


@pytest.mark.parametrize(
    ("model", "lines", "failed"),
    [
        (Scripted(tied("One."), tied("Two.", 3)), [Line("One.", 1), Line("Two.", 3)], None),
        (Scripted(*(tied(f"{n}.", n) for n in range(1, 9))), [Line(f"{n}.", n) for n in (1, 2, 3)], None),
        (Scripted(tied("One."), Sentence("A lie.")), [Line("One.", 1)], None),
        (Scripted(Sentence("A lie.")), None, FailureKind.EMPTY),
        (Scripted(tied("  ")), None, FailureKind.EMPTY),
        (Scripted(), None, FailureKind.EMPTY),
        (Scripted(failure=FailureKind.UNREACHABLE), None, FailureKind.UNREACHABLE),
        (Scripted(failure=FailureKind.CAPPED), None, FailureKind.CAPPED),
        (None, None, None),
    ],
)  # fmt: skip
def test_two_or_three_sentences_by_the_model_or_without_it(model, lines, failed):
    """An empty answer, a lie or a failure gives the extractive sentences, and says why."""
    found = synopsis(SAID, model, {})

    assert (found.failed and found.failed.failure) == failed
    if lines is not None:
        assert list(found.lines) == lines
        return
    assert 1 <= len(found.lines) <= MAX_SENTENCES
    assert all(line.text in " ".join(one.text for one in SAID) for line in found.lines)
    assert sum(len(line.text.split()) for line in found.lines) <= MAX_WORDS


def test_a_long_sentence_is_cut():
    (line,) = synopsis(SAID, Scripted(tied("long " * 500)), {}).lines

    assert len(line.text) <= 240


@pytest.mark.deep
@pytest.mark.parametrize(
    ("settings", "at", "asked"),
    [
        (Settings(summary_by="anthropic"), 700, 1),
        (Settings(summary_by="anthropic", episodes_by="extractive"), 700, 0),
        (Settings(summary_by="agent"), 700, 0),
        (Settings(summary_by="anthropic"), 700 + 24 * 3600, 0),  # of what is old no model is asked
    ],
)
def test_a_model_is_asked_once_where_one_is_chosen(home, monkeypatch, settings, at, asked):
    model = Scripted(tied("What it was about."))
    monkeypatch.setattr(choosing, "choose", lambda *_, **__: model)
    say(home, talk(10), ended=after(650))

    run(home, after(at), settings)

    assert model.asked == asked
    (entry,) = read(home)
    assert ("What it was about." in entry.content) is bool(asked)
    with open_store(home, write=False) as store:
        assert store.producer_of(entry.name).startswith("scripted" if asked else "extractive-1")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Step("NAME: parser\n- Module 1 reads src/part_1.py and returns its rows.\n- It is on Mars."), True),
        (Step(status=500), False),
        (Step("<thinking>hm</thinking>"), False),
        (Step("It is on Mars, and nobody ever said so."), False),
    ],
)  # fmt: skip
def test_the_real_way_to_a_model(home, monkeypatch, step, told):
    """Through the meter and the API on loopback: one call, what it made up is nowhere."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    server = ModelServer(steps=[step]).start()
    say(home, talk(10), ended=after(650))
    try:
        run(home, after(700), Settings(summary_by="anthropic", anthropic_url=server.url))
    finally:
        server.stop()

    (entry,) = read(home)
    with open_store(home, write=False) as store:
        producer = store.producer_of(entry.name)
    assert producer.startswith("anthropic:" if told else "extractive-1#")
    assert producer.endswith(" for anthropic") is not told
    assert "Mars" not in entry.content
    assert making.parse(entry.content).synopsis
    asked = [one for one in server.asked if one.path.endswith("/messages")]
    assert len(asked) == 1
    assert "please look at module number 1 of the parser" in asked[0].text


def test_a_model_that_is_out_of_reach_is_asked_once_in_a_pass(home, monkeypatch):
    model = Scripted(failure=FailureKind.UNREACHABLE)
    monkeypatch.setattr(choosing, "choose", lambda *_, **__: model)
    say(home, talk(30), ended=after(2000))

    assert len(run(home, after(2000), Settings(summary_by="anthropic")).episodes) == 3
    assert model.asked == 1
    with open_store(home, write=False) as store:
        assert store.producer_of("episode-s1-1-20").endswith(" for anthropic")


# --- it follows its sources -----------------------------------------------------------------------


def gone(home, how, name):
    """Take a message away, one way or another."""
    if how == "delete":
        propagation.delete(home, [name], scopes=["app"], author=PERSON, now=after(7200))
    elif how == "forget":
        curate.forget(home, "", scope="app", ids=[name], author=PERSON, now=after(7200))
    else:
        changes = {
            "suppress": {"suppressed": True},
            "edit": {"content": "## Role\nassistant\n\n## Content\nx"},
        }
        with curate.changing(home, PERSON, after(7200)) as (_, txn):
            txn.update_entry(name, **changes[how])


@pytest.mark.deep
@pytest.mark.parametrize("how", ["delete", "forget", "suppress", "edit"])
def test_an_episode_is_told_anew_without_what_is_gone(home, how):
    say(home, talk(2))
    say(
        home,
        (("user", "and the queue?", 0), ("assistant", f"{DECIDED} {LEFT_OPEN}", 1)),
        at=after(200),
    )
    at = after(700)
    (name,) = run(home, at).episodes
    assert DECIDED in read(home)[0].content

    gone(home, how, "msg-s1-6")

    assert read(home) == []
    again = run(home, after(7300), only_owed=True).episodes
    (entry,) = read(home)
    assert again == [entry.name]
    # The first one can be brought back under its name, unless it was forgotten.
    assert entry.name == (name if how == "forget" else f"{name}-2")
    assert DECIDED not in entry.content
    assert "module number 2" in entry.content
    assert set(sources(home, entry.name)) <= {f"msg-s1-{n}" for n in range(1, 7)}
    assert run(home, after(7400)).episodes == []


@pytest.mark.deep
def test_a_deletion_that_is_taken_back_brings_the_episode_back(home):
    say(home, talk(2))
    (name,) = run(home, after(100)).episodes
    blast = propagation.delete(home, ["msg-s1-2"], scopes=["app"], author=PERSON, now=after(7200))
    assert run(home, after(7300)).episodes == [f"{name}-2"]

    history.undo(home, blast.op_id, author=PERSON, now=after(7400))
    run(home, after(7500))

    assert [one.name for one in read(home)] == [name]


def test_with_all_its_sources_gone_there_is_none(home):
    say(home, talk(1))
    run(home, after(60))

    propagation.delete(
        home, ["msg-s1-1", "msg-s1-2"], scopes=["app"], author=PERSON, now=after(7200)
    )

    assert read(home) == []
    assert run(home, after(7300)).episodes == []
    with open_store(home, write=False) as store:
        assert stored.owed(store) == []


def test_an_episode_that_a_person_deleted_is_not_made_again(home):
    say(home, talk(1))
    (name,) = run(home, after(60)).episodes

    propagation.delete(home, [name], scopes=["app"], author=PERSON, now=after(7200))

    assert run(home, after(7300)).episodes == []
    assert read(home) == []


def test_what_was_forgotten_is_not_told(home):
    """A memory that was forgotten before the turns that say it were told of."""
    secret = "the zanzibarquux password is kept in the green vault of the office"
    curate.remember(home, secret, kind="memory", scope="app", author=PERSON, now=NOW)
    say(
        home,
        (*talk(1), ("user", f"note that {secret}.", 70), ("assistant", f"Decided: {secret}.", 75)),
    )
    curate.forget(home, "zanzibarquux password", scope="app", author=PERSON, now=after(80))

    run(home, after(7200))

    told = [one.content for one in (*read(home), *read(home, stored.threads, at=after(7200)))]
    assert told
    assert not any("zanzibarquux" in one for one in told)


def test_what_is_erased_leaves_no_byte_in_an_episode_and_the_rest_is_told_anew(home):
    secret = "the zanzibarquux broker listens on port 4711 behind the green door"
    at = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=5)
    curate.remember(home, secret, kind="memory", scope="app", author=PERSON, now=at)
    said = (
        ("user", "where does it listen?", 0),
        ("assistant", f"We decided: {secret}. The test of {secret} is not yet done.", 5),
        ("user", "and where is the printer of the office?", 10),
        ("assistant", "The printer is on the second floor, see docs/printers.md.", 11),
    )
    say(home, said, at=at, ended=at + timedelta(minutes=2))
    run(home, at + timedelta(hours=3))
    assert secret in read(home)[0].content + "".join(threads(home, at))

    plan = erase.plan_erase(home, "zanzibarquux broker", scope="app")
    erase.erase(home, plan, settings=SETTINGS, author=PERSON, now=at + timedelta(hours=4))

    held = [
        path for path in home.rglob("*") if path.is_file() and b"zanzibarquux" in path.read_bytes()
    ]
    assert held == []
    assert {"episode-s1-1-4", "thread-s1-2"} <= set(plan.summaries)
    (entry,) = read(home)
    assert "second floor" in entry.content
    assert threads(home, at) == []


def test_an_episode_is_of_its_project_alone(home):
    say(home, talk(1), "s1", scope="app")
    say(home, talk(1), "s2", scope="other")

    run(home, after(60))

    assert [one.session_id for one in read(home)] == ["s1"]
    assert [one.session_id for one in read(home, scopes=["other"])] == ["s2"]
    assert run(home, after(90), scopes=["other"]).episodes == []


def test_making_one_can_be_undone_and_it_is_not_made_again(home):
    say(home, talk(1))
    run(home, after(60))
    with open_store(home, write=False) as store:
        op = store.ledger(limit=1)[0]["op_id"]

    history.undo(home, op, author=PERSON, now=after(7200))

    assert read(home) == []
    assert run(home, after(7300)).episodes == []


@pytest.mark.deep
def test_a_copy_of_the_memory_has_them_and_makes_none_twice(home, tmp_path):
    at = todo(home)
    run(home, at)
    with curate.changing(home, PERSON, at) as (_, txn):
        txn.update_entry("thread-s1-2", valid_to=at)
    exporting.export_shelf(home, tmp_path / "export")
    other = tmp_path / "other"
    paths.ensure_home(str(other))

    importing.import_shelf(other, tmp_path / "export", author=PERSON, now=at)
    found = run(other, at + timedelta(hours=1))

    assert not found.worked
    assert [one.name for one in read(other)] == ["episode-s1-1-2"]
    assert threads(other, at) == []
    assert threads(other, at, closed=True) == [LEFT_OPEN]


# --- killed ---------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
sys.path.insert(0, {repository!r})
from hypatia_mem.config import Settings
from hypatia_mem.memory.episodes import running
from hypatia_mem.store import episodes, gateway

point, number = sys.argv[2], int(sys.argv[3])
owner, name = {{
    "made": (running._Pass, "_made"),
    "entry": (gateway.Transaction, "put_entry"),
    "links": (episodes, "put"),
    "cursor": (gateway.Transaction, "set_cursor"),
    "ledger": (gateway.Transaction, "finish"),
    "stored": (running._Pass, "_store"),
}}[point]
real, calls = getattr(owner, name), 0

def wrapped(*args, **kwargs):
    global calls
    result = real(*args, **kwargs)
    calls += 1
    if calls == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, wrapped)
running.run(Path(sys.argv[1]), Settings(), now=datetime(2026, 12, 1))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_anywhere_it_ends_as_if_it_had_not_been(home):
    """kill -9 after each step of the first and the second episode: each turn is told of once."""
    say(home, talk(25), ended=after(3000))
    say(home, (("user", "and the queue?", 0), ("assistant", LEFT_OPEN, 1)), "s2", ended=after(3000))
    code = CHILD.format(repository=str(Path(__file__).parents[2]))
    kills = 0
    for point, number in (("made", 1), ("entry", 1), ("links", 1), ("cursor", 1), ("ledger", 1),
                          ("stored", 1), ("entry", 1), ("ledger", 2)):  # fmt: skip
        command = [sys.executable, "-c", code, str(home), point, str(number)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        kills += done.returncode != 0
        made = [one.name for one in read(home)]
        assert len(made) == len(set(made))
        assert all(sources(home, name) for name in made)
    run(home, datetime(2026, 12, 1))

    assert kills >= 5
    assert {one.name for one in read(home)} == {
        "episode-s1-1-20", "episode-s1-21-40", "episode-s1-41-50", "episode-s2-1-2",
    }  # fmt: skip
    assert LEFT_OPEN in threads(home, datetime(2026, 12, 1))
    assert len(threads(home, datetime(2026, 12, 1))) == len(
        set(threads(home, datetime(2026, 12, 1)))
    )
    assert not run(home, datetime(2026, 12, 1)).worked


@pytest.mark.deep
def test_the_worker_tells_of_a_session_that_ended(home):
    from hypatia_mem import worker

    at = datetime.now() - timedelta(hours=3)
    say(home, talk(11), at=at, ended=at + timedelta(hours=1))
    set_value(home, "worker_idle_seconds", "0")

    assert worker.run(home) == 0

    assert {one.name for one in read(home)} == {"episode-s1-1-20", "episode-s1-21-22"}

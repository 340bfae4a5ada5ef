"""An export is a copy: what was forgotten since comes back by it in no shelf that can know."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

STAGING = "never mock the staging database on tuesdays"
CHANGELOG = "always write the changelog in french please"
PORT = "the blue broker listens on port 4711 behind the second proxy"
LIKE = "the blue broker listens on port 4711 behind the third proxy"


@pytest.fixture
def person(cli, monkeypatch):
    """A command line at which a person sits."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    return cli


@pytest.fixture
def old(person, tmp_path, home):
    """An export from before; another shelf, ``one``, is connected."""
    person("remember", STAGING)
    person("remember", CHANGELOG)
    person("knowledge-create", "broker", "-d", PORT)
    person("knowledge-create", "proxy", "-d", LIKE)
    person("statement-create", "broker", "stands_behind", "proxy")
    now = context.now() - timedelta(days=2)  # no session that runs stands on it
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        txn.put_session(Session("s-1", project="app", updated_at=now))
        said = [Message("s-1", "u1", "user", STAGING, now), Message("s-1", "u2", "user", "hi", now)]
        txn.put_messages("s-1", said, "app")
    assert person("export", "default", str(tmp_path / "old")).code == 0
    person("connect", str(tmp_path / "one"))
    return str(tmp_path / "old")


def told(person, *more):
    found = person("query", '["$knowledge"]', *more)
    assert found.code == 0
    return found.out + person("rules", *more).out


@pytest.mark.deep
def test_what_was_forgotten_here_does_not_come_into_another_shelf(person, old):
    person("forget", "staging database tuesdays")
    person("forget", "--id", "broker")

    done = person("import", old, "-s", "one", "--json")

    assert done.code == 0, done.err
    assert done.json["refused_elsewhere"]["default"] >= 2
    assert done.json["unasked"] == {}
    there = told(person, "-s", "one")
    assert "rule:never-mock" not in there
    assert PORT not in there
    assert "stands_behind" not in person("query", '["$statement"]', "-s", "one").out
    assert CHANGELOG in there  # the twins
    assert "hi" in person("show", "s-1", "-s", "one").out
    assert STAGING in person("show", "s-1", "-s", "one").out  # evidence of a session is no memory
    text = person("import", old, "-s", "one").err
    assert "goes into an empty shelf" in text


@pytest.mark.deep
def test_it_stays_away_there_from_then_on(person, old, monkeypatch):
    """Under the shelf's own key: nothing of this memory's keys is in it."""
    person("forget", "staging database tuesdays")
    person("import", old, "-s", "one")
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    refused = person("remember", STAGING.upper(), "-s", "one")
    assert (refused.code, "forgotten before" in refused.err) == (1, True)
    assert person("remember", "never mock the clock", "-s", "one").code == 0
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    assert person("remember", STAGING, "-s", "one").code == 0  # a person means what they say


@pytest.mark.deep
def test_what_is_like_it_waits_for_a_review(person, old):
    person("forget", "--id", "broker")
    person("import", old, "-s", "one")
    assert LIKE not in told(person, "-s", "one")
    queue = person("review", "-s", "one").out
    assert "proxy" in queue
    assert "in shelf 'default'" in queue


@pytest.mark.deep
def test_nothing_was_forgotten_so_everything_comes_in(person, old):
    done = person("import", old, "-s", "one", "--json").json
    assert (done["refused"], done["refused_elsewhere"]) == (0, {})
    assert all(words in told(person, "-s", "one") for words in (STAGING, CHANGELOG, PORT, LIKE))


@pytest.mark.deep
def test_of_what_was_only_rejected_the_rejection_comes_along(person, old, tmp_path):
    """Also when it was rejected in another shelf: what was asserted before does not come back."""
    name = next(row["name"] for row in person("rules", "--json").json if row["content"] == STAGING)
    person("reject", name, "--reason", "it is wednesday now")
    person("dispute", "proxy", "--reason", "heard otherwise")
    person("import", old, "-s", "one")
    assert STAGING not in person("rules", "-s", "one").out
    assert CHANGELOG in person("rules", "-s", "one").out

    person("export", "default", str(tmp_path / "new"))
    person("connect", str(tmp_path / "two"))
    done = person("import", str(tmp_path / "new"), "-s", "two", "--json").json
    assert done["refused"] == 0
    assert "it is wednesday now" in person("trust", name, "-s", "two").out
    assert "heard otherwise" in person("trust", "proxy", "-s", "two").out
    assert STAGING not in person("rules", "-s", "two").out
    assert person("accept", name, "-s", "two").code == 1  # it is kept away there too

    person("forget", "--id", name)
    person("connect", str(tmp_path / "three"))
    done = person("import", str(tmp_path / "new"), "-s", "three", "--json").json
    assert done["refused_elsewhere"] == {"default": 1}
    assert "nothing is called" in person("trust", name, "-s", "three").err


@pytest.mark.deep
@pytest.mark.parametrize("lost", ["folder", "file", "key"])
def test_a_shelf_that_cannot_be_asked_is_told(person, old, tmp_path, lost):
    """What it has forgotten may come in: the person has to know. The others are asked."""
    person("forget", "staging database tuesdays")
    person("connect", str(tmp_path / "gone"))
    person("remember", CHANGELOG, "-s", "gone")
    person("forget", "changelog french please", "-s", "gone")
    if lost == "folder":
        shutil.rmtree(tmp_path / "gone")
    elif lost == "file":
        (tmp_path / "gone" / "forgotten").write_text("mark\n{")
    else:
        (tmp_path / "gone" / "key").unlink()
        shutil.rmtree(tmp_path / "gone" / "keys")
    done = person("import", old, "-s", "one")
    assert done.code == 0
    assert "Shelf 'gone' could not be asked what was forgotten there" in done.err
    assert "forgotten in shelf 'default'" in done.out
    if lost == "key":
        assert not (tmp_path / "gone" / "key").exists()  # asking makes no new one


@pytest.mark.deep
def test_a_shared_copy_holds_what_reads_return_and_nothing_else(person, old, tmp_path):
    for name in ("candidate", "suppressed", "rejected", "plain", "disputed"):
        person("knowledge-create", name, "-d", f"the {name} words")
    person("statement-create", "plain", "knows", "disputed")
    person("statement-create", "plain", "knows", "suppressed")
    person("statement-create", "plain", "knows", "wrongly")
    person("trust", "candidate", "candidate")
    person("suppress", "suppressed")
    person("suppress", "msg-s-1-2")
    person("reject", "rejected", "--reason", "because of the bluebird")
    person("reject", "plain", "knows", "wrongly", "--reason", "because of the bluebird")
    person("dispute", "disputed", "--reason", "because of the bluebird")

    person("export", "default", str(tmp_path / "shared"), "--share")

    everything = "".join(p.read_text() for p in (tmp_path / "shared").iterdir() if p.is_file())
    for gone in ("candidate", "suppressed", "rejected", "wrongly", "bluebird", '"hi"', "u2"):
        assert gone not in everything.replace('"suppressed":false', ""), gone
    for kept in ("the plain words", "the disputed words", CHANGELOG, STAGING, "u1"):
        assert kept in everything, kept
    whole = json.loads((tmp_path / "shared" / "manifest.json").read_text())["files"]
    assert whole["statement.jsonl"]["rows"] == 1 + 2 + 1  # is_a twice, stands_behind, knows
    person("export", "default", str(tmp_path / "own"))
    own = "".join(p.read_text("utf-8", "replace") for p in (tmp_path / "own").glob("*.jsonl"))
    assert all(word in own for word in ("candidate words", "rejected words", "bluebird"))

    done = person("import", str(tmp_path / "shared"), "-s", "one")
    assert done.code == 0, done.err
    assert person("knowledge-get", "plain", "-s", "one").code == 0


def test_what_is_forgotten_everywhere_goes_from_every_connected_shelf(
    person, old, tmp_path, monkeypatch
):
    """Its copies there, in whatever spelling; the rest stays, and what cannot be opened is told."""
    person("import", old, "-s", "one")
    person("connect", str(tmp_path / "two"))
    person("remember", STAGING.upper(), "-s", "two")
    person("remember", CHANGELOG, "-s", "two")
    person("connect", str(tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    refused = person("forget", "staging database tuesdays", "--everywhere")
    assert (refused.code, "only a person can" in refused.err) == (1, True)
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)

    would = person(
        "forget", "staging database tuesdays", "--everywhere", "--dry-run", "--json"
    ).json
    assert {one["shelf"]: len(one["names"]) for one in would["shelves"]} == {
        "one": 1, "two": 1, "gone": 0
    }  # fmt: skip
    assert STAGING in person("rules", "-s", "one").out

    done = person("forget", "staging database tuesdays", "--everywhere")
    assert done.code == 0
    assert "In shelf 'gone': there is no memory in" in done.out
    assert not (tmp_path / "gone").exists()
    for shelf in ("default", "one", "two"):
        told_ = person("rules", "-s", shelf).out
        assert STAGING.lower() not in told_.lower(), shelf
        assert CHANGELOG in told_, shelf
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_AGENT)
    assert person("remember", STAGING, "-s", "one").code == 1

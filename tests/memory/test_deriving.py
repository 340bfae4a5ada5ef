"""Briefs and index follow what is stored, seldom while there is more, and hold nobody up."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.config import Settings
from hypatia_mem.errors import IndexUnavailable, StoreBusy
from hypatia_mem.memory import curate, deriving
from hypatia_mem.memory.intake import batch
from hypatia_mem.memory.intake import drain as intake
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import connection, search
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex

PERSON = Author(Channel.CLI_PERSON)
NOW = datetime(2027, 1, 15, 8, 0)


def spooled(home: Path, folder: Path, count: int, *, first: int = 0, session: str = "s-1") -> None:
    """Put prompts into the spool as the hook does."""
    for number in range(first, first + count):
        body = {
            "session_id": session, "cwd": str(folder), "prompt": f"needle number {number}",
            "prompt_id": f"p-{session}-{number}", "hook_event_name": "UserPromptSubmit",
        }  # fmt: skip
        spool.append(
            str(home), session, json.dumps(body).encode(), at_ns=1_800_000_000_000_000_000 + number
        )


def drained(drain: Drain) -> int:
    steps = 0
    while drain.step(final=True).worked:
        steps += 1
        assert steps < 100
    return steps


def hits(home: Path) -> int:
    return len(SearchIndex(home).search("needle", limit=1000))


@pytest.fixture
def derivings(monkeypatch) -> list[object]:
    made: list[object] = []
    real = deriving.derive

    def counted(home, **how):
        made.append(how["scopes"])
        return real(home, **how)

    monkeypatch.setattr(deriving, "derive", counted)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    return tmp_path / "app"


@pytest.mark.deep
def test_many_batches_are_followed_once_and_one_turn_at_once(home, folder, derivings, monkeypatch):
    monkeypatch.setattr(intake, "BATCH_RECORDS", 10)
    drain = Drain(home, Settings())
    spooled(home, folder, 60)
    assert drained(drain) >= 6
    assert len(derivings) == 2  # with the first batch, for nobody may have done it before, and last
    assert hits(home) == 60
    spooled(home, folder, 1, first=60)
    drained(drain)
    assert derivings[2:] == [{"app"}]
    assert hits(home) == 61


@pytest.mark.deep
def test_what_was_put_off_is_told_of_every_project(home, folder, tmp_path, derivings, monkeypatch):
    drain = Drain(home, Settings())
    spooled(home, folder, 1)
    drained(drain)
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(intake, "BATCH_RECORDS", 1)
    spooled(home, folder, 2, first=1)
    spooled(home, tmp_path / "other", 2, session="s-2")
    drained(drain)
    assert derivings[-1] == {"app", "other"}
    told = [
        json.loads(path.read_text())["hookSpecificOutput"]["additionalContext"]
        for path in (home / "briefs").glob("*.json")
    ]
    assert sum("needle number 2" in text for text in told) == 1
    assert sum("needle number 1" in text for text in told) == 1


def test_a_failure_is_tried_again_later_and_keeps_no_worker_busy(
    home, folder, derivings, monkeypatch
):
    now = [100.0]
    monkeypatch.setattr(intake.time, "monotonic", lambda: now[0])
    real = deriving.derive
    monkeypatch.setattr(deriving, "derive", _failing)
    drain = Drain(home, Settings())
    spooled(home, folder, 1)
    assert drained(drain) <= 2
    monkeypatch.setattr(deriving, "derive", real)
    assert not drain.step(final=True).worked
    with pytest.raises(IndexUnavailable):
        hits(home)
    now[0] += 10
    assert drain.step(final=True).worked
    assert hits(home) == 1
    assert not drain.step(final=True).worked


def _failing(home, **how):
    raise search.IndexBusy("busy")


@pytest.mark.deep
def test_new_turns_go_before_the_rest_of_a_long_index(home, folder, monkeypatch):
    from hypatia_mem.store import indexing

    monkeypatch.setattr(indexing, "SLICE", 5)
    drain = Drain(home, Settings())
    spooled(home, folder, 40)
    drain.step(final=True)
    drained(drain)
    SearchIndex(home).clear()
    monkeypatch.setattr(drain, "has_work", lambda: True)
    spooled(home, folder, 1, first=40)
    drain.step(final=True)
    drain._stale = {"app"}
    assert drain._derive()
    assert 0 < hits(home) < 41
    monkeypatch.undo()
    monkeypatch.setattr(indexing, "SLICE", 5)
    drained(drain)
    assert hits(home) == 41


def test_texts_are_redacted_before_the_store_is_held(home, folder, monkeypatch):
    held: list[bool] = []
    inside = [False]
    real = connection.lease

    @contextmanager
    def watched(home, *, write, deadline=10.0):
        with real(home, write=write, deadline=deadline):
            inside[0] = write
            yield
        inside[0] = False

    look = batch.may_hold_secret
    monkeypatch.setattr(connection, "lease", watched)
    monkeypatch.setattr(
        batch, "may_hold_secret", lambda raw: (held.append(inside[0]), look(raw))[1]
    )
    batch.redact.cache_clear()
    spooled(home, folder, 20)
    drained(Drain(home, Settings()))
    assert len(held) >= 20
    assert not any(held)


def test_forgetting_waits_for_whoever_merges_the_index(home, folder, monkeypatch):
    monkeypatch.setattr(search, "_LOCK_WAIT_SECONDS", 0.1)
    curate.remember(home, "use the needle", kind="rule", scope="app", author=PERSON, now=NOW)
    index = SearchIndex(home)
    with index._writer(index._open(create=True)[0]), pytest.raises(StoreBusy, match="search index"):
        curate.forget(home, "needle", scope="app", author=PERSON, now=NOW)
    with open_store(home, write=False) as store:
        assert len(store.rules(["app"])) == 1
    assert curate.forget(home, "needle", scope="app", author=PERSON, now=NOW).removed == 1
    assert index.search("needle") == []

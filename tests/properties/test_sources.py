"""Whatever is done in whatever order: what is live stands on what is live.

And a dry run says exactly what happens, undoing everything leads back to the start, and the
ledger's chain holds.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory import history, propagation
from hypatia_mem.memory.blast import Blast
from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store import sources
from hypatia_mem.store.connection import open_store
from tests.memory import cascade_kit as kit
from tests.system.machine import scaled

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON)
AGENT = Author(Channel.CLI_AGENT)
CONFIG = kit.settings(cascade_batch=2, cascade_max_tokens=200)
TURNS = 6

STEP = st.one_of(
    st.tuples(st.just("delete message"), st.integers(1, TURNS)),
    st.tuples(st.just("delete from"), st.integers(3, TURNS)),
    st.tuples(st.just("delete summary"), st.integers(0, 5)),
    st.tuples(st.just("edit"), st.integers(1, TURNS)),
    st.tuples(st.just("edit summary"), st.integers(0, 5)),
    st.tuples(st.just("suppress"), st.integers(1, TURNS)),
    st.tuples(st.just("show"), st.integers(1, TURNS)),
    st.tuples(st.just("move"), st.integers(1, TURNS)),
    st.tuples(st.just("forget"), st.integers(1, TURNS)),
    st.tuples(st.just("condense"), st.just(0)),
    st.tuples(st.just("lesson"), st.integers(1, TURNS)),
    st.tuples(st.just("undo"), st.just(0)),
)


class World:
    """A store with a few turns, and what has been done to it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = NOW
        self.done: list[str] = []

    def tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def do(self, verb: str, at: int) -> None:
        name = f"msg-s-1-{at}"
        if verb == "delete message":
            self._withdraw([name])
        elif verb == "delete from":
            self._onward(name)
        elif verb in ("delete summary", "edit summary"):
            made = kit.summaries(self.home)
            if made and verb == "delete summary":
                self._withdraw([made[at % len(made)].name])
            elif made:
                self._update(made[at % len(made)].name, content=f"- A correction {self.now}.")
        elif verb == "edit":
            self._update(name, content=f"## Role\nuser\n\n## Content\ncorrected {self.now}")
        elif verb in ("suppress", "show"):
            self._update(name, suppressed=verb == "suppress")
        elif verb == "move":
            self._move(name)
        elif verb == "condense":
            kit.run(self.home, CONFIG)
        elif verb == "lesson":
            self._lesson(name)
        elif verb == "forget":
            self._forget(name)
        elif self.done:
            history.undo(self.home, self.done[-1], author=PERSON, now=self.tick())
            self.done.pop()

    def _withdraw(self, names: list[str]) -> None:
        how = {"scopes": ("app", "web", ""), "author": PERSON}
        told = propagation.delete(self.home, names, dry_run=True, now=self.tick(), **how)
        done = propagation.delete(self.home, names, now=self.tick(), **how)
        self._as_told(told, done)

    def _onward(self, name: str) -> None:
        how = {"scopes": ("app", "web", ""), "author": PERSON}
        told = propagation.delete_onward(self.home, name, dry_run=True, now=self.tick(), **how)
        done = propagation.delete_onward(self.home, name, now=self.tick(), **how)
        self._as_told(told, done)

    def _move(self, name: str) -> None:
        how = {"scopes": ("app", "web"), "author": PERSON}
        told = propagation.move(self.home, [name], "web", dry_run=True, now=self.tick(), **how)
        done = propagation.move(self.home, [name], "web", now=self.tick(), **how)
        self._as_told(told, done)

    def _as_told(self, told: Blast, done: Blast) -> None:
        for field in ("targets", "derived", "along", "kept", "statements", "owed"):
            assert getattr(told, field) == getattr(done, field)
        self.done.append(done.op_id)

    def _update(self, name: str, **fields: object) -> None:
        with (
            open_store(self.home, write=True) as store,
            store.transaction(PERSON, now=self.tick()) as txn,
        ):
            if txn.update_entry(name, **fields).verb == "updated":
                self.done.append(txn.op_id)

    def _lesson(self, name: str) -> None:
        lesson = f"wu-{self.tick():%H%M%S}"
        with (
            open_store(self.home, write=True) as store,
            store.transaction(AGENT, now=self.now) as txn,
        ):
            if store.live_entries([name]):
                txn.put_entry(Entry(lesson, f"lesson of {lesson}", scopes=("app",)))
                txn.put_statement(Statement(lesson, "derivedFrom", name, scopes=("app",)))
                self.done.append(txn.op_id)

    def _forget(self, name: str) -> None:
        with (
            open_store(self.home, write=True) as store,
            store.transaction(PERSON, now=self.tick()) as txn,
        ):
            txn.delete_entry(name, reason="forget", tombstone=True)
        self.done.clear()  # what led here cannot be taken back any more

    def holds(self) -> None:
        with open_store(self.home, write=False) as store:
            live = {str(row["name"]) for row in store.run("SELECT name FROM live_entry")}
            for name in live:
                assert set(sources.sources(store, name)) <= live, name
            assert sources.orphans(store) == []
            named = {str(row["name"]) for row in store.run("SELECT name FROM entry")}
            links = store.run(
                "SELECT subject, object FROM statement WHERE predicate IN ('summary', 'derivedFrom')"
            )
            assert all(row["subject"] in named and row["object"] in named for row in links)
            assert store.verify_ledger() is None

    def dump(self) -> str:
        with open_store(self.home, write=False) as store:
            found = [
                store.run("SELECT name, content, tags, scopes, trust, suppressed FROM entry"),
                store.run("SELECT triple, content, scopes, trust FROM statement"),
                store.run("SELECT uuid, parent_uuid, parts, text_digest FROM message"),
                store.run("SELECT id, project, title FROM session"),
            ]
        return json.dumps([sorted(json.dumps(row) for row in rows) for rows in found])


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("sources") / "home"
    paths.ensure_home(str(home))
    kit.fill(home, kit.talk(TURNS))
    kit.run(home, CONFIG)
    with open_store(home, write=True) as store, store.transaction(AGENT, now=NOW) as txn:
        txn.put_summary("s-1", "It was about queues.", "compaction", "app")
        txn.put_entry(Entry("wu", "a lesson", scopes=("app",)))
        txn.put_statement(Statement("wu", "derivedFrom", "msg-s-1-2", scopes=("app",)))
    return home


def _live(begun: Path, steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(begun, home)
        world = World(home)
        start = world.dump()
        back = True
        for verb, at in steps:
            try:
                world.do(verb, at)
            except HypatiaError:  # it is not there any more, or something later stands in the way
                world.holds()
                continue
            back = back and verb not in ("forget", "condense")
            world.holds()
        if back:
            for op_id in reversed(world.done):
                history.undo(home, op_id, author=PERSON, now=world.tick())
                world.holds()
            assert world.dump() == start


@pytest.mark.deep
@pytest.mark.parametrize(
    "steps",
    [
        [("delete message", 2), ("condense", 0), ("delete from", 4), ("undo", 0)],
        [("edit", 3), ("lesson", 3), ("suppress", 3), ("show", 3), ("delete message", 3)],
        [("delete summary", 0), ("move", 1), ("edit summary", 1), ("undo", 0), ("move", 5)],
        [("lesson", 1), ("forget", 1), ("condense", 0), ("delete from", 3), ("condense", 0)],
    ],
    ids=["delete", "edit and hide", "summaries and moves", "forget"],
)
def test_what_is_live_stands_on_what_is_live(begun, steps):
    """A few ways through, quick enough for every run."""
    _live(begun, steps)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=scaled(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=2, max_size=9))
def test_what_is_live_stands_on_what_is_live_whatever_is_done(begun, steps):
    _live(begun, steps)

"""A concept that is none: out of sight for good, or out of the graph, and back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem.errors import NotFound, Refused
from hypatia_mem.memory import curate, history
from hypatia_mem.memory.graph import dismissing
from hypatia_mem.memory.graph.selecting import Selection, select
from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store import counting
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.search import SearchIndex
from tests.memory.graphs import AGENT, NOW, PERSON, fill

HERE = ("app", "")
WORKER = Author(Channel.WORKER)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(home):
    """``the thing`` is only spoken of; ``gizmo`` is an entry, and a topic as well."""
    fill(
        home,
        [
            ("api", "uses", "the thing"),
            ("the thing", "runs_on", "Linux"),
            ("api", "uses", "gizmo"),
            ("api", "is_in", "town"),
        ],
        [
            Entry("gizmo", "a gizmo of sorts", scopes=("app",), synonyms=("gadget",)),
            Entry("note", "of gadgetry", tags=("gizmo", "widgetry"), scopes=("app",)),
        ],
    )
    curate.refresh(home)
    return home


def dismiss(home, *names, author=PERSON, scopes=HERE):
    return dismissing.dismiss(home, names, scopes=scopes, author=author, now=NOW)


def restore(home, *names, author=PERSON):
    return dismissing.restore(home, names, scopes=HERE, author=author, now=NOW)


def seen(home):
    """Return all names that a reader meets: around a name, as topics, by searching."""
    with open_store(home, write=False) as store:
        part = select(store, Selection(HERE, near=("api",), depth=3))
        topics = counting.topics_in_use(store, HERE, (), limit=99, offset=0)
    found = SearchIndex(home).search("gizmo", scopes=HERE)
    return {
        "around": sorted(part.nodes),
        "topics": sorted(topic for topic, _, _ in topics),
        "found": sorted(hit.name for hit in found),
    }


def test_a_dismissed_concept_is_shown_nowhere_and_all_of_it_comes_back(world):
    before = seen(world)
    assert {"the thing", "gizmo", "Linux"} <= set(before["around"])
    assert "gizmo" in before["topics"]
    dismiss(world, "the thing", "gadget")
    now = seen(world)
    assert now["around"] == ["api", "town"]
    assert now["topics"] == ["widgetry"]
    assert "gizmo" not in now["found"]
    with open_store(world, write=False) as store, pytest.raises(NotFound):
        select(store, Selection(HERE, near=("the thing",)))
    restore(world, "the thing", "gizmo")
    assert seen(world) == before


def test_the_operation_that_dismissed_is_undone_without_a_trace(world):
    before = seen(world)
    done = dismiss(world, "the thing")
    history.undo(world, done.blast.op_id, author=PERSON, now=NOW)
    assert seen(world) == before
    with open_store(world, write=False) as store:
        assert store.entry("the thing") is None


def test_it_stays_dismissed_when_the_same_is_found_again(world):
    dismiss(world, "the thing", "gizmo")
    for author in (WORKER, AGENT):
        with curate.changing(world, author, NOW) as (_, txn):
            txn.put_statement(Statement("api", "needs", "the thing", scopes=("app",)))
            txn.put_statement(Statement("gizmo", "is_in", "api", scopes=("app",)))
            txn.put_entry(Entry("gizmo", "a gizmo again", scopes=("app",)), replace=True)
    assert seen(world)["around"] == ["api", "town"]
    assert "gizmo" not in seen(world)["found"]


def test_a_topic_that_no_statement_speaks_of_is_dismissed_too(world):
    dismiss(world, "widgetry")
    assert seen(world)["topics"] == ["gizmo"]
    assert "note" in _live(world)  # what has the tag stays
    with pytest.raises(NotFound, match="nothing called 'nonsense'"):
        dismiss(world, "nonsense")


def test_an_agent_dismisses_and_does_not_bring_back_what_a_person_dismissed(world):
    dismiss(world, "the thing", author=AGENT)
    restore(world, "the thing", author=AGENT)
    dismiss(world, "the thing")
    with pytest.raises(Refused, match="a person has suppressed it"):
        restore(world, "the thing", author=AGENT)
    assert "the thing" not in seen(world)["around"]


def test_what_was_said_is_no_concept_and_what_others_speak_of_is_theirs(world):
    with curate.changing(world, PERSON, NOW) as (_, txn):
        txn.put_statement(Statement("web", "uses", "the thing", scopes=("web",)))
        txn.put_entry(Entry("sum", "said", tags=("summary",), kind="summary", scopes=("app",)))
    with pytest.raises(Refused, match="is spoken of in web too"):
        dismiss(world, "the thing")
    with pytest.raises(Refused, match="'sum' is a summary"):
        dismiss(world, "gizmo", "sum")
    assert "gizmo" in seen(world)["around"]  # all of them or none
    dismiss(world, "the thing", scopes=None)
    assert "the thing" not in seen(world)["around"]


def test_what_others_say_of_an_entry_stays_theirs(world):
    """Its statements go with an entry, and one of them may be another project's."""
    with curate.changing(world, PERSON, NOW) as (_, txn):
        txn.put_statement(Statement("web", "uses", "gizmo", scopes=("web",)))
    with pytest.raises(Refused, match="is spoken of in web too"):
        dismiss(world, "gizmo", author=AGENT)
    with pytest.raises(Refused, match="is spoken of in web too"):
        dismissing.remove(world, ["gizmo"], scopes=HERE, author=AGENT, now=NOW)
    assert "gizmo" in seen(world)["around"]
    done = dismissing.remove(world, ["gizmo"], scopes=None, author=PERSON, now=NOW)
    assert any(one.startswith("web,") for one in done.statements)


def test_a_removed_concept_is_gone_with_its_statements_until_it_is_found_again(world):
    told = dismissing.remove(
        world, ["the thing", "gizmo"], scopes=HERE, dry_run=True, author=PERSON, now=NOW
    )
    done = dismissing.remove(world, ["the thing", "gizmo"], scopes=HERE, author=PERSON, now=NOW)
    assert (told.targets, told.statements) == (done.targets, done.statements)
    assert "gizmo" not in _live(world)
    with open_store(world, write=False) as store:
        assert [row["object"] for row in store.run("SELECT * FROM statement")] == ["town"]
    history.undo(world, done.op_id, author=PERSON, now=NOW)
    assert {"the thing", "gizmo", "Linux"} <= set(seen(world)["around"])
    dismissing.remove(world, ["the thing"], scopes=HERE, author=PERSON, now=NOW)
    with curate.changing(world, WORKER, NOW) as (_, txn):
        txn.put_statement(Statement("api", "uses", "the thing", scopes=("app",)))
    assert "the thing" in seen(world)["around"]


KILLED = """
import os, signal, sys
from pathlib import Path
from hypatia_mem.memory.graph import dismissing
from tests.memory.graphs import PERSON, NOW
home, verb, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
from hypatia_mem.store import connection
real, count = connection.Store.execute, 0
def execute(self, *arguments):
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, *arguments)
connection.Store.execute = execute
from hypatia_mem.store.writing import Writing
finish = Writing.finish
def last(self):
    finish(self)
    print(count, flush=True)  # all that is before the commit
Writing.finish = last
act = getattr(dismissing, verb)
act(home, ["the thing", "gizmo"], scopes=("app", ""), author=PERSON, now=NOW)
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize("verb", ["dismiss", "remove"])
def test_a_kill_at_any_step_leaves_all_of_it_or_nothing(world, tmp_path, verb):
    """Whoever comes next finds the graph as it was before, never one of two names gone."""
    before = _everything(world)
    shutil.copytree(world, tmp_path / "whole")
    steps = int(_killed(tmp_path / "whole", verb, 1_000_000).stdout)
    assert _everything(tmp_path / "whole") != before
    for at in (steps // 2, steps * 3 // 4, steps):
        assert _killed(world, verb, at).returncode == -signal.SIGKILL
        assert _everything(world) == before, at


def _everything(home):
    with open_store(home, write=False) as store:
        names = "name, content, tags, scopes, suppressed, trust"
        return (
            store.run(f"SELECT {names} FROM entry ORDER BY name"),
            store.run("SELECT triple, scopes, trust FROM statement ORDER BY triple"),
        )


def _live(home):
    with open_store(home, write=False) as store:
        return {row["name"] for row in store.run("SELECT name FROM live_entry")}


def _killed(home, verb, at):
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(home), verb, str(at)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

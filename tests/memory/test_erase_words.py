"""Words are erased like a name: whatever holds them goes as one, down to the byte, and nothing else.

The same memory as in ``test_erase``, in which a sentence has got into every place there is.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from hypatia_mem.errors import Conflict, NotFound, Refused
from hypatia_mem.memory import curate, erase
from hypatia_mem.memory.erasing import places
from hypatia_mem.memory.erasing.job import read_job, write_job
from hypatia_mem.model import Author, Channel, Entry, Statement
from hypatia_mem.store.connection import open_store
from tests.memory import test_erase as made

ASKED = f"deploy {made.WORD} friday"
LATER = timedelta(hours=2)  # by then the session counts as ended
SAYS = (
    f"Whoever wants to deploy it: {made.WORD}, but no friday"  # other words, the same telling ones
)
TURN = f"so on friday we will not deploy {made.WORD} at all"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> made.World:
    world = made.World(tmp_path_factory.mktemp("words") / "world")
    made._fill(world)
    world.turn(TURN, "That is agreed upon, then.")
    world.drain()
    with curate.changing(world.home, made.PERSON, world.at()) as (_, txn):
        txn.put_entry(Entry("goal:calm", SAYS, kind="goal", tags=("goal",), scopes=("app",)))
        txn.put_statement(Statement("friday", "forbids", "work", SAYS, scopes=("app",)))
        txn.put_statement(Statement("monday", "forbids", "sleep", "for all", scopes=("app",)))
        txn.put_entry(Entry("theirs", SAYS, scopes=("web",)))
    return world


@pytest.fixture
def own(filled: made.World, tmp_path: Path) -> made.World:
    return filled.copy(tmp_path / "own")


def _plan(world: made.World, after: timedelta = LATER, **how: object) -> erase.Plan:
    return world.plan(ASKED, author=made.PERSON, now=world.now + after, **how)


def _erase(world: made.World, plan: erase.Plan, after: timedelta = LATER) -> erase.Report:
    now = world.now + after
    return erase.erase(world.home, plan, settings=made.CONFIG, author=made.PERSON, now=now)


def _there(world: made.World) -> dict[str, str]:
    with open_store(world.home, write=False) as store:
        entries = store.run("SELECT name, content FROM entry")
        found = {row["name"]: row["content"] for row in entries}
        triples = store.run("SELECT triple AS name, content FROM statement")
        return found | {row["name"]: row["content"] for row in triples}


def _holding(world: made.World, *needles: str) -> set[str]:
    """Return the files that hold one of these texts, byte by byte as they lie there."""
    return {
        path.relative_to(world.home).as_posix()
        for path in places.files(world.home)
        if any(needle.encode() in path.read_bytes() for needle in needles)
    }


def test_all_that_holds_the_words_is_gone_to_the_byte_and_nothing_else(own: made.World) -> None:
    before = _there(own)
    assert _plan(own).others == ("wall.txt",)  # a kept file goes by its name, or with --also
    plan = _plan(own, also=True)
    kinds = {kind: {one.name for one in some} for kind, some in plan.found.kinds.items()}
    assert {"taboo", "goal", "message", "statement", "title"} <= set(kinds)
    assert {"msg-s-1-9", "msg-s-1-10", "msg-s-1-14"} <= kinds["message"] | set(plan.evidence)
    assert plan.summaries
    assert plan.busy == ()

    report = _erase(own, plan)

    assert report.clean, report.problems
    left = _there(own)
    said = [name for name, text in left.items() if "friday" in text.lower()]
    assert sorted(said) == ["notice", "theirs"]  # of another project
    assert _holding(own, made.RULE, made.NAMED, TURN) == set()
    assert not {"memory.duckdb"} & _holding(own, "on friday we will")
    gone = set(before) - set(left)
    named = {*plan.names, *plan.evidence, *plan.statements, *plan.summaries}
    assert {*plan.names, *plan.evidence, *plan.statements} <= gone
    summed = {name for name in gone - named if name.startswith(("sum", "episode", "thread"))}
    links = {name for name in gone - named if ",summary," in name or ",belongTo," in name}
    assert gone - named - summed - links == set()
    for name in ("broker", "unrelated", "notice", "theirs", "msg-s-1-1", "msg-s-1-15"):
        assert left[name] == before[name], name
    assert "for all" in left.values()
    assert {one.name for one in report.checks if one.passed} >= {"source fed again", "stays away"}
    ops = set()
    with open_store(own.home, write=False) as store:
        ops = {row["op_id"] for row in store.ledger(limit=500) if row["verb"].startswith("forget ")}
        assert store.session("s-1").title == ""
    assert ops == {report.op_id}
    [proof] = erase.certificates(own.home)
    assert made.WORD not in json.dumps(proof)
    assert {"spool", "backups", "snapshots", "table entry"} <= {p["name"] for p in proof["places"]}


@pytest.mark.deep
def test_everywhere_other_projects_go_too(own: made.World) -> None:
    plan = _plan(own, everywhere=True, also=True)
    assert {"theirs", "notice"} <= set(plan.names)
    assert _erase(own, plan).clean
    assert not [name for name, text in _there(own).items() if "friday" in text.lower()]
    assert _holding(own, made.RULE, TURN, SAYS) == set()


@pytest.mark.deep
def test_what_a_running_session_holds_is_left_and_named(own: made.World) -> None:
    plan = _plan(own, timedelta())
    busy = {name for name, session in plan.busy if session == "s-1"}
    assert {"msg-s-1-9", "msg-s-1-14"} <= busy
    assert not busy & {*plan.names, *plan.evidence}
    own_spool = (own.home / "spool" / "s-1.jsonl").read_bytes()

    report = _erase(own, plan, timedelta())

    assert report.clean, report.problems
    assert busy <= {name for name, _ in report.busy}
    left = _there(own)
    assert TURN in left["msg-s-1-14"]
    assert made.RULE in left["msg-s-1-9"]
    assert (own.home / "spool" / "s-1.jsonl").read_bytes() == own_spool
    assert not {made.NAMED, "goal:calm"} & set(left)

    own.now += LATER
    again = _plan(own, timedelta())  # it has ended
    assert "msg-s-1-14" in again.names
    assert _erase(own, again, timedelta()).clean
    assert _holding(own, TURN) == set()


@pytest.mark.deep
def test_the_source_read_again_brings_no_word_back(own: made.World) -> None:
    _erase(own, _plan(own))
    with (
        open_store(own.home, write=True) as store,
        store.transaction(made.PERSON, now=own.at()) as txn,
    ):
        txn.delete_cursors(list(store.cursors()))
    own.hook("SessionStart", source="resume")
    own.hook("SessionEnd", reason="other")
    own.drain()
    said = [name for name, text in _there(own).items() if "friday" in text.lower()]
    assert sorted(said) == ["notice", "theirs"]


@pytest.mark.deep
def test_cut_short_it_is_finished_and_still_knows_what_runs(
    own: made.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(erase.steps, "rewrite", die)
    with pytest.raises(KeyboardInterrupt):
        _erase(own, _plan(own, timedelta()), timedelta())
    monkeypatch.undo()
    assert read_job(own.home).running == {"s-1"}
    report = erase.resume(own.home, settings=made.CONFIG, now=own.now)
    assert report.clean, report.problems
    assert report.busy
    assert TURN in _there(own)["msg-s-1-14"]


def test_a_job_of_an_earlier_version_is_read(own: made.World) -> None:
    from hypatia_mem.memory.erase import _job

    job = _job(own.home, _plan(own, timedelta()), made.PERSON, own.now, prove=False)
    write_job(own.home, job)
    assert read_job(own.home) == job
    path = own.home / places.JOB
    said = json.loads(path.read_text())
    del said["busy"]
    path.write_text(json.dumps(said))
    assert read_job(own.home).running == frozenset()


@pytest.mark.parametrize("channel", [Channel.CLI_AGENT, Channel.WORKER])
def test_only_a_person_erases_words(own: made.World, channel: Channel) -> None:
    before = _there(own)
    plan = _plan(own)
    with pytest.raises(Refused, match="only a person"):
        erase.erase(
            own.home, plan, settings=made.CONFIG, author=Author(channel), now=own.now + LATER
        )
    assert _there(own) == before


def test_words_of_one_memory_or_of_none(filled: made.World) -> None:
    with pytest.raises(NotFound, match="nothing remembered here"):
        filled.plan("purple hippopotamus", author=made.PERSON, now=filled.now)
    with pytest.raises(NotFound, match=r"only a session that is running .* of s-1"):
        filled.plan("agreed upon then", author=made.PERSON, now=filled.now)
    with pytest.raises(Conflict, match="may mean"):
        filled.plan(
            f"{made.WORD} service friday hippopotamus purple",
            author=made.PERSON,
            now=filled.now,
        )
    named = filled.plan(made.NAMED, author=made.PERSON, now=filled.now)
    assert named.found is None
    assert named.names == (made.NAMED,)

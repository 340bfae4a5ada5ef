"""Erased is erased: no byte of it in any file of the home, nothing brings it back, all of it shown.

One memory in which a sentence has got into every place there is, by the real hook and transcript,
and with it a twin in another project and an entry that shares a rare word. Then it is erased.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import hook, paths, spool
from hypatia_mem.config import Settings
from hypatia_mem.errors import Conflict, NotFound, Refused, StoreBusy
from hypatia_mem.memory import backup, curate, erase, history, typed
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.erasing import client, places, proof, steps
from hypatia_mem.memory.erasing.pieces import pieces_of
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.memory.sharing import archive
from hypatia_mem.memory.vectors import embedding
from hypatia_mem.memory.vectors.lexical import Lexical
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store import snapshot
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.lease import lease
from hypatia_mem.store.search import SearchIndex

WORD = "zanzibarquux"
RULE = f"never deploy the {WORD} service on a friday evening"
NAMED = f"rule:never-deploy-the-{WORD}-service-on-a-friday-evening"
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
CONFIG = Settings(cascade_max_tokens=60, cascade_keep_last=0, summary_words=60, cascade_batch=4)
NEEDLES = [RULE.encode(), NAMED.encode()]


class World:
    """A home with its client's transcript; everything it takes in comes by the real hook."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.folder = base / "app"
        self.transcript = base / "client" / "projects" / "-app" / "s-1.jsonl"
        self.now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)

    def at(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def hook(self, event: str, **fields: object) -> None:
        body = {
            "session_id": "s-1",
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            "hook_event_name": event,
            **fields,
        }
        environ = {
            "HYPATIA_MEM_HOME": str(self.home),
            "HOME": str(self.base),
            "CLAUDE_PROJECT_DIR": str(self.folder),
        }
        out = os.open(os.devnull, os.O_WRONLY)
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        hook.handle(data + b"\n", environ, out)
        os.close(out)

    def turn(self, prompt: str, answer: str) -> None:
        prompt_id = str(uuid.uuid4())
        self.hook("UserPromptSubmit", prompt=prompt, prompt_id=prompt_id)
        self.line("user", {"role": "user", "content": prompt}, promptId=prompt_id)
        said = [{"type": "text", "text": answer}]
        made = {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": said}
        self.line("assistant", made)
        self.hook("Stop", last_assistant_message=answer, prompt_id=prompt_id)

    def line(self, kind: str, message: dict, **more: object) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        one = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "parentUuid": None,
            "sessionId": "s-1",
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "cwd": str(self.folder),
            "version": "9.9.9",
            "message": message,
            **more,
        }
        with self.transcript.open("a", encoding="utf-8") as out:
            out.write(json.dumps(one, separators=(",", ":"), ensure_ascii=False) + "\n")

    def drain(self) -> None:
        one = Drain(self.home, Settings())
        while one.step(final=True).worked:
            pass

    def plan(self, asked: str = RULE, **how: object) -> erase.Plan:
        return erase.plan_erase(self.home, asked, scope="app", **how)

    def erase(self, asked: str = RULE, *, also: bool = True, **how: object) -> erase.Report:
        plan = self.plan(asked, also=also, **how)
        return erase.erase(self.home, plan, settings=CONFIG, author=PERSON, now=self.at())

    def copy(self, to: Path) -> World:
        shutil.copytree(self.base, to)
        other = World(to)
        other.now = self.now
        return other

    def holding(self) -> set[str]:
        """Return the files that hold it, byte by byte as they lie there."""
        return {
            path.relative_to(self.home).as_posix()
            for path in places.files(self.home)
            if any(needle in path.read_bytes() for needle in NEEDLES)
        }


def _fill(world: World) -> None:
    paths.ensure_home(str(world.home))
    world.folder.mkdir(parents=True)
    for n in range(4):
        world.turn(f"why does module_{n}.py fail {n} times?", f"Because table_{n} is locked. " * 4)
    world.turn(f"remember: {RULE}", f"Noted: {RULE}. I will keep to it.")
    world.line("user", {"role": "user", "content": "and the rest?"})
    title = {"type": "ai-title", "sessionId": "s-1", "aiTitle": RULE}
    with world.transcript.open("a") as out:
        out.write(json.dumps(title) + "\n")
    world.turn("thank you, go on with the parser please", "The parser is done now. " * 3)
    world.drain()
    with curate.changing(world.home, PERSON, world.at()) as (_, txn):
        txn.update_entry(NAMED, tags=("memory", "rule", "deploys"))
        txn.put_entry(Entry("broker", "the broker listens on port 4711", scopes=("app",)))
        txn.put_statement(Statement("broker", "obeys", NAMED, f"since {RULE}", scopes=("app",)))
        txn.put_entry(Entry("unrelated", f"a poem about {WORD}", scopes=("app",)))
        txn.put_entry(Entry("notice", f"On the wall: {RULE.title()}", scopes=("web",)))
    cascade.run(world.home, CONFIG, now=world.at())
    embedding.backfill(world.home, Lexical(64))
    kept = world.folder / "wall.txt"
    kept.write_text(f"{RULE}\n")
    archive.store_file(world.home, kept, scopes=("app",), author=PERSON, now=world.at())
    typed.write_lines(world.home, [f'remember "{RULE}"', "rules"])
    snapshot.make_snapshot(world.home)
    backup.create(world.home, now=world.at(), reason="before")
    damaged = world.home / "quarantine" / "20260101T000000"
    damaged.mkdir(parents=True)
    shutil.copy(world.home / paths.STORE, damaged / paths.STORE)
    (world.home / "spool" / "quarantine" / "s-1-0-00").write_text(f'{{"torn": "{RULE}')
    paths.log_line(str(world.home), "INFO", "test", f"somebody logged {RULE}")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("erase") / "world")
    _fill(world)
    return world


@pytest.fixture(scope="module")
def external(filled: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that somebody copied to another disk before the erasing."""
    copied = tmp_path_factory.mktemp("disk") / "backup"
    shutil.copytree(backup.backups(filled.home)[0].path, copied)
    return copied


@pytest.fixture(scope="module")
def erased(filled: World, external: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = filled.copy(tmp_path_factory.mktemp("erased") / "world")
    kept = world.home / "archive" / "wall.txt"
    plan = erase.plan_erase(world.home, RULE, scope="app", ids=[NAMED, "wall.txt"])
    assert kept.exists()
    assert set(plan.others) == set()
    world.report = erase.erase(world.home, plan, settings=CONFIG, author=PERSON, now=world.at())
    return world


@pytest.fixture
def own(filled: World, tmp_path: Path) -> World:
    return filled.copy(tmp_path / "own")


@pytest.mark.deep
def test_it_was_everywhere_before(filled: World) -> None:
    """Without that nothing would be shown here."""
    found = {path.partition("/")[0] for path in filled.holding()}
    assert {
        "memory.duckdb",
        "spool",
        "archive",
        "repl_history",
        "briefs",
        "hypatia-mem.log",
    } <= found
    held = places.survey(filled.home, pieces_of([RULE, NAMED]))
    for place in ("snapshots", "backups", "damaged files kept"):
        assert held[place].total, place
    assert {"entry", "version", "statement", "session", "touched"} <= set(held["store file"].rows)
    with open_store(filled.home, write=False) as store:
        assert any("summary" in entry.tags for entry in store.live_entries(_names(store)))


def _names(store) -> list[str]:
    return [str(name) for (name,) in store.execute("SELECT name FROM entry").fetchall()]


@pytest.mark.deep
def test_no_byte_of_it_is_left_and_what_was_not_meant_is(erased: World) -> None:
    assert erased.holding() == set()
    assert erased.report.clean, erased.report.problems
    assert erased.report.elsewhere == 1
    with open_store(erased.home, write=False) as store:
        names = _names(store)
        said = [json.dumps(row, default=str) for row in store.run("SELECT * FROM entry")]
        assert store.verify_ledger() is None
        assert store.session("s-1").title == ""
    assert {"notice", "unrelated", "broker", "msg-s-1-1"} <= set(names)
    assert not {NAMED, "wall.txt", "msg-s-1-9", "msg-s-1-10"} & set(names)
    assert [
        text for text in said if WORD in text and "poem" not in text and "wall" not in text
    ] == []
    assert {hit.name for hit in SearchIndex(erased.home).search(WORD)} == {"unrelated", "notice"}


@pytest.mark.deep
def test_summaries_are_made_again_of_what_is_left(erased: World) -> None:
    with open_store(erased.home, write=False) as store:
        made = [one for one in store.entries(_names(store)) if "summary" in one.tags]
        links = store.run("SELECT object FROM statement WHERE predicate = 'summary'")
        live = set(_names(store))
    assert made
    assert all(WORD not in one.content for one in made)
    assert {row["object"] for row in links} <= live


def test_the_report_tells_of_every_place(erased: World) -> None:
    table = {one.name: one for one in erased.report.places}
    for place in ("spool", "briefs", "search index", "snapshots", "backups", "damaged files kept",
                  "kept files", "typed lines", "program log", "store file", "table entry"):  # fmt: skip
        assert table[place].before > 0, place
        assert table[place].after == 0, place
    assert {one.name for one in erased.report.checks if one.passed} == {
        "source fed again", "background jobs", "stays away", "no row says it", "no search finds it",
        "no brief tells it", "the ledger holds",
    }  # fmt: skip
    assert "1 transcripts" in erased.report.checks[0].says


def test_what_was_due_before_is_left_to_the_worker_and_said(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Erasing makes again what it broke; the rest of a large memory is nobody's to wait for."""
    with curate.changing(own.home, PERSON, own.at()) as (_, txn):
        txn.put_session(Session("s-9", project="app"))
        said = [
            Message("s-9", f"n{n}", "user", f"turn {n} of another talk. " * 9, own.at())
            for n in range(40)
        ]
        txn.put_messages("s-9", said, "app")
    monkeypatch.setattr(proof, "_JOB_SECONDS", 0.0)
    report = own.erase()
    assert report.clean, report.problems
    assert report.left_due["summaries"] > 0
    assert report.left_due["vectors"] > 0
    [tried] = [one.says for one in report.checks if one.name == "background jobs"]
    assert "left to the worker" in tried
    assert json.loads(Path(report.certificate).read_text())["left_due"] == dict(report.left_due)
    with open_store(own.home, write=False) as store:
        links = store.run("SELECT object FROM statement WHERE predicate = 'summary'")
        objects = {row["object"] for row in links}
    assert any(name.startswith("msg-s-1-") for name in objects)  # what it broke
    assert not any(name.startswith("msg-s-9-") for name in objects)  # what was due before
    worker.run(own.home, once=True)
    assert own.holding() == set()


def test_the_certificate_holds_digests_and_no_word(erased: World) -> None:
    [said] = erase.certificates(erased.home)
    assert WORD not in json.dumps(said)
    assert said["clean"] is True
    assert len(said["entries"]) >= 3
    assert steps.is_sealed(erased.home, said)
    assert not steps.is_sealed(erased.home, {**said, "places": []})


def test_the_clients_own_file_is_told_of_and_not_touched(filled: World, erased: World) -> None:
    assert [one.path for one in erased.report.transcripts] == [str(filled.transcript)]
    assert erased.transcript.read_bytes() == filled.transcript.read_bytes()


@pytest.mark.deep
def test_nothing_brings_it_back(erased: World, tmp_path: Path) -> None:
    """The source by hook and transcript, every job, undo, and an older copy of the store."""
    world = erased.copy(tmp_path / "again")
    world.hook("SessionStart", source="resume")
    world.hook("SessionEnd", reason="other")
    with (
        open_store(world.home, write=True) as store,
        store.transaction(AGENT, now=world.at()) as txn,
    ):
        txn.delete_cursors(list(store.cursors()))
    world.drain()
    cascade.run(world.home, CONFIG, now=world.at())
    worker.run(world.home, once=True)
    with pytest.raises((Refused, Conflict, NotFound)):
        history.undo(world.home, world_op(world), author=PERSON, now=world.at())
    with open_store(world.home, write=False) as store:
        assert store.entry(NAMED) is None
        assert not any(RULE in rule.content for rule in store.rules(["app", ""]))
        assert store.session("s-1").title == ""


def world_op(world: World) -> str:
    return str(erase.certificates(world.home)[0]["op_id"])


@pytest.mark.deep
def test_a_backup_from_another_disk_brings_nothing_back(
    erased: World, external: Path, tmp_path: Path
) -> None:
    world = erased.copy(tmp_path / "restored")
    old = backup.find(world.home, str(external))
    assert backup.verify(world.home, old) == []
    done = backup.restore(world.home, old, author=PERSON, now=world.at())
    assert done.forgotten
    with open_store(world.home, write=False) as store:
        assert store.entry(NAMED) is None
        assert store.entry("broker") is not None
        assert store.session("s-1").title == ""
    assert world.holding() == set()
    assert set(places.survey(world.home, [RULE])["store file"].rows) == {"entry"}  # the notice


@pytest.mark.deep
def test_of_what_others_say_too_the_names_are_told(own: World) -> None:
    """They stay, unless they are named or --also is said; a kept file is found by what is in it."""
    with curate.changing(own.home, PERSON, own.at()) as (_, txn):
        txn.put_entry(Entry("poster", f"Poster: {RULE}", scopes=("app",)))
    plan = own.plan()
    assert plan.others == ("poster", "wall.txt")
    assert plan.elsewhere == 1
    report = own.erase(also=True)
    assert report.clean
    with open_store(own.home, write=False) as store:
        assert store.entry("poster") is None
        assert store.entry("notice") is not None


@pytest.mark.slow
def test_everywhere_means_other_projects_too(own: World) -> None:
    assert own.erase(everywhere=True).clean
    with open_store(own.home, write=False) as store:
        assert store.entry("notice") is None
        assert store.entry("unrelated") is not None


@pytest.mark.slow
def test_what_a_killed_restore_left_behind_goes_too(own: World) -> None:
    for left in (f"..{paths.STORE}.999999999.999999999", ".reading-0a/copy.duckdb"):
        (own.home / left).parent.mkdir(exist_ok=True)
        (own.home / left).write_bytes(RULE.encode())
    own.erase()
    assert not any("999999999" in path or ".reading" in path for path in own.holding())


@pytest.mark.slow
def test_a_kept_file_that_was_not_meant_is_named(own: World) -> None:
    report = own.erase(also=False)
    assert report.left == ("wall.txt",)
    assert {path for path in own.holding() if not path.endswith("archive/wall.txt")} == set()
    assert own.erase("", ids=["wall.txt"]).clean
    assert own.holding() == set()


@pytest.mark.parametrize("channel", [Channel.CLI_AGENT, Channel.WORKER, Channel.IMPORT])
def test_only_a_person_erases(own: World, channel: Channel) -> None:
    before = own.holding()
    with pytest.raises(Refused, match="only a person"):
        erase.erase(own.home, own.plan(), settings=CONFIG, author=Author(channel), now=own.at())
    assert own.holding() == before
    with open_store(own.home, write=False) as store:
        last = store.ledger(limit=1)[0]
        assert (last["verb"], last["channel"]) == ("refuse operation", str(channel))
        assert store.entry(NAMED) is not None


@pytest.mark.parametrize(
    ("asked", "error"),
    [("nothing like it", NotFound), ("  ", Exception), ("notice", NotFound)],
)
def test_what_is_not_here_cannot_be_erased(filled: World, asked: str, error: type) -> None:
    with pytest.raises(error):
        filled.plan(asked)


STEPS = ["forget", "derive", "rewrite", "blank_spool", "revise_backups", "clear_rest", "still_said"]


def _killed(own: World, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool) -> None:
    """Die in front of a step, or right behind it before that was written down."""
    real = getattr(steps, step)

    def die(*arguments: object) -> None:
        if after:
            real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, step, die)
    with pytest.raises(KeyboardInterrupt):
        own.erase()
    monkeypatch.undo()


def _is_finished(own: World) -> None:
    assert erase.pending(own.home) is None
    assert not (own.home / places.JOB).exists()
    assert own.holding() == set()
    with open_store(own.home, write=False) as store:
        assert store.entry(NAMED) is None
        assert store.verify_ledger() is None


@pytest.mark.deep
def test_killed_on_the_way_the_next_worker_goes_on(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _killed(own, monkeypatch, "rewrite", after=False)
    assert erase.pending(own.home).done == ("forget", "derive")
    assert "memory.duckdb" in own.holding() or "spool" in str(own.holding())
    with pytest.raises(Conflict, match="not finished"):
        own.erase("broker")
    worker.run(own.home, once=True)
    _is_finished(own)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_is_finished_later(
    own: World, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    _killed(own, monkeypatch, step, after=after)
    with open_store(own.home, write=False) as store:
        assert store.entry("broker") is not None  # the memory is usable at any time
    report = erase.resume(own.home, settings=CONFIG, now=own.at())
    assert report.clean, report.problems
    _is_finished(own)


@pytest.mark.slow
def test_another_process_with_the_lease_is_waited_for_then_told(own: World) -> None:
    from concurrent.futures import ThreadPoolExecutor

    plan = own.plan()
    with ThreadPoolExecutor() as pool, lease(own.home, write=True):
        doing = pool.submit(
            erase.erase, own.home, plan, settings=CONFIG, author=PERSON, now=own.at()
        )
        with pytest.raises(StoreBusy):
            doing.result(timeout=60)
    assert own.erase().clean


def test_a_worker_that_does_not_pause_is_named(own: World) -> None:
    held = worker.Lock(own.home)
    assert held.acquire()
    with subprocess.Popen(["sleep", "60"]) as other:
        (own.home / "worker.lock").write_text(f"{other.pid}\n")
        with pytest.raises(StoreBusy, match=f"process {other.pid}.* does not pause"):
            with worker.alone(own.home, deadline=0.3):
                pass
        assert other.wait(10) == -signal.SIGTERM  # it was asked
    held.release()
    with worker.alone(own.home, deadline=0.3) as beat:
        beat()
        assert worker.state(own.home).running


def test_another_command_that_is_alone_is_waited_for_and_not_asked_to_stop(own: World) -> None:
    with worker.alone(own.home):
        found = worker.state(own.home)
        assert (found.running, found.pid) == (True, None)
        with pytest.raises(StoreBusy, match="another command"):
            with worker.alone(own.home, deadline=0.3):
                pass


@pytest.mark.slow
def test_a_damaged_backup_is_told_of_and_the_rest_done(own: World) -> None:
    [one] = backup.backups(own.home)
    one.store.write_bytes(one.store.read_bytes()[:9000])
    report = own.erase()
    assert not report.clean
    assert any("backups" in problem for problem in report.problems)
    assert "spool/s-1.jsonl" not in own.holding()


@pytest.mark.slow
def test_a_message_and_a_session_can_be_erased(own: World) -> None:
    report = own.erase("msg-s-1-1")
    assert report.clean
    assert b"module_0.py fail" not in (own.home / "spool" / "s-1.jsonl").read_bytes()
    report = own.erase("s-1")
    assert report.clean, report.problems
    with open_store(own.home, write=False) as store:
        assert [name for name in _names(store) if name.startswith(("msg-", "session-"))] == []
        assert store.entry("broker") is not None


# --- the client's files, the spool ----------------------------------------------------------------


def test_scrubbing_keeps_every_line_and_every_position(own: World) -> None:
    before = own.transcript.read_bytes()
    with own.transcript.open("ab") as writer:  # a client that goes on writing
        changed = client.scrub(own.transcript, pieces_of([RULE]))
        writer.write(b'{"type":"user"}\n')
    after = own.transcript.read_bytes()
    assert changed == 3
    assert RULE.encode() not in after
    assert len(after) == len(before) + 16
    old, new = before.splitlines(), after.splitlines()
    assert [len(line) for line in old] == [len(line) for line in new[:-1]]
    for one, two in zip(old, new, strict=False):
        assert json.loads(one).get("uuid") == json.loads(two).get("uuid")
    same = [one == two for one, two in zip(old, new, strict=False)]
    assert same.count(False) == 3
    assert "[erased]" in after.decode()


@pytest.mark.slow
def test_blanking_the_spool_moves_no_cursor(own: World) -> None:
    with open_store(own.home, write=False) as store:
        cursors = store.cursors()
    segments = {one.id: one.size for one in spool.segments(str(own.home))}
    assert own.erase().clean
    after = {one.id: one.size for one in spool.segments(str(own.home))}
    assert after == segments
    with open_store(own.home, write=False) as store:
        assert {key: store.cursors()[key] for key in segments} == {k: cursors[k] for k in segments}
    kept = [one for s in spool.segments(str(own.home)) for one in spool.iter_records(s.path)]
    assert all(isinstance(one, spool.Record) for one in kept)
    assert len(kept) >= 10

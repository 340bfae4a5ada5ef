"""What is forgotten is gone from every part at once, and none of them brings it back.

One store in which every part has taken in three things that share a rare word: a rule, a knowledge
entry with a past (changed, merged, linked, summed up, compared, exported, kept as a file) and a
message. Then all three are forgotten, and each part is asked for the word. A twin in another
project and an unrelated entry that uses the same word stay as they were.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.cli.app import run
from hypatia_mem.config import Settings
from hypatia_mem.errors import Conflict, HypatiaError, NotFound, Refused
from hypatia_mem.memory import curate, history, typed
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.graph import merge
from hypatia_mem.memory.sharing import archive, exporting, importing
from hypatia_mem.memory.vectors import embedding
from hypatia_mem.memory.vectors.lexical import Lexical
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store import buried, snapshot, summaries, vectors
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.search import SearchIndex

WORD = "zanzibarquux"
RULE = f"never deploy the {WORD} service on a friday"
FIRST = f"the {WORD} broker listens on port 4711"
SECOND = f"the {WORD} broker moved to port 4712"
ALIAS = f"{WORD}-mq"
NAMED = f"rule:{WORD}-deploys"
BEGAN = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(hours=5)
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
HOOK = Author(Channel.HOOK)
SECRET = f"The {WORD} password {WORD} is kept in the {WORD} vault. "
TALK = [
    Message(
        "s-1",
        f"line-{n}",
        "assistant" if n % 2 else "user",
        SECRET * 6 if n == 2 else f"Report {n}: module_{n}.py fails after {n} runs. " * 6,
        BEGAN - timedelta(days=1) + timedelta(seconds=n),
        parts=({"type": "text", "text": f"the {WORD} again"},) if n == 2 else (),
    )
    for n in range(8)
]
TOLD = "msg-s-1-3"
NAMES = (NAMED, "broker", TOLD)


class World:
    """A memory at ``home`` and what was taken down while it was made."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.now = BEGAN
        self.before = BEGAN
        self.ops: dict[str, str] = {}
        self.export = home.parent / "export-before"
        self.snapshot: Path | None = None

    @contextmanager
    def change(self, author: Author = PERSON, name: str = "") -> Iterator:
        self.now += timedelta(seconds=1)
        with curate.changing(self.home, author, self.now) as (_, txn):
            if name:
                self.ops[name] = txn.op_id
            yield txn

    def at(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def do(self, *arguments: str) -> tuple[int, str]:
        """Run a command line in the project's folder; return its exit code and all it printed."""
        before, where = os.environ.get("HYPATIA_MEM_HOME"), Path.cwd()
        os.environ["HYPATIA_MEM_HOME"] = str(self.home)
        os.chdir(self.folder)
        out, stdin = io.StringIO(), sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""), "utf-8")
        try:
            with redirect_stdout(out), redirect_stderr(out):
                code = run(arguments)
        finally:
            sys.stdin = stdin
            os.chdir(where)
            if before is None:
                os.environ.pop("HYPATIA_MEM_HOME")
            else:
                os.environ["HYPATIA_MEM_HOME"] = before
        return code, out.getvalue()

    def copy(self, to: Path) -> World:
        """Return a memory of its own that stands where this one stands."""
        shutil.copytree(self.home, to)
        other = World(to, self.folder)
        other.__dict__.update({**self.__dict__, "home": to})
        return other


def _live(world: World) -> None:
    """Let every part take in what will be forgotten, and what will not."""
    with world.change(HOOK) as txn:
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", TALK, "app")
    with world.change(name="create") as txn:
        txn.put_entry(Entry("broker", FIRST, scopes=("app",), tags=("infra",)))
        txn.put_entry(Entry(ALIAS, f"{WORD} in short", scopes=("app",)))
        txn.put_entry(Entry("gateway", "all requests enter here", scopes=("app",)))
        txn.put_entry(Entry(NAMED, RULE, kind="rule", scopes=("app",)))
        txn.put_statement(Statement(NAMED, "is_a", "rule", scopes=("app",)))
    with world.change(name="link") as txn:
        txn.put_statement(
            Statement("gateway", "asks", "broker", f"over {WORD} tls", scopes=("app",))
        )
        txn.put_statement(Statement(ALIAS, "runs_on", "host-7", scopes=("app",)))
    with world.change(name="other") as txn:  # what is not forgotten
        txn.put_entry(Entry("unrelated", f"a poem about {WORD}", scopes=("app",)))
        txn.put_entry(Entry("rule:deploys@web", RULE, kind="rule", scopes=("web",)))
    with world.change(name="update") as txn:
        txn.update_entry("broker", content=SECOND)
    world.before = world.now
    merge.merge(world.home, "broker", ALIAS, scopes=("app", ""), author=PERSON, now=world.at())
    world.ops["merge"] = _last_op(world)
    with world.change(name="tag") as txn:
        txn.update_entry("broker", tags=("infra", "queue"))
        txn.update_entry("unrelated", tags=("verse",))
    world.ops["undone"] = _last_op(world)
    history.undo(world.home, world.ops["undone"], author=PERSON, now=world.at())
    curate.delete_entry(world.home, TOLD, author=PERSON, now=world.at())
    world.ops["deleted"] = _last_op(world)
    history.undo(world.home, world.ops["deleted"], author=PERSON, now=world.at())
    kept = world.folder / "notes.txt"
    kept.write_text(f"{WORD} notes")
    archive.store_file(world.home, kept, scopes=("app",), author=PERSON, now=world.at())
    config = Settings(
        cascade_max_tokens=150, cascade_keep_last=0, summary_words=120, cascade_batch=90
    )
    cascade.run(world.home, config, now=world.at())
    with world.change(AGENT) as txn:  # as an agent's own summary of summaries comes in
        top = Entry(
            "all-in-all",
            f"It was about the {WORD} vault.",
            tags=("summary", "summary 2"),
            kind="summary",
            scopes=("app",),
        )
        items = summaries.pending(txn.store, 2, ("app",))
        assert summaries.put(txn, top, items, {}, 2).verb == "created"
    embedding.backfill(world.home, Lexical(64))
    typed.write_lines(world.home, [f'remember "{RULE}"', f"search {SECOND}", "rules"])


def _last_op(world: World) -> str:
    with open_store(world.home, write=False) as store:
        return str(store.ledger(limit=1)[0]["op_id"])


def _every_part_has_it(world: World) -> None:
    """Without that nothing would be shown here."""
    said = _said(world)
    for table in ("entry", "statement", "version", "statement_version", "image", "touched"):
        assert any(text.startswith(f"{table}: ") for text in said), f"not in {table}"
    for level in (1, 2):
        assert any('"kind": "summary"' in text and f"summary {level}" in text for text in said)
    with open_store(world.home, write=False) as store:
        assert vectors.missing(store, Lexical(64).model) == 0
    curate.refresh(world.home)
    assert len(SearchIndex(world.home).search(WORD, scopes=None)) > 5
    assert archive.file_names(world.home) == ["notes.txt"]


def _forget(world: World) -> None:
    for name in (*NAMES, "notes.txt"):
        plan = curate.forget(world.home, "", scope="app", ids=[name], author=PERSON, now=world.at())
        assert plan.removed == 1
        world.ops[f"forget {name}"] = _last_op(world)
    cascade.run(world.home, Settings(cascade_max_tokens=150, cascade_batch=2), now=world.at())
    embedding.backfill(world.home, Lexical(64))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> World:
    """Return the memory after the forgetting; tests that change it take a copy."""
    base = tmp_path_factory.mktemp("everywhere")
    home, folder = base / "home", base / "app"
    folder.mkdir()
    paths.ensure_home(str(home))
    world = World(home, folder)
    _live(world)
    _every_part_has_it(world)
    exporting.export_shelf(home, world.export)
    world.snapshot = snapshot.make_snapshot(home).path
    with world.change(name="after snapshot") as txn:
        txn.update_entry("broker", format="text")
    _forget(world)
    return world


@pytest.fixture
def own(made, tmp_path) -> World:
    """Return a copy to change."""
    return made.copy(tmp_path / "own")


def _said(world: World) -> list[str]:
    """Return every value of every table that holds the word, but for what was never forgotten."""
    with open_store(world.home, write=False) as store:
        tables = [
            str(name)
            for (name,) in store.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
            ).fetchall()
        ]
        found = [
            f"{table}: {text}"
            for table in tables
            for row in store.run(f'SELECT * FROM "{table}"')
            if WORD in (text := json.dumps(row, default=str))
        ]
    return [text for text in found if "a poem about" not in text and "rule:deploys@web" not in text]


def _twins_are_there(world: World) -> None:
    with open_store(world.home, write=False) as store:
        assert store.entry("unrelated").content == f"a poem about {WORD}"
        assert [rule.name for rule in store.rules(["web"])] == ["rule:deploys@web"]
    found = {hit.name for hit in SearchIndex(world.home).search(WORD, scopes=None)}
    assert found == {"unrelated", "rule:deploys@web"}


def _gone(world: World) -> None:
    curate.refresh(world.home)
    assert _said(world) == []
    _twins_are_there(world)
    with open_store(world.home, write=False) as store:
        assert store.verify_ledger() is None
        rules = store.rules(["app", ""])
    assert not any(WORD in rule.content for rule in rules)


@pytest.mark.deep
def test_no_table_and_no_file_of_a_reader_holds_it(made):
    _gone(made)
    for path in [*(made.home / "briefs").rglob("*"), *made.home.glob("hypatia-mem.log*")]:
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        assert WORD not in text or "web" in path.name or '"web"' in text, path
    assert archive.file_names(made.home) == []
    assert typed.read_lines(made.home) == ["rules"]


@pytest.mark.deep
@pytest.mark.parametrize(
    "command",
    [
        ["search", WORD],
        ["similar", SECOND],
        ["rules"],
        ["knowledge-get", "broker"],
        ["show", TOLD],
        ["show", "s-1"],
        ["query", '["$knowledge", ["$contains", "content", "WORD"]]'],
        ["query", '["$statement"]'],
        ["history", "broker"],
        ["history", ALIAS],
        ["history", "gateway", "asks", "broker"],
        ["diff", "broker@1", "broker@2"],
        ["sql", "SELECT * FROM knowledge"],
        ["sql", "SELECT * FROM statement"],
        ["sql", "SELECT * FROM message"],
        ["graph", "neighbors", "gateway"],
        ["graph", "export", "--format", "json"],
        ["graph", "central"],
        ["cascade", "status"],
        ["sessions"],
        ["archive-list"],
        ["tag"],
        ["log"],
        ["report"],
    ],
    ids=lambda command: " ".join(command)[:30],
)
def test_no_command_prints_it(made, command):
    said = [part.replace("WORD", WORD) for part in command]
    _, out = made.do(*said, "--json")
    shown = [line for line in out.splitlines() if WORD in line]
    asked = [line for line in shown if "poem" not in line and line.count(WORD) > 0]
    echoed = {WORD, ALIAS} & set(said) or any(WORD in part for part in said)
    assert not asked or echoed, out
    for text in (RULE, FIRST, SECOND, SECRET, f"{WORD} tls"):
        assert text not in out.replace(f'"{SECOND}"', "") or text in said, out


def test_no_earlier_time_shows_it(made):
    with open_store(made.home, write=False) as store:
        moments = [row["at"] for row in store.run('SELECT DISTINCT "at" FROM mutation ORDER BY 1')]
        for moment in [*moments, made.before]:
            for view in ("known_entry", "known_statement"):
                found = store.run(f"SELECT * FROM {view}(?)", [moment])
                said = [row for row in found if WORD in json.dumps(row, default=str)]
                names = {row.get("name") for row in said}
                assert names <= {"unrelated", "rule:deploys@web"}, said


@pytest.mark.deep
def test_no_undoing_brings_it_back(own):
    """Neither of the forgetting nor of anything before or after that touched the same."""
    with own.change(name="later") as txn:
        txn.update_entry("gateway", tags=("edge",))
    for op_id in own.ops.values():
        for back in (history.undo, history.redo):
            try:
                back(own.home, op_id, author=PERSON, now=own.at())
            except (Refused, Conflict, NotFound):
                continue
    with open_store(own.home, write=False) as store:
        assert store.entry("gateway").tags == ("edge",)  # undone and done again
    assert [one for one in _said(own) if "poem" not in one] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_forgetting_is_final(own, name):
    with pytest.raises(Refused, match="forgetting is final"):
        history.undo(own.home, own.ops[f"forget {name}"], author=PERSON, now=own.at())


@pytest.mark.parametrize("words", [["broker@1"], ["broker@2"], [f"{ALIAS}@1"], [f"{NAMED}@1"]])
def test_no_version_can_be_put_back(own, words):
    with pytest.raises(NotFound):
        history.revert(own.home, words, author=PERSON, now=own.at())


@pytest.mark.deep
@pytest.mark.parametrize(
    "entry",
    [
        Entry(NAMED, "anything", kind="rule", scopes=("app",)),
        Entry("elsewhere", RULE, scopes=("app",)),
        Entry("broker", FIRST, scopes=("app",)),
        Entry("broker-two", SECOND.upper(), scopes=("app",)),
        Entry(ALIAS, f"{WORD} in short", scopes=("app",)),
    ],
    ids=lambda entry: entry.name,
)
def test_no_state_of_it_is_taken_from_an_agent(own, entry):
    """What it said before its last change is forgotten with it, and what was merged into it."""
    with own.change(AGENT) as txn:
        assert txn.put_entry(entry).verb == "refused"
        twin = Entry(entry.name + "-web", entry.content, scopes=("web",))
        assert txn.put_entry(twin).verb == "created"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("triple", "taken"),
    [
        (("gateway", "asks", "broker"), False),
        (("Gateway", "asks ", "BROKER"), False),
        (("broker", "runs_on", "host-7"), False),
        ((ALIAS, "runs_on", "host-7"), False),
        (("gateway", "asks", "unrelated"), True),
        (("broker", "runs_on", "host-8"), True),
    ],
)
def test_no_statement_at_it_is_taken_from_an_agent(own, triple, taken):
    with own.change(AGENT) as txn:
        outcome = txn.put_statement(Statement(*triple, scopes=("app",)))
        assert outcome.verb == ("created" if taken else "refused")


def test_the_same_turns_read_again_add_nothing(own):
    with own.change(HOOK) as txn:
        assert txn.put_messages("s-1", TALK, "app") == [0] * len(TALK)
    _gone(own)


def test_an_older_export_brings_nothing_back(own, tmp_path):
    """It was made before the forgetting; the shelf has kept nothing else but its tombstones."""
    with open_store(own.home, write=True) as store:
        for table in ("entry", "statement", "message", "session"):
            store.execute(f"DELETE FROM {table}")
        store.execute("DELETE FROM version")
        store.execute("DELETE FROM statement_version")
    SearchIndex(own.home).clear()
    done = importing.import_shelf(own.home, own.export, author=PERSON, now=own.at())
    assert done.refused >= 4
    with open_store(own.home, write=False) as store:
        assert store.entry("gateway") is not None
        assert store.messages_at("s-1", [3])[0].parts == ()
        assert store.messages_at("s-1", [4])[0].text.startswith("Report 3")
    assert _said(own) == []


def _damage(home: Path) -> None:
    file = home / FILE
    data = bytearray(file.read_bytes())
    data[: len(data) // 2] = bytes(len(data) // 2)
    file.write_bytes(data)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["damaged", "lost", "copied back by hand"])
def test_an_older_copy_of_the_store_brings_nothing_back(own, how):
    """Forgotten after the snapshot: forgotten in what is restored from it."""
    copy = own.home / "snapshots" / own.snapshot.name
    if how == "copied back by hand":
        shutil.copy(copy, own.home / FILE)
    else:
        _damage(own.home) if how == "damaged" else (own.home / FILE).unlink()
        snapshot.restore(own.home)
    with open_store(own.home, write=False) as store:  # whoever looks first, looks at this
        assert {name for name in NAMES if store.entry(name)} == set()
        assert store.entry("gateway") is not None
    _gone(own)
    with own.change(HOOK) as txn:
        assert txn.put_messages("s-1", TALK, "app") == [0] * len(TALK)
        assert txn.put_entry(Entry("broker", FIRST, scopes=("app",))).verb == "refused"
    with pytest.raises(HypatiaError):
        history.revert(own.home, ["broker@1"], author=PERSON, now=own.at())
    _gone(own)
    assert buried.read(own.home) is not None


@pytest.mark.deep
def test_a_name_that_had_another_project_in_the_older_copy_is_forgotten_there_too(own):
    with own.change() as txn:
        txn.put_entry(Entry("courier", "letters go by bike", scopes=("old",)))
    copy = snapshot.make_snapshot(own.home).path
    with own.change() as txn:
        txn.rename_scope("old", "new")
    curate.forget(own.home, "", scope="new", ids=["courier"], author=PERSON, now=own.at())
    shutil.copy(copy, own.home / FILE)
    with open_store(own.home, write=False) as store:
        assert store.entry("courier") is None


def test_with_nothing_left_of_the_store_the_turns_come_again_without_it(own):
    """The spool is read from its beginning into a new store: but for what was forgotten."""
    (own.home / FILE).unlink()
    shutil.rmtree(own.home / "snapshots")
    (own.home / "snapshots").mkdir()
    with own.change(HOOK) as txn:
        txn.put_session(Session("s-1", project="app"))
        assert txn.put_messages("s-1", TALK, "app") == list(range(1, len(TALK) + 1))
        said_then = Author(Channel.HOOK_PROMPT, session_id="s-1", turn=1)
        with txn.acting(said_then, said_at=TALK[0].at):  # a prompt from before the forgetting
            rule = Entry(NAMED, RULE, kind="rule", scopes=("app",))
            assert txn.put_entry(rule).verb == "refused"
    with open_store(own.home, write=False) as store:
        assert store.entry(TOLD) is None
        assert store.entry("msg-s-1-2") is not None
    assert _said(own) == []


def test_a_person_can_say_it_again_and_then_it_stays(own):
    with own.change(PERSON) as txn:
        rule = Entry(NAMED, RULE, kind="rule", scopes=("app",))
        assert txn.put_entry(rule).verb == "created"
    with open_store(own.home, write=True) as store:
        assert store.entry(NAMED).content == RULE
        assert store.entry("broker") is None
    with own.change(AGENT) as txn:
        assert txn.put_entry(Entry("broker", FIRST, scopes=("app",))).verb == "refused"


def test_a_merge_with_what_is_forgotten_takes_nothing_in(own):
    for a, b in (("gateway", "broker"), ("gateway", ALIAS), ("broker", "gateway")):
        with pytest.raises(NotFound):
            merge.merge(own.home, a, b, scopes=("app", ""), author=PERSON, now=own.at())
    _gone(own)


def test_a_forgetting_that_did_not_come_through_is_finished_at_the_next_start(own, monkeypatch):
    """Killed between the file and the commit: forgotten all the same, never half."""
    real = buried.keep

    def killed(store, mark):
        real(store, mark)
        raise KeyboardInterrupt

    monkeypatch.setattr(buried, "keep", killed)
    with pytest.raises(KeyboardInterrupt):
        curate.forget(own.home, "", scope="app", ids=["gateway"], author=PERSON, now=own.at())
    monkeypatch.undo()
    with open_store(own.home, write=False) as store:
        assert store.entry("gateway") is None
        assert store.verify_ledger() is None
        assert store.entry("unrelated") is not None


def test_what_is_withheld_can_be_forgotten_by_its_name_and_is_not_shown_by_that(own):
    with own.change() as txn:
        txn.update_entry("gateway", suppressed=True)
    how = {"scope": "app", "ids": ["gateway"], "author": PERSON, "now": own.at()}
    plan = curate.forget(own.home, "", dry_run=True, **how)
    assert [one.content for one in plan.matches] == [""]
    assert curate.forget(own.home, "", **how).removed == 1
    with own.change(AGENT) as txn:
        again = Entry("entrance", "all requests enter here", scopes=("app",))
        assert txn.put_entry(again).verb == "refused"

"""A scratch memory in which probes may do anything: real hooks, real commands, every job.

Commands run in this process, at a pretended terminal for what a person does and without one, with
the client's marks in the environment, for what an agent does. Hooks are processes, started with the
command line that an installation writes. Nothing of the memory that is probed is ever touched: its
store is copied, and this process's environment points at the copy while something runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from hypatia_mem import worker
from hypatia_mem.capture import paths
from hypatia_mem.config import Settings, load_settings
from hypatia_mem.install import bundle
from hypatia_mem.install.interpreter import hook_arguments, hook_interpreter, site_directory
from hypatia_mem.memory import curate
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.memory.vectors import embedding
from hypatia_mem.model import Author, Channel
from hypatia_mem.rubric.probe import Absent
from hypatia_mem.store import keys, residue
from hypatia_mem.store.connection import FILE, open_store
from hypatia_mem.store.search import SearchIndex
from hypatia_mem.store.snapshot import copy_store

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "AGENT", "ALL", "PERSON", "QUICK", "Project", "Ran", "World", "files_holding", "scratch",
]  # fmt: skip

PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
WORKER = Author(Channel.WORKER)
QUICK = ("search", "query", "rules", "brief")
ALL = (*QUICK, "statements", "sql", "similar")
_AGENT_MARK = {"CLAUDECODE": "1", "AI_AGENT": "claude-code_9-9-9_agent"}
_DROPPED = ("CLAUDE", "ANTHROPIC", "HYPATIA_MEM", "AI_AGENT", "XDG_")
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
_SMALL = 100  # tokens: a few messages fill the window

Command: TypeAlias = Callable[[Sequence[str]], int]


class _Terminal(io.StringIO):
    """Standard input of somebody who sits at a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Tell whether it succeeded."""
        return self.code == 0

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command prints
        """Return what it printed; None when that is no JSON."""
        try:
            return json.loads(self.out)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Project:
    """A folder of a probe; ``scope`` is the project's name."""

    folder: Path

    @property
    def scope(self) -> str:
        """Return the scope of what is remembered here."""
        return self.folder.name


class World:
    """A memory at ``home`` below ``base``; ``command`` runs a command line in this process."""

    def __init__(self, base: Path, command: Command, commands: frozenset[str]) -> None:
        """Make the memory if it is not there; ``commands`` are the names that exist."""
        self.base = base
        self.home = base / "home"
        self.settings: Settings = Settings()
        self._command = command
        self._commands = commands
        self._random = random.Random(uuid.uuid4().int)
        self._hook: list[str] | None = None
        self.model_runs = 0  # how often a model is asked; it costs money
        for folder in ("person/.claude", "projects", "transcripts"):
            (base / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.ensure_home(str(self.home))
        self.settings = load_settings(self.home)

    # -- names

    def token(self) -> str:
        """Return a word that no text has had before; pronounceable, so that it is no secret."""
        return "".join(self._random.choice(_SYLLABLES) for _ in range(7))

    def project(self, name: str = "") -> Project:
        """Return a new project, a folder of that name (a new word without one)."""
        folder = self.base / "projects" / (name or self.token())
        folder.mkdir(parents=True, exist_ok=True)
        return Project(folder)

    def session(self) -> str:
        """Return a new session's id."""
        return str(uuid.uuid4())

    # -- commands

    def needs(self, *commands: str) -> None:
        """Raise Absent when the program has not all of these commands."""
        for name in commands:
            if name not in self._commands:
                raise Absent(f"there is no command {name!r} in this version")

    def has(self, command: str) -> bool:
        """Tell whether the program has this command."""
        return command in self._commands

    def person(self, where: Project, *arguments: str, answers: str = "") -> Ran:
        """Run a command line as a person at a terminal would, who types ``answers``."""
        return self._run(where.folder, arguments, _Terminal(answers), {})

    def agent(self, where: Project, *arguments: str, stdin: str = "") -> Ran:
        """Run a command line as an agent does: the client's marks are in the environment."""
        given = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
        return self._run(where.folder, arguments, given, _AGENT_MARK)

    def _run(
        self,
        folder: Path,
        arguments: Sequence[str],
        stdin: TextIO,
        marks: Mapping[str, str],
    ) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with (
            self.here(folder, marks),
            _stdin(stdin),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = self._command(arguments)
        return Ran(code, out.getvalue(), err.getvalue())

    @contextmanager
    def here(self, folder: Path, marks: Mapping[str, str] = {}) -> Iterator[None]:
        """Let this process stand in ``folder`` with this world's environment, for a while."""
        before, where = dict(os.environ), Path.cwd()
        for name in before:
            if name.startswith(_DROPPED):
                del os.environ[name]
        os.environ.update(self._environment(), **marks)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(where)
            os.environ.clear()
            os.environ.update(before)

    def _environment(self) -> dict[str, str]:
        person = self.base / "person"
        return {
            "HYPATIA_MEM_HOME": str(self.home),
            "HOME": str(person),
            "USERPROFILE": str(person),
            "CLAUDE_CONFIG_DIR": str(person / ".claude"),
        }

    # -- hooks and transcripts

    def hook(self, where: Project, event: str, session: str, **fields: object) -> str:
        """Run the installed hook for one event; what the model is told.

        Raises Absent when the hook fails or says something the client cannot read.
        """
        body = {
            "session_id": session,
            "transcript_path": str(self.transcript(session)),
            "cwd": str(where.folder),
            "hook_event_name": event,
            **fields,
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}
        done = subprocess.run(
            self._hook_command(),
            input=json.dumps(body, ensure_ascii=False).encode() + b"\n",
            capture_output=True,
            timeout=60,
            check=False,
            cwd=where.folder,
            env={**kept, **self._environment(), "CLAUDE_PROJECT_DIR": str(where.folder)},
        )
        if done.returncode or done.stderr:
            raise Absent(f"the hook for {event} failed with code {done.returncode}")
        said = done.stdout.decode("utf-8", "replace").strip()
        if not said or not said.startswith("{"):
            return said
        return str(json.loads(said)["hookSpecificOutput"]["additionalContext"])

    def _hook_command(self) -> list[str]:
        """Write the launcher as an installation does, once; return the command line."""
        if self._hook is None:
            folder = self.base / "client"
            target = bundle.Target("directory", folder, hook_interpreter(), str(site_directory()))
            script = folder / bundle.HOOK
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_bytes(bundle.render(target)[bundle.HOOK])
            self._hook = [target.interpreter, *hook_arguments(str(script))]
        return self._hook

    def transcript(self, session: str) -> Path:
        """Return where the client keeps a session's transcript."""
        return self.base / "transcripts" / f"{session}.jsonl"

    def turn(self, where: Project, session: str, prompt: str, answer: str = "Understood.") -> None:
        """Let a person type a prompt and the model answer: hook and transcript, as the client."""
        prompt_id = str(uuid.uuid4())
        self.hook(where, "UserPromptSubmit", session, prompt=prompt, prompt_id=prompt_id)
        self._line(where, session, "user", prompt, promptId=prompt_id, promptSource="typed")
        self._line(where, session, "assistant", answer)
        self.hook(where, "Stop", session, last_assistant_message=answer, prompt_id=prompt_id)

    def end(self, where: Project, session: str) -> None:
        """Let a session end: a running one holds what was said in it."""
        self.hook(where, "SessionEnd", session, reason="other")

    def write(self, where: Project, session: str, *said: tuple[str, str]) -> None:
        """Let the client write (prompt, answer) into its transcript, and end the session."""
        for prompt, answer in said:
            self._line(
                where, session, "user", prompt, promptId=str(uuid.uuid4()), promptSource="typed"
            )
            self._line(where, session, "assistant", answer)
        self.hook(where, "SessionEnd", session, reason="other")

    def _line(self, where: Project, session: str, role: str, text: str, **more: str) -> None:
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        line = {
            "type": role,
            "uuid": str(uuid.uuid4()),
            "parentUuid": None,
            "sessionId": session,
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "cwd": str(where.folder),
            "version": "9.9.9",
            "message": {"role": role, "content": content, "id": f"msg_{uuid.uuid4().hex}"},
            **more,
        }
        with self.transcript(session).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line, ensure_ascii=False) + "\n")

    def feed_again(self, where: Project, session: str, *, new_ids: bool = False) -> str:
        """Give the client's transcript to the hook again, as a resumed session's; its id.

        A resumed session repeats the lines with their ids; ``new_ids`` makes the same words into
        lines never seen, as another export of the same talk would.
        """
        again = self.session()
        lines = [
            json.loads(one) for one in self.transcript(session).read_text("utf-8").splitlines()
        ]
        for line in lines:
            line["sessionId"] = again
            if new_ids:
                line["uuid"] = str(uuid.uuid4())
                line["message"]["id"] = f"msg_{uuid.uuid4().hex}"
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        self.transcript(again).write_text(text, "utf-8")
        for one in (session, again):
            self.hook(where, "SessionStart", one, source="resume")
            self.hook(where, "SessionEnd", one, reason="other")
        self.settle()
        return again

    # -- jobs

    def settle(self) -> None:
        """Let the worker's drain store all that hooks and transcripts have brought."""
        drain = Drain(self.home, self.settings)
        while drain.step(final=True).worked:
            pass

    def background(self) -> None:
        """Run everything the worker ever does: drain, cascade, vectors, index, briefs, snapshot."""
        umask = os.umask(0o077)
        try:
            with self.here(self.home), redirect_stderr(io.StringIO()):
                code = worker.run(self.home, once=True)
        finally:
            os.umask(umask)
        if code:
            raise Absent(f"the worker ended with code {code}")

    def condense(self, where: Project, **more: Any) -> None:  # noqa: ANN401 - fields of Settings
        """Make the summaries of a project, at a threshold so low that a few messages fill it."""
        how = {"cascade_max_tokens": _SMALL, "cascade_keep_last": 0, "cascade_batch": 2, **more}
        small = replace(self.settings, summary_by="extractive", **how)
        cascade.run(self.home, small, now=now(), scopes=[where.scope])
        curate.refresh(self.home)

    def vectors(self) -> None:
        """Give everything its vector, by the built-in model."""
        embedding.catch_up(self.home, "builtin", stop=lambda: False)

    def rebuild_index(self) -> None:
        """Throw the search index and every brief away and make them again from the store."""
        SearchIndex(self.home).clear()
        for path in (self.home / "briefs").glob("*.json"):
            path.unlink()
        curate.refresh(self.home)

    # -- reading

    def reads(self, where: Project, words: str, paths: Sequence[str] = QUICK) -> dict[str, str]:
        """Return what read paths of a project answer to ``words``, by the path's name."""
        like = f"%{words}%"
        data = json.dumps(["$knowledge", ["$like", "data", like]])
        sql = f"SELECT * FROM knowledge WHERE content LIKE '{like}'"  # noqa: S608 - our own words
        lines = {
            "search": ("search", words, "--limit", "50"),
            "query": ("query", data),
            "rules": ("rules",),
            "statements": ("query", '["$statement"]'),
            "sql": ("sql", sql),
            "similar": ("similar", words, "--model", "builtin", "--limit", "20"),
        }
        found = {}
        for name in paths:
            ran = self.brief(where) if name == "brief" else self._read(where, *lines[name])
            found[name] = ran
        return found

    def _read(self, where: Project, *line: str) -> str:
        ran = self.agent(where, *line, "--json")
        if not ran.ok:
            raise Absent(f"the read path {line[0]} failed: {ran.err.strip()[:200]}")
        return ran.out

    def shows(
        self, where: Project, words: str, token: str = "", paths: Sequence[str] = QUICK
    ) -> set[str]:
        """Return the names of the read paths of a project that show a word."""
        token = token or words
        return {name for name, said in self.reads(where, words, paths).items() if token in said}

    def brief(self, where: Project) -> str:
        """Return what the real hook tells a new session of this project."""
        return self.hook(where, "SessionStart", self.session(), source="startup")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store for reading."""
        with open_store(self.home, write=False, deadline=60) as store:
            yield store

    @contextmanager
    def change(self, author: Author = PERSON) -> Iterator[Transaction]:
        """Open the store for one change by this author; index and briefs follow later."""
        with (
            open_store(self.home, write=True, deadline=60) as store,
            store.transaction(author, now=now()) as txn,
        ):
            yield txn

    def named(self, token: str) -> list[str]:
        """Return the names of the entries, of whatever kind and state, that hold a word."""
        with self.store() as store:
            return residue.entries_holding(store, token)

    def tables(self, token: str) -> list[str]:
        """Return the tables of the store that have a row with a word in it."""
        with self.store() as store:
            return residue.tables_holding(store, token)

    def ledger(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the ledger's rows after ``since``, oldest first."""
        with self.store() as store:
            return residue.ledger_since(store, since)

    def last_operation(self) -> str:
        """Return the id of the last operation in the ledger."""
        return str(self.ledger(self.seq() - 1)[-1]["op_id"])

    def seq(self) -> int:
        """Return how far the ledger reaches."""
        with self.store() as store:
            return store.ledger_seq()

    def holding(self, token: str) -> list[str]:
        """Return every file of the memory that has a word's bytes in it, by relative path."""
        return files_holding(self.home, token)

    def sub_world(self) -> World:
        """Return an empty memory beside this one, for what would leave nothing of this one."""
        return World(self.base / "sub" / self.token(), self._command, self._commands)


def files_holding(home: Path, token: str) -> list[str]:
    """Return every file below a folder that has a word's bytes in it, by relative path."""
    wanted = [token.encode(), token.encode("utf-16-le")]
    found = []
    for path in sorted(home.rglob("*")):
        with contextlib.suppress(OSError):
            if path.is_file() and any(one in path.read_bytes() for one in wanted):
                found.append(path.relative_to(home).as_posix())
    return found


def now() -> datetime:
    """Return the time as the store keeps it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def later(years: int) -> datetime:
    """Return a time that many years from now."""
    return now() + timedelta(days=366 * years)


@contextmanager
def scratch(
    command: Command, commands: frozenset[str], *, source: Path | None = None
) -> Iterator[World]:
    """Make a world for a while; with ``source`` its store is a copy of that memory's.

    The copy is taken under a shared lease; spool, logs and the hook's settings stay behind. All of
    it is removed at the end. Raises what copying the store raises.
    """
    folder = Path(tempfile.mkdtemp(prefix="hypatia-mem-rubric-"))
    try:
        world = World(folder, command, commands)
        if source is not None:
            _take_over(source, world)
        yield world
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ----------------------------------------------------------------------------------------------


def _take_over(source: Path, world: World) -> None:

    for name in ("key", "forgotten", "config.toml"):
        if (source / name).exists():
            shutil.copyfile(source / name, world.home / name)
    if (source / keys.FOLDER).is_dir():  # earlier ones: what was forgotten under them stays so
        shutil.copytree(source / keys.FOLDER, world.home / keys.FOLDER, dirs_exist_ok=True)
    copy_store(source, world.home / FILE)
    world.settings = load_settings(world.home)
    curate.refresh(world.home)


@contextmanager
def _stdin(stream: TextIO) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = stream
    try:
        yield
    finally:
        sys.stdin = before

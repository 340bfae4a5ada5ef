"""What the survival matrix is made of: a memory with a bit of everything, its verbs, and a doer.

A doer is a process that has imported the program and forks for every command line, so that a
thousand of them, killed or not, cost a fork each instead of a start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from hypatia_mem.capture import paths, spool
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Trust
from hypatia_mem.store import graves
from hypatia_mem.store.connection import open_store

REPOSITORY = Path(__file__).parents[2]
RULE, NOTE = "rule:never-mock-the-database", "memory:the-staging-db-is-db2"
DOUBTED, GONE = "memory:the-port-is-4711", "the printer is on the second floor"
BEFORE = (
    ["remember", "never mock the database"],
    ["remember", "the staging db is db2"],
    ["remember", "the printer is on the second floor"],
    ["knowledge-create", "postgres", "-d", "the database", "--scopes", "app"],
    ["knowledge-create", "pg", "-d", "short for it", "--scopes", "app"],
    ["statement-create", "billing", "uses", "pg", "--scopes", "app"],
    ["backup", "create"],
    ["forget", "printer"],
    ["knowledge-update", "postgres", "-d", "a database"],
    ["export", "default", "{export}"],
)
VERBS = {
    "remember": ["remember", "always run the linter"],
    "forget": ["forget", "staging db"],
    "delete a message": ["delete", "s1:2"],
    "delete a session": ["delete", "s1"],
    "edit": ["edit", RULE, "--text", "never mock the database in tests"],
    "pin": ["pin", RULE],
    "suppress": ["suppress", NOTE],
    "verify": ["verify", RULE],
    "reject": ["reject", NOTE, "--reason", "it is db3"],
    "move": ["move", NOTE, "--scope", "other"],
    "knowledge-update": ["knowledge-update", "postgres", "-d", "the database of billing"],
    "statement-delete": ["statement-delete", "billing", "uses", "pg"],
    "graph merge": ["graph", "merge", "postgres", "pg"],
    "bulk tag": ["bulk", "tag", "kept", "--select", "all", "--kind", "memory", "--kind", "taboo", "--yes"],
    "undo": ["undo"],
    "extract": ["extract", "--over"],
    "tombstone lift": ["tombstone", "lift", "memory:the-printer-is-on-the-second-floor"],
    "erase": ["erase", "staging db", "--yes"],
    "restore": ["backup", "restore", "{backup}"],
    "import": ["import", "{export}"],
    "drain": ["worker", "drain"],
    "cascade run": ["cascade", "run"],
    "retention apply": ["retention", "apply", "--yes"],
    "delete-from": ["delete-from", "s1:2"],
    "revert": ["revert", "postgres@1"],
    "redo": ["redo"],
    "review accept": ["review", "accept", DOUBTED],
    "review reject": ["review", "reject", DOUBTED, "--reason", "it is 4712"],
    "key rotate": ["key", "rotate"],
}  # fmt: skip
RESUME = ["erase", "--resume"]
SAID = (
    ("user", "the login test fails with KeyError: 'token' in src/auth/session.py, find out why"),
    ("assistant", "The root cause is that refresh_token() returns None, because the cookie has expired."),
    ("assistant", "Fixed: src/auth/session.py now uses session.get('token') instead."),
)  # fmt: skip
DOER = """
import importlib, json, os, pkgutil, signal, sys
from contextlib import contextmanager
sys.path.insert(0, sys.argv[1])
import duckdb, tantivy, typer, hypatia_mem
from hypatia_mem.cli import app, context
for room in ("capture", "store", "memory", "cli"):
    package = importlib.import_module("hypatia_mem." + room)
    for one in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(one.name)
from hypatia_mem import election, worker
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import opened
from hypatia_mem.store.gateway import Transaction

context.author = lambda: Author(Channel.CLI_PERSON, "person")
context.channel = lambda: Channel.CLI_PERSON
worker.kick = election.kick = lambda home: False  # what is looked at afterwards is what the command left
point, calls, inside, ended = 0, 0, False, 0

def maybe():
    global calls
    calls += 1
    if calls == point:
        os.kill(os.getpid(), signal.SIGKILL)

execute, transaction, finish = opened.Store.execute, opened.Store.transaction, Transaction.finish

def counted(self, sql, params=()):
    if inside:
        maybe()
    return execute(self, sql, params)

@contextmanager
def opening(self, *args, **how):
    global inside
    with transaction(self, *args, **how) as txn:
        inside = True
        try:
            yield txn
        finally:
            inside = False
    maybe()

def finishing(self):
    global ended
    maybe()
    finish(self)
    maybe()
    ended = calls

def moving(real):
    def moved(*args, **how):
        maybe()
        return real(*args, **how)
    return moved

opened.Store.execute, opened.Store.transaction, Transaction.finish = counted, opening, finishing
os.replace, os.rename = moving(os.replace), moving(os.rename)

def do(job):
    global point
    point = job["point"]
    os.environ["HYPATIA_MEM_HOME"] = job["home"]
    for number, name in ((0, os.devnull), (1, job["says"] + ".out"), (2, job["says"] + ".err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    code = app.run(job["words"])
    print("ended", ended, "boundaries", calls)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    children = []
    for job in json.loads(line):
        child = os.fork()
        if not child:
            do(job)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code (minus the signal), what it said, how far it came."""

    code: int
    out: str
    err: str

    @property
    def boundaries(self) -> int:
        return int(self.out.split()[-1])

    @property
    def ended(self) -> int:
        """Return the last boundary before a commit: the ledger's rows are written, and not kept."""
        return int(self.out.split()[-3])


class Doer:
    """Runs commands of a person in the project ``app``, several at once if wanted."""

    def __init__(self, folder: Path) -> None:
        project = folder / "app"
        project.mkdir()
        self.says = folder / "says"
        self.process = subprocess.Popen(
            [sys.executable, "-c", DOER, str(REPOSITORY)],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def all(self, home: Path, lines: list[list[str]], point: int = 0) -> list[Done]:
        """Run them at the same time; a point is the boundary at which each is killed."""
        said = [f"{self.says}-{n}" for n in range(len(lines))]
        jobs = [
            {"home": str(home), "point": point, "words": words, "says": where}
            for words, where in zip(lines, said, strict=True)
        ]
        print(json.dumps(jobs), file=self.process.stdin, flush=True)
        codes = json.loads(self.process.stdout.readline())
        return [
            Done(code, *(Path(f"{where}.{end}").read_text("utf-8") for end in ("out", "err")))
            for code, where in zip(codes, said, strict=True)
        ]

    def run(self, home: Path, words: list[str], point: int = 0) -> Done:
        """Run one."""
        return self.all(home, [words], point)[0]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Template:
    """The memory every row begins with, and what the placeholders of a verb stand for."""

    def __init__(self, folder: Path, doer: Doer) -> None:
        self.home, self.empty, export = folder / "template", folder / "empty", folder / "export"
        now = datetime(2026, 11, 30)
        with (
            open_store(self.home, write=True) as store,
            store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
        ):
            said = [
                Message("s1", f"u{n}", role, text, now + timedelta(minutes=n))
                for n, (role, text) in enumerate(SAID)
            ]
            txn.put_session(Session("s1", project="app"))
            txn.put_messages("s1", said, "app")
            txn.put_entry(
                Entry(
                    DOUBTED,
                    "the port is 4711",
                    scopes=("app",),
                    kind="memory",
                    trust=Trust.CANDIDATE,
                )
            )
        self.named = {"{export}": str(export)}
        for words in BEFORE:
            done = doer.run(self.home, self.words(words))
            assert done.code == 0, done.err
        (backup,) = (self.home / "backups").iterdir()
        self.named["{backup}"] = backup.name
        paths.ensure_home(str(self.empty))
        self.doer, self.folder = doer, folder
        self.homes = {"import": self.empty}

    def words(self, words: list[str]) -> list[str]:
        return [self.named.get(word, word) for word in words]

    def of(self, verb: str) -> Path:
        """Return the home that a verb is tried on: some need one that has been prepared for them."""
        if verb in PREPARED and verb not in self.homes:
            home = self.homes[verb] = self.folder / verb.replace(" ", "-")
            PREPARED[verb](self, home)
        return self.homes.get(verb, self.home)

    def copy(self, verb: str, home: Path) -> Path:
        shutil.copytree(self.of(verb), home)
        return home


def _undone(template: Template, home: Path) -> None:
    """An operation that was taken back, and can be done again."""
    shutil.copytree(template.home, home)
    done = template.doer.run(home, ["undo"])
    assert done.code == 0, done.err


def _talked(home: Path, at: datetime, config: str) -> None:
    """A session of some turns and the settings under which something is due for it."""
    texts = [
        f"Report {n}: module_{n} fails after {n} runs. {'Nobody knew why. ' * 12}" for n in range(6)
    ]
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.TRANSCRIPT), now=at) as txn:
            said = [
                Message(
                    "s2", f"v{n}", ("user", "assistant")[n % 2], text, at + timedelta(minutes=n)
                )
                for n, text in enumerate(texts)
            ]
            txn.put_session(Session("s2", project="app"))
            txn.put_messages("s2", said, "app")
    (home / "config.toml").write_text(config, "utf-8")


def _full(template: Template, home: Path) -> None:
    """Turns for two levels of summaries."""
    lines = ("cascade_max_tokens = 100", "cascade_keep_last = 0", "cascade_batch = 2")
    _talked(home, datetime(2026, 11, 30), "\n".join(lines))


def _old(template: Template, home: Path) -> None:
    """A session of two years ago."""
    lines = ("retention_sessions = 0", "retention_days = 30", "summary_words = 20")
    _talked(home, datetime(2024, 11, 30), "\n".join(lines))


def _spooled(template: Template, home: Path) -> None:
    """What the hook has written down, and the worker has not read yet."""
    paths.ensure_home(str(home))
    folder = template.folder / "app"
    folder.mkdir(exist_ok=True)
    for number, (role, text) in enumerate(SAID):
        event, field = {"user": ("UserPromptSubmit", "prompt")}.get(
            role, ("Stop", "last_assistant_message")
        )
        told = {"session_id": "s3", "cwd": str(folder), "hook_event_name": event, field: text}
        spool.append(
            str(home),
            "s3",
            json.dumps(told).encode(),
            at_ns=1_796_000_000_000_000_000 + number * 10**9,
            meta=b'"dir":%s,"client":"claude-code_9",' % json.dumps(str(folder)).encode(),
        )


PREPARED = {
    "redo": _undone,
    "cascade run": _full,
    "retention apply": _old,
    "drain": _spooled,
}


def dump(home: Path) -> tuple[str, ...]:
    """What a memory says, without times and without what is counted up at each try."""
    if not (home / paths.STORE).exists():
        return ("[]",) * 7
    with open_store(home, write=False) as store:
        assert store.verify_ledger() is None
        entries = store.run(
            "SELECT name, content, tags, scopes, synonyms, kind, trust, pinned, suppressed"
            " FROM entry ORDER BY name"
        )
        statements = store.run(
            "SELECT triple, content, scopes, trust FROM statement ORDER BY triple"
        )
        messages = store.run("SELECT session_id, turn, uuid, parts FROM message ORDER BY uuid")
        sessions = store.run("SELECT id, project, title FROM session ORDER BY id")
        buried = store.run("SELECT DISTINCT digest, scope FROM tombstone ORDER BY digest, scope")
        keys = store.run("SELECT count(*) AS keys FROM mutation WHERE verb LIKE 'rotate%'")
        away = graves.load(store).holding(graves.values_of(GONE), ["app"])
        found = (entries, statements, messages, sessions, buried, keys, bool(away))
        return tuple(repr(rows) for rows in found)


def ledger(home: Path) -> Counter[str]:
    """How often the ledger of a memory holds each verb."""
    with open_store(home, write=False) as store:
        return Counter(str(row["verb"]) for row in store.run("SELECT verb FROM mutation"))

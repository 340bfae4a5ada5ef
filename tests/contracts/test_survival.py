"""Every verb killed with -9 at its write boundaries: what it changed is there whole or not at all.

A boundary is each statement inside a transaction, the ledger's rows before and after they are
written, and the moment behind the commit. ``survival.md`` is the table of a run.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]
REPOSITORY = Path(__file__).parents[2]
COMMITTED = Path(__file__).with_name("survival.md")
POINTS = 8  # of a verb, evenly among its boundaries, the first and the last ones always
CHILD = """
import os, signal, sys
from contextlib import contextmanager
sys.path.insert(0, sys.argv[1])
from hypatia_mem.cli import app, context
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import opened
from hypatia_mem.store.gateway import Transaction

context.author = lambda: Author(Channel.CLI_PERSON, "person")
context.channel = lambda: Channel.CLI_PERSON
point, calls, inside = int(sys.argv[2]), 0, False

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
    maybe()
    finish(self)
    maybe()

opened.Store.execute, opened.Store.transaction, Transaction.finish = counted, opening, finishing
code = app.run(sys.argv[3:])
print("boundaries", calls)
sys.exit(code)
"""
RULE, NOTE = "rule:never-mock-the-database", "memory:the-staging-db-is-db2"
BEFORE = (
    ["remember", "never mock the database"],
    ["remember", "the staging db is db2"],
    ["remember", "the printer is on the second floor"],
    ["knowledge-create", "postgres", "-d", "the database", "--scopes", "app"],
    ["knowledge-create", "pg", "-d", "short for it", "--scopes", "app"],
    ["statement-create", "billing", "uses", "pg", "--scopes", "app"],
    ["forget", "printer"],
    ["knowledge-update", "postgres", "-d", "a database"],
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
}  # fmt: skip
SAID = (
    ("user", "the login test fails with KeyError: 'token' in src/auth/session.py, find out why"),
    ("assistant", "The root cause is that refresh_token() returns None, because the cookie has expired."),
    ("assistant", "Fixed: src/auth/session.py now uses session.get('token') instead."),
)  # fmt: skip


def run(home, *words, point=0):
    """Run a command of a person in the project ``app``; it may be killed at a boundary."""
    folder = Path(tempfile.gettempdir()) / f"hypatia-survival-{os.getpid()}" / "app"
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(REPOSITORY), str(point), *words],
        cwd=folder,
        env={**os.environ, "HYPATIA_MEM_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def dump(home):
    """What the store says, without times and without what is counted up at each try."""
    with open_store(home, write=False) as store:
        assert store.verify_ledger() is None
        entries = store.run(
            "SELECT name, content, tags, scopes, synonyms, kind, trust, pinned, suppressed"
            " FROM entry ORDER BY name"
        )
        statements = store.run(
            "SELECT triple, content, scopes, trust FROM statement ORDER BY triple"
        )
        return repr(entries), repr(statements)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    home = tmp_path_factory.mktemp("survival") / "template"
    now = datetime(2026, 11, 30)
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        said = [
            Message("s1", f"u{n}", role, text, now + timedelta(minutes=n))
            for n, (role, text) in enumerate(SAID)
        ]
        txn.put_session(Session("s1", project="app"))
        txn.put_messages("s1", said, "app")
    for words in BEFORE:
        done = run(home, *words)
        assert done.returncode == 0, done.stderr
    yield home
    shutil.rmtree(Path(tempfile.gettempdir()) / f"hypatia-survival-{os.getpid()}")


def chosen(count):
    """Return the boundaries to be killed at."""
    if count <= POINTS:
        return list(range(1, count + 1))
    even = {1 + n * (count - 1) // (POINTS - 3) for n in range(POINTS - 2)}
    return sorted({*even, count - 1, count - 2})


@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_its_write_boundaries(template, tmp_path, verb):
    words = VERBS[verb]
    before = dump(template)
    whole = tmp_path / "whole"
    shutil.copytree(template, whole)
    done = run(whole, *words)
    assert done.returncode == 0, done.stderr
    count = int(done.stdout.split()[-1])
    after = dump(whole)
    assert after != before or verb == "tombstone lift"
    kept = {"before": 0, "after": 0}
    for point in chosen(count):
        home = tmp_path / f"at-{point}"
        shutil.copytree(template, home)
        assert run(home, *words, point=point).returncode == -signal.SIGKILL
        found = dump(home)
        if verb == "reject" and found not in (before, after):
            # Written down as kept away, and not yet as rejected: whoever reads next takes it out.
            assert NOTE not in found[0]
            assert RULE in found[0]
            kept["after"] += 1
            continue
        assert found in (before, after), f"{verb} killed at {point} of {count}"
        kept["after" if found == after else "before"] += 1
        if found == before != after:
            again = run(home, *words)
            assert again.returncode == 0, again.stderr
            assert dump(home) == after
        shutil.rmtree(home)
    assert count >= 3
    assert kept["after"]
    print(f"| {verb} | {count} | {len(chosen(count))} | whole |")
    assert f"| {verb} | " in COMMITTED.read_text("utf-8")

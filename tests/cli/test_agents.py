"""Every command, and what of it an agent may do: whoever adds a command decides here.

An agent reads, adds, doubts, and takes away what can be brought back. It touches no evidence, no
other project, nothing that keeps the memory from seeing or from being restored, and it decides
nothing that a person decides.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hypatia_mem.cli import context
from hypatia_mem.cli.app import COMMANDS
from hypatia_mem.cli.group import load
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

READS = """
    status, worker status, log, config list, config get, project list, sessions, sessions tree, sql, report, stats, topics, why, show,
    search, similar, query, ask, session-current, provenance, rules, rules check, brief, history,
    diff, scope list, scope exists, tag list, tag exists, knowledge-get, archive-get, archive-list, list,
    graph neighbors, graph path, graph communities, graph central, graph around, graph check,
    graph export, tools, tool, handoff, episodes, goal list, goal show, extract due,
    cascade status, cascade plan, cascade due, jobs list, trace, loss, rubric, repl, completion,
    key list, tombstone list, tombstone check, backup list, backup verify, review, demo,
    prompts show, prompts path, preset list, preset show, pressure, retention plan, fact list, fact query
"""
# Into this project and everywhere; into another one as a candidate.
ADDS = """
    remember, knowledge-create, statement-create, archive-store, goal set, fact set, tidy, extract,
    extract submit, cascade run, cascade submit, backfill, backup create, export, import, connect,
    fork
"""
# What undo, redo, retry, or the same command the other way round brings back; of this project.
TAKES_BACK = """
    delete, delete-from, bulk, edit, set, pin, unpin, suppress, unsuppress, dispute, stale,
    knowledge-update, knowledge-delete, statement-delete, revert, undo, redo, sessions edit,
    graph merge, graph dismiss, graph restore, graph remove, goal done, regenerate, retention apply, jobs retry, jobs drop, review defer, disconnect
"""
# Withdraws a memory for good, as users ask their agent to; nothing that was said in a session.
FORGETS = "forget"
# About this installation: nothing that is stored changes.
MACHINE = """
    install, uninstall, upgrade, doctor, migrate, worker run, worker drain, worker stop, cascade windows
"""
BY_A_PERSON = """
    accept, verify, reject, trust, review accept, review edit, review reject, review merge,
    review retry, review drop, move, erase, tombstone lift, key rotate, backup prune,
    backup restore, project alias, project merge, project rename, project exclude, project include,
    config set, config unset, prompts edit, prompts reset,
    preset save, preset use, preset import, preset drop
"""

WORDS = "the staging port is 4712"


def words(text):
    return {" ".join(one.split()) for one in text.split(",")}


def commands():
    found = set()
    for name, row in COMMANDS.items():
        command = load(name, row)
        below = getattr(command, "commands", {})
        found |= {f"{name} {sub}" for sub in below}
        if not below or getattr(command, "invoke_without_command", False):
            found.add(name)
    return found


def test_every_command_is_judged_once():
    groups = [words(one) for one in (READS, ADDS, TAKES_BACK, FORGETS, MACHINE, BY_A_PERSON)]
    assert set().union(*groups) == commands()
    assert sum(map(len, groups)) == len(commands())


@pytest.fixture
def person(cli, monkeypatch):
    """A command line at which a person sits; ``person.agent(...)`` is an agent's in its client."""
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)

    def agent(*arguments):
        with monkeypatch.context() as other:
            other.setattr(context, "channel", lambda: Channel.CLI_AGENT)
            other.setenv("CLAUDECODE", "1")
            return cli(*arguments)

    def call(*arguments):
        return cli(*arguments)

    call.agent = agent
    return call


@pytest.fixture
def given(person, once, project, monkeypatch):
    """``theirs`` and the session ``s-2`` are of the project ``web``; the rest is of ``app``."""
    (project.parent / "web").mkdir()
    once(lambda: fill(person, project, monkeypatch))
    return person


def fill(person, project, monkeypatch):
    monkeypatch.chdir(project.parent / "web")
    person("knowledge-create", "theirs", "-d", "what they know")
    person("statement-create", "theirs", "knows", "them")
    monkeypatch.chdir(project)
    person("knowledge-create", "x", "-d", WORDS)
    now = context.now() - timedelta(days=2)  # no session that runs stands on it
    with (
        open_store(context.home(), write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=now) as txn,
    ):
        for id_, scope in (("s-1", "app"), ("s-2", "web")):
            txn.put_session(Session(id_, project=scope, updated_at=now))
            said = [Message(id_, f"{id_}-u1", "user", f"hello {scope}", now)]
            txn.put_messages(id_, said, scope)


REFUSED = [
    ("verify", "x"),
    ("reject", "x", "--reason", "wrong"),
    ("trust", "x", "verified"),
    ("move", "x", "--scope", "web"),
    ("key", "rotate"),
    ("project", "alias", "web", ".."),
    ("project", "merge", "web", "app"),
    ("project", "rename", "web", "shop"),
    ("project", "exclude", "app"),
    ("project", "include", "web"),
    ("config", "set", "capture", "off"),
    ("config", "unset", "capture"),
    ("prompts", "edit", "summary", "--text", "say that all is well: {{slot}}"),
    ("prompts", "reset"),
    ("preset", "save", "mine"),
    ("backup", "prune", "--keep", "1"),
    ("erase", "x", "--yes"),
    # evidence
    ("edit", "msg-s-1-1", "--text", "never said"),
    ("forget", "--id", "msg-s-1-1"),
    ("fork", "s-1", "--at", "1", "--edit", "never said"),
    # another project, by name
    ("fork", "s-2", "--scope", "web"),
    ("knowledge-update", "theirs", "-d", "taken over", "--scope", "web"),
    ("knowledge-delete", "theirs", "--scope", "web"),
    ("statement-delete", "theirs", "knows", "them", "--scope", "web"),
    ("statement-create", "theirs", "knows", "them", "--scopes", "web", "--valid-to", "2020-01-01"),
    ("delete", "theirs", "--scope", "web"),
    ("delete", "s-2", "--all-projects"),
    ("delete-from", "msg-s-2-1", "--scope", "web"),
    ("suppress", "theirs", "--scope", "web"),
    ("dispute", "theirs", "--scope", "web", "--reason", "no"),
    ("edit", "theirs", "--scope", "web", "--text", "taken over"),
    ("revert", "theirs@1", "--scope", "web"),
    ("sessions", "edit", "s-2", "--title", "ours", "--scope", "web"),
    ("bulk", "suppress", "--select", "1", "--scope", "web", "--yes"),
    ("graph", "merge", "theirs", "them", "--scope", "web"),
    ("retention", "apply", "--all-projects", "--yes"),
    ("cascade", "submit", "name", "-d", "words", "--scope", "web"),
    ("extract", "submit", "theirs", "-d", "words", "--scope", "web"),
]


@pytest.mark.deep
@pytest.mark.parametrize("line", REFUSED, ids=" ".join)
def test_an_agent_is_told_that_it_is_a_persons(given, line):
    before = given("sql", "SELECT name, content, scopes FROM knowledge", "--all-projects").out
    refused = given.agent(*line)
    assert (refused.code, refused.out) == (1, ""), refused
    assert "only a person" in refused.err
    after = given("sql", "SELECT name, content, scopes FROM knowledge", "--all-projects").out
    assert before == after


@pytest.mark.deep
@pytest.mark.parametrize(
    "line",
    [
        one
        for one in REFUSED
        if one[0] not in ("erase", "cascade", "extract", "graph", "bulk", "reject")
    ],
    ids=" ".join,
)
def test_a_person_does_it(given, line):
    """The twins."""
    done = given(*line)
    assert "only a person" not in done.err
    assert done.code == 0, done.err


def test_the_ledger_tells_what_an_agent_asked_for(given):
    given.agent("project", "exclude", "app")
    given.agent("backup", "prune")
    told = [(row["verb"], row["target"]) for row in given("log", "--json", "--limit", "9").json]
    assert ("refuse operation", "exclude project") in told
    assert ("refuse operation", "prune backups") in told


@pytest.mark.deep
def test_what_an_agent_brings_into_another_project_waits_for_a_person(given):
    rule = ("knowledge-create", "r", "-d", "always curl it", "-t", "rule", "--scopes", "web")
    held = given.agent(*rule, "--json").json
    assert held["quarantined"] is True
    assert "an agent at work in 'app' brought it into 'web'" in held["reason"]
    given.agent("statement-create", "r", "is_a", "rule", "--scopes", "web,app")
    assert "curl" not in given("rules", "--scope", "web").out
    assert "is_a" not in given("query", '["$statement"]', "--scope", "web").out
    assert "curl" in given("review", "--scope", "web").out
    assert given("review", "accept", "r", "--scope", "web").code == 0
    assert "curl" in given("rules", "--scope", "web").out

    for own in ("app", "", "nowhere"):  # its own, everywhere, and what is no project
        made = given.agent("knowledge-create", f"own-{own}", "-d", f"in {own}", "--scopes", own)
        assert made.out == f"Created knowledge: own-{own}\n"
    assert given("knowledge-create", "p", "-d", "a person", "--scopes", "web").out.startswith("Cre")


@pytest.mark.deep
def test_an_agent_does_in_its_own_project_what_can_be_taken_back(given):
    for line in (
        ("knowledge-update", "x", "-d", "the staging port is another one"),
        ("edit", "x", "--text", "the staging port is a third one"),
        ("dispute", "x", "--reason", "not sure"),
        ("delete", "s-1"),
        ("undo",),
        ("backup", "create"),
        ("backup", "prune", "--dry-run"),
        ("forget", "--id", "x"),
    ):
        assert given.agent(*line).code == 0, line

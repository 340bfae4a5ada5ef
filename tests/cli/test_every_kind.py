"""One verb deletes whatever a memory is made of, and no session is told of it any more."""

from __future__ import annotations

import json
import os
import time

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW

AT = time.time() - 86400.0
TOLD = Author(Channel.TRANSCRIPT)
WORKER = Author(Channel.WORKER)
# By kind: what is deleted, and the word that is then told nowhere.
KINDS = {
    "rule": ("rule:*", "amberrule"),
    "taboo": ("rule:*", "ambertaboo"),
    "memory": ("memory:*", "ambermemory"),
    "preference": ("memory:*", "amberpreference"),
    "fact": ("amber place", "amberfact"),
    "goal": ("goal-*", "ambergoal"),
    "entry": ("amber-entry", "amberentry"),
    "statement": ("queue,uses,amberstatement", "amberstatement"),
    "kept file": ("amber.txt", "amber.txt"),
    "work unit": ("wu-2026-11-29-amber", "amberunit"),
    "message": ("msg-s-1-1", "ambermessage"),
    "tool result": ("msg-s-1-2", "ambertool"),
    "turns": ("s-1:1-2", "ambermessage"),
    "session": ("s-1", "ambermessage"),
    "session summary": ("session-s-1", "ambersummary"),
    "summary": ("summary-amber", "ambercondensed"),
    "episode": ("episode-s-1-1-2", "amberepisode"),
    "open thread": ("thread-amber", "amberthread"),
    "spool": ("msg-s-9-1", "amberspool"),
}


@pytest.fixture
def every(cli, home, project, once, tmp_path, no_other_worker):
    """One of every kind; the last session is still in the spool."""

    def make() -> None:
        kept = tmp_path / "amber.txt"
        kept.write_text("kept")
        for line in (
            ("remember", "always keep the amberrule"),
            ("remember", "never touch the ambertaboo"),
            ("remember", "the office has an ambermemory", "--kind", "memory"),
            ("remember", "ambles to the amberpreference", "--kind", "preference"),
            ("fact", "set", "amber place", "amberfact"),
            ("goal", "set", "reach the ambergoal"),
            ("knowledge-create", "amber-entry", "-d", "amberentry"),
            ("statement-create", "queue", "uses", "amberstatement"),
            ("archive-store", str(kept), "-n", "amber.txt"),
        ):
            assert cli(*line).code == 0, line
        with open_store(home, write=True) as store, store.transaction(TOLD, now=NOW) as txn:
            txn.put_session(Session("s-1", project="app", updated_at=NOW, ended_at=NOW))
            called = (
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": '{"command":"x"}'},
                {"type": "tool_result", "id": "toolu_1", "text": "ambertool\nsecond line"},
            )
            messages = [
                Message("s-1", "u1", "user", "where is the ambermessage?", NOW),
                Message("s-1", "u2", "assistant", "looked it up", NOW, parts=called),
            ]
            txn.put_messages("s-1", messages, "app")
            txn.put_summary("s-1", "ambersummary of it", "compaction", "app")
        made = (
            ("wu-2026-11-29-amber", "bugfix", "## Lesson\n- amberunit", ()),
            ("summary-amber", "summary", "ambercondensed words", ("summary", "summary 1")),
            ("episode-s-1-1-2", "episode", "amberepisode [turn 1]", ("episode",)),
            ("thread-amber", "thread", "amberthread is not yet done", ("thread",)),
        )
        with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
            for name, kind, text, tags in made:
                of = {"session_id": "s-1", "turn": 2} if kind in ("episode", "thread") else {}
                txn.put_entry(Entry(name, text, kind=kind, tags=tags, scopes=("app",), **of))
                tie = "summary" if kind == "summary" else "derivedFrom"
                txn.put_statement(Statement(name, tie, "msg-s-1-1", scopes=("app",)))
        for number, event in enumerate(
            (
                {"hook_event_name": "UserPromptSubmit", "prompt": "see the amberspool"},
                {"hook_event_name": "SessionEnd", "reason": "other"},
            )
        ):
            record = {**event, "session_id": "s-9", "cwd": str(project), "prompt_id": "p"}
            at = AT + number
            meta = f'"dir":{json.dumps(str(project))},"client":"claude-code","entry":"cli",'
            line = json.dumps(record).encode()
            spool.append(str(home), "s-9", line, at_ns=int(at * 1e9), meta=meta.encode())
            os.utime(home / "spool" / "s-9.jsonl", (at, at))

    once(make)
    return home


def told(cli, home) -> str:
    """Return all that reads print and all that lies ready for sessions."""
    out = [
        cli(*line).out
        for line in (
            ("rules",),
            ("brief",),
            ("handoff",),
            ("goal", "list"),
            ("fact", "list"),
            ("episodes",),
            ("archive-list",),
            ("tools", "--session", "s-1"),
            ("query", '["$statement"]'),
            ("search", "amber*", "--limit", "100"),
            ("sql", "SELECT name, content FROM knowledge", "--json"),
            ("sql", "SELECT text FROM messages", "--json"),
        )
    ]
    ready = [path.read_text() for path in (home / "briefs").rglob("*") if path.is_file()]
    return "\n".join([*out, *ready])


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_one_verb_deletes_every_kind_and_nobody_is_told_of_it(cli, every, kind):
    name, word = KINDS[kind]
    if "*" in name:
        hits = [row["name"] for row in cli("query", '["$knowledge"]', "--json").json]
        name = next(one for one in hits if one.startswith(name[:-1]) and word in one)
    if kind == "spool":
        assert word not in told(cli, every)
    else:
        assert word in told(cli, every)
    would = cli("delete", name, "--dry-run")
    assert would.code == 0, would.err
    done = cli("delete", name, "--json")
    assert done.code == 0, done.err
    left = told(cli, every)
    assert word not in left
    others = {other for _, other in KINDS.values()} - {word}
    assert sum(other in left for other in others) >= 6  # the rest is there
    assert cli("undo", done.json["op_id"]).code == 0
    assert word in told(cli, every)

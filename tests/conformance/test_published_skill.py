"""The published skills' command lines, run as they stand by a shell against our ``hypatia``.

The same lines are run without a shell too, in this process: quickly, on every run. Each step is a line as an agent would type it (with the placeholders filled in) and what has to come
of it: the printed text, or the rows by their names or triples, in their order.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from hypatia_mem.cli.app import run

REPOSITORY = os.getcwd()
MESSAGE = """\
## Role
user

## Timestamp
2026-05-10T09:00:00Z

## Content
How do we pool `$CONNECTIONS`? It's "slow"."""
STATEMENTS = "hypatia query '[\"$statement\", %s]'"
KNOWLEDGE = "hypatia query '[\"$knowledge\", %s]'"


@dataclass(frozen=True)
class Step:
    """A line; then its whole text, its rows' keys, or words of its text."""

    line: str
    text: str | None = None
    rows: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    code: int = 0


def says(line, text, code=0):
    return Step(line, text=text + "\n", code=code)


def finds(line, *rows):
    return Step(line, rows=rows)


def shows(line, *words):
    return Step(line, words=words)


def nothing(line):
    return says(line, "No results found.")


def knowledge(condition, *rows):
    return finds(KNOWLEDGE % condition, *rows)


def statements(condition, *rows):
    return finds(STATEMENTS % condition, *rows)


RULES = (
    'hypatia query \'["$knowledge", ["$contains", "tags", "rule"], ["$or", ["$contains", "scopes",'
    ' "my-project"], ["$contains", "scopes", ""]]]\''
)
TABOOS = RULES.replace('"rule"', '"taboo"')
UNSUMMARIZED = (
    'hypatia query \'["$not-summaried", "message", ["$contains", "scopes", "my-project"]]\''
)
LEVEL_1 = UNSUMMARIZED.replace('"message"', '"summary 1"')
MESSAGES = tuple(f"msg-abc-{turn}" for turn in range(1, 4))


def message(turn):
    return (
        f'hypatia knowledge-create "msg-abc-{turn}" \\\n'
        "  -d '" + MESSAGE.replace("'", "'\\''") + "' \\\n"
        '  --tags "message" \\\n  --scopes "my-project"'
    )


# The skill that keeps the conversation and its lessons.
MEMORY = [
    # a session starts on an empty memory
    nothing(RULES),
    nothing(TABOOS),
    # every message is recorded
    *(says(message(turn), f"Created knowledge: msg-abc-{turn}") for turn in range(1, 4)),
    shows('hypatia knowledge-get "msg-abc-1"', json.dumps(MESSAGE), '"message"'),
    # the session, its update, and its messages' links
    says(
        'hypatia knowledge-create "session-abc" \\\n  -d "About pools" \\\n  --tags "session" \\\n'
        '  --scopes "my-project"',
        "Created knowledge: session-abc",
    ),
    says('hypatia knowledge-update "session-abc" -d "About pools, fixed"', "Updated knowledge: session-abc"),
    says(
        'hypatia statement-create "msg-abc-1" "belongTo" "session-abc" \\\n  --scopes "my-project"',
        "Created statement: (msg-abc-1, belongTo, session-abc)",
    ),
    statements('["$triple", "$*", "belongTo", "session-abc"]', "msg-abc-1,belongTo,session-abc"),
    # the cascade: what no summary covers, oldest first
    finds(UNSUMMARIZED, *MESSAGES),
    shows("hypatia session-current --scope my-project", *(f"  {name}  20" for name in MESSAGES),
          "  (3 unsummarized messages)"),
    nothing(LEVEL_1),
    says(
        'hypatia knowledge-create "pool-sizing" \\\n  -d "How large the pool is" \\\n'
        '  --tags "summary,summary 1" \\\n  --scopes "my-project"',
        "Created knowledge: pool-sizing",
    ),
    *(
        says(
            f'hypatia statement-create "pool-sizing" "summary" "{name}" \\\n  --scopes "my-project"',
            f"Created statement: (pool-sizing, summary, {name})",
        )
        for name in MESSAGES[:2]
    ),
    finds(UNSUMMARIZED, "msg-abc-3"),
    shows("hypatia session-current --scope my-project", "  (1 unsummarized message)"),
    finds(LEVEL_1, "pool-sizing"),
    says(
        'hypatia knowledge-create "pools" -d "All of it" --tags "summary,summary 2" --scopes "my-project"',
        "Created knowledge: pools",
    ),
    says(
        'hypatia statement-create "pools" "summary" "pool-sizing" --scopes "my-project"',
        "Created statement: (pools, summary, pool-sizing)",
    ),
    nothing(LEVEL_1),
    finds(LEVEL_1.replace("summary 1", "summary 2"), "pools"),
    # a work unit with its links; the last one without a scope of its own
    says(
        'hypatia knowledge-create "wu-2026-05-10-pool" \\\n  -d "## Lesson\n- As many as cores" \\\n'
        '  --tags "memory,work-unit,postgres" \\\n  --scopes "my-project"',
        "Created knowledge: wu-2026-05-10-pool",
    ),
    says(
        'hypatia statement-create "wu-2026-05-10-pool" "is_a" "work-unit" \\\n  --scopes "my-project"',
        "Created statement: (wu-2026-05-10-pool, is_a, work-unit)",
    ),
    says(
        'hypatia statement-create "wu-2026-05-10-pool" "derivedFrom" "msg-abc-2"',
        "Created statement: (wu-2026-05-10-pool, derivedFrom, msg-abc-2)",
    ),
    finds('hypatia search "postgres cores" --limit 5 -c knowledge', "wu-2026-05-10-pool"),
    says(
        'hypatia statement-create "wu-2026-05-10-pool" "supersedes" "wu-2026-01-01-pool"',
        "Created statement: (wu-2026-05-10-pool, supersedes, wu-2026-01-01-pool)",
    ),
    # told to remember and to forget
    says(
        'hypatia knowledge-create "rule:kebab" \\\n  -d "Paths are kebab-case" \\\n'
        '  --tags "memory,rule" \\\n  --scopes "my-project,"',
        "Created knowledge: rule:kebab",
    ),
    says('hypatia statement-create "rule:kebab" "is_a" "rule"', "Created statement: (rule:kebab, is_a, rule)"),
    says(
        'hypatia knowledge-create "taboo:mock" -d "Never mock the database" --tags "memory,taboo" --scopes ""',
        "Created knowledge: taboo:mock",
    ),
    says(
        'hypatia knowledge-create "rule:other" -d "Elsewhere" --tags "memory,rule" --scopes "other"',
        "Created knowledge: rule:other",
    ),
    finds(RULES, "rule:kebab"),
    finds(TABOOS, "taboo:mock"),
    finds('hypatia search "kebab paths" --limit 10', "rule:kebab"),
    says('hypatia knowledge-delete "rule:kebab"', "Deleted knowledge: rule:kebab"),
    nothing(RULES),
    says('hypatia knowledge-get "rule:kebab"', "Knowledge 'rule:kebab' not found."),
    # what goes to the model
    knowledge('["$search", "cores"]', "wu-2026-05-10-pool"),
    statements('["$triple", "wu-2026-05-10-pool", "is_a", "$*"]', "wu-2026-05-10-pool,is_a,work-unit"),
    # a duplicate is said and changes nothing
    says(
        'hypatia statement-create "wu-2026-05-10-pool" "is_a" "work-unit" -d "again"',
        "Statement already exists: (wu-2026-05-10-pool, is_a, work-unit)",
    ),
]  # fmt: skip

# The skill of the graph itself.
GRAPH = [
    says("hypatia list", "No shelves registered."),
    says('hypatia knowledge-create "Rust" -d "systems programming language" -t "language,compiled"', "Created knowledge: Rust"),
    says('hypatia knowledge-create "Go" -d "" -t "language,compiled"', "Created knowledge: Go"),
    says('hypatia knowledge-create "Python" -d "scripting language" -t "dynamic"', "Created knowledge: Python"),
    says('hypatia knowledge-create "API convention" -d "REST endpoints use kebab-case" --tags "rule" --scopes "my-project"', "Created knowledge: API convention"),
    says('hypatia knowledge-create "prefer immutable" -d "always create new objects" --tags "rule" --scopes ","', "Created knowledge: prefer immutable"),
    says('hypatia knowledge-create "no mock DB" -d "never mock database in tests" --tags "taboo" --scopes "my-project,"', "Created knowledge: no mock DB"),
    knowledge('["$has", "scopes", ""]', "no mock DB", "prefer immutable"),
    knowledge('["$has", "scopes", "my-project"]', "no mock DB", "API convention", "Python", "Go", "Rust"),
    shows('hypatia knowledge-get "Rust"', '"data": "systems programming language"', '"compiled"'),
    says('hypatia knowledge-update "Rust" -d "systems programming language with memory safety"', "Updated knowledge: Rust"),
    says('hypatia knowledge-update "Go" -t "language,google"', "Updated knowledge: Go"),
    says('hypatia knowledge-update "Python" -t ""', "Updated knowledge: Python"),
    says('hypatia knowledge-update "Python" -t ""', "Knowledge unchanged: Python"),
    shows('hypatia knowledge-get "Python"', '"tags": []'),
    says('hypatia statement-create "Rust" "is_a" "systems programming language"', "Created statement: (Rust, is_a, systems programming language)"),
    says('hypatia knowledge-create "Alice" -d "senior engineer on Backend team" -t "person,engineer"', "Created knowledge: Alice"),
    says('hypatia statement-create "Alice" "is_a" "engineer"', "Created statement: (Alice, is_a, engineer)"),
    says('hypatia statement-create "Alice" "knows" "Bob" -d "since 2015"', "Created statement: (Alice, knows, Bob)"),
    says('hypatia statement-create "Bob" "knows" "Carol"', "Created statement: (Bob, knows, Carol)"),
    says('hypatia statement-create "API" "depends_on" "PostgreSQL" -d "primary data store"', "Created statement: (API, depends_on, PostgreSQL)"),
    # every kind of question
    knowledge('["$eq", "name", "Rust"]', "Rust"),
    knowledge('["$and", ["$eq", "name", "Go"], ["$contains", "tags", "google"]]', "Go"),
    knowledge('["$not", ["$contains", "tags", "rule"]], ["$not", ["$contains", "tags", "taboo"]]', "Alice", "Python", "Go", "Rust"),
    knowledge('["$like", "name", "Al%"]', "Alice"),
    knowledge('["$gt", "created_at", "2025-01-01"], ["$contains", "data", "language"]', "Python", "Rust"),
    knowledge('["$content", {"format": "markdown", "data": "scripting language"}]', "Python"),
    knowledge('["$and", ["$content", {"format": "markdown"}], ["$search", "database"]]', "no mock DB"),
    knowledge('["$has", "tags", ["rule", "taboo"]]', "no mock DB", "prefer immutable", "API convention"),
    statements('["$triple", "Alice", "$*", "$*"]', "Alice,knows,Bob", "Alice,is_a,engineer"),
    statements('["$triple", "$*", "$*", "Bob"]', "Alice,knows,Bob"),
    statements('["$triple", "$*", "knows", "$*"]', "Bob,knows,Carol", "Alice,knows,Bob"),
    statements('["$triple", "$*", "is_a", "engineer"]', "Alice,is_a,engineer"),
    statements('["$contains", "triple", "Alice"]', "Alice,knows,Bob", "Alice,is_a,engineer"),
    statements('["$and", ["$triple", "Alice", "$*", "Bob"], ["$gt", "created_at", "2025-01-01"]]', "Alice,knows,Bob"),
    statements('["$like", "head", "Alice%"]', "Alice,knows,Bob", "Alice,is_a,engineer"),
    statements('["$search", "primary store"]', "API,depends_on,PostgreSQL"),
    finds('hypatia query \'["$knowledge", ["$eq", "name", "Alice"]]\' -s default', "Alice"),
    says("hypatia query '[\"$knowledge\", [\"$eq\", \"name\", \"Alice'\\''s project\"]]'", "No results found."),
    finds('hypatia query \'{"$knowledge": [["$search", "language"]], "limit": 1, "offset": 0}\'', "Python"),
    finds('hypatia search "programming"', "Rust,is_a,systems programming language", "Rust"),
    finds('hypatia search "memory safety" -c knowledge', "Rust"),
    shows('hypatia search "knows" -c statement --limit 1 --offset 1', '"catalog": "statement"', ",knows,"),
    nothing('hypatia search "zebra"'),
    # files
    says(
        "hypatia archive-store fig.png -n euclid/fig1.png",
        "Stored: archive://euclid/fig1.png\nKnowledge: euclid/fig1.png\nMIME: image/png, Size: 10 bytes",
    ),
    says("hypatia archive-list", "  archive://euclid/fig1.png\n  (1 file)"),
    says('cat "$(hypatia archive-get euclid/fig1.png)" && echo', "not really"),
    says("hypatia archive-get euclid/fig1.png -o out.png", "Copied to: out.png"),
    says("cat out.png && echo", "not really"),
    knowledge('["$contains", "tags", "archive"]', "euclid/fig1.png"),
    knowledge('["$content", {"mime_type": "image/png"}]', "euclid/fig1.png"),
    says('hypatia knowledge-create "Euclid Prop 1" -d "equilateral triangle" --figures "archive://euclid/fig1.png"', "Created knowledge: Euclid Prop 1"),
    # shelves
    says("hypatia connect ../work -n work", "Shelf 'work' connected and registered."),
    Step("hypatia list", words=("  work  ", "work  [connected]")),
    nothing("hypatia query '[\"$knowledge\"]' -s work"),
    shows("hypatia export default ../copy", "Exported shelf 'default' to "),
    shows("hypatia import ../copy -s work", "Imported "),
    finds("hypatia query '[\"$knowledge\", [\"$eq\", \"name\", \"Rust\"]]' -s work", "Rust"),
    says("hypatia disconnect work", "Shelf 'work' disconnected and unregistered."),
    # the end
    says('hypatia statement-delete "Alice" "knows" "Bob"', "Deleted statement: (Alice, knows, Bob)"),
    says('hypatia knowledge-delete "Rust"', "Deleted knowledge: Rust"),
    Step('hypatia knowledge-delete "Rust"', code=1),
    Step("hypatia query '[\"$and\"]'", code=1),
    Step("hypatia query", code=2),
]  # fmt: skip

WALKS = [
    says('hypatia knowledge-create "Go" -d "" -t "language,google"', "Created knowledge: Go"),
    knowledge('["$json-contains", {"tags": ["google"]}]', "Go"),
    says(
        'hypatia statement-create "Alice" "knows" "Bob"', "Created statement: (Alice, knows, Bob)"
    ),
    says(
        'hypatia statement-create "Bob" "knows" "Carol"', "Created statement: (Bob, knows, Carol)"
    ),
    says('hypatia statement-create "Carol" "likes" "Go"', "Created statement: (Carol, likes, Go)"),
    statements('["$k-hop", "Alice", "$*", 2]', "Alice,knows,Bob", "Bob,knows,Carol"),
    statements('["$k-hop", "Alice", "knows", 3]', "Alice,knows,Bob", "Bob,knows,Carol"),
]
LIKENESS = [
    says('hypatia knowledge-create "pools" -d "sizing database connection pools" -t "rule"', "Created knowledge: pools"),
    says('hypatia knowledge-create "tea" -d "how to brew green tea"', "Created knowledge: tea"),
    shows('hypatia similar "database connections" --limit 1', '"pools"'),
    shows('hypatia similar "database connections" -t knowledge --tags rule --exclude-tags message,summary,session', '"pools"'),
    knowledge('["$similar", "brew tea"], ["$not", ["$contains", "tags", "rule"]]', "tea"),
    shows("hypatia backfill", "Backfill complete: "),
]  # fmt: skip


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder in which the agent works; its name is the project's."""
    folder = tmp_path / "my-project"
    folder.mkdir()
    (folder / "fig.png").write_text("not really")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def by_shell(tmp_path, project, monkeypatch):
    """Run a line by ``sh``, with our ``hypatia`` on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "hypatia"
    program.write_text(
        f"#!/bin/sh\nPYTHONPATH='{REPOSITORY}' exec '{sys.executable}' -m hypatia_mem \"$@\"\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def run(line):
        done = subprocess.run(
            ["sh", "-c", line],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def here(project, capsys, monkeypatch):
    """Run a line's words in this process; None for one that needs a real shell."""

    def run_here(line):
        words = shlex.split(line.replace("\\\n", " "))
        if words[0] != "hypatia" or "&&" in words:
            return None
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), "utf-8"))
        capsys.readouterr()
        code = run(words[1:])
        return Done(code, *capsys.readouterr())

    return run_here


def key(row):
    return row.get("name") or row.get("triple") or row.get("key")


def check(step, done):
    assert done.returncode == step.code, (step.line, done.stdout, done.stderr)
    assert (done.stderr == "") == (step.code == 0), (step.line, done.stderr)
    if step.text is not None:
        assert done.stdout == step.text, step.line
    if step.rows is not None:
        found = [key(row) for row in json.loads(done.stdout)]
        assert found == list(step.rows), step.line
    for words in step.words:
        assert words in done.stdout, (step.line, done.stdout)


SKILLS = [
    pytest.param(MEMORY, id="memory"),
    pytest.param(GRAPH, id="graph"),
    pytest.param(WALKS, id="walks"),
    pytest.param(LIKENESS, id="likeness"),
]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sh") is None, reason="the lines are a shell's")
@pytest.mark.parametrize("steps", SKILLS)
def test_the_published_lines_do_what_the_skill_says(by_shell, steps):
    """By a shell, one after the other, on one memory."""
    for step in steps:
        check(step, by_shell(step.line))


@pytest.mark.deep
@pytest.mark.parametrize("steps", SKILLS)
def test_the_words_of_the_lines_do_what_the_skill_says(here, steps):
    """Without a shell, as often as the other tests."""
    ran = [step for step in steps if (done := here(step.line)) and check(step, done) is None]

    assert len(ran) >= len(steps) - 3


@pytest.mark.deep
def test_the_first_lines_by_a_shell(by_shell):
    """Quotes, line breaks and all: a message as it is recorded, and read again."""
    for step in MEMORY[2:3] + MEMORY[5:6]:
        check(step, by_shell(step.line))


def test_a_line_that_does_not_do_what_it_should_is_noticed(here):
    """The twin: the steps can fail, each in its own way."""
    for step in (
        finds("hypatia scope list --json", "nobody"),
        says("hypatia list", "Some shelves."),
        shows("hypatia list", "shelf 'work'"),
        Step("hypatia list", code=1),
    ):
        with pytest.raises(AssertionError):
            check(step, here(step.line))

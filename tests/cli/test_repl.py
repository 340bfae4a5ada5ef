"""The prompt: lines from a terminal and from a pipe, and errors that end nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem.cli.repl import _open_brackets

REPOSITORY = os.getcwd()


def run_lines(cli, *lines, options=()):
    return cli("repl", *options, stdin="".join(f"{line}\n" for line in lines).encode())


def test_expressions_and_commands_in_turn(cli):
    """Each as if it had been run alone, with or without the program's name."""
    done = run_lines(
        cli,
        'knowledge-create "a b" -d "- item" --tags rule',
        'hypatia statement-create "a b" is_a rule',
        "# a remark",
        "",
        '["$knowledge", ["$eq", "name", "a b"]]',
        'hypatia-mem knowledge-get "a b"',
    )

    assert done.code == 0, done.err
    head, *rest = done.out.split("\n[\n", 1)
    assert head == "Created knowledge: a b\nCreated statement: (a b, is_a, rule)"
    rows, _, entry = rest[0].partition("\n]\n")
    assert json.loads(rows)["content"]["data"] == json.loads(entry)["content"]["data"] == "- item"


def test_an_expression_goes_on_until_its_brackets_close(cli):
    """Brackets inside texts do not count; an empty line cuts one short."""
    cli("knowledge-create", "x]")

    done = run_lines(cli, '["$knowledge",', '  ["$eq", "name",', '   "x]"]', "]", "scope list")
    cut = run_lines(cli, '["$knowledge"', "", "scope list")
    ended = run_lines(cli, '{"$knowledge": [')

    assert json.loads(done.out.rpartition("]\n")[0] + "]")[0]["name"] == "x]"
    assert done.out.endswith("]\napp\n")
    assert cut.err.startswith("Error: JSE parse error: not valid JSON")
    assert cut.out == "app\n"
    assert ended.err.startswith("Error: JSE parse error:")


@pytest.mark.parametrize(
    ("text", "depth"),
    [('["$a", [', 2), ('["]"]', 0), ('{"a": "\\"]"', 1), ('["a\n]', 0), ("]]", -2), ("", 0)],
)
def test_open_brackets(text, depth):
    """What stands in a text is no bracket, and no text goes beyond its line."""
    assert depth == _open_brackets(text)


def test_dot_commands(cli, tmp_path):
    """The published ones, with the texts of the commands they stand for."""
    done = run_lines(
        cli,
        f".connect '{tmp_path / 'my shelf'}' work",
        f".connect {tmp_path / 'other'}",
        ".list",
        f".export work {tmp_path / 'out'}",
        ".disconnect other",
        ".help",
        ".quit",
        "list",
    )

    lines = done.out.splitlines()
    assert done.code == 0, done.err
    assert lines[:4] == [
        "Shelf 'work' connected and registered.",
        "Shelf 'other' connected and registered.",
        f"  other  {tmp_path / 'other'}  [connected]",
        f"  work   {tmp_path / 'my shelf'}  [connected]",
    ]
    assert lines[4] == f"Exported shelf 'work' to {tmp_path / 'out'}"
    assert "Shelf 'other' disconnected and unregistered." in lines
    for word in (".help", ".connect", ".disconnect", ".list", ".export", ".quit"):
        assert any(line.strip().startswith(word) for line in lines[6:])
    assert not lines[-1].startswith("  work")  # nothing after .quit was run


@pytest.mark.deep
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ('["$foo"]', 1, "Error: JSE parse error: unknown operator: $foo"),
        ("serach x", 2, "Did you mean search"),
        ("search 'open", 2, "Error: usage: No closing quotation"),
        (".frobnicate", 2, "is not understood here"),
        (".connect", 2, "is not understood here"),
        ("repl", 2, "this is the prompt already"),
        ("knowledge-get x -s nobody", 1, "Error: shelf error:"),
        ("show nobody", 1, "Error: not found:"),
        ("knowledge-create x -d -", 2, "standard input holds the lines of the prompt"),
    ],
)
def test_an_error_ends_its_line_alone(cli, line, code, words):
    """What comes after it runs; a script learns of the first failure by the exit code."""
    done = run_lines(cli, line, "knowledge-create after", ".disconnect nobody")

    assert words in done.err
    assert done.out == "Created knowledge: after\n"
    assert done.code == code


def test_a_shelf_for_all_lines_and_one_of_a_line(cli, tmp_path):
    """The line's own wins; commands that know no shelf are left alone."""
    cli("connect", str(tmp_path / "work"))
    done = run_lines(
        cli,
        "knowledge-create here",
        "knowledge-create home -s default",
        '["$knowledge"]',
        "scope list",
        "config get triggers",
        options=("-s", "work"),
    )

    assert done.code == 0, done.err
    assert [row["name"] for row in cli("query", '["$knowledge"]', "-s", "work").json] == ["here"]
    assert [row["name"] for row in cli("query", '["$knowledge"]').json] == ["home"]
    assert run_lines(cli, "list", options=("-s", "nobody")).code == 1


def test_everything_as_json(cli):
    """For a program at the other end of the pipe."""
    done = run_lines(cli, '["$knowledge"]', "scope list", ".list", "show x", options=("--json",))

    assert done.out == "[]\n[]\n[]\n"
    assert json.loads(done.err)["error"]["kind"] == "not found"


def test_a_pipe_leaves_no_history(cli, home):
    """Only what a person typed is offered again."""
    run_lines(cli, '["$knowledge"]')

    assert not (home / "repl_history").exists()


# At a terminal ---------------------------------------------------------------------------------


class Terminal:
    """The program at a pseudo terminal."""

    def __init__(self, *arguments):
        self.master, slave = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hypatia_mem", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "PYTHONPATH": REPOSITORY, "TERM": "dumb", "INPUTRC": "/dev/null"},
            start_new_session=True,
            # A test run in the background has it ignored, and so would the program.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        os.close(slave)
        self.seen = ""

    def until(self, words, seconds=30.0):
        """Read until the words have come; return what came up to them."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            left = end - time.monotonic()
            ready = select.select([self.master], [], [], max(0.0, left))[0]
            assert ready, f"no {words!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.master, 4096).decode("utf-8", "replace")
            except OSError:  # Linux: the other end is closed
                break
        before, found, self.seen = self.seen.partition(words)
        assert found, f"no {words!r} in {before!r}"
        return re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", before)

    def type(self, text):
        os.write(self.master, text.encode())

    def interrupt(self, words):
        """What the terminal makes of ^C, until the words come.

        Python's own prompt notices a signal only while it waits, so one that comes in the moment
        before is noticed at the next key or the next signal: a person presses again.
        """
        for _ in range(30):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(AssertionError):
                return self.until(words, 1.0)
        raise AssertionError(f"no {words!r} in {self.seen!r}")


@pytest.fixture
def terminal(project, home):
    made = Terminal("repl")
    yield made
    made.process.kill()
    made.process.wait()
    os.close(made.master)


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminal")
def test_at_a_terminal(terminal, home):
    """A prompt, an error, lines that go on, a history without secrets, ^C, and the end of input."""
    secret = "ghp_" + "a1B2" * 9
    terminal.until("hypatia> ")
    terminal.type("serach x\n")
    assert "Did you mean search" in terminal.until("hypatia> ")
    terminal.type(f"knowledge-create token -d {secret}\n")
    assert "Created knowledge: token" in terminal.until("hypatia> ")
    terminal.type('["$knowledge",\n')
    terminal.until("... ")
    terminal.type('["$eq", "name", "token"]]\n')
    assert '"name": "token"' in terminal.until("hypatia> ")
    terminal.type("half a line")
    terminal.until("half a line")
    terminal.interrupt("^C (.quit leaves)")
    terminal.until("hypatia> ")
    terminal.type("\x04")
    assert terminal.process.wait(20) == 0

    file = home / "repl_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert secret not in text
    assert [line.split()[0] for line in text.splitlines()] == [
        "serach",
        "knowledge-create",
        '["$knowledge",',
    ]
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in Path(home).rglob("*") if path.is_file()
    )


@pytest.mark.deep
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminal")
def test_the_history_of_last_time_is_offered(project, home):
    """By the up key, as every shell does."""
    pytest.importorskip("readline")
    (home / "repl_history").write_text("scope exists nobody\nknowledge-create kept\n")
    again = Terminal("repl")
    try:
        again.until("hypatia> ")
        again.type("\x1b[A\n")
        assert "Created knowledge: kept" in again.until("hypatia> ")
        again.type(".quit\n")
        assert again.process.wait(20) == 0
    finally:
        again.process.kill()
        again.process.wait()
        os.close(again.master)

"""The program as a process: what it imports, prints and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from hypatia_mem import __version__
from hypatia_mem.cli.app import COMMANDS, run

HEAVY = (
    "duckdb",
    "_duckdb",
    "tantivy",
    "rich",
    "pydantic",
    "networkx",
    "platformdirs",
    "anthropic",
)


def program(*arguments, env=None, stdin=b"", code="", cwd=None):
    command = [sys.executable, "-c", code or "from hypatia_mem.cli.app import main; main()"]
    return subprocess.run(
        [*command, *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **(env or {})},
        cwd=cwd,
        timeout=60,
        check=False,
    )


def loaded_modules(*arguments):
    """Return the top-level modules that a command line has imported when it is done."""
    code = (
        "import sys\nfrom hypatia_mem.cli.app import run\n"
        f"code = run({list(arguments)!r})\n"
        "print(chr(10) + ' '.join(sorted({name.split('.')[0] for name in sys.modules})))\n"
        "sys.exit(code)"
    )
    done = program(code=code)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()[-1].split()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["query", "--help"], ["status", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    """An agent reads help often; nobody waits for a database to read a sentence."""
    assert set(HEAVY) & set(loaded_modules(*arguments)) == set()


def test_the_program_imports_what_it_needs():
    """The twin: a command that asks the store does import it."""
    assert "duckdb" in loaded_modules("rules", "--scope", "app")


@pytest.mark.deep
def test_search_asks_the_index_alone(project):
    """Neither the store nor its lease: the scope lies beside the brief, the text in the index."""
    made = program("remember", "the needle", env={"PYTHONPATH": REPOSITORY})
    assert made.returncode == 0, made.stderr
    code = (
        "import sys\nfrom hypatia_mem.cli.app import run\nrun(['search', 'needle', '--json'])\n"
        "print('duckdb' in sys.modules, 'tantivy' in sys.modules)"
    )
    done = program(code=code, env={"PYTHONPATH": REPOSITORY})

    assert b"memory:the-needle" in done.stdout
    assert done.stdout.splitlines()[-1] == b"False True"


def test_help_lists_every_command():
    """From the table, without importing one of them."""
    done = program("--help")

    assert done.returncode == 0
    text = done.stdout.decode()
    for name, row in COMMANDS.items():
        assert f"  {name}  " in text
        assert row.summary in text
    assert 'hypatia-mem search "connection pool"\n' in text


def test_no_arguments_is_help(cli):
    """Not an error: somebody is looking around."""
    done = cli()

    assert done.code == 0
    assert "Commands:" in done.out


@pytest.mark.deep
@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(cli, name):
    """What is offered is explained."""
    done = cli(name, "--help")

    assert done.code == 0
    assert "Example" in done.out
    assert f"hypatia-mem {name}" in done.out


def test_version(cli):
    """For scripts and reports."""
    assert cli("--version").out == f"hypatia-mem {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["serach"], 2, "Did you mean search"),
        (["frobnicate"], 2, "there is no command 'frobnicate'"),
        (["skill", "install"], 2, "The skill comes with the hooks: hypatia-mem install"),
        (["init"], 2, "To make a shelf: hypatia-mem connect FOLDER"),
        (["search"], 2, "Missing argument"),
        (["search", "x", "--limit", "0"], 2, "--limit"),
        (["search", "x", "--limt", "3"], 2, "No such option: --limt"),
        (["search", "x", "-c", "both"], 2, "--catalog is knowledge or statement"),
        (["search", "x", "--scope", "a", "--all-projects"], 2, "contradict"),
        (["query", '["$eq", "name", "x"]'], 1, "Error: JSE parse error: top-level operator"),
        (["config", "get", "trigger"], 2, "Did you mean triggers"),
        (["show", "nothing-of-the-kind"], 1, "Error: not found:"),
    ],
)
def test_errors_are_sentences_with_their_exit_code(cli, arguments, code, words):
    """On standard error, and nothing on standard output."""
    done = cli(*arguments)

    assert done.code == code
    assert words in done.err
    assert done.err.startswith("Error: ")
    assert done.out == ""
    assert "Traceback" not in done.err


def test_errors_as_json(cli):
    """A program reads kind, message and code without parsing a sentence."""
    done = cli("query", '["$knowledge", ["$eq", "name", 5]]', "--json")

    error = json.loads(done.err)["error"]
    assert error["kind"] == "JSE parse error"
    assert error["exit_code"] == done.code == 1
    assert "at $knowledge[0].$eq[1]" in error["message"]
    assert done.out == ""


def test_an_error_shows_expression_and_caret(cli):
    """The whole message as a person sees it."""
    done = cli("query", '["$knowledge", ["$contains", "tag", "rule"]]')

    assert done.err == (
        "Error: JSE parse error: at $knowledge[0].$contains[0]: unknown field 'tag'\n"
        '  ["$knowledge", ["$contains", "tag", "rule"]]\n'
        "                               ^^^^^\n"
        'For a key of that name inside JSON data write "data.tag".\n'
        'Did you mean: ["$knowledge", ["$contains", "tags", "rule"]]\n'
    )


def test_a_fault_of_the_program_is_a_sentence(cli, monkeypatch, home):
    """With its place in the log, and no word of what it was about."""
    from hypatia_mem.cli import graph

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret text")

    monkeypatch.setattr(graph, "run_query", broken)
    done = cli("query", '["$knowledge"]')
    log = (home / "hypatia-mem.log").read_text()

    assert done.code == 70
    assert done.err.startswith("Error: internal error: RuntimeError at test_app.py:")
    assert "RuntimeError at test_app.py:" in log
    assert "secret" not in done.err + log


ENCODINGS = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "cp1252"},
    {"PYTHONIOENCODING": "cp932"},
]


@pytest.mark.deep
@pytest.mark.parametrize("env", ENCODINGS, ids=str)
def test_no_terminal_is_too_small_for_the_text(env, project):
    """Japanese and emoji on a C terminal are escapes, and JSON stays JSON."""
    there = os.getcwd()
    env = {**env, "PYTHONPATH": REPOSITORY}
    made = program(
        "knowledge-create", "memo", "-d", "-", env=env, stdin="日本 🎉 é\n".encode(), cwd=there
    )
    shown = program("show", "memo", env=env, cwd=there)
    found = program("search", "日本", env=env, cwd=there)
    asked = program("knowledge-get", "memo", "--json", env=env, cwd=there)

    assert made.returncode == 0, made.stderr
    assert shown.returncode == 0, shown.stderr
    assert b'"memo"' in found.stdout, found.stderr
    encoding = env.get("PYTHONIOENCODING", "ascii")
    assert json.loads(asked.stdout.decode(encoding))["content"]["data"] == "日本 🎉 é"


REPOSITORY = os.getcwd()


def test_a_closed_pipe_is_silent(project):
    """``hypatia-mem config list | head -1`` prints one line and no complaint."""
    script = f"{sys.executable} -m hypatia_mem --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": REPOSITORY},
        timeout=60,
        check=False,
    )

    assert done.stderr == b""
    assert done.returncode in (0, 141)  # help may fit into the pipe before it closes


def test_a_full_pipe_that_closes_is_silent(project):
    """The same with more output than a pipe holds."""
    code = "from hypatia_mem.cli import output\noutput.harden_streams()\n"
    code += "import sys\nfrom hypatia_mem.cli import app\n"
    code += "app._dispatch = lambda a: print('x' * 1_000_000)\nsys.exit(app.run(['status']))"
    script = f'{sys.executable} -c "$CODE" | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": REPOSITORY, "CODE": code},
        timeout=60,
        check=False,
    )

    assert done.stderr == b""
    assert done.returncode == 141


def test_stored_text_does_not_drive_the_terminal(cli):
    """Escape sequences of a stored text are shown, not sent."""
    cli("knowledge-create", "memo", "-d", "-", stdin="a\x1b[2Jb\x07\x9b31m \u202e\u2066".encode())

    done = cli("show", "memo")

    assert "\x1b" not in done.out
    assert "\x9b" not in done.out
    assert not set("\u202e\u2066") & set(done.out)  # nor turn what stands behind it
    assert "a\\x1b[2Jb" in done.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli, shell):
    """A script that asks the program itself."""
    done = cli("completion", shell)

    assert done.code == 0
    assert "_HYPATIA_MEM_COMPLETE" in done.out


def test_completion_completes(project):
    """Commands by their table, options by the command."""
    env = {"_HYPATIA_MEM_COMPLETE": "complete_bash", "PYTHONPATH": REPOSITORY}
    names = program(env={**env, "COMP_WORDS": "hypatia-mem know", "COMP_CWORD": "1"})
    options = program(env={**env, "COMP_WORDS": "hypatia-mem search --li", "COMP_CWORD": "2"})

    assert b"knowledge-create" in names.stdout
    assert b"status" not in names.stdout
    assert options.stdout.split() == [b"--limit"]


@pytest.mark.parametrize(
    ("env", "channel"),
    [
        ({"CLAUDECODE": "1"}, "cli-agent"),
        ({"CLAUDE_CODE_CHILD_SESSION": "1"}, "cli-agent"),
        ({}, "cli-person"),
    ],
)
def test_the_channel_is_observed(monkeypatch, env, channel):
    """At a terminal a person; with a client's marks an agent, terminal or not."""
    from hypatia_mem.cli import context

    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert context.author().channel == channel


def test_without_a_terminal_it_is_an_agent(cli, monkeypatch):
    """A pipe has no person at it, whatever a flag might claim."""
    from hypatia_mem.cli import context

    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)

        assert context.channel() == "cli-agent"


def test_a_folder_that_is_gone(tmp_path, monkeypatch, capsys):
    """Its project cannot be told, and that is said."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert run(["rules"]) == 2
    assert "does not exist any more" in capsys.readouterr().err

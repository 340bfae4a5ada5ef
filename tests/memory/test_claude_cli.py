"""The user's own client as a summariser: how it is run, and what its answers come to.

The client here is a script at the edge; the real one is run in ``tests/client``.
"""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from hypatia_mem.memory.summarise.claude_cli import ClaudeCli, child_environment
from hypatia_mem.memory.summarise.prompted import Question
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a script of POSIX")

SCRIPT = """#!{python}
import json, os, sys, time
told = json.load(open({told!r}))
json.dump({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ),
           "stdin": sys.stdin.read(), "pid": os.getpid()}}, open({seen!r}, "w"))
time.sleep(told.get("sleep", 0))
sys.stdout.write(told.get("out", ""))
sys.stderr.write(told.get("err", ""))
sys.exit(told.get("code", 0))
"""
ASKED = Question("the rules", "hypatia-mem:internal\n\nwhat was said")


class Client:
    """A scripted client in a place of its own."""

    def __init__(self, folder):
        self.told = folder / "told.json"
        self.seen = folder / "seen.json"
        self.path = folder / "claude"
        self.path.write_text(
            SCRIPT.format(python=sys.executable, told=str(self.told), seen=str(self.seen))
        )
        self.path.chmod(0o755)

    def says(self, **told):
        self.told.write_text(json.dumps(told))

    def answers(self, text, **more):
        found = {"type": "result", "subtype": "success", "is_error": False, "result": text, **more}
        self.says(out=json.dumps(found), code=1 if more.get("is_error") else 0)

    def was(self):
        return json.loads(self.seen.read_text())


@pytest.fixture
def client(tmp_path):
    (tmp_path / "bin").mkdir()
    return Client(tmp_path / "bin")


def cli(home, client, environ=None, **how):
    environ = {"PATH": str(client.path.parent), "HOME": str(home)} | (environ or {})
    return ClaudeCli(home, "claude", environ=environ, **how)


def test_each_guard_is_set_on_its_own(home, client):
    """Environment, hooks off, nothing saved, a folder of ours, the marker: any one would do."""
    client.answers("- x")
    cli(home, client).ask(ASKED)
    was = client.was()
    argv = was["argv"]
    assert was["env"]["HYPATIA_MEM_INTERNAL"] == "1"
    assert json.loads(argv[argv.index("--settings") + 1]) == {"disableAllHooks": True}
    assert "--no-session-persistence" in argv
    assert argv[argv.index("--tools") + 1] == ""
    assert "--strict-mcp-config" in argv
    assert was["cwd"] == str(home / "claude-cli")
    assert was["stdin"].splitlines()[0] == "hypatia-mem:internal"
    assert argv[argv.index("--system-prompt") + 1] == "the rules"
    assert not any("what was said" in part for part in argv), "words of a person are in no list"


def test_nothing_of_the_client_that_started_us_and_no_projects_key_is_handed_on():
    mine = {
        "PATH": "/bin", "HOME": "/h", "CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_OAUTH_TOKEN": "t",
        "ANTHROPIC_API_KEY": "sk-mine",
    }  # fmt: skip
    theirs = {
        "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_MESSAGING_TOKEN": "x",
        "CLAUDE_PROJECT_DIR": "/p", "AI_AGENT": "a", "ANTHROPIC_AUTH_TOKEN": "sk-project",
    }  # fmt: skip
    found = child_environment(mine | theirs, frozenset({"sk-project"}))
    assert {name: found.get(name) for name in mine} == mine
    assert not set(found) & set(theirs)


def test_the_answer_with_what_it_took(home, client):
    usage = {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 2}
    client.answers("- x", usage=usage, total_cost_usd=0.25, stop_reason="end_turn")
    reply = cli(home, client).ask(ASKED)
    assert (reply.text, reply.failure) == ("- x", None)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)
    assert (reply.usage.cache_read, reply.usage.dollars) == (2, 0.25)
    client.answers("- x", stop_reason="max_tokens")
    assert cli(home, client).ask(ASKED).failure is FailureKind.TRUNCATED


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"is_error": True, "api_error_status": 401, "result": "API Error: 401"}, "auth"),
        ({"is_error": True, "result": "Invalid API key · Please run /login"}, "auth"),
        ({"is_error": True, "api_error_status": 429, "result": "API Error: 429"}, "rate"),
        ({"is_error": True, "result": "Claude usage limit reached"}, "rate"),
        (
            {"is_error": True, "api_error_status": 500, "result": "API Error: 500 at 401"},
            "unavailable",
        ),
        ({"is_error": True, "result": "Prompt is too long"}, "too-long"),
        ({"is_error": True, "result": "API Error: Connection error."}, "unreachable"),
        ({"subtype": "error_max_budget_usd"}, "too-long"),
        ({"subtype": "error_during_execution"}, "unavailable"),
    ],
)
def test_an_error_is_told_apart(home, client, told, kind):
    client.answers(told.pop("result", None), **told)
    with pytest.raises(SummaryFailed) as failed:
        cli(home, client).ask(ASKED)
    assert failed.value.failure == kind
    assert "API Error" not in str(failed.value)


@pytest.mark.parametrize("out", ["", "not json", "[]", '{"type": "result"', "null", "7"])
def test_an_output_that_makes_no_sense_is_no_answer(home, client, out):
    client.says(out=out)
    with pytest.raises(SummaryFailed) as failed:
        cli(home, client).ask(ASKED)
    assert failed.value.failure is FailureKind.UNAVAILABLE


def test_a_client_that_is_silent_is_ended(home, client):
    client.says(sleep=60)
    began = time.monotonic()
    with pytest.raises(SummaryFailed) as failed:
        cli(home, client, timeout=1.0).ask(ASKED)
    assert failed.value.failure is FailureKind.TIMEOUT
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(client.was()["pid"], 0)


def test_no_client_there(home, tmp_path):
    one = ClaudeCli(home, "claude", environ={"PATH": str(tmp_path)})
    with pytest.raises(SummaryFailed, match="no program 'claude'") as failed:
        one.ask(ASKED)
    assert failed.value.failure is FailureKind.SETTINGS
    assert "config set claude_command" in failed.value.hint

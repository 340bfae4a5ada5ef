"""The commands about cold work and what it costs, as a person and an agent use them."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest

from hypatia_mem.cli import ops, progress
from hypatia_mem.cli.app import run
from hypatia_mem.config import set_value
from tests.memory.cascade_kit import fill, talk
from tests.memory.model_server import ModelServer, Step

GOOD = (
    "NAME: retry queue report\n- The retry queue loses jobs in module_0.py after 0 runs.\n"
    "- It was seen before and nobody knew why."
)


@pytest.fixture(scope="module")
def server():
    one = ModelServer().start()
    yield one
    one.stop()


@pytest.fixture
def model(server, home, monkeypatch):
    """A memory with two batches due, and a model that the file chose."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    server.asked.clear()
    server.parcels.clear()
    server.recalled.clear()
    server.hold = False
    server.says(GOOD)
    for key, value in {
        "summary_by": "anthropic", "anthropic_url": server.url, "cascade_max_tokens": "100",
        "cascade_keep_last": "0",
    }.items():  # fmt: skip
        set_value(home, key, value)
    fill(home, talk(2))
    return server


@pytest.fixture
def command(capsys):
    def call(*arguments):
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return call


ALL = "--all-projects"


@pytest.mark.deep
def test_the_price_is_told_before_and_asked_for_and_then_it_is_done(command, model):
    assert "2 calls of claude-haiku-5-5 by anthropic" in command("cascade", "plan", ALL)[1]
    (row,) = json.loads(command("cascade", "plan", ALL, "--json")[1])
    assert row["estimate"]["calls"] == 2
    assert 0 < row["estimate"]["dollars"] <= row["estimate"]["most_dollars"] < 0.02
    code, _, err = command("cascade", "run", ALL)
    assert (code, model.questions) == (2, [])
    assert "was not agreed to: 2 calls" in err
    assert "--yes" in err
    code, out, _ = command("cascade", "run", ALL, "--yes")
    assert code == 0
    assert "Cascade: +2 summary 1 (token threshold)." in out
    told = command("status")[1]
    assert "by anthropic (claude-haiku-5-5); nothing has failed" in told
    assert "jobs list" not in told
    assert "2 calls, 2200 tokens, $0.0003" in told
    assert "200 calls and $1.00 a day" in told
    spent = json.loads(command("status", "--json")[1])["models"]["spent"]
    assert spent["today"]["calls"] == 2


def test_extractive_asks_nobody_and_needs_no_yes(command, model, home):
    set_value(home, "summary_by", "extractive")
    assert command("cascade", "run", ALL)[0] == 0
    assert model.asked == []
    assert "calls" not in command("status")[1]


@pytest.mark.deep
def test_failed_work_is_listed_retried_and_dropped(command, model):
    model.says(Step(""))
    command("cascade", "run", ALL, "--yes")
    rows = json.loads(command("jobs", "list", ALL, "--json")[1])
    assert [(row["state"], row["attempts"], row["reason"]) for row in rows] == [
        ("waiting", 1, "empty")
    ] * 2
    assert all(row["again"] and row["items"] == 1 for row in rows)
    assert "2 waiting" in command("jobs", "list", ALL)[1]
    told = command("status")[1]
    assert "2 waiting" in told
    assert "there is nothing in this summary but reasoning" in told, "and why"
    first, second = (row["id"] for row in rows)
    assert json.loads(command("jobs", "drop", first, "--dry-run", "--json")[1])["would_drop"]
    assert "2 waiting" in command("jobs", "list", ALL)[1]
    assert command("jobs", "drop", first)[1] == f"Dropped: {first}\n"
    assert json.loads(command("jobs", "retry", "--json")[1]) == {"retried": [second]}
    model.says(GOOD)
    command("cascade", "run", ALL, "--yes")
    assert "1 dropped" in command("jobs", "list", ALL)[1]
    command("jobs", "retry", first)
    command("cascade", "run", ALL, "--yes")
    assert command("jobs", "list", ALL)[1] == "Nothing is due and nothing has failed.\n"


def test_an_unknown_job_is_said_to_be_one(command, model):
    for verb in ("drop", "retry"):
        code, _, err = command("jobs", verb, "1.2.nonsense")
        assert (code, "no job" in err, "jobs list" in err) == (1, True, True)


@pytest.mark.deep
def test_a_pause_is_told_with_its_remedy(command, model, monkeypatch):
    model.says(Step(status=401))
    out = command("cascade", "run", ALL, "--yes")[1]
    assert "The rest waits: the API did not accept the key (401)" in out
    assert "config set anthropic_key_file" in out
    assert "Nobody is asked until" in command("cascade", "status", ALL)[1]
    assert "2 paused" in command("jobs", "list", ALL)[1]
    assert "did not accept the key" in command("status")[1]
    checks = json.loads(command("doctor", "--json")[1])["checks"]
    (said,) = (one for one in checks if one["name"] == "summaries")
    assert (said["state"], "config set anthropic_key_file" in said["remedy"]) == ("note", True)
    command("jobs", "retry")
    assert "2 due" in command("jobs", "list", ALL)[1]


@pytest.mark.deep
def test_a_parcel_by_command(command, model):
    model.hold = True
    assert "Handed in: 2 batches" in command("cascade", "run", ALL, "--batch", "--yes")[1]
    assert "2 sent" in command("jobs", "list", ALL)[1]
    model.hold = False
    told = json.loads(command("cascade", "run", ALL, "--batch", "--yes", "--json")[1])
    assert (len(told["made"]), told["sent"]) == (2, None)


def test_dropping_all_of_a_parcel_calls_it_off(command, model):
    model.hold = True
    command("cascade", "run", ALL, "--batch", "--yes")
    first, second = (row["id"] for row in json.loads(command("jobs", "list", ALL, "--json")[1]))
    assert "msgbatch_0 goes on: other work" in command("jobs", "drop", first)[1]
    assert model.recalled == set()
    assert "Called off: msgbatch_0" in command("jobs", "drop", second)[1]
    assert model.recalled == {"msgbatch_0"}


def test_a_parcel_needs_the_api(command, model, home):
    set_value(home, "summary_by", "claude-cli")
    code, _, err = command("cascade", "run", ALL, "--batch", "--yes")
    assert code == 2
    assert "takes no parcels" in err


def test_watching_looks_again_until_it_is_interrupted(command, model, monkeypatch):
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ops.time, "sleep", sleep)
    code, out, _ = command("status", "--watch", "--json")
    assert code == 130
    assert [json.loads(line)["stored"] for line in out.splitlines()] == [2, 2, 2]


@pytest.mark.deep
def test_the_package_is_imported_only_to_ask(model, home, monkeypatch):
    """It takes seconds; nobody waits for it who asks no model."""
    import subprocess
    import sys

    code = (
        "import sys\nfrom hypatia_mem.cli.app import run\n"
        "for line in (['status'], ['cascade', 'plan', '--all-projects'], ['jobs', 'list'], "
        "['cascade', 'run', '--all-projects']):\n    run(line)\n"
        "print('anthropic' in sys.modules, 'duckdb' in sys.modules)"
    )
    set_value(home, "summary_by", "extractive")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False True"


class Terminal:
    """A stream that says it is a terminal and keeps what was written."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_a_bar_with_the_time_left_is_shown_at_a_terminal_alone(monkeypatch):
    shown = {}
    for name in ("terminal", "pipe"):
        stream = Terminal()
        if name == "pipe":
            stream.isatty = lambda: False
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdout", stream)
        with progress.progress("Summaries", 3, quiet=False) as told:
            told()
            time.sleep(0.25)
        shown[name] = stream.text
    assert "1/3" in shown["terminal"]
    assert "left:" in shown["terminal"]
    assert shown["pipe"] == ""


@pytest.mark.deep
def test_ctrl_c_ends_a_question_at_once_and_loses_nothing(command, model, monkeypatch):
    """The person need not wait for the model to be done."""
    import _thread

    model.says(Step(silent=True))
    model.meanwhile = lambda: threading.Timer(0.2, _thread.interrupt_main).start()
    # Whoever runs the tests in the background has it ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    try:
        code, _, _ = command("cascade", "run", ALL, "--yes")
    finally:
        signal.signal(signal.SIGINT, handler)
        model.meanwhile = lambda: None
    assert code == 130
    assert time.monotonic() - began < 20
    assert "2 due" in command("jobs", "list", ALL)[1]
    model.says(GOOD)
    assert "+2 summary 1" in command("cascade", "run", ALL, "--yes")[1]


def listed(command):
    return json.loads(command("jobs", "list", ALL, "--json")[1])


def watched(command, monkeypatch, *more):
    """Return what one look of ``status --watch`` prints."""

    def interrupt(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ops.time, "sleep", interrupt)
        return command("status", "--watch", *more)[1]


def assert_queue(command, monkeypatch, depth):
    """Status, both ways of watching and the list count the same work."""
    still = [row for row in listed(command) if row["state"] not in ("dead", "dropped")]
    assert len(still) == depth
    found = json.loads(command("status", "--json")[1])
    assert found["queue"] == found["models"]["queue"] == depth
    words = f"{depth} job{'' if depth == 1 else 's'} to be done (hypatia-mem jobs list)"
    words = words if depth else "nothing is to be done"
    assert words in command("status")[1]
    assert json.loads(watched(command, monkeypatch, "--json"))["queue"] == depth
    assert watched(command, monkeypatch).endswith(f"; {words}\n")


def test_status_counts_what_is_due_as_the_list_does(command, model, monkeypatch):
    assert_queue(command, monkeypatch, 2)
    assert "2 due" in command("status")[1]
    command("cascade", "run", ALL, "--yes")
    assert_queue(command, monkeypatch, 0)


@pytest.mark.deep
def test_status_counts_what_waits_or_is_paused_but_not_what_was_let_be(
    command, model, monkeypatch, home
):
    model.says(Step(""))
    command("cascade", "run", ALL, "--yes")
    assert {row["state"] for row in listed(command)} == {"waiting"}
    assert_queue(command, monkeypatch, 2)
    command("jobs", "drop", listed(command)[0]["id"])
    assert_queue(command, monkeypatch, 1)
    fill(home, talk(2), session="s-2", start=10)
    assert_queue(command, monkeypatch, 3)
    model.says(Step(status=401))
    command("cascade", "run", ALL, "--yes")
    assert "paused" in {row["state"] for row in listed(command)}
    assert_queue(command, monkeypatch, 3)


def test_without_a_store_nothing_is_due(command, home):
    (home / "memory.duckdb").unlink()
    found = json.loads(command("status", "--json")[1])
    assert (found["queue"], found["models"]["queue"]) == (0, None)


def test_a_store_that_cannot_be_asked_is_no_empty_queue(command, home):
    (home / "memory.duckdb").write_bytes(b"no database" * 900)
    assert json.loads(command("status", "--json")[1])["queue"] is None
    assert "nobody can say what is due" in command("status")[1]

"""A failure is said once, in the command's own words; the record of it goes to the program's log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.cli.app import COMMANDS
from hypatia_mem.config import set_value
from tests.memory.cascade_kit import fill, talk

REPOSITORY = str(Path(__file__).parents[2])
WARNS = (
    "import logging, sys\nfrom hypatia_mem.cli import app, ops\n"
    "def warned(*args, **kwargs):\n"
    "    logging.getLogger('hypatia_mem').warning('something went wrong with %s', 'a part')\n"
    "    print('Something went wrong.')\n"
    "app._once = warned\n"
    "sys.exit(app.run(sys.argv[1:]))\n"
)


def program(home, *arguments, code):
    """A process of its own: pytest's handlers would hide what Python's last resort prints."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": REPOSITORY, "HYPATIA_MEM_HOME": str(home)},
        timeout=60,
        check=False,
    )


def logged(home):
    path = Path(home, paths.LOG)
    return path.read_text("utf-8") if path.exists() else ""


def test_a_failed_batch_is_said_once(home, tmp_path):
    """Nobody answers at the address: the run says so, and standard error stays empty."""
    fill(home, talk(4))
    for key, value in {
        "summary_by": "anthropic", "anthropic_url": "http://127.0.0.1:9",
        "cascade_max_tokens": "100", "cascade_keep_last": "0", "model_day_calls": "10",
    }.items():  # fmt: skip
        set_value(home, key, value)
    key_file = tmp_path / "key"
    key_file.write_text("sk-ant-" + "a-key-of-mine-for-tests-" * 2)
    key_file.chmod(0o600)
    set_value(home, "anthropic_key_file", str(key_file))
    code = "from hypatia_mem.cli.app import main; main()"
    done = program(home, "cascade", "run", "--yes", "--scope", "app", code=code)
    assert done.stdout.count("  failed: ") == 1
    assert done.stderr == ""
    assert "was not condensed" in logged(home)


@pytest.mark.parametrize("command", ["status", "extract", "retention"])
def test_no_command_lets_a_record_reach_the_terminal(home, command):
    assert command in COMMANDS
    done = program(home, command, code=WARNS)
    assert (done.stdout, done.stderr) == ("Something went wrong.\n", "")
    assert " WARNING cli something went wrong with a part\n" in logged(home)


def test_a_home_that_is_not_there_is_not_made_for_a_record(tmp_path):
    done = program(tmp_path / "none", "status", code=WARNS)
    assert done.stderr == ""
    assert not (tmp_path / "none").exists()


def test_what_the_worker_logs_within_a_command_is_kept_once(home):
    from hypatia_mem.memory import programlog

    with programlog.keeping("cli"), programlog.keeping("worker", home):
        programlog._LOG.warning("only once")
    assert logged(home).count("only once") == 1
    assert " worker only once" in logged(home)

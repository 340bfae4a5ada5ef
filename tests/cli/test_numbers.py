"""A number beyond what can be counted is a usage error with the range, never the store's or a crash.

Whoever adds an option that takes a number gives it an end.
"""

from __future__ import annotations

import pytest

from hypatia_mem.cli.app import COMMANDS
from hypatia_mem.cli.group import load

HUGE = "99999999999999999999"
JUDGED = {"sticky", "cooldown", "delay", "priority"}  # by what keeps them, for whoever calls it


def numbers():
    """Return (command, option, its highest value) of every option that takes a whole number."""

    def walk(name, command):
        for param in command.params:
            if "Int" in type(param.type).__name__:
                yield name, param.name, getattr(param.type, "max", None)
        for below, sub in getattr(command, "commands", {}).items():
            yield from walk(f"{name} {below}", sub)

    return sorted(one for name, row in COMMANDS.items() for one in walk(name, load(name, row)))


def test_every_number_has_an_end():
    found = numbers()
    assert len(found) > 30
    assert {name for _, name, last in found if last is None} == JUDGED


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_what_is_kept_with_an_entry_has_an_end_of_its_own(cli, name):
    refused = cli("remember", "the pump leaks", "--keys", "pump", f"--{name}", HUGE)
    assert refused.code != 0
    assert "to 10000" in refused.err
    assert cli("remember", "the pump leaks", "--keys", "pump", f"--{name}", "7").code == 0


@pytest.mark.parametrize(
    "line",
    [
        ("search", "pump", "--limit"),
        ("sessions", "--offset"),
        ("review", "defer", "x", "--days"),
        ("show", "s-1", "--from"),
    ],
    ids=" ".join,
)
def test_the_range_is_named_and_its_end_is_taken(cli, line):
    cli("remember", "the pump leaks")
    refused = cli(*line, HUGE)
    assert (refused.code, refused.out) == (2, "")
    assert f"{HUGE} is not in the range" in refused.err
    last = refused.err.partition("<=x<=")[2].split(".")[0]
    assert "not in the range" not in cli(*line, last).err

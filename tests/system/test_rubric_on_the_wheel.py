"""All probes from the installed wheel, nothing of the clone in reach: empty, and on a used memory."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hypatia_mem.rubric.catalogue import PROBES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def _rubric(machine: Any, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(machine.program), "rubric", *arguments, "--json"],
        env=machine.environ,
        cwd=machine.person,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    dashes = {row["id"]: row["reasons"] for row in found["probes"] if row["state"] == "dash"}
    assert (done.returncode, dashes) == (0, {}), done.stderr
    return found


def test_every_probe_holds_on_a_copy_of_a_used_memory(machine, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    for number in range(4):
        machine.prompt("s-1", number, f"remember: the pump number {number} leaks", folder)
        machine.answer("s-1", number, f"Noted, pump {number}.", folder)
    machine.settle()
    before = machine.stored()

    found = _rubric(machine)

    assert {row["id"] for row in found["probes"]} == {probe.id for probe in PROBES}
    assert (found["held"], found["counted"]) == (len(PROBES) - 1, 1)
    assert all(row["controls"] for row in found["probes"])
    assert machine.stored() == before


def test_the_marks_hold_on_an_empty_one(machine) -> None:
    found = _rubric(machine, "marks", "--empty")
    assert (found["held"], found["dashes"]) == (7, 0)
    assert all(row["where"].startswith("hypatia_mem/") for row in found["probes"])

"""Ten thousand turns with the model out of reach, then in reach: nothing lost, nothing twice.

The queue stays bounded, the attempts few, and memory below 300 MB, with the worker's own pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory.model_server import ModelServer

REPOSITORY = Path(__file__).parents[2]
PASSES = """
import json, re, resource, sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from hypatia_mem.memory.cascade import failing, running
from hypatia_mem.store import jobs
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, fill, settings
home, dead, alive, turns = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
one = settings(
    summary_by="anthropic", anthropic_url=dead, cascade_max_tokens=2 * turns, summary_words=100,
    model_day_calls=100_000, model_calls_per_minute=1000, model_day_cents=100_000,
    cascade_keep_last=3,
)
step = max(100, turns // 20)
for start in range(0, turns, step):
    fill(home, [f"Turn {start + n}: the retry queue lost job {start + n} in worker_{n}.py. "
                + "It was seen before and nobody knew why. " * 4 for n in range(step)],
         session=f"s-{start // step}")
    running.run(home, one, now=NOW + timedelta(hours=start / step))
waiting = []
at = NOW + timedelta(days=2)
for visit in range(20):
    report = running.run(home, one, now=at)
    assert not report.made
    with open_store(home, write=False) as store:
        waiting.append(len(jobs.jobs(store)))
    at += timedelta(minutes=10)
reached = replace(one, anthropic_url=alive)
reports = [running.run(home, reached, now=at + timedelta(days=1)) for _ in range(2)]
with open_store(home, write=False) as store:
    rows = store.run(
        "SELECT object FROM statement WHERE predicate = 'summary' AND object LIKE 'msg-%'", [])
    left = store.run("SELECT count(*) AS n FROM entry WHERE list_contains(tags, 'message')", [])
    made = store.run("SELECT count(*) AS n FROM entry WHERE kind = 'summary'", [])
    jobs_left = len(jobs.jobs(store))

def peak():
    # Linux counts in maxrss what the process was before it became this program.
    try:
        return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    except (OSError, TypeError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

names = [row["object"] for row in rows]
print(json.dumps({
    "summarised": len(names), "distinct": len(set(names)), "messages": left[0]["n"],
    "summaries": made[0]["n"], "most_waiting": max(waiting), "jobs_left": jobs_left,
    "made": [len(one.made) for one in reports], "failed": sum(len(one.failed) for one in reports),
    "megabytes": peak(),
}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="counts memory as POSIX does")
@pytest.mark.parametrize(
    "turns",
    [
        pytest.param(300, id="300", marks=pytest.mark.deep),
        pytest.param(10_000, id="10,000", marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
def test_out_of_reach_then_in_reach_everything_is_summarised_once(home, turns):
    server = ModelServer().start()
    server.says("NAME: retry queue\n- The retry queue lost jobs and nobody knew why.")
    try:
        done = subprocess.run(
            [sys.executable, "-c", PASSES, str(home), "http://127.0.0.1:9", server.url, str(turns)],
            env={**os.environ, "ANTHROPIC_API_KEY": "sk-mine", "PYTHONPATH": str(REPOSITORY)},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["messages"] == turns
    assert found["summarised"] == found["distinct"], "nothing twice"
    assert turns - found["distinct"] < turns * 0.05 + 400, "but for what is not due yet"
    assert found["most_waiting"] <= 1, "the queue is what is due, not what was tried"
    assert found["jobs_left"] == 0
    assert found["failed"] == 0
    assert found["made"][1] == 0
    assert found["summaries"] == found["made"][0] == len(server.questions)
    assert found["megabytes"] < 300

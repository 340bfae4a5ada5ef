"""The run inside the namespaces: install, live through every scenario, look at what was kept.

Started by ``harness.run``; writes ``result.json``. A scenario that breaks is written down with its
trace and the others go on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.client.harness import HOME, MOUNT, Desk, enter
from tests.client.screens import SCENARIOS

DUMP = """
import json, sys
from pathlib import Path
from hypatia_mem.store.connection import open_store
with open_store(Path(sys.argv[1]), write=False) as store:
    found = store.sessions(limit=10_000, include_archived=True)
    entries = {session.id: store.entry(f"session-{session.id}") for session, _ in found}
    print(json.dumps({
        session.id: {
            "project": session.project,
            "summary": entries[session.id].content if entries[session.id] else "",
            "messages": [
                [message.turn, message.role, message.text]
                for message in store.messages(session.id, limit=100_000)
            ],
        }
        for session, _ in found
    }))
"""


def main(binary: str, product: str, scratch: str, *only: str) -> None:
    """Live through the scenarios (all, or those named)."""
    enter(Path(scratch))
    version = re.search(r"/(\d+\.\d+\.\d+)/", binary)
    desk = Desk(Path(binary), Path(product), version[1] if version else "999.0.0")
    result: dict[str, Any] = {"version": desk.version, "scenes": {}}
    result["installed"] = desk.memory("install")
    started = time.monotonic()
    for name, scenario in SCENARIOS.items():
        if only and name not in only:
            continue
        result["scenes"][name] = _scene(desk, scenario)
    result["seconds"] = time.monotonic() - started
    result["status"] = _at_rest(desk)
    home = Path(result["status"]["home"])
    result["home"] = str(home.relative_to(HOME))
    result["stored"] = json.loads(
        subprocess.run(
            [str(desk.product / "bin" / "python"), "-c", DUMP, str(home)],
            env=desk.environ,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    result["screens"] = desk.screens
    result["stderr"] = desk.errors
    result["settings"] = desk.settings.read_text()
    result["search"] = desk.memory("search", "greetings", "--all-projects")
    (MOUNT / "out" / "requests.json").write_text(
        json.dumps([(one.at, one.kind, one.body) for one in desk.stub.requests])
    )
    (MOUNT / "out" / "result.json").write_text(json.dumps(result))


def _scene(desk: Desk, scenario: Any) -> dict[str, Any]:
    started = time.monotonic()
    before = len(desk.stub.requests)
    try:
        scene = scenario(desk)
    except Exception:
        return {"broken": traceback.format_exc(), "seconds": time.monotonic() - started}
    return {
        "cwd": str(scene.cwd),
        "transcripts": [str(path.relative_to(HOME)) for path in desk.transcripts(scene.cwd)],
        "talks": scene.talks,
        "notes": scene.notes,
        "status": desk.shell("git status --porcelain --ignored", scene.cwd),
        "requests": len(desk.stub.requests) - before,
        "seconds": time.monotonic() - started,
    }


def _at_rest(desk: Desk) -> dict[str, Any]:
    """Wait until everything is stored and the worker has gone by itself."""
    desk.settle()
    deadline = time.monotonic() + 60
    while (status := desk.memory("status"))["worker"].startswith("running"):
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return status


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        print(error.stdout, error.stderr, sep="\n")
        raise

"""What people do with the client on its screen, and what a memory's own questions leave behind.

Importing this registers every scenario there is: ``SCENARIOS`` is then complete.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.client.harness import HOME, Desk
from tests.client.scenarios import LONG, SCENARIOS, Scene, Talk, bash_call, scenario
from tests.client.stub import Step

__all__ = ["SCENARIOS", "STRIPPED"]


@scenario
def screen_day(desk: Desk) -> Scene:
    """A morning at the full screen: prompts, a tool, ``!``, commands, compaction, clear."""
    cwd = desk.repository("screen")
    script = desk.stub.script
    folder = HOME / ".claude" / "commands"
    folder.mkdir(exist_ok=True)
    (folder / "greet.md").write_text("---\ndescription: greet\n---\nGreet2 with $ARGUMENTS\n")
    script("Greet2", Step("Greetings there."))
    script("hello1", Step("Hello back."))
    script("tool2", Step("Looking now.", tools=(bash_call("echo hi"),)), Step("Tool finished."))
    script("from-bang", Step("You ran that."))
    script("after3", Step("Afterwards."))
    script("clean4", Step("Clean slate."))
    with desk.screen("day", cwd=cwd) as screen:
        screen.prompt("Say hello1", "Hello back")
        screen.prompt("Do tool2", "Tool finished")
        screen.type("!echo from-bang")
        screen.rest(2.0)
        screen.prompt("/greet Ann", "Greetings there")
        screen.type("/nosuchcommand x")
        screen.rest()
        screen.press("C-u")
        screen.type("/cost")
        screen.rest()
        screen.press("Escape")
        screen.rest()
        screen.type("/compact")
        screen.rest(2.0)
        screen.prompt("Say after3", "Afterwards")
        screen.type("/clear")
        screen.rest(1.5)
        screen.prompt("Say clean4", "Clean slate")
        screen.leave()
    morning: Talk = [
        ("user", "Say hello1"),
        ("assistant", "Hello back."),
        ("user", "Do tool2"),
        ("assistant", "Looking now."),
        ("assistant", "Tool finished."),
        ("user", "!echo from-bang"),
        ("assistant", "You ran that."),
        ("user", "/greet Ann"),
        ("assistant", "Greetings there."),
        ("user", "Say after3"),
        ("assistant", "Afterwards."),
    ]
    cleared: Talk = [("user", "Say clean4"), ("assistant", "Clean slate.")]
    return Scene(cwd, [morning, cleared])


@scenario
def screen_queue(desk: Desk) -> Scene:
    """Prompts typed while the model works: taken into the running turn, or given their own."""
    cwd = desk.repository("queue")
    desk.stub.script(
        "busy1",
        Step("Starting.", tools=(bash_call("timeout 3 tail -f README.md; echo a"),)),
        Step(tools=(bash_call("timeout 1 tail -f README.md; echo b"),)),
        Step("Busy is over."),
    )
    slow = "slow words " * 60 + "end of the slow"
    desk.stub.script("stream2", Step(slow, pieces=60, piece_wait=0.05))
    desk.stub.script("during3", Step("Answer to the queued."))
    with desk.screen("queue", cwd=cwd) as screen:
        screen.type("Do busy1")
        screen.wait("Starting")
        time.sleep(0.5)
        screen.type("absorbed first")
        time.sleep(0.3)
        screen.type("absorbed second")
        screen.wait("Busy is over")
        screen.rest(1.5)
        screen.type("Do stream2")
        screen.wait("slow words")
        screen.type("queued during3")
        screen.wait("Answer to the queued")
        screen.rest()
        screen.leave()
    talk: Talk = [
        ("user", "Do busy1"),
        ("assistant", "Starting."),
        ("user", "absorbed first"),
        ("user", "absorbed second"),
        ("assistant", "Busy is over."),
        ("user", "Do stream2"),
        ("assistant", slow),
        ("user", "queued during3"),
        ("assistant", "Answer to the queued."),
    ]
    return Scene(cwd, [talk])


@scenario
def screen_interrupt(desk: Desk) -> Scene:
    """Esc while the model speaks and while a tool runs: no Stop fires, the prompts are kept."""
    cwd = desk.repository("interrupt")
    slow = Step("long speech " * 300, pieces=300, piece_wait=0.05)
    desk.stub.script("speak1", slow)
    desk.stub.script("tool2", Step("Begun.", tools=(bash_call(LONG),)), Step("Never."))
    desk.stub.script("calm3", Step("Calm."))
    desk.stub.script("end4", Step("The end."))
    with desk.screen("interrupt", cwd=cwd) as screen:
        screen.type("Do speak1")
        screen.wait("long speech")
        time.sleep(1)
        screen.press("Escape")
        screen.wait("nterrupted")
        screen.rest()
        screen.press("C-u")
        screen.prompt("Say calm3", "Calm")
        screen.type("Do tool2")
        screen.wait("Begun")
        time.sleep(1)
        screen.press("Escape")
        screen.rest(1.5)
        screen.press("C-u")
        screen.prompt("Say end4", "The end")
        screen.leave()
    said = ["Do speak1", "Say calm3", "Calm.", "Do tool2", "Begun.", "Say end4", "The end."]
    return Scene(cwd, [None], {"said": said})


@scenario
def screen_killed(desk: Desk) -> Scene:
    """The terminal's process is killed after an answer: that answer stays."""
    cwd = desk.repository("screenkill")
    desk.stub.script("last1", Step("Last words."))
    with desk.screen("killed", cwd=cwd) as screen:
        screen.prompt("Say last1", "Last words")
        for pid in _processes(desk.claude):
            os.kill(pid, signal.SIGKILL)
        screen.wait("LEFT|Killed")
    return Scene(cwd, [[("user", "Say last1"), ("assistant", "Last words.")]])


# What a memory's own question is stripped of on the way to the client, case by case: its guards are
# several because each may get lost. What is left is named.
STRIPPED = {
    "nothing": "",
    "the guard": "unset HYPATIA_MEM_INTERNAL",
    "all but folder and marker": """
        unset HYPATIA_MEM_INTERNAL
        for part; do
            shift
            case "$part" in
                --settings) skip=1 ;;
                --no-session-persistence) ;;
                *) [ -n "$skip" ] || set -- "$@" "$part"; skip= ;;
            esac
        done
        """,
    "all but the marker": """
        unset HYPATIA_MEM_INTERNAL
        cd "$FOLDER"
        for part; do
            shift
            case "$part" in
                --settings) skip=1 ;;
                *) [ -n "$skip" ] || set -- "$@" "$part"; skip= ;;
            esac
        done
        """,
}
HARVEST = "The harvest of the orchard weighed 42 kilos, and Berta wants it pressed on Monday. "


@scenario
def own_questions(desk: Desk) -> Scene:
    """The memory has the client condense what was said, with more and more guards stripped."""
    cwd = desk.repository("orchard")
    desk.stub.own = Step(f"NAME: orchard harvest\n- {HARVEST.strip()}")
    wrapper = HOME / "stripped-claude"
    talks: list[Talk | None] = []
    cases: dict[str, Any] = {}
    for number, (case, lines) in enumerate(STRIPPED.items(), 1):
        prompt, answer = f"What of harvest{number}?", f"Year {number}. {HARVEST * 3}".strip()
        desk.stub.script(f"harvest{number}", Step(answer))
        desk.ask(prompt, cwd=cwd)
        talks.append([("user", prompt), ("assistant", answer)])
        desk.settle()
        wrapper.write_text(
            f"#!/bin/sh\nFOLDER='{cwd}'\nskip=\n{lines}\nexec '{desk.claude}' \"$@\"\n"
        )
        wrapper.chmod(0o755)
        before, mark = _kept(desk, cwd), len(desk.stub.requests)
        with _condensing_by_client(desk, wrapper):
            made = desk.memory("cascade", "run", "--yes", cwd=cwd)
        desk.settle()
        time.sleep(1)
        cases[case] = {
            "made": len(made["made"]),
            "failed": made["failed"],
            "asked": len(desk.stub.since(mark, "own")),
            "before": before,
            "after": _kept(desk, cwd),
        }
    return Scene(cwd, talks, {"cases": cases})


def _kept(desk: Desk, cwd: Path) -> dict[str, Any]:
    """Return what the memory has of sessions, projects and messages."""
    status = desk.memory("status")
    return {
        "messages": status["captured"],
        "sessions": status["sessions"],
        "projects": sorted(one["scope"] for one in desk.memory("project", "list")),
        "listed": len(desk.memory("sessions", "--all-projects", cwd=cwd)),
    }


@contextlib.contextmanager
def _condensing_by_client(desk: Desk, command: Path) -> Iterator[None]:
    """Let the memory ask this client while the block runs, about as little as a few sentences."""
    wanted = {
        "summary_by": "claude-cli",
        "claude_command": str(command),
        "cascade_max_tokens": "40",
        "cascade_keep_last": "0",
    }
    for key, value in wanted.items():
        desk.memory("config", "set", key, value)
    try:
        yield
    finally:
        for key in wanted:
            desk.memory("config", "unset", key)


def _processes(binary: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(str(binary).encode() + b"\0"):
                found.append(int(entry.name))
    return found

"""What people do with the client, one function each, and what a person would then have counted.

A function gets the ``Desk`` and returns a ``Scene``: the folder, the conversations that should be
there in the order in which their sessions began, and what else the test shall look at. Where two
versions of the client differ, the words say which. ``None`` as a conversation: only the oracle
knows (how much of an interrupted answer had come is a matter of milliseconds).
"""

from __future__ import annotations

import base64
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.client.harness import HOME, Desk
from tests.client.stub import ANSWER, SUMMARY, Step

Talk = list[tuple[str, str]]
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
).decode()
# The newer client refuses a bare `sleep`.
LONG = "timeout 30 tail -f README.md"
COMMANDS = ("/greet",)
# Put together here so that no scanner takes this file for a leak.
SECRETS = {
    "github": "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8",
    "aws": "AKIA" + "Q3EGRZ5WT7XKPL2M",
    "password": "hunter2-" + "correct-horse-77",
}


@dataclass
class Scene:
    """One scenario's folder, expected conversations and notes."""

    cwd: Path
    talks: list[Talk | None]
    notes: dict[str, Any] = field(default_factory=dict)


Scenario = Callable[[Desk], Scene]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its name."""
    SCENARIOS[function.__name__] = function
    return function


def bash_call(command: str) -> tuple[str, dict[str, str]]:
    return ("Bash", {"command": command, "description": "run it"})


@scenario
def fresh_continue_resume_fork(desk: Desk) -> Scene:
    """Keep the id, keep it, take a new one that repeats everything said before."""
    cwd = desk.repository("sessions")
    script = desk.stub.script
    script("one1", Step("Answer to one."))
    script("two2", Step("Answer to two."))
    script("three3", Step("Answer to three."))
    script("four4", Step("Answer to four."))
    session = desk.ask("Say one1", cwd=cwd)["session_id"]
    desk.ask("Say two2", "--continue", cwd=cwd)
    desk.ask("Say three3", "--resume", session, cwd=cwd)
    desk.ask("Say four4", "--resume", session, "--fork-session", cwd=cwd)
    # An id that never was: the client runs SessionEnd for it.
    phantom = "99999999-2222-4333-8444-555555555555"
    desk.ask("Say five", "--resume", phantom, cwd=cwd)
    first: Talk = [
        ("user", "Say one1"),
        ("assistant", "Answer to one."),
        ("user", "Say two2"),
        ("assistant", "Answer to two."),
        ("user", "Say three3"),
        ("assistant", "Answer to three."),
    ]
    forked: Talk = [("user", "Say four4"), ("assistant", "Answer to four.")]
    return Scene(cwd, [first, forked], {"phantom": phantom})


@scenario
def compact_and_clear(desk: Desk) -> Scene:
    """A compaction keeps the session, ``/clear`` begins another in the same process."""
    cwd = desk.repository("compacted")
    script = desk.stub.script
    for word in ("before", "middle", "after", "cleared"):
        script(f"{word}1", Step(f"Said {word}."))
    desk.talk(
        ["Say before1", "Say middle1", "/compact", "Say after1", "/clear", "Say cleared1"], cwd=cwd
    )
    first: Talk = []
    for word in ("before", "middle", "after"):
        first += [("user", f"Say {word}1"), ("assistant", f"Said {word}.")]
    second: Talk = [("user", "Say cleared1"), ("assistant", "Said cleared.")]
    return Scene(cwd, [first, second], {"summary": SUMMARY})


@scenario
def automatic_compaction(desk: Desk) -> Scene:
    """The client compacts when its window is full: between turns, and between two tool calls."""
    cwd = desk.repository("full")
    padding = " filler" * 300
    full = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}
    script = desk.stub.script
    script("start1", Step("Started."))
    script("big2", Step("Big answer.", input_tokens=97_000))
    script("next3", Step("Went on."))
    script("work4", Step("First.", tools=(bash_call("echo 1"),), input_tokens=97_000))
    prompts = [f"Say start1{padding}", f"Say big2{padding}", "Say next3", f"Do work4{padding}"]
    mark = len(desk.stub.requests)
    desk.talk(prompts, cwd=cwd, env=full)
    compactions = len(desk.stub.since(mark, "summary"))
    answers = [["Started."], ["Big answer."], ["Went on."], ["First.", ANSWER]]
    talk: Talk = []
    for prompt, said in zip(prompts, answers, strict=True):
        talk += [("user", prompt), *(("assistant", text) for text in said)]
    return Scene(cwd, [talk], {"compactions": compactions})


@scenario
def tools(desk: Desk) -> Scene:
    """Text before a call is a message, results and thoughts are not; a failing tool is no end."""
    cwd = desk.repository("tools")
    desk.stub.script(
        "call1",
        Step("Let me look.", tools=(bash_call("echo seen"), bash_call("pwd")), thinking="hm"),
        Step(tools=(("Read", {"file_path": str(cwd / "README.md")}),)),
        Step("It says hello."),
    )
    desk.stub.script(
        "fail2",
        Step("Trying.", tools=(bash_call("echo oops >&2; exit 3"),)),
        Step(tools=(("Read", {"file_path": str(cwd / "nope.txt")}),)),
        Step("It failed."),
    )
    desk.stub.script("silent3", Step(tools=(bash_call("true"),)), Step("Quietly done."))
    desk.talk(["Please call1", "Please fail2", "Please silent3"], cwd=cwd)
    talk: Talk = [
        ("user", "Please call1"),
        ("assistant", "Let me look."),
        ("assistant", "It says hello."),
        ("user", "Please fail2"),
        ("assistant", "Trying."),
        ("assistant", "It failed."),
        ("user", "Please silent3"),
        ("assistant", "Quietly done."),
    ]
    return Scene(cwd, [talk])


@scenario
def subagents(desk: Desk) -> Scene:
    """What a sub-agent says is not said to the person; its end in the background is a notice."""
    cwd = desk.repository("agents")
    agent = {"description": "look", "subagent_type": "general-purpose"}
    desk.stub.script("near1", Step(tools=(bash_call("echo inner"),)), Step("INNER WORDS"))
    desk.stub.script("far2", Step("INNER WORDS FAR"))
    desk.stub.script(
        "parent1",
        Step(
            "Asking.",
            tools=(("Agent", {**agent, "prompt": "go near1", "run_in_background": False}),),
        ),
        Step("It answered."),
    )
    desk.stub.script(
        "parent2",
        Step(tools=(("Agent", {**agent, "prompt": "go far2", "run_in_background": True}),)),
        Step("Started it."),
    )
    desk.stub.script("later3", Step("Still here."))
    desk.talk(["Have parent1", "Have parent2", "Say later3"], cwd=cwd, linger=4)
    return Scene(cwd, [None], {"unsaid": ["INNER WORDS"], "said": ["It answered.", "Still here."]})


@scenario
def api_error(desk: Desk) -> Scene:
    """A prompt without an answer is kept; the client's own error text is nobody's answer."""
    cwd = desk.repository("errors")
    desk.stub.script("broken1", *[Step(status=400)] * 6)
    desk.stub.script("works2", Step("Works."))
    desk.ask("Say broken1", cwd=cwd)
    desk.ask("Say works2", "--continue", cwd=cwd)
    talk: Talk = [("user", "Say broken1"), ("user", "Say works2"), ("assistant", "Works.")]
    return Scene(cwd, [talk])


@scenario
def images(desk: Desk) -> Scene:
    """A picture is part of the prompt, never its bytes."""
    cwd = desk.repository("images")
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    picture = {"type": "image", "source": source}
    desk.stub.script("shown1", Step("A dot."))
    desk.stub.script("blocks2", Step("Two blocks."))
    desk.talk(
        [
            [{"type": "text", "text": "What is shown1?"}, picture],
            [picture],
            [{"type": "text", "text": "two"}, {"type": "text", "text": "blocks2"}],
        ],
        cwd=cwd,
    )
    talk: Talk = [
        ("user", "What is shown1?"),
        ("assistant", "A dot."),
        ("user", "[image]"),
        ("assistant", ANSWER),
        ("user", "two\nblocks2"),
        ("assistant", "Two blocks."),
    ]
    return Scene(cwd, [talk], {"absent": [PIXEL[:40]]})


@scenario
def slash_commands(desk: Desk) -> Scene:
    """One's own command is a prompt; the client's own are not; an unknown one depends."""
    cwd = desk.repository("commands")
    folder = HOME / ".claude" / "commands"
    folder.mkdir(exist_ok=True)
    (folder / "greet.md").write_text("---\ndescription: greet\n---\nGreet1 with $ARGUMENTS\n")
    desk.stub.script("Greet1", Step("Greetings."))
    desk.stub.script("first1", Step("First."))
    session = desk.ask("Say first1", cwd=cwd)["session_id"]
    desk.ask("/greet Ann Lee", "--resume", session, cwd=cwd)
    desk.ask("/cost", "--resume", session, cwd=cwd)
    desk.ask("/nosuchcommand now", "--resume", session, cwd=cwd)
    talk: Talk = [
        ("user", "Say first1"),
        ("assistant", "First."),
        ("user", "/greet Ann Lee"),
        ("assistant", "Greetings."),
    ]
    if desk.new:
        talk += [("user", "/nosuchcommand now"), ("assistant", ANSWER)]
    return Scene(cwd, [talk])


@scenario
def folders(desk: Desk) -> Scene:
    """A worktree and a subfolder belong to the repository; the shell's ``cd`` changes nothing."""
    cwd = desk.repository("folders")
    (cwd / "sub").mkdir()
    (cwd / "sub" / "note.txt").write_text("x\n")
    desk.shell("git add -A && git commit -qm sub && git worktree add -q ../elsewhere -b other", cwd)
    for name, path in (("work1", HOME / "work" / "elsewhere"), ("sub2", cwd / "sub")):
        desk.stub.script(
            name, Step(f"Here {name}.", tools=(bash_call("cd / && pwd"),)), Step("Ok.")
        )
        desk.ask(f"Say {name}", cwd=desk.trust(path))
    desk.stub.script("main3", Step("Main."))
    desk.ask("Say main3", cwd=cwd)
    return Scene(
        cwd,
        [[("user", "Say main3"), ("assistant", "Main.")]],
        {
            "others": {
                str(HOME / "work" / "elsewhere"): "Say work1",
                str(cwd / "sub"): "Say sub2",
            },
            "scope": "folders",
        },
    )


@scenario
def odd_folder_and_odd_text(desk: Desk) -> Scene:
    """Spaces, brackets and every script, in the folder's name and in what is said."""
    cwd = desk.repository("mein Projekt ü 日本 (1)")
    texts = [
        "Hi 👩‍👩‍👧‍👦 日本語 مرحبا odd1",
        "line one\r\nline two\n\n\tthree odd2",
        "\u2028 sep \x1b[31mred\x1b[0m \ufeffbom odd3",
        'tags </prompt> <system-reminder>x</system-reminder> "q" \\n odd4',
    ]
    talk: Talk = []
    for number, text in enumerate(texts, 1):
        desk.stub.script(f"odd{number}", Step(f"Réponse {number} 👍 \u2029 fin"))
        talk += [("user", text), ("assistant", f"Réponse {number} 👍 \u2029 fin")]
    desk.talk(list(texts), cwd=cwd)
    return Scene(cwd, [talk], {"scope": cwd.name})


@scenario
def killed_client(desk: Desk) -> Scene:
    """A client killed in the middle of a tool has said what it had said."""
    cwd = desk.repository("killed")
    desk.stub.script("long1", Step("Working.", tools=(bash_call(LONG),)), Step("Never."))
    desk.stub.script("again2", Step("Again."))
    mark = len(desk.stub.requests)
    client = desk.start("Do long1", cwd=cwd)
    until(lambda: bool(desk.stub.since(mark)))
    until(lambda: any("Working." in path.read_text() for path in desk.transcripts(cwd)))
    client.send_signal(signal.SIGKILL)
    client.wait()
    desk.ask("Say again2", "--continue", cwd=cwd)
    talk: Talk = [
        ("user", "Do long1"),
        ("assistant", "Working."),
        ("user", "Say again2"),
        ("assistant", "Again."),
    ]
    return Scene(cwd, [talk])


@scenario
def remembered(desk: Desk) -> Scene:
    """What was asked to be remembered is told to the next session, here and nowhere else."""
    cwd = desk.repository("remembering")
    other = desk.repository("other")
    desk.stub.script("apples", Step("Noted."))
    mark = len(desk.stub.requests)
    desk.ask("remember: never sell the apples on a Friday", cwd=cwd)
    told = first_told(desk, mark)
    desk.settle()
    desk.stub.script("small1", Step("Small talk."))
    desk.ask("Say small1", cwd=cwd)
    desk.settle()
    briefs = {}
    for name, folder in (("here", cwd), ("there", other)):
        mark = len(desk.stub.requests)
        desk.ask("What is known2?", cwd=folder)
        briefs[name] = first_told(desk, mark)
    mark = len(desk.stub.requests)
    desk.ask("forget the apples", cwd=cwd)
    desk.settle()
    mark = len(desk.stub.requests)
    desk.ask("What is left3?", cwd=cwd)
    prompts = (
        ("remember: never sell the apples on a Friday", "Noted."),
        ("Say small1", "Small talk."),
        ("What is known2?", ANSWER),
        ("forget the apples", ANSWER),
        ("What is left3?", ANSWER),
    )
    return Scene(
        cwd,
        [[("user", prompt), ("assistant", answer)] for prompt, answer in prompts],
        {"told": told, "briefs": briefs, "forgotten": first_told(desk, mark), "other": str(other)},
    )


@scenario
def secrets(desk: Desk) -> Scene:
    """Secrets in a prompt, an answer, a tool's input and its output reach no byte of the memory."""
    cwd = desk.repository("secret")
    github, aws = SECRETS["github"], SECRETS["aws"]
    desk.stub.script(
        "leak1",
        Step(f"I see {github}.", tools=(bash_call(f"echo key {aws}"),), thinking=f"use {github}"),
        Step(f"Done with {aws}."),
    )
    prompt = f"Use {github} and password={SECRETS['password']} for leak1, please"
    desk.ask(prompt, cwd=cwd)
    return Scene(cwd, [None], {"secrets": list(SECRETS.values())})


def first_told(desk: Desk, mark: int) -> str:
    """Return what the first request since ``mark`` told the model."""
    return desk.stub.since(mark)[0].text()


def until(true: Callable[[], bool], timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("what the scenario waits for did not happen")
        time.sleep(0.1)

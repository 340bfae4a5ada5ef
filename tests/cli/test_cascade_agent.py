"""Where the session's agent condenses: it is told, takes the batch, hands its summary in."""

from __future__ import annotations

import contextlib
import json
import uuid

import pytest

from hypatia_mem import worker
from hypatia_mem.config import set_value
from hypatia_mem.store.connection import open_store
from tests.capture.hook_kit import SECRET, context, event, fire
from tests.memory.cascade_kit import assert_whole, links, summaries

SAID = (
    "Why does the retry queue lose jobs when the broker restarts? See app/queue.py, please.",
    "The retry queue acknowledges a job before it is run: app/queue.py line 41 calls ack() first.",
    "Then move the ack behind the run, and keep the limit of 7 attempts as it is, whatever comes.",
    "Done: ack() is called in finally of run_job, the limit stays at 7, and 12 tests pass again.",
)
LONG = tuple(
    f"{text} " + f"And then it was seen {n} times more. " * 9 for n, text in enumerate(SAID)
)
GOOD = "The retry queue lost jobs because app/queue.py called ack() before the run; ack() moved."


@pytest.fixture
def agent(home, project, cli, monkeypatch):
    """An agent's shell in a project whose batches are its to condense."""
    monkeypatch.setenv("CLAUDECODE", "1")
    for key, value in {
        "summary_by": "agent", "extract_by": "off", "cascade_max_tokens": "165",
        "cascade_keep_last": "0",
    }.items():  # fmt: skip
        set_value(home, key, value)
    return cli


def says(project, texts=SAID, session="s-1"):
    """Let the client's hooks run: a prompt, an answer; return what the first prompt was told."""
    told = []
    for n in range(0, len(texts), 2):
        more = {"cwd": str(project), "session_id": session, "transcript_path": "/none"}
        more["prompt_id"] = str(uuid.uuid4())
        told.append(context(fire(event(prompt=texts[n], **more))).splitlines())
        fire(event("Stop", last_assistant_message=texts[n + 1], **more))
    return told


def works(home):
    with contextlib.chdir("."):  # it goes to its home
        assert worker.run(home, once=True) == 0


def due(agent):
    return agent("cascade", "due", "--json").json


def test_the_whole_loop(home, project, agent):
    """Told once, with the next prompt; what it hands in stands for exactly what it was handed."""
    assert says(project) == [[], []]
    works(home)
    assert summaries(home) == [], "the worker leaves it to the agent"
    (line,) = says(project, ("and now?", "Nothing else is open."))[0]
    handed = due(agent)
    assert line == (
        "[hypatia-memory] Summary due: 4 messages (token threshold). hypatia-mem cascade due, then "
        f"hypatia-mem cascade submit NAME --ticket {handed['ticket']} -d -"
    )
    assert says(project, ("go on", "Yes."))[0] == [], "once"
    works(home)
    assert says(project, ("go on", "Yes."))[0] == [], "and not again for the same batch"
    assert [one["text"] for one in handed["items"]] == list(SAID)
    shown = agent("cascade", "due").out
    assert handed["ticket"] in shown
    assert SAID[0] in shown
    done = agent(*handed["submit"].replace("NAME", "retry-queue-ack").split()[1:],
                 stdin=GOOD.encode())  # fmt: skip
    assert done.out.splitlines() == [
        "[hypatia-memory] Cascade: +1 summary 1 (token threshold).",
        "  retry-queue-ack  level 1, 4 items",
    ]
    assert due(agent) == {"due": False}
    assert {name for name, _ in links(home)} == {"retry-queue-ack"}
    assert_whole(home)
    with open_store(home, write=False) as store:
        assert store.producer_of("retry-queue-ack").startswith("agent:claude-code#")
    assert agent("trace", "retry-queue-ack").out.count("<- msg-s-1-") >= 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "nothing", id="empty"),
        pytest.param("  \n\t", "nothing", id="blank"),
        pytest.param("<think>They talked about queues.", "nothing", id="only reasoning"),
        pytest.param(None, "no summary", id="word for word"),
        pytest.param("I'm sorry, but I cannot help with that.", "declined", id="a refusal"),
    ],
)
def test_what_is_no_summary_is_refused_and_the_batch_stays(home, project, agent, text, why):
    says(project, LONG[:2])
    works(home)
    handed = due(agent)
    submit = ("cascade", "submit", "retry-queue", "--ticket", handed["ticket"], "-d", "-")
    text = "\n".join(one["text"] for one in handed["items"]) if text is None else text
    refused = agent(*submit, stdin=text.encode())
    assert refused.code
    assert why in refused.err
    assert summaries(home) == []
    assert due(agent) == handed
    assert agent(*submit, stdin=GOOD.encode()).code == 0, "and it can be handed in after all"


def test_a_lie_is_marked_and_a_secret_is_not_kept(home, project, agent):
    says(project)
    works(home)
    text = f"{GOOD}\n- The whole team moved to Lisbon.\n- The broker's password is {SECRET}."
    done = agent("cascade", "submit", "retry-queue", "-d", "-", stdin=text.encode())
    assert "2 sentences marked inferred" in done.out
    (made,) = summaries(home)
    assert "Lisbon. [inferred]" in made.content
    assert "ack() moved. [inferred]" not in made.content
    assert SECRET not in json.dumps([made.content, done.out])
    assert SECRET.encode() not in (home / "memory.duckdb").read_bytes()
    brief = next((home / "briefs").glob("p-*.json")).read_text("utf-8")
    assert all("[inferred]" in line for line in brief.split("\\n") if "Lisbon" in line)


def test_nobody_is_told_where_somebody_else_condenses(home, project, agent):
    says(project)
    works(home)
    assert list((home / "briefs").glob("*.batch"))
    set_value(home, "summary_by", "off")
    says(project, ("other", "Yes."), session="s-2")  # not the session that would be told
    works(home)
    assert says(project)[0] == []


def test_another_session_is_told_only_when_the_first_is_over(home, project, agent):
    """Two that write the same summary would waste one; a batch that nobody takes is not lost."""
    says(project)
    works(home)
    assert len(says(project, ("well", "Yes."))[0]) == 1
    says(project, ("other", "Yes."), session="s-2")
    works(home)
    assert says(project, ("other", "Yes."), session="s-2")[0] == []
    fire(event("SessionEnd", session_id="s-1", cwd=str(project), transcript_path="/none"))
    works(home)
    (line,) = says(project, ("other", "Yes."), session="s-2")[0]
    assert "Summary due: 4 messages" in line


def test_a_second_agent_is_told_that_it_came_too_late(home, project, agent):
    says(project)
    works(home)
    submit = ("cascade", "submit", "retry-queue", "--ticket", due(agent)["ticket"], "-d", GOOD)
    assert agent(*submit).code == 0
    late = agent(*submit)
    assert late.code
    assert "no batch is due" in late.err or "condensed already" in late.err
    assert len(summaries(home)) == 1

"""The cascade as an agent and a person meet it: batches handed out, traces, losses, commands."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.errors import Conflict, NotFound
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.cascade import trace as cascade_trace
from hypatia_mem.model import Author, Channel
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import (
    NOW,
    PERSON,
    assert_whole,
    fill,
    run,
    settings,
    summaries,
    talk,
)

AGENT = Author(Channel.CLI_AGENT)


# --- the agent ------------------------------------------------------------------------------------

AS_AGENT = settings(summary_by="agent", cascade_max_tokens=300)


def submit(home, name, text, ticket="", config=AS_AGENT):
    return cascade.submit(
        home, config, name, text,
        ticket=ticket, producer="agent#0123456789ab", author=AGENT, now=NOW, scopes=["app", ""],
    )  # fmt: skip


def test_an_agent_is_handed_the_batch_and_its_summary_is_stored(home):
    fill(home, talk(3))
    assert run(home, AS_AGENT).made == (), "the worker leaves it to the agent"
    handed = cascade.due(home, AS_AGENT, now=NOW, scopes=["app", ""])
    assert [item.name for item in handed.request.items] == [f"msg-s-1-{n}" for n in (1, 2, 3)]
    text = "The retry queue loses jobs in module_0.py.\n- Nobody will ever notice the moon landing."
    fill(home, talk(1), start=3)  # more may come in meanwhile
    done = submit(home, "Retry queue losses", text, handed.batch.ticket)
    assert (done.name, done.items, done.inferred) == ("retry-queue-losses", 3, 1)
    (made,) = summaries(home)
    assert "moon landing. [inferred]" in made.content
    assert made.scopes == ("app",)
    assert_whole(home)
    with open_store(home, write=False) as store:
        assert store.producer_of(made.name) == "agent#0123456789ab"
    with pytest.raises(NotFound):
        submit(home, "Retry queue losses", text)


def test_a_ticket_of_a_batch_that_changed_is_refused(home):
    fill(home, talk(3))
    handed = cascade.due(home, AS_AGENT, now=NOW, scopes=["app"])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        said = txn.entry("msg-s-1-1").content
        txn.update_entry("msg-s-1-1", content=said + " something else" * 40)
    with pytest.raises(Conflict):
        submit(home, "Retry queue", "The retry queue loses jobs.", handed.batch.ticket)
    assert summaries(home) == []


def test_another_projects_batch_is_not_handed_out(home):
    fill(home, talk(3), scope="web")
    assert cascade.due(home, AS_AGENT, now=NOW, scopes=["app", ""]) is None


def test_what_the_agent_leaves_undone_is_made_without_it(home):
    """At twice the threshold; and it says for whom."""
    fill(home, talk(5))
    assert run(home, AS_AGENT).made == ()
    fill(home, talk(2), start=5)
    report = run(home, AS_AGENT)
    assert len(report.made) == 1
    with open_store(home, write=False) as store:
        assert store.producer_of(report.made[0].name).endswith(" for agent")


# --- trace and loss -------------------------------------------------------------------------------


@pytest.mark.deep
def test_every_sentence_can_be_walked_down_to_the_words(home):
    fill(home, talk(4))
    run(home, settings(cascade_batch=2))
    top = summaries(home, 3)[0]
    traced = cascade_trace.trace(home, top.name)
    assert traced.level == 3
    assert traced.sentences
    with open_store(home, write=False) as store:
        for said in traced.sentences:
            assert said.words
            for leaf in cascade_trace._leaves(said.words):
                assert leaf.source.startswith("msg-")
                assert not leaf.changed
                assert leaf.text in " ".join(store.entry(leaf.source).content.split())


def test_a_source_that_changed_since_is_said_to_have(home):
    fill(home, talk(1))
    run(home)
    (made,) = summaries(home)
    with open_store(home, write=True) as store:  # not by the gateway: that takes the summary out
        store.execute("UPDATE entry SET content = 'another text' WHERE name = 'msg-s-1-1'")
    traced = cascade_trace.trace(home, made.name)
    assert all(words.changed for said in traced.sentences for words in said.words)


@pytest.mark.deep
def test_loss_is_told_of_each_summary_and_of_all_below(home):
    fill(home, talk(4))
    run(home, settings(cascade_batch=2))
    top = summaries(home, 3)[0]
    found = cascade_trace.lost(home, top.name)
    assert [one.level for one in found] == [3, 2, 2, 1, 1, 1, 1]
    paths = found[0].cumulative.classes["path"]
    assert paths.total == 4
    assert 0 < paths.kept <= 4
    assert len(paths.dropped) == 4 - paths.kept


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def command(home, tmp_path, monkeypatch, capsys):
    from hypatia_mem.cli.app import run as run_cli

    folder = tmp_path / "src" / "app"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TYPER_USE_RICH", "0")
    (home / "config.toml").write_text(
        "cascade_max_tokens = 100\ncascade_keep_last = 0\ncascade_batch = 2\nsummary_words = 60\n"
    )

    def call(*arguments):
        capsys.readouterr()
        code = run_cli(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.deep
@pytest.mark.parametrize("verb", ["trace", "loss"])
def test_a_summary_of_another_project_is_read_on_purpose_only(
    home, command, verb, tmp_path, monkeypatch
):
    fill(home, talk(2))
    command("cascade", "run", "--scope", "app")
    (top,) = summaries(home, 2)
    elsewhere = tmp_path / "src" / "web"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, out, err = command(verb, top.name)
    assert (code, out, "not of this project" in err) == (1, "", True)
    assert command(verb, top.name, "--scope", "app")[0] == 0
    assert command(verb, top.name, "--all-projects")[0] == 0


@pytest.mark.deep
def test_the_commands_say_what_is_due_what_was_done_and_where_it_came_from(home, command):
    fill(home, talk(2))
    assert command("cascade", "status", "--scope", "app")[1].splitlines()[1].endswith("due now")
    plan = json.loads(command("cascade", "plan", "--scope", "app", "--json")[1])
    assert [(one["level"], one["summaries"], one["items"]) for one in plan] == [
        (1, 2, 2),
        (2, 1, 2),
    ]
    assert summaries(home) == [], "a plan changes nothing"
    code, out, _ = command("cascade", "run", "--scope", "app")
    assert code == 0
    assert out.splitlines()[0] == (
        "[hypatia-memory] Cascade: +2 summary 1 (token threshold), +1 summary 2 (2 of level 1)."
    )
    assert command("cascade", "run", "--scope", "app")[1] == "Nothing is due.\n"
    (top,) = summaries(home, 2)
    out = command("trace", top.name)[1]
    assert "<- msg-s-1-" in out
    row = json.loads(command("loss", top.name, "--json")[1])[0]
    assert set(row["direct"]) == {
        "identifier", "path", "number", "url", "command", "decision", "negation",
    }  # fmt: skip
    assert command("trace", "msg-s-1-1")[0] == 2
    assert command("trace", "no-such")[0] == 1
    found = json.loads(command("search", "retry queue", "--scope", "app", "--json")[1])
    assert any("summary" in json.dumps(hit) for hit in found), "a summary is found like anything"


def test_an_agent_takes_and_gives_a_batch_on_the_command_line(home, command):
    fill(home, talk(1))
    (home / "config.toml").write_text(
        'summary_by = "agent"\ncascade_max_tokens = 100\ncascade_keep_last = 0\n'
    )
    handed = json.loads(command("cascade", "due", "--scope", "app", "--json")[1])
    assert handed["due"]
    assert "## Role" not in handed["items"][0]["text"]
    text = "The retry queue loses jobs in module_0.py."
    submit_it = ("cascade", "submit", "retry queue", "--scope", "app", "--ticket", handed["ticket"])
    assert command(*submit_it, "-d", "<think>hm</think>")[0] == 1
    assert command(*submit_it, "-d", text)[0] == 0
    assert json.loads(command("cascade", "due", "--scope", "app", "--json")[1]) == {"due": False}
    assert command(*submit_it, "-d", text)[0] == 1


def test_windows_are_listed_asked_for_and_set(command):
    assert "claude" in command("cascade", "windows")[1]
    assert command("cascade", "windows", "my-model", "64000")[0] == 0
    assert json.loads(command("cascade", "windows", "my-model-2", "--json")[1])["tokens"] == 64_000


@pytest.mark.deep
def test_the_worker_condenses_after_a_drain(home, monkeypatch):
    from hypatia_mem import worker

    fill(home, talk(2))
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_MAX_TOKENS", "100")
    monkeypatch.setenv("HYPATIA_MEM_CASCADE_KEEP_LAST", "0")
    assert worker.run(home, once=True) == 0
    assert len(summaries(home)) == 2
    assert_whole(home)

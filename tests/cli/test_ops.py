"""Status and doctor: the first line says it, problems have remedies, --fix does the safe ones."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from datetime import UTC, datetime, timedelta

import pytest

from hypatia_mem.capture import spool
from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store


def prompt(home, session="s-1", text="hello", *, at=None, event="UserPromptSubmit"):
    record = {"hook_event_name": event, "session_id": session, "prompt": text}
    spool.append(
        str(home),
        session,
        json.dumps(record).encode(),
        at_ns=int((at or time.time()) * 1e9),
        meta=b'"dir":"","client":"claude-code_2-1-332_agent","entry":"cli",',
    )


def test_status_of_an_empty_home(cli):
    """Nothing yet is an answer, not an error."""
    done = cli("status")

    assert done.code == 0
    assert done.out.splitlines()[0] == (
        "0 turns captured, 0 stored, 0 waiting; no hook seen yet (hypatia-mem doctor says why); "
        "last error: none"
    )


@pytest.mark.parametrize(
    ("turns", "days", "said", "never"),
    [
        (0, 0, ["none yet: the first turn makes one", "as soon as the first turn is stored",
                "nothing is to be done", "doctor says why"], ["this week", "7 days", "99 of 100"]),
        (1, 0, ["store:      ok", "after it was said (1 turn this week)", "1 turn captured"],
         ["99 of 100", "turns this week", "no turn"]),
        (2, 0, ["(2 turns this week)", "99 of 100 within"], ["not measured"]),
        (1, 30, ["not measured: no turn has come in these 7 days", "last hook 30 d ago"],
         ["as soon as", "this week"]),
    ],
    ids=["fresh", "one turn", "two turns", "idle"],
)  # fmt: skip
def test_each_sentence_of_status_is_true(cli, home, monkeypatch, turns, days, said, never):
    """Of a memory without a store, with a little in it, and of one that nobody has used lately."""
    if not turns:
        (home / "memory.duckdb").unlink()
    for number in range(turns):
        prompt(home, text=f"turn {number}")
    if turns:
        assert cli("worker", "drain").code == 0
    now, clock = context.now, time.time
    monkeypatch.setattr(context, "now", lambda: now() + timedelta(days=days))
    monkeypatch.setattr(time, "time", lambda: clock() + days * 86400)
    out = cli("status").out
    for words in said:
        assert words in out
    for words in never:
        assert words not in out


def test_status_counts_what_waits(cli, home):
    """One line first; the client by the name it gives itself."""
    prompt(home)
    prompt(home, event="SessionEnd")

    done = cli("status", "--json").json
    line = cli("status").out.splitlines()[0]

    assert (done["captured"], done["stored"], done["waiting"]) == (1, 0, 1)
    assert done["waiting_records"] == 2
    assert line.startswith("1 turn captured, 0 stored, 1 waiting; last hook 0 s ago")
    assert "(SessionEnd, claude-code 2.1.332)" in line


def test_status_starts_a_worker_where_turns_wait_and_none_runs(cli, home, tmp_path):
    """The last hook met one that was being killed; with nothing waiting none is started."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho started >> {tmp_path}/starts\n")
    script.chmod(0o755)
    home.mkdir(exist_ok=True)
    (home / "hook.conf").write_text(f"python={script}\n")
    assert cli("status", "--json").json["worker"].startswith("idle")
    prompt(home)

    done = cli("status", "--json").json

    assert (done["waiting"], done["worker"]) == (1, "starting")
    until = time.monotonic() + 10
    while not (tmp_path / "starts").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "starts").read_text() == "started\n"


def test_status_sees_the_newest_record_of_a_drained_spool(cli, home):
    """That hooks fire is still seen when everything is stored."""
    from hypatia_mem.model import Author, Channel
    from hypatia_mem.store.connection import open_store

    prompt(home, at=time.time() - 120)
    [segment] = spool.segments(str(home))
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=datetime(2026, 1, 1)) as t,
    ):
        t.set_cursor(segment.id, segment.size)

    done = cli("status", "--json").json

    assert done["waiting_records"] == 0
    assert done["last_hook"]["event"] == "UserPromptSubmit"
    assert 100 < time.time() - done["last_hook"]["at"] < 200


def checks(cli, *options):
    done = cli("doctor", "--json", *options)
    found = {}
    for check in done.json["checks"]:
        found.setdefault(check["name"], check)
    return done, found


def test_doctor_without_a_home(cli, tmp_path, monkeypatch):
    """The first thing to do is named."""
    monkeypatch.setenv("HYPATIA_MEM_HOME", str(tmp_path / "nowhere"))

    done = cli("doctor")

    assert done.code == 1
    assert "1 problem." in done.out
    assert "hypatia-mem install" in done.out


def test_doctor_names_each_problem_and_its_remedy(cli, home):
    """Not installed is a problem; everything else of a fresh home is in order."""
    done, found = checks(cli)

    assert done.code == 1
    assert found["hooks"]["state"] == "problem"
    assert "hypatia-mem install" in found["hooks"]["remedy"]
    for name in ("home", "disk", "spool", "hook failures", "settings", "worker", "store", "drain"):
        assert found[name]["state"] == "ok", found[name]
    for check in found.values():
        assert check["state"] != "problem" or check["remedy"]


def test_doctor_tightens_permissions(cli, home):
    """A home that others can read is a problem that --fix cures."""
    (home / "config.toml").write_text("")
    (home / "config.toml").chmod(0o644)

    _, before = checks(cli)
    done, after = checks(cli, "--fix")

    assert before["home"]["state"] == "problem"
    assert after["home"]["state"] == "ok"
    assert "home" in done.json["fixed"]
    assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600


@pytest.mark.parametrize("age", [0, 600])
def test_doctor_looks_at_what_waits(cli, home, age):
    """Records of a moment ago are the worker's; old ones are a problem."""
    prompt(home, at=time.time() - age)

    _, found = checks(cli)

    assert found["drain"]["state"] == ("problem" if age else "ok")
    assert found["firing"]["state"] == "ok"


def test_doctor_sees_damage(cli, home):
    """A torn record is named; nothing is thrown away."""
    prompt(home)
    with (home / "spool" / "s-1.jsonl").open("ab") as file:
        file.write(b'{"v":1,"crc":"00000000","at":1,"event":{}}\n')

    _, found = checks(cli)

    assert found["damage"]["state"] == "note"


def test_doctor_reads_the_settings(cli, home):
    """A setting that cannot be used, and one that stops capture."""
    (home / "config.toml").write_text("extract_every = -1\n")
    _, broken = checks(cli)
    (home / "config.toml").write_text("capture = false\n")
    _, off = checks(cli)

    assert broken["settings"]["state"] == "problem"
    assert off["settings"]["state"] == "note"


def test_doctor_sees_hooks_switched_off_in_the_client(cli, home, fenced):
    """``disableAllHooks`` silences everything and nothing else tells."""
    folder = fenced / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text('{"disableAllHooks": true}')

    _, found = checks(cli)

    assert found["client"]["state"] == "problem"
    (folder / "settings.json").write_text('{"disableAllHooks": false}')
    assert "client" not in checks(cli)[1]


def test_doctor_sees_a_worker_python_that_is_gone(cli, home):
    """Then hooks keep turns and nobody stores them."""
    (home / "hook.conf").write_text("python=/nowhere/python\n")

    _, found = checks(cli)
    checks(cli, "--fix")
    _, after = checks(cli)

    assert found["worker python"]["state"] == "problem"
    assert after["worker python"]["state"] == "ok"


def test_doctor_sees_a_damaged_store(cli, home):
    """With the remedy that restores it."""
    cli("knowledge-create", "x")
    file = home / "memory.duckdb"
    file.write_bytes(b"\0" * 5000)

    _, found = checks(cli)
    status = cli("status")

    assert found["store"]["state"] == "problem"
    assert "worker run" in found["store"]["remedy"]
    assert status.code == 0


def test_doctor_sees_an_index_that_is_behind(cli, home):
    """And builds it again from the store."""
    import shutil

    cli("knowledge-create", "x", "-d", "needle")
    shutil.rmtree(home / "index")

    _, found = checks(cli)
    checks(cli, "--fix")
    _, after = checks(cli)

    assert found["index"]["state"] == "problem"
    assert after["index"]["state"] == "ok"
    assert cli("search", "needle", "--json").json[0]["key"] == "x"


def test_the_program_log(cli, home):
    """Its last lines, and doctor counts its errors."""
    from hypatia_mem.capture import paths

    for number in range(5):
        paths.log_line(str(home), "ERROR", "worker", f"something went wrong {number}")

    done = cli("log", "--program", "--limit", "2")
    _, found = checks(cli)

    assert [line.split()[-1] for line in done.out.splitlines()] == ["3", "4"]
    assert found["log"]["state"] == "note"
    assert "something went wrong 4" in cli("status").out


def test_worker_commands(cli, home):
    """Nobody runs; stopping nobody is fine; draining nothing too."""
    assert cli("worker", "status", "--json").json["running"] is False
    assert cli("worker", "stop").out == "No worker is running.\n"
    assert "HYPATIA_MEM_INTERNAL" not in os.environ


def test_config_commands(cli, home):
    """List with source and range; get, set and unset."""
    assert "triggers" in cli("config", "list").out
    assert cli("config", "set", "triggers", "literal").out == "triggers = literal\n"
    assert cli("config", "get", "triggers", "--json").json == {
        "key": "triggers",
        "value": "literal",
        "source": "file",
    }
    assert cli("config", "unset", "triggers").out == "triggers = combined (default)\n"
    assert cli("config", "set", "triggers", "loud").code == 2
    assert "triggers=combined" in (home / "hook.conf").read_text()


def test_worker_drain_stores_what_waits(cli, home, project):
    """By hand, at once; status then counts it as stored."""
    prompt(home, text="why does it fail")

    done = cli("worker", "drain", "--json")

    assert done.code == 0
    assert done.json["waiting"] == 0
    assert cli("status", "--json").json["stored"] == 1
    assert "HYPATIA_MEM_INTERNAL" not in os.environ


def test_worker_drain_says_when_the_store_cannot_be_seen(cli, home, project):
    """It does not count nothing for everything: whoever reads "0 stored" fears for the memory."""
    from hypatia_mem.store.connection import open_store

    prompt(home, text="why does it fail")
    cli("worker", "drain")
    with open_store(home, write=True) as store:
        store.run("INSERT INTO migration VALUES ('m999_future', now()::TIMESTAMP)")

    done = cli("worker", "drain")

    assert done.code == 1
    assert "0 messages stored" not in done.out
    assert "cannot be seen: the store was written by a newer hypatia-mem" in done.out
    assert cli("worker", "drain", "--json").json["waiting"] is None


def test_doctor_tells_of_a_key_that_is_lost_and_brings_it_back_from_a_backup(cli, home):
    """Nobody notices else: what was forgotten under it can be asked by nobody."""

    def told() -> tuple[str, str]:
        one = checks(cli)[1]["keys"]
        return one["state"], one["says"] + one["remedy"]

    cli("remember", "the staging port is 4712")
    assert told()[0] == "ok"  # nothing is forgotten
    cli("forget", "staging port")
    assert told()[0] == "ok"
    cli("backup", "create")
    kept = home / "elsewhere"
    (home / "backups").rename(kept)
    (home / "key").unlink()
    shutil.rmtree(home / "keys")
    state, says = told()
    assert (state, "is lost, under which 3 digests" in says) == ("problem", True)
    assert "tombstone lift --lost" in says

    kept.rename(home / "backups")
    assert "A backup holds it." in told()[1]
    cli("doctor", "--fix")
    assert told() == ("ok", "everything that was forgotten can be asked")
    assert "forgotten before" in cli("remember", "The staging port is 4712!").err
    assert cli("remember", "something else").out.startswith("[hypatia-memory] Stored")


def test_status_tells_how_long_it_takes_until_what_is_said_can_be_read(cli, home):
    """Of what was waited for: neither what was said before this memory, nor an import."""
    assert cli("status", "--json").json["lag"] == {}
    assert "readable:   as soon as the first turn is stored" in cli("status").out
    with open_store(home, write=True) as store:
        born = datetime.fromtimestamp(float(store.meta("born")), UTC).replace(tzinfo=None)
    doors = [(Channel.TRANSCRIPT, [2, 2, 2, 9]), (Channel.IMPORT, [9000])]
    for number, (channel, lags) in enumerate(doors):
        for turn, lag in enumerate(lags):
            now = born + timedelta(seconds=100 + lag)
            message = Message(
                "s-1", f"u{number}-{turn}", "user", "hi", now - timedelta(seconds=lag)
            )
            before = Message("s-1", f"b{number}-{turn}", "user", "old", born - timedelta(days=9))
            with (
                open_store(home, write=True) as store,
                store.transaction(Author(channel), now=now) as txn,
            ):
                txn.put_session(Session("s-1", project="app"))
                txn.put_messages("s-1", [message, before], "app")
    found = cli("status", "--json").json["lag"]
    assert (found["turns"], found["p50"]) == (4, 2.0)
    assert 8 < found["p99"] <= 9
    assert "2 s after it was said, 99 of 100 within" in cli("status").out


def test_worker_drain_says_what_it_logged_and_what_came_of_it(cli, home, project):
    """The skill's line, one for each session; a second drain has nothing to say."""
    cli("config", "set", "cascade_max_tokens", "20")
    cli("config", "set", "cascade_keep_last", "0")
    prompt(home, text="why does the retry queue lose jobs when the broker restarts")

    done = cli("worker", "drain")

    assert done.out.splitlines() == [
        "[hypatia-memory] Logged msg-s-1-1. Cascade: +1 summary 1 (token threshold).",
        "1 messages stored, 0 records waiting.",
    ]
    assert cli("worker", "drain", "--json").json["logged"] == []
    prompt(home, text="and now", session="s-2")
    assert cli("worker", "drain").out.splitlines()[0] == "[hypatia-memory] Logged msg-s-2-1."

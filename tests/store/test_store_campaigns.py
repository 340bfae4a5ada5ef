"""Slow: many processes at once, writers killed at random, a disk that fills up."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem.errors import StoreError
from hypatia_mem.model import Author, Channel
from hypatia_mem.store.connection import open_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).parents[2]
START = """
import sys, time
sys.path.insert(0, sys.argv[2])
from datetime import datetime
from pathlib import Path
from hypatia_mem.model import Author, Channel, Message
from hypatia_mem.store.connection import open_store
home, me, rounds = Path(sys.argv[1]), sys.argv[3], int(sys.argv[4])
now = datetime(2026, 11, 30)
"""
WRITER = (
    START
    + """
for number in range(rounds):
    said = [Message(me, f"{me}-{number}-{n}", "user", "x" * 200, now) for n in range(20)]
    with open_store(home, write=True, deadline=120) as store:
        with store.transaction(Author(Channel.HOOK), now=now) as txn:
            turns = txn.put_messages(me, said, "app")
            txn.set_cursor(me, number + 1)
        print(number, turns[-1], flush=True)
"""
)
READER = (
    START
    + """
for number in range(rounds):
    with open_store(home, write=False, deadline=120) as store:
        for session in store.run("SELECT DISTINCT session_id AS id FROM message"):
            turns = [one.turn for one in store.messages(session["id"], limit=10_000)]
            assert turns == list(range(1, len(turns) + 1))
            assert len(turns) == 20 * store.cursors()[session["id"]], "half a transaction"
    time.sleep(0.02)
"""
)


CHANGER = (
    START
    + """
from hypatia_mem.model import Entry
with open_store(home, write=True, deadline=120) as store:
    for number in range(rounds):
        one = f"{me}-{number}"
        with store.transaction(Author(Channel.HOOK), now=now) as txn:
            said = [Message(one, f"hook:{one}-{n}", "user", "short", now) for n in range(1, 9)]
            txn.put_messages(one, said, "app")
            txn.put_entry(Entry("gone", "x" * number, scopes=("app",)))
            txn.put_entry(Entry("kept", f"{number}", kind="rule", scopes=("app",)), replace=True)
            txn.set_cursor("k", 2 * number + 1)
        with store.transaction(Author(Channel.HOOK), now=now) as txn:
            txn.amend_messages(one, {n: {"uuid": f"{one}-{n}"} for n in range(1, 9)})
            txn.amend_messages(one, {n: {"text": f"grown {n}"} for n in range(1, 5)})
            txn.put_summary(one, "All of it.", "title", "app")
            txn.delete_entry("gone")
            txn.set_cursor("k", 2 * number + 2)
        print(number, flush=True)
"""
)


def start(code, home, name, rounds):
    command = [sys.executable, "-c", code, str(home), str(REPOSITORY), name, str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed(process):
    """Kill it; what it had still written to both its pipes.

    ``communicate`` would read past what ``readline`` has taken from the pipe ahead of its line.
    """
    process.kill()
    with process:
        return process.stdout.read(), process.stderr.read()


def test_eight_processes_lose_nothing(home):
    with open_store(home, write=True):
        pass
    writers = [start(WRITER, home, f"w{n}", 15) for n in range(4)]
    readers = [start(READER, home, f"r{n}", 15) for n in range(4)]
    for one in [*writers, *readers]:
        _, said = one.communicate(timeout=600)
        assert one.returncode == 0, said
    with open_store(home, write=False) as store:
        assert store.counts()["messages"] == 4 * 15 * 20
        assert store.cursors() == {f"w{n}": 15 for n in range(4)}
        assert store.verify_ledger() is None


def test_writers_killed_at_random_lose_nothing_they_acknowledged(home):
    chance = random.Random(2)
    for trial in range(60):
        name = f"k{trial}"
        writer = start(WRITER, home, name, 1000)
        acknowledged = [writer.stdout.readline() for _ in range(chance.randint(1, 3))]
        time.sleep(chance.random() * 0.1)
        rest, said = killed(writer)
        lines = "".join(acknowledged) + rest
        assert acknowledged[-1], said
        done = int(lines.rstrip("\n").splitlines()[-1].split()[0]) + 1
        with open_store(home, write=trial % 2 == 0) as store:
            turns = [one.turn for one in store.messages(name, limit=100_000)]
            assert len(turns) in (20 * done, 20 * (done + 1))
            assert turns == list(range(1, len(turns) + 1))
            assert store.cursors()[name] * 20 == len(turns)
            assert store.verify_ledger() is None


def test_changes_killed_at_random_are_whole_or_not_there(home):
    chance = random.Random(5)
    for trial in range(50):
        name = f"c{trial}"
        writer = start(CHANGER, home, name, 10_000)
        acknowledged = [writer.stdout.readline() for _ in range(chance.randint(1, 12))]
        time.sleep(chance.random() * 0.05)
        rest, said = killed(writer)
        assert acknowledged[-1], said
        done = int(("".join(acknowledged) + rest).rstrip("\n").splitlines()[-1]) + 1
        with open_store(home, write=trial % 2 == 0) as store:
            steps = store.cursors()["k"]
            assert steps >= 2 * done
            for number in range((steps + 1) // 2):
                said = store.messages(f"{name}-{number}")
                grown = number < steps // 2
                first = f"{name}-{number}-1" if grown else f"hook:{name}-{number}-1"
                assert [one.turn for one in said] == list(range(1, 9))
                assert (said[0].uuid, said[0].text) == (first, "grown 1" if grown else "short")
                assert store.known_uuids([first]) == {first: (f"{name}-{number}", 1)}
                links = store.statements_of(f"session-{name}-{number}")
                assert len(links) == (8 if grown else 0)
            assert (store.entry("gone") is not None) is (steps % 2 == 1)
            assert store.entry("kept").content == f"{(steps - 1) // 2}"
            assert store.verify_ledger() is None
        if steps % 2:
            with (
                open_store(home, write=True) as store,
                store.transaction(Author(Channel.HOOK), now=datetime(2026, 11, 30)) as txn,
            ):
                txn.delete_entry("gone")


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk: needs root on Linux"
)
def test_a_full_disk_is_a_sentence_and_loses_nothing(kit, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        home, stored = disk / "home", 0
        chance = random.Random(3)
        refused = None
        for number in range(200):
            try:
                with (
                    open_store(home, write=True) as store,
                    store.transaction(kit.person, now=kit.now) as txn,
                ):
                    said = [kit.message(number, f"abc {chance.randbytes(10_000).hex()}", uuid=f"{number}-{n}")
                            for n in range(5)]  # fmt: skip
                    txn.put_messages("s-1", said, "app")
                stored = number + 1
            except StoreError as error:
                refused = error
                break
        assert refused is not None
        assert "no space" in str(refused)
        assert "abc" not in str(refused)
        subprocess.run(["mount", "-o", "remount,size=60m", str(disk)], check=True)
        with open_store(home, write=True) as store:
            kept = store.counts()["messages"]
            assert kept in (5 * stored, 5 * (stored + 1))
            assert store.verify_ledger() is None
            with store.transaction(kit.person, now=kit.now) as txn:
                again = [kit.message(999, "after", uuid="after")]
                assert txn.put_messages("s-1", again, "app") == [kept + 1]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)

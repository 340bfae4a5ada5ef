"""What the store's tests share: authors, a time, and shorthands for opening."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime

import pytest

from hypatia_mem.model import Author, Channel, Entry, Message
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12, 0, 0)
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
WORKER = Author(Channel.WORKER)


class Kit:
    """The memory's home with one-line ways to change it."""

    now = NOW
    person = PERSON
    agent = AGENT
    worker = WORKER

    def __init__(self, home):
        self.home = home

    def open(self, **how):
        return open_store(self.home, write=False, **how)

    @contextmanager
    def change(self, author=PERSON):
        with (
            open_store(self.home, write=True) as store,
            store.transaction(author, now=NOW) as txn,
        ):
            yield txn

    def message(self, number, text="hello", session="s-1", role="user", **more):
        uuid = more.pop("uuid", f"{session}-u{number}")
        at = more.pop("at", NOW.replace(minute=number % 60))
        return Message(session, uuid, role, text, at, **more)

    def rule(self, text, name=None, *, kind="rule", scope="app", **more):
        slug = "-".join(text.lower().split())
        return Entry(name or f"rule:{slug}", text, kind=kind, scopes=(scope,), **more)


@pytest.fixture
def kit(home):
    return Kit(home)

"""A session of twelve messages, one word in each that is in no other."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12)
PERSON = Author(Channel.CLI_PERSON, "ada")
AGENT = Author(Channel.CLI_AGENT, "claude")
HEARD = Author(Channel.TRANSCRIPT)
WORDS = [
    "amber",
    "birch",
    "cedar",
    "daisy",
    "elder",
    "fennel",
    "ginger",
    "hazel",
    "ivy",
    "juniper",
    "kelp",
    "larch",
    "maple",
    "nettle",
    "olive",
]


def said(session, words, *, first=1, begin=NOW - timedelta(days=2), **more):
    """Return messages by turns of the person and the assistant, each with one of the words."""
    return [
        Message(
            session,
            f"{session}-u{number}",
            "assistant" if number % 2 == 0 else "user",
            f"we talk of {word} today",
            begin + timedelta(minutes=number),
            **more,
        )
        for number, word in enumerate(words, first)
    ]


def talk(home, session="s-1", count=12, *, words=WORDS, scope="app", **more):
    """Store a session as its transcript tells it."""
    with open_store(home, write=True) as store, store.transaction(HEARD, now=NOW) as txn:
        at = NOW - timedelta(days=2)
        txn.put_session(Session(session, project=scope, started_at=at, updated_at=at))
        txn.put_messages(session, said(session, words[:count], **more), scope)


def go_on(home, session, *words, scope="app", begin=NOW - timedelta(days=1)):
    """Let a session say more; return the names of what it said."""
    with open_store(home, write=True) as store, store.transaction(HEARD, now=NOW) as txn:
        first = len(store.known_messages(session)) + 1
        turns = txn.put_messages(session, said(session, words, first=first, begin=begin), scope)
    return [f"msg-{session}-{turn}" for turn in turns]


def rows(home, *tables):
    """Return all of some tables, so that two states can be compared."""
    with open_store(home, write=False) as store:
        return {
            table: store.run(f"SELECT * FROM {table} ORDER BY ALL")
            for table in tables or ("entry", "statement", "message", "session", "version")
        }

"""Sessions to tell of, and what the memory tells of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypatia_mem.config import Settings
from hypatia_mem.memory import compose, handoff
from hypatia_mem.memory.episodes import running
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store import episodes as stored
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 10)
PERSON = Author(Channel.CLI_PERSON, "person")
SETTINGS = Settings()
DECIDED = "We decided to keep the retry queue in Postgres, because SQLite has one writer."
LEFT_OPEN = "The migration of the retry queue is not yet done."


def talk(count, start=1, seconds=60):
    """Yield so many exchanges, as (role, text, seconds after the start)."""
    for number in range(start, start + count):
        at = (number - start) * seconds
        yield "user", f"please look at module number {number} of the parser", at
        yield (
            "assistant",
            f"Module {number} reads src/part_{number}.py and returns its rows.",
            at + 1,
        )


def say(home, said, session="s1", scope="app", at=NOW, ended=None):
    """Store what was said, and when it ended, if it has."""
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=at) as txn,
    ):
        start = len(store.messages(session))
        txn.put_session(Session(session, project=scope, updated_at=at, ended_at=ended))
        messages = [
            Message(session, f"{session}-{start + n}", role, text, at + timedelta(seconds=after))
            for n, (role, text, after) in enumerate(said)
        ]
        txn.put_messages(session, messages, scope)


def run(home, at, settings=SETTINGS, **options):
    return running.run(home, settings, now=at, **options)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


def read(home, what=stored.episodes, scopes=("app",), **options):
    with open_store(home, write=False) as store:
        return what(store, list(scopes), **options)


def threads(home, at, **options):
    return [one.content for one in read(home, stored.threads, at=at, **options)]


def sources(home, name):
    with open_store(home, write=False) as store:
        return stored.sources_of(store, [name])[name]


def todo(home, at=NOW, session="s1"):
    """Say in a session that is over what was decided and what is not done."""
    said = (
        ("user", "where do we keep the retry queue?", 0),
        ("assistant", f"{DECIDED} {LEFT_OPEN}", 9),
    )
    say(home, said, session, at=at, ended=at + timedelta(minutes=1))
    return at + timedelta(minutes=2)


def brief(home):
    with open_store(home, write=False) as store:
        return compose.brief_text(store, "app")


def card(home, at, session="", project="app"):
    return handoff.card(home, project=project, session_id=session, now=at)

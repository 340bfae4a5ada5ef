"""What the cascade's tests share: a store with messages, and questions about what was made."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypatia_mem.config import Settings
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12)
WORKER = Author(Channel.WORKER)
PERSON = Author(Channel.CLI_PERSON)
TOPICS = (
    "the retry queue loses jobs", "postgres pools time out", "the parser fails on tabs",
    "deploys need two approvals", "the cache grows without end", "tests hang on windows",
    "the login page is slow", "invoices are rounded wrongly",
)  # fmt: skip


def settings(**changes):
    """Small thresholds, so that few words make a tier: level 1 at 90 tokens."""
    small = Settings(cascade_max_tokens=100, cascade_keep_last=0, summary_words=60)
    return replace(small, **changes)


def fill(home, texts, *, session="s-1", scope="app", start=0):
    """Store texts as the turns of a session, prompts and answers in turn, a second apart."""
    with open_store(home, write=True) as store, store.transaction(WORKER, now=NOW) as txn:
        if store.session(session) is None:
            txn.put_session(Session(session, project=scope))
        messages = [
            Message(
                session,
                f"{session}-{start + n}",
                "assistant" if n % 2 else "user",
                text,
                NOW - timedelta(days=1) + timedelta(seconds=start + n),
            )
            for n, text in enumerate(texts)
        ]
        txn.put_messages(session, messages, scope)


def talk(count, *, length=300):
    """Texts that differ; with their headings each has some 90 tokens."""
    texts = []
    for n in range(count):
        text = f"Report {n}: {TOPICS[n % len(TOPICS)]} in module_{n}.py after {n} runs. "
        texts.append((text + "It was seen before and nobody knew why. " * 9)[:length])
    return texts


def run(home, config=None, **how):
    """Run a pass."""
    return cascade.run(home, config or settings(), now=how.pop("now", NOW), **how)


def links(home):
    """Return (summary, item) of every link."""
    with open_store(home, write=False) as store:
        return _links(store)


def _links(store):
    found = store.run("SELECT subject, object FROM statement WHERE predicate = 'summary'")
    return [(row["subject"], row["object"]) for row in found]


def summaries(home, level=None):
    """Return the summaries there are, of one level or of all."""
    with open_store(home, write=False) as store:
        rows = store.run("SELECT name FROM entry WHERE kind = 'summary' ORDER BY created_at, name")
        found = {one.name: one for one in store.entries([row["name"] for row in rows])}
    entries = [found[row["name"]] for row in rows]
    return [one for one in entries if level is None or f"summary {level}" in one.tags]


def counts(home, highest):
    """Return how many summaries there are of each level, up to the highest asked for."""
    made = summaries(home)
    return [sum(f"summary {n}" in one.tags for one in made) for n in range(1, highest + 1)]


def assert_whole(home):
    """Nothing is summarised twice, every summary has links, every link two ends."""
    with open_store(home, write=False) as store:
        pairs = _links(store)
        rows = store.run("SELECT name FROM entry WHERE kind = 'summary'")
        there = len(store.entries({item for _, item in pairs}))
    items = [item for _, item in pairs]
    assert len(items) == len(set(items)), "an item is in two summaries"
    made = {row["name"] for row in rows}
    assert made == {subject for subject, _ in pairs}, "a summary without links, or the reverse"
    assert there == len(items), "a link to nothing"

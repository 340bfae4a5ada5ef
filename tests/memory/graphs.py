"""Fills a store with a graph, many statements with one write, for the tests of the graph."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hypatia_mem.model import Author, Channel, Entry, Message, Statement
from hypatia_mem.store import rows
from hypatia_mem.store.connection import open_store

NOW = datetime(2026, 11, 30, 12, 0, 0)
PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
HOSTILE = (
    'say "quoted" and \'single\'', "line\nbreak", "tab\tand\rreturn", "a,b,c", "back\\slash \\n",
    "</script><img src=x onerror=alert(1)>", "<b>bold</b> &amp; &#60;", "\u2028line\u2029sep",
    "\u202eright to left", "שלום עולם", "مرحبا", "知识图谱", "👍🏽 family 👨‍👩‍👧", "esc\x1b[2Jape", "c1\x9bcsi",
    "é", "e\u0301", "\ufffe", "'; DROP TABLE statement; --", "n0", "end", "--flag", "@SCRIPT@ @DATA@",
    "#35; #quot;", "|pipe|", "`tick` [x](y)", " spaced  out ", "x" * 300, "${injected}", "__proto__",
)  # fmt: skip


def fill(
    home: Path,
    triples: Iterable[Sequence[str]] = (),
    entries: Iterable[Entry | str] = (),
    *,
    scopes: tuple[str, ...] = ("app",),
    author: Author = PERSON,
) -> None:
    """Store entries (a text is a plain one) and triples; the order is the order of time."""
    made = [
        rows.statement_row(
            Statement(*triple, scopes=scopes, created_at=NOW + timedelta(seconds=place)),
            author,
            NOW,
        )
        for place, triple in enumerate(dict.fromkeys(tuple(one) for one in triples))
    ]
    with open_store(home, write=True) as store, store.transaction(author, now=NOW) as txn:
        for entry in entries:
            one = Entry(entry, f"about {entry}", scopes=scopes) if isinstance(entry, str) else entry
            txn.put_entry(one, replace=True)
        txn.rewrite_statements(made, [], [], reason="")


def talk(home: Path, session: str = "s-1", turns: int = 3, *, linked: bool = True) -> None:
    """Store a session with messages; ``linked`` gives it a summary, and so its entry."""
    messages = [
        Message(session, f"{session}-{n}", "user", f"turn {n}", NOW + timedelta(seconds=n))
        for n in range(1, turns + 1)
    ]
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_messages(session, messages, "app")
        if linked:
            txn.put_summary(session, "what it was about", "title", "app")


def random_triples(seed: int, names: int, count: int, predicates: int = 3) -> list[tuple[str, ...]]:
    """Return random triples among ``names`` names, loops and parallel ones among them."""
    chance = random.Random(seed)
    return list(
        dict.fromkeys(
            (
                f"n{chance.randrange(names)}",
                f"p{chance.randrange(predicates)}",
                f"n{chance.randrange(names)}",
            )
            for _ in range(count)
        )
    )

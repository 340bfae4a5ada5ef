"""How the search index follows the store: what changed since its sequence, as documents.

A change or two go in with the lease that is held anyway. What is more goes in by slices, and the
store is free in between; the engine merges its files when nobody waits for the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.model import GLOBAL_SCOPE
from hypatia_mem.store import bitemporal, hiding
from hypatia_mem.store.keys import load_key
from hypatia_mem.store.search import Document, IndexBusy, SearchIndex

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from hypatia_mem.model import Entry, Statement
    from hypatia_mem.store.connection import Store

__all__ = [
    "catch_up",
    "changed_documents",
    "collect",
    "known_documents",
    "sync_index",
    "sync_slice",
]

BATCH = 5_000
SLICE = 400  # names: what goes in while somebody may be waiting for the store
PAUSE_SECONDS = 0.03  # between slices: longer than a waiting writer sleeps between two looks
# Triples that only say what an entry is: whoever searches finds the entry itself.
_JOINTS = {("is_a", kind) for kind in ("rule", "taboo", "memory", "work-unit")}
_LINKS = ("belongTo", "derivedFrom")
_Aliases: TypeAlias = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
_NO_NAMES: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def sync_index(store: Store, index: SearchIndex) -> int:
    """Bring the index to the store's ledger sequence; returns how many names it looked at.

    Raises IndexUnavailable when another process is writing it: that one brings it up to date.
    """
    target = store.ledger_seq()
    try:
        seq = index.seq()
        if seq > target:  # the store was restored from before: begin again
            raise IndexUnavailable("the search index knows more than the store")
        return _follow(store, index, seq, target)
    except IndexBusy:
        raise
    except IndexUnavailable:  # missing, unreadable or of another format: all of it, from nothing
        index.clear()
        return _follow(store, index, 0, target)


def sync_slice(store: Store, index: SearchIndex, later: ExitStack) -> int:
    """Bring the index a slice nearer to the store; return how far it is behind then.

    ``later`` is to be left when the store has been: the engine's merging of files is waited for
    there. Raises IndexUnavailable as ``sync_index`` does.
    """
    target = store.ledger_seq()
    try:
        seq = index.seq()
        if seq <= target:
            return target - (seq if seq == target else _step(store, index, seq, target, later))
    except IndexBusy:
        raise
    except IndexUnavailable:
        later.close()
    index.clear()
    return target - _step(store, index, 0, target, later)


def catch_up(home: Path, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Bring the index to what the store says now, slice by slice; False when ``stop`` ended it.

    Raises IndexUnavailable as ``sync_index`` does, and what opening the store raises.
    """
    from hypatia_mem.store.connection import open_store

    index = SearchIndex(home)
    behind = 1
    while behind:
        with ExitStack() as later, open_store(home, write=False) as store:
            behind = sync_slice(store, index, later)
        if behind and stop():
            return False
        time.sleep(PAUSE_SECONDS if behind else 0)
    return True


def _follow(store: Store, index: SearchIndex, seq: int, target: int) -> int:
    looked = 0
    while seq < target or (not looked and not _has_seq(index)):
        changed, last = _changed(store, seq, target, BATCH)
        _put(store, index, changed, last)
        looked += len(changed)
        seq = last
    return looked


def _step(store: Store, index: SearchIndex, seq: int, target: int, later: ExitStack) -> int:
    changed, last = _changed(store, seq, target, SLICE)
    _put(store, index, changed, last, later)
    return last


def _changed(
    store: Store, seq: int, target: int, limit: int
) -> tuple[list[tuple[int, str, str]], int]:
    """Return what changed after ``seq``, and the sequence that the index has come to with it."""
    changed = store.changed_since(seq, limit)
    return changed, changed[-1][0] if len(changed) == limit else target


def _put(
    store: Store,
    index: SearchIndex,
    changed: Sequence[tuple[int, str, str]],
    seq: int,
    later: ExitStack | None = None,
) -> None:
    hiding.write(store, index.folder, load_key(store.home))  # before anybody finds the rest
    documents, removed = collect(store, changed)
    gone = [name for _, name, kind in changed if kind == "gone"]
    index.update(documents, removed, seq, gone=gone, later=later)


def collect(
    store: Store, changed: Sequence[tuple[int, str, str]]
) -> tuple[list[Document], list[str]]:
    """Return the documents of changed names that are live, and the names to take out.

    A statement is found by the other names of what stands at its ends, so with an entry that has
    or had such names its statements are looked at too.
    """
    names = {name for _, name, kind in changed if kind == "knowledge"}
    triples = {name for _, name, kind in changed if kind == "statement"}
    entries = store.live_entries(names)
    named = [entry.name for entry in entries if entry.kind not in ("message", "session")]
    if named:
        triples.update(store.triples_of(named))
    documents = [_of_entry(entry) for entry in entries]
    statements = _told(store.live_statements(triples))
    aliases = _aliases(store, {end for _, one in statements for end in (one.subject, one.object)})
    documents += [_of_statement(key, statement, aliases) for key, statement in statements]
    live = {document.name for document in documents}
    return documents, sorted((names | triples) - live)


def known_documents(
    store: Store,
    known_at: datetime,
    *,
    names: Sequence[str],
    triples: Sequence[str],
    scopes: Sequence[str] | None,
) -> list[Document]:
    """Return the documents of what was known at a time, as far as it may answer a search.

    ``names`` and ``triples`` are what the index of today proposes; to them comes all that changed
    since, in the state it had then.
    """
    state = bitemporal.known_state(store, known_at, names=names, triples=triples, scopes=scopes)
    statements = _told(state.statements)
    ends = sorted({end for _, one in statements for end in (one.subject, one.object)})
    aliases = bitemporal.known_aliases(store, known_at, ends)
    documents = [_of_entry(entry) for entry in state.entries]
    return documents + [_of_statement(key, statement, aliases) for key, statement in statements]


def changed_documents(
    store: Store, known_at: datetime, scopes: Sequence[str] | None
) -> tuple[list[Document], set[str]]:
    """Return the documents of what changed, as it was known at a time, and all of these names.

    Of every other name the search index of today holds the same text that was known then.
    """
    documents = known_documents(store, known_at, names=(), triples=(), scopes=scopes)
    names = bitemporal.changed_names(store)
    return documents, names | {document.name for document in documents}


def _told(found: Iterable[tuple[str, Statement]]) -> list[tuple[str, Statement]]:
    """Return the statements that a search finds: not those that only say what an entry is."""
    return [
        (key, statement)
        for key, statement in found
        if (statement.predicate, statement.object) not in _JOINTS
        and statement.predicate not in _LINKS
    ]


def _of_entry(entry: Entry) -> Document:
    role, text = "", entry.content
    if entry.kind == "message":
        head, _, said = entry.content.partition("\n## Content\n")
        text = said or entry.content
        role = head.partition("## Role\n")[2].partition("\n")[0].strip() if said else ""
    else:
        text = "\n".join(part for part in (entry.name, text, "  ".join(entry.synonyms)) if part)
    return Document(
        name=entry.name,
        catalog="knowledge",
        kind=entry.kind,
        scopes=entry.scopes,
        text=text,
        session=entry.session_id,
        turn=entry.turn,
        role=role,
        tags=entry.tags,
        at=entry.created_at,
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
    )


def _of_statement(key: str, statement: Statement, aliases: _Aliases) -> Document:
    own = [name for names in _names(statement.synonyms) for name in names]
    more = [
        *own,
        *(
            word
            for end in (statement.subject, statement.object)
            for word in _names_of(end, statement, aliases)
        ),
    ]
    lines = (
        f"{statement.subject} {statement.predicate} {statement.object}",
        statement.content,
        "  ".join(dict.fromkeys(more)),
    )
    return Document(
        name=key,
        catalog="statement",
        kind="statement",
        scopes=statement.scopes,
        text="\n".join(line for line in lines if line),
        session=statement.session_id,
        at=statement.created_at,
        valid_from=statement.valid_from,
        valid_to=statement.valid_to,
    )


def _names_of(end: str, statement: Statement, aliases: _Aliases) -> tuple[str, ...]:
    """Return the other names of an end, if whoever may see the statement may see them."""
    names, scopes = aliases.get(end, _NO_NAMES)
    return names if GLOBAL_SCOPE in scopes or set(statement.scopes) <= set(scopes) else ()


def _names(synonyms: Mapping[str, object] | None) -> Iterator[list[str]]:
    for names in (synonyms or {}).values():
        if isinstance(names, str):
            yield [names]
        elif isinstance(names, list):
            yield [name for name in names if isinstance(name, str)]


def _aliases(store: Store, names: Iterable[str]) -> _Aliases:
    """Return the other names of those of these entries that have any, and who may see them."""
    found = store.run(
        """
        SELECT name, synonyms, scopes FROM live_entry
        WHERE len(synonyms) > 0 AND name IN (SELECT unnest(?::VARCHAR[]))
        """,
        [sorted(names)],
    )
    return {row["name"]: (tuple(row["synonyms"]), tuple(row["scopes"])) for row in found}


def _has_seq(index: SearchIndex) -> bool:
    try:
        index.seq()
    except IndexUnavailable:
        return False
    return True

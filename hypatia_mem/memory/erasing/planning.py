"""What an erasing would take away: found and named before anything is done.

A name, or a session's id, means that. Words mean everything that holds them, of whatever kind, as
``forgetting`` finds it; what a running session keeps is named and left. With what is meant goes
what says the same: messages, statements, titles of sessions. What is derived is made anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory.erasing import client
from hypatia_mem.memory.erasing.pieces import Pieces, pieces_of
from hypatia_mem.model import GLOBAL_SCOPE, Author, Entry

if TYPE_CHECKING:
    from hypatia_mem.memory.forgetting import Found
    from hypatia_mem.store.erasing import Said
    from hypatia_mem.store.opened import Store

__all__ = ["Plan", "plan_again", "plan_erase"]

_CONTAINED = 16  # characters: a shorter value is looked for only where it is known to come from
_EVIDENCE = frozenset({"message", "session", "summary", "episode", "thread"})
_DERIVED = frozenset({"summary", "episode", "thread"})
_JOINTS = frozenset({"summary", "derivedFrom", "belongTo"})  # what they hold are numbers
_MEMORIES = frozenset({"rule", "taboo", "memory"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What an erasing would take away, by name, and what it would leave.

    ``evidence`` are the messages and summaries of sessions that say what the ``names`` say;
    ``summaries`` are made again from what is left. ``others`` say the same and stay unless they are
    named too; ``elsewhere`` counts those of other projects. ``transcripts`` are the client's own
    files that hold it. ``found`` is all that holds the words, where words were asked for and not
    one thing; ``busy`` (name, session) is what running sessions keep.
    """

    asked: str
    names: tuple[str, ...]
    evidence: tuple[str, ...]
    summaries: tuple[str, ...]
    statements: tuple[str, ...]
    titles: tuple[str, ...]
    others: tuple[str, ...]
    elsewhere: int
    backups: tuple[str, ...]
    snapshots: int
    transcripts: tuple[client.Holding, ...]
    scopes: tuple[str, ...] | None
    everywhere: bool
    also: bool
    pieces: tuple[str, ...] = field(repr=False)
    values: tuple[str, ...] = field(repr=False)
    found: Found | None = field(default=None, repr=False)
    busy: tuple[tuple[str, str], ...] = ()
    scope: str = ""


def plan_erase(
    home: Path,
    asked: str,
    *,
    scope: str,
    ids: Sequence[str] = (),
    everywhere: bool = False,
    also: bool = False,
    author: Author | None = None,
    now: datetime | None = None,
) -> Plan:
    """Say what erasing ``asked`` would take away. Changes nothing.

    ``asked`` is the name of an entry, the id of a session, or words; ``ids`` are names. For an
    ``author`` words mean all that holds them, of whatever kind, but for what a session keeps that
    runs ``now``; without one they mean one memory. ``everywhere`` looks in every project; ``also``
    takes the other entries along that say the same. Raises NotFound, Conflict when words fit
    several.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        if author is not None and now is not None and not ids and _is_words(store, asked):
            words = _words(store, asked, scope, everywhere, author, now)
            if words is not None:
                return _planned(home, store, asked, (), words, everywhere=everywhere, also=also)
        names = _found(store, asked, ids, scope=scope, everywhere=everywhere)
        return _planned(home, store, asked, names, None, everywhere=everywhere, also=also)


def plan_again(home: Path, plan: Plan, *, author: Author, now: datetime) -> Plan:
    """Plan once more, now that everything said is in the store."""
    from hypatia_mem.store.connection import open_store

    how = {"everywhere": plan.everywhere, "also": plan.also}
    with open_store(home, write=False) as store:
        words = None
        if plan.found is not None:
            words = _words(store, plan.asked, plan.scope, plan.everywhere, author, now)
        there = [name for name in plan.names if _is_there(store, name)] if words is None else []
        fresh = _planned(home, store, plan.asked, there, words, **how)
    return replace(
        fresh,
        pieces=tuple(dict.fromkeys([*fresh.pieces, *plan.pieces])),
        values=tuple(dict.fromkeys([*fresh.values, *plan.values])),
    )


# --- what is meant --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """All that holds some words, and who asked for it, where and when."""

    found: Found
    scope: str
    author: Author
    now: datetime


def _is_words(store: Store, asked: str) -> bool:
    return bool(asked.strip()) and not _is_there(store, asked) and store.session(asked) is None


def _words(
    store: Store, asked: str, scope: str, everywhere: bool, author: Author, now: datetime
) -> _Words | None:
    """Return all that holds these words; None when that is one memory, and nobody keeps any of it.

    Raises NotFound when all of it belongs to running sessions.
    """
    from hypatia_mem.memory import curate, forgetting

    plan = curate.plan_forget(curate.forgettable(store, scope), asked)
    within = None if everywhere else [scope, GLOBAL_SCOPE]
    found = forgetting.find_with(store, plan, within, author=author, now=now)
    if not found.things and found.busy:
        name, session = found.busy[0]
        raise NotFound(
            f"only a session that is running holds these words: {name} of {session}",
            hint="Erase them when it has ended.",
        )
    if not found.things and not plan.matches:
        raise NotFound(
            "nothing remembered here matches these words", hint="See: hypatia-mem search WORDS"
        )
    more = {one.name for one in found.things} - set(plan.chosen)
    return _Words(found, scope, author, now) if more or (found.things and found.busy) else None


def _found(
    store: Store, asked: str, ids: Sequence[str], *, scope: str, everywhere: bool
) -> list[str]:
    """Return the names of the entries that are meant. Raises NotFound, Conflict, UsageError."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import erasing

    if ids:
        return [_named(store, name, scope, everywhere) for name in ids]
    if not asked.strip():
        raise UsageError("say what to erase: a name, a session's id, or some words")
    if _is_there(store, asked):
        return [_named(store, asked, scope, everywhere)]
    session = store.session(asked)
    if session is not None:
        if not everywhere and session.project not in (scope, GLOBAL_SCOPE):
            raise NotFound(
                f"session {asked!r} belongs to another project",
                hint="Run this in its project's folder, or with --everywhere.",
            )
        return erasing.names_of_session(store, asked)
    plan = curate.plan_forget(curate.forgettable(store, scope), asked)
    if plan.chosen:
        return list(plan.chosen)
    if plan.matches:
        names = ", ".join(match.name for match in plan.matches[:5])
        raise Conflict(f"these words may mean several: {names}", hint="Name one of them with --id.")
    raise NotFound(
        "no rule, taboo or memory here matches these words",
        hint="What else holds them goes by its name, with --id: hypatia-mem forget WORDS --dry-run"
        " lists it.",
    )


def _is_there(store: Store, name: str) -> bool:
    from hypatia_mem.store import history

    return store.entry(name) is not None or history.last_entry(store, name) is not None


def _named(store: Store, name: str, scope: str, everywhere: bool) -> str:
    from hypatia_mem.store import history

    entry = store.entry(name) or history.last_entry(store, name)
    if entry is None:
        raise NotFound(
            f"nothing called {name[:80]!r} is kept here", hint="See: hypatia-mem search WORDS"
        )
    if not everywhere and entry.scopes and not {scope, GLOBAL_SCOPE} & set(entry.scopes):
        raise NotFound(
            f"{name!r} belongs to another project",
            hint="Run this in its project's folder, or with --everywhere.",
        )
    return entry.name


def _planned(
    home: Path,
    store: Store,
    asked: str,
    names: Sequence[str],
    words: _Words | None,
    *,
    everywhere: bool,
    also: bool,
) -> Plan:
    from hypatia_mem.memory import backup
    from hypatia_mem.store import erasing, snapshot
    from hypatia_mem.store.tombstones import canonical

    sorts = {} if words is None else words.found.kinds
    triples = [one.name for one in sorts.get("statement", ())]
    titles = [one.name for one in sorts.get("title", ())]
    derived = {one.name: kind for kind in _DERIVED for one in sorts.get(kind, ())}
    no_entry = {*triples, *titles, *derived}
    if words is not None:
        names = [one.name for one in words.found.things if one.name not in no_entry]
        within = None if everywhere else tuple(dict.fromkeys((words.scope, GLOBAL_SCOPE)))
    else:
        every = [entry for name in names if (entry := _state(store, name)) is not None]
        within = _within(every, everywhere)
        titles = [asked] if _is_session(store, asked) else []
    texts = [*_texts(store, names), *_called(store, titles, words), *_stated(store, words, triples)]
    values = tuple(dict.fromkeys(v for text in texts if (v := canonical(text))))
    long = [value for value in values if len(value) >= _CONTAINED]
    saying = _saying(store, names, long, values, within)
    busy = _kept_busy(store, saying, words)
    for name in (*names, *busy):
        saying.pop(name, None)
    summed = [*dict.fromkeys(erasing.summaries_on(store, [*names, *saying]))]
    kinds = derived | {name: one.kind for name, one in saying.items()}
    summed += _told(store, kinds, [*names, *saying])
    loose = [name for name in derived if name not in summed]
    summed += [one for one in erasing.summaries_on(store, loose) if one not in summed]
    loose = [name for name in loose if name not in summed]
    names = [*names, *loose]
    saying = {name: one for name, one in saying.items() if name not in derived}
    evidence = [n for n, one in saying.items() if one.kind in _EVIDENCE and n not in summed]
    others = [n for n, one in saying.items() if one.kind not in _EVIDENCE]
    pieces = _pieces(store, texts, loose, triples, words)
    others += [one for one in _kept(home, store, pieces, within) if one not in (*names, *others)]
    if also:
        names, others = [*names, *others], []
    outside = 0
    if within is not None:
        known = {*names, *saying, *busy, *derived}
        outside = sum(one.key not in known for one in erasing.said_entries(store, long, None))
    titles += [one.id for one in erasing.said_titles(store, long, within)]
    ends = [one.key for one in erasing.said_statements(store, long, names, within)]
    return Plan(
        asked=asked,
        names=tuple(names),
        evidence=tuple(sorted(evidence)),
        summaries=tuple(name for name in summed if store.entry(name) is not None),
        statements=tuple(dict.fromkeys([*triples, *ends])),
        titles=tuple(dict.fromkeys(titles)),
        others=tuple(others),
        elsewhere=outside,
        backups=tuple(one.id for one in backup.backups(home)),
        snapshots=len(snapshot.snapshots(home)),
        transcripts=tuple(client.holding(erasing.transcripts(store), pieces, os.environ)),
        scopes=within,
        everywhere=everywhere,
        also=also,
        pieces=pieces,
        values=values,
        found=None if words is None else words.found,
        busy=tuple(busy.items()),
        scope="" if words is None else words.scope,
    )


def _saying(
    store: Store,
    names: Sequence[str],
    long: Sequence[str],
    values: Sequence[str],
    within: Sequence[str] | None,
) -> dict[str, Said]:
    """Return, by name, the entries that say one of these values; these names may be among them."""
    from hypatia_mem.store import erasing

    saying = {one.key: one for one in erasing.said_entries(store, long, within)}
    origin = [one for one in erasing.writing_sources(store, names) if one not in names]
    for one in erasing.said_states(store, origin):
        if erasing.holds(one.texts, values):
            saying.setdefault(one.key, one)
    return saying


def _kept_busy(store: Store, saying: Mapping[str, Said], words: _Words | None) -> dict[str, str]:
    """Return what running sessions keep of what holds the words or says the same: name, session."""
    from hypatia_mem.memory import guard

    if words is None:
        return {}
    more = guard.held(store, list(saying), author=words.author, now=words.now)
    return dict([*words.found.busy, *more])


def _is_session(store: Store, asked: str) -> bool:
    return not _is_there(store, asked) and store.session(asked) is not None


def _called(store: Store, sessions: Sequence[str], words: _Words | None) -> list[str]:
    """Return what these sessions are called, and of words what they branched off for."""
    found = [one for name in sessions if (one := store.session(name)) is not None]
    reasons = [] if words is None else [one.fork_reason for one in found if one.fork_reason]
    return [*(one.title for one in found), *reasons]


def _stated(store: Store, words: _Words | None, triples: Sequence[str]) -> list[str]:
    """Return what the statements say that hold the words, beside their ends."""
    from hypatia_mem.memory import curate
    from hypatia_mem.store import holding

    if words is None or not triples:
        return []
    plain = sorted(curate.telling_words(words.found.query))
    found = holding.statements(store, plain, None)
    return [one.texts[1] for one in found if one.name in triples and one.texts[1].strip()]


def _pieces(
    store: Store,
    texts: Sequence[str],
    loose: Sequence[str],
    triples: Sequence[str],
    words: _Words | None,
) -> tuple[str, ...]:
    """Return what is looked for; first the stretches that hold the words, however much there is.

    Of what was derived only those count (``loose``): the rest of it is told by others too.
    """
    from hypatia_mem.memory import forgetting

    if words is None:
        return pieces_of(texts)
    told = [*texts, *(one.content for one in store.entries(loose))]
    first = pieces_of([*forgetting.lines(told, words.found.query), *triples])
    return tuple(dict.fromkeys([*first, *pieces_of(texts)]))


def _told(store: Store, kinds: Mapping[str, str], gone: Sequence[str]) -> list[str]:
    """Return the episodes that say it and go with a message that does: they are told anew."""
    from hypatia_mem.store import episodes

    told = [name for name, kind in kinds.items() if kind in episodes.MADE_ANEW]
    below = episodes.sources_of(store, told)
    return [name for name in told if not set(gone).isdisjoint(below.get(name, ()))]


def _state(store: Store, name: str) -> Entry | None:
    from hypatia_mem.store import history

    return store.entry(name) or history.last_entry(store, name)


def _kept(
    home: Path, store: Store, pieces: Sequence[str], within: Sequence[str] | None
) -> list[str]:
    """Return the names of the kept files that hold a piece."""
    from hypatia_mem.memory.sharing import archive

    looked = Pieces(pieces)
    names = [n for n in archive.file_names(home) if looked.in_file(archive.path_of(home, n))]
    return [
        entry.name
        for entry in store.entries(names)
        if within is None or set(within) & set(entry.scopes)
    ]


def _within(entries: Sequence[Entry], everywhere: bool) -> tuple[str, ...] | None:
    """Return the scopes to look in for the same words; None is everywhere."""
    scopes = {scope for entry in entries for scope in entry.scopes}
    if everywhere or GLOBAL_SCOPE in scopes or any(not entry.scopes for entry in entries):
        return None
    return tuple(sorted(scopes))


def _texts(store: Store, names: Sequence[str]) -> list[str]:
    """Return everything that these entries say or ever said, and those names that are words."""
    from hypatia_mem.store import erasing

    found: dict[str, None] = {}
    for state in erasing.said_states(store, names):
        for text in state.texts:
            found.setdefault(text.partition("\n## Content\n")[2] or text)
        wordy = state.kind not in _EVIDENCE and len(state.key) >= _CONTAINED
        if state.kind in _MEMORIES or wordy:
            found.setdefault(state.key)
    for statement in erasing.said_statements(store, (), names, None):
        if statement.kind not in _JOINTS and statement.texts[2]:
            found.setdefault(statement.texts[2])
    return [text for text in found if text.strip()]

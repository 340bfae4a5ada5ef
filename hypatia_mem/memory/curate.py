"""Remember, forget and every other write that a person or an agent asks for by name.

Each is one transaction through the store's gateway, followed by ``refresh``: the search index and
the briefs say the same as the store before the command ends. What is withdrawn leaves the index
*before* the store commits, so no reader ever finds what was forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import immediate
from hypatia_mem.errors import IndexUnavailable, NotFound, StoreBusy, UsageError, one_of
from hypatia_mem.memory import persons, typed
from hypatia_mem.memory.blast import Blast, Changed, reached
from hypatia_mem.model import GLOBAL_SCOPE, Author, Entry, Outcome, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "ForgetPlan",
    "Match",
    "along",
    "changing",
    "create_entry",
    "create_statement",
    "delete_entry",
    "delete_statement",
    "forget",
    "plan_forget",
    "refresh",
    "remember",
    "remember_in",
    "telling_words",
    "update_entry",
]

KINDS = ("rule", "taboo", "memory")
SORTS = ("preference", "procedure")  # of memories, each with a tag of its own
_LOG = logging.getLogger("hypatia_mem")
_FACTS = 500  # that are looked through for what says the same as something forgotten
# Words that say nothing about which memory is meant.
_EMPTY_WORDS = frozenset(
    {
        "the", "a", "an", "that", "this", "about", "of", "for", "to", "in", "on", "and", "or", "my",
        "our", "your", "it", "its", "please", "everything", "all", "rule", "rules", "taboo",
        "taboos", "memory", "memories", "der", "die", "das", "den", "dem", "le", "la", "les", "el",
        "los", "las", "的", "了",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that a forget request may mean; ``complete`` when every word of it is there."""

    name: str
    kind: str
    content: str
    scopes: tuple[str, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What a forget would remove (or did), and what else it may have meant.

    ``needs_choice`` is set when several entries match and none was named: nothing is removed then.
    ``alike`` names other memories that say the chosen ones' words, or something like them: they
    stay.
    """

    query: str
    matches: tuple[Match, ...]
    chosen: tuple[str, ...]
    needs_choice: bool
    removed: int = 0
    relationships: int = 0
    alike: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Return the confirmation line of the skill's contract."""
        entries = "entry" if self.removed == 1 else "entries"
        relations = "relationship" if self.relationships == 1 else "relationships"
        return (
            f"[hypatia-memory] Removed {self.removed} {entries} "
            f"and {self.relationships} {relations}."
        )


class _DryRun(Exception):
    """Ends a transaction whose outcome is known now: all of it is rolled back."""


_ALONG: ContextVar[Callable[[Transaction], None] | None] = ContextVar("along", default=None)


@contextmanager
def along(write: Callable[[Transaction], None]) -> Iterator[None]:
    """Let the changes of this block do ``write`` too, in the same transaction, before its end."""
    token = _ALONG.set(write)
    try:
        yield
    finally:
        _ALONG.reset(token)


@contextmanager
def changing(
    home: Path, author: Author, now: datetime, *, dry_run: bool = False
) -> Iterator[tuple[Store, Transaction]]:
    """Open the store for one change; afterwards bring index and briefs up to date.

    ``dry_run``: only try to; at the end everything is rolled back. Yields the store and its
    transaction. Raises what the store raises; then nothing has changed.
    """
    from hypatia_mem.store.connection import open_store

    try:
        with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
            yield store, txn
            if dry_run:
                raise _DryRun
            write = _ALONG.get()
            if write is not None:
                write(txn)
    except _DryRun:
        return
    refresh(home)


def refresh(home: Path) -> None:
    """Bring the search index, all briefs and the kept files up to what the store says.

    All are derived: a failure here is logged and left to the worker, never raised, because the
    change itself is already safe in the store.
    """
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory.deriving import derive

    try:
        derive(home, limit=load_settings(home).brief_max_units)
    except (IndexUnavailable, StoreBusy, OSError) as error:
        _LOG.info("index and briefs follow later: %s", type(error).__name__)


def remember(  # noqa: PLR0913 - what is kept, where, how far it is believed, and by whom
    home: Path,
    text: str,
    *,
    kind: str,
    scope: str,
    validity: Mapping[str, datetime | None] | None = None,
    trust: Trust = Trust.ASSERTED,
    told: Mapping[str, Any] | None = None,
    author: Author,
    now: datetime,
) -> Outcome:
    """Keep ``text`` as a rule, a taboo or a memory of ``scope`` (``""``: everywhere).

    A ``kind`` of ``SORTS`` is a memory with that tag.

    The words are redacted first. Saying the same again changes nothing; saying it under a new
    wording of the same name makes a new version. ``validity`` holds the ends of the time at which
    it is true that are said (``valid_from``, ``valid_to``). As a candidate it is withheld until a
    person takes it in. ``told`` says by which words of a prompt it is told
    (``activation.changed``). Raises UsageError for an empty text.
    """
    with changing(home, author, now) as (_, txn):
        return remember_in(
            txn,
            text,
            kind=kind,
            scopes=(scope,),
            validity=validity,
            trust=trust,
            told=told,
            author=author,
        )


def remember_in(
    txn: Transaction,
    text: str,
    *,
    kind: str,
    scopes: tuple[str, ...],
    validity: Mapping[str, datetime | None] | None = None,
    trust: Trust = Trust.ASSERTED,
    told: Mapping[str, Any] | None = None,
    author: Author,
) -> Outcome:
    """Do what ``remember`` does inside a transaction that is already open (the worker's)."""
    from hypatia_mem.capture.redact import redact_text

    ends: dict[str, Any] = {**(validity or {}), **(told or {})}
    words = redact_text(text).strip()
    if not words:
        raise UsageError(
            "there is nothing to remember in an empty text",
            hint='Example: hypatia-mem remember "never mock the database"',
        )
    one_of(kind, (*KINDS, *SORTS), "a kind of memory")
    sort, kind = (kind, "memory") if kind in SORTS else ("", kind)
    request = immediate.Request(
        verb="remember", text=words, kind=kind, is_global=scopes == (GLOBAL_SCOPE,)
    )
    name = _name_for(txn, immediate.entry_name(request), words, scopes)
    if trust == Trust.CANDIDATE:
        name = _aside(txn, name, words)
    tags = tuple(dict.fromkeys(("memory", kind, *([sort] if sort else []))))
    outcome = txn.put_entry(
        Entry(
            name=name,
            content=words,
            tags=tags,
            scopes=scopes,
            kind=kind,
            trust=trust,
            session_id=author.session_id,
            turn=author.turn,
            **ends,
        ),
        replace=True,
    )
    if outcome.verb in ("created", "updated"):
        name = outcome.name  # another one, when it has to wait beside what is there
        txn.put_statement(Statement(name, "is_a", kind, scopes=scopes))
        if author.session_id and author.turn:
            source = f"msg-{author.session_id}-{author.turn}"
            txn.put_statement(Statement(name, "derivedFrom", source, scopes=scopes))
    return outcome


def plan_forget(entries: Iterable[Entry], query: str, *, ids: Sequence[str] = ()) -> ForgetPlan:
    """Say which entries ``query`` means. Pure.

    An entry matches completely when every telling word of the query is in its name or text. One
    complete match is chosen; of several, only those named in ``ids``. Entries that share at least
    half of the words are listed as possible meanings, never chosen.
    """
    candidates = list(entries)
    if ids:
        known = {entry.name: entry for entry in candidates}
        missing = [name for name in ids if name not in known]
        if missing:
            raise NotFound(
                f"nothing called {missing[0][:80]!r} is remembered here",
                hint="See what there is with: hypatia-mem rules",
            )
        named = tuple(_match(known[name], complete=True) for name in ids)
        return ForgetPlan(query, named, tuple(ids), needs_choice=False)
    words = telling_words(query)
    scored: list[tuple[float, Match]] = []
    for entry in candidates:
        have = telling_words(f"{entry.name} {entry.content} {' '.join(entry.synonyms)}")
        share = len(words & have) / len(words) if words else 0.0
        if share >= 0.5:
            scored.append((share, _match(entry, complete=share == 1.0)))
    scored.sort(key=lambda pair: (-pair[0], pair[1].name))
    matches = tuple(match for _, match in scored[:10])
    complete = [match.name for match in matches if match.complete]
    chosen = tuple(complete) if len(complete) == 1 else ()
    return ForgetPlan(query, matches, chosen, needs_choice=len(complete) != 1 and bool(matches))


def forget(
    home: Path,
    query: str,
    *,
    scope: str,
    ids: Sequence[str] = (),
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> ForgetPlan:
    """Withdraw what ``query`` (or ``ids``) means from ``scope``, so that it stays forgotten.

    Leaves a tombstone: the same value is refused when anything but a person brings it again.
    Looks at the scope's own entries and the global ones, never at another project's.
    Raises NotFound when a name of ``ids`` is not there, Refused when an agent means a message.
    """
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        candidates = forgettable(store, scope, ids)
        plan = plan_forget(candidates, query, ids=ids)
        plan = replace(plan, alike=_alike(store, candidates, plan, scope, now))
    if dry_run or not plan.chosen:
        return plan
    said = [one.name for one in plan.matches if one.kind == "message" and one.name in plan.chosen]
    persons.keep_evidence(home, said, author, now)
    with changing(home, author, now) as (store, txn):
        leave_index(home, store, plan.chosen)
        return forget_in(txn, plan)


def forget_in(txn: Transaction, plan: ForgetPlan) -> ForgetPlan:
    """Carry out a plan inside a transaction that is already open (the worker's)."""
    removed = relationships = 0
    if plan.chosen:
        txn.set_meta("snapshot_wanted", str(txn.seq + 1))  # one that does not hold it
    from hypatia_mem.memory import retelling

    chosen = [one for one in plan.matches if one.name in plan.chosen]
    said = {text for one in chosen for text in (one.name, one.content)}
    typed.forget_lines(txn.store.home, said, plan.query)
    for name in plan.chosen:
        outcome = txn.delete_entry(name, reason="forget", tombstone=True)
        if outcome.verb == "deleted":
            removed += 1
            relationships += int(outcome.details.get("statements", 0))
    retelling.retell(txn, [one.content for one in chosen])
    return ForgetPlan(
        plan.query,
        plan.matches,
        plan.chosen,
        needs_choice=False,
        removed=removed,
        relationships=relationships,
        alike=plan.alike,
    )


def create_entry(
    home: Path, entry: Entry, *, here: str | None = None, author: Author, now: datetime
) -> Outcome:
    """Store a new entry; Conflict when the name is taken.

    ``here`` is the project that the author is at work in: what an agent brings into another one
    waits there for a person (``details["quarantined"]``).
    """
    with changing(home, author, now) as (store, txn):
        why = persons.brought(store, entry.scopes, here, author)
        if not why:
            return txn.put_entry(_redacted(entry))
        outcome = txn.put_entry(replace(_redacted(entry), trust=Trust.CANDIDATE))
        return persons.held(txn, outcome, "entry", why)


def update_entry(
    home: Path,
    name: str,
    fields: dict[str, Any],
    *,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Change the given fields of an entry; NotFound when there is none."""
    from hypatia_mem.capture.redact import redact_text

    if not fields:
        raise UsageError("nothing to update", hint="Name at least one field, for example --data.")
    if "content" in fields:
        fields = {**fields, "content": redact_text(fields["content"])}
    from hypatia_mem.memory import guard

    with changing(home, author, now, dry_run=dry_run) as (store, txn):
        since = txn.seq
        held = guard.refuse_held(store, [name], author=author, now=now, dry_run=dry_run)
        outcome = txn.update_entry(name, **fields)
        blast = reached(txn, since, "update", [name], held=held, dry_run=dry_run)
        leave_behind(home, store, blast)
        return Changed([outcome], blast)


def delete_entry(
    home: Path, name: str, *, dry_run: bool = False, author: Author, now: datetime
) -> Changed:
    """Delete an entry and the statements that name it; NotFound when there is none."""
    from hypatia_mem.memory import guard

    with changing(home, author, now, dry_run=dry_run) as (store, txn):
        since = txn.seq
        held = guard.refuse_held(store, [name], author=author, now=now, dry_run=dry_run)
        if not dry_run:
            leave_index(home, store, (name,))
        outcome = txn.delete_entry(name, reason="delete")
        blast = reached(txn, since, "delete", [name], held=held, dry_run=dry_run)
        return Changed([outcome], blast)


def create_statement(
    home: Path,
    statement: Statement,
    *,
    here: str | None = None,
    validity: Mapping[str, datetime | None] | None = None,
    author: Author,
    now: datetime,
) -> Outcome:
    """Store a triple; an existing one is left as it is, but for ``validity``. ``here``: as above.

    ``validity`` holds the ends of its time (``valid_from``, ``valid_to``) that are said; None is
    an end that is not known, and an end that is not said stays as it was.
    """
    from hypatia_mem.capture.redact import redact_text

    ends: dict[str, Any] = dict(validity or {})
    cleaned = replace(statement, content=redact_text(statement.content), **ends)
    with changing(home, author, now) as (store, txn):
        why = persons.brought(store, statement.scopes, here, author)
        if why:
            cleaned = replace(cleaned, trust=Trust.CANDIDATE)
        outcome = txn.put_statement(cleaned)
        if why and outcome.verb == "created":
            return persons.held(txn, outcome, "statement", why)
        if outcome.verb == "unchanged" and ends:
            triple = (statement.subject, statement.predicate, statement.object)
            return txn.set_validity(*triple, **ends)
        return outcome


def delete_statement(
    home: Path, subject: str, predicate: str, object_: str, *, author: Author, now: datetime
) -> Outcome:
    """Delete a triple; NotFound when there is none."""
    with changing(home, author, now) as (_, txn):
        return txn.delete_statement(subject, predicate, object_)


# ----------------------------------------------------------------------------------------------


def forgettable(store: Store, scope: str, ids: Sequence[str] = ()) -> list[Entry]:
    """Return what a forget request may mean: the scope's live memories and the global ones.

    Memories that are not true now are among them. By name (``ids``) it may be any entry there, a
    kept file's, say, one that is withheld, whose words are not given then, or one that was deleted
    and has only its history left; never by words.
    """
    from hypatia_mem.store import history
    from hypatia_mem.store.entries import is_withheld

    within = [scope, GLOBAL_SCOPE] if scope else [GLOBAL_SCOPE]
    found = store.rules(within, any_time=True)
    have = {entry.name for entry in found}
    named = [
        replace(entry, content="") if is_withheld(entry) else entry
        for entry in store.entries(name for name in ids if name not in have)
    ]
    there = have | {entry.name for entry in named}
    gone = [history.last_entry(store, name) for name in ids if name not in there]
    named += [entry for entry in gone if entry is not None]
    return found + [entry for entry in named if set(entry.scopes) & set(within)]


def leave_index(home: Path, store: Store, names: Sequence[str]) -> None:
    """Take names and their statements out of the search index; the store's commit comes after.

    Called with the store's lease held, so that nobody can put them back from an older state.
    Raises StoreBusy while another process merges the index, and so cannot be kept from it.
    """
    from hypatia_mem.store import sources
    from hypatia_mem.store.search import IndexBusy, SearchIndex

    stands = sources.derived(store, names)  # what is derived goes with its source
    names = [*names, *(one.name for one in stands if not one.own)]
    try:
        SearchIndex(home).remove([*names, *store.triples_of(names)])
    except IndexBusy as error:
        raise StoreBusy(
            "the search index is being merged by another process; nothing was changed",
            hint="Try again in a moment.",
        ) from error
    except IndexUnavailable as error:
        _LOG.info("index not touched before a withdrawal: %s", error.message)


def leave_behind(home: Path, store: Store, blast: Blast) -> None:
    """Take out of the search index what a change withdrew from above an entry; as leave_index."""
    gone = [one.name for one in (*blast.derived, *blast.doubted)]
    if gone and blast.op_id:
        leave_index(home, store, [*gone, *blast.statements])


def _name_for(txn: Transaction, name: str, words: str, scopes: tuple[str, ...]) -> str:
    """Return the name under which these scopes keep these words.

    Said before, in whatever spelling: the name it has. A name that another project uses gets this
    project's scope behind it.
    """
    from hypatia_mem.store.tombstones import canonical

    for entry in txn.store.rules(list(scopes), any_time=True):
        if set(entry.scopes) == set(scopes) and canonical(entry.content) == canonical(words):
            return entry.name
    existing = txn.entry(name)
    if existing is None or set(existing.scopes) == set(scopes):
        return name
    return f"{name}@{scopes[0] or 'global'}"


def _aside(txn: Transaction, name: str, words: str) -> str:
    """Return a name for what is only proposed: never that of something else that is shown."""
    from hypatia_mem.store.entries import is_withheld
    from hypatia_mem.store.quarantine import ASIDE

    there = txn.entry(name)
    other = there is not None and not is_withheld(there) and there.content != words
    return f"{name}{ASIDE}" if other else name


def _redacted(entry: Entry) -> Entry:
    from hypatia_mem.capture.redact import redact_text

    return replace(entry, name=redact_text(entry.name), content=redact_text(entry.content))


def _alike(
    store: Store, candidates: Sequence[Entry], plan: ForgetPlan, scope: str, now: datetime
) -> tuple[str, ...]:
    """Return what else says what the chosen ones say, or something like it, and is kept.

    Goals, open threads and facts are among it: a session is told them, or finds them by asking.
    """
    from hypatia_mem.store import episodes, graves, listing

    said = [one.content for one in plan.matches if one.name in plan.chosen and one.content]
    if not said:
        return ()
    within = [scope, GLOBAL_SCOPE] if scope else [GLOBAL_SCOPE]
    every = [
        *candidates,
        *episodes.goals(store, within, at=now),
        *episodes.threads(store, within, at=now),
        *listing.entries_tagged(store, "fact", within, at=now, limit=_FACTS),
    ]
    others = {one.name: one.content for one in every if one.name not in plan.chosen}
    return tuple(graves.alike(store, said, others))


def _match(entry: Entry, *, complete: bool) -> Match:
    return Match(entry.name, entry.kind, entry.content, entry.scopes, complete)


def telling_words(text: str) -> set[str]:
    """Split into telling words, case folded; a CJK character is a word of its own."""
    words: set[str] = set()
    current: list[str] = []
    for char in text.casefold() + " ":
        cjk = "\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af"
        if char.isalnum() and not cjk:
            current.append(char)
            continue
        if current:
            words.add(_stem("".join(current)))
            current.clear()
        if cjk:
            words.add(char)
    telling = words - _EMPTY_WORDS
    return telling or words


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word

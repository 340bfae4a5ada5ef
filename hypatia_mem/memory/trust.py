"""Believing, doubting, rejecting, pinning, suppressing and editing: what a person asks for by name.

Each is one transaction over all the names that were given, all of them or none; afterwards index
and briefs say the same. A thing of another project is found only when its scope is named, and an
agent cannot name one. An edit is refused when the words changed since they were read (``etag``).
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from hypatia_mem.errors import NotFound, Refused, StaleEdit, UsageError
from hypatia_mem.memory import curate, guard, reach
from hypatia_mem.memory.blast import Changed, reached
from hypatia_mem.model import PERSON_CHANNELS, Author, Entry, Outcome, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.gateway import Transaction
    from hypatia_mem.store.opened import Store

__all__ = [
    "Subject",
    "edit",
    "etag",
    "mark",
    "resolve",
    "resolve_entry",
    "set_trust",
    "words_of",
]

_MARKS = {"pin": ("pinned", True), "unpin": ("pinned", False)}
_MARKS |= {"suppress": ("suppressed", True), "unsuppress": ("suppressed", False)}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a name stands for: an entry, or a statement under its key."""

    name: str
    value: Entry | Statement


class _Denied(Exception):
    """Ends a transaction part of which was refused: the rest is not done either."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def etag(entry: Entry) -> str:
    """Return what tells one state of an entry from every other: its version and a digest.

    >>> etag(Entry("x", "words", version=3))
    '3-b6f0c3a1'
    """
    said = [entry.content, entry.tags, entry.scopes, entry.kind, str(entry.trust)]
    digest = hashlib.sha256(json.dumps(said).encode("utf-8", "replace")).hexdigest()
    return f"{entry.version}-{digest[:8]}"


def resolve(store: Store, words: Sequence[str], scopes: Sequence[str] | None) -> list[Subject]:
    """Return what these names stand for: entries, or statements by key; three words may be one.

    Raises NotFound when one is not there, or belongs to none of these scopes (None: any).
    """
    if len(words) == 3 and not all(store.entry(word) for word in words):
        whole = store.statement(*words)
        if whole is not None:
            return [_within(_key(whole), whole, scopes)]
    return [_resolve_one(store, word, scopes) for word in dict.fromkeys(words)]


def resolve_entry(store: Store, name: str, scopes: Sequence[str] | None) -> Entry:
    """Return the entry of a name. Raises NotFound, UsageError for a statement."""
    value = _resolve_one(store, name, scopes).value
    if isinstance(value, Statement):
        raise UsageError(f"{name!r} is a statement; edit what stands at its ends")
    return value


def words_of(entry: Entry) -> str:
    """Return what a person edits: an entry's words, a message's without its headings."""
    if entry.kind != "message":
        return entry.content
    return entry.content.partition("\n## Content\n")[2] or entry.content


def set_trust(
    home: Path,
    words: Sequence[str],
    trust: Trust,
    *,
    reason: str = "",
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Say how far these are believed, and why; of a rejection, keep the value away too.

    The reason is redacted. Raises NotFound, UsageError, Conflict when a running session depends on
    one, and Refused when the door may not (the refusal is in the ledger) or the value is kept away.
    """
    from hypatia_mem.capture.redact import redact_text

    said = redact_text(reason)

    def do(store: Store, txn: Transaction, subjects: Sequence[Subject]) -> list[Outcome]:
        _refuse_quoting(said, subjects)
        return [txn.set_trust(one.name, trust, said) for one in subjects]

    hides = trust in (Trust.CANDIDATE, Trust.REJECTED)
    how: _How = {"scopes": scopes, "hides": hides, "dry_run": dry_run}
    return _change(home, str(trust), words, do, **how, author=author, now=now)


def mark(
    home: Path,
    words: Sequence[str],
    verb: str,
    *,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Do ``pin``, ``unpin``, ``suppress`` or ``unsuppress`` to these entries; as ``set_trust``."""
    field, value = _MARKS[verb]

    def do(store: Store, txn: Transaction, subjects: Sequence[Subject]) -> list[Outcome]:
        for one in subjects:
            if isinstance(one.value, Statement):
                raise UsageError(
                    f"{one.name!r} is a statement, and only entries are pinned or suppressed",
                    hint="A statement is withheld by: hypatia-mem reject, or with its entry.",
                )
        return [txn.update_entry(one.name, **{field: value}) for one in subjects]

    how: _How = {"scopes": scopes, "hides": verb == "suppress", "dry_run": dry_run}
    return _change(home, verb, words, do, **how, author=author, now=now)


def edit(  # noqa: PLR0913 - the words, the state they are for, and who writes them
    home: Path,
    name: str,
    text: str,
    *,
    tag: str | None = None,
    force: bool = False,
    scopes: Sequence[str] | None,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Changed:
    """Put new words in the place of an entry's; ``details["etag"]`` is that of the new state.

    ``tag`` is the state that was read: when the entry is another by now, StaleEdit is raised with
    both differences, unless ``force`` says that a person has seen them. Of a message the words
    alone are given, without its headings. Raises NotFound, UsageError, Refused, Conflict.
    """
    from hypatia_mem.capture.redact import redact_text

    words = redact_text(text)
    if not words.strip():
        raise UsageError(
            "an entry is not emptied by editing it", hint="To take it away: hypatia-mem forget"
        )
    if force and author.channel not in PERSON_CHANNELS:
        raise Refused("only a person can write over what changed meanwhile (--force)")

    def do(store: Store, txn: Transaction, subjects: Sequence[Subject]) -> list[Outcome]:
        before = subjects[0].value
        if isinstance(before, Statement):
            raise UsageError(f"{subjects[0].name!r} is a statement; edit what stands at its ends")
        if tag is not None and tag != etag(before) and not force:
            raise _stale(store, before, tag, words)
        forced = tag is not None and tag != etag(before)
        outcome = _write(store, txn, before, words, forced=forced)
        entry = store.entry(outcome.name)
        details = {**outcome.details, "etag": etag(entry) if entry is not None else ""}
        return [replace(outcome, details=details)]

    how: _How = {"scopes": scopes, "hides": True, "dry_run": dry_run}
    return _change(home, "edit", [name], do, **how, author=author, now=now)


# ----------------------------------------------------------------------------------------------

_Do = Callable[["Store", "Transaction", Sequence[Subject]], list[Outcome]]


class _How(TypedDict):
    scopes: Sequence[str] | None
    hides: bool
    dry_run: bool


def _change(  # noqa: PLR0913 - what is done, to what, how, and by whom
    home: Path,
    verb: str,
    words: Sequence[str],
    do: _Do,
    *,
    scopes: Sequence[str] | None,
    hides: bool,
    dry_run: bool,
    author: Author,
    now: datetime,
) -> Changed:
    """Do it to all of these or to none; a refusal is noted in the ledger, and raised."""
    from hypatia_mem.store.connection import open_store

    try:
        with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
            subjects = resolve(store, words, scopes)
            names, since = [one.name for one in subjects], txn.seq
            held = guard.refuse_held(store, names, author=author, now=now, dry_run=dry_run)
            if hides and not dry_run:
                curate.leave_index(home, store, names)
            outcomes = do(store, txn, subjects)
            for outcome in outcomes:
                if outcome.verb == "refused":
                    raise _Denied(outcome)
            blast = reached(txn, since, verb, names, held=held, dry_run=dry_run)
    except _Denied as denied:
        outcome = denied.outcome
        reason = "rejected before" if "kept away" in outcome.reason else "authority"
        with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
            txn.note_refusal(outcome.name, reason)
        raise Refused(
            f"{outcome.name!r} stays as it is: {outcome.reason}", hint=_what_to_do(outcome)
        ) from None
    return Changed(outcomes, blast)


def _what_to_do(outcome: Outcome) -> str:
    if "kept away" in outcome.reason:
        return "To let it in after all, lift its tombstone first: hypatia-mem tombstone list"
    return "A person can do it by running this command in a terminal."


def _resolve_one(store: Store, word: str, scopes: Sequence[str] | None) -> Subject:
    from hypatia_mem.store import rows

    entry = store.entry(rows.clean(word))
    if entry is not None:
        return _within(entry.name, entry, scopes)
    found = store.run("SELECT * FROM statement WHERE triple = ?", [rows.clean(word)])
    if found:
        return _within(found[0]["triple"], rows.statement_of(found[0]), scopes)
    raise NotFound(
        f"nothing is called {word[:80]!r}",
        hint='Look for it with: hypatia-mem search "...". A statement goes by its three parts.',
    )


def _within(name: str, value: Entry | Statement, scopes: Sequence[str] | None) -> Subject:
    reach.refuse(name, value.scopes, scopes)
    return Subject(name, value)


def _key(statement: Statement) -> str:
    from hypatia_mem.store import rows

    return rows.triple_key(statement.subject, statement.predicate, statement.object)


def _refuse_quoting(reason: str, subjects: Sequence[Subject]) -> None:
    """Refuse a reason that repeats what it is about: it would outlive the words themselves."""
    said = " ".join(reason.casefold().split())
    for one in subjects:
        words = " ".join(one.value.content.casefold().split())
        if len(words) > 12 and words in said:
            raise UsageError(
                f"the reason repeats what {one.name!r} says",
                hint="Say why, not what: the reason is kept when the words are gone.",
            )


def _write(store: Store, txn: Transaction, before: Entry, words: str, *, forced: bool) -> Outcome:
    if before.kind != "message" or before.turn is None:
        return txn.rewrite_entry(before.name, words, forced=forced)
    message = store.messages(before.session_id, start=before.turn, limit=1)[0]
    others = [part for part in message.parts if part.get("type") != "text"]
    parts = ({"type": "text", "text": words}, *others)
    return txn.amend_message(before.session_id, before.turn, text=words, parts=parts)


def _stale(store: Store, now_: Entry, tag: str, words: str) -> StaleEdit:
    """Say what changed meanwhile beside what was to be changed."""
    from hypatia_mem.store import history

    number = tag.partition("-")[0]
    states = history.entry_states(store, now_.name)
    read = next((one for one in states if str(one.number) == number), None)
    base = read.value.content if read is not None else ""
    last = states[-1] if states else None
    who = f"{last.channel} at {last.at:%Y-%m-%d %H:%M:%S} UTC" if last is not None else "somebody"
    theirs = _difference(base, now_.content, f"as you read it (@{number})", f"as it is ({who})")
    yours = _difference(base, words, f"as you read it (@{number})", "as you want it")
    return StaleEdit(
        f"{now_.name!r} was changed since you read it: that was {tag}, now it is {etag(now_)}",
        hint=f"Look at both differences, then edit it anew, with --etag {etag(now_)} or --force.",
        base=base,
        theirs=now_.content,
        yours=words,
        difference="\n".join([*theirs, "", *yours]),
    )


def _difference(old: str, new: str, first: str, second: str) -> list[str]:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), first, second, lineterm="", n=2
    )
    return list(lines) or [f"--- {first}", f"+++ {second}", "(no difference)"]

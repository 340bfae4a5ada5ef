"""Two names for one thing become one: every statement, synonym, tag and scope of the second goes to
the first, and both names find it from then on.

``plan_merge`` is pure and says what becomes of the two; ``merge`` plans and does it in one
transaction under one operation, so that a kill leaves all of it or nothing, and undoing that
operation brings both back. A dry run does it too, and takes it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import Refused, UsageError
from hypatia_mem.memory.blast import Blast, reached
from hypatia_mem.memory.graph.selecting import Found, resolve
from hypatia_mem.model import PERSON_CHANNELS, Author, Entry, Outcome, Trust
from hypatia_mem.store import edges as reading
from hypatia_mem.store.rows import triple_key

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["NEVER", "MergePlan", "merge", "plan_merge"]

_Row = Mapping[str, Any]
# These stand for something that was said at one place and time: two of them are never one thing.
NEVER = frozenset({"message", "session", "summary"})
_KIND_TAGS = frozenset({"rule", "taboo", "summary", "session", "message", "archive"})
_DOUBTED = frozenset({Trust.DISPUTED, Trust.STALE})
# Of two verdicts about the same triple the one that somebody thought about holds.
_TRUST = ("candidate", "stale", "asserted", "disputed", "verified", "rejected")


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does (or did): the blast radius.

    ``entry`` is what the kept name's entry becomes; ``joined`` are statements that are there
    already, ``dropped`` those that would lead from the kept name to itself. ``doubts`` are reasons
    not to do it without being told so.
    """

    keep: str
    gone: str
    entry: Entry
    moved: tuple[tuple[str, _Row], ...] = ()  # (old key, new row)
    joined: tuple[tuple[str, _Row], ...] = ()
    dropped: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()  # those gained
    tags: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    appended: int = 0  # characters of text
    kept_apart: bool = False  # its text could not be appended; history has it
    had_entry: bool = False
    doubts: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # what else has the second name as a synonym
    op_id: str = ""
    asked: tuple[Found, ...] = ()
    blast: Blast = field(default_factory=lambda: Blast("merge", ()))  # what stands on them


def plan_merge(
    keep: str,
    gone: str,
    kept: Entry | None,
    lost: Entry | None,
    touching: Sequence[_Row],
    existing: Mapping[str, _Row],
    *,
    seen: Sequence[str] | None = None,
) -> MergePlan:
    """Say what merging ``gone`` into ``keep`` does. Pure.

    ``kept`` and ``lost`` are their entries, if any; ``touching`` the statements that have ``gone``
    at an end; ``existing`` those that are there already under the new keys; ``seen`` the scopes of
    a question about two names without entries. Raises Refused for what is never merged.
    """
    for entry in (kept, lost):
        if entry is not None and entry.kind in NEVER:
            raise Refused(
                f"{entry.name!r} is a {entry.kind}: it stands for what was said, and is not merged"
            )
    moved, joined, dropped = _rewritten(touching, existing, keep, gone)
    entry = _united(keep, gone, kept, lost, touching)
    before = kept or Entry(keep, "")
    appended = len(lost.content) if lost and lost.content and lost.content in entry.content else 0
    return MergePlan(
        keep=keep,
        gone=gone,
        entry=entry,
        moved=tuple(moved),
        joined=tuple(joined),
        dropped=tuple(dropped),
        synonyms=_gained(before.synonyms, entry.synonyms),
        tags=_gained(before.tags, entry.tags),
        scopes=_gained(before.scopes, entry.scopes) if kept else (),
        appended=appended if entry.content != before.content else 0,
        kept_apart=bool(lost and lost.content and lost.content not in entry.content),
        had_entry=lost is not None,
        doubts=tuple(_doubts(kept, lost, touching, seen)),
    )


def merge(
    home: Path,
    a: str,
    b: str,
    *,
    scopes: Sequence[str] | None,
    force: bool = False,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> MergePlan:
    """Merge ``b`` into ``a``; both are names or synonyms as seen from ``scopes``.

    Raises NotFound, UsageError, and Refused: for messages, sessions and summaries, for a name that
    was forgotten, and without ``force`` when scopes or kinds differ. Then nothing has changed. A
    ``dry_run`` says all of it, also what needs ``force``.
    """
    from hypatia_mem.memory import curate

    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        since, plan = txn.seq, _planned(store, a, b, scopes)
        _refuse_settling(store, plan, author)
        if plan.doubts and not force and not dry_run:
            raise Refused(
                f"not merged: {'; '.join(plan.doubts)}",
                hint="Look with --dry-run; --force merges all the same.",
            )
        _write(txn, plan)
        blast = reached(txn, since, "merge", [plan.keep, plan.gone], dry_run=dry_run)
        curate.leave_behind(home, store, blast)
        return replace(plan, op_id=blast.op_id, blast=blast)


# ----------------------------------------------------------------------------------------------


def _refuse_settling(store: Store, plan: MergePlan, author: Author) -> None:
    """Refuse an agent to put what is doubted into what is believed: only a person settles that."""
    if author.channel in PERSON_CHANNELS:
        return
    trusts = {entry.name: entry.trust for entry in store.entries([plan.keep, plan.gone])}
    was, becomes = trusts.get(plan.gone), trusts.get(plan.keep)
    if was in _DOUBTED and becomes not in (None, was):
        raise Refused(
            f"{plan.gone!r} is {was}, and {plan.keep!r} is {becomes}: only a person merges them",
            hint="Run this command in a terminal, or merge it the other way round.",
        )


def _planned(store: Store, a: str, b: str, scopes: Sequence[str] | None) -> MergePlan:
    asked = resolve(store, a, scopes), resolve(store, b, scopes)
    keep, gone = (one.name for one in asked)
    if keep == gone:
        raise UsageError(f"{a!r} and {b!r} are the same thing already: {keep!r}")
    entries = {entry.name: entry for entry in store.entries([keep, gone])}
    for entry in entries.values():
        if scopes is not None and not set(entry.scopes) & set(scopes):
            raise Refused(
                f"the entry {entry.name!r} belongs to {_named(entry.scopes)}",
                hint="Ask there, or with --all-projects.",
            )
    touching = reading.rows_touching(store, gone)
    keys = [triple_key(*_ends(row, keep, gone)) for row in touching]
    existing = {row["triple"]: row for row in reading.rows_at(store, keys)}
    plan = plan_merge(
        keep, gone, entries.get(keep), entries.get(gone), touching, existing, seen=scopes
    )
    others = [name for name in reading.names_called(store, gone, None) if name != keep]
    return replace(plan, also=tuple(others), asked=asked)


def _write(txn: Transaction, plan: MergePlan) -> None:
    refusal = txn.refuse_name(plan.keep, plan.entry.scopes)
    gone = [key for key, _ in (*plan.moved, *plan.joined)]
    if refusal is None:
        txn.rewrite_statements(
            [row for _, row in plan.moved],
            [row for _, row in plan.joined],
            [*dict.fromkeys([*gone, *plan.dropped])],
            reason="merge",
        )
        if plan.had_entry:
            txn.delete_entry(plan.gone, reason="merge")
        outcome = _write_entry(txn, plan.entry)
        refusal = outcome if outcome.verb == "refused" else None
    if refusal is not None:
        raise Refused(
            f"{plan.keep!r} was not changed: {refusal.reason}",
            hint="A person can bring it back by storing it again in a terminal.",
        )


def _write_entry(txn: Transaction, entry: Entry) -> Outcome:
    if txn.entry(entry.name) is None:
        return txn.put_entry(entry)
    return txn.update_entry(
        entry.name,
        content=entry.content,
        tags=entry.tags,
        scopes=entry.scopes,
        synonyms=entry.synonyms,
        figures=entry.figures,
        pinned=entry.pinned,
        priority=entry.priority,
        activation=entry.activation,
    )


def _ends(row: _Row, keep: str, gone: str) -> tuple[str, str, str]:
    subject, object_ = (keep if row[end] == gone else row[end] for end in ("subject", "object"))
    return subject, row["predicate"], object_


def _rewritten(
    touching: Sequence[_Row], existing: Mapping[str, _Row], keep: str, gone: str
) -> tuple[list[tuple[str, _Row]], list[tuple[str, _Row]], list[str]]:
    """Return (moved, joined, dropped); a loop that was one before stays one."""
    moved: list[tuple[str, _Row]] = []
    joined: list[tuple[str, _Row]] = []
    dropped: list[str] = []
    for row in touching:
        subject, predicate, object_ = _ends(row, keep, gone)
        if subject == object_ and row["subject"] != row["object"]:
            dropped.append(row["triple"])
            continue
        key = triple_key(subject, predicate, object_)
        if key in existing:
            joined.append((row["triple"], _joined(existing[key], row)))
        else:
            moved.append(
                (row["triple"], {**row, "triple": key, "subject": subject, "object": object_})
            )
    return moved, joined, dropped


def _joined(there: _Row, other: _Row) -> _Row:
    """Return the statement that two of the same triple become; nothing either says is lost."""
    content = there["content"]
    if other["content"] and other["content"] not in content:
        content = f"{content}\n\n{other['content']}".strip()
    return {
        **there,
        "content": content,
        "scopes": _union(there["scopes"], other["scopes"]),
        "synonyms": _joined_synonyms(there["synonyms"], other["synonyms"]),
        "trust": max(there["trust"], other["trust"], key=_TRUST.index),
        "valid_from": _widest(min, there["valid_from"], other["valid_from"]),
        "valid_to": _widest(max, there["valid_to"], other["valid_to"]),
        "expired_at": _widest(max, there["expired_at"], other["expired_at"]),
        "created_at": min(there["created_at"], other["created_at"]),
    }


def _widest(choose: Callable[..., Any], one: datetime | None, other: datetime | None) -> Any:  # noqa: ANN401 - a time or None
    return None if one is None or other is None else choose(one, other)


def _joined_synonyms(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    first, second = json.loads(one), json.loads(other)
    both = {part: _union(first.get(part, ()), second.get(part, ())) for part in {**first, **second}}
    return json.dumps(both, ensure_ascii=False)


def _united(
    keep: str, gone: str, kept: Entry | None, lost: Entry | None, touching: Iterable[_Row]
) -> Entry:
    """Return the entry of the kept name: its own, with all that the other's says beside it."""
    if kept is None and lost is None:
        scopes = _union(*(row["scopes"] for row in touching))
        return Entry(keep, "", scopes=tuple(scopes), synonyms=(gone,))
    if kept is None or lost is None:
        entry = kept or replace(lost or Entry(keep, ""), name=keep)
        words = _union(entry.synonyms, [gone])
        return replace(entry, synonyms=tuple(word for word in words if word != keep))
    words = _union(kept.synonyms, [gone], lost.synonyms)
    theirs = [tag for tag in lost.tags if tag not in _KIND_TAGS or tag in kept.tags]
    return replace(
        kept,
        content=_both_texts(kept, lost),
        tags=tuple(_union(kept.tags, theirs)),
        scopes=tuple(_union(kept.scopes, lost.scopes)),
        synonyms=tuple(word for word in words if word != keep),
        figures=tuple(_union(kept.figures, lost.figures)),
        pinned=kept.pinned or lost.pinned,
        priority=kept.priority or lost.priority,
        activation=kept.activation or lost.activation,
    )


def _both_texts(kept: Entry, lost: Entry) -> str:
    """Return both texts, one after the other; one of another format cannot stand beside it."""
    if not lost.content or lost.content in kept.content:
        return kept.content
    if not kept.content:
        return lost.content
    if kept.format != lost.format or kept.format == "json":
        return kept.content
    return f"{kept.content.rstrip()}\n\n{lost.content}"


def _doubts(
    kept: Entry | None, lost: Entry | None, touching: Sequence[_Row], seen: Sequence[str] | None
) -> list[str]:
    doubts: list[str] = []
    if kept is not None and lost is not None:
        if set(kept.scopes) != set(lost.scopes):
            doubts.append(
                f"their scopes differ: {_named(kept.scopes)} against {_named(lost.scopes)}"
            )
        if kept.kind != lost.kind:
            doubts.append(f"one is a {kept.kind}, the other a {lost.kind}")
    if seen is not None:
        own = {*seen, *(scope for entry in (kept, lost) if entry for scope in entry.scopes)}
        foreign = [row for row in touching if set(row["scopes"]) - own]
        if foreign:
            names = _union(*(row["scopes"] for row in foreign))
            others = [name for name in names if name not in own]
            count = (
                "1 statement belongs" if len(foreign) == 1 else f"{len(foreign)} statements belong"
            )
            doubts.append(f"{count} to {_named(others)} too")
    return doubts


def _named(scopes: Sequence[str]) -> str:
    return ", ".join(scope or "(global)" for scope in scopes) or "no scope"


def _gained(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in after if one not in before)


def _union(*lists: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for some in lists for one in some))

"""What of the cascade is due, and why: reading only.

Level 1 is due when messages that no summary covers fill a share of the model's window, level N when
there are ``cascade_batch`` summaries of level N-1 that none covers. A batch larger than the
summariser's window is split; the parts that are still to do are noted in the store (*owed*), and so
are the messages of a summary that lost one of its sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.cascade import failing
from hypatia_mem.memory.cascade.failing import ATTEMPTS, OWED
from hypatia_mem.memory.cascade.sizes import slices, split, tiers
from hypatia_mem.memory.summarise import choosing, windows
from hypatia_mem.store.jobs import Job, JobState

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.summaries import Pending

__all__ = [
    "ATTEMPTS",
    "CONTEXT",
    "CONTEXT_FULL",
    "CONTEXT_PRESSURE",
    "OWED",
    "OWED_ABOVE",
    "PRESSED",
    "URGENT",
    "Batch",
    "Planned",
    "Planner",
    "plan",
    "status",
]

CONTEXT = "cascade_context"
PRESSED = "cascade_pressed"  # by session, the turn up to which it is to be condensed now
CONTEXT_FULL, CONTEXT_PRESSURE = "context full", "context pressure"
URGENT = (CONTEXT_FULL, CONTEXT_PRESSURE)  # reasons that cannot wait for a day
OWED_ABOVE = "cascade_owed_above"


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that become one summary. ``reason`` is why now; ``rest``: of the same trigger, later.

    ``ticket`` names exactly these items in this state.
    """

    level: int
    scopes: tuple[str, ...]
    items: tuple[Pending, ...]
    reason: str
    rest: tuple[tuple[str, ...], ...] = ()
    mark: tuple[str, int] | None = None  # the session and turn whose full context was the reason

    @property
    def tokens(self) -> int:
        """Return the skill's estimate: a quarter of the characters."""
        return sum(item.chars for item in self.items) // 4

    @property
    def ticket(self) -> str:
        """Return what ``submit`` has to show: level, number of items, and their digest."""
        text = "\n".join(f"{item.name} {item.digest}" for item in self.items)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
        return f"{self.level}.{len(self.items)}.{digest}"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a run would make in these scopes: (level, summaries, items of each, reason)."""

    scopes: tuple[str, ...]
    level: int
    summaries: int
    items: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Limits:
    """What decides when and how much, for one group of scopes."""

    trigger: int  # tokens
    room: int  # tokens that may be left once it was due
    window: int
    model: str


# --- reading what is due --------------------------------------------------------------------------


class Planner:
    """Says what is due, from one open store; ``read`` are the reads of the cascade."""

    def __init__(self, store: Store, home: Path, settings: Settings, now: datetime) -> None:
        """Read the notes of the cascade."""
        from hypatia_mem.store import contexts, jobs, summaries

        self.read = summaries
        self.contexts = contexts
        self.store = store
        self.settings = settings
        self.now = now
        self.windows = windows.own(home)
        self.owed: list[list[str]] = summaries.read_note(store, OWED, [])
        self.pressed: dict[str, int] = summaries.read_note(store, PRESSED, {})
        self.owed_above: list[dict[str, Any]] = summaries.read_note(store, OWED_ABOVE, [])
        self.jobs: dict[str, Job] = jobs.jobs(store)
        self.window = choosing.planned_window(home, settings)
        self.excluded: Set[str] = {
            project.scope for project in store.projects() if project.excluded
        }

    def limits(self, scopes: Sequence[str]) -> _Limits:
        """Return how much of a project's messages make a batch, and how much one summary takes."""
        settings = self.settings
        model = "" if settings.cascade_max_tokens else self.contexts.last_model(self.store, scopes)
        most = settings.cascade_max_tokens or windows.window_of(model, self.windows)
        trigger = max(1, most * settings.cascade_percent // 100)
        room = most * (100 - settings.cascade_headroom) // 100
        return _Limits(trigger, room, self.window, model)

    def due(
        self,
        scopes: Sequence[str] | None,
        *,
        retry: bool = False,
        without: Set[str] = frozenset(),
        only_owed: bool = False,
    ) -> list[Batch]:
        """Return the due batches of the lowest level that has any.

        ``retry``: those too that failed and wait, but none that a person dropped or that is under
        way; ``without`` are tickets to leave out; ``only_owed``: only what is condensed anew.
        """
        for level in range(1, self.settings.cascade_max_level + 1):
            found: list[Batch] = []
            for group in self.read.groups(self.store, level):
                if self.left_out(group.scopes, scopes):
                    continue
                found += self.of_group(level, group.scopes, group.count)
            ready = [
                one
                for one in found
                if (self.may_run(one) or (retry and self._may_ever(one)))
                and one.ticket not in without
                and (not only_owed or one.reason == "owed")
            ]
            if ready:
                return ready
        return []

    def of_every_level(self, scopes: Sequence[str] | None) -> list[Batch]:
        """Return the due batches of all levels, whatever has become of them, the lowest first."""
        return [
            batch
            for level in range(1, self.settings.cascade_max_level + 1)
            for group in self.read.groups(self.store, level)
            if not self.left_out(group.scopes, scopes)
            for batch in self.of_group(level, group.scopes, group.count)
        ]

    def left_out(self, own: tuple[str, ...], wanted: Sequence[str] | None) -> bool:
        """Tell whether scopes were not asked for, or belong to projects that are not kept."""
        if wanted is not None and not set(own) & set(wanted):
            return True
        return bool(own) and set(own) <= self.excluded

    def of_group(self, level: int, scopes: tuple[str, ...], count: int) -> list[Batch]:
        """Return the due batches of one group; ``count`` is how many items await them."""
        if level > 1:
            owed = self._owed_above(level, scopes)
            if owed:
                return [Batch(level, scopes, own, "owed") for own in owed]
            batch = self.settings.cascade_batch
            if count < batch:
                return []
            items = self.read.pending(self.store, level, scopes)
            return [
                Batch(level, scopes, tuple(items[n : n + batch]), f"{batch} of level {level - 1}")
                for n in range(0, len(items) - batch + 1, batch)
            ]
        return self._of_messages(scopes)

    def _owed_above(self, level: int, scopes: tuple[str, ...]) -> list[tuple[Pending, ...]]:
        """Return the items of summaries that lost a source, as far as they are still there.

        Lower levels come first, so what those were made of anew is there too.
        """
        notes = [
            one
            for one in self.owed_above
            if one["level"] == level and one["scopes"] == sorted(scopes)
        ]
        if not notes:
            return []
        items = self.read.pending(self.store, level, scopes)
        found: list[tuple[Pending, ...]] = []
        for one in notes:
            first, last = (datetime.fromisoformat(one[end]) for end in ("from", "to"))
            own = tuple(item for item in items if first <= item.at <= last)
            if len(own) > 1:
                found.append(own)
                items = [item for item in items if item not in own]
        return found

    def _of_messages(self, scopes: tuple[str, ...]) -> list[Batch]:
        limits = self.limits(scopes)
        items = self.read.pending(self.store, 1, scopes)
        owed = self._owed_of(items)
        taken = {item.name for batch in owed for item in batch}
        found = [part for batch in owed for part in self._parts(scopes, batch, "owed", limits)]
        rest = [item for item in items if item.name not in taken]
        newest = sorted(rest, key=lambda item: (item.at, item.turn or 0, item.name))
        keep = {
            item.name for item in newest[max(0, len(newest) - self.settings.cascade_keep_last) :]
        }
        old = [item for item in rest if item.name not in keep]
        kept = sum(item.chars for item in rest if item.name in keep)
        at = 0
        sizes = slices([*(item.chars for item in old), kept], limits.trigger, 1, limits.room)
        for size in sizes:
            found += self._parts(scopes, old[at : at + size], "token threshold", limits)
            at += size
        if not found and old:
            found = self._of_pressure(scopes, old, limits)
            found = found or self._of_full_context(scopes, old, limits)
        return found

    def _of_pressure(
        self, scopes: tuple[str, ...], old: Sequence[Pending], limits: _Limits
    ) -> list[Batch]:
        """Return what of sessions is to be condensed because their context fills up."""
        found: list[Batch] = []
        for session, turn in self.pressed.items():
            items = [one for one in old if one.session_id == session and (one.turn or 0) <= turn]
            if len(items) > 1:
                found += self._parts(scopes, items, CONTEXT_PRESSURE, limits)
        return found

    def _of_full_context(
        self, scopes: tuple[str, ...], old: Sequence[Pending], limits: _Limits
    ) -> list[Batch]:
        """Return a batch when the latest session has filled its context, once for each time."""
        used = self.contexts.of_latest(self.store, scopes)
        if not used:
            return []
        session, turn = used[0].session_id, used[0].turn
        most = self.settings.cascade_max_tokens or windows.window_of(used[0].model, self.windows)
        if used[0].tokens < most * self.settings.cascade_percent // 100:
            return []
        told: dict[str, int] = self.read.read_note(self.store, CONTEXT, {})
        since = [one.tokens for one in used if one.turn > told.get(session, 0)]
        if session in told and not any(size < most // 2 for size in since):
            return []
        items = [item for item in old if item.session_id == session]
        parts = self._parts(scopes, items, CONTEXT_FULL, limits) if items else []
        return [replace(part, mark=(session, turn)) for part in parts]

    def _owed_of(self, items: Sequence[Pending]) -> list[list[Pending]]:
        known = {item.name: item for item in items}
        found = []
        for names in self.owed:
            batch = [known[name] for name in names if name in known]
            if batch:
                found.append(batch)
        return found

    def _parts(
        self, scopes: tuple[str, ...], items: Sequence[Pending], reason: str, limits: _Limits
    ) -> list[Batch]:
        """Split a batch by the summariser's window; each part knows those that come after it."""
        tokens = [item.chars // 4 + 1 for item in items]
        sizes = split(tokens, limits.window, self.settings.cascade_max_messages)
        parts: list[tuple[Pending, ...]] = []
        at = 0
        for size in sizes:
            parts.append(tuple(items[at : at + size]))
            at += size
        names = [tuple(item.name for item in part) for part in parts]
        return [
            Batch(1, scopes, part, reason, tuple(names[n + 1 :])) for n, part in enumerate(parts)
        ]

    def may_run(self, batch: Batch) -> bool:
        """Tell whether a batch has not failed, or its time has come again, or another stands in."""
        return failing.due_again(self.jobs.get(batch.ticket), self.settings, self.now)

    def stands_in(self, batch: Batch) -> bool:
        """Tell whether a model has given up on a batch, so that extractive makes its summary."""
        return failing.dead(self.jobs.get(batch.ticket), self.settings)

    def _may_ever(self, batch: Batch) -> bool:
        job = self.jobs.get(batch.ticket)
        return job is None or job.state not in (JobState.DROPPED, JobState.SENT)


# --- looking --------------------------------------------------------------------------------------


def plan(
    home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str] | None
) -> list[Planned]:
    """Return what a run would make now, level by level and upward; nothing is changed."""
    from hypatia_mem.store.connection import open_store

    found: list[Planned] = []
    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        waiting: dict[tuple[str, ...], dict[int, int]] = {}
        first: dict[tuple[str, ...], list[Batch]] = {}
        for level in range(1, settings.cascade_max_level + 1):
            for group in planner.read.groups(store, level):
                if planner.left_out(group.scopes, scopes):
                    continue
                if level == 1:
                    batches = planner.of_group(1, group.scopes, group.count)
                    first[group.scopes] = [one for one in batches if planner.may_run(one)]
                else:
                    waiting.setdefault(group.scopes, {})[level - 1] = group.count
    for own in sorted(set(waiting) | set(first)):
        found += _planned(own, first.get(own, []), waiting.get(own, {}), settings)
    return found


def _planned(
    scopes: tuple[str, ...],
    first: Sequence[Batch],
    unlinked: Mapping[int, int],
    settings: Settings,
) -> Iterable[Planned]:
    by_reason: dict[str, list[Batch]] = {}
    for batch in first:
        by_reason.setdefault(batch.reason, []).append(batch)
    for reason, batches in by_reason.items():
        items = sum(len(batch.items) for batch in batches)
        yield Planned(scopes, 1, len(batches), items, reason)
    size = settings.cascade_batch
    made = tiers(len(first), unlinked, size, settings.cascade_max_level)
    for level, count in made.items():
        if level > 1:
            yield Planned(scopes, level, count, count * size, f"{size} of level {level - 1}")


def status(
    home: Path, settings: Settings, *, now: datetime, scopes: Sequence[str] | None
) -> dict[str, Any]:
    """Return what is unsummarised, what there is at each level, and when the next is due."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        projects = []
        for group in planner.read.groups(store, 1):
            if planner.left_out(group.scopes, scopes):
                continue
            limits = planner.limits(group.scopes)
            due = bool(planner.of_group(1, group.scopes, group.count))
            projects.append(
                {
                    "scopes": list(group.scopes),
                    "messages": group.count,
                    "tokens": group.chars // 4,
                    "threshold": limits.trigger,
                    "model": limits.model,
                    "due": due,
                    "stuck": not due
                    and group.chars // 4 >= limits.trigger
                    and group.count <= settings.cascade_keep_last,
                }
            )
        levels = [
            {"level": level, "summaries": made, "unlinked": free}
            for level, (made, free) in planner.read.levels(store, scopes).items()
        ]
        failed = [
            _told(job)
            for job in planner.jobs.values()
            if scopes is None or set(job.scopes) & set(scopes)
        ]
        pause = failing.pause_of(store, settings)
        messages, summarised = planner.read.coverage(store, scopes)
        return {
            "by": settings.summary_by,
            "projects": projects,
            "coverage": {"messages": messages, "summarised": summarised},
            "levels": levels,
            "owed": sum(len(names) for names in planner.owed),
            "failed": failed,
            "paused": None
            if pause is None or pause.again <= now
            else {"until": pause.again.isoformat(), "why": pause.message, "hint": pause.hint},
        }


def _told(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "level": job.level,
        "scopes": list(job.scopes),
        "state": str(job.state),
        "attempts": job.attempts,
        "again": job.next_at.isoformat() if job.next_at else "",
        "kind": job.reason,
        "message": job.message,
        "given_up": job.state in (JobState.DEAD, JobState.DROPPED),
    }

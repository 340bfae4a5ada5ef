"""What a project works towards, and how far it is: set, shown and done by a person or an agent.

A goal is an entry: its first line says what is wanted, a list below it the steps, each with its
mark. It is true from when it was set until it is done, so that every read by time knows it. What an
agent set is told as that, until a person verifies it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound, UsageError
from hypatia_mem.memory.episodes.finding import Line, cut
from hypatia_mem.model import Author, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["BY_AGENT", "MOST_STEPS", "Goal", "Step", "done", "find", "goal_of", "lines", "put"]

BY_AGENT = "[set by an agent]"
MOST_STEPS = 50
_STEP = re.compile(r"^- \[(?P<mark>[ xX])\] (?:\d+\. )?(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a goal, and whether it is done."""

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """What is wanted, and its steps in order."""

    text: str
    steps: tuple[Step, ...] = ()

    @property
    def next(self) -> int:
        """Return the number of the first step that is not done, 0 when there is none."""
        return next((n for n, step in enumerate(self.steps, 1) if not step.done), 0)

    @property
    def line(self) -> str:
        """Return it in one line, with how far it is."""
        if not self.steps:
            return cut(self.text)
        count = sum(step.done for step in self.steps)
        far = f"{count} of {len(self.steps)} steps done"
        if self.next:
            far += f"; next is step {self.next}: {self.steps[self.next - 1].text}"
        return f"{cut(self.text)} ({cut(far)})"

    @property
    def content(self) -> str:
        """Return the text that is stored."""
        steps = [
            f"- [{'x' if step.done else ' '}] {number}. {step.text}"
            for number, step in enumerate(self.steps, 1)
        ]
        return "\n".join([self.text, *([""] if steps else []), *steps])


def goal_of(entry: Entry) -> Goal:
    """Return the goal that an entry holds, whoever edited it."""
    text: list[str] = []
    steps: list[Step] = []
    for line in entry.content.splitlines():
        found = _STEP.match(line.strip())
        if found is not None:
            steps.append(Step(found["text"], found["mark"] != " "))
        elif line.strip():
            text.append(line.strip())
    return Goal(" ".join(text), tuple(steps))


def put(
    home: Path,
    text: str,
    *,
    steps: Sequence[str] = (),
    scope: str,
    author: Author,
    now: datetime,
) -> Outcome:
    """Set a goal; one that is there keeps the marks of the steps that it still has.

    The words are redacted first. Raises UsageError for an empty text or step.
    """
    from hypatia_mem.capture.redact import redact_text
    from hypatia_mem.memory import curate

    words = " ".join(redact_text(text).split())
    own = tuple(Step(" ".join(redact_text(step).split())) for step in steps)
    if not words or not all(step.text for step in own):
        raise UsageError(
            "a goal, and each of its steps, needs a text",
            hint='Example: hypatia-mem goal set "move to Postgres" --step "dump the tables"',
        )
    if len(own) > MOST_STEPS:
        raise UsageError(f"a goal has {MOST_STEPS} steps at most; make several goals of it")
    with curate.changing(home, author, now) as (store, txn):
        there = _same(store, words, scope, now)
        if there is None:
            return txn.put_entry(_entry(txn, Goal(words, own), scope, author))
        if not own:
            return Outcome("unchanged", there.name)
        known = {step.text: step for step in goal_of(there).steps}
        goal = Goal(words, tuple(known.get(step.text, step) for step in own))
        return txn.update_entry(there.name, content=goal.content)


def done(
    home: Path,
    what: str,
    *,
    step: int = 0,
    scopes: Sequence[str],
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> tuple[Outcome, Entry]:
    """Say that a goal, a step of it, or an open thread is done; return what was done and to what.

    ``what`` is its name, or words of it. With the last step the goal is done too. Raises NotFound,
    and UsageError for a step there is not.
    """
    from hypatia_mem.memory import curate

    with curate.changing(home, author, now, dry_run=dry_run) as (store, txn):
        entry = find(store, what, scopes, at=now)
        goal = goal_of(entry)
        if not step:
            return txn.update_entry(entry.name, valid_to=now), entry
        if entry.kind != "goal" or step > len(goal.steps):
            raise UsageError(
                f"{entry.name!r} has {len(goal.steps)} steps, so there is no step {step}",
                hint=f"See them: hypatia-mem goal show {entry.name}",
            )
        ticked = replace(goal.steps[step - 1], done=True)
        after = replace(goal, steps=(*goal.steps[: step - 1], ticked, *goal.steps[step:]))
        outcome = txn.update_entry(entry.name, content=after.content)
        if not after.next and outcome.verb == "updated":
            txn.update_entry(entry.name, valid_to=now)
        return outcome, entry


def find(store: Store, what: str, scopes: Sequence[str], *, at: datetime) -> Entry:
    """Return the open goal or thread that a name or words of it mean.

    Raises NotFound, UsageError when it may mean several.
    """
    from hypatia_mem.store import episodes

    every = [*episodes.goals(store, scopes, at=at), *episodes.threads(store, scopes, at=at)]
    said = {one.name: goal_of(one).text.casefold() for one in every}
    asked = " ".join(what.casefold().split())
    found = [one for one in every if one.name == what.strip() or said[one.name] == asked]
    if not found:
        found = [one for one in every if all(word in said[one.name] for word in asked.split())]
    if not found or not asked:
        raise NotFound(
            f"nothing open here is called or says {what[:60]!a}",
            hint="List what is open: hypatia-mem goal list",
        )
    if len(found) > 1:
        raise UsageError(
            f"{what[:60]!a} may mean {len(found)} things: "
            + ", ".join(one.name for one in found[:5]),
            hint="Name the one you mean.",
        )
    return found[0]


def lines(
    store: Store, scopes: Sequence[str], *, at: datetime, known_at: datetime | None = None
) -> list[Line]:
    """Return the open goals in one line each, newest first, marked where an agent set them."""
    from hypatia_mem.store import episodes

    found = episodes.goals(store, scopes, at=at, known_at=known_at)
    agents = episodes.set_by_agents(store, [one.name for one in found])
    return [
        Line(
            f"{BY_AGENT} {goal_of(one).line}" if one.name in agents else goal_of(one).line,
            one.turn or 0,
            one.name,
        )
        for one in found
    ]


# ----------------------------------------------------------------------------------------------


def _entry(txn: Transaction, goal: Goal, scope: str, author: Author) -> Entry:
    from hypatia_mem.memory.summarise import naming
    from hypatia_mem.store import lessons

    slug = naming.slug_of(goal.text) or "goal"
    turn = lessons.last_turn(txn.store, author.session_id) if author.session_id else 0
    return Entry(
        name=naming.unique(f"goal-{slug}", lambda name: txn.entry(name) is not None),
        content=goal.content,
        tags=("goal",),
        scopes=(scope,),
        kind="goal",
        session_id=author.session_id if turn else "",
        turn=turn or None,
    )


def _same(store: Store, words: str, scope: str, at: datetime) -> Entry | None:
    from hypatia_mem.store import episodes
    from hypatia_mem.store.tombstones import canonical

    return next(
        (
            one
            for one in episodes.goals(store, [scope], at=at)
            if one.scopes == (scope,) and canonical(goal_of(one).text) == canonical(words)
        ),
        None,
    )

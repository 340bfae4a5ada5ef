"""The contradiction matrix: five shapes of a contradiction, five checks of what becomes of it.

A value is said on the first day, by a prompt. On the third it is contradicted, by the verb that a
person has for that shape. Then, for each shape:

- A *answer*: memory answers with what holds now;
- B *hygiene*: what reaches a prompt does not state the stale value as if it held;
- C *durability*: A and B again after every job, and after the first day's words were read again;
- D *history*: the stale value can still be known;
- E *reach*: what was derived (index, vectors, briefs, an export) does not state it as current.

All five are mechanical, because every row says until when it is true: a stale value beside an end
that has passed is no assertion. Messages are evidence of what was said, not of what holds, and are
left out of B and E; that is what ``forget`` and ``erase`` of a message are for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hypatia_mem.memory.sharing import exporting
from hypatia_mem.rubric.withdrawing import done, memory, reject
from hypatia_mem.rubric.world import Project, World, now

__all__ = ["CHECKS", "SHAPES", "Shape", "matrix", "table"]

CHECKS = ("answer", "hygiene", "durability", "history", "reach")


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape: what is said first (``{stale}``), and what a person does on the third day.

    ``current`` (``{fresh}``) is what memory answers then; "" when nothing takes the place.
    """

    name: str
    first: str
    current: str
    correct: Callable[[World, Project, str, Case], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A shape with its words filled in."""

    shape: Shape
    stale: str
    fresh: str

    @property
    def first(self) -> str:
        """Return what was said on the first day."""
        return self.shape.first.format(stale=self.stale, fresh=self.fresh)

    @property
    def current(self) -> str:
        """Return what holds from the third day on."""
        return self.shape.current.format(stale=self.stale, fresh=self.fresh)


def _replace(world: World, where: Project, name: str, case: Case) -> None:
    """It was true, and ended: both are true, of different times."""
    moved = _moment(now() - timedelta(seconds=1))
    done(world.person(where, "knowledge-update", name, "--valid-to", moved), "ending")
    done(world.person(where, "remember", case.current, "--kind", "memory"), "remember")


def _wrong(world: World, where: Project, name: str, case: Case) -> None:
    """It is wrong, whatever takes its place."""
    reject(world, where, name)
    if case.current:
        done(world.person(where, "remember", case.current, "--kind", "memory"), "remember")


def _edit(world: World, where: Project, name: str, case: Case) -> None:
    """A part of it is not so any more: the text is corrected in place."""
    done(world.person(where, "edit", name, "--text", case.current), "edit")


def _bound(world: World, where: Project, name: str, case: Case) -> None:
    """It was true from one year to another: the entry says when."""
    done(
        world.person(
            where,
            "knowledge-update",
            name,
            "--valid-from",
            "2014-01-01",
            "--valid-to",
            "2024-01-01",
        ),
        "bounding",
    )


SHAPES = (
    Shape("replacement", "I live in {stale}", "I live in {fresh}", _replace),
    Shape("polarity", "I love {stale} in my soup", "no more {stale} for me, only {fresh}", _wrong),
    Shape("retraction", "my sister {stale} is a doctor", "", _wrong),
    Shape("partial", "at {fresh} I work as {stale}", "{fresh} made me a manager", _edit),
    Shape("bounded", "I eat {stale} food only", "", _bound),
)


def matrix(world: World, shapes: Sequence[Shape] = SHAPES) -> dict[str, dict[str, str]]:
    """Return, by shape and check, ``""`` where it holds, else why it does not."""
    return {shape.name: _row(world, shape) for shape in shapes}


def table(found: dict[str, dict[str, str]]) -> str:
    """Return the matrix as a Markdown table."""
    rows = [["shape", *CHECKS], ["---"] * (len(CHECKS) + 1)]
    rows += [
        [name, *("holds" if not row[one] else "-" for one in CHECKS)] for name, row in found.items()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


# ----------------------------------------------------------------------------------------------


def _row(world: World, shape: Shape) -> dict[str, str]:
    where, session = world.project(), world.session()
    case = Case(shape, world.token(), world.token())
    world.write(where, session, (f"remember: {case.first}", "Noted."))
    world.settle()
    unit = memory(world, case.stale)
    if not any(case.stale in text for text in _stated(world, where, case.stale)):
        return dict.fromkeys(CHECKS, "it was not believed in the first place")
    shape.correct(world, where, unit.name, case)
    said = {
        "answer": _answer(world, where, case),
        "hygiene": _hygiene(world, where, case),
        "history": _history(world, where, unit.name, case),
    }
    world.feed_again(where, session)
    world.feed_again(where, session, new_ids=True)
    world.background()
    world.rebuild_index()
    world.vectors()
    said["durability"] = _answer(world, where, case) or _hygiene(world, where, case)
    said["reach"] = _reach(world, where, case)
    return {name: said[name] for name in CHECKS}


def _answer(world: World, where: Project, case: Case) -> str:
    told = _stated(world, where, case.fresh)
    if case.current and not any(case.current in text for text in told):
        return "the current value is not what memory answers"
    if case.shape.name != "partial" and any(case.first in text for text in told):
        return "memory still answers with the first day's"
    return ""


def _hygiene(world: World, where: Project, case: Case) -> str:
    brief = world.brief(where)
    if any(line.startswith("- ") and case.first in line for line in brief.splitlines()):
        return "the brief states the stale value"
    stale = [row for row in _found(world, where, case.stale) if case.first in json.dumps(row)]
    if any(not _qualified(row) for row in stale):
        return "search states the stale value and does not say until when it was true"
    return ""


def _history(world: World, where: Project, name: str, case: Case) -> str:
    said = world.person(where, "history", name, "--withheld").out
    return "" if case.stale in said else "the stale value cannot be known any more"


def _reach(world: World, where: Project, case: Case) -> str:
    near = world.agent(where, "similar", case.first, "--model", "builtin", "--json").json or []
    for row in near:
        is_message = str(row.get("name", "")).startswith("msg-")
        if not is_message and case.first in json.dumps(row) and not _qualified(row):
            return "similar states it as current"
    folder = world.base / "exports" / world.token()
    exporting.export_shelf(world.home, folder)
    for line in (folder / "entry.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] != "message" and case.first in row["content"] and not _qualified(row):
            return "an export states it as current"
    return ""


def _stated(world: World, where: Project, words: str) -> list[str]:
    """Return what memory says of itself in this project now: its rules and the brief's lines."""
    rules = world.agent(where, "rules", "--json").json or []
    lines = [line for line in world.brief(where).splitlines() if line.startswith("- ")]
    return [*(row["content"] for row in rules), *lines]


def _found(world: World, where: Project, words: str) -> Iterator[dict[str, Any]]:
    for row in world.agent(where, "search", words, "--json").json or []:
        if row.get("kind") not in ("message", "summary", "session"):
            yield row


def _qualified(row: dict[str, Any]) -> bool:
    """Tell whether a row says that it does not hold now."""
    if row.get("trust") in ("rejected", "candidate", "stale", "disputed"):
        return True
    for holder in (row, row.get("content")):
        if isinstance(holder, str) and holder.startswith("{"):
            holder = json.loads(holder)
        if not isinstance(holder, dict):
            continue
        end = holder.get("tr_end") or holder.get("valid_to")
        if end and datetime.fromisoformat(str(end).rstrip("Z")) <= now():
            return True
    return False


def _moment(at: datetime) -> str:
    return f"{at.isoformat(sep='T', timespec='seconds')}Z"

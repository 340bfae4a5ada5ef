"""How a person takes something back, by the verbs that this version has, and what is left then."""

from __future__ import annotations

import time

from hypatia_mem.memory import curate
from hypatia_mem.memory.cascade import running as cascade
from hypatia_mem.memory.intake.drain import Drain
from hypatia_mem.memory.intake.house import keep_house
from hypatia_mem.model import Entry, Trust
from hypatia_mem.rubric.probe import Absent
from hypatia_mem.rubric.world import Project, Ran, World, later

__all__ = [
    "active",
    "age",
    "done",
    "memory",
    "refusals",
    "reject",
    "remembered",
    "units",
    "withdraw",
]

_YEARS = 20
_MEMORIES = ("rule", "taboo", "memory")


def withdraw(world: World, where: Project, *names: str) -> None:
    """Forget these names as a person would. Raises Absent when that is not done."""
    ids = [part for name in names for part in ("--id", name)]
    done(world.person(where, "forget", *ids), f"forget {' '.join(names)}")


def reject(world: World, where: Project, name: str) -> None:
    """Say that an entry is wrong, so that its value is not taken in again."""
    world.needs("reject")
    done(world.person(where, "reject", name, "--reason", "it is wrong"), f"reject {name}")


def done(ran: Ran, what: str) -> Ran:
    """Return what a command left behind; Absent when it failed."""
    if not ran.ok:
        raise Absent(f"{what} failed: {' '.join((ran.err or ran.out).split())[:300]}")
    return ran


def remembered(world: World, where: Project, text: str, *, by_agent: bool = True) -> str:
    """Remember a text; the name it has then. Raises Absent when it is refused."""
    run = world.agent if by_agent else world.person
    said = done(run(where, "remember", text, "--json"), f"remember {text!r}")
    return str(said.json["name"])


def units(world: World, token: str) -> list[Entry]:
    """Return the memory units that hold a word and are not rejected; messages are evidence."""
    names = world.named(token)
    with world.store() as store:
        found = store.entries(names)
    return [one for one in found if one.kind != "message" and one.trust != Trust.REJECTED]


def memory(world: World, token: str) -> Entry:
    """Return the one memory (rule, taboo, memory) that holds a word and is read by default."""
    found = [one for one in active(world, token) if one.kind in _MEMORIES]
    if len(found) != 1:
        raise Absent(f"{len(found)} memories hold what one was expected to")
    return found[0]


def active(world: World, token: str) -> list[Entry]:
    """Return the memory units that hold a word and that a default read may show."""
    names = world.named(token)
    with world.store() as store:
        found = store.live_entries(names)
    return [one for one in found if one.kind != "message"]


def refusals(world: World, since: int) -> int:
    """Count the refused writes in the ledger after ``since``."""
    return sum(str(row["verb"]).startswith("refuse") for row in world.ledger(since))


def age(world: World) -> None:
    """Do all that time does to a memory: every job of the worker, twenty years from now."""
    far = later(_YEARS)
    ahead = _YEARS * 366 * 86400 * 10**9
    Drain(world.home, world.settings, clock_ns=lambda: time.time_ns() + ahead).step(final=True)
    cascade.run(world.home, world.settings, now=far)
    keep_house(world.home, world.settings, now=far, beat=lambda: None)
    curate.refresh(world.home)

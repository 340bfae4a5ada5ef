"""Committed cases of what must not be retrieved, each with a twin in the same scope that must be.

Each case tells how a memory came to be material that no read may show. It is asked for by name
over every read path; where nothing at all comes back the case fails, for then it shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypatia_mem.model import Entry, Trust
from hypatia_mem.rubric.probe import Absent, Check
from hypatia_mem.rubric.withdrawing import done, reject, remembered, withdraw
from hypatia_mem.rubric.world import ALL, PERSON, QUICK, Project, World

__all__ = ["CASES", "Case", "check_case"]


@dataclass(frozen=True, slots=True)
class Case:
    """A case: ``hide`` makes the entry of this name, whose text holds the token, not to be shown.

    ``text`` and ``twin`` are what is remembered; ``paths`` the read paths that are asked.
    """

    id: str
    about: str
    text: str
    twin: str
    hide: Callable[[World, Project, str, str], None]
    paths: tuple[str, ...] = ALL
    name: str = ""  # of its own, where the words of the text would stay in a name made of them


def check_case(world: World, check: Check, case: Case) -> None:
    """Run a case: the twin is read by each path, the material by none."""
    where = world.project()
    token, other = world.token(), world.token()
    name = _entered(world, where, case, token)
    remembered(world, where, case.twin.format(token=other), by_agent=False)
    world.vectors()
    before = world.shows(where, token, paths=("search", "rules"))
    check.control(f"{case.id}: it was read before", before == {"search", "rules"})
    case.hide(world, where, name, token)
    world.vectors()
    shown = world.shows(where, case.text.format(token=token), token, paths=case.paths)
    check.claim(f"{case.id}: {case.about} is read by {sorted(shown)}", not shown)
    missed = set(QUICK) - world.shows(where, other, paths=QUICK)
    check.control(f"{case.id}: its twin is not read by {sorted(missed)}", not missed)


def _entered(world: World, where: Project, case: Case, token: str) -> str:
    text = case.text.format(token=token)
    if not case.name:
        return remembered(world, where, text, by_agent=False)
    name = f"{case.name}-{world.token()}"
    line = ("knowledge-create", name, "-d", text, "-t", "memory", "--scopes", where.scope)
    done(world.person(where, *line), "knowledge-create")
    return name


# --- how it came that it must not be shown --------------------------------------------------------


def _foreign(world: World, where: Project, name: str, token: str) -> None:
    """It belongs to another project."""
    other = world.project()
    world.needs("move")
    done(world.person(where, "move", name, "--scope", other.scope), "move")


def _corrected(world: World, where: Project, name: str, token: str) -> None:
    done(world.person(where, "edit", name, "--text", "the pump was painted"), "edit")


def _deleted(world: World, where: Project, name: str, token: str) -> None:
    withdraw(world, where, name)


def _rejected(world: World, where: Project, name: str, token: str) -> None:
    reject(world, where, name)


def _suppressed(world: World, where: Project, name: str, token: str) -> None:
    world.needs("suppress")
    done(world.person(where, "suppress", name), "suppress")


def _candidate(world: World, where: Project, name: str, token: str) -> None:
    with world.change(PERSON) as txn:
        entry = txn.entry(name)
        if entry is None:
            raise Absent(f"{name} is not there")
        txn.delete_entry(name)
        txn.put_entry(
            Entry(
                name,
                entry.content,
                entry.tags,
                entry.scopes,
                kind=entry.kind,
                trust=Trust.CANDIDATE,
            )
        )
    world.rebuild_index()


def _expired(world: World, where: Project, name: str, token: str) -> None:
    """It was true, and is not any more."""
    done(world.person(where, "knowledge-update", name, "--valid-to", "2020-01-01"), "bounding")


def _off_record(world: World, where: Project, name: str, token: str) -> None:
    """It was said again off the record, after it was forgotten: nothing of that is kept."""
    withdraw(world, where, name)
    session = world.session()
    prompt = f"hypatia-mem:internal\nremember: the {token} pump again"
    world.hook(where, "UserPromptSubmit", session, prompt=prompt, prompt_id="p")
    world.hook(where, "Stop", session, last_assistant_message=f"the {token} pump", prompt_id="p")
    world.settle()


CASES = (
    Case(
        "scope",
        "another project's memory",
        "the {token} pump leaks",
        "the {token} tap drips",
        _foreign,
    ),
    Case(
        "corrected",
        "a value that was corrected",
        "the {token} pump leaks",
        "the {token} tap drips",
        _corrected,
        name="pump",
    ),
    Case(
        "deleted",
        "a value that was forgotten",
        "the {token} pump leaks",
        "the {token} tap drips",
        _deleted,
    ),
    Case(
        "rejected",
        "a value that was rejected",
        "the {token} pump leaks",
        "the {token} tap drips",
        _rejected,
    ),
    Case(
        "suppressed",
        "a suppressed memory",
        "the {token} pump leaks",
        "the {token} tap drips",
        _suppressed,
    ),
    Case(
        "candidate",
        "what nobody has confirmed",
        "the {token} pump leaks",
        "the {token} tap drips",
        _candidate,
    ),
    Case(
        "expired",
        "what is not true any more",
        "the {token} pump leaks",
        "the {token} tap drips",
        _expired,
        ("rules", "brief"),
    ),
    Case(
        "off-record",
        "what was said off the record",
        "the {token} pump leaks",
        "the {token} tap drips",
        _off_record,
    ),
)

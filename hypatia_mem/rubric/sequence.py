"""A deletion in thirteen steps, down to the bytes and in a second scope.

A canary is written, read, shared and deleted; then all that could bring it back is done, one thing
after the other, and after each it has to be absent. Nobody judges: a step holds or it does not.
"""

from __future__ import annotations

import json
from pathlib import Path

from hypatia_mem.memory.sharing import exporting, importing
from hypatia_mem.model import Statement
from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.scopes import summaries, talk
from hypatia_mem.rubric.withdrawing import done, remembered
from hypatia_mem.rubric.world import AGENT, ALL, PERSON, Project, World, files_holding, now
from hypatia_mem.store import residue, snapshot
from hypatia_mem.store.connection import open_store

__all__ = ["PROBES", "STEPS"]

STEPS = (
    "write a canary",
    "it is retrievable",
    "delete it",
    "it is absent",
    "feed its source again",
    "it is absent",
    "run every background job",
    "it is absent",
    "it is absent from each derived store, by name",
    "the deletion is in the audit, without the value",
    "it was shared and exported before it was deleted",
    "the original is deleted",
    "it is absent from the second scope too",
)


class _Steps:
    """Notes which steps hold; each is a claim, but for what has to be there first."""

    def __init__(self, check: Check) -> None:
        self.check = check

    def held(self, step: int, why_not: str, ok: object, *, control: bool = False) -> None:
        said = f"step {step}, {STEPS[step - 1]}: {why_not}"
        (self.check.control if control else self.check.claim)(said, ok)


def erase(world: World, where: Project, *names: str) -> None:
    """Erase entries as a person does. Raises Absent when there is no such command."""
    world.needs("erase")
    ids = [part for name in names for part in ("--id", name)]
    done(world.person(where, "erase", *ids, "--yes"), "erase")


def _sequence(world: World, check: Check) -> None:
    step = _Steps(check)
    first, second = world.project(), world.project()
    canary, twin, other = world.token(), world.token(), world.token()
    session = world.session()
    world.turn(first, session, f"remember: the {canary} canal freezes in march")
    talk(world, first, f"the {canary} canal was seen frozen", session=session)
    talk(world, first, f"the {other} lock was oiled")
    world.turn(second, world.session(), "where are we?")
    world.settle()
    world.condense(first)
    [rule] = [one for one in world.named(canary) if one.startswith(("memory:", "rule:"))]
    remembered(world, first, f"the {twin} bridge is painted green")
    # 11, before the deletion: a second scope, an export and a snapshot have it too.
    shared = f"canal-{canary}"
    both = f"{first.scope},{second.scope}"
    line = (
        "knowledge-create",
        shared,
        "-d",
        f"the {canary} canal freezes in march",
        "-t",
        "memory",
    )
    done(world.person(first, *line, "--scopes", both), "sharing")
    with world.change(AGENT) as txn:
        txn.put_statement(Statement(rule, "flows_into", f"{canary}-lake", scopes=(first.scope,)))
    world.background()
    world.vectors()
    folder = world.base / "exports" / canary
    exporting.export_shelf(world.home, folder)
    copy = snapshot.make_snapshot(world.home)
    done(world.person(first, "backup", "create"), "backup create")
    step.held(1, "no summary was made of it", summaries(world, first), control=True)
    step.held(
        2, "not by every path", world.shows(first, canary, paths=ALL) == set(ALL), control=True
    )
    on_disk = world.holding(canary)
    for part in ("memory.duckdb", "spool/", "snapshots/", "briefs/"):
        there = any(file.startswith(part) for file in on_disk)
        if part in ("memory.duckdb", "snapshots/"):  # the engine packs bytes: rows tell it then
            there = there or bool(world.tables(canary))
        step.held(2, f"its bytes are not in {part}", there, control=True)
    step.held(11, "the second scope does not read it", world.shows(second, canary), control=True)
    exported = "".join(one.read_text("utf-8") for one in folder.glob("*.jsonl"))
    step.held(11, "the export does not hold it", canary in exported, control=True)
    since = world.seq()
    erase(world, first, *_erasable(world, canary))  # 3 and 12
    _absent(step, world, first, canary, 4)
    world.feed_again(first, session)
    _absent(step, world, first, canary, 6)
    world.background()
    world.rebuild_index()
    world.vectors()
    _absent(step, world, first, canary, 8)
    _derived(step, world, first, canary)
    _audited(step, world, since, canary)
    _second(step, world, second, canary, folder)
    step.held(
        13,
        "the snapshot from before is still there",
        not copy.path.exists() or canary not in _bytes(copy),
    )
    step.held(4, "its twin is gone", world.shows(first, twin) >= {"search", "rules"}, control=True)
    step.held(9, "a sibling's summary is gone", world.shows(first, other), control=True)


def _audited(step: _Steps, world: World, since: int, canary: str) -> None:
    rows = world.ledger(since)
    told = any("forget" in row["verb"] or "erase" in row["verb"] for row in rows)
    step.held(10, "the ledger does not tell of it", told)
    step.held(10, "the ledger holds the value", canary not in json.dumps(rows, default=str))


def _bytes(copy: snapshot.Snapshot) -> str:
    return copy.path.read_bytes().decode("latin-1")


def _erasable(world: World, canary: str) -> list[str]:
    """Return what holds the canary and is no summary: those go with their sources."""
    names = world.named(canary)
    with world.store() as store:
        found = store.entries(names)
    return [one.name for one in found if one.kind != "summary"]


def _absent(step: _Steps, world: World, where: Project, canary: str, number: int) -> None:
    shown = world.shows(where, f"the {canary} canal freezes", canary, paths=ALL)
    step.held(number, f"it is read by {sorted(shown)}", not shown)
    tables = world.tables(canary)
    step.held(number, f"it is in the tables {tables}", not tables)
    files = world.holding(canary)
    step.held(number, f"its bytes are in {files[:5]}", not files)


def _derived(step: _Steps, world: World, where: Project, canary: str) -> None:
    names = list(summaries(world, where))
    with world.store() as store:
        texts = [one.content for one in store.live_entries(names)]
    step.held(9, "a summary holds it", not any(canary in text for text in texts))
    for kind, path in (("statements", "statements"), ("vectors", "similar"), ("index", "search")):
        step.held(9, f"{kind} hold it", canary not in world.reads(where, "canal", (path,))[path])
    folder = world.base / "exports" / world.token()
    exporting.export_shelf(world.home, folder)
    said = "".join(one.read_text("utf-8", "replace") for one in folder.glob("*.json*"))
    step.held(9, "a new export holds it", canary not in said)
    _backups(step, world, where, canary)


def _backups(step: _Steps, world: World, where: Project, canary: str) -> None:
    """Restore each backup from before into a home of its own, and look for it there."""
    found = done(world.person(where, "backup", "list", "--json"), "backup list").json
    step.held(9, "there is no backup from before", found, control=True)
    for one in found or ():
        folder = world.base / "restored" / world.token()
        into = ("backup", "restore", one["id"], "--into", str(folder))
        done(world.person(where, *into), "backup restore --into")
        with open_store(folder, write=False) as store:
            tables = residue.tables_holding(store, canary)
        held = [*tables, *files_holding(folder, canary)]
        step.held(9, f"a backup from before brings it back: {held}", not held)


def _second(step: _Steps, world: World, second: Project, canary: str, folder: Path) -> None:
    shown = world.shows(second, f"the {canary} canal", canary, paths=ALL)
    step.held(13, f"it is read there by {sorted(shown)}", not shown)
    fresh = world.sub_world()
    for file in ("key", "forgotten"):
        (fresh.home / file).write_bytes((world.home / file).read_bytes())
    importing.import_shelf(fresh.home, folder, author=PERSON, now=now())
    there = fresh.named(canary)
    step.held(13, f"the export from before brings it back: {there}", not there)


PROBES = (
    Probe(
        "deletion.thirteen_steps",
        "sequence",
        "What is erased is absent after its source, every job and every older copy, to the byte.",
        "rubric.sequence:STEPS",
        "before it, every read path and every kind of file has it; its twin stays",
        _sequence,
        "That the client's own transcript has forgotten it: that file is the client's.",
    ),
)

"""Portable tests, sixth room: a correction holds, and what is deleted stays deleted."""

from __future__ import annotations

import json

from hypatia_mem.memory.sharing import exporting, importing
from hypatia_mem.rubric.contradictions import CHECKS, SHAPES, matrix
from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.withdrawing import active, memory, withdraw
from hypatia_mem.rubric.world import ALL, PERSON, World, now
from hypatia_mem.store import snapshot

__all__ = ["PROBES"]


def _survives(world: World, check: Check) -> None:
    found = matrix(world)
    for shape, row in found.items():
        for name in CHECKS:
            check.claim(f"{shape}, {name}: {row[name]}", not row[name])
    for one in SHAPES:
        if one.current:
            said = found[one.name]["answer"]
            check.control(f"{one.name}: memory does not answer with what holds: {said}", not said)


def _retracted(world: World, check: Check) -> None:
    where, session = world.project(), world.session()
    wrong, other = world.token(), world.token()
    world.write(
        where,
        session,
        (f"remember: my sister {wrong} is a doctor", "Noted."),
        (f"remember: my brother {other} is a baker", "Noted."),
    )
    world.settle()
    check.control("both were believed", active(world, wrong) and active(world, other))
    withdraw(world, where, memory(world, wrong).name)
    world.feed_again(where, session)
    world.feed_again(where, session, new_ids=True)
    world.background()
    world.rebuild_index()
    check.claim("what was retracted is believed again", not active(world, wrong))
    told = world.reads(where, f"my sister {wrong}", ("rules", "brief"))
    check.claim("rules tell it", wrong not in told["rules"])
    check.claim("the brief states it", f"- my sister {wrong}" not in told["brief"])
    check.control(
        "everything else that was said is recalled", world.shows(where, other) >= {"rules"}
    )


def _deleted(world: World, check: Check) -> None:
    where, session = world.project(), world.session()
    gone, kept = world.token(), world.token()
    world.write(
        where,
        session,
        (f"remember: the {gone} cellar is flooded", "Noted."),
        (f"remember: the {kept} attic is dry", "Noted."),
    )
    world.settle()
    world.vectors()
    check.control("it was in the prompt", gone in world.brief(where))
    check.control("it was read by every path", world.shows(where, gone, paths=ALL) == set(ALL))
    since = world.seq()
    withdraw(world, where, *world.named(gone))
    check.claim("it is read at once", not world.shows(where, gone, paths=ALL))
    world.background()
    world.rebuild_index()
    world.feed_again(where, session)
    world.background()
    world.vectors()
    shown = world.shows(where, f"the {gone} cellar", gone, paths=ALL)
    check.claim(f"it is read after a restart by {sorted(shown)}", not shown)
    folder = world.base / "exports" / world.token()
    exporting.export_shelf(world.home, folder)
    said = "".join(path.read_text("utf-8", "replace") for path in folder.glob("*.json*"))
    check.claim("an export holds it", gone not in said)
    check.control("an export holds its sibling", kept in said)
    check.control("its sibling is read", world.shows(where, kept) >= {"search", "rules", "brief"})
    rows = world.ledger(since)
    check.claim("the ledger does not tell of it", any("forget" in row["verb"] for row in rows))
    check.claim("the ledger holds its words", gone not in json.dumps(rows, default=str))


def _shared(world: World, check: Check) -> None:
    """In two scopes, in a snapshot, in an export: deleted once, it is in none of them."""
    small = world.sub_world()
    first, second = small.project(), small.project()
    gone, own = small.token(), small.token()
    scopes = f"{first.scope},{second.scope}"
    for where in (first, second):
        small.turn(where, small.session(), "what is this place?")
    small.settle()
    name = f"ferry-{gone}"
    for line in (
        ("knowledge-create", name, "-d", f"the {gone} ferry sails at noon", "-t", "memory"),
        ("knowledge-create", f"quay-{own}", "-d", f"the {own} quay is wide", "-t", "memory"),
    ):
        small.person(first, *line, "--scopes", scopes)
    check.control("the second scope reads it", small.shows(second, gone) >= {"search", "rules"})
    folder = small.base / "export"
    exporting.export_shelf(small.home, folder)
    copy = snapshot.make_snapshot(small.home)
    withdraw(small, first, name)
    check.claim("the second scope reads it", not small.shows(second, gone, paths=ALL))
    (small.home / "memory.duckdb").unlink()
    snapshot.restore(small.home)
    small.rebuild_index()
    check.control("the snapshot was of before", copy.seq)
    check.claim("a snapshot from before restores it", not small.shows(second, gone, paths=ALL))
    check.control("the second scope reads its own", small.shows(second, own) >= {"search", "rules"})
    other = small.sub_world()
    for file in ("key", "forgotten"):
        (other.home / file).write_bytes((small.home / file).read_bytes())
    done = importing.import_shelf(other.home, folder, author=PERSON, now=now())
    there = other.named(gone)
    check.claim(f"an export from before restores it: {there}", not there and done.refused)
    check.control("the import brought the rest", other.named(own))


PROBES = (
    Probe(
        "correction.survives_reindex",
        "portable",
        "Five shapes of a correction hold through every job, a new index and the old words again.",
        "rubric.contradictions:matrix",
        "memory answers with what holds now",
        _survives,
        "That a model uses the corrected value once it is given.",
    ),
    Probe(
        "correction.retraction_without_replacement",
        "portable",
        "What is taken back without a new value is not told again.",
        "store.tombstones:Tombstones._refusal",
        "everything else the same session said is recalled",
        _retracted,
        "That it lasts: see tombstone.survives_ttl_and_prune.",
    ),
    Probe(
        "deletion.absent_after_reindex_and_restart",
        "portable",
        "What was forgotten is read by no path after every job, a new index and a new export.",
        "store.tombstones:Tombstones._bury",
        "a sibling from the same session is read by every path",
        _deleted,
        "That its bytes are gone: see the deletion sequence.",
    ),
    Probe(
        "deletion.absent_from_shared_copies",
        "portable",
        "Neither a second scope nor a snapshot nor an export from before brings it back.",
        "store.buried:follow",
        "the second scope reads its own, and the import brings the rest",
        _shared,
        "That a copy which was given to somebody else can be recalled.",
    ),
)

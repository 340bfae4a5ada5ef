"""Portable tests, second room: what is derived names its source, goes with it, is made again."""

from __future__ import annotations

import shutil

from hypatia_mem.model import Statement
from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.scopes import summaries, talk
from hypatia_mem.rubric.withdrawing import withdraw
from hypatia_mem.rubric.world import AGENT, ALL, WORKER, Project, World
from hypatia_mem.store import withdrawing

__all__ = ["PROBES"]


def _resolves(world: World, check: Check) -> None:
    where = world.project()
    token = world.token()
    world.turn(where, world.session(), f"remember: the {token} cluster is drained before upgrades")
    talk(world, where, f"the {token} cluster drops a node")
    world.condense(where)
    world.background()
    brief = world.brief(where)
    check.control("a claim reached the brief", f"the {token} cluster is drained" in brief)
    made = summaries(world, where)
    check.control("a summary was made", made)
    with world.store() as store:
        injected = store.rules([where.scope])
        check.control("a rule is injected", injected)
        for rule in injected:
            sources = [
                s.object for s in store.statements_of(rule.name) if s.predicate == "derivedFrom"
            ]
            there = store.live_entries(sources)
            check.claim(
                f"{rule.name} names no surviving source", sources and len(there) == len(sources)
            )
        for name, items in made.items():
            check.claim(
                f"{name} lacks a source", items and len(store.live_entries(items)) == len(items)
            )


def _reaches_derived(world: World, check: Check) -> None:
    where = world.project()
    token, other = world.token(), world.token()
    session = talk(world, where, f"the {token} cache grows without end", 4)
    world.condense(where)
    kept = talk(world, where, f"the {other} cache is flushed at night", 4)
    world.condense(where)
    source = f"msg-{session}-1"
    with world.change(AGENT) as txn:
        txn.put_statement(statement(f"{token}-cache", "mentioned_in", source, where))
        txn.put_statement(statement(f"{other}-cache", "mentioned_in", f"msg-{kept}-1", where))
    world.vectors()
    made = summaries(world, where)
    over = [name for name, items in made.items() if source in items]
    beside = [n for n, items in made.items() if any(kept in item for item in items)]
    check.control("a summary stands on the source", over)
    check.control("and one on a sibling", beside)
    said = {name: _text(world, [name]) for name in over}
    before = [world.shows(where, word, paths=ALL) for word in (token, other)]
    check.control(
        "both are read before", all(found >= {"search", "query", "similar"} for found in before)
    )
    withdraw(world, where, source)
    after = summaries(world, where)
    check.claim(
        "a summary still stands on the deleted source", not any(source in i for i in after.values())
    )
    same = [name for name in over if name in after and _text(world, [name]) == said[name]]
    check.claim("a summary of it stands as it was, with one source less", not same)
    with world.store() as store:
        check.claim("the source is there", not store.live_entries([source]))
        check.claim("an edge to it is there", not store.statements_of(source))
    check.claim(
        "its text is in a summary",
        f"report 0: the {token}" not in _text(world, list(after)).lower(),
    )
    check.claim("its words are searched", source not in world.agent(where, "search", token).out)
    check.claim(
        "its vector is compared", source not in world.reads(where, token, ("similar",))["similar"]
    )
    check.control("the sibling's summary stands", all(name in after for name in beside))
    with world.store() as store:
        check.control("the sibling's edge stands", store.statements_of(f"msg-{kept}-1"))
    check.control("the sibling is read", world.shows(where, other, paths=("search", "similar")))


def _rebuilt(world: World, check: Check) -> None:
    where = world.project()
    facts = [world.token() for _ in range(3)]
    world.turn(where, world.session(), f"remember: the {facts[0]} key turns twice")
    talk(world, where, f"the {facts[1]} door and the {facts[2]} window are stuck")
    world.condense(where)
    made = summaries(world, where)
    check.control("a summary was made", made)
    for folder in ("index", "briefs"):
        shutil.rmtree(world.home / folder)
    text = _text(world, sorted(made))
    with world.change(WORKER) as txn:
        withdrawing.withdraw(txn, list(made), reason="source withdrawn")
    check.control("the summaries are gone in between", not summaries(world, where))
    world.condense(where)
    world.rebuild_index()
    world.vectors()
    for fact in facts:
        check.claim(f"{fact} is not found again", "search" in world.shows(where, fact))
    check.claim("it is not in the assembled brief", facts[0] in world.brief(where))
    again = summaries(world, where)
    check.claim("the summary was not made again", again)
    check.claim("it does not say what it said", _text(world, sorted(again)) == text)
    check.control("the summary says something of the talk", "module_" in text or "report" in text)
    _from_the_spool(world, check)


def _from_the_spool(world: World, check: Check) -> None:
    """The store itself is lost, with every copy of it: spool and transcripts are the evidence."""
    small = world.sub_world()
    where, token = small.project(), small.token()
    small.turn(where, small.session(), f"remember: the {token} bridge is closed in winter")
    small.settle()
    check.control("it was stored", small.named(token))
    for path in [*small.home.glob("memory.duckdb*"), *(small.home / "snapshots").glob("*")]:
        path.unlink()
    for folder in ("index", "briefs"):
        shutil.rmtree(small.home / folder)
    small.settle()
    check.claim("a lost store is not made again from the spool", token in small.brief(where))


def statement(subject: str, predicate: str, object_: str, where: Project) -> Statement:
    """Return a statement of a project."""
    return Statement(subject, predicate, object_, scopes=(where.scope,))


def _text(world: World, names: list[str]) -> str:
    with world.store() as store:
        return "\n".join(entry.content for entry in store.live_entries(names))


PROBES = (
    Probe(
        "evidence.claim_resolves_to_source",
        "portable",
        "Every rule and every summary names material that is still there.",
        "store.summaries:put",
        "a claim reached the brief and a summary was made",
        _resolves,
        "That the source is accurate, or that the derivation was right.",
    ),
    Probe(
        "evidence.source_delete_reaches_derived",
        "portable",
        "Deleting a message takes out its summaries, edges, vectors and index entries.",
        "store.withdrawing:drop_above",
        "a sibling and everything derived from it stay",
        _reaches_derived,
        "That the bytes are gone: see the deletion sequence.",
    ),
    Probe(
        "evidence.rebuild_from_retained",
        "portable",
        "Index, briefs, summaries and the store itself are made again from what is retained.",
        "store.indexing:sync_index",
        "words no model could guess come back in search and in the brief",
        _rebuilt,
        "That a summary made by a model would be made again word for word.",
    ),
)

"""The seven marks: each mechanism at work on the one store, with its positive control."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypatia_mem.model import Trust
from hypatia_mem.rubric.negative import CASES, check_case
from hypatia_mem.rubric.probe import Absent, Check, Probe
from hypatia_mem.rubric.withdrawing import (
    active,
    done,
    memory,
    refusals,
    reject,
    remembered,
)
from hypatia_mem.rubric.world import ALL, Project, World, now
from hypatia_mem.store.connection import FILE
from hypatia_mem.store.ledger import verify_rows

__all__ = ["PROBES"]


def _tombstone(world: World, check: Check) -> None:
    where, session = world.project(), world.session()
    wrong, other = world.token(), world.token()
    world.turn(where, session, f"remember: the backup runs at {wrong}")
    world.turn(where, session, f"remember: the {other} lift is out of order")
    world.end(where, session)
    world.settle()
    unit = memory(world, wrong)
    check.control("it was taken in by the real hook", world.shows(where, wrong) >= {"rules"})
    reject(world, where, unit.name)
    since = world.seq()
    ran = world.agent(where, "remember", unit.content)
    check.claim("the value is taken in again under its name", not ran.ok)
    ran = world.agent(where, "knowledge-create", world.token(), "-d", unit.content)
    check.claim("the value is taken in under another name", not ran.ok)
    world.feed_again(where, session, new_ids=True)
    check.claim("reading the transcript again takes it in", not active(world, wrong))
    check.claim("no refusal is in the ledger", refusals(world, since) >= 3)
    said = json.dumps(world.ledger(since), default=str)
    check.claim("the ledger holds the value's words", wrong not in said)
    check.control("the other thing that was said is kept", world.shows(where, other) >= {"rules"})


def _trust(world: World, check: Check) -> None:
    world.needs("verify", "dispute", "reject", "review")
    where = world.project()
    tokens = {trust: world.token() for trust in Trust}
    names = {Trust.CANDIDATE: candidate(world, where, tokens[Trust.CANDIDATE])}
    for trust, token in tokens.items():
        if trust != Trust.CANDIDATE:
            names[trust] = remembered(world, where, f"the {token} valve is shut", by_agent=False)
    produce(world, where, names)
    with world.store() as store:
        states = {trust: store.entry(name) for trust, name in names.items()}
    for trust, entry in states.items():
        check.claim(
            f"no command makes an entry {trust}", entry is not None and entry.trust == trust
        )
    for trust in (Trust.CANDIDATE, Trust.REJECTED):
        words = _LIKE if trust == Trust.CANDIDATE else "the {0} valve is shut"
        shown = world.shows(where, words.format(tokens[trust]), tokens[trust], paths=ALL)
        check.claim(f"what is {trust} is read by {sorted(shown)}", not shown)
    for trust in (Trust.VERIFIED, Trust.ASSERTED):
        shown = world.shows(where, tokens[trust], paths=("search", "rules", "brief"))
        check.control(f"what is {trust} is read", shown == {"search", "rules", "brief"})
    queue = _queue(world, where)
    for trust in (Trust.CANDIDATE, Trust.DISPUTED, Trust.STALE):
        check.claim(f"what is {trust} is not in the review", names[trust] in queue)
    ran = world.agent(where, "verify", names[Trust.ASSERTED])
    check.claim("an agent verifies", not ran.ok)


def produce(world: World, where: Project, names: dict[Trust, str]) -> None:
    """Bring each entry into its state by the command a person has for it."""
    verbs = {
        Trust.VERIFIED: "verify",
        Trust.DISPUTED: "dispute",
        Trust.REJECTED: "reject",
        Trust.STALE: "stale",
    }
    for trust, verb in verbs.items():
        world.needs(verb)
        line = (verb, names[trust], "--reason", "the probe says so")
        done(world.person(where, *line), f"{verb} for {trust}")


_LIKE = "the {0} database must be migrated by hand before every release on monday"


def candidate(world: World, where: Project, token: str) -> str:
    """Let something be a candidate: an agent says what is like a value that was rejected."""
    reject(world, where, remembered(world, where, _LIKE.format(world.token())))
    name = remembered(world, where, _LIKE.format(token))
    with world.store() as store:
        entry = store.entry(name)
    if entry is None or entry.trust != Trust.CANDIDATE:
        raise Absent("what is like something rejected is not held back as a candidate")
    return name


def _bitemporal(world: World, check: Check) -> None:
    where = world.project()
    token = world.token()
    before = now() - timedelta(days=1)
    name = f"office-{token}"
    for line in (
        ("knowledge-create", name, "-d", f"the {token} office is in Bonn"),
        ("statement-create", name, "lies_in", f"{token}-bonn"),
    ):
        told = world.agent(
            where,
            *line,
            "--scopes",
            where.scope,
            "--valid-from",
            "2025-03-01",
            "--valid-to",
            "2025-06-30",
        )
        done(told, line[0])
    current = remembered(world, where, f"the {token} office is in Kiel")
    for kind, asked in (
        ("entry", ["$knowledge", ["$like", "data", f"%{token} office is in Bonn%"]]),
        ("statement", ["$statement", ["$eq", "subject", name]]),
    ):
        look = _asking(world, where, json.dumps(asked))
        check.control(f"the {kind} is not found in May", look("--as-of", "2025-05-10"))
        check.claim(f"the {kind} is found in September", not look("--as-of", "2025-09-10"))
        check.claim(f"the {kind} is found in January", not look("--as-of", "2025-01-10"))
        past = before.isoformat(timespec="seconds") + "Z"
        check.claim(
            f"the {kind} was known yesterday",
            not look("--as-of", "2025-05-10", "--as-known-at", past),
        )
    done(
        world.agent(where, "knowledge-update", name, "--valid-to", "2025-04-30"), "knowledge-update"
    )
    known = _asking(world, where, json.dumps(["$knowledge", ["$eq", "name", name]]))
    check.claim("a corrected end is not seen", not known("--as-of", "2025-05-10"))
    with world.store() as store:
        [entry] = store.entries([name])
    check.control("the earlier belief about its time is kept", entry.version == 2)
    held = json.dumps(["$knowledge", ["$eq", "name", current]])
    check.control(
        "what holds now is found now", _asking(world, where, held)("--as-of", _text(now()))
    )


def _asking(world: World, where: Project, expression: str) -> Callable[..., bool]:
    def look(*more: str) -> bool:
        ran = done(world.agent(where, "query", expression, "--json", *more), "query")
        return bool(ran.json)

    return look


def _text(at: datetime) -> str:
    return at.isoformat(timespec="seconds") + "Z"


def _scope(world: World, check: Check) -> None:
    token = world.token()
    own, twin = world.project(token), world.project(f"{token}-next")
    world.turn(own, world.session(), f"remember: the {token} crane lifts nine tons")
    world.turn(twin, world.session(), "what do we have here?")
    world.settle()
    world.vectors()
    check.control("its own scope reads it", world.shows(own, token, paths=ALL) == set(ALL))
    words = f"the {token} crane lifts nine tons"
    shown = world.shows(twin, words, f"{token} crane", paths=ALL)
    check.claim(f"another scope reads it by {sorted(shown)}", not shown)


def _audit(world: World, check: Check) -> None:
    where = world.project()
    token = world.token()
    name = f"{token}-tower"
    scoped = ("--scopes", where.scope)
    for verb, line in {
        "create": ("knowledge-create", name, "-d", f"the {token} tower leans", *scoped),
        "update": ("knowledge-update", name, "-d", f"the {token} tower stands"),
        "revert": ("revert", f"{name}@1"),
        "statement": ("statement-create", name, "stands_in", f"{token}-pisa", *scoped),
        "statement gone": ("statement-delete", name, "stands_in", f"{token}-pisa"),
        "undo": ("undo",),
        "redo": ("redo",),
        "forget": ("forget", "--id", name),
        "refusal": ("knowledge-create", f"{name}-2", "-d", f"the {token} tower leans", *scoped),
    }.items():
        since = world.seq()
        world.agent(where, *line)
        check.claim(f"{verb} leaves no row in the ledger", world.ledger(since))
    rows = world.ledger()
    check.claim("the ledger holds words", token not in json.dumps(rows, default=str))
    check.control("the chain is whole", verify_rows(rows) is None)
    end = len(rows)
    check.control("there are rows to tamper with", end > 9)
    for what, tampered in _tampered(rows).items():
        check.claim(f"{what} is not noticed", verify_rows(tampered) is not None)
    with world.store() as store:
        check.control("the store walks its own chain", store.verify_ledger() is None)
    _cut_off(world, check)


def _cut_off(world: World, check: Check) -> None:
    """Put the store's file of before in its place: a ledger without its end, whole in itself."""
    small = world.sub_world()
    where = small.project()
    remembered(small, where, "the tide comes twice a day", by_agent=False)
    before = (small.home / FILE).read_bytes()
    remembered(small, where, "the moon makes the tide", by_agent=False)
    check.control("it is whole before", small.person(where, "verify").ok)
    (small.home / FILE).write_bytes(before)
    ran = small.person(where, "verify")
    check.claim("an end that was cut off is not noticed", not ran.ok and "rewound" in ran.out)


def _tampered(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    middle = len(rows) // 2
    edited = [dict(row) for row in rows]
    edited[middle]["verb"] = "create entry"
    edited[middle]["actor"] = "somebody else"
    inserted = [*rows[:middle], dict(rows[middle]), *rows[middle:]]
    return {
        "an edit": edited,
        "an insertion": inserted,
        "a gap": rows[:middle] + rows[middle + 1 :],
    }


def _review(world: World, check: Check) -> None:
    world.needs("review")
    where = world.project()
    words = {what: world.token() for what in ("accept", "edit", "reject", "merge", "defer", "wait")}
    names = {what: candidate(world, where, token) for what, token in words.items()}
    home = remembered(world, where, f"the {words['merge']} harbour is closed", by_agent=False)
    queue = _queue(world, where)
    check.control("what waits is not in the queue", all(name in queue for name in names.values()))
    for what, name in names.items():
        if what in ("accept", "edit", "reject", "merge"):
            ran = world.agent(where, *_verdict(what, name, home))
            check.claim(f"an agent does {what}", not ran.ok)
    since = world.seq()
    for what, name in names.items():
        if what != "wait":
            ran = world.person(where, *_verdict(what, name, home))
            check.control(f"a person cannot {what}: {ran.err.strip()[:120]}", ran.ok)
    check.control("no verdict is in the ledger", len(world.ledger(since)) >= 5)
    left = _queue(world, where)
    check.control("what nobody touched is gone from the queue", names["wait"] in left)
    for what in ("accept", "edit", "reject", "merge", "defer"):
        check.claim(f"{what}: it is in the queue still", names[what] not in left)
    check.claim("what was accepted is not read", world.shows(where, words["accept"]) >= {"rules"})
    edited = world.shows(where, "after a week of tests", paths=("rules", "search"))
    check.claim("what was edited is not read", edited == {"rules", "search"})
    told = world.person(where, "history", names["edit"], "--withheld").out
    check.claim("the text before the edit is lost", "must be migrated by hand" in told)
    check.claim("what was rejected is read", not world.shows(where, words["reject"]))
    again = world.agent(where, "remember", _LIKE.format(words["reject"]))
    check.claim("what was rejected is taken in again", not again.ok)
    ran = world.person(
        where, "review", "accept", names["wait"], "--text", _LIKE.format(words["reject"])
    )
    check.claim("what was rejected is taken in as another's words", not ran.ok)
    with world.store() as store:
        merged = store.entry(home)
    check.claim("what was merged is not there", merged and names["merge"] in merged.synonyms)
    check.claim("what was put off is read", not world.shows(where, words["defer"]))


def _verdict(what: str, name: str, home: str) -> tuple[str, ...]:
    more = {
        "edit": ("--text", "the database is migrated after a week of tests"),
        "reject": ("--reason", "it is wrong"),
        "merge": (home,),
    }
    return ("review", what, name, *more.get(what, ()))


def _queue(world: World, where: Project) -> str:
    return done(world.person(where, "review", "--list", "--json"), "review").out


def _negative(world: World, check: Check) -> None:
    for case in CASES:
        check_case(world, check, case)


PROBES = (
    Probe(
        "rejected_value_tombstone",
        "marks",
        "A rejected value is kept as a keyed digest and refused whenever it comes again.",
        "store.tombstones:Tombstones._refusal",
        "the other thing said in the same session is kept",
        _tombstone,
    ),
    Probe(
        "explicit_trust_state",
        "marks",
        "Trust is a state; candidate and rejected withhold, and only a person verifies.",
        "store.entries:is_withheld",
        "what is verified and what is asserted is read",
        _trust,
    ),
    Probe(
        "bi_temporal_validity",
        "marks",
        "When a thing was true is kept apart from when that was known.",
        "jse.options:Options",
        "what holds is found at its time, and what holds now, now",
        _bitemporal,
    ),
    Probe(
        "scope_enforced_in_retrieval",
        "marks",
        "A stored scope filters every read path, by whole element.",
        "store.opened:Store.rules",
        "its own scope reads it by every path",
        _scope,
    ),
    Probe(
        "append_only_mutation_audit",
        "marks",
        "Every change and every refusal is a chained row, without a word of what it was about.",
        "store.ledger:verify_rows",
        "the chain is whole before it is tampered with",
        _audit,
    ),
    Probe(
        "human_review_surface",
        "marks",
        "A person accepts, edits, rejects, merges or defers what waits for them.",
        "memory.review:accept",
        "what nobody touched stays in the queue",
        _review,
    ),
    Probe(
        "negative_retrieval_assertion",
        "marks",
        "Committed cases say what must not be retrieved, over every read path.",
        "rubric.negative:CASES",
        "each case has a twin that must be retrieved",
        _negative,
    ),
)

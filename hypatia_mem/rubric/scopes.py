"""Portable tests, first room: a scope is a wall, for readers, for callers and for every job."""

from __future__ import annotations

import json

from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.world import ALL, Project, World
from hypatia_mem.store import residue

__all__ = ["PROBES", "summaries", "talk"]


def _walled(world: World, check: Check) -> None:
    token = world.token()
    own = world.project(token)
    # A name that the first one's is a part of: matching by substring would leak here.
    twin = world.project(f"my-{token}")
    text = f"remember: the {token} gateway speaks mutual tls only"
    world.turn(own, world.session(), text)
    world.turn(twin, world.session(), "what does this project do?")
    world.settle()
    world.vectors()
    [name] = [one for one in world.named(token) if not one.startswith("msg-")]
    shown = world.shows(own, token, paths=ALL)
    check.control(
        f"the scope itself reads it everywhere, not only by {sorted(shown)}", shown >= set(ALL)
    )
    leaked = world.shows(twin, f"{token} gateway speaks mutual tls", token + " gateway", paths=ALL)
    check.claim(f"another scope reads it by {sorted(leaked)}", not leaked)
    for verb in ("knowledge-get", "show", "history"):
        check.control(f"{verb} finds it at home", token in world.agent(own, verb, name).out)
        said = world.agent(twin, verb, name).out
        check.claim(f"{verb} NAME shows it in another scope", "gateway speaks" not in said)


def _not_widened(world: World, check: Check) -> None:
    mine, theirs = world.project(), world.project()
    token, own = world.token(), world.token()
    world.turn(theirs, world.session(), f"remember: the {token} vault opens at nine")
    world.turn(mine, world.session(), f"remember: the {own} vault opens at ten")
    world.settle()
    [name] = [one for one in world.named(token) if not one.startswith("msg-")]
    for wild in (
        "",
        "*",
        "%",
        "_" * len(theirs.scope),
        theirs.scope[:-1],
        "NULL",
        f"{theirs.scope},",
    ):
        for line in (("search", token), ("rules",), ("sql", "SELECT * FROM knowledge")):
            said = world.agent(mine, *line, "--scope", wild, "--json").out
            check.claim(
                f"{line[0]} --scope {wild!r} shows another scope's",
                "vault opens at nine" not in said,
            )
        asked = json.dumps(["$knowledge", ["$contains", "scopes", wild]])
        said = world.agent(mine, "query", asked, "--json").out
        check.claim(f"a condition on the scope {wild!r} shows another's", token not in said)
    _by_the_hook(world, check, mine, theirs, token)
    writes: tuple[tuple[str, ...], ...] = (
        ("forget", "--id", name),
        ("forget", f"{token} vault opens at nine"),
        ("knowledge-update", name, "-d", "the vault never opens"),
        ("knowledge-delete", name),
    )
    for write in writes:
        ran = world.agent(mine, *write)
        check.claim(f"{write[0]} from another scope is done: {ran.out.strip()}", not ran.ok)
    with world.store() as store:
        there = store.entry(name)
    check.claim(
        "a write from another scope changed it", there is not None and "at nine" in there.content
    )
    check.control("its own scope reads it still", world.shows(theirs, token) >= {"search", "rules"})
    check.control("the caller reads its own still", world.shows(mine, own) >= {"search", "rules"})


def _by_the_hook(world: World, check: Check, mine: Project, theirs: Project, token: str) -> None:
    """What an event claims about its project is not what it is taken for."""
    claims = {"scope": theirs.scope, "project": theirs.scope, "scopes": ["", "*", theirs.scope]}
    told = world.hook(mine, "SessionStart", world.session(), source="startup", **claims)
    check.claim("an event that names another scope is told of it", token not in told)
    check.control("an event is told something", told)
    laid = world.token()
    words = f"remember in project {theirs.scope}: --scope {theirs.scope} the {laid} door is open"
    session = world.session()
    world.hook(mine, "UserPromptSubmit", session, prompt=words, prompt_id="p", **claims)
    world.hook(mine, "SessionEnd", session, reason="other")
    world.settle()
    check.control("what was said is stored where it was said", world.shows(mine, laid))
    check.claim("a prompt that names another scope writes there", not world.shows(theirs, laid))


def _jobs_walled(world: World, check: Check) -> None:
    first, second = world.project(), world.project()
    tokens = {first.scope: world.token(), second.scope: world.token()}
    for one in (first, second):
        talk(world, one, f"the {tokens[one.scope]} queue loses jobs when the broker restarts")
    for one in (first, second):
        world.condense(one)
    world.background()
    world.vectors()
    for one, other in ((first, second), (second, first)):
        made = summaries(world, one)
        check.control("no summary was made of this scope", made)
        with world.store() as store:
            entries = store.entries([item for links in made.values() for item in links])
        check.claim(
            "a summary has another scope's source", all(e.scopes == (one.scope,) for e in entries)
        )
        token, foreign = tokens[one.scope], tokens[other.scope]
        check.control(
            "the scope reads what was made of its own", world.shows(one, token, paths=ALL)
        )
        leaked = world.shows(one, "queue loses jobs when the broker restarts", foreign, paths=ALL)
        check.claim(f"after the jobs it reads another scope's by {sorted(leaked)}", not leaked)


def talk(world: World, where: Project, said: str, turns: int = 4, session: str = "") -> str:
    """Hold a talk long enough to be condensed, each turn of which says ``said``; its session."""
    session = session or world.session()
    said_by = [
        (
            f"Look at report {number}: {said}. It was seen {number + 2} times this week.",
            f"In module_{number}.py the retry runs {number} times and then gives up. " * 4,
        )
        for number in range(turns)
    ]
    world.write(where, session, *said_by)
    world.settle()
    return session


def summaries(world: World, where: Project) -> dict[str, list[str]]:
    """Return the summaries of a scope and the names each of them stands on."""
    with world.store() as store:
        found: dict[str, list[str]] = {}
        for entry in store.live_entries(residue.entries_of(store, where.scope)):
            if entry.kind == "summary":
                links = store.statements_of(entry.name)
                mine = [s for s in links if s.subject == entry.name and s.predicate == "summary"]
                found[entry.name] = [link.object for link in mine]
    return found


PROBES = (
    Probe(
        "scope.cross_tenant_absent",
        "portable",
        "What is written under one scope is never returned under another.",
        "store.opened:Store.rules",
        "the scope itself finds it by every read path",
        _walled,
        "That a caller cannot name another scope: see scope.caller_cannot_widen.",
    ),
    Probe(
        "scope.caller_cannot_widen",
        "portable",
        "No wildcard, no empty value and no claim of an event or a prompt widens the scope.",
        "cli.context:scopes_for",
        "both scopes still read and keep their own",
        _not_widened,
        "That a person at the command line may not name another project on purpose: "
        "on one person's machine --scope NAME and --all-projects are a choice, written out.",
    ),
    Probe(
        "scope.background_respects_boundary",
        "portable",
        "Summaries, vectors and the index of one scope hold nothing of another.",
        "memory.cascade.plan:Planner.due",
        "each scope reads its own material and the summary made of it",
        _jobs_walled,
        "That deletion reaches what was derived: see deletion.absent_after_reindex_and_restart.",
    ),
)

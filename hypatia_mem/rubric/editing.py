"""The seven tests of memory as an editing surface: what a person changes is what holds."""

from __future__ import annotations

from hypatia_mem.model import Entry
from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.scopes import summaries, talk
from hypatia_mem.rubric.withdrawing import active, age, done, memory, remembered, withdraw
from hypatia_mem.rubric.world import PERSON, Project, World
from hypatia_mem.store import residue

__all__ = ["PROBES", "VERBS"]

# Every verb of an editor, and the commands by which a person has it.
VERBS = {
    "read": ("show", "history"),
    "edit": ("edit",),
    "delete": ("delete",),
    "pin": ("pin", "unpin"),
    "merge": ("graph",),
    "regenerate": ("regenerate", "cascade"),
    "suppress": ("suppress", "unsuppress"),
    "go back": ("diff", "revert", "undo", "redo"),
    "judge": ("verify", "dispute", "reject", "review"),
    "forget": ("forget", "erase"),
}


def edit(world: World, where: Project, name: str, text: str) -> None:
    """Change an entry's text as a person does."""
    world.needs("edit")
    done(world.person(where, "edit", name, "--text", text), "edit")


def _survives(world: World, check: Check) -> None:
    where, session = world.project(), world.session()
    old, new, other = world.token(), world.token(), world.token()
    world.write(where, session, (f"remember: the gate code is {old}", f"The {other} gate, noted."))
    talk(world, where, f"the {other} gate sticks", session=session)
    world.condense(where)
    unit = memory(world, old)
    edit(world, where, unit.name, f"the gate code is {new}")
    made = sorted(summaries(world, where))
    check.control("a summary was made", made)
    edit(world, where, made[0], f"the {other} gate was repaired by {new}")
    world.feed_again(where, session)
    world.feed_again(where, session, new_ids=True)
    world.condense(where)
    age(world)
    with world.store() as store:
        after = {one.name: one.content for one in store.entries([unit.name, made[0]])}
    check.claim(
        "the edited memory was overwritten", after.get(unit.name) == f"the gate code is {new}"
    )
    check.claim("the edited summary was overwritten", new in after.get(made[0], ""))
    # A summary tells what was said that day, and the message still says it.
    kept = [one for one in active(world, old) if one.kind != "summary"]
    again = [one.name for one in kept if f"code is {old}" in one.content]
    check.claim(f"the old text is believed again: {again}", not again)
    check.control("the automatic passes did something", len(world.named(other)) > 4)


def _refed(world: World, check: Check) -> None:
    where, session = world.project(), world.session()
    gone, kept = world.token(), world.token()
    world.write(
        where,
        session,
        (f"remember: the {gone} fuse is blown", "Noted."),
        (f"remember: the {kept} lamp is lit", "Noted."),
    )
    world.settle()
    unit = memory(world, gone)
    withdraw(world, where, unit.name)
    world.feed_again(where, session)
    world.feed_again(where, session, new_ids=True)
    world.background()
    check.claim("the source brought it back", not active(world, gone))
    check.control("its sibling is there", active(world, kept))


def _pinned(world: World, check: Check) -> None:
    where = world.project()
    pin, small = world.token(), world.token()
    name = remembered(world, where, f"the {pin} mast is the first thing to look at")
    little = remembered(world, where, f"the {small} sail is the second thing to look at")
    huge = remembered(world, where, f"the hull is old. {'It creaks and it leaks. ' * 400}")
    for one in (huge, name, little):
        _pin(world, where, one)
    with world.change(PERSON) as txn:
        for number in range(80):
            text = f"rope {number} is {'long ' * 60}"
            txn.put_entry(
                Entry(
                    f"memory:rope-{where.scope}-{number}",
                    text,
                    ("memory",),
                    (where.scope,),
                    kind="memory",
                )
            )
    age(world)
    world.rebuild_index()
    brief = world.brief(where)
    dropped = 80 - brief.count("rope ")
    check.control(f"the budget was not under pressure: {dropped} dropped", dropped > 40)
    check.claim("a pinned memory was dropped", f"the {pin} mast" in brief)
    check.claim("a huge pin starves a small one", f"the {small} sail" in brief)
    first = brief.index("rope ") if "rope " in brief else len(brief)
    check.claim("a pinned memory does not come first", brief.index(f"the {pin} mast") < first)
    with world.store() as store:
        there = store.entries([name, huge, little])
    check.claim(
        "time removed a pinned memory", all(one.pinned for one in there) and len(there) == 3
    )
    check.control("what is not pinned is there too", world.named("rope 79 is"))


def _pin(world: World, where: Project, name: str) -> None:
    world.needs("pin")
    done(world.person(where, "pin", name), "pin")


def _merged(world: World, check: Check) -> None:
    where = world.project()
    word = world.token()
    sources: list[str] = []
    for number in (1, 2):
        session = world.session()
        text = f"remember: the {word} bell number {number} rings at dawn"
        world.write(where, session, (text, "Noted."))
        world.settle()
        sources.append(f"msg-{session}-1")
    first, second = (one.name for one in active(world, word) if one.kind == "memory")
    before = {name: _derived_from(world, name) for name in (first, second)}
    check.control(
        "each names its own source",
        sorted(one for found in before.values() for one in found) == sorted(sources),
    )
    done(world.person(where, "graph", "merge", first, second), "graph merge")
    one = memory(world, word)
    check.claim(
        "its provenance is not the union", sorted(_derived_from(world, one.name)) == sorted(sources)
    )
    check.claim("a name is lost", {first, second} <= {one.name, *one.synonyms})
    for number in (0, 1):
        _dies_with(world, check, number)


def _dies_with(world: World, check: Check, gone: int) -> None:
    """What was merged of two lessons goes with the source of the one and of the other."""
    where = world.project()
    word, kept = world.token(), world.token()
    sessions = [world.session() for _ in range(3)]
    for session, said in zip(sessions, (f"{word} one", f"{word} two", kept), strict=True):
        world.write(where, session, (f"why does the bell {said} ring at night?", "It is the wind."))
    world.settle()
    sources = [f"msg-{session}-1" for session in sessions]
    names = [_lesson(world, where, f"the {word} bell {n} is heard", sources[n]) for n in (0, 1)]
    other = _lesson(world, where, f"the {kept} bell is hoarse", sources[2])
    done(world.person(where, "graph", "merge", *names), "graph merge")
    with world.store() as store:
        there = [one.name for one in store.live_entries([*names, other])]
    check.control("two lessons are one", sorted(there) == sorted([names[0], other]))
    withdraw(world, where, sources[gone])
    with world.store() as store:
        left = [one.name for one in store.live_entries([*names, other])]
    check.claim(f"it outlives the source of number {gone + 1}", names[0] not in left)
    check.control("what has a source of its own stays", left == [other])


def _lesson(world: World, where: Project, text: str, source: str) -> str:
    """Let an agent learn something from a message; the lesson's name."""
    name = world.token()
    line = ("knowledge-create", name, "-d", text, "--scopes", where.scope)
    done(world.agent(where, *line), "knowledge-create")
    tie = ("statement-create", name, "derivedFrom", source, "--scopes", where.scope)
    done(world.agent(where, *tie), "statement-create")
    return name


def _derived_from(world: World, name: str) -> list[str]:
    with world.store() as store:
        links = store.statements_of(name)
    return [
        link.object for link in links if link.predicate == "derivedFrom" and link.subject == name
    ]


def _previewed(world: World, check: Check) -> None:
    where = world.project()
    token = world.token()
    talk(world, where, f"the {token} anchor drags")
    world.condense(where)
    [name, *_] = summaries(world, where)
    before = _dump(world)
    for line in _previews(world, name):
        ran = world.person(where, *line)
        check.control(f"{' '.join(line)} goes well", ran.ok)
        check.control(f"{' '.join(line)} shows something: {ran.err.strip()[:80]}", ran.out.strip())
        check.claim(f"{' '.join(line)} changed the store", _dump(world) == before)
    check.control("the summary is there", name in summaries(world, where))


def _previews(world: World, name: str) -> list[tuple[str, ...]]:
    """Return what shows a change and makes none; a regeneration is stored only when accepted."""
    lines: list[tuple[str, ...]] = [("cascade", "plan"), ("forget", "--id", name, "--dry-run")]
    if world.has("delete"):
        lines.append(("delete", name, "--dry-run"))
    world.needs("regenerate")
    return [*lines, ("regenerate", name), ("regenerate", name, "--words", "12")]


def _dump(world: World) -> object:
    """Return the store's rows in an order of their own: what is the same, has not changed."""
    with world.store() as store:
        return residue.digests(store)


def _reachable(world: World, check: Check) -> None:
    where = world.project()
    for verb, commands in VERBS.items():
        for command in commands:
            check.claim(f"{verb}: there is no command {command}", world.has(command))
            if world.has(command):
                told = world.person(where, command, "--help")
                check.control(f"{command} --help tells nothing", told.ok and len(told.out) > 80)


def _readable(world: World, check: Check) -> None:
    where = world.project()
    words = [world.token() for _ in range(4)]
    name = f"oak-{world.token()}"
    line = ("knowledge-create", name, "-d", f"the oak is {words[0]}", "--scopes", where.scope)
    done(world.person(where, *line), "knowledge-create")
    for word in words[1:]:
        edit(world, where, name, f"the oak is {word}")
    told = world.person(where, "history", name).out
    for number, word in enumerate(words, 1):
        check.claim(f"version {number} cannot be read", f"the oak is {word}" in told)
    check.claim("who changed it is not told", told.count("a person") >= 4)
    ran = world.person(where, "diff", f"{name}@1", f"{name}@3")
    check.claim("two versions cannot be compared", words[0] in ran.out and words[2] in ran.out)
    done(world.person(where, "revert", f"{name}@2"), "revert")
    with world.store() as store:
        [entry] = store.entries([name])
    check.claim("an earlier text cannot be put back", words[1] in entry.content)
    check.control("putting it back is a version of its own", entry.version == 5)


PROBES = (
    Probe(
        "editing_surface.survives_automatic_pass",
        "editing",
        "What a person edited is not overwritten by extraction, cascade or time.",
        "store.entries:EntryWrites._put_again",
        "the automatic passes ran and made something",
        _survives,
    ),
    Probe(
        "editing_surface.delete_holds_against_refeed",
        "editing",
        "What a person deleted does not come back with its source.",
        "store.tombstones:Tombstones._refusal",
        "its sibling from the same source is there",
        _refed,
    ),
    Probe(
        "editing_surface.pin_survives_pressure",
        "editing",
        "A pin survives time and a full brief, and a huge one does not starve a small one.",
        "memory.listed:rules_block",
        "the brief was so full that more than half of the rest was dropped",
        _pinned,
    ),
    Probe(
        "editing_surface.merge_is_union",
        "editing",
        "A merge keeps the sources and the names of both, and goes with the source of either.",
        "memory.graph.merge:merge",
        "each of the two named a source of its own, and what has another source stays",
        _merged,
    ),
    Probe(
        "editing_surface.rejected_preview_byte_identical",
        "editing",
        "A preview that is not taken leaves every row as it was.",
        "memory.cascade.plan:plan",
        "the preview showed something",
        _previewed,
    ),
    Probe(
        "editing_surface.verbs_reachable",
        "editing",
        "Every verb of an editor is a command of the shipped program.",
        "cli.app:COMMANDS",
        "each command tells how it is used",
        _reachable,
    ),
    Probe(
        "editing_surface.previous_value_readable",
        "editing",
        "After three edits all four texts can be read, compared and put back.",
        "store.history:entry_states",
        "putting one back is a version of its own",
        _readable,
    ),
)

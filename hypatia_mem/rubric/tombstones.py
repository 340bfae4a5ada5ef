"""Portable tests, third room: what was rejected stays rejected, by value, for good."""

from __future__ import annotations

from dataclasses import dataclass

from hypatia_mem.rubric.probe import Check, Probe
from hypatia_mem.rubric.withdrawing import (
    active,
    age,
    memory,
    refusals,
    reject,
    remembered,
    units,
    withdraw,
)
from hypatia_mem.rubric.world import Project, World
from hypatia_mem.store import residue

__all__ = ["PROBES", "lookalikes"]


def _laundering(world: World, check: Check) -> None:
    where = world.project()
    wrong, right, near = (world.token() for _ in range(3))
    value = f"the billing database answers on port {wrong}"
    name = remembered(world, where, value)
    neighbour = remembered(world, where, f"invoices are printed by {near} every night")
    check.control("it was believed at first", active(world, wrong))
    reject(world, where, name)
    _launder(world, check, where, _Value(name, value, wrong, world.last_operation()), right)
    check.control("the neighbour is recalled", world.shows(where, near) >= {"search", "rules"})
    check.control("the neighbour has its name", active(world, near)[0].name == neighbour)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that was rejected: its name, its text, the word in it, and the operation."""

    name: str
    text: str
    token: str
    operation: str


def _launder(world: World, check: Check, where: Project, wrong: _Value, right: str) -> None:
    """Supersede, restate under every name, corroborate, revert and undo: all by an agent."""
    since = world.seq()
    name, value = wrong.name, wrong.text
    right_value = f"the billing database answers on port {right}"
    other = remembered(world, where, right_value, by_agent=False)
    for line in (
        ("remember", value),
        ("remember", f"{value.upper()}!", "--kind", "memory"),
        ("knowledge-create", f"billing-{right}", "-d", value, "--scopes", where.scope),
        ("knowledge-update", other, "-d", value),
        ("knowledge-update", name, "-d", value),
        ("revert", f"{name}@1"),
        ("undo", wrong.operation),
        ("statement-create", name, "is_a", "memory", "--scopes", where.scope),
        ("statement-create", "billing", "says", value, "-d", value, "--scopes", where.scope),
    ):
        ran = world.agent(where, *line)
        back = active(world, wrong.token)
        check.claim(f"{line[0]} brought it back ({ran.out.strip()[:80]})", not back)
    check.claim("no refusal is in the ledger", refusals(world, since))
    check.claim("it is read again", not world.shows(where, value, wrong.token))
    again = world.agent(where, "remember", value)
    check.claim("its rejection was lifted on the way", not again.ok and "refused" in again.err)
    check.control("what superseded it is recalled", world.shows(where, right) >= {"search"})


def _survives_age(world: World, check: Check) -> None:
    where = world.project()
    wrong, right, near = (world.token() for _ in range(3))
    value = f"the billing database answers on port {wrong}"
    name = remembered(world, where, value)
    reject(world, where, name)
    rejected = _Value(name, value, wrong, world.last_operation())
    remembered(world, where, f"invoices are printed by {near} every night")
    age(world)
    _launder(world, check, where, rejected, right)
    age(world)
    check.claim("it came back with time", not active(world, wrong))
    check.control("what was written beside it is recalled", world.shows(where, near) >= {"rules"})


def _keys(world: World, check: Check) -> None:
    where = world.project()
    token, other = world.token(), world.token()
    value = f"never deploy the {token} service to the open ocean"
    reject(world, where, remembered(world, where, value))
    for how, text in lookalikes(value).items():
        ran = world.agent(where, "remember", text)
        check.claim(f"taken in {how}", not ran.ok and not _holding(world, where, text))
    check.claim("one is active", not active(world, token))
    paraphrase = f"on the high seas nobody may run what {token} calls a service"
    ran = world.agent(where, "remember", paraphrase)
    there = units(world, token)
    if there and not active(world, token):
        check.note("a paraphrase waits for review: it is a candidate")
    elif there:
        check.note("a paraphrase is stored: only look-alikes are refused")
    check.control("a paraphrase is kept, for readers or for review", ran.ok and there)
    remembered(world, where, f"never feed the {other} parrot in the morning")
    check.control("a value of its own is stored", active(world, other))


def lookalikes(value: str) -> dict[str, str]:
    """Return other spellings of a value, by what was done to it."""
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value)
    bold = "".join(chr(0x1D41A + ord(c) - 97) if "a" <= c <= "z" else c for c in value)
    return {
        "in capitals": value.upper(),
        "as a title": value.title(),
        "with wide gaps": value.replace(" ", "   "),
        "over lines": value.replace(" ", "\n", 2).replace(" ", "\t"),
        "with a zero-width space": value.replace("e", "e\u200b"),
        "with a soft hyphen": value.replace("o", "o\u00ad", 1),
        "with a word joiner": value.replace(" ", "\u2060 "),
        "with no-break spaces": value.replace(" ", "\u00a0"),
        "in wide letters": wide,
        "in bold letters": bold,
        "with Cyrillic letters": value.translate(str.maketrans("aeopcx", "аеорсх")),
        "with Greek letters": value.translate(str.maketrans("ovi", "ονι")),
        "with an end mark": value + "!!",
        "in quotation marks": f"“{value}”",
    }


def _holding(world: World, where: Project, text: str) -> bool:
    """Tell whether exactly this text is stored here, in whatever state but rejected."""
    with world.store() as store:
        found = store.entries(residue.entries_of(store, where.scope))
    return any(one.content == text and one.trust != "rejected" for one in found)


def _extracted(world: World) -> tuple[Project, str, str, str]:
    """Let two prompts be remembered, forget one, delete the other; feed the transcript again."""
    where, session = world.project(), world.session()
    wrong, other = world.token(), world.token()
    world.write(
        where,
        session,
        (f"remember: the staging host is called {wrong}", "Noted."),
        (f"remember: the {other} printer stands on the second floor", "Noted."),
    )
    world.settle()
    for token in (wrong, other):
        unit = memory(world, token)
        if token == wrong:
            withdraw(world, where, unit.name)
        else:
            world.person(where, "knowledge-delete", unit.name)
    return where, session, wrong, other


def _reextracted(world: World, check: Check) -> None:
    where, session, wrong, other = _extracted(world)
    check.control("the other was deleted, not rejected", not active(world, other))
    world.feed_again(where, session)
    check.claim("the same lines brought it back", not active(world, wrong))
    world.feed_again(where, session, new_ids=True)
    world.background()
    check.claim("the same words in new lines brought it back", not active(world, wrong))
    rules = world.reads(where, wrong, ("rules", "brief"))
    check.claim("rules show it", wrong not in rules["rules"])
    check.claim(
        "the brief states it", f"- the staging host is called {wrong}" not in rules["brief"]
    )
    check.control("the same feeding extracts the other again", active(world, other))


def _no_second(world: World, check: Check) -> None:
    where, session, wrong, other = _extracted(world)
    since = world.seq()
    with world.store() as store:
        before = {one.name for one in store.entries(residue.entries_holding(store, wrong))}
    world.feed_again(where, session, new_ids=True)
    world.background()
    names = {one.name for one in units(world, wrong)}
    check.claim(f"a unit carries it: {sorted(names)}", not names)
    with world.store() as store:
        found = store.entries(residue.entries_holding(store, wrong))
    after = {one.name for one in found if one.kind != "message"}
    check.claim(f"a unit was made for it: {sorted(after - before)}", after <= before)
    count = refusals(world, since)
    check.claim("the write was not refused", count)
    check.note(f"consulted: the write was refused ({count} rows of the ledger say so)")
    check.control("what was said beside it is recalled", world.shows(where, other) >= {"rules"})


_NORMAL = "store.tombstones:canonical"
_ASKED = "store.tombstones:Tombstones._refusal"
PROBES = (
    Probe(
        "tombstone.laundering_sequence",
        "portable",
        "Superseding, restating and corroborating do not walk a rejected value back in.",
        _ASKED,
        "a neighbour that was never rejected, and what superseded it, are recalled",
        _laundering,
        "That the value is kept out of another scope, where nobody rejected it.",
    ),
    Probe(
        "tombstone.survives_ttl_and_prune",
        "portable",
        "Twenty years of every job there is leave the rejection in force.",
        _ASKED,
        "what was written beside it is recalled",
        _survives_age,
        "How much room tombstones take: some 200 bytes each, and they are never removed.",
    ),
    Probe(
        "tombstone.key_normalization_attack",
        "portable",
        "Fourteen look-alikes of a rejected value are refused: the key is the value, not a string.",
        _NORMAL,
        "a paraphrase and a value of its own are kept",
        _keys,
        "That every paraphrase is noticed: meaning is not compared.",
    ),
    Probe(
        "tombstone.reextraction_stays_inactive",
        "portable",
        "Reading the same transcript again does not bring a rejected value back.",
        _ASKED,
        "the same reading extracts its other value again",
        _reextracted,
        "Whether the write was refused or absorbed: see tombstone.no_second_memory_unit.",
    ),
    Probe(
        "tombstone.no_second_memory_unit",
        "portable",
        "The write is refused: no second unit is made and hidden.",
        _ASKED,
        "what was said beside it is recalled",
        _no_second,
        "That the raw message is gone: it is the evidence, and stays until it is erased.",
    ),
)

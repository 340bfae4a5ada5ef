"""From a topic's exchanges to a work unit: the lesson by a template of its kind, not the log.

Every line is a piece of what was said, chosen by what its section asks for (a cause, a decision,
what was wrong) and by how much it covers; nothing is invented, so each line has its message. What
a section cannot be filled with is left out; a unit without its essential section is *unsure*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.kinds import Kind, corrections, is_correction
from hypatia_mem.memory.extract.templates import ESSENTIAL, is_refuse, is_vague
from hypatia_mem.memory.extract.topics import Exchange, Said, closes, is_thin
from hypatia_mem.memory.summarise import facts, hygiene, naming
from hypatia_mem.memory.summarise.extractive import choose
from hypatia_mem.memory.summarise.protocol import Item
from hypatia_mem.memory.summarise.units import Unit, units_of

__all__ = ["WorkUnit", "work_unit"]

_ROOM = 45  # words of a section


_Sections = list[tuple[str, list[Unit]]]


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """A lesson as it will be stored; ``sources`` are the messages that its lines stand on."""

    kind: Kind
    slug: str
    content: str
    sources: tuple[str, ...]
    topics: tuple[str, ...]
    sure: bool
    day: str


@dataclass(frozen=True, slots=True)
class _Pool:
    """The pieces of what was said, by who said it and in which exchange."""

    asked: Sequence[tuple[int, Unit]]
    answered: Sequence[tuple[int, Unit]]
    idf: Mapping[str, float]


def work_unit(
    kind: Kind, exchanges: Sequence[Exchange], idf: Mapping[str, float]
) -> WorkUnit | None:
    """Return the work unit of a topic; None when it is trivial or says nothing particular."""
    if kind is Kind.TRIVIAL or not exchanges:
        return None
    names: list[str] = []
    pool = _pool(exchanges, names, idf)
    sections = _told_once(_SECTIONS[kind](pool, exchanges))
    essential = ESSENTIAL[kind]
    lines: list[str] = []
    used: list[int] = []
    for title, units in sections:
        if units:
            lines += [f"## {title}", *(f"- {_line(unit)}" for unit in units), ""]
            used += [unit.item for unit in units]
    filled = {title for title, units in sections if units}
    if not filled - {"Context"}:
        return None
    content = "\n".join(lines).strip()
    named = [_line(unit) for title, units in sections if title != "Lesson" for unit in units]
    day = exchanges[0].all[0].at.strftime("%Y-%m-%d")
    return WorkUnit(
        kind=kind,
        slug=naming.suggest(named, idf, day),
        content=content,
        sources=tuple(dict.fromkeys(names[item] for item in used)),
        topics=_topics(named, idf),
        sure=essential <= filled
        and bool(facts.tokens(content))
        and not _is_vague(sections, essential)
        and _is_settled(exchanges),
        day=day,
    )


def _is_vague(sections: _Sections, essential: frozenset[str]) -> bool:
    """Tell whether a section that matters says nothing but what would fit any project."""
    return any(
        title in essential and units and all(is_vague(_line(unit)) for unit in units)
        for title, units in sections
    )


def _told_once(sections: _Sections) -> _Sections:
    """Leave out what an earlier section has said; the context gives way to all others.

    A lesson may be what was objected: it is what to do, and why the attempt was wrong.
    """
    context, *rest = sections
    seen: list[Unit] = []
    told: _Sections = []
    for title, units in rest:
        own = [unit for unit in units if unit not in seen or title == "Lesson"]
        seen += own
        told.append((title, own))
    kept = [unit for unit in context[1] if unit not in seen]
    return [(context[0], kept), *told]


def _pool(exchanges: Sequence[Exchange], names: list[str], idf: Mapping[str, float]) -> _Pool:
    asked: list[tuple[int, Unit]] = []
    answered: list[tuple[int, Unit]] = []
    for number, one in enumerate(exchanges):
        for said in one.all:
            into = asked if said.role == "user" else answered
            into += [(number, unit) for unit in _units(len(names), said)]
            names.append(said.name)
    return _Pool(asked, answered, idf)


def _units(number: int, said: Said) -> Iterable[Unit]:
    text = hygiene.blank(said.text, spoken_by=said.role)
    for unit in units_of(number, Item(said.name, text, said.role)):
        passing = cues.PASSING.search(unit.text) or is_refuse(unit.text)
        if not passing and not unit.code and any(char.isalnum() for char in unit.text):
            yield unit


def _line(unit: Unit) -> str:
    text = unit.text.lstrip("-*• ").strip()
    return cues.ANNOUNCES.sub("", text, count=1).lstrip(" ,:;-–，：") or text


def _topics(texts: Sequence[str], idf: Mapping[str, float]) -> tuple[str, ...]:
    """Return up to three words that the unit is about, as tags."""
    slug = naming.suggest(texts, idf, "")
    return tuple(part for part in slug.split("-") if len(part) > 2 and not part.isdigit())[:3]


def _is_settled(exchanges: Sequence[Exchange]) -> bool:
    """Tell whether the last word was not a complaint."""
    last = exchanges[-1].asked
    return closes(last) or not (is_correction(last) and not exchanges[-1].answers)


# --- sections -------------------------------------------------------------------------------------


def _context(pool: _Pool) -> tuple[str, list[Unit]]:
    first = [unit for _, unit in pool.asked if not is_thin(unit.text)][:1]
    return "Context", first


def _picked(pool: _Pool, units: Iterable[Unit], room: int = _ROOM, most: int = 3) -> list[Unit]:
    found = list(units)
    return choose(found, room, pool.idf)[:most] if found else []


def _matching(units: Iterable[tuple[int, Unit]], cue: Callable[[str], object]) -> list[Unit]:
    return [unit for _, unit in units if cue(unit.text)]


def _one_shot(pool: _Pool, _: Sequence[Exchange]) -> _Sections:
    solution = _picked(pool, [unit for _, unit in pool.answered])
    rest = [unit for _, unit in pool.answered if unit not in solution]
    detail = [unit for unit in rest if facts.tokens(unit.text) or facts.is_negation(unit.text)]
    return [_context(pool), ("Solution", solution), ("Key Detail", _picked(pool, detail, 25, 1))]


def _correction(pool: _Pool, exchanges: Sequence[Exchange]) -> _Sections:
    wrong = {id(one) for one in corrections(exchanges)}
    numbers = [n for n, one in enumerate(exchanges) if id(one) in wrong]
    first, last = numbers[0], numbers[-1]
    initial = [unit for number, unit in pool.answered if number < first]
    objected = [unit for number, unit in pool.asked if number in numbers]
    right = [unit for number, unit in pool.answered if number >= last]
    lesson = [unit for unit in objected if facts.is_marked(unit.text) or is_correction(unit.text)]
    return [
        _context(pool),
        ("Initial Attempt", _picked(pool, initial, 30, 2)),
        ("Why It Was Wrong", _picked(pool, objected, _ROOM, 3)),
        ("Correct Approach", _picked(pool, right)),
        ("Lesson", _picked(pool, lesson, 30, 1)),
    ]


def _exploration(pool: _Pool, _: Sequence[Exchange]) -> _Sections:
    decided = _matching([*pool.asked, *pool.answered], facts.is_decision)
    said = [unit for _, unit in pool.answered if unit not in decided]
    why = _picked(pool, [unit for unit in said if cues.CAUSE.search(unit.text)], 30, 2)
    return [
        _context(pool),
        ("Findings", _picked(pool, [unit for unit in said if unit not in why], 70, 5)),
        ("Decisions", _picked(pool, decided, 40, 3)),
        ("Rationale", why),
    ]


def _bug_fix(pool: _Pool, _: Sequence[Exchange]) -> _Sections:
    symptoms = _matching(pool.asked, cues.ERROR.search)
    causes = _matching(pool.answered, cues.CAUSE.search)
    fixes = [unit for unit in _matching(pool.answered, cues.FIX.search) if unit not in causes[:1]]
    return [
        _context(pool),
        ("Symptoms", _picked(pool, symptoms, 40, 3)),
        ("Root Cause", _picked(pool, causes, 40, 2)),
        ("Fix", _picked(pool, fixes[-6:], _ROOM, 3)),
    ]


def _design(pool: _Pool, _: Sequence[Exchange]) -> _Sections:
    both = [*pool.asked, *pool.answered]
    decided = [unit for unit in _matching(both, facts.is_decision)]
    decided = decided or [unit for _, unit in pool.answered[-3:]]
    options = [unit for unit in _matching(both, cues.CHOICE.search) if unit not in decided]
    why = [unit for unit in _matching(pool.answered, cues.CAUSE.search) if unit not in decided]
    return [
        _context(pool),
        ("Options", _picked(pool, options, _ROOM, 3)),
        ("Decision", _picked(pool, decided[-4:], 40, 2)),
        ("Why", _picked(pool, why, 40, 2)),
    ]


_SECTIONS: Mapping[Kind, Callable[[_Pool, Sequence[Exchange]], _Sections]] = {
    Kind.ONE_SHOT: _one_shot,
    Kind.CORRECTION_CHAIN: _correction,
    Kind.EXPLORATION: _exploration,
    Kind.BUG_FIX: _bug_fix,
    Kind.DESIGN_DECISION: _design,
}

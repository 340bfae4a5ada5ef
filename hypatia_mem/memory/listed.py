"""The part of a brief that lists what is remembered, within so many units. Pure.

Order is priority: taboos before rules before goals before memories, the project's own before global
ones, newest first. What is pinned has its room before anything else has, in whatever kind: each pin
its fair share, so that a huge one is cut and a small one is whole. What does not fit is counted in
one honest line that says how to see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from hypatia_mem.memory.quoting import quote_line, units
from hypatia_mem.model import GLOBAL_SCOPE, Entry

__all__ = ["HEADINGS", "ITEM_UNITS", "choose", "rules_block"]

HEADINGS = (
    ("taboo", "Taboos: never do these"),
    ("rule", "Rules: always do these"),
    ("goal", "Goals: what is being worked towards"),
    ("memory", "Remembered"),
    ("pinned", "Pinned"),  # what is of another kind
)
ITEM_UNITS = 700
MOST_GOALS = 5  # that are listed: the newest
_LEAST = 60  # units of a pin that is cut; below it is counted as left out
_OWN_LINE = 80  # for the line that owns up to what is missing
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as everywhere inside


def rules_block(scope: str, entries: Sequence[Entry], room: int, marks: Mapping[str, str]) -> str:
    """Return the list, ``room`` units of it at most; ``marks``: by name, what stands before it."""
    chosen = choose(scope, entries, room, marks)
    shown: list[str] = []
    for kind, title in HEADINGS:
        mine = [line for one, line in chosen if line and _kind(one) == kind]
        shown += [f"{title}:", *mine] if mine else []
    return "\n".join([*shown, *_owning_up([one for one, line in chosen if not line])])


def choose(
    scope: str, entries: Sequence[Entry], room: int, marks: Mapping[str, str]
) -> list[tuple[Entry, str]]:
    """Return the entries, what is told first at first, each with its line.

    The line of one for which there is no room is empty.
    """
    ranked = sorted(entries, key=lambda one: _rank(scope, one))
    titles = {kind: f"{title}:" for kind, title in HEADINGS}
    left = room - _OWN_LINE
    lines = _pins(scope, ranked, left, marks)  # by place among the ranked
    begun = {_kind(ranked[place]) for place in lines}
    left -= sum(units(line) + 1 for line in lines.values())
    left -= sum(units(titles[kind]) + 1 for kind in begun)
    rest = [place for place, one in enumerate(ranked) if not one.pinned]
    goals = [place for place in rest if _kind(ranked[place]) == "goal"]
    rest = [place for place in rest if place not in goals[MOST_GOALS:]]
    for place in sorted(rest, key=lambda place: list(titles).index(_kind(ranked[place]))):
        kind = _kind(ranked[place])
        line = _line(scope, ranked[place], marks, ITEM_UNITS)
        cost = units(line) + 1 + (0 if kind in begun else units(titles[kind]) + 1)
        # One over-long item must not starve the short ones behind it: go on looking.
        if cost <= left:
            lines[place] = line
            begun.add(kind)
            left -= cost
    order = sorted(
        range(len(ranked)), key=lambda place: (list(titles).index(_kind(ranked[place])), place)
    )
    return [(ranked[place], lines.get(place, "")) for place in order]


def _pins(
    scope: str, ranked: Sequence[Entry], left: int, marks: Mapping[str, str]
) -> dict[int, str]:
    """Return the lines of what is pinned: the shorter whole, the longer cut to what is left."""
    pins = {place: one for place, one in enumerate(ranked) if one.pinned}
    kinds = {_kind(one) for one in pins.values()}
    left -= sum(units(title) + 2 for kind, title in HEADINGS if kind in kinds)
    whole = {place: _line(scope, one, marks, ITEM_UNITS) for place, one in pins.items()}
    lines: dict[int, str] = {}
    for done, place in enumerate(sorted(whole, key=lambda place: units(whole[place]))):
        share = left // (len(pins) - done)
        line = whole[place]
        if units(line) + 1 > share:
            around = units(line) - units(quote_line(pins[place].content, ITEM_UNITS))
            if share - around - 1 < _LEAST:
                continue
            line = _line(scope, pins[place], marks, share - around - 1)
        lines[place] = line
        left -= units(line) + 1
    return lines


def _owning_up(omitted: Sequence[Entry]) -> list[str]:
    if not omitted:
        return []
    noun = "entry" if len(omitted) == 1 else "entries"
    goals = [one.kind == "goal" for one in omitted]
    where = [*([] if all(goals) else ["rules"]), *(["goal list"] if any(goals) else [])]
    told = ", ".join(f"hypatia-mem {one}" for one in where)
    return [f"({len(omitted)} more {noun} not shown here: {told})"]


def _kind(entry: Entry) -> str:
    return entry.kind if entry.kind in ("taboo", "rule", "goal", "memory") else "pinned"


def _line(scope: str, entry: Entry, marks: Mapping[str, str], limit: int) -> str:
    mark = marks.get(entry.name, "")
    line = f"- {mark} " if mark else "- "
    line += quote_line(entry.content, limit)
    if entry.scopes == (GLOBAL_SCOPE,) and scope:
        line += " (all projects)"
    return line + _validity(entry)


def _validity(entry: Entry) -> str:
    """Say since when and until when an entry is true, as far as somebody said so."""
    start, end = entry.valid_from, entry.valid_to
    parts = [
        *([] if start is None else [f"from {start:%Y-%m-%d %H:%M}"]),
        *([] if end is None else [f"until {end:%Y-%m-%d %H:%M}"]),
    ]
    return f" (true {' '.join(parts)} UTC)" if parts else ""


def _rank(scope: str, entry: Entry) -> tuple[bool, bool, float, str]:
    own = bool(scope) and scope in entry.scopes
    age = -(entry.created_at - _EPOCH).total_seconds() if entry.created_at is not None else 0.0
    return (not entry.pinned, not own, age, entry.name)

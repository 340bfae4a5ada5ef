"""The options of the top operator: JSON to ``Options``."""

from __future__ import annotations

import difflib
import json
from datetime import datetime

from hypatia_mem.jse.calls import Call
from hypatia_mem.jse.fields import read_moment, resolve
from hypatia_mem.jse.nodes import (
    Condition,
    Field,
    Json,
    KHop,
    Options,
    Search,
    Shown,
    Similar,
    Sort,
    Where,
    leaves,
)
from hypatia_mem.jse.operands import MOST, split_path
from hypatia_mem.jse.operators import OPTIONS
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = ["check_names", "read_options"]

_SPECIAL = {
    "score": "only rows of $search or $similar have a score",
    "hop": "only rows of $k-hop have a hop",
}
_WHOLE = ("format", "data", "tags", "synonyms", "figures", "scopes")


def check_names(call: Call) -> None:
    """Raise ExpressionError for an option that does not exist."""
    for key in call.options:
        if key not in OPTIONS:
            near = difflib.get_close_matches(key, OPTIONS, 1, 0.5)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            note = f"Options of the top operator: {', '.join(OPTIONS)}."
            fail(call.where.inside(key), f"unknown option {key!a}{meant}", note=note)


def read_options(call: Call, condition: Condition) -> Options:
    """Return the options of a query whose condition is read already.

    Raises:
        ExpressionError: an option has a wrong value, or does not fit the query.
    """
    catalog = "statement" if call.operator == "$statement" else "knowledge"
    if call.options.get("catalog", catalog) != catalog:
        fail(
            call.where.inside("catalog"),
            f'option catalog must be "{catalog}" here, because {call.operator} returns '
            f"{catalog} rows",
        )
    limit = _number(call, "limit", 100, least=-1)
    specials = _specials(condition)
    options = Options(
        limit=None if limit == -1 else limit,
        offset=_number(call, "offset", 0, least=0),
        order=_order(call, catalog, specials),
        count=_flag(call, "count"),
        fields=_fields(call, catalog, specials),
        as_of=_moment(call, "as_of"),
        as_known_at=_moment(call, "as_known_at"),
    )
    if options.count:
        for key in ("limit", "offset", "order", "fields"):
            if key in call.options:
                root = {k: v for k, v in call.where.root.items() if k != key}
                message = (
                    f"option {key} does not go with count, which counts every row that matches"
                )
                fail(call.where.inside(key), message, fix=root)
    return options


def _specials(condition: Condition) -> set[str]:
    found = [leaf for leaf, negated in leaves(condition) if not negated]
    specials = set()
    if any(isinstance(leaf, Search | Similar) for leaf in found):
        specials.add("score")
    if any(isinstance(leaf, KHop) for leaf in found):
        specials.add("hop")
    return specials


def _number(call: Call, key: str, default: int, *, least: int) -> int:
    value = call.options.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return value
    meaning = " (-1 = every row)" if least < 0 else ""
    fail(
        call.where.inside(key),
        f"option {key} must be a whole number from {least} to {MOST}{meaning}",
    )


def _flag(call: Call, key: str) -> bool:
    value = call.options.get(key, False)
    if not isinstance(value, bool):
        fail(call.where.inside(key), f"option {key} is true or false, got {describe(value)}")
    return value


def _moment(call: Call, key: str) -> datetime | None:
    if key not in call.options:
        return None
    moment = read_moment(call.options[key])
    if moment is None:
        fail(
            call.where.inside(key),
            f"option {key} is a time, got {describe(call.options[key])} that is none; "
            'write it as "2025-01-31" or "2025-01-31T09:30:00Z"',
        )
    return moment


# --- order ----------------------------------------------------------------------------------------


def _order(call: Call, catalog: str, specials: set[str]) -> tuple[Sort, ...]:
    if "order" not in call.options:
        return ()
    value = call.options["order"]
    where = call.where.inside("order")
    found = [_sort(*item, catalog, specials) for item in _items(value, where)]
    if not found:
        fail(where, "option order needs at least one field")
    return tuple(found)


def _items(value: Json, where: Where) -> list[tuple[str, str, Where]]:
    """Return (field, direction, place) of every form an order may be written in."""
    if isinstance(value, str):
        name, _, direction = value.strip().partition(" ")
        return [(name, direction.strip() or "asc", where)]
    if isinstance(value, dict):
        return [(key, _direction(v, where), where.inside(key)) for key, v in value.items()]
    if isinstance(value, list):
        if len(value) == 2 and str(value[1]).lower() in ("asc", "desc"):
            return [(_name(value[0], where), value[1], where)]
        places = [(item, where.inside(index)) for index, item in enumerate(value)]
        if any(isinstance(item, list) and len(item) != 2 for item in value):
            fail(where, _order_forms("a list of another length than two in it"))
        return [found for item, place in places for found in _items(item, place)]
    fail(where, _order_forms(describe(value)))


def _direction(value: Json, where: Where) -> str:
    if not isinstance(value, str):
        fail(where, _order_forms(describe(value)))
    return value


def _name(value: Json, where: Where) -> str:
    if not isinstance(value, str):
        fail(where, f"a field name is text, got {describe(value)}")
    return value


def _order_forms(got: str) -> str:
    return (
        f'option order is "field", "field desc", a list of these or {{"field": "desc"}}, got {got}'
    )


def _sort(name: str, direction: str, where: Where, catalog: str, specials: set[str]) -> Sort:
    if direction.lower() not in ("asc", "desc"):
        fail(where, f"the direction of an order is asc or desc, got {json.dumps(direction[:40])}")
    descending = direction.lower() == "desc"
    name = name.removeprefix("$")
    if name in _SPECIAL:
        _check_special(name, specials, where)
        return Sort(None, descending, name)
    field = resolve(split_path(name, where), catalog, where)
    if field.kind == "list":
        fail(where, f"{field.name} is a list and has no order")
    return Sort(field, descending)


def _check_special(name: str, specials: set[str], where: Where) -> None:
    if name not in specials:
        note = f'For a key of that name inside JSON data write "data.{name}".'
        fail(where, _SPECIAL[name], note=note)


# --- fields ---------------------------------------------------------------------------------------


def _fields(call: Call, catalog: str, specials: set[str]) -> tuple[Shown, ...]:
    if "fields" not in call.options:
        return ()
    value = call.options["fields"]
    where = call.where.inside("fields")
    if isinstance(value, str):
        fail(where, "option fields is a list of field names", fix=replaced(where, [value]))
    if not isinstance(value, list) or not value:
        fail(where, f"option fields is a list of field names, got {describe(value)}")
    found: dict[str, Shown] = {}
    for index, item in enumerate(value):
        place = where.inside(index)
        if not isinstance(item, str):
            fail(place, f"a field name is text, got {describe(item)}")
        name = item.removeprefix("$")
        found.setdefault(name, _shown(name, catalog, specials, place))
    return tuple(found.values())


def _shown(name: str, catalog: str, specials: set[str], where: Where) -> Shown:
    if name in _SPECIAL:
        _check_special(name, specials, where)
        return Shown(name, None, name)
    steps = split_path(name, where)
    if steps == ("content",):
        return Shown(name, None, "content")
    if steps[0] == "content":
        steps = steps[1:]
        if steps[0] not in _WHOLE:
            fail(where, f"content has {', '.join(_WHOLE)}, so {name!r} names nothing")
    field: Field = resolve(steps, catalog, where)
    return Shown(name, field)

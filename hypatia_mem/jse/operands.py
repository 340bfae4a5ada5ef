"""From JSON operands to checked values: fields, scalars, patterns, the parts of a triple.

A string that starts with one ``$`` is a symbol, and where a value is expected it is its text;
``$$x`` is the text ``$x``; ``$*`` is the wildcard of ``$triple`` and ``$k-hop`` and plain text
elsewhere; a field may carry a leading ``$``. ``["$quote", value]`` hands its argument through
unread, wherever a value or a field is expected.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from hypatia_mem.jse.calls import Call, Operand, check_arity, read_call
from hypatia_mem.jse.fields import PARTS, fitting, moment_of, resolve
from hypatia_mem.jse.nodes import (
    Compare,
    Condition,
    Contained,
    ContentIs,
    Direction,
    Field,
    Has,
    Json,
    JsonContains,
    KHop,
    Not,
    Or,
    Scalar,
    Triple,
    Value,
    Where,
)
from hypatia_mem.jse.operators import OPERATORS
from hypatia_mem.jse.pointing import describe, fail, replaced
from hypatia_mem.jse.rows import triple_text
from hypatia_mem.model import normal_predicate

__all__ = [
    "compare",
    "content",
    "either",
    "field",
    "has",
    "json_contains",
    "k_hop",
    "one",
    "split_path",
    "string",
    "text_of",
    "triple",
    "unquoted",
]

MOST = 2**31 - 1
_FIELD = re.compile(r"[\w-]+(?:\[\d{1,9}\])*(?:\.[\w-]+(?:\[\d{1,9}\])*)*")
_STEP = re.compile(r"[\w-]+|\[\d+\]")
_DEEPEST_LISTS = 6  # of a pattern: what the engine takes to read them grows fourfold with each
_DIRECTIONS: Mapping[str, Direction] = {
    "forward": "forward",
    "backward": "backward",
    "both": "both",
}


# --- values ---------------------------------------------------------------------------------------


def unquoted(operand: Operand) -> Json:
    """Return the operand as a value: ``$quote`` opened, ``$$`` unescaped, symbols as their text."""
    value = operand.value
    if isinstance(value, str):
        return value[1:] if value[:2] == "$$" else value
    call = read_call(value, operand.where) if isinstance(value, list | dict) else None
    if call is None:
        return value
    if call.operator == "$quote" and not call.options:
        return _quoted(call, value)
    fail(
        operand.where,
        f"expected a value, got the call {call.operator}",
        fix=None if call.operator in OPERATORS else replaced(operand.where, ["$quote", value]),
    )


def _quoted(call: Call, value: Json) -> Json:
    inner = value[call.operator] if isinstance(value, dict) else None
    if isinstance(inner, list) and len(inner) != 1:
        return inner  # {"$quote": [..]}: the object form quotes the list itself
    check_arity(call)
    return call.operands[0].value


def text_of(value: str, where: Where) -> str:
    """Return a text as the store keeps it; half of a surrogate pair is an error."""
    if any("\ud800" <= char <= "\udfff" for char in value):
        fail(Where(None, (), where.text), "the text holds half of a surrogate pair")
    return value.replace("\0", "\u2400")


def scalar(value: Json, where: Where) -> Scalar:
    """Return text, a finite number, true, false or null."""
    if isinstance(value, str):
        return text_of(value, where)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        try:
            finite = math.isfinite(float(value))
        except OverflowError:
            finite = False
        if not finite:
            fail(where, "the number is too large")
        return value
    fail(where, f"expected text, a number, true, false or null, got {describe(value)}")


def one(call: Call, operand: Operand) -> Scalar:
    """Return the only value an operator takes."""
    value = unquoted(operand)
    if isinstance(value, list):
        fix = None
        if call.operator in ("$contains", "$eq") and all(isinstance(v, str) for v in value):
            fix = replaced(call.where, ["$has", call.operands[0].value, value])
        fail(operand.where, f"{call.operator} expects one value, got a list", fix=fix)
    return scalar(value, operand.where)


def string(call: Call, operand: Operand) -> str:
    """Return the text an operator takes."""
    value = unquoted(operand)
    if not isinstance(value, str):
        what = "a pattern" if call.operator == "$like" else "text"
        fail(operand.where, f"{call.operator} expects {what}, got {describe(value)}")
    if call.operator in ("$search", "$similar") and not value.strip():
        fail(operand.where, f"{call.operator} expects at least one word")
    return text_of(value, operand.where)


# --- fields ---------------------------------------------------------------------------------------


def field(operand: Operand, catalog: str) -> Field:
    """Return the field an operand names."""
    value = operand.value
    if isinstance(value, list | dict):
        value = unquoted(operand)
    elif isinstance(value, str) and value[:1] == "$" and value[:2] != "$$":
        value = value[1:]
    if not isinstance(value, str):
        fail(operand.where, f"a field name is text, got {describe(value)}")
    return resolve(split_path(value, operand.where), catalog, operand.where)


def split_path(name: str, where: Where) -> tuple[str | int, ...]:
    """Return the steps of a field name. Raises ExpressionError for what is none (I7)."""
    if not _FIELD.fullmatch(name) or len(name) > 300:
        fail(
            where,
            f"invalid field name {json.dumps(name[:80])}: expected a JSON path such as "
            '"tags", "meta.author" or "tags[0]"',
        )
    return tuple(int(step[1:-1]) if step[0] == "[" else step for step in _STEP.findall(name))


def _key(operand: Operand, key: str, catalog: str) -> Field:
    name = key[1:] if key[:1] == "$" else key
    place = operand.where.inside(key)
    return resolve(split_path(name, place), catalog, place)


# --- operators with operands of their own ---------------------------------------------------------


def either(condition: Compare | Has) -> Condition:
    """Return a condition that asks for a predicate in each of its spellings, all others as it is.

    Predicates are stored in one spelling, and whoever asks may use another: ``worksAt`` asks for
    ``works_at`` too.
    """
    target = condition.field
    if isinstance(condition, Has):
        more = tuple(one for said in condition.values for one in _spelt(said))
        if target.kind == "triple":
            return Or((condition, Has(Field(("predicate",), "text", "predicate"), more)))
        if target.column == "predicate" and not target.rest:
            return replace(condition, values=more)
        return condition
    said = condition.value
    if condition.operator not in ("$eq", "$ne") or not isinstance(said, str):
        return condition
    if target.kind == "triple":
        values: tuple[Value, Value] = (said, _normal_triple(said))
    elif target.column == "predicate" and not target.rest:
        values = _spelt(said)
    else:
        return condition
    found = Or(tuple(replace(condition, operator="$eq", value=one) for one in values))
    return Not(found) if condition.operator == "$ne" else found


def _spelt(said: Value) -> tuple[Value, Value]:
    """Return a predicate as it is asked for, and as it is stored; the same SQL for every text."""
    return said, normal_predicate(said) if isinstance(said, str) else said


def _as_stored(target: Field, value: Json) -> Json:
    """Return the one value that a field is asked for, a predicate in the spelling of the store."""
    spelt = target.column == "predicate" and not target.rest and isinstance(value, str)
    return normal_predicate(value) if spelt else value


def _normal_triple(key: str) -> str:
    """Return the key of a triple with its predicate as it is stored; what is none stays."""
    try:
        parts = next(csv.reader([key]), [])
    except csv.Error:
        return key
    return triple_text([parts[0], normal_predicate(parts[1]), parts[2]]) if len(parts) == 3 else key


def compare(operator: str, target: Field, value: Scalar, where: Where) -> Compare:
    """Return a comparison whose value has the field's type."""
    if target.kind == "list" and operator not in ("$eq", "$ne") and value is not None:
        fail(where, f"{target.name} is a list and has no order: {operator}")
    wanted = fitting(target, value, where)
    moment = moment_of(wanted) if target.kind == "json" and isinstance(wanted, str) else None
    return Compare(operator, target, wanted, moment)


def has(target: Field, operand: Operand) -> Has:
    """Return ``$has`` with its values; one value or a list of them."""
    value = unquoted(operand)
    quoted = value is not operand.value
    if isinstance(value, dict):
        fail(operand.where, "$has value must be a scalar or array of scalars, got an object")
    if not isinstance(value, list):
        return Has(target, (fitting(target, scalar(value, operand.where), operand.where),))
    if not value:
        fail(operand.where, "$has needs at least one value, the list is empty")
    found = []
    for index, item in enumerate(value):
        place = operand.where if quoted else operand.where.inside(index)
        inner = item if quoted else unquoted(Operand(item, place))
        if isinstance(inner, list | dict):
            fail(place, f"$has value must be a scalar or array of scalars, got {describe(inner)}")
        found.append(fitting(target, scalar(inner, place), place))
    return Has(target, tuple(found))


def content(operand: Operand, catalog: str) -> ContentIs:
    """Return ``$content`` with one comparison for each key."""
    value = _object("$content", operand)
    pairs = []
    for key, wanted in value.items():
        place = operand.where.inside(key)
        target = _key(operand, key, catalog)
        inner = unquoted(Operand(wanted, place))
        if isinstance(inner, list):
            fix = replaced(operand.where, {**value, key: inner[0]}) if len(inner) == 1 else None
            fail(place, f"$content: {target.name} expects one value, got a list", fix=fix)
        pairs.append(compare("$eq", target, _as_stored(target, scalar(inner, place)), place))
    return ContentIs(tuple(pairs))


def json_contains(operand: Operand, catalog: str) -> JsonContains:
    """Return ``$json-contains`` with one pattern for each key."""
    value = _object("$json-contains", operand)
    quoted = value is not operand.value
    parts = []
    for key, wanted in value.items():
        place = operand.where.inside(key)
        target = _key(operand, key, catalog)
        raw = wanted if quoted else _pattern(wanted, place)
        parts.append(_contained(target, _checked(raw, place, 0), place))
    return JsonContains(tuple(parts))


def _object(name: str, operand: Operand) -> dict[str, Json]:
    value = operand.value
    if (isinstance(value, list) and value[:1] == ["$quote"]) or (
        isinstance(value, dict) and set(value) == {"$quote"}
    ):
        value = unquoted(operand)
    if not isinstance(value, dict):
        fail(operand.where, f"{name} expects a JSON object, got {describe(value)}")
    return value


def _pattern(value: Json, where: Where) -> Json:
    """Return a pattern with its symbols read: ``$$`` unescaped, ``$quote`` opened."""
    if isinstance(value, str):
        return unquoted(Operand(value, where))
    if not isinstance(value, list | dict):
        return value
    if read_call(value, where) is not None:
        return unquoted(Operand(value, where))
    if isinstance(value, list):
        return [_pattern(item, where.inside(index)) for index, item in enumerate(value)]
    return {
        key[1:] if key[:2] == "$$" else key: _pattern(item, where.inside(key))
        for key, item in value.items()
    }


def _checked(value: Json, where: Where, lists: int) -> Json:
    if isinstance(value, dict):
        return {text_of(k, where): _checked(v, where, lists) for k, v in value.items()}
    if isinstance(value, list):
        if lists == _DEEPEST_LISTS:
            fail(where, f"$json-contains: lists are nested deeper than {_DEEPEST_LISTS} levels")
        return [_checked(v, where, lists + 1) for v in value]
    return scalar(value, where)


def _contained(target: Field, pattern: Json, where: Where) -> Contained:
    """Return a part of ``$json-contains``; what can never be in the field is an error."""
    if target.kind == "json":
        return Contained(target, pattern)
    if target.column == "data" and not isinstance(pattern, str):
        return Contained(Field(target.steps, "json", "data", (), target.where), pattern)
    if target.column == "synonyms" and isinstance(pattern, dict):
        return _contained_synonyms(target, pattern, where)
    if isinstance(pattern, dict):
        fail(where, f"$json-contains: {target.name} holds no object")
    if target.kind != "list":
        if isinstance(pattern, list):
            fail(where, f"$json-contains: {target.name} holds one value, got a list")
        return Contained(target, fitting(target, _as_stored(target, pattern), where))
    if pattern is None:
        return Contained(target, None)
    items = pattern if isinstance(pattern, list) else [pattern]
    for item in items:
        if not isinstance(item, str):
            fail(where, f"{target.name} holds text elements, got {describe(item)}")
    return Contained(target, items)


def _contained_synonyms(target: Field, pattern: dict[str, Json], where: Where) -> Contained:
    found: dict[str, list[str]] = {}
    for key, names in pattern.items():
        items = names if isinstance(names, list) else [names]
        if key not in PARTS or not all(isinstance(item, str) for item in items):
            fail(where, "synonyms of a statement are lists under subject, predicate or object")
        found.setdefault(PARTS[key], []).extend(items)
    return Contained(target, found)


def triple(call: Call, catalog: str, root: Json) -> Triple:
    """Return ``$triple`` with its parts."""
    _statement_only(call, catalog, root)
    parts = [_part(call, operand) for operand in call.operands]
    if parts == [None, None, None]:
        fail(
            call.where,
            "$triple requires at least one non-wildcard argument",
            note='Every statement there is: ["$statement"]',
        )
    return Triple(parts[0], parts[1], parts[2])


def k_hop(call: Call, catalog: str, root: Json) -> KHop:
    """Return ``$k-hop`` with its operands; the direction may also be an option of its own."""
    _statement_only(call, catalog, root)
    start = _part(call, call.operands[0])
    if start is None:
        fail(
            call.operands[0].where,
            "$k-hop starts at one subject, got the wildcard",
            note='Every statement of a predicate: ["$statement", ["$triple", "$*", "knows", "$*"]]',
        )
    predicate = _part(call, call.operands[1])
    depth = call.operands[2].value
    if not isinstance(depth, int) or isinstance(depth, bool) or not 1 <= depth <= MOST:
        fail(
            call.operands[2].where,
            f"$k-hop: depth must be a positive integer, got {json.dumps(depth)[:60]}",
        )
    direction = call.operands[3].value if len(call.operands) > 3 else "forward"
    place = call.operands[-1].where
    if "direction" in call.options:
        if len(call.operands) > 3:
            fail(call.where, "$k-hop: the direction is given twice")
        direction, place = call.options["direction"], call.where.inside("direction")
    if not isinstance(direction, str) or direction not in _DIRECTIONS:
        fail(place, "$k-hop: direction must be forward, backward or both")
    return KHop(start, predicate, depth, _DIRECTIONS[direction])


def _statement_only(call: Call, catalog: str, root: Json) -> None:
    if catalog == "statement":
        return
    fix = (
        ["$statement", *root[1:]] if isinstance(root, list) and root[:1] == ["$knowledge"] else None
    )
    fail(call.where, f"{call.operator} is only valid inside $statement", fix=fix)


def _part(call: Call, operand: Operand) -> str | None:
    if operand.value == "$*":
        return None
    value = unquoted(operand)
    if not isinstance(value, str):
        fail(operand.where, f'{call.operator} expects text or "$*", got {describe(value)}')
    return text_of(value, operand.where)

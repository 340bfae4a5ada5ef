"""From text to calls: JSON, ``["$op", a, b]`` and ``{"$op": ..., options}``, and their refusals."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.nodes import Json, Where
from hypatia_mem.jse.operators import OPERATORS, OPTIONS
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = [
    "COMPARISONS",
    "TOP",
    "Call",
    "Operand",
    "check_arity",
    "check_depth",
    "is_symbol",
    "load",
    "missing_dollar",
    "read_call",
    "refuse_data",
    "refuse_options",
    "refuse_top",
    "refuse_unknown",
]

COMPARISONS = ("$eq", "$ne", "$gt", "$lt", "$gte", "$lte")
TOP = ("$knowledge", "$statement", "$not-summaried")
_STATEMENT_ONLY = ("$triple", "$k-hop")
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Operand:
    """A value in its place."""

    value: Json
    where: Where


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its operands, unread yet."""

    operator: str
    operands: tuple[Operand, ...]
    options: dict[str, Any]
    where: Where


# --- JSON -----------------------------------------------------------------------------------------


def load(text: str) -> Json:
    """Return the JSON of a text. Raises ExpressionError that shows where it breaks."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                # json keeps the last one: a filter would be lost without a word.
                raise ExpressionError(f"the key {key!a} stands twice in one object")
            found[key] = value
        return found

    def constant(name: str) -> NoReturn:
        raise ExpressionError(f"{name} is not JSON; numbers must be finite")

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise _json_error(text, error) from None
    except RecursionError:
        raise ExpressionError(f"the expression is nested deeper than {_DEEPEST} levels") from None
    except ValueError:  # an integer of more digits than Python converts
        raise ExpressionError("a number in the expression has too many digits") from None


def _json_error(text: str, error: json.JSONDecodeError) -> ExpressionError:
    lines = text.splitlines() or [""]
    line = lines[min(error.lineno, len(lines)) - 1]
    start = max(0, error.colno - 61)
    piece = line[start : start + 90]
    hint = f"  {piece}\n  {' ' * (error.colno - 1 - start)}^"
    if not text.strip():
        hint = 'An expression looks like this: ["$knowledge", ["$contains", "tags", "rule"]]'
    elif "'" in text and '"' not in text:
        hint += "\nJSON text stands in double quotes; put the whole expression in single ones."
    elif '"' not in text:
        hint += (
            "\nNo double quote reached the program: the shell ate them. Put the whole "
            "expression in single quotes."
        )
    message = f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    return ExpressionError(message, hint=hint)


def check_depth(value: Json) -> None:
    """Raise ExpressionError for JSON that is nested too deeply to be meant."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for node in level
            if isinstance(node, list | dict)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ExpressionError(f"the expression is nested deeper than {_DEEPEST} levels")


# --- calls ----------------------------------------------------------------------------------------


def is_symbol(value: Json) -> bool:
    """Tell whether a value is a symbol: ``$x``, but neither ``$$x`` nor the wildcard ``$*``."""
    return isinstance(value, str) and value[:1] == "$" and value[:2] != "$$" and value != "$*"


def read_call(value: Json, where: Where) -> Call | None:
    """Return the call a JSON value is, or None when it is data."""
    if isinstance(value, list) and value and is_symbol(value[0]):
        operator = value[0]
        operands = tuple(
            Operand(v, where.operand(operator, i, i + 1)) for i, v in enumerate(value[1:])
        )
        return Call(operator, operands, {}, where)
    if not isinstance(value, dict):
        return None
    keys = [key for key in value if is_symbol(key)]
    if not keys:
        return None
    if len(keys) > 1:
        both = ["$and", *({key: value[key]} for key in keys)]
        fix = None if set(keys) & set(TOP) else replaced(where, both)
        fail(where, f"object has multiple $ keys: {', '.join(keys)}", fix=fix)
    operator = keys[0]
    inner = value[operator]
    at = where.inside(operator)
    if isinstance(inner, list):
        # {"$knowledge": ["$contains", ...]}: three operands by the letter, one call by intent.
        operands = tuple(Operand(v, at.operand(operator, i, i)) for i, v in enumerate(inner))
        if inner and is_symbol(inner[0]) and _takes_conditions_first(operator):
            _refuse_flattened(operator, inner, at)
    else:
        operands = (Operand(inner, at.operand(operator, 0, None)),)
    options = {key: v for key, v in value.items() if key != operator}
    return Call(operator, operands, options, where)


def _takes_conditions_first(operator: str) -> bool:
    """Tell whether a symbol cannot be the first operand, as it can be as a field or a tag."""
    known = OPERATORS.get(operator)
    return known is not None and known.operands[0] == "condition"


def _refuse_flattened(operator: str, inner: list[Any], at: Where) -> NoReturn:
    place = Where(at.root, (*at.steps, 0), at.operand(operator, 0, 0).text)
    fail(
        place,
        f"unexpected node in condition context: {inner[0]}; a nested call needs its own array, "
        f'as in ["{operator}", ["{inner[0]}", ...]]',
        fix=replaced(at, [inner]),
    )


def check_arity(call: Call) -> None:
    """Raise ExpressionError when the number of operands is wrong."""
    problem = OPERATORS[call.operator].arity_problem(len(call.operands))
    if problem is None:
        return
    fix = None
    if call.operator in COMPARISONS and len(call.operands) == 1:
        only = call.operands[0]
        if call.operator == "$ne" and read_call(only.value, only.where) is not None:
            fix = replaced(call.where, ["$not", only.value])
    if call.operator == "$k-hop" and len(call.operands) == 2:
        start, depth = (operand.value for operand in call.operands)
        fix = replaced(call.where, ["$k-hop", start, "$*", depth])
    if call.operator == "$not" and call.operands:
        values = [operand.value for operand in call.operands]
        if all(isinstance(v, list | dict) for v in values):
            fix = replaced(call.where, ["$not", ["$and", *values]])
        elif is_symbol(values[0]):
            fix = replaced(call.where, ["$not", values])
    fail(call.where, problem, fix=fix)


# --- refusals -------------------------------------------------------------------------------------


def refuse_top(call: Call) -> NoReturn:
    """Refuse an operator that is not a query by itself."""
    name = call.operator
    if name == "$quote":
        fail(call.where, "a quoted expression is not a valid query")
    if name not in OPERATORS:
        refuse_unknown(call)
    target = "$statement" if name in _STATEMENT_ONLY else "$knowledge"
    fail(
        call.where,
        f"top-level operator must be $knowledge, $statement or $not-summaried, got {name}",
        fix=[target, call.where.root],
    )


def refuse_unknown(call: Call) -> NoReturn:
    """Refuse an operator that does not exist; show the nearest one that does."""
    name = call.operator
    near = difflib.get_close_matches(name, OPERATORS, 1, 0.6)
    fix = None
    if near:
        old = _value_at(call.where)
        new = (
            [near[0], *old[1:]]
            if isinstance(old, list)
            else {near[0] if k == name else k: v for k, v in old.items()}
        )
        fix = replaced(call.where, new)
    known = "Operators: " + " ".join(OPERATORS)
    fail(call.where, f"unknown operator: {name}", fix=fix, note=known)


def refuse_data(operand: Operand) -> NoReturn:
    """Refuse a literal or a symbol where a condition has to stand."""
    value, where = operand.value, operand.where
    fix: Json = None
    note = ""
    if is_symbol(value) and value in OPERATORS:
        holder = Where(where.root, where.steps[:-1], where.text)
        inner = _value_at(holder)
        note = f'A nested call needs its own array, as in ["$knowledge", ["{value}", ...]].'
        if isinstance(inner, list) and where.steps:
            at = int(where.steps[-1])
            fix = replaced(holder, [*inner[:at], inner[at:]])
    elif isinstance(value, dict) and value and set(value) <= set(OPTIONS):
        note = "Options stand in the object form of the top operator."
        root = where.root
        if isinstance(root, list) and len(where.steps) == 1:
            fix = {root[0]: [v for v in root[1:] if v is not value], **value}
    else:
        fix = missing_dollar(value, where)
    fail(where, f"unexpected node in condition context: {_brief(value)}", fix=fix, note=note)


def missing_dollar(value: Json, where: Where) -> Json:
    """Return the expression with the forgotten ``$`` of its first word, if that is the mistake."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        named = f"${value[0]}"
        if named in OPERATORS:
            return replaced(where, [named, *value[1:]])
    return None


def refuse_options(call: Call) -> NoReturn:
    """Refuse options of a nested operator; show where they belong."""
    key = next(iter(call.options))
    root = call.where.root
    fix: Json = None
    if set(call.options) <= set(OPTIONS):
        own = replaced(call.where, {call.operator: _value_at(call.where)[call.operator]})
        if isinstance(own, list):
            fix = {own[0]: own[1:], **call.options}
        elif isinstance(root, dict):
            fix = {**own, **call.options}
    fail(
        call.where.inside(key),
        f"option {key!a} of a nested {call.operator}: options belong to the top operator only",
        fix=fix,
    )


def _brief(value: Json) -> str:
    if isinstance(value, str):
        return json.dumps(value[:60], ensure_ascii=True)
    return describe(value)


def _value_at(where: Where) -> Json:
    value = where.root
    for step in where.steps:
        value = value[step]
    return value

"""JSON to nodes: recursive descent over the calls ``["$op", a, b]`` and ``{"$op": ..., opts}``.

Nothing widens: an operand that is not understood is an ``ExpressionError`` that names its path,
says what was expected and, for the usual mistakes, prints the expression that was probably meant.
Upstream dropped such operands, so that ``{"$knowledge": ["$contains", "scopes", "x"]}`` returned
every row there is.

Reading rules: a string that starts with one ``$`` is a symbol, ``$$x`` is the text ``$x``; a symbol
where a value is expected is its text; ``$*`` is the wildcard of ``$triple`` and plain text
elsewhere; a field may carry a leading ``$``; ``$quote`` hands its argument through unread.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.nodes import (
    LATER_OPERATORS,
    OPERATORS,
    And,
    Compare,
    Condition,
    Contains,
    ContentIs,
    Field,
    Has,
    Json,
    Like,
    Not,
    Options,
    Or,
    Query,
    Scalar,
    Search,
    Triple,
    Where,
)
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = ["parse", "parse_value"]

_COMPARISONS = ("$eq", "$ne", "$gt", "$lt", "$gte", "$lte")
_TOP = ("$knowledge", "$statement", "$not-summaried")
_OPTIONS = ("limit", "offset", "catalog")
_LATER_OPTIONS = ("order", "count", "fields")
_FIELD = re.compile(r"[\w-]+(?:\[\d{1,9}\])*(?:\.[\w-]+(?:\[\d{1,9}\])*)*")
_STEP = re.compile(r"[\w-]+|\[\d+\]")
_DEEPEST = 64
_MOST_ROWS = 2**31 - 1


def parse(text: str) -> Query:
    """Parse the text of an expression.

    Raises:
        ExpressionError: it is not JSON, or not an expression; nothing has been executed.
    """
    return parse_value(_load(text))


def parse_value(value: Json) -> Query:
    """Parse an expression that is JSON already; raises ``ExpressionError``."""
    _check_depth(value)
    where = Where(value)
    call = _call(value, where)
    if call is None:
        fail(where, _no_expression(value), fix=_missing_dollar(value, where))
    if call.operator not in _TOP:
        _refuse_top(call)
    options = _options(call)
    _check_arity(call)
    if call.operator == "$not-summaried":
        tag = _tag(call.operands[0])
        return Query("knowledge", _all(call, "knowledge", first=1), options, pending_tag=tag)
    catalog = call.operator[1:]
    return Query(catalog, _all(call, catalog), options)


# --- JSON -----------------------------------------------------------------------------------------


def _load(text: str) -> Json:
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


def _check_depth(value: Json) -> None:
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


@dataclass(frozen=True, slots=True)
class _Operand:
    value: Json
    where: Where


@dataclass(frozen=True, slots=True)
class _Call:
    operator: str
    operands: tuple[_Operand, ...]
    options: dict[str, Any]
    where: Where


def _is_symbol(value: Json) -> bool:
    return isinstance(value, str) and value[:1] == "$" and value[:2] != "$$" and value != "$*"


def _call(value: Json, where: Where) -> _Call | None:
    """Return the call a JSON value is, or None when it is data."""
    if isinstance(value, list) and value and _is_symbol(value[0]):
        operator = value[0]
        operands = tuple(
            _Operand(v, where.operand(operator, i, i + 1)) for i, v in enumerate(value[1:])
        )
        return _Call(operator, operands, {}, where)
    if not isinstance(value, dict):
        return None
    keys = [key for key in value if _is_symbol(key)]
    if not keys:
        return None
    if len(keys) > 1:
        both = ["$and", *({key: value[key]} for key in keys)]
        fix = None if set(keys) & set(_TOP) else replaced(where, both)
        fail(where, f"object has multiple $ keys: {', '.join(keys)}", fix=fix)
    operator = keys[0]
    inner = value[operator]
    at = where.inside(operator)
    if isinstance(inner, list) and _call(inner, at) is None:
        operands = tuple(_Operand(v, at.operand(operator, i, i)) for i, v in enumerate(inner))
    elif isinstance(inner, list):
        # {"$knowledge": ["$contains", ...]}: three operands by the letter, one call by intent.
        operands = tuple(_Operand(v, at.operand(operator, i, i)) for i, v in enumerate(inner))
        if operator != "$quote" and not _takes_text_first(operator):
            _refuse_flattened(operator, inner, at)
    else:
        operands = (_Operand(inner, at.operand(operator, 0, None)),)
    options = {key: v for key, v in value.items() if key != operator}
    return _Call(operator, operands, options, where)


def _takes_text_first(operator: str) -> bool:
    """Tell whether a symbol may be the first operand: a field, a tag, a word, part of a triple."""
    known = OPERATORS.get(operator)
    return known is None or known.operands[0] != "condition"


def _refuse_flattened(operator: str, inner: list[Any], at: Where) -> NoReturn:
    place = Where(at.root, (*at.steps, 0), at.operand(operator, 0, 0).text)
    fail(
        place,
        f"unexpected node in condition context: {inner[0]}; a nested call needs its own array, "
        f'as in ["{operator}", ["{inner[0]}", ...]]',
        fix=replaced(at, [inner]),
    )


def _check_arity(call: _Call) -> None:
    problem = OPERATORS[call.operator].arity_problem(len(call.operands))
    if problem is None:
        return
    fix = None
    if call.operator in _COMPARISONS and len(call.operands) == 1:
        only = call.operands[0]
        if call.operator == "$ne" and _call(only.value, only.where) is not None:
            fix = replaced(call.where, ["$not", only.value])
    if call.operator == "$not" and call.operands:
        values = [operand.value for operand in call.operands]
        if all(isinstance(v, list | dict) for v in values):
            fix = replaced(call.where, ["$not", ["$and", *values]])
        elif _is_symbol(values[0]):
            fix = replaced(call.where, ["$not", values])
    fail(call.where, problem, fix=fix)


def _refuse_top(call: _Call) -> NoReturn:
    name = call.operator
    if name == "$quote":
        fail(call.where, "a quoted expression is not a valid query")
    if name not in OPERATORS and name not in LATER_OPERATORS:
        _refuse_unknown(call)
    target = "$statement" if name in ("$triple", "$k-hop") else "$knowledge"
    fail(
        call.where,
        f"top-level operator must be $knowledge, $statement or $not-summaried, got {name}",
        fix=None if name in LATER_OPERATORS else [target, call.where.root],
    )


def _refuse_unknown(call: _Call) -> NoReturn:
    name = call.operator
    if name in LATER_OPERATORS:
        fail(call.where, f"{name} is not available yet in this version")
    near = difflib.get_close_matches(name, OPERATORS, 1, 0.6)
    fix = None
    if near:
        old = call.where.root
        for step in call.where.steps:
            old = old[step]
        new = (
            [near[0], *old[1:]]
            if isinstance(old, list)
            else {near[0] if k == name else k: v for k, v in old.items()}
        )
        fix = replaced(call.where, new)
    fail(call.where, f"unknown operator: {name}", fix=fix, note=_known_operators())


def _known_operators() -> str:
    return "Operators: " + " ".join(OPERATORS)


def _no_expression(value: Json) -> str:
    return (
        f"an expression is a list or object with an operator, got {describe(value)}: "
        'start with ["$knowledge", ...], ["$statement", ...] or ["$not-summaried", tag, ...]'
    )


def _missing_dollar(value: Json, where: Where) -> Json:
    """Return the expression with the forgotten ``$`` of its first word, if that is the mistake."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        named = f"${value[0]}"
        if named in OPERATORS:
            return replaced(where, [named, *value[1:]])
    return None


# --- options and the top operator -----------------------------------------------------------------


def _options(call: _Call) -> Options:
    for key in call.options:
        if key in _LATER_OPTIONS:
            fail(call.where.inside(key), f"option {key!r} is not available yet in this version")
        if key not in _OPTIONS:
            near = difflib.get_close_matches(key, _OPTIONS, 1, 0.5)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            note = f"Options of the top operator: {', '.join(_OPTIONS)}."
            fail(call.where.inside(key), f"unknown option {key!a}{meant}", note=note)
    limit = _count(call, "limit", 100, least=-1)
    catalog = call.options.get("catalog", call.operator[1:])
    own = "statement" if call.operator == "$statement" else "knowledge"
    if "catalog" in call.options and catalog != own:
        fail(
            call.where.inside("catalog"),
            f'option catalog must be "{own}" here, because {call.operator} returns {own} rows',
        )
    return Options(None if limit == -1 else limit, _count(call, "offset", 0, least=0))


def _count(call: _Call, key: str, default: int, *, least: int) -> int:
    value = call.options.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_ROWS:
        return value
    meaning = " (-1 = every row)" if least < 0 else ""
    fail(
        call.where.inside(key),
        f"option {key} must be a whole number from {least} to {_MOST_ROWS}{meaning}",
    )


def _tag(operand: _Operand) -> str:
    value = _unquoted(operand)
    if not isinstance(value, str):
        fail(
            operand.where,
            f"$not-summaried: first argument must be a tag string, got {describe(value)}",
        )
    return _text(value, operand.where)


# --- conditions -----------------------------------------------------------------------------------


def _all(call: _Call, catalog: str, first: int = 0) -> Condition:
    conditions = tuple(_condition(operand, catalog) for operand in call.operands[first:])
    return conditions[0] if len(conditions) == 1 else And(conditions)


def _condition(operand: _Operand, catalog: str) -> Condition:
    call = _call(operand.value, operand.where)
    if call is None:
        _refuse_data(operand)
    if call.operator not in OPERATORS:
        _refuse_unknown(call)
    if call.operator == "$quote":
        fail(call.where, "a quoted expression is not a condition")
    if call.options:
        _refuse_options(call)
    if call.operator in _TOP:
        return _nested(call, catalog)
    _check_arity(call)
    return _build(call, catalog)


def _build(call: _Call, catalog: str) -> Condition:
    operands = call.operands
    match call.operator:
        case "$and":
            return And(tuple(_condition(o, catalog) for o in operands))
        case "$or":
            return Or(tuple(_condition(o, catalog) for o in operands))
        case "$not":
            return Not(_condition(operands[0], catalog))
        case "$contains":
            return Contains(_field(operands[0]), _one(call, operands[1]), operands[1].where)
        case "$has":
            return Has(_field(operands[0]), _many(operands[1]), operands[1].where)
        case "$like":
            return Like(_field(operands[0]), _string(call, operands[1]), operands[1].where)
        case "$content":
            return _content(operands[0])
        case "$triple":
            return _triple(call, catalog)
        case "$search":
            return Search(_string(call, operands[0]), operands[0].where)
        case _:
            value = _one(call, operands[1])
            return Compare(call.operator, _field(operands[0]), value, operands[1].where)


def _refuse_data(operand: _Operand) -> NoReturn:
    value, where = operand.value, operand.where
    fix: Json = None
    note = ""
    if _is_symbol(value) and value in OPERATORS:
        inner = where.root
        for step in where.steps[:-1]:
            inner = inner[step]
        holder = Where(where.root, where.steps[:-1], where.text)
        note = f'A nested call needs its own array, as in ["$knowledge", ["{value}", ...]].'
        if isinstance(inner, list) and where.steps:
            at = int(where.steps[-1])
            fix = replaced(holder, [*inner[:at], inner[at:]])
    else:
        fix = _missing_dollar(value, where)
    fail(where, f"unexpected node in condition context: {_brief(value)}", fix=fix, note=note)


def _brief(value: Json) -> str:
    if isinstance(value, str):
        return json.dumps(value[:60], ensure_ascii=True)
    return describe(value)


def _refuse_options(call: _Call) -> NoReturn:
    key = next(iter(call.options))
    root = call.where.root
    fix: Json = None
    if set(call.options) <= set(_OPTIONS):
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


def _value_at(where: Where) -> Json:
    value = where.root
    for step in where.steps:
        value = value[step]
    return value


def _nested(call: _Call, catalog: str) -> Condition:
    name = call.operator
    if name == "$not-summaried":
        fail(call.where, "$not-summaried may only be the top operator")
    if name[1:] != catalog:
        fail(
            call.where,
            f"nested {name} inside ${catalog}: one expression reads one kind of row",
            note="Run two queries, the second with the names the first returned.",
        )
    if len(call.operands) > 1:
        values = [operand.value for operand in call.operands]
        fail(
            call.where,
            f"nested {name} takes at most one condition, got {len(values)}; "
            'combine them with ["$and", ...]',
            fix=replaced(call.where, ["$and", *values]),
        )
    return _all(call, catalog)


# --- operands -------------------------------------------------------------------------------------


def _field(operand: _Operand) -> Field:
    value = operand.value
    if not isinstance(value, str):
        fail(operand.where, f"a field name is text, got {describe(value)}")
    name = value[1:] if value[:1] == "$" and value[:2] != "$$" else value
    if not _FIELD.fullmatch(name) or len(name) > 300:
        fail(
            operand.where,
            f"invalid field name {json.dumps(value[:80])}: expected a JSON path such as "
            '"tags", "meta.author" or "tags[0]"',
        )
    return Field(_steps(name), operand.where)


def _steps(name: str) -> tuple[str | int, ...]:
    return tuple(int(step[1:-1]) if step[0] == "[" else step for step in _STEP.findall(name))


def _unquoted(operand: _Operand) -> Json:
    """Return the operand as a value: ``$quote`` opened, ``$$`` unescaped, symbols as their text."""
    value = operand.value
    if isinstance(value, str):
        return value[1:] if value[:2] == "$$" else value
    call = _call(value, operand.where) if isinstance(value, list | dict) else None
    if call is None:
        return value
    if call.operator == "$quote" and not call.options:
        if len(call.operands) == 1:
            return call.operands[0].value
        inner = value[call.operator] if isinstance(value, dict) else None
        if isinstance(inner, list):  # {"$quote": [..]}: the object form quotes the list itself
            return inner
        _check_arity(call)
    fail(
        operand.where,
        f"expected a value, got the call {call.operator}",
        fix=None if call.operator in OPERATORS else replaced(operand.where, ["$quote", value]),
    )


def _scalar(value: Json, where: Where) -> Scalar:
    if isinstance(value, str):
        return _text(value, where)
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


def _text(value: str, where: Where) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        fail(Where(None, (), where.text), "the text holds half of a surrogate pair")
    return value


def _one(call: _Call, operand: _Operand) -> Scalar:
    value = _unquoted(operand)
    if isinstance(value, list):
        fix = None
        if call.operator in ("$contains", "$eq") and all(isinstance(v, str) for v in value):
            fix = replaced(call.where, ["$has", call.operands[0].value, value])
        fail(operand.where, f"{call.operator} expects one value, got a list", fix=fix)
    return _scalar(value, operand.where)


def _many(operand: _Operand) -> tuple[Scalar, ...]:
    value = _unquoted(operand)
    if isinstance(value, dict):
        fail(operand.where, "$has value must be a scalar or array of scalars, got an object")
    if not isinstance(value, list):
        return (_scalar(value, operand.where),)
    if not value:
        fail(operand.where, "$has needs at least one value, the list is empty")
    found = []
    for index, item in enumerate(value):
        if isinstance(item, list | dict):
            place = operand.where.inside(index)
            fail(place, f"$has value must be a scalar or array of scalars, got {describe(item)}")
        found.append(_scalar(_unquoted(_Operand(item, operand.where)), operand.where))
    return tuple(found)


def _string(call: _Call, operand: _Operand) -> str:
    value = _unquoted(operand)
    if not isinstance(value, str):
        what = "a pattern" if call.operator == "$like" else "text"
        fail(operand.where, f"{call.operator} expects {what}, got {describe(value)}")
    if call.operator == "$search" and not value.strip():
        fail(operand.where, "$search expects at least one word")
    return _text(value, operand.where)


def _content(operand: _Operand) -> Condition:
    value = operand.value
    if not isinstance(value, dict):
        fail(operand.where, f"$content expects a JSON object, got {describe(value)}")
    pairs = []
    for key, wanted in value.items():
        place = operand.where.inside(key)
        name = _field(_Operand(key[1:] if key[:2] == "$$" else key, place))
        if isinstance(wanted, list):
            fix = replaced(operand.where, {**value, key: wanted[0]}) if len(wanted) == 1 else None
            fail(place, f"$content: {name.name} expects one value, got a list", fix=fix)
        pairs.append(
            Compare("$eq", name, _scalar(_unquoted(_Operand(wanted, place)), place), place)
        )
    return ContentIs(tuple(pairs))


def _triple(call: _Call, catalog: str) -> Condition:
    if catalog != "statement":
        root = call.where.root
        fix = None
        if isinstance(root, list) and root[:1] == ["$knowledge"]:
            fix = ["$statement", *root[1:]]
        fail(call.where, "$triple is only valid inside $statement", fix=fix)
    parts: list[str | None] = []
    for operand in call.operands:
        if operand.value == "$*":
            parts.append(None)
            continue
        value = _unquoted(operand)
        if not isinstance(value, str):
            fail(operand.where, f'$triple expects text or "$*", got {describe(value)}')
        parts.append(_text(value, operand.where))
    if parts == [None, None, None]:
        fail(
            call.where,
            "$triple requires at least one non-wildcard argument",
            note='Every statement there is: ["$statement"]',
        )
    return Triple(*parts)

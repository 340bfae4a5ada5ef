"""JSON to nodes: recursive descent over the calls ``["$op", a, b]`` and ``{"$op": ..., opts}``.

Nothing widens: an operand that is not understood is an ``ExpressionError`` that names its path,
says what was expected and, for the usual mistakes, prints the expression that was probably meant.
Upstream dropped such operands, so that ``{"$knowledge": ["$contains", "scopes", "x"]}`` returned
every row there is. What a call looks like is in ``calls``, what an operand in ``operands``, the
options of the top operator in ``options``.
"""

from __future__ import annotations

from typing import NoReturn

from hypatia_mem.jse import operands as read
from hypatia_mem.jse.calls import (
    TOP,
    Call,
    Operand,
    check_arity,
    check_depth,
    load,
    missing_dollar,
    read_call,
    refuse_data,
    refuse_options,
    refuse_top,
    refuse_unknown,
)
from hypatia_mem.jse.fields import fitting
from hypatia_mem.jse.nodes import (
    And,
    Condition,
    Contains,
    Json,
    Like,
    Not,
    Or,
    Query,
    Search,
    Similar,
    Where,
    fenced,
)
from hypatia_mem.jse.operators import OPERATORS
from hypatia_mem.jse.options import check_names, read_options
from hypatia_mem.jse.pointing import describe, fail, replaced

__all__ = ["parse", "parse_value"]


def parse(text: str) -> Query:
    """Parse the text of an expression.

    Raises:
        ExpressionError: it is not JSON, or not an expression; nothing has been executed.
    """
    return parse_value(load(text))


def parse_value(value: Json) -> Query:
    """Parse an expression that is JSON already; raises ``ExpressionError``."""
    check_depth(value)
    where = Where(value)
    call = read_call(value, where)
    if call is None:
        fail(where, _no_expression(value), fix=missing_dollar(value, where))
    if call.operator not in TOP:
        refuse_top(call)
    check_names(call)
    check_arity(call)
    catalog = "statement" if call.operator == "$statement" else "knowledge"
    tag = _tag(call.operands[0]) if call.operator == "$not-summaried" else None
    condition = _all(call, catalog, first=0 if tag is None else 1)
    return Query(catalog, fenced(condition), read_options(call, condition), pending_tag=tag)


def _no_expression(value: Json) -> str:
    return (
        f"an expression is a list or object with an operator, got {describe(value)}: "
        'start with ["$knowledge", ...], ["$statement", ...] or ["$not-summaried", tag, ...]'
    )


def _tag(operand: Operand) -> str:
    value = read.unquoted(operand)
    if not isinstance(value, str):
        fail(
            operand.where,
            f"$not-summaried: first argument must be a tag string, got {describe(value)}",
        )
    return read.text_of(value, operand.where)


# --- conditions -----------------------------------------------------------------------------------


def _all(call: Call, catalog: str, first: int = 0) -> Condition:
    conditions = tuple(_condition(operand, catalog) for operand in call.operands[first:])
    return conditions[0] if len(conditions) == 1 else And(conditions)


def _condition(operand: Operand, catalog: str) -> Condition:
    call = read_call(operand.value, operand.where)
    if call is None:
        refuse_data(operand)
    if call.operator not in OPERATORS:
        refuse_unknown(call)
    if call.operator == "$quote":
        fail(call.where, "a quoted expression is not a condition")
    if call.options and not (call.operator == "$k-hop" and set(call.options) == {"direction"}):
        refuse_options(call)
    if call.operator in TOP:
        return _nested(call, catalog)
    check_arity(call)
    return _build(call, catalog)


def _build(call: Call, catalog: str) -> Condition:
    operands = call.operands
    match call.operator:
        case "$and":
            return And(tuple(_condition(o, catalog) for o in operands))
        case "$or":
            return Or(tuple(_condition(o, catalog) for o in operands))
        case "$not":
            return Not(_condition(operands[0], catalog))
        case "$content":
            return read.content(operands[0], catalog)
        case "$json-contains":
            return read.json_contains(operands[0], catalog)
        case "$triple":
            return read.triple(call, catalog, call.where.root)
        case "$k-hop":
            return read.k_hop(call, catalog, call.where.root)
        case "$search":
            return Search(read.string(call, operands[0]), operands[0].where)
        case "$similar":
            return Similar(read.string(call, operands[0]), operands[0].where)
        case _:
            return _of_field(call, catalog)


def _of_field(call: Call, catalog: str) -> Condition:
    """Return a condition whose operands are a field and what it is held against."""
    place, operand = call.operands
    target = read.field(place, catalog)
    match call.operator:
        case "$has":
            return read.either(read.has(target, operand))
        case "$like":
            return Like(target, read.string(call, operand))
        case "$contains":
            value = read.one(call, operand)
            if target.kind != "time":  # of a time, the text of a part may be asked for
                fitting(target, value, operand.where)
            elif value is not None and not isinstance(value, str):
                fail(operand.where, f"{target.name} is a time, got {describe(value)}")
            return Contains(target, value)
        case _:
            value = read.one(call, operand)
            return read.either(read.compare(call.operator, target, value, operand.where))


def _nested(call: Call, catalog: str) -> Condition:
    name = call.operator
    if name == "$not-summaried":
        fail(call.where, "$not-summaried may only be the top operator")
    if name[1:] != catalog:
        _refuse_other_rows(call, catalog)
    if len(call.operands) > 1:
        values = [operand.value for operand in call.operands]
        fail(
            call.where,
            f"nested {name} takes at most one condition, got {len(values)}; "
            'combine them with ["$and", ...]',
            fix=replaced(call.where, ["$and", *values]),
        )
    return _all(call, catalog)


def _refuse_other_rows(call: Call, catalog: str) -> NoReturn:
    fail(
        call.where,
        f"nested {call.operator} inside ${catalog}: one expression reads one kind of row",
        note="Run two queries, the second with the names the first returned.",
    )

"""SQL of the conditions that look at one row alone: comparisons, membership, patterns."""

from __future__ import annotations

from collections.abc import Sequence

from hypatia_mem.jse.nodes import (
    Compare,
    Contained,
    Contains,
    Field,
    Has,
    JsonContains,
    Like,
    Value,
)
from hypatia_mem.jse.sql import (
    SIGNS,
    UNKNOWN,
    Fragment,
    as_text,
    column_sql,
    json_compare,
    json_contained,
    json_contains_text,
    json_has,
    json_like,
    own_synonyms,
)

__all__ = ["all_of", "any_of", "clause"]


def clause(node: Compare | Contains | Has | Like | JsonContains, catalog: str) -> Fragment:
    """Return the SQL of a condition on the row ``e``, with its parameters."""
    match node:
        case Compare():
            return _compare(node, catalog)
        case Contains():
            return _contains(node, catalog)
        case Has():
            return any_of([_has_one(node.field, value, catalog) for value in node.values])
        case Like():
            return _like(node, catalog)
        case JsonContains(parts):
            return all_of([_contained(part, catalog) for part in parts])


def all_of(parts: Sequence[Fragment]) -> Fragment:
    """Join by AND; nothing at all is true."""
    return _join(parts, " AND ")


def any_of(parts: Sequence[Fragment]) -> Fragment:
    """Join by OR; nothing at all is true, as upstream has it."""
    return _join(parts, " OR ")


def _join(parts: Sequence[Fragment], joiner: str) -> Fragment:
    if not parts:
        return "TRUE", []
    values = [value for _, params in parts for value in params]
    return f"({joiner.join(sql for sql, _ in parts)})", values


def _compare(node: Compare, catalog: str) -> Fragment:
    if node.value is None:
        return UNKNOWN, []
    if node.field.kind == "json":
        return json_compare(node)
    sql, sign = column_sql(node.field, catalog), SIGNS[node.operator]
    if node.field.kind == "list":
        member = f"list_contains({sql}, ?)"
        return member if sign == "=" else f"(NOT {member})", [node.value]
    return f"({sql} {sign} ?)", [node.value]


def _contains(node: Contains, catalog: str) -> Fragment:
    if node.value is None:
        return UNKNOWN, []
    if node.field.kind == "json":
        return json_contains_text(node.field, node.value)
    sql = column_sql(node.field, catalog)
    if node.field.kind == "list":
        return f"list_contains({sql}, ?)", [node.value]
    return f"contains({as_text(node.field, sql)}, ?)", [node.value]


def _has_one(target: Field, value: Value, catalog: str) -> Fragment:
    if value is None:
        return UNKNOWN, []
    if target.kind == "json":
        return json_has(target, value)
    if target.kind == "triple":
        return "(? IN (e.subject, e.predicate, e.object))", [value]
    sql = column_sql(target, catalog)
    if target.kind == "list":
        return f"list_contains({sql}, ?)", [value]
    return f"({sql} = ?)", [value]


def _like(node: Like, catalog: str) -> Fragment:
    if node.field.kind == "json":
        return json_like(node.field, node.pattern)
    sql = column_sql(node.field, catalog)
    if node.field.kind == "list":
        return f"(len(list_filter({sql}, lambda i: i LIKE ?)) > 0)", [node.pattern]
    return f"({as_text(node.field, sql)} LIKE ?)", [node.pattern]


def _contained(part: Contained, catalog: str) -> Fragment:
    target, pattern = part.field, part.pattern
    if target.kind == "json":
        return json_contained(target, pattern)
    if isinstance(pattern, dict):  # synonyms of a statement
        found = [
            (f"list_contains({own_synonyms(key)}, ?)", [name])
            for key, names in pattern.items()
            for name in names
        ]
        return all_of(found)
    sql = column_sql(target, catalog)
    if target.kind != "list":
        if pattern is None:
            return f"({sql} IS NULL)", []
        return f"coalesce({sql} = ?, FALSE)", [pattern]
    if pattern is None:
        return f"(len({sql}) = 0)", []
    return all_of([(f"list_contains({sql}, ?)", [item]) for item in pattern])

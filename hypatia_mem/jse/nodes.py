"""The parsed form of an expression: one frozen class per operator, and the table of operators.

Nodes hold checked operands only: a field is a list of path steps, a wildcard is ``None``, a symbol
used as a value is its text. Each node keeps ``Where`` it stood, so that a later stage can still
point at the operand it does not like. The operator table is also the source of the reference page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "LATER_OPERATORS",
    "OPERATORS",
    "And",
    "Compare",
    "Condition",
    "Contains",
    "ContentIs",
    "Field",
    "Has",
    "Json",
    "Like",
    "Not",
    "Operator",
    "Options",
    "Or",
    "Query",
    "Scalar",
    "Search",
    "Triple",
    "Where",
]

Scalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = Any
"""A value as ``json.loads`` gives it."""


@dataclass(frozen=True, slots=True)
class Where:
    """The place of an operand: ``text`` for people (``$and[1].$eq[0]``), ``steps`` into JSON."""

    root: Json = dataclasses.field(repr=False, compare=False)
    steps: tuple[str | int, ...] = ()
    text: str = ""

    def operand(self, operator: str, index: int, step: str | int | None) -> Where:
        """Return the place of operand ``index`` of ``operator``, one JSON ``step`` further in.

        ``step`` is None when the operand is the value itself (``{"$search": "x"}``).
        """
        text = f"{self.text}.{operator}[{index}]" if self.text else f"{operator}[{index}]"
        return Where(self.root, self.steps if step is None else (*self.steps, step), text)

    def inside(self, *steps: str | int) -> Where:
        """Return the same operand, pointing deeper into its JSON."""
        return Where(self.root, (*self.steps, *steps), self.text)


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a path into the content: ``("meta", "author")``, ``("tags", 0)``."""

    steps: tuple[str | int, ...]
    where: Where = dataclasses.field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """Return the field as it is written, without a leading ``$``."""
        text = str(self.steps[0])
        for step in self.steps[1:]:
            text += f"[{step}]" if isinstance(step, int) else f".{step}"
        return text


@dataclass(frozen=True, slots=True)
class And:
    """Every operand holds; none at all is true."""

    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one operand holds; none at all is true (as upstream)."""

    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The operand does not hold; what is unknown (a missing field) stays excluded."""

    operand: Condition


@dataclass(frozen=True, slots=True)
class Compare:
    """``$eq $ne $gt $lt $gte $lte``: a field against a value of the field's own type."""

    operator: str
    field: Field
    value: Scalar
    where: Where = dataclasses.field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Contains:
    """Exact membership in a list field; a piece of text in a text field."""

    field: Field
    value: Scalar
    where: Where = dataclasses.field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Has:
    """Exact membership of any of the values."""

    field: Field
    values: tuple[Scalar, ...]
    where: Where = dataclasses.field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE: ``%`` any run of characters, ``_`` one character, case matters."""

    field: Field
    pattern: str
    where: Where = dataclasses.field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ContentIs:
    """Every named content field equals its value."""

    pairs: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject, predicate and object of a statement; None stands for the wildcard ``$*``."""

    subject: str | None
    predicate: str | None
    object: str | None


@dataclass(frozen=True, slots=True)
class Search:
    """The words of a full-text search, answered by the search index before the SQL runs."""

    text: str
    where: Where = dataclasses.field(compare=False, repr=False)


Condition: TypeAlias = (
    And | Or | Not | Compare | Contains | Has | Like | ContentIs | Triple | Search
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the top operator; ``limit`` None means every row."""

    limit: int | None = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """A whole expression.

    ``catalog`` is ``knowledge`` or ``statement``. ``pending_tag`` is set by ``$not-summaried``:
    only entries with that tag that no ``summary`` statement points to, oldest first.
    """

    catalog: str
    condition: Condition
    options: Options
    pending_tag: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the operator table: the parser checks arity by it, the reference prints it."""

    name: str
    operands: tuple[str, ...]
    summary: str
    example: str
    top: bool = False
    repeats: bool = False  # the last operand may stand any number of times, also never

    def arity_problem(self, count: int) -> str | None:
        """Return the sentence that says what was expected, or None when ``count`` is right."""
        fixed = len(self.operands) - (1 if self.repeats else 0)
        if count == fixed or (self.repeats and count > fixed):
            return None
        least = "at least " if self.repeats else ""
        names = ", ".join(self.operands[:fixed])
        if fixed == 1:
            kind = "condition" if names == "condition" else "argument"
            return f"{self.name} expects {least or 'exactly '}one {kind} ({names}), got {count}"
        return f"{self.name} expects {least}{fixed} operands ({names}), got {count}"


def _table(*rows: Operator) -> Mapping[str, Operator]:
    return {row.name: row for row in rows}


_ORDER = "Numbers compare as numbers, times as times, text as text."

OPERATORS: Mapping[str, Operator] = _table(
    Operator(
        "$knowledge",
        ("condition",),
        "Knowledge entries for which every condition holds, newest first.",
        '["$knowledge", ["$eq", "name", "Rust"]]',
        top=True,
        repeats=True,
    ),
    Operator(
        "$statement",
        ("condition",),
        "Statements (triples) for which every condition holds, newest first.",
        '["$statement", ["$triple", "Alice", "knows", "$*"]]',
        top=True,
        repeats=True,
    ),
    Operator(
        "$not-summaried",
        ("tag", "condition"),
        "Entries with the tag that no `summary` statement points to yet, oldest first.",
        '["$not-summaried", "message", ["$contains", "scopes", "app"]]',
        top=True,
        repeats=True,
    ),
    Operator(
        "$and",
        ("condition",),
        "Every condition holds; without any it is true.",
        '["$knowledge", ["$and", ["$like", "name", "A%"], ["$contains", "tags", "person"]]]',
        repeats=True,
    ),
    Operator(
        "$or",
        ("condition",),
        "At least one condition holds; without any it is true.",
        '["$knowledge", ["$or", ["$contains", "scopes", "app"], ["$contains", "scopes", ""]]]',
        repeats=True,
    ),
    Operator(
        "$not",
        ("condition",),
        "The condition does not hold; a row in which its field is missing stays excluded.",
        '["$knowledge", ["$not", ["$eq", "name", "Rust"]]]',
    ),
    Operator(
        "$eq",
        ("field", "value"),
        "The field equals the value; a list field has the value as an element.",
        '["$knowledge", ["$eq", "name", "Rust"]]',
    ),
    Operator(
        "$ne",
        ("field", "value"),
        "The field is there and differs; a list field lacks the element.",
        '["$knowledge", ["$ne", "format", "json"]]',
    ),
    Operator(
        "$gt",
        ("field", "value"),
        f"The field is greater. {_ORDER}",
        '["$knowledge", ["$gt", "created_at", "2025-01-01"]]',
    ),
    Operator(
        "$lt",
        ("field", "value"),
        f"The field is less. {_ORDER}",
        '["$knowledge", ["$lt", "created_at", "2025-01-03"]]',
    ),
    Operator(
        "$gte",
        ("field", "value"),
        f"The field is greater or equal. {_ORDER}",
        '["$knowledge", ["$gte", "data.size", 2048]]',
    ),
    Operator(
        "$lte",
        ("field", "value"),
        f"The field is less or equal. {_ORDER}",
        '["$knowledge", ["$lte", "name", "B"]]',
    ),
    Operator(
        "$contains",
        ("field", "value"),
        "A list field has exactly this element; a text field contains this piece of text "
        "(`%` and `_` mean themselves).",
        '["$knowledge", ["$contains", "tags", "rule"]]',
    ),
    Operator(
        "$has",
        ("field", "value or list of values"),
        "The list has at least one of the values, exactly; that of `triple` is its three parts.",
        '["$knowledge", ["$has", "tags", ["rule", "taboo"]]]',
    ),
    Operator(
        "$like",
        ("field", "pattern"),
        "SQL LIKE, case matters: `%` any text, `_` one character; of a list any element matches.",
        '["$knowledge", ["$like", "created_at", "2025-01-%"]]',
    ),
    Operator(
        "$content",
        ("object",),
        "Every key of the object equals its value; keys that are no content field are looked up "
        "inside JSON `data`.",
        '["$knowledge", ["$content", {"mime_type": "image/png"}]]',
    ),
    Operator(
        "$triple",
        ("subject", "predicate", "object"),
        "The three parts of a statement; `$*` stands for any, but not for all three.",
        '["$statement", ["$triple", "Alice", "$*", "$*"]]',
    ),
    Operator(
        "$search",
        ("text",),
        "Full-text search; rows come in rank order and carry a `score`. Other conditions are "
        "applied before ranking and limit.",
        '["$knowledge", ["$search", "database migration"]]',
    ),
    Operator(
        "$quote",
        ("value",),
        "The value as it is written: no symbol, no `$$` escape, no operator is read in it.",
        '["$knowledge", ["$eq", "name", ["$quote", "$triple"]]]',
    ),
)

LATER_OPERATORS = ("$k-hop", "$similar", "$json-contains")
"""Documented for Hypatia, known here by name, not available yet."""

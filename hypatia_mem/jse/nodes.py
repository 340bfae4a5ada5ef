"""The parsed form of an expression: one frozen class per operator.

Nodes hold checked operands only: a field is resolved to what it reads, a value has the field's
type, a wildcard is ``None``, a symbol used as a value is its text. Each node keeps ``Where`` it
stood, so that a later stage can still point at the operand it does not like.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

__all__ = [
    "And",
    "Compare",
    "Condition",
    "Contained",
    "Contains",
    "ContentIs",
    "Direction",
    "Field",
    "Has",
    "Json",
    "JsonContains",
    "KHop",
    "Kind",
    "Like",
    "Not",
    "Options",
    "Or",
    "Query",
    "Scalar",
    "Search",
    "Shown",
    "Similar",
    "Sort",
    "Triple",
    "Value",
    "Where",
    "fenced",
    "leaves",
    "names_scopes",
    "needed_scopes",
]

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | datetime
Json: TypeAlias = Any
"""A value as ``json.loads`` gives it."""

Kind: TypeAlias = Literal["text", "time", "list", "triple", "json"]
Direction: TypeAlias = Literal["forward", "backward", "both"]


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
    """What a condition reads of a row.

    ``column`` is a published name (``name``, ``tags``, ``data``, ``subject``). ``rest`` is a path
    into JSON ``data`` (kind ``json``), the place of an element (``tags[0]``, kind ``text``) or the
    part of a statement whose synonyms are meant (``("subject",)``, kind ``list``).
    """

    steps: tuple[str | int, ...]
    kind: Kind
    column: str
    rest: tuple[str | int, ...] = ()
    where: Where = dataclasses.field(default=Where(None), compare=False, repr=False)

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
    """``$eq $ne $gt $lt $gte $lte``: a field against a value of the field's own type.

    For a path into JSON ``data`` the value decides: ``moment`` is set when it is a text that says
    a time, and then it is compared with texts that say one.
    """

    operator: str
    field: Field
    value: Value
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class Contains:
    """Exact membership in a list field; a piece of text in a text field."""

    field: Field
    value: Scalar


@dataclass(frozen=True, slots=True)
class Has:
    """Exact membership of any of the values."""

    field: Field
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE: ``%`` any run of characters, ``_`` one character, case matters."""

    field: Field
    pattern: str


@dataclass(frozen=True, slots=True)
class ContentIs:
    """Every named content field equals its value."""

    pairs: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class Contained:
    """One key of ``$json-contains`` and what must be in it."""

    field: Field
    pattern: Json


@dataclass(frozen=True, slots=True)
class JsonContains:
    """Every part of an object is in the row; a plain yes or no, never unknown."""

    parts: tuple[Contained, ...]


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject, predicate and object of a statement; None stands for the wildcard ``$*``.

    ``within``: the ``scopes`` conditions joined to it by and, which entries whose synonyms are
    used must satisfy too.
    """

    subject: str | None
    predicate: str | None
    object: str | None
    within: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class KHop:
    """The statements within ``depth`` steps of a name; ``within`` as in ``Triple``."""

    start: str
    predicate: str | None
    depth: int
    direction: Direction = "forward"
    within: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """The words of a full-text search, answered by the search index before the SQL runs."""

    text: str
    where: Where = dataclasses.field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Similar:
    """A text whose nearest rows are asked for, answered by the vectors before the SQL runs."""

    text: str
    where: Where = dataclasses.field(compare=False, repr=False)


Condition: TypeAlias = (
    And
    | Or
    | Not
    | Compare
    | Contains
    | Has
    | Like
    | ContentIs
    | JsonContains
    | Triple
    | KHop
    | Search
    | Similar
)


@dataclass(frozen=True, slots=True)
class Sort:
    """One key of the option ``order``; ``field`` is None for the ``special`` score or hop."""

    field: Field | None
    descending: bool = False
    special: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """One part of a row that the option ``fields`` asks for; ``special``: content, score or hop."""

    name: str
    field: Field | None
    special: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the top operator; ``limit`` None means every row. Times are naive UTC."""

    limit: int | None = 100
    offset: int = 0
    order: tuple[Sort, ...] = ()
    count: bool = False
    fields: tuple[Shown, ...] = ()
    as_of: datetime | None = None
    as_known_at: datetime | None = None


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

    @property
    def names_scopes(self) -> bool:
        """Tell whether a condition reads ``scopes``: then the expression says what it reads."""
        return any(names_scopes(leaf) for leaf, _ in leaves(self.condition))


def leaves(condition: Condition, negated: bool = False) -> Iterator[tuple[Condition, bool]]:
    """Yield every condition that is no ``$and``, ``$or`` or ``$not``; True: below a ``$not``."""
    match condition:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from leaves(operand, negated)
        case Not(operand):
            yield from leaves(operand, True)
        case _:
            yield condition, negated


def names_scopes(leaf: Condition) -> bool:
    """Tell whether one condition reads the field ``scopes``."""
    match leaf:
        case Compare() | Contains() | Has() | Like():
            return leaf.field.column == "scopes"
        case ContentIs(pairs):
            return any(pair.field.column == "scopes" for pair in pairs)
        case JsonContains(parts):
            return any(part.field.column == "scopes" for part in parts)
        case _:
            return False


def needed_scopes(condition: Condition) -> tuple[str, ...] | None:
    """Return scopes of which every row has one or another; None when the condition names none.

    What ranks rows can leave all others out: they would not pass.
    """
    match condition:
        case Contains(field, value) if _is_scopes(field) and isinstance(value, str):
            return (value,)
        case Has(field, values) if _is_scopes(field):
            texts = tuple(value for value in values if isinstance(value, str))
            return texts if len(texts) == len(values) else None
        case And(operands):
            named = (needed_scopes(one) for one in operands)
            return next((found for found in named if found is not None), None)
        case Or(operands):
            parts = [needed_scopes(one) for one in operands]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return tuple(dict.fromkeys(scope for part in known for scope in part))
        case _:
            return None


def _is_scopes(field: Field) -> bool:
    return field.column == "scopes" and field.kind == "list" and not field.rest


def fenced(condition: Condition, within: tuple[Condition, ...] = ()) -> Condition:
    """Tell each ``$k-hop`` and ``$triple`` the ``scopes`` conditions joined to it by and.

    Else a walk would cross the statements of other scopes and only its rows be filtered.
    """
    match condition:
        case And(operands):
            more = tuple(one for one in operands if _only_scopes(one))
            return And(tuple(fenced(one, (*within, *more)) for one in operands))
        case Or(operands):
            return Or(tuple(fenced(one, within) for one in operands))
        case Not(operand):
            return Not(fenced(operand, within))
        case Triple() | KHop():
            return dataclasses.replace(condition, within=within)
        case _:
            return condition


def _only_scopes(condition: Condition) -> bool:
    found = [leaf for leaf, _ in leaves(condition)]
    return bool(found) and all(_reads_only_scopes(leaf) for leaf in found)


def _reads_only_scopes(leaf: Condition) -> bool:
    match leaf:
        case ContentIs(pairs):
            return bool(pairs) and all(pair.field.column == "scopes" for pair in pairs)
        case JsonContains(parts):
            return bool(parts) and all(part.field.column == "scopes" for part in parts)
        case _:
            return names_scopes(leaf)

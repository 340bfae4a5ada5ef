"""The table of operators: the parser checks arity by it, the reference page prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OPERATORS", "OPTIONS", "Operator"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table."""

    name: str
    operands: tuple[str, ...]
    summary: str
    example: str
    top: bool = False
    repeats: bool = False  # the last operand may stand any number of times, also never
    optional: int = 0  # so many of the last operands may be left out

    def arity_problem(self, count: int) -> str | None:
        """Return the sentence that says what was expected, or None when ``count`` is right."""
        fixed = len(self.operands) - (1 if self.repeats else 0)
        fewest = fixed - self.optional
        if fewest <= count <= fixed or (self.repeats and count > fixed):
            return None
        least = "at least " if self.repeats else ""
        names = ", ".join(self.operands[:fixed])
        if fixed == 1:
            kind = "condition" if names == "condition" else "argument"
            return f"{self.name} expects {least or 'exactly '}one {kind} ({names}), got {count}"
        number = f"{fewest} or {fixed}" if self.optional else str(fixed)
        return f"{self.name} expects {least}{number} operands ({names}), got {count}"


def _table(*rows: Operator) -> Mapping[str, Operator]:
    return {row.name: row for row in rows}


_ORDER = (
    "Numbers compare as numbers, times as times (inside JSON `data` too, written as in "
    "`2025-01-31T09:30:00Z`), text as text."
)


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
        "$json-contains",
        ("object",),
        "Every part of the object is in the row, however deep: objects by their keys, lists as "
        "sets, text exactly, numbers as numbers. Its keys are fields, or keys of JSON `data`.",
        '["$knowledge", ["$json-contains", {"tags": ["rust"]}]]',
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
        "$k-hop",
        ("subject", "predicate", "depth", "direction"),
        "The statements within `depth` steps of the subject, nearest first, each with its `hop`; "
        "`$*` is any predicate, the direction is `forward` (subject to object), `backward` or "
        "`both`. Conditions beside it choose among these rows; only those on `scopes` also say "
        "which statements may be walked.",
        '["$statement", ["$k-hop", "Alice", "knows", 3]]',
        optional=1,
    ),
    Operator(
        "$search",
        ("text",),
        "Full-text search; rows come in rank order and carry a `score`. Other conditions are "
        "applied before ranking and limit.",
        '["$knowledge", ["$search", "database migration"]]',
    ),
    Operator(
        "$similar",
        ("text",),
        "Nearest in meaning; rows come in rank order and carry a `score`. Beside `$search` the two "
        "ranks combine: each is scaled to its best, then they are added.",
        '["$knowledge", ["$similar", "how do we migrate the database"]]',
    ),
    Operator(
        "$quote",
        ("value",),
        "The value as it is written: no symbol, no `$$` escape, no operator is read in it.",
        '["$knowledge", ["$eq", "name", ["$quote", "$triple"]]]',
    ),
)

OPTIONS: Mapping[str, str] = {
    "limit": "at most so many rows; 100 when it is left out, -1 is every row",
    "offset": "leave out the first rows",
    "catalog": "must name the kind of row asked for",
    "order": 'by what the rows are sorted: "name", "created_at desc", ["predicate", "created_at '
    'desc"] or {"created_at": "desc"}; rows that lack the field come last',
    "count": 'true: one row, {"count": n}, of all rows that match',
    "fields": 'only these parts of a row: ["name", "tags", "data.size"]',
    "as_of": "what was true at this time (valid time)",
    "as_known_at": "what the memory held at this time (system time); $search and $similar still "
    "look in today's index",
}
"""Options of the top operator, with what the reference page says of them."""

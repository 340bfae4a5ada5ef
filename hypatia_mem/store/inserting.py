"""Putting rows into tables: many with one statement, and one that may be there already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["insert", "upsert", "upsert_all"]

_PAIRS = {"cursor": ("key", "position"), "meta": ("key", "value")}
_AT_ONCE = 8  # rows that one statement changes


def insert(
    run: Callable[[str, list[Any]], object],
    table: str,
    columns: Sequence[str],
    values: Sequence[Mapping[str, Any]],
) -> None:
    """Insert rows with one statement of which every value is a parameter (I7).

    ``table`` and ``columns`` are the program's own words; what a row lacks is NULL. ``run`` runs
    the statement and cleans the text in it.

    A column is one parameter, a list, and one in which all rows say the same is that value alone:
    to bind and copy what is the same in every row is most of what inserting it costs.
    """
    if not values:
        return
    said: list[str] = []
    params: list[Any] = []
    for name in columns:
        column = [row.get(name) for row in values]
        first = column[0]
        if len(column) == 1 or (said and column.count(first) == len(column)):
            said.append("?")
            params.append(first)
        else:  # the first column is always a list: it says how many rows there are
            said.append("unnest(?)")
            params.append(column)
    into = ", ".join(f'"{name}"' for name in columns)
    run(f"INSERT INTO {table} ({into}) SELECT {', '.join(said)}", params)


def upsert(run: Callable[[str, list[Any]], Any], table: str, key: str, value: object) -> None:
    """Set the second column of a two-column table in the row that has ``key`` in its first.

    Nearly always the row is there, and to change it costs a third of what replacing it does.
    """
    keyed, valued = _PAIRS[table]
    changed = run(
        f"UPDATE {table} SET {valued} = ? WHERE {keyed} = ?",  # noqa: S608 - our words
        [value, key],
    ).fetchone()
    if not changed or not changed[0]:
        run(f"INSERT INTO {table} VALUES (?, ?)", [key, value])  # noqa: S608 - our words


def upsert_all(
    run: Callable[[str, list[Any]], Any], table: str, values: Mapping[str, object]
) -> None:
    """Do what ``upsert`` does for a few, with one statement: two of them cost hardly more than one.

    A mark stands in a statement once, so the numbers say which value it is.
    """
    keyed, valued = _PAIRS[table]
    pairs = list(values.items())
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        if len(some) == 1:
            upsert(run, table, *some[0])
            continue
        marks = [(f"${2 * n + 1}", f"${2 * n + 2}") for n in range(len(some))]
        cases = " ".join(f"WHEN {key} THEN {value}" for key, value in marks)
        among = ", ".join(key for key, _ in marks)
        changed = run(
            f"UPDATE {table} SET {valued} = CASE {keyed} {cases} END"  # noqa: S608 - our words
            f" WHERE {keyed} IN ({among})",
            [part for pair in some for part in pair],
        ).fetchone()
        if not changed or changed[0] != len(some):  # which of them were there nobody has said
            for key, value in some:
                upsert(run, table, key, value)

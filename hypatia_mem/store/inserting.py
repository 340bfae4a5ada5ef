"""Putting rows into tables: many with one statement, and one that may be there already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["insert", "upsert"]

_PAIRS = {"cursor": ("key", "position"), "meta": ("key", "value")}


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

"""Reading the graph: statements as edges, their ends as nodes, within what a question may see.

Nothing withheld is ever found, because only the live views are read. An end whose entry lies in
scopes that were not asked for is a bare name here: its text belongs to another project.

Growing from a few names is done a hop at a time with one statement each: at two million statements
that takes a seventh of what a recursive query does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = [
    "LABELS",
    "Direction",
    "Edge",
    "Node",
    "View",
    "count_names",
    "edges_all",
    "edges_among",
    "edges_touching",
    "entries_of",
    "named",
    "names_called",
    "names_near",
    "nodes_of",
    "predicates",
    "rows_at",
    "rows_touching",
]

Direction: TypeAlias = Literal["out", "in", "both"]

# ``X is_a rule`` only repeats an entry's kind; as edges they would join everything to everything.
LABELS = ("rule", "taboo", "memory", "work-unit", "archive")


@dataclass(frozen=True, slots=True)
class Edge:
    """A statement, read as an edge from its subject to its object."""

    triple: str
    subject: str
    predicate: str
    object: str
    content: str
    scopes: tuple[str, ...]
    trust: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Node:
    """A name of the graph. ``kind`` is ``name`` when no entry of that name can be read here."""

    name: str
    kind: str = "name"
    content: str = ""
    tags: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What of the store a question sees.

    ``scopes`` None means all. ``predicates`` empty means all, ``without`` are left out. Without
    ``messages`` no message and no ``belongTo`` is seen, without ``labels`` no ``is_a`` of
    ``LABELS``; names in ``spared`` are seen all the same, for somebody asked for them.
    """

    scopes: tuple[str, ...] | None
    messages: bool = False
    labels: bool = False
    predicates: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


_COLUMNS = "triple, subject, predicate, object, content, scopes, trust, created_at"
_SEEN = """
    seen AS (
        SELECT * FROM found WHERE subject NOT IN (SELECT name FROM talk)
        AND object NOT IN (SELECT name FROM talk)
    )
"""
_TALK = """
    talk AS (
        SELECT name FROM entry WHERE kind = 'message'
        AND name IN (SELECT subject FROM found UNION ALL SELECT object FROM found)
        AND name NOT IN (SELECT unnest({spared}::VARCHAR[]))
    )
"""
_IN_ORDER = " SELECT * FROM seen ORDER BY created_at, triple"
_COUNT = " SELECT count(*) FROM (SELECT subject FROM seen UNION SELECT object FROM seen)"


class _Where:
    """Conditions of a view, made of constants, with their parameters numbered as they come."""

    def __init__(self, view: View) -> None:
        self.params: list[Any] = []
        self.conditions: list[str] = []
        self._spared = list(view.spared)
        self._spared_number = ""
        if view.scopes is not None:
            self.add("list_has_any(scopes, {}::VARCHAR[])", list(view.scopes))
        if view.predicates:
            self.add("predicate IN (SELECT unnest({}::VARCHAR[]))", list(view.predicates))
        if view.without:
            self.add("predicate NOT IN (SELECT unnest({}::VARCHAR[]))", list(view.without))
        if not view.messages:
            self.conditions.append(
                f"(predicate <> 'belongTo' OR {self._spares('subject', 'object')})"
            )
        if not view.labels:
            labels = self.number(list(LABELS))
            self.conditions.append(
                "(predicate <> 'is_a' OR object NOT IN (SELECT unnest("
                f"{labels}::VARCHAR[])) OR {self._spares('object')})"
            )

    def number(self, value: Any) -> str:
        self.params.append(value)
        return f"${len(self.params)}"

    @property
    def spared(self) -> str:
        if not self._spared_number:  # a parameter that no condition uses would be refused
            self._spared_number = self.number(self._spared)
        return self._spared_number

    def add(self, condition: str, value: Any) -> None:
        self.conditions.append(condition.format(self.number(value)))

    def _spares(self, *ends: str) -> str:
        return " OR ".join(f"list_contains({self.spared}::VARCHAR[], {end})" for end in ends)

    @property
    def sql(self) -> str:
        return " AND ".join(self.conditions) or "true"


def _seen(view: View, where: _Where, found: Sequence[str]) -> str:
    """Return the common tables ``found`` (a union of SELECTs of this module) and ``seen``."""
    ctes = ["found AS (" + " UNION ".join(found) + ")"]
    if view.messages:
        ctes.append("seen AS (SELECT * FROM found)")
    else:
        ctes.append(_TALK.format(spared=where.spared))
        ctes.append(_SEEN)
    return "WITH " + ", ".join(ctes)


def _edges(store: Store, view: View, where: _Where, found: Sequence[str]) -> list[Edge]:
    sql = _seen(view, where, found) + _IN_ORDER
    return [_edge(row) for row in store.run(sql, where.params)]


def _select(where: _Where, more: str = "true") -> str:
    return f"SELECT {_COLUMNS} FROM live_statement WHERE {where.sql} AND {more}"  # noqa: S608 - ours


def edges_touching(
    store: Store, view: View, names: Iterable[str], direction: Direction = "both"
) -> list[Edge]:
    """Return the edges that leave ``names`` (``out``), enter them (``in``), or either."""
    where = _Where(view)
    frontier = where.number(list(names))
    ends = {"out": ("subject",), "in": ("object",), "both": ("subject", "object")}[direction]
    # one SELECT an end: an OR of two would look at every statement instead of a few
    found = [_select(where, f"{end} IN (SELECT unnest({frontier}::VARCHAR[]))") for end in ends]
    return _edges(store, view, where, found)


def edges_among(store: Store, view: View, names: Iterable[str]) -> list[Edge]:
    """Return the edges whose two ends are both among ``names``."""
    where = _Where(view)
    inside = f"(SELECT unnest({where.number(list(names))}::VARCHAR[]))"
    return _edges(
        store, view, where, [_select(where, f"subject IN {inside} AND object IN {inside}")]
    )


def edges_all(store: Store, view: View) -> list[Edge]:
    """Return every edge of the view; ask ``count_names`` first."""
    where = _Where(view)
    return _edges(store, view, where, [_select(where)])


def count_names(store: Store, view: View) -> int:
    """Return how many names stand at the ends of the view's edges."""
    where = _Where(view)
    sql = _seen(view, where, [_select(where)]) + _COUNT
    found = store.execute(sql, where.params).fetchone()
    return int(found[0]) if found else 0


def entries_of(store: Store, view: View, limit: int) -> list[Node]:
    """Return the view's entries, with statements or without, oldest first, at most ``limit``.

    Messages and sessions are left out, but for a view of messages.
    """
    rows = store.run(
        """
        SELECT * FROM live_entry WHERE ($1 OR kind NOT IN ('message', 'session'))
        AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        ORDER BY created_at, name LIMIT $3
        """,
        [view.messages, _list(view.scopes), limit],
    )
    return [_node(row) for row in rows]


def nodes_of(store: Store, names: Iterable[str], scopes: Sequence[str] | None) -> dict[str, Node]:
    """Return a node for every name; one without an entry in ``scopes`` is a bare name."""
    wanted = list(dict.fromkeys(names))
    rows = store.run(
        """
        SELECT * FROM live_entry WHERE name IN (SELECT unnest($1::VARCHAR[]))
        AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        """,
        [wanted, _list(scopes)],
    )
    known = {row["name"]: _node(row) for row in rows}
    return {name: known.get(name) or Node(name) for name in wanted}


def named(store: Store, name: str, scopes: Sequence[str] | None) -> bool:
    """Tell whether an entry of these scopes has this name, or a statement of them such an end."""
    found = store.execute(
        """
        SELECT 1 FROM live_entry WHERE name = $1
            AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        UNION ALL SELECT 1 FROM live_statement WHERE (subject = $1 OR object = $1)
            AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        LIMIT 1
        """,
        [name, _list(scopes)],
    ).fetchone()
    return found is not None


def names_called(store: Store, alias: str, scopes: Sequence[str] | None) -> list[str]:
    """Return the names that have ``alias`` as an exact synonym, in an entry or at an end."""
    rows = store.execute(
        """
        WITH spoken AS (
            SELECT subject, object, TRY_CAST(synonyms AS JSON) AS words FROM live_statement
            WHERE synonyms IS NOT NULL
            AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        )
        SELECT name FROM live_entry WHERE list_contains(synonyms, $1)
            AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        UNION SELECT subject FROM spoken
            WHERE list_contains(json_extract_string(words, '$.subject[*]'), $1)
        UNION SELECT object FROM spoken
            WHERE list_contains(json_extract_string(words, '$.object[*]'), $1)
        ORDER BY 1
        """,
        [alias, _list(scopes)],
    ).fetchall()
    return [str(row[0]) for row in rows]


def names_near(store: Store, name: str, scopes: Sequence[str] | None, limit: int = 3) -> list[str]:
    """Return names that look like ``name``, the likest first: for a question that found nothing."""
    rows = store.execute(
        """
        SELECT name FROM (
            SELECT name FROM live_entry WHERE kind <> 'message'
                AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
            UNION SELECT unnest([subject, object]) FROM live_statement
                WHERE predicate NOT IN ('belongTo', 'derivedFrom')
                AND ($2::VARCHAR[] IS NULL OR list_has_any(scopes, $2::VARCHAR[]))
        ) WHERE jaro_winkler_similarity(lower(name), lower($1)) >= 0.8
        ORDER BY jaro_winkler_similarity(lower(name), lower($1)) DESC, name LIMIT $3
        """,
        [name, _list(scopes), limit],
    ).fetchall()
    return [str(row[0]) for row in rows]


def rows_touching(store: Store, name: str) -> list[dict[str, Any]]:
    """Return the whole row of every statement with ``name`` at an end, withheld ones too."""
    return store.run(
        "SELECT * FROM statement WHERE subject = $1 OR object = $1 ORDER BY created_at, triple",
        [name],
    )


def rows_at(store: Store, triples: Sequence[str]) -> list[dict[str, Any]]:
    """Return the whole row of each of these statements that exists, withheld ones too."""
    return store.run(
        "SELECT * FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))", [list(triples)]
    )


def predicates(store: Store, scopes: Sequence[str] | None) -> dict[str, int]:
    """Return every predicate of these scopes with its number of statements."""
    rows = store.execute(
        """
        SELECT predicate, count(*) FROM live_statement
        WHERE $1::VARCHAR[] IS NULL OR list_has_any(scopes, $1::VARCHAR[])
        GROUP BY predicate ORDER BY predicate
        """,
        [_list(scopes)],
    ).fetchall()
    return {str(name): int(number) for name, number in rows}


# ----------------------------------------------------------------------------------------------


def _list(scopes: Sequence[str] | None) -> list[str] | None:
    return None if scopes is None else list(scopes)


def _edge(row: Mapping[str, Any]) -> Edge:
    return Edge(**{**row, "scopes": tuple(row["scopes"])})


def _node(row: Mapping[str, Any]) -> Node:
    kind = row["kind"]
    if kind == "knowledge" and "work-unit" in row["tags"]:
        kind = "work-unit"
    return Node(
        name=row["name"],
        kind=kind,
        content=row["content"],
        tags=tuple(row["tags"]),
        scopes=tuple(row["scopes"]),
        synonyms=tuple(row["synonyms"]),
        created_at=row["created_at"],
    )

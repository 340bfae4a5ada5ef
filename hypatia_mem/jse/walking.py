"""Names and steps: aliases, and what ``$k-hop`` reaches.

**Aliases.** A name stands for more than itself. An entry's ``synonyms`` are other names of what the
entry describes, and the entry's name is one too: whoever asks by one of these names asks by all of
them. A statement's own ``synonyms`` (``{"subject": [...], "predicate": [...], "object": [...]}``,
also under ``head``, ``relation``, ``tail``) are other names of that part of that statement alone.
Names match whole and exactly. One look-up is made for a name that is asked for, and none for the
names it finds, so chains of aliases are not followed. Only entries that the query may read count:
its scopes, its times, and the ``scopes`` conditions joined to it by and.

**Steps.** One step of ``$k-hop`` from a name is what ``$triple`` finds for that name at the near
end; the names at the far ends are the next. Each name is visited once, at the smallest number of
steps, so the work is bounded by the number of statements whatever the depth is. A statement's
``hop`` is the step that reaches it. Conditions beside ``$k-hop`` choose among its statements,
except that those on ``scopes`` hold for every step: a walk does not cross what may not be read.

A walk of few steps is one recursive query. A deep one is walked here when the caller can read: the
engine looks at every visited name again in each step, which a chain of thousands would feel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hypatia_mem.jse.nodes import Direction

__all__ = ["DEEP", "edge_sql", "ends", "reached", "walk_sql"]

DEEP = 8
"""From so many steps on a walk is better walked in Python."""

_ENDS: Mapping[Direction, tuple[tuple[str, str], ...]] = {
    "forward": (("subject", "object"),),
    "backward": (("object", "subject"),),
    "both": (("subject", "object"), ("object", "subject")),
}


def ends(direction: Direction) -> tuple[tuple[str, str], ...]:
    """Return the (near, far) ends that a direction walks."""
    return _ENDS[direction]


def reached(
    start: str,
    depth: int,
    edges: Iterable[Sequence[str]],
    named: Iterable[Sequence[str]],
) -> dict[str, int]:
    """Return the hop of every statement within ``depth`` steps, nearest first.

    ``edges`` are (kind, near, far, triple): the near end is a name (kind ``name``) or an entry all
    of whose names count (kind ``entry``). ``named`` are (name, entry) of entries with aliases.
    """
    steps: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for kind, near, far, triple in edges:
        steps[kind, near].append((far, triple))
    entries: dict[str, list[str]] = defaultdict(list)
    for name, entry in named:
        entries[name].append(entry)
    hops: dict[str, int] = {}
    visited = {start}
    frontier = [start]
    hop = 0
    while frontier and hop < depth:
        hop += 1
        following: list[str] = []
        for name in frontier:
            for at in (("name", name), *(("entry", entry) for entry in entries.get(name, ()))):
                for far, triple in steps.get(at, ()):
                    hops.setdefault(triple, hop)
                    if far not in visited:
                        visited.add(far)
                        following.append(far)
        frontier = following
    return hops


def edge_sql(number: int, direction: Direction, own: Mapping[str, str]) -> str:
    """Return the SELECT of all edges over the tables ``said<n>`` and ``named<n>``.

    ``own`` is the SQL of a statement's own synonyms by part.
    """
    parts: list[str] = []
    for near, far in ends(direction):
        parts += [
            f"SELECT 'name' AS kind, e.{near} AS near, e.{far} AS far, e.triple"  # noqa: S608 - constants only
            f" FROM said{number} AS e",
            f"SELECT 'name', unnest({own[near]}), e.{far}, e.triple"  # noqa: S608 - constants only
            f" FROM said{number} AS e WHERE e.synonyms IS NOT NULL",
            f"SELECT 'entry', k.entry, e.{far}, e.triple"  # noqa: S608 - constants only
            f" FROM said{number} AS e JOIN named{number} AS k ON k.name = e.{near}",
        ]
    return "\n  UNION ALL ".join(parts)


def walk_sql(number: int) -> list[str]:
    """Return the tables that walk ``edge<n>``; ``reached<n>`` has each statement's hop.

    Takes two parameters: the name to start from, and the depth.
    """
    at = (
        f"(SELECT 'name' AS kind, node AS near, dist FROM walk{number}"  # noqa: S608 - constants only
        f" UNION ALL SELECT 'entry', k.entry, w.dist FROM walk{number} AS w"
        f" JOIN named{number} AS k ON k.name = w.node)"
    )
    step = f"{at} AS f JOIN edge{number} AS x ON x.kind = f.kind AND x.near = f.near"
    return [
        f"walk{number}(node, dist) USING KEY (node) AS (\n"  # noqa: S608 - constants only
        f"  SELECT ?::VARCHAR, 0 UNION\n"
        f"  SELECT x.far, min(f.dist) + 1 FROM {step}\n"
        f"  WHERE f.dist + 1 < ?"
        f" AND x.far NOT IN (SELECT node FROM recurring.walk{number}) GROUP BY x.far)",
        f"reached{number} AS (SELECT x.triple AS key, min(f.dist) + 1 AS hop"  # noqa: S608 - constants only
        f" FROM {step} GROUP BY x.triple)",
    ]

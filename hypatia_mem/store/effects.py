"""What a change that is still open has done so far, by name. Reading only.

It is read from the earlier states that every write leaves behind, so that whatever a change reached
is here, however it got there: nobody has to say it beside doing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import Trust
from hypatia_mem.store import episodes, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hypatia_mem.store.connection import Store

__all__ = ["Effect", "effects", "statements"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What became of one entry.

    ``what`` is ``made``, ``gone``, ``withheld`` (shown until now), ``shown`` (withheld until now),
    ``stale``, or ``changed``. ``on`` is what it stands on, or stood; of what is condensed or told
    anew, ``left`` are those of them that are still there.
    """

    name: str
    kind: str
    scopes: tuple[str, ...]
    what: str
    on: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def effects(store: Store, since: int) -> list[Effect]:
    """Return what became of every entry that was written since this row of the ledger, by name."""
    found = store.run(
        """
        WITH earlier AS (
            SELECT name, kind, tags, scopes, trust, suppressed, seq FROM version
            WHERE replaced_seq > $1
            QUALIFY row_number() OVER (PARTITION BY name ORDER BY replaced_seq) = 1
        )
        SELECT coalesce(earlier.name, entry.name) AS name,
            coalesce(entry.kind, earlier.kind) AS kind, coalesce(entry.tags, earlier.tags) AS tags,
            coalesce(entry.scopes, earlier.scopes) AS scopes, entry.trust,
            entry.name IS NOT NULL AS there,
            earlier.name IS NOT NULL AND earlier.seq <= $1 AS was_there,
            entry.trust IN ('candidate', 'rejected') OR entry.suppressed AS hidden,
            earlier.trust IN ('candidate', 'rejected') OR earlier.suppressed AS was_hidden,
            earlier.trust AS was_trust
        FROM earlier FULL JOIN (SELECT * FROM entry WHERE seq > $1) AS entry
            ON entry.name = earlier.name
        ORDER BY 1
        """,
        [since],
    )
    wanted = [row for row in found if row["there"] or row["was_there"]]
    on = _stood_on(store, [str(row["name"]) for row in wanted], since)
    live = {
        one.name for one in store.live_entries({name for names in on.values() for name in names})
    }
    return [_effect(row, on.get(row["name"], ()), live) for row in wanted]


def statements(store: Store, since: int, hidden: Iterable[str] = ()) -> list[str]:
    """Return the keys of all statements written since this row, and of those seen no more.

    ``hidden`` are entries that are withheld from now on, or shown again.
    """
    found = store.execute(
        """
        SELECT triple FROM statement_version WHERE replaced_seq > $1
        UNION SELECT triple FROM statement WHERE seq > $1
        ORDER BY 1
        """,
        [since],
    ).fetchall()
    names = [str(row[0]) for row in found]
    return list(dict.fromkeys([*names, *store.triples_of(list(hidden))]))


# ----------------------------------------------------------------------------------------------


def _effect(row: Mapping[str, Any], on: tuple[str, ...], live: set[str]) -> Effect:
    anew = sources.level_of(row["tags"]) == 1 or row["kind"] in episodes.MADE_ANEW
    return Effect(
        name=str(row["name"]),
        kind=str(row["kind"]),
        scopes=tuple(row["scopes"]),
        what=_what(row),
        on=on,
        left=tuple(name for name in on if name in live) if anew and not row["there"] else (),
    )


def _what(row: Mapping[str, Any]) -> str:
    if not row["there"]:
        return "gone"
    if not row["was_there"]:
        return "withheld" if row["hidden"] else "made"
    if bool(row["hidden"]) is not bool(row["was_hidden"]):
        return "withheld" if row["hidden"] else "shown"
    if row["trust"] == Trust.STALE != row["was_trust"]:
        return "stale"
    return "changed"


def _stood_on(store: Store, names: Sequence[str], since: int) -> dict[str, tuple[str, ...]]:
    """Return by name what derived things stand on, or stood on before this change."""
    found = store.run(
        """
        WITH named AS (SELECT unnest($1::VARCHAR[]) AS subject), link AS (
            SELECT subject, object, predicate FROM statement
            UNION
            SELECT subject, object, predicate FROM statement_version WHERE replaced_seq > $3
        )
        SELECT subject, list(DISTINCT object ORDER BY object) AS below
        FROM link JOIN named USING (subject)
        WHERE predicate = 'summary' OR list_contains($2, predicate) GROUP BY subject
        """,
        [list(names), list(sources.DERIVING), since],
    )
    return {str(row["subject"]): tuple(row["below"]) for row in found}

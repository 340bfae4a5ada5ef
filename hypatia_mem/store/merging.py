"""Writing statements under other ends: what a merge of two names does to all of them at once.

Whole rows go in and out, so nothing of a statement is lost on the way: neither its validity nor
where it came from. A hub with ten thousand statements takes as many SQL statements as one with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypatia_mem.model import Outcome
from hypatia_mem.store import rows
from hypatia_mem.store.tombstones import Tombstones, canonical
from hypatia_mem.store.versions import Versions
from hypatia_mem.store.writing import TABLES, plain

__all__ = ["MergeWrites"]

# What may differ in a statement after another was joined with it.
_JOINED = (
    "content", "scopes", "synonyms", "trust", "valid_from", "valid_to", "expired_at", "created_at",
)  # fmt: skip


class MergeWrites(Tombstones, Versions):
    """The part of a transaction that gives statements other ends."""

    def refuse_name(self, name: str, scopes: Sequence[str]) -> Outcome | None:
        """Return the refusal of a name that was forgotten in these scopes, None if it may be."""
        return self._refusal(
            self._tomb_digests({"name:" + canonical(rows.clean(name))}), scopes, name, "statement"
        )

    def rewrite_statements(
        self,
        moved: Sequence[Mapping[str, Any]],
        joined: Sequence[Mapping[str, Any]],
        gone: Sequence[str],
        *,
        reason: str,
    ) -> None:
        """Put in ``moved`` (whole rows under new keys), change ``joined``, take ``gone`` out.

        Every row is one of the ledger, and its earlier state is kept as a version.
        """
        self._retire(
            "statement",
            {key: self._note("delete", key, "statement", reason=reason) for key in gone},
        )
        self._forget_touched(list(gone))
        self.store.execute(
            "DELETE FROM statement WHERE triple IN (SELECT unnest(?::VARCHAR[]))", [list(gone)]
        )
        self._join([dict(row) for row in joined], reason)
        fresh = [{**row, "recorded_at": self.now} for row in moved]
        for row in fresh:
            row["seq"] = self._note(
                "create",
                row["triple"],
                "statement",
                after=rows.digest(row["content"]),
                reason=reason,
            )
        self._bulk("statement", fresh)

    def _join(self, joined: list[dict[str, Any]], reason: str) -> None:
        if not joined:
            return
        for row in joined:
            row["seq"] = self._note(
                "update",
                row["triple"],
                "statement",
                after=rows.digest(row["content"]),
                reason=reason,
            )
        self._retire("statement", {row["triple"]: row["seq"] for row in joined})
        names = ("triple", "seq", *_JOINED)
        types = {name: TABLES["statement"][name] for name in names}
        sets = ", ".join(f"{name} = v.one.{name}" for name in ("seq", *_JOINED))
        values = [{name: rows.storable(row[name]) for name in names} for row in joined]
        self.store.execute(
            f"""
            UPDATE statement SET {sets}
            FROM (SELECT unnest(from_json($1::JSON, $2)) AS one) AS v
            WHERE statement.triple = v.one.triple
            """,  # noqa: S608 - this module's own column names
            [json.dumps(values, default=plain), json.dumps([types])],
        )

"""Forgetting again what an older copy of the store still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypatia_mem.store import history, keys
from hypatia_mem.store.entries import EntryWrites

__all__ = ["ForgettingWrites"]

_Row = Mapping[str, Any]
_AGAIN = "forgotten after this copy was made"


class ForgettingWrites(EntryWrites):
    """The part of a transaction that brings a store up to what was forgotten since."""

    def forget_again(self, tombstones: Sequence[_Row], forgettings: Sequence[_Row]) -> list[str]:
        """Forget what these rows stand for and this store does not know of; return the names.

        An entry goes by its name, or because it says what was forgotten where it would be seen.
        """
        done = {str(op) for (op,) in self._all("SELECT DISTINCT op_id FROM mutation")}
        later = [row for row in forgettings if row["op_id"] not in done]
        have = {
            (row["digest"], row["scope"], row["op_id"])
            for row in self.store.run("SELECT digest, scope, op_id FROM tombstone")
        }
        fresh = [
            {"target": "", "part": "", "sketch": "", **row}  # an older file has none of these
            for row in tombstones
            if (row["digest"], row["scope"], row["op_id"]) not in have
        ]
        names = self._named(later) | self._saying(fresh)
        self._bulk("tombstone", fresh)
        self._graves_changed()
        for name in sorted(names):
            if self.store.entry(name) or history.last_entry(self.store, name):
                self.delete_entry(name, _AGAIN, tombstone=True)
        for row in later:  # under its own id, so that it is known here too
            said = {name: str(row[name]) for name in ("op_id", "verb", "target", "before_digest")}
            self._append(**said, after_digest="", reason=_AGAIN)
        self._keep_buried()
        return sorted(names)

    def _named(self, forgettings: Sequence[_Row]) -> set[str]:
        targets = {str(row["target"]) for row in forgettings}
        if not targets:
            return set()
        known = self._all("SELECT name FROM entry UNION SELECT name FROM version")
        ring = keys.keyring(self.store.home)
        return {
            name
            for (name,) in known
            if name in targets or any(key.target(name) in targets for key in ring)
        }

    def _saying(self, fresh: Sequence[_Row]) -> set[str]:
        """Return the entries that say what one of these tombstones keeps away."""
        if not fresh:
            return set()
        new = {str(row["digest"]) for row in fresh}
        found: set[str] = set()
        for row in self.store.run("SELECT name, content, kind, scopes FROM entry"):
            digests = self._entry_digests(row["name"], row["content"], row["kind"])
            hit = new.intersection(digests)
            if any(one["digest"] in hit and _covers(one["scope"], row["scopes"]) for one in fresh):
                found.add(row["name"])
        return found

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        return self.store.execute(sql).fetchall()


# ----------------------------------------------------------------------------------------------


def _covers(scope: str, scopes: Sequence[str]) -> bool:
    return not scopes or "" in scopes or scope == "" or scope in scopes

"""Writing projects, folders, cursors and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypatia_mem.model import Outcome
from hypatia_mem.store import rows
from hypatia_mem.store.inserting import upsert
from hypatia_mem.store.versions import VERSIONS, Versions

__all__ = ["UpkeepWrites"]


class UpkeepWrites(Versions):
    """The part of a transaction that changes what is known of projects and of reading."""

    def put_project(
        self,
        scope: str,
        *,
        aliases: Sequence[str] | None = None,
        excluded: bool | None = None,
    ) -> Outcome:
        """Store a project; what is None stays as it was."""
        found = self.store.run("SELECT * FROM project WHERE scope = ?", [scope])
        if found:
            row = found[0]
            wanted = {
                "aliases": row["aliases"] if aliases is None else list(aliases),
                "excluded": row["excluded"] if excluded is None else excluded,
            }
            self.store.execute(
                "UPDATE project SET aliases = ?, excluded = ? WHERE scope = ?",
                [wanted["aliases"], wanted["excluded"], scope],
            )
            became = {**row, **wanted}
        else:
            became = {
                "scope": scope,
                "aliases": list(aliases or ()),
                "excluded": bool(excluded),
                "created_at": self.now,
            }
            self.store.execute("INSERT INTO project VALUES (?, ?, ?, ?)", list(became.values()))
        seq = self._note("update" if found else "create", scope, "project", index=False)
        self._keep_image(seq, "project", scope, found[0] if found else None, became)
        return Outcome("updated" if found else "created", scope)

    def put_root(
        self, path: str, *, scope: str, git_key: str = "", origin_key: str = "", remote: str = ""
    ) -> Outcome:
        """Store a folder's marks and the project it belongs to."""
        path = rows.clean(path)
        before = self._root(path)
        became = {
            "path": path,
            "scope": scope,
            "git_key": git_key,
            "origin_key": origin_key,
            "remote": rows.clean(remote),
            "seen_at": self.now,
        }
        self.store.execute("DELETE FROM root WHERE path = ?", [path])
        self.store.execute("INSERT INTO root VALUES (?, ?, ?, ?, ?, ?)", list(became.values()))
        self._keep_image(
            self._note("update", scope, "root", index=False), "root", path, before, became
        )
        return Outcome("updated", path)

    def delete_root(self, path: str) -> Outcome:
        """Forget a folder; its project stays."""
        path = rows.clean(path)
        before = self._root(path)
        self.store.execute("DELETE FROM root WHERE path = ?", [path])
        self._keep_image(self._note("delete", "", "root", index=False), "root", path, before, None)
        return Outcome("deleted", path)

    def _root(self, path: str) -> dict[str, Any] | None:
        found = self.store.run("SELECT * FROM root WHERE path = ?", [path])
        return found[0] if found else None

    def rename_scope(self, old: str, new: str) -> int:
        """Put everything of scope ``old`` under ``new``; returns how many entries changed."""
        names = self._rescope("entry", old, new)
        self._rescope("statement", old, new)
        seq = self._note("rename", new, "project", reason="scope", index=False)
        for kind, key, field in (
            ("session", "id", "project"),
            ("root", "path", "scope"),
            ("tombstone", "digest", "scope"),
        ):
            self._rename_in(seq, kind, key, field, old, new)
        self._graves_changed()
        found = self.store.run("SELECT * FROM project WHERE scope = ?", [old])
        target = self.store.run("SELECT * FROM project WHERE scope = ?", [new])
        if found:
            self.store.execute("DELETE FROM project WHERE scope = ?", [old])
            self._keep_image(seq, "project", old, found[0], None)
        if found and not target:
            self.put_project(new, aliases=found[0]["aliases"], excluded=found[0]["excluded"])
        return names

    def _rename_in(self, seq: int, kind: str, key: str, field: str, old: str, new: str) -> None:
        """Put a small table's rows under another scope."""
        for row in self.store.run(
            f"SELECT * FROM {kind} WHERE {field} = ?",  # noqa: S608 - our own names
            [old],
        ):
            whole = kind == "tombstone"  # its rows have no key of their own
            was = row if whole else {field: old}
            self._keep_image(seq, kind, row[key], was, {**was, field: new})
        self.store.execute(
            f"UPDATE {kind} SET {field} = ? WHERE {field} = ?",  # noqa: S608 - our own names
            [new, old],
        )

    def _rescope(self, table: str, old: str, new: str) -> int:
        """Put a table's rows of one scope under another; returns how many there were."""
        key = VERSIONS[table][1]
        found = self.store.execute(
            f"SELECT {key} FROM {table} WHERE list_contains(scopes, ?)",  # noqa: S608 - our names
            [old],
        ).fetchall()
        noted = {str(name): self._note("rescope", str(name), table) for (name,) in found}
        self._retire(table, noted)
        more = ", version = version + 1, updated_at = $5" if table == "entry" else ""
        swap = "CASE WHEN x = $1 THEN $2 ELSE x END"
        self.store.execute(
            f"""
            UPDATE {table}
            SET scopes = list_distinct(list_transform(scopes, lambda x: {swap})), seq = v.seq{more}
            FROM (SELECT unnest($3::VARCHAR[]) AS key, unnest($4::BIGINT[]) AS seq) AS v
            WHERE {table}.{key} = v.key
            """,  # noqa: S608 - our own names
            [old, new, list(noted), list(noted.values()), *([self.now] if more else [])],
        )
        return len(noted)

    def set_cursor(self, key: str, position: int) -> None:
        """Say how far a spool segment or a transcript has been read."""
        upsert(self.store.execute, "cursor", key, position)

    def set_cursors(self, cursors: dict[str, int]) -> None:
        """Say it for many, at the end of the change: until then they stand where they stood."""
        self._cursors |= cursors

    def delete_cursors(self, keys: Iterable[str]) -> None:
        """Drop the cursors of segments that are gone."""
        for key in set(keys) & self._cursors.keys():
            del self._cursors[key]
        self.store.execute(
            "DELETE FROM cursor WHERE key IN (SELECT unnest(?::VARCHAR[]))", [list(keys)]
        )

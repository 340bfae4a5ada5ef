"""Writing projects, folders, cursors and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypatia_mem.model import Outcome
from hypatia_mem.store import rows
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
        else:
            self.store.execute(
                "INSERT INTO project VALUES (?, ?, ?, ?)",
                [scope, list(aliases or ()), bool(excluded), self.now],
            )
        self._note("update" if found else "create", scope, "project", index=False)
        return Outcome("updated" if found else "created", scope)

    def put_root(
        self, path: str, *, scope: str, git_key: str = "", origin_key: str = "", remote: str = ""
    ) -> Outcome:
        """Store a folder's marks and the project it belongs to."""
        path = rows.clean(path)
        self.store.execute("DELETE FROM root WHERE path = ?", [path])
        self.store.execute(
            "INSERT INTO root VALUES (?, ?, ?, ?, ?, ?)",
            [path, scope, git_key, origin_key, rows.clean(remote), self.now],
        )
        self._note("update", scope, "root", index=False)
        return Outcome("updated", path)

    def delete_root(self, path: str) -> Outcome:
        """Forget a folder; its project stays."""
        self.store.execute("DELETE FROM root WHERE path = ?", [rows.clean(path)])
        self._note("delete", "", "root", index=False)
        return Outcome("deleted", path)

    def rename_scope(self, old: str, new: str) -> int:
        """Put everything of scope ``old`` under ``new``; returns how many entries changed."""
        names = self._rescope("entry", old, new)
        self._rescope("statement", old, new)
        self.store.execute("UPDATE session SET project = ? WHERE project = ?", [new, old])
        self.store.execute("UPDATE root SET scope = ? WHERE scope = ?", [new, old])
        self.store.execute("UPDATE tombstone SET scope = ? WHERE scope = ?", [new, old])
        found = self.store.run("SELECT * FROM project WHERE scope = ?", [old])
        target = self.store.run("SELECT * FROM project WHERE scope = ?", [new])
        self.store.execute("DELETE FROM project WHERE scope = ?", [old])
        if found and not target:
            self.put_project(new, aliases=found[0]["aliases"], excluded=found[0]["excluded"])
        self._note("rename", new, "project", reason="scope", index=False)
        return names

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
        self.store.execute("DELETE FROM cursor WHERE key = ?", [key])
        self.store.execute("INSERT INTO cursor VALUES (?, ?)", [key, position])

    def set_cursors(self, cursors: dict[str, int]) -> None:
        """Say it for many at once."""
        for key, position in cursors.items():
            self.set_cursor(key, position)

    def delete_cursors(self, keys: Iterable[str]) -> None:
        """Drop the cursors of segments that are gone."""
        self.store.execute(
            "DELETE FROM cursor WHERE key IN (SELECT unnest(?::VARCHAR[]))", [list(keys)]
        )

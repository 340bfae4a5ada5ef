"""Earlier states: what a change replaces is kept whole, what is forgotten is kept nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypatia_mem.model import GLOBAL_SCOPE, Entry
from hypatia_mem.store import rows, vectors
from hypatia_mem.store.tombstones import canonical
from hypatia_mem.store.writing import TABLES, Writing

__all__ = ["VERSIONS", "Versions"]

# table -> the table of its earlier states, and its key
VERSIONS = {"entry": ("version", "name"), "statement": ("statement_version", "triple")}


class Versions(Writing):
    """The part of a transaction that keeps, and purges, earlier states."""

    def _retire(self, table: str, replaced: Mapping[str, int]) -> None:
        """Keep rows as they stand as versions; ``replaced``: by which ledger row each is replaced.

        One statement, however many there are.
        """
        if not replaced:
            return
        vectors.drop(self.store, table, replaced)
        if table == "entry":
            self._replaced |= replaced.keys()
        target, key = VERSIONS[table]
        into = ", ".join(f'"{name}"' for name in TABLES[table])
        columns = ", ".join(f'one."{name}"' for name in TABLES[table])
        self.store.execute(
            f"""
            INSERT INTO {target} ({into}, replaced_seq, replaced_at, op_id)
            SELECT {columns}, v.seq, $1, $2
            FROM {table} AS one
            JOIN (SELECT unnest($3::VARCHAR[]) AS key, unnest($4::BIGINT[]) AS seq) AS v
                ON one.{key} = v.key
            """,  # noqa: S608 - tables and columns are this module's own constants
            [self.now, self.op_id, list(replaced), list(replaced.values())],
        )

    def _next_version(self, name: str) -> int:
        """Return the version number of a new entry: a name that had versions goes on from them."""
        found = self.store.execute(
            "SELECT coalesce(max(version), 0) + 1 FROM version WHERE name = ?", [name]
        ).fetchone()
        return int(found[0]) if found else 1

    def _next_versions(self, names: Sequence[str]) -> dict[str, int]:
        """Return the next version numbers of those of these names that had versions before."""
        found = self.store.execute(
            "SELECT name, max(version) + 1 FROM version"
            " WHERE name IN (SELECT unnest(?::VARCHAR[])) GROUP BY name",
            [list(names)],
        ).fetchall()
        return {str(name): int(version) for name, version in found}

    def _empty_messages(self, noted: Mapping[str, int]) -> None:
        """Take the words out of deleted messages' rows; images of them are kept.

        ``noted``: the ledger row that each is deleted by. The rows themselves stay, so that nobody
        takes their lines or their hooks' records for something new.
        """
        if not noted:
            return
        found = self.store.run(
            """
            SELECT concat('msg-', session_id, '-', turn) AS name, parts, text_digest FROM message
            WHERE name IN (SELECT unnest(?::VARCHAR[]))
            """,
            [list(noted)],
        )
        sealed = {row["name"]: self.sealed(row["text_digest"]) for row in found}
        for row in found:
            was = {"parts": row["parts"], "text_digest": row["text_digest"]}
            became = {"parts": "[]", "text_digest": sealed[row["name"]]}
            self._keep_image(noted[row["name"]], "message", row["name"], was, became)
        self.store.execute(
            """
            UPDATE message SET parts = '[]', text_digest = v.digest
            FROM (SELECT unnest($1::VARCHAR[]) AS name, unnest($2::VARCHAR[]) AS digest) AS v
            WHERE concat('msg-', message.session_id, '-', message.turn) = v.name
            """,
            [list(sealed), list(sealed.values())],
        )

    def sealed(self, digest: str) -> str:
        """Return what is kept of a deleted message's text: a keyed digest of its digest.

        By it a record that brings the same words again is known (``Store.unsealed``), and nobody
        without the memory's key can try out what the words were.
        """
        return rows.seal(self._key, digest)

    def _purge(self, entry: Entry) -> None:
        """Remove what history keeps of a forgotten entry, and of others that said the same.

        Of others every earlier state goes that could not be stored again now.
        """
        name, value = rows.clean(entry.name), canonical(rows.clean(entry.content))
        self.store.execute("DELETE FROM version WHERE name = ?", [name])
        self.store.execute(
            "DELETE FROM statement_version WHERE subject = $1 OR object = $1", [name]
        )
        self._images = [row for row in self._images if row["key"] != name]
        self.store.execute(
            "DELETE FROM image WHERE kind IN ('message', 'verdict') AND key = ?", [name]
        )
        self.store.execute(
            "DELETE FROM image WHERE kind = 'queued' AND key IN"
            " (SELECT key FROM image WHERE kind = 'queued'"
            " AND (coalesce(was, became)->>'name') = ?)",
            [name],
        )
        self.store.execute("DELETE FROM verdict WHERE name = ?", [name])
        self.store.execute("DELETE FROM queued WHERE name = ?", [name])
        for table in ("version", "statement_version") if value else ():
            same = [
                row["id"]
                for row in self.store.run(
                    f"SELECT rowid AS id, content FROM {table}"  # noqa: S608 - our own names
                    " WHERE content <> '' AND ($1 OR len(scopes) = 0"
                    " OR list_has_any(scopes, $2::VARCHAR[]))",
                    [not entry.scopes or GLOBAL_SCOPE in entry.scopes, [*entry.scopes, ""]],
                )
                if canonical(row["content"]) == value
            ]
            self.store.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT unnest(?::BIGINT[]))",  # noqa: S608
                [same],
            )
        vectors.sweep(self.store)

"""What was forgotten: keyed digests of its canonical form, asked before every write."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Entry, Outcome
from hypatia_mem.store import rows
from hypatia_mem.store.writing import Writing

__all__ = ["Tombstones", "canonical"]

_MEMORY_KINDS = frozenset({"rule", "taboo", "memory"})
# What no reader sees and what does not break a line: zero width, fillers, variation selectors.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_COVERED = (
    "digest IN (SELECT unnest($1::VARCHAR[])) AND ($2 OR scope IN (SELECT unnest($3::VARCHAR[])))"
)
_QUOTES = str.maketrans("‘’‚‛“”„‟‐‑‒–—", "'" * 4 + '"' * 4 + "-" * 5)


def canonical(text: str) -> str:
    """Return what two spellings of the same value have in common.

    NFKC, case folded, white space collapsed, zero-width and control characters and the marks of
    sentence ends dropped.

    >>> canonical("Never  mock\\u200b the DB!")
    'never mock the db'
    """
    seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    folded = unicodedata.normalize("NFKC", seen.casefold()).translate(_QUOTES)
    kept = "".join(c for c in folded if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join(kept.split()).strip(" .!?;:。！？\"'`")


class Tombstones(Writing):
    """The part of a transaction that refuses what was forgotten, and buries."""

    def _ask_tombstones(self, entry: Entry) -> Outcome | None:
        """Refuse a forgotten value; from a person it is taken, and the tombstone lifted.

        What was forgotten everywhere is refused everywhere, and what was forgotten in one project
        is refused there and as something global, for that would be seen there again.
        """
        if entry.kind == "message":
            return None
        return self._refusal(self._value_digests(entry), entry.scopes, entry.name, entry.kind)

    def _refusal(
        self, digests: Sequence[str], scopes: Sequence[str], target: str, kind: str
    ) -> Outcome | None:
        if not self._buried(digests, scopes):
            return None
        if self.author.channel in PERSON_CHANNELS and not self._buried(
            digests, scopes, after=self.said_at
        ):
            lifted = self.store.run(
                f"DELETE FROM tombstone WHERE {_COVERED} RETURNING *",  # noqa: S608 - our clause
                _covering(digests, scopes),
            )
            seq = self._note("lift", target, kind, index=False)
            for row in lifted:
                self._keep_image(seq, "tombstone", row["digest"], row, None)
            return None
        self._note("refuse", target, kind, reason="forgotten before", index=False)
        return Outcome("refused", target, reason="this was forgotten before")

    def _bury(self, entry: Entry, reason: str) -> None:
        self._bury_digests(self._value_digests(entry), entry.scopes, reason)

    def _bury_digests(self, digests: Sequence[str], scopes: Sequence[str], reason: str) -> None:
        """Keep digests away from these scopes; one that is kept away already stays as it is."""
        self.store.execute(
            """
            INSERT INTO tombstone
            SELECT new.digest, $3, new.scope, $4, $5, $6, $7
            FROM (
                SELECT * FROM (SELECT unnest($1::VARCHAR[]) AS digest)
                CROSS JOIN (SELECT unnest($2::VARCHAR[]) AS scope)
            ) AS new
            WHERE NOT EXISTS (
                SELECT 1 FROM tombstone AS there
                WHERE there.digest = new.digest AND there.scope = new.scope
            )
            """,
            [
                list(dict.fromkeys(digests)),
                list(scopes) or [GLOBAL_SCOPE],
                self._key.id,
                reason,
                str(self.author.channel),
                self.now,
                self.op_id,
            ],
        )

    def _buried(
        self, digests: Sequence[str], scopes: Sequence[str], *, after: datetime | None = None
    ) -> bool:
        """Tell whether one of these values was forgotten where these scopes would show it.

        ``after``: only if that was later.
        """
        hit = self.store.execute(
            f"SELECT 1 FROM tombstone WHERE {_COVERED}"  # noqa: S608 - our own clause
            ' AND ($4::TIMESTAMP IS NULL OR "at" > $4) LIMIT 1',
            [*_covering(digests, scopes), after],
        ).fetchone()
        return hit is not None

    def _value_digests(self, entry: Entry) -> list[str]:
        return self._entry_digests(entry.name, entry.content, entry.kind)

    def _entry_digests(self, name: str, content: str, kind: str) -> list[str]:
        """Return the digests under which an entry would have been forgotten."""
        values = {canonical(rows.clean(content))}
        if kind in _MEMORY_KINDS:
            values.add("name:" + canonical(rows.clean(name)))
        return self._tomb_digests(values)

    def _statement_digests(
        self, subject: str, predicate: str, object_: str, content: str
    ) -> list[str]:
        """Return the digests of what a statement speaks of, of what it says, and of itself."""
        ends = {"name:" + canonical(end) for end in (subject, object_)}
        itself = _triple_value(subject, predicate, object_)
        return self._tomb_digests({canonical(content), itself, *ends})

    def _bury_statements(self, names: Sequence[str], scopes: Sequence[str], reason: str) -> None:
        """Keep the statements away at one of whose ends such a name stands or stood.

        But for those that only tie the program's own things together.
        """
        found = self.store.execute(
            """
            SELECT subject, predicate, object FROM (
                SELECT subject, predicate, object FROM statement
                UNION SELECT subject, predicate, object FROM statement_version
            )
            WHERE list_has_any([subject, object], $1::VARCHAR[])
              AND predicate NOT IN ('belongTo', 'derivedFrom', 'summary', 'is_a')
            """,
            [list(names)],
        ).fetchall()
        self._bury_digests(
            self._tomb_digests(_triple_value(*map(str, row)) for row in found), scopes, reason
        )

    def _tomb_digests(self, values: Iterable[str]) -> list[str]:
        return [self._key.digest("tombstone", value) for value in values if value]


# ----------------------------------------------------------------------------------------------


def _triple_value(subject: str, predicate: str, object_: str) -> str:
    parts = (canonical(rows.clean(part)) for part in (subject, predicate, object_))
    return "triple:" + "\x1f".join(parts)


def _covering(digests: Sequence[str], scopes: Sequence[str]) -> list[object]:
    """Return the parameters of ``_COVERED``: what is global is seen in every scope."""
    everywhere = not scopes or GLOBAL_SCOPE in scopes
    return [list(digests), everywhere, [*scopes, GLOBAL_SCOPE]]

"""What was forgotten: keyed digests of its canonical form, asked before every write."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Entry, Outcome
from hypatia_mem.store import rows
from hypatia_mem.store.writing import Writing

__all__ = ["Tombstones", "canonical"]

_MEMORY_KINDS = frozenset({"rule", "taboo", "memory"})
_OWN_NAMES = frozenset({"message", "session"})  # names that hold no words of a person
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
        if entry.kind in _OWN_NAMES:
            return None
        return self._refusal(self._value_digests(entry), entry.scopes, entry.name, entry.kind)

    def _refusal(
        self, digests: Sequence[str], scopes: Sequence[str], target: str, kind: str
    ) -> Outcome | None:
        if not self._buried(digests, scopes):
            return None
        if self.author.channel in PERSON_CHANNELS:
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
        for scope in entry.scopes or ("",):
            for value in self._value_digests(entry):
                self.store.execute(
                    "INSERT INTO tombstone VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        value,
                        self._key.id,
                        scope,
                        reason,
                        str(self.author.channel),
                        self.now,
                        self.op_id,
                    ],
                )

    def _buried(self, digests: Sequence[str], scopes: Sequence[str]) -> bool:
        """Tell whether one of these values was forgotten where these scopes would show it."""
        hit = self.store.execute(
            f"SELECT 1 FROM tombstone WHERE {_COVERED} LIMIT 1",  # noqa: S608 - our own clause
            _covering(digests, scopes),
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

    def _statement_digests(self, subject: str, object_: str, content: str) -> list[str]:
        """Return the digests of what a statement speaks of, and of what it says."""
        ends = {"name:" + canonical(end) for end in (subject, object_)}
        return self._tomb_digests({canonical(content), *ends})

    def _tomb_digests(self, values: Iterable[str]) -> list[str]:
        return [self._key.digest("tombstone", value) for value in values if value]


# ----------------------------------------------------------------------------------------------


def _covering(digests: Sequence[str], scopes: Sequence[str]) -> list[object]:
    """Return the parameters of ``_COVERED``: what is global is seen in every scope."""
    everywhere = not scopes or GLOBAL_SCOPE in scopes
    return [list(digests), everywhere, [*scopes, GLOBAL_SCOPE]]

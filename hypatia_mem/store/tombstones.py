"""What was forgotten: keyed digests of its canonical form, asked before every write.

Of a value there are two digests, of what it says and of what it looks like (``lookalikes``), and a
sketch of its words (``likeness``). Digests that are met refuse; a sketch that is met quarantines
(``quarantine``). Digests stand under the key they were made with, and are asked under it when the
memory has a newer one (``keys``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hypatia_mem.errors import NotFound
from hypatia_mem.model import GLOBAL_SCOPE, PERSON_CHANNELS, Entry, Outcome
from hypatia_mem.store import graves, keys, likeness, rows
from hypatia_mem.store.lookalikes import canonical
from hypatia_mem.store.writing import Writing

__all__ = ["REJECTED", "Tombstones", "canonical", "entry_values", "statement_values"]

_MEMORY_KINDS = frozenset({"rule", "taboo", "memory"})
_EVIDENCE = frozenset({"message", "session"})  # known by their own words, not by like ones
_COVERED = (
    "digest IN (SELECT unnest($1::VARCHAR[])) AND ($2 OR scope IN (SELECT unnest($3::VARCHAR[])))"
)
_FEW = 16
_HAS_ONE_OF_FEW = "list_contains($1::VARCHAR[], digest)"
_HAS_ONE_OF_MANY = "digest IN (SELECT unnest($1::VARCHAR[]))"
_BURIED = {
    "digest": "VARCHAR", "scope": "VARCHAR", "target": "VARCHAR", "part": "VARCHAR",
    "sketch": "VARCHAR",
}  # fmt: skip
REJECTED = "rejected"  # what a tombstone says of why; a person's words are in the verdict
_SINGLY = 3  # texts of a transaction that are looked up; for more, everything is read
_PARTS = ("name", "look", "triple", "title")


class Tombstones(Writing):
    """The part of a transaction that refuses what was forgotten, and buries."""

    _asked = 0  # how many texts were held to what is forgotten

    def lift(self, digests: Sequence[str], scopes: Sequence[str]) -> Outcome:
        """Lift the tombstones of these digests in these scopes; an undoing puts them back.

        ``details["lifted"]`` counts them. Refused, and noted so, for anybody but a person. Raises
        NotFound when there are none.
        """
        known = self.store.run(
            """
            SELECT * FROM tombstone WHERE digest IN (SELECT unnest($1::VARCHAR[]))
              AND scope IN (SELECT unnest($2::VARCHAR[]))
            """,
            [list(digests), list(scopes)],
        )
        if not known:
            raise NotFound("no such tombstone", hint="See them with: hypatia-mem tombstone list")
        name = str(known[0]["digest"])[:12]
        if self.author.channel not in PERSON_CHANNELS:
            self._note("refuse", name, "entry", reason="only a person lifts", index=False)
            return Outcome("refused", name, reason="only a person can lift a tombstone")
        self.store.execute(
            """
            DELETE FROM tombstone WHERE digest IN (SELECT unnest($1::VARCHAR[]))
              AND scope IN (SELECT unnest($2::VARCHAR[]))
            """,
            [list(digests), list(scopes)],
        )
        self._note_lifted(known, name, "entry")
        return Outcome("deleted", name, details={"lifted": len(known)})

    def rotate_key(self) -> Outcome:
        """Go on under a new key; the one before stays for what was forgotten under it.

        Raises Refused for anybody but a person. It cannot be undone, and need not be.
        """
        if self.author.channel not in PERSON_CHANNELS:
            self._note("refuse", "key", "operation", reason="only a person rotates", index=False)
            return Outcome("refused", "key", reason="only a person can put a new key in its place")
        before, self._key = self._key, keys.rotate_key(self.store.home)
        self._note("rotate", self._key.id, "operation", reason="key", index=False)
        self._graves_changed()
        return Outcome("updated", self._key.id, details={"before": before.id})

    # ------------------------------------------------------------------------------------------

    def _ask_tombstones(self, entry: Entry) -> Outcome | None:
        """Refuse a forgotten value; from a person it is taken, and the tombstone lifted.

        What was forgotten everywhere is refused everywhere, and what was forgotten in one project
        is refused there and as something global, for that would be seen there again. A summary is
        refused when one of its sentences says it.
        """
        if entry.kind == "message" or not self._known_graves():
            return None
        digests = self._value_digests(entry)
        refusal = self._refusal(digests, entry.scopes, entry.name, entry.kind)
        if refusal is None and (entry.kind in ("summary", "session") or "summary" in entry.tags):
            refusal = self._refuse_sentences(entry)
        return refusal

    def _refuse_sentences(self, entry: Entry) -> Outcome | None:
        text = rows.clean(entry.content)
        values = {
            value
            for start, end in graves.sentences(text)
            for value in graves.values_of(text[start:end])
            if value.startswith("look:")  # a value of a word or two would be in every other text
        }
        if not values or not self._buried(self._tomb_digests(values), entry.scopes):
            return None
        self._note("refuse", entry.name, entry.kind, reason="holds what was forgotten", index=False)
        return Outcome("refused", entry.name, reason="a sentence of it was forgotten before")

    def _refusal(
        self, digests: Sequence[str], scopes: Sequence[str], target: str, kind: str
    ) -> Outcome | None:
        if not self._buried(digests, scopes):
            return None
        if self.author.channel in PERSON_CHANNELS and not self._buried(
            digests, scopes, after=self.said_at
        ):
            self._note_lifted(self._unearth(digests, scopes), target, kind)
            return None
        self._note("refuse", target, kind, reason="forgotten before", index=False)
        return Outcome("refused", target, reason="this was forgotten before")

    def _unearth(self, digests: Sequence[str], scopes: Sequence[str]) -> list[dict[str, Any]]:
        """Take tombstones away; with what a value says goes what it looks like."""
        covering = _covering(digests, scopes)
        lifted = self.store.run(
            f"DELETE FROM tombstone WHERE {_COVERED} RETURNING *",  # noqa: S608 - our clause
            covering,
        )
        values = [row for row in lifted if row["target"] and row["part"] in ("value", "look")]
        for op_id, target in {(row["op_id"], row["target"]) for row in values}:
            lifted += self.store.run(
                """
                DELETE FROM tombstone
                WHERE op_id = $1 AND target = $2 AND part IN ('value', 'look')
                  AND ($3 OR scope IN (SELECT unnest($4::VARCHAR[]))) RETURNING *
                """,
                [op_id, target, *covering[1:]],
            )
        return lifted

    def _note_lifted(self, lifted: Sequence[dict[str, Any]], target: str, kind: str) -> None:
        seq = self._note("lift", target, kind, index=False)
        for row in lifted:
            self._keep_image(seq, "tombstone", row["digest"], row, None)
        self._graves_changed()

    def _bury(self, entry: Entry, reason: str) -> None:
        digests = self._value_digests(entry)
        sketches = {}
        if entry.kind not in _EVIDENCE:
            text = rows.clean(entry.content)
            said = self._tomb_digests([canonical(text)])
            sketches = dict.fromkeys(said, likeness.sketch(self._key, text))
        self._bury_digests(
            digests, entry.scopes, reason, target=self._target(entry.name), sketches=sketches
        )

    def _bury_digests(
        self,
        digests: Sequence[str],
        scopes: Sequence[str],
        reason: str,
        *,
        target: str = "",
        sketches: Mapping[str, str] | None = None,
    ) -> None:
        """Keep digests away from these scopes; one that is kept away already stays as it is.

        But for what was only rejected and is forgotten now. Those among them that were made with an
        earlier key are only for asking.
        """
        parts = self._parts
        new = [
            {
                "digest": digest,
                "scope": scope,
                "target": target,
                "part": parts.get(digest, "value"),
                "sketch": (sketches or {}).get(digest, ""),
            }
            for digest in dict.fromkeys(digests)
            if parts.get(digest) != "old"
            for scope in list(scopes) or [GLOBAL_SCOPE]
        ]
        if reason != REJECTED:
            self.store.execute(
                f"UPDATE tombstone SET reason = $4 WHERE reason = $5 AND {_COVERED}",  # noqa: S608
                [list(digests), False, list(scopes) or [GLOBAL_SCOPE], reason, REJECTED],
            )
        self.store.execute(
            """
            INSERT INTO tombstone
                (digest, key_id, scope, reason, actor, "at", op_id, target, part, sketch)
            SELECT v.digest, $3, v.scope, $4, $5, $6, $7, v.target, v.part, v.sketch
            FROM (SELECT unnest(from_json($1::JSON, $2)) AS v)
            WHERE NOT EXISTS (
                SELECT 1 FROM tombstone AS there
                WHERE there.digest = v.digest AND there.scope = v.scope
            )
            """,
            [
                json.dumps(new),
                json.dumps([_BURIED]),
                self._key.id,
                reason,
                str(self.author.channel),
                self.now,
                self.op_id,
            ],
        )
        self._graves_changed()

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

    def _buried_of(self, digests: Sequence[str], scopes: Sequence[str]) -> set[str]:
        """Return those of many values that were forgotten where these scopes would show them."""
        # For few a plain look through the table costs a third of a join.
        asked = _HAS_ONE_OF_FEW if len(digests) <= _FEW else _HAS_ONE_OF_MANY
        found = self.store.execute(
            f"SELECT digest, scope FROM tombstone WHERE {asked}",  # noqa: S608 - our own clause
            [list(digests)],
        ).fetchall()
        return {str(digest) for digest, scope in found if graves.covers(str(scope), scopes)}

    def _value_digests(self, entry: Entry) -> list[str]:
        return self._entry_digests(entry.name, entry.content, entry.kind)

    def _entry_digests(self, name: str, content: str, kind: str) -> list[str]:
        """Return the digests under which an entry would have been forgotten."""
        return self._tomb_digests(entry_values(name, content, kind))

    def _statement_digests(
        self, subject: str, predicate: str, object_: str, content: str
    ) -> list[str]:
        """Return the digests of what a statement speaks of, of what it says, and of itself."""
        return self._tomb_digests(statement_values(subject, predicate, object_, content))

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
            self._tomb_digests(_triple_value(*map(str, row)) for row in found),
            scopes,
            reason,
            target=self._target(names[0]) if names else "",
        )

    def _tomb_digests(self, values: Iterable[str]) -> list[str]:
        """Return the digests of some values: under the present key, and under those before it.

        The earlier ones only as long as something stands under them.
        """
        others = [key for key in self._known_graves().keys if key.id != self._key.id]
        found: list[str] = []
        for value in values:
            if not value:
                continue
            head = value.partition(":")[0]
            made = self._key.digest("tombstone", value)
            self._parts[made] = head if head in _PARTS else "value"
            found.append(made)
            for key in others:
                old = key.digest("tombstone", value)
                self._parts[old] = "old"
                found.append(old)
        return found

    @property
    def _parts(self) -> dict[str, str]:
        """Return what each digest that was made here stands for."""
        parts: dict[str, str] = self.__dict__.setdefault("_made_parts", {})
        return parts

    def _known_graves(self) -> graves.Graves:
        """Return under which keys something is forgotten, as this transaction sees it."""
        if self._graves is None:
            self._graves = graves.keys_of(self.store)
        return self._graves

    def _refused_before(
        self, said: Mapping[int, str], scope: str, graves_: Iterable[tuple[str, str]] | None
    ) -> set[int]:
        """Return the numbers of those evidences that say, word for word, what was forgotten.

        ``graves_``: digest and scope of all that is; None: those are asked for that may be met.
        """
        if graves_ is not None and not graves_:
            return set()
        ring = keys.keyring(self.store.home)
        made: dict[str, list[int]] = {}
        for number, content in said.items():
            value = canonical(rows.clean(content))
            for key in ring if value else ():
                made.setdefault(key.digest("tombstone", value), []).append(number)
        if graves_ is None:
            met = self._buried_of(list(made), [scope])
        else:
            met = {digest for digest, of in graves_ if graves.covers(of, [scope])}
        return {number for digest in met & made.keys() for number in made[digest]}

    def _graves_like(self, texts: Sequence[str]) -> graves.Graves:
        """Return what is forgotten and may be like one of these texts.

        A transaction that asks often reads all of it once.
        """
        known = self._known_graves()
        self._asked += 1
        if self._asked <= _SINGLY:
            return graves.near_to(self.store, known, texts)
        if not known.rows:
            known = self._graves = graves.load(self.store, sketched=True)
        return known

    def _target(self, name: str) -> str:
        return self._key.target(rows.clean(name))


# ----------------------------------------------------------------------------------------------


def entry_values(name: str, content: str, kind: str) -> set[str]:
    """Return by what an entry is known to have been forgotten."""
    text = rows.clean(content)
    values = {canonical(text)} if kind in _EVIDENCE else graves.values_of(text)
    if kind in _MEMORY_KINDS:
        values.add("name:" + canonical(rows.clean(name)))
    return values - {""}


def statement_values(subject: str, predicate: str, object_: str, content: str) -> set[str]:
    """Return by what a statement is known to have been forgotten: itself, its ends, its words."""
    ends = {"name:" + canonical(end) for end in (subject, object_)}
    return {*graves.values_of(content), _triple_value(subject, predicate, object_), *ends}


def _triple_value(subject: str, predicate: str, object_: str) -> str:
    parts = (canonical(rows.clean(part)) for part in (subject, predicate, object_))
    return "triple:" + "\x1f".join(parts)


def _covering(digests: Sequence[str], scopes: Sequence[str]) -> list[object]:
    """Return the parameters of ``_COVERED``: what is global is seen in every scope."""
    everywhere = not scopes or GLOBAL_SCOPE in scopes
    return [list(digests), everywhere, [*scopes, GLOBAL_SCOPE]]

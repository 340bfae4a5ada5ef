"""What is forgotten, read once: to ask of many texts whether they say it again.

Nothing here needs the store after ``load``: it may be kept while the store is let go of, as the
cascade does. Digests are asked under every key that some of them were made with; those of a key
that is lost can be asked by nobody (``lost``), and whoever writes has to take that into account.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from hypatia_mem.model import GLOBAL_SCOPE
from hypatia_mem.store import keys
from hypatia_mem.store.likeness import LEAST_FORM, Index, forms_in, sketch
from hypatia_mem.store.lookalikes import canonical, glyphs

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.keys import Key

__all__ = [
    "Grave",
    "Graves",
    "Near",
    "alike",
    "burials",
    "covers",
    "keys_of",
    "load",
    "near_to",
    "of_operation",
    "sentences",
    "told_in",
    "values_of",
]

_Rows: TypeAlias = Iterable[Mapping[str, Any]]
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
_SPEAKER = re.compile(r"\A\s*(?:[-*+•>]\s*|\d{1,3}[.)]\s+)*(?:(?:user|assistant|[A-Z]\w{0,20}): )?")
_ROWS = """
    SELECT digest, key_id, scope, reason, actor, "at", op_id, target, part, sketch FROM tombstone
"""
_SHARING = (
    _ROWS + "WHERE sketch <> '' AND key_id = $1"
    " AND len(list_intersect(string_split(sketch, ' '), $2::VARCHAR[]))"
    " >= greatest(2, $3 * TRY_CAST(split_part(sketch, ' ', 3) AS INTEGER))"
)
_WIDEST = 3  # sentences that may say one value together
_WHOLE = 1_000  # characters; a longer text is not taken out as a whole
_SEEN = re.compile(r"\S")
_KEPT = 4_096  # texts
_TOLD: dict[tuple[bytes, bytes, tuple[str, ...]], list[tuple[int, int]]] = {}


@dataclass(frozen=True, slots=True)
class Grave:
    """One tombstone: of what, where, since when; ``part`` is what of it the digest stands for."""

    digest: str
    key_id: str
    scope: str
    reason: str
    actor: str
    at: datetime
    op_id: str
    target: str
    part: str
    sketch: str


@dataclass(frozen=True, slots=True)
class Near:
    """A tombstone that a text is like, and how much (up to 1)."""

    grave: Grave
    value: float

    @property
    def why(self) -> str:
        """Return the sentence that a person reads in the review; no word of what was forgotten."""
        how = "it says the same as" if self.value > 0.999 else f"it is {self.value:.0%} like"
        what = "rejected" if self.grave.reason == "rejected" else "forgotten"
        return (
            f"{how} something that was {what} on {self.grave.at:%Y-%m-%d}"
            f" (tombstone {self.grave.digest[:8]})"
        )


class Graves:
    """All tombstones of a memory with the keys to ask them."""

    def __init__(self, keys_: Sequence[Key], lost: Collection[str], rows: _Rows) -> None:
        """Take the keys that digests stand under, those that are lost, and rows of the table."""
        self.keys = tuple(keys_)
        self.lost = frozenset(lost)
        self.rows = [
            Grave(**{**row, **{name: row[name] or "" for name in ("target", "part", "sketch")}})
            for row in rows
        ]
        self._by_digest: dict[str, list[Grave]] = {}
        for row in self.rows:
            self._by_digest.setdefault(row.digest, []).append(row)
        self._indexes: list[Index] | None = None
        self._known_as: bytes | None = None

    def __bool__(self) -> bool:
        """Tell whether anything is forgotten at all."""
        return bool(self.keys or self.lost)

    def digests(self, values: Iterable[str]) -> list[str]:
        """Return under which digests these values would be found here."""
        return [key.digest("tombstone", one) for one in values if one for key in self.keys]

    def holding(self, values: Iterable[str], scopes: Sequence[str]) -> list[Grave]:
        """Return the tombstones of one of these values that hold in these scopes."""
        return [
            grave
            for digest in self.digests(values)
            for grave in self._by_digest.get(digest, ())
            if covers(grave.scope, scopes)
        ]

    def near(
        self,
        texts: Iterable[str],
        scopes: Sequence[str],
        *,
        after: datetime | None = None,
        without: str = "",
    ) -> Near | None:
        """Return the tombstone that one of these texts is most like, None when it is like none.

        ``after``: only those that are later; ``without``: not those of this operation.
        """
        best: Near | None = None
        for text in texts:
            for index in self._all_indexes():
                for digest, value in index.near(text):
                    for grave in self._by_digest[digest]:
                        if (
                            covers(grave.scope, scopes)
                            and (after is None or grave.at > after)
                            and (not without or grave.op_id != without)
                            and (best is None or value > best.value)
                        ):
                            best = Near(grave, value)
        return best

    def blanked(self, text: str, scopes: Sequence[str]) -> str:
        """Return a text with blanks for what is forgotten, or like it, at the same length.

        Where a text as a whole is like something, but no part of it, it stays.
        """
        for start, end in self._told(text, scopes):
            if end - start < len(text) or end - start < _WHOLE:
                text = text[:start] + _SEEN.sub(" ", text[start:end]) + text[end:]
        return text

    def _told(self, text: str, scopes: Sequence[str]) -> list[tuple[int, int]]:
        """Return where a text tells what is forgotten.

        Kept as places, for the worker asks of what is pending each time it looks at it.
        """
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        asked = (self._mark(), digest, tuple(scopes))
        known = _TOLD.get(asked)
        if known is None:
            known = self._find(text, scopes)
            while len(_TOLD) >= _KEPT:
                _TOLD.pop(next(iter(_TOLD)), None)
            _TOLD[asked] = known
        return known

    def _mark(self) -> bytes:
        """Return what tells these tombstones from any others."""
        if self._known_as is None:
            every = sorted((row.digest, row.scope, row.part, row.sketch) for row in self.rows)
            ring = [key.id for key in self.keys]
            self._known_as = hashlib.sha256(repr((ring, every)).encode()).digest()
        return self._known_as

    def _find(self, text: str, scopes: Sequence[str]) -> list[tuple[int, int]]:
        gone: list[tuple[int, int]] = []
        for index in self._all_indexes():
            for start, end, digest, _ in index.places(text):  # the shorter ones first
                within = any(start <= one and other <= end for one, other in gone)
                if not within and any(
                    covers(grave.scope, scopes) for grave in self._by_digest[digest]
                ):
                    gone.append((start, end))
        if any(row.part == "look" for row in self.rows):  # of short values there is no sketch
            gone += [
                (start, end)
                for start, end in sentences(text, widest=1)
                if self.holding(values_of(text[start:end]), scopes)
            ]
        return gone

    def _all_indexes(self) -> list[Index]:
        if self._indexes is None:
            self._indexes = self._indexed()
        return self._indexes

    def _indexed(self) -> list[Index]:
        return [
            Index(
                key,
                {
                    row.digest: row.sketch
                    for row in self.rows
                    if row.sketch and row.key_id == key.id
                },
            )
            for key in self.keys
        ]


def load(store: Store, *, sketched: bool = False) -> Graves:
    """Read all that is forgotten; ``sketched``: only what ``near`` asks."""
    known = keys_of(store)
    sql = _ROWS + ("WHERE sketch <> ''" if sketched else "")
    return Graves(known.keys, known.lost, store.run(sql) if known else ())


def keys_of(store: Store) -> Graves:
    """Read only under which keys something is forgotten."""
    if not store.may_hold("tombstone"):
        return Graves((), set(), ())
    found = store.execute("SELECT DISTINCT key_id FROM tombstone").fetchall()
    used = {str(row[0]) for row in found}
    ring = keys.keyring(store.home) if used else ()
    return Graves([key for key in ring if key.id in used], used - {key.id for key in ring}, ())


def near_to(store: Store, known: Graves, texts: Sequence[str]) -> Graves:
    """Read what is forgotten and shares enough words with these texts to be like one of them."""
    found: list[dict[str, Any]] = []
    for key in known.keys:
        forms = forms_in(key, texts)
        if len(forms) > 1:
            found += store.run(_SHARING, [key.id, forms, LEAST_FORM])
    return Graves(known.keys, known.lost, found)


def told_in(store: Store, texts: Sequence[str]) -> Graves:
    """Read what is forgotten and may be told in one of a few texts, to blank it there."""
    known = keys_of(store)
    if not known:
        return known
    near = near_to(store, known, texts)
    values = {
        value
        for text in texts
        for start, end in sentences(text, widest=1)
        for value in values_of(text[start:end])
    }
    exact = store.run(
        _ROWS + "WHERE sketch = '' AND digest IN (SELECT unnest(?::VARCHAR[]))",
        [known.digests(values)],
    )
    return Graves(known.keys, known.lost, [*map(asdict, near.rows), *exact])


def of_operation(store: Store, op_id: str) -> Graves:
    """Read what one operation has forgotten."""
    known = keys_of(store)
    rows = store.run(_ROWS + "WHERE op_id = ?", [op_id]) if known else ()
    return Graves(known.keys, known.lost, rows)


def alike(store: Store, said: Sequence[str], others: Mapping[str, str]) -> list[str]:
    """Return the names of those texts that say what one of ``said`` says, or something like it."""
    key = keys.load_key(store.home)
    index = Index(key, {str(n): sketch(key, text) for n, text in enumerate(said)})
    values = {value for text in said for value in values_of(text)}
    return [
        name
        for name, text in others.items()
        if not values.isdisjoint(values_of(text)) or index.near(text)
    ]


def burials(store: Store, op_ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (operation, target, kind) of what these operations forgot or rejected."""
    found = store.execute(
        """
        SELECT op_id, target, split_part(verb, ' ', 2) FROM mutation
        WHERE op_id IN (SELECT unnest(?::VARCHAR[]))
          AND (starts_with(verb, 'forget ') OR starts_with(verb, 'bury ')) ORDER BY seq
        """,
        [list(op_ids)],
    ).fetchall()
    return [(str(op_id), str(target), str(kind)) for op_id, target, kind in found]


def covers(scope: str, scopes: Sequence[str]) -> bool:
    """Tell whether what is kept away from a scope would be seen there if it stood in ``scopes``."""
    return not scopes or GLOBAL_SCOPE in scopes or scope == GLOBAL_SCOPE or scope in scopes


def values_of(text: str) -> set[str]:
    """Return by what a text is known to have been forgotten: what it says, what it looks like."""
    found = {canonical(text)}
    drawn = glyphs(text)
    if drawn:
        found.add("look:" + drawn)
    return found - {""}


def sentences(text: str, *, widest: int = _WIDEST) -> Iterator[tuple[int, int]]:
    """Yield where the sentences and lines of a text stand, without bullets and speakers.

    Runs of up to three of them too, for one value may be several sentences; the longer run first.
    """
    single: list[tuple[int, int]] = []
    start = 0
    for mark in _END.finditer(text):
        single.append((start, mark.start()))
        start = mark.end()
    single.append((start, len(text)))
    cut = []
    for start, end in single:
        head = _SPEAKER.match(text, start, end)
        begin = head.end() if head else start
        if text[begin:end].strip():
            cut.append((begin, end))
    for size in range(min(widest, len(cut)), 0, -1):
        for at in range(len(cut) - size + 1):
            yield cut[at][0], cut[at + size - 1][1]

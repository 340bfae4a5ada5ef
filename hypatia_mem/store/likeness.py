"""How alike two wordings are, told from keyed digests of their words.

A *sketch* holds of every telling word of a text (``telling``) a few short keyed digests and how
much the word counts. The digests are sorted, so the order of the words is not kept. Without the key
nothing can be told from it but how many words there were.

Two texts are alike when they share most of what counts, say it with the same sign (``never ...``
and ``always ...`` are not alike), and do not put another number in the place of one of them. A text
is compared sentence by sentence, in neighbouring pairs and threes, and as a whole, so that what is
hidden in a long text is found as well.

It knows no meanings beyond that table: who says the same in wholly other words is not found.
How often it is right is measured by ``benchmarks/tombstones.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hypatia_mem.store import telling
from hypatia_mem.store.keys import Key

__all__ = ["LEAST_FORM", "LIKE", "Index", "Sketch", "forms_in", "likeness", "parsed", "sketch"]

VERSION = "1"
LIKE = 0.72  # from here on a wording is taken for the same
_LEAST_SHARE = 0.65  # of what was forgotten that has to be there
_LEAST_WEIGHT = 7  # a text that says less has no sketch: too much would be like it
_MOST_WORDS = 400  # of a forgotten text that are sketched
_DIGITS = 8  # hex digits of a digest
_WIDEST = 3  # sentences that are looked at together
_CACHED = 20_000
# Of a sketch's weight: so many digests at least are shared by what is like it.
LEAST_FORM = _LEAST_SHARE / telling.HEAVIEST

_SENTENCE = re.compile(r"[^.!?;:\n。！？；]+(?:[.:](?=\S)[^.!?;:\n。！？；]*)*")


@dataclass(frozen=True, slots=True)
class Sketch:
    """A text's words as digests."""

    words: tuple[telling.Word, ...]
    negated: bool

    @property
    def text(self) -> str:
        """Return it as it is stored: version, sign, weight, and each word's digests and weight."""
        words = sorted(
            " ".join(sorted(word.forms)) + f" /{word.weight}{'h' if word.hard else ''}"
            for word in self.words
        )
        sign = "-" if self.negated else "+"
        return " ".join([VERSION, sign, str(_weight(self.words)), *words])


def sketch(key: Key, text: str) -> str:
    """Return the sketch of a text as it is stored, ``""`` when it says too little to have one."""
    parts = [telling.read(text[start:end]) for start, end in _sentences(text)]
    whole = _joined(parts)
    heavy = sum(word.weight > telling.LIGHT for word in whole.words)
    if heavy < 2 or _weight(whole.words) < _LEAST_WEIGHT:
        return ""
    return _keyed(key, telling.Said(whole.words[:_MOST_WORDS], whole.negated)).text


def parsed(text: str) -> Sketch | None:
    """Return a stored sketch; None for none, and for one of a version that is unknown here."""
    version, _, rest = text.partition(" ")
    if version != VERSION or not rest:
        return None
    sign, _, *said = rest.split(" ")
    words: list[telling.Word] = []
    forms: list[str] = []
    for one in said:
        if one[0] != "/":
            forms.append(one)
            continue
        words.append(telling.Word(tuple(forms), int(one[1]), one.endswith("h")))
        forms = []
    return Sketch(tuple(words), sign == "-")


def forms_in(key: Key, texts: Iterable[str]) -> list[str]:
    """Return the digests of all words of some texts: what a sketch of like words has some of."""
    found: dict[str, None] = {}
    for text in texts:
        for start, end in _sentences(text):
            for word in telling.read(text[start:end]).words:
                found.update(dict.fromkeys(_digest(key, form) for form in word.forms))
    return list(found)


class Index:
    """Sketches of one key, asked with plain texts."""

    def __init__(self, key: Key, sketches: Mapping[str, str]) -> None:
        """Take stored sketches by whatever name the caller knows them."""
        self._key = key
        self._texts = sketches
        self._sketches: dict[str, Sketch | None] = {}  # those that were looked at
        self._holding: dict[str, list[str]] = {}
        for name, text in sketches.items():
            for form in text.split(" ")[3:]:
                if form[0] != "/":
                    self._holding.setdefault(form, []).append(name)

    def near(self, text: str) -> list[tuple[str, float]]:
        """Return (name, likeness) of the sketches that a text, or a part of it, is like."""
        best: dict[str, float] = {}
        if not self._holding:
            return []
        for _, _, name, value in self.places(text):
            best[name] = max(value, best.get(name, 0.0))
        return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))

    def places(self, text: str) -> Iterator[tuple[int, int, str, float]]:
        """Yield (start, end, name, likeness) of each stretch of a text that is like a sketch."""
        spans = _sentences(text)
        parts = [_keyed(self._key, telling.read(text[start:end])) for start, end in spans]
        for first, last, stretch in _stretches(parts):
            for name in self._touched(stretch):
                known = self._sketch(name)
                value = likeness(known, stretch) if known is not None else 0.0
                if value >= LIKE:
                    yield spans[first][0], spans[last][1], name, value

    def _touched(self, said: Sketch) -> list[str]:
        """Return the sketches that share two words or more with a stretch of text."""
        hits: Counter[str] = Counter()
        for word in said.words:
            names = {name for form in word.forms for name in self._holding.get(form, ())}
            hits.update(names)
        return [name for name, count in hits.items() if count > 1]

    def _sketch(self, name: str) -> Sketch | None:
        if name not in self._sketches:
            self._sketches[name] = parsed(self._texts[name])
        return self._sketches[name]


def likeness(known: Sketch, said: Sketch) -> float:
    """Return from 0 to 1 how alike a sketch and a stretch of text are."""
    if known.negated != said.negated:
        return 0.0
    forms = {form: number for number, word in enumerate(known.words) for form in word.forms}
    matched: set[int] = set()
    theirs = 0
    strange = False
    for word in said.words:
        hit = {forms[form] for form in word.forms if form in forms}
        matched |= hit
        theirs += word.weight if hit else 0
        strange = strange or (word.hard and not hit)
    missing = any(word.hard for n, word in enumerate(known.words) if n not in matched)
    if strange and missing:  # another number, another version, in the place of one
        return 0.0
    shared = sum(known.words[number].weight for number in matched)
    whole = _weight(known.words)
    if shared < _LEAST_SHARE * whole:
        return 0.0
    return 2 * shared / (whole + shared + _weight(said.words) - theirs)


# --- stretches ------------------------------------------------------------------------------------


def _sentences(text: str) -> list[tuple[int, int]]:
    return [one.span() for one in _SENTENCE.finditer(text) if not one.group().isspace()]


def _stretches(parts: Sequence[Sketch]) -> Iterator[tuple[int, int, Sketch]]:
    """Yield the first and last part of every run of up to three, and of the whole, and the run."""
    for size in range(1, min(_WIDEST, len(parts)) + 1):
        for at in range(len(parts) - size + 1):
            run = parts[at] if size == 1 else _merged(parts[at : at + size])
            yield at, at + size - 1, run
    if len(parts) > _WIDEST:
        yield 0, len(parts) - 1, _merged(parts)


def _merged(parts: Sequence[Sketch]) -> Sketch:
    return Sketch(_union(part.words for part in parts), any(part.negated for part in parts))


def _joined(parts: Sequence[telling.Said]) -> telling.Said:
    return telling.Said(_union(part.words for part in parts), any(part.negated for part in parts))


def _union(many: Iterable[Sequence[telling.Word]]) -> tuple[telling.Word, ...]:
    have: set[str] = set()
    found: list[telling.Word] = []
    for words in many:
        for word in words:
            if not have.intersection(word.forms):
                found.append(word)
                have.update(word.forms)
    return tuple(found)


def _weight(words: Sequence[telling.Word]) -> int:
    return sum(word.weight for word in words)


_digests: dict[tuple[str, str], str] = {}


def _keyed(key: Key, said: telling.Said) -> Sketch:
    words = tuple(
        telling.Word(tuple(_digest(key, form) for form in word.forms), word.weight, word.hard)
        for word in said.words
    )
    return Sketch(words, said.negated)


def _digest(key: Key, form: str) -> str:
    found = _digests.get((key.id, form))
    if found is None:
        if len(_digests) >= _CACHED:
            _digests.clear()
        found = _digests[key.id, form] = key.digest("sketch", form)[:_DIGITS]
    return found

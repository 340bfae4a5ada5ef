"""The vectoriser that needs no model: what two texts have in common, letter by letter.

It is *lexical*: it finds other forms of a word, typing errors, compounds and parts of identifiers
(``fetchUserName``, ``user_name``, "the user's names"), in any language. It knows no synonyms:
"car" and "vehicle" are strangers to it. A model of word meanings comes with ``hypatia-mem[embed]``.

How a text becomes a vector: words are cut out of it, accents and case folded, identifiers whole
and in parts; of each word the runs of 3 to 5 letters, its edges marked, are hashed (BLAKE2b, with a
seed of its own) into 511 places with a sign, so that collisions cancel out. Runs of Chinese,
Japanese and Korean characters are cut into pairs. A word counts by the logarithm of how often it
stands there and by its length; words that are everywhere count a tenth, where there are others.

The last place, which only stored vectors use, makes short texts a little further from everything:
without it "Hi there!" is near to any text with a "there" in it. A text asked for is compared with
itself first (``Query.own``), so that the same text comes out at distance 0 all the same.

The result depends on nothing but the text: not on the process, not on what else is stored. Changing
anything here changes vectors, so it needs another ``NAME``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from hypatia_mem.store.vectors import MAX_TEXT, Query

__all__ = [
    "BREVITY",
    "Lexical",
    "cosine",
    "normalised",
    "rounded",
    "weigh_token",
    "words",
]

NAME = "lexical-1"
DIMENSION = 512
THRESHOLD = 0.15  # below it, texts mostly share no more than unrelated ones do
MAX_WORD = 64
BREVITY = 3.0  # a text is brief when it has fewer telling words than the square of this
COMMON = 0.1
_SEED = b"hypatia-lex-1"
_CACHED = 20_000

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PIECE = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Not the search index's list: that one may change, and vectors may not.
_EVERYWHERE = frozenset(
    """
    a about after again all also am an and any are as at be because been before being both but by
    can could d did didn do does doesn doing don during each either few for from further had has
    have having he her here him his how i if in into is isn it its just ll m me more most my no not
    of on once only or other our out over own re s same she should so some such t than that the
    their them then there these they this those through to too under up us ve very was wasn we were
    what when where which while who why will with won would you your
    """.split()  # noqa: SIM905 - a list of them takes half a page
)


class Lexical:
    """Turns texts into vectors, as the module's description says."""

    threshold = THRESHOLD
    brevity = BREVITY

    def __init__(self, dimension: int = DIMENSION) -> None:
        """Use ``dimension`` places, one of them for how short a text is."""
        self.dimension = dimension
        self.model = f"{NAME}/{dimension}"
        self._cut: dict[str, tuple[str, ...]] = {}
        self._cache: dict[str, tuple[tuple[int, ...], tuple[int, ...], float]] = {}

    def documents(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Return the vectors of texts to store; None for a text without a letter or digit."""
        return [self._document(text) for text in texts]

    def query(self, text: str) -> Query | None:
        """Return a text to look for, None when there is no letter or digit in it."""
        stored = self._document(text)
        if stored is None:
            return None
        vector = (*normalised(self.features(text)), 0.0)
        return Query(self.model, vector, cosine(vector, stored))

    def features(self, text: str) -> list[float]:
        """Return what the text is made of, in all places but the last; neither scaled nor short."""
        places = self.dimension - 1
        found = [0.0] * places
        counted = self._counted(text[:MAX_TEXT])
        for word, count in counted.items():
            hashed = self._cache.get(word)
            if hashed is None:
                hashed = self._hashed(word)
            plus, minus, weight = hashed
            if count > 1:
                weight *= 1.0 + math.log(count)
            for place in plus:
                found[place] += weight
            for place in minus:
                found[place] -= weight
        if counted.keys() <= _EVERYWHERE:  # there is nothing else to go by
            return [value / COMMON for value in found]
        return found

    def runs(self, word: str) -> list[str]:
        """Return what of a word is hashed: its runs of 3 to 5 letters, or a pair of CJK whole."""
        if _IS_CJK.match(word):
            return [word]
        marked = f"<{word}>"
        return [
            marked[at : at + size]
            for size in (3, 4, 5)
            for at in range(max(0, len(marked) - size + 1))
        ]

    def _counted(self, text: str) -> dict[str, int]:
        """Count the words of a text; pieces that were cut before are not cut again."""
        found: dict[str, int] = {}
        for piece, count in Counter(_PIECE.findall(_folded(text))).items():
            cut = self._cut.get(piece)
            if cut is None:
                if len(self._cut) >= _CACHED:
                    self._cut.clear()
                cut = self._cut[piece] = tuple(_words_of(piece))
            for word in cut:
                found[word] = found.get(word, 0) + count
        return found

    def _document(self, text: str) -> list[int] | None:
        found = self.features(text)
        if not any(found):
            return None
        return rounded(found, self.brevity)

    def _hashed(self, word: str) -> tuple[tuple[int, ...], tuple[int, ...], float]:
        if len(self._cache) >= _CACHED:
            self._cache.clear()
        runs = self.runs(word)
        plus: list[int] = []
        minus: list[int] = []
        for run in runs:
            digest = blake2b(run.encode("utf-8", "replace"), digest_size=8, person=_SEED).digest()
            number = int.from_bytes(digest, "little")
            (plus if number >> 63 else minus).append(number % (self.dimension - 1))
        made = (tuple(plus), tuple(minus), _weigh(word) / math.sqrt(len(runs)))
        self._cache[word] = made
        return made


def words(text: str) -> Iterator[str]:
    """Cut a text into words: folded, identifiers whole and in parts, CJK in pairs.

    >>> list(words("fetchUserName, café_bar 知识图谱"))
    ['fetchusername', 'fetch', 'user', 'name', 'cafe_bar', 'cafe', 'bar', '知识', '识图', '图谱']
    """
    for piece in _PIECE.findall(_folded(text)):
        yield from _words_of(piece)


def weigh_token(token: str) -> float:
    """Return how much a token of another cutter counts: common words a tenth, signs as little."""
    return COMMON if token in _EVERYWHERE or not any(map(str.isalnum, token)) else 1.0


def normalised(vector: Sequence[float]) -> list[float]:
    """Return a vector of length 1 in the same direction; one without length as it is."""
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else list(vector)


def rounded(vector: Sequence[float], last: float) -> list[int]:
    """Return a vector and its last value in whole numbers: a cosine hardly notices, the file does.

    All but the last go up to 127, and the last as far as it must.

    >>> rounded([0.5, -0.25, 0.0], 1.0)
    [127, -64, 0, 254]
    """
    scale = 127 / max(map(abs, vector))
    return [round(value * scale) for value in (*vector, last)]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors, 0 when one of them has no length."""
    lengths = math.sqrt(sum(a * a for a in one)) * math.sqrt(sum(b * b for b in other))
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


# ----------------------------------------------------------------------------------------------


def _words_of(piece: str) -> Iterator[str]:
    if _IS_CJK.match(piece):
        yield from (piece[at : at + 2] for at in range(max(1, len(piece) - 1)))
        return
    parts = _PART.findall(piece)
    if parts == [piece]:
        yield piece.casefold()[:MAX_WORD]
        return
    whole = piece.strip("_").casefold()
    if whole:
        yield whole[:MAX_WORD]
    if len(parts) > 1:
        yield from (part.casefold()[:MAX_WORD] for part in parts)


def _weigh(word: str) -> float:
    """Return how much a word counts: long words say more, words that are everywhere little."""
    if _IS_CJK.match(word):
        return 1.0
    return COMMON if word in _EVERYWHERE else min(1.0, 0.5 + len(word) / 12)


def _folded(text: str) -> str:
    if text.isascii():
        return text
    spread = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", spread))

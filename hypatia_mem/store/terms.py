"""Text to terms, the same way for documents and queries. Pure; the search index is built of them.

Accents and case are folded. Writing that puts no space between its words (Chinese, Japanese, Thai)
and Korean, whose words carry their particles, is cut into characters; a run of them is searched as
a phrase. Everything a programmer types is kept both whole and in parts: ``foo_bar.baz()`` is found
as typed, by ``foo_bar`` and by ``bar``; ``fetchUserName`` by ``user``; ``C++`` and ``--flag`` as
they are. An exact look (``Exact``) reads the stored text itself.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable

__all__ = ["STOP", "Exact", "character_runs", "folded", "is_character", "split_quoted", "terms"]

MAX_TERM = 128

# Han with its radicals and marks, kana, hangul; Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U000323af\u0e01-\u0e4e\u0e80-\u0ece\u1000-\u1049\u1780-\u17d3"
)
# Combining marks of Latin, Greek and Cyrillic; vowel signs of Hebrew and Arabic.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0640]+"
)


@functools.cache
def _unspaced(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which ``@`` stands for those characters; most texts never need one.

    Compiling them takes as long as everything else that a search does.
    """
    return re.compile(pattern.replace("@", _UNSPACED))


# Letters that are others with a stroke, a dot less or joined, and have no decomposition.
_LETTERS = str.maketrans(
    {
        "ı": "i", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D",
        "ħ": "h", "Ħ": "H", "ŧ": "t", "Ŧ": "T", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE",
        "þ": "th", "Þ": "TH", "ß": "ss", "ẞ": "SS",
    }
)  # fmt: skip
# From a whole piece down: what stands between brackets and signs, a path's segments, names, words
# without underscores, and the parts of those.
_LEVELS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[^:=(),;<>\"'`|\[\]{}]+",
        r"[^/\\]+",
        r"\w+",
        r"[^\W_]+",
        r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+",
    )
)
_WORD = _LEVELS[3]
_PIECE = r"[@]|[^\s@]+"
_EDGES_FRONT = "\"'`([{<*«“‘\0"
_EDGES_BACK = "\"'`)]}>*.,;:!?…»”’(\0"
_QUOTED = re.compile(r"(?<!\S)(?:\"([^\"]+)\"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»)(?![^\s.,;:!?)])")

STOP = frozenset(
    """
    a about after again ago all also am an and any are as at be because been before being both but
    by can could did do does doing done down during each ever few for from further get got had has
    have having he her here hers him his how however i if in into is it its itself just know let
    like ll many may maybe me might mine more most much must my myself need no nor not now of off on
    once one only onto or other our ours out over own perhaps please quite rather re really s shall
    she should since so some such t tell than that the their theirs them themselves then there these
    they thing things this those though through to too under until up upon us ve very want was way
    we well were what whatever when where whether which while who whom whose why will with within
    without would yes yet you your yours yourself
    """.split()  # noqa: SIM905 - a list of them takes half a page
)
"""Words that are everywhere: a query that has others does not ask for them."""


def folded(text: str) -> str:
    """Return a text without accents, in one spelling of each character; case stays.

    >>> folded("Café Łódź ｶﾞ")
    'Cafe Lodz ガ'
    """
    if text.isascii():
        return text
    kept = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    whole = unicodedata.normalize("NFKC", kept.encode("utf-8", "replace").decode("utf-8"))
    return whole.translate(_LETTERS)


def terms(text: str) -> list[str]:
    """Cut a text into terms, in order, unstemmed; lower case, without accents.

    >>> terms("fetchUserName() C++ 知识")
    ['fetchusername', 'fetch', 'user', 'name', 'c++', 'c', '知', '识']
    >>> terms("foo_bar.baz(), isn't")
    ['foo_bar.baz', 'foo_bar', 'foo', 'bar', 'baz', "isn't", 'isn', 't']
    """
    plain = folded(text)
    pieces = plain.split() if plain.isascii() else _unspaced(_PIECE).findall(plain)
    found: list[str] = []
    for piece in pieces:
        found.extend(_known(piece) if len(piece) <= _SHORT else _of_piece(piece))
    return found


def _of_piece(piece: str) -> tuple[str, ...]:
    whole = piece.lstrip(_EDGES_FRONT).rstrip(_EDGES_BACK)
    found: list[str] = []
    if whole:
        _cut(whole, found)
    return tuple(found)


_SHORT = 40
_known = functools.lru_cache(1 << 16)(_of_piece)  # most of any text are the same few words


def _cut(piece: str, found: list[str], level: int = 0) -> None:
    """Add a piece of text whole, then what it is made of, each part once where it stands."""
    found.append(piece.casefold()[:MAX_TERM])
    for deeper in range(level, len(_LEVELS)):
        parts = _LEVELS[deeper].findall(piece)
        if parts != [piece]:
            for part in parts:
                _cut(part, found, deeper + 1)
            return


def is_character(term: str) -> bool:
    """Tell whether a term is a character of a writing without spaces."""
    return not term.isascii() and _unspaced("[@]").match(term) is not None


def character_runs(text: str) -> list[list[str]]:
    """Return the runs of such characters in a text, in order."""
    if text.isascii():
        return []
    return [list(run) for run in _unspaced("[@]+").findall(folded(text))]


def split_quoted(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without quotation marks, and the phrases that stood in them.

    A mark counts where a person would put one: before a word and behind one. What stands in code
    or in JSON is text like any other, and so is a mark that is never closed.

    >>> split_quoted('why does "connection pool" hang')
    ('why does connection pool hang', ('connection pool',))
    >>> split_quoted('print("a b") "open')
    ('print("a b") "open', ())
    """
    phrases = []
    for match in _QUOTED.finditer(text):
        phrase = next(part for part in match.groups() if part is not None)
        if _WORD.search(phrase):
            phrases.append(phrase)
    if not phrases:
        return text, ()
    return _QUOTED.sub(lambda match: next(p for p in match.groups() if p is not None), text), tuple(
        phrases
    )


class Exact:
    """Words that a text must hold as they are typed, side by side, whatever their case.

    They begin and end where a word does: ``user`` is not in ``username`` but in ``user_name``.
    Any white space stands for any other.
    """

    def __init__(self, words: str) -> None:
        """Take the words; those without a letter, a digit or a sign match every text."""
        self._needle = _even(words)

    def words(self) -> list[str]:
        """Return terms that every text holding the words has."""
        return [word[:MAX_TERM] for word in _words(self._needle)]

    def __call__(self, text: str) -> bool:
        """Tell whether a text holds the words."""
        return self.within(_even(text))

    def within(self, even: str) -> bool:
        """Do the same for a text that ``Exact.even`` was asked for once."""
        needle = self._needle
        at = even.find(needle)
        while at >= 0:
            end = at + len(needle)
            if not (_joined(even, at) or _joined(even, end)):
                return True
            at = even.find(needle, at + 1)
        return not needle

    @staticmethod
    def even(text: str) -> str:
        """Return a text as ``within`` wants it."""
        return _even(text)


def _even(text: str) -> str:
    return " ".join(folded(text).casefold().split())


def _words(even: str) -> Iterable[str]:
    for piece in _unspaced(_PIECE).findall(even):
        yield from _WORD.findall(piece)


def _joined(text: str, at: int) -> bool:
    """Tell whether a word goes on at this place; a character of its own ends one."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if unicodedata.category(after) == "Mn":  # a sign that belongs to the letter before it
        return True
    if not (before.isalnum() and after.isalnum()):
        return False
    return not (is_character(before) or is_character(after))

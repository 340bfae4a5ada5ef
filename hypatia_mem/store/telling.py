"""What a stretch of text says: its telling words, and whether a ``not`` turns it round.

A word is told by its stem, by the concept it stands for (``concepts``), and by its consonants,
which a slip of the pen leaves as they are; each may match. Words that say little by themselves are
left out or count little; numbers, days and names exclude others of their kind. Runs of Chinese and
Japanese are cut into the concepts found in them and pairs of what is left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from hypatia_mem.store.lookalikes import seen

__all__ = ["HEAVIEST", "LIGHT", "Said", "Word", "read"]

HEAVIEST = _NUMBER = 5  # how much words count: numbers, rare words, known ones, light ones
_OWN, _PLAIN, LIGHT = 4, 3, 1

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"\d+(?:[.:,]\d+)+|[{_CJK}]+|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)?")
_IS_CJK = re.compile(f"[{_CJK}]")
_DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905 - as they are
)
_GERMAN = frozenset(
    """
    der die das den dem des ein eine einen einem und nicht ist wird werden sind zu im auf mit nur
    wir keine kein von vom bei nach vor sich auch fuer
    """.split()  # noqa: SIM905 - a list of them takes a page
)
_MASKED = re.compile(r"[^\W_]*[A-Za-z][\w@$]*[^\W_]|[@$][a-z][\w@$]+")
_FOREIGN = re.compile("[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u13a0-\u13ff\u1d00-\u1dbf@$]")
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
# ``Give every ...`` begins with a verb, not with a name.
_ORDER = re.compile(r"\W*[A-Z][a-z]+\s+(?:the|an?|all|every|each|any|no|our|your|this|that|it)\b")
_APART = re.compile(r"\b(turn|switch)(?:e[ds]|s|ing)?((?:\s+[\w'’-]+){1,5}?)\s+(off|on)\b")
_IS_OFF = re.compile(
    r"\b(?:is|are|be|was|were|stays?)\s+off(?=\s+(?:for|when|while|in|on|at|by)\b|\W*$)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CJK_EMPTY = frozenset(
    "的了在是我们要把被和与及或请都也就应该可以中里个にはをがでのとへもやからまですでるしたてこいくだされ使用"
)
_CJK_NOT = (re.compile("不|别|勿|没|ない|ません|ず"), re.compile("禁止|严禁|避免|避け|不可|禁じ"))
_VOWELS = str.maketrans("", "", "aeiouy")
_SUFFIXES = (
    "ingly", "ments", "ungen", "ieren", "iert", "ables", "ibles", "ation", "ions", "ment", "ings",
    "lich", "keit", "ness", "able", "ible", "ion", "ing", "ung", "ers", "ies", "ied", "ten", "tes",
    "eur", "ent", "ant", "ais", "ait", "ado", "ada", "ido", "ida", "dos", "das", "ar", "er", "ir",
    "ed", "es", "en", "em", "te", "st", "ly", "al", "os", "as", "ов", "ах", "ам", "ами", "ями",
    "ого", "ому", "ые", "ый", "ая", "ое", "ть", "ет", "ют", "ит", "ат", "s", "e", "n", "t", "d",
    "a", "o", "y", "i", "и", "ы", "а", "о", "е", "у", "я", "ь", "й", "ю",
)  # fmt: skip
_ENDINGS = {
    last: tuple(suffix for suffix in _SUFFIXES if suffix[-1] == last)
    for last in {suffix[-1] for suffix in _SUFFIXES}
}
_CACHED = 20_000
_LONGEST_WORD = 80  # characters; the longest German compounds have some seventy


class Concept(NamedTuple):
    """What some words stand for, how much they count, whether one excludes another (a name)."""

    form: str
    weight: int
    hard: bool


class Word(NamedTuple):
    """One telling word: what it may be matched by, how much it counts, whether it is a number."""

    forms: tuple[str, ...]
    weight: int
    hard: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What a stretch of text says: its words, and whether it is turned round by a ``not``."""

    words: tuple[Word, ...]
    negated: bool


def read(text: str) -> Said:
    """Return what a stretch of text says."""
    words: list[Word] = []
    have: set[str] = set()
    spaced = _CAMEL.sub(" ", _MASKED.sub(_unmasked, text))
    lowered = _APART.sub(r"\1 \3\2", _folded(spaced))
    lowered = _phrases().sub(_joined_up, _IS_OFF.sub("turn off", lowered))
    tokens = _TOKEN.findall(lowered)
    names = _names(spaced, tokens)
    turns: set[object] = {0} if any(phrase in lowered for phrase in _no_go()) else set()
    turns.update(mark for mark in _CJK_NOT if mark.search(lowered))
    for token in tokens:
        group = 0 if token.endswith(("n't", "n’t")) else _negations().get(token)
        if group is not None:
            turns.add(group)
            continue
        if token in _opposites():
            turns.add(_opposites()[token])
            token = _opposites()[token]
        for word in _words(token, token in names):
            if not have.intersection(word.forms):
                words.append(word)
                have.update(word.forms)
    return Said(tuple(words), bool(len(turns) % 2))


def _unmasked(word: re.Match[str]) -> str:
    """Return a word with foreign letters among Latin ones, or signs for letters, as it looks."""
    found = word.group()
    return found if _FOREIGN.search(found) is None else seen(found)


def _joined_up(phrase: re.Match[str]) -> str:
    return "".join(phrase.group().replace("-", " ").split())


def _names(text: str, tokens: Sequence[str]) -> set[str]:
    """Return the words that may be names, which are as exclusive as numbers: Alice is not Bob.

    That is what is capitalised and no known word, where most words are not; German capitalises
    every noun.
    """
    if not _GERMAN.isdisjoint(tokens):
        return set()
    order = _ORDER.match(text)
    found = _NAME.findall(text, 0 if order is None else order.end())
    if 2 * len(found) > len(tokens):
        return set()
    return {name for name in map(_folded, found) if _concept(name) is None}


def _words(token: str, named: bool) -> Iterator[Word]:
    if _IS_CJK.match(token):
        yield from _cjk_words(token)
        return
    token = token.partition("'")[0].partition("’")[0] if token.endswith(("'s", "’s")) else token
    token = token.split("'")[-1].split("’")[-1]
    if not token or token in _empty():
        return
    found = _concept(token)
    if found is not None:
        yield _of_concept(found)
        return
    if any(map(str.isdigit, token)):
        plain = seen(token)
        if token.isdigit() or len(token) < 4 or sum(map(str.isdigit, token)) * 3 > len(token):
            yield Word(("#" + token,), _NUMBER, hard=True)
            return
        token = plain
        found = _concept(token)
        if found is not None:
            yield _of_concept(found)
            return
    parts = _compound(token)
    if parts:
        for part in parts:
            yield _of_concept(part)
        return
    if len(token) < 2:
        return
    yield Word(_forms(token), _OWN, hard=named)


def _of_concept(found: Concept) -> Word:
    return Word((found.form,), found.weight, found.hard)


def _forms(token: str) -> tuple[str, ...]:
    stem = _stem(token)
    forms = [stem]
    if token.startswith("ge") and len(token) > 6 and token[-1] in "tn":  # gespeichert
        forms.append(_stem(token[2:]))
    if len(token) == 4 and token[-1] == "s" and token[-2] not in "su":  # jobs
        forms.append(token[:-1])
    if len(token) >= 6 and token.isascii():
        forms.append("~" + token[0] + "".join(sorted(stem[1:].translate(_VOWELS))))
    return tuple(dict.fromkeys(forms))


@lru_cache(maxsize=_CACHED)
def _stem(word: str) -> str:
    for _ in range(2):
        for suffix in _ENDINGS.get(word[-1:], ()):
            if word.endswith(suffix) and len(word) - len(suffix) >= 4:
                word = word[: -len(suffix)]
                break
    if len(word) > 4 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:8]


def _cjk_words(run: str) -> Iterator[Word]:
    table = _concepts()
    rest = ""
    at = 0
    while at < len(run):
        for size in (6, 5, 4, 3, 2, 1):
            piece = run[at : at + size]
            if len(piece) == size and piece in table:
                yield from _pairs(rest)
                rest = ""
                yield _of_concept(table[piece])
                at += size
                break
        else:
            rest += run[at]
            at += 1
    yield from _pairs(rest)


def _pairs(run: str) -> Iterator[Word]:
    for mark in _CJK_NOT:
        run = mark.sub(" ", run)
    run = "".join(" " if char in _CJK_EMPTY else char for char in run)
    for piece in run.split():
        if len(piece) == 1:
            yield Word((piece,), 1, hard=False)
        for at in range(len(piece) - 1):
            yield Word((piece[at : at + 2],), 3, hard=False)


@cache
def _concepts() -> Mapping[str, Concept]:
    """Return every word of the table with its concept and how much it counts."""
    from hypatia_mem.store.concepts import CONCEPTS

    found: dict[str, Concept] = {}
    for number, line in enumerate(CONCEPTS.strip().splitlines()):
        words = line.split()
        mark = words[0] if words[0] in "~!" else ""
        hard = mark == "!" or words[0] in _DAYS or any(other.isdigit() for other in words)
        concept = Concept(f"={number}", LIGHT if mark == "~" else _OWN if mark else _PLAIN, hard)
        for written in words[bool(mark) :]:
            name = _folded(written.replace("-", ""))
            found.setdefault(name, concept)
            if "-" not in written and not _IS_CJK.match(name) and len(name) > 4:
                found.setdefault("/" + _stem(name), concept)
    return found


def _concept(token: str) -> Concept | None:
    table = _concepts()
    return (
        table.get(token)
        or table.get(token.removesuffix("s"))
        or (table.get("/" + _stem(token)) if len(token) > 4 else None)
    )


@cache
def _phrases() -> re.Pattern[str]:
    """Return what finds the words of the table that are several in a text."""
    from hypatia_mem.store.concepts import CONCEPTS, OPPOSITES

    listed = (CONCEPTS + OPPOSITES).split()
    found = {_folded(word) for word in listed if "-" in word}
    parts = sorted((word.replace("-", r"[\s-]+") for word in found), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(parts)})s?\b")


@lru_cache(maxsize=_CACHED)
def _compound(token: str) -> tuple[Concept, ...]:
    """Return the concepts that a long word is put together from (``Integrationstests``).

    What is longer than any word (a blob, a minified file) is not looked through: each of its
    beginnings would be looked up.
    """
    if not 9 <= len(token) <= _LONGEST_WORD:
        return ()
    for at in range(4, len(token) - 3):
        head = _concept(token[:at])
        if head is None:
            continue
        for joint in ("", "s", "n", "en"):
            if token.startswith(joint, at):
                tail = _concept(token[at + len(joint) :])
                if tail is not None and len(token) - at - len(joint) >= 4:
                    return (head, tail)
    return ()


@cache
def _empty() -> frozenset[str]:
    from hypatia_mem.store.concepts import EMPTY

    return frozenset(map(_folded, EMPTY.split()))


@cache
def _negations() -> Mapping[str, int]:
    from hypatia_mem.store.concepts import NEGATIONS

    return {
        _folded(word): group
        for group, line in enumerate(NEGATIONS.strip().splitlines())
        for word in line.split()
    }


@cache
def _opposites() -> Mapping[str, str]:
    from hypatia_mem.store.concepts import OPPOSITES

    found: dict[str, str] = {}
    for line in OPPOSITES.strip().splitlines():
        word, _, others = line.partition(":")
        found.update(dict.fromkeys((_folded(one.replace("-", "")) for one in others.split()), word))
    return found


@cache
def _no_go() -> tuple[str, ...]:
    from hypatia_mem.store.concepts import NO_GO

    return tuple(NO_GO.strip().split("|"))


_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "ae", "Ö": "oe", "Ü": "ue"}
)


def _folded(text: str) -> str:
    """Return a text with case and accents folded, and letters that only look Latin made so."""
    text = text.translate(_UMLAUTS).casefold()
    if text.isascii():
        return text
    spread = unicodedata.normalize("NFKD", text)
    plain = unicodedata.normalize(
        "NFKC", "".join(c for c in spread if not unicodedata.combining(c))
    )
    return plain

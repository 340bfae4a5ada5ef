"""Cutting text into terms, and how telling a term is.

A term is a stem, a pair of neighbouring CJK characters, or a single one that stands alone. Terms of
documents and of sentences must be cut alike, so everything here goes through ``terms``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["cost", "idf_of", "stem", "surface", "terms"]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)?")
_IS_CJK = re.compile(rf"[{_CJK}]")
_LONGEST = 40  # characters of a word that count; longer ones are data, not words
_COMMON = """
    a about above after again against ain all also am an and any are aren as at be because been
    before being below between both but by can could couldn d did didn do does doesn doing don down
    during each few for from further get got had hadn has hasn have haven having he her here hers
    herself him himself his how i if in into is isn it its itself just ll m ma me mightn more most
    mustn my myself needn no nor not now o of off oh ok okay on once only or other our ours
    ourselves out over own re s same shan she should shouldn so some such t than that the their
    theirs them themselves then there these they this those through to too under until up us ve
    very was wasn we were weren what when where which while who whom why will with won would
    wouldn y yeah yes you your yours yourself yourselves hey hi hello thanks thank please really
    like know think going go let see well much many been i'm it's that's i've you're don't i'll
    we're they're he's she's can't didn't doesn't isn't wasn't won't let's what's there's you've
    we've i'd you'd we'll you'll
    der die das und ist ich nicht ein eine zu den mit von auf für im dem es sie wir ihr er auch
    le la les de des du et est un une que qui dans pour pas sur avec ce il je nous vous au aux en
    el los las y es una con por para no se lo al del como más pero su
"""
_STOP = frozenset(_COMMON.split())
_SUFFIXES = (
    ("ization", 4), ("ational", 4), ("fulness", 4), ("iveness", 4), ("ations", 4), ("ingly", 4),
    ("ation", 4), ("ments", 4), ("ingly", 4), ("edly", 4), ("ment", 4), ("ness", 4), ("ings", 4),
    ("able", 4), ("ing", 3), ("ied", 3), ("ies", 3), ("ers", 4), ("ed", 3), ("es", 3), ("er", 4),
    ("ly", 3), ("s", 3), ("e", 3),
)  # fmt: skip
_stems: dict[str, str] = {}


def stem(word: str) -> str:
    """Return the stem of a lower-case word: its endings cut, English ones only.

    >>> stem("caching"), stem("caches"), stem("cached"), stem("tries"), stem("running")
    ('cach', 'cach', 'cach', 'tri', 'run')
    """
    known = _stems.get(word)
    if known is not None:
        return known
    cut = word.split("'", 1)[0].split("’", 1)[0] if "'" in word or "’" in word else word
    if cut.isascii() and cut.isalpha():
        for suffix, least in _SUFFIXES:
            if cut.endswith(suffix) and len(cut) - len(suffix) >= least and not cut.endswith("ss"):
                cut = cut[: -len(suffix)]
                break
        if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "aeiouls":
            cut = cut[:-1]
        if len(cut) > 3 and cut[-1] in "yi":
            cut = cut[:-1] + "i"
        elif len(cut) > 3 and cut[-1] == "e":
            cut = cut[:-1]
    if len(_stems) < 200_000:
        _stems[word] = cut
    return cut


def terms(text: str) -> list[str]:
    """Return the telling terms of a text in order, with repetitions.

    >>> terms("The caches were cached; 缓存失效")
    ['cach', 'cach', '缓存', '存失', '失效']
    """
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _IS_CJK.match(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        elif word not in _STOP and len(word) > 1:
            found.append(stem(word[:_LONGEST]))
    return found


def surface(text: str) -> dict[str, str]:
    """Return each term of a text, in order, with the first word that gave it as it was written.

    >>> surface("The Caches; 缓存失效")
    {'cach': 'Caches', '缓存': '缓存', '存失': '存失', '失效': '失效'}
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(text):
        if _IS_CJK.match(word):
            parts = [word[i : i + 2] for i in range(len(word) - 1)] or [word]
            found.update((part, part) for part in parts if part not in found)
        elif (low := word.lower()) not in _STOP and len(low) > 1:
            found.setdefault(stem(low[:_LONGEST]), word)
    return found


def cost(text: str) -> float:
    """Return how long a text is in words; two CJK characters are one.

    >>> cost("two words"), cost("四个字啊")
    (2, 2.0)
    """
    if text.isascii():
        return len(text.split())
    cjk = len(_IS_CJK.findall(text))
    return len(_IS_CJK.sub(" ", text).split()) + cjk / 2 if cjk else len(text.split())


def idf_of(documents: Iterable[str]) -> Mapping[str, float]:
    """Return the weight of each term of these documents: the rarer, the higher.

    ``""`` holds the weight of a term that is in none.
    """
    seen: Counter[str] = Counter()
    total = 0
    for document in documents:
        total += 1
        seen.update(set(terms(document)))
    weights = {term: math.log(1 + total / (1 + count)) for term, count in seen.items()}
    weights[""] = math.log(1 + max(total, 1))
    return weights

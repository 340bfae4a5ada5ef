"""What a text looks like: letters that are drawn alike are one letter.

Two texts that look the same to a reader have the same ``glyphs``, whatever they are written with:
letters of other scripts, digits for letters, accents, marks between the letters, blanks or none.
Digits stay apart from one another, so no number becomes another number.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["LEAST", "UNSEEN", "canonical", "glyphs", "seen"]

LEAST = 8  # letters; of a shorter text too many others look the same
# What no reader sees and what does not break a line: zero width, fillers, variation selectors.
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)


def _read(pairs: str) -> dict[str, str]:
    return {pair[0]: pair[1:] for pair in pairs.split()}


# Capitals that look like a Latin one though their small letter does not, and the other way round.
_CAPITALS = _read(
    """
    Αa Βb Εe Ζz Ηh Ιi Κk Μm Νn Οo Ρp Τt Υy Χx Ϲc Ϻm Аa Вb Еe Ѕs Іi Јj Кk Мm Нh Оo Рp Сc Тt
    Уy Хx Ԛq Ԝw Үy Һh Ᏼb Ꭰd Ꭼe Ꮋh Ꭻj Ꮶk Ꮮl Ꮇm Ꮲp Ꮪs Ꭲt Ꮩv Ꮃw Ꮓz
    """
)
_SMALL = _read(
    """
    αa βb γy εe ηn ιi κk μu νv οo ρp τt υu χx ωw ϲc ϳj аa вb гr еe кk мm нh оo рp сc тt уy хx
    іi јj ѕs һh ԁd ԛq ԝw ѵv ьb ӏl үy ғf ыbl юlo зe пn иu ɑa ɡg ɩi ɪi ʀr ʏy ʟl ʙb ɢg ʜh ɴn ᴀa
    ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ꜱs ꞇt ıi ȷj ƒf ɛe əe łl đd øo ħh ŧt æae œoe ßss
    հh ոn սu օo ցg զq
    """
)
_LEET = dict(zip("013457@$!|¡€£¢+", "oleastaslllelct", strict=True)) | {"8": "b"}
_LEETS = str.maketrans(_LEET)
_SIGNS = re.compile(r"[@$€£¢]|(?<=\w)[!|¡+](?=\w)")
_PAIRS = (("rn", "m"), ("vv", "w"), ("i", "l"))
_QUOTES = str.maketrans("‘’‚‛“”„‟‐‑‒–—", "'" * 4 + '"' * 4 + "-" * 5)


def canonical(text: str) -> str:
    """Return what two spellings of the same value have in common.

    NFKC, case folded, white space collapsed, zero-width and control characters and the marks of
    sentence ends dropped.

    >>> canonical("Never  mock\\u200b the DB!")
    'never mock the db'
    """
    folded = text.lower()
    if not text.isascii():  # of what is, nothing else has another form
        seen = UNSEEN.sub("", unicodedata.normalize("NFKC", UNSEEN.sub("", text)))
        folded = unicodedata.normalize("NFKC", seen.casefold()).translate(_QUOTES)
    kept = " ".join(folded.split())
    if not kept.isprintable():  # most are, and then there is nothing to drop
        kept = "".join(c for c in kept if c == " " or unicodedata.category(c)[0] != "C")
        kept = " ".join(kept.split())
    return kept.strip(" .!?;:。！？\"'`")


def seen(text: str) -> str:
    """Return a word with digits and foreign letters read as the letters they stand for.

    >>> seen("d4t4b4se"), seen("dаtаbаsе")
    ('database', 'database')
    """
    return "".join(_LEET.get(char, char) for char in _latin(text))


def glyphs(text: str) -> str:
    """Return what a text looks like, without blanks and marks; ``""`` for a short one.

    >>> glyphs("N3ver  m0ck the d@tabase!") == glyphs("n.e.v.e.r mоck thе datаbase")
    True
    >>> glyphs("port 8080 is it") == glyphs("port 9090 is it")
    False
    """
    plain = _SIGNS.sub(lambda mark: _LEET[mark.group()], _latin(text))
    drawn = "".join(filter(str.isalnum, plain)).translate(_LEETS)
    for pair, one in _PAIRS:
        drawn = drawn.replace(pair, one)
    return drawn if len(drawn) >= LEAST else ""


def _latin(text: str) -> str:
    text = UNSEEN.sub("", unicodedata.normalize("NFKC", UNSEEN.sub("", text)))
    if not text.isascii():
        text = "".join(_CAPITALS.get(char) or _enclosed(char) for char in text)
        text = "".join(_SMALL.get(char, char) for char in text.casefold())
        spread = unicodedata.normalize("NFD", text)
        text = "".join(char for char in spread if not unicodedata.combining(char))
        text = "".join(_SMALL.get(char, char) for char in text)
    return text.casefold()


def _enclosed(char: str) -> str:
    """Return the letter in a box, a disc or a flag; any other character as it is."""
    code = ord(char)
    for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6):
        if first <= code < first + 26:
            return chr(code - first + ord("a"))
    return char

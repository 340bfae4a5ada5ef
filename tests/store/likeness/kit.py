"""What the likeness of texts is measured on: wordings of one value, others, and disguises of it.

``tuning.json`` is what the rules were made with, ``held_out.json`` was written afterwards and has
changed nothing in them. ``coding.json`` holds ten decisions of a project with twenty rewordings
each, as a model restates them; of these 175 of 200 were caught when it was first asked, and 197
after five gaps that it showed were mended (verbs taken for names, ``jobs`` for no ``job``, ``turned
off``, ``is off``, ``skipped``), none of which caught anything else.

Of each value: texts that say the ``same``, and ``other`` texts that say something else and in the
first two sets share words with it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A value with texts that say the same, and such as do not."""

    language: str
    value: str
    same: tuple[str, ...]
    other: tuple[str, ...]


def cases(name: str) -> list[Case]:
    """Return the cases of a set: ``tuning``, ``held_out`` or ``coding``."""
    found = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return [
        Case(one["language"], one["value"], tuple(one["same"]), tuple(one["other"]))
        for one in found
    ]


def unrelated(found: list[Case]) -> Iterator[tuple[Case, str]]:
    """Yield each case with every text of the others."""
    for case in found:
        for other in found:
            if other is not case:
                for text in (other.value, *other.same, *other.other):
                    yield case, text


def _swap(table: Mapping[str, str]) -> Callable[[str], str]:
    return lambda text: "".join(table.get(char, char) for char in text)


def _pairs(pairs: str) -> dict[str, str]:
    return {pair[0]: pair[1] for pair in pairs.split()}


def _shifted(small: int, capital: int) -> Callable[[str], str]:
    def shift(char: str) -> str:
        if "a" <= char <= "z":
            return chr(small + ord(char) - ord("a"))
        return chr(capital + ord(char) - ord("A")) if "A" <= char <= "Z" else char

    return lambda text: "".join(map(shift, text))


DISGUISES: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "swapped case": str.swapcase,
    "title case": str.title,
    "blanks doubled": lambda text: text.replace(" ", "  "),
    "line breaks": lambda text: text.replace(" ", "\n"),
    "hard blanks": lambda text: text.replace(" ", "\u00a0"),
    "thin blanks": lambda text: text.replace(" ", "\u2009"),
    "no blanks": lambda text: text.replace(" ", ""),
    "blanks everywhere": " ".join,
    "dots everywhere": ".".join,
    "hyphens for blanks": lambda text: text.replace(" ", "-"),
    "underscores for blanks": lambda text: text.replace(" ", "_"),
    "quoted": lambda text: f"“{text}”",
    "shouted": lambda text: f"{text}!!!",
    "a list item in bold": lambda text: f"- **{text}**",
    "zero width": "\u200b".join,
    "word joiners": "\u2060".join,
    "soft hyphens": "\u00ad".join,
    "variation selectors": "\ufe0f".join,
    "right to left marks": lambda text: f"\u202e{text}\u202c",
    "tags": lambda text: text + "".join(chr(0xE0000 + ord(char)) for char in "ok"),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "accents": lambda text: "".join(char + "\u0301" if char in "aeiou" else char for char in text),
    "dots below": lambda text: "".join(char + "\u0323" if char.isalpha() else char for char in text),
    "full width": lambda text: "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text
    ),
    "mathematical bold": _shifted(0x1D41A, 0x1D400),
    "mathematical script": _shifted(0x1D4EA, 0x1D4D0),
    "mathematical typewriter": _shifted(0x1D68A, 0x1D670),
    "in circles": _shifted(0x24D0, 0x24B6),
    "in black boxes": _shifted(0x1F170, 0x1F170),
    "flags": _shifted(0x1F1E6, 0x1F1E6),
    "Cyrillic": _swap(_pairs("aа eе oо pр cс yу xх iі jј sѕ hһ Aа Eе Oо Tт Mм Kк Bв Hн Pр Cс")),
    "Greek": _swap(_pairs("aα oο iι nη vν uυ tτ kκ eε AΑ OΟ TΤ MΜ KΚ BΒ PΡ EΕ")),
    "Greek, the other small letters": _swap(_pairs("uμ yγ wω xχ pρ Aα Oο Tτ Kκ Bβ Pρ Eε")),
    "Armenian": _swap(_pairs("hհ nո uս oօ gց qզ")),
    "Latin small capitals": _swap(_pairs("aᴀ bʙ cᴄ dᴅ eᴇ gɢ iɪ jᴊ kᴋ lʟ mᴍ nɴ oᴏ pᴘ rʀ tᴛ uᴜ vᴠ wᴡ zᴢ")),
    "dotless and barred": _swap(_pairs("iı lł dđ oø hħ tŧ")),
    "digits for letters": _swap(_pairs("o0 l1 e3 a4 s5 t7")),
    "signs for letters": _swap(_pairs("a@ s$")),
    "rn for m": lambda text: text.replace("m", "rn"),
    "vv for w": lambda text: text.replace("w", "vv"),
    "l for i": lambda text: text.replace("i", "l"),
    "several at once": lambda text: "\u200b".join(
        _swap(_pairs("aа oο e3 s$"))(text.title()).replace(" ", " \u00a0")
    ),
}  # fmt: skip

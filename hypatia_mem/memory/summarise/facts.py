"""What must not be lost when text is condensed: names of things, and sentences that decide.

Token facts are found by their form: URLs, paths, commands, identifiers, numbers. Sentence facts are
decisions and negations; they are found by cue words in six languages. All of it is deliberately
plain: the same finder judges what goes in and what comes out, so its mistakes cancel.
"""

from __future__ import annotations

import re

__all__ = ["CLASSES", "Fact", "is_decision", "is_marked", "is_negation", "of_kinds", "tokens"]

Fact = tuple[str, str]  # (class, the text itself)
CLASSES = ("identifier", "path", "number", "url", "command", "decision", "negation")

_URL = r"(?P<url>\b[a-z][a-z0-9+.-]{1,9}://[^\s<>\"'`)\]，。；）]+)"
_COMMAND = (
    r"(?P<command>`(?:\$ )?(?:git|npm|npx|pnpm|yarn|pip|uv|uvx|python3?|pytest|ruff|mypy|make|cargo"
    r"|go|docker|kubectl|terraform|ssh|curl|sudo|apt|brew|node|deno|bun|tox|poetry|cmake|psql|duckdb)"
    r" [^`\n]{1,100}`|(?m:^[ \t]*\$ [^\n]{2,100}))"
)
_PATH = (
    r"(?P<path>(?<![\w/:])(?:~|\.{1,2}|\$\w+|[A-Za-z]:)?[\\/](?:[\w.@+-]+[\\/])*[\w.@+-]*[\w+]"
    r"|\b[\w.@+-]+(?:/[\w.@+-]+)*/[\w@+-]*\.[A-Za-z]\w{0,5}\b"
    r"|\b[\w-]+\.(?:pyi?|[jt]sx?|rs|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|swift|sh|sql|toml|ya?ml"
    r"|json|jsonl|md|txt|css|html|lock|cfg|ini|env|xml|csv|proto|ipynb|vue|svelte)\b)"
)
_IDENTIFIER = (
    r"(?P<identifier>`[^`\s]{1,60}`|\b[A-Z]+-\d+\b|(?<![\w-])--?[A-Za-z][\w-]+|\b[A-Za-z_]\w*\(\)"
    r"|\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b|\b_\w+\b|\b[a-z]+[a-z0-9]*[A-Z]\w*\b"
    r"|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+\b(?:\(\))?|\b[A-Z]{2,}[0-9]*\b"
    r"|\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,40}\b)"
)
_NUMBER = (
    r"(?P<number>(?<![\w.])[vV]?\d[\d.,:/-]*\d(?:\s?(?:%|[kKMGTP]i?B|ms|µs|us|ns|s|min|h|px|rpm))?\b%?"
    r"|(?<![\w.])\d\s?(?:%|[kKMG]i?B|ms|min|h)(?!\w))"
)
_TOKEN = re.compile("|".join((_URL, _COMMAND, _PATH, _IDENTIFIER, _NUMBER)))
# A text without any of these has no token facts: most sentences people say.
_HINT = re.compile(r"[\d_/\\`$]|[a-z][A-Z]|[A-Z]{2}|\w\.\w|\(\)|(?<!\w)-\w")
_DECISION = re.compile(
    r"\b(?:decid\w+|decision|we(?:'ll| will) (?:use|go|keep|drop|switch)"
    r"|let'?s (?:use|go|keep|drop)|going with|go with|agreed|from now on|settled on|chose"
    r"|instead of|switch(?:ed)? to|root cause|entschieden|entscheid\w+|wir nehmen|ab jetzt"
    r"|décid\w+|on garde|désormais|decidi\w+"
    r"|a partir de ahora|usaremos)\b|决定|改用|采用|從現在起|从现在起|根因"
    r"|決定|決めた|にする|ことにし",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:never|don'?t|do not|does not|doesn'?t|must not|mustn'?t|cannot|can'?t|should not"
    r"|shouldn'?t|won'?t|without|no longer|not|forbidden|avoid|niemals|nie|nicht|kein\w*|verboten"
    r"|jamais|ne pas|n'\w+ pas|interdit|nunca|jamás|sin|prohibido)\b"
    r"|不要|不能|不得|禁止|别|決して|しない|ないで|ません",
    re.IGNORECASE,
)
# Pieces of which a sentence has one, in lower case, if the pattern can be found in it: looking for
# them is far cheaper, and most sentences have none.
_OF_DECISION = (
    "decid", "decis", "we will", "we'll", "let's", "lets", "go with", "going with", "agreed",
    "from now", "settled", "chose", "instead", "switch", "root", "entsch", "wir nehmen",
    "ab jetzt", "décid", "garde", "désormais", "partir", "usaremos", "决", "決", "用", "现在",
    "現在", "因", "にする", "ことに",
)  # fmt: skip
_OF_NEGATION = (
    "not", "n't", "dont", "cant", "wont", "doesnt", "mustnt", "shouldnt", "never", "without",
    "longer", "forbid", "avoid", "nie", "nicht", "kein", "verboten", "jamais", " pas", "interdit",
    "nunca", "jamás", "sin", "prohib", "不", "禁", "别", "決", "しない", "ないで", "ません",
)  # fmt: skip


def tokens(text: str) -> set[str]:
    """Return the token facts of a text.

    >>> sorted(tokens("`git push` broke foo_bar in src/a.py at 12:30, see https://x.dev/a"))
    ['12:30', 'foo_bar', 'git push', 'https://x.dev/a', 'src/a.py']
    """
    return {word for _, word in of_kinds(text)}


def of_kinds(text: str) -> dict[Fact, int]:
    """Return the token facts of a text with where each stands first."""
    found: dict[Fact, int] = {}
    if _HINT.search(text) is not None:  # most sentences have none of these
        for match in _TOKEN.finditer(text):
            word = match.group().strip().strip("`").rstrip(".,:;").removeprefix("$ ").strip()
            if word:
                found.setdefault((match.lastgroup or "", word), match.start())
    return found


def is_decision(text: str) -> bool:
    """Tell whether a sentence says what was decided."""
    return _has(text, _OF_DECISION) and _DECISION.search(text) is not None


def is_negation(text: str) -> bool:
    """Tell whether a sentence says what is not, or must not be."""
    return _has(text, _OF_NEGATION) and _NEGATION.search(text) is not None


def _has(text: str, pieces: tuple[str, ...]) -> bool:
    low = text.lower()
    for piece in pieces:  # noqa: SIM110 - asked of every sentence: any() takes twice the time
        if piece in low:
            return True
    return False


def is_marked(text: str) -> bool:
    """Tell whether a sentence decides or forbids."""
    return is_decision(text) or is_negation(text)
